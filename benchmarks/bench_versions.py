"""This checkout's speed over another one's, in alternating runs.

    git worktree add ../before REVISION
    python benchmarks/bench_versions.py ../before [--quick] [--only WORD]

Both versions stay loaded, each in a process of its own with its own source folder, and take turns
on every case: old, new, new, old. So a machine that is slower for a while is slower for both.
Printed are the fastest and the median times per learner-step, and the ratio new / old, by the
fastest and as the median over repetitions. The first turn of each case compiles and is left out.
Besides, what the two compute is compared.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

K, P, M = 10, 17, 50
#: name, algorithm, inputs, trials, rounds, further arguments of `simulate`
CASES = (
    ("domkl, float32, d = 5", "DOMKL", 5, 40, 400, {"dtype": "float32", "threads": 1}),
    ("domkl, float64, d = 5", "DOMKL", 5, 40, 400, {"dtype": "float64", "threads": 1}),
    ("domkl, float32, d = 81", "DOMKL", 81, 40, 400, {"dtype": "float32", "threads": 1}),
    ("domkl, float32, 2 cores", "DOMKL", 5, 40, 400, {"dtype": "float32", "threads": 2}),
    (
        "domkl, float32, CV off",
        "DOMKL",
        5,
        40,
        400,
        {"dtype": "float32", "threads": 1, "cv": "off"},
    ),
    ("domkl, float32, short", "DOMKL", 5, 40, 40, {"dtype": "float32", "threads": 1}),
    ("rff-domkl, float32", "RFFDOMKL", 5, 40, 400, {"dtype": "float32", "threads": 1}),
    ("comkl, float32", "COMKL", 5, 40, 400, {"dtype": "float32", "threads": 1}),
    ("domkl interpreted", "DOMKL", 5, 1, 400, {"dtype": "float32", "interpreted": True}),
)


def serve():
    """Run the cases that are asked for on standard input, a line each, and answer with times."""
    import numpy as np

    import domkl

    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        algorithm, n_inputs, n_trials, n_rounds, options = json.loads(line)
        rng = np.random.default_rng(0)
        X, y = rng.random((n_rounds, K, n_inputs)), rng.random((n_rounds, K))
        graphs = [domkl.Graph.random(K, 0.25, seed=b) for b in range(n_trials)]
        bank = domkl.gaussian_bank()
        maps = [domkl.RandomFeatures.draw(bank, n_inputs, M, seed=b) for b in range(n_trials)]
        start = time.perf_counter()
        run = domkl.simulate(getattr(domkl, algorithm)(), X, y, graphs, maps, **options)
        seconds = time.perf_counter() - start
        mse = float(np.mean(np.atleast_2d(run.mse)[:, -1]))
        print(json.dumps([1e6 * seconds / (y.size * n_trials), mse]), file=out, flush=True)


class Version:
    """A checkout, loaded in a process."""

    def __init__(self, checkout):
        source = Path(checkout).resolve() / "src"
        if not (source / "domkl").is_dir():
            sys.exit(f"the checkout must hold src/domkl, got {checkout}")
        given = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--serve"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=given, **pipes)

    def run(self, case):
        """Microseconds per learner-step, and the error."""
        self.process.stdin.write(json.dumps(case[1:]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"a version ended in {case[0]!r}")
        return json.loads(answer)


def main():
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="the other checkout")
    parser.add_argument("--quick", action="store_true", help="two repetitions")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name has this word")
    args = parser.parse_args()
    old, new = Version(args.before), Version(Path(__file__).parents[1])
    repeats = 2 if args.quick else 9
    print(f"microseconds per learner-step, {2 * repeats} runs of each, K = {K}, P = {P}, M = {M}")
    print(f"{'':26} {'old best':>9} {'median':>7} {'new best':>9} {'median':>7}", end="")
    print(f" {'best/best':>10} {'ratio, median [range]':>24}")
    for case in (each for each in CASES if args.only in each[0]):
        (_, a), (_, b) = old.run(case), new.run(case)
        np.testing.assert_allclose(b, a, rtol=1e-3, err_msg=case[0])
        before, after = [], []
        for _ in range(repeats):
            for version in (old, new, new, old):
                (before if version is old else after).append(version.run(case)[0])
        pairs = np.array(after).reshape(-1, 2).sum(1) / np.array(before).reshape(-1, 2).sum(1)
        print(
            f"{case[0]:26} {min(before):9.2f} {np.median(before):7.2f} {min(after):9.2f}"
            f" {np.median(after):7.2f} {min(after) / min(before):10.3f}"
            f" {np.median(pairs):8.3f} [{pairs.min():.3f} .. {pairs.max():.3f}]",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["--serve"] else main())
