"""Results of the mesh demonstration, compared with a simulation without faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from domkl.mesh.operate.demo import Record, Shot
from domkl.sim.simulate import simulate
from domkl.typing import Floats

ENDS = {"kill": "restart", "cut": "heal"}
PHASES = {
    "before": (None, "kill"),
    "killed": ("kill", "restart"),
    "after": ("restart", "cut"),
    "cut off": ("cut", "heal"),
    "after it": ("heal", None),
}


@dataclass(frozen=True)
class Piece:
    """What one learner did between two observations."""

    time: float
    n: int  # samples
    errors: float  # sum of squared errors, scaled
    expected: float  # of the simulation, for the same samples


class Findings:
    """The errors, the disagreement and the recovery of a demonstration."""

    def __init__(self, record: Record) -> None:
        self.record, self.plan = record, record.plan
        model = record.config.model()
        n_rounds = max(max(shot.learned.values(), default=0) for shot in record.shots)
        stream = record.x[:n_rounds], record.y[:n_rounds]
        run = simulate(
            model.algorithm, *stream, record.config.graph(), model.features, cv="off", threads=1
        )
        assert run.squared_errors is not None
        start = np.zeros((1, self.plan.n_learners))
        self._expected = np.concatenate([start, np.cumsum(run.squared_errors, axis=0)])

    @property
    def others(self) -> tuple[str, ...]:
        """Learners that are neither killed nor cut off."""
        return tuple(n for n in self.plan.names if n not in (self.plan.killed, self.plan.cut))

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The groups of learners that the table and the figure show."""
        return {
            self.plan.killed: (self.plan.killed,),
            self.plan.cut: (self.plan.cut,),
            f"the other {len(self.others)}": self.others,
        }

    @cached_property
    def pieces(self) -> Mapping[str, Sequence[Piece]]:
        """Pieces of each learner, in order; samples learned again after a restart count once."""
        return {name: list(self._pieces(name)) for name in self.plan.names}

    def _pieces(self, name: str) -> Sequence[Piece]:
        k = self.plan.names.index(name)
        seen = [shot for shot in self.record.shots if name in shot.learned]
        made = []
        for a, b in pairwise(seen):
            first, last = a.learned[name], b.learned[name]
            if last > first:
                errors = b.error_sum[name] - a.error_sum[name]
                expected = self._expected[last, k] - self._expected[first, k]
                made.append(Piece(b.time, last - first, errors, float(expected)))
        return made

    def errors(
        self, names: Sequence[str], begin: float, end: float
    ) -> tuple[float | None, float | None]:
        """MSE of these learners in an interval, and that of the simulation on the same samples."""
        found = [p for name in names for p in self.pieces[name] if begin < p.time <= end]
        n = sum(p.n for p in found)
        if not n:
            return None, None
        return sum(p.errors for p in found) / n, sum(p.expected for p in found) / n

    def bounds(self, phase: str) -> tuple[float, float]:
        """When a phase begins and ends."""
        first, last = PHASES[phase]
        moments = self.record.moments
        return (
            0.0 if first is None else moments[first],
            self.record.shots[-1].time if last is None else moments[last],
        )

    def distance(self, shot: Shot, name: str) -> float:
        """Squared distance of a learner's predictions from the others' mean; NaN without any."""
        rest = [values for other, values in shot.probes.items() if other != name]
        if name not in shot.probes or not rest:
            return np.nan
        return float(np.mean((shot.probes[name] - np.mean(rest, axis=0)) ** 2))

    @cached_property
    def distances(self) -> Mapping[str, Floats]:
        """The distance of every learner at every observation."""
        return {
            name: np.array([self.distance(shot, name) for shot in self.record.shots])
            for name in self.plan.names
        }

    @cached_property
    def farthest(self) -> Floats:
        """The largest distance among the other learners at every observation."""
        return np.asarray(np.max([self.distances[name] for name in self.others], axis=0))

    def agrees_after(self, what: str, name: str) -> float | None:
        """Seconds until a learner is as near to the rest as the others are, twice in a row."""
        times = np.array([shot.time for shot in self.record.shots])
        with np.errstate(invalid="ignore"):
            is_near = self.distances[name] <= self.farthest
        is_steady = is_near[:-1] & is_near[1:] & (times[:-1] >= self.record.moments[what])
        return None if not is_steady.any() else self._since(what, int(np.argmax(is_steady)))

    def heard_after(self, what: str, name: str) -> float | None:
        """Seconds until a learner exchanges with all its neighbors again."""
        n_neighbors = len(self.record.config.neighbors(name))
        for k, shot in enumerate(self.record.shots):
            if shot.time >= self.record.moments[what] and shot.n_open.get(name) == n_neighbors:
                return self._since(what, k)
        return None

    def noticed(self, what: str, kind: str) -> float | None:
        """Seconds until the last neighbor noticed, if it did in time; kind as in `Record`."""
        lasted = self.record.moments[ENDS[what]] - self.record.moments[what]
        found = self.record.noticed.get(what, {}).get(kind, {}).values()
        return max((seconds for seconds in found if seconds <= lasted), default=None)

    def _since(self, what: str, k: int) -> float:
        return float(self.record.shots[k].time - self.record.moments[what])


