"""Tasks: the calculations of a reproduction, each of which is done once and stored."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from domkl.experiments.store import Results, digest_of, key_of
from domkl.typing import Floats

ReportProgress = Callable[[float], None]  # called with the share that is done, from 0 to 1


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples before they are dealt to learners."""

    name: str
    X: Floats  # (N, d)
    y: Floats  # (N,)
    is_series: bool
    facts: dict[str, Any]

    @cached_property
    def digest(self) -> str:
        """Digest of the samples."""
        return digest_of(self.X, self.y)


class Task(ABC):
    """A calculation whose results depend on nothing but `parts` and the code."""

    #: whether it is pure Python, which runs on one core; such tasks run in processes of their own
    is_python = False

    @property
    @abstractmethod
    def label(self) -> str:
        """Text for the progress bar."""

    @property
    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """Everything that the results depend on, besides the code."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """Approximate microseconds on one core, for the progress bar."""

    @abstractmethod
    def compute(self, report: ReportProgress) -> Results:
        """Do the calculation."""

    @cached_property
    def key(self) -> str:
        """The key of its results in the store."""
        return key_of({"task": type(self).__name__, **self.parts})
