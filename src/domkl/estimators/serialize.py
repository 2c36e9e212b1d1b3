"""Learners and estimators as files: a JSON header and arrays, without pickle.

Nothing in a file can name code to run: `decode` looks classes up among the public algorithms,
losses and kernels of domkl. An algorithm of the user's own is therefore not restored from a file;
whoever loads the file passes it as ``algorithm``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import domkl
from domkl import checks, storage
from domkl.algorithms.base import Algorithm
from domkl.core.features import RandomFeatures
from domkl.errors import DataError, ParameterError
from domkl.estimators.columns import Level
from domkl.estimators.scaling import FirstSamples, Statistics
from domkl.learner.late import N_WAITING, AskedRow, AskedRows
from domkl.learner.restore import checked, fields_of, restored_state
from domkl.storage import Arrays, Parts, sound
from domkl.typing import Array

if TYPE_CHECKING:
    from domkl.estimators.learner import Learner

L = TypeVar("L", bound="Learner")


def parts_of(learner: "Learner") -> Parts:
    """The parameters and arrays of a learner."""
    features = learner.features
    arrays: dict[str, Array] = {}
    header = {
        "algorithm": encode(learner.algorithm),
        "bank": encode(learner.bank),
        "n_frequencies": learner.columns.n_frequencies,
        "seed": learner.columns.seed,
        "is_scaled": learner.is_scaled,
        "names": encode(learner.names),
        "n_seen": learner.n_seen,
        "is_early": learner.first_samples is not None,
        "fingerprint": None,
    }
    if learner.n_outputs is not None:
        header["n_outputs"] = learner.n_outputs
    if learner.is_map_given:
        header["is_map_given"] = True
    if features is not None:
        header |= {"fingerprint": features.fingerprint, "linear": features.linear}
        arrays["frequencies"] = features.frequencies
        tuples = {"x_seen": learner.x_seen, "y_seen": learner.y_seen, "state": learner.state}
        for name, values in tuples.items():
            arrays |= {f"{name}.{field}": getattr(values, field) for field in values._fields}
        if learner.asked.delay:
            header["delay"] = learner.asked.delay
            arrays |= learner.asked.saved("waiting")
        if learner.first_samples is not None:
            x, y, weights = learner.first_samples
            arrays |= {"early.x": x, "early.y": y if learner.n_outputs else y[:, 0]}
            if (weights != 1).any():
                arrays["early.weights"] = weights
    return Parts(header, arrays)


def learner_of(cls: type[L], parts: Parts, algorithm: Algorithm | None = None) -> L:
    """Make the learner that has these parts."""
    header, arrays = parts
    made = cls(
        algorithm or decode(header["algorithm"]),
        bank=decode(header["bank"]),
        n_frequencies=header["n_frequencies"],
        is_scaled=header["is_scaled"],
        seed=header["seed"],
        n_outputs=header.get("n_outputs"),
    )
    made.is_map_given = bool(header.get("is_map_given", False))
    if header["fingerprint"] is None:
        return made
    features = RandomFeatures(arrays["frequencies"], linear=header["linear"])
    if features.fingerprint != header["fingerprint"]:
        raise DataError("its fingerprint is not that of its frequencies")
    names = decode(header["names"])
    if not isinstance(names, tuple) or not len(set(names)) == len(names) == features.n_inputs:
        raise DataError(f"it names its {features.n_inputs} inputs {names!r}")
    made.start(names, features)
    for name in ("x_seen", "y_seen"):
        found: Any = fields_of(name, arrays)
        setattr(made, name, checked(name, Statistics(**found), getattr(made, name)))
    state = restored_state(made.algorithm, fields_of("state", arrays), made.state)
    made.state = checked("state", state, made.state)
    made.n_seen = checks.whole("n_seen", header["n_seen"], 0)
    made.first_samples = _first_samples(made, arrays) if header["is_early"] else None
    if "delay" in header:
        made.asked = _asked_rows(made, checks.whole("delay", header["delay"], 1), arrays)
    return made


@contextmanager
def opened(kind: str, path: str | Path) -> Iterator[Parts]:
    """Read a file of this kind; what is wrong with its parts in the block becomes DataError."""
    parts = storage.unpack(kind, Path(path).read_bytes())
    with sound(kind):
        yield parts


def _first_samples(learner: "Learner", arrays: Arrays) -> FirstSamples:
    """The first samples; NaN stands for a missing value. Weights of 1 are not stored."""
    x, y = (np.array(arrays[name]) for name in ("early.x", "early.y"))
    weights = np.array(arrays["early.weights"]) if "early.weights" in arrays else np.ones(len(y))
    y = y[:, None] if y.ndim == 1 else y
    n = learner.n_seen
    shapes = (n, learner.n_inputs), (n, learner.n_rows), (n,)
    found = FirstSamples(x, y, weights)
    if tuple(each.shape for each in found) != shapes or any(v.dtype != np.float64 for v in found):
        raise DataError(f"its first samples must have shapes {shapes}")
    if any(np.isinf(each).any() for each in found) or not (weights > 0).all():
        raise DataError("its first samples must be finite, with weights above 0")
    return found


def _asked_rows(learner: "Learner", delay: int, arrays: Arrays) -> AskedRows:
    """The predictions that wait for labels that come so late."""
    made, (_, prediction) = AskedRows(delay), learner.host.look(np.zeros(learner.n_inputs))
    row, n_seen = np.zeros((1, learner.n_inputs)), np.zeros(1, dtype=np.int64)
    like = AskedRow(row, n_seen, *(each[None] for each in prediction))
    made.restore("waiting", arrays, like, N_WAITING)
    if not all(np.isfinite(part).all() for each in made for part in each[2:]):
        raise DataError("its predictions that wait must be finite")
    return made


def encode(value: Any) -> Any:
    """Turn a parameter into what JSON can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return {"items": [encode(item) for item in value], "list": isinstance(value, list)}
    kind = type(value)
    if isinstance(value, Algorithm) and not _is_ours(kind):  # it is given when the file is loaded
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": {}}
    if is_dataclass(value) and not isinstance(value, type):
        given = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {"class": kind.__name__, "fields": given}
    raise ParameterError(f"parameters must be numbers, strings or parts of domkl, got {value!r}")


def decode(value: Any) -> Any:
    """Undo `encode`."""
    if not isinstance(value, dict):
        return value
    if "items" in value:
        items = [decode(item) for item in value["items"]]
        return items if value["list"] else tuple(items)
    name = value["class"]
    if name == Level.__name__:
        return Level(**{field: decode(given) for field, given in value["fields"].items()})
    found = getattr(domkl, name, None)
    if not is_dataclass(found) or not _is_ours(found):
        raise DataError(f"{name!r} is not a part of domkl; pass the algorithm to load with")
    made: Any = found
    return made(**{name: decode(given) for name, given in value["fields"].items()})


def _is_ours(kind: Any) -> bool:
    """Whether this is an algorithm, a loss or a kernel of domkl."""
    return str(getattr(kind, "__module__", "")).startswith(("domkl.algorithms.", "domkl.core."))
