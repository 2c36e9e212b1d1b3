"""What a user's own compiled algorithm costs, against a built-in of the same arithmetic.

    python benchmarks/bench_own.py [--quick]

`Diffusion` below is written as docs/tutorial/own-algorithm.md says, with nothing of the package but
its base classes; RFFDOKL is the built-in. Every repetition measures both in turn and gives a
ratio; results are compared, too.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import domkl
from domkl.algorithms import base

K, D_IN, M = 10, 5, 850  # as many features as DOMKL has with 17 kernels


class State(NamedTuple):
    combined: np.ndarray  # (K, 1, D)


class Message(NamedTuple):
    theta: np.ndarray  # (K, 1, D)


def predict(state, params, inputs, prediction):
    for k in range(len(state.combined)):
        f = np.dot(state.combined[k, 0], inputs.z[k, 0])
        prediction.by_kernel[k, 0] = f
        prediction.y_hat[k] = f


def local_step(state, params, inputs, y, prediction, net, message):
    for k in range(len(y)):
        psi, z, theta = state.combined[k, 0], inputs.z[k, 0], message.theta[k, 0]
        rate = theta.dtype.type(-params.step * 2 * (prediction.y_hat[k] - y[k]))
        for i in range(theta.size):
            theta[i] = psi[i] + rate * z[i]


def merge(state, params, heard, net):
    for k in range(len(state.combined)):
        psi, mean = state.combined[k, 0], heard.theta[k, 0]
        for i in range(psi.size):
            psi[i] = mean[i]


def function(state):
    return state.combined, np.ones((len(state.combined), 1))


@dataclass(frozen=True)
class Diffusion(domkl.CompiledAlgorithm):
    step: float = 0.5

    single_kernel = True
    law = domkl.Law(
        State, Message, predict, local_step, merge, function,
        exchange={"theta": "metropolis"}, room={"theta": "combined"},
    )  # fmt: skip

    def init(self, sizes):
        return State(np.zeros(sizes.theta, dtype=sizes.dtype))


def seconds(algorithm, problem, cv):
    start = time.perf_counter()
    run = domkl.simulate(algorithm, *problem, cv=cv, dtype="float32", threads=1)
    return time.perf_counter() - start, run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds and repetitions")
    options = parser.parse_args()
    base.PATIENCE = 0.0
    n_rounds, n_times = (400, 3) if options.quick else (4000, 9)
    rng = np.random.default_rng(0)
    X, y = rng.random((n_rounds, K, D_IN)), rng.random((n_rounds, K))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank([1.0]), D_IN, M, seed=0)
    problem = X, y, domkl.Graph.random(K, 0.25, seed=0), features
    for cv in ("exact", "off"):
        for algorithm in (Diffusion(), domkl.RFFDOKL()):
            seconds(algorithm, problem, cv)  # compile
        ratios, own_times = [], []
        for _ in range(n_times):
            own, ours = seconds(Diffusion(), problem, cv)
            built_in, theirs = seconds(domkl.RFFDOKL(), problem, cv)
            ratios.append(own / built_in)
            own_times.append(1e6 * own / y.size)
        assert np.allclose(ours.mse, theirs.mse, rtol=1e-3), "the same algorithm"
        low, middle, high = np.quantile(ratios, [0, 0.5, 1])
        print(
            f"cv {cv}: own {np.median(own_times):.2f} us a learner-step;"
            f" own / built-in {middle:.2f} [{low:.2f} .. {high:.2f}] at most 1.1",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
