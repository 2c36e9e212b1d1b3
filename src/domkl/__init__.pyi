# The public names of domkl, and where each is defined: the only list of them. Type checkers and
# editors read this file as it is; `__init__.py` reads it when domkl is imported, and imports a
# module when one of its names is first used. To make a name public, add a line here.

from domkl.algorithms.admm import DOKL as DOKL
from domkl.algorithms.admm import DOMKL as DOMKL
from domkl.algorithms.base import Algorithm as Algorithm
from domkl.algorithms.base import CompiledAlgorithm as CompiledAlgorithm
from domkl.algorithms.base import Function as Function
from domkl.algorithms.base import Inputs as Inputs
from domkl.algorithms.base import Net as Net
from domkl.algorithms.base import Prediction as Prediction
from domkl.algorithms.base import Sizes as Sizes
from domkl.algorithms.baselines import Alone as Alone
from domkl.algorithms.baselines import LastValue as LastValue
from domkl.algorithms.baselines import LinearRLS as LinearRLS
from domkl.algorithms.diffusion import RFFDOKL as RFFDOKL
from domkl.algorithms.diffusion import RFFDOMKL as RFFDOMKL
from domkl.algorithms.law import Law as Law
from domkl.algorithms.least_squares import DOMKRLS as DOMKRLS
from domkl.algorithms.server import COMKL as COMKL
from domkl.core.features import RandomFeatures as RandomFeatures
from domkl.core.hindsight import best_in_hindsight as best_in_hindsight
from domkl.core.kernels import Cauchy as Cauchy
from domkl.core.kernels import Gaussian as Gaussian
from domkl.core.kernels import Laplacian as Laplacian
from domkl.core.kernels import Linear as Linear
from domkl.core.kernels import Matern as Matern
from domkl.core.kernels import default_bank as default_bank
from domkl.core.kernels import gaussian_bank as gaussian_bank
from domkl.core.losses import Absolute as Absolute
from domkl.core.losses import Huber as Huber
from domkl.core.losses import Logistic as Logistic
from domkl.core.losses import Loss as Loss
from domkl.core.losses import Pinball as Pinball
from domkl.core.losses import Squared as Squared
from domkl.data.catalog import DATASETS as DATASETS
from domkl.data.catalog import DataSet as DataSet
from domkl.data.sets import Prepared as Prepared
from domkl.data.sets import load_series as load_series
from domkl.data.sets import load_set as load_set
from domkl.data.streams import Ranges as Ranges
from domkl.data.streams import deal as deal
from domkl.data.streams import embed as embed
from domkl.data.streams import scaled as scaled
from domkl.data.tables import load_table as load_table
from domkl.data.tables import read_columns as read_columns
from domkl.data.tables import read_ranges as read_ranges
from domkl.errors import DataError as DataError
from domkl.errors import DomklError as DomklError
from domkl.errors import GraphError as GraphError
from domkl.errors import ParameterError as ParameterError
from domkl.errors import WorkerError as WorkerError
from domkl.estimators.learner import Learner as Learner
from domkl.experiments.sweep.run import sweep as sweep
from domkl.experiments.sweep.table import Table as Table
from domkl.graphs.graph import Graph as Graph
from domkl.metrics.curves import running_average as running_average
from domkl.metrics.curves import with_paper_start as with_paper_start
from domkl.metrics.intervals import Interval as Interval
from domkl.metrics.intervals import interval as interval
from domkl.metrics.intervals import paired_interval as paired_interval
from domkl.metrics.regret import Regret as Regret
from domkl.sim.regret import regret as regret
from domkl.sim.result import Run as Run
from domkl.sim.simulate import simulate as simulate

__version__: str
