"""Predictions leave the node: to a broker, a webhook or standard output, each at most once.

The rules of this file
----------------------
- The id of a prediction: the learner, a random part, its sample's number in the write-ahead log.
- Before a prediction is given to an outlet, its number is on disk (`Published`). After a kill, what
  the node learns again up to this number is not published again; what was just being published may
  be missing.
- What an outlet has surely not passed on is given to it again. What it may have passed on is not.
- While an outlet is lost, the newest predictions wait, so many at most; older ones are dropped and
  counted. No sample waits for an outlet.
- Where the file cannot be written, nothing is published.
"""

import asyncio
import base64
import contextlib
import http.client
import json
import os
import secrets
import sys
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from domkl.errors import MeshError, ParameterError
from domkl.mesh.node import registry
from domkl.mesh.node.node import Node
from domkl.mesh.node.predictions import Content
from domkl.mesh.process_log import event
from domkl.mesh.store.wal import Mark

BACK_OFF = (0.5, 30.0)  # seconds before an outlet is tried again: at first, at most
AT_ONCE = 20  # predictions that share a sync; brokers take so many before they acknowledge one
HELD = 1000  # predictions that wait for an outlet, at most
TIMEOUT = 10.0  # seconds, of a webhook
STOPPING = 2.0  # seconds to publish what waits when the node stops
MAGIC = b"DOMKLP1\n"

#: surely passed on; perhaps; refused by whoever answered; surely not
Outcome = Literal["sent", "unsure", "refused", "not sent"]


class LostError(MeshError):
    """A broker or another outlet is lost, or could not be reached."""


class Prediction(NamedTuple):
    """A prediction as it is published; the text is a JSON object, and has the id, too."""

    id: str
    text: str


class Outlet(ABC):
    """Where predictions go."""

    kind: str  # the name of the link in metrics and alarms
    where: str  # what is told of it; no password

    @abstractmethod
    async def open(self) -> None:
        """Connect; LostError if that is impossible."""

    @abstractmethod
    async def send(self, items: Sequence[Prediction]) -> list[Outcome]:
        """Pass predictions on; say what became of each."""

    async def wait_lost(self) -> None:
        """Raise LostError when the outlet is lost; wait for ever if that shows by sending only."""
        await asyncio.Event().wait()

    async def close(self) -> None:  # noqa: B027  not every outlet has something to leave
        """Leave it; may be called at any time."""


def read_url(url: str, ports: Mapping[str, int]) -> tuple[SplitResult, str, int] | None:
    """The parts of a URL, its host and port; None unless it has a host and one of the schemes."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ports and parts.hostname:
            return parts, parts.hostname, parts.port or ports[parts.scheme]
    except ValueError:
        pass
    return None


def without_login(url: str) -> str:
    """A URL for messages; what stands before @ may be a password."""
    return url.rpartition("@")[2]


class Published:
    """The number of the newest prediction that was given to an outlet, on disk.

    Parameters
    ----------
    path : Path
    last : int
        Number of the newest sample in the log. If the file has a greater one, or is damaged,
        samples are numbered anew: the ids get another random part, and what the log has is not
        published.

    Attributes
    ----------
    stream : str
        The random part of the ids.
    set : callable
        Notes, on disk, that predictions up to a number are given away.
    """

    def __init__(self, path: Path, last: int) -> None:
        self._mark = mark = Mark(path, MAGIC, 8)
        number = mark.number if mark.number is not None else last if path.exists() else 0
        if mark.number is None or number > last:
            number, mark.tag = min(number, last), secrets.token_hex(4).encode()
        mark.begin(number)
        self.stream, self.set, self.close = mark.tag.decode(), mark.sync, mark.close

    @property
    def number(self) -> int:
        """The newest prediction that was given away."""
        return self._mark.number or 0


class Publisher:
    """Gives a node's predictions to an outlet, in order and at most once each.

    Parameters
    ----------
    node : Node
    outlet : Outlet

    Attributes
    ----------
    counts : Counter
        Predictions of this process by outcome: sent, unsure, refused, dropped.
    """

    def __init__(self, node: Node, outlet: Outlet) -> None:
        self.counts: Counter[str] = Counter()
        self._node, self._outlet, self._kind = node, outlet, outlet.kind
        name = f"published-{self._kind.replace(' ', '-')}"
        self._mark = Published(node.folder.data / name, node.backlog.log.last)
        self._waiting: deque[tuple[int, Content]] = deque()
        self._has_more, self._is_busy = asyncio.Event(), False
        node.published[self._kind] = self.counts
        node.outgoing.listeners.append(self.add)

    def add(self, number: int, content: Content) -> None:
        """Have a prediction published, unless it was."""
        if number <= self._mark.number:
            return
        if len(self._waiting) >= HELD:
            self._waiting.popleft()
            self.counts["dropped"] += 1
        self._waiting.append((number, content))
        self._has_more.set()

    async def run(self) -> None:
        """Publish until cancelled; try again whenever the outlet is lost."""
        pause, outlet = BACK_OFF[0], self._outlet
        while True:
            n_sent = self.counts["sent"]
            try:
                await outlet.open()
                self._node.note_link(self._kind, True, outlet.where)
                await self._publish()
            except LostError as error:
                text = f"{outlet.where}: {error}; trying again"
                self._node.note_link(self._kind, False, text)
            finally:
                await outlet.close()
            if self.counts["sent"] > n_sent:  # it was not lost again at once
                pause = BACK_OFF[0]
            await asyncio.sleep(pause)
            pause = min(2 * pause, BACK_OFF[1])

    async def drain(self, is_patient: bool = False) -> None:
        """Wait until nothing waits, for two seconds; as long as the outlet is there if patient."""
        loop = asyncio.get_running_loop()
        end = loop.time() + STOPPING
        while self._waiting or self._is_busy:
            if loop.time() > end and not (is_patient and self._node.links.get(self._kind)):
                return
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Close the file."""
        self._mark.close()

    async def _publish(self) -> None:
        while True:
            await self._more()
            items = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            self._is_busy = True
            try:
                outcomes = await self._give(items)
            finally:
                self._is_busy = False
            again = [item for item, o in zip(items, outcomes, strict=True) if o == "not sent"]
            self._waiting.extendleft(reversed(again))
            self.counts.update(each for each in outcomes if each != "not sent")
            if again or "unsure" in outcomes:
                raise LostError("the connection was lost while predictions were sent")

    async def _more(self) -> None:
        """Wait for predictions; LostError if the outlet is lost meanwhile."""
        if self._waiting:
            return
        self._has_more.clear()
        tasks = [asyncio.ensure_future(self._outlet.wait_lost()),
                 asyncio.ensure_future(self._has_more.wait())]  # fmt: skip
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _give(self, items: Sequence[tuple[int, Content]]) -> list[Outcome]:
        """Note numbers on disk, then send."""
        try:
            await asyncio.to_thread(self._mark.set, items[-1][0])
        except OSError as error:
            event("cannot publish", text=f"{error.strerror}: nothing is published meanwhile")
            return ["not sent"] * len(items)
        return await self._outlet.send([self._prediction(*item) for item in items])

    def _prediction(self, number: int, content: Content) -> Prediction:
        name = f"{content['learner']}-{self._mark.stream}-{number}"
        return Prediction(name, json.dumps({"id": name, **content}, allow_nan=False))


