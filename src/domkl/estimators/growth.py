"""Take a new input into a state, as if it had been there all along and 0.

Such an input has no part in any feature so far, so all that the state has learned stays right. Only
the linear kernel has places by input: x first and the constant after, so the constant moves up.
"""

from typing import Any, NamedTuple

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
    n_spectral = len(old.frequencies)
    fourier, linear = _same(2 * old.n_frequencies), _with_constant(old, new)
    for name, values, room in zip(state._fields, state, first, strict=True):
        move = _Move(name, old.n_features, new.n_features, is_matrix=values.ndim == 4)
        if not algorithm.uses_features:
            own = _Move(name, old.n_inputs + 1, new.n_inputs + 1, is_matrix=values.ndim == 3)
            own(room, values, linear)
        elif values.ndim < 3 and values.shape == room.shape:
            room[...] = values
        else:
            move(room[:, :n_spectral], values[:, :n_spectral], fourier)
            if old.linear:
                move(room[:, n_spectral:], values[:, n_spectral:], linear)
    return first


Places = tuple[Ints, Ints]  # where features were, and where they go


def _same(n: int) -> Places:
    return np.arange(n), np.arange(n)


def _with_constant(old: RandomFeatures, new: RandomFeatures) -> Places:
    before = np.arange(old.n_inputs + 1)
    return before, np.append(before[:-1], new.n_inputs)


class _Move(NamedTuple):
    """Copies a field's features to their new places; ``old`` and ``new`` are how many there are."""

    name: str
    old: int
    new: int
    is_matrix: bool

    def __call__(self, room: Array, values: Array, places: Places) -> None:
        before, after = places
        lengths = values.shape[-1:] + room.shape[-1:]
        if self.is_matrix and lengths == (self.old, self.new):
            room[..., after[:, None], after] = values[..., before[:, None], before]
        elif lengths == (self.old, self.new):
            room[..., after] = values[..., before]
        elif lengths == (_triangle(self.old), _triangle(self.new)):
            low, high = np.triu_indices(len(before), 1)
            before, after = _place(before[low], before[high]), _place(after[low], after[high])
            room[..., after] = values[..., before]
        elif values.shape == room.shape:
            room[...] = values
        else:
            raise ParameterError(
                f"state.{self.name} has no place for new inputs, shape {values.shape};"
                " name all inputs in the first sample"
            )


def _triangle(n: int) -> int:
    return n * (n - 1) // 2


def _place(row: Ints, column: Ints) -> Ints:
    """Where an element of the strict upper triangle stands, columns one after the other."""
    return column * (column - 1) // 2 + row
