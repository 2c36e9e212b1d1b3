"""A virtual network: many learners in virtual time, with lost frames, cuts and crashes.

Nothing waits for a clock, and all randomness comes from the generator given. So a run in which
something breaks can be repeated to the bit.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Literal

import numpy as np

from domkl.graphs.graph import Graph
from domkl.mesh.protocol import events
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.testing.liars import Liar
from domkl.storage import Parts
from domkl.typing import Floats

#: seconds between two ticks of a learner
TICK = 0.05
#: when the first sample arrives, in seconds
FIRST_SAMPLE = 1.0
#: frames that wait for a suspended learner, as in its socket buffers; more are lost
BUFFER = 64


@dataclass(frozen=True)
class Conditions:
    """What the network does to each frame: probabilities, and seconds."""

    loss: float = 0.0
    duplication: float = 0.0
    latency: float = 0.002
    jitter: float = 0.0  # mean of an exponential delay, by which frames overtake each other

    def delays(self, generator: np.random.Generator) -> list[float]:
        """Draw after how many seconds a frame arrives: never, once or twice."""
        n_copies = 1 + (self.duplication > 0 and generator.random() < self.duplication)
        arrives = [self.loss == 0 or generator.random() >= self.loss for _ in range(n_copies)]
        return [
            self.latency + (generator.exponential(self.jitter) if self.jitter else 0.0)
            for is_there in arrives
            if is_there
        ]


@dataclass
class Machine:
    """A learner's machine: its process, its disk and its sensor."""

    name: str
    neighbors: tuple[str, ...]
    incarnation: int = 0  # number of starts
    protocol: Protocol | None = None  # None while it is crashed
    disk: Parts | None = None  # the last checkpoint
    is_suspended: bool = False
    buffer: list[events.Received] = field(default_factory=list)  # frames that came while suspended
    n_arrived: int = 0  # samples that the sensor has stored, which survive a crash
    predictions: dict[int, float] = field(default_factory=dict)  # by number of the sample


