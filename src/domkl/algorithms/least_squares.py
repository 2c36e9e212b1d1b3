"""The least-squares family: DOMKRLS.

Every learner fits its own samples by recursive least squares, with many kernels and two memories;
learners track the mean of all fits between neighbors; mixtures weigh what there is, and a small
corrector follows what the errors have in common. A wrong sample moves nobody far. There is no rate
to set.

**Fits.** A fit is a kernel with a memory. The first memory keeps everything (or forgets as
``forget`` says), the second one forgets within some hundred samples. They alternate over the
kernels; the last kernel, which is the linear one in the default dictionary, has both. Where the
inputs hold the newest value of a series (``newest_lag``), fits learn the change from it.

**Mean.** With n the samples behind a fit φ, learners average S = nφ and N = n of each fit; θ = S/N
is the mean of all fits, weighed by samples. Who has no samples has no weight in it, and predicts
with it. Its own fits begin at zero with its own first sample.

**Sides.** A learner has two sides: in its network, and alone. Both have the mixtures and the
corrector that follow, with accounts of their own. Alone, φ stands for θ, and nothing is heard: this
side is what `Alone` makes of the algorithm. The evidence of both sides weighs them. The prior
weight of the side that is alone is 0.66 n²/(n² + 200²) after n own labels.

**Mixtures.** Experts are the fits θ and φ, the learner's own last label, and the newest lag. Two
mixtures weigh them: ``m`` by ML-Poly over the θs, with accounts that are averaged between neighbors
on the side of the network; ``b`` by ML-Poly over all, with its own accounts. The evidence of the
two, and of the last label by itself, weighs them in turn. A lag has half of the weight before the
first label, and less with each, because nothing tells yet whether the network's streams are like
the learner's. Accounts forget in time: with n the number of labels in one, it is multiplied by
2n/(2n + 1) before the next is added. Then n grows by a half each label, and what is older than half
of the stream counts little. Losses are robust: see `robust_square`; those of the sides are squares.
A learner's own first label is in none of its own accounts: before it, there was nothing to tell the
experts apart, and its error would only hide what later ones say. mixtures.py has all of this.

**Corrector.** The error, in units of its own deviation, is fitted by least squares on the learner's
and the neighbors' newest errors, and on how far the last label was from the prediction. Whether to
correct is decided by the evidence again. Neighbors hear the error in such units, and no label.

**Season.** Where a period is given, the linear fits and one kernel are shown where in the season a
sample is; the corrector has the error and the label of a season ago as clues, also of a period that
was found in past labels. core/seasons.py has all of this.

**Belief.** A label counts as far as core/belief.py believes it, beside what the side alone
predicted. Neither fits nor accounts nor the deviation learn from what is not believed. A sample
with a wild input is not learned; its prediction is the last label, or the mean of labels where that
was the better one.
"""

import inspect
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from domkl import checks
from domkl.algorithms import mixtures
from domkl.algorithms.base import CompiledAlgorithm, Inputs, Net, Prediction, Sizes, at_positions
from domkl.algorithms.before import Before
from domkl.algorithms.law import Law
from domkl.algorithms.mixtures import ALONE, NETWORK, mean_loss, mix, side_of, write_weights
from domkl.core import seasons
from domkl.core.belief import N_BOUND, believed, confirm, is_wild, largest, learn_ranges
from domkl.core.exchange import Delivery
from domkl.core.jit import inner, scalar, sweep
from domkl.core.kernels import Dictionary, default_bank
from domkl.core.lanes import dot
from domkl.core.losses import LOGISTIC, Logistic, Loss, Squared, pull, robust_square, sigmoid
from domkl.core.quantiles import FIRST_ROW, learn_error, width, write_positions
from domkl.core.rls import first_factors, shrink, variance
from domkl.core.vectors import added_scaled, copied, tracked_sum
from domkl.errors import ParameterError
from domkl.typing import Array, Floats, Ints

