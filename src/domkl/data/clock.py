"""Times in cells to milliseconds, and the clock of regular ticks that all nodes share.

A time is a whole number of milliseconds since 1970, in UTC. A file without a column of times is
counted by its rows: then a tick is a row, and there is no calendar.
"""

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from domkl.data.cells import GAPS, Sheet
from domkl.errors import DataError, ParameterError
from domkl.text import parse_time
from domkl.typing import Floats, Ints

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
#: parts of a time that may stand in columns of their own
PARTS = ("year", "month", "day", "hour", "minute", "second")
#: calendar inputs that are made from the time
CALENDAR = ("hour", "weekday", "yearday")
#: ticks of the longest season; of more, each needs too many labels to be known
MOST_TICKS = 1440
#: stands for a row without a time
NO_TIME = np.iinfo(np.int64).min
_UNITS = {"ms": 1, "s": SECOND, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
#: steps that people choose; an irregular stream gets the one nearest to its median step
_ROUND = (
    *(n * SECOND for n in (1, 2, 5, 10, 15, 20, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 20, 30)),
    *(n * HOUR for n in (1, 2, 3, 4, 6, 8, 12)),
    DAY, 7 * DAY,
)  # fmt: skip
_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})(?:[ T]+(.*))?")


class Clock(NamedTuple):
    """Ticks at equal distances, which all nodes share.

    ``tick`` turns a time into the number of the nearest tick, ``time`` a tick into its time.

    Examples
    --------
    >>> clock = Clock(start=0, step=HOUR)
    >>> clock.tick(2 * HOUR + 5 * MINUTE), clock.time(2) == 2 * HOUR, clock.words
    (2, True, '1 h')
    """

    start: int  # milliseconds since 1970, of tick 0
    step: int  # milliseconds from tick to tick; 1 where rows are counted
    is_dated: bool = True  # False: rows are counted, and there is no calendar

    def tick(self, time: int) -> int:
        """The tick nearest to a time."""
        return (time - self.start + self.step // 2) // self.step

    def ticks(self, times: Ints) -> Ints:
        """The ticks nearest to these times."""
        return (times - self.start + self.step // 2) // self.step

    def time(self, tick: int) -> int:
        """The time of a tick, in milliseconds since 1970."""
        return self.start + tick * self.step

    def text(self, tick: int) -> str:
        """The time of a tick in ISO 8601, UTC."""
        return (datetime(1970, 1, 1) + timedelta(milliseconds=self.time(tick))).isoformat()

    @property
    def period(self) -> int | None:
        """Ticks of a day, or of a week where a tick is a day; None if neither is some ticks.

        Examples
        --------
        >>> Clock(0, HOUR).period, Clock(0, DAY).period, Clock(0, 7 * DAY).period
        (24, 7, None)
        """
        ticks = [season // self.step for season in (DAY, 7 * DAY) if season % self.step == 0]
        found = [n for n in ticks if 1 < n <= MOST_TICKS]
        return found[0] if found and self.is_dated else None

    @property
    def words(self) -> str:
        """The step for people."""
        return duration_words(self.step) if self.is_dated else "1 row"


def parse_duration(text: str) -> int:
    """Read a duration such as 30min, 1h, 12 h or 1d, in milliseconds.

    Examples
    --------
    >>> parse_duration("30min") == 30 * MINUTE, parse_duration("1.5 h") == 90 * MINUTE
    (True, True)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h|d|w)\s*", str(text))
    made = round(float(found[1]) * _UNITS[found[2]]) if found else 0
    if made < 1:
        raise ParameterError(
            f"a duration must be a number with ms, s, min, h, d or w, such as 30min, got {text!r}"
        )
    return made


def duration_words(milliseconds: int) -> str:
    """A duration for people.

    Examples
    --------
    >>> duration_words(30 * MINUTE), duration_words(36 * HOUR)
    ('30 min', '36 h')
    """
    for unit in ("w", "d", "h", "min", "s"):
        if milliseconds % _UNITS[unit] == 0 and (unit != "w" or milliseconds > 7 * DAY):
            return f"{milliseconds // _UNITS[unit]} {unit}"
    return f"{milliseconds} ms"


def times_of(sheet: Sheet, columns: Sequence[str], form: str | None = None) -> Ints:
    """The time of every row, `NO_TIME` where there is none; what is wrong is told by the sheet.

    ``columns`` are one column of times (ISO dates, other dates whose order of day and month can be
    told, seconds or milliseconds since 1970), a column of dates and one of times of day, or the
    columns year, month, day and so on. ``form`` is a format of `datetime.strptime`.
    """
    if len(columns) > 1 and all(name.strip().lower() in PARTS for name in columns):
        return _from_parts(sheet, columns)
    cells = [sheet.column(name) for name in columns]
    texts = cells[0] if len(cells) == 1 else [_joined(parts) for parts in zip(*cells, strict=True)]
    distinct = list(dict.fromkeys(texts))
    day_first = _is_day_first(distinct)
    known = {text: _time(text.strip(), form, day_first) for text in distinct}
    times = np.array([*map(known.__getitem__, texts)], dtype=np.int64)
    for row in np.flatnonzero(times == _BAD).tolist():
        hint = "" if form else _hint(distinct)
        sheet.complain(row, ",".join(columns), f"must be a time, got {texts[row]!r}{hint}")
    return times


_BAD = NO_TIME + 1


def _joined(parts: Sequence[str]) -> str:
    """Cells of a row as one text; empty if one of them is missing."""
    bare = [part.strip() for part in parts]
    return "" if any(part.lower() in GAPS for part in bare) else " ".join(bare)


def _hint(texts: list[str]) -> str:
    if any(_SLASHED.fullmatch(text.strip()) for text in texts):
        return "; whether the day or the month comes first cannot be told: give --time-format"
    return "; ISO dates are read as they are, others need --time-format"


def _time(text: str, form: str | None, day_first: bool | None) -> int:
    """A cell as milliseconds since 1970; `NO_TIME` for a missing one, `_BAD` for no time."""
    if text.lower() in GAPS:
        return NO_TIME
    try:
        return _plain(text, day_first) if form is None else parse_time(text, form)
    except (ValueError, OverflowError):
        return _BAD


def _plain(text: str, day_first: bool | None) -> int:
    """An ISO date, a date with slashes or points, or a number, as milliseconds since 1970."""
    slashed = _SLASHED.fullmatch(text)
    if slashed is not None:
        if day_first is None:
            raise ValueError(text)
        first, second, year, rest = slashed.groups()
        day, month = (first, second) if day_first else (second, first)
        text = f"{year}-{int(month):02d}-{int(day):02d}" + (f" {rest}" if rest else "")
    if re.fullmatch(r"\d{4}/\d\d?/\d\d?.*", text):
        date, _, rest = text.partition(" ")
        text = "-".join(part.zfill(2) for part in date.split("/")) + (f" {rest}" if rest else "")
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d?\.\d\d(\.\d\d)?", text):
        text = text[:10] + text[10:].replace(".", ":")
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d:.*", text):
        text = f"{text[:11]}0{text[11:]}"
    is_number = re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", text) is not None
    if is_number and not re.fullmatch(r"\d{8}", text):  # eight digits are a date
        return _from_number(float(text))
    return parse_time(text)


def _from_number(value: float) -> int:
    """Seconds or milliseconds since 1970, by their size."""
    if not math.isfinite(value):
        raise ValueError(value)
    return round(value) if abs(value) >= 1e11 else round(value * SECOND)


def _is_day_first(texts: list[str]) -> bool | None:
    """Whether dates with slashes begin with the day; None if all of them could be either."""
    found = [each for each in map(_SLASHED.fullmatch, map(str.strip, texts)) if each]
    if any(int(each[1]) > 12 for each in found) or any("." in each[0][:3] for each in found):
        return True
    if any(int(each[2]) > 12 for each in found):
        return False
    return None


#: least and largest value of the parts of a time
_LIMITS = {
    "year": (1, 9999), "month": (1, 12), "day": (1, 31),
    "hour": (0, 24), "minute": (0, 59), "second": (0, 60),
}  # fmt: skip


def _from_parts(sheet: Sheet, columns: Sequence[str]) -> Ints:
    """Times from columns of year, month, day, hour, minute and second; hour 24 is the next day."""
    given = {name.strip().lower(): name for name in columns}
    if "year" not in given or len(given) < len(columns):
        raise ParameterError(f"time must have a year, and each part once, got {','.join(columns)}")
    parts = {part: _whole_numbers(sheet, part, name) for part, name in given.items()}
    missing = np.any([values == NO_TIME for values in parts.values()], axis=0)
    parts = {part: np.where(values == NO_TIME, 0, values) for part, values in parts.items()}
    year, month, day = parts["year"], parts.get("month", 1), parts.get("day", 1)
    months = np.asarray((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    wrong = ~missing & (days.astype("datetime64[M]") != months)
    for row in np.flatnonzero(wrong).tolist():
        sheet.complain(row, given.get("day"), "must be a day of its month")
    times = days.astype(np.int64) * DAY
    for part, unit in (("hour", HOUR), ("minute", MINUTE), ("second", SECOND)):
        times = times + parts.get(part, 0) * unit
    return np.where(missing, NO_TIME, np.where(wrong, _BAD, times))


def _whole_numbers(sheet: Sheet, part: str, name: str) -> Ints:
    """A column of a time; `NO_TIME` where it is missing."""
    low, high = _LIMITS[part]
    column, known = sheet.column(name), {}
    for cell in dict.fromkeys(column):
        bare = cell.strip()
        known[cell] = NO_TIME if bare.lower() in GAPS else _whole(bare)
        if known[cell] != NO_TIME and not low <= known[cell] <= high:
            text = f"must be a whole number in [{low}, {high}], got {bare!r}"
            sheet.complain(column.index(cell), name, text)
    return np.fromiter(map(known.__getitem__, column), np.int64, len(column))


def _whole(text: str) -> int:
    """A whole number, also as 3.0; -1, which no part of a time can be, for anything else."""
    try:
        value = float(text)
    except ValueError:
        return -1
    return int(value) if value.is_integer() else -1


def clock_of(streams: Sequence[Ints], step: int | None = None) -> Clock:
    """The clock of these streams of times, each in order and without repetition.

    The step is the distance of most neighboring times; else the smallest distance, if all others
    are multiples of it; else the median one, as a round number if one is near. Ticks
    pass through the times where most of them agree, else through the full hour.

    Examples
    --------
    >>> clock_of([np.array([0, 3_600_000, 7_200_000, 14_400_000])]).words
    '1 h'
    """
    gaps = np.concatenate([np.diff(times) for times in streams])
    if step is None:
        if not gaps.size:
            raise DataError("a stream must have at least two times to tell its step; give --every")
        values, counts = np.unique(gaps, return_counts=True)
        if 2 * counts.max() > gaps.size:
            step = int(values[counts.argmax()])
        elif np.gcd.reduce(values) == values[0]:
            step = int(values[0])
        else:
            step = _near_round(int(np.median(gaps)))
    phases, counts = np.unique(np.concatenate(streams) % step, return_counts=True)
    phase = int(phases[counts.argmax()]) if 2 * counts.max() > counts.sum() else 0
    first = min(int(times[0]) for times in streams)
    return Clock(phase + (first - phase + step // 2) // step * step, step)


def _near_round(step: int) -> int:
    """The round step within a fifth of this one, or this one."""
    near = min(_ROUND, key=lambda each: abs(each - step))
    return near if abs(near - step) <= step / 5 else max(1, step)


def calendar(name: str, times: Ints) -> Floats:
    """A calendar input as sine and cosine of its circle, (N, 2), each in [0, 1].

    ``hour`` is the time of day, ``weekday`` the day of the week and ``yearday`` the day of the
    year. Each distinct value is computed by itself, so that the numbers do not depend on how many
    times are asked for at once.

    Examples
    --------
    >>> calendar("hour", np.array([0, 6 * HOUR])).round(3).tolist()
    [[0.5, 1.0], [1.0, 0.5]]
    """
    if name == "hour":
        places, size = times % DAY, float(DAY)
    elif name == "weekday":
        places, size = (times // DAY + 3) % 7, 7.0
    else:
        days = (times // DAY).astype("datetime64[D]")
        places, size = (days - days.astype("datetime64[Y]")).astype(np.int64), 366.0
    values, place = np.unique(places, return_inverse=True)
    turns = [2 * math.pi * int(value) / size for value in values]
    made = np.array([[(math.sin(turn) + 1) / 2, (math.cos(turn) + 1) / 2] for turn in turns])
    return np.asarray(made.reshape(-1, 2)[place.reshape(-1)])
