"""The compiled functions of an algorithm, and how a host finds them.

A host is compiled for a type of state and calls `predict`, `local_step`, `merge` and `function` of
this module. Which functions these are is looked up by the class of the state, by Numba when it
compiles the host, and by Python where the compiler is switched off. So hosts name no algorithm, and
a user's law runs in the same hosts as the package's own.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from domkl import checks
from domkl.core.exchange import Delivery
from domkl.core.jit import FOREIGN, IS_COMPILING, name_apart, sweep
from domkl.core.numba_internals import by_class
from domkl.errors import ParameterError
from domkl.typing import Array, Floats

#: by the class of the state, and by that of the message
LAWS: dict[type, "Law"] = {}
MESSAGES: dict[type, "Law"] = {}
FUNCTIONS = ("predict", "local_step", "merge", "function", "deviation")


@dataclass(eq=False, repr=False)
class Law:
    """What one round does to learners' states, as functions that Numba can compile.

    Every array has one entry per learner on its first axis. The functions are called with the rows
    of all learners or of some, so a learner must not look at any row but its own. Results are
    written in place; nothing is returned, except by ``function``.

    Parameters
    ----------
    state, message : NamedTuple classes of arrays
        Of this law only.
    predict : predict(state, parameters, inputs, prediction)
        Write ``prediction.y_hat`` (K,) and ``prediction.by_kernel`` (K, P) for ``inputs`` with x
        (K, d), z (K, P, D) and energy (K, P).
    local_step : local_step(state, parameters, inputs, y, prediction, net, message)
        Learn the labels y (K,): update the state, and write every field of the message. Inputs and
        prediction are those of the labels' round, which may be some rounds ago.
    merge : merge(state, parameters, heard, net) or merge(state, parameters, heard, net, said)
        Take in what was heard: the fields of the message, delivered. ``said`` is the learner's own
        message as its neighbors decode it, None where that is the message itself. A law whose steps
        mix its own values with its neighbors' takes it, so that both ends use the same numbers.
    exchange : mapping
        How the host delivers each field of the message, as algorithms/base.py says.
    function : function(state) -> (theta (K, P, D), weights (K, P)), optional
        The learned functions where they have the form (6); needed to measure CV in compiled rounds.
    deviation : deviation(state, parameters, inputs, prediction, out), optional
        Write the standard deviation (K,) of each prediction that `predict` has made.
    carried : names of fields of the message, optional
        Those that the state has under the same name and `merge` does not write. The message's is
        then the state's own array, and hosts need no second copy of it. What `local_step` writes to
        the message is so kept in the state; of a field that is neither carried nor written by
        `merge`, it must write both.
    by_edge : names of fields of the state, optional
        Those with one row per directed edge instead of one per learner.
    room : mapping, optional
        For a field of the message, the field of the state that has its shape; by default the one of
        the same name.
    scratch : names of fields of the state, optional
        Those that `merge` writes in full and that nothing reads after the next `local_step`. A
        host may hold them for a few learners at a time only, and use their arrays meanwhile.
    notes : notes(state) -> int, optional
        How many numbers `predict` writes to each learner's row of ``prediction.notes``, for the
        `local_step` that learns the label. None by default.
    is_separable : bool
        Whether kernels have no influence on each other but through the weights of ``function``, and
        every field of state and message has kernels on its second axis. Then a host may run some
        kernels through many rounds before the others.
    """

    state: Any
    message: Any
    predict: Callable[..., None]
    local_step: Callable[..., None]
    merge: Callable[..., None]
    function: Callable[..., tuple[Array, Floats]] | None = None
    deviation: Callable[..., None] | None = None
    _: KW_ONLY
    exchange: Mapping[str, Delivery]
    carried: tuple[str, ...] = ()
    by_edge: tuple[str, ...] = ()
    room: Mapping[str, str] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    notes: Callable[[Any], int] | None = None
    is_separable: bool = False
    #: False once Numba has refused one of the functions
    is_compiled: bool = field(default=IS_COMPILING, init=False)

    def __post_init__(self) -> None:
        for kind in (self.state, self.message):
            if kind in LAWS or kind in MESSAGES:
                raise ParameterError(
                    f"{kind.__qualname__} must belong to one law, got a second;"
                    f" define a NamedTuple class for each (this one is of {kind.__module__})"
                )
        self._check_names()
        merge = getattr(self.merge, "py_func", self.merge)
        #: whether `merge` takes the learner's own message as it was said
        self.takes_said = len(inspect.signature(merge).parameters) > 4
        for name in FUNCTIONS:
            setattr(self, name, _compiled(getattr(self, name)))
        for kind in (self.state, self.message):
            name_apart(kind)
        LAWS[self.state] = MESSAGES[self.message] = self
        parts = (self.predict, self.local_step, self.merge, self.function or self.merge)
        FOREIGN[self.state] = FOREIGN[self.message] = parts

    def _check_names(self) -> None:
        """Raise where an argument names a field that is not there, or leaves one out."""
        kept, said = _fields("state", self.state), _fields("message", self.message)
        known = {"carried": [name for name in said if name in kept], "by_edge": kept}
        for argument, names in (known | {"scratch": kept}).items():
            given = getattr(self, argument)
            if isinstance(given, str):
                raise ParameterError(f"{argument} must be a tuple of names, got {given!r}")
            for name in given:
                checks.choice(f"{argument} of the law of {self.state.__qualname__}", name, names)
        if set(self.exchange) != set(said):
            raise ParameterError(
                f"exchange must name the fields of {self.message.__qualname__},"
                f" {', '.join(said)}, got {', '.join(self.exchange) or 'none'}"
            )
        for name in self.room:
            checks.choice("room", name, said)
        for name in said:
            if self.room.get(name, name) not in kept:
                raise ParameterError(
                    f"room must name a field of {self.state.__qualname__} that has the shape of"
                    f" {name!r} of the message: one of {', '.join(kept)},"
                    f" got {self.room.get(name, name)!r}"
                )

    def give_up(self, name: str, error: Exception) -> None:
        """Call the functions as Python from now on: Numba has refused one of a user's."""
        if self.state.__module__.startswith("domkl."):
            raise error
        said = " ".join(str(error).split())
        place = f"{self.state.__module__}.{self.state.__qualname__}"
        warnings.warn(
            f"{name} of the law of {place} cannot be compiled and runs interpreted: {said[:300]}",
            stacklevel=4,
        )
        for each in FUNCTIONS:
            function = getattr(self, each)
            setattr(self, each, getattr(function, "py_func", function))
        self.is_compiled = False


