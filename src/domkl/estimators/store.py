"""Parameters as JSON has them and back, for learners that are stored.

Nothing in a stored learner can name code to run: classes are looked up among the algorithms, losses
and kernels of domkl.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import domkl
from domkl.errors import DataError, ParameterError


def encode(value: Any) -> Any:
    """Give a parameter as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return {"items": [encode(item) for item in value], "list": isinstance(value, list)}
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {"class": type(value).__name__, "fields": held}
    raise ParameterError(f"parameters must be numbers, strings or parts of domkl, got {value!r}")


def decode(value: Any) -> Any:
    """Undo `encode`."""
    if not isinstance(value, dict):
        return value
    if "items" in value:
        items = [decode(item) for item in value["items"]]
        return items if value["list"] else tuple(items)
    name = value["class"]
    found = getattr(domkl, name, None)
    home = getattr(found, "__module__", "")
    if not is_dataclass(found) or not home.startswith(("domkl.algorithms.", "domkl.core.")):
        raise DataError(f"{name!r} is no part of domkl; pass the algorithm to load with")
    made: Any = found
    return made(**{name: decode(held) for name, held in value["fields"].items()})
