"""What a piece of work is: computed once, kept, and never computed again."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from domkl.experiments.store import Kept, digest_of, key_of
from domkl.typing import Floats

Report = Callable[[float], None]  # called with the share that is done, 0 to 1


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples before they are dealt."""

    name: str
    X: Floats  # (N, d)
    y: Floats  # (N,)
    is_series: bool
    facts: dict[str, Any]

    @cached_property
    def digest(self) -> str:
        """Of the samples."""
        return digest_of(self.X, self.y)


class Work(ABC):
    """A piece of work whose outcome depends on nothing but `parts` and the code."""

    #: runs under the interpreter's lock, on one core: such works are shared out over processes
    is_python = False

    @property
    @abstractmethod
    def label(self) -> str:
        """What a progress bar shows."""

    @property
    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """All that the outcome depends on."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """Microseconds on one core, roughly: weights of the progress bar."""

    @abstractmethod
    def compute(self, report: Report) -> Kept:
        """Do it."""

    @cached_property
    def key(self) -> str:
        """The name of its outcome."""
        return key_of({"work": type(self).__name__, **self.parts})
