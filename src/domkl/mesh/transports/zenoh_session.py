"""One opening of Zenoh: what is said and heard, between its threads and the event loop."""

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import zenoh

from domkl.mesh.transports import zenoh_config
from domkl.mesh.transports.base import Address
from domkl.mesh.transports.boxes import Inbox, Outbox

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.5
RETRY_SECONDS = 0.2


class Owner(Protocol):
    """Whom a session tells, in the loop's thread."""

    name: str
    neighbors: dict[str, Address]
    max_frame: int

    def framed(self, name: str, frame: bytes) -> None:
        """A frame came."""

    def asked(self, name: str, does: bool) -> None:
        """A neighbor wants frames, or no more."""

    def linked(self, name: str, is_up: bool) -> None:
        """A link came or went."""

    def refused(self, who: str, why: str) -> None:
        """A peer broke the rules."""


class Session:
    """Everything here but `send` and `open_patiently` may block, and runs outside the loop."""

    def __init__(self, owner: Owner, inbox: Inbox) -> None:
        self.owner, self.inbox = owner, inbox
        self.name, self.neighbors = owner.name, tuple(owner.neighbors)
        self._outboxes: dict[str, Outbox] = {}
        self._declared: list[Any] = []  # they live as long as they are referred to
        self._zenoh: zenoh.Session | None = None
        self._changing = threading.Lock()
        self._is_over = threading.Event()

    def open(self, config: zenoh_config.Config) -> None:
        """Connect, and declare what is said and heard."""
        with self._changing:
            if not self._is_over.is_set():
                self._zenoh = open_zenoh(config)
                self._declare(self._zenoh)

    def open_patiently(self, config: zenoh_config.Config) -> None:
        """Open in a thread, again and again until it succeeds or the session is closed."""

        def run() -> None:
            said = ""
            while not self._is_over.is_set():
                try:
                    self.open(config)
                    return
                except zenoh.ZError as error:
                    if str(error) != said:
                        logger.warning("%s cannot reach its router: %s", self.name, error)
                        said = str(error)
                    self._is_over.wait(RETRY_SECONDS)

        threading.Thread(target=run, name=f"{self.name}-opens", daemon=True).start()

    def send(self, neighbor: str, frame: bytes) -> bool:
        """Leave a frame for a neighbor's thread; False: it is behind."""
        outbox = self._outboxes.get(neighbor)
        return outbox is not None and outbox.put(frame)

    def close(self) -> None:
        """Say what waits, then close."""
        self._is_over.set()
        with self._changing:
            for outbox in self._outboxes.values():
                outbox.close()
            for outbox in self._outboxes.values():
                outbox.join(FLUSH_SECONDS / len(self._outboxes))
            if self._zenoh is not None:
                with contextlib.suppress(zenoh.ZError):
                    self._zenoh.close()  # type: ignore[no-untyped-call]

    def _declare(self, session: zenoh.Session) -> None:
        self._declared.append(
            session.info.declare_link_events_listener(self._on_link, history=True)
        )
        for name in self.neighbors:
            publisher = session.declare_publisher(
                zenoh_config.key(self.name, name),
                congestion_control=zenoh.CongestionControl.DROP,
                express=True,
            )
            self._outboxes[name] = Outbox(publisher.put, f"to-{name}")
            subscriber = session.declare_subscriber(
                zenoh_config.key(name, self.name), self._on_sample(name)
            )
            matching = publisher.declare_matching_listener(self._on_matching(name))
            self._declared += [publisher, subscriber, matching]
            is_asked: Any = publisher.matching_status  # not the bool that its stub says
            if is_asked.matching:
                self.inbox.put(self.owner.asked, name, True)

    def _on_sample(self, name: str) -> Callable[[zenoh.Sample], None]:
        def heard(sample: zenoh.Sample) -> None:
            length, limit = len(sample.payload), self.owner.max_frame
            if length > limit:
                why = f"frame of {length} bytes, at most {limit} allowed"
                self.inbox.put(self.owner.refused, name, why)
            else:
                frame = sample.payload.to_bytes()
                self.inbox.put(self.owner.framed, name, frame, size=length)

        return heard

    def _on_matching(self, name: str) -> Callable[[zenoh.MatchingStatus], None]:
        return lambda status: self.inbox.put(self.owner.asked, name, status.matching)

    def _on_link(self, event: zenoh.LinkEvent) -> None:
        name = event.link.auth_identifier or "unknown"
        self.inbox.put(self.owner.linked, name, event.kind == zenoh.SampleKind.PUT)


def open_zenoh(config: Mapping[str, Any]) -> zenoh.Session:
    """A session by these settings."""
    return zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
