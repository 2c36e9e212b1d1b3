"""The sockets of a mesh: TLS contexts, options, names in certificates."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domkl.errors import DataError
from domkl.mesh.transports.base import Address

SILENCE_MS = 3000  # unacknowledged bytes for this long end a connection
BACKLOG = 128


def context(kind: int, folder: Path) -> ssl.SSLContext:
    """TLS 1.3, both ends with certificates, of the mesh's own authority only."""
    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(folder / "ca.pem")
        context.load_cert_chain(folder / "node.pem", folder / "node.key")
    except (OSError, ssl.SSLError) as error:
        for name in ("ca.pem", "node.pem", "node.key"):
            if not (folder / name).exists():
                raise DataError(
                    f"{folder / name} is missing; copy the learner's whole folder"
                ) from None
        raise DataError(
            "certificates must be a folder with ca.pem, node.pem and node.key, "
            f"got {folder}: {error}"
        ) from error
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def reason(error: OSError) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, TimeoutError):
        return "no handshake and greeting in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate refused: {error.verify_message}"
    return str(error) or type(error).__name__


async def bind(address: Address) -> socket.socket:
    """A listening socket."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, _, _, _, where = found[0]
    listener = socket.create_server(where[:2], family=family, backlog=BACKLOG)
    listener.setblocking(False)
    return listener


def common_name(certificate: Mapping[str, Any] | None) -> str:
    """The one common name in a peer's certificate, as `ssl` gives it; else nothing."""
    parts = (certificate or {}).get("subject", ())
    names = [value for part in parts for key, value in part if key == "commonName"]
    return str(names[0]) if len(names) == 1 else ""


def set_options(sock: socket.socket) -> None:
    """Send at once; notice a silent cut in about three seconds, where the platform can."""
    options = [
        (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", SILENCE_MS),
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 2),
    ]
    with contextlib.suppress(OSError):  # of a connection that is gone already
        for level, name, value in options:
            if hasattr(socket, name):
                sock.setsockopt(level, getattr(socket, name), value)