def _fields(argument: str, kind: Any) -> tuple[str, ...]:
    names: tuple[str, ...] | None = getattr(kind, "_fields", None)
    if names is None:
        raise ParameterError(f"{argument} must be a NamedTuple class, got {kind!r}")
    return names


def _compiled(function: Any) -> Any:
    """The function as it is, where there is none or the user has compiled it."""
    is_ready = function is None or hasattr(function, "py_func") or not IS_COMPILING
    return function if is_ready else sweep(function)


# What hosts call: the law of the class of the state gives the function.


@by_class
def predict(state: Any, parameters: Any, inputs: Any, prediction: Any) -> Any:
    """Call the law's own."""
    return LAWS[state].predict


@by_class
def local_step(
    state: Any, parameters: Any, inputs: Any, y: Any, prediction: Any, net: Any, message: Any
) -> Any:
    """Call the law's own."""
    return LAWS[state].local_step


@by_class
def merge(state: Any, parameters: Any, heard: Any, net: Any, said: Any) -> Any:
    """Call the law's own, with what was said where it takes that."""
    own = LAWS[state].merge
    if LAWS[state].takes_said:
        return own
    return lambda state, parameters, heard, net, said: own(state, parameters, heard, net)


@by_class
def function(state: Any) -> Any:
    """Call the law's own; None without one."""
    return LAWS[state].function or "return None"
