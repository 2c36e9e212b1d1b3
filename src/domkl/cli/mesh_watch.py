"""`domkl mesh up`, `status`, `ui` and `router`: processes that run until Ctrl-C."""

import argparse
import contextlib
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import IO

from domkl import checks
from domkl.cli.node import check_links
from domkl.core.jit import noted_compilation
from domkl.data.tables import read_columns
from domkl.errors import DomklError, MeshError, ParameterError
from domkl.mesh.config.file import MeshConfig
from domkl.mesh.config.folder import MESH, ROUTER, read_mesh
from domkl.mesh.node.node import warm_up
from domkl.mesh.node.registry import OUTLETS, SOURCES, LinkEntry
from domkl.mesh.operate.launcher import Ended, Launcher, Options
from domkl.mesh.operate.status import Row, as_table, ask_all, code_of, in_words, rows_of
from domkl.mesh.transports import registry
from domkl.mesh.transports.base import Address
from domkl.text import parse_names

ENDING = {signal.SIGINT, signal.SIGTERM}
LINKS = (*SOURCES, *OUTLETS)
EVERY, SELDOM = 1.0, 5.0  # seconds between tables, on a terminal and elsewhere


def status(args: argparse.Namespace) -> int:
    """Ask every learner, once or every few seconds; the exit code is the verdict."""
    config = read_mesh(args.folder)
    rows = rows_of(config, ask_all(config, args.folder))
    if not args.watch:
        print(_text(rows, args.json))
        return code_of(rows)
    with _signals() as asked, Screen(sys.stdout) as screen:
        while not asked & ENDING:
            (screen.say if args.json else screen.show)(_text(rows, args.json))
            _sleep(EVERY if screen.is_terminal or args.json else SELDOM, asked)
            rows = rows_of(config, ask_all(config, args.folder))
    return code_of(rows)


def ui(args: argparse.Namespace) -> int:
    """Serve the page of a mesh until Ctrl-C or SIGTERM."""
    import asyncio

    from domkl.mesh.operate.page_server import serve_ui

    checks.whole("port", args.port, 0, 65535)

    def tell(address: str) -> None:
        print(address, flush=True)
        print("serving the page at this address; Ctrl-C to end", file=sys.stderr)

    async def run() -> None:
        served = asyncio.ensure_future(serve_ui(args.folder, args.port, args.require_token, tell))
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, served.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await served

    asyncio.run(run())
    return 0


def router(args: argparse.Namespace) -> int:
    """Run the router of a mesh until Ctrl-C or SIGTERM."""
    config = read_mesh(args.folder)
    if config.router is None:
        raise ParameterError(f"{args.folder / MESH} must name a router, got none")
    listen = config.router if args.listen is None else Address.parse(args.listen)
    run_router = registry.find(config.transport).run_router
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    print(f"routing at {listen}; Ctrl-C to end", file=sys.stderr)
    run_router(listen, args.folder / ROUTER, config.names, is_over)
    return 0


