"""Jobs on threads: every one is done once, an error or a stop ends all, progress adds up."""

import threading

import pytest

from domkl.sim.threads import available_cores, run_all


def test_there_is_a_core():
    assert available_cores() >= 1


@pytest.mark.parametrize("is_inline", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_cell_is_done_once_and_progress_ends_with_all(threads, is_inline):
    done, told = [], []

    def job(cell, after_rounds):
        for _ in range(cell):
            after_rounds(2)
        done.append(cell)

    cells = [3, 1, 4, 1, 5]
    run_all(job, cells, threads, 28, lambda *given: told.append(given), is_inline=is_inline)
    assert sorted(done) == sorted(cells)
    assert told[-1] == (28, 28)
    assert [n for n, _ in told] == sorted(n for n, _ in told)


def test_progress_is_told_on_the_thread_of_the_caller():
    here, where = threading.get_ident(), []
    run_all(
        lambda cell, after_rounds: after_rounds(1),
        [1, 2, 3],
        2,
        None,
        lambda done, total: where.append((threading.get_ident(), total)),
        is_inline=False,
    )
    assert set(where) == {(here, None)}


@pytest.mark.parametrize("is_inline", [True, False])
def test_an_error_in_a_job_is_raised_here(is_inline):
    def job(cell, after_rounds):
        if cell == 2:
            raise ValueError("the second one")

    with pytest.raises(ValueError, match="the second one"):
        run_all(job, [1, 2], 2, None, None, is_inline=is_inline)


def test_an_error_in_one_job_ends_the_others():
    """They are told when they count a round, and so need not come to their end."""
    has_failed, workers = threading.Event(), []

    def job(cell, after_rounds):
        workers.append(threading.current_thread())
        if cell == "fails":
            has_failed.set()
            raise ValueError("stop")
        has_failed.wait()
        while True:
            after_rounds(1)

    with pytest.raises(ValueError, match="stop"):
        run_all(job, ["goes on", "fails"], 2, None, None, is_inline=False)
    for each in workers:
        each.join(60)
        assert not each.is_alive()


def test_jobs_on_threads_leave_the_main_thread_free_for_ctrl_c():
    where = []
    run_all(
        lambda cell, after_rounds: where.append(threading.current_thread()),
        [1, 2],
        1,
        None,
        None,
        is_inline=False,
    )
    assert threading.main_thread() not in where
