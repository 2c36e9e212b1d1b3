"""What a neighbor can compute from the messages that it receives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from domkl.algorithms.admm import DOMKL
from domkl.experiments.reproduce.tasks.base import ReportProgress, Task
from domkl.experiments.reproduce.tasks.regrets import draw_map
from domkl.experiments.store import Results, digest_of
from domkl.graphs.graph import Graph
from domkl.sim.simulate import simulate
from domkl.typing import Array, Floats


@dataclass(frozen=True, eq=False)
class Eavesdropper(Task):
    """Recover the samples of a leaf from its messages and those of its only neighbor.

    Whoever receives both knows everything in (11) but the sample:
    (η_l + ρ)θ⁺ − η_l θ − ρ(θ + θ_ℓ)/2 + λ = 2(y − zᵀθ⁺) z. That gives z up to a factor. In the
    widest kernel all cosines are positive, which gives the sign of the factor. The angles of the
    features give Vx, least squares give x, and the factor gives y.
    """

    X: Floats  # (T, K, d)
    y: Floats
    seed: int

    @property
    def label(self) -> str:
        """The name of the claim."""
        return "privacy"

    @property
    def parts(self) -> dict[str, Any]:
        """Samples and features."""
        return {"samples": digest_of(self.X, self.y), "seed": self.seed}

    @property
    def cost(self) -> float:
        """There is one call of `simulate` per round."""
        return 2000.0 * len(self.y)

    def compute(self, report: ReportProgress) -> Results:
        """Recover the samples of the first learner of a path, round by round."""
        n_rounds, n_learners, n_inputs = self.X.shape
        features = draw_map(None, n_inputs, self.seed, 0)
        frequencies, algorithm, state = features.frequencies[-1], DOMKL(), None
        before: Array = np.zeros(
            (2, 2 * features.n_frequencies)
        )  # θ of the leaf and of its neighbor
        dual = np.zeros(before.shape[1])
        errors = np.zeros((2, n_rounds))
        for t in range(n_rounds):
            part = slice(t, t + 1)
            graph = Graph.path(n_learners)
            run = simulate(algorithm, self.X[part], self.y[part], graph, features, state=state)
            assert run.theta is not None
            state, heard = run.state, run.theta[:2, -1]
            x, y = _recovered(before, heard[0], dual, frequencies, algorithm)
            errors[:, t] = np.abs(x - self.X[t, 0]).max(), abs(y - self.y[t, 0])
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
