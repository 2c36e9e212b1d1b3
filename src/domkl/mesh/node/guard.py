"""Who may ask what over HTTP: this machine by default, holders of the token beyond it."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from domkl.errors import ParameterError
from domkl.mesh.node.samples import MAX_BYTES
from domkl.mesh.transports.base import Address

OPEN_TO_ALL = ("/healthz",)


@dataclass(frozen=True)
class Rules:
    """What a request must keep to.

    Parameters
    ----------
    hosts : frozenset of str or None
        Names by which the node may be addressed: so that no page in a browser can reach a node on
        loopback under a name of its own. None: any.
    token : str or None
        What ``Authorization: Bearer`` must hold; None: nothing.
    max_body : int
        Bytes.
    """

    hosts: frozenset[str] | None
    token: str | None
    max_body: int = MAX_BYTES


def rules_for(address: Address, token_file: Path, with_token: bool = False) -> Rules:
    """The rules for where a node listens; beyond loopback there must be a token."""
    if is_loopback(address.host):
        token = read_token(token_file) if with_token else None
        return Rules(frozenset({"localhost", "127.0.0.1", "::1", address.host}), token)
    return Rules(None, read_token(token_file))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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


class Guard:
    """Middleware that keeps the rules."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        problem = self._problem(scope["path"], headers)
        if problem is not None:
            await problem(scope, receive, send)
        else:
            await self._app(scope, self._limited(receive), send)

    def _problem(self, path: str, headers: Mapping[str, str]) -> JSONResponse | None:
        rules, host = self._rules, headers.get("host", "")
        if rules.hosts is not None and _name(f"//{host}") not in rules.hosts:
            return _refusal(403, f"host must be this machine, got {host!r}")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refusal(403, f"pages of other origins may not ask, got {origin!r}")
        if rules.token is not None and path not in OPEN_TO_ALL:
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), rules.token.encode()):
                return _refusal(401, "authorization must be Bearer and the node's token",
                                {"WWW-Authenticate": "Bearer"})  # fmt: skip
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > rules.max_body:
            return _refusal(413, _too_large(rules.max_body))
        return None

    def _limited(self, receive: Receive) -> Receive:
        n_bytes = 0

        async def limited() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._rules.max_body:
                raise HTTPException(413, _too_large(self._rules.max_body))
            return message

        return limited


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _too_large(limit: int) -> str:
    return f"body must have at most {limit} bytes; send smaller lists"


def _refusal(code: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": detail}, code, dict(headers or {}))
