"""States that were stored, by this version or by an earlier one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from domkl.algorithms import least_squares
from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import Alone
from domkl.algorithms.before import Before
from domkl.algorithms.least_squares import DOMKRLS, memories
from domkl.algorithms.mixtures import mix, n_side
from domkl.core.losses import Logistic
from domkl.core.seasons import EVERY, FIRST_SEEING, PERIOD, WAVES
from domkl.errors import DataError
from domkl.typing import Array, Floats

#: fields that learners of before 0.5 did not have, and those that are new since
NEW, NEWER = ("past", "season"), ("level", "decided")
#: places of the four clues of before 0.5 among those of now
CLUES = [0, 1, 2, 4]
#: of m, ms, b and the last label, of no correction, A and B, and of the corrections: what is left
KEPT = {"score": slice(1, 4), "final": slice(0, 3, 2)}
CORRECTOR = ("correction", "clue_diagonal", "clue_factor")


def fields_of(name: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The stored fields of a tuple of this name."""
    start = f"{name}."
    return {key[len(start) :]: arrays[key] for key in arrays if key.startswith(start)}


def checked(name: str, made: Any, like: Any) -> Any:
    """Accept a tuple of finite arrays with the shapes and types of ``like``."""
    for field, values, empty in zip(like._fields, made, like, strict=True):
        is_alike = values.shape == empty.shape and values.dtype == empty.dtype
        if not is_alike or not np.isfinite(values).all():
            raise DataError(f"{name}.{field} must be finite, of shape {empty.shape}")
    return made


def restored_state(algorithm: Algorithm, found: Mapping[str, Array], first: Any) -> Any:
    """Make a state of stored fields; ``first`` is a state of the same sizes before any sample.

    Raises KeyError where a field is missing.
    """
    inner = algorithm.algorithm if isinstance(algorithm, Alone) else algorithm
    if not isinstance(inner, DOMKRLS):
        return type(first)(*(np.array(found[name]) for name in first._fields))
    found = _with_quantiles(found, first)
    is_new, has_season = NEWER[0] in found, np.size(found.get("season", ())) > 0
    if is_new:
        fields: dict[str, Any] = {name: np.array(found[name]) for name in first._fields}
        made = least_squares.State(**fields)
    elif "combined" in found and "sums" not in found:
        made = _from_version_0_1(found, first, (inner.forget, inner.second_memory))
    elif np.size(found.get("sides", ())) > 0:
        made = _from_version_0_5(_shorter(found, inner), first)
    else:
        made = _from_version_0_3(_shorter(found, inner), first)
    made = _within(made, inner.most_counts)
    _see_season(made, first, has_season)
    if not is_new:
        mix(made, inner.compiled)
    return made


def is_old(state: Any) -> bool:
    """Whether a state is one of before 0.6, as of a pickle."""
    return isinstance(state, Before)


