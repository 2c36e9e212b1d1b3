"""What seasons are worth to DOMKRLS: RMSE over that of the same law without.

    DOMKL_DATA=folder DOMKL_PARKING=file python benchmarks/bench_seasons.py [--seeds N] [--rounds N]

Streams are homes, stations, car parks and made ones with two peaks a day. "Given" is a period of 24
hours, "found" what learners find in their own labels. Over all rounds, and in the second half.
"""

import argparse

import numpy as np
import streams

import domkl

M = 30


def two_peaks(horizon, n_rounds=3000, n_learners=10):
    """Loads with a peak in the morning and one in the evening, weekends, and noise that lasts."""
    generator, t = np.random.default_rng(0), np.arange(n_rounds + 60)
    hour, is_weekend, made = t % 24, t // 24 % 7 >= 5, []
    for _ in range(n_learners):
        places = np.array([7, 18]) + 0.7 * generator.normal(size=2)
        sizes = np.array([1, 1.3]) + 0.3 * generator.normal(size=2)
        peaks = sizes * np.exp(-(((hour[:, None] - places) / [1.5, 2]) ** 2))
        level = np.where(is_weekend, 0.5 + 0.2 * generator.random(), 1.0) * peaks.sum(axis=1)
        noise = 0.12 * generator.normal(size=len(t))
        for i in range(1, len(t)):
            noise[i] += 0.8 * noise[i - 1]
        made.append((level + noise + 0.3) / 3)
    X, y = streams.lagged(np.array(made).T, streams.circle(hour), horizon)
    return streams.Stream(X[:n_rounds], y[:n_rounds], 0)


STREAMS = {
    **{f"two peaks a day, h = {h}": lambda h=h: two_peaks(h) for h in (1, 6, 24)},
    **{
        name: streams.STREAMS[name]
        for name in streams.STREAMS
        if name.startswith(("homes", "beijing-air", "stops"))
    },
}


def rms(errors):
    return float(np.sqrt(np.nanmean(errors**2)))


def ratios(made, n_rounds, seed):
    """(Given, found) over without: all rounds, second half."""
    X, y = made.X[:n_rounds], made.y[:n_rounds]
    features = domkl.RandomFeatures.draw(domkl.default_bank(), X.shape[2], M, seed=seed)
    errors = {}
    for period in (0, 24, None):
        learner = domkl.DOMKRLS(newest_lag=made.lag, period=period)
        run = domkl.simulate(learner, X, y, made.graph(seed), features, cv="off")
        errors[period] = run.predictions - np.asarray(y)
    parts = slice(None), slice(len(y) // 2, None)
    return [rms(errors[p][part]) / rms(errors[0][part]) for p in (24, None) for part in parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2500)
    args = parser.parse_args()
    print("| stream | given | second half | found | second half |\n|---|---|---|---|---|")
    rows = []
    for name, make in STREAMS.items():
        try:
            made = make()
        except (KeyError, OSError, domkl.DomklError) as why:
            print(f"{name} left out: {why}", flush=True)
            continue
        rows.append(np.mean([ratios(made, args.rounds, s) for s in range(args.seeds)], axis=0))
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in rows[-1]) + " |", flush=True)
    means = np.exp(np.mean(np.log(rows), axis=0))
    print("| geometric mean | " + " | ".join(f"{value:.4f}" for value in means) + " |")
    print("| worst | " + " | ".join(f"{value:.4f}" for value in np.max(rows, axis=0)) + " |")


if __name__ == "__main__":
    main()
