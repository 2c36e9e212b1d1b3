"""DOMKRLS on streams that no choice in it was made on: python benchmarks/bench_unseen.py

MSE x 100 after the first 100 rounds, K = 10 learners, connection probability 0.25, rows dealt in
turn. Needs DOMKL_DATA for the weather and air quality files, and scikit-learn.
"""

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2

import domkl

N_TRIALS = 4
AT_MOST = 20_000  # samples


def made_up(make, **options):
    X, y = make(6000, random_state=0, **options)
    return domkl.scaled(X, "minmax").values, domkl.scaled(y, "minmax").values


def random_walk():
    """Labels that the inputs say nothing about, and the last label nearly everything."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=8000))
    return rng.random((8000, 4)), domkl.scaled(walk, "minmax").values


def known(name, **options):
    made = domkl.load_set(name, **options)
    return made.X, made.y


STREAMS = {
    "weather, next minimum": (lambda: known("weather", target="Next_Tmin"), None),
    "weather, clean, min-max": (lambda: known("weather", rule="clean", scale="minmax"), None),
    "air quality, clean, min-max": (
        lambda: known("air-quality", rule="clean", scale="minmax"),
        None,
    ),
    "traffic, clean": (lambda: known("traffic", rule="clean"), 0),
    "temperature, clean": (lambda: known("temperature", rule="clean"), 0),
    "Friedman 1": (lambda: made_up(make_friedman1, noise=1.0), None),
    "Friedman 2": (lambda: made_up(make_friedman2, noise=50.0), None),
    "random walk, blind inputs": (random_walk, None),
}


def late(algorithm, X, y, n_trials):
    seeds = range(1000, 1000 + n_trials)
    graphs = [domkl.Graph.random(10, 0.25, seed=seed) for seed in seeds]
    maps = [
        domkl.RandomFeatures.draw(domkl.default_bank(), X.shape[2], 50, seed=seed) for seed in seeds
    ]
    run = domkl.simulate(algorithm, X, y, graphs, maps, cv="off")
    return 100 * run.squared_errors[:, 100:].mean()


def main():
    print(
        "| stream | DOMKRLS | alone | linear RLS alone | last value | over the better of the two |"
    )
    print("|---|---|---|---|---|---|")
    for name, (make, newest_lag) in STREAMS.items():
        X, y = domkl.deal(*(values[:AT_MOST] for values in make()), 10)
        learner = domkl.DOMKRLS(newest_lag=newest_lag)
        ours = late(learner, X, y, N_TRIALS)
        alone = late(domkl.Alone(learner), X, y, N_TRIALS)
        linear, last = (
            late(algorithm, X, y, 1)
            for algorithm in (domkl.LinearRLS(), domkl.LastValue(newest_lag))
        )
        cells = [ours, alone, linear, last, ours / min(linear, last)]
        print(f"| {name} | " + " | ".join(f"{cell:.3g}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
