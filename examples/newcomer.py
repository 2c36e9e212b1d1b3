"""A newcomer: a car park joins a network that has learned for weeks.

Until it joins it has no samples. It then takes over what its neighbors know. It is compared with
the same learner alone, which begins with nothing, and with the last value. Forecasts are half an
hour ahead; the errors are means over eight car parks, each of which is the newcomer once.
"""

import numpy as np
import picture

import domkl

JOINS, ROUNDS, N_NEWCOMERS = 1000, 2000, 8
WINDOWS = ((0, 12), (12, 24), (24, 48), (48, 96), (96, 192))  # samples since it joined


def first_errors(algorithm, X, y, newcomer):
    """Squared errors of the newcomer's first samples, when it joins after JOINS rounds."""
    X, y = X.copy(), np.array(y)
    X[:JOINS, newcomer], y[:JOINS, newcomer] = np.nan, np.nan
    graph = domkl.Graph.circle(X.shape[1])
    features = domkl.RandomFeatures.draw(domkl.default_bank(), X.shape[2], seed=1)
    run = domkl.simulate(algorithm, X, y, graph, features, cv="off")
    errors = (run.predictions - y)[JOINS:, newcomer] ** 2
    return errors[~np.isnan(errors)][: WINDOWS[-1][1]]


def main():
    """Let eight car parks join, one at a time; draw their errors since then."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    made = domkl.load_set("parking", scale="declared", horizon=1)
    X, y = made.X[:ROUNDS], np.asarray(made.y)[:ROUNDS]
    learner = domkl.DOMKRLS(newest_lag=made.newest_lag)
    algorithms = {
        "last value": (domkl.LastValue(newest_lag=made.newest_lag), picture.NAIVE),
        "alone": (domkl.Alone(learner), picture.ALONE),
        "newcomer in the network": (learner, picture.OURS),
    }
    n_samples = np.isfinite(y[JOINS:] + X[JOINS:].sum(axis=2)).sum(axis=0)
    newcomers = np.flatnonzero(n_samples >= WINDOWS[-1][1])[:N_NEWCOMERS]
    figure, axis = picture.panels()
    for name, (algorithm, color) in algorithms.items():
        errors = [first_errors(algorithm, X, y, k) for k in newcomers]
        values = [np.sqrt(np.mean([e[a:b].mean() for e in errors])) for a, b in WINDOWS]
        axis.plot(values, "o-", color=color, label=name)
        print(f"{name:24}RMSE of its first {WINDOWS[0][1]} samples {values[0]:.4f}")
    axis.set_xticks(range(len(WINDOWS)), [f"{a + 1} to {b}" for a, b in WINDOWS])
    axis.set(xlabel="samples since it joined", ylabel="RMSE (share of its places)")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False)
    picture.save(figure, args.out, "newcomer")


if __name__ == "__main__":
    main()
