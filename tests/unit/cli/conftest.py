"""An algorithm of the user's own, in a file in the current folder."""

import sys

import pytest

OWN = """\
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import domkl


class State(NamedTuple):
    theta: np.ndarray  # (K, P, D)


@dataclass(frozen=True)
class Gossip(domkl.Algorithm):
    pace: float = 0.5
    exchange = {"theta": "metropolis"}

    def init(self, sizes):
        return State(np.zeros(sizes.theta, dtype=sizes.dtype))

    def predict(self, state, inputs):
        by_kernel = np.sum(state.theta * inputs.z, axis=-1)
        return domkl.Prediction(by_kernel.mean(axis=1), by_kernel)

    def local_step(self, state, inputs, y, prediction, net):
        error = y[:, None] - prediction.by_kernel
        state = State(state.theta + self.pace * error[:, :, None] * inputs.z)
        return state, state

    def merge(self, state, heard, net):
        return State(heard.theta.copy())


class Needy(Gossip):
    "A parameter of it has no default."

    def __init__(self, pace):
        pass


@dataclass(frozen=True)
class Seeded(Gossip):
    "A parameter of it has the name of a column of a sweep's table."

    seed: int = 3


nothing = 5
"""


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """The current folder, with the file; `sys.path` and `sys.modules` are restored afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_gossip.py").write_text(OWN)
    (tmp_path / "own_broken.py").write_text("import domkl\nthis is no Python\n")
    yield tmp_path
    for name in ("own_gossip", "own_broken"):
        sys.modules.pop(name, None)


@pytest.fixture
def command():
    """A process like the script `domkl`: the current folder is not on its path at first."""
    return [sys.executable, "-P", "-m", "domkl.cli.main"]
