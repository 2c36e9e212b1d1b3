"""The only async glue: transport, protocol, clock and ledger in one loop.

The rules of this file
----------------------
- The protocol is touched in the loop's thread only. Samples are learned in bites of a few
  milliseconds, so that frames and requests are answered in between.
- Effects are carried out in the order given, before the next event is handled.
- Files are written in other threads: samples before they are acknowledged, checkpoints beside.
- What nobody expects stops the node: it never goes on with half of an event.
"""

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence

from domkl.errors import DataError, DomklError, MeshError
from domkl.mesh.node.checkpoint import Saved, next_epoch
from domkl.mesh.node.home import Home
from domkl.mesh.node.intake import Intake, QueueFullError
from domkl.mesh.node.journal import JournalFullError
from domkl.mesh.node.ledger import Ledger
from domkl.mesh.node.samples import Prepared
from domkl.mesh.node.saver import Saver
from domkl.mesh.node.telemetry import CertificateWatch, Throttle, event
from domkl.mesh.node.warm import warm_up
from domkl.mesh.protocol import events
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.transports.base import Transport
from domkl.storage import Parts
from domkl.typing import Floats

TICK = 0.05  # seconds
BITE = 0.002  # seconds of learning before others are heard
AHEAD = 32  # samples that the protocol holds, at most; from half of that on it gets more
SAVE_PAUSE = 5.0  # seconds between two checkpoints, at least: at high rates they would cost much
INVALID = "invalid"  # why a sample was not accepted; or:
REASONS: dict[type[Exception], str] = {QueueFullError: "queue full", JournalFullError: "disk full"}
MAX_REASONS = 50  # kinds of refusals told apart