#: Fraction by which S moves towards nφ per label, so a lost message is forgotten after about 100;
#: smaller while the mean count is below the learner's own, see `_leak`.
LEAK = 0.01
#: The second memory is 1 − FADE/horizon.
FADE = 0.01
#: Deviation: the memory of its noise is 1 − NOISE_FADE/horizon. It is never 0.
NOISE_FADE, LEAST_DEVIATION = 0.03, 1e-9
#: Weight of the network's noise, in labels, before the learner's own first label.
FIRST_NOISE = 5.0
#: Least weight of the linear kernel in `function`, because it carries the lag.
LEAST_WEIGHT = 1e-6
#: Least curvature of the logistic loss; its inverse is a noise variance.
LEAST_CURVATURE = 1e-6
MEAN: Delivery = "metropolis"
#: Last in a row of notes: s² of the deviation that was told, -1 if unknown; the disagreement in it;
#: and the weight of the sample in fits and accounts, 1 unless the host says so.
NOISE, APART, WEIGHT = -3, -2, -1
N_BOTH = 3


class Fields(NamedTuple):
    """What a DOMKRLS learner keeps: F fits; E = 2F + 1 experts a side, or 2F + 2 with a lag.

    Side 0 is the learner in its network, side 1 the same learner alone.
    """

    sums: Array  # (K, F, D)             S, a mean over learners of nφ, as far as they are heard
    own: Array  # (K, F, D)              φ, the learner's own fit
    diagonal: Array  # (K, F, D)         of its C = U D Uᵀ, core/rls.py
    factor: Array  # (K, F, D(D − 1)/2)  and U
    counts: Floats  # (K, F)             N, the mean of n
    own_counts: Floats  # (K, F)         n
    # means over learners on side 0
    loss: Floats  # (K, 2, F)            of the θs, and of the φs alone
    regret: Floats  # (K, 2, F)          R of m
    variance: Floats  # (K, 2, F)        V of m
    rounds: Floats  # (K, 2)             number of labels in these three accounts
    # the learner's own
    own_regret: Floats  # (K, 2, E)      R of b
    own_variance: Floats  # (K, 2, E)    V of b
    score: Floats  # (K, 2, 3)           losses of m and b, and of the last label
    final: Floats  # (K, 2, 2)           losses without and with the correction
    sides: Floats  # (K, 2)              losses of both sides
    own_rounds: Floats  # (K,)           number of labels in these five accounts
    correction: Floats  # (K, 2, 6)      for the clues, see `mixtures._correct`
    clue_diagonal: Floats  # (K, 2, 6)   of its C
    clue_factor: Floats  # (K, 2, 15)
    errors: Floats  # (K, 2)             newest error, in deviations
    nearby: Floats  # (K,)               mean of the neighbors'
    last: Floats  # (K,)                 newest label, 0 before
    level: Floats  # (K, 2)              mean of labels, and its mean squared error less last's
    turns: Floats  # (K, 2)              of labels ±1, how many repeated, and how many changed
    odds: Floats  # (K,)                 of ±1, log-odds that the next label is the last one; else 1
    noise: Floats  # (K, 2)              sum of squared errors, and their number
    quantiles: Floats  # (K, J)          of errors, in deviations, core/quantiles.py
    bound: Floats  # (K, 5)              which labels are believed, core/belief.py
    low: Floats  # (K, d)                ranges of inputs
    high: Floats  # (K, d)
    gate: Floats  # (K, 2)               how far beyond an input may be; the number of wild ones
    past: Floats  # (K, R, 4)            labels and errors, core/seasons.py
    season: Floats  # (K, 5)             its clock and its periods
    lag: Floats  # (K,)                  column of the newest lag, -1 without
    is_linear: Floats  # (K,)            1 where the last kernel is the linear one, else 0
    # weights, which follow from the accounts
    by_regret: Floats  # (K, 2, F)       in m
    by_own: Floats  # (K, 2, E)          in b
    top: Floats  # (K, 2, 4)             of m and b, of the last label and of the lag
    decided: Floats  # (K, 2, 2)         without and with the correction
    trust: Floats  # (K, 2)              of both sides


