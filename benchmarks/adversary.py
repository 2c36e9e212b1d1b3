"""Search for the lies that cost honest learners of a mesh most, in virtual time.

    DOMKL_DATA=folder python benchmarks/adversary.py --quick              the lies that are known
    DOMKL_DATA=folder python benchmarks/adversary.py --search 60          and a search in each cell
    DOMKL_DATA=folder python benchmarks/adversary.py --honest             what the defence costs
    DOMKL_DATA=folder python benchmarks/adversary.py --replay 'scale=-1 since=50' --cells traffic/6

A cell is a stream and a network: six learners of which one lies, or ten of which two lie together,
and two honest ones have both among their three neighbors. Liars follow the protocol and change what
they offer as a `Lie` says (`domkl.mesh.testing.liars`); the text of a lie repeats it. Streams are
the tables of ``streams.py``, dealt to the learners, and its real nodes, such as "homes, load/6".

The *ratio* is the squared error of the honest learners' predictions, as given out, over that of the
same run in which all are honest and nobody is defended; the *bound* is the larger of 1.1 and 1.03
times what the learners without a network have. Printed are the ratios of the whole run and of the
last fifth, both over the bound, the *score* (the larger of the two, over what is allowed at this
time; above 1 the bound is broken), the largest prediction given out, how many edges from honest
learners to liars and to honest ones were called suspicious, and how many frames were refused.
"""

import argparse
import json
import sys
import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import streams
from lies import ACCOUNTS, FIXED, SPACE, changed, random_lie
from tqdm import tqdm

import domkl
from domkl.algorithms.baselines import Alone
from domkl.algorithms.registry import find
from domkl.mesh.protocol.events import Timing
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.testing import Conditions, VirtualNetwork, neighbors_of
from domkl.mesh.testing.liars import Liar, Lie
from domkl.mesh.testing.network import FIRST_SAMPLE

M, PERIOD = 15, 0.1
HONEST_COST, ALONE_COST = 1.1, 1.03  # of the bound
LATE = 50  # a lie that begins later may cost the bound, and an earlier one these times as much
EARLY = {"domkl": (1.05, 1.05), "domkrls": (1.15, 1.05)}  # whole run, last fifth
STREAMS = ("traffic", "air-quality", "conductivity", "beijing-air")
NETS = {  # edges and liars
    6: ("01 12 23 34 45 05 03 14", "2"),
    10: ("01 12 23 34 45 56 67 78 89 09 37 26 05 18 49", "27"),
}
#: alarms that say nothing against a neighbor
ORDINARY = {"up", "down", "left", "refused", "mismatch", "doubted", "senseless"}

VICTIM = 3  # of scenes, in the network of six
STEADY = ("flip", "nought", "random", "huge", "mirrored", "flip, a million", "labels",
          "nought, new epochs")  # fmt: skip


class Cell(NamedTuple):
    algorithm: str
    stream: str
    size: int
    seed: int = 1
    window: int = 0
    rounds: int = 400
    mode: str = "lockstep"

    def __str__(self):
        where = f", window {self.window}" if self.window else ""
        return f"{self.algorithm} {self.stream}/{self.size}, seed {self.seed}{where}, {self.mode}"

    @property
    def graph(self):
        return domkl.Graph.from_edges(self.size, [tuple(map(int, e)) for e in self._net[0].split()])

    @property
    def liars(self):
        return tuple(self._net[1])

    @property
    def honest(self):
        return [k for k in range(self.size) if str(k) not in self.liars]

    @property
    def _net(self):
        return NETS[self.size]


