"""A node's log: one line per event, as text or JSON; warnings before a certificate expires."""

import contextlib
import json
import logging
import logging.handlers
import math
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from domkl import checks
from domkl.errors import DomklError
from domkl.mesh.config import certificates
from domkl.storage import opened_privately

FORMATS = ("text", "json")
SECRETS = (certificates.NODE_KEY, "token")
SOURCES = ("domkl", "uvicorn", "asyncio")  # of the other two only warnings and errors
LEVELS = ("debug", "info", "warning", "error")
ROTATED = 10 * 2**20  # bytes of a log file; five older ones are kept
WARNED = timedelta(days=30)  # before a certificate expires
DAY = 86400.0
REPEATED = 60.0  # seconds within which an equal alarm is counted but not written
MOST_LINES = 60  # of one kind within these seconds; further ones are counted but not written

logger = logging.getLogger("domkl.mesh")


def event(what: str, level: int = logging.INFO, /, **facts: Any) -> None:
    """Write a line: what happened, and its facts."""
    logger.log(level, what, extra={"facts": facts})


@contextlib.contextmanager
def logging_to(form: str, level: str, file: Path | None = None) -> Iterator[None]:
    """Send the log of the process to standard error, or to a file that is rotated."""
    checks.choice("log format", form, FORMATS)
    checks.choice("log level", level, LEVELS)
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = LogFile(file, maxBytes=ROTATED, backupCount=5)
    handler.addFilter(FloodGate())
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    before = [(each, each.level, each.propagate) for each in map(logging.getLogger, SOURCES)]
    for each, _, _ in before:
        each.addHandler(handler)
        each.setLevel(level.upper() if each.name == "domkl" else logging.WARNING)
        each.propagate = False
    try:
        yield
    finally:
        for each, each.level, each.propagate in before:
            each.removeHandler(handler)
        handler.close()


class LogFile(logging.handlers.RotatingFileHandler):
    """A log that is rotated, and that its owner alone can read."""

    def _open(self) -> Any:
        return opened_privately(self.baseFilename, self.mode)


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, event, and its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Give a record as one line."""
        facts = {"time": _time(record), "level": record.levelname.lower(), **_facts(record)}
        return json.dumps(facts, default=str, allow_nan=True)


class TextLines(logging.Formatter):
    """The same as readable text."""

    def format(self, record: logging.LogRecord) -> str:
        """Give a record as one line."""
        facts = _facts(record)
        name = facts.pop("event")
        rest = " ".join(f"{key}={_quoted(value)}" for key, value in facts.items())
        return f"{_time(record)} {record.levelname.lower()} {name} {rest}".rstrip()


class Throttle:
    """Lets so many equal things through a minute, and counts those that were held back.

    Parameters
    ----------
    clock : callable
        Seconds.
    most : int
        Equal things that pass in a minute.
    """

    def __init__(self, clock: Callable[[], float], most: int = 1) -> None:
        self._clock, self._most = clock, most
        self._seen: dict[tuple[str, ...], tuple[float, int, int]] = {}  # since, passed, held back

    def admit(self, *key: str) -> int | None:
        """How many were held back since the last one that passed; None to hold back this one."""
        now = self._clock()
        if key not in self._seen and len(self._seen) >= 1000:  # strangers can make up keys
            self._seen.clear()
        since, n_passed, n_held = self._seen.get(key, (now, 0, 0))
        if now - since >= REPEATED:
            since, n_passed = now, 0
        is_over = n_passed >= self._most
        self._seen[key] = since, n_passed + (not is_over), n_held + 1 if is_over else 0
        return None if is_over else n_held


class FloodGate(logging.Filter):
    """Lets through so many lines of one kind a minute; the next one says how many were held back.

    Lines are of one kind if they come from the same logger with the same text before formatting.
    """

    def __init__(self, most: int = MOST_LINES) -> None:
        super().__init__()
        self._now = 0.0
        self._throttle = Throttle(lambda: self._now, most)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a line."""
        self._now = record.created
        held = self._throttle.admit(record.name, str(record.msg).partition("\n")[0][:200])
        record.held_back = held or 0
        return held is not None


def expiry_alarm(expires: datetime, now: datetime) -> str | None:
    """A warning if a certificate expires within 30 days, or None.

    Examples
    --------
    >>> now = datetime(2030, 1, 1, tzinfo=UTC)
    >>> expiry_alarm(now + timedelta(days=29, hours=1), now)
    'certificate expires in 29 days; renew it with domkl mesh rotate-keys'
    >>> expiry_alarm(now + timedelta(days=31), now) is None
    True
    """
    if expires - now > WARNED:
        return None
    days = (expires - now).days
    when = f"expires in {days} days" if days >= 0 else "has expired"
    return f"certificate {when}; renew it with domkl mesh rotate-keys"


def exposed(folder: Path) -> list[Path]:
    """Keys and data of a node's folder that other users of the machine can read."""
    data = folder / "data"
    found = []
    for path in (*(folder / name for name in SECRETS), data, *sorted(data.rglob("*"))):
        with contextlib.suppress(FileNotFoundError):  # a draft that is in its place by now
            if not path.is_symlink() and path.stat().st_mode & 0o077:
                found.append(path)
    return found


def tighten(folder: Path) -> None:
    """Take them from the others; files of earlier versions could be read by all."""
    shown = exposed(folder)
    for path in shown:
        with contextlib.suppress(OSError):  # somebody else's: it is told of every day
            path.chmod(path.stat().st_mode & 0o700)
    if shown:
        text = "keys and data of the node could be read by others, and can no more"
        event("tightened", logging.WARNING, files=len(shown), text=text)


class CertificateWatch:
    """Checks once a day when a certificate expires and who can read its key.

    Attributes
    ----------
    expires : datetime or None
        None before the first check, or without a certificate.
    due : float
        When to look next, in the seconds of the caller's clock.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.expires: datetime | None = None
        self.due = -math.inf

    def look(self, clock: float) -> None:
        """Check the certificate, if there is one; the next time is a day after ``clock``."""
        self.due = clock + DAY
        if self.path is None:
            return
        try:
            self.expires = certificates.expires(self.path)
        except (DomklError, OSError) as error:
            event("certificate", logging.ERROR, text=str(error))
            return
        for path in exposed(self.path.parent):
            text = f"{path} must be readable by its owner alone, and is by others; chmod go="
            event("certificate", logging.WARNING, text=text)
        alarm = expiry_alarm(self.expires, datetime.now(UTC))
        if alarm is not None:
            event("certificate", logging.WARNING, text=alarm, expires=self.expires.isoformat())


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """The event and its facts; for lines of other packages, the logger's name and the text."""
    facts = getattr(record, "facts", None)
    text = record.getMessage()
    if record.exc_info:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    held = getattr(record, "held_back", 0)
    more = {"lines_held_back": held} if held else {}
    if facts is None:
        return {"event": "log", "from": record.name, "text": text, **more}
    return {"event": text, **facts, **more}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _quoted(value: Any) -> str:
    """A value as one word of a line: nothing that a stranger sent moves a terminal's cursor."""
    text = str(value)
    is_plain = text.isprintable() and not any(c.isspace() or c in '"=' for c in text)
    return text if text and is_plain else json.dumps(text)
