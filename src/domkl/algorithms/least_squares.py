"""The least-squares family: DOMKRLS.

Every learner fits its own samples by recursive least squares, with many kernels and two memories;
learners track the mean of all fits between neighbors; mixtures weigh what there is, and a small
corrector follows what the errors have in common. There is no rate to set.

**Fits.** A fit is a kernel with a memory. The first memory keeps everything (or forgets as
``forget`` says), the second one forgets within some hundred samples. They alternate over the
kernels; the last kernel, which is the linear one in the default dictionary, has both. Where the
inputs hold the newest value of a series (``newest_lag``), fits learn the change from it.

**Mean.** With n the samples behind a fit φ, learners average S = nφ and N = n; θ = S/N is the mean
of all fits, weighed by samples. Who has no samples has no weight in it, and takes it over.

**Mixtures.** Experts are the fits θ and φ, the learner's own last label, and the newest lag. Three
mixtures weigh them: ``m`` by the evidence of the θs, ``ms`` by ML-Poly over the θs, both with
accounts that are averaged between neighbors; ``b`` by ML-Poly over all, with its own accounts. The
evidence of the three, and of the last label by itself, weighs them in turn. Accounts forget in
time: with n the number of labels in one, it is multiplied by 2n/(2n + 1) before the next is added.
Then n grows by a half each label, and what is older than half of the stream counts little. Losses
are robust: see `robust_square`. A learner's own first label is in none of its own accounts: before
it, there was nothing to tell the experts apart, and its error would only hide what later ones say.

**Corrector.** The error, in units of its own deviation, is fitted by least squares on the learner's
and the neighbors' newest errors (A), and on how far the last label was from the prediction (B).
Whether to correct is decided by the evidence again. Neighbors hear the error in such units, and
no label.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms.base import (
    CompiledAlgorithm,
    Inputs,
    Net,
    Prediction,
    Sizes,
)
from domkl.algorithms.law import Law
from domkl.core.exchange import Delivery
from domkl.core.hedge import add_regrets, evidence, polynomial
from domkl.core.jit import inner, scalar, sweep
from domkl.core.kernels import Dictionary, default_bank
from domkl.core.lanes import dot
from domkl.core.losses import (
    LOGISTIC,
    BuiltIn,
    Logistic,
    Loss,
    Squared,
    loss_value,
    pull,
    robust_square,
    sigmoid,
)
from domkl.core.rls import first_factors, shrink, variance
from domkl.core.vectors import added_scaled, copied, scaled, smallest, tracked_sum
from domkl.errors import ParameterError
from domkl.typing import Array, Floats, Ints

#: Fraction by which S moves towards nφ per label, so a lost message is forgotten after about 100;
#: smaller while the mean count is below the learner's own, see `_leak`.
LEAK = 0.01
#: The second memory is 1 − FADE/horizon.
FADE = 0.01
#: Prior weights of the two memories.
MEMORY_PRIOR = (0.7, 0.3)
#: Prior weights in the mixture b: own fits; last label and lag.
OWN_PRIOR, LAST_PRIOR = 1e-3, 5e-4
#: Prior weights of the mixtures m, ms and b and of the last label.
TOP_PRIOR = np.array([0.48, 0.46, 0.05, 0.01])
N_TOP = len(TOP_PRIOR)
#: Weight of the last label while it is the only one and no lag is known: neighbors' streams may
#: have other levels, and nothing has told yet whether they do.
ONE_LABEL = 0.5
#: Variance within which losses at the top are squares, relative to the other accounts. An expert
#: that follows the last label errs rarely and by much, and that must count.
TOP_REACH = 4.0
#: Prior weights of no correction, A and B.
FINAL_PRIOR = np.array([0.9, 0.05, 0.05])
#: Corrector: weight of ‖w‖² relative to the squared errors, and the memories of A and B.
CORRECTOR_RIDGE, CORRECTOR_MEMORY = 10.0, (1.0, 0.999)
#: Largest error in deviations, as a clue and in regrets.
CLIP = 5.0
#: Deviation: the memory of its noise is 1 − NOISE_FADE/horizon, and its width follows the coverage
#: by WIDTH_RATE/horizon.
NOISE_FADE, WIDTH_RATE = 0.03, 0.15
#: Weight of the network's noise, in labels, before the learner's own first label.
FIRST_NOISE = 5.0
#: Share of labels that should lie within 1.96 deviations.
COVERAGE = 0.95
#: Least weight of the linear kernel in `function`, because it carries the lag.
LEAST_WEIGHT = 1e-6
#: Least curvature of the logistic loss; its inverse is a noise variance.
LEAST_CURVATURE = 1e-6
MEAN: Delivery = "metropolis"


class State(NamedTuple):
    """What a DOMKRLS learner keeps: F fits, E = 2F + 1 experts, or 2F + 2 with a lag."""

    # as far as it is heard, means over learners; with messages of the same names
    sums: Array  # (K, F, D)             S, of nφ
    counts: Floats  # (K, 2)             N, of n, for each memory
    loss: Floats  # (K, F)               of the θs
    regret: Floats  # (K, F)             R of ms
    variance: Floats  # (K, F)           V of ms
    rounds: Floats  # (K,)               number of labels in these three accounts
    # the learner's own
    own: Array  # (K, F, D)              φ
    diagonal: Array  # (K, F, D)         of its C = U D Uᵀ, core/rls.py
    factor: Array  # (K, F, D(D − 1)/2)  and U
    own_counts: Floats  # (K, 2)         n, for each memory
    own_regret: Floats  # (K, E)         R of b
    own_variance: Floats  # (K, E)       V of b
    score: Floats  # (K, 4)              losses of m, ms and b, and of the last label
    final: Floats  # (K, 3)              losses without correction, with A, with B
    own_rounds: Floats  # (K,)           number of labels in these four accounts
    correction: Floats  # (K, 2 · 4)     of A and B, for the clues: 1, own, nearby, gap
    clue_diagonal: Floats  # (K, 2 · 4)  of their C
    clue_factor: Floats  # (K, 2 · 6)
    residual: Floats  # (K,)             newest error, in deviations
    nearby: Floats  # (K,)               mean of the neighbors'
    last: Floats  # (K,)                 newest label, 0 before
    turns: Floats  # (K, 2)              counts of labels ±1 that repeated, and that changed
    odds: Floats  # (K,)                 of ±1, log-odds that the next label is the last one; else 1
    noise: Floats  # (K, 2)              sum of squared errors, and their number
    width: Floats  # (K,)                logarithm of what deviations are multiplied by
    prior: Floats  # (K, F)              weights before any loss
    lag: Floats  # (K,)                  column of the newest lag, -1 without
    is_linear: Floats  # (K,)            1 where the last kernel is the linear one, else 0
    # what follows from the accounts
    by_evidence: Floats  # (K, F)        weights of m
    by_regret: Floats  # (K, F)          of ms
    by_own: Floats  # (K, E)             of b
    top: Floats  # (K, 4)                of the three, and of the last label


class Message(NamedTuple):
    """What a DOMKRLS learner says."""

    sums: Array  # (K, F, D)
    counts: Floats  # (K, 2)
    loss: Floats  # (K, F)
    regret: Floats  # (K, F)
    variance: Floats  # (K, F)
    rounds: Floats  # (K,)
    residual: Floats  # (K,)  0 without a label in this round


class Params(NamedTuple):
    """The parameters, as the law takes them."""

    forget: float
    ridge: float
    loss: Any
    newest_lag: int  # -1: there is none
    horizon: float


class Note(NamedTuple):
    """What a learner notes of a prediction until its label comes."""

    experts: Floats  # (2F + 2,)  θs, φs, last label, lag
    mixtures: Floats  # (4,)      m, ms, b, last label
    final: Floats  # (3,)         without correction, with A, with B
    shares: Floats  # (F,)        weight of each fit in the prediction, θ and φ together
    clues: Floats  # (4,)
    spread: Floats  # (2,)        of the deviation told then: s², -1 if unknown, and its width
    weight: Floats  # (1,)        of the sample in fits and accounts, 1 unless the host says so


@inner
def _noted(notes: Floats, n_fits: int) -> Note:
    """A learner's row of notes, by name."""
    n, m = 2 * n_fits + 2, 2 * n_fits + 2 + N_TOP
    end = m + 3 + n_fits
    parts = (notes[n:m], notes[m : m + 3], notes[m + 3 : end], notes[end : end + 4])
    rest = (notes[end + 4 : end + 6], notes[end + 6 :])
    return Note(notes[:n], parts[0], parts[1], parts[2], parts[3], rest[0], rest[1])


