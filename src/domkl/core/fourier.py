"""The compiled feature map, eq. (5): project, reduce the range, sine and cosine.

Frequencies are kept in turns, v/2π: an angle of u turns reduces to u − round(u), exactly, and so
does one of thousands of turns, because projection and reduction are in double precision whatever
the type of the result. Then, with r in [−1/2, 1/2] and s = sin πr, c = cos πr from polynomials,
sin 2πr = 2sc and cos 2πr = 1 − 2s². No quadrant, no branch: the loop runs in vector registers,
where the C library's sine does not.

Two learners share each load of the frequencies. A learner that has no partner is its own, so that
each one's arithmetic is the same in any company.
"""

import math

import numpy as np

from domkl.core.jit import row, sweep
from domkl.typing import Array, Floats

# sin(πr)/r and cos(πr) as polynomials in r², interpolated at Chebyshev nodes of [0, 1/4]
# (benchmarks/fit_sincos.py prints them). Largest error of the features, tests/unit/core/
# test_fourier.py: 1e-6 in float32 and 2e-15 in float64, before the factor 1/√M.
_SINE_SINGLE = tuple(
    np.float32(c)
    for c in (3.141592653536132, -5.167712764593, 2.550163317938427,
              -0.599252186531583, 0.08205035020147247, -0.007028303855203096)
)
_COSINE_SINGLE = tuple(
    np.float32(c)
    for c in (0.999999999779154, -4.934802136928946, 4.058709154763134,
              -1.3352119493905503, 0.2349370685950865, -0.024395932097550446)
)
_SINE_DOUBLE = (
    3.141592653589793, -5.16771278004997, 2.5501640398773455, -0.5992645293207921,
    0.08214588661112787, -0.007370430945707596, 0.0004663028056889684, -2.191535285969446e-05,
    7.952025736213849e-07, -2.293998713586946e-08, 5.249879114060463e-10,
)
_COSINE_DOUBLE = (
    1.0, -4.934802200544679, 4.0587121264167685, -1.3352627688545895,
    0.23533063035889057, -0.0258068913899647, 0.0019295743088292205, -0.00010463810062667314,
    4.303048928191089e-06, -1.3872781244548443e-07, 3.500312073703762e-09,
)


@row
def sincos_single(turns: Floats, sine: Array, cosine: Array, scale: float) -> None:
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
def sincos_double(turns: Floats, sine: Array, cosine: Array, scale: float) -> None:
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
def project_pair(u: Array, w: Array, x: Array, y: Array, turns: Array) -> None:
    """Angles of two inputs, u = x·turns and w = y·turns, with turns (d, L)."""
    n_inputs, n_angles = turns.shape
    x0, y0 = x[0], y[0]
    for m in range(n_angles):
        u[m] = x0 * turns[0, m]
        w[m] = y0 * turns[0, m]
    j = 1
    while j + 4 <= n_inputs:
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        y0, y1, y2, y3 = y[j], y[j + 1], y[j + 2], y[j + 3]
        for m in range(n_angles):
            v0, v1, v2, v3 = turns[j, m], turns[j + 1, m], turns[j + 2, m], turns[j + 3, m]
            u[m] += x0 * v0 + x1 * v1 + x2 * v2 + x3 * v3
            w[m] += y0 * v0 + y1 * v1 + y2 * v2 + y3 * v3
        j += 4
    while j < n_inputs:
        x0, y0 = x[j], y[j]
        for m in range(n_angles):
            u[m] += x0 * turns[j, m]
            w[m] += y0 * turns[j, m]
        j += 1


@sweep
def fourier_features(x: Floats, turns: Floats, z: Array, n_frequencies: int) -> None:
    """Write z(x) of every trial's map, eq. (5): x (K, d), turns (B, d, P·M), z (B, K, P′, D).

    Only the first 2M columns of the first P kernels are written.
    """
    n_learners = x.shape[0]
    n_maps, _, n_angles = turns.shape
    u = np.empty(n_angles)
    w = np.empty(n_angles)
    for b in range(n_maps):
        for first in range(0, n_learners, 2):
            second = min(first + 1, n_learners - 1)
            project_pair(u, w, x[first], x[second], turns[b])
            _write(u, z[b, first], n_frequencies)
            if second > first:
                _write(w, z[b, second], n_frequencies)


@sweep
def _write(turns: Floats, z: Array, n_frequencies: int) -> None:
    m = n_frequencies
    scale = z.dtype.type(1 / math.sqrt(m))
    for p in range(turns.size // m):
        angles = turns[p * m : (p + 1) * m]
        if z.itemsize == 4:
            sincos_single(angles, z[p, :m], z[p, m : 2 * m], scale)
        else:
            sincos_double(angles, z[p, :m], z[p, m : 2 * m], scale)


@sweep
def linear_features(x: Floats, z: Array, energy: Floats) -> None:
    """Write the linear kernel, inputs and a constant: z (B, K, D), energy ‖z‖² (B, K)."""
    n_maps, n_learners, _ = z.shape
    n_inputs = x.shape[1]
    for b in range(n_maps):
        for k in range(n_learners):
            total = 1.0
            for j in range(n_inputs):
                z[b, k, j] = x[k, j]
                total += x[k, j] * x[k, j]
            z[b, k, n_inputs] = 1
            energy[b, k] = total
