"""How the cost of a round grows: with the learners up to a million, and with T, P, M, d and degree.

    python benchmarks/bench_scaling.py [--quick] [--curves] [--threads N] [--json FILE] [--plot DIR]

DOMKL in float32 on sparse random graphs, CV off. Times are those between rounds, taken where the
simulator asks its stream for more: graph, first touch of memory and the last exchange are outside.
Each figure is the fastest of several stretches of rounds, the median beside it: what else runs on
the machine can only add. CPU time is of all threads together.

Beside the time stand the bytes that a learner-step must move, own rows and neighbors', and which
share of the memory bandwidth that is: the best of a STREAM-like loop, a[i] = b[i] + s c[i] over
arrays larger than any cache, on the same threads, measured before and after the table. While a
network is in cache the share may be above 1.
"""

import argparse
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np

import domkl
from domkl.sim.blocked import stretch_of
from domkl.sim.threads import available_cores

P, M, D_IN, DEGREE = 17, 50, 5, 4
GIB = 2**30


class Clock:
    """A stream of rounds, the same few again and again, that notes when it is asked for more."""

    def __init__(self, n_learners, n_inputs, n_stretches):
        self.stretch = stretch_of(n_learners)
        self.n_rounds = self.stretch * n_stretches
        rng = np.random.default_rng(0)
        n_kept = min(self.stretch, 4)
        self.x = rng.random((n_kept, n_learners, n_inputs))
        self.y = np.sin(3 * self.x[..., 0])
        self.wall, self.cpu = [], []

    def __iter__(self):
        for t in range(self.n_rounds):
            if t % self.stretch == 0:
                self.note()
            yield self.x[t % len(self.x)], self.y[t % len(self.y)]
        self.note()

    def note(self):
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())

    def per_step(self, times):
        """Microseconds per learner-step of each stretch; the first one also touches the memory."""
        return 1e6 * np.diff(times)[1:] / (self.stretch * self.y.shape[1])


@numba.njit(nogil=True, fastmath=True)
def triad(a, b, c, s):
    for i in range(a.size):
        a[i] = b[i] + s * c[i]


def bandwidth(threads, n_times=7, n=2**25):
    """GB/s of the best of several triads, counted as STREAM does: two reads and a write."""
    arrays = [[np.ones(n, np.float32) for _ in range(3)] for _ in range(threads)]
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(n_times):
            start = time.perf_counter()
            list(pool.map(lambda three: triad(*three, np.float32(0.5)), arrays))
            best = max(best, threads * 3 * n * 4 / (time.perf_counter() - start) / 1e9)
    return best


def bytes_moved(n_kernels=P, n_frequencies=M, degree=DEGREE):
    """Of a DOMKL learner-step in float32: θ of all heard, dual in and out, θ out."""
    return (degree + 4) * n_kernels * 2 * n_frequencies * 4


def state_bytes(n_learners, n_kernels=P, n_frequencies=M):
    """What `simulate` will keep: theta, dual, center; losses, weights and predictions by kernel."""
    return n_learners * n_kernels * (3 * 2 * n_frequencies * 4 + 3 * 8)


def available_bytes():
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def lacks_memory(n_learners):
    """Say so, where a run does not fit: state, stream, graph, and what Python itself takes."""
    need = state_bytes(n_learners) + n_learners * 8 * (3 * D_IN + 40) + GIB // 2
    have = available_bytes()
    if need > have:
        print(
            f"  K = {n_learners} needs {need / GIB:.1f} GiB and {have / GIB:.1f} GiB are available:"
            " left out; free some memory and run again",
            flush=True,
        )
    return need > have


def measure(
    n_learners, threads, n_stretches, *, n_kernels=P, n_frequencies=M, n_inputs=D_IN, degree=DEGREE
):
    graph = domkl.Graph.sparse(n_learners, min(degree, n_learners - 1), seed=0, connected=False)
    bank = domkl.gaussian_bank(np.logspace(-2, 2, n_kernels))
    features = domkl.RandomFeatures.draw(bank, n_inputs, n_frequencies, seed=0)
    clock = Clock(n_learners, n_inputs, n_stretches)
    run = domkl.simulate(
        domkl.DOMKL(), clock, None, graph, features, cv="off", dtype="float32", threads=threads
    )
    wall, cpu = clock.per_step(clock.wall), clock.per_step(clock.cpu)
    return {
        "learners": n_learners,
        "rounds": clock.n_rounds,
        "us": float(wall.min()),
        "us_median": float(np.median(wall)),
        "cpu_us": float(cpu.min()),
        "cpu_us_median": float(np.median(cpu)),
        "rounds_per_second": float(1e6 / (wall.min() * n_learners)),
        "state_bytes": sum(a.nbytes for a in run.state) / n_learners,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
        "mse": float(run.mse[-1]),
    }


