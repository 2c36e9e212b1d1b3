"""What a mesh file says, as values; the rules that its parts must keep with each other.

Every rule names the key of the file that breaks it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.algorithms.least_squares import DOMKRLS
from domkl.algorithms.registry import find, name_of
from domkl.core.features import RandomFeatures
from domkl.core.kernels import Dictionary, Linear, gaussian_bank
from domkl.core.losses import Logistic
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.transports.base import Address, check_name

Mode = Literal["lockstep", "async"]
TransportName = Literal["tls", "zenoh"]
MODES: tuple[Mode, ...] = ("lockstep", "async")
TRANSPORTS: tuple[TransportName, ...] = ("tls", "zenoh")
MOST = 10_000  # lags, frequencies: a slip of the finger must not fill the memory
WILDCARDS = ("0.0.0.0", "::", "*")


@dataclass(frozen=True)
class Member:
    """A learner of the mesh: where its neighbors find it, and where it answers HTTP."""

    name: str
    address: Address
    http: Address


@dataclass(frozen=True)
class MeshConfig:
    """All that a mesh file says.

    Parameters
    ----------
    queue : int
        Samples that a node may hold that are not learned yet.
    outside : "clip" or "refuse"
        What to do with a value outside of its declared range.
    lags : int or None
        Of a time series: the inputs are the last so many values of the target, newest first;
        ``inputs`` may then be left empty and follow from the target.
    kernels : "default" or bandwidths
        σ² of each Gaussian, or the dictionary that the algorithm has by itself.
    linear : bool
        Add the linear kernel to the bandwidths.
    members : tuple of Member
        In the order of the file, which is the order of sums.
    router : Address, optional
        Zenoh only: the router through which all learners speak.
    """

    members: tuple[Member, ...]
    edges: tuple[tuple[str, str], ...]
    target: Range
    inputs: tuple[Range, ...] = ()
    lags: int | None = None
    outside: Literal["clip", "refuse"] = "clip"
    algorithm: Algorithm = field(default_factory=DOMKRLS)
    kernels: Literal["default"] | tuple[float, ...] = "default"
    linear: bool = False
    n_frequencies: int = 50
    seed: int = 1
    dtype: Literal["float64", "float32"] = "float64"
    name: str = "mesh"
    mode: Mode = "lockstep"
    transport: TransportName = "tls"
    router: Address | None = None
    timing: Timing = Timing()
    checkpoint_every: int = 100
    queue: int = 10_000

    def __post_init__(self) -> None:
        if self.lags is not None and not self.inputs:
            object.__setattr__(self, "inputs", lag_ranges(self.target, self.lags))
        _check_running(self)
        _check_data(self)
        _check_learning(self)
        _check_members(self)
        _check_edges(self)

    @property
    def names(self) -> tuple[str, ...]:
        """All learners, in the order of the file."""
        return tuple(member.name for member in self.members)

    def member(self, name: str) -> Member:
        """Find a learner."""
        for each in self.members:
            if each.name == name:
                return each
        raise ParameterError(f"learner must be one of {', '.join(self.names)}, got {name!r}")

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Whom a learner hears, in the order of the file."""
        self.member(name)
        near = {a if b == name else b for a, b in self.edges if name in (a, b)}
        return tuple(each for each in self.names if each in near)

    def graph(self) -> Graph:
        """The network, its learners numbered in the order of the file."""
        number = {name: k for k, name in enumerate(self.names)}
        return Graph.from_edges(len(number), [(number[a], number[b]) for a, b in self.edges])

    def bank(self) -> Dictionary:
        """The kernels."""
        if self.kernels != "default":
            return (*gaussian_bank(self.kernels), *(Linear(),) * self.linear)
        return gaussian_bank([1.0]) if self.algorithm.single_kernel else self.algorithm.bank()

    def model(self) -> Model:
        """The agreed model; equal files give equal ones."""
        features = RandomFeatures.draw(
            self.bank(), len(self.inputs), self.n_frequencies, seed=self.seed
        )
        return Model(self.algorithm, features, self.inputs, self.target, self.dtype, self.outside)


def lag_ranges(target: Range, lags: int) -> tuple[Range, ...]:
    """The inputs of a time series, newest first, each with the range of the target."""
    n_lags = checks.whole("lags", lags, 1, MOST)
    return tuple(Range(f"lag {k}", target.low, target.high) for k in range(1, n_lags + 1))


def algorithm_name(algorithm: Algorithm) -> str:
    """The name that a mesh file has for it."""
    return find(name_of(algorithm), meshable=True).name


def _check_running(config: MeshConfig) -> None:
    checked("name", check_name, config.name)
    checks.choice("mode", config.mode, MODES)
    checks.choice("transport", config.transport, TRANSPORTS)
    if config.router is not None and config.transport != "zenoh":
        raise ParameterError(
            f"router is for transport zenoh, got {str(config.router)!r} with {config.transport}"
        )
    checks.whole("checkpoint_every", config.checkpoint_every, 1)
    checks.whole("queue", config.queue, 1)
    for key, seconds in config.timing._asdict().items():
        checks.positive(f"timing.{key}", seconds)
    if config.timing.silence <= config.timing.alive_every:
        raise ParameterError(
            f"timing.silence must be above timing.alive_every = {config.timing.alive_every!r},"
            f" got {config.timing.silence!r}"
        )


