"""Run the mesh through thousands of random schedules of faults, in several processes.

Printed for each algorithm and mode are the number of schedules, the error of the last fifth
relative to the same run without faults (mean; worst, and its seed) and to learners without
neighbors (mean), the spread of the learners' functions at the end relative to the error, and some
rounds after the last fault relative to the run without faults (median), the largest sum of the
duals over the network relative to the largest dual, the samples that were never learned, and the
alarms of guards about a neighbor, though all are honest. If a guarantee is broken, the seed is
named and the exit code is 1. To repeat a seed:

    python benchmarks/soak.py --first SEED --schedules 1

With ``--harsh`` schedules are of the harsher kind, `draw_harsh`. With ``--guard`` learners have
guards, as in a mesh. With ``--algorithm`` all schedules are of one algorithm, which may be one of
your own.
"""

import argparse
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from domkl.graphs.graph import Graph
from domkl.sim.simulate import simulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from schedules import MEASURED, Schedule, draw, draw_harsh, model, play, stream

#: largest mean error over all schedules, relative to the runs without faults, and over those of
#: the harsher kind; there also relative to learners without neighbors
MAX_RATIO, MAX_HARSH_RATIO, MAX_OVER_ALONE = 1.10, 1.05, 1.02
#: largest median, for each algorithm, of the spread after the last fault, relative to the runs
#: without faults
MAX_LATER = 10.0


class Result(NamedTuple):
    seed: int
    algorithm: str
    mode: str
    ratio: float
    alone: float  # the error, relative to learners without neighbors
    spread: float  # relative to the error without faults
    later: float  # spread some rounds after the last fault, relative to the run without faults
    dual_sum: float
    n_missing: int
    n_suspicious: int
    broken: list[str]


def error_without_faults(schedule: Schedule, graph: Graph | None = None) -> float:
    """Return the error of the run without faults, which is the simulator's."""
    (x, y), same = stream(schedule), model(schedule)
    graph = schedule.graph if graph is None else graph
    run = simulate(same.algorithm, x, y, graph, same.features, threads=1)
    last = int(MEASURED * len(y))
    return float(np.mean((run.predictions - y)[last:] ** 2))


def harsh_result(seed: int, algorithm: str | None = None, *, is_guarded: bool = False) -> Result:
    return _result(draw_harsh(seed, algorithm), is_guarded)


def result(seed: int, algorithm: str | None = None, *, is_guarded: bool = False) -> Result:
    return _result(draw(seed, algorithm), is_guarded)


def _result(schedule: Schedule, is_guarded: bool) -> Result:
    outcome = play(schedule, is_guarded=is_guarded)
    baseline = error_without_faults(schedule)
    alone = error_without_faults(schedule, Graph.empty(schedule.n_learners))
    later = np.nan  # the usual kind ends before its learners have met again
    if schedule.is_harsh:
        later = outcome.spread_later / play(schedule.without_faults()).spread_later
    return Result(
        schedule.seed,
        schedule.algorithm,
        schedule.mode,
        outcome.error / baseline,
        outcome.error / alone,
        outcome.spread / baseline,
        later,
        outcome.dual_sum,
        outcome.n_missing,
        outcome.n_suspicious,
        outcome.broken(baseline),
    )


def failures(results: list[Result], is_harsh: bool) -> list[str]:
    """Name the means over schedules that are beyond their limits."""
    found = {"error relative to no faults": (np.mean([each.ratio for each in results]), MAX_RATIO)}
    if is_harsh:
        ratio, alone = (np.mean([getattr(r, name) for r in results]) for name in ("ratio", "alone"))
        found = {
            "error relative to no faults": (ratio, MAX_HARSH_RATIO),
            "error relative to alone": (alone, MAX_OVER_ALONE),
        }
        for algorithm in sorted({each.algorithm for each in results}):
            later = np.median([each.later for each in results if each.algorithm == algorithm])
            found[f"spread of {algorithm} after the last fault"] = later, MAX_LATER
    return [f"{name} {is_:.3f} > {limit}" for name, (is_, limit) in found.items() if is_ > limit]


def show(results: list[Result]) -> None:
    groups = defaultdict(list)
    for each in results:
        groups[each.algorithm, each.mode].append(each)
    print(
        f"{'algorithm':<16} {'mode':<9} {'runs':>5} {'error':>6} {'worst':>6} {'seed':>7}"
        f" {'alone':>6} {'later':>6} {'spread':>7} {'duals':>8} {'missing':>7}"
        f" {'alarms':>6}"
    )
    for (algorithm, mode), group in sorted(groups.items()):
        worst = max(group, key=lambda each: each.ratio)
        print(
            f"{algorithm:<16} {mode:<9} {len(group):>5}"
            f" {np.mean([each.ratio for each in group]):>6.3f} {worst.ratio:>6.2f} {worst.seed:>7}"
            f" {np.mean([each.alone for each in group]):>6.3f}"
            f" {np.median([each.later for each in group]):>6.2f}"
            f" {max(each.spread for each in group):>7.3f}"
            f" {max(each.dual_sum for each in group):>8.1e}"
            f" {sum(each.n_missing for each in group):>7}"
            f" {sum(each.n_suspicious for each in group):>6}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--harsh", action="store_true", help="schedules of the harsher kind")
    parser.add_argument("--guard", action="store_true", help="learners with guards, as in a mesh")
    parser.add_argument("--algorithm", metavar="NAME", help="of all schedules; or module:Name")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.schedules)
    with ProcessPoolExecutor(args.workers) as pool:
        kind = harsh_result if args.harsh else result
        one = partial(kind, algorithm=args.algorithm, is_guarded=args.guard)
        todo = pool.map(one, seeds, chunksize=5)
        results = list(tqdm(todo, total=len(seeds), unit="schedule", file=sys.stderr))
    show(results)
    failed = failures(results, args.harsh)
    print("; ".join(failed) or "means are within their limits")
    broken = [each for each in results if each.broken]
    for each in broken:
        print(f"seed {each.seed}, {each.algorithm}, {each.mode}: {'; '.join(each.broken)}")
    return 1 if broken or failed else 0


if __name__ == "__main__":
    sys.exit(main())
