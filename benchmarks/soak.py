"""Run the mesh through thousands of random schedules of faults, in several processes.

Printed for each algorithm and mode are the number of schedules, the error of the last fifth
relative to the same run without faults (mean; worst, and its seed), the largest sum of the duals
over the network relative to the largest dual, and the samples that were never learned. If a
guarantee is broken, the seed is named and the exit code is 1. To repeat a seed:

    python -c "from domkl.mesh.testing import *; print(play(draw(SEED)))"
"""

import argparse
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from domkl.mesh.testing import Schedule, draw, play
from domkl.mesh.testing.schedules import MEASURED, model, stream
from domkl.sim.simulate import simulate

#: largest mean error over all schedules, relative to the runs without faults
MAX_RATIO = 1.10


class Result(NamedTuple):
    seed: int
    algorithm: str
    mode: str
    ratio: float
    spread: float  # relative to the error without faults
    dual_sum: float
    n_missing: int
    broken: list[str]


def error_without_faults(schedule: Schedule) -> float:
    """Return the error of the run without faults; in lockstep the simulator gives it faster."""
    if schedule.mode == "async":
        return play(schedule.without_faults()).error
    (x, y), same = stream(schedule), model(schedule)
    run = simulate(same.algorithm, x, y, schedule.graph, same.features, threads=1)
    last = int(MEASURED * len(y))
    return float(np.mean((run.predictions - y)[last:] ** 2))


def result(seed: int) -> Result:
    schedule = draw(seed)
    outcome, baseline = play(schedule), error_without_faults(schedule)
    return Result(
        seed,
        schedule.algorithm,
        schedule.mode,
        outcome.error / baseline,
        outcome.spread / baseline,
        outcome.dual_sum,
        outcome.n_missing,
        outcome.broken(baseline),
    )


def show(results: list[Result]) -> None:
    groups = defaultdict(list)
    for each in results:
        groups[each.algorithm, each.mode].append(each)
    print(
        f"{'algorithm':<16} {'mode':<9} {'runs':>5} {'error':>6} {'worst':>6} {'seed':>7}"
        f" {'spread':>7} {'duals':>8} {'missing':>7}"
    )
    for (algorithm, mode), group in sorted(groups.items()):
        worst = max(group, key=lambda each: each.ratio)
        print(
            f"{algorithm:<16} {mode:<9} {len(group):>5}"
            f" {np.mean([each.ratio for each in group]):>6.3f} {worst.ratio:>6.2f} {worst.seed:>7}"
            f" {max(each.spread for each in group):>7.3f}"
            f" {max(each.dual_sum for each in group):>8.1e}"
            f" {sum(each.n_missing for each in group):>7}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.schedules)
    with ProcessPoolExecutor(args.workers) as pool:
        todo = pool.map(result, seeds, chunksize=5)
        results = list(tqdm(todo, total=len(seeds), unit="schedule", file=sys.stderr))
    show(results)
    mean = float(np.mean([each.ratio for each in results]))
    print(f"mean error relative to no faults: {mean:.4f}, must be at most {MAX_RATIO}")
    broken = [each for each in results if each.broken]
    for each in broken:
        print(f"seed {each.seed}, {each.algorithm}, {each.mode}: {'; '.join(each.broken)}")
    return 1 if broken or mean > MAX_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
