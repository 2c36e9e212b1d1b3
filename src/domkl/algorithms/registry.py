"""Names of the algorithms, as the command line and the outputs spell them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from domkl.algorithms.base import Algorithm
from domkl.algorithms.baselines import Alone, LastValue
from domkl.algorithms.comkl import COMKL
from domkl.algorithms.dokl import DOKL
from domkl.algorithms.domkl import DOMKL
from domkl.algorithms.domkrls import DOMKRLS
from domkl.algorithms.linear_rls import LinearRLS
from domkl.algorithms.rff_dokl import RFFDOKL
from domkl.algorithms.rff_domkl import RFFDOMKL

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "domkl": DOMKL,
    "domkrls": DOMKRLS,
    "dokl": DOKL,
    "comkl": COMKL,
    "rff-dokl": RFFDOKL,
    "rff-domkl": RFFDOMKL,
    "alone": lambda: Alone(DOMKL()),
    "last-value": LastValue,
    "linear-rls": LinearRLS,
}


def parameters(algorithm: Algorithm) -> dict[str, Any]:
    """What can be set of an algorithm; of one that runs alone, of the one inside.

    Examples
    --------
    >>> parameters(ALGORITHMS["alone"]())["rho"]
    2.0
    """
    inner: Any = algorithm.algorithm if isinstance(algorithm, Alone) else algorithm
    return dict(vars(inner))


def replaced(algorithm: Algorithm, **given: Any) -> Algorithm:
    """Set some of its parameters.

    Examples
    --------
    >>> replaced(DOMKL(), rho=0.5).rho
    0.5
    """
    if isinstance(algorithm, Alone):
        return Alone(replaced(algorithm.algorithm, **given))
    made: Algorithm = replace(algorithm, **given)  # type: ignore[type-var]
    return made