class Scene(NamedTuple):
    """What happens in a run beside lies, to the victim: one liar is among its three neighbors."""

    begin: int = 0  # rounds that are judged, of the victim's own if it joins
    end: int | None = None
    most: tuple[float, float] = (1.0, 1.0)  # of the ratio, for DOMKL and DOMKRLS
    lies: tuple[str, ...] = ()
    since: int = 0  # when lies begin, in samples of the liar
    joins: int = 0  # round in which the victim does
    unlabelled: int = 0  # rounds in which the victim has no label
    restarts: tuple[int, ...] = ()  # rounds before which the victim does
    gone: int = 0  # round before which liars leave
    is_of_all: bool = False  # whether all honest learners are judged

    def of_victim(self, values):
        """Its samples: from when it joins, and the same ones again after the end."""
        return np.roll(values, -self.joins, axis=0)

    def mse(self, errors, cell):
        who = cell.honest if self.is_of_all else VICTIM
        return float(np.nanmean(errors[self.begin : self.end, who]))


PLAIN = Scene()


class Outcome(NamedTuple):
    errors: np.ndarray  # (T, K), squared; NaN without a label
    largest: float = 0.0  # absolute prediction of an honest learner
    liars_alarmed: int = 0  # edges from honest learners to liars, and to honest ones
    honest_alarmed: int = 0
    refused: int = 0  # frames, by honest learners


class Row(NamedTuple):
    """What is printed of a lie."""

    whole: float
    last: float
    whole_over: float  # over the bound
    last_over: float
    score: float
    lie: str  # as a text, "" for the truth
    outcome: Outcome

    def record(self):
        """All but the errors, for JSON."""
        every = self._asdict() | self.outcome._asdict()
        return {name: value for name, value in every.items() if name not in ("outcome", "errors")}

    def __str__(self):
        o = self.outcome
        ratios = " ".join(f"{each:8.4g}" for each in self[:5])
        mark = "*" if self.score > 1 else " "
        alarmed = f"{o.liars_alarmed:5} {o.honest_alarmed:6}"
        return f"{ratios}{mark} {o.largest:8.3g} {alarmed} {o.refused:7}"


HEAD = "   whole     last  w/bound  l/bound    score   largest liars honest refused"


@cache
def samples(stream, size, window, rounds):
    """Inputs (T, K, d) and labels (T, K): dealt in turn if it is a table, of real nodes if not."""
    if stream in streams.SETS:
        X, y = domkl.deal(*streams.rows_of(stream), size, partition="interleaved")
    else:
        made = streams.stations(1, window) if stream == "beijing-air" else streams.STREAMS[stream]()
        X, y = streams.held(made.X), np.asarray(made.y)
    begin = 0 if stream == "beijing-air" else window
    part = slice(begin, begin + rounds)
    x, y = np.nan_to_num(X[part, :size]), np.asarray(y[part, :size])
    assert y.shape == (rounds, size), f"{stream} has {y.shape} from {window} on"
    return x, y


@cache
def model_of(algorithm, stream, seed):
    made = find(algorithm).make()
    n_inputs = samples(stream, 6, 0, 1)[0].shape[2]
    features = domkl.RandomFeatures.draw(made.bank(), n_inputs, M, seed=seed)
    ranges = tuple(Range(f"x{i}", 0, 1) for i in range(n_inputs))
    return Model(made, features, ranges, Range("y", 0, 1))


@cache
def references(cell):
    """Squared errors (T, K) of the same learners honest and undefended, and without a network."""
    model, (x, y) = model_of(cell.algorithm, cell.stream, cell.seed), data_of(cell)
    given = {"keep_predictions": True, "interpreted": True, "threads": 1, "cv": "off"}
    for_each = model.algorithm, Alone(model.algorithm)
    runs = [domkl.simulate(a, x, y, cell.graph, model.features, **given) for a in for_each]
    errors = [(run.predictions - y) ** 2 for run in runs]
    if cell.mode == "async":  # delays cost something, whoever is honest
        errors[0] = play(cell, is_guarded=False).errors
    return errors


def data_of(cell):
    return samples(cell.stream, cell.size, cell.window, cell.rounds)


