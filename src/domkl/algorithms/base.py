"""What an algorithm is, and what its host owes it.

The rules of an algorithm:

- A learner is a deterministic machine. `local_step` takes a sample and gives a message; `merge`
  takes what was heard and gives the next state. No clock, no randomness, no I/O.
- Arrays carry any number of learners on their first axis. Learners do not see each other there:
  all they know of the network is in `Net` and in what was heard.
- Step functions may update the state in place, and return it. Every other array is the host's and
  is valid during the call only: copy what the state is to keep.

The host delivers each field of the message as `exchange` says:

- ``"sum"``: Σ of the neighbors' values, in ascending neighbor id;
- ``"gap"``: Σ of the neighbors' values less the learner's own, in that order;
- ``"metropolis"``: the sum with Metropolis weights, the learner's own value included;
- ``"edge"``: one row per directed edge goes out, and the neighbors' rows for the learner come in;
- ``"total"``: Σ over all learners of the network, as a server would hear it.

There are two ways to write one. A subclass of `Algorithm` has methods of NumPy code; hosts call
them round by round. A subclass of `CompiledAlgorithm` has a `Law`, functions that Numba compiles,
and whole runs of it are compiled.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from domkl import checks
from domkl.algorithms.law import Law
from domkl.core.exchange import DELIVERIES, Delivery
from domkl.core.jit import IS_COMPILING, Parameters
from domkl.core.kernels import Dictionary, gaussian_bank
from domkl.core.losses import Loss, check_loss
from domkl.core.numba_internals import NumbaError, is_at_hand, is_stored, machine_code, types_of
from domkl.errors import ParameterError
from domkl.typing import Array, Floats, Ints


class Sizes(NamedTuple):
    """What `init` needs to allocate a state."""

    n_learners: int
    n_kernels: int
    n_features: int
    n_inputs: int
    n_edges: int  # directed
    dtype: DTypeLike
    n_frequencies: int
    linear: bool  # whether the last kernel is the linear one

    @property
    def theta(self) -> tuple[int, int, int]:
        """(K, P, D)."""
        return self.n_learners, self.n_kernels, self.n_features

    @property
    def weights(self) -> tuple[int, int]:
        """(K, P)."""
        return self.n_learners, self.n_kernels

    @property
    def lengths(self) -> tuple[int, ...]:
        """Features of each kernel that are no padding, (P,)."""
        fourier = (2 * self.n_frequencies,) * (self.n_kernels - self.linear)
        return fourier + (self.n_inputs + 1,) * self.linear


class Inputs(NamedTuple):
    """One round's inputs of every learner."""

    x: Floats  # (K, d)
    z: Array  # (K, P, D)
    energy: Floats  # (K, P)  ‖z‖²


class Net(NamedTuple):
    """What a learner knows of the network."""

    degree: Floats  # (K,)      number of neighbors
    size: Floats  # (K,)        number of learners that a total spans
    indptr: Ints  # (K + 1,)    learner k's directed edges are indptr[k]:indptr[k + 1]


NO_NOTES = np.empty((0, 0))


class Prediction(NamedTuple):
    """What was said of the inputs before the labels were seen."""

    y_hat: Floats  # (K,)
    by_kernel: Floats  # (K, P)
    notes: Floats = NO_NOTES  # (K, N)  what a law notes for the step that learns the label


def at_positions(prediction: Prediction, deviation: Floats | None, z: Floats) -> Floats | None:
    """Give ŷ + zσ for positions z (J,) or (K, J): (K, J); ŷ itself at 0, also if σ is infinite."""
    if deviation is None:
        return None
    with np.errstate(invalid="ignore"):
        apart = np.where(z == 0, 0.0, deviation[:, None] * z)
    return np.asarray(prediction.y_hat[:, None] + apart)


class Function(NamedTuple):
    """A learned function, Σ_p q_p θ_pᵀ z_p(x), eq. (6)."""

    theta: Array  # (K, P, D)
    weights: Floats  # (K, P)


