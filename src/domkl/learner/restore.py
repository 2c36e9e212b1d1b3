"""States that were stored, by this version or by an earlier one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from domkl.algorithms import least_squares
from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import Alone
from domkl.algorithms.least_squares import DOMKRLS, memories
from domkl.algorithms.mixtures import N_CLUES, mix
from domkl.core.seasons import EVERY, FIRST_SEEING, PERIOD, WAVES
from domkl.errors import DataError
from domkl.typing import Array, Floats

#: fields that learners of before 0.5 did not have
NEW = ("past", "season")
#: places of the four clues of before among those of now
CLUES = [0, 1, 2, 4]


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
    has_sides = np.size(found.get("sides", ())) > 0
    has_season = np.size(found.get("season", ())) > 0
    if has_season:
        fields: dict[str, Any] = {name: np.array(found[name]) for name in first._fields}
        made = least_squares.State(**fields)
    elif has_sides:
        made = _from_version_0_4(found, first)
    elif "combined" in found and "sums" not in found:
        made = _from_version_0_1(found, first, (inner.forget, inner.second_memory))
    else:
        made = _from_version_0_3(found, first)
    made = _within(made, inner.most_counts)
    _see_season(made, first, has_season)
    if not has_season:
        mix(made, inner.compiled)
    return made


def is_old(state: Any) -> bool:
    """Whether a state is one of before 0.5, as of a pickle."""
    return isinstance(state, least_squares.State) and not state.season.size


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
    clues of the season. Others are left as they are.
    """
    n_fits, rest = divmod(n - 25 - 2 * N_CLUES, 5)
    if not rest and notes.shape == (*y_hat.shape, 5 * n_fits + 33):
        ends = np.cumsum([2 * n_fits + 12, 2, 2 * n_fits + 12, 2])
        first, end, second, other, both = np.split(notes, ends, axis=-1)
        return np.concatenate([*map(_with_season, (first, second), (end, other)), both], axis=-1)
    if rest or notes.shape != (*y_hat.shape, 3 * n_fits + 16):
        return notes
    ends = np.cumsum([2 * n_fits + 2, 4, 3, n_fits, 4, 2])
    experts, mixtures, final, shares, clues, spread, weight = np.split(notes, ends, axis=-1)
    gap = np.concatenate([clues[..., 3:], y_hat[..., None]], axis=-1)
    start = np.concatenate([experts, mixtures, final, clues[..., :3]], axis=-1)
    f, side = final[..., :1], [_with_season(start, gap)]
    apart = (shares * (experts[..., :n_fits] - f) ** 2).sum(axis=-1, keepdims=True)
    return np.concatenate([*side, *side, shares, f, spread, apart, weight], axis=-1)


def _with_season(start: Floats, end: Floats) -> Floats:
    """The notes of a side with clues of 0 for the season, before and behind the gap."""
    nothing = np.zeros((*start.shape[:-1], 1))
    return np.concatenate([start, nothing, end[..., :1], nothing, end[..., 1:]], axis=-1)


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


def _from_version_0_4(
    found: Mapping[str, Array], first: least_squares.State
) -> least_squares.State:
    """Continue from a learner without a season; its linear fits go on without waves."""
    n, likes = len(found["sums"]), first._asdict()
    new = {name: np.repeat(likes[name][:1], n, axis=0) for name in NEW}
    made: dict[str, Any] = {
        name: _widened(name, found[name], likes[name]) for name in likes if name not in NEW
    }
    return least_squares.State(**made, **new)


def _widened(name: str, values: Array, like: Array) -> Array:
    """A field of the corrector with the clues of the season, of which nothing is known yet."""
    if name not in ("correction", "clue_diagonal", "clue_factor"):
        return np.array(values)
    places = CLUES
    if name == "clue_factor":
        places = [j * (j - 1) // 2 + i for j in CLUES for i in CLUES if i < j]
    made = np.repeat(like[:1], len(values), axis=0).reshape(-1, 2, 2, like.shape[-1] // 2)
    made[..., places] = np.reshape(values, (*made.shape[:-1], len(places)))
    return np.asarray(made.reshape(-1, *like.shape[1:]))


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
    stored |= {name: np.repeat(getattr(first, name)[:1], n, axis=0) for name in NEW}
    for name, like in first._asdict().items():
        values = np.asarray(stored.get(name, least_squares.NOTHING))
        if name in ("counts", "own_counts"):
            values = values[:, memories(first.sums.shape[1])]
        elif not values.size:
            values = np.zeros((n, *like.shape[1:]), like.dtype)
        elif values.ndim < like.ndim:
            values = np.repeat(values[:, None], 2, axis=1)
        made[name] = np.array(_widened(name, values, like), order="C")
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
    return least_squares.State(*map(np.ascontiguousarray, made))  # type: ignore[arg-type]


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
