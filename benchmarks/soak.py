"""Schedules of faults, thousands of them, over processes: do the laws of the mesh hold?

Per algorithm and mode: how many schedules, the error of the last fifth against the same run in
calm (mean; worst, and the seed of the worst), the largest sum of duals over the network against the
largest dual, samples never learned. Exit 1 if a law is broken; the seeds are named:

    python -c "from domkl.mesh.testing.schedules import *; print(play(draw(SEED)))"
"""

import argparse
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from domkl.graphs.graph import Graph
from domkl.mesh.testing import schedules
from domkl.sim.simulate import simulate

#: of the mean over all schedules
MAX_RATIO = 1.10


class Result(NamedTuple):
    seed: int
    algorithm: str
    mode: str
    ratio: float
    spread: float  # against the calm error
    dual_sum: float
    n_missing: int
    broken: list[str]


def calm_error(schedule: schedules.Schedule) -> float:
    """Without faults; lockstep is then the simulator, to the bit, and that is quicker."""
    if schedule.mode == "async":
        return schedules.play(schedule.calm()).error
    x, y = schedules.stream(schedule)
    model = schedules.model(schedule)
    graph = Graph.from_edges(schedule.n_learners, list(schedule.edges))
    run = simulate(model.algorithm, x, y, graph, model.features, threads=1)
    last = int(schedules.MEASURED * len(y))
    return float(np.mean((run.predictions - y)[last:] ** 2))


def result(seed: int) -> Result:
    schedule = schedules.draw(seed)
    outcome, calm = schedules.play(schedule), calm_error(schedule)
    return Result(
        seed,
        schedule.algorithm,
        schedule.mode,
        outcome.error / calm,
        outcome.spread / calm,
        outcome.dual_sum,
        outcome.n_missing,
        outcome.broken(calm),
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
    print(f"mean error against calm over all: {mean:.4f}, at most {MAX_RATIO} by the law")
    broken = [each for each in results if each.broken]
    for each in broken:
        print(f"seed {each.seed}, {each.algorithm}, {each.mode}: {'; '.join(each.broken)}")
    return 1 if broken or mean > MAX_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
