"""The server of `domkl mesh ui`: the page, and what it asks for, from the nodes' own answers.

It runs where the mesh's folder is, and asks the nodes with the tokens that it finds there, so that
their ports need not be open to a browser and the browser needs none of the tokens.
"""

import asyncio
import json
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
from domkl.mesh.config.folder import read_mesh, write_token
from domkl.mesh.node.http import HttpServer, Rules, application, rules_for
from domkl.mesh.node.watch_routes import LINES, horizon_of, span_of
from domkl.mesh.operate.page import page_routes
from domkl.mesh.operate.page_hub import Hub
from domkl.mesh.operate.status import ask
from domkl.mesh.transports.base import Address

TOKEN = "ui-token"
HOST = "127.0.0.1"
PATIENCE = 10.0  # seconds for a node to answer
AT_ONCE = 32  # nodes asked at once


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
    path = folder / TOKEN
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
