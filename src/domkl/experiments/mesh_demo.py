"""A mesh of processes on the shipped traffic series: one learner is killed, one is cut off.

Every learner is a `domkl node`, over mutual TLS. The learner that is cut off is the last by name,
so its neighbors dial it; they have the address of a relay for it, which can stop to forward. The
errors are compared with those of a simulation of the same samples without faults.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from domkl.data.catalog import DATASETS
from domkl.data.sets import load_set
from domkl.data.streams import deal
from domkl.errors import MeshError, ParameterError
from domkl.experiments.options import Plan as Plan
from domkl.experiments.report import finite
from domkl.mesh.config.file import MeshConfig, write_config
from domkl.mesh.config.folder import MESH, init_mesh
from domkl.mesh.config.settings import Member
from domkl.mesh.config.topology import named_edges
from domkl.mesh.node.node import warm_up
from domkl.mesh.operate.launcher import LOG, Launcher
from domkl.mesh.operate.status import ask
from domkl.mesh.protocol.model import Range
from domkl.mesh.testing.relay import Relay
from domkl.mesh.transports.base import Address
from domkl.sim.simulate import simulate
from domkl.text import text_table
from domkl.typing import Floats

HOST, PORTS = "127.0.0.1", range(23000, 32000)
N_LAGS, N_PROBES = 5, 4
EVERY = 0.5  # seconds between two observations of the learners
CLOCK = 0.05  # seconds that two clocks of one machine may differ
SURPLUS = 1.2  # samples per round, for learners that are ahead
READY = 90.0  # seconds until all learners must have learned something
#: what happens, and after which fraction of the time
MOMENTS = {"kill": 0.30, "restart": 0.42, "cut": 0.58, "heal": 0.76}
#: names of the times before, between and after these events
PHASES = ("before", "killed", "after", "cut off", "after it")
#: begin, end, and words for both
FAULTS = (
    ("kill", "restart", "killed", "Started again"),
    ("cut", "heal", "cut off", "Reached again"),
)
WINDOW = 5.0  # seconds over which the figure averages errors
#: colors of Okabe and Ito, which color-blind readers can distinguish
KILLED, CUT, REST, EDGE = "#D55E00", "#0072B2", "#4D4D4D", "#BBBBBB"
TEXT = 10.5  # points

Say = Callable[[str], None]


@dataclass
class Record:
    """What was observed in a demonstration, and what follows from it.

    ``seen`` is (K, 3 + probes) at each time: samples learned, sum of squared errors, open edges,
    and predictions; NaN for a learner that does not answer. ``noticed`` has the seconds until a
    neighbor noticed an event, by "lost" of the connection or "down" of the edge.
    """

    plan: Plan
    config: MeshConfig
    x: Floats  # (T, K, d), scaled
    y: Floats  # (T, K), scaled
    moments: dict[str, float] = field(default_factory=dict)  # event → seconds
    times: list[float] = field(default_factory=list)
    seen: list[Floats] = field(default_factory=list)
    noticed: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    sent_bytes: int = 0

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """Each victim, and the other learners."""
        names, victims = self.plan.names, self.plan.victims.values()
        others = [k for k, name in enumerate(names) if name not in victims]
        return {name: [names.index(name)] for name in victims} | {
            f"the other {len(others)}": others
        }

    @property
    def others(self) -> list[int]:
        """The learners that are neither killed nor cut off."""
        return [*self.groups.values()][-1]

    @cached_property
    def pieces(self) -> list[Floats]:
        """Time, samples, errors and simulated errors of each learner between two observations.

        Samples that are learned again after a restart count once.
        """
        model, seen, made = self.config.model(), np.stack(self.seen), []
        n_rounds = int(np.nanmax(seen[..., 0]))
        run = simulate(
            model.algorithm, self.x[:n_rounds], self.y[:n_rounds], self.config.graph(),
            model.features, cv="off", threads=1,
        )  # fmt: skip
        assert run.squared_errors is not None
        for k in range(self.plan.learners):
            is_there = ~np.isnan(seen[:, k, 0])
            learned, errors = seen[is_there, k, :2].T
            simulated = np.append(0.0, np.cumsum(run.squared_errors[:, k]))[learned.astype(int)]
            rows = np.diff(np.column_stack([learned, errors, simulated]), axis=0)
            times = np.array(self.times)[is_there][1:]
            made.append(np.column_stack([times, rows])[rows[:, 0] > 0])
        return made

    def errors(self, group: Sequence[int], begin: float, end: float) -> Floats:
        """MSE of these learners in an interval, and of the simulation on the same samples."""
        rows = np.concatenate([self.pieces[k] for k in group])
        rows = rows[(begin < rows[:, 0]) & (rows[:, 0] <= end)]
        return rows[:, 2:].sum(axis=0) / rows[:, 1].sum() if len(rows) else np.full(2, np.nan)

    @cached_property
    def distances(self) -> Floats:
        """Squared distance of each learner's predictions from the others' mean, at each time."""
        probes = np.stack(self.seen)[..., 3:]
        n_others = (~np.isnan(probes[..., :1])).sum(axis=1, keepdims=True) - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            others = (np.nansum(probes, axis=1, keepdims=True) - probes) / n_others
        return np.asarray(np.mean((probes - others) ** 2, axis=2))

    def heard_after(self, what: str, name: str) -> float | None:
        """Seconds until a learner exchanges with all its neighbors again."""
        n_open = np.stack(self.seen)[:, self.plan.names.index(name), 2]
        return self._first(what, n_open == len(self.config.neighbors(name)))

    def agrees_after(self, what: str, name: str) -> float | None:
        """Seconds until a learner is as near to the rest as the others are, twice in a row."""
        farthest = self.distances[:, self.others].max(axis=1)
        is_near = self.distances[:, self.plan.names.index(name)] <= farthest
        return self._first(what, is_near & np.append(is_near[1:], False))

    def _first(self, what: str, holds: Any) -> float | None:
        """Seconds from an event to the first observation for which something holds."""
        after = np.array(self.times)[holds] - self.moments[what]
        return min((float(seconds) for seconds in after if seconds >= 0), default=None)

    def noticed_after(self, what: str, kind: str, end: str) -> float | None:
        """Seconds until the last neighbor noticed, of those that did before the end."""
        lasted = self.moments[end] - self.moments[what]
        found = self.noticed.get((what, kind), {}).values()
        return max((seconds for seconds in found if seconds <= lasted), default=None)


def dealt_traffic(n_learners: int, n_rounds: int) -> tuple[Floats, Floats, Range]:
    """The shipped series as (T, K, d) and (T, K), in vehicles an hour, and its declared range."""
    made = load_set("traffic", scale="none", n_lags=N_LAGS)
    x, y = deal(made.X, made.y, n_learners)
    if n_rounds > len(y):
        raise ParameterError(
            f"rate * seconds must be at most {len(y)} for {n_learners} learners, as the series is"
            f" no longer, got {n_rounds}"
        )
    low, high = DATASETS["traffic"].ranges["traffic_volume"]
    return x, y, Range("volume", float(low), float(high))


def demo_config(names: Sequence[str], target: Range, seed: int) -> MeshConfig:
    """A ring with chords on this machine, at ports that are free."""
    ports = [Address(HOST, port) for port in free_ports(2 * len(names))]
    members = tuple(map(Member, names, ports[::2], ports[1::2]))
    hours = tuple(Range(f"{k} h before", target.low, target.high) for k in range(1, N_LAGS + 1))
    edges = named_edges("ring-with-chords", names)
    return MeshConfig(members, edges, target, hours, seed=seed, name="demo", checkpoint_every=20)


def free_ports(n: int, after: int | None = None) -> list[int]:
    """Free ports, below those that the system uses for outgoing connections.

    Demonstrations that start at the same time search in different places.
    """
    if after is None:
        after = PORTS.start + os.getpid() * 64 % (len(PORTS) // 2)
    found: list[int] = []
    for port in range(after + 1, PORTS.stop):
        with suppress(OSError), socket.create_server((HOST, port)):
            found.append(port)
        if len(found) == n:
            return found
    raise ParameterError(f"{n} free ports from {after + 1} to {PORTS.stop - 1} are needed")


def make_demo(folder: Path, config: MeshConfig, x: Floats, y: Floats) -> Relay:
    """Make the mesh and each learner's samples; return a relay to the last learner by name."""
    init_mesh(folder / "mesh", config)
    head = ",".join(each.name for each in (*config.inputs, config.target))
    for k, name in enumerate(config.names):
        rows = np.column_stack([x[:, k], y[:, k]])
        np.savetxt(samples_of(folder, name), rows, "%.17g", ",", header=head, comments="")
    cut = config.member(max(config.names))  # the first of two neighbors by name dials
    relay = Address(HOST, *free_ports(1, after=max(each.http.port for each in config.members)))
    members = tuple(replace(m, address=relay) if m is cut else m for m in config.members)
    for name in config.neighbors(cut.name):
        write_config(folder / "mesh" / name / MESH, replace(config, members=members))
    return Relay(relay, cut.address)