def scaling_table(sizes, threads, n_stretches):
    print(f"DOMKL, P = {P}, M = {M}, d = {D_IN}, mean degree {DEGREE}, float32, CV off,")
    print(f"{threads} threads; microseconds per learner-step\n")
    speed = bandwidth(threads)
    print(f"memory bandwidth (triad, {threads} threads): {speed:.1f} GB/s;", end=" ")
    print(f"a learner-step moves {bytes_moved() / 1e3:.1f} kB")
    print("       K   best  median     CPU   to 10^3   rounds/s  share of bandwidth", end="")
    print("  state B/learner  peak GiB")
    measure(50, threads, 2)  # compile
    rows = []
    for size in sizes:
        if lacks_memory(size):
            continue
        rows.append(measure(size, threads, n_stretches if size < 10**6 else 6))
        base = next((row["us"] for row in rows if row["learners"] == 1000), np.nan)
        row = rows[-1]
        print(
            f"{size:8d} {row['us']:6.2f} {row['us_median']:7.2f} {row['cpu_us']:7.2f}"
            f" {row['us'] / base:9.2f} {row['rounds_per_second']:10.3g}"
            f" {bytes_moved() / row['us'] / 1e3 / speed:19.2f}"
            f" {row['state_bytes']:16.0f} {row['peak_gib']:9.2f}",
            flush=True,
        )
    after = bandwidth(threads)
    print(f"memory bandwidth afterwards: {after:.1f} GB/s")
    for row in rows:
        row["bytes_moved"], row["bandwidth_gb_s"] = bytes_moved(), [speed, after]
    return rows


def family_table(threads, n_rounds=4):
    """Every family on both cores against one: the blocked order runs them all."""
    print("\nus per learner-step of one network on one thread, and one / all threads")
    found = {}
    families = {
        "domkl": (domkl.DOMKL(), 20_000),
        "domkl, message passing": (domkl.DOMKL(weights="message-passing"), 20_000),
        "rff-domkl": (domkl.RFFDOMKL(), 20_000),
        "comkl": (domkl.COMKL(), 20_000),
        "domkrls, default bank": (domkl.DOMKRLS(), 20_000),
    }
    for name, (algorithm, n_learners) in families.items():
        is_rls = isinstance(algorithm, domkl.DOMKRLS)
        graph = domkl.Graph.tree(n_learners) if algorithm.needs_acyclic else None
        graph = graph or domkl.Graph.sparse(n_learners, DEGREE, seed=0, connected=False)
        bank = algorithm.bank() if is_rls else domkl.gaussian_bank()
        features = domkl.RandomFeatures.draw(bank, D_IN, M, seed=0)
        times = {}
        for n in (1, threads):
            clock = Clock(n_learners, D_IN, n_rounds)
            run = domkl.simulate(
                algorithm, clock, None, graph, features, cv="off", dtype="float32", threads=n
            )
            times[n] = float(clock.per_step(clock.wall).min())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
        per_learner = sum(a.nbytes for a in run.state) / n_learners
        found[name] = {"us": times, "state_bytes": per_learner, "peak_gib": peak}
        print(
            f"  {name:24s} {times[1]:8.2f} {times[1] / times[threads]:6.2f}"
            f"   {per_learner:10.0f} B a learner, peak {peak:.1f} GiB",
            flush=True,
        )
    return found


def generator_times(n_learners):
    side = round(n_learners**0.5)
    makers = {
        "sparse, mean degree 4": lambda: domkl.Graph.sparse(n_learners, 4, seed=0),
        "random regular, degree 4": lambda: domkl.Graph.random_regular(n_learners, 4, seed=0),
        "ring": lambda: domkl.Graph.ring(n_learners),
        "grid": lambda: domkl.Graph.grid(side, side),
        "small world, degree 4": lambda: domkl.Graph.small_world(n_learners, 4, 0.1, seed=0),
        "scale free, 2 links": lambda: domkl.Graph.scale_free(n_learners, 2, seed=0),
    }
    print(f"\ngraphs of {n_learners} learners, seconds of CPU: drawn, Metropolis weights")
    rows = []
    for name, make in makers.items():
        start = time.process_time()
        graph = make()
        drawn = time.process_time()
        _ = graph.metropolis
        weighed = time.process_time()
        rows.append({"graph": name, "drawn": drawn - start, "weights": weighed - drawn})
        print(f"  {name:26s} {drawn - start:6.2f} {weighed - drawn:6.2f}", flush=True)
    return rows


