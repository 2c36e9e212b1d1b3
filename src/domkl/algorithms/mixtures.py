"""The mixtures of DOMKRLS: experts, what weighs them, their accounts, and the corrector.

A learner has two sides: in its network, and alone. Both have the same mixtures of their own
experts, and the same law; they differ in what stands for θ, and in whose accounts weigh m.
`least_squares.py` describes the parts.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from domkl.core.belief import within_reach
from domkl.core.hedge import add_regrets, evidence, polynomial
from domkl.core.jit import inner, scalar, sweep
from domkl.core.lanes import dot
from domkl.core.losses import LOGISTIC, BuiltIn, loss_value, robust_square, sigmoid
from domkl.core.rls import shrink
from domkl.core.vectors import added_scaled, cleared, smallest
from domkl.typing import Floats

if TYPE_CHECKING:
    from domkl.algorithms.least_squares import Params, State

#: Prior weights in the mixture b, beside the θs: own fits together; last label and lag, each.
OWN_PRIOR, LAST_PRIOR = 1e-3, 5e-4
#: Prior weights of the mixtures m and b and of the last label.
TOP_PRIOR = np.array([0.94, 0.05, 0.01])
#: Prior weight of the learner alone after many labels, and the number of labels at half of it.
ALONE_PRIOR, ALONE_LABELS = 0.66, 200.0
#: Logarithms of the evidence by which the network may be behind the learner alone, and alone behind
#: the network: either comes back soon after it has become the better one.
BEHIND = (6.0, 30.0)
#: Prior weight of the newest value before labels tell what the network is worth here, because
#: neighbors' streams may have other levels: of the lag, and the number of labels per step ahead at
#: half of it; without a lag, of the last label while it is the only one.
ONE_LABEL, FEW_LABELS = 0.5, 2.0
#: Variance within which losses at the top are squares, relative to the other accounts. An expert
#: that follows the last label errs rarely and by much, and that must count: after a jump of the
#: level it has to win within a few labels.
TOP_REACH = 4.0
#: Prior weights of no correction, and of one.
FINAL_PRIOR = np.array([0.95, 0.05])
#: Corrector: weight of ‖w‖² relative to the squared errors; its memory is 1 − CORRECTOR_FADE.
CORRECTOR_RIDGE, CORRECTOR_FADE = 10.0, 0.001
#: Largest error in deviations, as a clue and in regrets.
CLIP = 5.0
#: Number of weights at the top, of weights at the end, and of clues.
N_TOP, N_FINAL, N_CLUES = 4, 2, 6
NETWORK, ALONE = 0, 1


class Side(NamedTuple):
    """What one side of a learner predicts."""

    experts: Floats  # (2F + 2,)  θs, φs, last label, lag; alone φs stand for the θs
    mixtures: Floats  # (4,)      m, b, last label, lag
    final: Floats  # (2,)         without and with the correction
    clues: Floats  # (6,)         see `correct`
    y_hat: Floats  # (1,)


class Label(NamedTuple):
    """A label, and how it enters an account."""

    kind: int  # of the loss
    y: float
    weight: float
    keep: float  # what is left of the account
    variance: float  # within which losses are squares


@scalar
def n_side(n_fits: int) -> int:
    """Numbers that are noted of one side."""
    return 2 * n_fits + 2 + N_TOP + N_FINAL + N_CLUES + 1


@inner
def side_of(notes: Floats, n_fits: int, side: int) -> Side:
    """The part of a learner's row of notes that is of one side."""
    row = notes[side * n_side(n_fits) : (side + 1) * n_side(n_fits)]
    i = 2 * n_fits + 2
    j, k = i + N_TOP, i + N_TOP + N_FINAL
    return Side(row[:i], row[i:j], row[j:k], row[k : k + N_CLUES], row[k + N_CLUES :])


