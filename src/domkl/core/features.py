"""Random Fourier features, eq. (5): draw the frequencies, map inputs, tell two maps apart.

The compiled map projects, reduces the range, and takes sine and cosine. Frequencies are kept in
turns, v/2π: an angle of u turns reduces to u − round(u), exactly, and so does one of thousands of
turns, because projection and reduction are in double precision whatever the type of the result.
Then, with r in [−1/2, 1/2] and s = sin πr, c = cos πr from polynomials, sin 2πr = 2sc and
cos 2πr = 1 − 2s². No quadrant, no branch: the loop runs in vector registers, where the C library's
sine does not.

Four learners share each load of the frequencies. One that lacks partners is its own, so that each
one's arithmetic is the same in any company.
"""

import hashlib
import math
from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from domkl import checks, rng
from domkl.core.jit import row, sweep
from domkl.core.kernels import Dictionary, Kernel, Linear
from domkl.core.vectors import copied
from domkl.errors import DataError, ParameterError
from domkl.typing import Array, Floats, Number, Seed


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
        # (d, P·M) in turns: what the compiled map reads, all kernels' frequencies side by side
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
        self._turns = np.stack([m.turns for m in maps])

    def write(self, x: Floats, z: Array, energy: Floats) -> None:
        """Map x (K, d) into z (B, K, P, D) and ‖z‖² (B, K, P), made by `RandomFeatures.empty`."""
        m, linear = self.first.n_frequencies, self.first.linear
        write_features(x, self._turns, z, energy, m, linear)


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


# sin(πr)/r and cos(πr) as polynomials in r², interpolated at Chebyshev nodes of [0, 1/4]
# (benchmarks/fit_sincos.py prints them). Largest error of the features, tests/unit/core/
# test_features.py: 1e-6 in float32 and 2e-15 in float64, before the factor 1/√M.
_SINE_SINGLE = tuple(
    np.float32(c)
    for c in (
        3.141592653536132,
        -5.167712764593,
        2.550163317938427,
        -0.599252186531583,
        0.08205035020147247,
        -0.007028303855203096,
    )
)
_COSINE_SINGLE = tuple(
    np.float32(c)
    for c in (
        0.999999999779154,
        -4.934802136928946,
        4.058709154763134,
        -1.3352119493905503,
        0.2349370685950865,
        -0.024395932097550446,
    )
)
_SINE_DOUBLE = (
    3.141592653589793,
    -5.16771278004997,
    2.5501640398773455,
    -0.5992645293207921,
    0.08214588661112787,
    -0.007370430945707596,
    0.0004663028056889684,
    -2.191535285969446e-05,
    7.952025736213849e-07,
    -2.293998713586946e-08,
    5.249879114060463e-10,
)
_COSINE_DOUBLE = (
    1.0,
    -4.934802200544679,
    4.0587121264167685,
    -1.3352627688545895,
    0.23533063035889057,
    -0.0258068913899647,
    0.0019295743088292205,
    -0.00010463810062667314,
    4.303048928191089e-06,
    -1.3872781244548443e-07,
    3.500312073703762e-09,
)


@row
def sincos_single(turns: Floats, sine: Array, cosine: Array, scale: Number) -> None:
    """Write scale · sin and scale · cos of 2π·turns in float32."""
    s, c = _SINE_SINGLE, _COSINE_SINGLE
    for i in range(turns.size):
        r = np.float32(turns[i] - np.rint(turns[i]))
        q = r * r
        half_sine = r * (s[0] + q * (s[1] + q * (s[2] + q * (s[3] + q * (s[4] + q * s[5])))))
        half_cosine = c[0] + q * (c[1] + q * (c[2] + q * (c[3] + q * (c[4] + q * c[5]))))
        lifted = np.float32(2) * scale * half_sine
        sine[i] = lifted * half_cosine
        cosine[i] = scale - lifted * half_sine


@row
def sincos_double(turns: Floats, sine: Array, cosine: Array, scale: Number) -> None:
    """Write scale · sin and scale · cos of 2π·turns in float64."""
    s, c = _SINE_DOUBLE, _COSINE_DOUBLE
    for i in range(turns.size):
        r = turns[i] - np.rint(turns[i])
        q = r * r
        tail = s[6] + q * (s[7] + q * (s[8] + q * (s[9] + q * s[10])))
        half_sine = s[0] + q * (s[1] + q * (s[2] + q * (s[3] + q * (s[4] + q * (s[5] + q * tail)))))
        tail = c[6] + q * (c[7] + q * (c[8] + q * (c[9] + q * c[10])))
        half_cosine = c[0] + q * (
            c[1] + q * (c[2] + q * (c[3] + q * (c[4] + q * (c[5] + q * tail))))
        )
        lifted = 2.0 * scale * r * half_sine
        sine[i] = lifted * half_cosine
        cosine[i] = scale - lifted * r * half_sine


