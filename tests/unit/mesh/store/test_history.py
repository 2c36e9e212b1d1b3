"""The sums over any window are those of all seconds, whatever level they come from."""

import numpy as np
import pytest

from domkl.mesh.store.history import (
    LEVELS,
    SAMPLE,
    History,
    combined,
    plus,
    record_type,
    sums_of,
)

START = 1_700_000_123  # not at the beginning of any step


def second(history, index, n=1, error=None):
    record = np.zeros((), history.dtype)
    record["index"] = index
    record["by"][0]["n"] = n
    record["by"][0]["errors"] = index % 1000 if error is None else error
    record["last_number"], record["last_time"], record["seconds"] = index - START, index, 1
    record["n_open"], record["queued"] = 3 + (index % 50 == 0), index % 7
    return record


@pytest.fixture
def history(tmp_path):
    made = History(tmp_path, 1, 2)
    yield made
    made.close()


def none(history):
    return np.empty(0, history.dtype)


def test_rows_of_any_step_are_the_sums_of_their_seconds(history):
    n = 1500  # more than the ring of seconds holds
    for index in range(START, START + n):
        history.write(second(history, index))
    now = START + n
    for since, step, found_step in ((now - 300, 1, 1), (now - 300, 7, 7), (START, 1, 10),
                                    (START, 60, 60), (0, 10, 10), (START, 300, 300)):  # fmt: skip
        rows = history.rows(since, step, now, none(history))
        assert rows.step == found_step
        begin = max(since, START) // found_step
        seconds = np.arange(max(START, begin * found_step), now)
        expected = {
            k: seconds[seconds // found_step == k] for k in np.unique(seconds // found_step)
        }
        assert rows.records["index"].tolist() == list(expected)
        assert rows.records["by"]["n"][:, 0].tolist() == [len(s) for s in expected.values()]
        sums = [float(np.sum(s % 1000)) for s in expected.values()]
        assert rows.records["by"]["errors"][:, 0].tolist() == sums
        assert rows.records["queued"].tolist() == [max(s % 7) for s in expected.values()]
        assert rows.records["n_open"].tolist() == [
            min(3 + (s % 50 == 0)) for s in expected.values()
        ]
        assert rows.records["last_time"].tolist() == [max(s) for s in expected.values()]


def test_windows_take_in_what_is_not_written_yet(history):
    for index in range(START, START + 4000):
        history.write(second(history, index))
    unwritten = np.stack([second(history, START + k) for k in (3999, 4000, 4001)])
    for seconds, within in ((3600, 10), (86400, 0)):
        total = history.total(seconds, START + 4002, unwritten)
        assert int(total["by"][0]["n"]) == pytest.approx(min(seconds, 4002), abs=within)
    assert history.total(3600, START + 10**6, none(history))["by"][0]["n"] == 0


@pytest.mark.parametrize("step", [1, 5, 10, 60])
def test_what_is_not_written_yet_counts_from_the_first_second_on(history, step):
    boundary = START // 60 * 60 + 60  # here a step of every length begins
    unwritten = np.stack([second(history, boundary + k) for k in (-1, 0)])
    rows = history.rows(0.0, step, boundary + 0.5, unwritten)
    assert int(rows.records["by"]["n"].sum()) == 2


def test_a_step_is_read_from_its_seconds_until_its_sum_is_written(history, monkeypatch):
    boundary = START // 60 * 60 + 60
    for index in range(START, boundary):
        history.write(second(history, index))
    summed = history._sum_up

    def read_before(k, index):
        """Sum up, as a reader in another thread would find it just before."""
        rows = history.rows(0.0, 60, boundary + 0.5, np.stack([second(history, boundary)]))
        counts.append(int(rows.records["by"]["n"].sum()))
        summed(k, index)

    counts = []
    monkeypatch.setattr(history, "_sum_up", read_before)
    history.write(second(history, boundary))
    assert counts
    assert set(counts) == {boundary - START + 1}


def test_a_kill_leaves_nothing_to_be_summed(tmp_path):
    """However far it came, after a restart all sums are complete."""
    for n in (1, 9, 10, 11, 299, 310):
        folder = tmp_path / str(n)
        for index in range(START, START + n):
            made = History(folder, 1, 2) if index % 97 == 0 or index == START else made  # noqa: F821
            made.write(second(made, index, error=1.0))
            if index % 97 == 96:
                made.close()  # as a kill does: nothing is written
        again = History(folder, 1, 2)
        assert (again.last_number, again.last_time) == (n - 1, START + n - 1)
        for step in (1, 10, 300, 3600):
            rows = again.rows(0, step, START + n + 5000, none(again))
            assert rows.records["by"]["errors"].sum() == n
        again.close()


def test_a_node_that_was_away_has_a_gap(history):
    for index in (START, START + 1, START + 50, START + 51):
        history.write(second(history, index))
    rows = history.rows(START, 1, START + 60, none(history))
    assert (rows.records["index"] - START).tolist() == [0, 1, 50, 51]
    assert history.rows(START, 30, START + 60, none(history)).records["seconds"].sum() == 4


def test_a_clock_that_goes_back_breaks_nothing(history):
    for index in [*range(START, START + 30), *range(START - 100, START - 50)]:
        history.write(second(history, index))
    assert len(history.rows(START - 200, 1, START - 50, none(history)).records) == 50


def test_steps_are_longer_where_there_would_be_too_many(tmp_path):
    before = History(tmp_path, 1, 2)
    before.write(second(before, START))
    before.close()
    history = History(tmp_path, 1, 2)
    rows = history.rows(0, 1, START + 5000, none(history))
    assert rows.step == 10
    assert len(rows.records) == 1
    year = history.rows(0, 1, START + 360 * 86400, none(history))
    assert year.step == 5 * 3600
    history.close()


def test_the_size_is_bounded():
    """24 hours of ten nodes in 50 MB, and a year in little more."""
    day = [min(n, 86400 // step) for step, n in LEVELS]
    bytes_of = lambda steps, h: sum(steps) * record_type(h, 9).itemsize  # noqa: E731
    assert 10 * bytes_of(day, 6) < 50e6
    assert bytes_of([n for _, n in LEVELS], 1) < 5e6


def test_sums_of_samples_add_up():
    rng = np.random.default_rng(1)
    samples = np.zeros(40, SAMPLE)
    for name in ("y", "y_hat", "y_last", "y_alone", "deviation"):
        samples[name] = rng.random(40)
    samples["y_alone"][::3], samples["deviation"][::4] = np.nan, np.nan
    whole = sums_of(samples)
    apart = plus(sums_of(samples[:13]), sums_of(samples[13:]))
    for name in whole.dtype.names:
        assert whole[name] == pytest.approx(apart[name])
    assert (whole["n"], whole["n_alone"], whole["n_bands"]) == (40, 26, 30)
    assert whole["errors"] == pytest.approx(((samples["y_hat"] - samples["y"]) ** 2).sum())
    within = np.abs(samples["y_hat"] - samples["y"]) <= 1.96 * samples["deviation"]
    assert whole["n_covered"] == within.sum()


def test_nothing_is_combined_to_zeros():
    assert combined(np.empty(0, record_type(1, 0)), [0])["seconds"].tolist() == [0.0]
