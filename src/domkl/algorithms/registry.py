"""Names of the algorithms, as the command line and the outputs spell them."""

from collections.abc import Callable

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
