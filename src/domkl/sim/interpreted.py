"""The interpreted host: the round loop in Python, for any algorithm and several trials at once.

map, predict, measure, step, exchange, merge. The compiled and the blocked host call the same laws
in orders of their own, and agree with this one to the bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm, Inputs, Prediction, merged
from domkl.core.features import FeatureStack
from domkl.errors import ParameterError
from domkl.learner.late import Sample
from domkl.sim.cells import Cell, Network, Records, quantile_name
from domkl.sim.cv import Disagreement
from domkl.sim.delay import queue_of, waiting_of
from domkl.sim.inputs import Stream
from domkl.speech.base import Voice
from domkl.typing import Floats

#: learns a round, inputs (K, d) and labels (K,); gives the states of all learners after it, and
#: what they gave out as predictions (K,), NaN where that is what their states predict
Step = Callable[[Floats, Floats], tuple[Any, Floats]]


def run_cell(
    cell: Cell, stream: Stream, after_rounds: Callable[[int], None], step: Step | None = None
) -> None:
    """Run every round of the stream, from the cell's state or from the beginning.

    Rounds of a cell with one trial can be learned elsewhere, by ``step``.
    """
    algorithm, network, options = cell.algorithm, cell.network, cell.options
    stack, first, delay = FeatureStack(cell.maps), cell.maps[0], cell.options.delay
    n_trials, n_learners = network.n_trials, network.n_learners
    records = Records(cell)
    disagreement = Disagreement(cell, records)
    z, energy = first.empty(n_trials, n_learners, options.dtype)
    x_all = np.empty((n_trials, n_learners, first.n_inputs))
    y_all = np.empty((n_trials, n_learners))
    inputs, y = Inputs(_joined(x_all), _joined(z), _joined(energy)), y_all.ravel()
    state = cell.first_state() if cell.state is None else cell.state
    queue, voice = queue_of(cell.waiting), Voice(options.speech)
    levels = np.array(options.levels)
    for x_round, y_round in stream.rounds():
        if algorithm.uses_features:
            stack.write(x_round, z, energy)
        x_all[:] = x_round
        prediction = algorithm.predict(state, inputs)
        if np.shape(prediction.y_hat) != y.shape:
            raise ParameterError(
                f"predict must give y_hat of shape {y.shape}, got {np.shape(prediction.y_hat)}"
            )
        disagreement.update(state, inputs.z.__getitem__, (inputs, prediction))
        if records.keeps("deviation"):
            found = algorithm.deviation(state, inputs, prediction)
            records.row("deviation")[:] = _given(found, "deviation must be False", algorithm)
        if options.levels:
            found = algorithm.quantiles(state, inputs, prediction, levels)
            known = _given(found, "quantiles must be None", algorithm)
            for level, column in zip(options.levels, known.T, strict=True):
                records.row(quantile_name(level))[:] = column
        y_hat, after = prediction.y_hat, state
        if step is not None:
            after, given = step(x_round, y_round)
            y_hat = np.where(np.isnan(given), y_hat, given)
        records.row("predictions")[:] = y_hat
        records.row("targets").reshape(y_all.shape)[:] = y_round
        records.end_rounds()
        late: Sample | None = Sample(x_round, y_round, *prediction)
        if delay:
            queue.add(Sample.copied(x_round, y_round, prediction))
            late = queue.take(delay)
        if step is not None:
            state = after
        elif late is not None:
            y_all[:] = late.y
            if delay:  # the features of the sample whose label has come
                x_all[:] = late.x
                if algorithm.uses_features:
                    stack.write(late.x, z, energy)
            state = learn(algorithm, state, inputs, y, late.prediction, network, voice)
        after_rounds(n_trials)
    cell.state, cell.records, cell.sampled = state, records, disagreement.sampled()
    if delay:
        cell.waiting = waiting_of(queue)


def learn(
    algorithm: Algorithm,
    state: Any,
    inputs: Inputs,
    y: Floats,
    prediction: Prediction,
    network: Network,
    voice: Voice,
) -> Any:
    """Learn the labels of inputs that were predicted, exchange, merge; give the next state."""
    state, message = algorithm.local_step(state, inputs, y, prediction, network.net)
    said = voice.say(message)
    heard = network.deliver(algorithm, message, said)
    return merged(algorithm, state, heard, network.net, None if said is message else said)


def _given(found: Floats | None, rule: str, algorithm: Algorithm) -> Floats:
    if found is None:
        raise ParameterError(f"{rule} for {type(algorithm).__name__}: it has no deviations")
    return found


def _joined(values: Any) -> Any:
    """Trials and learners on one axis: a view."""
    return values.reshape(-1, *values.shape[2:])