@row
def project_four(
    u0: Array, u1: Array, u2: Array, u3: Array,
    x0: Array, x1: Array, x2: Array, x3: Array,
    turns: Array,
) -> None:  # fmt: skip
    """Angles of four inputs, u = x·turns, with turns (d, L): four products for each load."""
    n_inputs, n_angles = turns.shape
    a0, b0, c0, d0 = x0[0], x1[0], x2[0], x3[0]
    for m in range(n_angles):
        v0 = turns[0, m]
        u0[m] = a0 * v0
        u1[m] = b0 * v0
        u2[m] = c0 * v0
        u3[m] = d0 * v0
    j = 1
    while j + 4 <= n_inputs:
        a0, a1, a2, a3 = x0[j], x0[j + 1], x0[j + 2], x0[j + 3]
        b0, b1, b2, b3 = x1[j], x1[j + 1], x1[j + 2], x1[j + 3]
        c0, c1, c2, c3 = x2[j], x2[j + 1], x2[j + 2], x2[j + 3]
        d0, d1, d2, d3 = x3[j], x3[j + 1], x3[j + 2], x3[j + 3]
        for m in range(n_angles):
            v0, v1, v2, v3 = turns[j, m], turns[j + 1, m], turns[j + 2, m], turns[j + 3, m]
            u0[m] = (((u0[m] + a0 * v0) + a1 * v1) + a2 * v2) + a3 * v3
            u1[m] = (((u1[m] + b0 * v0) + b1 * v1) + b2 * v2) + b3 * v3
            u2[m] = (((u2[m] + c0 * v0) + c1 * v1) + c2 * v2) + c3 * v3
            u3[m] = (((u3[m] + d0 * v0) + d1 * v1) + d2 * v2) + d3 * v3
        j += 4
    while j < n_inputs:
        a0, b0, c0, d0 = x0[j], x1[j], x2[j], x3[j]
        for m in range(n_angles):
            v0 = turns[j, m]
            u0[m] += a0 * v0
            u1[m] += b0 * v0
            u2[m] += c0 * v0
            u3[m] += d0 * v0
        j += 1


@sweep
def write_features(
    x: Floats, turns: Floats, z: Array, energy: Floats, n_frequencies: int, linear: bool
) -> None:
    """Write the features of x (K, d) to z (B, K, P, D) and ‖z‖² to energy (B, K, P)."""
    fourier_features(x, turns, z, n_frequencies)
    if linear:
        linear_features(x, z, energy)


@sweep
def fourier_features(x: Floats, turns: Floats, z: Array, n_frequencies: int) -> None:
    """Write z(x) of every map, eq. (5): x (K, d), turns (B, d, P·M), z (B, K, P′, D).

    Only the first 2M columns of the first P kernels are written.
    """
    n_learners = x.shape[0]
    last = n_learners - 1
    n_maps, _, n_angles = turns.shape
    u = np.empty((4, n_angles))
    sine, cosine = np.empty((4, n_angles), z.dtype), np.empty((4, n_angles), z.dtype)
    scale = z.dtype.type(1 / math.sqrt(n_frequencies))
    for b in range(n_maps):
        for k in range(0, n_learners, 4):
            k1, k2, k3 = min(k + 1, last), min(k + 2, last), min(k + 3, last)
            project_four(u[0], u[1], u[2], u[3], x[k], x[k1], x[k2], x[k3], turns[b])
            n = min(4, n_learners - k)
            _sincos(u[:n], sine[:n], cosine[:n], scale)
            for i in range(n):
                _place(sine[i], cosine[i], z[b, k + i], n_frequencies)


@sweep
def _sincos(turns: Floats, sine: Array, cosine: Array, scale: Number) -> None:
    """All learners' and kernels' sines in one long loop: faster than one by one."""
    if sine.itemsize == 4:
        sincos_single(turns.ravel(), sine.ravel(), cosine.ravel(), scale)
    else:
        sincos_double(turns.ravel(), sine.ravel(), cosine.ravel(), scale)


@sweep
def _place(sine: Array, cosine: Array, z: Array, n_frequencies: int) -> None:
    """Each kernel's block to its place."""
    m = n_frequencies
    for p in range(sine.size // m):
        copied(z[p, :m], sine[p * m : (p + 1) * m])
        copied(z[p, m : 2 * m], cosine[p * m : (p + 1) * m])


@sweep
def linear_features(x: Floats, z: Array, energy: Floats) -> None:
    """Write the last kernel as inputs and a constant: z (B, K, P, D), ‖z‖² in energy (B, K, P)."""
    n_maps, n_kernels = z.shape[0], z.shape[2]
    n_learners, n_inputs = x.shape
    for b in range(n_maps):
        for k in range(n_learners):
            total = 1.0
            for j in range(n_inputs):
                z[b, k, n_kernels - 1, j] = x[k, j]
                total += x[k, j] * x[k, j]
            z[b, k, n_kernels - 1, n_inputs] = 1
            energy[b, k, n_kernels - 1] = total
