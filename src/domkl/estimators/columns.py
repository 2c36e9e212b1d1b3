"""Frequencies input by input: an input keeps its own, whichever others come or go."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from domkl import checks, rng
from domkl.core.kernels import Dictionary
from domkl.errors import ParameterError
from domkl.typing import Floats


class Columns:
    """A dictionary, and from it the frequencies of any input, drawn by the input's name.

    Parameters
    ----------
    bank : kernels
        One without a spectrum, in the last place, is the linear kernel.
    n_frequencies : int
    seed : int
    """

    def __init__(self, bank: Dictionary, n_frequencies: int, seed: int) -> None:
        kernels: list[Any] = list(bank) if isinstance(bank, Iterable) else []
        self.is_linear = len(kernels) > 0 and not hasattr(kernels[-1], "stretch")
        self.kernels = tuple(kernels[: len(kernels) - self.is_linear])
        if not self.kernels or not all(hasattr(kernel, "stretch") for kernel in self.kernels):
            raise ParameterError(f"bank must hold at least one kernel with a spectrum, got {bank}")
        self.n_frequencies = checks.whole("n_frequencies", n_frequencies, 1)
        self.seed = checks.whole("seed", seed, 0)

    def draw(self, names: Sequence[Hashable]) -> Floats:
        """Frequencies (P, M, d) of the inputs of these names.

        Each kernel's radial factors are the same for all inputs, as its spectrum demands; the rest
        is independent from input to input.
        """
        stretches = [
            kernel.stretch(rng.child(self.seed, "stretch", p), self.n_frequencies)
            for p, kernel in enumerate(self.kernels)
        ]
        made = np.empty((len(self.kernels), self.n_frequencies, len(names)))
        for j, name in enumerate(names):
            generator = rng.child(self.seed, "input", repr(name))
            for p, kernel in enumerate(self.kernels):
                base = kernel.base(generator, self.n_frequencies, 1)
                made[p, :, j] = (base * stretches[p])[:, 0]
        return made
