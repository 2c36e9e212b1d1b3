"""Take a new input into a state, as if it had been there all along and 0.

Such an input has no part in any feature so far, so all that the state has learned stays right. Only
the linear kernel has places by input: x first and the constant after, so the constant moves up.
"""

from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.errors import ParameterError
from domkl.typing import Array, Ints


def widened(
    algorithm: Algorithm, state: Any, first: Any, old: RandomFeatures, new: RandomFeatures
) -> Any:
    """Move a state to a map with more inputs; ``first`` is the state of that map before any sample.

    Fields hold, for each kernel, a vector of features, a square matrix of them, or the columns of
    its strict upper triangle one after the other; or no features at all. An algorithm that looks at
    x alone holds the same of inputs and a constant.
    """
    for name, values, room in zip(state._fields, state, first, strict=True):
        if not algorithm.uses_features:
            _move(name, room, values, _with_constant(old, new), old.n_inputs + 1, new.n_inputs + 1)
        elif values.ndim < 3:
            _move(name, room, values, _same(0), -1, -1)
        else:
            n_spectral, sizes = len(old.frequencies), (old.n_features, new.n_features)
            fourier = _same(2 * old.n_frequencies)
            _move(name, room[:, :n_spectral], values[:, :n_spectral], fourier, *sizes)
            _move(
                name, room[:, n_spectral:], values[:, n_spectral:], _with_constant(old, new), *sizes
            )
    return first


Places = tuple[Ints, Ints]  # where features were, and where they go


def _same(n: int) -> Places:
    return np.arange(n), np.arange(n)


def _with_constant(old: RandomFeatures, new: RandomFeatures) -> Places:
    before = np.arange(old.n_inputs + 1)
    return before, np.append(before[:-1], new.n_inputs)


def _move(name: str, room: Array, values: Array, places: Places, old: int, new: int) -> None:
    """Copy the features at these places; ``old`` and ``new`` are how many there are in all."""
    before, after = places
    if values.shape[-1:] == (old,) and room.shape[-1:] == (new,):
        if values.shape[-2:] == (old, old):
            room[..., after[:, None], after] = values[..., before[:, None], before]
        else:
            room[..., after] = values[..., before]
    elif values.shape[-1:] == (_triangle(old),) and room.shape[-1:] == (_triangle(new),):
        low, high = np.triu_indices(len(before), 1)
        room[..., _place(after[low], after[high])] = values[..., _place(before[low], before[high])]
    elif values.shape == room.shape:
        room[...] = values
    else:
        raise ParameterError(
            f"state.{name} has no place for new inputs, shape {values.shape};"
            " name all inputs in the first sample"
        )


def _triangle(n: int) -> int:
    return n * (n - 1) // 2


def _place(row: Ints, column: Ints) -> Ints:
    """Where an element of the strict upper triangle stands, columns one after the other."""
    return column * (column - 1) // 2 + row
