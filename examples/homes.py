"""Homes: forecast the electricity of seventeen homes an hour and a day ahead.

The data do not ship with domkl: `domkl data fetch citylearn-homes` downloads them, or set
DOMKL_DATA to their folder. Without them the example prints a message and ends with code 3.
"""

import sys

import numpy as np
import picture

import domkl

HOURS = 2000
HORIZONS = {1: "an hour ahead", 24: "a day ahead"}


def errors_of(horizon):
    """Root mean squared errors of each home, with network, alone, and of the season before."""
    made = domkl.load_set("citylearn-homes", scale="declared", horizon=horizon)
    X, y = made.X[:HOURS], made.y[:HOURS]
    unit = made.facts["target_divisor"]
    graph = domkl.Graph.circle(X.shape[1])
    features = domkl.RandomFeatures.draw(domkl.default_bank(), X.shape[2], seed=1)
    learner = domkl.DOMKRLS(newest_lag=made.newest_lag)
    runs = {
        "same hour a day ago": domkl.SeasonalNaive(24),
        "alone": domkl.Alone(learner),
        "network": learner,
    }
    found = {}
    for name, algorithm in runs.items():
        run = domkl.simulate(algorithm, X, y, graph, features, cv="off")
        found[name] = unit * picture.rms(run.predictions[200:] - np.asarray(y)[200:], axis=0)
    return found


def main():
    """Draw the errors of all homes at both horizons."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    figure, axes = picture.panels(2, width=9)
    colors = (picture.NAIVE, picture.ALONE, picture.OURS)
    for axis, (horizon, words) in zip(axes, HORIZONS.items(), strict=True):
        try:
            found = errors_of(horizon)
        except domkl.DataError as error:
            print(f"homes need their data: {error}", file=sys.stderr)
            return 3
        order = np.argsort(found["alone"])
        for (name, values), color in zip(found.items(), colors, strict=True):
            axis.plot(values[order], "o-", color=color, label=name, markersize=3, linewidth=1)
            print(f"{words}: {name:20}RMSE {picture.rms(values):.3f} kWh")
        axis.set(
            title=words, xlabel="homes, by the error of the learner alone", ylabel="RMSE (kWh)"
        )
        axis.set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    picture.save(figure, args.out, "homes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