def samples_of(folder: Path, name: str) -> Path:
    """The file with a learner's samples."""
    return folder / f"{name}.csv"


def run_demo(folder: Path, plan: Plan, say: Say) -> Record:
    """Set up a mesh in an empty folder and run it; all processes have ended when this returns."""
    x, y, target = dealt_traffic(plan.learners, int(plan.rate * plan.seconds * SURPLUS))
    config, mesh = demo_config(plan.names, target, plan.seed), folder / "mesh"
    relay = make_demo(folder, config, x, y)
    record = Record(plan, config, _scaled(x, target), _scaled(y, target))
    say("compiling, or loading what was compiled before")
    warm_up(config.model())

    def options(name: str) -> Sequence[str]:
        rows = ("--csv", str(samples_of(folder, name)), "--rate", str(plan.rate))
        return (*rows, "--log-format", "json")

    with relay, Launcher(mesh, options=options) as launcher:
        say(f"starting {plan.learners} processes")
        launcher.start()
        start = _wait_until_learning(launcher, config)
        _play(record, launcher, relay, x[:: max(len(x) // N_PROBES, 1), 0][:N_PROBES], start, say)
        say("stopping")
        launcher.stop()
        clock = time.time() - time.monotonic()
    _read_logs(record, mesh, start + clock)
    return record


def _scaled(values: Any, target: Range) -> Floats:
    return np.asarray((values - target.low) / (target.high - target.low))


def _wait_until_learning(launcher: Launcher, config: MeshConfig) -> float:
    """Wait until all have learned something; return the time."""
    deadline = time.monotonic() + READY
    while time.monotonic() < deadline:
        _check(launcher)
        states = [ask(member, launcher.folder, timeout=1.0) for member in config.members]
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
    record: Record, launcher: Launcher, relay: Relay, probes: Floats, start: float, say: Say
) -> None:
    """Observe the learners until the end; kill, restart, cut and heal when it is time."""
    plan, config = record.plan, record.config
    killed, cut = (plan.victims[what] for what in ("kill", "cut"))
    node = launcher.nodes[killed]
    acts: dict[str, tuple[str, Callable[[], None]]] = {
        "kill": (f"SIGKILL to {killed}", lambda: node.send(signal.SIGKILL)),
        "restart": (f"{killed} is started again", node.start),
        "cut": (f"{cut} is cut off: silence on all its edges", relay.cut),
        "heal": (f"{cut} is reached again", relay.heal),
    }
    due = [(plan.seconds * MOMENTS[what], what) for what in acts]
    look = partial(_look, mesh=launcher.folder, probes=probes, target=config.target)
    with ThreadPoolExecutor(plan.learners) as pool:
        while (now := time.monotonic() - start) < plan.seconds:
            if due and now >= due[0][0]:
                _, what = due.pop(0)
                text, act = acts[what]
                act()
                record.moments[what] = time.monotonic() - start
                say(f"{now:5.1f} s  {text}")
            record.seen.append(np.stack([*pool.map(look, config.members)]))
            record.times.append(time.monotonic() - start)
            _check(launcher)
            wake = min([now + EVERY, *(at for at, _ in due[:1])])
            time.sleep(max(wake - (time.monotonic() - start), 0.0))
    states = [ask(member, launcher.folder) or {} for member in config.members]
    edges = [edge for state in states for edge in state.get("neighbors", {}).values()]
    record.sent_bytes = sum(edge["sent_bytes"] for edge in edges)


def _look(member: Member, mesh: Path, probes: Floats, target: Range) -> Floats:
    """A learner's row of `Record.seen`."""
    row = np.full(3 + len(probes), np.nan)
    state = ask(member, mesh, timeout=1.0)
    if state is None or not state.get("n_learned"):
        return row
    n_open = sum(edge["is_open"] for edge in state["neighbors"].values())
    row[:3] = state["n_learned"], state["mse"] * state["n_learned"], n_open
    said = [ask(member, mesh, "/predict", body={"x": x.tolist()}) for x in probes]
    if all(said):
        row[3:] = _scaled(np.array([each["prediction"] for each in said]), target)
    return row


def _read_logs(record: Record, mesh: Path, start: float) -> None:
    """Read from the logs when each neighbor lost the connection and closed the edge."""
    for what, victim in record.plan.victims.items():
        for name in record.config.neighbors(victim):
            for line in (mesh / name / "data" / LOG).read_text().splitlines():
                with suppress(ValueError, KeyError):
                    entry = json.loads(line)
                    is_down = entry.get("kind") == "down"
                    if entry.get("peer") == victim and (is_down or entry.get("up") is False):
                        at = datetime.fromisoformat(entry["time"]).timestamp() - start
                        found = record.noticed.setdefault((what, "down" if is_down else "lost"), {})
                        if at > record.moments[what] - CLOCK:
                            found.setdefault(name, max(at - record.moments[what], 0.0))


def as_records(record: Record) -> dict[str, Any]:
    """All results as numbers that can be written as JSON."""
    plan, moments = record.plan, {"start": 0.0, **record.moments, "end": record.times[-1]}
    phases = []
    for phase, (begin, end) in zip(PHASES, pairwise(moments.values()), strict=True):
        pairs = {name: record.errors(group, begin, end) for name, group in record.groups.items()}
        mse, simulated = ({name: finite(pair[k]) for name, pair in pairs.items()} for k in (0, 1))
        phases.append(
            {"phase": phase, "from": begin, "to": end, "mse": mse, "mse_simulated": simulated}
        )
    faults = [
        {
            "fault": begin, "learner": name, "from": moments[begin], "to": moments[end],
            "connection_lost_after": record.noticed_after(begin, "lost", end),
            "edges_closed_after": record.noticed_after(begin, "down", end),
            "all_edges_open_after": record.heard_after(end, name),
            "agrees_after": record.agrees_after(end, name),
        }
        for (begin, end, _, _), name in zip(FAULTS, plan.victims.values(), strict=True)
    ]  # fmt: skip
    return asdict(plan) | {"sent_bytes": record.sent_bytes, "faults": faults, "phases": phases}


def as_table(records: Mapping[str, Any]) -> str:
    """The results as a table with a few sentences."""
    groups = records["phases"][0]["mse"]
    rows = [["phase", "seconds", *(word for group in groups for word in (group, "simulated"))]]
    for phase in records["phases"]:
        means = (phase[key][group] for group in groups for key in ("mse", "mse_simulated"))
        span = f"{phase['from']:.0f} - {phase['to']:.0f}"
        cells = ("-" if value is None else f"{value:.4g}" for value in means)
        rows.append([phase["phase"], span, *cells])
    title = "Mean squared errors, and those of a simulation of the same samples without faults:"
    stories = (line for fault in records["faults"] for line in _story(fault))
    return "\n".join([title, "", text_table(rows), *stories])


def _story(fault: Mapping[str, Any]) -> list[str]:
    """A fault and how it ended, as sentences."""
    done, undone = next(words for begin, _, *words in FAULTS if begin == fault["fault"])
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


def _seconds(value: float | None) -> str:
    if value is None:
        return "(not seen)"
    return f"{value:.1f} s" if value >= 0.095 else f"{1000 * value:.0f} ms"


def write_figure(path: Path, record: Record) -> None:
    """Draw errors and disagreement over time, and the network, as a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plan = record.plan
    with plt.rc_context({"font.size": TEXT}):
        figure, grid = plt.subplot_mosaic(
            [["errors", "network"], ["ratio", "legend"], ["distance", "."]],
            width_ratios=[3.4, 1], figsize=(11, 8.2), layout="constrained",
        )  # fmt: skip
        panels = [grid[name] for name in ("errors", "ratio", "distance")]
        _draw_errors(panels[0], panels[1], record)
        _draw_distances(panels[2], record)
        _draw_network(grid["network"], record)
        drawn = [panels[k].get_legend_handles_labels() for k in (0, 2)]
        entries = ([*one, *other] for one, other in zip(*drawn, strict=True))
        grid["legend"].legend(*entries, loc="upper left", frameon=False, borderaxespad=0)
        grid["legend"].axis("off")
        for panel in panels:
            _shade(panel, record, is_named=panel is panels[0])
            panel.grid(True, which="major", color="0.9", linewidth=0.8)
            panel.spines[["top", "right"]].set_visible(False)
            panel.tick_params(labelbottom=panel is panels[2])
            panel.set_xlim(0, plan.seconds)
        panels[2].set_xlabel("seconds")
        title = f"{plan.learners} processes, {plan.rate:g} samples a second each, mutual TLS"
        figure.suptitle(f"{title}: DOMKRLS on traffic", fontsize=TEXT + 1)
        figure.savefig(path, dpi=150, format="png")
        plt.close(figure)


def _style(plan: Plan, name: str) -> dict[str, Any]:
    """How a learner, or the group of the others, is drawn."""
    colors = dict(zip(plan.victims.values(), (KILLED, CUT), strict=True))
    return {"color": colors.get(name, REST), "linewidth": 1.9 if name in colors else 2.2}


def _draw_errors(errors: Any, ratio: Any, record: Record) -> None:
    """Errors, and their ratio to those of the simulation on the same samples."""
    ratio.axhline(1, color="0.35", linewidth=1, zorder=1)
    for name, group in record.groups.items():
        values = np.array([record.errors(group, t - WINDOW, t) for t in record.times])
        is_there = ~np.isnan(np.stack(record.seen)[:, group, 0]).all(axis=1)
        values[~is_there | (np.array(record.times) < WINDOW)] = np.nan
        errors.plot(record.times, values[:, 0], label=name, **_style(record.plan, name))
        ratio.plot(record.times, values[:, 0] / values[:, 1], **_style(record.plan, name))
    errors.set(yscale="log", ylabel=f"squared error,\nmean of {WINDOW:g} s")
    ratio.set_ylabel("error / simulated error,\nnothing failing there")


def _draw_distances(axis: Any, record: Record) -> None:
    rest = record.distances[:, record.others]
    low, high = (_calm(bound.reduce(rest, axis=1)) for bound in (np.fmin, np.fmax))
    label = f"the other {len(record.others)}, all of them"
    axis.fill_between(record.times, low, high, color=REST, alpha=0.22, linewidth=0, label=label)
    for name in record.plan.victims.values():
        values = record.distances[:, record.plan.names.index(name)]
        axis.plot(record.times, _calm(values), **_style(record.plan, name))
    axis.set(yscale="log", ylabel="squared distance of predictions\nfrom the others' mean")


def _calm(values: Floats) -> Floats:
    """The median of three consecutive values; missing values stay missing."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, 1, mode="edge"), 3)
    calm, is_there = np.full(len(values), np.nan), ~np.isnan(values)
    calm[is_there] = np.nanmedian(windows[is_there], axis=1)
    return calm


def _shade(axis: Any, record: Record, is_named: bool) -> None:
    """Mark the time of each fault."""
    for begin, end, done, _ in FAULTS:
        name, span = record.plan.victims[begin], (record.moments[begin], record.moments[end])
        color = _style(record.plan, name)["color"]
        axis.axvspan(*span, color=color, alpha=0.10, linewidth=0, zorder=0)
        if is_named:
            axis.text(
                sum(span) / 2, 1.01, f"{name}\n{done}", transform=axis.get_xaxis_transform(),
                color=color, ha="center", va="bottom", fontsize=TEXT - 1,
            )  # fmt: skip


def _draw_network(axis: Any, record: Record) -> None:
    names = record.plan.names
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    place = dict(zip(names, np.column_stack([np.cos(angles), np.sin(angles)]), strict=True))
    for a, b in record.config.edges:
        axis.plot(*np.array([place[a], place[b]]).T, color=EDGE, linewidth=1.2, zorder=1)
    for k, (name, at) in enumerate(place.items(), start=1):
        color = _style(record.plan, name)["color"]
        axis.scatter(*at, s=270, color=color, zorder=2, edgecolor="white", linewidth=1.5)
        axis.text(*at, str(k), color="white", ha="center", va="center", fontsize=TEXT - 1.5)
    axis.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal")
    axis.axis("off")
