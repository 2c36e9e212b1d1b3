"""Ten real nodes in lockstep against their bare transport and their bare arithmetic.

In one run, for each transport: ten processes on this machine, a ring with chords (every learner
hears i ± 1 and i ± 3), mutual TLS, 300 rounds after 20 to warm up.

    bare         the transport alone: frames of the same bytes, each round waits for all neighbors
    arithmetic   the learners alone: predict, step, merge of four messages, and the learner without
                 neighbors that every node runs beside, to tell what neighbors are worth
    both         bare and arithmetic in the same processes, by turns
    mesh         `domkl node`: protocol, write-ahead log, HTTP server and all, replaying a file

Ratios are of the mesh's time per round: to *both*, and to the sum of the first two. With ten
processes on two cores the sum is too low a floor: by turns with something else, arithmetic finds
its caches cold, and costs more than in a loop of its own.
"""

import argparse
import asyncio
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from domkl.mesh.transports.registry import TRANSPORTS

N_LEARNERS, N_WARM, N_ROUNDS, N_INPUTS = 10, 20, 300, 5
N_ROWS = N_WARM + N_ROUNDS + 40  # whoever is through goes on, so that nobody waits for it
NAMES = [f"n{k}" for k in range(N_LEARNERS)]


class Watch:
    """Seconds, on the wall and of the processor, from the first round that counts to the last."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []

    def see(self, n_done: int) -> bool:
        """Note where the rounds begin and end; whether they have ended."""
        wanted = N_WARM + N_ROUNDS * len(self.marks)
        if len(self.marks) < 2 and n_done >= wanted:
            self.marks.append((time.perf_counter(), time.process_time()))
        return len(self.marks) == 2

    def seconds(self) -> list[float]:
        (wall, cpu), (wall_end, cpu_end) = self.marks
        return [wall_end - wall, cpu_end - cpu]


async def bare(folder: Path, *, with_arithmetic: bool = False) -> list[float]:
    from domkl.mesh.store.folder import open_folder
    from domkl.mesh.transports import registry

    here = open_folder(folder)
    transport, watch = registry.make(here.config.transport, here.endpoint), Watch()
    work = Arithmetic(here) if with_arithmetic else None
    heard, news = dict.fromkeys(here.neighbors, 0), asyncio.Event()
    up: set[str] = set()

    def on_frame(peer: str, frame: bytes) -> None:
        heard[peer] = max(heard[peer], int.from_bytes(frame[:8], "little"))
        news.set()

    def on_peer(peer: str, is_up: bool, why: str) -> None:
        (up.add if is_up else up.discard)(peer)
        news.set()

    await transport.start(on_frame, on_peer, lambda who, why: None)
    while up != set(here.neighbors):
        news.clear()
        await news.wait()
    body = bytes(_frame_bytes(here.config.model(), here.name) - 8)
    for number in range(1, N_ROWS + 1):
        if work is not None:
            work.step(number)
        frame = number.to_bytes(8, "little") + body
        for peer in here.neighbors:
            transport.send(peer, frame)
        while number <= N_WARM + N_ROUNDS and min(heard.values()) < number:
            news.clear()
            await news.wait()
        watch.see(number)
    await asyncio.sleep(1)  # frames of the last rounds are under way
    await transport.stop()
    return watch.seconds()


class Arithmetic:
    """A learner that merges four messages a round, and the learner without neighbors beside it."""

    def __init__(self, here: Any) -> None:
        model = here.config.model()
        self.learner, self.alone = model.learner(), model.learner()
        self.n_neighbors = len(here.neighbors)
        self.learner.rewire([], list(here.neighbors))
        self.offers, self.offer = model.offers(), None
        self.samples = np.random.default_rng(0).uniform(size=(N_ROWS, N_INPUTS))

    def step(self, number: int) -> None:
        x = self.samples[number - 1]
        y = float(np.sin(5 * x[0]) / 2 + 0.5)
        words = self.learner.local_step(*self.learner.look(x), np.array([y]))
        if self.offer is None:
            self.offer = self.offers.unpack(self.offers.pack(words.said, 0, self.n_neighbors))
        self.learner.merge(words, [self.offer] * self.n_neighbors)
        self.alone.learn(x, y)


async def arithmetic(folder: Path) -> list[float]:
    from domkl.mesh.store.folder import open_folder

    work, watch = Arithmetic(open_folder(folder)), Watch()
    for number in range(1, N_ROWS + 1):
        work.step(number)
        watch.see(number)
    return watch.seconds()


async def both(folder: Path) -> list[float]:
    return await bare(folder, with_arithmetic=True)


async def mesh(folder: Path) -> list[float]:
    import domkl.mesh.node.node
    from domkl.mesh.node.serve import Options, serve
    from domkl.mesh.protocol.events import Effect, Event
    from domkl.mesh.protocol.protocol import Protocol

    watch = Watch()

    class Timed(Protocol):
        def handle(self, event: Event, now: float) -> list[Effect]:
            effects = super().handle(event, now)
            watch.see(self.learned)
            return effects

    domkl.mesh.node.node.Protocol = Timed
    options = Options(csv=folder / "samples.csv", until_end=True)
    await serve(folder, options)
    return watch.seconds()


def _frame_bytes(model: Any, name: str) -> int:
    from domkl.mesh.protocol.wire import Frame, Kind, encode

    empty = encode(Frame(Kind.OFFER, model.fingerprint, name, 1, 1))
    return len(empty) + model.offers().n_bytes


def make_mesh(folder: Path, transport: str, port: int, algorithm: str, dtype: str) -> None:
    """A mesh, and samples for everyone."""
    from domkl.cli.main import main as domkl

    pairs = [(k, (k + step) % N_LEARNERS) for k in range(N_LEARNERS) for step in (1, 3)]
    words = ["mesh", "init", "--names", ",".join(NAMES), "--transport", transport]
    words += ["--edges", ",".join(f"{NAMES[a]}-{NAMES[b]}" for a, b in pairs)]
    words += ["--target", "y:0:1", "--algorithm", algorithm, "--dtype", dtype]
    for k in range(N_INPUTS):
        words += ["--input", f"x{k}:0:1"]
    words += ["--port", str(port), "--http-port", str(port + N_LEARNERS), str(folder)]
    if domkl(words) != 0:
        raise SystemExit("mesh init failed")
    generator = np.random.default_rng(1)
    for name in NAMES:
        with (folder / name / "samples.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([f"x{k}" for k in range(N_INPUTS)] + ["y"])
            for x in generator.uniform(size=(N_ROWS, N_INPUTS)):
                rows.writerow([*x, np.sin(5 * x[0]) / 2 + 0.5])


def timed(role: str, folder: Path) -> tuple[float, float]:
    """Milliseconds a round of the slowest process, and of a processor on average."""
    command = [sys.executable, __file__, "--child", role]
    children = [
        subprocess.Popen(
            [*command, str(folder / name)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in NAMES
    ]
    found = []
    for child in children:
        out, errors = child.communicate(timeout=600)
        if child.returncode != 0:
            raise SystemExit(f"{role} failed: {errors.decode()[-2000:]}")
        found.append(json.loads(out.splitlines()[-1]))
    wall, cpu = 1e3 * np.array(found).T / N_ROUNDS
    return float(wall.max()), float(cpu.mean())


def main() -> None:
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--algorithm", default="domkrls")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--transport", action="append", choices=[*TRANSPORTS])
    parser.add_argument("--child", nargs=2, metavar=("ROLE", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        role = {"bare": bare, "arithmetic": arithmetic, "both": both, "mesh": mesh}[args.child[0]]
        print(json.dumps(asyncio.run(role(Path(args.child[1])))))
        return
    print(f"{args.algorithm}, {args.dtype}; ms a round (processor ms a round and process)")
    heads = " ".join(f"{role:>16}" for role in ("bare", "arithmetic", "both", "mesh"))
    print(f"{'':8} {heads} {'to both':>8} {'to sum':>8}")
    for transport in args.transport or TRANSPORTS:
        ratios = []
        for repetition in range(args.repetitions):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name) / "mesh"
                make_mesh(folder, transport, 21000 + 40 * repetition, args.algorithm, args.dtype)
                found = [timed(role, folder) for role in ("bare", "arithmetic", "both", "mesh")]
            cells = " ".join(f"{wall:8.2f} ({cpu:5.3f})" for wall, cpu in found)
            walls = [wall for wall, _ in found]
            ratios.append((walls[3] / walls[2], walls[3] / (walls[0] + walls[1])))
            print(f"{transport:8} {cells} {ratios[-1][0]:8.2f} {ratios[-1][1]:8.2f}", flush=True)
        medians = np.median(ratios, axis=0)
        print(f"{transport:8} {'median':>67} {medians[0]:8.2f} {medians[1]:8.2f}")


if __name__ == "__main__":
    main()