class VirtualNetwork:
    """Machines, their samples, and the network between them.

    Parameters
    ----------
    model : Model
    neighbors : name → names
        In the order of sums.
    x, y : (T, K, d), (T, K)
        Scaled samples; learners in the order of ``neighbors``.
    mode, timing, checkpoint_every
        As of `Protocol`.
    period : float
        Seconds between two samples of a learner.
    conditions : Conditions
    generator : np.random.Generator
        Draws what happens to frames.
    protocol : type
        `Protocol`, or a variant of it to compare with.
    is_guarded : bool
        As of `Protocol`; here not by default, as it doubles the time.

    Attributes
    ----------
    machines : name → Machine
    liars : name → Liar
        Empty at first.
    now : float
        Virtual time in seconds.
    alarms : list of (time, name, events.Alarm)
    """

    def __init__(
        self,
        model: Model,
        neighbors: Mapping[str, Sequence[str]],
        x: Floats,
        y: Floats,
        *,
        mode: Literal["lockstep", "async"] = "lockstep",
        timing: Timing = Timing(),  # noqa: B008  a NamedTuple of numbers
        checkpoint_every: int = 10,
        period: float = 0.1,
        conditions: Conditions = Conditions(),  # noqa: B008  frozen
        generator: np.random.Generator | None = None,
        protocol: type[Protocol] = Protocol,
        is_guarded: bool = False,
    ) -> None:
        self.model, self.x, self.y = model, list(x), list(y)  # by round
        self._n_columns = y.shape[1]
        self.conditions, self.period = conditions, period
        self._make_protocol = partial(
            protocol,
            mode=mode,
            timing=timing,
            checkpoint_every=checkpoint_every,
            measures_alone=False,
            measures_gaps=False,
            is_guarded=is_guarded,
        )
        self._generator = generator or np.random.default_rng(0)
        self.machines = {name: Machine(name, tuple(near)) for name, near in neighbors.items()}
        self._column = {name: k for k, name in enumerate(self.machines)}  # of x and y
        self._cuts: set[frozenset[str]] = set()
        self.liars: dict[str, Liar] = {}
        self.alarms: list[tuple[float, str, events.Alarm]] = []
        self.now = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []  # a heap, by time and order
        self._count = count()
        for name in self.machines:
            self.at(0.0, partial(self.start, name))
            self.at(0.0, partial(self._tell, name, events.TICK))
        self.at(TICK, partial(self._tick, tuple(self.machines)))
        for t in range(len(y)):
            for name in self.machines:
                self.at(FIRST_SAMPLE + t * period, partial(self._sense, name))

    def add_round(self, x: Floats, y: Floats) -> None:
        """Give every learner one more sample now: x (K, d) and y (K,)."""
        self.x.append(np.array(x, np.float64))
        self.y.append(np.array(y, np.float64))
        for name in self.machines:
            self._sense(name)

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Call something at a time; calls for the same time happen in the order of asking."""
        heapq.heappush(self._agenda, (moment, next(self._count), action))

    def run(self, until: float) -> None:
        """Let time pass until then."""
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, action = heapq.heappop(self._agenda)
            action()
        self.now = until

    def settle(self, seconds: float) -> None:
        """Let time pass in which nobody begins a step without a sample, and exchanges complete.

        Then all that exchanges have contributed is put in force, so that duals can be compared.
        """
        for protocol in self.protocols():
            protocol.timing = protocol.timing._replace(idle_after=np.inf)
        self.run(self.now + seconds)
        for protocol in self.protocols():
            for edge in protocol.edges.opened:
                protocol.put_in_force(edge, True)

    def start(self, name: str) -> None:
        """Start a learner, from its disk if there is a checkpoint."""
        machine = self.machines[name]
        machine.incarnation += 1
        machine.protocol = self._make_protocol(
            name,
            self.model,
            machine.neighbors,
            incarnation=machine.incarnation,
            snapshot=machine.disk,
        )
        machine.is_suspended = False
        for other in machine.neighbors:
            self._connect(name, other)
        self._feed(name)

    def crash(self, name: str) -> None:
        """Kill a learner's process; its disk stays, and its neighbors lose the connection."""
        machine = self.machines[name]
        machine.protocol, machine.buffer = None, []
        for other in machine.neighbors:
            if self._is_reachable(name, other):
                self._tell(other, events.PeerDown(name))

    def suspend(self, name: str) -> None:
        """Suspend a learner's process, as SIGSTOP does: nobody is told."""
        self.machines[name].is_suspended = True

    def resume(self, name: str) -> None:
        """Continue a suspended process, with the frames in its buffer."""
        machine = self.machines[name]
        frames, machine.buffer = machine.buffer, []
        machine.is_suspended = False
        for frame in frames:
            self._tell(name, frame)
        self._feed(name)

    def cut(self, a: str, b: str) -> None:
        """Lose every frame between two learners from now on; nobody is told."""
        self._cuts.add(frozenset((a, b)))

    def heal(self, a: str, b: str) -> None:
        """End a cut; both are told that they are connected."""
        self._cuts.discard(frozenset((a, b)))
        self._connect(a, b)

    def rewire(self, name: str, neighbors: Sequence[str]) -> None:
        """Give a running learner other neighbors."""
        self.machines[name].neighbors = tuple(neighbors)
        self._tell(name, events.Neighbors(tuple(neighbors)))
        for other in neighbors:
            if self._is_reachable(name, other):
                self._tell(name, events.PeerUp(other))

    def join(self, name: str, neighbors: Sequence[str], column: int, n_samples: int) -> None:
        """Add a learner, which gets samples of a column of ``x`` and ``y`` from now on."""
        self.machines[name] = Machine(name, tuple(neighbors))
        self._column[name] = column
        self.start(name)
        self._tick((name,))
        for t in range(n_samples):
            self.at(self.now + t * self.period, partial(self._sense, name))

    def leave(self, name: str) -> None:
        """Let a learner say goodbye to its neighbors; it goes on without them."""
        machine = self.machines[name]
        for effect in machine.protocol.leave() if machine.protocol is not None else ():
            self._carry_out(machine, effect)

    def remove(self, name: str) -> None:
        """Let a learner say goodbye, and take its machine away."""
        self.leave(name)
        del self.machines[name]

    def predictions(self) -> Floats:
        """Return the last prediction made for each sample before it was learned, (T, K)."""
        out = np.full((len(self.y), self._n_columns), np.nan)
        for name, machine in self.machines.items():
            for number, y_hat in machine.predictions.items():
                out[number - 1, self._column[name]] = y_hat
        return out

    def protocols(self) -> list[Protocol]:
        """Return the protocols of all learners that run, in order."""
        return [each.protocol for each in self.machines.values() if each.protocol is not None]

    def states(self) -> list[Any]:
        """Return the algorithm's states of all learners that run, in order."""
        return [protocol.learner.state for protocol in self.protocols()]

    def spread(self, probe: Floats) -> float:
        """Return the variance of the learners' predictions, averaged over inputs (N, d)."""
        told = np.array([[each.look(x)[0] for x in probe] for each in self.protocols()])
        return float(np.mean(np.var(told, axis=0)))

    def _is_reachable(self, a: str, b: str) -> bool:
        there = self.machines.get(b)
        is_there = there is not None and there.protocol is not None
        return is_there and frozenset((a, b)) not in self._cuts

    def _connect(self, a: str, b: str) -> None:
        if self._is_reachable(a, b):
            self._tell(a, events.PeerUp(b))
            self._tell(b, events.PeerUp(a))

    def _tick(self, names: tuple[str, ...]) -> None:
        self.at(self.now + TICK, partial(self._tick, names))
        for name in names:
            self._tell(name, events.TICK)

    def _sense(self, name: str) -> None:
        """Store one more sample on a learner's machine."""
        if name in self.machines:
            machine = self.machines[name]
            machine.n_arrived = min(machine.n_arrived + 1, len(self.y))
            self._feed(name)

    def _feed(self, name: str) -> None:
        """Hand over all stored samples that the protocol does not have."""
        machine, k = self.machines[name], self._column[name]
        while machine.protocol is not None and not machine.is_suspended:
            number = machine.protocol.learned + machine.protocol.n_queued + 1
            if number > machine.n_arrived:
                return
            x, y = self.x[number - 1][k], self.y[number - 1][k]
            self._tell(name, events.Sample(number, x, float(y)))

    def _tell(self, name: str, event: events.Event) -> None:
        machine = self.machines.get(name)
        if machine is None or machine.protocol is None:
            return
        if machine.is_suspended:
            if isinstance(event, events.Received) and len(machine.buffer) < BUFFER:
                machine.buffer.append(event)
            return
        for effect in machine.protocol.handle(event, self.now):
            self._carry_out(machine, effect)

    def _carry_out(self, machine: Machine, effect: events.Effect) -> None:
        if isinstance(effect, events.Send):
            self._send(machine.name, effect)
        elif isinstance(effect, events.Predicted):
            machine.predictions[effect.number] = effect.y_hat
        elif isinstance(effect, events.Checkpoint):
            assert machine.protocol is not None
            machine.disk = machine.protocol.snapshot()
        elif isinstance(effect, events.Alarm):
            self.alarms.append((self.now, machine.name, effect))

    def _send(self, sender: str, effect: events.Send) -> None:
        protocol = self.machines[sender].protocol
        if sender in self.liars and protocol is not None:
            effect = self._lie(self.liars[sender], effect, protocol)
        if frozenset((sender, effect.peer)) not in self._cuts:
            frame = events.Received(sender, effect.data)
            for delay in self.conditions.delays(self._generator):
                self.at(self.now + delay, partial(self._arrive, effect.peer, frame))

    def _lie(self, liar: Liar, effect: events.Send, protocol: Protocol) -> events.Send:
        edge = protocol.edges.by_peer.get(effect.peer)
        if edge is None:  # it says goodbye
            return effect
        given = effect.data, protocol.learned, protocol.edges.offers, effect.peer, edge.newest
        is_told = edge.is_awaited and liar.lie.is_told(protocol.learned, effect.peer)
        if is_told and 0 < liar.lie.epochs <= edge.n_done + 1:
            self.at(self.now + TICK / 2, partial(self._begin_epoch, protocol, effect.peer))
        return effect._replace(data=liar.change(*given))

    def _begin_epoch(self, protocol: Protocol, peer: str) -> None:
        """Let a learner end the epoch of an edge, and greet."""
        if peer in protocol.edges.by_peer:
            protocol.edges.restart(protocol.edges.by_peer[peer])
            self._tell(protocol.name, events.PeerUp(peer))

    def _arrive(self, name: str, frame: events.Received) -> None:
        if frozenset((name, frame.peer)) not in self._cuts:
            self._tell(name, frame)


def neighbors_of(graph: Graph) -> dict[str, list[str]]:
    """Return the neighbors of each learner of a graph, named by their numbers, ascending."""
    return {str(k): [str(n) for n in graph.neighbors(k)] for k in range(graph.n_learners)}
