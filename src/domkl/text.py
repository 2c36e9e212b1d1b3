"""Text that people write and read: JSON, TOML, numbers with commas, lags, rows, times, tables.

This module imports no library, so that the command line can use it before NumPy is loaded.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from domkl.errors import ParameterError

DEEPEST = 20  # tables and lists within each other, in what is not a stranger's list of samples
TOO_DEEP = "it is nested too deeply"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_json(text: str | bytes) -> Any:
    """Read JSON; ValueError if it is none, or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def from_toml(text: str) -> dict[str, Any]:
    """Read TOML; ValueError if it is none, or nested too deeply.

    Examples
    --------
    >>> from_toml("a.b = 1")
    {'a': {'b': 1}}
    """
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    check_depth(found)
    return found


def check_depth(found: Any) -> None:
    """Raise ValueError if tables and lists are nested too deeply to be shown, or walked through."""
    level: list[Any] = [found] if isinstance(found, dict | list) else []
    for _ in range(DEEPEST):
        inside = (x.values() if isinstance(x, dict) else x for x in level)
        level = [x for each in inside for x in each if isinstance(x, dict | list)]
    if level:
        raise ValueError(TOO_DEEP)


def parse_names(given: str | None) -> tuple[str, ...] | None:
    """Read names separated by commas; None if nothing was given.

    Examples
    --------
    >>> parse_names("wind, sun"), parse_names(None)
    (('wind', 'sun'), None)
    """
    if given is None:
        return None
    return tuple(name.strip() for name in given.split(",") if name.strip())


def parse_numbers(name: str, given: int | str, minimum: int = 1) -> tuple[int, ...]:
    """Read one whole number, or several separated by commas.

    Examples
    --------
    >>> parse_numbers("horizon", "1,6,24"), parse_numbers("horizon", 3)
    ((1, 6, 24), (3,))
    """
    words = [word for word in str(given).split(",") if word.strip()]
    if not words or not all(re.fullmatch(r"\s*\d+\s*", word) for word in words):
        raise ParameterError(f"{name} must be numbers such as 1,6,24, got {given!r}")
    made = tuple(int(word) for word in words)
    if min(made) < minimum:
        raise ParameterError(f"{name} must be an integer >= {minimum}, got {min(made)}")
    if len(set(made)) < len(made):
        raise ParameterError(f"{name} must not repeat a number, got {given!r}")
    return made


def parse_lags(name: str, given: int | str) -> tuple[int, ...]:
    """Read lags: a single number S stands for 1 to S; numbers with commas are the lags themselves.

    Examples
    --------
    >>> parse_lags("lags", 3), parse_lags("lags", "1,24"), parse_lags("lags", "24,")
    ((1, 2, 3), (1, 24), (24,))
    """
    if isinstance(given, str) and "," in given:
        return parse_numbers(name, given)
    (n_lags,) = parse_numbers(name, given, 0)
    return tuple(range(1, n_lags + 1))


def parse_rows(given: int | str | None) -> slice:
    """Read ``N``, the first N rows, or ``first:end:step`` as a slice of Python; None is all rows.

    Examples
    --------
    >>> parse_rows("6000"), parse_rows("1::4")
    (slice(None, 6000, None), slice(1, None, 4))
    """
    if given is None:
        return slice(None)
    text = str(given)
    if re.fullmatch(r"\d+", text):
        return slice(*parse_numbers("rows", text))
    if not re.fullmatch(r"\d*:\d*(:([1-9]\d*)?)?", text):
        raise ParameterError(f"rows must be N or first:end:step, got {given!r}")
    return slice(*(int(part) if part else None for part in text.split(":")))


def parse_time(text: str, form: str | None = None) -> int:
    """Read an ISO 8601 time as whole milliseconds since 1970; in UTC unless it says otherwise.

    ``form`` is another format, of `datetime.strptime`. Raises ValueError if it is no time.

    Examples
    --------
    >>> parse_time("1970-01-02T00:00"), parse_time("1970-01-02T01:00+01:00")
    (86400000, 86400000)
    """
    when = datetime.fromisoformat(text) if form is None else datetime.strptime(text, form)
    return (when.replace(tzinfo=when.tzinfo or UTC) - _EPOCH) // timedelta(milliseconds=1)


def counted(n: int, what: str) -> str:
    """Give a number of things, in the plural unless there is one.

    Examples
    --------
    >>> counted(1, "edge"), counted(0, "edge")
    ('1 edge', '0 edges')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows below the names in the first row: the first column left, the others right.

    Examples
    --------
    >>> print(text_table([("name", "n"), ("a", "10")]))
    name   n
    --------
    a     10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
