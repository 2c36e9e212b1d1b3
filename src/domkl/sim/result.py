"""What a simulation gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from domkl.algorithms.base import Algorithm
from domkl.core.losses import Loss
from domkl.errors import ParameterError
from domkl.metrics.curves import running_average
from domkl.metrics.quantiles import pinball_loss
from domkl.sim.cells import Cell, quantile_name
from domkl.sim.delay import Delayed, joined_waiting
from domkl.typing import Array, Floats, Ints


@dataclass(frozen=True)
class Run:
    """The result of one trial; for several trials, every array has a leading trial axis.

    Attributes
    ----------
    mse, cv : (T,)
        Running averages as the paper's text defines them, over all K learners of the graph,
        connected or not. `with_paper_start` puts MSE(1) = CV(1) = 1 in. ``cv`` is NaN when off.
    cv_mode : "exact", "moments", "sampled" or "off"
    cv_error : (T,)
        Standard error of a sampled ``cv``; 0 when exact, NaN when off.
    predictions : (T, K) or None
    theta : (K, P, D) or None
        Final θ, a view of the state's; of DOMKRLS, whose state has none, that of its mixture of
        fits; None for an algorithm without θ. Of the diffusion ones this is θ as the last step left
        it; they predict with ψ, which is ``state.combined``.
    weights : (K, P) or None
        Final combination of the kernels.
    loss
        The loss of the algorithm; None if it has none.
    state
        The final state, a NamedTuple of arrays over all trials' learners. Pass it to `simulate`
        to go on from there; ``numpy.savez(file, **run.state._asdict())`` keeps it. With a delay, a
        pair of it and of what waits for its labels.
    component : (K,)
        The number of each learner's connected component.
    discrepancy : (T, K) or None
        [Σ_{ℓ∈N_k} f_k(x_k) − f_ℓ(x_k)]² of each round, when asked for: what regret_d sums.
    deviation : (T, K) or None
        Standard deviation of each prediction, when asked for: where the label is expected.
    quantiles : (T, K, J) or None
        Quantiles of each label, of the J levels that were asked for.
    levels : (J,) or None
        These levels.
    """

    mse: Floats
    cv: Floats
    cv_mode: str
    cv_error: Floats
    predictions: Floats | None
    theta: Array | None
    weights: Floats | None
    loss: Loss | None
    state: Any
    component: Ints
    discrepancy: Floats | None
    deviation: Floats | None
    quantiles: Floats | None
    levels: Floats | None
    targets: Floats | None = field(repr=False)  # (T, K), of all trials; and what CV sums:
    pair_sums: Floats | None = field(repr=False)  # Σ_ℓ (f_k(x_k) − f_ℓ(x_k))² over the trial
    component_sums: Floats | None = field(repr=False)  # and over k's component

    @cached_property
    def squared_errors(self) -> Floats | None:
        """(f_k(x_k) − y_k)² of every round and learner, (T, K)."""
        if self.predictions is None or self.targets is None:
            return None
        return np.asarray((self.predictions - self.targets) ** 2)

    @cached_property
    def learner_mse(self) -> Floats | None:
        """Each learner's own running average of squared errors, (T, K)."""
        errors = self.squared_errors
        return None if errors is None else running_average(errors, axis=-2)

    @cached_property
    def learner_cv(self) -> Floats | None:
        """Each learner's own running average of squared differences to the others, (T, K)."""
        if self.pair_sums is None:
            return None
        n_partners = max(self.pair_sums.shape[-1] - 1, 1)
        return running_average(self.pair_sums / n_partners, axis=-2)

    @cached_property
    def pinball(self) -> Floats | None:
        """Mean pinball loss of each quantile over all rounds and learners, (J,).

        Twice the mean over evenly spaced levels approximates the CRPS. Rounds in which nothing was
        known yet, and quantiles are infinite, count for nothing.
        """
        if self.quantiles is None or self.levels is None or self.targets is None:
            return None
        losses = pinball_loss(self.targets, self.quantiles, self.levels)
        return np.asarray(np.nanmean(losses, axis=(-3, -2)))

    @cached_property
    def component_mse(self) -> Floats | None:
        """MSE(t) within each component, (T, C); NaN where a trial has fewer components."""
        return _by_component(self.squared_errors, self.component, np.ones_like)

    @cached_property
    def component_cv(self) -> Floats | None:
        """CV(t) within each component, (T, C); NaN where a trial has fewer components."""
        return _by_component(
            self.component_sums, self.component, lambda size: np.maximum(size - 1, 1)
        )

    def only(self, rounds: Ints) -> "Run":
        """Keep these rounds."""
        curves = {f: getattr(self, f)[..., rounds] for f in ("mse", "cv", "cv_error")}
        names = ("predictions", "discrepancy", "deviation", "targets", "pair_sums")
        kept = {f: getattr(self, f) for f in (*names, "component_sums")}
        kept = {f: None if each is None else each[..., rounds, :] for f, each in kept.items()}
        quantiles = None if self.quantiles is None else self.quantiles[..., rounds, :, :]
        return replace(self, **curves, **kept, quantiles=quantiles)

    def __repr__(self) -> str:
        mse, cv = np.mean(self.mse[..., -1]), np.mean(self.cv[..., -1])
        trials = f"{len(self.mse)} trials, " if self.mse.ndim == 2 else ""
        return f"Run({trials}{self.mse.shape[-1]} rounds, mse={mse:.4g}, cv={cv:.4g})"


