"""Rounds of these sources against those of other ones, by turns: ratios of the least times.

    python benchmarks/bench_against.py OTHER/src [--turns 5]

Every turn runs each case in a process of its own, first by one of the sources and then by the
other, after a round that compiles or loads from disk. Times are processor time per learner-step.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

CASES = {
    "domkl, d = 5, float32": ("DOMKL", 5, 10, 20, "exact", "float32"),
    "domkl, d = 81, float32": ("DOMKL", 81, 10, 8, "exact", "float32"),
    "domkl, d = 5, float64": ("DOMKL", 5, 10, 12, "exact", "float64"),
    "domkl, by kernel": ("DOMKL", 5, 60, 2, "off", "float32"),
    "domkl, 2000 learners": ("DOMKL", 5, 2000, 1, "off", "float32"),
    "domkrls, d = 5, float64": ("DOMKRLS", 5, 10, 3, "exact", "float64"),
    "comkl, d = 5, float32": ("COMKL", 5, 10, 12, "exact", "float32"),
    "rff-domkl, d = 5, float32": ("RFFDOMKL", 5, 10, 12, "exact", "float32"),
}


def measured() -> dict[str, float]:
    """Microseconds per learner-step of each case, by the sources on the path."""
    import numpy as np

    import domkl

    found = {}
    for name, (kind, d, n_learners, n_trials, cv, dtype) in CASES.items():
        n_rounds = 300 if n_learners <= 60 else 20
        rng = np.random.default_rng(0)
        X, y = rng.random((n_rounds, n_learners, d)), rng.random((n_rounds, n_learners))
        algorithm = getattr(domkl, kind)()
        graphs = [domkl.Graph.circle(n_learners, 4)] * n_trials
        maps = [domkl.RandomFeatures.draw(algorithm.bank(), d, 50, seed=b) for b in range(n_trials)]
        options = {"cv": cv, "dtype": dtype, "threads": 1, "interpreted": False}
        domkl.simulate(algorithm, X[:3], y[:3], graphs[:1], maps[:1], **options)
        begin = time.process_time()
        domkl.simulate(algorithm, X, y, graphs, maps, **options)
        steps = n_rounds * n_learners * n_trials
        found[name] = 1e6 * (time.process_time() - begin) / steps
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", nargs="?", type=Path, metavar="SRC")
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    if args.other is None:
        print(json.dumps(measured()))
        return
    here = Path(__file__).resolve().parents[1] / "src"
    times: dict[Path, list[dict[str, float]]] = {here: [], args.other.resolve(): []}
    for _ in range(args.turns):
        for source, runs in times.items():
            env = {**os.environ, "PYTHONPATH": str(source)}
            out = subprocess.run(
                [sys.executable, __file__], env=env, check=True, stdout=subprocess.PIPE
            )
            runs.append(json.loads(out.stdout.splitlines()[-1]))
    ours, theirs = times.values()
    for name in CASES:
        new, old = (min(run[name] for run in runs) for runs in (ours, theirs))
        print(f"{name:28} {new:8.2f} us, other {old:8.2f} us, ratio {new / old:.3f}")


if __name__ == "__main__":
    main()
