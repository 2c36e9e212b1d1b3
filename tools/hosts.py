"""Compare the hosts of the domkl that is installed, to the bit: python tools/hosts.py

Every registered algorithm learns 30 rounds interpreted, compiled and blocked, in float64; one
learner by itself does what the simulator does. Prints the versions, the seconds of processor
time, and a digest of all numbers. tools/dist.py runs it with other versions of Numba: these must be
able to compile every law, and a second process must come to the same digest with stored binaries.
"""

import hashlib
import time
from typing import Any

import llvmlite
import numba
import numpy as np

import domkl
from domkl.algorithms import base
from domkl.algorithms.registry import ALGORITHMS
from domkl.learner.local import LocalLearner

N_ROUNDS, N_LEARNERS, N_INPUTS = 30, 5, 3
HOSTS: dict[str, dict[str, Any]] = {
    "interpreted": {"interpreted": True},
    "compiled": {},
    "blocked": {"cv": "sampled", "threads": 1},
}


def numbers(run: domkl.Run) -> dict[str, Any]:
    """What hosts must agree on: predictions, errors, and the state."""
    return {"predictions": run.predictions, "mse": run.mse} | run.state._asdict()


def compare(name: str, made: dict[str, Any], first: dict[str, Any]) -> None:
    """Raise AssertionError where numbers differ from those of the first host."""
    for field, values in first.items():
        np.testing.assert_array_equal(made[field], values, err_msg=f"{name}: {field}")


def check_hosts(name: str) -> bytes:
    """Run one algorithm in all hosts; the bytes that they agree on."""
    algorithm = ALGORITHMS[name].make()
    rng = np.random.default_rng(1)
    X = rng.random((N_ROUNDS, N_LEARNERS, N_INPUTS))
    y = np.sin(3 * X[..., 0]) + 0.1 * rng.standard_normal(X.shape[:2])
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.1, 1.0, 10.0])
    features = domkl.RandomFeatures.draw(
        bank, N_INPUTS, 7, seed=0, linear=not algorithm.single_kernel
    )
    graph = domkl.Graph.ring(N_LEARNERS)
    found = {
        host: numbers(domkl.simulate(algorithm, X, y, graph, features, **options))
        for host, options in HOSTS.items()
    }
    for host, made in found.items():
        compare(f"{name} {host}", made, found["interpreted"])
    return b"".join(np.asarray(values).tobytes() for values in found["compiled"].values())


def check_learner() -> None:
    """One learner without neighbors predicts as the simulator does."""
    rng = np.random.default_rng(2)
    X, y = rng.random((N_ROUNDS, 1, N_INPUTS)), rng.random((N_ROUNDS, 1))
    features = domkl.RandomFeatures.draw(domkl.gaussian_bank(), N_INPUTS, 7, seed=0)
    learner = LocalLearner(domkl.DOMKRLS(), features)
    said = [learner.learn(x[0], float(label[0])).y_hat[0] for x, label in zip(X, y, strict=True)]
    run = domkl.simulate(domkl.DOMKRLS(), X, y, domkl.Graph.empty(1), features, interpreted=True)
    np.testing.assert_array_equal(said, run.predictions[:, 0])


def main() -> None:
    """Check all, and print one line."""
    base.PATIENCE = 0.0  # small as they are, these runs are to be compiled
    digest = hashlib.sha256()
    for name in ALGORITHMS:
        digest.update(check_hosts(name))
    check_learner()
    print(
        f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, numpy {np.__version__}:"
        f" {len(ALGORITHMS)} algorithms, {len(HOSTS)} hosts,"
        f" {time.process_time():.0f} s of processor, digest {digest.hexdigest()[:12]}"
    )


if __name__ == "__main__":
    main()