def _check_data(config: MeshConfig) -> None:
    checks.choice("outside", config.outside, ("clip", "refuse"))
    if not config.inputs:
        raise ParameterError("inputs must be at least one, got none; or set lags, for a series")
    if config.lags is not None and config.inputs != lag_ranges(config.target, config.lags):
        raise ParameterError("inputs and lags exclude each other; drop one of them")
    for names in (config.target.name,), tuple(each.name for each in config.inputs):
        for name in names:
            if not name.strip() or not name.isprintable():
                raise ParameterError(f"name of an input must be printable text, got {name!r}")
    ranges = [each.name for each in (*config.inputs, config.target)]
    for name in ranges:
        if ranges.count(name) > 1:
            raise ParameterError(f"inputs and target must have different names, got {name!r} twice")


def _check_learning(config: MeshConfig) -> None:
    name = algorithm_name(config.algorithm)
    if isinstance(config.algorithm.loss, Logistic):
        raise ParameterError(
            "model.parameters.loss must suit a target on a range, got 'logistic';"
            " a mesh predicts numbers, not classes"
        )
    checks.whole("model.seed", config.seed, 0)
    checks.whole("model.frequencies", config.n_frequencies, 1, MOST)
    checks.choice("model.dtype", config.dtype, ("float64", "float32"))
    if config.kernels == "default":
        if config.linear:
            raise ParameterError("model.linear is for bandwidths in model.kernels, got 'default'")
        return
    if not config.kernels:
        raise ParameterError("model.kernels must hold at least one bandwidth, got none")
    for k, bandwidth in enumerate(config.kernels, start=1):
        checks.positive(f"model.kernels, number {k},", bandwidth)
    n_kernels = len(config.kernels) + config.linear
    if config.algorithm.single_kernel and n_kernels > 1:
        raise ParameterError(
            f"model.kernels must be one for {name}, got {n_kernels}; or take domkl or domkrls"
        )


def _check_members(config: MeshConfig) -> None:
    if not config.members:
        raise ParameterError("learners must be at least one, got none")
    seen: set[str] = set()
    for name in config.names:
        checked("learners", check_name, name)
        if name in seen:
            raise ParameterError(f"learners must have different names, got {name!r} twice")
        seen.add(name)
    taken: dict[tuple[str, int], str] = {}
    for who, machine, address in _addresses(config):
        if address.port == 0:
            raise ParameterError(f"{who} must have a port of 1 to 65535, got {str(address)!r}")
        if (machine, address.port) in taken:
            raise ParameterError(
                f"{who} must have a port of its own, got {str(address)!r},"
                f" taken by {taken[machine, address.port]}"
            )
        taken[machine, address.port] = who


def _addresses(config: MeshConfig) -> Iterator[tuple[str, str, Address]]:
    """Who listens, on which machine, and where; loopback is that of the learner's own machine."""
    for member in config.members:
        here = member.address.host
        if here in WILDCARDS:
            raise ParameterError(
                f"address of {member.name} must be one that neighbors can dial,"
                f" got {str(member.address)!r}"
            )
        here = "loopback" if is_loopback(here) else here
        is_here = is_loopback(member.http.host) or member.http.host in WILDCARDS
        yield f"address of {member.name}", here, member.address
        yield f"http of {member.name}", here if is_here else member.http.host, member.http
    if config.router is not None:
        host = config.router.host
        yield "router", "loopback" if is_loopback(host) else host, config.router


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    return host in ("localhost", "::1") or host.startswith("127.")


def _check_edges(config: MeshConfig) -> None:
    known, seen = set(config.names), set()
    for a, b in config.edges:
        for end in (a, b):
            if end not in known:
                raise ParameterError(
                    f"edges must join learners, got {a} - {b}: there is no learner {end!r}"
                )
        if a == b:
            raise ParameterError(f"edges must join two different learners, got {a} - {b}")
        if frozenset((a, b)) in seen:
            raise ParameterError(f"edges must be different, got {a} - {b} twice")
        seen.add(frozenset((a, b)))
    graph = config.graph()
    if not graph.is_connected:
        first = int(graph.component[0])
        apart = [n for n, c in zip(config.names, graph.component, strict=True) if c != first]
        raise ParameterError(
            f"edges must connect all learners, got no way from {config.names[0]} to"
            f" {', '.join(apart[:3])}{' and others' if len(apart) > 3 else ''}; add an edge"
        )
    if config.algorithm.needs_acyclic and not graph.is_acyclic:
        raise ParameterError(
            "edges must form no cycle where model.parameters.weights is 'message-passing',"
            f" got {graph.n_edges} edges for {graph.n_learners} learners"
        )


def checked(key: str, rule: Any, value: Any) -> Any:
    """Apply a rule that does not know the key; say the key where it is broken."""
    try:
        return rule(value)
    except ParameterError as error:
        raise ParameterError(f"{key}: {error}") from None


def parameters_of(algorithm: Algorithm) -> dict[str, Any]:
    """An algorithm's parameters by name, its loss left out."""
    made: Any = algorithm
    return {each.name: getattr(made, each.name) for each in fields(made) if each.name != "loss"}
