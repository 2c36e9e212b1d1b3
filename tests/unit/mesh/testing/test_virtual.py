"""A simulation in a virtual mesh is the simulation, until a guard, a liar or a fault acts."""

import numpy as np
import pytest

import domkl
from domkl.errors import ParameterError
from domkl.mesh.protocol.events import Alarm
from domkl.mesh.testing import Conditions, VirtualMesh
from domkl.mesh.testing.network import FIRST_SAMPLE
from domkl.mesh.testing.virtual import PERIOD

#: error of honest learners with guards in their first 150 rounds, relative to no guards
MOST_COST = 1.05
GRAPHS = [domkl.Graph.ring(4), domkl.Graph.complete(4)]


@pytest.fixture(scope="module")
def given():
    generator = np.random.default_rng(2)
    x = generator.random((150, 4, 2))
    y = np.sin(4 * x[..., 0]) * x[..., 1] + 0.05 * generator.standard_normal(x.shape[:2])
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, 10, seed=1)
    return x, y, GRAPHS, features


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (domkl.DOMKL(), {}),
        (domkl.DOMKL(), {"dtype": "float32", "cv": "moments"}),
        (domkl.DOMKRLS(), {"delay": 3}),
        (domkl.RFFDOMKL(), {"cv": "sampled", "seed": 4}),
    ],
)
def test_without_liars_it_is_the_simulation_to_the_bit(given, algorithm, options):
    plain = domkl.simulate(algorithm, *given, **options)
    run = domkl.simulate(algorithm, *given, **options, mesh=VirtualMesh())
    for field in ("mse", "cv", "predictions", "theta"):
        np.testing.assert_array_equal(getattr(run, field), getattr(plain, field))
    mesh = VirtualMesh(guard=True)
    guarded = domkl.simulate(algorithm, *given, **options, mesh=mesh)
    assert (guarded.mse[:, -1] <= MOST_COST * plain.mse[:, -1]).all()
    assert mesh.distrusted == []
    assert sorted(mesh.networks) == [0, 1]


def test_predictions_are_what_learners_gave_out(given):
    """Those of DOMKL are mixed with the ones of the learner without neighbors."""
    x, y, graphs, features = given
    mesh = VirtualMesh(guard=True)
    run = domkl.simulate(domkl.DOMKL(), x, y, graphs[0], features, mesh=mesh)
    np.testing.assert_array_equal(run.predictions, mesh.networks[0].predictions())
    trust = [each.sides.trust[1] for each in mesh.networks[0].protocols()]
    assert max(trust) > 0.1


def test_missing_labels_are_those_of_the_simulation(given):
    x, y, _, features = given
    y = np.where(np.random.default_rng(1).random(y.shape) < 0.2, np.nan, y)
    graph = domkl.Graph.ring(4)
    plain = domkl.simulate(domkl.DOMKRLS(), x, y, graph, features)
    run = domkl.simulate(domkl.DOMKRLS(), x, y, graph, features, mesh=VirtualMesh())
    np.testing.assert_array_equal(run.predictions, plain.predictions)


def test_a_guard_is_asked_for(given):
    x, y, graphs, features = given
    errors, honest = {}, [0, 1, 3]
    for guard in (False, True):
        mesh = VirtualMesh(guard=guard, liars={2: ("flip", 40)})
        run = domkl.simulate(domkl.DOMKL(), x, y, graphs[1], features, mesh=mesh)
        errors[guard] = np.mean((run.predictions - y)[100:, honest] ** 2)
        assert mesh.distrusted == []
    assert errors[True] < 0.2 * errors[False]


def test_it_is_told_of_whom_hardly_anything_is_let_in(given):
    x, y, graphs, features = given
    mesh = VirtualMesh(guard=True, liars={2: "flip"})
    domkl.simulate(domkl.DOMKL(), x[:2], y[:2], graphs[1], features, mesh=mesh)
    network = mesh.networks[0]
    told = "far from what we learn"
    network.alarms = [
        (FIRST_SAMPLE + 10.55 * PERIOD, "0", Alarm("suspicious", "2", f"hardly anything: {told}")),
        (FIRST_SAMPLE + 11.55 * PERIOD, "1", Alarm("up", "2", "2 is up")),
        (FIRST_SAMPLE + 12.55 * PERIOD, "3", Alarm("distrusted", "2", "2 is ignored: it: lies")),
    ]
    assert mesh.distrusted == [(0, 10, 0, 2, told), (0, 12, 3, 2, "it: lies")]


def test_lost_frames_make_a_difference_and_a_seed_repeats_them(given):
    x, y, graphs, features = given
    lossy = Conditions(loss=0.4)
    runs = [
        domkl.simulate(domkl.DOMKL(), x, y, graphs[0], features, mesh=mesh).predictions
        for mesh in (VirtualMesh(), *(VirtualMesh(conditions=lossy, seed=s) for s in (1, 1, 2)))
    ]
    np.testing.assert_array_equal(runs[1], runs[2])
    assert not np.array_equal(runs[1], runs[0])
    assert not np.array_equal(runs[1], runs[3])
    assert np.mean((runs[1] - y) ** 2) < 2 * np.mean((runs[0] - y) ** 2)


def test_wrong_input_is_refused(given):
    with pytest.raises(ParameterError, match=r"liars\[2\] must be one of flip, .*, got 'fib'"):
        VirtualMesh(liars={2: "fib"})
    with pytest.raises(ParameterError, match="liars must be an integer >= 0, got -1"):
        VirtualMesh(liars={-1: "flip"})
    with pytest.raises(ParameterError, match=r"liars must be among the 4 learners, .* got 4"):
        domkl.simulate(domkl.DOMKL(), *given, mesh=VirtualMesh(liars={4: "flip"}))
    with pytest.raises(ParameterError, match="with neighbors only, got COMKL"):
        domkl.simulate(domkl.COMKL(), *given, mesh=VirtualMesh())
    for liars in ([2], {2: ("flip",)}):
        with pytest.raises(ParameterError, match=r"liars.* must be a"):
            VirtualMesh(liars=liars)
    with pytest.raises(ParameterError, match=r"conditions must be a Conditions, got 0\.2"):
        VirtualMesh(conditions=0.2)
    for mesh in (True, VirtualMesh):
        with pytest.raises(ParameterError, match="mesh must be a VirtualMesh"):
            domkl.simulate(domkl.DOMKL(), *given, mesh=mesh)
    before = domkl.simulate(domkl.DOMKL(), *given)
    with pytest.raises(ParameterError, match="state must be None with mesh"):
        domkl.simulate(domkl.DOMKL(), *given, state=before.state, mesh=VirtualMesh())
