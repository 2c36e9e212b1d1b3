"""What messages of each family of algorithms mean to a neighbor, and which of them are possible.

The protocol, the guard and the page ask a `Family`, which is found by the class of the algorithm's
state. One that is not listed in `FAMILIES` has the defaults of `Family`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from domkl.algorithms import admm, least_squares, mixtures
from domkl.algorithms.base import Algorithm, Function, Prediction
from domkl.core.losses import BuiltIn
from domkl.typing import Array, Floats

#: what rounding may add to a bound, as a share and by itself
SLACK, TINY = 1e-3, 1e-12
#: largest function in a message of DOMKRLS; scaled functions are of the order of 1
MOST = 1e6
#: weights of DOMKRLS's mixtures by which nothing but the network's fits count
BY_REGRET = np.array([[[1.0, 0.0, 0.0, 0.0]] * 2])
IN_NETWORK = np.array([[1.0, 0.0]])


class Family:
    """What the state of one learner can tell of its neighbors' messages.

    Parameters
    ----------
    algorithm : Algorithm
    """

    #: largest absolute value accepted per field (default 10⁶)
    limits: Mapping[str, float] = {"loss": 1e15}
    #: squared error of an honest neighbor's function on a learner's samples, relative to its own
    honest_error = 3.0
    #: whether the state accumulates gaps, so that lies add up in it; see `push`
    has_push = False
    #: whether the state has the learner without neighbors in it; else a second learner is that
    has_alone = False

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm

    def functions(self, state: object, heard: Mapping[str, Array]) -> Function | None:
        """Give the neighbors' functions, one row each, as far as a learner's state can tell.

        ``heard`` has the fields of their messages. By default their θ with our kernel weights.
        """
        theta, ours = heard.get("theta"), self.algorithm.function(state)
        if theta is None or ours is None:
            return None
        return Function(theta, np.repeat(ours.weights, len(theta), axis=0))

    def estimates(self, state: object, heard: Mapping[str, Array]) -> Function | None:
        """Give the same without what the state itself has learned, except for its weights."""
        return self.functions(state, heard)

    def standing(self, own: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
        """Give the weight of a neighbor's message relative to ours where both are averaged."""
        return 1.0

    def push(self, errors: Floats) -> float:
        """Give the size of a sum of gaps that balances samples with such errors by kernel, (P,)."""
        return 0.0

    def refusal(self, message: Mapping[str, Array]) -> str | None:
        """Say which rule a neighbor's message, one row, breaks; None if an honest run can say it.

        Losses of domkl's own are never negative.
        """
        loss = self.algorithm.loss
        if "loss" not in message or loss is None or not isinstance(loss.compiled, BuiltIn):
            return None
        least = float(message["loss"].min(initial=0.0))
        return None if least >= 0 else f"loss must not be negative, got {least:.3g}"

    def trust(self, state: object) -> Mapping[str, float] | None:
        """Give the shares of what the prediction rests on, by name; None if unknown."""
        return None

    def n_doubted(self, state: object) -> int:
        """Give the number of samples that the learner did not believe, or not wholly."""
        return 0

    def alone(self, prediction: Prediction) -> Prediction:
        """Give what the learner would have predicted without neighbors, where `has_alone`."""
        return prediction

    def alone_state(self, state: Any) -> Any:
        """Give the state that the learner would have without neighbors, where `has_alone`."""
        return state


class Admm(Family):
    """DOKL and DOMKL: duals accumulate gaps."""

    has_push = True

    def push(self, errors: Floats) -> float:
        """Give 2/ρ times the gradients 2(f − y)z of the squared loss: λ = ρ/2 Σ gaps."""
        rho: float = self.algorithm.rho  # type: ignore[attr-defined]
        return float(4 / rho * np.sqrt(np.sum(errors * errors)))


