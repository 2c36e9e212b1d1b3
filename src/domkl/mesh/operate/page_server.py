"""The server of `domkl mesh ui`: the page, and what it asks for, from the nodes' own answers.

It runs where the mesh's folder is, and asks the nodes with the tokens that it finds there, so that
their ports need not be open to a browser and the browser needs none of the tokens.

A thread for each node reads its live stream and hands every line to the loop of the server, which
passes on what is new to those who watch. A node that closes its stream, or sends nothing for some
seconds, is down until it answers again.
"""

import asyncio
import contextlib
import http.client
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from domkl.errors import DataError
from domkl.mesh.config.file import Member, MeshConfig
from domkl.mesh.config.folder import UI_TOKEN, read_mesh, write_token
from domkl.mesh.node.http import HttpServer, Rules, application, rules_for
from domkl.mesh.node.watch_routes import LINES, hello_of_mesh, horizon_of, span_of
from domkl.mesh.operate.page import page_routes
from domkl.mesh.operate.status import ask, authorization, connected
from domkl.mesh.operate.verdict import verdict_of
from domkl.mesh.transports.base import Address
from domkl.text import check_depth, from_json

HOST = "127.0.0.1"
PATIENCE = 10.0  # seconds for a node to answer
AT_ONCE = 32  # nodes asked at once
SILENT = 3.0  # seconds without a line, after which a node is down
AGAIN = 1.0  # seconds before a node that is down is asked again
EVERY = 1.0  # seconds between two lines
MAX_LINE = 2**22  # bytes
NEW = ("rows", "samples", "events")  # parts of a line that are new, and not the state now

Took = Callable[[str, dict[str, Any] | None], None]


