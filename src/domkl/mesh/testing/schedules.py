"""Random schedules of faults, each from a seed: what a mesh must survive, and what came of it.

A schedule has a network, an algorithm, a mode and a stream, and for the first three fifths of the
stream whatever can go wrong: frames lost (up to 30 %), doubled, delayed and overtaking each other;
learners cut off, crashed and started again from their last checkpoint, standing still while their
sockets fill. Then all is healed, and the last fifth is measured against the same run in calm.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from domkl import rng
from domkl.algorithms.admm import DOKL, DOMKL
from domkl.algorithms.base import Algorithm
from domkl.algorithms.diffusion import RFFDOKL, RFFDOMKL
from domkl.algorithms.least_squares import DOMKRLS
from domkl.core.features import RandomFeatures
from domkl.core.kernels import Gaussian
from domkl.graphs.graph import Graph
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.protocol.protocol import Protocol, Timing
from domkl.mesh.testing.network import Weather, World
from domkl.typing import Floats

TIMING = Timing()
PERIOD = 0.4
N_ROUNDS = 150
HEALED = 0.6  # of the stream
MEASURED = 0.8
#: of the duals, in units of the largest: what rounding leaves
MAX_DUAL_SUM = 1e-9
#: of the learners' functions, in units of the calm run's error: they disagree by less than they err
MAX_SPREAD = 1.0
ALGORITHMS: dict[str, Algorithm] = {
    "domkl": DOMKL(),
    "message-passing": DOMKL(weights="message-passing"),
    "dokl": DOKL(),
    "rff-domkl": RFFDOMKL(),
    "rff-dokl": RFFDOKL(),
    "domkrls": DOMKRLS(),
}


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong at a place, from one moment to another."""

    kind: str  # "cut", "crash", "stop"
    names: tuple[str, ...]
    begin: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """All that a run is made of."""

    seed: int
    algorithm: str
    mode: str
    edges: tuple[tuple[int, int], ...]
    n_learners: int
    weather: Weather
    faults: tuple[Fault, ...]

    @property
    def neighbors(self) -> dict[str, list[str]]:
        """Of each learner, ascending."""
        graph = Graph.from_edges(self.n_learners, list(self.edges))
        ends = zip(graph.indptr[:-1], graph.indptr[1:], strict=True)
        return {
            str(k): [str(other) for other in graph.indices[a:b]] for k, (a, b) in enumerate(ends)
        }

    def calm(self) -> "Schedule":
        """The same without any fault."""
        return replace(self, weather=Weather(), faults=())


@dataclass(frozen=True)
class Outcome:
    """What came of a schedule."""

    schedule: Schedule
    predictions: Floats  # (T, K)
    error: float  # mean square over the last fifth
    spread: float  # mean square distance of the learners' functions at the end
    dual_sum: float  # of the network at rest, against the largest dual
    n_missing: int  # samples never learned
    is_sound: bool  # every state finite, and no larger than sense
    is_whole: bool  # every edge open again, both ends in the same epoch

    def broken(self, calm_error: float) -> list[str]:
        """Name the laws that do not hold, given the error of the same run in calm."""
        laws = {
            "every sample is learned": self.n_missing == 0,
            "states are sound": self.is_sound,
            "edges are open again": self.is_whole,
            "duals sum to 0": self.dual_sum <= MAX_DUAL_SUM,
            "consensus recovers": self.spread <= MAX_SPREAD * calm_error,
        }
        return [law for law, holds in laws.items() if not holds]


def draw(seed: int) -> Schedule:
    """Make the schedule of a seed."""
    generator = rng.generator(seed, "schedule")
    algorithm = str(generator.choice(list(ALGORITHMS)))
    n_learners = int(generator.integers(3, 7))
    edges = _tree(generator, n_learners)
    if algorithm != "message-passing":
        for _ in range(int(generator.integers(0, n_learners))):
            a, b = sorted(int(k) for k in generator.choice(n_learners, 2, replace=False))
            edges.add((a, b))
    weather = Weather(
        loss=float(generator.uniform(0, 0.3)) * (generator.random() < 0.7),
        doubling=float(generator.uniform(0, 0.3)) * (generator.random() < 0.5),
        jitter=float(generator.uniform(0, 0.4)) * (generator.random() < 0.5),
    )
    faults = tuple(_fault(generator, edges) for _ in range(int(generator.integers(0, 5))))
    mode = "lockstep" if generator.random() < 0.5 else "async"
    return Schedule(seed, algorithm, mode, tuple(sorted(edges)), n_learners, weather, faults)


def stream(schedule: Schedule) -> tuple[Floats, Floats]:
    """Samples of one noisy function, the same for the schedule and its calm."""
    generator = rng.generator(schedule.seed, "stream")
    x = generator.uniform(size=(N_ROUNDS, schedule.n_learners, 2))
    noise = 0.05 * generator.standard_normal(x.shape[:2])
    return x, np.asarray(0.5 + 0.3 * np.sin(5 * x[..., 0]) * x[..., 1] + noise)


