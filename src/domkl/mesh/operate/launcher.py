"""Start, watch and stop many nodes on this machine, each a process of its own.

The rules of this file
----------------------
- One launcher at a time for a mesh: it holds a lock in the mesh's folder.
- No orphans: `stop` returns when all children have ended, and children end with their launcher.
- The output of a node goes to DIR/<learner>/data/node.log.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from domkl.errors import MeshError
from domkl.mesh.config.file import MeshConfig
from domkl.mesh.config.folder import apply_mesh
from domkl.mesh.config.settings import Member
from domkl.mesh.transports.base import Address
from domkl.storage import opened_privately

LOCK, LOG = "up.lock", "node.log"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds before a dead node is started again
STEADY = 60.0  # after a node has run for so long, the pause is the first one again
PATIENCE = 15.0  # seconds for a node to end by itself
#: a node computes for one learner only, and many nodes share this machine
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

Options = Callable[[str], Sequence[str]]  # learner -> further arguments of `domkl node`


class Ended(NamedTuple):
    """A node that has ended; ``code`` is negative for a signal."""

    name: str
    code: int


class NodeProcess:
    """The process of a node, and when to start it again."""

    def __init__(self, name: str, folder: Path, arguments: Sequence[str]) -> None:
        self.name, self.folder, self.arguments = name, folder, arguments
        self.n_starts = 0
        self.code: int | None = None
        self.starts_at = 0.0  # when it is to be started again
        self._process: subprocess.Popen[bytes] | None = None
        self._pause = FIRST_PAUSE
        self._started = 0.0

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it, with its output appended to its log."""
        data = self.folder / "data"
        data.mkdir(mode=0o700, exist_ok=True)
        command = ["node", str(self.folder), "--parent", str(os.getpid()), *self.arguments]
        with opened_privately(data / LOG, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "domkl", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=ENVIRONMENT | os.environ,
                start_new_session=True,  # Ctrl-C goes to the launcher, which stops the nodes
            )
        self.n_starts, self.code, self._started = self.n_starts + 1, None, time.monotonic()

    def ended(self) -> bool:
        """Whether it has just ended; if so, plan the next start."""
        if self._process is None or self._process.poll() is None:
            return False
        self.code, self._process = self._process.returncode, None
        now = time.monotonic()
        if now - self._started > STEADY:
            self._pause = FIRST_PAUSE
        self.starts_at = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return True

    def send(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def wait(self, deadline: float) -> None:
        """Wait until it has ended; kill it at the deadline."""
        if self._process is None:
            return
        try:
            self._process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.code, self._process = self._process.returncode, None

    def last_words(self) -> str:
        """The last line of its log."""
        try:
            lines = (self.folder / "data" / LOG).read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return next((line for line in reversed(lines) if line.strip()), "")


class Launcher:
    """The nodes of a mesh that run here.

    Parameters
    ----------
    folder : Path
        The mesh's folder.
    options : callable, optional
        Further arguments of `domkl node` for a learner.
    names : iterable of str, optional
        These learners only; default all that have a folder here.
    restart : bool, default=False
        Start nodes again that have ended, after a growing pause.
    """

    def __init__(
        self,
        folder: Path,
        *,
        options: Options = lambda name: (),
        names: Iterable[str] | None = None,
        restart: bool = False,
    ) -> None:
        self.folder, self.options, self.restart = folder, options, restart
        self._only = None if names is None else tuple(names)
        self.config, _ = apply_mesh(folder)
        self.nodes: dict[str, NodeProcess] = self._made(self.config)
        self._lock: IO[str] | None = None

    def __enter__(self) -> "Launcher":
        self._lock = _locked(self.folder / LOCK)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            if self._lock is not None:
                (self.folder / LOCK).unlink(missing_ok=True)
                self._lock.close()

    def start(self) -> None:
        """Start all nodes."""
        for node in self.nodes.values():
            node.start()

    def poll(self) -> list[Ended]:
        """The nodes that have ended since the last call; start again those that are due."""
        gone = [
            Ended(node.name, node.code)
            for node in self.nodes.values()
            if node.ended() and node.code is not None
        ]
        for node in self.nodes.values() if self.restart else ():
            if node.pid is None and node.n_starts and time.monotonic() >= node.starts_at:
                node.start()
        return gone

    def reload(self) -> None:
        """Read the mesh file again: stop removed nodes, start new ones, reload the others.

        What a node does not read again while it runs is edited: then all are started again.
        """
        config, _ = apply_mesh(self.folder)
        before, new, self.config = self.config, self._made(config), config
        gone = [node for name, node in self.nodes.items() if name not in new]
        again = [node for name, node in self.nodes.items() if node.pid is not None and name in new
                 and _lasting(before, name) != _lasting(config, name)]  # fmt: skip
        _stop([*gone, *again], PATIENCE)
        for name, node in new.items():
            if name not in self.nodes:
                node.start()
            elif self.nodes[name] in again:
                self.nodes[name].start()
            else:
                self.nodes[name].send(signal.SIGHUP)
        self.nodes = {name: self.nodes.get(name, node) for name, node in new.items()}

    def stop(self, patience: float = PATIENCE) -> None:
        """Send SIGTERM to all, wait, and kill those that do not end; may be called again."""
        _stop(self.nodes.values(), patience)

    @property
    def pids(self) -> Mapping[str, int | None]:
        """The process id of each learner."""
        return {name: node.pid for name, node in self.nodes.items()}

    def _made(self, config: MeshConfig) -> dict[str, NodeProcess]:
        here = [name for name in config.names if (self.folder / name).is_dir()]
        if self._only is not None:
            for name in self._only:
                config.member(name)
            here = [name for name in here if name in self._only]
        if not here:
            raise MeshError(f"no learner's folder is in {self.folder}; there is nothing to start")
        return {name: NodeProcess(name, self.folder / name, self.options(name)) for name in here}


def _lasting(config: MeshConfig, name: str) -> tuple[Member, MeshConfig]:
    """What a node reads at its start only: all but other learners, edges and the queue."""
    alike = Member("a", Address("127.0.0.1", 1), Address("127.0.0.1", 2))
    rest = replace(config, members=(alike,), edges=(), queue=1)
    return replace(config.member(name), place=None), rest


def reload_running(folder: Path) -> int | None:
    """Send SIGHUP to the launcher of this mesh, if one runs here; return its process id."""
    path = folder / LOCK
    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None  # nobody holds the lock: the file is a leftover
    except FileNotFoundError:
        return None
    except BlockingIOError:
        pid = int(path.read_text())
        os.kill(pid, signal.SIGHUP)
        return pid


def _stop(nodes: Iterable[NodeProcess], patience: float) -> None:
    nodes = list(nodes)
    for node in nodes:
        node.send(signal.SIGTERM)
        node.send(signal.SIGCONT)  # a stopped process gets no other signal
    deadline = time.monotonic() + patience
    for node in nodes:
        node.wait(deadline)


def _locked(path: Path) -> IO[str]:
    """Take the lock and write this process's id to it; closing the file releases it."""
    file = opened_privately(path, "a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        with contextlib.suppress(OSError):
            holder = path.read_text().strip()
            raise MeshError(
                f"mesh must not run already, got {path.parent}: process {holder} runs it"
            ) from None
        raise
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