def n_notes(state: State) -> int:
    """Numbers in a `Note`."""
    n_fits: int = state.sums.shape[1]
    return 3 * n_fits + N_TOP + 12


@scalar
def _memory(fit: int, n_fits: int) -> int:
    """Which memory a fit has: they alternate, and the last kernel has both."""
    if fit >= n_fits - 2:
        return fit - (n_fits - 2)
    return fit % 2


def memories(n_fits: int) -> Ints:
    """The memory of each fit, (F,)."""
    return np.array([_memory(i, n_fits) for i in range(n_fits)])


@sweep
def predict(state: State, params: Params, inputs: Inputs, prediction: Prediction) -> None:
    """The experts, the mixtures of them, and the correction."""
    n_fits, n_kernels = state.sums.shape[1], inputs.z.shape[1]
    is_logistic = params.loss.kind == LOGISTIC
    final = np.empty(3)
    for k in range(len(prediction.y_hat)):
        note = _noted(prediction.notes[k], n_fits)
        note.spread[0], note.spread[1], note.weight[0] = _noise(state, k), state.width[k], 1.0
        _consult(note.experts, state, params, inputs, k)
        note.mixtures[0] = dot(state.by_evidence[k], note.experts)
        note.experts[2 * n_fits] = _last(state, k, note.mixtures[0])
        note.mixtures[1] = dot(state.by_regret[k], note.experts)
        note.mixtures[2] = dot(state.by_own[k], note.experts)
        note.mixtures[3] = note.experts[2 * n_fits]
        note.final[0] = dot(state.top[k], note.mixtures)
        for i in range(n_fits):
            note.shares[i] = _share(state, k, i) + _own_share(state, k, i)
        _correct(note, state, k, is_logistic)
        scale = params.horizon * _scale(state.final[k], state.own_rounds[k], is_logistic)
        evidence(final, state.final[k], scale, FINAL_PRIOR, 0.0)
        prediction.y_hat[k] = dot(final, note.final)
        for p in range(n_kernels):
            prediction.by_kernel[k, p] = _by_kernel(note, p, n_fits)


