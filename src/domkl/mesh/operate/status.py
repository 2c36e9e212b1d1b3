"""Ask nodes for their state over HTTP, and put the answers in a table with a verdict."""

import contextlib
import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domkl.mesh.config.certificates import CA
from domkl.mesh.config.file import Member, MeshConfig
from domkl.mesh.config.folder import TOKEN
from domkl.mesh.config.settings import WILDCARDS
from domkl.mesh.operate.verdict import duration, verdict_of, window_of
from domkl.text import check_depth, from_json, text_table

TIMEOUT = 2.0  # seconds
MAX_ANSWER = 2**23  # bytes


#: the state of a learner, as far as it is known: None for what is not
Row = dict[str, Any]


def ask(
    member: Member,
    folder: Path,
    path: str = "/state",
    *,
    body: Any = None,
    timeout: float = TIMEOUT,
) -> Any:
    """A node's answer to a GET, or to a POST if there is a body; None without an answer."""
    headers = {"Content-Type": "application/json", **authorization(folder / member.name)}
    connection: http.client.HTTPConnection | None = None
    try:
        connection = connected(member, folder / member.name, timeout)
        text = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, text, headers)
        answer = connection.getresponse()
        found = from_json(answer.read(MAX_ANSWER)) if answer.status == 200 else None
        check_depth(found)
        return found
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        if connection is not None:
            connection.close()


def authorization(folder: Path) -> dict[str, str]:
    """The header with the token of a learner's folder; none if there is no token."""
    with contextlib.suppress(OSError):
        return {"Authorization": f"Bearer {(folder / TOKEN).read_text().strip()}"}
    return {}


def connected(member: Member, folder: Path, timeout: float) -> http.client.HTTPConnection:
    """A connection to a node; beyond loopback over TLS, and only to the learner of that name."""
    is_wild = member.http.host in WILDCARDS
    host = member.address.host if is_wild else member.http.host
    connection = http.client.HTTPConnection(host, member.http.port, timeout=timeout)
    connection.connect()
    if not member.http.is_loopback:
        context = ssl.create_default_context(cafile=str(folder / CA))
        connection.sock = context.wrap_socket(connection.sock, server_hostname=member.name)
    return connection


def ask_all(config: MeshConfig, folder: Path, *, timeout: float = TIMEOUT) -> dict[str, Any]:
    """The state of every learner, asked in parallel."""
    with ThreadPoolExecutor(max_workers=min(len(config.members), 32)) as pool:
        found = pool.map(lambda member: ask(member, folder, timeout=timeout), config.members)
        return dict(zip(config.names, found, strict=True))


def rows_of(
    config: MeshConfig, states: Mapping[str, Any], pids: Mapping[str, int | None] | None = None
) -> list[Row]:
    """One row per learner, as `domkl mesh status --json` prints it."""
    return [_row(config, name, states.get(name), (pids or {}).get(name)) for name in config.names]


#: parts of a row that are parts of the state, and of the recent errors in it: root mean squares in
#: the target's units
_STATE = {"round": "n_rounds", "samples": "n_learned", "mse": "mse", "alone": "mse_alone",
          "last_value": "mse_last_value", "gap": "neighbor_gap", "sample_age": "sample_age",
          "queued": "n_queued"}  # fmt: skip
_RECENT = {"error": "rmse", "error_alone": "rmse_alone", "error_last_value": "rmse_last_value"}
_COUNTS = ("n_open", "received", "sent", "refused")


def _row(config: MeshConfig, name: str, said: Any, pid: int | None) -> Row:
    state = said if isinstance(said, dict) else {}
    verdict, (_, recent) = verdict_of(state or None), window_of(state)
    edges = list(state.get("neighbors", {}).values())
    counts = (
        sum(bool(edge["is_open"]) for edge in edges),
        sum(edge["received_bytes"] for edge in edges),
        sum(edge["sent_bytes"] for edge in edges),
        sum(each["n"] for each in state.get("refused", ()))
        + sum(state.get("strangers", {}).values()),
    )
    return {
        "learner": name,
        "is_up": bool(state.get("is_ready")),
        "pid": state.get("pid") if pid is None else pid,
        **{key: state.get(source) for key, source in _STATE.items()},
        **(dict(zip(_COUNTS, counts, strict=True)) if state else dict.fromkeys(_COUNTS)),
        "n_listed": len(config.neighbors(name)),
        "verdict": verdict.word,
        "says": verdict.says,
        **{key: getattr(verdict, key) for key in ("exchanges", "learns", "is_worth_it")},
        "unit": config.target.name,
        **{key: recent.get(source) for key, source in _RECENT.items()},
        "certificate_seconds": _left(state.get("expires")),
    }


def _left(expires: str | None) -> float | None:
    """Seconds until a certificate expires."""
    if expires is None:
        return None
    return round((datetime.fromisoformat(expires) - datetime.now(UTC)).total_seconds())


ALL_WELL, SOME_DOWN, NO_EXCHANGE, NO_LEARNING = 0, 4, 5, 6


def code_of(rows: Sequence[Row]) -> int:
    """The exit code for a mesh: the first of up, exchanging, learning that a learner lacks."""
    if not all(row["is_up"] for row in rows):
        return SOME_DOWN
    if any(row["exchanges"] is False for row in rows):
        return NO_EXCHANGE
    return NO_LEARNING if any(row["learns"] is False for row in rows) else ALL_WELL


def in_words(rows: Sequence[Row]) -> str:
    """The verdict on each learner in a sentence, and one on all of them."""
    known = [row for row in rows if row["is_up"]]
    parts = [
        f"{len(known)} of {len(rows)} are up",
        f"{sum(row['exchanges'] is not False for row in known)} exchange",
        f"{sum(row['learns'] is True for row in known)} learn",
        f"for {sum(row['is_worth_it'] is True for row in known)} the network is worth it",
    ]
    lines = [f"{row['learner']}: {row['verdict']}; {row['says']}" for row in rows]
    return "\n".join([*lines, ", ".join(parts)])


def as_table(rows: Sequence[Row]) -> str:
    """A table as text; errors are recent ones, root mean squares in the target's units."""
    cells = [
        ["-" if row[key] is None else form(row[key]) for key, form in _COLUMNS.values()]
        for row in map(_shown, rows)
    ]
    return text_table([tuple(_COLUMNS), *cells])


def _shown(row: Row) -> Row:
    n_open = "-" if row["n_open"] is None else row["n_open"]
    is_starting = not row["is_up"] and row["pid"] is not None
    return row | {
        "neighbors": f"{n_open}/{row['n_listed']}",
        "verdict": "starting" if is_starting else row["verdict"],
    }


def _size(n_bytes: int) -> str:
    """A number of bytes with a unit.

    >>> _size(999), _size(1_250_000)
    ('999 B', '1.2 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} B"
    size = float(n_bytes)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.5 or unit == "GB":
            break
    return f"{size:.1f} {unit}" if size < 9.95 else f"{size:.0f} {unit}"


#: columns of the table: title, key of a row, and its form
_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "learner": ("learner", str),
    "pid": ("pid", str),
    "verdict": ("verdict", str),
    "samples": ("samples", str),
    "error": ("error", "{:.4g}".format),
    "alone": ("error_alone", "{:.4g}".format),
    "last value": ("error_last_value", "{:.4g}".format),
    "last sample": ("sample_age", lambda seconds: f"{duration(seconds)} ago"),
    "queue": ("queued", str),
    "neighbors": ("neighbors", str),
    "in": ("received", _size),
    "out": ("sent", _size),
    "refused": ("refused", str),
    "certificate": ("certificate_seconds", duration),
}
