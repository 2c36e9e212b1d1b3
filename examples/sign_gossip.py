"""An algorithm of your own, for Numba: gossip with steps of constant size.

A step follows the sign of the error, not its size, so that an outlier moves a learner no further
than any other sample. `own_algorithm.py` runs it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import domkl


class State(NamedTuple):
    """What a learner keeps."""

    theta: np.ndarray  # (K, P, D)


class Message(NamedTuple):
    """What it sends."""

    theta: np.ndarray  # (K, P, D)


def predict(state, params, inputs, prediction):
    """The mean of all kernels' predictions."""
    for k in range(len(state.theta)):
        for p in range(state.theta.shape[1]):
            prediction.by_kernel[k, p] = np.dot(state.theta[k, p], inputs.z[k, p])
        prediction.y_hat[k] = prediction.by_kernel[k].mean()


def local_step(state, params, inputs, y, prediction, net, message):
    """A step of size ``params.step`` towards the label."""
    for k in range(len(y)):
        for p in range(state.theta.shape[1]):
            move = params.step * np.sign(y[k] - prediction.by_kernel[k, p])
            message.theta[k, p] = state.theta[k, p] + move * inputs.z[k, p]


def merge(state, params, heard, net):
    """The weighted mean of what the learner and its neighbors sent."""
    state.theta[:] = heard.theta


@dataclass(frozen=True)
class SignGossip(domkl.CompiledAlgorithm):
    """Gossip with sign steps."""

    step: float = 0.05

    law = domkl.Law(State, Message, predict, local_step, merge, exchange={"theta": "metropolis"})

    def init(self, sizes):
        """Begin with zeros."""
        return State(np.zeros(sizes.theta, dtype=sizes.dtype))