@inner
def _consult(experts: Floats, state: State, params: Params, inputs: Inputs, k: int) -> None:
    """Write what θs, φs and the lag predict."""
    n_fits, n_kernels = state.sums.shape[1], inputs.z.shape[1]
    base = inputs.x[k, params.newest_lag] if params.newest_lag >= 0 else 0.0
    for i in range(n_fits):
        z = inputs.z[k, min(i, n_kernels - 1)]
        n = state.counts[k, _memory(i, n_fits)]
        mean = float(dot(state.sums[k, i], z)) / n if n > 0 else 0.0
        experts[i] = base + mean
        experts[n_fits + i] = base + float(dot(state.own[k, i], z))
    experts[2 * n_fits] = 0.0
    experts[2 * n_fits + 1] = base


@sweep
def mix(state: State, params: Params) -> None:
    """Write the weights of m, ms and b, and at the top, which follow from the accounts."""
    n_fits, is_logistic = state.sums.shape[1], params.loss.kind == LOGISTIC
    own_prior = np.empty(state.own_regret.shape[1])
    for i in range(2 * n_fits, len(own_prior)):
        own_prior[i] = LAST_PRIOR
    for k in range(len(state.rounds)):
        scale = _scale(state.loss[k], state.rounds[k], is_logistic)
        evidence(state.by_evidence[k], state.loss[k], scale, state.prior[k], 0.0)
        polynomial(state.by_regret[k], state.regret[k], state.variance[k], state.prior[k])
        for i in range(n_fits):
            own_prior[i] = (1 - OWN_PRIOR) * state.prior[k, i]
            own_prior[n_fits + i] = OWN_PRIOR * state.prior[k, i]
        polynomial(state.by_own[k], state.own_regret[k], state.own_variance[k], own_prior)
        scale = params.horizon * _scale(state.score[k], state.own_rounds[k], is_logistic)
        evidence(state.top[k], state.score[k], scale, TOP_PRIOR, 0.0)
        has_one = _has_last(state, k) and state.own_rounds[k] == 0
        if has_one and not is_logistic and params.newest_lag < 0:
            for j in range(N_TOP):
                state.top[k, j] *= 1 - ONE_LABEL
            state.top[k, 3] += ONE_LABEL


@inner
def _share(state: State, k: int, fit: int) -> float:
    """The weight of a fit's θ in the mixture of mixtures."""
    top, b = state.top[k], state.by_own[k, fit]
    m, ms = state.by_evidence[k, fit], state.by_regret[k, fit]
    shares = top[0] * m + top[1] * ms + top[2] * b
    if not _has_last(state, k):  # m stands for the last label, see `_last`
        shares += _last_weight(state, k) * m
    return float(shares)


@inner
def _own_share(state: State, k: int, fit: int) -> float:
    """The weight of a fit's φ."""
    return float(state.top[k, 2] * state.by_own[k, state.sums.shape[1] + fit])


@inner
def _last_share(state: State, k: int) -> float:
    """The weight of the last label."""
    return _last_weight(state, k) if _has_last(state, k) else 0.0


@inner
def _last_weight(state: State, k: int) -> float:
    """The weight of the last label, or of what stands for it."""
    return float(state.top[k, 3] + state.top[k, 2] * state.by_own[k, 2 * state.sums.shape[1]])


@inner
def _has_last(state: State, k: int) -> bool:
    """Whether the learner had a label."""
    return bool(state.noise[k, 1] > 0)


@inner
def _last(state: State, k: int, otherwise: float) -> float:
    """What the learner's last label predicts, the mean of the fits before there is one.

    Of labels ±1 the log-odds, by how often a label was that of before.
    """
    return float(state.last[k] * state.odds[k]) if _has_last(state, k) else otherwise


