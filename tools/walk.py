"""Print the files and functions of domkl that five walks pass, with everything switched on.

    python tools/walk.py                     # all walks, by the sources beside this file
    python tools/walk.py --source OTHER/src  # by other sources, such as those of an older commit
    python tools/walk.py sample --list       # one walk, with every file and function
    python tools/walk.py --markdown          # the lists of docs/explanation/design.md

A function counts once per walk, however often it is called: by file and qualified name,
comprehensions as functions of their own, without lambdas, without bodies of modules and classes,
in all threads. Numba's compiler is switched off, so that compiled functions count too. A walk
inside one process is walked once before it is counted: loading a module is no part of it.

Only commands, HTTP and public names are used, so that old and new sources are counted alike.

    simulate   domkl.simulate of DOMKL on a ring of three learners
    csv        domkl simulate --csv with a file per learner, times and lags
    sample     a node of a mesh with the default settings: one sample by POST /learn, until the
               neighbor has learned its own and both have exchanged, and two seconds more
    fit        the first row of partial_fit
    node       domkl node, from the start of the command to the first exchange with its neighbor
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

WALKS = ("simulate", "csv", "sample", "fit", "node")
OPTIMIZED = 1  # flag of code: a function, not the body of a module or a class
DEADLINE = 300.0  # seconds; without the compiler a node takes a while
WINDOW = 2.0  # seconds for which a sample is watched; a node writes its history every second
PORT = 29650


class Trace:
    """Records the functions below a folder that are called while ``is_on``.

    Attributes
    ----------
    found : dict
        Has each (file, function) as a key, in the order of first calls.
    """

    def __init__(self, source: Path) -> None:
        self._prefix = f"{source / 'domkl'}/"
        self._known: dict[CodeType, tuple[str, str] | None] = {}
        self.found: dict[tuple[str, str], None] = {}
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take in a call: for `sys.setprofile`."""
        if event != "call" or not self.is_on:
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = self._place(code)
        place = self._known[code]
        if place is not None:
            self.found.setdefault(place)

    def install(self) -> None:
        """Watch this thread, and all that begin from now on."""
        threading.setprofile(self)
        sys.setprofile(self)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Record what the block calls."""
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False

    def _place(self, code: CodeType) -> tuple[str, str] | None:
        is_ours = code.co_filename.startswith(self._prefix) and code.co_flags & OPTIMIZED
        if not is_ours or code.co_name == "<lambda>":
            return None
        return code.co_filename.removeprefix(self._prefix), code.co_qualname


# --- in a process with the sources, and without the compiler --------------------------------------


def walk_simulate(trace: Trace, _: Path) -> None:
    """Walk `domkl.simulate`."""
    import numpy as np

    import domkl

    X = np.random.default_rng(0).random((20, 3, 2))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank(), 2, 5, seed=1)
    algorithm, graph = domkl.DOMKL(), domkl.Graph.ring(3)
    for is_counted in (False, True):
        trace.is_on = is_counted
        domkl.simulate(algorithm, X, np.sin(3 * X[..., 0]), graph, features)


def walk_csv(trace: Trace, folder: Path) -> None:
    """Walk `domkl simulate --csv`."""
    from domkl.cli.main import main

    for name in ("north", "south"):
        hours = [f"2026-01-{1 + h // 24:02d}T{h % 24:02d}:00,{h % 7},{h % 5}" for h in range(60)]
        (folder / f"{name}.csv").write_text("\n".join(["date,wind,load", *hours]) + "\n")
    words = ["simulate", "--csv", str(folder / "{node}.csv"), "--target", "load", "--time", "date"]
    words += ["--lags", "1,2", "--algorithm", "domkl", "--trials", "1"]
    for is_counted in (False, True):
        trace.is_on = is_counted
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert main([*words, "--out", str(folder / "out")]) == 0


def walk_fit(trace: Trace, _: Path) -> None:
    """Walk the first row of `partial_fit`."""
    import numpy as np

    from domkl.estimators.sklearn import OnlineKernelRegressor

    for is_counted in (False, True):
        model = OnlineKernelRegressor()
        trace.is_on = is_counted
        model.partial_fit(np.array([[0.1, 0.2]]), np.array([0.3]))


def run_node(trace: Trace, folder: Path) -> None:
    """Run `domkl node`; SIGUSR1 begins to count, and SIGUSR2 ends and writes what was found."""
    from domkl.cli.main import main

    def begin(*_: Any) -> None:
        trace.found.clear()
        trace.is_on = True

    def end(*_: Any) -> None:
        trace.is_on = False
        (folder / "walk.part").write_text(json.dumps(list(trace.found)))
        (folder / "walk.part").rename(folder / "walk.json")

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    trace.is_on = True
    main(["node", str(folder), "--log-file", str(folder / "log")])


INSIDE: dict[str, Callable[[Trace, Path], None]] = {
    "simulate": walk_simulate,
    "csv": walk_csv,
    "fit": walk_fit,
    "run": run_node,
}


def inside(walk: str, source: Path, folder: Path) -> None:
    """Walk in this process, and print what was passed as JSON."""
    trace = Trace(source)
    trace.install()
    INSIDE[walk](trace, folder)
    trace.is_on = False
    print(json.dumps(list(trace.found)))


# --- in the process that was started --------------------------------------------------------------


def environment(source: Path) -> dict[str, str]:
    """The environment of a walk: these sources, no compiler."""
    return {**os.environ, "PYTHONPATH": str(source), "NUMBA_DISABLE_JIT": "1"}


def command(walk: str, source: Path, folder: Path) -> list[str]:
    """How to call this file inside a process of its own."""
    return [sys.executable, __file__, "--inside", walk, "--source", str(source), str(folder)]


def passed(walk: str, source: Path) -> list[tuple[str, str]]:
    """The files and functions of a walk, in the order of first calls."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if walk in ("sample", "node"):
            return passed_in_mesh(walk, source, folder)
        done = subprocess.run(
            command(walk, source, folder), env=environment(source), check=True, text=True,
            stdout=subprocess.PIPE, cwd=folder,
        )  # fmt: skip
        return [(file, function) for file, function in json.loads(done.stdout)]