class State(Fields):
    """The fields as a law has them."""

    __slots__ = ()
    __signature__ = inspect.signature(Fields)  # for compiled code, which makes states, too

    def __new__(cls, *values: Any, **named: Any) -> "State":
        """Make a state; of the fields of an older one, which a pickle gives by position, `Before`.

        Those had the counts behind the sums.
        """
        is_old = len(values) > 1 and np.ndim(values[1]) == 2
        made: Any = Before(*values) if is_old else super().__new__(cls, *values, **named)
        return made  # type: ignore[no-any-return]


#: Axes of the fields behind the learners': S sides, F fits, D features, E experts, and what `init`
#: says; fields that do not begin with zeros are not here.
SHAPES = {
    name: shape
    for shape, names in {
        "FD": "sums own", "F": "counts own_counts", "S": "rounds errors sides", "ST": "top",
        "SF": "loss regret variance by_regret", "SE": "own_regret own_variance by_own",
        "SM": "score", "S2": "final decided", "SC": "correction", "B": "bound", "I": "low high",
        "2": "level turns noise trust gate", "RP": "past", "": "own_rounds nearby last",
    }.items()
    for name in names.split()
}  # fmt: skip
#: the fields of the state that have two sides
SIDES = (*(name for name, shape in SHAPES.items() if "S" in shape), "clue_diagonal", "clue_factor")


class Message(NamedTuple):
    """What a DOMKRLS learner says."""

    sums: Array  # (K, F, D)
    counts: Floats  # (K, F)
    loss: Floats  # (K, F)
    regret: Floats  # (K, F)
    variance: Floats  # (K, F)
    rounds: Floats  # (K,)
    residual: Floats  # (K,)  0 without a label in this round


class Params(NamedTuple):
    """The parameters, as the law takes them; pickles have them by position."""

    forget: float
    ridge: float
    loss: Any
    newest_lag: int  # -1: there is none
    horizon: float
    period: float = -1.0  # 0: there is none; -1: it is looked for


def n_notes(state: State) -> int:
    """Numbers in a learner's row of notes: of both sides, and of the prediction."""
    return 2 * mixtures.n_side(state.sums.shape[1]) + N_BOTH


def alone_prediction(notes: Floats, n_fits: int) -> Floats:
    """What the learners alone predicted: of notes (K, ·), (K,)."""
    y_hat: Floats = notes[..., 2 * mixtures.n_side(n_fits) - 1]
    return y_hat


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
    """The experts, the mixtures of them, and the correction; in the network and alone."""
    n_fits, n_kernels = state.sums.shape[1], inputs.z.shape[1]
    shares, room = np.empty(2 * n_fits + 2), seasons.room_for(inputs.z, state.diagonal[0, 0])
    for k in range(len(prediction.y_hat)):
        z = _seen(room, state, inputs.z[k], k, seasons.target(state.season[k]))
        ago = seasons.season_ago(state.past[k], state.season[k])
        wild = is_wild(inputs.x[k], state.low[k], state.high[k], state.gate[k, 0])
        f, notes = 0.0, prediction.notes[k]
        for side in range(2):
            told = side_of(notes, n_fits, side)
            _consult(told.experts, state, _base(params, inputs, k), z, k, side)
            mixtures.predict_side(told, state, params, ago, k, side)
            if wild:
                told.y_hat[0] = _calm(state, k)
            f += state.trust[k, side] * told.final[0]
        prediction.y_hat[k] = mixtures.combine_sides(notes, state, k)
        write_weights(shares, state, k)
        notes[NOISE], notes[APART], notes[WEIGHT] = _noise(state, k), 0.0, 1.0
        for i in range(n_fits):
            shares[i] += shares[n_fits + i]
            notes[APART] += shares[i] * (notes[i] - f) ** 2
        for p in range(n_kernels):
            prediction.by_kernel[k, p] = _by_kernel(shares, notes, p, n_fits)


