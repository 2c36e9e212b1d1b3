"""What messages of each family of algorithms mean to a neighbor, and which of them are possible.

The protocol, the bounds and the page ask a `Family`, which is found by the class of the algorithm's
state. One that is not listed in `FAMILIES` has the defaults of `Family`.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from domkl.algorithms import admm, least_squares, mixtures
from domkl.algorithms.base import Algorithm, Function, Prediction
from domkl.core.losses import BuiltIn
from domkl.mesh.protocol.bounds import shrunk
from domkl.speech.base import Fields
from domkl.typing import Array, Floats

#: what rounding may add to a bound, as a share and by itself
SLACK, TINY = 1e-3, 1e-12
#: largest function in a message of DOMKRLS; scaled functions are of the order of 1
MOST = 1e6
#: factor within which losses of a neighbor count
LOSS_FACTOR = 1.3
#: ADMM: radius of a step, in those of own samples; the sum of gaps, in such that balance an own
#: sample; and the share by which that sum shrinks in each exchange, once it was limited
PUSH, MOST_PUSH, PUSH_LEAK = 3.0, 0.5, 0.03
#: DOMKRLS: labels that the counts of two learners may differ by; factor of their accounts
APART = 2.0
ACCOUNT_FACTOR = 3.0
ACCOUNTS = {"loss": 1, "regret": 1, "variance": 2}


class Family:
    """What the state of one learner can tell of its neighbors' messages.

    Parameters
    ----------
    algorithm : Algorithm
    """

    #: largest absolute value accepted per field (default 10⁶)
    limits: Mapping[str, float] = {"loss": 1e15}
    #: whether the state has the learner without neighbors in it; else a second learner is that
    has_alone = False
    #: the field of a message that samples move, and of which each row has a radius
    moved = "theta"
    #: radius of what a neighbor may change at once, in the largest steps of own samples
    radius = 5.0

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

    def position(self, state: Any) -> Fields:
        """Give what samples move and neighbors average, by field, in rows (R, D)."""
        return {"theta": state.theta[0].astype(np.float64)} if hasattr(state, "theta") else {}

    def radii(self, steps: Floats, degree: int) -> Floats:
        """Give the radii of a learner whose own samples moved it by these steps at most, (R,)."""
        return self.radius * steps

    def within(self, pair: Any, radii: Floats, edge: Any, steps: Fields) -> tuple[Fields, float]:
        """Give the gaps in place of theirs − own, where they differ; and the mean share left."""
        gap = pair.theirs.fields["theta"] - pair.own.fields["theta"]
        share = shrunk(gap, radii)
        mean = float(share.mean())
        return ({} if mean >= 1 else {"theta": gap * share[:, None]}), mean

    def accounts(self, own: Fields, heard: Sequence[Fields]) -> list[Fields]:
        """Give what replaces accounts of neighbors that are far from ours, and from most of theirs.

        Who has fewer labels than its neighbors compares with the median of theirs.
        """
        if self.algorithm.exchange.get("loss") != "sum" or not heard:
            return [{} for _ in heard]
        usual = np.maximum(own["loss"], np.median([each["loss"] for each in heard], axis=0))
        least, most = usual / LOSS_FACTOR, usual * LOSS_FACTOR
        return [{"loss": np.clip(each["loss"], least, most)} for each in heard]

    def follow(self, state: Any, heard: Sequence[Fields]) -> Any:
        """Give the state of a learner that has learned nothing: the median of its neighbors'."""
        theta = np.median([each["theta"] for each in heard], axis=0).astype(state.theta.dtype)
        found = state._replace(theta=theta)
        for name in ("center", "combined"):
            if hasattr(state, name):
                found = found._replace(**{name: theta.copy()})
        return found

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


