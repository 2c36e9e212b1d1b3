"""DOMKL's speed against C and NumPy, and two cores against one: ratios within one run.

    python benchmarks/bench_speed.py [--quick]

Every repetition measures all contestants in turn, so that a noisy machine is noisy for all, and
gives a ratio; medians and ranges over repetitions are printed. Results are compared too: the same
MSE and CV must come out.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # NumPy's matrix products: one core, as all others
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import vectorised

import domkl

HERE = Path(__file__).parent
FLAGS = ["-O3", "-march=native", "-ffast-math"]
K, P, M = 10, 17, 50
NAMES = (
    "C, float32, 1 core",
    "C blocked, float32, 1 core",
    "domkl, float32, 1 core",
    "domkl, float32, 2 cores",
    "NumPy, float64, 1 core",
)


def problem(n_rounds, n_trials, n_inputs):
    rng = np.random.default_rng(0)
    X, y = rng.random((n_rounds, K, n_inputs)), rng.random((n_rounds, K))
    graphs = [domkl.Graph.random(K, 0.25, seed=b) for b in range(n_trials)]
    bank = domkl.gaussian_bank()
    maps = [domkl.RandomFeatures.draw(bank, n_inputs, M, seed=b) for b in range(n_trials)]
    return X, y, graphs, maps


def compile_c(folder, blocked):
    program = Path(folder) / f"domkl-{blocked}"
    options = ["-DREAL=float", f"-DBLOCKED={blocked}"]
    subprocess.run(
        ["gcc", *FLAGS, *options, str(HERE / "domkl.c"), "-o", str(program), "-lm"], check=True
    )
    return program


def write_input(path, X, y, graphs, maps, algorithm):
    sizes = np.array([*X.shape[:1], len(graphs), K, P, M, X.shape[2]], dtype=np.int64)
    params = np.array([algorithm.rho, algorithm.eta_l, algorithm.eta_g])
    arrays = [sizes, params, X, y, *(m.turns for m in maps)]
    arrays += [a for g in graphs for a in (g.indptr, g.indices)]
    with Path(path).open("wb") as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).tobytes())


def run_c(program, path):
    out = subprocess.run([program, path, "1"], check=True, capture_output=True, text=True).stdout
    return tuple(map(float, out.split()))


def run_domkl(X, y, graphs, maps, dtype, threads):
    start = time.perf_counter()
    run = domkl.simulate(domkl.DOMKL(), X, y, graphs, maps, dtype=dtype, threads=threads)
    seconds = time.perf_counter() - start
    return 1e6 * seconds / (y.size * len(graphs)), run.mse[:, -1].mean(), run.cv[:, -1].mean()


def run_numpy(X, y, graphs, maps, n_trials):
    a = domkl.DOMKL()
    start = time.perf_counter()
    for graph, features in list(zip(graphs, maps, strict=True))[:n_trials]:
        vectorised.domkl(X, y, graph, features, a.rho, a.eta_l, a.eta_g)
    return 1e6 * (time.perf_counter() - start) / (y.size * n_trials), None, None


def compare(n_inputs, n_rounds, n_trials, repeats):
    X, y, graphs, maps = problem(n_rounds, n_trials, n_inputs)
    with tempfile.TemporaryDirectory() as folder:
        plain, blocked = (compile_c(folder, blocked) for blocked in (0, 1))
        data = Path(folder) / "input"
        write_input(data, X, y, graphs, maps, domkl.DOMKL())
        contestants = {
            "C, float32, 1 core": lambda: run_c(plain, data),
            "C blocked, float32, 1 core": lambda: run_c(blocked, data),
            "domkl, float32, 1 core": lambda: run_domkl(X, y, graphs, maps, "float32", 1),
            "domkl, float32, 2 cores": lambda: run_domkl(X, y, graphs, maps, "float32", 2),
            "domkl, float64, 1 core": lambda: run_domkl(X, y, graphs, maps, "float64", 1),
            "NumPy, float64, 1 core": lambda: run_numpy(X, y, graphs, maps, 2),
        }
        times = {name: [] for name in contestants}
        for name, contestant in contestants.items():  # compile, warm up, and compare results
            _, mse, cv = contestant()
            if name == NAMES[0]:
                expected = mse, cv
            elif mse is not None:
                np.testing.assert_allclose((mse, cv), expected, rtol=1e-3, err_msg=name)
        for _ in range(repeats):
            for name, contestant in contestants.items():
                times[name].append(contestant()[0])
    return {name: np.array(values) for name, values in times.items()}


def show(label, values, note=""):
    print(
        f"  {label:31s}{np.median(values):7.2f}   [{values.min():.2f} .. {values.max():.2f}] {note}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few rounds, to see that it runs")
    quick = parser.parse_args().quick
    if shutil.which("gcc") is None:
        sys.exit(
            "bench_speed.py needs gcc, the compiler of its reference; install it and run again"
        )
    n_rounds, repeats = (40, 2) if quick else (400, 9)
    print(f"DOMKL, P = {P}, M = {M}, K = {K}, exact CV, 40 trials with frequencies of their own,")
    print(f"{n_rounds} rounds, {repeats} repetitions; gcc {' '.join(FLAGS)}")
    for n_inputs in (5, 81):
        times = compare(n_inputs, n_rounds, 40, repeats)
        print(f"\nd = {n_inputs}: microseconds per learner-step, median [range]")
        for name, values in times.items():
            show(name, values)
        print("ratios of the same repetition, median [range]")
        c, blocked, one, two, numpy = (times[name] for name in NAMES)
        show("domkl float32 / C float32", one / c, "at most 1.2")
        show("domkl float32 / C blocked", one / blocked)
        show("NumPy float64 / domkl float32", numpy / one, "at least 10")
        show("one core / two cores", one / two, "at least 1.8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
