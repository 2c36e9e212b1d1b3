"""The keys of a mesh file: the type, the default, the rule and the comment of each.

The file is read, checked and written by them (file.py), and they are options of `domkl mesh init`.
This module imports no library, so that `domkl --help` need not wait for one.
"""

from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

from domkl.mesh.transports.registry import TRANSPORTS
from domkl.options import DTYPES

Mode = Literal["lockstep", "async"]
MODES: tuple[Mode, ...] = ("lockstep", "async")
OUTSIDE = ("clip", "refuse")
ALGORITHM = "domkrls"
MOST = 10_000  # lags, horizons, frequencies: a typing error must not fill the memory
ROUTED = " or ".join(each.name for each in TRANSPORTS.values() if each.router)


def key(
    comment: str,
    metavar: str | None = None,
    *,
    group: str | None = None,
    path: str | None = None,
    choices: Iterable[str] | None = None,
    bounds: tuple[int, int | None] | None = None,
    optional: bool = False,
    **default: Any,
) -> Any:
    """A field that is a key of the mesh file.

    Parameters
    ----------
    comment : str
        The comment in the file, and the help of the option.
    metavar, group : str, optional
        Of the option of `domkl mesh init`; without a group there is no option.
    path : str, optional
        Where the file has it, such as "model.seed"; default the name of the field.
    choices, bounds : optional
        The words, or the least and the greatest number, that are accepted.
    optional : bool
        A key that earlier versions did not have: the default is written as a comment.
    """
    told = {"help": comment, "metavar": metavar, "group": group, "path": path,
            "choices": choices, "bounds": bounds, "optional": optional}  # fmt: skip
    return field(**default, metadata=told)


def path_of(each: Field[Any]) -> str:
    """The name of a field in the file."""
    return each.metadata.get("path") or each.name


def keys_of(kind: Any, *, group: Any = ..., section: Any = ...) -> list[Field[Any]]:
    """The fields of a class that are keys: all, or those of a group or a table of the file."""
    return [
        each for each in fields(kind)
        if "help" in each.metadata
        and group in (..., each.metadata["group"])
        and section in (..., path_of(each).rpartition(".")[0])
    ]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PlainKeys:
    """The keys that have one value: text, a number, true or false."""

    name: str = key("name of the mesh", "NAME", group="network", default="mesh")
    mode: Mode = key(
        "lockstep: rounds as in the simulation; async: no waiting", group="network",
        choices=MODES, default="lockstep",
    )  # fmt: skip
    transport: str = key(
        f"{' or '.join(TRANSPORTS)}, with certificates at both ends", group="network",
        choices=TRANSPORTS, default="tls",
    )  # fmt: skip
    checkpoint_every: int = key("samples between two checkpoints", bounds=(1, None), default=100)
    queue: int = key(
        "samples that may wait in a node to be learned", bounds=(1, None), default=10_000
    )
    guard: bool = key(
        "let neighbors move a node no further than its own samples do", optional=True, default=True
    )
    outside: Literal["clip", "refuse"] = key(
        "what to do with values outside their range: clip or refuse", group="data",
        choices=OUTSIDE, default="clip",
    )  # fmt: skip
    lags: int | None = key(
        "a series: the inputs are the target's last values, newest first", bounds=(1, MOST),
        default=None,
    )  # fmt: skip
    linear: bool = key(
        "add the linear kernel to a list of bandwidths", group="model", path="model.linear",
        default=False,
    )  # fmt: skip
    n_frequencies: int = key(
        "frequencies per kernel; messages grow with it", "M", group="model",
        path="model.frequencies", bounds=(1, MOST), default=50,
    )  # fmt: skip
    seed: int = key("seed of the frequencies", path="model.seed", bounds=(0, None), default=1)
    dtype: Literal["float64", "float32"] = key(
        "type of numbers; float32 halves the messages", group="model", path="model.dtype",
        choices=DTYPES, default="float64",
    )  # fmt: skip
    delay: int = key(
        "samples until a label is seen", path="model.delay", bounds=(0, MOST), optional=True,
        default=0,
    )  # fmt: skip


@dataclass(frozen=True)
class ForecastKeys:
    """The keys of the table [forecast]."""

    horizons: tuple[int, ...] = key("steps ahead; each has a learner of its own")
    step: str = key("step of the clock, such as 1h or 30min", "D", group="forecast", default="1h")
    lags: tuple[int, ...] = key(
        "lags of the target; lag 1 is the newest value", default=(1, 2, 3, 4, 5)
    )
    calendar: tuple[str, ...] = key(
        "inputs computed from the time: hour, weekday, yearday", "NAME,...", group="forecast",
        default=(),
    )  # fmt: skip
    ahead: tuple[str, ...] = key(
        "inputs that are known ahead, such as a weather forecast", "NAME,...", group="forecast",
        default=(),
    )  # fmt: skip
    hold: str = key(
        "how long the last known value replaces a missing input", "D", group="forecast",
        default="24h",
    )  # fmt: skip
    season: str = key(
        "period of the season, and of the naive forecast to compare with", "D", group="forecast",
        default="24h",
    )  # fmt: skip


#: comments of the keys of the table [timing], which are the fields of `Timing`
TIMING = {
    "round_timeout": "lockstep: a round ends after this time, even if a neighbor is missing",
    "resend_after": "ask again for a message that has not arrived",
    "idle_after": "without a sample for this time, follow the neighbors",
    "alive_every": "send something at least this often",
    "silence": "a neighbor that sends nothing for this time is down",
    "start_timeout": "lockstep: wait this long for all neighbors before round 1",
}