class Lines(Outlet):
    """JSON lines on standard output."""

    kind, where = "standard output", "one JSON object a line"

    def __init__(self, handle: int | None = None) -> None:
        self._handle = sys.stdout.fileno() if handle is None else handle
        self._is_broken = False

    async def open(self) -> None:
        """Raise LostError if nobody reads any more."""
        if self._is_broken:
            raise LostError("nobody reads it any more")

    async def send(self, items: Sequence[Prediction]) -> list[Outcome]:
        """Write one line for each."""
        data = "".join(each.text + "\n" for each in items).encode()
        try:
            await asyncio.to_thread(self._write, data)
        except OSError:
            self._is_broken = True
            return ["unsure"] * len(items)
        return ["sent"] * len(items)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]


class Webhook(Outlet):
    """An address that takes each prediction as the body of a POST.

    A connection that cannot be made is tried again. Whatever happens after that, the prediction is
    not sent again: the receiver may have it.
    """

    kind = "webhook"

    def __init__(self, url: str) -> None:
        schemes = {"http": 80, "https": 443}
        found = read_url(url if url.isprintable() and " " not in url else "", schemes)
        if found is None:
            raise ParameterError(
                f"webhook must be http://host/path or https://, got {without_login(url)!r}"
            )
        parts, host, port = found
        is_tls = parts.scheme == "https"
        make = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
        self._connect: Callable[[], http.client.HTTPConnection] = lambda: make(
            host, port, timeout=TIMEOUT
        )
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.where = host
        self._headers = {"Content-Type": "application/json"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            coded = base64.b64encode(login.encode()).decode()
            self._headers["Authorization"] = f"Basic {coded}"

    async def open(self) -> None:
        """Connect once, to see whether anybody is there."""
        await asyncio.to_thread(self._look)

    async def send(self, items: Sequence[Prediction]) -> list[Outcome]:
        """Send one request for each."""
        return await asyncio.to_thread(self._post_all, items)

    def _look(self) -> None:
        try:
            with contextlib.closing(self._connect()) as connection:
                connection.connect()
        except OSError as error:
            raise LostError(str(error)) from None

    def _post_all(self, items: Sequence[Prediction]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for item in items:
            outcomes.append(self._post(item))
            if outcomes[-1] in ("not sent", "unsure"):
                break
        return outcomes + ["not sent"] * (len(items) - len(outcomes))

    def _post(self, item: Prediction) -> Outcome:
        with contextlib.closing(self._connect()) as connection:
            try:
                connection.connect()
            except OSError:
                return "not sent"
            try:
                headers = self._headers | {"Idempotency-Key": item.id}
                connection.request("POST", self._path, item.text, headers)
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException):
                return "unsure"
        if 200 <= status < 300:
            return "sent"
        event("prediction refused", webhook=self.where, status=status, id=item.id)
        return "refused"


def published(options: registry.Publication) -> "registry.MakeOutlet":
    """Standard output, or a topic of a broker, as an outlet."""
    if options.publish == "-":
        return lambda node: Lines()
    made: registry.MakeOutlet = import_module("domkl.mesh.node.mqtt").predictions_to(options)
    return made


def posted(options: registry.Hook) -> "registry.MakeOutlet":
    """A webhook as an outlet."""
    hook = Webhook(options.webhook or "")
    return lambda node: hook