@inner
def _calm(state: State, k: int) -> float:
    """What to predict without looking at inputs: the mean of labels, or the last label."""
    level = state.level[k]
    return float(level[0] if level[1] < 0 else state.last[k] * state.odds[k])


@inner
def _base(params: Params, inputs: Inputs, k: int) -> float:
    """What fits learn the change from: the newest lag."""
    return inputs.x[k, params.newest_lag] if params.newest_lag >= 0 else 0.0


@inner
def _seen(room: seasons.Shown, state: State, z: Array, k: int, step: float) -> Array:
    """A learner's features (P, D) in a step, with the season in them."""
    return seasons.shown(room, z, _wave_place(state, k), step, state.season[k, seasons.WAVES])


@inner
def _wave_place(state: State, k: int) -> int:
    """The first place behind inputs and constant of the linear kernel; the end without one."""
    n_inputs, n_features = state.low.shape[1], state.sums.shape[2]
    return int(n_inputs + 1 if state.is_linear[k] > 0 else n_features)


@inner
def _consult(experts: Floats, state: State, base: float, z: Array, k: int, side: int) -> None:
    """Write what θs, φs and the lag predict, of features z (P, D); the last label comes later."""
    n_fits = state.sums.shape[1]
    for i in range(n_fits):
        seen, n = z[min(i, n_fits - 2)], state.counts[k, i]
        own = float(dot(state.own[k, i], seen))
        is_heard = side == NETWORK and n > 0
        experts[i] = base + (float(dot(state.sums[k, i], seen)) / n if is_heard else own)
        experts[n_fits + i] = base + own
    experts[2 * n_fits + 1] = base


@inner
def _by_kernel(shares: Floats, experts: Floats, kernel: int, n_fits: int) -> float:
    """What the fits of a kernel predict, by the weights they have in the mixture."""
    total, weight, last = 0.0, 0.0, n_fits - 2
    for i in range(kernel, n_fits if kernel == last else kernel + 1):
        total += shares[i] * experts[i]
        weight += shares[i]
    return total / weight if weight > 0 else experts[kernel]


@sweep
def local_step(
    state: State, params: Params, inputs: Inputs, y: Floats, prediction: Prediction, net: Net,
    message: Message,
) -> None:  # fmt: skip
    """Take each sample into its learner's fits and accounts, and say what the means become.

    A learner without a label, NaN, or with one that it does not believe, says again what they are.
    """
    n_fits, is_logistic = state.sums.shape[1], params.loss.kind == LOGISTIC
    gain, clue_gain = np.empty(state.sums.shape[2], state.sums.dtype), np.empty(mixtures.N_CLUES)
    room = seasons.room_for(inputs.z, state.diagonal[0, 0])
    for k in range(len(y)):
        label, residual, notes = y[k], 0.0, prediction.notes[k]
        if not math.isnan(label):
            label = _believed(state, inputs.x[k], notes, label, is_logistic, k)
        if not math.isnan(label):
            mixtures.add_label(state, params.loss.kind, notes, label, clue_gain, k)
            z = _seen(room, state, inputs.z[k], k, state.season[k, seasons.STEP])
            change = label - _base(params, inputs, k)
            _learn_fits(state, params, z, change, notes[WEIGHT], gain, k)
            _learn_deviation(state, params, notes, label - prediction.y_hat[k], k)
            if is_logistic:
                _count_turn(state, label, k)
            else:
                seasons.remember(state.past[k], state.season[k], label, state.errors[k])
                _learn_level(state, side_of(notes, n_fits, ALONE).experts[2 * n_fits], label, k)
            state.last[k], residual = label, state.errors[k, NETWORK]
        _pass(state, params, is_logistic, k)
        _say(state, message, residual, k)


