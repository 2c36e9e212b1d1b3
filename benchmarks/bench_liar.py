"""What one liar among six learners, or two, cost the honest ones, in virtual time.

    DOMKL_DATA=folder python benchmarks/bench_liar.py [--rounds N] [--sets NAME ...]
    DOMKL_DATA=folder python benchmarks/bench_liar.py --until N | --gone N | --liars 2

Six learners on a ring with two chords, in lockstep, samples dealt in turn. The liar follows the
protocol and changes its offers from a tenth of the stream on. Printed are the squared errors of the
honest learners relative to the same run without a liar and without a guard, over the last fifth and
over the whole run; both relative to the learners without neighbors, too; how often honest learners
distrusted the liar, and each other. "Nobody" is the run with guards and without a liar, and "alone"
that of the learners without neighbors. With ``--until N`` the liar is honest again from that round
on, and with ``--gone N`` it leaves the mesh then, as an honest one does in the run to compare with;
then the errors of the rounds from 200 after that one on are printed, instead of the last fifth.
What guards cost under faults is printed by ``soak.py --harsh --guard``.
"""

import argparse
from functools import cache, partial

import numpy as np

import domkl
from domkl.algorithms.registry import find
from domkl.data.sets import load_set
from domkl.data.streams import deal
from domkl.mesh.protocol.model import Model, Range
from domkl.mesh.testing import VirtualNetwork
from domkl.mesh.testing.liars import LIES, Liar
from domkl.mesh.testing.network import FIRST_SAMPLE

K, M, PERIOD = 6, 50, 0.1
LIARS = ("2", "4")  # the first one, or both: they are opposite, and learner 3 is between them
SOON = 200  # rounds in which the mesh is to be where it was
EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 3), (1, 4))


def neighbors(edges):
    pairs = {*edges, *((b, a) for a, b in edges)}
    return {str(k): [str(n) for n in range(K) if (k, n) in pairs] for k in range(K)}


@cache
def streams(name, n_rounds):
    made = load_set(name)
    x, y = deal(made.X, made.y, K, "interleaved")
    return x[:n_rounds], y[:n_rounds]


def model_of(algorithm, n_inputs):
    made = find(algorithm).make()
    features = domkl.RandomFeatures.draw(made.bank(), n_inputs, M, seed=1)
    ranges = tuple(Range(f"x{i}", 0, 1) for i in range(n_inputs))
    return Model(made, features, ranges, Range("y", 0, 1))


def run(
    algorithm,
    name,
    n_rounds,
    lie=None,
    edges=EDGES,
    *,
    liars=LIARS[:1],
    is_guarded=True,
    until=np.inf,
    gone=None,
):
    """Return the errors (T, K), and how often the liar and honest learners were distrusted."""
    x, y = streams(name, n_rounds)
    given = {"period": PERIOD, "is_guarded": is_guarded}
    network = VirtualNetwork(model_of(algorithm, x.shape[2]), neighbors(edges), x, y, **given)
    for liar in liars:
        if lie is not None:
            network.liars[liar] = Liar(lie, len(y) // 10, until)
        if gone is not None:
            network.at(FIRST_SAMPLE + gone * PERIOD, partial(network.leave, liar))
    network.run(1 + len(y) * PERIOD + 60)
    told = [(name, each.peer) for _, name, each in network.alarms if each.kind == "distrusted"]
    by_honest = [peer for name, peer in told if name not in liars]
    n_liar = sum(peer in liars for peer in by_honest)
    return network.predictions() - y, (n_liar, len(by_honest) - n_liar)


def show(label, last, honest, errors, base, alone, counts=("", "")):
    found, least, twins = (each[:, honest] ** 2 for each in (errors, base, alone))
    ratios = (
        found[last:].mean() / least[last:].mean(),
        found.mean() / least.mean(),
        found[last:].mean() / twins[last:].mean(),
        found.mean() / twins.mean(),
    )
    text = " ".join(f"{each:10.3f}" for each in ratios)
    print(f"  {label:8} {text} {counts[0]:>6} {counts[1]:>6}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--sets", nargs="+", default=["traffic", "air-quality"])
    parser.add_argument("--algorithms", nargs="+", default=["domkl", "domkrls"])
    parser.add_argument("--lies", nargs="+", default=list(LIES))
    parser.add_argument("--until", type=int, help="round from which it is honest again")
    parser.add_argument("--gone", type=int, help="round in which it leaves the mesh")
    parser.add_argument("--liars", type=int, choices=(1, 2), default=1)
    parser.add_argument("--unguarded", action="store_true", help="without guards")
    args = parser.parse_args()
    liars = LIARS[: args.liars]
    honest = [k for k in range(K) if str(k) not in liars]
    changed = args.gone if args.until is None else args.until
    last = args.rounds - args.rounds // 5 if changed is None else changed + SOON
    for name in args.sets:
        for algorithm in args.algorithms:
            given = algorithm, name, args.rounds
            base, _ = run(*given, liars=liars, is_guarded=False, gone=args.gone)
            print(
                f"{name}, {algorithm}: rounds from {last} on, and all, over honest; both over"
                " alone; distrusted: liar, honest"
            )
            alone, _ = run(*given, edges=(), is_guarded=False)
            show("alone", last, honest, alone, base, alone)
            errors, counts = run(*given, liars=liars, gone=args.gone)
            show("nobody", last, honest, errors, base, alone, counts)
            options = {"liars": liars, "is_guarded": not args.unguarded, "gone": args.gone}
            options["until"] = np.inf if args.until is None else args.until
            for lie in args.lies:
                errors, counts = run(*given, lie, **options)
                show(lie, last, honest, errors, base, alone, counts)


if __name__ == "__main__":
    main()
