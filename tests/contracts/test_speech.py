"""Saying is a layer: a speech that rounds gives the same bits in every host, and keeps the sums.

Hosts over MPI are compared in tests/unit/sim/mpi/test_run.py, on two and four ranks.
"""

import numpy as np
import pytest
from half_speech import HALF, HalfSpeech

import domkl
from domkl.algorithms import admm, base
from domkl.algorithms.registry import ALGORITHMS
from domkl.learner.local import LocalLearner
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.wire import longest_frame
from domkl.mesh.testing import VirtualMesh
from domkl.speech.plain import PLAIN

MESHED = {
    "domkl": domkl.DOMKL(),
    "domkl-messages": domkl.DOMKL(weights="message-passing"),
    "dokl": domkl.DOKL(),
    "rff-dokl": domkl.RFFDOKL(),
    "rff-domkl": domkl.RFFDOMKL(),
    "domkrls": domkl.DOMKRLS(),
}
ALL = MESHED | {
    "comkl": domkl.COMKL(),
    "linear-pooled": domkl.PooledLinearRLS(),
    "alone": domkl.Alone(domkl.DOMKRLS()),
}
N_LEARNERS, N_ROUNDS = 5, 30


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Small as they are, these runs are to be compiled."""
    monkeypatch.setattr(base, "PATIENCE", 0.0)


def problem(algorithm, n_learners=N_LEARNERS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((N_ROUNDS, n_learners, 2))
    y = np.sin(3 * X[..., 0]) + 0.1 * rng.standard_normal(X.shape[:2])
    graph = domkl.Graph.tree(n_learners, seed=1)
    if not algorithm.needs_acyclic:
        graph = domkl.Graph.random(n_learners, 0.6, seed=1)
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.1, 1.0, 10.0])
    return algorithm, X, y, graph, domkl.RandomFeatures.draw(bank, 2, 4, seed=0)


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours.predictions, theirs.predictions)
    for name, value in ours.state._asdict().items():
        np.testing.assert_array_equal(value, getattr(theirs.state, name), err_msg=name)


#: one of each delivery, and both types; what is left is run interpreted and in a mesh
COMPILED_RUNS = [
    ("domkl", "float32"),
    ("domkl-messages", "float64"),
    ("domkrls", "float64"),
    ("comkl", "float64"),
]


@pytest.mark.parametrize(("name", "dtype"), COMPILED_RUNS)
def test_every_host_says_the_same_bits(name, dtype):
    """Interpreted, compiled (with CV) and blocked, the latter on one core and on two."""
    given = problem(ALL[name])
    slow = domkl.simulate(*given, dtype=dtype, interpreted=True, speech=HALF)
    plain = domkl.simulate(*given, dtype=dtype, interpreted=True)
    assert (slow.predictions != plain.predictions).any()
    assert_same(domkl.simulate(*given, dtype=dtype, speech=HALF), slow)
    for threads in (1, 2):
        blocked = domkl.simulate(*given, dtype=dtype, cv="sampled", threads=threads, speech=HALF)
        assert_same(blocked, slow)


@pytest.mark.parametrize("name", MESHED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_mesh_says_them_too(name, dtype):
    given = problem(MESHED[name])
    simulated = domkl.simulate(*given, dtype=dtype, interpreted=True, speech=HALF)
    meshed = domkl.simulate(*given, dtype=dtype, speech=HALF, mesh=VirtualMesh())
    assert_same(meshed, simulated)


@pytest.mark.parametrize("name", ALL)
def test_one_learner_without_neighbors_says_them_too(name):
    algorithm, X, y, _, features = problem(ALL[name], n_learners=1)
    host = {"speech": HALF, "interpreted": True}
    run = domkl.simulate(algorithm, X, y, domkl.Graph.empty(1), features, **host)
    learner = LocalLearner(algorithm, features, speech=HALF)
    said = [learner.learn(x[0], float(label[0])).y_hat[0] for x, label in zip(X, y, strict=True)]
    np.testing.assert_array_equal(said, run.predictions[:, 0])


@pytest.mark.parametrize("mesh", [None, VirtualMesh()], ids=["simulated", "mesh"])
@pytest.mark.parametrize("name", ["domkl", "domkl-messages", "dokl"])
def test_duals_sum_to_zero_however_roughly_learners_speak(name, mesh):
    host = {"interpreted": True} if mesh is None else {"mesh": mesh}
    run = domkl.simulate(*problem(MESHED[name]), speech=HALF, **host)
    dual = run.state.dual
    assert np.abs(dual.sum(axis=0)).max() <= 1e-12 * np.abs(dual).max()


def test_an_exchange_keeps_the_tracked_mean_however_roughly_learners_speak(monkeypatch):
    """Σ S after a merge is that of the exact messages before it; a mesh has the same bits."""
    before, step = [], base.CompiledAlgorithm.local_step

    def noted(self, *given):
        state, message = step(self, *given)
        before.append(message.sums.sum(axis=0))
        return state, message

    monkeypatch.setattr(base.CompiledAlgorithm, "local_step", noted)
    run = domkl.simulate(*problem(domkl.DOMKRLS()), speech=HALF, interpreted=True)
    sums = run.state.sums
    size = 1e-12 * np.abs(sums).max()
    np.testing.assert_allclose(sums.sum(axis=0), before[-1], rtol=0, atol=size)


def test_frames_are_as_short_as_the_speech_makes_them():
    algorithm, _, _, _, features = problem(domkl.DOMKRLS())
    exact = LocalLearner(algorithm, features, speech=PLAIN).layout()
    rough = LocalLearner(algorithm, features, speech=HALF).layout()
    assert rough.n_bytes == exact.n_bytes / 2


def test_learners_that_speak_differently_do_not_exchange():
    algorithm, _, _, _, features = problem(domkl.DOMKL())
    ranges = (Range("a", 0, 1), Range("b", 0, 1)), Range("y", 0, 1)
    plain, rough = (Model(algorithm, features, *ranges, speech=each) for each in (PLAIN, HALF))
    assert plain.fingerprint != rough.fingerprint
    assert "speech is HalfSpeech() there" in plain.difference(rough.parts)
    assert longest_frame(rough.offers()) <= longest_frame(plain.offers())


def test_a_speech_is_checked():
    with pytest.raises(domkl.ParameterError, match="speech must be a Speech, got 'half'"):
        domkl.simulate(*problem(domkl.DOMKL()), speech="half")
    with pytest.raises(domkl.ParameterError, match="speech must be a Speech"):
        domkl.simulate(*problem(domkl.DOMKL()), speech=HalfSpeech)


def blanked(algorithm, message):
    """A message whose fields are NaN, except those that are the state's own arrays."""
    for field, values in message._asdict().items():
        if field not in algorithm.law.carried:
            values[:] = np.nan
    return message


