"""A node from its folder to its end: files, faces, signals."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from domkl.errors import MeshError, ParameterError
from domkl.mesh.config.certificates import CA
from domkl.mesh.node.face import HttpFace
from domkl.mesh.node.guard import is_loopback, rules_for
from domkl.mesh.node.home import TOKEN, Home, Lock, open_home
from domkl.mesh.node.http import create_app
from domkl.mesh.node.ledger import Ledger
from domkl.mesh.node.node import Node
from domkl.mesh.node.sources import Replay, from_lines, until_learned
from domkl.mesh.node.telemetry import event
from domkl.mesh.transports.base import Address, Transport
from domkl.mesh.transports.tls import TlsTransport

MakeTransport = Callable[[Home], Transport]


@dataclass(frozen=True)
class Options:
    """What the command line says beyond the folder.

    Parameters
    ----------
    http : Address, optional
        Other than the mesh file says.
    with_token : bool
        Demand the token on loopback, too.
    lines : bool
        Take samples from standard input.
    csv : Path, optional
        Replay this file; ``rate`` rows a second, those of ``rows``.
    topic : callable, optional
        Takes samples from elsewhere until it is cancelled.
    until_end : bool
        Stop when all of standard input or of the file is learned.
    """

    http: Address | None = None
    with_token: bool = False
    lines: bool = False
    csv: Path | None = None
    rate: float = 0.0
    rows: slice | None = None
    missing: str = "error"
    topic: Callable[[Node], Awaitable[None]] | None = None
    until_end: bool = False


async def serve(
    folder: Path,
    options: Options,
    *,
    mesh_file: Path | None = None,
    transports: MakeTransport | None = None,
) -> None:
    """Run the node of a folder until SIGTERM, SIGINT, its end of input, or a failure."""
    home = open_home(folder, mesh_file)
    try:
        await _serve(home, options, transports or tls_transport)
    except OSError as error:
        raise MeshError(f"{home.name} cannot go on: {error}") from None
    event("stopped", learner=home.name)


async def _serve(home: Home, options: Options, transports: MakeTransport) -> None:
    lock = Lock(home.data)
    try:
        config = home.config
        ledger = Ledger(home.data, config.model(), config.lags)
        replay = None
        if options.csv is not None:
            replay = Replay(options.csv, ledger.desk, options.rows or slice(None), options.missing)
        has_certificate = home.certificate is not None
        transport = transports(home) if has_certificate else None
        node, face = Node(home, ledger, transport), _face(home, options)
        try:
            await _run(node, face, options, replay)
        finally:
            await face.stop()
            await node.close()
    finally:
        lock.release()


def tls_transport(home: Home) -> Transport:
    """The transport that needs nothing but the node's folder."""
    if not (home.folder / CA).exists():
        raise ParameterError(f"{home.folder / CA} is missing; copy the learner's whole folder")
    return TlsTransport(home.name, home.neighbors, home.member.address, home.folder)


def _face(home: Home, options: Options) -> HttpFace:
    address = options.http or home.member.http
    return HttpFace(address, None if is_loopback(address.host) else home.folder)


async def _run(node: Node, face: HttpFace, options: Options, replay: Replay | None) -> None:
    rules = rules_for(face.address, node.home.folder / TOKEN, options.with_token)
    await face.start(create_app(node, rules))
    event("http", address=str(face.address))
    with _signals(node, face):
        await node.start()
        source = asyncio.create_task(_feed(node, options, replay))
        source.add_done_callback(lambda task: node.stop() if _has_failed(task) else None)
        try:
            await node.wait()
        finally:
            source.cancel()
            found = await asyncio.gather(source, return_exceptions=True)
        if isinstance(found[0], Exception):
            raise found[0]


async def _feed(node: Node, options: Options, replay: Replay | None) -> None:
    if replay is not None:
        await replay.run(node, options.rate)
    elif options.lines:
        await from_lines(node, sys.stdin.fileno())
    elif options.topic is not None:
        await options.topic(node)
    else:
        return
    event("end of input")
    if options.until_end:
        await until_learned(node)
        node.stop()


def _has_failed(task: "asyncio.Task[None]") -> bool:
    return not task.cancelled() and task.exception() is not None


@contextlib.contextmanager
def _signals(node: Node, face: HttpFace) -> Iterator[None]:
    """SIGTERM and SIGINT stop, SIGHUP reads mesh file and certificates again."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        await node.reload()
        try:
            face.reload()
        except OSError as error:  # the old certificate stays
            event("reload refused", logging.ERROR, text=str(error))

    def on_hangup() -> None:
        task = asyncio.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGTERM, node.stop)
    loop.add_signal_handler(signal.SIGINT, node.stop)
    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    try:
        yield
    finally:
        for each in (signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(each)