def collect(cells: list[Cell], blind: list[list[int]], is_batch: bool) -> Run:
    """Join the cells' trials into one Run, with a trial axis if it is a batch.

    Of the samples that are ``blind``, (round, learner), the predictions count for nothing.
    """
    algorithm, n_learners = cells[0].algorithm, cells[0].network.n_learners
    functions = [algorithm.function(cell.state) for cell in cells]
    thetas = [
        getattr(cell.state, "theta", getattr(found, "theta", None))
        for cell, found in zip(cells, functions, strict=True)
    ]
    cv, cv_error = _consensus_violation(cells)
    counts = _found(cells, "n_labels")
    predictions = _found(cells, "predictions")
    if predictions is not None:
        for t, k in blind:
            predictions[:, t, k] = np.nan
    found = {
        "mse": running_average(_found(cells, "squared_error"), axis=1, counts=counts),
        "cv": cv,
        "cv_error": cv_error,
        "predictions": predictions,
        "theta": _joined(thetas, n_learners),
        "weights": _joined([getattr(each, "weights", None) for each in functions], n_learners),
        "component": np.stack([graph.component for cell in cells for graph in cell.graphs]),
        "discrepancy": _found(cells, "gaps"),
        "deviation": _found(cells, "deviation"),
        "quantiles": _quantiles(cells),
        "pair_sums": _found(cells, "spread"),
        "component_sums": _found(cells, "inside"),
    }
    if not is_batch:
        found = {name: None if each is None else each[0] for name, each in found.items()}
    targets = _found(cells[:1], "targets")  # the same in every trial
    return Run(
        **found,
        cv_mode=cells[0].options.cv,
        loss=algorithm.loss,
        levels=np.array(cells[0].options.levels) if cells[0].options.levels else None,
        state=_final_state(cells),
        targets=None if targets is None else targets[0],
    )


def _consensus_violation(cells: list[Cell]) -> tuple[Floats, Floats]:
    mode = cells[0].options.cv
    if mode == "sampled":
        sampled = [cell.sampled for cell in cells if cell.sampled is not None]
        mean, variance = (np.concatenate(each, axis=1).T for each in zip(*sampled, strict=True))
        rounds = np.arange(1, mean.shape[1] + 1)
        return running_average(mean, axis=1), np.sqrt(running_average(variance, axis=1) / rounds)
    mean = running_average(_found(cells, "disagreement"), axis=1)
    return mean, np.full_like(mean, np.nan if mode == "off" else 0.0)


def _quantiles(cells: list[Cell]) -> Any:
    """(B, T, K, J), or None."""
    found = [_found(cells, quantile_name(level)) for level in cells[0].options.levels]
    return np.stack(found, axis=-1) if found else None


def _found(cells: list[Cell], name: str) -> Any:
    """What the records of all trials have of a name, or None."""
    return _joined([cell.records.found(name) for cell in cells if cell.records])


def _joined(parts: Sequence[Any], n_learners: int | None = None) -> Any:
    """All in one array, by trial if it is told how many learners one has; None without any.

    One alone is not copied: a large network's state is most of the memory.
    """
    if parts[0] is None:
        return None
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return joined if n_learners is None else joined.reshape(-1, n_learners, *joined.shape[1:])


def _final_state(cells: list[Cell]) -> Any:
    states = [cell.state for cell in cells]
    state = type(states[0])(*(_joined(parts) for parts in zip(*states, strict=True)))
    waiting = [cell.waiting for cell in cells if cell.waiting is not None]
    return Delayed(state, joined_waiting(waiting)) if waiting else state


def split_state(
    algorithm: Algorithm, state: Any, templates: list[Any], is_reused: bool
) -> list[Any]:
    """Cut a state of all trials into the cells' own; templates say how long each is.

    They are copies, unless it ``is_reused``.
    """
    if type(state) is not type(templates[0]):
        raise ParameterError(
            f"state must come from a run of {type(algorithm).__name__},"
            f" got {type(state).__module__}.{type(state).__qualname__}"
        )
    cut = []
    for name, values, *parts in zip(templates[0]._fields, state, *templates, strict=True):
        lengths = [len(part) for part in parts]
        shape, dtype = (sum(lengths), *parts[0].shape[1:]), parts[0].dtype
        if getattr(values, "shape", None) != shape or values.dtype != dtype:
            got = f"{np.shape(values)} of {getattr(values, 'dtype', type(values).__name__)}"
            raise ParameterError(
                f"state.{name} must have shape {shape} of {dtype} for these trials, got {got}"
            )
        parts = np.split(values, np.cumsum(lengths)[:-1])
        # as it is only where it can be written to, contiguous
        own = (np.require(part, None, ["C", "W"]) if is_reused else part.copy() for part in parts)
        cut.append(list(own))
    return [type(state)(*parts) for parts in zip(*cut, strict=True)]


def _by_component(per_learner: Floats | None, component: Ints, partners: Any) -> Floats | None:
    """Running averages (…, T, C) of the mean over each component's learners."""
    if per_learner is None:
        return None
    if component.ndim == 1:
        batch = _by_component(per_learner[None], component[None], partners)
        return None if batch is None else batch[0]
    n_trials, n_rounds, _ = per_learner.shape
    out = np.full((n_trials, n_rounds, component.max() + 1), np.nan)
    for b in range(n_trials):
        size = np.bincount(component[b])
        member = np.equal.outer(component[b], np.arange(len(size)))
        sums = np.nan_to_num(per_learner[b]) @ member / partners(size)
        counts = (~np.isnan(per_learner[b])).astype(np.float64) @ member
        out[b, :, : len(size)] = running_average(sums / np.maximum(counts, 1), counts=counts)
    return out