def learned(algorithm):
    """A state after some rounds, the first inputs of the stream, and what learners know."""
    algorithm, X, y, graph, features = problem(algorithm)
    run = domkl.simulate(algorithm, X, y, graph, features, cv="off", interpreted=True)
    degree, indptr = graph.degree.astype(float), graph.indptr
    if algorithm.is_alone:
        degree, indptr = 0 * degree, 0 * indptr
    net = base.Net(degree, np.full(N_LEARNERS, float(N_LEARNERS)), indptr)
    return run.state, base.Inputs(X[0], features(X[0]), np.ones((N_LEARNERS, 3))), net


COMPILED = [name for name, entry in ALGORITHMS.items() if entry.make().law is not None]


@pytest.mark.parametrize("label", [0.5, np.nan])
@pytest.mark.parametrize("name", COMPILED)
def test_a_step_writes_every_field_of_the_message(name, label):
    """No uninitialised number may leave a learner, with a label or without."""
    algorithm = ALGORITHMS[name].make()
    assert algorithm.takes_missing
    state, inputs, net = learned(algorithm)
    inputs = inputs._replace(energy=inputs.energy[:, : inputs.z.shape[1]].copy())
    prediction, message = algorithm.predict(state, inputs), algorithm.message(state)
    given = (inputs, np.full(N_LEARNERS, label), prediction, net, blanked(algorithm, message))
    algorithm.law.local_step(state, algorithm.compiled, *given)
    for field, values in message._asdict().items():
        assert np.isfinite(values).all(), field


@pytest.mark.parametrize("name", MESHED)
def test_a_step_without_a_sample_writes_every_field(name, monkeypatch):
    algorithm, made = MESHED[name], base.Algorithm.message
    state, _, net = learned(algorithm)
    monkeypatch.setattr(base.Algorithm, "message", lambda self, s: blanked(self, made(self, s)))
    _, message = algorithm.idle_step(state, net)
    for field, values in message._asdict().items():
        assert np.isfinite(values).all(), field


def test_admm_takes_its_own_words_in_the_center():
    """Of (11) the terms of the neighbors have θ̂ in place of θ, at both ends of each edge."""
    rng = np.random.default_rng(0)
    theta, said, dual, near = rng.normal(size=(4, 3, 2, 5))
    degree, eta_l, rho = np.array([1.0, 2.0, 3.0]), 0.2, 2.0
    n = degree[:, None, None]
    gap, center, stiffness = near - n * said, np.empty_like(theta), eta_l + rho * n
    risen = dual - rho / 2 * gap
    # b₀ = η_l θ + ρ Σ (θ̂ + θ̂_ℓ)/2 − λ⁺, over c = η_l + ρ|N|
    expected = (eta_l * theta + rho / 2 * (n * said + near) - risen) / stiffness
    given = dual.copy()
    admm.dual_step(given, center, theta, gap, degree, eta_l, rho)
    admm.recenter(center, theta, said, degree, eta_l, rho)
    np.testing.assert_allclose(given, risen, rtol=1e-12)
    np.testing.assert_allclose(center, expected, rtol=1e-12)
