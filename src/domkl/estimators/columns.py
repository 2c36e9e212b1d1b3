"""Inputs by name: each has frequencies of its own, and new inputs can be added to a state.

An input's frequencies are drawn from its name, so they do not depend on which other inputs there
are. `widened` moves a state to a feature map with more inputs, as if the new ones had been 0 in all
samples so far. Such an input has no effect on any feature, so everything that was learned stays
valid. Only the linear kernel has one feature per input: the inputs first, then the constant, which
therefore moves up.

A category is as many inputs as it has levels: a `Level` is 1 where the sample has it and 0
elsewhere. That is not scaled, so that a new level is what a new input counts as: 0 in all samples
before.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from domkl import checks, rng
from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import SIDES
from domkl.core.features import RandomFeatures
from domkl.core.kernels import Dictionary
from domkl.errors import ParameterError
from domkl.typing import Array, Floats, Ints

#: frequencies of each kernel where none are asked for: at least, at most, and for each input
FEWEST, MOST, PER_INPUT = 50, 200, 20
#: levels of one category; those that come later share one input, `Level` (input, None)
MAX_LEVELS = 50


@dataclass(frozen=True)
class Level:
    """The name of an input that says whether a category has this level."""

    input: Hashable
    value: str | None


class Columns:
    """Draws the frequencies of a dictionary's kernels for each input, from the input's name.

    Parameters
    ----------
    bank : kernels
        The last one may have no spectrum: then it is the linear kernel.
    n_frequencies : int or None
        M; None lets it follow the number of inputs, `count`.
    seed : int
    """

    def __init__(self, bank: Dictionary, n_frequencies: int | None, seed: int) -> None:
        kernels: list[Any] = list(bank) if isinstance(bank, Iterable) else []
        self.is_linear = len(kernels) > 0 and not hasattr(kernels[-1], "stretch")
        self.kernels = tuple(kernels[: len(kernels) - self.is_linear])
        if not self.kernels or not all(hasattr(kernel, "stretch") for kernel in self.kernels):
            raise ParameterError(f"bank must hold at least one kernel with a spectrum, got {bank}")
        self.n_frequencies = None
        if n_frequencies is not None:
            self.n_frequencies = checks.whole("n_frequencies", n_frequencies, 1)
        self.seed = checks.whole("seed", seed, 0)

    def count(self, names: Sequence[Hashable]) -> int:
        """M for these inputs; the levels of a category count as one input."""
        inputs = {name.input if isinstance(name, Level) else name for name in names}
        return self.n_frequencies or min(max(FEWEST, PER_INPUT * len(inputs)), MOST)

    def draw(self, names: Sequence[Hashable], n_frequencies: int) -> Floats:
        """Draw the frequencies (P, M, d) of the inputs with these names.

        Each kernel's radial factors are the same for all inputs, as its spectrum requires;
        everything else is drawn independently for each input.
        """
        stretches = [
            kernel.stretch(rng.child(self.seed, "stretch", p), n_frequencies)
            for p, kernel in enumerate(self.kernels)
        ]
        made = np.empty((len(self.kernels), n_frequencies, len(names)))
        for j, name in enumerate(names):
            generator = rng.child(self.seed, "input", repr(name))
            for p, kernel in enumerate(self.kernels):
                base = kernel.base(generator, n_frequencies, 1)
                made[p, :, j] = (base * stretches[p])[:, 0]
        return made


def widened(
    algorithm: Algorithm, state: Any, first: Any, old: RandomFeatures, new: RandomFeatures
) -> Any:
    """Move a state to a map with more inputs; ``first`` is that map's state before any sample.

    For each kernel, a field of a state holds a vector of features, a square matrix, or the columns
    of its strict upper triangle one after the other; or no features at all. An algorithm that uses
    x alone has the inputs and a constant in place of the features.
    """
    n_spectral = len(old.frequencies)
    fourier, linear = _same(2 * old.n_frequencies), _with_constant(old, new)
    for name, values, room in zip(state._fields, state, first, strict=True):
        move = _Move(name, old.n_features, new.n_features, is_matrix=values.ndim == 4)
        if not algorithm.uses_features:
            own = _Move(name, old.n_inputs + 1, new.n_inputs + 1, is_matrix=values.ndim == 3)
            own(room, values, linear)
        elif name in (*SIDES, "past"):
            room[:] = values
        elif values.ndim < 3 and room.shape[1:] in (values.shape[1:], (new.n_inputs,)):
            room[tuple(map(slice, values.shape))] = values
        else:
            move(room[:, :n_spectral], values[:, :n_spectral], fourier)
            if old.linear:
                move(room[:, n_spectral:], values[:, n_spectral:], linear)
    return first


Places = tuple[Ints, Ints]  # old and new indices of features


def _same(n: int) -> Places:
    return np.arange(n), np.arange(n)


def _with_constant(old: RandomFeatures, new: RandomFeatures) -> Places:
    before = np.arange(old.n_inputs + 1)
    return before, np.append(before[:-1], new.n_inputs)


class _Move(NamedTuple):
    """Copies the features of one field to their new indices."""

    name: str
    old: int  # number of features before
    new: int  # and after
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
    """Index of an element of the strict upper triangle, stored column by column."""
    return column * (column - 1) // 2 + row
