"""Matérn kernels, whose values are Bessel functions of SciPy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, kve

from domkl import checks
from domkl.core.kernels import Bandwidth, Isotropic, difference
from domkl.typing import Floats


@dataclass(frozen=True)
class Matern(Isotropic, Bandwidth):
    """κ = 2^(1−ν)/Γ(ν) r^ν K_ν(r), r = √(2ν) ‖x − x′‖/σ; frequencies are Student-t, 2ν degrees.

    Examples
    --------
    With ν = 1/2 it is exp(−‖x − x′‖/σ):

    >>> float(Matern(bandwidth=1.0, smoothness=0.5)([0.0], [1.0]).round(4))
    0.3679
    """

    smoothness: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("smoothness", self.smoothness)

    def __call__(self, x: ArrayLike, other: ArrayLike) -> Floats:
        nu = self.smoothness
        r = np.sqrt(2 * nu * np.sum(difference(x, other) ** 2, axis=-1)) / self.scale
        safe = np.maximum(r, 1e-8)  # K_ν(0) is infinite; the limit of the product is 1
        log_kv = np.log(kve(nu, safe)) - safe
        value = np.exp((1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(safe) + log_kv)
        return np.where((r > 1e-8) & np.isfinite(value), value, 1.0)

    def stretch(self, rng: np.random.Generator, n: int) -> Floats:
        degrees = 2 * self.smoothness
        return np.sqrt(degrees / rng.chisquare(degrees, size=(n, 1))) / self.scale