@inner
def _believed(state: State, x: Floats, notes: Floats, y: float, is_logistic: bool, k: int) -> float:
    """The label as far as it is believed, beside what the learner alone predicted; else NaN."""
    gate, label = state.gate[k], y
    if is_wild(x, state.low[k], state.high[k], gate[0]):
        gate[0], gate[1] = 2 * gate[0], gate[1] + 1
        return math.nan
    if not is_logistic:
        y_hat = side_of(notes, state.sums.shape[1], ALONE).y_hat[0]
        label = believed(state.bound[k], y_hat, y, largest(x))
        if not math.isnan(label):
            heard = side_of(notes, state.sums.shape[1], NETWORK).y_hat[0]
            confirm(state.bound[k], y_hat, heard, label)
    if not math.isnan(label):
        learn_ranges(x, state.low[k], state.high[k], gate[0])
        gate[0] = 1.0
    return label


@inner
def _pass(state: State, params: Params, is_logistic: bool, k: int) -> None:
    """End a step, and look for a period now and then."""
    season = state.season[k]
    season[seasons.STEP] += 1
    if params.period < 0 and not is_logistic and season[seasons.STEP] % seasons.LOOK_EVERY == 0:
        seasons.find_period(state.past[k], season)


@inner
def _count_turn(state: State, y: float, k: int) -> None:
    """Count whether a label of ±1 is that of before."""
    if state.last[k] != 0:
        state.turns[k, 0 if state.last[k] == y else 1] += 1
    state.odds[k] = math.log((1 + state.turns[k, 0]) / (1 + state.turns[k, 1]))


@inner
def _learn_level(state: State, last: float, y: float, k: int) -> None:
    """Compare the mean of labels with the last one, and take the label into it."""
    level, share = state.level[k], 1 / state.bound[k, 1]
    level[1] += share * ((y - level[0]) ** 2 - (y - last) ** 2 - level[1])
    level[0] += share * (y - level[0])


@sweep
def _say(state: State, message: Message, residual: float, k: int) -> None:
    """Say what the means are."""
    for i in range(state.sums.shape[1]):
        copied(message.sums[k, i], state.sums[k, i])
    copied(message.counts[k], state.counts[k])
    copied(message.loss[k], state.loss[k, NETWORK])
    copied(message.regret[k], state.regret[k, NETWORK])
    copied(message.variance[k], state.variance[k, NETWORK])
    message.rounds[k] = state.rounds[k, NETWORK]
    message.residual[k] = residual


@inner
def _learn_fits(
    state: State, params: Params, features: Array, y: float, weight: float, gain: Array, k: int
) -> None:
    """Take the sample into all fits."""
    n_fits, real = state.sums.shape[1], state.sums.dtype.type
    for i in range(n_fits):
        z, before = features[min(i, n_fits - 2)], state.own_counts[k, i]
        step = real(_fit_step(state, params, z, gain, y, weight, k, i))
        n = state.own_counts[k, i] = _forget(params, i, n_fits) * before + 1
        moved = state.counts[k, i] + (n - before)
        leak, total = _leak(moved, n), state.sums[k, i]
        state.counts[k, i] = moved + leak * (n - moved)
        more = real(n - before)
        tracked_sum(state.own[k, i], total, total, gain, step, real(n), more, real(leak))


@inner
def _forget(params: Params, fit: int, n_fits: int) -> float:
    """What the memory of a fit is multiplied by with each label."""
    return params.forget if _memory(fit, n_fits) == 0 else 1 - FADE / params.horizon


@scalar
def _leak(mean: float, n: float) -> float:
    """LEAK · min(1, N/n)², of mean and own count after the label.

    Where n is above N, because others have fewer samples, the leak adds to S what later steps of
    the fit do not correct: a fit of now, which is an old one soon.
    """
    share = min(1.0, mean / n)
    return LEAK * share * share


