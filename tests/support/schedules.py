"""Random schedules of faults, each drawn from a seed, and the guarantees that must survive them.

A schedule has a network, an algorithm, a mode and a stream of samples. During the first three
fifths of the stream frames are lost (up to 30 %), duplicated, delayed and reordered, and learners
are cut off, crashed and restarted from their last checkpoint, or suspended while their sockets
fill. Then everything is healed, and the last fifth is compared with the same run without faults.

There is a second, harsher kind: ten samples a second, a latency of 0.2 s, a fifth of the frames
lost, a crash every three seconds, a suspended learner every six and a partition every ten, during
the first half of 400 rounds. How far the learners are apart is measured 100 rounds later, too.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from domkl import rng
from domkl.algorithms.base import Algorithm
from domkl.algorithms.registry import find
from domkl.core.features import RandomFeatures
from domkl.core.kernels import Gaussian
from domkl.graphs.graph import Graph
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.testing.network import FIRST_SAMPLE, Conditions, VirtualNetwork, neighbors_of
from domkl.typing import Floats

TIMING = Timing()
PERIOD, HARSH_PERIOD = 0.4, 0.1  # seconds between two samples of a learner
N_ROUNDS, N_HARSH_ROUNDS = 150, 400
HEALED, HARSH_HEALED = 0.6, 0.5  # share of the stream after which there are no more faults
N_LATER = 100  # rounds from then until the learners' functions are compared
#: of the harsher kind; mean seconds between two faults, and the shortest and longest of each
HARSH = Conditions(loss=0.2, latency=0.2)
CRASHES, SUSPENSIONS, PARTITIONS = (3.0, 0.5, 3.0), (6.0, 1.0, 6.0), (10.0, 2.0, 8.0)
MEASURED = 0.8  # share of the stream after which errors are compared
#: largest sum of the duals over the network, relative to the largest dual: rounding only
MAX_DUAL_SUM = 1e-9
#: largest spread of the learners' functions, relative to the error without faults
MAX_SPREAD = 1.0
#: DOMKL with message passing, which is not in the registry: its schedules use trees
MESSAGE_PASSING = "message-passing"
#: what a seed chooses from, by position: a change here changes every schedule
DRAWN = ("domkl", MESSAGE_PASSING, "dokl", "rff-domkl", "rff-dokl", "domkrls")


def algorithm_of(name: str) -> Algorithm:
    """Return an algorithm by its name in the registry, by ``module:Name``, or message passing."""
    if name == MESSAGE_PASSING:
        return find("domkl").make().replaced(weights="message-passing")
    return find(name, meshable=True).make()


@dataclass(frozen=True)
class Fault:
    """A fault of one learner, or of the edge between two, from one moment to another."""

    kind: Literal["cut", "crash", "suspend"]
    names: tuple[str, ...]
    begin: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """Everything that determines a run."""

    seed: int
    algorithm: str  # for `algorithm_of`
    mode: Literal["lockstep", "async"]
    edges: tuple[tuple[int, int], ...]
    n_learners: int
    conditions: Conditions
    faults: tuple[Fault, ...]
    is_harsh: bool = False

    @property
    def n_rounds(self) -> int:
        """Samples of each learner."""
        return N_HARSH_ROUNDS if self.is_harsh else N_ROUNDS

    @property
    def period(self) -> float:
        """Seconds between two of them."""
        return HARSH_PERIOD if self.is_harsh else PERIOD

    @property
    def healed(self) -> float:
        """Share of the stream after which there are no more faults."""
        return HARSH_HEALED if self.is_harsh else HEALED

    def moment(self, share: float) -> float:
        """Return when a share of the stream has arrived, in seconds."""
        return FIRST_SAMPLE + share * self.n_rounds * self.period

    @property
    def graph(self) -> Graph:
        """The network; learners are named by their numbers."""
        return Graph.from_edges(self.n_learners, list(self.edges))

    def without_faults(self) -> "Schedule":
        """Return the same schedule without any fault."""
        return replace(self, conditions=Conditions(), faults=())


@dataclass(frozen=True)
class Outcome:
    """The result of a schedule."""

    schedule: Schedule
    predictions: Floats  # (T, K)
    error: float  # mean square over the last fifth
    spread: float  # variance of the learners' functions at the end
    spread_later: float  # the same, `N_LATER` rounds after the last fault
    dual_sum: float  # sum of the duals over the network at rest, relative to the largest dual
    n_missing: int  # samples that were never learned
    is_sound: bool  # every state is finite and of a sensible size
    is_whole: bool  # every edge is open again, with the same epoch at both ends
    n_suspicious: int = 0  # alarms of guards about a neighbor, all of which are false

    def broken(self, error_without_faults: float) -> list[str]:
        """Name the guarantees that do not hold."""
        holds = {
            "every sample is learned": self.n_missing == 0,
            "states are sound": self.is_sound,
            "edges are open again": self.is_whole,
            "duals sum to 0": self.dual_sum <= MAX_DUAL_SUM,
            "consensus recovers": self.spread <= MAX_SPREAD * error_without_faults,
        }
        return [guarantee for guarantee, is_held in holds.items() if not is_held]


def draw(seed: int, algorithm: str | None = None) -> Schedule:
    """Draw the schedule of a seed, with an algorithm of the seed's choice or the one given."""
    generator = rng.generator(seed, "schedule")
    algorithm, n_learners, edges = _network(generator, algorithm)
    conditions = Conditions(
        loss=float(generator.uniform(0, 0.3)) * (generator.random() < 0.7),
        duplication=float(generator.uniform(0, 0.3)) * (generator.random() < 0.5),
        jitter=float(generator.uniform(0, 0.4)) * (generator.random() < 0.5),
    )
    faults = tuple(_fault(generator, edges) for _ in range(int(generator.integers(0, 5))))
    return Schedule(seed, algorithm, _mode(generator), edges, n_learners, conditions, faults)


