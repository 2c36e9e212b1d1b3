"""One network on 1, 2 (and more) ranks of MPI against one process: time per round.

    python benchmarks/bench_mpi.py [--learners K] [--ranks 1 2] [--quick] [--json FILE]

DOMKL, P = 17, M = 50, d = 5, float32, CV off; one thread a rank, and one in the single process.
`best` is the fastest round: what else runs on the machine can only add. `CPU` is that of rank 0 in
the median round, the spinning of MPI while it waits included; `exchange` is the mean of all rounds,
on the rank that waits the least. No ranks is `simulate` in one process.
The ranks are started with the mpiexec next to this Python, or else with the first on the path.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import domkl

P, M, D_IN = 17, 50, 5


def mpiexec():
    near = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    return near or shutil.which("mpiexec")


def graph_of(name, n_learners):
    if name == "grid":
        return domkl.Graph.grid(n_learners // 100, 100)
    if name == "small":
        return domkl.Graph.small_world(n_learners, 4, 0.1, seed=0)
    return domkl.Graph.sparse(n_learners, 4, seed=0)


class Clock:
    """The same round again and again, noting when it is asked for."""

    def __init__(self, n_rounds, n_learners):
        self.n_rounds, self.times, self.cpu = n_rounds, [], []
        self.x = np.random.default_rng(0).random((n_learners, D_IN))
        self.y = np.sin(3 * self.x[:, 0])

    def __iter__(self):
        for _ in range(self.n_rounds):
            self.note()
            yield self.x, self.y
        self.note()

    def note(self):
        self.times.append(time.perf_counter())
        self.cpu.append(time.process_time())

    def figures(self):
        wall, cpu = (1e3 * np.diff(times)[2:] for times in (self.times, self.cpu))
        return {
            "best_ms": float(wall.min()),
            "median_ms": float(np.median(wall)),
            "cpu_ms": float(np.median(cpu)),
        }


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def features():
    bank = domkl.gaussian_bank(np.logspace(-2, 2, P))
    return domkl.RandomFeatures.draw(bank, D_IN, M, seed=0)


OPTIONS = {"cv": "off", "dtype": "float32", "threads": 1}


def one_process(name, n_learners, n_rounds):
    clock = Clock(n_rounds, n_learners)
    graph = graph_of(name, n_learners)
    domkl.simulate(domkl.DOMKL(), clock, None, graph, features(), **OPTIONS)
    return clock.figures() | {"peak_mib": peak_mib()}


def one_rank(name, n_learners, n_rounds):
    """What each rank runs; rank 0 prints."""
    from domkl.sim.mpi.run import simulate_sharded
    from domkl.sim.mpi.world import WORLD

    clocks = []

    def stream(learners):
        clocks.append(Clock(n_rounds, len(learners)))
        return iter(clocks[0])

    graph = graph_of(name, n_learners)
    run = simulate_sharded(domkl.DOMKL(), stream, None, graph, features(), **OPTIONS)
    seconds = WORLD.allgather(run.exchange_seconds)
    n_bytes = WORLD.allgather(run.halo_bytes)
    peak = WORLD.allgather(peak_mib())
    if WORLD.rank == 0:
        found = clocks[0].figures()
        found |= {"exchange_ms": 1e3 * min(seconds) / n_rounds, "sent_bytes": max(n_bytes)}
        found |= {"cut": run.cut.edges / graph.n_edges, "rows": run.cut.rows, "peak_mib": max(peak)}
        print(json.dumps(found), flush=True)


def in_ranks(n_ranks, name, n_learners, n_rounds):
    command = [mpiexec(), "-n", str(n_ranks), sys.executable, __file__, "--rank", name]
    command += ["--learners", str(n_learners), "--rounds", str(n_rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def show(row, one, n_learners):
    exchange = " " * 39
    if row["ranks"]:
        exchange = f"{row['exchange_ms']:10.1f} {row['sent_bytes'] / 1e6:8.1f} {row['cut']:5.2f}"
        exchange += f" {row['rows'] / n_learners:13.2f}"
    print(
        f"{row['graph']:6s} {row['ranks'] or 'none':>5} {row['best_ms']:5.0f}"
        f" {row['median_ms']:7.0f}"
        f" {row['cpu_ms']:5.0f} {row['best_ms'] / one:7.2f}{exchange} {row['peak_mib']:9.0f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--quick", action="store_true", help="few learners, to see that it runs")
    parser.add_argument("--json", type=Path, help="write what is measured")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    n_learners = 2000 if options.quick else options.learners
    if options.rank:
        one_rank(options.rank, n_learners, options.rounds)
        return 0
    if mpiexec() is None:
        print("no mpiexec: pip install 'domkl[mpi]' brings one; nothing was measured")
        return 0
    print(f"DOMKL, K = {n_learners}, P = {P}, M = {M}, float32; milliseconds per round\n")
    print(
        "graph  ranks  best  median   CPU  to one  exchange  MB sent   cut  rows/learner  peak MiB"
    )
    found = []
    for name in ("sparse", "small", "grid"):
        found.append({"graph": name, "ranks": 0} | one_process(name, n_learners, options.rounds))
        one = found[-1]["best_ms"]
        show(found[-1], one, n_learners)
        for n_ranks in options.ranks:
            row = in_ranks(n_ranks, name, n_learners, options.rounds)
            found.append({"graph": name, "ranks": n_ranks} | row)
            show(found[-1], one, n_learners)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
