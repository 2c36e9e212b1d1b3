"""Random Fourier features: draw the frequencies, map inputs, tell two maps apart."""

import hashlib
from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from domkl import checks, rng
from domkl.core.fourier import fourier_features, linear_features
from domkl.core.kernels import Dictionary, Kernel, Linear
from domkl.errors import DataError, ParameterError
from domkl.typing import Array, Floats, Seed


class RandomFeatures:
    """The map z(x) of eq. (5), one block per kernel; the same at every learner.

    z_p(x) = [sin v₁ᵀx, …, sin v_Mᵀx, cos v₁ᵀx, …, cos v_Mᵀx] / √M,   so ‖z_p(x)‖ = 1.

    Parameters
    ----------
    frequencies : (P, M, d)
        Spectral draws of each kernel, as `draw` makes them.
    linear : bool
        Add the linear kernel, the inputs and a constant, as the last block. P then counts it, D is
        max(2M, d + 1), and shorter blocks are padded with zeros.

    Examples
    --------
    >>> features = RandomFeatures([[[0.0, 0.0], [np.pi, 0.0]]])
    >>> features([0.5, 3.0]).round(3)
    array([[0.   , 0.707, 0.707, 0.   ]])
    """

    def __init__(self, frequencies: ArrayLike, *, linear: bool = False) -> None:
        values = np.array(checks.samples("frequencies", frequencies, "P M d"))
        values.setflags(write=False)
        self.frequencies: Floats = values
        self.linear = bool(linear)
        # (d, P·M) in turns: what core/fourier.py reads, all kernels' frequencies side by side
        self.turns: Floats = values.reshape(-1, values.shape[2]).T.copy() / (2 * np.pi)

    @classmethod
    def draw(
        cls,
        bank: Dictionary,
        n_inputs: int,
        n_frequencies: int = 50,
        *,
        seed: Seed,
        orthogonal: bool = False,
        linear: bool = False,
    ) -> Self:
        """Draw the frequencies of every kernel of a dictionary.

        Equal seeds give equal maps on every learner. ``orthogonal`` makes the directions of each
        block of d frequencies orthogonal and keeps each frequency's own distribution: radii are
        chi with d degrees of freedom. It takes isotropic kernels only. The linear kernel comes
        with ``linear``, or with `Linear` as the last of the dictionary.
        """
        kernels = tuple(bank) if isinstance(bank, Iterable) else ()
        if kernels and isinstance(kernels[-1], Linear):
            kernels, linear = kernels[:-1], True
        drawn = [kernel for kernel in kernels if not isinstance(kernel, Linear)]
        is_drawable = len(drawn) == len(kernels) and all(hasattr(k, "stretch") for k in drawn)
        if not kernels or not is_drawable:
            raise ParameterError(
                f"bank must hold at least one kernel, and Linear() only as the last, got {bank!r}"
            )
        n_inputs = checks.whole("n_inputs", n_inputs, 1)
        n_frequencies = checks.whole("n_frequencies", n_frequencies, 1)
        draws = [
            _draw(kernel, rng.generator(seed, "features", p), n_frequencies, n_inputs, orthogonal)
            for p, kernel in enumerate(drawn)
        ]
        return cls(np.stack(draws), linear=linear)

    @property
    def n_kernels(self) -> int:
        """P, the linear kernel included."""
        return len(self.frequencies) + self.linear

    @property
    def n_frequencies(self) -> int:
        """M."""
        return int(self.frequencies.shape[1])

    @property
    def n_inputs(self) -> int:
        """d."""
        return int(self.frequencies.shape[2])

    @property
    def n_features(self) -> int:
        """D, the length of one kernel's block."""
        return max(2 * self.n_frequencies, self.n_inputs + 1 if self.linear else 0)

    @property
    def fingerprint(self) -> str:
        """A hash of the map: two learners' maps agree if and only if these do."""
        header = f"domkl-features-1 {self.frequencies.shape} linear={self.linear}\n"
        return hashlib.sha256(
            header.encode() + (self.frequencies + 0.0).astype("<f8").tobytes()  # -0.0 is 0.0
        ).hexdigest()

    def kernel(self, p: int) -> "RandomFeatures":
        """Take the map of the p-th random-feature kernel alone, for DOKL and RFF-DOKL."""
        if checks.whole("p", p, 0) >= len(self.frequencies):
            raise ParameterError(f"p must be in 0..{len(self.frequencies) - 1}, got {p!r}")
        return RandomFeatures(self.frequencies[p : p + 1])

    def __call__(self, x: ArrayLike, dtype: DTypeLike = np.float64) -> Array:
        """Map inputs (…, d) to features (…, P, D)."""
        checks.choice("dtype", np.dtype(dtype).name, ("float64", "float32"))
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.n_inputs:
            raise DataError(f"x must have shape (…, {self.n_inputs}), got {x.shape}")
        rows = np.ascontiguousarray(x.reshape(-1, self.n_inputs))
        z, energy = self.empty(1, len(rows), dtype)
        FeatureStack([self]).write(rows, z, energy)
        return z.reshape(*x.shape[:-1], self.n_kernels, self.n_features)

    def empty(self, n_maps: int, n_learners: int, dtype: DTypeLike) -> tuple[Array, Floats]:
        """Room for features (B, K, P, D), zero where nothing is written, and ‖z‖² (B, K, P)."""
        shape = (n_maps, n_learners, self.n_kernels)
        return np.zeros((*shape, self.n_features), dtype=dtype), np.ones(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomFeatures) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        sizes = f"P={self.n_kernels}, M={self.n_frequencies}, d={self.n_inputs}"
        return f"RandomFeatures({sizes}, fingerprint={self.fingerprint[:12]}…)"


class FeatureStack:
    """The maps of several trials, of equal sizes, applied to the same inputs at once."""

    def __init__(self, maps: list[RandomFeatures]) -> None:
        self.first = maps[0]
        self.n_maps = len(maps)
        self._turns = np.stack([m.turns for m in maps])

    def write(self, x: Floats, z: Array, energy: Floats) -> None:
        """Map x (K, d) into z (B, K, P, D) and ‖z‖² (B, K, P), made by `RandomFeatures.empty`."""
        fourier_features(x, self._turns, z, self.first.n_frequencies)
        if self.first.linear:
            linear_features(x, z, energy)


def _draw(
    kernel: Kernel, generator: np.random.Generator, n: int, d: int, orthogonal: bool
) -> Floats:
    if not orthogonal:
        base = kernel.base(generator, n, d)
    elif kernel.is_isotropic:
        base = _orthogonal_normals(generator, n, d)
    else:
        raise ParameterError(f"orthogonal features need an isotropic kernel, got {kernel!r}")
    return base * kernel.stretch(generator, n)


def _orthogonal_normals(generator: np.random.Generator, n: int, d: int) -> Floats:
    """Rows that are each standard normal, and mutually orthogonal in blocks of d."""
    blocks = []
    for _ in range(-(-n // d)):
        q, r = np.linalg.qr(generator.standard_normal((d, d)))
        blocks.append(q * np.sign(np.diag(r)))  # the sign makes q uniform over rotations
    radii = np.sqrt(generator.chisquare(d, size=(n, 1)))
    return np.asarray(radii * np.concatenate(blocks)[:n])