def draw_harsh(seed: int, algorithm: str | None = None) -> Schedule:
    """Draw the schedule of a seed of the harsher kind."""
    generator = rng.generator(seed, "harsh schedule")
    algorithm, n_learners, edges = _network(generator, algorithm)
    schedule = Schedule(seed, algorithm, _mode(generator), edges, n_learners, HARSH, (), True)
    end, faults = schedule.moment(HARSH_HEALED), []
    for begin, until in _moments(generator, CRASHES, end):
        faults.append(Fault("crash", (str(generator.integers(n_learners)),), begin, until))
    for begin, until in _moments(generator, SUSPENSIONS, end):
        faults.append(Fault("suspend", (str(generator.integers(n_learners)),), begin, until))
    for begin, until in _moments(generator, PARTITIONS, end):
        size = int(generator.integers(1, n_learners))
        side = set(generator.choice(n_learners, size, replace=False).tolist())
        between = [(str(a), str(b)) for a, b in edges if (a in side) != (b in side)]
        faults += [Fault("cut", names, begin, until) for names in between]
    return replace(schedule, faults=tuple(faults))


def _network(
    generator: np.random.Generator, algorithm: str | None
) -> tuple[str, int, tuple[tuple[int, int], ...]]:
    """Draw an algorithm, unless it is given, the number of learners, and their edges."""
    chosen = str(generator.choice(DRAWN))
    algorithm = chosen if algorithm is None else algorithm
    n_learners = int(generator.integers(3, 7))
    edges = {(int(generator.integers(k)), k) for k in range(1, n_learners)}  # a tree
    if not algorithm_of(algorithm).needs_acyclic:
        for _ in range(int(generator.integers(0, n_learners))):
            a, b = sorted(int(k) for k in generator.choice(n_learners, 2, replace=False))
            edges.add((a, b))
    return algorithm, n_learners, tuple(sorted(edges))


def _mode(generator: np.random.Generator) -> Literal["lockstep", "async"]:
    return "lockstep" if generator.random() < 0.5 else "async"


def _moments(
    generator: np.random.Generator, kind: tuple[float, float, float], end: float
) -> list[tuple[float, float]]:
    """Draw when faults begin and end, at random moments before ``end``."""
    mean, shortest, longest = kind
    found, now = [], FIRST_SAMPLE + float(generator.exponential(mean))
    while now < end:
        found.append((now, min(now + float(generator.uniform(shortest, longest)), end)))
        now += float(generator.exponential(mean))
    return found


def _fault(generator: np.random.Generator, edges: tuple[tuple[int, int], ...]) -> Fault:
    kinds: tuple[Literal["cut", "crash", "suspend"], ...] = ("cut", "crash", "suspend")
    kind = kinds[int(generator.choice(len(kinds)))]
    a, b = (str(k) for k in edges[int(generator.integers(len(edges)))])
    healed = FIRST_SAMPLE + HEALED * N_ROUNDS * PERIOD
    begin, end = sorted(float(t) for t in generator.uniform(1, healed, size=2))
    return Fault(kind, (a, b) if kind == "cut" else (a,), begin, end)


