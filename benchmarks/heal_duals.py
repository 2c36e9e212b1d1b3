"""Three ways to treat the duals when messages get lost, on the same schedules of faults.

    pairs    each numbered exchange once and at both ends the same; an epoch's end takes it back
    epochs   an exchange that a round did not complete ends the edge's epoch at once
    none     each end adds what it has heard, as the bare law does

Printed are the error of the last fifth against the same run in calm, how far the learners'
functions are apart at the end against that error, and the sum of the duals over the network
against the largest of them. Only what has duals is run: DOKL, DOMKL, message passing.
"""

import argparse
from collections import defaultdict

import numpy as np

from domkl.mesh.protocol.edge import Edge, Gaps, Pair
from domkl.mesh.protocol.protocol import Protocol
from domkl.mesh.testing.schedules import draw, play


class Naive(Protocol):
    """Whatever was merged stays."""

    def completed(self, edge: Edge, pair: Pair) -> None:
        if self._said is not None and edge.step == self._step:
            edge.fresh = pair

    def untied(self, ledger: Gaps) -> None:
        pass

    def _amend(self, gaps: Gaps, sign: int) -> None:
        pass


class Epochs(Protocol):
    """Who is missing when a round ends begins a new epoch."""

    def _may_merge(self, now: float) -> bool:
        may = super()._may_merge(now)
        if may:
            for edge in [edge for edge in self.links.opened if edge.is_awaited]:
                self.links._close(edge, mine=self.links._next())
        return may


HOSTS = {"pairs": Protocol, "epochs": Epochs, "none": Naive}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=200)
    found = defaultdict(list)
    for seed in range(parser.parse_args().schedules):
        schedule = draw(seed)
        if schedule.algorithm not in ("dokl", "domkl", "message-passing"):
            continue
        calm = play(schedule.calm()).error
        for name, host in HOSTS.items():
            outcome = play(schedule, host)
            spread = outcome.spread / calm
            row = outcome.error / calm, spread, outcome.dual_sum, outcome.n_missing
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