@inner
def _fit_step(
    state: State, params: Params, z: Array, gain: Array, y: float, weight: float, k: int, i: int
) -> float:
    """Write the gain Cz and take the sample into C; give the fit's step along the gain.

    For the logistic loss φ⁺ = argmin ℓ(φᵀz, y) + ½ (φ − φ_k)ᵀ(C/forget)⁻¹(φ − φ_k). That is one
    scalar equation, core/losses.py, and never oversteps; C then takes in the loss's curvature at
    the solution. A weight w makes the squared loss's noise variance 1/w, and multiplies the
    logistic loss.
    """
    factor, diagonal, f = state.factor[k, i], state.diagonal[k, i], float(dot(state.own[k, i], z))
    forget, ridge = _forget(params, i, state.sums.shape[1]), params.ridge
    if params.loss.kind != LOGISTIC:
        return (y - f) / float(shrink(factor, diagonal, z, gain, 1 / weight, forget, ridge))
    reach = weight * float(variance(factor, diagonal, z)) / forget
    slope = pull(params.loss, f, y, reach)
    chance = sigmoid(f - reach * slope)
    noise = 1 / max(weight * chance * (1 - chance), LEAST_CURVATURE)
    shrink(factor, diagonal, z, gain, noise, forget, ridge)
    return float(-weight * slope / forget)


@inner
def _learn_deviation(state: State, params: Params, notes: Floats, error: float, k: int) -> None:
    """Compare an error with the deviation of its prediction: learn its quantiles, and the noise.

    Errors of h steps ahead overlap: h of them tell about as much as one.
    """
    if notes[NOISE] >= 0 and params.loss.kind != LOGISTIC:
        in_deviations = error / _foretold(notes, notes[NOISE])
        learn_error(state.quantiles[k], in_deviations, params.horizon)
    n = state.noise[k, 1]
    keep = min(2 * n / (2 * n + 1), 1 - NOISE_FADE / params.horizon)
    variance = state.noise[k, 0] / n if n > 0 else 0.0
    state.noise[k, 0] = keep * state.noise[k, 0] + robust_square(error, variance)
    state.noise[k, 1] = keep * n + 1


@inner
def _noise(state: State, k: int) -> float:
    """s²; -1 before the first label of the learner and its neighbors.

    The network's s² counts as a few labels beside the learner's own: less, the more there are.
    """
    total, n = state.noise[k, 0], state.noise[k, 1]
    if state.rounds[k, NETWORK] > 0:
        heard = FIRST_NOISE / (1 + n)
        loss, rounds = state.loss[k, NETWORK], state.rounds[k, NETWORK]
        total, n = total + heard * mean_loss(loss, rounds), n + heard
    return float(total / n) if n > 0 else -1.0


@inner
def _foretold(notes: Floats, noise: float) -> float:
    """√ (s² + Σ_i w_i (f_i − f)²): noise and disagreement."""
    return max(math.sqrt(noise + notes[APART]), LEAST_DEVIATION)


@sweep
def merge(state: State, params: Params, heard: Message, net: Net) -> None:
    """Keep the means of own and neighbors' sums and accounts."""
    for k in range(len(heard.rounds)):
        copied(state.counts[k], heard.counts[k])
        copied(state.loss[k, NETWORK], heard.loss[k])
        copied(state.regret[k, NETWORK], heard.regret[k])
        copied(state.variance[k, NETWORK], heard.variance[k])
        state.rounds[k, NETWORK] = heard.rounds[k]
        state.nearby[k] = heard.residual[k] / net.degree[k] if net.degree[k] > 0 else 0.0
        for i in range(state.sums.shape[1]):
            copied(state.sums[k, i], heard.sums[k, i])
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
    shares = np.empty(2 * n_fits + 2)
    room = seasons.room_for(theta, state.diagonal[0, 0])
    for k in range(n_learners):
        write_weights(shares, state, k)
        for i in range(n_fits):
            weights[k, min(i, n_fits - 2)] += shares[i] + shares[n_fits + i]
        if state.is_linear[k] > 0:
            whole = weights[k, n_fits - 2] + shares[2 * n_fits] + shares[2 * n_fits + 1]
            weights[k, n_fits - 2] = max(whole, LEAST_WEIGHT)
        for i in range(n_fits):
            p, n = min(i, n_fits - 2), state.counts[k, i]
            # shares of the kernel's weight, at most 1: by themselves they may be below float32
            q = weights[k, p] if weights[k, p] > 0 else 1.0
            if n > 0:
                added_scaled(theta[k, p], state.sums[k, i], real(shares[i] / q / n))
            added_scaled(theta[k, p], state.own[k, i], real(shares[n_fits + i] / q))
        season, place = state.season[k], _wave_place(state, k)
        seasons.set_aside(room, theta[k], place, seasons.target(season), season[seasons.WAVES])
        if state.is_linear[k] > 0:
            _add_persistence(theta[k, n_fits - 2], weights[k, n_fits - 2], state, shares, k)
    return theta, weights


