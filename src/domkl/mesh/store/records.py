"""What is recorded of a step of time, and how records of short steps become one of a long step.

Errors are sums of squares in scaled units, with the number of samples behind them, so that records
can be added: the mean over any window is a quotient of two sums.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domkl.mesh.store.ring import Records

#: names of the shares of trust that are kept
TRUST = ("network", "own", "last value")
WITHIN = 1.96  # deviations; 95 of 100 labels should be within

_OF_HORIZON = [
    ("n", "<u4"), ("n_alone", "<u4"), ("n_bands", "<u4"), ("n_covered", "<u4"),
    ("errors", "<f8"), ("alone", "<f8"), ("last_value", "<f8"), ("spread", "<f8"),
]  # fmt: skip
#: fields that are added up; of the others the greatest, the least or the last counts
_SUMS = ("seconds", "sent", "received", "n_gaps", "gaps")
_LAST = ("last_number", "last_time", "n_listed", "weights", "trust")


def record_type(n_horizons: int, n_weights: int) -> np.dtype[Any]:
    """The layout of a record."""
    return np.dtype(
        [
            ("index", "<i8"),  # number of the step: time // seconds of a step
            ("check", "<u4"), ("queued", "<u4"),  # samples, at most
            ("n_open", "<u4"), ("n_listed", "<u4"),  # edges; the fewest that were open
            ("seconds", "<f8"),  # that the node ran in this step
            ("last_number", "<i8"), ("last_time", "<f8"),  # of the newest sample
            ("sent", "<f8"), ("received", "<f8"),  # bytes
            ("n_gaps", "<f8"), ("gaps", "<f8"),  # squared distances to the neighbors' predictions
            ("weights", "<f4", (n_weights,)), ("trust", "<f4", (len(TRUST),)),
            ("by", _OF_HORIZON, (n_horizons,)),
        ]
    )  # fmt: skip


#: a prediction and its label, scaled; ``index`` is the number of the sample
SAMPLE = np.dtype(
    [
        ("index", "<i8"), ("check", "<u4"), ("horizon", "<u4"), ("time", "<f8"), ("y", "<f8"),
        ("y_hat", "<f8"), ("y_last", "<f8"),
        ("y_alone", "<f8"), ("deviation", "<f8"),  # NaN where there is none
    ]
)  # fmt: skip


def sums_of(samples: Records) -> Any:
    """Sums over samples, as a record has them for each horizon."""
    made = np.zeros((), _OF_HORIZON)
    error, deviation = samples["y_hat"] - samples["y"], samples["deviation"]
    has_alone, has_band = ~np.isnan(samples["y_alone"]), ~np.isnan(deviation)
    made["n"], made["n_alone"] = len(samples), has_alone.sum()
    made["errors"] = (error**2).sum()
    made["last_value"] = ((samples["y_last"] - samples["y"]) ** 2).sum()
    made["alone"] = ((samples["y_alone"] - samples["y"])[has_alone] ** 2).sum()
    made["n_bands"] = has_band.sum()
    made["n_covered"] = (np.abs(error[has_band]) <= WITHIN * deviation[has_band]).sum()
    made["spread"] = (deviation[has_band] ** 2).sum()
    return made


def plus(one: Any, other: Any) -> Any:
    """The sum of two such sums."""
    made = np.zeros((), _OF_HORIZON)
    for field, _ in _OF_HORIZON:
        made[field] = one[field] + other[field]
    return made


def combined(records: Records, starts: Sequence[int] | NDArray[np.intp]) -> Records:
    """One record for each run of records; ``starts`` are the first of each run, ascending.

    The result keeps the index of the first of each run; the caller gives it another.
    """
    made = np.zeros(len(starts), records.dtype)
    if not len(records):
        return made
    last = np.append(np.asarray(starts)[1:], len(records)) - 1
    made["index"] = records["index"][starts]
    for field in _SUMS:
        made[field] = np.add.reduceat(records[field], starts)
    made["queued"] = np.maximum.reduceat(records["queued"], starts)
    made["n_open"] = np.minimum.reduceat(records["n_open"], starts)
    for field in _LAST:
        made[field] = records[field][last]
    for field in ("last_number", "last_time"):
        made[field] = np.maximum.reduceat(records[field], starts)
    for field, _ in _OF_HORIZON:
        made["by"][field] = np.add.reduceat(records["by"][field], starts, axis=0)
    return made