def network_of(cell, lie=None, scene=PLAIN, *, is_guarded=True):
    """The network before its first round; columns of victims that come later are last."""
    x, y = (values.copy() for values in data_of(cell))
    lie, of_liars = (Lie(), ()) if lie is None else (lie, [*map(int, cell.liars)])
    for k in of_liars:
        y[:, k] = lie.labels_of(y[:, k], seed=k)
    x[:, VICTIM], y[:, VICTIM] = scene.of_victim(x[:, VICTIM]), scene.of_victim(y[:, VICTIM])
    y[: scene.unlabelled, VICTIM] = np.nan
    neighbors = neighbors_of(cell.graph)
    if scene.joins:
        near = neighbors.pop(str(VICTIM))
        order = [*map(int, neighbors), VICTIM]
        x, y = x[:, order], y[:, order]
    network = VirtualNetwork(
        model_of(cell.algorithm, cell.stream, cell.seed),
        neighbors,
        x,
        y,
        mode=cell.mode,
        timing=Timing(start_timeout=0.5),  # nobody waits for who joins later
        period=PERIOD,
        conditions=Conditions(jitter=0.02 if cell.mode == "async" else 0.0),
        generator=np.random.default_rng(cell.seed),
        is_guarded=is_guarded,
    )
    hurry(network, lie, of_liars)
    if scene.joins:
        given = str(VICTIM), near, cell.size - 1, cell.rounds - scene.joins
        network.at(begin_of(scene.joins), partial(network.join, *given))
    for t in scene.restarts:
        network.at(begin_of(t) - 0.03, partial(network.crash, str(VICTIM)))
        network.at(begin_of(t) - 0.02, partial(network.start, str(VICTIM)))
    for name in cell.liars if scene.gone else ():
        network.at(begin_of(scene.gone) - 0.03, partial(network.leave, name))
    return network


def hurry(network, lie, of_liars):
    """Let these learners lie, and learn each sample as often as the lie says, with haste."""
    n, rate = len(network.y), lie.rate
    network.liars = {
        str(k): Liar(lie._replace(since=rate * lie.since, until=rate * lie.until)) for k in of_liars
    }
    if rate == 1:
        return
    for values in (network.x, network.y):
        of_all = np.array(values)[np.minimum(np.arange(rate * n), n - 1)]
        for k in of_liars:  # a column of a liar is its own, whoever joins later
            of_all[:, k] = np.repeat(of_all[:n, k], rate, axis=0)
        values[:] = list(of_all)
    for t in range(n * (rate - 1)):
        for k in of_liars:
            network.at(begin_of(t / (rate - 1)), partial(network._sense, str(k)))


def begin_of(t):
    """When a round begins, in virtual seconds."""
    return FIRST_SAMPLE + t * PERIOD


def play(cell, lie=None, scene=PLAIN, *, is_guarded=True):
    network = network_of(cell, lie, scene, is_guarded=is_guarded)
    network.run(begin_of(cell.rounds) + 0.5)
    for _ in range(60):
        if all(p.learned == network.machines[p.name].n_arrived for p in network.protocols()):
            break
        network.run(network.now + 1)
    return outcome_of(cell, network, scene)


def outcome_of(cell, network, scene):
    told, y = network.predictions()[: cell.rounds], data_of(cell)[1].copy()
    y[:, VICTIM] = scene.of_victim(y[:, VICTIM])
    if scene.joins:
        told = np.insert(told[:, :-1], VICTIM, told[:, -1], axis=1)
    honest, liars = cell.honest, cell.liars
    alarms = {
        (name, alarm.peer)
        for _, name, alarm in network.alarms
        if alarm.kind not in ORDINARY and name not in liars
    }
    n_liars = sum(peer in liars for _, peer in alarms)
    refused = [p.measures.refused.total() for p in network.protocols() if p.name not in liars]
    largest = float(np.nanmax(np.abs(told[:, honest])))
    return Outcome((told - y) ** 2, largest, n_liars, len(alarms) - n_liars, sum(refused))