class Node:
    """A learner's process.

    Parameters
    ----------
    home : Home
    ledger : Ledger
    transport : Transport or None
        None for a node that has no certificate, and so no neighbors.
    clock : callable
        Monotonic seconds.
    save_pause : float
        Seconds between two checkpoints, at least.

    Attributes
    ----------
    protocol : Protocol or None
        None until `start` has compiled what it needs.
    """

    def __init__(
        self,
        home: Home,
        ledger: Ledger,
        transport: Transport | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        save_pause: float = SAVE_PAUSE,
    ) -> None:
        self.home, self.ledger, self.transport = home, ledger, transport
        self.protocol: Protocol | None = None
        self.certificate = CertificateWatch(home.certificate)
        self.saver = Saver(ledger, self._alarm)
        self.refused: Counter[str] = Counter()  # strangers and bad certificates, by reason
        self.rejected: Counter[str] = Counter()  # samples that were not accepted, by reason
        self.intake = Intake(ledger.journal, self._room, self._accepted)
        self._clock, self._throttle = clock, Throttle(clock)
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._is_biting = self._is_save_due = False
        self._save_pause, self._saved = save_pause, clock()  # when the last checkpoint was begun

    @property
    def is_ready(self) -> bool:
        """Whether it learns and predicts."""
        return self.protocol is not None and not self._stop.is_set()

    @property
    def is_idle(self) -> bool:
        """Whether all that was accepted is learned."""
        protocol = self.protocol
        is_done = protocol is not None and not protocol.n_queued and not protocol.is_waiting
        return is_done and not self.ledger.waiting

    async def start(self) -> None:
        """Compile, go on from the checkpoint, look for the neighbors."""
        home, ledger = self.home, self.ledger
        config, model = home.config, ledger.desk.model
        for path in ledger.checkpoints.damaged:
            self._alarm("checkpoint", "", f"{path} is damaged; going on from the one before")
        await asyncio.to_thread(warm_up, model)
        gc.collect()
        gc.freeze()  # what the compiler left behind lives on; looking through it costs milliseconds
        epoch = next_epoch(home.data / "epoch", time.time_ns() // 1_000_000)
        self.protocol = Protocol(
            home.name,
            model,
            tuple(home.neighbors),
            mode=config.mode,
            timing=config.timing,
            incarnation=epoch,
            checkpoint_every=config.checkpoint_every,
            snapshot=ledger.state,
        )
        ledger.state = None
        if self.transport is not None:
            await self._start(self.transport)
        self._ticker = asyncio.create_task(self._tick())
        event("ready", learner=home.name, epoch=epoch, learned=ledger.position)
        self._pump()

    async def wait(self) -> None:
        """Until `stop` or a failure; that is raised."""
        await self._stop.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Begin to end."""
        self._stop.set()

    async def close(self) -> None:
        """Say goodbye, save, and close everything."""
        self._stop.set()
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        await self.intake.close()
        if self.protocol is not None and self._failure is None:
            self._carry_out(self.protocol.leave())
            await self.saver.wait()
            self.saver.begin(self._snapshot())
        await self.saver.wait()
        if self.transport is not None:
            await self.transport.stop()
        self.ledger.close()

    async def accept(self, items: Sequence[Prepared]) -> list[int]:
        """Have samples on disk; give their numbers."""
        try:
            return await self.intake.accept(items)
        except Exception as error:
            self.rejected[REASONS.get(type(error), "failed")] += len(items)
            if type(error) not in REASONS:  # the journal cannot be written any more
                self._fail(error)
            raise

    def predict(self, x: Floats) -> tuple[float, float | None]:
        """Prediction and its deviation, or None, for scaled inputs, in the target's own units."""
        assert self.protocol is not None
        model = self.ledger.desk.model
        deviation = self.protocol.deviation(x)
        width = model.target.high - model.target.low
        y_hat = model.target_of(self.protocol.predict(x))
        return y_hat, None if deviation is None else deviation * width

    async def reload(self) -> None:
        """Take over changed neighbors and certificates; whatever else is changed is refused."""
        try:
            home = self.home.read_again()
            difference = home.config.model().difference(self.ledger.desk.model.parts)
            if difference or home.name != self.home.name:
                raise DataError(f"the model of a running mesh cannot change; {difference}")
            if self.transport is not None:
                reloaded = self.transport.reload()
                if reloaded is not None:
                    await reloaded
                await self.transport.set_neighbors(home.neighbors)
            elif home.neighbors:
                raise DataError("node has no certificate; restart it with one to have neighbors")
            self.home, self.certificate = home, CertificateWatch(home.certificate)
            self._handle(events.Neighbors(tuple(home.neighbors)))
            event("reloaded", neighbors=", ".join(home.neighbors))
        except Exception as error:  # each transport has errors of its own
            event("reload refused", logging.ERROR, text=str(error))

    def seconds_since(self, moment: float) -> float:
        """By the clock that the protocol is told."""
        return self._clock() - moment

    def state_parts(self) -> Parts:
        """The protocol's state, as a checkpoint would have it now."""
        assert self.protocol is not None
        return self.protocol.snapshot()

    async def _start(self, transport: Transport) -> None:
        try:
            await transport.start(self._on_frame, self._on_peer, self._on_refused)
        except DomklError:
            raise
        except Exception as error:  # each transport has errors of its own
            where = self.home.member.address
            raise MeshError(f"cannot listen for neighbors at {where}: {error}") from None

    def _room(self) -> int:
        return self.home.config.queue - self.ledger.n_waiting

    def _accepted(self, first: int, items: Sequence[Prepared]) -> None:
        self.ledger.accepted(first, items)
        self._pump()

    def _on_frame(self, peer: str, frame: bytes) -> None:
        self._handle(events.Received(peer, frame))

    def _on_peer(self, peer: str, is_up: bool, why: str) -> None:
        event("peer", peer=peer, up=is_up, why=why)
        self._handle(events.PeerUp(peer) if is_up else events.PeerDown(peer))

    def _on_refused(self, who: str, why: str) -> None:
        known = why in self.refused or len(self.refused) < MAX_REASONS
        self.refused[why if known else "other"] += 1
        self._alarm("refused", who, why)

    def _handle(self, happened: events.Event) -> None:
        """Tell the protocol, and do what it asks for."""
        if self.protocol is None or self._stop.is_set():
            return
        try:
            self._carry_out(self.protocol.handle(happened, self._clock()))
        except Exception as error:
            self._fail(error)
        if not isinstance(happened, events.Sample):
            self._pump()

    def _carry_out(self, effects: Sequence[events.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, events.Send):
                if self.transport is not None:
                    self.transport.send(effect.peer, effect.data)
            elif isinstance(effect, events.Predicted):
                self.ledger.learned(effect.number)
            elif isinstance(effect, events.Checkpoint):
                self._is_save_due = True
                self._save()
                # the protocol paused, so that the snapshot is of this very sample
                asyncio.get_running_loop().call_soon(self._handle, events.Tick())
            else:
                self._alarm(effect.kind, effect.peer, effect.text)

    def _save(self) -> None:
        is_time = self._clock() - self._saved >= self._save_pause and not self._stop.is_set()
        if self._is_save_due and is_time and not self.saver.is_busy:
            self._is_save_due, self._saved = False, self._clock()
            self.saver.begin(self._snapshot())

    def _pump(self) -> None:
        """Go on learning as soon as others had their turn."""
        protocol = self.protocol
        is_fed = protocol is None or protocol.n_queued > AHEAD // 2
        if not is_fed and not self._is_biting and self._can_feed():
            self._is_biting = True
            asyncio.get_running_loop().call_soon(self._bite)

    def _can_feed(self) -> bool:
        protocol = self.protocol
        has_room = protocol is not None and protocol.n_queued < AHEAD
        return has_room and bool(self.ledger.waiting) and not self._stop.is_set()

    def _bite(self) -> None:
        self._is_biting = False
        end = time.perf_counter() + BITE
        while self._can_feed() and time.perf_counter() < end:
            self._handle(self.ledger.waiting.popleft())
        self._pump()

    async def _tick(self) -> None:
        while True:
            self._handle(events.Tick())
            self._save()
            self.certificate.look(self._clock())
            await asyncio.sleep(TICK)

    def _snapshot(self) -> Saved:
        self.ledger.tidy()
        return self.ledger.saved(self.state_parts())

    def _alarm(self, kind: str, peer: str, text: str) -> None:
        held = self._throttle.admit(kind, peer, text)
        if held is not None:
            event("alarm", logging.WARNING, kind=kind, peer=peer, text=text, held_back=held)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
            event("failed", logging.ERROR, text=f"{type(error).__name__}: {error}")
        self._stop.set()
