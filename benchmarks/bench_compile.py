"""Processor time of the first compilation: every algorithm of the registry, exact CV, float64.

    python benchmarks/bench_compile.py [--against SOURCES] [--repeats N] [--events]

Each run is a process of its own with an empty folder for compiled code. Algorithms are compiled one
after the other, so the first one pays for what all share. With --against, runs of these sources and
of others (a folder that holds the package `domkl`, as src/ does) alternate, and the ratio of their
totals is printed. With --events, it prints how the time divides among Numba's compiler passes.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"
#: runs in both versions of the package, so it takes PATIENCE from where either has it
CHILD = """
import importlib, json, sys, time
import numpy as np
import domkl
from domkl.algorithms.registry import ALGORITHMS

for home in ("domkl.core.numba_internals", "domkl.algorithms.base"):
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError:
        continue
    if hasattr(module, "PATIENCE"):
        module.PATIENCE = 0.0

passes = {}
if "--events" in sys.argv:
    from numba.core import event

    class Sum(event.Listener):
        def on_start(self, given):
            self.started = time.process_time()

        def on_end(self, given):
            name = given.data["name"].split(" (")[0] if given.data else "?"
            passes[name] = passes.get(name, 0.0) + time.process_time() - self.started

    event.register("numba:run_pass", Sum())

random = np.random.default_rng(0)
X, y = random.random((2, 3, 2)), random.random((2, 3))
seconds = {}
for name, entry in ALGORITHMS.items():
    algorithm = entry.make()
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.1, 1.0])
    features = domkl.RandomFeatures.draw(bank, 2, 3, seed=0)
    start = time.process_time()
    domkl.simulate(algorithm, X, y, domkl.Graph.path(3), features, cv="exact", threads=1)
    seconds[name] = time.process_time() - start
print(json.dumps({"seconds": seconds, "passes": passes}))
"""


def compiled(sources, *options):
    """The processor time that each algorithm takes, in a process without compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        given = os.environ | {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(sources)}
        run = [sys.executable, "-c", CHILD, *options]
        done = subprocess.run(run, env=given, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="folder that holds another version")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--events", action="store_true")
    options = parser.parse_args()
    sources = [SOURCES] if options.against is None else [SOURCES, options.against]
    words = ["--events"] if options.events else []
    runs = [[compiled(each, *words) for each in sources] for _ in range(options.repeats)]
    for name in runs[0][0]["seconds"]:
        each = (min(run[i]["seconds"].get(name, 0) for run in runs) for i in range(len(sources)))
        print(f"{name:16}", *(f"{value:8.2f}" for value in each))
    totals = [[sum(found["seconds"].values()) for found in run] for run in runs]
    print(f"{'in all':16}", *(f"{min(column):8.2f}" for column in zip(*totals, strict=True)), "s")
    if options.against is not None:
        ratios = [new / old for new, old in totals]
        print(f"these sources / others: {statistics.median(ratios):.3f}", ratios)
    for name, value in sorted(runs[0][0]["passes"].items(), key=lambda item: -item[1])[:25]:
        print(f"  {name:50} {value:8.2f}")


if __name__ == "__main__":
    main()
