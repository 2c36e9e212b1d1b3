"""Rows to rounds: scaling, lags, and dealing samples to learners."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from domkl import checks, rng
from domkl.data.rows import lagged
from domkl.data.types import Bounds
from domkl.errors import DataError, ParameterError
from domkl.options import PARTITIONS, SCALES
from domkl.typing import Floats, Ints, Seed


class Ranges(NamedTuple):
    """Lowest and highest value of each column, known before the first sample."""

    low: ArrayLike  # (d,), or a number
    high: ArrayLike


class Scaled(NamedTuple):
    """Values after (v − offset)/divisor, per column."""

    values: Floats
    offset: Floats
    divisor: Floats
    n_outside: Ints  # values outside the declared range, per column; 0 for any other scale


def scaled(values: ArrayLike, rule: str, ranges: Ranges | None = None) -> Scaled:
    """Scale each column by its own smallest and largest value, or by a declared range.

    ``"minmax"`` is (v − min)/(max − min). ``"authors"`` is (v − min)/max, what the paper's authors
    did: it does not fill [0, 1] unless min is 0. A column that would be divided by 0 is only
    shifted. Both use the whole stream, which a running learner does not have. ``"declared"`` is
    (v − low)/(high − low) with the ranges given, the same at every learner; values outside are
    counted, not clipped. ``"none"`` leaves the values as they are.

    Examples
    --------
    >>> scaled([10.0, 15.0, 20.0], "minmax").values
    array([0. , 0.5, 1. ])
    >>> scaled([10.0, 15.0, 20.0], "authors").values
    array([0.  , 0.25, 0.5 ])
    >>> made = scaled([10.0, 15.0, 50.0], "declared", Ranges(0.0, 40.0))
    >>> made.values, made.n_outside
    (array([0.25 , 0.375, 1.25 ]), array(1))
    """
    checks.choice("scale", rule, SCALES)
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise DataError("values must not be empty")
    if (ranges is None) == (rule == "declared"):
        raise ParameterError(
            "scale declared needs ranges" if ranges is None else f"scale {rule} takes no ranges"
        )
    low, high = _bounds(array, ranges)
    n_outside = np.count_nonzero((array < low) | (array > high), axis=0)
    divisor = np.ones_like(high) if rule == "none" else high if rule == "authors" else high - low
    low = np.zeros_like(low) if rule == "none" else low
    divisor = np.where(divisor == 0, 1.0, divisor)
    return Scaled((array - low) / divisor, low, divisor, np.asarray(n_outside))


def scale_note(rule: str, made: Scaled, what: str, n_outside: int = 0) -> str:
    """Say in words how values were scaled.

    Examples
    --------
    >>> scale_note("minmax", scaled([10.0, 20.0], "minmax"), "all values")
    'scale minmax: (v - 10)/10 of all values'
    """
    if rule == "none":
        return "not scaled"
    more = f"; {n_outside} values outside their declared range" if n_outside else ""
    return f"scale {rule}: (v - {made.offset:g})/{made.divisor:g} of {what}{more}"


def _bounds(array: Floats, ranges: Ranges | None) -> tuple[Floats, Floats]:
    """Lowest and highest value per column, seen or declared."""
    if ranges is None:
        return np.asarray(array.min(axis=0)), np.asarray(array.max(axis=0))
    shape = array.shape[1:]
    try:
        low, high = (np.broadcast_to(np.asarray(each, dtype=np.float64), shape) for each in ranges)
    except (TypeError, ValueError):
        raise ParameterError(f"ranges must be numbers for {shape} columns, got {ranges}") from None
    with np.errstate(over="ignore"):
        is_sound = np.isfinite(high - low) & (low < high)
    if not is_sound.all():
        raise ParameterError(f"ranges must be finite with low < high, got {ranges}")
    return low, high


def ranges_of(names: str | tuple[str, ...], declared: Mapping[str, Bounds]) -> Ranges:
    """The declared ranges of these columns, in their order, or of one column.

    Examples
    --------
    >>> ranges_of(("b", "a"), {"a": (0, 1), "b": (-5, 5)}).high.tolist()
    [5.0, 1.0]
    """
    wanted = (names,) if isinstance(names, str) else names
    lost = [name for name in wanted if name not in declared]
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise ParameterError(
            f"scale declared needs a range for each column, got none for"
            f" {', '.join(lost[:3])}{more}; give ranges, or another scale"
        )
    pairs = np.array([declared[name] for name in wanted], dtype=np.float64)  # (d, 2)
    return Ranges(pairs[0, 0], pairs[0, 1]) if isinstance(names, str) else Ranges(*pairs.T)


def check_known(ranges: Mapping[str, Bounds], columns: tuple[str, ...]) -> None:
    """Refuse ranges of columns that do not exist: a misspelt name would go unnoticed."""
    for name in ranges:
        if name not in columns:
            raise ParameterError(
                f"ranges must be of columns in use, got {name!r}; there are {', '.join(columns)}"
            )


class Labels(np.ndarray):
    """Labels that know how long after their inputs they are known.

    An array like any other. `simulate` looks at ``delay``, so that no learner sees a label before
    its time. Slices and results of arithmetic know it, too.

    Attributes
    ----------
    horizon : int
        Steps of the series between the newest input and the label; 1 is the next value.
    delay : int
        Rounds until a label is seen: horizon − 1 for a learner with a stream of its own, fewer
        where a round takes several steps of the series.
    """

    horizon: int = 1
    delay: int = 0

    def __array_finalize__(self, given: Any) -> None:
        self.horizon, self.delay = getattr(given, "horizon", 1), getattr(given, "delay", 0)

    def __reduce__(self) -> Any:
        return labels, (np.asarray(self), self.horizon, self.delay)


def labels(values: Floats, horizon: int, delay: int | None = None) -> Floats:
    """Give labels that know their horizon; those of the next value are a plain array."""
    if horizon == 1:
        return np.asarray(values)
    made = np.asarray(values).view(Labels)
    made.horizon, made.delay = horizon, horizon - 1 if delay is None else delay
    return made


def embed(series: ArrayLike, n_lags: int, *, horizon: int = 1) -> tuple[Floats, Floats]:
    """Predict values from lags, eq. (44): X (N, s) newest first, y (N,).

    The label is the value ``horizon`` steps after the newest lag: by default, the next one. Labels
    further ahead know that they are (`Labels`), so that `simulate` shows them in time.

    Examples
    --------
    >>> X, y = embed([1.0, 2.0, 3.0, 4.0], 2)
    >>> X.tolist(), y.tolist()
    ([[2.0, 1.0], [3.0, 2.0]], [3.0, 4.0])
    >>> X, y = embed([1.0, 2.0, 3.0, 4.0], 2, horizon=2)
    >>> X.tolist(), y.tolist(), y.delay
    ([[2.0, 1.0]], [4.0], 1)
    """
    values = checks.samples("series", series, "N")
    n_lags, horizon = checks.whole("lags", n_lags, 1), checks.whole("horizon", horizon, 1)
    if len(values) < n_lags + horizon:
        ahead = f" and its horizon of {horizon}" if horizon > 1 else ""
        raise DataError(
            f"series must be longer than its {n_lags} lags{ahead}, got {len(values)} values"
        )
    n, known = len(values) - n_lags - horizon + 1, values[:-horizon]
    X = np.stack([lagged(known, lag, n) for lag in range(1, n_lags + 1)], axis=1)
    return X, labels(values[-n:].copy(), horizon)


def deal(
    X: ArrayLike,
    y: ArrayLike,
    n_learners: int,
    partition: str = "interleaved",
    *,
    seed: Seed | None = None,
) -> tuple[Floats, Floats]:
    """Deal samples to learners: X (T, K, d), y (T, K), with T = ⌊N/K⌋; the rest is left out.

    ``"interleaved"``: learner k gets samples k, K + k, 2K + k, …, as the paper deals time series.
    ``"blocks"``: learner k gets the k-th run of T samples. ``"shuffled"``: as interleaved, after a
    permutation drawn from ``seed``.

    Labels of a horizon (`embed`) are dealt with the smallest delay that shows none early: in turn,
    a round is K steps of the series; in blocks, each learner has its own stream.

    Examples
    --------
    >>> deal([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 1, 2, 3, 4], 2)[1].tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    >>> deal([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 3], 2, "blocks")[1].tolist()
    [[0.0, 2.0], [1.0, 3.0]]
    """
    horizon = getattr(y, "horizon", 1)
    inputs, targets = checks.samples("X", X, "N d"), checks.samples("y", y, "N")
    n_learners = checks.whole("learners", n_learners, 1)
    checks.choice("partition", partition, PARTITIONS)
    if len(inputs) != len(targets):
        raise DataError(f"X and y must have equal length, got {len(inputs)} and {len(targets)}")
    n_rounds = len(targets) // n_learners
    if n_rounds == 0:
        raise DataError(f"{n_learners} learners need at least as many samples, got {len(targets)}")
    n = n_rounds * n_learners
    if horizon > 1 and partition == "shuffled":
        raise DataError(
            f"partition must be interleaved or blocks for labels {horizon} steps ahead:"
            " shuffled, they would be seen before their time"
        )
    if partition == "shuffled":
        order = _order(len(targets), seed)
        inputs, targets, partition = inputs[order], targets[order], "interleaved"
    if partition == "interleaved":
        shape = (n_rounds, n_learners)
        delay = -(-(horizon - 1) // n_learners)
        return inputs[:n].reshape(*shape, -1), labels(targets[:n].reshape(shape), horizon, delay)
    shape = (n_learners, n_rounds)
    dealt = inputs[:n].reshape(*shape, -1).transpose(1, 0, 2)
    targets = np.ascontiguousarray(targets[:n].reshape(shape).T)
    return np.ascontiguousarray(dealt), labels(targets, horizon)


def _order(n: int, seed: Seed | None) -> Ints:
    if seed is None:
        raise ParameterError("partition shuffled needs a seed, got None")
    return rng.generator(seed, "partition").permutation(n)
