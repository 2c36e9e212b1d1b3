"""A learner's process: the driver of the protocol, between transport, clock, backlog and disk.

Whatever happens (a frame, a peer that comes or goes, a tick of the clock) becomes an event in one
queue. `Node._drive` is the only function that gives events to the protocol: those that have come,
then samples of the backlog, each for a few milliseconds, so that requests are answered in between.

The rules of this file
----------------------
- The protocol is used in the loop's thread only.
- Its effects are carried out in the order given, before the next event is handled.
- Files are written in other threads: samples before they are acknowledged, checkpoints meanwhile.
- An unexpected error stops the node: it never goes on with half of an event.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from domkl.errors import DataError, DomklError, MeshError
from domkl.mesh.node import resident
from domkl.mesh.node.intake import Format, Intake
from domkl.mesh.node.predictions import Outgoing
from domkl.mesh.process_log import CertificateWatch, Throttle, event
from domkl.mesh.protocol import events
from domkl.mesh.protocol.model import Model
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.store.backlog import Backlog
from domkl.mesh.store.checkpoint import Saver, going_on, next_epoch
from domkl.mesh.store.folder import NodeFolder
from domkl.mesh.store.recorder import Gauges, Recorder
from domkl.mesh.transports.base import Transport
from domkl.storage import Parts
from domkl.typing import Floats

TICK, IDLE_TICK = 0.05, 0.2  # seconds; all that waits in an idle protocol waits for longer
SLICE = 0.002  # seconds of events, and of learning, before frames and requests have their turn
AHEAD = 32  # samples that the protocol holds at most; it gets more when half of them are learned
SAVE_PAUSE = 5.0  # seconds between two checkpoints, at least: at high rates they would cost much
SAVE_BYTES = 512  # bytes of checkpoints per sample, at most: flash memory wears out
FIRST_SAVE = 1.0  # seconds after the start until the first checkpoint, if a sample was learned
MAX_REASONS = 50  # refusals are counted by reason, for so many different reasons
LINK_UP, LINK_LOST = "link up", "link lost"  # to a broker or a webhook
EDGE_NEWS = ("up", "down", "left", LINK_UP, LINK_LOST)  # the history notes these each time
GOOD_NEWS = ("up", "left", LINK_UP)  # kinds of alarms that need no one's attention


class Node:
    """A learner's process.

    Parameters
    ----------
    folder : NodeFolder
    transport : Transport or None
        None for a node without a certificate, and so without neighbors.
    clock : callable
        Monotonic seconds.
    save_pause : float
        Seconds between two checkpoints, at least.
    accept_loss : bool
        Start although acknowledged samples are missing on disk.

    Attributes
    ----------
    protocols : tuple of Protocol
        One, or one for each horizon; none until `start` has compiled what they need.
    refused : Counter
        Strangers and bad certificates that the transport has refused, by reason.
    links : dict
        Whether each broker and webhook that the node uses is there.
    outgoing : Outgoing
        Tells its listeners of each prediction.
    published : dict
        By link, predictions by what became of them.
    """

    def __init__(
        self,
        folder: NodeFolder,
        transport: Transport | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        save_pause: float = SAVE_PAUSE,
        accept_loss: bool = False,
    ) -> None:
        self.folder, self.transport = folder, transport
        config = folder.config
        self.models = config.models()
        self.format = Format.of(config)
        width, plan, n_season = len(self.format.names), self.format.plan, self.format.n_season
        self.backlog = Backlog(folder.data, width, plan, n_season, accept_loss)
        self.intake = Intake(self.backlog, self.format, config.queue, self._wake, self._fail)
        checkpoints, log = self.backlog.checkpoints, self.backlog.log
        self.saver = Saver(checkpoints, log, self.backlog.position, self._alarm)
        self.protocols: tuple[Protocol, ...] = ()
        self._n_learned = 0  # samples that all protocols have learned
        self.certificate = CertificateWatch(folder.certificate)
        self.refused: Counter[str] = Counter()
        self.links: dict[str, bool] = {}
        self.outgoing = Outgoing(folder.name, self.models, self.backlog, self.predict)
        self.published: dict[str, Counter[str]] = {}
        n_kernels = self.format.model.features.n_kernels
        self.recorder = Recorder(
            folder.data,
            self._gauges,
            self._alarm,
            horizons=[max(each.horizon, 1) for each in self.models],
            n_weights=n_kernels,
            reserve=lambda: log.reserve,
        )
        self.recorder.begin(self.backlog.log.last)
        self._clock, self._throttle = clock, Throttle(clock)
        self._events: deque[events.Event] = deque()
        self._predicted: list[events.Predicted] = []
        self._is_awake = self._is_save_due = self._is_started = False
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._save_pause = save_pause
        self._saved: float | None = None  # when the last checkpoint was begun
        self._started = clock()

    @property
    def protocol(self) -> Protocol | None:
        """The first protocol; None until `start` has compiled what it needs."""
        return self.protocols[0] if self.protocols else None

    @property
    def is_waiting(self) -> bool:
        """Whether a step is under way."""
        return any(each.is_waiting for each in self.protocols)

    @property
    def is_ready(self) -> bool:
        """Whether the node learns and predicts."""
        return self._is_started and not self._stop.is_set()

    @property
    def is_idle(self) -> bool:
        """Whether all accepted samples are learned."""
        is_done = bool(self.protocols) and not self._n_queued() and not self.is_waiting
        return is_done and not self.backlog.waiting

    async def start(self) -> None:
        """Compile, continue from the checkpoint, and look for the neighbors."""
        folder, backlog, config = self.folder, self.backlog, self.folder.config
        for path in backlog.checkpoints.damaged:
            after = f"going on from sample {backlog.position}, and learning the rest again"
            self._alarm("checkpoint", "", f"{path} is damaged or not finite; {after}")
        await asyncio.to_thread(warm_up, self.models[-1])
        epoch = next_epoch(folder.data / "epoch", time.time_ns() // 1_000_000)
        with going_on():
            snapshots = split(backlog.state, len(self.models))
            self.protocols = tuple(
                Protocol(
                    folder.name,
                    model,
                    tuple(folder.neighbors),
                    mode=config.mode,
                    timing=config.timing,
                    incarnation=epoch,
                    checkpoint_every=config.checkpoint_every,
                    is_guarded=config.guard,
                    snapshot=snapshot,
                )
                for model, snapshot in zip(self.models, snapshots, strict=True)
            )
        self._n_learned, backlog.state = min(each.learned for each in self.protocols), None
        if self.transport is not None:
            n_tagged = int(len(self.protocols) > 1)
            self.transport.limit_frames(n_tagged + max(each.max_frame for each in self.protocols))
            await self._start(self.transport)
        self._is_started, self._started = True, self._clock()
        self._ticker = asyncio.create_task(self._tick())
        self.recorder.note("ready", "", f"{folder.name} is ready")
        event("ready", learner=folder.name, epoch=epoch, learned=backlog.position)
        self._wake()
        asyncio.get_running_loop().call_soon(resident.settle)

    async def wait(self) -> None:
        """Wait for `stop`, or for a failure and raise it."""
        await self._stop.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Let `wait` return."""
        self._stop.set()

    async def close(self) -> None:
        """Tell the neighbors, save, and close everything."""
        self._stop.set()
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        await self.intake.close()
        if self.protocols and self._failure is None:
            for channel, protocol in enumerate(self.protocols):
                self._carry_out(protocol.leave(), channel)
            await self.saver.wait()
            self.saver.begin(self.backlog.saved(self.state_parts()))
        await self.saver.wait()
        if self.transport is not None:
            await self.transport.stop()
        self.record()
        self.recorder.note("stopped", "", f"{self.folder.name} stops")
        await self.recorder.close()
        self.backlog.log.close()

    @property
    def is_blank(self) -> bool:
        """Whether the learner knows nothing to predict from."""
        protocol = self.protocol
        return protocol is None or (protocol.learned == 0 and protocol.learner.is_blank)

    def predict(self, x: Floats) -> tuple[float, float | None, dict[str, float] | None]:
        """Predict for scaled inputs; the label, its deviation and quantiles, in units."""
        assert self.protocol is not None
        protocol = self.protocol
        return self.format.model.in_units(*protocol.look(x))

    def forecast(self, future: Mapping[int, Mapping[str, float]]) -> list["ForecastAnswer"]:
        """ForecastAnswer from the newest values, for all horizons, in the target's units.

        ``future`` has inputs that are known ahead, by the tick of the label.
        """
        rows, known, plan = self.backlog.rows, self.backlog.rows.known, self.format.plan
        if plan is None or known is None:
            raise TooFewError("there is no value yet to forecast from: learn first")
        made = []
        for protocol in self.protocols:
            h = protocol.model.horizon
            x = rows.row(h, future.get(known.tick + h, {}))
            if np.isnan(x).any():
                lost = [name for name, v in zip(plan.names, x, strict=True) if np.isnan(v)]
                raise TooFewError(f"{lost[0]} is not known: there are not enough values yet")
            found = protocol.model.in_units(*protocol.look(x))
            made.append(ForecastAnswer(h, plan.clock.text(known.tick + h), *found))
        return made

    async def reload(self) -> None:
        """Read neighbors and certificates again; other changes of the model are refused."""
        try:
            folder = self.folder.read_again()
            models = zip(folder.config.models(), self.models, strict=False)
            difference = "".join(theirs.difference(ours.parts) for theirs, ours in models)
            if difference or folder.name != self.folder.name:
                raise DataError(
                    f"the model of a running mesh cannot change; {difference}; restart all nodes"
                )
            if self.transport is not None:
                reloaded = self.transport.reload()
                if reloaded is not None:
                    await reloaded
                await self.transport.set_neighbors(folder.neighbors)
            elif folder.neighbors:
                raise DataError("node has no certificate; restart it with one to have neighbors")
            self.folder, self.certificate = folder, CertificateWatch(folder.certificate)
            self.intake.capacity = folder.config.queue
            self._add(events.Neighbors(tuple(folder.neighbors)))
            event("reloaded", neighbors=", ".join(folder.neighbors))
            self.recorder.note("reloaded", "", "mesh.toml and certificates were read again")
        except Exception as error:  # each transport has errors of its own
            event("reload refused", logging.ERROR, text=str(error))
            self.recorder.note("reload refused", "", str(error))

    def note_link(self, name: str, is_up: bool, text: str) -> None:
        """Note whether a broker or a webhook is there; it is an alarm when it was lost."""
        if self.links.get(name) is not is_up:
            self.links[name] = is_up
            self._alarm(LINK_UP if is_up else LINK_LOST, "", f"{name}: {text}")

    def seconds_since(self, moment: float) -> float:
        """Seconds since a time of the clock that the protocol is given."""
        return self._clock() - moment

    def state_parts(self) -> Parts:
        """The protocol's state, as a checkpoint would hold it now."""
        return joined([each.snapshot() for each in self.protocols])

    async def sleep(self, seconds: float) -> bool:
        """Wait so long, or until the node stops; return whether it still runs."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        return not self._stop.is_set()

    async def until_idle(self) -> None:
        """Wait until all accepted samples are learned."""
        while not self.is_idle:
            await asyncio.sleep(TICK)

    def record(self) -> None:
        """Give the recorder the predictions since the last tick."""
        for effect in self._predicted:
            self.recorder.predicted(effect)
        self._predicted.clear()

    def _gauges(self) -> Gauges:
        """What the history records of each second besides errors."""
        waiting, protocol = self.backlog.n_waiting, self.protocol
        n_listed = len(self.folder.neighbors)
        if protocol is None:
            return Gauges(waiting, 0, n_listed, 0.0, 0.0)
        moved = [] if self.transport is None else list(self.transport.traffic().values())
        function = self.format.model.algorithm.function(protocol.learner.state)
        return Gauges(
            waiting,
            len(protocol.edges.opened),
            n_listed,
            float(sum(each.sent_bytes for each in moved)),
            float(sum(each.received_bytes for each in moved)),
            () if function is None else function.weights[0].tolist(),
            protocol.trust(),
        )

    async def _start(self, transport: Transport) -> None:
        try:
            await transport.start(self._on_frame, self._on_peer, self._on_refused)
        except DomklError:
            raise
        except Exception as error:  # each transport has errors of its own
            where = self.folder.member.address
            raise MeshError(f"cannot listen for neighbors at {where}: {error}") from None

    def _on_frame(self, peer: str, frame: bytes) -> None:
        self._add(events.Received(peer, frame))

    def _on_peer(self, peer: str, is_up: bool, why: str) -> None:
        event("peer", peer=peer, up=is_up, why=why)
        self._add(events.PeerUp(peer) if is_up else events.PeerDown(peer))

    def _on_refused(self, who: str, why: str) -> None:
        known = why in self.refused or len(self.refused) < MAX_REASONS
        self.refused[why if known else "other"] += 1
        self._alarm("refused", who, why)

    async def _tick(self) -> None:
        while True:
            self._add(events.Tick())
            self._save()
            self.record()
            self.recorder.tick()
            if self._clock() >= self.certificate.due:
                self.certificate.look(self._clock())
            await asyncio.sleep(IDLE_TICK if self.is_idle else TICK)

    def _add(self, happened: events.Event) -> None:
        self._events.append(happened)
        self._wake()

    def _wake(self) -> None:
        """Have `_drive` called when others have had their turn."""
        if not self._is_awake and self.is_ready:
            self._is_awake = True
            asyncio.get_running_loop().call_soon(self._drive)

    def _drive(self) -> None:
        """Handle events that have come, then samples of the backlog, for a few milliseconds."""
        self._is_awake = False
        end = time.perf_counter() + SLICE
        while self._events and self.is_ready and time.perf_counter() < end:
            self._handle(self._events.popleft())
        if self._events:
            self._wake()
        elif self._is_hungry():
            end = time.perf_counter() + SLICE
            while self._can_feed() and time.perf_counter() < end:
                self._feed()
            if self._is_hungry():
                self._wake()

    def _can_feed(self) -> bool:
        has_room = bool(self.protocols) and self._n_queued() < AHEAD
        is_free = has_room and bool(self.backlog.waiting) and not self._stop.is_set()
        # several protocols are rarely between two steps at the same time: let them get there
        return is_free and not (len(self.protocols) > 1 and self._is_time_to_save())

    def _is_hungry(self) -> bool:
        return self._n_queued() <= AHEAD // 2 and self._can_feed()

    def _n_queued(self) -> int:
        return max((each.n_queued for each in self.protocols), default=0)

    def _feed(self) -> None:
        """Give each protocol its part of the next sample, unless its checkpoint has it."""
        try:
            told = self.backlog.next()
        except DataError as error:  # not of these samples: to go on would lose one in silence
            self._fail(error)
            return
        for channel, (protocol, each) in enumerate(zip(self.protocols, told, strict=False)):
            is_new = not isinstance(each, events.Moment) or each.number > protocol.learned
            if is_new:
                self._tell(channel, each)

    def _handle(self, happened: events.Event) -> None:
        """Give an event to the protocol that it is for, or to all."""
        if isinstance(happened, events.Received) and len(self.protocols) > 1:
            channel = happened.data[0] if happened.data else len(self.protocols)
            if channel < len(self.protocols):
                self._tell(channel, happened._replace(data=happened.data[1:]))
            else:
                self._alarm("refused", happened.peer, "a frame for a horizon that there is not")
            return
        for channel in range(len(self.protocols)):
            self._tell(channel, happened)

    def _tell(self, channel: int, happened: events.Event) -> None:
        """Give a protocol an event, and carry out its effects."""
        try:
            self._carry_out(self.protocols[channel].handle(happened, self._clock()), channel)
        except Exception as error:
            self._fail(error)

    def _carry_out(self, effects: Sequence[events.Effect], channel: int = 0) -> None:
        for effect in effects:
            if isinstance(effect, events.Send):
                if self.transport is not None:
                    tag = bytes([channel]) if len(self.protocols) > 1 else b""
                    self.transport.send(effect.peer, tag + effect.data)
            elif isinstance(effect, events.Predicted):
                if self.outgoing.listeners:
                    self.outgoing.predicted(effect)
                self._note_learned()
                if math.isfinite(effect.y) and math.isfinite(effect.y_hat):
                    self._predicted.append(effect)
            elif isinstance(effect, events.Forecasted):
                if self.outgoing.listeners:
                    self.outgoing.forecasted(effect)
            elif isinstance(effect, events.Checkpoint):
                self._is_save_due = True
                self._save()
                # the protocol has paused, so that the snapshot is of this very sample
                self._add(events.Tick())
            else:
                self._alarm(effect.kind, effect.peer, effect.text)

    def _note_learned(self) -> None:
        """Tell the backlog which samples all protocols have learned."""
        n_learned = min(each.learned for each in self.protocols)
        for number in range(self._n_learned + 1, n_learned + 1):
            self.backlog.learned(number)
        self._n_learned = max(self._n_learned, n_learned)

    def _save(self) -> None:
        """Begin a checkpoint, if it is time for one and the protocol is between two steps."""
        is_free = not self._stop.is_set() and not self.saver.is_busy
        if is_free and self._is_time_to_save() and self.protocols and not self.is_waiting:
            self._is_save_due, self._saved = False, self._clock()
            self.saver.begin(self.backlog.saved(self.state_parts()))

    def _is_time_to_save(self) -> bool:
        n_new = self.backlog.position - self.saver.position
        if self._saved is None:  # soon, so that a node that is killed again and again gets on
            is_soon = self._clock() - self._started >= FIRST_SAVE
            return n_new > 0 and (self._is_save_due or is_soon)
        is_worth_it = n_new * SAVE_BYTES >= self.backlog.checkpoints.size
        is_late = self._clock() - self._saved >= self._save_pause
        return self._is_save_due and is_worth_it and is_late

    def _alarm(self, kind: str, peer: str, text: str) -> None:
        held = self._throttle.admit(kind, peer, text)
        if held is not None or kind in EDGE_NEWS:
            self.recorder.note(kind, peer, text)
        if held is not None:
            is_good = kind in GOOD_NEWS
            news = "link" if kind == LINK_UP else "neighbor"
            what, level = (news, logging.INFO) if is_good else ("alarm", logging.WARNING)
            event(what, level, kind=kind, peer=peer, text=text, held_back=held)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
            event("failed", logging.ERROR, text=f"{type(error).__name__}: {error}")
        self._stop.set()


class TooFewError(DomklError):
    """There is not enough yet to predict from."""


class ForecastAnswer(NamedTuple):
    """A forecast of one horizon, in the target's units."""

    horizon: int
    time: str  # of the label, UTC
    prediction: float
    deviation: float | None
    quantiles: dict[str, float] | None  # by level


