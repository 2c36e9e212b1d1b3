"""Rounds of ADMM and diffusion as single passes over the learners, for networks of any size.

A round steps, then exchanges; the next one predicts, then steps. Here an exchange waits for the
next round's step, and each learner's rows go through the cache once a round instead of twice. What
the exchange makes, the center or ψ, is made and used within a block of learners: its own array is
free meanwhile, and is the second place of θ. The two take turns, so that a pass reads old values
only and its learners may be shared out among threads. `close` does the exchange that is left.

Kernels meet in the Hedge alone, `settle` and `weigh_rows`. So a pass may be given some of the
kernels, as a chain of their own, and run through many rounds before the others do.
"""

import numpy as np

from domkl.core.admm import heard_dual_step, primal_step
from domkl.core.exchange import neighbor_sum, weighted_mean
from domkl.core.fourier import fourier_features, linear_features
from domkl.core.gradient import gradient_step
from domkl.core.hedge import hedge_weights
from domkl.core.jit import sweep
from domkl.core.laws import ADMM, DIFFUSION, Chain
from domkl.core.losses import accumulate_loss
from domkl.core.predict import combine, kernel_predictions
from domkl.core.rounds import Map, Wires
from domkl.core.vectors import copied, lines
from domkl.typing import Array, Floats, Ints

FAMILIES = (ADMM, DIFFUSION)  # that can be run so
BLOCK = 16  # learners whose features are made together


@sweep
def advance(
    chain: Chain,
    now: Array,
    after: Array,
    is_first: bool,
    x: Floats,
    y: Floats,
    f: Floats,
    wires: Wires,
    features: Map,
    low: int,
    high: int,
) -> None:
    """Exchange ``now``, predict ``f`` and step to ``after``, of learners low..high − 1.

    ``now`` and ``after`` (K, P, D) are the two places of θ; with ``is_first`` what the
    exchange makes is in the state already, and both are ``chain.theta``.
    """
    _, n_kernels, n_features = now.shape
    z = np.zeros((1, BLOCK, n_kernels, n_features), now.dtype)
    energy = np.ones((1, BLOCK, n_kernels))
    room = np.empty((BLOCK, n_kernels, n_features), now.dtype)
    kept = chain.third if chain.family == ADMM else chain.second
    for start in range(low, high, BLOCK):
        stop = min(start + BLOCK, high)
        n = stop - start
        fourier_features(x[start:stop], features.turns, z, features.n_frequencies)
        if features.linear:
            linear_features(x[start:stop], z, energy)
        ready = kept[start:stop] if is_first else room[:n]
        if not is_first:
            hear(chain, ready, now, wires, start, stop, high)
        function = now[start:stop] if chain.family == ADMM else ready
        kernel_predictions(f[start:stop], function, z[0, :n])
        if chain.family == ADMM:
            primal_step(
                after[start:stop],
                ready,
                z[0, :n],
                energy[0, :n],
                y[start:stop],
                wires.degree[start:stop],
                chain.eta_l,
                chain.rho,
                chain.kind,
                chain.shape,
            )
        else:
            gradient_step(
                after[start:stop],
                ready,
                z[0, :n],
                f[start:stop],
                y[start:stop],
                chain.step,
                chain.kind,
                chain.shape,
            )


@sweep
def hear(
    chain: Chain, out: Array, now: Array, wires: Wires, start: int, stop: int, high: int
) -> None:
    """Write the center, having ascended the dual, or ψ, of learners start..stop − 1.

    Those up to ``high`` come next, and what they will hear is asked for.
    """
    indptr = wires.indptr[start : high + 1]
    if chain.family == ADMM:
        heard_dual_step(
            chain.second[start:stop],
            out,
            now[start:stop],
            now,
            indptr,
            wires.indices,
            wires.degree[start:stop],
            chain.eta_l,
            chain.rho,
        )
    else:
        weighted_mean(out, now, now[start:stop], indptr, wires.indices, wires.weight)


@sweep
def move(out: Array, values: Array, low: int, high: int) -> None:
    """Copy rows low..high − 1: out, values (K, P, D)."""
    out, values = lines(out), lines(values)
    for k in range(low, high):
        copied(out[k], values[k])