def stream(schedule: Schedule) -> tuple[Floats, Floats]:
    """Return samples of a noisy function, with and without faults the same: (T, K, d), (T, K)."""
    generator = rng.generator(schedule.seed, "stream")
    x = generator.uniform(size=(schedule.n_rounds, schedule.n_learners, 2))
    noise = 0.05 * generator.standard_normal(x.shape[:2])
    return x, np.asarray(0.5 + 0.3 * np.sin(5 * x[..., 0]) * x[..., 1] + noise)


def model(schedule: Schedule) -> Model:
    """Return the schedule's model, a small one."""
    algorithm = algorithm_of(schedule.algorithm)
    bank = [Gaussian(0.1)] if algorithm.single_kernel else [Gaussian(v) for v in (0.01, 0.1, 1.0)]
    features = RandomFeatures.draw(bank, 2, 10, seed=schedule.seed)
    inputs = Range("a", 0, 1), Range("b", 0, 1)
    return Model(algorithm, features, inputs, Range("y", 0, 1))


def play(
    schedule: Schedule, protocol: type[Protocol] = Protocol, *, is_guarded: bool = False
) -> Outcome:
    """Run a schedule to its end, let the network come to rest, and return the outcome."""
    x, y = stream(schedule)
    network = VirtualNetwork(
        model(schedule),
        neighbors_of(schedule.graph),
        x,
        y,
        mode=schedule.mode,
        timing=TIMING,
        period=schedule.period,
        conditions=schedule.conditions,
        generator=rng.generator(schedule.seed, "weather"),
        protocol=protocol,
        is_guarded=is_guarded,
    )
    for fault in schedule.faults:
        network.at(fault.begin, lambda fault=fault: _begin(network, fault))  # type: ignore[misc]
        network.at(fault.end, lambda fault=fault: _end(network, fault))  # type: ignore[misc]
    network.run(schedule.moment(schedule.healed))
    network.conditions = Conditions()
    network.run(network.now + N_LATER * schedule.period)
    spread_later = _spread(network)
    network.run(schedule.moment(1) + 3 * TIMING.silence)
    network.settle(2 * TIMING.silence)
    return _outcome(schedule, network, y, spread_later)


def _spread(network: VirtualNetwork) -> float:
    return network.spread(rng.generator(0, "probe").uniform(size=(20, 2)))


def _begin(network: VirtualNetwork, fault: Fault) -> None:
    if fault.kind == "cut":
        network.cut(*fault.names)
    elif _is_running(network, fault):  # not crashed by another fault
        {"crash": network.crash, "suspend": network.suspend}[fault.kind](*fault.names)


def _end(network: VirtualNetwork, fault: Fault) -> None:
    if fault.kind == "cut":
        network.heal(*fault.names)
    elif fault.kind == "crash" and not _is_running(network, fault):
        network.start(*fault.names)
    elif fault.kind == "suspend" and _is_running(network, fault):
        network.resume(*fault.names)


def _is_running(network: VirtualNetwork, fault: Fault) -> bool:
    return network.machines[fault.names[0]].protocol is not None


def _outcome(
    schedule: Schedule, network: VirtualNetwork, y: Floats, spread_later: float
) -> Outcome:
    predictions, states = network.predictions(), network.states()
    last = int(MEASURED * len(y))
    shown = [algorithm_of(schedule.algorithm).function(state) for state in states]
    sizes = [0.0 if each is None else float(np.abs(each.theta).max()) for each in shown]
    dual_sum = 0.0
    if hasattr(states[0], "dual"):
        duals = np.array([state.dual for state in states])
        dual_sum = float(np.abs(duals.sum(axis=0)).max() / max(np.abs(duals).max(), 1e-300))
    return Outcome(
        schedule,
        predictions,
        error=float(np.mean((predictions - y)[last:] ** 2)),
        spread=_spread(network),
        spread_later=spread_later,
        dual_sum=dual_sum,
        n_missing=int(np.isnan(predictions).sum()),
        is_sound=len(states) == schedule.n_learners
        and bool(np.isfinite(sizes).all())
        and max(sizes) < 1e3,
        is_whole=_is_whole(network),
        n_suspicious=sum(each.kind in ("suspicious", "distrusted") for *_, each in network.alarms),
    )


def _is_whole(network: VirtualNetwork) -> bool:
    epochs = {
        (protocol.name, edge.peer): (edge.own_number, edge.peer_number)
        for protocol in network.protocols()
        for edge in protocol.edges.opened
    }
    wanted = {(name, other) for name, each in network.machines.items() for other in each.neighbors}
    return epochs.keys() == wanted and all(
        epochs[b, a] == epoch[::-1] for (a, b), epoch in epochs.items()
    )
