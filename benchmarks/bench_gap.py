"""The gap to boosted trees in the second half of long streams.

    DOMKL_DATA=folder python benchmarks/bench_gap.py [--streams NAME ...] [--seeds N] [--m M]
        [--settings NAME ...] [--days N] [--full]

Prints RMSE over the second half of each stream, pooled over its nodes, of DOMKRLS in the network
and alone (means of the seeds), of the last value, and of LightGBM as a person would use it: one
global model that is refitted every N days on all labels known by then, with the node as a category,
the inputs of DOMKRLS, the last 24 values of the target, its value a day and a week before the
label, the hour and the day of the week. A label counts as known when its time has come. SETTINGS
has the settings of LightGBM; "change" learns the change from the newest value. The ratio is that of
the network to the best of the settings. --full scores all rounds instead, which takes twice as
long.
"""

import argparse
import time

import lightgbm
import numpy as np
import streams

import domkl

GAP = tuple(
    f"{name}, h = {h}".removesuffix("" if "beijing" in name else ", h = 1")
    for name, horizons in {
        "beijing-air": (1, 6, 24),
        "homes, load": (1, 6, 24),
        "homes, sun": (1, 6, 24),
        "parking": (1, 6),
    }.items()
    for h in horizons
)
COMMON = {
    "objective": "regression",
    "verbosity": -1,
    "seed": 1,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "learning_rate": 0.05,
}
SAMPLED = {"feature_fraction": 0.7, "bagging_fraction": 0.7, "bagging_freq": 1}
SETTINGS = {  # parameters, trees, and whether the change from the newest value is learned
    "plain": ({"num_leaves": 31}, 200, False),
    "tuned": ({"num_leaves": 31, "min_data_in_leaf": 100, "lambda_l2": 10, **SAMPLED}, 200, False),
    "change": ({"num_leaves": 31, "min_data_in_leaf": 100, "lambda_l2": 10, **SAMPLED}, 200, True),
}


def columns(made, horizon):
    """LightGBM's inputs (T, K, c); the node is the last of them. NaN where nothing is known yet."""
    newest, rows = made.X[..., made.lag], np.arange(len(made.X))
    step = np.median(np.diff(made.times))
    before = [rows - lag for lag in range(1, 24)]
    for days in (1, 7):
        then = made.times + horizon * step - 24 * days
        before.append(np.searchsorted(made.times, then + 1e-6, "right") - 1)
    lags = [np.where((at >= 0)[:, None], newest[np.maximum(at, 0)], np.nan) for at in before]
    clock = [made.times % 24, made.times // 24 % 7]
    clocks = [np.broadcast_to(each[:, None], newest.shape) for each in clock]
    node = np.broadcast_to(np.arange(newest.shape[1]), newest.shape)
    return np.concatenate([made.X, np.stack([*lags, *clocks, node], axis=-1)], axis=-1)


def boosted(made, horizon, start, setting, days):
    """Predictions (T, K) of LightGBM from the round `start` on, NaN before."""
    parameters, n_trees, is_change = SETTINGS[setting]
    inputs, y = columns(made, horizon), np.asarray(made.y)
    base = made.X[..., made.lag] if is_change else np.zeros(y.shape)
    found, day = np.full(y.shape, np.nan), made.times // (24 * days)
    begins = [start, *(t for t in range(start + 1, len(y)) if day[t] != day[t - 1])]
    for begin, end in zip(begins, [*begins[1:], len(y)], strict=True):
        n_known = begin - horizon + 1  # the label of row s is known in round s + horizon
        target = (y - base)[:n_known]
        is_known = ~np.isnan(target)
        data = lightgbm.Dataset(
            inputs[:n_known][is_known],
            target[is_known],
            categorical_feature=[inputs.shape[2] - 1],
        )
        model = lightgbm.train(COMMON | parameters, data, n_trees)
        part = inputs[begin:end]
        told = model.predict(part.reshape(-1, part.shape[2]), num_threads=1)
        found[begin:end] = base[begin:end] + told.reshape(part.shape[:2])
    return found


def ours(algorithm, made, seed, m, bank):
    features = domkl.RandomFeatures.draw(bank, made.X.shape[2], m, seed=seed)
    graph = made.graph(seed)
    run = domkl.simulate(algorithm, made.X, made.y, graph, features, cv="off", threads=1)
    return run.predictions


def gaps(made, args, bank):
    """RMSE by method, and the seconds that LightGBM took."""
    horizon, y = getattr(made.y, "horizon", 1), np.asarray(made.y)
    start = max(24, horizon + 1) if args.full else len(y) // 2
    steps = np.diff(made.times)
    is_regular = np.allclose(steps, steps[0])
    learner = domkl.DOMKRLS(
        newest_lag=made.lag, period=round(24 / steps[0]) if is_regular else None
    )
    seconds = time.process_time()
    told = {name: [boosted(made, horizon, start, name, args.days)] for name in args.settings}
    seconds = time.process_time() - seconds
    for name, each in {"network": learner, "alone": domkl.Alone(learner)}.items():
        told[name] = [ours(each, made, seed, args.m, bank) for seed in range(args.seeds)]
    told["last value"] = [made.X[..., made.lag]]
    is_scored = ~np.isnan(y) & ~np.isnan(told["network"][0])
    is_scored[:start] = False
    found = {
        name: np.mean([np.sqrt(np.mean((each - y)[is_scored] ** 2)) for each in runs])
        for name, runs in told.items()
    }
    return found, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", nargs="*", default=GAP)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--m", type=int, default=50)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    names = ["network", "alone", "last value", *args.settings]
    print("| stream | " + " | ".join(names) + " | ratio | LightGBM, seconds |")
    print("|---" * (len(names) + 3) + "|")
    ratios = []
    for stream in args.streams:
        made = streams.found(stream)
        if made is None:
            continue
        found, seconds = gaps(made, args, domkl.default_bank())
        ratios.append(found["network"] / min((found[name] for name in args.settings), default=1.0))
        cells = " | ".join(f"{found[name]:.5f}" for name in names)
        print(f"| {stream} | {cells} | {ratios[-1]:.4f} | {seconds:.0f} |", flush=True)
    print(f"\ngeometric mean {np.exp(np.mean(np.log(ratios))):.4f}, worst {max(ratios):.4f}")


if __name__ == "__main__":
    main()
