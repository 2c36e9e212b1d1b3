"""A sweep of 200 trials on two processes against one: python benchmarks/bench_sweep.py [--quick]

Every repetition runs the whole sweep on one process, then on two, each into a folder of its own,
and gives a ratio; medians and ranges over repetitions are printed. The time of the two includes
their start: "cold" starts them anew, "warm" finds them as the sweep before left them. The tables
must be the same to the bit. The machine must be idle: two processes need two cores.
"""

import argparse
import sys
import tempfile
import time

import numpy as np
from joblib.externals.loky import get_reusable_executor

import domkl

RHO = [0.2, 1.0, 2.0]


def tables(n_trials, rounds):
    return {
        "sweep": {"trials": n_trials},
        "data": {"name": ["traffic", "temperature"], "rounds": rounds},
        "algorithms": {"name": "domkl", "rho": RHO},
    }


def timed(spec, workers):
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        table = domkl.sweep(spec, out=folder, workers=workers)
        seconds = time.perf_counter() - start
    return seconds, {name: v for name, v in table.columns.items() if name != "seconds"}


def stop_workers():
    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def show(label, values, note=""):
    print(
        f"  {label:26s}{np.median(values):7.2f}   [{values.min():.2f} .. {values.max():.2f}] {note}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few trials, to see that it runs")
    quick = parser.parse_args().quick
    n_trials, rounds, repeats = (4, 50, 1) if quick else (200, 10_000, 3)
    spec = tables(n_trials, rounds)
    timed(tables(1, 1), 1)  # compile
    found = {"one": [], "cold": [], "warm": []}
    for _ in range(repeats):
        seconds, expected = timed(spec, 1)
        found["one"].append(seconds)
        stop_workers()
        for name in ("cold", "warm"):
            seconds, columns = timed(spec, 2)
            assert columns == expected, "two processes gave another table"
            found[name].append(seconds)
    one, cold, warm = (np.array(found[name]) for name in ("one", "cold", "warm"))
    print(f"DOMKL on traffic and temperature, rho = {RHO}, {n_trials} trials each, {repeats} times")
    print("seconds, median [range]")
    for name in found:
        label = "one process" if name == "one" else f"two processes, {name}"
        show(label, np.array(found[name]))
    print("ratios of the same repetition, median [range]")
    show("one / two, cold", one / cold, "at least 1.8")
    show("one / two, warm", one / warm, "at least 1.8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
