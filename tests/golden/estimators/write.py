"""Wrote the files beside it, with domkl 0.1.0: estimators that later versions must load.

The numbers that each must predict are in `expected.json`. Do not run this again: files that a later
version writes would prove nothing.
"""

import json
from pathlib import Path

import numpy as np

import domkl
from domkl.estimators import river, sklearn

HERE = Path(__file__).parent


def samples():
    X = np.random.default_rng(0).uniform(size=(90, 2))
    return X, np.sin(5 * X[:, 0]) - X[:, 1]


def models():
    """Every kind of file: (name, model, a function that predicts with it)."""
    X, y = samples()
    bank = (domkl.Gaussian(0.5), domkl.Laplacian(1.0), domkl.Linear())
    rows = [{"a": a, "b": b} for a, b in X.tolist()]
    learner = domkl.Learner(domkl.DOMKRLS(), bank=bank, n_frequencies=3).learn(X, y)
    yield "learner", learner
    loss = domkl.Pinball(0.3)
    yield (
        "early",
        domkl.Learner(domkl.DOMKL(rho=1.0, loss=loss), n_frequencies=3).learn(X[:9], y[:9]),
    )
    yield "sklearn-regressor", sklearn.OnlineKernelRegressor(bank=bank, n_frequencies=3).fit(X, y)
    labels = np.where(y > 0, "up", "down")
    yield (
        "sklearn-classifier",
        sklearn.OnlineKernelClassifier(bank=bank, n_frequencies=3).fit(X, labels),
    )
    regressor = river.OnlineKernelRegressor(domkl.Alone(domkl.RFFDOMKL(step=0.1)), n_frequencies=3)
    classifier = river.OnlineKernelClassifier(n_frequencies=3, bank=bank)
    for row, value in zip(rows, y.tolist(), strict=True):
        regressor.learn_one(row, value)
        classifier.learn_one(row, value > 0)
    yield "river-regressor", regressor
    yield "river-classifier", classifier


def predictions(model):
    """Of the first five samples."""
    X, _ = samples()
    rows = [{"a": a, "b": b} for a, b in X[:5].tolist()]
    if hasattr(model, "predict_proba_one"):
        return [model.predict_proba_one(row)[True] for row in rows]
    if hasattr(model, "predict_one"):
        return [model.predict_one(row) for row in rows]
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X[:5])[:, 1].tolist()
    return model.predict(X[:5]).tolist()


if __name__ == "__main__":
    expected = {}
    for name, model in models():
        model.save(HERE / f"{name}.npz")
        expected[name] = predictions(model)
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