@inner
def predict_side(told: Side, state: "State", params: "Params", ago: int, k: int, side: int) -> None:
    """Write the mixtures of the experts, the mixture of these, its correction, and the decision."""
    mixtures, experts, last = told.mixtures, told.experts, len(told.experts) - 2
    mixtures[0] = dot(state.by_regret[k, side], experts)
    # m stands for the last label before there is one
    experts[last] = state.last[k] * state.odds[k] if has_last(state, k) else mixtures[0]
    mixtures[1] = dot(state.by_own[k, side], experts)
    mixtures[2], mixtures[3] = experts[last], experts[last + 1]
    told.final[0] = dot(state.top[k, side], mixtures)
    _correct(told, state, params, ago, k, side)
    told.y_hat[0] = dot(state.decided[k, side], told.final)


@inner
def combine_sides(notes: Floats, state: "State", k: int) -> float:
    """Bring the network's prediction near that of the learner alone; give the mean of both."""
    n_fits = state.sums.shape[1]
    heard, alone = side_of(notes, n_fits, NETWORK).y_hat, side_of(notes, n_fits, ALONE).y_hat
    heard[0] = within_reach(state.bound[k], alone[0], heard[0])
    return float(state.trust[k, NETWORK] * heard[0] + state.trust[k, ALONE] * alone[0])


@sweep
def mix(state: "State", params: "Params") -> None:
    """Write all weights, which follow from the accounts."""
    n_fits, has_lag = state.sums.shape[1], params.newest_lag >= 0
    prior, sides = np.full(state.own_regret.shape[2], LAST_PRIOR), np.empty(2)
    for i in range(n_fits):
        prior[i], prior[n_fits + i] = (1 - OWN_PRIOR) / n_fits, OWN_PRIOR / n_fits
    for k in range(len(state.rounds)):
        n, labels = state.own_rounds[k], state.own_counts[k, 0]
        share = ONE_LABEL if labels == 1 and params.loss.kind != LOGISTIC else 0.0
        if has_lag:
            share = ONE_LABEL / (1 + (labels / (FEW_LABELS * params.horizon)) ** 2)
        for side in range(2):
            regret, variance = state.regret[k, side], state.variance[k, side]
            polynomial(state.by_regret[k, side], regret, variance, prior)
            regret, variance = state.own_regret[k, side], state.own_variance[k, side]
            polynomial(state.by_own[k, side], regret, variance, prior)
            top = state.top[k, side]
            _weigh(top, state.score[k, side], n, TOP_PRIOR, params)
            for j in range(len(TOP_PRIOR)):
                top[j] *= 1 - share
            top[3] = 0.0
            top[3 if has_lag else 2] += share
            _weigh(state.decided[k, side], state.final[k, side], n, FINAL_PRIOR, params)
        scale = params.horizon * _scale(state.sides[k], n, params.loss.kind)
        weigh_sides(state.trust[k], state.sides[k], scale, labels, sides)


@sweep
def weigh_sides(trust: Floats, losses: Floats, scale: float, labels: float, prior: Floats) -> None:
    """Weigh the learner in its network and the learner alone by their losses: all (2,)."""
    for side in range(2):
        losses[side] = min(losses[side], losses[1 - side] + BEHIND[side] * scale)
    prior[1] = ALONE_PRIOR * labels**2 / (labels**2 + ALONE_LABELS**2)
    prior[0] = 1 - prior[1]
    evidence(trust, losses, scale, prior)


@inner
def _weigh(weights: Floats, loss: Floats, n: float, prior: Floats, params: "Params") -> None:
    """Weigh by evidence: exp(−L/2s²h); the logistic loss is the logarithm of a probability."""
    evidence(weights, loss, params.horizon * _scale(loss, n, params.loss.kind), prior)


@inner
def _scale(loss: Floats, n: float, kind: int) -> float:
    return 1.0 if kind == LOGISTIC else 2 * mean_loss(loss, n)