def mse(errors, cell, last=False):
    return float(np.nanmean(errors[-cell.rounds // 5 if last else 0 :, cell.honest]))


def bounds(cell):
    """Of the ratio, over the whole run and the last fifth."""
    honest, alone = references(cell)
    ratios = (mse(alone, cell, last) / mse(honest, cell, last) for last in (False, True))
    return [max(HONEST_COST, ALONE_COST * ratio) for ratio in ratios]


def tried(cell, lie=None, *, is_guarded=True):
    """The row of a lie."""
    outcome, base = play(cell, lie, is_guarded=is_guarded), references(cell)[0]
    ratios = [mse(outcome.errors, cell, last) / mse(base, cell, last) for last in (False, True)]
    over = [ratio / bound for ratio, bound in zip(ratios, bounds(cell), strict=True)]
    is_late = lie is not None and lie.since >= LATE
    allowed = (1.0, 1.0) if is_late else EARLY.get(cell.algorithm, (1.05, 1.05))
    score = max(each / most for each, most in zip(over, allowed, strict=True))
    return Row(*ratios, *over, score, str(lie or ""), outcome)


# scenes

FRAMES = (1.2, 1.3)
SCENES = {
    "two frames before the first label": Scene(20, 120, FRAMES, ("two frames",), 10, unlabelled=20),
    "two frames into a fresh mesh": Scene(0, 100, FRAMES, ("two frames",), is_of_all=True),
    "two frames after a restart": Scene(
        103, 203, FRAMES, ("two frames",), 104, restarts=(100, 150)
    ),
    "newcomer at 150": Scene(0, 50, (2.5, 2.5), STEADY, joins=150),
    "newcomer and liar at 150": Scene(0, 50, (2.5, 2.5), STEADY, 150, joins=150),
    "without labels": Scene(0, 50, (2.5, 2.5), STEADY, unlabelled=10**6),
    "without labels, from 150": Scene(150, 200, (2.5, 2.5), STEADY, 150, unlabelled=10**6),
    "gone at 150": Scene(350, None, (1.05, 1.05), STEADY, gone=150, is_of_all=True),
    "lies from 50, gone at 150": Scene(
        350, None, (1.05, 1.05), STEADY, 50, gone=150, is_of_all=True
    ),
}


def staged(cell, scene, *, is_guarded=True):
    """Play a scene without a lie and with each of its own: name, ratio over the most, outcome."""
    base = scene.mse(play(cell, None, scene, is_guarded=False).errors, cell)
    most = scene.most[cell.algorithm == "domkrls"]
    for name in ("nobody", *scene.lies):
        lie = FIXED[name]._replace(since=scene.since) if name in FIXED else None
        outcome = play(cell, lie, scene, is_guarded=is_guarded)
        yield name, scene.mse(outcome.errors, cell) / base / most, outcome


def show_scenes(cell, args, saved):
    print(f"\n{cell}: ratios, over what is allowed, largest prediction given out", flush=True)
    for text, scene in SCENES.items():
        for name, over, outcome in staged(cell, scene, is_guarded=not args.unguarded):
            ratio, mark = over * scene.most[cell.algorithm == "domkrls"], "*" if over > 1 else " "
            shown = f"{ratio:10.4g} {over:10.4g}{mark} {outcome.largest:10.3g}"
            print(f"{text:34} {name:20} {shown}", flush=True)
            saved[f"{cell}: {text}: {name}"] = {"ratio": ratio, "over": over}


# the search

CARRIED = 3  # of the worst lies of a cell, with which the search in the next one begins


def fields_of(cell):
    """The fields of a lie that mean something in what the learners of a cell say."""
    said = model_of(cell.algorithm, cell.stream, cell.seed).offers().layout.fields
    return [field for field in SPACE if "counts" in said or field not in ACCOUNTS]


def search(trial, budget, fields, generator, found=(), report=lambda worst: None):
    """Try lies at random, then ones like the worst; return their rows, worst first.

    ``trial`` gives the row of a lie; ``found`` are the rows of those with which to begin. Of lies
    that come to the same, the first is kept.
    """
    by_score = {row.score: row for row in reversed(found)}
    for i in range(budget):
        worst = [by_score[score] for score in sorted(by_score, reverse=True)]
        if i < budget // 4 or not worst:
            lie = random_lie(fields, generator)
        else:
            ranks = np.minimum(generator.exponential(1.5, 2).astype(int), len(worst) - 1)
            lie = changed(*(Lie.parse(worst[rank].lie) for rank in ranks), fields, generator)
        row = trial(lie)
        by_score.setdefault(row.score, row)
        report(by_score[max(by_score)])
    return [by_score[score] for score in sorted(by_score, reverse=True)]


# the table


def show_cell(cell, args, saved):
    bound, (base, alone) = bounds(cell), references(cell)
    print(
        f"\n{cell}: alone {mse(alone, cell) / mse(base, cell):.3f} whole,"
        f" {mse(alone, cell, True) / mse(base, cell, True):.3f} last fifth;"
        f" bound {bound[0]:.3f}, {bound[1]:.3f}\n{'':22} {HEAD}",
        flush=True,
    )

    def trial(lie=None):
        if args.since is not None and lie is not None:
            lie = lie._replace(since=args.since)
        return tried(cell, lie, is_guarded=not args.unguarded)

    def show(name, row, text=""):
        print(f"{name:22} {row}{text}", flush=True)
        saved[f"{cell}: {name}"] = row.record()
        return row

    show("nobody", trial())
    if args.honest:
        return
    if args.replay is not None:
        show("replayed", trial(Lie.parse(args.replay)))
        return
    chosen = {name: lie for name, lie in FIXED.items() if not args.lies or name in args.lies}
    known = [show(name, trial(lie)) for name, lie in chosen.items()]
    if args.search:
        known += [trial(Lie.parse(text)) for text in saved.get(cell.algorithm, ())]
        generator = np.random.default_rng([args.search_seed, cell.seed])
        with tqdm(total=args.search, leave=False, desc=str(cell)) as bar:

            def report(worst):
                bar.set_description(f"{cell}: {worst.score:.3f} {worst.lie}", refresh=False)
                bar.update()

            found = search(trial, args.search, fields_of(cell), generator, known, report)
        for i, row in enumerate(found[: args.worst]):
            show(f"found {i + 1}", row, f"  {row.lie!r}")
        saved[cell.algorithm] = [row.lie for row in found[:CARRIED]]  # the next cell begins so


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cells = [f"{name}/{size}" for size in NETS for name in STREAMS]
    parser.add_argument("--cells", nargs="+", default=cells, metavar="STREAM/SIZE")
    parser.add_argument("--algorithms", nargs="+", default=["domkl", "domkrls"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="of the frequencies")
    parser.add_argument("--window", type=int, default=0, help="round with which streams begin")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--mode", choices=("lockstep", "async"), default="lockstep")
    parser.add_argument("--scenes", action="store_true", help="restarts, newcomers and so on")
    parser.add_argument("--unguarded", action="store_true", help="without the defence")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--quick", action="store_true", help="the known lies only (the default)")
    what.add_argument("--search", type=int, default=0, metavar="N", help="and N runs of a search")
    what.add_argument("--honest", action="store_true", help="without any lie")
    what.add_argument("--replay", metavar="LIE", help="this lie only")
    parser.add_argument("--lies", nargs="+", choices=list(FIXED), metavar="NAME", help="only these")
    parser.add_argument(
        "--since", type=int, help="round in which all lies begin, also searched ones"
    )
    parser.add_argument("--search-seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=3, help="lies that are printed of a search")
    parser.add_argument("--json", metavar="FILE", help="where to write all that is printed")
    return parser.parse_args()


def main():
    args, saved, start = arguments(), {}, time.monotonic()
    of_cell = show_scenes if args.scenes else show_cell
    for algorithm, name, seed in product(args.algorithms, args.cells, args.seeds):
        stream, _, size = name.partition("/")
        if args.scenes and size == "10":  # where the victim's neighbors are liars for the most part
            continue
        given = stream, int(size or 6), seed, args.window, args.rounds, args.mode
        try:
            of_cell(Cell(algorithm, *given), args, saved)
        except (OSError, domkl.DomklError) as why:
            print(f"{name} left out: {why}", flush=True)
        if args.json:
            Path(args.json).write_text(json.dumps(saved, indent=1))
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
