"""beijing-air, a learner at each of twelve stations: ours beside what a practitioner would take.

    DOMKL_DATA=folder python benchmarks/bench_stations.py
        [--trials N] [--start H] [--rounds N] [--rivals]

MSE times 10⁻² of PM2.5/500, h hours ahead, labels learned when they are known (h − 1 rounds late),
from hour 20000 of the set on, cold start included; missing labels are not scored. "Pooled" models
get all stations' samples, and predict a whole round before they learn it. M = 50, each station
joined with its three nearest. With --rivals also River's forest and nearest neighbors and LightGBM,
with their defaults; these take minutes. If DOMKL_PROTOTYPE names the folder of the research
prototype, it gets a row: the same graph; missing labels are held from before to learn from, and
not scored.
"""

import argparse
import importlib
import os
import sys
import time

import first_form
import numpy as np
from streams import held

import domkl
from domkl.experiments.rivals import maker, play, rivals

START, M = 20_000, 50
HORIZONS = (1, 6, 24)
DAY = 24
TAKEN = ("river forest", "river neighbors", "lightgbm")
OURS = {
    "DOMKRLS": domkl.DOMKRLS(newest_lag=0),
    "DOMKRLS alone": domkl.Alone(domkl.DOMKRLS(newest_lag=0)),
    "DOMKRLS, first form": first_form.DOMKRLS(),
    "DOMKL": domkl.DOMKL(),
    "last value": domkl.LastValue(newest_lag=0),
    "seasonal naive, 24 h": domkl.SeasonalNaive(DAY),
    "linear RLS": domkl.LinearRLS(),
    "linear RLS, forget 0.999": domkl.LinearRLS(forget=0.999),
    "linear RLS pooled": domkl.PooledLinearRLS(),
    "linear RLS pooled, forget 0.999": domkl.PooledLinearRLS(forget=0.999),
}


def streams(start, n_rounds):
    made = {h: domkl.load_set("beijing-air", horizon=h) for h in HORIZONS}
    cut = slice(start, None if n_rounds is None else start + n_rounds)
    return made[1].places, {h: (each.X[cut], each.y[cut]) for h, each in made.items()}


def ours(algorithm, X, y, places, n_trials):
    draws = algorithm.law is not None and algorithm.uses_features
    maps = [
        domkl.RandomFeatures.draw(algorithm.bank(), X.shape[2], M, seed=b)
        for b in range(n_trials if draws else 1)
    ]
    graph = domkl.Graph.nearest(places, 3)
    return domkl.simulate(algorithm, X, y, graph, maps, cv="off").mse[:, -1].mean()


def theirs(name, X, y, is_pooled):
    predictions = play(maker(name, X.shape[2]), X, y, is_pooled=is_pooled)
    return np.nanmean((predictions - np.asarray(y)) ** 2)


def prototype(X, y, places, n_trials):
    """The learner that the research made, as its own files compute it."""
    sys.path.insert(0, os.environ["DOMKL_PROTOTYPE"])
    final, engine = (importlib.import_module(name) for name in ("final", "engine"))
    labels, horizon, d = np.asarray(y), getattr(y, "horizon", 1), X.shape[2]
    filled = held(np.where(np.isnan(labels) & (np.arange(len(labels)) == 0)[:, None], 0, labels))
    weights = engine.metropolis(domkl.Graph.nearest(places, 3), X.shape[1])
    found = []
    for seed in range(n_trials):
        z = domkl.RandomFeatures.draw(domkl.default_bank(), d, M, seed=seed)(X)
        given = {"lag": horizon - 1, "f2": 1 - 0.01 / horizon}
        made = final.v2(z, np.ascontiguousarray(X), filled, weights, 0, d, **given)
        found.append(np.nanmean((made - labels) ** 2))
    return np.mean(found)


def show(name, values, start):
    row = " | ".join(f"{100 * value:.3g}" for value in values)
    print(f"| {name} | {row} | {time.perf_counter() - start:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--start", type=int, default=START, help="hour of the set to begin with")
    parser.add_argument("--rounds", type=int, help="default: all that are left")
    parser.add_argument("--rivals", action="store_true")
    args = parser.parse_args()
    places, made = streams(args.start, args.rounds)
    print(f"{len(made[1][1])} rounds for h = 1")
    print("| | " + " | ".join(f"h = {h}" for h in HORIZONS) + " | seconds |")
    print("|---" * (2 + len(HORIZONS)) + "|")
    for name, algorithm in OURS.items():
        start = time.perf_counter()
        each = [ours(algorithm, *stream, places, args.trials) for stream in made.values()]
        show(name, each, start)
    if os.environ.get("DOMKL_PROTOTYPE"):
        start = time.perf_counter()
        each = [prototype(*stream, places, args.trials) for stream in made.values()]
        show("the research prototype", each, start)
    for name in [each for each in TAKEN if each in rivals()] if args.rivals else ():
        for is_pooled in (False, True):
            start = time.perf_counter()
            each = [theirs(name, *stream, is_pooled) for stream in made.values()]
            show(f"{name}{' pooled' * is_pooled}", each, start)


if __name__ == "__main__":
    main()