@inner
def write_weights(weights: Floats, state: "State", k: int) -> None:
    """Write the weight of each θ, each φ, the last label and the lag, before the correction."""
    n_fits = state.sums.shape[1]
    cleared(weights)
    for side in range(2):
        share, b, top = state.trust[k, side], state.by_own[k, side], state.top[k, side]
        m, by_b, last = top[0], top[1], top[2] + top[1] * b[2 * n_fits]
        if not has_last(state, k):  # m stands for the last label
            m, last = m + last, 0.0
        for i in range(n_fits):
            place = i if side == NETWORK and state.counts[k, i] > 0 else n_fits + i
            weights[place] += share * (m * state.by_regret[k, side, i] + by_b * b[i])
            weights[n_fits + i] += share * by_b * b[n_fits + i]
        weights[2 * n_fits] += share * last
        lag = by_b * b[2 * n_fits + 1] if len(b) > 2 * n_fits + 1 else 0.0
        weights[2 * n_fits + 1] += share * (top[3] + lag)


@inner
def has_last(state: "State", k: int) -> bool:
    """Whether the learner had a label."""
    return bool(state.noise[k, 1] > 0)


@inner
def _correct(told: Side, state: "State", params: "Params", ago: int, k: int, side: int) -> None:
    """Write the clues, and the prediction with the correction.

    The clues are 1, the newest error, that of the neighbors, and that of a season ago; and how far
    the newest label and that of a season ago are from the prediction.
    """
    f, clues, deviation = told.final[0], told.clues, 0.0
    if state.own_rounds[k] > 0 and params.loss.kind != LOGISTIC:
        deviation = math.sqrt(state.final[k, side, 0] / state.own_rounds[k])
    cleared(clues)
    clues[0], clues[1] = 1.0, state.errors[k, side]
    clues[2] = state.nearby[k] if side == NETWORK else 0.0
    if deviation > 0:
        clues[4] = _clipped((state.last[k] - f) / deviation)
        if ago >= 0:
            clues[3] = state.past[k, ago, 1 + side]
            clues[5] = _clipped((state.past[k, ago, 0] - f) / deviation)
    told.final[1] = f + deviation * dot(state.correction[k, side], clues)


@inner
def add_label(state: "State", kind: int, notes: Floats, y: float, gain: Floats, k: int) -> None:
    """Add the label to all accounts of both sides, and learn their corrections.

    The first label is not in the learner's own accounts: see the page of least_squares.py.
    """
    n_fits, n, weight = state.sums.shape[1], state.own_rounds[k], notes[len(notes) - 1]
    keep, has = 2 * n / (2 * n + 1), has_last(state, k)
    for side in range(2):
        told, rounds = side_of(notes, n_fits, side), state.rounds[k, side]
        loss, score, final = state.loss[k, side], state.score[k, side], state.final[k, side]
        label = Label(kind, y, weight, 2 * rounds / (2 * rounds + 1), mean_loss(loss, rounds))
        _add_losses(loss, told.experts, label)
        _add_mixture(state.regret[k, side], state.variance[k, side], told, 0, label)
        state.rounds[k, side] = label.keep * rounds + weight
        if has:
            if n > 0 and kind != LOGISTIC:
                _learn_correction(state, told, y, gain, k, side)
            variance = mean_loss(score, n)
            label = Label(kind, y, weight, keep, variance)
            _add_mixture(state.own_regret[k, side], state.own_variance[k, side], told, 1, label)
            _add_losses(score, told.mixtures, Label(kind, y, weight, keep, TOP_REACH * variance))
            _add_losses(final, told.final, Label(kind, y, weight, keep, mean_loss(final, n)))
            _add_losses(
                state.sides[k, side : side + 1], told.y_hat, Label(kind, y, weight, keep, 0.0)
            )
    if has:
        state.own_rounds[k] = keep * n + weight


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
    error = _clipped((y - told.final[0]) / math.sqrt(variance))
    fit, left = state.correction[k, side], error - dot(state.correction[k, side], told.clues)
    factor, diagonal = state.clue_factor[k, side], state.clue_diagonal[k, side]
    total = shrink(factor, diagonal, told.clues, gain, 1.0, 1 - CORRECTOR_FADE, CORRECTOR_RIDGE)
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
