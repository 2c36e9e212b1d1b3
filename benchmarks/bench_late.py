"""Estimators whose labels come late, beside `simulate(delay=…)` on the same rows.

    DOMKL_DATA=... python benchmarks/bench_late.py [--rows 3000] [--prompt]

A forecast h steps ahead from five lags, at two stations of beijing-air also from four weather
inputs; the label of a row is known h − 1 rows after it. RMSE after row 100, in the target's units.
`simulate` gets rows scaled to [0, 1] by their smallest and largest values, estimators get them as
they are: they predict a row, then learn the row whose label has become known. Missing values of the
files are held from the hour before.
"""

import argparse
import csv
import gzip
import os
from collections import deque
from pathlib import Path

import numpy as np

import domkl
from domkl.estimators import river, sklearn

DATA = Path(os.environ.get("DOMKL_DATA", "data"))
WEATHER = ("TEMP", "PRES", "DEWP", "WSPM")
N_LAGS, START, SKIPPED = 5, 1000, 100


def station(name):
    """PM2.5 and the weather of a station, (hours, 5)."""
    path = DATA / f"nodes/beijing-air/PRSA_Data_{name}_20130301-20170228.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        cells = [[row[column] for column in ("PM2.5", *WEATHER)] for row in csv.DictReader(file)]
    values = np.array([[float(c) if c != "NA" else np.nan for c in row] for row in cells])
    for t in range(1, len(values)):
        values[t] = np.where(np.isnan(values[t]), values[t - 1], values[t])
    return values


def traffic():
    return domkl.load_series("traffic").values[:, None]


SERIES = {
    "Dongsi": lambda: station("Dongsi"),
    "Huairou": lambda: station("Huairou"),
    "Traffic": traffic,
}


def rows_of(values, horizon, n_rows):
    """Lags, newest first, and weather, (n, d); the target so many steps ahead of the newest."""
    t = np.arange(START, START + n_rows)
    lags = [values[t - j, 0] for j in range(N_LAGS)]
    return np.column_stack([*lags, values[t, 1:]]), values[t + horizon, 0]


def by_simulate(X, y, delay, newest_lag):
    low, high = X.min(axis=0), X.max(axis=0)
    low[:N_LAGS], high[:N_LAGS] = y.min(), y.max()  # lags in the units of the target
    rows = ((X - low) / (high - low))[:, None]
    labels = ((y - low[0]) / (high[0] - low[0]))[:, None]
    algorithm = domkl.DOMKRLS(newest_lag=newest_lag)
    n_frequencies = min(max(50, 20 * X.shape[1]), 200)  # as estimators have
    features = domkl.RandomFeatures.draw(algorithm.bank(), X.shape[1], n_frequencies, seed=0)
    graph = domkl.Graph.empty(1)
    run = domkl.simulate(algorithm, rows, labels, graph, features, delay=delay, cv="off")
    return run.predictions[:, 0] * (high[0] - low[0]) + low[0]


def late(X, y, delay, predict, learn):
    """Predict every row, then learn the one whose label has come; give the predictions."""
    waiting, found = deque(), []
    for row in zip(X, y, strict=True):
        found.append(predict(row[0]))
        waiting.append(row)
        if len(waiting) > delay:
            learn(*waiting.popleft())
    return np.array(found)


def by_river(X, y, delay, newest_lag):
    names = [f"x{j}" for j in range(X.shape[1])]
    model = river.OnlineKernelRegressor(newest_lag=None if newest_lag is None else "x0")

    def sample(x):
        return dict(zip(names, x.tolist(), strict=True))

    return late(
        X,
        y,
        delay,
        lambda x: model.predict_one(sample(x)),
        lambda x, label: model.learn_one(sample(x), float(label)),
    )


def by_sklearn(X, y, delay, newest_lag):
    model = sklearn.OnlineKernelRegressor(newest_lag=newest_lag)

    def predict(x):
        return model.predict(x[None])[0] if hasattr(model, "learner_") else 0.0

    return late(X, y, delay, predict, lambda x, label: model.partial_fit(x[None], [label]))


def rmse(predictions, y):
    return np.sqrt(np.mean((predictions - y)[SKIPPED:] ** 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--prompt", action="store_true", help="also labels that come at once")
    given = parser.parse_args()
    print("| rows | late | newest_lag | last value | simulate | River | ratio | sklearn | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, make in SERIES.items():
        values = make()
        for delay in (0, 1, 5) if given.prompt else (1, 5):
            X, y = rows_of(values, delay + 1, given.rows)
            for lag in (None, 0):
                ours = rmse(by_simulate(X, y, delay, lag), y)
                found = [rmse(by(X, y, delay, lag), y) for by in (by_river, by_sklearn)]
                shown = [f"{each:.4g} | {each / ours:.3f}" for each in found]
                start = f"| {name} | {delay} | {lag} | {rmse(X[:, 0], y):.4g} | {ours:.4g} |"
                print(start, " | ".join(shown), "|", flush=True)


if __name__ == "__main__":
    main()
