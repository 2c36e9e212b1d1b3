"""The model: what all learners of a mesh must have in common, and its fingerprint."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.core.exchange import fields_that
from domkl.core.features import RandomFeatures
from domkl.errors import ParameterError
from domkl.learner.local import TOLD, LocalLearner
from domkl.mesh.protocol.families import family_of
from domkl.mesh.protocol.wire import OfferFormat
from domkl.speech.base import Speech
from domkl.speech.plain import PLAIN


@dataclass(frozen=True)
class Range:
    """The declared range of an input or of the target, which is scaled to [0, 1]."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        is_sound = np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high
        if not is_sound:
            raise ParameterError(
                f"range of {self.name} must be finite with low < high,"
                f" got low {self.low!r}, high {self.high!r}"
            )


@dataclass(frozen=True)
class Model:
    """Algorithm, features, ranges and number type. Learners with different models do not exchange.

    Parameters
    ----------
    outside : "clip" or "refuse"
        What to do with a value outside of its range: clip it to the range and count it, or raise
        DataError.
    delay : int
        Samples until a label is seen, as of `domkl.simulate`: a sample is predicted when it comes,
        and learned when so many more have come. For labels h steps ahead it is h − 1.
    horizon : int
        Of a learner that forecasts: how many ticks ahead; 0 for one that takes samples, inputs and
        label together.
    speech : Speech
        How messages leave a learner.
    """

    algorithm: Algorithm
    features: RandomFeatures
    inputs: tuple[Range, ...]
    target: Range
    dtype: Literal["float64", "float32"] = "float64"
    outside: Literal["clip", "refuse"] = "clip"
    delay: int = 0
    horizon: int = 0
    speech: Speech = PLAIN

    def __post_init__(self) -> None:
        checks.whole("delay", self.delay, 0)
        checks.whole("horizon", self.horizon, 0)
        n_late = max(self.delay, self.horizon - 1)
        object.__setattr__(self, "algorithm", self.algorithm.delayed(n_late))
        checks.choice("dtype", self.dtype, ("float64", "float32"))
        checks.choice("outside", self.outside, ("clip", "refuse"))
        name = type(self.algorithm).__name__
        if fields_that(self.algorithm.exchange, lambda kind: kind.spans_all):
            raise ParameterError(
                f"algorithm must exchange messages with neighbors only, got {name}"
            )
        if self.algorithm.single_kernel and self.features.n_kernels != 1:
            raise ParameterError(f"{name} takes one kernel, got {self.features.n_kernels}")
        if len(self.inputs) != self.features.n_inputs:
            raise ParameterError(
                f"inputs must be {self.features.n_inputs} as the features have,"
                f" got {len(self.inputs)}"
            )

    @cached_property
    def parts(self) -> Mapping[str, str]:
        """All that must be equal, as text by name, so that a difference can be reported.

        A parameter that is None is left to the algorithm, and not stated.
        """
        algorithm: Any = self.algorithm
        given = {each.name: getattr(algorithm, each.name) for each in fields(algorithm)}
        parameters = {name: repr(value) for name, value in given.items() if value is not None}
        ranges = "; ".join(f"{r.name} {r.low!r} {r.high!r}" for r in self.inputs)
        return {
            "algorithm": type(self.algorithm).__name__,
            **parameters,
            "kernels": str(self.features.n_kernels),
            "frequencies": str(self.features.n_frequencies),
            "features": self.features.fingerprint[:32],
            "inputs": hashlib.sha256(ranges.encode()).hexdigest()[:32],
            "target": f"{self.target.name} {self.target.low!r} {self.target.high!r}",
            "numbers": self.dtype,
            **({"delay": str(self.delay)} if self.delay else {}),
            **({"horizon": str(self.horizon)} if self.horizon else {}),
            **({} if self.speech.is_exact else {"speech": repr(self.speech)}),
        }

    @cached_property
    def fingerprint(self) -> bytes:
        """A hash of 16 bytes of `parts`; two models are equal if these are."""
        text = "\n".join(f"{name} = {value}" for name, value in self.parts.items())
        return hashlib.sha256(b"domkl-mesh-1\n" + text.encode()).digest()[:16]

    def difference(self, parts: Mapping[str, str]) -> str:
        """Describe how another model's parts differ from ours; empty if they do not."""
        names = [*self.parts, *(name for name in parts if name not in self.parts)]
        return ", ".join(
            f"{name} is {parts.get(name, 'absent')} there and {self.parts.get(name, 'absent')} here"
            for name in names
            if parts.get(name) != self.parts.get(name)
        )

    def obstacle(self, parts: Mapping[str, str]) -> str:
        """Describe why a state learned with a model of these parts cannot go on with this one.

        Empty if it can: numbers by which the algorithm is tuned, such as ``forget``, may change.
        They must be equal at all learners, but what was learned means the same with others. Of a
        user's own algorithm nobody knows that, so all must be the same.
        """
        algorithm: Any = self.algorithm
        is_ours = type(algorithm).__module__.partition(".")[0] == "domkl"
        tuned = [f.name for f in fields(algorithm) if is_ours and f.type in (float, "float")]
        if "period" not in parts:  # as before 0.5
            tuned.append("period")
        ours = {name: value for name, value in self.parts.items() if name in tuned}
        return self.difference({**parts, **ours})

    def learner(self) -> LocalLearner:
        """Make a learner that knows nothing yet."""
        given = (self.algorithm, self.features, self.dtype)
        return LocalLearner(*given, delay=self.delay, speech=self.speech)

    def offers(self) -> OfferFormat:
        """Make the format of what learners say to each other."""
        return OfferFormat(self.learner().layout(), family_of(self.algorithm))

    def target_of(self, y_hat: float) -> float:
        """Convert a scaled prediction to the target's own unit."""
        return self.target.low + y_hat * (self.target.high - self.target.low)

    def in_units(
        self, y_hat: float, deviation: float | None, quantiles: Sequence[float] | None = None
    ) -> tuple[float, float | None, dict[str, float] | None]:
        """Convert a scaled prediction, its deviation, and its quantiles, by level.

        None for those that are not finite.
        """
        is_known = deviation is not None and math.isfinite(deviation)
        width, y_hat = self.target.high - self.target.low, self.target_of(y_hat)
        if not is_known or deviation is None:
            return y_hat, None, None
        by_level = zip(map(str, TOLD), quantiles or (), strict=False)
        return y_hat, deviation * width, {level: self.target_of(q) for level, q in by_level} or None

    def error_of(self, mean_square: float) -> float:
        """Convert a scaled squared error to the square of the target's own unit."""
        return mean_square * (self.target.high - self.target.low) ** 2