def as_records(found: Findings) -> dict[str, Any]:
    """All results as numbers that can be written as JSON."""
    plan, moments = found.plan, found.record.moments
    faults = []
    for begin, end, name in (("kill", "restart", plan.killed), ("cut", "heal", plan.cut)):
        faults.append(
            {
                "fault": begin, "learner": name, "from": moments[begin], "to": moments[end],
                "connection_lost_after": found.noticed(begin, "lost"),
                "edges_closed_after": found.noticed(begin, "down"),
                "all_edges_open_after": found.heard_after(end, name),
                "agrees_after": found.agrees_after(end, name),
            }
        )  # fmt: skip
    return {
        "learners": plan.n_learners, "rate": plan.rate, "seconds": plan.seconds,
        "seed": plan.seed, "sent_bytes": found.record.sent_bytes, "faults": faults,
        "phases": [
            {"phase": phase, "from": found.bounds(phase)[0], "to": found.bounds(phase)[1],
             "mse": {g: found.errors(n, *found.bounds(phase))[0] for g, n in found.groups.items()},
             "mse_simulated": {
                 g: found.errors(n, *found.bounds(phase))[1] for g, n in found.groups.items()
             }}
            for phase in PHASES
        ],
    }  # fmt: skip


def as_table(records: Mapping[str, Any]) -> str:
    """The results as a table with a few sentences."""
    groups = list(records["phases"][0]["mse"])
    width = max(12, *(len(group) for group in groups))
    lines = [
        "Mean squared errors, and those of a simulation of the same samples without faults:",
        "",
        f"{'phase':10}{'seconds':>12}"
        + "".join(f"  {g:>{width}} {'simulated':>9}" for g in groups),
    ]
    for phase in records["phases"]:
        cells = (
            f"  {_number(phase['mse'][g]):>{width}} {_number(phase['mse_simulated'][g]):>9}"
            for g in groups
        )
        span = f"{phase['from']:.0f} - {phase['to']:.0f}"
        lines.append(f"{phase['phase']:10}{span:>12}" + "".join(cells))
    return "\n".join([*lines, *(line for fault in records["faults"] for line in _story(fault))])


def _story(fault: Mapping[str, Any]) -> list[str]:
    """A fault and how it ended, as sentences."""
    done, undone = {
        "kill": ("killed", "Started again"), "cut": ("cut off", "Reached again"),
    }[fault["fault"]]  # fmt: skip
    lost, closed = fault["connection_lost_after"], fault["edges_closed_after"]
    how = "saw no connection break" if lost is None else f"lost the connection in {_seconds(lost)}"
    what = "kept their edges" if closed is None else f"closed their edges after {_seconds(closed)}"
    return [
        "",
        f"{fault['learner']} was {done} for {_seconds(fault['to'] - fault['from'])}.",
        f"  Its neighbors {how}, went on without it, and {what}.",
        f"  {undone}, it had all its edges within {_seconds(fault['all_edges_open_after'])}"
        f" and agreed with the rest within {_seconds(fault['agrees_after'])}.",
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "(not seen)"
    return f"{value:.1f} s" if value >= 0.095 else f"{1000 * value:.0f} ms"
