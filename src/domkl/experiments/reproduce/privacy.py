"""What a neighbor can compute from the messages that it receives."""

import numpy as np

from domkl.algorithms.admm import DOMKL
from domkl.experiments.reproduce.regrets import draw_features_of
from domkl.experiments.reproduce.tasks import Report
from domkl.experiments.store import Results
from domkl.graphs.graph import Graph
from domkl.sim.simulate import simulate
from domkl.typing import Array, Floats


def eavesdrop(report: Report, X: Floats, y: Floats, seed: int) -> Results:
    """Recover the samples of a leaf from its messages and those of its only neighbor.

    Whoever receives both knows everything in (11) but the sample:
    (η_l + ρ)θ⁺ − η_l θ − ρ(θ + θ_ℓ)/2 + λ = 2(y − zᵀθ⁺) z. That gives z up to a factor. In the
    widest kernel all cosines are positive, which gives the sign of the factor. The angles of the
    features give Vx, least squares give x, and the factor gives y.

    Returns the errors in x and y of the first learner of a path, by round.
    """
    n_rounds, n_learners, n_inputs = X.shape
    features = draw_features_of(None, n_inputs, seed, 0)
    frequencies, algorithm, state = features.frequencies[-1], DOMKL(), None
    before: Array = np.zeros((2, 2 * features.n_frequencies))  # θ of the leaf and its neighbor
    dual = np.zeros(before.shape[1])
    errors = np.zeros((2, n_rounds))
    for t in range(n_rounds):
        part = slice(t, t + 1)
        run = simulate(algorithm, X[part], y[part], Graph.path(n_learners), features, state=state)
        assert run.theta is not None
        state, heard = run.state, run.theta[:2, -1]
        found_x, found_y = _recovered(before, heard[0], dual, frequencies, algorithm)
        errors[:, t] = np.abs(found_x - X[t, 0]).max(), abs(found_y - y[t, 0])
        dual += algorithm.rho / 2 * (heard[0] - heard[1])
        before = heard.copy()
        report((t + 1) / n_rounds)
    return {"x_error": errors[0], "y_error": errors[1]}


def _recovered(
    before: Array, after: Array, dual: Floats, frequencies: Floats, algorithm: DOMKL
) -> tuple[Floats, float]:
    own, neighbor = before
    center = algorithm.eta_l * own + algorithm.rho * (own + neighbor) / 2 - dual
    pull = (algorithm.eta_l + algorithm.rho) * after - center  # 2(y − zᵀθ⁺) z
    sines, cosines = np.split(pull, 2)
    sign = np.sign(cosines.sum())
    x = np.linalg.lstsq(frequencies, np.arctan2(sign * sines, sign * cosines), rcond=None)[0]
    factor = sign * np.linalg.norm(pull)  # ‖z‖ = 1
    return x, float(sign * pull @ after / np.linalg.norm(pull) + factor / 2)
