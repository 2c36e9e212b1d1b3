"""An algorithm of your own, compiled: sign steps against outliers.

`sign_gossip.py` has the algorithm, fifty lines for Numba. It is compared with two algorithms of
the package on a stream with five percent of outliers; errors are relative to the true function.
"""

import numpy as np
import picture
from sign_gossip import SignGossip

import domkl

ROUNDS, LEARNERS, WINDOW = 3000, 10, 200


def main():
    """Run three algorithms on the same samples; draw their errors."""
    args = picture.options(__doc__.splitlines()[0]).parse_args()
    rng = np.random.default_rng(1)
    X = rng.random((ROUNDS, LEARNERS, 2))
    truth = np.sin(6 * X[..., 0]) * X[..., 1]
    wild = rng.random(truth.shape) < 0.05
    y = truth + rng.normal(0, 0.05, truth.shape) + wild * rng.normal(0, 10, truth.shape)
    graph = domkl.Graph.random(LEARNERS, 0.3, seed=1)
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([0.1, 1.0]), 2, seed=1)
    algorithms = {
        "DOMKL": (domkl.DOMKL(), picture.NAIVE),
        "DOMKL, Huber's loss": (domkl.DOMKL(loss=domkl.Huber(0.1)), picture.OTHER),
        "sign gossip, our own": (SignGossip(), picture.OURS),
    }
    figure, axis = picture.panels()
    for name, (algorithm, color) in algorithms.items():
        run = domkl.simulate(algorithm, X, y, graph, features, cv="off", interpreted=False)
        by_round = picture.rms(run.predictions - truth, axis=1)
        axis.plot(
            np.arange(WINDOW, ROUNDS + 1),
            picture.moving_rms(by_round, WINDOW),
            color=color,
            label=name,
        )
        print(f"{name:22}RMSE of the last {WINDOW} rounds {picture.rms(by_round[-WINDOW:]):.3f}")
    axis.set(xlabel="rounds", ylabel="RMSE against the true function", yscale="log")
    axis.legend(frameon=False)
    picture.save(figure, args.out, "own_algorithm")


if __name__ == "__main__":
    main()
