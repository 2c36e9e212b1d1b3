"""Many learners in virtual time: the protocol under loss, delay, cuts and crashes, from a seed.

Nothing waits here and nothing is random but by the generator given, so a schedule of faults that
breaks something can be run again, to the bit. Users may test their own algorithms with it.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

import numpy as np

from domkl.mesh.protocol.events import (
    Alarm,
    Checkpoint,
    Effect,
    Event,
    Neighbors,
    PeerDown,
    PeerUp,
    Predicted,
    Received,
    Sample,
    Send,
    Tick,
)
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.protocol import Protocol, Snapshot, Timing
from domkl.typing import Floats

TICK = 0.05
#: frames that a stopped learner's socket holds, as the kernel's buffers do
HELD = 64


@dataclass(frozen=True)
class Weather:
    """What the network does to every frame: probabilities, and seconds."""

    loss: float = 0.0
    doubling: float = 0.0
    latency: float = 0.002
    jitter: float = 0.0  # mean of an exponential delay; frames overtake each other

    def moments(self, generator: np.random.Generator) -> list[float]:
        """Delays after which a frame arrives: none, one or two."""
        n_copies = 1 + (self.doubling > 0 and generator.random() < self.doubling)
        arrive = [self.loss == 0 or generator.random() >= self.loss for _ in range(n_copies)]
        return [
            self.latency + (generator.exponential(self.jitter) if self.jitter else 0.0)
            for is_there in arrive
            if is_there
        ]


@dataclass
class Place:
    """A learner's machine: its process, if it runs, and its disk."""

    name: str
    neighbors: tuple[str, ...]
    incarnation: int = 0
    protocol: Protocol | None = None
    disk: Snapshot | None = None
    is_stopped: bool = False  # the process is there and does nothing
    held: list[tuple[str, bytes]] = field(default_factory=list)
    n_arrived: int = 0  # samples that its sensor has given, all on disk
    predictions: dict[int, float] = field(default_factory=dict)
    alarms: list[Alarm] = field(default_factory=list)