class Algorithm(Parameters, ABC):
    """Base of every algorithm, the user's own included."""

    #: takes features of one kernel and refuses more
    single_kernel: bool = False
    #: runs on graphs without cycles only
    needs_acyclic: bool = False
    #: looks at z, and not at x alone; features that nobody looks at are not made
    uses_features: bool = True
    #: fields of the state with one row per directed edge instead of one per learner
    by_edge: tuple[str, ...] = ()
    #: the loss it learns by, where labels must suit it
    loss: Loss | None = None
    #: has no neighbors, whatever the graph
    is_alone: bool = False
    #: time of a learner-step and kernel, with DOMKL's as 1: for estimates of the time that is left
    relative_cost: float = 1.0
    #: takes NaN for the label of a learner that has none in a round: it then only follows
    takes_missing: bool = False
    #: its compiled functions, where it has any
    law: ClassVar[Law | None] = None

    @property
    @abstractmethod
    def exchange(self) -> Mapping[str, Delivery]:
        """How the host delivers each field of the message."""

    @abstractmethod
    def init(self, sizes: Sizes) -> Any:
        """Give the state before the first sample: a NamedTuple of arrays."""

    @abstractmethod
    def predict(self, state: Any, inputs: Inputs) -> Prediction:
        """Predict every learner's label."""

    @abstractmethod
    def local_step(
        self, state: Any, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[Any, Any]:
        """Learn from one labelled sample each; give the state and what neighbors should hear.

        The prediction is the one made for these inputs, some rounds ago if labels come late.
        """

    @abstractmethod
    def merge(self, state: Any, heard: Any, net: Net) -> Any:
        """Take in what was heard.

        A method with a fourth argument, ``said``, is also given the learner's own message as its
        neighbors decode it; None where that is the message itself.
        """

    @property
    def takes_said(self) -> bool:
        """Whether `merge` takes the learner's own message as it was said."""
        return _takes_said(type(self))

    def idle_step(self, state: Any, net: Net) -> tuple[Any, Any] | None:
        """Step without a sample, and say what neighbors should hear: so a learner follows them.

        None where the algorithm cannot; such a learner is silent until it has a sample.
        """
        return None

    def amend(self, state: Any, gaps: Mapping[str, Array], net: Net) -> Any:
        """Give the state as if the fields delivered as "gap" had been heard with these, too.

        Override this only if your state accumulates gaps (ADMM duals do).
        """
        return state

    def leave(self, state: Any) -> Any:
        """Give the state of learners that leave their network, without what ties them to it."""
        return state

    def delayed(self, delay: int) -> "Algorithm":
        """Give the same algorithm for labels that come so many rounds late."""
        return self

    def at(self, state: Any, step: int) -> Any:
        """Give the state of learners whose next label belongs to this step of their clock."""
        return state

    def function(self, state: Any) -> Function | None:
        """Give the learned functions where they have the form (6); None where they do not."""
        return None

    def deviation(self, state: Any, inputs: Inputs, prediction: Prediction) -> Floats | None:
        """Give the standard deviation of each prediction for these inputs, (K,); None without."""
        return None

    def quantiles(
        self, state: Any, inputs: Inputs, prediction: Prediction, levels: Floats
    ) -> Floats | None:
        """Give the quantiles of each label, of levels (J,) in (0, 1): (K, J); None without.

        By default those of a normal distribution with the `deviation`.
        """
        z = np.array([NormalDist().inv_cdf(level) for level in levels])
        return at_positions(prediction, self.deviation(state, inputs, prediction), z)

    def bank(self) -> Dictionary:
        """Give the dictionary to run it with where the user names none."""
        return gaussian_bank()

    @property
    def is_meshable(self) -> bool:
        """Whether one process per learner can run it: all that it hears comes from neighbors."""
        ways = [DELIVERIES[how] for how in self.exchange.values()]
        return bool(ways) and not any(way.spans_all for way in ways) and not self.is_alone

    def parameters(self) -> dict[str, Any]:
        """What can be set."""
        names = (each.name for each in fields(self)) if is_dataclass(self) else vars(self)
        return {name: getattr(self, name) for name in names}

    def replaced(self, **given: Any) -> "Algorithm":
        """Give the same algorithm with some parameters set."""
        if not hasattr(self, "__dataclass_fields__"):
            raise ParameterError(
                f"{type(self).__name__} must be a dataclass, so that its parameters can be set"
            )
        made: Algorithm = replace(self, **given)  # type: ignore[type-var]
        return made

    def suited(self, **given: Any) -> "Algorithm":
        """Set what the data tell, as far as there are such parameters and they are left open."""
        own = self.parameters()
        told = {k: v for k, v in given.items() if v is not None and own.get(k, 0) is None}
        return self.replaced(**told) if told else self

    @cached_property
    def compiled(self) -> Any:
        """The parameters as the functions of the law take them: a NamedTuple."""
        return self.as_tuple()

    def message(self, state: Any) -> Any:
        """Give a message of a law to be written: carried fields are the state's own arrays."""
        law: Any = self.law
        kind, room = law.message, law.room
        return kind(
            *(
                getattr(state, name)
                if name in law.carried
                else _zeros(getattr(state, room.get(name, name)))
                for name in kind._fields
            )
        )


def _zeros(like: Array) -> Array:
    return np.zeros(like.shape, like.dtype)  # np.zeros_like takes five times as long


class CompiledAlgorithm(Algorithm):
    """Base of every algorithm whose rounds are compiled: it has a `law` and `init`.

    The methods below call the law's functions for hosts that go round by round, such as the mesh.
    A subclass is a frozen dataclass of its parameters; the law gets them as a NamedTuple.
    """

    law: ClassVar[Law]

    @property
    def exchange(self) -> Mapping[str, Delivery]:
        """How the host delivers each field of the message."""
        return self.law.exchange

    @property
    def by_edge(self) -> tuple[str, ...]:  # type: ignore[override]
        """Fields of the state with one row per directed edge."""
        return self.law.by_edge

    def predict(self, state: Any, inputs: Inputs) -> Prediction:
        """Predict every learner's label."""
        shape = inputs.energy.shape
        notes = np.empty((shape[0], n_notes(self.law, state)))
        prediction = Prediction(np.empty(shape[0]), np.empty(shape), notes)
        self._call("predict", state, self.compiled, inputs, prediction)
        return prediction

    def local_step(
        self, state: Any, inputs: Inputs, y: Floats, prediction: Prediction, net: Net
    ) -> tuple[Any, Any]:
        """Learn from one labelled sample each; give the state and what neighbors should hear."""
        message = self.message(state)
        given = (inputs, y, prediction, net, message)
        self._call("local_step", state, self.compiled, *given)
        return state, message

    def merge(self, state: Any, heard: Any, net: Net, said: Any = None) -> Any:
        """Take in what was heard."""
        given = (state, self.compiled, heard, net)
        self._call("merge", *given, *((said,) if self.law.takes_said else ()))
        return state

    def _call(self, name: str, *given: Any) -> Any:
        """Call a function of the law; where Numba cannot compile a user's, call it as Python."""
        try:
            return machine_code(getattr(self.law, name), *given)(*given)
        except NumbaError as error:
            self.law.give_up(name, error)
            return getattr(self.law, name)(*given)

    def function(self, state: Any) -> Function | None:
        """Give the learned functions where the law has them."""
        return None if self.law.function is None else Function(*self._call("function", state))

    def deviation(self, state: Any, inputs: Inputs, prediction: Prediction) -> Floats | None:
        """Give the standard deviation of each prediction where the law has one."""
        if self.law.deviation is None:
            return None
        out = np.empty(len(prediction.y_hat))
        self._call("deviation", state, self.compiled, inputs, prediction, out)
        return out


class KernelAlgorithm(CompiledAlgorithm):
    """Base of the paper's algorithms: their rates are positive, and any convex loss will do.

    A learner without a label steps as if its loss were 0. Fields of the state are 0 at first, of
    the shape of θ unless they have one of the names below; weights are equal.
    """

    takes_missing = True

    def __post_init__(self) -> None:
        for name in ("rho", "eta_l", "eta_g", "step"):
            if hasattr(self, name):
                checks.positive(name, getattr(self, name))
        check_loss(self.loss)

    def init(self, sizes: Sizes) -> Any:
        """All zero, and equal weights."""
        n_edges = sizes.n_edges if "inbox" in self.by_edge else 0
        given: dict[str, Any] = {
            "loss": np.zeros(sizes.weights),
            "weights": np.full(sizes.weights, 1 / sizes.n_kernels),
            "inbox": np.zeros((n_edges, sizes.n_kernels)),
        }
        state: Any = self.law.state
        for name in state._fields:
            if name not in given:
                given[name] = np.zeros(sizes.theta, sizes.dtype)
        return state(*(given[name] for name in state._fields))


@cache
def _takes_said(kind: type[Algorithm]) -> bool:
    return "said" in inspect.signature(kind.merge).parameters


def merged(algorithm: Algorithm, state: Any, heard: Any, net: Net, said: Any) -> Any:
    """Merge, with the learners' own words, None if exact, for an algorithm that takes them."""
    return algorithm.merge(state, heard, net, *((said,) if algorithm.takes_said else ()))


def n_notes(law: Law, state: Any) -> int:
    """How many numbers a prediction leaves for the step that learns its label."""
    return 0 if law.notes is None else law.notes(state)


#: seconds that may be lost by running interpreted before a host is compiled, which costs some more
PATIENCE = 2.0
_lost: dict[Any, float] = {}


def is_worth_compiling(dispatcher: Any, arguments: tuple[Any, ...], seconds: float) -> bool:
    """Whether to call a compiled function, if running interpreted would lose so many seconds.

    It is where its binary is at hand or stored on disk, and where `PATIENCE` is used up by this
    call and those before it. So a first small run does not wait for the compiler.
    """
    if not IS_COMPILING or is_at_hand(dispatcher, arguments):
        return True
    key = (dispatcher, types_of(arguments))
    is_new = key not in _lost
    _lost[key] = _lost.get(key, 0.0) + seconds
    return (is_new and is_stored(dispatcher, arguments)) or _lost[key] >= PATIENCE