def joined(parts: Sequence[Parts]) -> Parts:
    """The states of several protocols as one; that of a single one as it is."""
    if len(parts) == 1:
        return parts[0]
    learned = min(each.header["learned"] for each in parts)
    arrays = {f"{k}/{name}": v for k, each in enumerate(parts) for name, v in each.arrays.items()}
    return Parts({"learned": learned, "several": [each.header for each in parts]}, arrays)


def split(parts: Parts | None, n: int) -> list[Parts | None]:
    """What `joined` was given, of n protocols."""
    if parts is None or n == 1:
        return [parts] * n
    headers = parts.header.get("several", [])
    if len(headers) != n:
        raise DataError(f"checkpoint must be of {n} horizons, got {len(headers)}")
    return [
        Parts(header, {name.removeprefix(f"{k}/"): v for name, v in parts.arrays.items()
                       if name.startswith(f"{k}/")})
        for k, header in enumerate(headers)
    ]  # fmt: skip


def warm_up(model: Model) -> None:
    """Compile all that a node calls, or load it from the cache: two learners, two samples each."""
    pair = {name: Protocol(name, model, (peer,), incarnation=1) for name, peer in ("ab", "ba")}
    x, h = np.full(len(model.inputs), 0.5), model.horizon
    under_way: deque[tuple[str, events.Event]] = deque()
    under_way += [("a", events.PeerUp("b")), ("b", events.PeerUp("a"))]
    for number in (1, 2):
        moment = events.Moment(number, h * (number - 1), 0.5, x, x, (0.5, 0.5))
        happened = moment if h else events.Sample(number, x, 0.5)
        under_way += [(name, happened) for name in pair]
        while under_way:
            name, each = under_way.popleft()
            for effect in pair[name].handle(each, 0.1 * number):
                if isinstance(effect, events.Send):
                    under_way.append((effect.peer, events.Received(name, effect.data)))
    pair["a"].look(x)
    pair["a"].learner.idle_step()