def _shorter(found: Mapping[str, Array], algorithm: DOMKRLS) -> dict[str, Array]:
    """The fields of 0.2 to 0.5 without the mixture m and the corrector A of then.

    The mean of labels was where counts of labels ±1 are.
    """
    made = {name: np.asarray(values) for name, values in found.items()}
    for name, kept in KEPT.items():
        made[name] = made[name][..., kept]
    for name in CORRECTOR:
        made[name] = made[name][..., made[name].shape[-1] // 2 :]
    is_logistic = isinstance(algorithm.loss, Logistic)
    made["level"] = made["turns"] * (0.0 if is_logistic else 1.0)
    made["turns"] = made["turns"] * (1.0 if is_logistic else 0.0)
    return made


def of_now(algorithm: Algorithm, state: Any, first: Any) -> Any:
    """A state as this version has it, where it may be an old one."""
    return restored_state(algorithm, state._asdict(), first) if is_old(state) else state


def _with_quantiles(found: Mapping[str, Array], first: least_squares.State) -> Mapping[str, Array]:
    """Make quantiles of the width that deviations of 0.1 to 0.4 had, where there is one.

    It is the logarithm of a factor; in a pickle it is in the place of the quantiles.
    """
    width = np.asarray(found.get("width", found.get("quantiles", 0.0)))
    if width.ndim > 1:
        return found
    return {**found, "quantiles": first.quantiles[:1] * np.exp(width).reshape(-1, 1)}


def notes_of_now(notes: Floats, y_hat: Floats, n: int) -> Floats:
    """Notes (…, N) of predictions (…) as this version has them: n each.

    Those of DOMKRLS in 0.2 and 0.3 had one side, which stands for both. Until 0.4 there were no
    clues of the season, until 0.5 there were three mixtures and two corrections. Others are left as
    they are.
    """
    n_fits = next((i for i in range(2, n) if 2 * n_side(i) + least_squares.N_BOTH == n), 0)
    lengths = {3 * n_fits + 16: 0, 5 * n_fits + 33: 4, 5 * n_fits + 37: 6}  # clues of two sides
    if not n_fits or notes.shape[:-1] != y_hat.shape or notes.shape[-1] not in lengths:
        return notes
    if n_clues := lengths[notes.shape[-1]]:
        length = 2 * n_fits + 10 + n_clues
        first, second, both = np.split(notes, [length, 2 * length], axis=-1)
        spread, apart, weight = (both[..., [i]] for i in (-4, -2, -1))
        sides = [_side_of_now(each, n_fits) for each in (first, second)]
        return np.concatenate([*sides, spread, apart, weight], axis=-1)
    ends = np.cumsum([2 * n_fits + 9, n_fits, 4, 1])
    start, shares, clues, spread, rest = np.split(notes, ends, axis=-1)
    side = _side_of_now(np.concatenate([start, clues, y_hat[..., None]], axis=-1), n_fits)
    experts, f = start[..., :n_fits], start[..., [2 * n_fits + 6]]
    apart = (shares * (experts - f) ** 2).sum(axis=-1, keepdims=True)
    return np.concatenate([side, side, spread, apart, rest[..., -1:]], axis=-1)


def _side_of_now(side: Floats, n_fits: int) -> Floats:
    """The notes of a side without m and A, with the lag, and with clues of 0 where it has four."""
    ends = np.cumsum([2 * n_fits + 2, 4, 3])
    experts, mixtures, final, clues, y_hat = np.split(side, [*ends, side.shape[-1] - 1], axis=-1)
    if clues.shape[-1] == len(CLUES):
        four, clues = clues, np.zeros((*side.shape[:-1], 6))
        clues[..., CLUES] = four
    parts = [experts, mixtures[..., KEPT["score"]], experts[..., -1:], final[..., KEPT["final"]]]
    return np.concatenate([*parts, clues, y_hat], axis=-1)


def _within(state: least_squares.State, limits: tuple[float, float]) -> least_squares.State:
    """Cut the counts to what the memories hold, in case they were longer before."""
    counts = np.maximum(state.counts, state.own_counts)
    most = np.array(limits)[memories(state.sums.shape[1])]
    shares = np.minimum(1.0, most / np.maximum(counts, 1e-300))
    if (shares == 1).all():
        return state
    return state._replace(
        sums=(state.sums * shares[:, :, None]).astype(state.sums.dtype, order="C"),
        counts=state.counts * shares,
        own_counts=state.own_counts * shares,
    )


def _see_season(state: least_squares.State, first: least_squares.State, had: bool) -> None:
    """Begin anew with the fits that see another season than before."""
    n_fits, period = state.sums.shape[1], first.season[0, WAVES]
    if period == (state.season[0, WAVES] if had else 0):
        return
    state.season[:, [WAVES, PERIOD]] = period
    for i in range(FIRST_SEEING, n_fits - 2, EVERY):
        for name in ("sums", "own", "counts", "own_counts", "diagonal", "factor"):
            getattr(state, name)[:, i] = getattr(first, name)[0, i]
        state.loss[:, :, i] = state.loss.max(axis=2)
        state.regret[:, :, i] = 0.0
        state.own_regret[:, :, [i, n_fits + i]] = 0.0


def _from_version_0_5(
    found: Mapping[str, Array], first: least_squares.State
) -> least_squares.State:
    """Continue from a learner of 0.4, without a season, or of 0.5.

    Linear fits of one without a season go on without waves.
    """
    n, made = len(found["sums"]), dict[str, Any]()
    for name, like in first._asdict().items():
        is_there = name != "decided" and np.size(found.get(name, ())) > 0
        if name in NEW + NEWER and not is_there:
            made[name] = np.repeat(like[:1], n, axis=0)
        else:
            made[name] = _of_shape(name, found[name], like)
    return least_squares.State(**made)


def _of_shape(name: str, values: Array, like: Array) -> Array:
    """A field as it is; weights, which follow from accounts, begin anew where they are others."""
    if name in CORRECTOR:
        return _widened(name, values, like)
    if name == "bound":  # of before 0.6: nothing was confirmed yet
        return np.pad(values, ((0, 0), (0, like.shape[1] - np.shape(values)[1])))
    is_alike = np.shape(values)[1:] == like.shape[1:]
    return np.array(values) if is_alike else np.repeat(like[:1], len(values), axis=0)


def _widened(name: str, values: Array, like: Array) -> Array:
    """A field of the corrector; where it has no clues of the season, nothing is known of them."""
    if values.shape[1:] == like.shape[1:]:
        return np.array(values)
    places = CLUES
    if name == "clue_factor":
        places = [j * (j - 1) // 2 + i for j in CLUES for i in CLUES if i < j]
    made = np.repeat(like[:1], len(values), axis=0)
    made[..., places] = values
    return made


def _from_version_0_3(
    found: Mapping[str, Array], first: least_squares.State
) -> least_squares.State:
    """Continue from a learner of version 0.2 or 0.3, which had counts by memory and one side.

    The side that is alone begins with the accounts of the other. Labels are believed by the errors
    of before; ranges of inputs begin anew.
    """
    stored = {"errors": found.get("residual"), **found}
    stored["sides"] = np.asarray(found["final"]).min(axis=1)
    n, made = len(found["sums"]), dict[str, Any]()
    stored |= {name: np.repeat(getattr(first, name)[:1], n, axis=0) for name in (*NEW, *NEWER)}
    for name, like in first._asdict().items():
        values = np.asarray(stored.get(name, ()))
        if name in ("counts", "own_counts"):
            values = values[:, memories(first.sums.shape[1])]
        elif not values.size:
            values = np.zeros((n, *like.shape[1:]), like.dtype)
        elif values.ndim < like.ndim:
            values = np.repeat(values[:, None], 2, axis=1)
        made[name] = np.array(_of_shape(name, values, like), order="C")
    made["bound"][:, :2] = np.stack([made["sides"][:, 0], made["own_rounds"]], axis=1)
    return least_squares.State(**made)


def _from_version_0_1(
    found: Mapping[str, Array], first: least_squares.State, forgets: tuple[float, float]
) -> least_squares.State:
    """Continue from a learner of version 0.1, whose kernels had one fit with one memory each.

    Fits, curvature and the losses of the θs go on. The last kernel's second fit begins as a copy of
    its first.
    """
    n_fits = first.sums.shape[1]
    kernels = [*range(n_fits - 1), n_fits - 2]
    rounds = np.asarray(found["rounds"], dtype=np.float64)
    n = _n_labels(rounds)
    count = np.stack([n if f == 1 else (1 - f**n) / (1 - f) for f in forgets], axis=1)
    count = count[:, memories(n_fits)]
    theta, own = (np.asarray(found[name])[:, kernels] for name in ("theta", "own"))
    made = first._replace(
        sums=(theta * count[:, :, None]).astype(first.sums.dtype),
        counts=count.copy(),
        loss=np.repeat(np.asarray(found["loss"], np.float64)[:, None, kernels], 2, axis=1),
        rounds=np.repeat(rounds[:, None], 2, axis=1),
        own=own,
        diagonal=np.asarray(found["diagonal"])[:, kernels],
        factor=np.asarray(found["factor"])[:, kernels],
        own_counts=count,
    )
    made.bound[:, :2] = np.stack([made.loss[:, 0].min(axis=1), rounds], axis=1)
    return least_squares.State(*map(np.ascontiguousarray, made))


def _n_labels(rounds: Floats) -> Floats:
    """Give the number of labels in accounts that count some half of them.

    r⁺ = 1 + r · 2r/(2r + 1): nearly (n + log n)/2 after n labels.
    """
    seen = [0.0]
    while len(seen) <= 100:
        seen.append(1 + seen[-1] * 2 * seen[-1] / (2 * seen[-1] + 1))
    n: Floats = 2 * rounds
    for _ in range(20):
        n = 2 * rounds - np.log(np.maximum(n, 1.0)) + 0.2
    return np.where(rounds <= seen[-1], np.interp(rounds, seen, np.arange(101)), n).round()
