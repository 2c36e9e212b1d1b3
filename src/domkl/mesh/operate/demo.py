"""A mesh of real processes on the shipped traffic series: one is killed, one is cut off.

Every learner is a `domkl node`, over mutual TLS. The edges of the learner that is to be cut off go
through a relay (relay.py): it and its neighbors have the relay's addresses for each other.
"""

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from domkl import checks
from domkl.errors import MeshError, ParameterError
from domkl.mesh.config.file import MeshConfig
from domkl.mesh.node.node import warm_up
from domkl.mesh.operate.demo_setup import dealt_traffic, demo_config, make_demo, samples_of
from domkl.mesh.operate.launcher import LOG, Launcher
from domkl.mesh.operate.relay import Relay
from domkl.mesh.operate.status import ask
from domkl.typing import Floats

N_PROBES = 4
EVERY = 0.5  # seconds between two observations of the learners
CLOCK = 0.05  # seconds that two clocks of one machine may differ
SPARE = 1.2  # samples per round, for learners that are ahead
READY = 90.0  # seconds for all to be ready
#: what happens, and at which fraction of the time
MOMENTS = {"kill": 0.30, "restart": 0.42, "cut": 0.58, "heal": 0.76}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The plan of a demonstration.

    Parameters
    ----------
    rate : float
        Samples a second, of each learner.
    seconds : float
        From the first round to the end.
    seed : int
        Of the features.
    """

    n_learners: int = 10
    rate: float = 10.0
    seconds: float = 50.0
    seed: int = 1

    def __post_init__(self) -> None:
        checks.whole("learners", self.n_learners, 4)
        checks.positive("rate", self.rate)
        if not 30 <= self.seconds <= 3600:
            raise ParameterError(f"seconds must be 30 to 3600, got {self.seconds:g}")

    @property
    def names(self) -> tuple[str, ...]:
        """Of all learners."""
        width = len(str(self.n_learners))
        return tuple(f"learner-{k:0{width}}" for k in range(1, self.n_learners + 1))

    @property
    def killed(self) -> str:
        """The learner that is killed."""
        return self.names[1]

    @property
    def cut(self) -> str:
        """The learner that is cut off; no neighbor of the killed one, if there are enough."""
        return self.names[self.n_learners // 2 - 1 if self.n_learners > 7 else -1]

    def moment(self, what: str) -> float:
        """Seconds after the first round."""
        return self.seconds * MOMENTS[what]


@dataclass
class Shot:
    """The learners at one moment; those that do not answer are absent."""

    time: float
    learned: dict[str, int] = field(default_factory=dict)
    error_sum: dict[str, float] = field(default_factory=dict)  # scaled
    probes: dict[str, Floats] = field(default_factory=dict)  # scaled predictions
    n_open: dict[str, int] = field(default_factory=dict)  # neighbors that it exchanges with


@dataclass
class Record:
    """What happened in a demonstration."""

    plan: Plan
    config: MeshConfig
    x: Floats  # (T, K, d), as dealt, scaled
    y: Floats  # (T, K)
    shots: list[Shot] = field(default_factory=list)
    moments: dict[str, float] = field(default_factory=dict)
    #: "kill" or "cut" → "lost" (the connection) or "down" (the edge) → neighbor → seconds
    noticed: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    sent_bytes: int = 0


def run_demo(folder: Path, plan: Plan, say: Say) -> Record:
    """Set up a mesh in an empty folder and run it; all processes have ended when this returns."""
    x, y, target = dealt_traffic(plan.n_learners, int(plan.rate * plan.seconds * SPARE))
    config = demo_config(plan.names, target, plan.seed)
    cables, mesh = make_demo(folder, config, x, y, plan.cut), folder / "mesh"
    width = target.high - target.low
    record = Record(plan, config, (x - target.low) / width, (y - target.low) / width)
    say("compiling, or loading what was compiled before")
    warm_up(config.model())

    def options(name: str) -> Sequence[str]:
        files = ["--csv", str(samples_of(folder, name)), "--rate", str(plan.rate)]
        return [*files, "--log-format", "json"]

    with Relay(cables) as relay, Launcher(mesh, options=options) as launcher:
        say(f"starting {plan.n_learners} processes: a ring with chords, mutual TLS")
        launcher.start()
        start = _wait_until_learning(launcher, config, mesh)
        _play(record, launcher, relay, mesh, start, say)
        say("stopping")
        launcher.stop()
        clock = time.time() - time.monotonic()
    _read_logs(record, mesh, start + clock)
    return record


def _wait_until_learning(launcher: Launcher, config: MeshConfig, mesh: Path) -> float:
    """Wait until all have learned something; return the time."""
    deadline = time.monotonic() + READY
    while time.monotonic() < deadline:
        _check(launcher)
        states = [ask(member, mesh, timeout=1.0) for member in config.members]
        if all(state is not None and state.get("n_learned") for state in states):
            return time.monotonic()
        time.sleep(0.1)
    raise MeshError(f"learners must be ready within {READY:g} s, and are not")


def _check(launcher: Launcher) -> None:
    """Raise if a node ended that was not killed."""
    for ended in launcher.poll():
        if ended.code != -signal.SIGKILL:
            said = launcher.nodes[ended.name].last_words()
            raise MeshError(f"{ended.name} ended with code {ended.code}: {said}")


def _play(
    record: Record, launcher: Launcher, relay: Relay, mesh: Path, start: float, say: Say
) -> None:
    plan, killed = record.plan, launcher.nodes[record.plan.killed]
    acts: dict[str, tuple[str, Callable[[], None]]] = {
        "kill": (f"SIGKILL to {plan.killed}", lambda: killed.send(signal.SIGKILL)),
        "restart": (f"{plan.killed} is started again", killed.start),
        "cut": (f"{plan.cut} is cut off: silence on all its edges", relay.cut),
        "heal": (f"{plan.cut} is reached again", relay.heal),
    }
    due = [*acts]
    probes = record.x[:: max(len(record.x) // N_PROBES, 1), 0][:N_PROBES]
    with ThreadPoolExecutor(plan.n_learners) as pool:
        while (now := time.monotonic() - start) < plan.seconds:
            if due and now >= plan.moment(due[0]):
                text, act = acts[due[0]]
                act()
                record.moments[due.pop(0)] = time.monotonic() - start
                say(f"{now:5.1f} s  {text}")
            record.shots.append(_shot(record.config, mesh, probes, start, pool))
            _check(launcher)
            spent = time.monotonic() - start
            wake = now + EVERY if not due else min(now + EVERY, plan.moment(due[0]))
            time.sleep(max(wake - spent, 0.0))
    states = [ask(member, mesh) or {} for member in record.config.members]
    record.sent_bytes = sum(
        edge["sent_bytes"] for state in states for edge in state.get("neighbors", {}).values()
    )


def _shot(
    config: MeshConfig, mesh: Path, probes: Floats, start: float, pool: ThreadPoolExecutor
) -> Shot:
    low, high = config.target.low, config.target.high

    def look(name: str) -> tuple[Any, Floats | None]:
        member = config.member(name)
        state = ask(member, mesh, timeout=1.0)
        if state is None or not state.get("n_learned"):
            return None, None
        said = [
            ask(member, mesh, "/predict", body={"x": (low + x * (high - low)).tolist()})
            for x in probes
        ]
        if any(each is None for each in said):
            return state, None
        values = np.array([each["prediction"] for each in said])
        return state, (values - low) / (high - low)

    found = list(pool.map(look, config.names))
    shot = Shot(time.monotonic() - start)
    for name, (state, values) in zip(config.names, found, strict=True):
        if state is not None:
            shot.learned[name] = state["n_learned"]
            shot.error_sum[name] = state["mse"] * state["n_learned"]
            shot.n_open[name] = sum(edge["is_open"] for edge in state["neighbors"].values())
        if values is not None:
            shot.probes[name] = values
    return shot


def _read_logs(record: Record, mesh: Path, start: float) -> None:
    """Read from the logs when each neighbor lost the connection and closed the edge."""
    for what, victim in (("kill", record.plan.killed), ("cut", record.plan.cut)):
        for name in record.config.neighbors(victim):
            lines = (mesh / name / "data" / LOG).read_text().splitlines()
            for kind, at in _losses(lines, victim):
                seconds = at - start - record.moments[what]
                if seconds > -CLOCK:
                    found = record.noticed.setdefault(what, {}).setdefault(kind, {})
                    found.setdefault(name, max(seconds, 0.0))


def _losses(lines: Sequence[str], victim: str) -> Iterator[tuple[str, float]]:
    """Times at which a log says that a neighbor is "lost" or, for the protocol, "down"."""
    for line in lines:
        with suppress(ValueError, KeyError):
            entry = json.loads(line)
            if entry.get("peer") == victim:
                at = datetime.fromisoformat(entry["time"]).timestamp()
                if entry.get("kind") == "down":
                    yield "down", at
                elif entry.get("up") is False:
                    yield "lost", at