def model(schedule: Schedule) -> Model:
    """A small one."""
    algorithm = ALGORITHMS[schedule.algorithm]
    bank = [Gaussian(0.1)] if algorithm.single_kernel else [Gaussian(v) for v in (0.01, 0.1, 1.0)]
    features = RandomFeatures.draw(bank, 2, 10, seed=schedule.seed)
    inputs = Range("a", 0, 1), Range("b", 0, 1)
    return Model(algorithm, features, inputs, Range("y", 0, 1))


def play(schedule: Schedule, host: type[Protocol] = Protocol) -> Outcome:
    """Run a schedule to its end, and then to rest."""
    x, y = stream(schedule)
    mode: Any = schedule.mode
    world = World(
        model(schedule),
        schedule.neighbors,
        x,
        y,
        mode=mode,
        timing=TIMING,
        period=PERIOD,
        weather=schedule.weather,
        generator=rng.generator(schedule.seed, "weather"),
        host=host,
    )
    healed, end = 1 + HEALED * N_ROUNDS * PERIOD, 1 + N_ROUNDS * PERIOD
    for fault in schedule.faults:
        _plan(world, fault)
    world.run(healed)
    world.weather = Weather()
    world.run(end + 3 * TIMING.silence)
    _rest(world)
    return _outcome(schedule, world, y)


def _rest(world: World) -> None:
    """Let nobody step without a sample any more, and all exchanges under way complete."""
    for place in world.places.values():
        if place.protocol is not None:
            place.protocol.timing = TIMING._replace(idle_after=np.inf)
    world.run(world.now + 2 * TIMING.silence)


def _outcome(schedule: Schedule, world: World, y: Floats) -> Outcome:
    predictions, states = world.predictions(), world.states()
    last = int(MEASURED * N_ROUNDS)
    sizes = [float(np.abs(state.theta).max()) for state in states]
    probe = rng.generator(0, "probe").uniform(size=(20, 2))
    told = np.array([[p.predict(x) for x in probe] for p in _protocols(world)])
    dual_sum = 0.0
    if hasattr(states[0], "dual"):
        duals = np.array([state.dual for state in states])
        dual_sum = float(np.abs(duals.sum(axis=0)).max() / max(np.abs(duals).max(), 1e-300))
    return Outcome(
        schedule,
        predictions,
        float(np.mean((predictions - y)[last:] ** 2)),
        float(np.mean(np.var(told, axis=0))),
        dual_sum,
        int(np.isnan(predictions).sum()),
        len(states) == schedule.n_learners and bool(np.isfinite(sizes).all()) and max(sizes) < 1e3,
        _is_whole(world),
    )


def _is_whole(world: World) -> bool:
    epochs = {}
    for protocol in _protocols(world):
        for edge in protocol.links.opened:
            epochs[protocol.name, edge.peer] = edge.mine, edge.theirs
    wanted = {(name, other) for name, place in world.places.items() for other in place.neighbors}
    return epochs.keys() == wanted and all(
        epochs[b, a] == epoch[::-1] for (a, b), epoch in epochs.items()
    )


def _protocols(world: World) -> list[Any]:
    return [place.protocol for place in world.places.values() if place.protocol is not None]


def _plan(world: World, fault: Fault) -> None:
    actions = {"cut": (world.cut, world.heal), "crash": (world.crash, world.start)}
    begin, end = actions.get(fault.kind, (world.stop, world.resume))
    world.at(fault.begin, lambda: _if_possible(world, fault, begin))
    world.at(fault.end, lambda: _if_possible(world, fault, end))


def _if_possible(world: World, fault: Fault, action: Any) -> None:
    """Skip what another fault made pointless: the end of a crash starts only who is down."""
    place = world.places[fault.names[0]]
    is_running = place.protocol is not None
    if action == world.start and is_running:
        return
    if action in (world.crash, world.stop, world.resume) and not is_running:
        return
    action(*fault.names)


def _fault(generator: np.random.Generator, edges: set[tuple[int, int]]) -> Fault:
    kind = str(generator.choice(["cut", "crash", "stop"]))
    a, b = (str(k) for k in sorted(edges)[int(generator.integers(len(edges)))])
    latest = 1 + HEALED * N_ROUNDS * PERIOD
    begin, end = sorted(float(t) for t in generator.uniform(1, latest, size=2))
    return Fault(kind, (a, b) if kind == "cut" else (a,), begin, end)


def _tree(generator: np.random.Generator, n_learners: int) -> set[tuple[int, int]]:
    return {(int(generator.integers(k)), k) for k in range(1, n_learners)}