class Hub:
    """The newest state of every learner, and who watches.

    Parameters
    ----------
    config : MeshConfig
    folder : Path
        The mesh's folder, with the token of each learner.
    """

    def __init__(self, config: MeshConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self._now = {name: _down() for name in config.names}
        self._watchers: list[dict[str, dict[str, Any]]] = []
        self._is_over = threading.Event()
        self._heard_all = asyncio.Event()
        self._unheard = set(config.names)
        self._silent: set[str] = set()

    def start(self) -> None:
        """Follow all nodes, from within the loop of the server."""
        loop = asyncio.get_running_loop()

        def took(name: str, line: dict[str, Any] | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._took, name, line)

        for member in self.config.members:
            given = (member, self.folder, took, self._is_over)
            threading.Thread(target=follow, args=given, daemon=True, name=member.name).start()

    def stop(self) -> None:
        """Follow nobody any more."""
        self._is_over.set()

    def is_down(self, name: str) -> bool:
        """Whether a learner's stream ended, or was not to be had: asking it is of no use."""
        return name in self._silent

    async def lines(self) -> AsyncIterator[dict[str, Any]]:
        """The lines of the stream: first what there is, then every second what is new."""
        with contextlib.suppress(TimeoutError):  # just started: wait for the first answers
            await asyncio.wait_for(self._heard_all.wait(), EVERY)
        yield {"hello": hello_of_mesh(self.config, self.config.names)}
        pending = {name: dict(now) for name, now in self._now.items()}
        self._watchers.append(pending)
        try:
            while not self._is_over.is_set():
                learners = dict(pending)
                pending.clear()
                yield {"time": time.time(), "learners": learners}
                await asyncio.sleep(EVERY)
        finally:
            self._watchers = [each for each in self._watchers if each is not pending]

    def _took(self, name: str, line: dict[str, Any] | None) -> None:
        """Take in a line of a node; None if it is down."""
        if line is not None and "hello" in line:
            return  # the mesh file says it
        self._unheard.discard(name)
        if not self._unheard:
            self._heard_all.set()
        if line is None:
            self._silent.add(name)
            if self._now[name].get("is_ready") or "since" not in self._now[name]:
                self._now[name] = _down()
            update = self._now[name]
        else:
            self._silent.discard(name)
            update = line
            self._now[name] = {key: value for key, value in line.items() if key not in NEW}
        for pending in self._watchers:
            pending[name] = merged(pending.get(name), update)


def _down() -> dict[str, Any]:
    """The state of a node that does not answer."""
    return {"is_ready": False, "since": time.time(), "verdict": verdict_of(None)._asdict()}


def merged(before: dict[str, Any] | None, after: dict[str, Any]) -> dict[str, Any]:
    """What is new since a watcher was last told: the newest state, and all that is new."""
    if before is None or "rows" not in before:
        return dict(after)
    if "rows" not in after:
        return dict(after) | {name: before[name] for name in NEW if name in before}
    return dict(after) | {name: _joined(before[name], after[name]) for name in NEW}


def _joined(before: Any, after: Any) -> Any:
    """Columns one after the other, in tables of any depth."""
    if isinstance(before, list) and isinstance(after, list):
        return before + after
    if isinstance(before, dict) and isinstance(after, dict):
        return {name: _joined(before.get(name), value) for name, value in after.items()}
    return after


def follow(member: Member, folder: Path, took: Took, is_over: threading.Event) -> None:
    """Read the stream of a node, again and again."""
    while not is_over.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            _read(member, folder, took, is_over)
        if not is_over.is_set():
            took(member.name, None)
            is_over.wait(AGAIN)


def said_of(name: str, line: Any) -> dict[str, Any]:
    """What a line says of this learner, who speaks for itself alone; ValueError if nothing."""
    if isinstance(line, dict) and isinstance(line.get("hello"), dict):
        return {"hello": line["hello"]}
    learners = line.get("learners") if isinstance(line, dict) else None
    found = learners.get(name) if isinstance(learners, dict) else None
    if not isinstance(found, dict):
        raise ValueError(f"line must say something of {name}")
    return found


def _read(member: Member, folder: Path, took: Took, is_over: threading.Event) -> None:
    connection = connected(member, folder / member.name, SILENT)
    try:
        connection.request("GET", "/watch", headers=authorization(folder / member.name))
        answer = connection.getresponse()
        if answer.status != 200:
            return
        while not is_over.is_set():
            text = answer.readline(MAX_LINE)
            if not text:
                return
            line = from_json(text)
            check_depth(line)
            took(member.name, said_of(member.name, line))
    finally:
        connection.close()


def create_app(hub: Hub, rules: Rules) -> Starlette:
    """The requests that are answered."""
    names, pool = hub.config.names, ThreadPoolExecutor(min(len(hub.config.names), AT_ONCE))

    async def asked(name: str, path: str) -> Any:
        if name not in names:
            raise HTTPException(404, f"learner must be one of {', '.join(names)}")
        if hub.is_down(name):
            return None
        given = partial(ask, hub.config.member(name), hub.folder, path, timeout=PATIENCE)
        return await asyncio.get_running_loop().run_in_executor(pool, given)

    async def healthz(request: Request) -> Response:
        """200 while the server runs."""
        return JSONResponse({"status": "ready"})

    async def history(request: Request) -> Response:
        """The answers of all learners, or of one, to the same request; null of those not there."""
        since, step = span_of(request)
        learner = request.query_params.get("learner")
        chosen = names if learner is None else (learner,)
        path = f"/history?since={since!r}&step={step!r}"
        found = await asyncio.gather(*(asked(name, path) for name in chosen))
        return JSONResponse({"learners": dict(zip(chosen, found, strict=True))})

    async def recent(request: Request) -> Response:
        """A learner's newest samples."""
        learner = request.query_params.get("learner")
        if learner is None:
            raise DataError(f"learner must be one of {', '.join(names)}, got none")
        return JSONResponse(await asked(learner, f"/recent?horizon={horizon_of(request)}"))

    async def watch(request: Request) -> Response:
        """A line of JSON every second, with what is new of all learners."""
        return StreamingResponse(
            _lines(hub), media_type=LINES, headers={"Cache-Control": "no-store"}
        )

    asking = {"/healthz": healthz, "/history": history, "/recent": recent, "/watch": watch}
    return application(
        [*page_routes(), *(Route(path, each) for path, each in asking.items())], rules
    )


async def _lines(hub: Hub) -> AsyncIterator[bytes]:
    async for line in hub.lines():
        yield json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"


async def serve_ui(folder: Path, port: int, with_token: bool, tell: Callable[[str], None]) -> None:
    """Serve the page until cancelled; ``tell`` is given its address once it answers."""
    config = read_mesh(folder)
    address = Address(HOST, port)
    # the page must not show to other users of this machine what the nodes would not
    is_guarded = with_token or not all(each.http.is_loopback for each in config.members)
    path = folder / UI_TOKEN
    if is_guarded and not path.exists():
        write_token(path)
    hub, server = Hub(config, folder), HttpServer(address, None)
    rules = rules_for(address, path, is_guarded)
    await server.start(create_app(hub, rules))
    hub.start()
    tell(f"http://{server.address}/")
    try:
        await asyncio.Event().wait()
    finally:
        hub.stop()
        await server.stop()
