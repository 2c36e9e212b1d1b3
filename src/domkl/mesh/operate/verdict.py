"""The verdict on a learner: is it up, does it exchange, does it learn, is its network worth it?"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

ENOUGH = 30  # samples to judge by
PLENTY = 100  # samples of a window that is preferred
STALE, OFTEN = 60.0, 10.0  # seconds at least, and usual pauses, without a sample
DOUBTED = 0.01  # share of samples not believed that is worth telling
#: the rungs, from the lowest on
RUNGS = ("down", "starting", "up", "exchanging", "learning", "worth it")
WINDOWS = ("hour", "day", "week", "last 1000")
SECONDS = {"hour": 3600, "day": 86400, "week": 7 * 86400}


class Verdict(NamedTuple):
    """The highest rung that a learner has reached, and why it is not on a higher one.

    Each of the four is None where it cannot be told.
    """

    word: str
    says: str
    is_up: bool
    exchanges: bool | None = None
    learns: bool | None = None
    is_worth_it: bool | None = None


def verdict_of(state: Mapping[str, Any] | None) -> Verdict:
    """Judge a learner by the answer to ``GET /state``; None if it gave none."""
    if state is None:
        return Verdict("down", "it does not answer", False)
    if not state.get("is_ready"):
        return Verdict("starting", "it is starting or stopping", False)
    edges = state.get("neighbors", {})
    n_open = sum(bool(edge.get("is_open")) for edge in edges.values())
    if edges and not n_open:
        says = f"it exchanges nothing: none of its {_counted(len(edges), 'neighbor')} is heard"
        return Verdict("up", says, True, False)
    exchanges = True if edges else None
    silent = "" if n_open == len(edges) else f"; {len(edges) - n_open} of {len(edges)} edges silent"
    known, n = _of_samples(state, exchanges), state.get("n_doubted", 0)
    if n > DOUBTED * state.get("n_learned", 0):
        silent += f"; {_counted(n, 'sample')} not believed"
    return known._replace(says=known.says + silent)


def _of_samples(state: Mapping[str, Any], exchanges: bool | None) -> Verdict:
    """The upper rungs, which need samples."""
    lower = Verdict("exchanging" if exchanges else "up", "", True, exchanges)
    name, recent = window_of(state)
    n, age = recent.get("n", 0), state.get("sample_age")
    if age is None or not n:
        return lower._replace(says="it has had no sample yet" if age is None else _no_sample(age))
    if is_stale(state):
        return lower._replace(says=_no_sample(age), learns=False)
    if n < ENOUGH:
        return lower._replace(says=f"too early to tell: {_counted(n, 'sample')}")
    unit, error = str(state.get("target", "")), recent["rmse"]
    last, alone = recent["rmse_last_value"], recent["rmse_alone"]
    when = name if name.startswith("last") else f"last {name}"
    says = f"{when}: it errs by {_short(error)} {unit}, the last value by {_short(last)}"
    if not error < last:
        return lower._replace(says=says, learns=False)
    if alone is None or not exchanges:
        return Verdict("learning", says, True, exchanges, True)
    says += f", alone by {_short(alone)}"
    if error > alone:
        says += f": the network costs {_percent(error / alone - 1)}"
        return Verdict("learning", says, True, exchanges, True, False)
    says += f": the network saves {_percent(1 - error / alone)}"
    return Verdict("worth it", says, True, exchanges, True, True)


def window_of(state: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The shortest window with samples enough to judge by, of the first horizon."""
    by_name: Mapping[str, Any] = next(iter(state.get("recent", {}).values()), {})
    for name in WINDOWS:
        if by_name.get(name, {}).get("n", 0) >= PLENTY:
            return name, by_name[name]
    return "last 1000", by_name.get("last 1000", {})


def is_stale(state: Mapping[str, Any]) -> bool:
    """Whether samples came regularly, and have stopped."""
    by_name: Mapping[str, Any] = next(iter(state.get("recent", {}).values()), {})
    pauses = [
        seconds / by_name[name]["n"]
        for name, seconds in SECONDS.items()
        if by_name.get(name, {}).get("n", 0) >= ENOUGH
    ]
    usual = min(pauses) if pauses else math.inf
    age = state.get("sample_age")
    return age is not None and age > max(STALE, OFTEN * usual)


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(4.2), duration(150), duration(7300), duration(200_000)
    ('4 s', '2 min', '2 h', '2 d')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _no_sample(age: float) -> str:
    return f"no sample for {duration(age)}"


def _short(value: float) -> str:
    return f"{value:.0f}" if 1000 <= value < 1e7 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