@inner
def _correct(note: Note, state: State, k: int, is_logistic: bool) -> None:
    """Write the clues, and the prediction with the corrections A and B."""
    deviation = 0.0
    if state.own_rounds[k] > 0 and not is_logistic:
        deviation = math.sqrt(state.final[k, 0] / state.own_rounds[k])
    clues, f = note.clues, note.final[0]
    clues[0], clues[1], clues[2], clues[3] = 1.0, state.residual[k], state.nearby[k], 0.0
    if deviation > 0:
        clues[3] = _clipped((state.last[k] - f) / deviation)
    for j in range(2):
        note.final[1 + j] = f + deviation * dot(state.correction[k, 4 * j : 4 * j + 4], clues)


@inner
def _by_kernel(note: Note, kernel: int, n_fits: int) -> float:
    """What the fits of a kernel predict, by the weights they have in the mixture."""
    total, weight, last = 0.0, 0.0, n_fits - 2
    for i in range(kernel, n_fits if kernel == last else kernel + 1):
        total += note.shares[i] * note.experts[i]
        weight += note.shares[i]
    return total / weight if weight > 0 else note.experts[kernel]


@sweep
def local_step(
    state: State,
    params: Params,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    net: Net,
    message: Message,
) -> None:
    """Take each sample into its learner's fits and accounts, and say what the means become.

    A learner without a label, NaN, says again what its means are.
    """
    n_fits = state.sums.shape[1]
    gain = np.empty(state.sums.shape[2], state.sums.dtype)
    clue_gain = np.empty(4)
    for k in range(len(y)):
        if math.isnan(y[k]):
            _repeat(state, message, k)
            continue
        note = _noted(prediction.notes[k], n_fits)
        _add_shared(state, params, message, note, y[k], k)
        message.residual[k] = _learn_correction(state, params, note, y[k], clue_gain, k)
        _add_own(state, params, note, y[k], k)
        reach = _learn_fits(state, params, inputs, note, y[k], gain, message, k)
        _learn_deviation(state, params, note, y[k] - prediction.y_hat[k], reach, k)
        if params.loss.kind == LOGISTIC:
            _count_turn(state, y[k], k)
        state.last[k] = y[k]


@inner
def _count_turn(state: State, y: float, k: int) -> None:
    """Count whether a label of ±1 is that of before."""
    if state.last[k] != 0:
        state.turns[k, 0 if state.last[k] == y else 1] += 1
    state.odds[k] = math.log((1 + state.turns[k, 0]) / (1 + state.turns[k, 1]))


@sweep
def _repeat(state: State, message: Message, k: int) -> None:
    """Say what was said before."""
    for i in range(state.sums.shape[1]):
        copied(message.sums[k, i], state.sums[k, i])
    copied(message.counts[k], state.counts[k])
    copied(message.loss[k], state.loss[k])
    copied(message.regret[k], state.regret[k])
    copied(message.variance[k], state.variance[k])
    message.rounds[k] = state.rounds[k]
    message.residual[k] = 0.0


@inner
def _add_shared(
    state: State, params: Params, message: Message, note: Note, y: float, k: int
) -> None:
    """Add the label to the accounts of m and ms."""
    n_fits, n, kind = len(note.shares), state.rounds[k], params.loss.kind
    weight = note.weight[0]
    keep, variance = 2 * n / (2 * n + 1), _mean_loss(state.loss[k], n)
    for i in range(n_fits):
        loss = _loss(kind, note.experts[i], y, variance)
        message.loss[k, i] = keep * state.loss[k, i] + weight * loss
    slope, thetas = weight * _slope(kind, note.mixtures[1], y, variance), note.experts[:n_fits]
    before, spread_before = state.regret[k], state.variance[k]
    after, spread = message.regret[k], message.variance[k]
    add_regrets(after, spread, before, spread_before, thetas, note.mixtures[1], slope, keep)
    message.rounds[k] = keep * n + weight


@inner
def _add_own(state: State, params: Params, note: Note, y: float, k: int) -> None:
    """Add the label to the accounts of b, at the top, and of the corrections.

    Not the first one: see the module's page.
    """
    if not _has_last(state, k):
        return
    n, kind, weight = state.own_rounds[k], params.loss.kind, note.weight[0]
    keep, variance = 2 * n / (2 * n + 1), _mean_loss(state.score[k], n)
    slope, regret = weight * _slope(kind, note.mixtures[2], y, variance), state.own_regret[k]
    spread, experts = state.own_variance[k], note.experts[: len(regret)]
    add_regrets(regret, spread, regret, spread, experts, note.mixtures[2], slope, keep)
    final_variance = _mean_loss(state.final[k], n)
    for j in range(N_TOP):
        loss = _loss(kind, note.mixtures[j], y, TOP_REACH * variance)
        state.score[k, j] = keep * state.score[k, j] + weight * loss
    for j in range(3):
        loss = _loss(kind, note.final[j], y, final_variance)
        state.final[k, j] = keep * state.final[k, j] + weight * loss
    state.own_rounds[k] = keep * n + weight