def _sleep(seconds: float, asked: set[int]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not asked & ENDING:
        time.sleep(0.05)


def up(args: argparse.Namespace) -> int:
    """Run all learners until Ctrl-C, or until none runs any more."""
    rows: list[Row] = []
    given = {"options": _options(args), "names": parse_names(args.only), "restart": args.restart}
    with Launcher(args.folder, **given) as launcher, _signals() as asked:
        with noted_compilation():
            warm_up(launcher.config.model())  # otherwise each node would do it
        if not asked & ENDING:
            launcher.start()
            with Screen(sys.stderr) as screen:
                _run(launcher, screen, asked, rows, args)
        print(f"stopping {len(launcher.nodes)} nodes", file=sys.stderr)
        launcher.stop()
        codes = {name: node.code for name, node in launcher.nodes.items()}
    print(_text(rows, args.json, with_words=False))
    # a node that gets SIGTERM before it handles signals ends by the signal itself
    bad = [name for name, code in codes.items() if code not in (0, -signal.SIGTERM, None)]
    if bad:
        said = launcher.nodes[bad[0]].last_words()
        raise MeshError(f"{bad[0]} ended with code {codes[bad[0]]}; its last output: {said}")
    return 0


def _run(
    launcher: Launcher, screen: "Screen", asked: set[int], rows: list[Row], args: argparse.Namespace
) -> None:
    next_table = 0.0
    while not asked & ENDING:
        if signal.SIGHUP in asked:
            asked.discard(signal.SIGHUP)
            screen.say(_reloaded(launcher))
            next_table = 0.0  # the learners may be others now
        for ended in launcher.poll():
            screen.say(_how_it_ended(launcher, ended))
        if not launcher.restart and not any(launcher.pids.values()):
            screen.say("no node runs any more")
            return
        if time.monotonic() >= next_table:
            states = ask_all(launcher.config, args.folder, timeout=1.0)
            rows[:] = rows_of(launcher.config, states, launcher.pids)
            screen.show(as_table(rows))
            next_table = time.monotonic() + (EVERY if screen.is_terminal else SELDOM)
        time.sleep(0.1)


def _reloaded(launcher: Launcher) -> str:
    """Read the mesh file again; a wrong file changes nothing."""
    try:
        launcher.reload()
    except DomklError as error:
        return f"going on as before: {error}"
    return "read mesh.toml again"


def _how_it_ended(launcher: Launcher, ended: Ended) -> str:
    how = f"signal {-ended.code}" if ended.code < 0 else f"code {ended.code}"
    said = launcher.nodes[ended.name].last_words()
    again = "; it will be started again" if launcher.restart else ""
    return f"{ended.name} ended with {how}{again}: {said}"


def _options(args: argparse.Namespace) -> Options:
    """The further arguments of each node: its file or its rows of one, and its links."""
    check_links(args)
    if args.publish == "-":
        raise ParameterError("--publish must be a topic: the output of nodes is in their logs")
    for key in ("topic", "publish"):
        text = getattr(args, key)
        if text is not None and "{node}" not in text and not args.only:
            raise ParameterError(f"--{key} must have {{node}} for the learner, got {text!r}")
    links = _given(args, [entry for entry in LINKS if entry.name != "csv"])
    rows = (lambda name: ()) if args.csv is None else _rows(args)
    return lambda name: [*rows(name), *(word.replace("{node}", name) for word in links)]


def _given(args: argparse.Namespace, entries: Sequence[LinkEntry]) -> list[str]:
    """The options of some links that were given, as words of a command."""
    known = {each.name: each.default for entry in entries for each in fields(entry.options)}
    given = {name: getattr(args, name, default) for name, default in known.items()}
    changed = [name for name, value in given.items() if value not in (None, known[name])]
    return [word for name in changed for word in (f"--{name}", str(given[name]))]


def _rows(args: argparse.Namespace) -> Options:
    """The arguments of each node that replays rows of a file."""
    config, given = read_mesh(args.folder), str(args.csv).replace("{name}", "{node}")
    names, is_shared = config.names, "{node}" not in given
    _check_forecast(args, config, is_shared)
    rows = _shares(config, Path(given)) if is_shared and config.forecast is None else {}
    _, _, *further = _given(args, [entry for entry in LINKS if entry.name == "csv"])

    def options(name: str) -> Sequence[str]:
        if is_shared and name not in names:  # it was added later: all rows are dealt out already
            return ()
        path = Path(given.replace("{node}", name)).absolute()
        share = ["--rows", rows[name]] if name in rows else []
        return ["--csv", str(path), *further, *share]

    return options


def _check_forecast(args: argparse.Namespace, config: MeshConfig, is_shared: bool) -> None:
    if config.forecast is None:
        for key in ("time", "nodes"):
            if getattr(args, key) is not None:
                raise ParameterError(f"--{key} is for a mesh that forecasts; this one does not")
    elif args.time is None:
        raise ParameterError("--csv needs --time COLUMN in a mesh that forecasts")
    elif is_shared and args.nodes is None:
        raise ParameterError("--csv must be 'folder/{node}.csv', or --nodes COLUMN must be given")


def _shares(config: MeshConfig, path: Path) -> dict[str, str]:
    """The rows of each learner: dealt out in turn, those of a series in blocks."""
    names = config.names
    if config.lags is None:
        return {name: f"{k}::{len(names)}" for k, name in enumerate(names)}
    n_rows = len(read_columns(path, [config.target.name])[0])
    cuts = [k * n_rows // len(names) for k in range(len(names) + 1)]
    return {name: f"{cuts[k]}:{cuts[k + 1]}" for k, name in enumerate(names)}


@contextmanager
def _signals() -> Iterator[set[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a set, instead of letting them end this process."""
    asked: set[int] = set()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda n, frame: asked.add(n)) for number in numbers]
    try:
        yield asked
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Screen:
    """A table that is redrawn in place on a terminal, and printed at intervals elsewhere."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.is_terminal = file.isatty()
        self._n_lines = 0

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self._wipe()

    def show(self, table: str) -> None:
        """Show the table in place of the last one."""
        self._wipe()
        print(table, file=self._file, flush=True)
        self._n_lines = table.count("\n") + 1 if self.is_terminal else 0

    def say(self, line: str) -> None:
        """Print a line that is not overwritten."""
        self._wipe()
        print(line, file=self._file, flush=True)

    def _wipe(self) -> None:
        if self._n_lines:
            print(f"\x1b[{self._n_lines}F\x1b[J", end="", file=self._file)
            self._n_lines = 0


def _text(rows: Sequence[Row], as_json: bool, with_words: bool = True) -> str:
    if as_json:
        return json.dumps({"learners": rows, "code": code_of(rows)}, allow_nan=False)
    return as_table(rows) + (f"\n\n{in_words(rows)}" if with_words else "")
