"""What a neighbor may move: the same at both ends, within own steps, whenever it is said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import domkl
from domkl.mesh.protocol.bounds import STEP_FADE, UNLIMITED, Bounds, code_of, radius_of, shrunk
from domkl.mesh.protocol.edges import Edge, Pair
from domkl.mesh.protocol.events import Alarm, Sample
from domkl.mesh.protocol.families import APART, family_of
from domkl.mesh.protocol.measures import CLEARED, SUSPICIOUS, EdgeMeasures
from domkl.mesh.protocol.protocol import MOST_ABOVE, MOST_BELOW, Protocol
from domkl.mesh.protocol.wire import Offer
from domkl.mesh.testing import VirtualNetwork
from domkl.mesh.testing.liars import Liar, Lie
from domkl.storage import Parts

ALGORITHMS = {"domkl": domkl.DOMKL(), "domkrls": domkl.DOMKRLS(), "rff": domkl.RFFDOMKL()}
ROWS, D = 3, 4
RING = {"0": "13", "1": "02", "2": "13", "3": "02"}
LIAR, PERIOD, ROUNDS = "2", 0.1, 80


# codes


@given(st.floats(1e-9, 1e9))
def test_codes_round_down_and_by_less_than_a_step(radius):
    read = radius_of(code_of(np.array([radius])))[0]
    assert read <= radius * (1 + 1e-12) < read * 2**0.25 * (1 + 1e-9)
    assert code_of(np.array([read])) == code_of(np.array([radius]))


def test_codes_of_nothing_of_no_limit_and_beyond_the_largest():
    codes = code_of(np.array([0.0, 1e-300, 1e300, np.inf]))
    assert codes.tolist() == [0, 1, UNLIMITED - 1, UNLIMITED]
    read = radius_of(codes)
    assert (read[0], read[3]) == (0, np.inf)
    assert 0 < read[1] < read[2] < np.inf


# pairs of messages


def message(name, generator, size=1.0):
    """What a learner could say, with three rows."""
    theta = size * generator.standard_normal((1, ROWS, D))
    if name != "domkrls":
        return {"theta": theta, "loss": generator.random((1, ROWS))}
    counts = 10 + generator.random((1, ROWS))
    accounts = {f: generator.random((1, ROWS)) for f in ("loss", "regret", "variance")}
    return {"sums": counts[..., None] * theta, "counts": counts, "rounds": np.array([20.0])} | (
        accounts
    )


def bounds_of(name, step=1.0):
    made = Bounds(family_of(ALGORITHMS[name]), ROWS)
    names = ("sums", "loss", "regret", "variance") if name == "domkrls" else ("theta",)
    made.see({f: np.zeros((ROWS, 1)) for f in names}, {f: np.full((ROWS, 1), step) for f in names})
    return made


class TwoEnds:
    """Both ends of an edge, and the limits of both learners."""

    def __init__(self, name, radii=(1.0, 1.0)):
        self.name, self.moved = name, family_of(ALGORITHMS[name]).moved
        self.bounds = [bounds_of(name), bounds_of(name)]
        self.edges = [Edge("b", 1), Edge("a", 1)]
        self.radii = [np.full(ROWS, each) for each in radii]

    def exchange(self, *said):
        """Give the pair of each end, before and after the limits."""
        offers = [Offer(2, fields, radii=r) for fields, r in zip(said, self.radii, strict=True)]
        before = [Pair(offers[0], offers[1]), Pair(offers[1], offers[0])]
        after = []
        for bounds, edge, pair in zip(self.bounds, self.edges, before, strict=True):
            after.append(bounds.limited(edge, pair))
            edge.contribute(after[-1].gaps([self.moved]))
        return before, after


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("size", [1e-3, 0.3, 100.0])
def test_both_ends_get_opposite_gaps_whatever_is_limited(name, size):
    generator, ends = np.random.default_rng(3), TwoEnds(name, radii=(0.7, 0.4))
    fields = [ends.moved] + ["counts"] * (name == "domkrls")
    for _ in range(40):
        said = [message(name, generator, size) for _ in range(2)]
        _, after = ends.exchange(*said)
        one, other = (pair.gaps(fields) for pair in after)
        for field in fields:
            most = max(np.abs(each[field]).max() for each in said)
            np.testing.assert_allclose(one[field], -other[field], rtol=0, atol=4e-16 * most)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_is_within_the_radius_is_not_changed_by_a_bit(name):
    generator, ends = np.random.default_rng(4), TwoEnds(name, radii=(1e6, np.inf))
    for _ in range(20):
        before, after = ends.exchange(*(message(name, generator) for _ in range(2)))
        for was, is_ in zip(before, after, strict=True):
            assert is_.theirs.fields == was.theirs.fields
    assert ends.edges[0].measures.n_limited == 0
    assert ends.edges[0].measures.share == 1.0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_row_that_is_limited_leaves_the_others_as_they_are(name):
    generator, ends = np.random.default_rng(5), TwoEnds(name)
    ends.radii = [np.array([1e6, 1e-3, 1e6])] * 2
    for _ in range(20):
        before, after = ends.exchange(*(message(name, generator) for _ in range(2)))
        was, is_ = (pairs[0].theirs.fields[ends.moved][0] for pairs in (before, after))
        np.testing.assert_array_equal(is_[::2], was[::2])
        assert not np.array_equal(is_[1], was[1])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_limits_keep_the_type_of_numbers(name):
    generator, ends = np.random.default_rng(5), TwoEnds(name, radii=(0.1, 0.1))
    said = [message(name, generator, 10.0) for _ in range(2)]
    for each in said:
        each[ends.moved] = each[ends.moved].astype(np.float32)
    _, after = ends.exchange(*said)
    assert all(pair.theirs.fields[ends.moved].dtype == np.float32 for pair in after)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_gap_is_longer_than_the_smaller_radius(name):
    generator, ends = np.random.default_rng(6), TwoEnds(name, radii=(0.5, 3.0))
    _, after = ends.exchange(*(message(name, generator, 1e5) for _ in range(2)))
    gap = after[0].gaps([ends.moved])[ends.moved]
    assert (np.linalg.norm(gap[0], axis=1) <= 0.5 * (1 + 1e-9)).all()
    assert (shrunk(gap, np.full(ROWS, 0.5 * (1 + 1e-9))) == 1).all()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_larger_radius_than_ours_changes_nothing_and_one_of_zero_silences(name):
    for theirs, same in ((1e3, True), (np.inf, True), (0.0, False)):
        generator = np.random.default_rng(7)
        said = [message(name, generator, 10.0) for _ in range(2)]
        _, (usual, _) = TwoEnds(name, radii=(0.5, 0.5)).exchange(*said)
        ends = TwoEnds(name, radii=(0.5, theirs))
        _, (found, _) = ends.exchange(*said)
        gap = found.gaps([ends.moved])[ends.moved]
        if same:
            np.testing.assert_array_equal(gap, usual.gaps([ends.moved])[ends.moved])
        else:
            np.testing.assert_array_equal(gap, np.zeros_like(gap))


def test_the_sum_of_gaps_of_admm_has_a_limit_however_long_somebody_pushes():
    ends = TwoEnds("domkl", radii=(0.1, np.inf))
    own, lie = (
        {"theta": np.full((1, ROWS, D), size), "loss": np.ones((1, ROWS))} for size in (0.0, 1e5)
    )
    sizes = []
    for _ in range(200):
        ends.exchange(own, lie)
        sizes.append(np.linalg.norm(ends.edges[0].contribution["theta"][0], axis=1).max())
    assert sizes[-1] == pytest.approx(max(sizes)) == pytest.approx(sizes[100])
    for _ in range(200):  # a liar that has gone, or has become honest, is forgotten
        ends.exchange(own, own)
    assert np.linalg.norm(ends.edges[0].contribution["theta"]) < 0.01 * sizes[-1]


def test_a_claimed_number_of_neighbors_widens_no_limit():
    own, lie = (
        {"theta": np.full((1, ROWS, D), size), "loss": np.ones((1, ROWS))} for size in (0.0, 1e5)
    )
    sizes = []
    for claimed in (2, 10**9):
        bounds, edge = bounds_of("domkl"), Edge("b", 1)
        pair = Pair(*(Offer(n, f, radii=np.ones(ROWS)) for n, f in ((2, own), (claimed, lie))))
        for _ in range(50):
            edge.contribute(bounds.limited(edge, pair).gaps(["theta"]))
        sizes.append(np.abs(edge.contribution["theta"]).max())
    assert sizes[1] <= sizes[0]


def test_counts_and_rounds_differ_by_few_labels():
    """A claimed number of samples moves ours no further than some labels would."""
    ends, generator = TwoEnds("domkrls", radii=(np.inf, np.inf)), np.random.default_rng(8)
    own, lie = message("domkrls", generator), message("domkrls", generator)
    lie["counts"], lie["rounds"] = lie["counts"] * 1e5, lie["rounds"] * 1e5
    _, (found, _) = ends.exchange(own, lie)
    gaps = found.gaps(["sums", "counts", "rounds"])
    np.testing.assert_allclose(gaps["counts"], APART)
    np.testing.assert_allclose(gaps["rounds"], APART)
    whole = lie["counts"] - own["counts"]
    np.testing.assert_allclose(
        gaps["sums"], (lie["sums"] - own["sums"]) * (APART / whole)[..., None]
    )


def test_accounts_are_near_our_own():
    ends, generator = TwoEnds("domkrls"), np.random.default_rng(9)
    own, lie = message("domkrls", generator), message("domkrls", generator)
    for field in ("loss", "regret", "variance"):
        lie[field] = lie[field] * 1e9
    _, (found, _) = ends.exchange(own, lie)
    for field in ("loss", "regret", "variance"):
        assert np.abs(found.theirs.fields[field]).max() < 1e3


def test_losses_that_are_summed_are_near_ours_and_most_of_theirs():
    accounts = family_of(ALGORITHMS["domkl"]).accounts
    own, few = {"loss": np.array([[1.0, 2.0]])}, {"loss": np.array([[0.01, 0.01]])}
    (near,) = accounts(own, [{"loss": np.array([[0.0, 1.9]])}])
    assert 0.5 < near["loss"][0, 0] < 1
    assert near["loss"][0, 1] == 1.9
    found = accounts(few, [{"loss": np.array([[a, a]])} for a in (1e9, 1.0, 1.1)])  # a newcomer
    assert [each["loss"][0, 0] for each in found[1:]] == [1.0, 1.1]
    assert found[0]["loss"].max() < 2
    assert accounts(own, []) == []


# own steps


def test_steps_are_the_largest_of_late():
    bounds = Bounds(family_of(ALGORITHMS["domkl"]), 2)
    position = {"theta": np.zeros((2, 1))}
    for step in (0.5, 3.0, 0.1):
        bounds.see(position, {"theta": np.array([[step], [-step]])})
    np.testing.assert_allclose(bounds.steps["theta"], 3.0 * (1 - STEP_FADE))
    assert bounds.n == 3


def test_haste_renews_no_allowance():
    """Offers without a label in between state less and less; the next label begins anew."""
    bounds = bounds_of("rff")
    first, *more = (radius_of(np.frombuffer(bounds.codes(2), np.uint8)) for _ in range(20))
    for k, radii in enumerate(more, 2):
        assert (radii <= first / k * 2**0.25).all()
    position = {"theta": np.zeros((ROWS, 1))}
    bounds.see(position, position)
    again = radius_of(np.frombuffer(bounds.codes(2), np.uint8))
    assert (again <= first).all()
    assert (again > first / 2).all()


def test_new_epochs_renew_no_allowance(model_of, talk_of):
    talk = talk_of(model_of(), is_guarded=True)
    talk.meet()
    talk.learn("a")
    talk.learn("b")
    talk.deliver()
    a, stated = talk.all["a"], []
    for _ in range(8):
        a.edges.restart(a.edges.by_peer["b"])
        talk.tick(1.0)
        assert a.edges.by_peer["b"].is_open
        words = a.learner.idle_step()
        a._offer(words, 0, talk.now)
        stated.append(a.edges.by_peer["b"].last_own.radii)
    assert (stated[-1] <= stated[0] / 4).all()


def test_a_learner_without_labels_states_zero(model_of):
    bounds = Bounds(family_of(domkl.DOMKL()), ROWS)
    assert bounds.codes(3) == bytes(ROWS)
    silent = Protocol("a", model_of(), ("b",), incarnation=1)
    codes = silent.edges.codes(1)
    assert codes == bytes([UNLIMITED] * len(codes))  # without a guard


# the learner of a mesh


def stream(seed=0, n_rounds=ROUNDS):
    generator = np.random.default_rng(seed)
    x = generator.random((n_rounds, 4, 2))
    noise = 0.05 * generator.standard_normal(x.shape[:2])
    return x, 0.5 + 0.3 * np.sin(5 * x[..., 0]) * x[..., 1] + noise


def network(model, lie=None, y=None, **options):
    x, labels = stream()
    y = labels if y is None else y
    made = VirtualNetwork(model, RING, x, y, period=PERIOD, is_guarded=True, **options)
    if lie is not None:
        made.liars[LIAR] = Liar(lie)
    return made


def n_limited(made):
    edges = [e for each in made.protocols() for e in each.measures.edges.values()]
    return sum(edge.n_limited for edge in edges)


def test_duals_sum_to_zero_while_limits_act(model_of):
    """All follow the protocol, but the labels of one are wrong."""
    _, y = stream()
    y[:, int(LIAR)] = 1 - y[:, int(LIAR)]
    made = network(model_of(), y=y)
    made.run(1 + ROUNDS * PERIOD + 1)
    made.settle(10)
    duals = np.array([state.dual for state in made.states()])
    assert n_limited(made) > 10
    assert np.abs(duals.sum(axis=0)).max() <= 1e-9 * np.abs(duals).max()


@pytest.mark.parametrize("name", ["sums", "counts"])
def test_limits_keep_the_mean_of_what_is_averaged(name):
    """Both ends move by the same amounts, so that the sum over learners stays."""
    generator, ends = np.random.default_rng(10), TwoEnds("domkrls", radii=(2.0, 1.0))
    said = [message("domkrls", generator) for _ in range(2)]
    said[1]["counts"] = said[1]["counts"] + 50
    _, after = ends.exchange(*said)
    moved = [pair.own.fields[name] + 0.5 * pair.gaps([name])[name] for pair in after]
    np.testing.assert_allclose(moved[0] + moved[1], said[0][name] + said[1][name], rtol=1e-12)
    assert not np.allclose(moved[0], moved[1])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_learner_without_labels_takes_the_median_and_moves_nobody(name, model_of):
    algorithm = ALGORITHMS[name]
    family, generator = family_of(algorithm), np.random.default_rng(11)
    protocol = Protocol("a", model_of(algorithm), (), incarnation=1, is_guarded=True)
    state, moved = protocol.learner.state, family.moved
    shape = getattr(state, moved).shape
    heard = []
    for size in (0.9, 1.0, 1e5):
        fields = {moved: size * np.ones(shape)}
        if name == "domkrls":
            n_fits = shape[1]
            fields |= {f: np.ones((1, n_fits)) for f in ("counts", "loss", "regret", "variance")}
            fields["rounds"] = np.ones(1)
        heard.append(fields)
    generator.shuffle(heard)
    found = getattr(family.follow(state, heard), moved)
    np.testing.assert_allclose(found, np.ones(shape))


def test_labels_make_a_learner_follow_no_more(model_of):
    _, y = stream()
    y[:, 0] = np.nan
    made = network(model_of(domkl.DOMKRLS()), y=y)
    made.run(1 + 40 * PERIOD - 0.01)
    listener, others = made.machines["0"].protocol, [made.machines[k].protocol for k in "13"]
    assert listener.bounds.n == 0
    assert listener.learner.state.counts.max() > 20
    for other in others:
        assert set(other.edges.by_peer["0"].newest.radii) == {0.0}
        assert other.bounds.n == 40
    told = [each.look(np.array([0.3, 0.8]))[0] for each in (listener, *others)]
    assert abs(told[0] - np.mean(told[1:])) < 0.1


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_restart_opens_no_window(name, model_of):
    made = network(model_of(ALGORITHMS[name]))
    made.run(1 + 40 * PERIOD)
    before = made.machines["1"].protocol
    after = Protocol(
        "1", before.model, ("0", "2"), incarnation=9, is_guarded=True, snapshot=before.snapshot()
    )
    assert after.bounds.n == before.bounds.n > 30
    for field, steps in before.bounds.steps.items():
        np.testing.assert_array_equal(after.bounds.steps[field], steps)
    before.bounds.see({}, {})
    assert after.bounds.codes(2) == before.bounds.codes(2)
    if before.sides is not None:
        np.testing.assert_array_equal(after.sides.trust, before.sides.trust)


def test_files_of_0_5_have_none_of_it(model_of):
    """Nobody moves such a learner before its next label, and it follows nobody."""
    protocol = Protocol("a", model_of(), (), incarnation=1, is_guarded=True)
    for k, (x, y) in enumerate(zip(*(each[:, 0] for each in stream()), strict=True), 1):
        protocol.handle(Sample(k, x, float(y)), 0.0)
    header, arrays = protocol.snapshot()
    assert {name.split(".")[0] for name in arrays} == {"state", "alone", "bounds", "sides"}
    old = {n: v for n, v in arrays.items() if not n.startswith(("bounds", "sides"))}
    again = Protocol(
        "a", model_of(), (), incarnation=2, is_guarded=True, snapshot=Parts(header, old)
    )
    assert (again.bounds.n, again.bounds.steps) == (ROUNDS, {})
    assert again.sides.trust.tolist() == [1.0, 0.0]
    again.handle(Sample(ROUNDS + 1, np.array([0.5, 0.5]), 0.5), 0.0)
    assert again.bounds.n == ROUNDS + 1
    assert (again.bounds.steps["theta"] > 0).all()


# what is given out


@pytest.mark.parametrize("name", ALGORITHMS)
def test_predictions_far_outside_of_the_range_are_not_given_out_and_told(name, model_of):
    protocol = Protocol("a", model_of(ALGORITHMS[name]), (), incarnation=1, is_guarded=True)
    given, sense = protocol._given, (MOST_BELOW, MOST_ABOVE)
    protocol.sides = None  # which would bring it near
    protocol.measures.see(0.7)
    assert [given(y, 0.3) for y in (0.5, *sense)] == [0.5, *sense]
    assert not protocol.edges.effects
    assert given(MOST_ABOVE + 0.01, 0.3) == 0.3
    assert given(-1e6, 0.4) == 0.4
    assert given(1e6, -1e6) == 0.7
    assert given(float("nan"), 0.2) == 0.2
    told = [each for each in protocol.edges.effects if isinstance(each, Alarm)]
    assert {each.kind for each in told} == {"senseless"}
    assert "a prediction of 1e+06 was not given out" in [each.text for each in told]


def test_log_odds_have_no_range(model_of):
    algorithm = domkl.DOMKL(loss=domkl.Logistic())
    protocol = Protocol("a", model_of(algorithm), (), incarnation=1, is_guarded=True)
    protocol.sides = None
    assert protocol._given(9.0, 0.3) == 9.0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_two_large_frames_at_any_time_leave_predictions_near_the_range(name, model_of):
    """From the first message on, and after a restart: 0.5 judged nobody before 20 samples."""
    for since in (1, 30):
        lie = Lie(base="none", push=0.9e6, every=10**9, length=2, since=since)
        made = network(model_of(ALGORITHMS[name]), lie)
        made.at(1 + (since - 1.5) * PERIOD, lambda made=made: made.crash("1"))
        made.at(1 + (since - 1.5) * PERIOD + 0.01, lambda made=made: made.start("1"))
        made.run(1 + ROUNDS * PERIOD)
        told = made.predictions()[:, [0, 1, 3]]
        assert np.nanmin(told) >= MOST_BELOW
        assert np.nanmax(told) <= MOST_ABOVE
        _, y = stream()
        late = slice(since + 20, None)
        errors = np.nanmean((told - y[:, [0, 1, 3]])[late] ** 2)
        assert errors < np.var(y)


# what is told of a neighbor


def test_who_is_hardly_let_in_is_suspicious_until_most_is_let_in_again():
    edge = EdgeMeasures()
    became = [edge.add_share(0.0) for _ in range(300)]
    assert sum(became) == 1
    assert edge.is_suspicious
    assert edge.n_limited == 300
    while edge.share < CLEARED:
        assert edge.is_suspicious
        edge.add_share(1.0)
    assert not edge.is_suspicious
    assert SUSPICIOUS < CLEARED


@pytest.mark.parametrize("name", ALGORITHMS)
def test_who_has_no_labels_any_more_is_not_suspicious_nor_finds_others_so(name, model_of):
    _, y = stream()
    y[20:, int(LIAR)] = np.nan
    made = network(model_of(ALGORITHMS[name]), y=y)
    made.run(1 + ROUNDS * PERIOD)
    edges = [e for each in made.protocols() for e in each.measures.edges.values()]
    assert min(edge.share for edge in edges) > 0.5


def test_a_suspicious_neighbor_is_an_alarm_once(model_of):
    made = network(model_of(), Lie(base="none", push=1e5))
    made.run(1 + ROUNDS * PERIOD)
    edge = made.machines["1"].protocol.edges.by_peer[LIAR]
    assert edge.measures.share < 0.5
    pair = Pair(edge.last_own, edge.newest)
    protocol = made.machines["1"].protocol
    for _ in range(300):
        protocol._completed(edge, pair)
    alarms = [each for each in protocol.edges.effects if isinstance(each, Alarm)]
    assert [(each.kind, each.peer) for each in alarms] == [("suspicious", LIAR)]


def test_the_twin_is_weighed_by_labels_that_are_known_only(model_of):
    """With a delay of three, the first label is known when the fourth sample comes."""
    protocol = Protocol("a", model_of(delay=3), (), incarnation=1, is_guarded=True)
    x, y = (each[:, 0] for each in stream())
    for k in range(4):
        assert protocol.sides.saved()["sides.n"][1] == 0
        protocol.handle(Sample(k + 1, x[k], float(y[k])), 0.0)
    assert protocol.sides.saved()["sides.n"][1] == 1
