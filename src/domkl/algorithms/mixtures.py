"""The mixtures of DOMKRLS: experts, what weighs them, their accounts, and the corrector.

A learner has two sides: in its network, and alone. Both have the same mixtures of their own
experts, and the same law; they differ in what stands for θ, and in whose accounts weigh m and ms.
`least_squares.py` describes the parts.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from domkl.core.hedge import add_regrets, evidence, polynomial
from domkl.core.jit import inner, scalar, sweep
from domkl.core.lanes import dot
from domkl.core.losses import LOGISTIC, BuiltIn, loss_value, robust_square, sigmoid
from domkl.core.rls import shrink
from domkl.core.vectors import added_scaled, cleared, smallest
from domkl.typing import Floats

if TYPE_CHECKING:
    from domkl.algorithms.least_squares import Params, State

#: Prior weights in the mixture b: own fits; last label and lag.
OWN_PRIOR, LAST_PRIOR = 1e-3, 5e-4
#: Prior weights of the mixtures m, ms and b and of the last label.
TOP_PRIOR = np.array([0.48, 0.46, 0.05, 0.01])
N_TOP = len(TOP_PRIOR)
#: Prior weight of the learner alone after many labels, and the number of labels at half of it.
ALONE_PRIOR, ALONE_LABELS = 0.66, 200.0
#: Prior weight of the newest value before labels tell what the network is worth here, because
#: neighbors' streams may have other levels: of the lag, and the number of labels per step ahead at
#: half of it; without a lag, of the last label while it is the only one.
ONE_LABEL, FEW_LABELS = 0.5, 2.0
#: Variance within which losses at the top are squares, relative to the other accounts. An expert
#: that follows the last label errs rarely and by much, and that must count.
TOP_REACH = 4.0
#: Prior weights of no correction, A and B.
FINAL_PRIOR = np.array([0.9, 0.05, 0.05])
#: Corrector: weight of ‖w‖² relative to the squared errors, and the memories of A and B.
CORRECTOR_RIDGE, CORRECTOR_MEMORY = 10.0, (1.0, 0.999)
#: Largest error in deviations, as a clue and in regrets.
CLIP = 5.0
#: Number of clues of B, and of A, which has the first of them.
N_CLUES, N_SHORT = 6, 4
NETWORK, ALONE = 0, 1


class Side(NamedTuple):
    """What one side of a learner predicts."""

    experts: Floats  # (2F + 2,)  θs, φs, last label, lag; alone φs stand for the θs
    mixtures: Floats  # (4,)      m, ms, b, last label
    final: Floats  # (3,)         without correction, with A, with B
    clues: Floats  # (6,)         see `correct`
    y_hat: Floats  # (1,)


class Label(NamedTuple):
    """A label, and how it enters an account."""

    kind: int  # of the loss
    y: float
    weight: float
    keep: float  # what is left of the account
    variance: float  # within which losses are squares


@inner
def side_of(notes: Floats, n_fits: int, side: int) -> Side:
    """The part of a learner's row of notes that is of one side."""
    n = side * (2 * n_fits + 10 + N_CLUES)
    m = n + 2 * n_fits + 2
    end = m + 7 + N_CLUES
    final, clues = notes[m + 4 : m + 7], notes[m + 7 : end]
    return Side(notes[n:m], notes[m : m + 4], final, clues, notes[end : end + 1])


@inner
def mixed(told: Side, state: "State", k: int, side: int) -> float:
    """Write the mixtures of the experts; give the mixture of them."""
    mixtures, experts, place = told.mixtures, told.experts, len(told.experts) - 2
    mixtures[0] = dot(state.by_evidence[k, side], experts)
    experts[place] = mixtures[0]  # stands for the last label before there is one
    if has_last(state, k):
        experts[place] = state.last[k] * state.odds[k]
    mixtures[1] = dot(state.by_regret[k, side], experts)
    mixtures[2] = dot(state.by_own[k, side], experts)
    mixtures[3] = experts[place]
    return float(dot(state.top[k, side], mixtures) + rest(state.top[k, side]) * experts[place + 1])


