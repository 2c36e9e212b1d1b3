"""DOMKRLS beside the best in hindsight of what a user could have taken, on many streams.

    DOMKL_DATA=folder python benchmarks/bench_hindsight.py [--trials N] [--streams NAME ...]

The best of: the last label, the newest lag, linear least squares alone, and the first form of
DOMKRLS with forget 1, 0.9995, 0.999 and 0.99, by its MSE over all rounds. "Alone" is DOMKRLS
without its network. M = 50; the streams are those of streams.py.
"""

import argparse
import time

import first_form
import numpy as np
import streams

import domkl

M = 50
FORGETS = (1.0, 0.9995, 0.999, 0.99)
WORST, SHARE = 1.05, 0.75  # what is asked: never above, and below 1 on so many


def mse(algorithm, stream, n_trials):
    """x 1e-2, of every trial."""
    draws = algorithm.uses_features
    seeds = range(n_trials if draws else 1)
    maps = [
        domkl.RandomFeatures.draw(algorithm.bank(), stream.X.shape[2], M, seed=100 + seed)
        for seed in seeds
    ]
    graphs = [stream.graph(100 + seed) for seed in seeds]
    run = domkl.simulate(algorithm, stream.X, stream.y, graphs, maps, cv="off", dtype="float64")
    return 100 * run.mse[:, -1]


def rivals(stream):
    made = {"last label": domkl.LastValue(), "linear": domkl.LinearRLS()}
    if stream.lag is not None:
        made["lag"] = domkl.LastValue(stream.lag)
    return made | {f"first form {f:g}": first_form.DOMKRLS(forget=f) for f in FORGETS}


def compare(stream, n_trials):
    learner = domkl.DOMKRLS(newest_lag=stream.lag)
    ours = mse(learner, stream, n_trials).mean()
    alone = mse(domkl.Alone(learner), stream, n_trials).mean()
    theirs = {name: mse(each, stream, n_trials).mean() for name, each in rivals(stream).items()}
    best = min(theirs, key=theirs.get)
    return ours, alone, best, theirs[best]


def table(names, n_trials):
    print("| stream | DOMKRLS | alone | best in hindsight | its MSE | over it | over alone | s |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = {}
    for name in names:
        start, stream = time.perf_counter(), streams.found(name)
        if stream is None:
            continue
        ours, alone, best, theirs = compare(stream, n_trials)
        ratios[name] = ours / theirs
        print(
            f"| {name} | {ours:.3g} | {alone:.3g} | {best} | {theirs:.3g} | {ours / theirs:.3f}"
            f" | {ours / alone:.3f} | {time.perf_counter() - start:.0f} |",
            flush=True,
        )
    found = np.array(list(ratios.values()))
    worst = max(ratios, key=ratios.get)
    print(f"{len(found)} streams: worst {found.max():.3f} ({worst}; at most {WORST}),", end=" ")
    print(f"below 1 on {np.mean(found < 1):.0%} (at least {SHARE:.0%}),", end=" ")
    print(f"geometric mean {np.exp(np.log(found).mean()):.3f}")


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument(
        "--streams", nargs="+", choices=streams.STREAMS, default=list(streams.STREAMS)
    )
    args = parser.parse_args(arguments)
    table(args.streams, args.trials)


if __name__ == "__main__":
    main()
