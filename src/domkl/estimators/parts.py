"""What is stored of a learner, and how it becomes one again."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from domkl import checks
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.errors import DataError
from domkl.estimators.scaling import Early
from domkl.estimators.store import decode, encode
from domkl.storage import Arrays, Parts, sound, unpack

if TYPE_CHECKING:
    from domkl.estimators.learner import Learner

L = TypeVar("L", bound="Learner")
T = TypeVar("T")


def of_learner(learner: "Learner") -> Parts:
    """Parameters and numbers of a learner."""
    features, arrays = learner.features, {}
    header = {
        "algorithm": encode(learner.algorithm),
        "bank": encode(learner.bank),
        "n_frequencies": learner.columns.n_frequencies,
        "seed": learner.columns.seed,
        "is_scaled": learner.is_scaled,
        "names": encode(learner.names),
        "n_seen": learner.n_seen,
        "is_early": learner.early is not None,
        "fingerprint": None,
    }
    if features is not None:
        header |= {"fingerprint": features.fingerprint, "linear": features.linear}
        arrays["frequencies"] = features.frequencies
        for name, held in _tuples(learner).items():
            arrays |= {f"{name}.{field}": getattr(held, field) for field in held._fields}
        if learner.early is not None:
            arrays |= {"early.x": learner.early.x, "early.y": learner.early.y}
    return Parts(header, arrays)


def as_learner(cls: type[L], parts: Parts, algorithm: Algorithm | None = None) -> L:
    """Make the learner that these are the parts of."""
    header, arrays = parts
    made = cls(
        algorithm or decode(header["algorithm"]),
        bank=decode(header["bank"]),
        n_frequencies=header["n_frequencies"],
        is_scaled=header["is_scaled"],
        seed=header["seed"],
    )
    if header["fingerprint"] is None:
        return made
    features = RandomFeatures(arrays["frequencies"], linear=header["linear"])
    if features.fingerprint != header["fingerprint"]:
        raise DataError("its fingerprint is not that of its frequencies")
    names = decode(header["names"])
    if not isinstance(names, tuple) or not len(set(names)) == len(names) == features.n_inputs:
        raise DataError(f"it names its {features.n_inputs} inputs {names!r}")
    made.start(names, features)
    made.x_seen, made.y_seen, made.state = (
        _restored(name, room, arrays) for name, room in _tuples(made).items()
    )
    made.n_seen = checks.whole("n_seen", header["n_seen"], 0)
    made.early = _early(made, arrays) if header["is_early"] else None
    return made


def from_file(kind: str, path: str | Path, make: Callable[[Parts], T]) -> T:
    """Read a file of this kind and make what it holds."""
    parts = unpack(kind, Path(path).read_bytes())
    with sound(kind):
        return make(parts)


def _tuples(learner: "Learner") -> dict[str, Any]:
    return {"x_seen": learner.x_seen, "y_seen": learner.y_seen, "state": learner.state}


def _early(learner: "Learner", arrays: Arrays) -> Early:
    """The first samples, all of them; NaN stands for what was absent."""
    x, y = (np.array(arrays[name]) for name in ("early.x", "early.y"))
    shapes = (learner.n_seen, learner.n_inputs), (learner.n_seen,)
    if (x.shape, y.shape) != shapes or not x.dtype == y.dtype == np.float64:
        raise DataError(f"its first samples must have shapes {shapes}")
    if np.isinf(x).any() or not np.isfinite(y).all():
        raise DataError("its first samples must be finite")
    return Early(x, y)


def _restored(name: str, room: Any, arrays: Arrays) -> Any:
    """The stored fields of a tuple of arrays that looks like ``room``."""
    found = [np.array(arrays[f"{name}.{field}"]) for field in room._fields]
    for field, values, empty in zip(room._fields, found, room, strict=True):
        is_like = values.shape == empty.shape and values.dtype == empty.dtype
        if not is_like or not np.isfinite(values).all():
            raise DataError(f"{name}.{field} must be finite, of shape {empty.shape}")
    return type(room)(*found)


def revived(cls: Callable[..., T], held: Parts, algorithm: Algorithm | None) -> tuple[T, Parts]:
    """Make an estimator of its stored parameters, and give the parts of its learner.

    An algorithm that is not domkl's own is not stored, and must be given.
    """
    params = dict(held.header["params"])
    if algorithm is not None:
        params["algorithm"] = None
    values = {name: decode(value) for name, value in params.items()}
    made = cls(**values | ({"algorithm": algorithm} if algorithm is not None else {}))
    return made, Parts(held.header["learner"], held.arrays)
