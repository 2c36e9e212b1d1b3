"""Shift-invariant kernels, their spectral samplers, and the paper's dictionary.

Matérn's, which needs SciPy's Bessel functions, is in matern.py, so that a node need not load SciPy.

Every kernel has one parameter in common, ``bandwidth`` = σ², so that dictionaries mix.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks
from domkl.typing import Floats, Ints


class Kernel(Protocol):
    """A shift-invariant kernel with a spectral sampler."""

    @property
    def is_isotropic(self) -> bool:
        """Whether the kernel depends on ‖x − x′‖ only."""

    def __call__(self, x: ArrayLike, other: ArrayLike) -> Floats:
        """Evaluate κ(x, x′) over the last axis."""

    def stretch(self, rng: np.random.Generator, n: int) -> Floats:
        """Factors (n, 1) that turn the base draw of this kernel into frequencies."""

    def base(self, rng: np.random.Generator, n: int, d: int) -> Floats:
        """Draw (n, d) from the kernel's spectrum before stretching."""


@dataclass(frozen=True)
class Bandwidth:
    """Base of kernels with a bandwidth σ²."""

    bandwidth: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("bandwidth", self.bandwidth)

    @property
    def scale(self) -> float:
        """The length σ."""
        return float(np.sqrt(self.bandwidth))

    def stretch(self, rng: np.random.Generator, n: int) -> Floats:
        return np.full((n, 1), 1 / self.scale)


def difference(x: ArrayLike, other: ArrayLike) -> Floats:
    """x − x′ in double precision."""
    return np.asarray(x, dtype=np.float64) - np.asarray(other, dtype=np.float64)


class Isotropic:
    """Base of kernels that depend on ‖x − x′‖ only; their base draws are normal."""

    is_isotropic = True

    def base(self, rng: np.random.Generator, n: int, d: int) -> Floats:
        return rng.standard_normal((n, d))


@dataclass(frozen=True)
class Gaussian(Isotropic, Bandwidth):
    """κ(x, x′) = exp(−‖x − x′‖² / 2σ²), eq. (2); frequencies are normal with variance 1/σ².

    Examples
    --------
    >>> float(Gaussian(bandwidth=2.0)([0.0], [2.0]).round(4))
    0.3679
    """

    def __call__(self, x: ArrayLike, other: ArrayLike) -> Floats:
        square = np.sum(difference(x, other) ** 2, axis=-1)
        return np.asarray(np.exp(-square / (2 * self.bandwidth)))


@dataclass(frozen=True)
class Laplacian(Bandwidth):
    """κ(x, x′) = exp(−‖x − x′‖₁ / σ); each coordinate of a frequency is Cauchy.

    Examples
    --------
    >>> float(Laplacian(bandwidth=4.0)([0.0, 0.0], [1.0, -1.0]).round(4))
    0.3679
    """

    is_isotropic = False

    def __call__(self, x: ArrayLike, other: ArrayLike) -> Floats:
        length = np.sum(np.abs(difference(x, other)), axis=-1)
        return np.asarray(np.exp(-length / self.scale))

    def base(self, rng: np.random.Generator, n: int, d: int) -> Floats:
        return rng.standard_cauchy((n, d))


@dataclass(frozen=True)
class Cauchy(Bandwidth):
    """κ(x, x′) = Π_j 1/(1 + (x_j − x′_j)²/σ²); each coordinate of a frequency is Laplace.

    Examples
    --------
    >>> float(Cauchy(bandwidth=1.0)([0.0, 0.0], [1.0, 1.0]))
    0.25
    """

    is_isotropic = False

    def __call__(self, x: ArrayLike, other: ArrayLike) -> Floats:
        ratio = difference(x, other) ** 2 / self.bandwidth
        return np.asarray(np.prod(1 / (1 + ratio), axis=-1))

    def base(self, rng: np.random.Generator, n: int, d: int) -> Floats:
        return rng.laplace(size=(n, d))


@dataclass(frozen=True)
class Additive(Bandwidth):
    """The mean of Gaussian kernels of few inputs: of all pairs, of all sets of four, and of all d.

    κ(x, x′) = mean over n ∈ {2, 4, d}, and over all sets S of n inputs, of
    exp(−d/n ‖x_S − x′_S‖²/2σ²)

    Functions of few inputs at a time, as trees are, are learned with fewer frequencies than of a
    Gaussian, whose frequencies see all inputs. Drawn input by input, as the estimators do, it is
    the Gaussian.

    Examples
    --------
    >>> float(Additive(bandwidth=1.0)([0.0, 0.0, 0.0], [0.0, 0.0, 2.0]).round(4))
    0.2124
    """

    is_isotropic = False

    def __call__(self, x: ArrayLike, other: ArrayLike) -> Floats:
        square = difference(x, other) ** 2 / (2 * self.bandwidth)
        d = square.shape[-1]
        values = []
        for size in _sizes(3, d).tolist():
            each = np.exp(-square * d / size)
            sums = [np.ones(square.shape[:-1]), *np.zeros((size, *square.shape[:-1]))]
            for j in range(d):  # elementary symmetric polynomials: sums of products of n inputs
                for n in range(size, 0, -1):
                    sums[n] = sums[n] + each[..., j] * sums[n - 1]
            values.append(sums[size] / math.comb(d, size))
        return np.asarray(np.mean(values, axis=0))

    def base(self, rng: np.random.Generator, n: int, d: int) -> Floats:
        normal, sizes = rng.standard_normal((n, d)), _sizes(n, d)[:, None]
        if d == 1:
            return normal
        is_seen = rng.random((n, d)).argsort(axis=1) < sizes
        return np.asarray(normal * is_seen * np.sqrt(d / sizes))


def _sizes(n: int, d: int) -> Ints:
    """Numbers of inputs that frequencies see in turn: two, four, and all."""
    return np.asarray(np.minimum(np.resize([2, 4, d], n), d))


def gaussian_bank(bandwidths: Iterable[float] | None = None) -> tuple[Gaussian, ...]:
    """Gaussian kernels of these σ²; by default the paper's seventeen, eq. (42).

    Examples
    --------
    >>> bank = gaussian_bank()
    >>> len(bank), bank[0].bandwidth, bank[8].bandwidth, bank[16].bandwidth
    (17, 0.0001, 1.0, 10000.0)
    """
    if bandwidths is None:
        bandwidths = [10.0 ** ((p - 9) / 2) for p in range(1, 18)]
    return tuple(Gaussian(b) for b in bandwidths)


@dataclass(frozen=True)
class Linear:
    """κ(x, x′) = xᵀx′ + 1: the inputs and a constant. It has no spectrum to draw from.

    As the last kernel of a dictionary it says `RandomFeatures.draw` what ``linear=True`` says.

    Examples
    --------
    >>> float(Linear()([1.0, 2.0], [3.0, 4.0]))
    12.0
    """

    def __call__(self, x: ArrayLike, other: ArrayLike) -> Floats:
        return np.asarray(np.vecdot(np.asarray(x, dtype=np.float64), np.asarray(other)) + 1)


Dictionary = Sequence[Kernel | Linear]


def default_bank() -> tuple[Gaussian | Linear, ...]:
    """The dictionary of DOMKRLS: Gaussians of σ² from 10⁻¹·⁵ to 10², and the linear kernel.

    Narrower and wider ones earned nothing on the seven data sets, docs/explanation/domkrls.md.

    Examples
    --------
    >>> len(default_bank()), default_bank()[-1]
    (9, Linear())
    """
    return (*gaussian_bank(10.0 ** (p / 2) for p in range(-3, 5)), Linear())