@inner
def _learn_correction(
    state: State, params: Params, note: Note, y: float, gain: Floats, k: int
) -> float:
    """Fit the error, in deviations, to the clues; give it."""
    n = state.own_rounds[k]
    if n == 0 or state.final[k, 0] == 0 or params.loss.kind == LOGISTIC:
        return 0.0
    error = _clipped((y - note.final[0]) / math.sqrt(state.final[k, 0] / n))
    for j in range(2):
        fit = state.correction[k, 4 * j : 4 * j + 4]
        left = error - dot(fit, note.clues)
        diagonal = state.clue_diagonal[k, 4 * j : 4 * j + 4]
        factor = state.clue_factor[k, 6 * j : 6 * j + 6]
        memory = CORRECTOR_MEMORY[j]
        step = left / shrink(factor, diagonal, note.clues, gain, 1.0, memory, CORRECTOR_RIDGE)
        added_scaled(fit, gain, step)
    state.residual[k] = error
    return error


@inner
def _learn_fits(
    state: State,
    params: Params,
    inputs: Inputs,
    note: Note,
    y: float,
    gain: Array,
    message: Message,
    k: int,
) -> float:
    """Take the sample into all fits; give zᵀCz, their mean by the weights of the prediction."""
    n_fits, n_kernels, real = len(note.shares), inputs.z.shape[1], state.sums.dtype.type
    base = inputs.x[k, params.newest_lag] if params.newest_lag >= 0 else 0.0
    forgets, reach = (params.forget, 1 - FADE / params.horizon), 0.0
    after = (forgets[0] * state.own_counts[k, 0] + 1, forgets[1] * state.own_counts[k, 1] + 1)
    leaks = (_leak(state, after[0], k, 0), _leak(state, after[1], k, 1))
    for i in range(n_fits):
        j, z = _memory(i, n_fits), inputs.z[k, min(i, n_kernels - 1)]
        own, diagonal, factor = state.own[k, i], state.diagonal[k, i], state.factor[k, i]
        n, more = real(after[j]), real(after[j] - state.own_counts[k, j])
        f = float(dot(own, z))
        given = (y - base, note.weight[0], forgets[j], params.ridge, params.loss)
        step, open_part = _fit_step(factor, diagonal, z, gain, f, *given)
        said, total = message.sums[k, i], state.sums[k, i]
        tracked_sum(own, said, total, gain, real(step), n, more, real(leaks[j]))
        reach += note.shares[i] * open_part
    for j in range(2):
        moved = state.counts[k, j] + (after[j] - state.own_counts[k, j])
        message.counts[k, j] = moved + leaks[j] * (after[j] - moved)
        state.own_counts[k, j] = after[j]
    return reach


@inner
def _leak(state: State, n: float, k: int, j: int) -> float:
    """LEAK · min(1, N/n)², for a memory and its count after the label.

    Where n is above N, because others have fewer samples, the leak adds to S what later steps of
    the fit do not correct: a fit of now, which is an old one soon.
    """
    share = min(1.0, (state.counts[k, j] + (n - state.own_counts[k, j])) / n)
    return float(LEAK * share * share)


@inner
def _fit_step(
    factor: Array,
    diagonal: Array,
    z: Array,
    gain: Array,
    f: float,
    y: float,
    weight: float,
    forget: float,
    ridge: float,
    loss: Any,
) -> tuple[float, float]:
    """Write the gain Cz and take the sample into C; give the fit's step along the gain, and zᵀCz.

    For the logistic loss φ⁺ = argmin ℓ(φᵀz, y) + ½ (φ − φ_k)ᵀ(C/forget)⁻¹(φ − φ_k). That is one
    scalar equation, core/losses.py, and never oversteps; C then takes in the loss's curvature at
    the solution. A weight w makes the squared loss's noise variance 1/w, and multiplies the
    logistic loss.
    """
    if loss.kind != LOGISTIC:
        total = float(shrink(factor, diagonal, z, gain, 1 / weight, forget, ridge))
        return (y - f) / total, total - forget / weight
    open_part = float(variance(factor, diagonal, z))
    reach = weight * open_part / forget
    slope = pull(loss, f, y, reach)
    chance = sigmoid(f - reach * slope)
    noise = 1 / max(weight * chance * (1 - chance), LEAST_CURVATURE)
    shrink(factor, diagonal, z, gain, noise, forget, ridge)
    return float(-weight * slope / forget), open_part


