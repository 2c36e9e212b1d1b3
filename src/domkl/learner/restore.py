"""States that were stored, by this version or by an earlier one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from domkl.algorithms import least_squares
from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import DOMKRLS, memories, mix
from domkl.errors import DataError
from domkl.typing import Array, Floats


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
    if not isinstance(algorithm, DOMKRLS):
        return type(first)(*(np.array(found[name]) for name in first._fields))
    if "combined" in found and "sums" not in found:
        made = _from_version_0_1(found, first, (algorithm.forget, algorithm.second_memory))
        mix(made, algorithm.compiled)
        return made
    fields: dict[str, Any] = {name: np.array(found[name]) for name in first._fields}
    return _within(least_squares.State(**fields), algorithm.most_counts)


def _within(state: least_squares.State, limits: tuple[float, float]) -> least_squares.State:
    """Cut the counts to what the memories hold, in case they were longer before."""
    counts = np.maximum(state.counts, state.own_counts)
    shares = np.minimum(1.0, np.array(limits) / np.maximum(counts, 1e-300))
    if (shares == 1).all():
        return state
    by_fit = shares[:, memories(state.sums.shape[1])][:, :, None]
    return state._replace(
        sums=(state.sums * by_fit).astype(state.sums.dtype, order="C"),
        counts=state.counts * shares,
        own_counts=state.own_counts * shares,
    )


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
    by_fit = count[:, memories(n_fits)][:, :, None]
    theta, own = (np.asarray(found[name])[:, kernels] for name in ("theta", "own"))
    made = first._replace(
        sums=(theta * by_fit).astype(first.sums.dtype),
        counts=count.copy(),
        loss=np.asarray(found["loss"], dtype=np.float64)[:, kernels],
        rounds=rounds.copy(),
        own=own,
        diagonal=np.asarray(found["diagonal"])[:, kernels],
        factor=np.asarray(found["factor"])[:, kernels],
        own_counts=count,
    )
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