class World:
    """Places, their streams, and the network between them.

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
    weather : Weather
    generator : np.random.Generator
        For the weather.
    host : type
        The protocol, or a variation of it to compare with.
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
        weather: Weather = Weather(),  # noqa: B008  frozen
        generator: np.random.Generator | None = None,
        host: type[Protocol] = Protocol,
    ) -> None:
        self._host = host
        self.model, self.x, self.y = model, x, y
        self.weather, self.period = weather, period
        self._options: dict[str, Any] = {
            "mode": mode,
            "timing": timing,
            "checkpoint_every": checkpoint_every,
            "measures_alone": False,
        }
        self._generator = generator or np.random.default_rng(0)
        self.places = {name: Place(name, tuple(near)) for name, near in neighbors.items()}
        self.order = {name: k for k, name in enumerate(self.places)}
        self.cuts: set[frozenset[str]] = set()
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = count()
        for name in self.places:
            self.at(0.0, lambda name=name: self.start(name))  # type: ignore[misc]
            self.at(0.0, lambda name=name: self._beat(name))  # type: ignore[misc]
        for t in range(len(y)):
            for name in self.places:
                self.at(1 + t * period, lambda name=name: self._sense(name))  # type: ignore[misc]

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Do something at a time; what is for the same time is done in the order of asking."""
        heapq.heappush(self._heap, (moment, next(self._count), action))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
        self.now = until

    def start(self, name: str) -> None:
        """Start a learner, from its disk if it ran before."""
        place = self.places[name]
        place.incarnation += 1
        place.protocol = self._host(
            name,
            self.model,
            place.neighbors,
            incarnation=place.incarnation,
            snapshot=place.disk,
            **self._options,
        )
        place.is_stopped = False
        for other in place.neighbors:
            if self._is_reachable(name, other):
                self._tell(name, PeerUp(other))
                self._tell(other, PeerUp(name))
        self._feed(name)

    def crash(self, name: str) -> None:
        """Kill a learner; its disk stays, and its neighbors' kernels notice."""
        place = self.places[name]
        place.protocol, place.held = None, []
        for other in place.neighbors:
            if self._is_reachable(name, other):
                self._tell(other, PeerDown(name))

    def stop(self, name: str) -> None:
        """Let a learner stand still, as SIGSTOP does: nobody is told."""
        self.places[name].is_stopped = True

    def resume(self, name: str) -> None:
        """Let it go on, with what its sockets held."""
        place = self.places[name]
        held, place.held = place.held, []
        place.is_stopped = False
        for sender, data in held:
            self._tell(name, Received(sender, data))
        self._feed(name)

    def cut(self, a: str, b: str, *, is_told: bool = False) -> None:
        """Let no frame pass between two; told, both transports notice at once."""
        self.cuts.add(frozenset((a, b)))
        if is_told:
            self._tell(a, PeerDown(b))
            self._tell(b, PeerDown(a))

    def heal(self, a: str, b: str) -> None:
        """Let frames pass again."""
        self.cuts.discard(frozenset((a, b)))
        if self._is_reachable(a, b):
            self._tell(a, PeerUp(b))
            self._tell(b, PeerUp(a))

    def rewire(self, name: str, neighbors: Sequence[str]) -> None:
        """Give a learner other neighbors, while it runs."""
        self.places[name].neighbors = tuple(neighbors)
        self._tell(name, Neighbors(tuple(neighbors)))
        for other in neighbors:
            if self._is_reachable(name, other):
                self._tell(name, PeerUp(other))

    def join(self, name: str, neighbors: Sequence[str], column: int, n_samples: int) -> None:
        """Bring in a learner that has nothing yet; from now on it gets the samples of a column."""
        self.places[name] = Place(name, tuple(neighbors))
        self.order[name] = column
        self.start(name)
        self._beat(name)
        for t in range(n_samples):
            self.at(self.now + t * self.period, lambda: self._sense(name))

    def leave(self, name: str) -> None:
        """Let a learner say goodbye, and be gone for good."""
        place = self.places.pop(name)
        for effect in place.protocol.leave() if place.protocol is not None else ():
            self._carry_out(place, effect)

    def _is_reachable(self, a: str, b: str) -> bool:
        there = self.places.get(b)
        is_there = there is not None and there.protocol is not None
        return is_there and frozenset((a, b)) not in self.cuts

    def _beat(self, name: str) -> None:
        if name in self.places:
            self.at(self.now + TICK, lambda: self._beat(name))
            self._tell(name, Tick())

    def _sense(self, name: str) -> None:
        if name in self.places:
            place = self.places[name]
            place.n_arrived = min(place.n_arrived + 1, len(self.y))
            self._feed(name)

    def _feed(self, name: str) -> None:
        """Hand over the samples that lie on disk."""
        place = self.places[name]
        while place.protocol is not None and not place.is_stopped:
            number = place.protocol.learned + place.protocol.n_queued + 1
            if number > place.n_arrived:
                return
            x, y = self.x[number - 1, self.order[name]], self.y[number - 1, self.order[name]]
            self._tell(name, Sample(number, x, float(y)))

    def _tell(self, name: str, event: Event) -> None:
        place = self.places.get(name)
        if place is None or place.protocol is None:
            return
        if place.is_stopped:
            if isinstance(event, Received) and len(place.held) < HELD:
                place.held.append((event.peer, event.data))
            return
        for effect in place.protocol.handle(event, self.now):
            self._carry_out(place, effect)

    def _carry_out(self, place: Place, effect: Effect) -> None:
        if isinstance(effect, Send):
            if frozenset((place.name, effect.peer)) in self.cuts:
                return
            frame = Received(place.name, effect.data)
            for delay in self.weather.moments(self._generator):
                self.at(self.now + delay, lambda: self._arrive(effect.peer, frame))
        elif isinstance(effect, Predicted):
            place.predictions[effect.number] = effect.y_hat
        elif isinstance(effect, Checkpoint):
            assert place.protocol is not None
            place.disk = place.protocol.snapshot()
        else:
            place.alarms.append(effect)

    def _arrive(self, name: str, frame: Received) -> None:
        if frozenset((name, frame.peer)) not in self.cuts:
            self._tell(name, frame)

    def predictions(self) -> Floats:
        """What was said of each sample before it was learned (for the last time), (T, K)."""
        out = np.full(self.y.shape, np.nan)
        for name, place in self.places.items():
            for number, y_hat in place.predictions.items():
                out[number - 1, self.order[name]] = y_hat
        return out

    def states(self) -> list[Any]:
        """The learners' states, in order; of those that run."""
        running = [place.protocol for place in self.places.values() if place.protocol is not None]
        return [protocol.learner.state for protocol in running]
