"""Samples as clients give them: checked and scaled, or refused with one clear line."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from domkl.errors import DataError
from domkl.mesh.node.segment import Entry
from domkl.mesh.protocol.model import Model, Range, Scaled
from domkl.typing import Floats

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
# the first wrong one is enough: to tell of all would hold up the node, and its neighbors with it
Values = Annotated[list[Number], Field(fail_fast=True)] | dict[str, Number]
ID = r"^[!-~]{1,200}$"
MAX_BYTES = 2**20  # of a body, a line or a message
MAX_SAMPLES = 10_000  # of a list


class Inputs(BaseModel):
    """Inputs to predict for, in their own units; for a series, none: the next value."""

    model_config = ConfigDict(extra="forbid")

    x: Values | None = Field(None, description="in the order of mesh.toml, or by name")


class Given(Inputs):
    """A sample: x and y, or the next value of a series."""

    y: Number | None = Field(None, description="the label, in its own units")
    value: Number | None = Field(None, description="the next value, of a time series")
    id: str | None = Field(
        None, pattern=ID, description="yours: a sample sent again is learned once"
    )


#: what pydantic names the ways to read a body, and a user does not
BRANCHES = ("body", "Given", "list[Given]", "list[float]", "dict[str,float]")


#: a list of samples, all accepted or none
Batch = Annotated[list[Given], Field(max_length=MAX_SAMPLES, fail_fast=True)]


class Prepared(NamedTuple):
    """A sample to accept."""

    entry: Entry
    scaled: Floats  # as the entry's values
    n_outside: int


_ONE_OR_MORE: TypeAdapter[Given | list[Given]] = TypeAdapter(Given | Batch)


def parse(text: bytes | str) -> list[Given]:
    """Read one sample or a list of them from JSON."""
    if len(text) > MAX_BYTES:
        raise DataError(f"sample must have at most {MAX_BYTES} bytes, got {len(text)}")
    try:
        found = _ONE_OR_MORE.validate_json(text)
    except ValidationError as error:
        raise DataError(
            f"sample must be JSON as of POST /learn; {explained(error.errors(include_url=False))}"
        ) from None
    return found if isinstance(found, list) else [found]


class Desk:
    """Checks samples against the agreed model.

    Parameters
    ----------
    model : Model
    lags : int or None
        Of a time series.
    """

    def __init__(self, model: Model, lags: int | None) -> None:
        self.model, self.lags = model, lags

    @property
    def width(self) -> int:
        """Values of a sample in the journal."""
        return 1 if self.lags else len(self.model.inputs) + 1

    def sample(self, given: Given) -> Prepared:
        """Check a client's sample."""
        return self.prepared(Entry(self._values(given), given.id or ""))

    def prepared(self, entry: Entry) -> Prepared:
        """Scale a sample; DataError where a value is outside and that is to be refused."""
        y = self.model.scaled_target(float(entry.values[-1]))
        if self.lags:
            return Prepared(entry, y.values, y.n_outside)
        x = self.model.scaled_inputs(entry.values[:-1])
        scaled = np.concatenate([x.values, y.values])
        return Prepared(entry, scaled, x.n_outside + y.n_outside)

    def inputs(self, x: Values) -> Scaled:
        """Check inputs; give them scaled, and how many were outside of their ranges."""
        return self.model.scaled_inputs(_ordered(x, self.model.inputs))

    def _values(self, given: Given) -> Floats:
        if self.lags:
            if given.value is None or given.x is not None or given.y is not None:
                raise DataError("sample of a series must have value, and neither x nor y")
            return np.array([given.value])
        if given.value is not None or given.x is None or given.y is None:
            raise DataError("sample must have x and y, and no value: the mesh has no lags")
        return np.append(_ordered(given.x, self.model.inputs), given.y)


def _ordered(x: Values, ranges: Sequence[Range]) -> Floats:
    if isinstance(x, Mapping):
        names = [each.name for each in ranges]
        wrong = [name for name in (*names, *x) if (name in x) != (name in names)]
        if wrong:
            what = "lacks" if wrong[0] in names else "has no place for"
            raise DataError(f"sample {what} {wrong[0]!r}; inputs are {', '.join(names)}")
        x = [x[name] for name in names]
    if len(x) != len(ranges):
        raise DataError(f"sample must have {len(ranges)} inputs, got {len(x)}")
    return np.array(x, dtype=np.float64)


def explained(errors: Sequence[Mapping[str, Any]]) -> str:
    """Where and why, of the most telling error; what was sent is not repeated."""
    found = max(errors, key=lambda each: (len(each["loc"]), each["type"] == "too_long"))
    place = ".".join(str(part) for part in found["loc"] if part not in BRANCHES)
    return f"{place}: {found['msg']}" if place else str(found["msg"])
