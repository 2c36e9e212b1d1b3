"""A node's HTTP interface: it takes samples, predicts, and reports the node's state.

Three parts: who may send requests (`Rules`, `AccessCheck`), the requests that are answered
(`create_app`), and the server, which runs in the node's own event loop (`HttpServer`). What is
asked and answered is described for machines in openapi.json, beside this file.
"""

import asyncio
import contextlib
import hmac
import json
import math
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import domkl
from domkl.errors import DataError, DomklError, MeshError, ParameterError
from domkl.mesh.config.certificates import NODE, NODE_KEY
from domkl.mesh.node.connections import Doorkeeper, HttpConnection, Limits, Listener
from domkl.mesh.node.intake import (
    INVALID,
    MAX_BYTES,
    Inputs,
    Prepared,
    QueueFullError,
    listed,
    loaded,
)
from domkl.mesh.node.node import Node, TooFewError
from domkl.mesh.node.telemetry import state_of
from domkl.mesh.node.watch_routes import watch_routes
from domkl.mesh.operate.page import PATHS, page_routes
from domkl.mesh.store.wal import DiskFullError
from domkl.mesh.transports.base import Address, bind

RETRY = "1"  # seconds
AT_ONCE = 64  # samples checked before others have their turn
OPEN_TO_ALL = ("/healthz", *PATHS)  # the page holds no data
GRACE = 3  # seconds to finish answers when the node stops
KEPT = 75  # seconds that an idle connection is kept
LIMITS = Limits()
YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


@dataclass
class Rules:
    """What a request must comply with.

    Parameters
    ----------
    hosts : frozenset of str or None
        Names by which the node may be addressed, or None for any. On loopback they keep web pages
        from reaching the node through a browser under a host name of their own.
    token : str or None
        Demanded in ``Authorization: Bearer``, unless None.
    max_body : int
        Bytes of a request's body.
    """

    hosts: frozenset[str] | None
    token: str | None
    max_body: int = MAX_BYTES

    def reload(self, token_file: Path) -> None:
        """Demand the token that is in the file now, if one is demanded."""
        if self.token is not None:
            self.token = read_token(token_file)


def rules_for(address: Address, token_file: Path, with_token: bool = False) -> Rules:
    """The rules for an address to listen at; beyond loopback a token is demanded."""
    if address.is_loopback:
        token = read_token(token_file) if with_token else None
        return Rules(frozenset({"localhost", "127.0.0.1", "::1", address.host}), token)
    return Rules(None, read_token(token_file))


def read_token(path: Path) -> str:
    """Read the token of a node's folder."""
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise ParameterError(
            f"http beyond loopback, or with --require-token, must have a token in {path}:"
            f" {error.strerror}; domkl mesh init makes one"
        ) from None
    if len(token) < 16 or not token.isascii() or not token.isprintable():
        raise ParameterError(f"token in {path} must have at least 16 printable characters")
    return token


class AccessCheck:
    """Middleware that refuses requests that break the rules, and passes on those that are complete.

    It collects the body itself, as ``body`` of the scope: where the client goes away meanwhile, or
    has to, all that has come is freed at once, and no exception keeps it.
    """

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why it is refused."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        problem = self._problem(scope["path"], headers)
        if problem is not None:
            await problem(scope, receive, send)
            return
        body = await self._body(receive)
        if body is None:
            return  # the client has gone
        if len(body) > self._rules.max_body:
            await _refusal(413, _too_large(self._rules.max_body))(scope, receive, send)
        else:
            await self._app({**scope, "body": bytes(body)}, receive, send)

    def _problem(self, path: str, headers: Mapping[str, str]) -> JSONResponse | None:
        rules, host = self._rules, headers.get("host", "")
        if rules.hosts is not None and _name(host) not in rules.hosts:
            return _refusal(403, f"host must be this machine, got {host!r}")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refusal(403, f"pages of other origins may not ask, got {origin!r}")
        if rules.token is not None and path not in OPEN_TO_ALL:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.encode(), rules.token.encode())
            if scheme.lower() != "bearer" or not is_right:
                return _refusal(401, "authorization must be Bearer and the node's token",
                                {"WWW-Authenticate": "Bearer"})  # fmt: skip
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > rules.max_body:
            return _refusal(413, _too_large(rules.max_body))
        return None

    async def _body(self, receive: Receive) -> bytearray | None:
        """The body, or as much of it as shows that it is too large; None without a client."""
        body, is_more = bytearray(), True
        while is_more and len(body) <= self._rules.max_body:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
        return body