def passed_in_mesh(walk: str, source: Path, folder: Path) -> list[tuple[str, str]]:
    """A walk of the first of two nodes of a mesh that `domkl mesh init` has made."""
    environ = environment(source)
    subprocess.run(
        [sys.executable, "-m", "domkl", "mesh", "init", "--names", "north,south", "--topology",
         "ring", "--input", "a:0:1", "--input", "b:0:1", "--target", "load:0:1", "--port",
         str(PORT), "--http-port", str(PORT + 50), "mesh"],
        env=environ, cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    places = [folder / "mesh" / name for name in ("north", "south")]
    nodes = [
        subprocess.Popen(
            command("run", source, place), env=environ, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for place in places
    ]  # fmt: skip
    try:
        until(lambda: all("ready" in read(place / "log") for place in places), nodes)
        learn(1, nodes)
        if walk == "sample":
            learn(2, nodes)
            time.sleep(WINDOW)  # the first checkpoint is written
            nodes[0].send_signal(signal.SIGUSR1)
            learn(3, nodes)
            time.sleep(WINDOW)
        nodes[0].send_signal(signal.SIGUSR2)
        until((places[0] / "walk.json").exists, nodes)
        found = json.loads((places[0] / "walk.json").read_text())
        return [(file, function) for file, function in found]
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait()


def learn(number: int, nodes: list[Any]) -> None:
    """Send a sample to each node; wait until the second one has learned and exchanged it.

    The first one is not asked: to answer would be a part of its walk.
    """
    for port in (PORT + 50, PORT + 51):
        ask(port, "/learn", {"x": [0.1 * number, 0.5], "y": 0.2 * number})

    def is_done() -> bool:
        state = ask(PORT + 51, "/state")
        is_learned: bool = state["n_learned"] >= number
        return is_learned and state["neighbors"]["north"]["n_exchanged"] >= number

    until(is_done, nodes)


def read(path: Path) -> str:
    """The text of a file, or nothing."""
    return path.read_text() if path.exists() else ""


def ask(port: int, path: str, body: Any = None) -> Any:
    """Send a request to a node, and read the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def until(claim: Callable[[], Any], nodes: list[Any]) -> None:
    """Poll until the claim is true."""
    end = time.monotonic() + DEADLINE
    while not claim():
        if any(node.poll() is not None for node in nodes) or time.monotonic() > end:
            raise RuntimeError("a node ended, or was not ready in time")
        time.sleep(0.1)


def as_markdown(walk: str, found: list[tuple[str, str]]) -> str:
    """The section of a walk in docs/explanation/design.md: each file with its first function."""
    first: dict[str, str] = {}
    for file, function in found:
        first.setdefault(file, function)
    lines = [f"### Walk: {walk}", "", f"{len(first)} files, {len(found)} functions.", ""]
    lines += [f"{k}. `{file}:{name}`" for k, (file, name) in enumerate(first.items(), 1)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print files and functions of the walks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("walks", nargs="*", metavar="WALK", help=f"of {', '.join(WALKS)}")
    here = Path(__file__).resolve().parents[1] / "src"
    parser.add_argument("--source", type=Path, default=here, help="folder with the package domkl")
    parser.add_argument("--list", action="store_true", help="print every file and function")
    parser.add_argument("--markdown", action="store_true", help="print sections for the documents")
    parser.add_argument("--inside", choices=tuple(INSIDE), help=argparse.SUPPRESS)
    args = parser.parse_args()
    source = args.source.resolve()
    if args.inside:
        inside(args.inside, source, Path(args.walks[0]))
        return 0
    for walk in args.walks or WALKS:
        if walk not in WALKS:
            parser.error(f"WALK must be one of {', '.join(WALKS)}, got {walk!r}")
        found = passed(walk, source)
        if args.markdown:
            print(as_markdown(walk, found), flush=True)
            continue
        files = dict.fromkeys(file for file, _ in found)
        print(f"{walk:10} {len(files):3} files {len(found):4} functions", flush=True)
        for file in files if args.list else ():
            print(f"  {file}: {', '.join(name for where, name in found if where == file)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