@inner
def _add_persistence(theta: Array, weight: float, state: State, shares: Floats, k: int) -> None:
    """Add last label and lag to the linear kernel's part of the function, of this weight."""
    lag, share = int(state.lag[k]), shares[len(shares) - 2]
    theta[state.low.shape[1]] += share / weight * state.last[k] * state.odds[k]
    if lag >= 0:
        theta[lag] += (1 - share) / weight


@sweep
def deviation(
    state: State, params: Params, inputs: Inputs, prediction: Prediction, out: Floats
) -> None:
    """Write the standard deviation of each prediction, (K,), by its measured coverage.

    For the logistic loss that of f itself, √(zᵀCz + Σ_i w_i (f_i − f)²). Infinite where nothing is
    known: before the first sample of a learner and its neighbors.
    """
    n_fits, room = state.sums.shape[1], seasons.room_for(inputs.z, state.diagonal[0, 0])
    shares = np.empty(2 * n_fits + 2)
    for k in range(len(out)):
        notes, noise = prediction.notes[k], _noise(state, k)
        if params.loss.kind != LOGISTIC:
            known = _foretold(notes, max(noise, 0.0))
            out[k] = width(state.quantiles[k]) * known if noise >= 0 else np.inf
            continue
        z = _seen(room, state, inputs.z[k], k, seasons.target(state.season[k]))
        write_weights(shares, state, k)
        square = notes[APART]
        for i in range(n_fits):
            reach = variance(state.factor[k, i], state.diagonal[k, i], z[min(i, n_fits - 2)])
            square += (shares[i] + shares[n_fits + i]) * float(reach)
        out[k] = math.sqrt(square)


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
    period : int, optional
        Steps after which the stream repeats itself, by a clock that all learners share; 0 for none.
        By default each learner looks for one in its own past labels.
    """

    forget: float = 1.0
    ridge: float = 1e-3
    loss: Loss = Squared()
    newest_lag: int | None = None
    steps_ahead: int | None = None
    period: int | None = None

    takes_missing = True
    relative_cost = 6.0  # as benchmarks/bench_domkrls.py measures it
    law = Law(
        State, Message, predict, local_step, merge, function, deviation, notes=n_notes,
        room=dict.fromkeys(("loss", "regret", "variance"), "counts")
        | dict.fromkeys(("rounds", "residual"), "last"),
        exchange={**dict.fromkeys(Message._fields, MEAN), "residual": "sum"},
    )  # fmt: skip

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
        if self.period and checks.whole("period", self.period, 0) < 2:
            raise ParameterError(f"period must be 0 or at least 2 steps, got {self.period}")

    def __repr__(self) -> str:
        """Without what is left to the data."""
        given = {name: value for name, value in self.parameters().items() if value is not None}
        return f"DOMKRLS({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @cached_property
    def compiled(self) -> Params:
        """The parameters as the law takes them."""
        lag = -1 if self.newest_lag is None else int(self.newest_lag)
        horizon = 1 if self.steps_ahead is None else self.steps_ahead
        period = -1 if self.period is None else self.period
        forget, ridge, *steps = map(float, (self.forget, self.ridge, horizon, period))
        return Params(forget, ridge, self.loss.compiled, lag, *steps)

    def init(self, sizes: Sizes) -> State:
        """All zero, C = I/ridge."""
        if self.newest_lag is not None and self.newest_lag >= sizes.n_inputs:
            raise ParameterError(
                f"newest_lag must be below the {sizes.n_inputs} inputs, got {self.newest_lag}"
            )
        n, n_fits, period = sizes.n_learners, sizes.n_kernels + 1, max(self.compiled.period, 0.0)
        most = int(period * np.ceil(self.compiled.horizon / period)) if period else 0
        axes = {
            "S": 2, "F": n_fits, "D": sizes.n_features, "I": sizes.n_inputs, "T": mixtures.N_TOP,
            "E": 2 * n_fits + 1 + (self.newest_lag is not None), "M": len(mixtures.TOP_PRIOR),
            "2": 2, "C": mixtures.N_CLUES, "B": N_BOUND, "P": seasons.N_PAST,
            "R": max(seasons.REMEMBERED, most),
        }  # fmt: skip
        first = self._first_values(sizes, period)
        for name, shape in SHAPES.items():
            kind = sizes.dtype if shape == "FD" else float
            first[name] = np.zeros([axes[axis] for axis in shape], kind)
        tiled = {name: np.tile(values, (n, *[1] * values.ndim)) for name, values in first.items()}
        state = State(**tiled)
        mix(state, self.compiled)
        return state

    def _first_values(self, sizes: Sizes, period: float) -> dict[str, Array]:
        """What the fields of one learner begin with that are not in `SHAPES`."""
        lengths, with_waves = [*sizes.lengths], sizes.n_inputs + 1 + seasons.N_WAVES
        if sizes.linear and period and with_waves <= sizes.n_features:
            lengths[-1] = with_waves
        ridges = np.full(sizes.n_kernels, float(self.ridge))
        ridges[1 : sizes.n_kernels - sizes.linear : 2] *= 10
        lengths, ridges = [*lengths, lengths[-1]], np.append(ridges, ridges[-1])
        fits = first_factors(tuple(lengths), sizes.n_features, ridges)
        factor, diagonal = (each.astype(sizes.dtype) for each in fits)
        n, ridge = mixtures.N_CLUES, mixtures.CORRECTOR_RIDGE
        clue_factor, clue_diagonal = first_factors((n, n), n, ridge)
        return {
            "diagonal": diagonal, "factor": factor, "clue_diagonal": clue_diagonal,
            "clue_factor": clue_factor, "odds": np.array(1.0), "quantiles": FIRST_ROW,
            "season": np.array([0.0, self.compiled.horizon - 1, period, period, 0.0]),
            "lag": np.array(float(self.compiled.newest_lag)),
            "is_linear": np.array(float(sizes.linear)),
        }  # fmt: skip

    def idle_step(self, state: State, net: Net) -> tuple[State, Message]:
        """Say again what the means are."""
        message = self.message(state)
        for k in range(len(state.rounds)):
            _say(state, message, 0.0, k)
        return state, message

    def quantiles(
        self, state: State, inputs: Inputs, prediction: Prediction, levels: Floats
    ) -> Floats | None:
        """Give the quantiles of each label, by those of the errors before."""
        if isinstance(self.loss, Logistic):
            return super().quantiles(state, inputs, prediction, levels)
        z = np.empty((len(state.quantiles), len(levels)))
        write_positions(z, state.quantiles, levels)
        return at_positions(prediction, self.deviation(state, inputs, prediction), z)

    def delayed(self, delay: int) -> "DOMKRLS":
        """With a horizon of one more, unless one is set."""
        is_set = self.steps_ahead is not None or delay == 0
        return self if is_set else replace(self, steps_ahead=delay + 1)

    def at(self, state: State, step: int) -> State:
        """With this step, where it may have skipped some."""
        state.season[:, seasons.STEP] = step
        return state

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
