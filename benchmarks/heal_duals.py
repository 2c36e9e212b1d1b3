"""Compare three ways to treat the duals when messages are lost, on the same schedules of faults.

    pairs    every numbered exchange counts once, with the same pair of messages at both ends; the
             end of an epoch subtracts what was exchanged in it
    epochs   an exchange that a round did not complete ends the edge's epoch at once
    none     each end adds whatever it has heard

Printed are the error of the last fifth relative to the same run without faults, the spread of the
learners' functions at the end relative to that error, and the sum of the duals over the network
relative to the largest dual. Only algorithms with duals are run: DOKL, DOMKL, message passing.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from domkl.mesh.protocol.edges import Edge, Pair
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.protocol.wire import Fields

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from schedules import algorithm_of, draw, play


class Naive(Protocol):
    """Whatever was merged stays in the state, and nothing else gets into it."""

    def _completed(self, edge: Edge, pair: Pair) -> None:
        if self._message is not None and edge.own_step == self._step:
            edge.fresh = pair

    def _amend(self, gaps: Fields, sign: int) -> None:
        pass


class Epochs(Protocol):
    """An edge whose offer is missing when a round ends begins a new epoch."""

    def _may_merge(self, now: float) -> bool:
        may = super()._may_merge(now)
        if may:
            for edge in [edge for edge in self.edges.opened if edge.is_awaited]:
                self.edges.restart(edge)
            self._apply_changes()
        return may


PROTOCOLS = {"pairs": Protocol, "epochs": Epochs, "none": Naive}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=200)
    found = defaultdict(list)
    for seed in range(parser.parse_args().schedules):
        schedule = draw(seed)
        if "gap" not in algorithm_of(schedule.algorithm).exchange.values():
            continue
        baseline = play(schedule.without_faults()).error
        for name, protocol in PROTOCOLS.items():
            outcome = play(schedule, protocol)
            spread = outcome.spread / baseline
            row = outcome.error / baseline, spread, outcome.dual_sum, outcome.n_missing
            found[schedule.mode, name].append(row)
    numbers = f"{'error, mean':>12} {'worst':>8} {'spread, mean':>13} {'worst':>8}"
    numbers += f" {'dual sum, worst':>16} {'lost samples':>13}"
    print(f"{'mode':10} {'duals':8} {'runs':>5} {numbers}")
    for (mode, name), rows in sorted(found.items()):
        ratio, spread, dual, missing = np.array(rows).T
        cells = f"{np.nanmean(ratio):12.4g} {np.nanmax(ratio):8.3g}"
        cells += f" {np.nanmean(spread):13.3g} {np.nanmax(spread):8.3g} {np.max(dual):16.1e}"
        cells += f" {int(missing.sum()):13}"
        print(f"{mode:10} {name:8} {len(rows):5} {cells}")


if __name__ == "__main__":
    main()
