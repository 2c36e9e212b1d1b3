"""A cell: a few trials that share a stream and run together; their network and their records."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from domkl import checks
from domkl.algorithms.base import Algorithm, Net, Sizes
from domkl.core.exchange import Wires, delivered
from domkl.core.features import RandomFeatures
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph, disjoint_union
from domkl.sim.delay import Waiting
from domkl.sim.mpi.shard import Place, Shard
from domkl.speech.base import Speech
from domkl.speech.plain import PLAIN
from domkl.typing import Array, Floats

MOST_ROUNDS = 256  # of a chunk
MOST_VALUES = 2_000_000  # of a name's rows in a chunk


@dataclass(frozen=True)
class Options:
    """How a simulation is run and what is kept of it."""

    dtype: str = "float64"
    cv: str = "off"
    kept: tuple[str, ...] = ()  # names of `Records`
    seed: int = 0
    threads: int = 1  # for each cell
    is_patient: bool = False  # whether a small run may do without the compiler
    delay: int = 0  # rounds until a label is seen
    speech: Speech = PLAIN
    levels: tuple[float, ...] = ()  # of quantiles; `kept` has a name for each, see `quantile_name`

    def __post_init__(self) -> None:
        checks.choice("dtype", self.dtype, ("float64", "float32"))
        checks.choice("cv", self.cv, ("exact", "moments", "sampled", "off"))
        checks.whole("threads", self.threads, 1)
        if not isinstance(self.speech, Speech):
            raise ParameterError(f"speech must be a Speech, got {self.speech!r}")


def quantile_name(level: float) -> str:
    """The name of a quantile's records."""
    return f"quantile {level!r}"


@dataclass
class Cell:
    """A few trials that run together, and what came of them."""

    graphs: list[Graph]
    maps: list[RandomFeatures]
    algorithm: Algorithm
    options: Options = Options()
    first_trial: int = 0
    place: Place | None = None  # of a network that is spread over several
    state: Any = None
    waiting: Waiting | None = None  # what was predicted and has no label yet
    records: "Records | None" = None
    sampled: tuple[Floats, Floats] | None = None  # mean and variance of a sampled cv, (T, B) each

    @cached_property
    def network(self) -> "Network":
        """The graphs, as the algorithm uses them."""
        return Network(self.graphs, is_alone=self.algorithm.is_alone, place=self.place)

    def first_state(self, n_rows: int | None = None) -> Any:
        """The state before the first round, of all learners unless a number of rows is given."""
        network, features = self.network, self.maps[0]
        n_learners = network.graph.n_learners if n_rows is None else n_rows
        shape = (n_learners, features.n_kernels, features.n_features, features.n_inputs)
        rest = (network.n_edges, self.options.dtype, features.n_frequencies, features.linear)
        return self.algorithm.init(Sizes(*shape, *rest))


class Network:
    """Several trials' graphs, side by side as the components of one, with buffers for messages.

    ``is_alone`` takes all edges away, for what is said as for what is summed; the graphs stay
    what the metrics see. At a ``place`` that is one of several, the graph has no edges, and what
    is heard comes from the other places too.
    """

    def __init__(self, graphs: list[Graph], *, is_alone: bool, place: Place | None = None) -> None:
        self.n_trials = len(graphs)
        self.n_learners = graphs[0].n_learners  # of one trial
        self.graph = disjoint_union(graphs)
        edges: Graph | Shard = Graph.empty(self.graph.n_learners) if is_alone else self.graph
        self._edges = place.shard if place is not None else edges
        self._place = place
        self.total = None if place is None else place.total
        self._span = 1 if is_alone else self.n_learners
        size = np.full(self.graph.n_learners, float(self._span))
        self.net = Net(self._edges.degree.astype(np.float64), size, self._edges.indptr)
        self._buffers: dict[str, Array] = {}

    @property
    def n_edges(self) -> int:
        """Directed ones, that messages use."""
        return len(self._edges.indices)

    @cached_property
    def wires(self) -> Wires:
        """The network as compiled code takes it."""
        edges = self._edges
        weight, reverse = (
            (edges.metropolis[1], edges.reverse)
            if isinstance(edges, Graph)
            else (edges.weight, np.empty(0, dtype=np.int64))
        )
        return Wires(edges.indptr, edges.indices, weight, reverse, self._span)

    def share(self, *values: Array) -> None:
        """Fill the rows of learners elsewhere, which stand behind those of this place."""
        if self._place is not None:
            self._place.share(*values)

    def deliver(self, algorithm: Algorithm, message: Any, words: Any) -> Any:
        """Give what is heard of what was said of a message, a tuple of the message's own type."""
        exchange = algorithm.exchange
        if set(exchange) != set(message._fields):
            raise ParameterError(
                f"exchange must name the message's fields {', '.join(message._fields)},"
                f" got {', '.join(exchange) or 'none'}"
            )
        exact = [np.ascontiguousarray(values) for values in message]
        said = exact if words is message else list(words)
        if isinstance(self._edges, Shard):
            said = [self._edges.extended(values) for values in said]
            self.share(*said)
        heard = []
        for field, values, before in zip(message._fields, said, exact, strict=True):
            own = values[: len(before)]  # others stand behind those of this place
            if field not in self._buffers:
                self._buffers[field] = np.empty_like(own)
            out = self._buffers[field]
            heard.append(delivered(exchange[field], values, own, self.wires, out, before))
        return type(message)(*heard)