@sweep
def mix(state: "State", params: "Params") -> None:
    """Write all weights, which follow from the accounts."""
    n_fits, is_logistic = state.sums.shape[1], params.loss.kind == LOGISTIC
    own_prior, prior = np.empty(state.own_regret.shape[2]), np.empty(2)
    for i in range(2 * n_fits, len(own_prior)):
        own_prior[i] = LAST_PRIOR
    for k in range(len(state.rounds)):
        for i in range(n_fits):
            own_prior[i] = (1 - OWN_PRIOR) * state.prior[k, i]
            own_prior[n_fits + i] = OWN_PRIOR * state.prior[k, i]
        n, labels = state.own_rounds[k], state.own_counts[k, 0]
        share = ONE_LABEL if labels == 1 and not is_logistic else 0.0
        if params.newest_lag >= 0:
            share = ONE_LABEL / (1 + (labels / (FEW_LABELS * params.horizon)) ** 2)
        for side in range(2):
            scale = loss_scale(state.loss[k, side], state.rounds[k, side], is_logistic)
            evidence(state.by_evidence[k, side], state.loss[k, side], scale, state.prior[k])
            regret, variance = state.regret[k, side], state.variance[k, side]
            polynomial(state.by_regret[k, side], regret, variance, state.prior[k])
            regret, variance = state.own_regret[k, side], state.own_variance[k, side]
            polynomial(state.by_own[k, side], regret, variance, own_prior)
            scale = params.horizon * loss_scale(state.score[k, side], n, is_logistic)
            top = state.top[k, side]
            evidence(top, state.score[k, side], scale, TOP_PRIOR)
            for j in range(N_TOP):
                top[j] *= 1 - share
            if params.newest_lag < 0:
                top[3] += share
        prior[1] = ALONE_PRIOR * labels**2 / (labels**2 + ALONE_LABELS**2)
        prior[0] = 1 - prior[1]
        scale = params.horizon * loss_scale(state.sides[k], n, is_logistic)
        evidence(state.trust[k], state.sides[k], scale, prior)


@inner
def write_weights(weights: Floats, state: "State", k: int) -> None:
    """Write the weight of each θ, each φ, the last label and the lag, before the correction."""
    n_fits = state.sums.shape[1]
    cleared(weights)
    for side in range(2):
        share, b = state.trust[k, side], state.by_own[k, side]
        top = state.top[k, side]
        m, ms, by_b, last = top[0], top[1], top[2], top[3]
        weights[2 * n_fits + 1] += share * rest(top)
        last += by_b * b[2 * n_fits]
        if not has_last(state, k):  # m stands for the last label
            m, last = m + last, 0.0
        for i in range(n_fits):
            place = i if side == NETWORK and state.counts[k, i] > 0 else n_fits + i
            by_evidence, by_regret = state.by_evidence[k, side, i], state.by_regret[k, side, i]
            weights[place] += share * (m * by_evidence + ms * by_regret + by_b * b[i])
            weights[n_fits + i] += share * by_b * b[n_fits + i]
        weights[2 * n_fits] += share * last
        if len(b) > 2 * n_fits + 1:
            weights[2 * n_fits + 1] += share * by_b * b[2 * n_fits + 1]


@inner
def rest(top: Floats) -> float:
    """What the weights at the top leave for the lag."""
    return max(1 - float(top[0] + top[1] + top[2] + top[3]), 0.0)


@inner
def has_last(state: "State", k: int) -> bool:
    """Whether the learner had a label."""
    return bool(state.noise[k, 1] > 0)


@inner
def correct(
    told: Side, f: float, state: "State", k: int, side: int, is_logistic: bool, ago: int
) -> None:
    """Write the clues, and the prediction without and with the correction.

    The clues are 1, the newest error, that of the neighbors, and that of a season ago for A; for B
    also how far the newest label and that of a season ago are from the prediction.
    """
    deviation, clues = 0.0, told.clues
    if state.own_rounds[k] > 0 and not is_logistic:
        deviation = math.sqrt(state.final[k, side, 0] / state.own_rounds[k])
    cleared(clues)
    clues[0], clues[1] = 1.0, state.errors[k, side]
    clues[2] = state.nearby[k] if side == NETWORK else 0.0
    if deviation > 0:
        clues[4] = _clipped((state.last[k] - f) / deviation)
        if ago >= 0:
            clues[3] = state.past[k, ago, 1 + side]
            clues[5] = _clipped((state.past[k, ago, 0] - f) / deviation)
    told.final[0] = f
    for j in range(2):
        fit = state.correction[k, side, N_CLUES * j : N_CLUES * (j + 1)]
        told.final[1 + j] = f + deviation * dot(fit, clues)