@lru_cache(maxsize=64)
def _name(host: str) -> str | None:
    """The name in a Host header, without its port; None if it is none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _too_large(limit: int) -> str:
    return f"body must have at most {limit} bytes; send smaller lists"


def _refusal(code: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": detail}, code, dict(headers or {}))


class NotReadyError(DomklError):
    """The node is starting or stopping."""


STATUS: dict[type[DomklError], int] = {
    DataError: 422,
    QueueFullError: 429,
    DiskFullError: 507,
    MeshError: 503,
    NotReadyError: 503,
    TooFewError: 409,
}


def application(routes: Sequence[Route], rules: Rules) -> Starlette:
    """An application whose guard refuses by the rules, and which answers errors in JSON."""
    handlers: Any = {DomklError: _on_error, HTTPException: _on_http_error}
    guards = [Middleware(AccessCheck, rules=rules)]
    return Starlette(routes=routes, middleware=guards, exception_handlers=handlers)


def create_app(node: Node, rules: Rules) -> Starlette:
    """The requests that a node answers."""
    routes = [*_learning(node), *_watching(node), *watch_routes(node), *page_routes()]
    return application([*routes, Route("/openapi.json", _described)], rules)


def _learning(node: Node) -> Iterator[Route]:
    async def learn(request: Request) -> Response:
        """Accept a sample, or a list of samples, all or none; they are on disk when this answers.

        A full queue answers 429, a full disk 507; nothing was accepted then.
        """
        _check_ready(node)
        try:
            body = _json(request)
            given = listed(body)
        except DataError:
            node.intake.rejected[INVALID] += 1
            raise
        items = await _prepared(node, given)
        numbers = await node.intake.accept(items) if items else []
        found = [
            {"number": number, "id": item.entry.id or None}
            for number, item in zip(numbers, items, strict=True)
        ]
        return JSONResponse(found if isinstance(body, list) else found[0], 202)

    async def predict(request: Request) -> Response:
        """Predict for inputs; without x, the next value of a series, or all horizons."""
        _check_ready(node)
        body = Inputs.read(_json(request))
        if node.backlog.rows.is_dated:
            return JSONResponse(_forecasted(node, body))
        if body.future:
            raise DataError("future is for a mesh that forecasts; this one has no [forecast]")
        if body.x is None:
            x, n_outside = _next_inputs(node), 0
        else:
            x, n_outside = node.format.inputs(body.x)
        if node.is_blank:
            raise TooFewError("the learner has no sample yet, and has heard of none: learn first")
        y_hat, deviation, quantiles = node.predict(x)
        answer = {"prediction": _finite(y_hat), "deviation": deviation, "quantiles": quantiles}
        return JSONResponse({**answer, "n_outside": n_outside})

    yield Route("/learn", learn, methods=["POST"])
    yield Route("/predict", predict, methods=["POST"])


def _watching(node: Node) -> Iterator[Route]:
    async def state(request: Request) -> Response:
        """Measures, the agreed model, neighbors; with digest, a checksum of the learned state."""
        said = request.query_params.get("digest", NO[0])
        if said.lower() not in YES + NO:
            raise DataError(f"digest must be true or false, got {said!r}")
        return JSONResponse(state_of(node, with_digest=said.lower() in YES))

    async def healthz(request: Request) -> Response:
        """200 while the node learns and predicts."""
        _check_ready(node)
        return JSONResponse({"status": "ready"})

    async def metrics(request: Request) -> Response:
        """For Prometheus."""
        from domkl.mesh.node.metrics import KIND, text_of

        return Response(text_of(node), media_type=KIND)

    yield Route("/state", state)
    yield Route("/healthz", healthz)
    yield Route("/metrics", metrics)


async def _described(request: Request) -> Response:
    """The description of all requests."""
    found = json.loads(files("domkl.mesh.node").joinpath("openapi.json").read_bytes())
    return JSONResponse({**found, "info": {**found["info"], "version": domkl.__version__}})


def _json(request: Request) -> Any:
    """The body; it must be declared as JSON, which a web page of another origin cannot do."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise DataError(f"body must come with Content-Type: application/json, got {kind!r}")
    return loaded("body", request.scope["body"])