class Records:
    """Per-learner rows of each round, in chunks; every full chunk is averaged over trials.

    A row is written in place, so that a round costs no more than the copies. Names:
    ``predictions`` and ``targets``; ``spread``, Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² over the trial, and
    ``inside``, over the learner's component; ``gaps``, the squared discrepancy to neighbors;
    ``deviation``, the predictions' own, and quantiles of the labels. Chunks hold a multiple of
    ``at_once`` rounds.
    """

    def __init__(self, cell: Cell, at_once: int = 1) -> None:
        self._shape = (cell.network.n_trials, cell.network.n_learners)
        n_rows = self._shape[0] * self._shape[1]
        self._chunk = max(1, min(MOST_ROUNDS, MOST_VALUES // n_rows) // at_once) * at_once
        self._kept = cell.options.kept
        names = {"predictions", "targets", *self._kept}
        if cell.options.cv in ("exact", "moments"):
            names |= {"spread", "inside"}
        self._rows: dict[str, Floats] = {name: np.zeros((self._chunk, n_rows)) for name in names}
        self._chunks: dict[str, list[Any]] = {}  # of what was reduced, and kept
        self._filled = 0
        self.n_rounds = 0

    def keeps(self, name: str) -> bool:
        """Whether all rows of this name are kept."""
        return name in self._kept

    def row(self, name: str) -> Floats:
        """This round's row (B·K,), to be written."""
        row: Floats = self._rows[name][self._filled]
        return row

    def rows(self, name: str, n_rounds: int) -> Floats:
        """The next rounds' rows (n, B·K), to be written; at most `n_free` of them."""
        return self._rows[name][self._filled : self._filled + n_rounds]

    @property
    def n_free(self) -> int:
        """Rows that can be had at once."""
        return self._chunk - self._filled

    def end_rounds(self, n_rounds: int = 1) -> None:
        """Go on to the next rows."""
        self._filled += n_rounds
        self.n_rounds += n_rounds
        if self._filled == self._chunk:
            self._reduce()

    def _reduce(self) -> None:
        rows = {name: values[: self._filled] for name, values in self._rows.items()}
        squares = (rows["predictions"] - rows["targets"]) ** 2
        is_known = ~np.isnan(squares)
        squares[~is_known] = 0.0
        n_labels, total = self._summed(is_known), self._summed(squares)
        error = np.where(n_labels > 0, total / np.maximum(n_labels, 1), np.nan)
        gaps = np.full(error.shape, np.nan)
        if "spread" in rows:
            n_learners = self._shape[1]
            gaps = self._summed(rows["spread"]) / n_learners / max(n_learners - 1, 1)
        found = {"squared_error": error, "n_labels": n_labels, "disagreement": gaps}
        for name in self._kept:
            found[name] = rows[name].copy().reshape(-1, *self._shape)
        for name, values in found.items():
            self._chunks.setdefault(name, []).append(values)
        self._filled = 0

    def _summed(self, rows: Any) -> Any:
        """Over the learners of each trial."""
        return rows.reshape(len(rows), *self._shape).sum(axis=2)

    def found(self, name: str) -> Any:
        """All rows of a name that was kept, (B, T, K), or None; or a value of each round, (B, T):

        ``squared_error``, the mean over the learners with a label, NaN without any; ``n_labels``;
        ``disagreement``, the mean over ordered pairs of learners, NaN if it is not measured.
        """
        if self._filled:
            self._reduce()
        chunks = self._chunks.get(name)
        return None if chunks is None else np.concatenate(chunks).swapaxes(0, 1)
