"""Many rounds of one trial in one compiled call: the fast host of the paper's algorithms.

What a round does stands elsewhere and once: the maps in core/fourier.py, the laws in core/laws.py.
Here is only the order, the same as in sim/engine.py: map, predict, measure, step, exchange, merge.
Interpreted, a round costs some thirty microseconds besides its work; here nothing, so that one
trial at a time can run, and its state stays in the core's own cache.
"""

from typing import NamedTuple

import numpy as np

from domkl.core.exchange import neighbor_sum, total_sum, weighted_mean
from domkl.core.fourier import fourier_features, linear_features
from domkl.core.jit import sweep
from domkl.core.laws import (
    ADMM,
    DIFFUSION,
    LEAST_SQUARES,
    Chain,
    consensus_exchange,
    consensus_local,
    diffusion_local,
    diffusion_merge,
    server_local,
    server_merge,
    weigh,
)
from domkl.core.least_squares import least_squares_local, least_squares_merge
from domkl.core.predict import combined_predictions, pair_gaps
from domkl.typing import Array, Floats, Ints


class Wires(NamedTuple):
    """A trial's network."""

    indptr: Ints
    indices: Ints
    weight: Floats  # (E,)  Metropolis
    degree: Floats
    component: Ints  # of the graph that the metrics see
    span: int  # learners that a total spans


class Map(NamedTuple):
    """A trial's features."""

    turns: Floats  # (1, d, P·M)
    n_frequencies: int
    linear: bool


class Rows(NamedTuple):
    """Where the rounds are recorded, (T, K) each; the last two only where CV is measured."""

    predictions: Floats
    spread: Floats
    inside: Floats


@sweep
def play(
    chain: Chain,
    x: Floats,
    y: Floats,
    wires: Wires,
    features: Map,
    rows: Rows,
    is_measured: bool,
    block: int,
) -> None:
    """Run the rounds x (T, K, d), y (T, K); the chain's arrays are the state, and are written.

    The features of ``block`` rounds are made together: four learners share each load of the
    frequencies, and few of a small network's rows are left over.
    """
    n_rounds, n_learners, n_inputs = x.shape
    _, n_kernels, n_features = chain.theta.shape
    z_block = np.zeros((1, block * n_learners, n_kernels, n_features), chain.theta.dtype)
    energy_block = np.ones((1, block * n_learners, n_kernels))
    heard = np.empty_like(chain.theta)
    heard_loss = np.empty_like(chain.loss)
    f = np.empty((n_learners, n_kernels))
    for start in range(0, n_rounds, block):
        stop = min(start + block, n_rounds)
        inputs = x[start:stop].reshape((stop - start) * n_learners, n_inputs)
        fourier_features(inputs, features.turns, z_block, features.n_frequencies)
        if features.linear:
            linear_features(inputs, z_block, energy_block)
        for t in range(start, stop):
            first = (t - start) * n_learners
            z = z_block[0, first : first + n_learners]
            energy = energy_block[0, first : first + n_learners]
            is_combined = chain.family in (DIFFUSION, LEAST_SQUARES)
            function = chain.second if is_combined else chain.theta
            combined_predictions(rows.predictions[t], f, function, chain.weights, z)
            if is_measured:
                pair_gaps(
                    rows.spread[t],
                    rows.inside[t],
                    function,
                    chain.weights,
                    z,
                    wires.component,
                    n_learners,
                )
            _learn(chain, z, energy, f, y[t], wires, heard, heard_loss)


@sweep
def _learn(
    chain: Chain,
    z: Array,
    energy: Floats,
    f: Floats,
    y: Floats,
    wires: Wires,
    heard: Array,
    heard_loss: Floats,
) -> None:
    indptr, indices = wires.indptr, wires.indices
    if chain.family == ADMM:
        consensus_local(chain, z, energy, f, y, wires.degree)
        consensus_exchange(chain, indptr, indices, wires.degree)
        neighbor_sum(heard_loss, chain.loss, indptr, indices)
        weigh(chain, heard_loss)
    elif chain.family == DIFFUSION:
        diffusion_local(chain, z, f, y)
        weighted_mean(heard, chain.theta, chain.theta, indptr, indices, wires.weight)
        diffusion_merge(chain, heard)
        neighbor_sum(heard_loss, chain.loss, indptr, indices)
        weigh(chain, heard_loss)
    elif chain.family == LEAST_SQUARES:
        least_squares_local(chain, z, y)
        weighted_mean(heard, chain.theta, chain.theta, indptr, indices, wires.weight)
        weighted_mean(heard_loss, chain.loss, chain.loss, indptr, indices, wires.weight)
        least_squares_merge(chain, heard, heard_loss)
    else:
        loss = np.zeros_like(chain.loss)
        server_local(chain, z, f, y, loss)
        total_sum(heard, chain.second, wires.span)
        total_sum(heard_loss, loss, wires.span)
        server_merge(chain, heard, heard_loss, float(wires.span))