@inner
def _learn_deviation(
    state: State, params: Params, note: Note, error: float, reach: float, k: int
) -> None:
    """Compare an error with the deviation that was told: learn its width, and the noise.

    Errors of h steps ahead overlap: h of them tell about as much as one.
    """
    if note.spread[0] >= 0:
        told = math.exp(note.spread[1]) * _foretold(note, note.spread[0], reach)
        if told > 0:
            is_outside = abs(error) > 1.96 * told
            excess = (1.0 if is_outside else 0.0) - (1 - COVERAGE)
            state.width[k] += WIDTH_RATE / params.horizon * excess
    n = state.noise[k, 1]
    keep, variance = min(2 * n / (2 * n + 1), 1 - NOISE_FADE / params.horizon), 0.0
    if n > 0:
        variance = state.noise[k, 0] / n
    square = robust_square(error / math.sqrt(1 + reach), variance)
    state.noise[k, 0] = keep * state.noise[k, 0] + square
    state.noise[k, 1] = keep * n + 1


@inner
def _noise(state: State, k: int) -> float:
    """s²; -1 before the first label of the learner and its neighbors.

    The network's s² counts as a few labels beside the learner's own: less, the more there are.
    """
    total, n = state.noise[k, 0], state.noise[k, 1]
    if state.rounds[k] > 0:
        heard = FIRST_NOISE / (1 + n)
        total, n = total + heard * _mean_loss(state.loss[k], state.rounds[k]), n + heard
    return float(total / n) if n > 0 else -1.0


@inner
def _foretold(note: Note, noise: float, reach: float) -> float:
    """√ (s² (1 + zᵀCz) + Σ_i w_i (f_i − f)²): noise, what samples leave open, disagreement."""
    return math.sqrt(noise * (1 + reach) + _disagreement(note))


@inner
def _disagreement(note: Note) -> float:
    """Σ_i w_i (f_i − f)² over the fits."""
    total = 0.0
    for i in range(len(note.shares)):
        total += note.shares[i] * (note.experts[i] - note.final[0]) ** 2
    return total


@sweep
def merge(state: State, params: Params, heard: Message, net: Net) -> None:
    """Keep the means of own and neighbors' sums and accounts.

    A learner that has no sample of its own yet takes θ for its fits.
    """
    n_fits, real = state.sums.shape[1], state.sums.dtype.type
    for k in range(len(heard.rounds)):
        copied(state.counts[k], heard.counts[k])
        copied(state.loss[k], heard.loss[k])
        copied(state.regret[k], heard.regret[k])
        copied(state.variance[k], heard.variance[k])
        state.rounds[k] = heard.rounds[k]
        state.nearby[k] = heard.residual[k] / net.degree[k] if net.degree[k] > 0 else 0.0
        for i in range(n_fits):
            copied(state.sums[k, i], heard.sums[k, i])
            n = state.counts[k, _memory(i, n_fits)]
            if state.own_counts[k, 0] == 0 and n > 0:
                scaled(state.own[k, i], state.sums[k, i], real(1 / n))
    mix(state, params)


@sweep
def function(state: State) -> tuple[Array, Floats]:
    """The mixture before it is corrected, as Σ_p q_p θ_pᵀz_p: (K, P, D), (K, P).

    Last label and lag are functions of the linear kernel's features; without that kernel they
    are left out.
    """
    n_learners, n_fits, n_features = state.sums.shape
    theta = np.zeros((n_learners, n_fits - 1, n_features), state.sums.dtype)
    weights, real = np.zeros((n_learners, n_fits - 1)), state.sums.dtype.type
    for k in range(n_learners):
        _write_weights(weights[k], state, k)
        for i in range(n_fits):
            p, n = min(i, n_fits - 2), state.counts[k, _memory(i, n_fits)]
            # shares of the kernel's weight, at most 1: by themselves they may be below float32
            q = weights[k, p] if weights[k, p] > 0 else 1.0
            if n > 0:
                added_scaled(theta[k, p], state.sums[k, i], real(_share(state, k, i) / q / n))
            added_scaled(theta[k, p], state.own[k, i], real(_own_share(state, k, i) / q))
        if state.is_linear[k] > 0:
            _add_persistence(theta[k, n_fits - 2], weights[k, n_fits - 2], state, k)
    return theta, weights


@inner
def _write_weights(weights: Floats, state: State, k: int) -> None:
    """The weights of a learner's kernels, (P,)."""
    n_fits = state.sums.shape[1]
    for i in range(n_fits):
        weights[min(i, n_fits - 2)] += _share(state, k, i) + _own_share(state, k, i)
    if state.is_linear[k] > 0:
        share = _last_share(state, k)
        if state.lag[k] >= 0:
            share += state.top[k, 2] * state.by_own[k, 2 * n_fits + 1]
        weights[n_fits - 2] = max(weights[n_fits - 2] + share, LEAST_WEIGHT)


@inner
def _add_persistence(theta: Array, weight: float, state: State, k: int) -> None:
    """Add last label and lag to the linear kernel's part of the function, of this weight."""
    n_fits, lag, share = state.sums.shape[1], int(state.lag[k]), _last_share(state, k)
    constant = _n_used(state.diagonal[k, n_fits - 1]) - 1
    theta[constant] += share / weight * _last(state, k, 0.0)
    if lag >= 0:
        theta[lag] += (1 - share) / weight