def _check_ready(node: Node) -> None:
    if not node.is_ready:
        raise NotReadyError("node must be ready, and is starting or stopping; try again later")


async def _prepared(node: Node, given: list[Any]) -> list[Prepared]:
    """Check all samples; raise at the first wrong one. Long lists let others have their turn."""
    found = []
    for k, each in enumerate(given, 1):
        try:
            found.append(node.format.sample(each))
        except DataError as error:
            node.intake.rejected[INVALID] += len(given)
            where = f"sample {k} of {len(given)}: " if len(given) > 1 else ""
            raise DataError(where + str(error)) from None
        if k % AT_ONCE == 0:
            await asyncio.sleep(0)
    return found


def _forecasted(node: Node, body: Inputs) -> dict[str, Any]:
    if body.x is not None:
        node.format.inputs(body.x)  # which refuses them
    known = node.backlog.rows.known
    ahead = node.format.future(body.future, None if known is None else known.tick)
    if node.is_blank:
        raise TooFewError("the learner has no sample yet, and has heard of none: learn first")
    made = node.forecast(ahead.inputs)
    return {
        "forecasts": [{**each._asdict(), "prediction": _finite(each.prediction)} for each in made],
        "n_queued": node.backlog.n_waiting,
        "n_outside": ahead.n_outside,
    }


def _next_inputs(node: Node) -> Any:
    n_lags = node.backlog.rows.n_lags
    if not n_lags:
        raise DataError("x must be given, got none: the mesh has no lags")
    lags = node.backlog.newest_lags()
    if lags is None or np.isnan(lags).any():
        n_values = node.backlog.log.last
        raise TooFewError(f"series must have {n_lags} values to predict the next, got {n_values}")
    return lags


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


async def _on_error(request: Request, error: Exception) -> JSONResponse:
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    headers = {"Retry-After": RETRY} if status in (429, 503, 507) else None
    return JSONResponse({"detail": str(error)}, status, headers)


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


class _Server(uvicorn.Server):
    """A server that leaves signals to the node."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


class HttpServer:
    """The HTTP server of a node.

    Parameters
    ----------
    address : Address
        Port 0 lets the system choose one.
    folder : Path or None
        Holds the node's certificate and key; without TLS if None.
    limits : Limits
        Of connections and their requests.
    """

    def __init__(self, address: Address, folder: Path | None, limits: Limits = LIMITS) -> None:
        self.address = address
        self._doorkeeper = Doorkeeper(limits)
        self._folder = folder
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, app: Starlette) -> None:
        """Listen; MeshError if the port is taken."""
        try:
            self._socket = Listener(await bind(self.address), self._doorkeeper)
        except OSError as error:
            raise MeshError(f"cannot serve HTTP at {self.address}: {error.strerror}") from None
        # asyncio sets it only for sockets that it creates; without it each answer waits 40 ms
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = Address(*self._socket.getsockname()[:2])
        folder = self._folder
        protocol = type("_Connection", (HttpConnection,), {"doorkeeper": self._doorkeeper})
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", ws="none", http=protocol,
            server_header=False, proxy_headers=False,
            timeout_graceful_shutdown=GRACE, timeout_keep_alive=KEPT,
            ssl_certfile=None if folder is None else folder / NODE,
            ssl_keyfile=None if folder is None else folder / NODE_KEY,
        )  # fmt: skip
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise ParameterError(
                f"http beyond loopback must have TLS, with the node's certificate: {error}"
            ) from None
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)

    def reload(self) -> None:
        """Read certificate and key again; new connections use them."""
        if self._server is not None and self._folder is not None:
            context = self._server.config.ssl
            if context is not None:
                context.load_cert_chain(self._folder / NODE, self._folder / NODE_KEY)

    async def stop(self) -> None:
        """Finish the answers under way, then close."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await asyncio.wait([self._task])
        if self._socket is not None:
            self._socket.close()
