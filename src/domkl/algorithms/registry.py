"""The table of algorithms: what the command line, sweeps, figures and mesh files know of each.

To add an algorithm, write its module and add an entry here. A user's own algorithm needs no entry:
wherever a name is taken, ``module:Name`` is taken too. Importing this module imports no algorithm,
so that `domkl --help` can read the names without waiting for the compiler.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from domkl.errors import ParameterError

if TYPE_CHECKING:
    from domkl.algorithms.base import Algorithm


@dataclass(frozen=True)
class Entry:
    """An algorithm under the name that files, options and outputs use."""

    name: str
    home: str  # module:Name of its class
    color: str | None = None  # of its curve in every figure; None: the figure's next one
    dash: str = "-"
    is_meshable: bool = True  # whether one process per learner can run it
    is_alone: bool = False  # whether it is to run without neighbors
    is_default: bool = True  # whether `domkl simulate` runs it where none is named

    @property
    def kind(self) -> "type[Algorithm]":
        """Its class."""
        return _imported(self.home)

    def make(self) -> "Algorithm":
        """With its defaults."""
        try:
            made = self.kind()
        except TypeError as error:
            raise ParameterError(
                f"algorithm must have a default for every parameter, got {self.home!r}: {error}"
            ) from None
        if not self.is_alone:
            return made
        from domkl.algorithms.baselines import Alone

        return Alone(made)

    @property
    def cost(self) -> float:
        """Time of a learner-step and kernel, with DOMKL's as 1."""
        return self.make().relative_cost


#: colors are Okabe and Ito's, greys, and Tol's muted ones: told apart by color-blind readers
_ENTRIES = (
    Entry("domkl", "domkl.algorithms.admm:DOMKL", "#0072B2"),
    Entry("domkrls", "domkl.algorithms.least_squares:DOMKRLS", "#882255"),
    Entry("dokl", "domkl.algorithms.admm:DOKL", "#56B4E9", "--"),
    Entry("comkl", "domkl.algorithms.server:COMKL", "#D55E00", is_meshable=False),
    Entry("rff-dokl", "domkl.algorithms.diffusion:RFFDOKL", "#CC79A7", "--"),
    Entry("rff-domkl", "domkl.algorithms.diffusion:RFFDOMKL", "#009E73"),
    Entry("alone", "domkl.algorithms.admm:DOMKL", "#000000", ":", is_meshable=False, is_alone=True),
    Entry(
        "domkrls-alone", "domkl.algorithms.least_squares:DOMKRLS", "#AA4499", ":",
        is_meshable=False, is_alone=True, is_default=False,
    ),
    Entry("last-value", "domkl.algorithms.baselines:LastValue", "#8A8A8A", "-.", is_meshable=False),
    Entry("linear-rls", "domkl.algorithms.baselines:LinearRLS", "#E69F00", "-.", is_meshable=False),
    Entry(
        "linear-pooled", "domkl.algorithms.baselines:PooledLinearRLS", "#DDCC77",
        is_meshable=False, is_default=False,
    ),
    Entry(
        "seasonal-naive", "domkl.algorithms.baselines:SeasonalNaive", "#999933", "--",
        is_meshable=False, is_default=False,
    ),
)  # fmt: skip
ALGORITHMS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find(name: str, *, meshable: bool = False) -> Entry:
    """Look an algorithm up by its name, or import a user's own as ``module:Name``.

    With ``meshable`` only those are found that a mesh can run.

    Examples
    --------
    >>> find("domkrls").make().forget
    1.0
    >>> find("domkl.algorithms.admm:DOMKL").make().rho
    2.0
    """
    known = [each.name for each in ALGORITHMS.values() if each.is_meshable or not meshable]
    if name in known:
        return ALGORITHMS[name]
    if isinstance(name, str) and ":" in name:
        entry = Entry(name, name)
        if not meshable or entry.make().is_meshable:
            return entry
        raise ParameterError(f"algorithm must exchange messages with neighbors only, got {name!r}")
    raise ParameterError(
        f"algorithm must be one of {', '.join(known)} or module:Name, got {name!r}"
    )


def name_of(algorithm: "Algorithm") -> str:
    """The name under which `find` gives an algorithm of this class.

    Examples
    --------
    >>> from domkl.algorithms.admm import DOMKL
    >>> name_of(DOMKL(rho=1.0))
    'domkl'
    """
    home = f"{type(algorithm).__module__}:{type(algorithm).__qualname__}"
    named = (each.name for each in ALGORITHMS.values() if each.home == home and not each.is_alone)
    return next(named, home)


def _imported(home: str) -> "type[Algorithm]":
    from domkl.algorithms.base import Algorithm

    module, _, attribute = home.partition(":")
    try:
        kind: Any = getattr(import_module(module), attribute)
    except Exception as error:  # whatever the user's module raises
        raise ParameterError(
            f"algorithm must be a class that can be imported, got {home!r}:"
            f" {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, Algorithm)):
        raise ParameterError(f"algorithm must be a subclass of domkl.Algorithm, got {home!r}")
    return kind