@inner
def _n_used(diagonal: Array) -> int:
    """Number of features that are no padding; the linear kernel's last is the constant."""
    n = 0
    for i in range(diagonal.size):
        n += 1 if diagonal[i] > 0 else 0
    return n


@sweep
def deviation(
    state: State, params: Params, inputs: Inputs, prediction: Prediction, out: Floats
) -> None:
    """Write the standard deviation of each prediction, (K,), by its measured coverage.

    For the logistic loss that of f itself, without noise and s² = 1. Infinite where nothing is
    known: before the first sample of a learner and its neighbors.
    """
    z, n_fits, n_kernels = inputs.z, state.sums.shape[1], inputs.z.shape[1]
    for k in range(len(out)):
        note, reach = _noted(prediction.notes[k], n_fits), 0.0
        for i in range(n_fits):
            factor, diagonal = state.factor[k, i], state.diagonal[k, i]
            open_part = float(variance(factor, diagonal, z[k, min(i, n_kernels - 1)]))
            reach += note.shares[i] * open_part
        if params.loss.kind == LOGISTIC:
            out[k] = math.sqrt(reach + _disagreement(note))
        else:
            noise = _noise(state, k)
            known = _foretold(note, max(noise, 0.0), reach)
            out[k] = math.exp(state.width[k]) * known if noise >= 0 else np.inf


@scalar
def _clipped(value: float) -> float:
    """Within ±CLIP."""
    return min(max(value, -CLIP), CLIP)


@inner
def _mean_loss(loss: Floats, rounds: float) -> float:
    """s², the mean loss of the best; 0 before any sample."""
    return float(smallest(loss) / rounds) if rounds > 0 else 0.0


@inner
def _scale(loss: Floats, rounds: float, is_logistic: bool) -> float:
    """What losses are divided by: 2s²; the logistic one is the logarithm of a probability."""
    return 1.0 if is_logistic else 2 * _mean_loss(loss, rounds)


@scalar
def _loss(kind: int, f: float, y: float, variance: float) -> float:
    if kind == LOGISTIC:
        return loss_value(BuiltIn(LOGISTIC, 0.0), f, y)
    return robust_square(y - f, variance)


@scalar
def _slope(kind: int, f: float, y: float, variance: float) -> float:
    """Of the loss at a prediction; errors count CLIP deviations at most."""
    if kind == LOGISTIC:
        return -y * sigmoid(-y * f)
    limit = CLIP * math.sqrt(variance)
    return min(max(f - y, -limit), limit) if limit > 0 else f - y