@sweep
def close(chain: Chain, wires: Wires, low: int, high: int) -> None:
    """Exchange what the last round left in ``chain.theta``, of learners low..high − 1."""
    out = chain.third if chain.family == ADMM else chain.second
    hear(chain, out[low:high], chain.theta, wires, low, high, high)


@sweep
def settle(chain: Chain, y_hat: Floats, f: Floats, y: Floats, low: int, high: int) -> None:
    """Combine the kernels' predictions (14) and add their losses up (15), before any is weighed."""
    combine(y_hat[low:high], f[low:high], chain.weights[low:high])
    accumulate_loss(chain.loss[low:high], f[low:high], y[low:high], chain.kind, chain.shape)


@sweep
def weigh_rows(chain: Chain, indptr: Ints, indices: Ints, low: int, high: int) -> None:
    """Weigh the kernels of learners low..high − 1 by own and neighbors' losses, (16)."""
    heard = np.empty((BLOCK, chain.loss.shape[1]))
    for start in range(low, high, BLOCK):
        stop = min(start + BLOCK, high)
        part = heard[: stop - start]
        neighbor_sum(part, chain.loss, indptr[start : high + 1], indices)
        hedge_weights(chain.weights[start:stop], chain.loss[start:stop], part, chain.eta_g)


@sweep
def play_kernels(
    chain: Chain,
    first: int,
    n_kernels: int,
    x: Floats,
    y: Floats,
    f: Floats,
    wires: Wires,
    features: Map,
) -> None:
    """Run ``n_kernels`` kernels from ``first`` on through the rounds x (T, K, d), y (T, K).

    Their predictions go to f (T, K, P); ``features`` are theirs alone. Their arrays are copied out,
    to stand together in cache, and back.
    """
    n_rounds, n_learners, _ = f.shape
    part = _kernels(chain, first, n_kernels)
    spare = part.third if part.family == ADMM else part.second
    now, after = part.theta, part.theta
    predicted = np.empty((n_learners, n_kernels))
    for t in range(n_rounds):
        advance(part, now, after, t == 0, x[t], y[t], predicted, wires, features, 0, n_learners)
        for k in range(n_learners):
            copied(f[t, k, first : first + n_kernels], predicted[k])
        now = after
        after = part.theta if t % 2 else spare
    if n_rounds % 2 == 0:
        move(part.theta, now, 0, n_learners)
    close(part, wires, 0, n_learners)
    _copy_kernels(chain.theta, part.theta, first, 0)
    _copy_kernels(chain.second, part.second, first, 0)
    _copy_kernels(chain.third, part.third, first, 0)


@sweep
def _kernels(chain: Chain, first: int, n_kernels: int) -> Chain:
    theta, second, third = (
        _taken(chain.theta, first, n_kernels),
        _taken(chain.second, first, n_kernels),
        _taken(chain.third, first, n_kernels),
    )
    return Chain(
        chain.family, theta, second, third, chain.loss, chain.weights,
        chain.rho, chain.eta_l, chain.step, chain.eta_g, chain.kind, chain.shape, chain.fits,
    )  # fmt: skip


@sweep
def _taken(values: Array, first: int, n_kernels: int) -> Array:
    out = np.empty((values.shape[0], n_kernels, values.shape[2]), values.dtype)
    _copy_kernels(out, values, 0, first)
    return out


@sweep
def _copy_kernels(out: Array, values: Array, to: int, start: int) -> None:
    """Copy as many kernels as there are in the smaller: out, values (K, P, D), may be empty."""
    n_kernels = min(out.shape[1] - to, values.shape[1] - start)
    for k in range(out.shape[0]):
        for p in range(n_kernels):
            copied(out[k, to + p], values[k, start + p])


@sweep
def hedge_rounds(
    chain: Chain, y_hat: Floats, f: Floats, y: Floats, indptr: Ints, indices: Ints
) -> None:
    """Let the kernels meet, round after round: y_hat, y (T, K), f (T, K, P)."""
    n_rounds, n_learners, _ = f.shape
    for t in range(n_rounds):
        settle(chain, y_hat[t], f[t], y[t], 0, n_learners)
        weigh_rows(chain, indptr, indices, 0, n_learners)