class Admm(Family):
    """DOKL and DOMKL: duals accumulate gaps."""

    def radii(self, steps: Floats, degree: int) -> Floats:
        """Give the steps as they are with so many neighbors; the second learner has none."""
        rho, eta_l = self.algorithm.rho, self.algorithm.eta_l  # type: ignore[attr-defined]
        radii: Floats = PUSH * steps * (eta_l + 2) / (eta_l + rho * degree + 2)
        return radii

    def within(self, pair: Any, radii: Floats, edge: Any, steps: Fields) -> tuple[Fields, float]:
        """Limit the gap, and the sum of gaps of the edge, which is what duals add up."""
        gap = pair.theirs.fields["theta"] - pair.own.fields["theta"]
        rho, eta_l = self.algorithm.rho, self.algorithm.eta_l  # type: ignore[attr-defined]
        share = shrunk(gap, radii)
        before = edge.contribution.get("theta", np.zeros_like(gap))
        degree = min(pair.own.degree, pair.theirs.degree)
        most = MOST_PUSH * radii / PUSH * (eta_l + rho * degree + 2) / rho
        was = np.zeros(len(share), bool) if edge.was_limited is None else edge.was_limited
        total = (1 - PUSH_LEAK * was[:, None]) * before + gap * share[:, None]
        left = shrunk(total, most)
        is_limited = was | (share < 1) | (left < 1)
        mean = float(np.mean(np.minimum(share, left)))
        if not is_limited.any():
            return {}, mean
        edge.was_limited = is_limited
        limited = total * left[:, None] - before
        return {"theta": np.where(is_limited[:, None], limited, gap)}, mean


class LeastSquares(Family):
    """DOMKRLS: sums, counts and accounts are averaged."""

    limits = dict.fromkeys(("sums", "counts", "loss", "regret", "variance", "rounds"), 1e30)
    has_alone = True
    moved = "sums"
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

    def radii(self, steps: Floats, degree: int) -> Floats:
        """Give wider ones for labels that are some steps ahead, because they overlap."""
        return math.sqrt(self.algorithm.compiled.horizon) * super().radii(steps, degree)

    def position(self, state: Any) -> Fields:
        """Give nφ of each fit, and the accounts of the learner alone."""
        sums = state.own[0].astype(np.float64) * state.own_counts[0][:, None]
        accounts = {f: getattr(state, f)[0, mixtures.ALONE][:, None].copy() for f in ACCOUNTS}
        return {"sums": sums} | accounts

    def within(self, pair: Any, radii: Floats, edge: Any, steps: Fields) -> tuple[Fields, float]:
        """Limit sums and counts by one share for each fit, and accounts by our own."""
        own, theirs = pair.own.fields, pair.theirs.fields
        gap, more = theirs["sums"] - own["sums"], (theirs["counts"] - own["counts"])
        share = shrunk(gap, radii)
        size = np.abs(more[0])
        share = np.minimum(
            share, np.divide(APART, size, out=np.ones_like(size), where=size > APART)
        )
        mean, found = float(share.mean()), {}
        if mean < 1:
            found = {"sums": gap * share[:, None].astype(gap.dtype), "counts": more * share}
        for field, power in ACCOUNTS.items():
            step = steps.get(field, np.inf)
            most = ACCOUNT_FACTOR**power * np.abs(own[field]) + self.radius**power * step
            if (np.abs(theirs[field]) > most).any():
                found[field] = np.clip(theirs[field], -most, most) - own[field]
        if abs(theirs["rounds"][0] - own["rounds"][0]) > APART:
            found["rounds"] = np.clip(theirs["rounds"] - own["rounds"], -APART, APART)
        return found, mean

    def follow(self, state: Any, heard: Sequence[Fields]) -> Any:
        """Take over medians of θ, and of the rest."""
        counts = np.median([each["counts"] for each in heard], axis=0)
        thetas = [each["sums"] / np.maximum(each["counts"], TINY)[..., None] for each in heard]
        sums = (np.median(thetas, axis=0) * counts[..., None]).astype(state.sums.dtype)
        state = state._replace(sums=sums, counts=counts)
        rounds = float(np.median([each["rounds"][0] for each in heard]))
        state.rounds[0, 0] = rounds
        for name in ("loss", "regret", "variance"):
            rates = [each[name][0] / max(each["rounds"][0], TINY) for each in heard]
            getattr(state, name)[0, 0] = np.median(rates, axis=0) * rounds
        mixtures.mix(state, self.algorithm.compiled)
        return state

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
