"""Run a node from its folder until it stops: files, transport, HTTP, sources, signals."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from domkl.errors import MeshError, ParameterError
from domkl.mesh.node.http import HttpServer, create_app, rules_for
from domkl.mesh.node.node import Node
from domkl.mesh.node.publish import Publisher
from domkl.mesh.process_log import event, tighten
from domkl.mesh.store.folder import TOKEN, Lock, NodeFolder, open_folder
from domkl.mesh.transports import registry
from domkl.mesh.transports.base import Address

if TYPE_CHECKING:
    from domkl.mesh.node.registry import MakeOutlet, Source


@dataclass(frozen=True)
class Options:
    """What the command line says besides the folder.

    Parameters
    ----------
    http : Address, optional
        Instead of the address in the mesh file.
    with_token : bool
        Demand the token on loopback as well.
    source : callable, optional
        Takes samples besides those that come over HTTP; see registry.py.
    outlets : tuple of callables
        Where predictions are published; each makes an `Outlet` for the node.
    until_end : bool
        Stop when all samples of the source are learned.
    accept_loss : bool
        Start although acknowledged samples are missing on disk.
    """

    http: Address | None = None
    with_token: bool = False
    source: "Source | None" = None
    outlets: "tuple[MakeOutlet, ...]" = ()
    until_end: bool = False
    accept_loss: bool = False


async def serve(path: Path, options: Options, *, mesh_file: Path | None = None) -> None:
    """Run the node of a folder until SIGTERM, SIGINT, its end of input, or a failure."""
    folder = open_folder(path, mesh_file)
    try:
        await _serve(folder, options)
    except OSError as error:
        raise MeshError(f"{folder.name} cannot continue: {error}") from None
    event("stopped", learner=folder.name)


async def _serve(folder: NodeFolder, options: Options) -> None:
    lock = Lock(folder.data)
    try:
        tighten(folder.path)
        has_certificate = folder.certificate is not None
        name = folder.config.transport
        transport = registry.make(name, folder.endpoint) if has_certificate else None
        node = Node(folder, transport, accept_loss=options.accept_loss)
        server = _server(folder, options)
        try:
            await _run(node, server, options)
        finally:
            await server.stop()
            await node.close()
    finally:
        lock.release()


def _server(folder: NodeFolder, options: Options) -> HttpServer:
    address = options.http or folder.member.http
    return HttpServer(address, None if address.is_loopback else folder.path)


async def _run(node: Node, server: HttpServer, options: Options) -> None:
    take = None if options.source is None else options.source(node)
    token_file = node.folder.path / TOKEN
    rules = rules_for(server.address, token_file, options.with_token)
    await server.start(create_app(node, rules))
    event("http", address=str(server.address))
    with _signals(node, server, lambda: rules.reload(token_file)):
        publishers = [Publisher(node, make(node)) for make in options.outlets]
        await node.start()
        feed = _feed(node, take, options.until_end, publishers)
        tasks = [asyncio.create_task(each) for each in (feed, *(p.run() for p in publishers))]
        for each in tasks:
            each.add_done_callback(lambda task: node.stop() if _has_failed(task) else None)
        try:
            await node.wait()
        finally:
            tasks[0].cancel()
            await asyncio.gather(*(each.drain() for each in publishers))
            for each in tasks:
                each.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            for publisher in publishers:
                publisher.close()
        for failure in found:
            if isinstance(failure, Exception):
                raise failure


async def _feed(
    node: Node,
    take: Callable[[], Awaitable[None]] | None,
    until_end: bool,
    publishers: Sequence[Publisher],
) -> None:
    """Take the samples of a source; at its end, stop the node if that is wanted."""
    if take is None:
        return
    await take()
    event("end of input")
    if until_end:
        await node.until_idle()
        await asyncio.gather(*(each.drain(is_patient=True) for each in publishers))
        node.stop()


def _has_failed(task: "asyncio.Task[None]") -> bool:
    return not task.cancelled() and task.exception() is not None


@contextlib.contextmanager
def _signals(node: Node, server: HttpServer, reload_token: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT stop the node, SIGHUP reads mesh file, certificates and token again."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        await node.reload()
        try:
            server.reload()
            reload_token()
        except (OSError, ParameterError) as error:  # the old certificate, or token, is kept
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