@inner
def add_label(state: "State", kind: int, notes: Floats, y: float, gain: Floats, k: int) -> None:
    """Add the label to all accounts of both sides, and learn their corrections.

    The first label is not in the learner's own accounts: see the page of least_squares.py.
    """
    n_fits, n, weight = state.sums.shape[1], state.own_rounds[k], notes[len(notes) - 1]
    own_keep, has = 2 * n / (2 * n + 1), has_last(state, k)
    between = Label(kind, y, weight, own_keep, 0.0)
    for side in range(2):
        told, loss, rounds = (
            side_of(notes, n_fits, side),
            state.loss[k, side],
            state.rounds[k, side],
        )
        label = Label(kind, y, weight, 2 * rounds / (2 * rounds + 1), mean_loss(loss, rounds))
        _add_losses(loss, told.experts, label)
        _add_mixture(state.regret[k, side], state.variance[k, side], told, 1, label)
        state.rounds[k, side] = label.keep * rounds + weight
        if has:
            if n > 0 and kind != LOGISTIC:
                _learn_correction(state, told, y, gain, k, side)
            score, final = state.score[k, side], state.final[k, side]
            variance = mean_loss(score, n)
            label = Label(kind, y, weight, own_keep, variance)
            _add_mixture(state.own_regret[k, side], state.own_variance[k, side], told, 2, label)
            _add_losses(
                score, told.mixtures, Label(kind, y, weight, own_keep, TOP_REACH * variance)
            )
            _add_losses(final, told.final, Label(kind, y, weight, own_keep, mean_loss(final, n)))
            _add_losses(state.sides[k, side : side + 1], told.y_hat, between)
    if has:
        state.own_rounds[k] = own_keep * n + weight


@inner
def _add_losses(account: Floats, f: Floats, label: Label) -> None:
    """Add the losses of predictions."""
    for i in range(len(account)):
        loss = _loss(label.kind, f[i], label.y, label.variance)
        account[i] = label.keep * account[i] + label.weight * loss


@inner
def _add_mixture(regret: Floats, spread: Floats, told: Side, mixture: int, label: Label) -> None:
    """Add the regrets of a mixture towards its experts."""
    f = told.mixtures[mixture]
    slope = label.weight * _slope(label.kind, f, label.y, label.variance)
    add_regrets(regret, spread, told.experts, f, slope, label.keep)


@inner
def _learn_correction(
    state: "State", told: Side, y: float, gain: Floats, k: int, side: int
) -> None:
    """Fit the error, in deviations, to the clues."""
    variance = state.final[k, side, 0] / state.own_rounds[k]
    state.errors[k, side] = 0.0
    if variance == 0:
        return
    error, n = _clipped((y - told.final[0]) / math.sqrt(variance)), N_CLUES * (N_CLUES - 1) // 2
    for j in range(2):
        fit = state.correction[k, side, N_CLUES * j : N_CLUES * (j + 1)]
        diagonal = state.clue_diagonal[k, side, N_CLUES * j : N_CLUES * (j + 1)]
        factor = state.clue_factor[k, side, n * j : n * (j + 1)]
        memory, left = CORRECTOR_MEMORY[j], error - dot(fit, told.clues)
        total = shrink(factor, diagonal, told.clues, gain, 1.0, memory, CORRECTOR_RIDGE)
        added_scaled(fit, gain, left / total)
    state.errors[k, side] = error


@scalar
def _clipped(value: float) -> float:
    """Within ±CLIP."""
    return min(max(value, -CLIP), CLIP)


@inner
def mean_loss(loss: Floats, rounds: float) -> float:
    """s², the mean loss of the best; 0 before any sample."""
    return float(smallest(loss) / rounds) if rounds > 0 else 0.0


@inner
def loss_scale(loss: Floats, rounds: float, is_logistic: bool) -> float:
    """What losses are divided by: 2s²; the logistic one is the logarithm of a probability."""
    return 1.0 if is_logistic else 2 * mean_loss(loss, rounds)


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