@dataclass(frozen=True, repr=False)
class DOMKRLS(CompiledAlgorithm):
    """Learn with many kernels by recursive least squares, without a learning rate to choose.

    φ_k⁺ = φ_k + C_k z (y − φ_kᵀz)/(1 + zᵀC_k z),   n⁺ = n + 1,
    S_k⁺ = Σ_ℓ a_kℓ (S_ℓ + n⁺φ_ℓ⁺ − nφ_ℓ),   N_k⁺ = Σ_ℓ a_kℓ (N_ℓ + n⁺ − n),   θ_k = S_k/N_k

    with Metropolis weights a: every θ tracks the mean of all fits φ, weighted by their numbers of
    samples. docs/explanation/domkrls.md describes how θ and φ are combined.

    Parameters
    ----------
    forget : float
        The factor by which the weight of a sample in the first of two memories is multiplied each
        round. That of the second is 1 − 0.01/horizon; together they follow drift without tuning.
    ridge : float
        Weight of ‖φ‖² relative to the squared errors; ten times that for every second kernel except
        the linear one, so that similar neighboring kernels of a dictionary try two values.
    loss : Loss
        Squared() or Logistic(). With the latter predictions are log-odds, and nothing is corrected.
    newest_lag : int, optional
        The input that holds the newest value of the target, if there is one.
    steps_ahead : int, optional
        The horizon: how many steps ahead it predicts; by default one more than the delay of
        the labels.
    """

    forget: float = 1.0
    ridge: float = 1e-3
    loss: Loss = Squared()
    newest_lag: int | None = None
    steps_ahead: int | None = None

    takes_missing = True
    relative_cost = 6.0  # as benchmarks/bench_domkrls.py measures it
    law = Law(
        State,
        Message,
        predict,
        local_step,
        merge,
        function,
        deviation,
        notes=n_notes,
        exchange={**dict.fromkeys(Message._fields, MEAN), "residual": "sum"},
    )

    def __post_init__(self) -> None:
        checks.fraction("forget", self.forget)
        checks.positive("ridge", self.ridge)
        if not isinstance(self.loss, (Squared, Logistic)):
            raise ParameterError(f"loss must be Squared() or Logistic(), got {self.loss!r}")
        if self.newest_lag is not None:
            checks.whole("newest_lag", self.newest_lag, 0)
            if isinstance(self.loss, Logistic):
                raise ParameterError(
                    f"newest_lag must be None for Logistic(), got {self.newest_lag};"
                    " labels of ±1 have no change to learn"
                )
        if self.steps_ahead is not None:
            checks.whole("steps_ahead", self.steps_ahead, 1)

    def __repr__(self) -> str:
        """Without what is left to the data."""
        given = {name: value for name, value in self.parameters().items() if value is not None}
        return f"DOMKRLS({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @cached_property
    def compiled(self) -> Params:
        """The parameters as the law takes them."""
        lag = -1 if self.newest_lag is None else int(self.newest_lag)
        horizon = 1 if self.steps_ahead is None else self.steps_ahead
        return Params(
            float(self.forget), float(self.ridge), self.loss.compiled, lag, float(horizon)
        )

    def init(self, sizes: Sizes) -> State:
        """All zero, C = I/ridge."""
        if self.newest_lag is not None and self.newest_lag >= sizes.n_inputs:
            raise ParameterError(
                f"newest_lag must be below the {sizes.n_inputs} inputs, got {self.newest_lag}"
            )
        n, n_fits = sizes.n_learners, sizes.n_kernels + 1
        lengths, shape = (*sizes.lengths, sizes.lengths[-1]), (n, n_fits, sizes.n_features)
        ridges = np.full(sizes.n_kernels, float(self.ridge))
        ridges[1 : sizes.n_kernels - sizes.linear : 2] *= 10
        ridges = np.append(ridges, ridges[-1])
        factor, diagonal = (
            np.tile(each.astype(sizes.dtype), (n, 1, 1))
            for each in first_factors(lengths, sizes.n_features, ridges)
        )
        clue_factor, clue_diagonal = (
            np.tile(each.ravel(), (n, 1)) for each in first_factors((3, 4), 4, CORRECTOR_RIDGE)
        )
        n_experts = 2 * n_fits + (1 if self.newest_lag is None else 2)
        prior, lag = first_weights(n_fits, sizes.linear), self.compiled.newest_lag
        by_fit, by_expert = (n, n_fits), (n, n_experts)
        shapes = dict.fromkeys(("counts", "own_counts", "turns", "noise"), (n, 2))
        shapes |= dict.fromkeys(("loss", "regret", "variance", "by_evidence", "by_regret"), by_fit)
        shapes |= dict.fromkeys(("own_regret", "own_variance", "by_own"), by_expert)
        shapes |= {"score": (n, N_TOP), "top": (n, N_TOP), "final": (n, 3), "correction": (n, 8)}
        zeros: dict[str, Any] = {f: np.zeros(shapes.get(f, n)) for f in State._fields}
        zeros |= {f: np.zeros(shape, sizes.dtype) for f in ("sums", "own")}
        given = {"diagonal": diagonal, "factor": factor, "odds": np.ones(n)}
        given |= {"clue_diagonal": clue_diagonal, "clue_factor": clue_factor}
        given |= {"prior": np.tile(prior, (n, 1)), "lag": np.full(n, float(lag))}
        state = State(**(zeros | given | {"is_linear": np.full(n, float(sizes.linear))}))
        mix(state, self.compiled)
        return state

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """Say again what the means are."""
        message = self.message(state)
        for k in range(len(state.rounds)):
            _repeat(state, message, k)
        return state, message

    def delayed(self, delay: int) -> "DOMKRLS":
        """With a horizon of one more, unless one is set."""
        is_set = self.steps_ahead is not None or delay == 0
        return self if is_set else replace(self, steps_ahead=delay + 1)

    @property
    def second_memory(self) -> float:
        """Of fits that forget: 1 − 0.01/horizon."""
        return 1 - FADE / self.compiled.horizon

    @property
    def most_counts(self) -> tuple[float, float]:
        """The most samples that each memory holds.

        A newcomer's label adds 1 to the mean that it took over, and the leak takes 1 % of it.
        """
        forgets = (self.forget, self.second_memory)
        first, second = (np.inf if f == 1 else max(1 / (1 - f), 1 / LEAK) for f in forgets)
        return first, second

    def bank(self) -> Dictionary:
        """With the linear kernel."""
        return default_bank()


def first_weights(n_fits: int, is_linear: bool) -> Floats:
    """The fits' weights before any loss, (F,): the linear kernel's are half.

    Within the linear kernel, and within the others, memories have the shares MEMORY_PRIOR.
    """
    memory = memories(n_fits)
    weights: Floats = np.array(MEMORY_PRIOR)[memory]
    split = n_fits - 2 if is_linear and n_fits > 2 else 0
    for group in (slice(0, split), slice(split, n_fits)):
        for j in range(2):
            mine = memory[group] == j
            weights[group][mine] /= max(mine.sum(), 1)
        if split:
            weights[group] /= 2 * weights[group].sum()
    weights /= weights.sum()
    return weights
