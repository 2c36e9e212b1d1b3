"""Fully decentralised online learning with multiple kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from domkl.algorithms.admm import DOKL, DOMKL
    from domkl.algorithms.base import (
        Algorithm,
        CompiledAlgorithm,
        Function,
        Inputs,
        Net,
        Prediction,
        Sizes,
    )
    from domkl.algorithms.baselines import Alone, LastValue, LinearRLS
    from domkl.algorithms.diffusion import RFFDOKL, RFFDOMKL
    from domkl.algorithms.law import Law
    from domkl.algorithms.least_squares import DOMKRLS
    from domkl.algorithms.server import COMKL
    from domkl.core.features import RandomFeatures
    from domkl.core.hindsight import best_in_hindsight
    from domkl.core.kernels import (
        Cauchy,
        Gaussian,
        Laplacian,
        Linear,
        Matern,
        default_bank,
        gaussian_bank,
    )
    from domkl.core.losses import Absolute, Huber, Logistic, Loss, Pinball, Squared
    from domkl.data.catalog import DATASETS
    from domkl.data.loaders import load_series, load_table, read_columns
    from domkl.data.ranges import read_ranges
    from domkl.data.records import DataSet
    from domkl.data.sets import Prepared, load_set
    from domkl.data.streams import Ranges, deal, embed, scaled
    from domkl.errors import DataError, DomklError, GraphError, ParameterError, WorkerError
    from domkl.estimators.learner import Learner
    from domkl.experiments.sweep.run import sweep
    from domkl.experiments.sweep.table import Table
    from domkl.graphs.graph import Graph
    from domkl.metrics.curves import running_average, with_paper_start
    from domkl.metrics.intervals import Interval, interval, paired_interval
    from domkl.metrics.regret import Regret
    from domkl.sim.regret import regret
    from domkl.sim.result import Run
    from domkl.sim.simulate import simulate

# where each public name lives; loaded when first asked for, so that `import domkl` stays light
_HOMES = {
    "domkl.algorithms.base": "Algorithm CompiledAlgorithm Function Inputs Net Prediction Sizes",
    "domkl.algorithms.admm": "DOKL DOMKL",
    "domkl.algorithms.baselines": "Alone LastValue LinearRLS",
    "domkl.algorithms.diffusion": "RFFDOKL RFFDOMKL",
    "domkl.algorithms.law": "Law",
    "domkl.algorithms.least_squares": "DOMKRLS",
    "domkl.algorithms.server": "COMKL",
    "domkl.core.features": "RandomFeatures",
    "domkl.core.hindsight": "best_in_hindsight",
    "domkl.core.kernels": "Cauchy Gaussian Laplacian Linear Matern default_bank gaussian_bank",
    "domkl.core.losses": "Absolute Huber Logistic Loss Pinball Squared",
    "domkl.data.catalog": "DATASETS",
    "domkl.data.loaders": "load_series load_table read_columns",
    "domkl.data.ranges": "read_ranges",
    "domkl.data.records": "DataSet",
    "domkl.data.sets": "Prepared load_set",
    "domkl.data.streams": "Ranges deal embed scaled",
    "domkl.errors": "DataError DomklError GraphError ParameterError WorkerError",
    "domkl.estimators.learner": "Learner",
    "domkl.experiments.sweep.run": "sweep",
    "domkl.experiments.sweep.table": "Table",
    "domkl.graphs.graph": "Graph",
    "domkl.metrics.curves": "running_average with_paper_start",
    "domkl.metrics.intervals": "Interval interval paired_interval",
    "domkl.metrics.regret": "Regret",
    "domkl.sim.regret": "regret",
    "domkl.sim.result": "Run",
    "domkl.sim.simulate": "simulate",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "COMKL",
    "DATASETS",
    "DOKL",
    "DOMKL",
    "DOMKRLS",
    "RFFDOKL",
    "RFFDOMKL",
    "Absolute",
    "Algorithm",
    "Alone",
    "Cauchy",
    "CompiledAlgorithm",
    "DataError",
    "DataSet",
    "DomklError",
    "Function",
    "Gaussian",
    "Graph",
    "GraphError",
    "Huber",
    "Inputs",
    "Interval",
    "Laplacian",
    "LastValue",
    "Law",
    "Learner",
    "Linear",
    "LinearRLS",
    "Logistic",
    "Loss",
    "Matern",
    "Net",
    "ParameterError",
    "Pinball",
    "Prediction",
    "Prepared",
    "RandomFeatures",
    "Ranges",
    "Regret",
    "Run",
    "Sizes",
    "Squared",
    "Table",
    "WorkerError",
    "best_in_hindsight",
    "deal",
    "default_bank",
    "embed",
    "gaussian_bank",
    "interval",
    "load_series",
    "load_set",
    "load_table",
    "paired_interval",
    "read_columns",
    "read_ranges",
    "regret",
    "running_average",
    "scaled",
    "simulate",
    "sweep",
    "with_paper_start",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'domkl' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