class LeastSquares(Family):
    """DOMKRLS: sums, counts and accounts are averaged."""

    limits = dict.fromkeys(("sums", "counts", "loss", "regret", "variance", "rounds"), 1e30)
    has_alone = True
    honest_error = 1.1  # in 99 of 100 exchanges at most 1.07, on the paper's seven sets
    algorithm: least_squares.DOMKRLS

    def __init__(self, algorithm: least_squares.DOMKRLS) -> None:
        super().__init__(algorithm)
        self._most_counts = np.array(algorithm.most_counts)

    def functions(self, state: object, heard: Mapping[str, Array]) -> Function:
        """Give their θs with our weights, our fits and our last label."""
        assert isinstance(state, least_squares.State)
        found = []
        for sums, counts in zip(heard["sums"], heard["counts"], strict=True):
            function = self.algorithm.function(state._replace(sums=sums[None], counts=counts[None]))
            assert function is not None
            found.append(function)
        if len(found) == 1:
            return found[0]
        return Function(*map(np.concatenate, zip(*found, strict=True)))

    def estimates(self, state: object, heard: Mapping[str, Array]) -> Function:
        """Give their θs with our weights of each fit, and nothing of ours."""
        assert isinstance(state, least_squares.State)
        return self.functions(state._replace(top=BY_REGRET, trust=IN_NETWORK), heard)

    def standing(self, own: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
        """Give their counts relative to ours."""
        return float(theirs["counts"].sum()) / max(float(own["counts"].sum()), TINY)

    def refusal(self, message: Mapping[str, Array]) -> str | None:
        """Check the bounds that hold in every run."""
        counts, rounds = message["counts"][0], message["rounds"][0]
        for name in ("counts", "loss", "variance", "rounds"):
            if (least := np.minimum.reduce(message[name], axis=None)) < 0:
                return f"{name} must not be negative, got {least:.3g}"
        most = self._most_counts[_memories(len(counts))]
        if np.count_nonzero(is_beyond := counts > most * (1 + SLACK)):
            limit, n = most[is_beyond][0], counts[is_beyond][0]
            return f"counts must be at most {limit:g} for this memory, got {n:.6g}"
        regret, variance = message["regret"][0], message["variance"][0]
        beyond = regret**2 > (1 + SLACK) * rounds * variance + TINY
        if np.count_nonzero(beyond):
            return f"regret must be at most √(rounds · variance), got {regret[beyond][0]:.3g}"
        residual, clip = message["residual"][0], mixtures.CLIP
        if abs(residual) > clip:
            return f"residual must be at most {clip:g} in size, got {residual:.3g}"
        if np.count_nonzero(np.abs(message["sums"][0]) > MOST * counts[:, None] + TINY):
            return f"sums must be at most {MOST:g} times the counts"
        return None

    def trust(self, state: object) -> dict[str, float]:
        """Give the shares of the network's fits, the own ones, and last label and newest lag."""
        assert isinstance(state, least_squares.State)
        n_fits, sides = state.sums.shape[1], state.trust[0]
        by_fits = state.top[0, :, 0]
        b = state.top[0, :, 1:2] * state.by_own[0]
        network = sides[0] * (by_fits[0] + b[0, :n_fits].sum())
        own = sides[0] * b[0, n_fits : 2 * n_fits].sum()
        own += sides[1] * (by_fits[1] + b[1, : 2 * n_fits].sum())
        return {"network": float(network), "own": float(own), "last value": 1 - network - own}

    def alone(self, prediction: Prediction) -> Prediction:
        """Read it off the notes; what kernels predict is that of the network."""
        n_fits = prediction.by_kernel.shape[1] + 1
        y_hat = least_squares.alone_prediction(prediction.notes, n_fits)
        return prediction._replace(y_hat=y_hat.copy())

    def alone_state(self, state: Any) -> least_squares.State:
        """Put the side that is alone in the place of the network's."""
        assert isinstance(state, least_squares.State)
        both = {
            name: values[:, [1, 1]]
            for name, values in state._asdict().items()
            if name in least_squares.SIDES
        }
        sums = (state.own * state.own_counts[:, :, None]).astype(state.sums.dtype)
        counts, nearby = state.own_counts, np.zeros_like(state.nearby)
        past = state.past[..., [0, 2, 2, 3]]  # errors, too
        return state._replace(**both, sums=sums, counts=counts, nearby=nearby, past=past)

    def n_doubted(self, state: object) -> int:
        """Give the number of wrong labels and wild inputs."""
        assert isinstance(state, least_squares.State)
        return int(state.bound[0, 4] + state.gate[0, 1])


_memories = cache(least_squares.memories)  # of each fit, by their number

#: by the class of the algorithm's state
FAMILIES: dict[type, type[Family]] = {
    least_squares.State: LeastSquares,
    **dict.fromkeys((admm.SingleState, admm.State, admm.MessagePassingState), Admm),
}


def family_of(algorithm: Algorithm) -> Family:
    """Find the family of an algorithm by the class of its law's state."""
    kind = None if algorithm.law is None else algorithm.law.state
    return FAMILIES.get(kind, Family)(algorithm)  # type: ignore[arg-type]
