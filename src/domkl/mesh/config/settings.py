"""The content of a mesh file as values, and the rules between its parts.

Every error names the key of the file that breaks the rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.algorithms.registry import find, name_of
from domkl.core.features import RandomFeatures
from domkl.core.kernels import Dictionary, Linear, gaussian_bank
from domkl.core.losses import Logistic
from domkl.data.clock import CALENDAR, DAY, MOST_TICKS, Clock, parse_duration
from domkl.data.rows import RowPlan
from domkl.errors import ParameterError
from domkl.graphs.graph import Graph
from domkl.mesh.config.keys import ALGORITHM, MOST, ForecastKeys, PlainKeys, keys_of, path_of
from domkl.mesh.config.topology import HOST, HTTP_PORT, PORT
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.transports import registry
from domkl.mesh.transports.base import Address, check_name

BOTH = "inputs and lags exclude each other; drop one of them, or set forecast.lags to have both"
WILDCARDS = ("0.0.0.0", "::", "*")


@dataclass(frozen=True)
class Member:
    """A learner of the mesh: where its neighbors find it, and where it answers HTTP.

    ``place`` are coordinates on a map, east and north in any unit; only the page uses them.
    """

    name: str
    address: Address
    http: Address
    place: tuple[float, float] | None = None


@dataclass(frozen=True)
class Forecasting(ForecastKeys):
    """How learners turn a stream of values into inputs, and how far ahead they forecast."""

    def __post_init__(self) -> None:
        if not self.horizons:
            raise ParameterError("horizons must be at least one, got none")
        for key in ("horizons", "lags"):
            for value in getattr(self, key):
                checks.whole(key, value, 1, MOST)
        for name in self.calendar:
            checks.choice("calendar", name, CALENDAR)
        if self.n_season < 1:
            raise ParameterError(
                f"season must be at least one step of {self.step}, got {self.season}"
            )

    @property
    def clock(self) -> Clock:
        """Ticks since 1970."""
        return Clock(0, parse_duration(self.step))

    @property
    def n_season(self) -> int:
        """Steps of a season."""
        return parse_duration(self.season) // self.clock.step

    def plan(self, target: Range, inputs: Sequence[Range]) -> RowPlan:
        """Which rows to make."""
        names = [each.name for each in inputs]
        for name in self.ahead:
            if name not in (*names, *CALENDAR):
                raise ParameterError(
                    f"ahead must name inputs, {', '.join(names) or 'none'}, got {name!r}"
                )
        now = tuple(name for name in names if name not in self.ahead)
        return RowPlan(
            target.name,
            lags=self.lags,
            inputs=(*now, *(name for name in self.calendar if name not in self.ahead)),
            ahead=self.ahead,
            horizons=self.horizons,
            hold=parse_duration(self.hold) // self.clock.step,
            scales={each.name: (each.low, each.high - each.low) for each in (target, *inputs)},
            clock=self.clock,
        )

    @property
    def season_words(self) -> str:
        """The season for people: a day, or as it was given."""
        return "a day" if parse_duration(self.season) == DAY else self.season


@dataclass(frozen=True)
class MeshConfig(PlainKeys):
    """The content of a mesh file; `PlainKeys` has the keys with one value.

    Parameters
    ----------
    members : tuple of Member
        In the order of the file; messages are summed in this order.
    inputs : tuple of Range
        May be left empty if ``lags`` is given.
    kernels : "default" or bandwidths
        σ² of each Gaussian kernel, or the algorithm's own kernels.
    router : Address, optional
        The router through which all learners communicate, for transports that can use one.
    forecast : Forecasting, optional
        Learners forecast the target: lags together with ``inputs``, and as many steps ahead as its
        horizons say. ``lags`` must be None.
    """

    members: tuple[Member, ...] = field(metadata={"path": "learners"})
    edges: tuple[tuple[str, str], ...]
    target: Range
    inputs: tuple[Range, ...] = ()
    algorithm: Algorithm = field(
        default_factory=lambda: find(ALGORITHM).make(), metadata={"path": "model.algorithm"}
    )
    kernels: Literal["default"] | tuple[float, ...] = field(
        default="default", metadata={"path": "model.kernels"}
    )
    router: Address | None = None
    timing: Timing = Timing()
    forecast: Forecasting | None = None

    def __post_init__(self) -> None:
        if self.lags is not None and not self.inputs:
            object.__setattr__(self, "inputs", lag_ranges(self.target, self.lags))
        for each in keys_of(PlainKeys):
            _check_key(path_of(each), getattr(self, each.name), each.metadata)
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
        """The entry of a learner."""
        for each in self.members:
            if each.name == name:
                return each
        raise ParameterError(f"learner must be one of {', '.join(self.names)}, got {name!r}")

    def neighbors(self, name: str) -> tuple[str, ...]:
        """The neighbors of a learner, in the order of the file."""
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

    def models(self) -> tuple[Model, ...]:
        """The agreed model of each horizon, or the one model; equal files give equal models."""
        if self.forecast is None:
            return (self._model(self.inputs, self.algorithm, 0),)
        plan = self.forecast.plan(self.target, self.inputs)
        n, clock = self.forecast.n_season, plan.clock
        period = n if 1 < n <= MOST_TICKS else clock.period
        algorithm = self.algorithm.suited(newest_lag=plan.newest_lag, period=period)
        ranges = tuple(Range(name, 0.0, 1.0) for name in plan.names)  # rows are scaled when made
        return tuple(self._model(ranges, algorithm, h) for h in self.forecast.horizons)

    def model(self) -> Model:
        """The agreed model, of the first horizon if there are several."""
        return self.models()[0]

    def _model(self, inputs: tuple[Range, ...], algorithm: Algorithm, horizon: int) -> Model:
        features = RandomFeatures.draw(self.bank(), len(inputs), self.n_frequencies, seed=self.seed)
        rest = (self.dtype, self.outside, self.delay, horizon)
        return Model(algorithm, features, inputs, self.target, *rest)


def lag_ranges(target: Range, lags: int) -> tuple[Range, ...]:
    """The inputs of a time series, newest first, each with the range of the target."""
    n_lags = checks.whole("lags", lags, 1, MOST)
    return tuple(Range(f"lag {k}", target.low, target.high) for k in range(1, n_lags + 1))


def _check_key(path: str, value: Any, told: Mapping[str, Any]) -> None:
    """Apply the rule of a key."""
    if told["choices"] is not None:
        checks.choice(path, value, told["choices"])
    if told["bounds"] is not None and value is not None:
        checks.whole(path, value, *told["bounds"])


def _check_running(config: MeshConfig) -> None:
    checked("name", check_name, config.name)
    registry.find(config.transport).check_router(config.router)
    for key, seconds in config.timing._asdict().items():
        checks.positive(f"timing.{key}", seconds)
    if config.timing.silence <= config.timing.alive_every:
        raise ParameterError(
            f"timing.silence must be above timing.alive_every = {config.timing.alive_every!r},"
            f" got {config.timing.silence!r}"
        )


def _check_data(config: MeshConfig) -> None:
    if config.forecast is not None:
        if config.lags is not None or config.delay:
            raise ParameterError(
                "forecast has lags and delays of its own; drop lags and model.delay"
            )
        checked("forecast", lambda _: config.models(), None)
    elif period := getattr(config.algorithm, "period", None):
        raise ParameterError(
            f"period must be left out without [forecast], got {period}:"
            " samples that are only counted have no clock that all nodes share"
        )
    elif not config.inputs:
        raise ParameterError(
            "inputs must name at least one column, got none; to predict a series from its own"
            " past values, set lags instead"
        )
    if config.lags is not None and config.inputs != lag_ranges(config.target, config.lags):
        raise ParameterError(BOTH)
    names = [each.name for each in (config.target, *config.inputs)]
    for name in names:
        if not name.strip() or not name.isprintable():
            raise ParameterError(f"name of an input must be printable text, got {name!r}")
        if names.count(name) > 1:
            raise ParameterError(f"inputs and target must have different names, got {name!r} twice")


def _check_learning(config: MeshConfig) -> None:
    name = find(name_of(config.algorithm), meshable=True).name
    if isinstance(config.algorithm.loss, Logistic):
        raise ParameterError(
            "model.parameters.loss must suit a target on a range, got 'logistic';"
            " a mesh predicts numbers, not classes"
        )
    if config.delay and config.lags is not None:
        raise ParameterError(
            f"model.delay must be 0 for a series, whose next value is predicted, got {config.delay}"
        )
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
    names = config.names
    for name in names:
        checked("learners", check_name, name)
        if names.count(name) > 1:
            raise ParameterError(f"learners must have different names, got {name!r} twice")
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
    """Who listens, on which machine, and where; loopback is on the learner's own machine."""
    for member in config.members:
        here = member.address.host
        if here in WILDCARDS:
            raise ParameterError(
                f"address of {member.name} must be one that neighbors can dial,"
                f" got {str(member.address)!r}"
            )
        here = "loopback" if member.address.is_loopback else here
        is_here = member.http.is_loopback or member.http.host in WILDCARDS
        yield f"address of {member.name}", here, member.address
        yield f"http of {member.name}", here if is_here else member.http.host, member.http
    if config.router is not None:
        router = config.router
        yield "router", "loopback" if router.is_loopback else router.host, router


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
    """Apply a rule to a value; an error of the rule gets the key in front."""
    try:
        return rule(value)
    except ParameterError as error:
        raise ParameterError(f"{key}: {error}") from None


def members_at(
    names: Sequence[str],
    hosts: Sequence[str],
    *,
    port: int = PORT,
    http_host: str = HOST,
    http_port: int = HTTP_PORT,
) -> tuple[Member, ...]:
    """Give every learner its addresses; learners on one host get consecutive ports."""
    if len(hosts) not in (1, len(names)):
        raise ParameterError(f"hosts must be one or {len(names)}, got {len(hosts)}")
    homes = [hosts[k % len(hosts)] for k in range(len(names))]
    nth = [homes[:k].count(host) for k, host in enumerate(homes)]
    return tuple(
        Member(name, Address(host, port + k), Address(http_host, http_port + k))
        for name, host, k in zip(names, homes, nth, strict=True)
    )


def next_member(members: Sequence[Member], name: str, host: str) -> Member:
    """Addresses for one more learner: the next ports of its host."""
    there = [each for each in members if each.address.host == host]
    port = max((each.address.port for each in there), default=PORT - 1) + 1
    http_port = max((each.http.port for each in there), default=HTTP_PORT - 1) + 1
    http_host = members[0].http.host if members else HOST
    return Member(name, Address(host, port), Address(http_host, http_port))