def cv_costs(n_learners, n_rounds=3):
    """CPU time of a learner-step by how CV is measured, BLAS threads included."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rounds, n_learners, D_IN))
    graph = domkl.Graph.sparse(n_learners, DEGREE, seed=0)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank(), D_IN, M, seed=0)
    call = domkl.DOMKL(), X, np.sin(3 * X[..., 0]), graph, features
    print(
        f"\nCPU microseconds per learner-step at K = {n_learners}, CV measured; CV(T) and its error"
    )
    rows = []
    for mode in ("off", "sampled", "moments", "exact"):
        seconds = []
        for _ in range(3):
            start = time.process_time()
            run = domkl.simulate(*call, cv=mode, dtype="float32", keep_predictions=False)
            seconds.append(time.process_time() - start)
        us = 1e6 * min(seconds) / (n_rounds * n_learners)
        rows.append({"cv": mode, "us": us, "value": run.cv[-1], "error": run.cv_error[-1]})
        print(f"  {mode:8s} {us:8.1f}   {run.cv[-1]:.4e} {run.cv_error[-1]:.1e}", flush=True)
    return rows


CURVES = {
    "n_kernels": (1, 2, 4, 8, 17, 34),
    "n_frequencies": (10, 25, 50, 100, 200),
    "n_inputs": (1, 5, 20, 40, 81),
    "degree": (0, 2, 4, 8, 16, 32),
}


def curves(n_stretches):
    """CPU time of one thread: the least disturbed by whatever else runs."""
    print("\nCPU microseconds per learner-step, one thread, all else as in the table")
    found = {}
    for size in (1000, 20_000):
        for name, values in CURVES.items():
            rows = [measure(size, 1, n_stretches, **{name: v})["cpu_us"] for v in values]
            found[f"{name}, K = {size}"] = {"at": values, "us": rows}
            print(f"  K = {size}, {name}: ", end="")
            print(", ".join(f"{v}: {us:.2f}" for v, us in zip(values, rows, strict=True)))
            sys.stdout.flush()
    long = [measure(1000, 1, n) for n in (3, 10, 30, 100)]
    rounds = [row["rounds"] for row in long]
    found["rounds, K = 1000"] = {"at": rounds, "us": [row["cpu_us_median"] for row in long]}
    print("  K = 1000, rounds (median of the stretches): ", end="")
    print(", ".join(f"{row['rounds']}: {row['cpu_us_median']:.2f}" for row in long))
    return found


def plot(document, folder):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if rows := document.get("table"):
        figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
        sizes = [row["learners"] for row in rows]
        axis.semilogx(sizes, [row["us"] for row in rows], "o-", label="time")
        axis.semilogx(sizes, [row["cpu_us"] for row in rows], "s--", label="CPU, all threads")
        axis.set(xlabel="learners K", ylabel="µs per learner-step", ylim=(0, None))
        axis.legend()
        figure.savefig(folder / "learners.png", dpi=120)
    if found := document.get("curves"):
        names = [*CURVES, "rounds"]
        figure, axes = plt.subplots(1, 5, figsize=(13, 3), sharey=False, layout="constrained")
        labels = ("kernels P", "frequencies M", "inputs d", "mean degree", "rounds T")
        for axis, name, label in zip(axes, names, labels, strict=True):
            for key, curve in found.items():
                if key.startswith(name + ","):
                    axis.plot(curve["at"], curve["us"], "o-", label=key.split(", ")[1])
            axis.set(xlabel=label, ylim=(0, None))
        axes[0].set_ylabel("CPU µs per learner-step")
        axes[0].legend()
        figure.savefig(folder / "curves.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 10^4 learners, few rounds")
    parser.add_argument("--curves", action="store_true", help="the curves over T, P, M, d, degree")
    parser.add_argument("--no-table", action="store_true", help="no table, no graphs")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--json", type=Path, help="read this file, add what is measured, write it")
    parser.add_argument("--plot", type=Path, help="draw what the file holds into this folder")
    options = parser.parse_args()
    document = {}
    if options.json and options.json.exists():
        document = json.loads(options.json.read_text())
    if not options.no_table:
        sizes = [10**e for e in range(1, 5 if options.quick else 7)]
        n_stretches = 4 if options.quick else 12
        document["table"] = scaling_table(sizes, options.threads, n_stretches)
        if not options.quick:
            document["families"] = family_table(options.threads)
        document["graphs"] = generator_times(10**4 if options.quick else 10**6)
        document["cv"] = cv_costs(200 if options.quick else 2000)
    if options.curves:
        document["curves"] = curves(4 if options.quick else 8)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.plot:
        plot(document, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
