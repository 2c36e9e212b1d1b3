"""What the ranks run in test_run.py: python mpi_ranks.py CASE FOLDER."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "support"))

from half_speech import HALF

import domkl
from domkl.sim.mpi.run import simulate_sharded
from domkl.sim.mpi.world import WORLD

ALGORITHMS = {
    "domkl": (domkl.DOMKL(), {"cv": "moments"}),
    "domkl float32": (domkl.DOMKL(loss=domkl.Huber(0.2)), {"dtype": "float32", "threads": 2}),
    "dokl": (domkl.DOKL(), {}),
    "rff-domkl": (domkl.RFFDOMKL(), {"cv": "moments"}),
    "rff-dokl": (domkl.RFFDOKL(), {"dtype": "float32"}),
    "domkrls": (domkl.DOMKRLS(forget=0.99), {"cv": "moments"}),
    "domkrls float32": (domkl.DOMKRLS(), {"dtype": "float32"}),
    "alone": (domkl.Alone(domkl.DOMKL()), {}),
    "linear-rls": (domkl.LinearRLS(), {}),
    "domkl that rounds": (domkl.DOMKL(), {"speech": HALF, "cv": "moments"}),
    "rff-domkl that rounds": (domkl.RFFDOMKL(), {"speech": HALF}),
}


def problem(algorithm, n_rounds=23):
    """Learner 5 knows nobody."""
    drawn = domkl.Graph.sparse(41, 4, seed=2)
    graph = domkl.Graph.from_edges(41, drawn.edges[(drawn.edges != 5).all(axis=1)])
    rng = np.random.default_rng(3)
    X, y = rng.random((n_rounds, 41, 3)), rng.random((n_rounds, 41))
    bank = domkl.gaussian_bank([1.0] if algorithm.single_kernel else [0.01, 1.0, 100.0])
    features = domkl.RandomFeatures.draw(bank, 3, 7, seed=0, linear=not algorithm.single_kernel)
    return X, y, graph, features


def equal(folder):
    """Keep what each rank has, for all algorithms, by arrays and by an iterator in two runs."""
    for name, (algorithm, options) in ALGORITHMS.items():
        X, y, graph, features = problem(algorithm)

        def rounds(learners, start=0, stop=None, X=X, y=y):
            return zip(X[start:stop, learners], y[start:stop, learners], strict=True)

        run = simulate_sharded(algorithm, X, y, graph, features, keep_predictions=True, **options)
        keep(folder, name, run)
        half = simulate_sharded(
            algorithm, lambda own, r=rounds: r(own, 0, 10), None, graph, features, **options
        )
        rest = simulate_sharded(
            algorithm,
            lambda own, r=rounds: r(own, 10),
            None,
            graph,
            features,
            state=half.state,
            **options,
        )
        for whole, other in zip(run.state, rest.state, strict=True):
            np.testing.assert_array_equal(whole, other)


def keep(folder, name, run):
    state = {f"state.{field}": values for field, values in run.state._asdict().items()}
    np.savez(
        folder / f"{name} {WORLD.rank}.npz",
        learners=run.learners,
        mse=run.mse,
        cv=run.cv,
        predictions=run.predictions,
        **state,
    )


def refused(folder):
    """Errors before the first round are raised on all ranks."""
    X, y, graph, features = problem(domkl.DOMKL())
    last = WORLD.size - 1

    def bad_on_one(learners):
        return X[: 20 + (WORLD.rank == last), learners], y[: 20 + (WORLD.rank == last), learners]

    def infinite_on_one(learners):
        return X[:, learners] * (np.inf if WORLD.rank == last else 1), y[:, learners]

    cases = {
        "COMKL, whose gradient is delivered by 'total'": {"algorithm": domkl.COMKL()},
        "DOMKL, whose loss is delivered by 'edge'": {
            "algorithm": domkl.DOMKL(weights="message-passing"),
            "graph": domkl.Graph.tree(41),
        },
        "cv must be one of off, moments": {"cv": "sampled"},
        "cv must be 'off' for LinearRLS": {"algorithm": domkl.LinearRLS(), "cv": "moments"},
        "whether there is a folder must be the same": {"folder": folder if WORLD.rank else None},
        "graph must have a learner for each": {"graph": domkl.Graph.empty(1)},
        "part must give learners to each": {"part": np.zeros(41, dtype=int)},
        "number of rounds must be the same on all ranks": {"X": bad_on_one, "y": None},
        "finite": {"X": infinite_on_one, "y": None},
        "graph, features and dtype must be the same": {
            "dtype": "float32" if WORLD.rank == last else "float64"
        },
        "X and y must have shapes": {"y": y[:, :3]},
        "X must be a function": {"y": None},
        "state must come from": {"state": (1, 2)},
        "keep_predictions must be False": {"keep_predictions": True, "folder": folder},
    }
    given = {"algorithm": domkl.DOMKL(), "X": X, "y": y, "graph": graph, "features": features}
    for text, changed in cases.items():
        with pytest.raises(domkl.DomklError, match=text):
            simulate_sharded(**{**given, **changed})
    print(f"rank {WORLD.rank} refused {len(cases)}", flush=True)


def dying(how):
    def case(folder):
        """Rank 1 fails in round 17; the folder keeps what all had after 15."""
        X, y, graph, features = problem(domkl.DOMKL())

        def rounds(learners):
            for t in range(len(y)):
                if t == 17 and WORLD.rank == 1:
                    if how == "raises":
                        raise OSError("the sensor is gone")
                    if how == "ends":
                        return
                    os.kill(os.getpid(), signal.SIGKILL)
                yield X[t, learners], y[t, learners]

        simulate_sharded(domkl.DOMKL(), rounds, None, graph, features, folder=folder, every=5)

    return case


def going_on(folder):
    """Only rounds from 15 on are run; the whole curve is there, also when nothing is left."""
    X, y, graph, features = problem(domkl.DOMKL())
    seen = []
    for _ in range(2):
        run = simulate_sharded(
            domkl.DOMKL(), X, y, graph, features, folder=folder, every=5, progress=seen.append
        )
    assert seen == (list(range(16, 24)) if WORLD.rank == 0 else [])
    run = simulate_sharded(domkl.DOMKL(), X, y, graph, features, keep_predictions=True)
    again = simulate_sharded(domkl.DOMKL(), X, y, graph, features, folder=folder)
    np.testing.assert_array_equal(run.mse, again.mse)
    for whole, other in zip(run.state, again.state, strict=True):
        np.testing.assert_array_equal(whole, other)
    with pytest.raises(domkl.DataError, match="another folder"):
        simulate_sharded(domkl.DOMKL(rho=1.0), X, y, graph, features, folder=folder)
    print("went on", flush=True)


CASES = {
    "equal": equal,
    "refused": refused,
    "raises": dying("raises"),
    "killed": dying("killed"),
    "ends": dying("ends"),
    "going on": going_on,
}

if __name__ == "__main__":
    CASES[sys.argv[1]](Path(sys.argv[2]))
