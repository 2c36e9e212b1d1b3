"""Ask nodes for their state over HTTP, and put the answers in a table with a verdict."""

import contextlib
import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from domkl.mesh.config.certificates import CA
from domkl.mesh.config.file import Member, MeshConfig
from domkl.mesh.config.folder import TOKEN
from domkl.mesh.config.settings import WILDCARDS
from domkl.mesh.operate.verdict import duration, verdict_of, window_of
from domkl.text import text_table

TIMEOUT = 2.0  # seconds
MAX_ANSWER = 2**23  # bytes


class Row(NamedTuple):
    """The state of a learner, as far as it is known."""

    learner: str
    is_up: bool
    pid: int | None = None
    round: int | None = None
    samples: int | None = None
    mse: float | None = None
    alone: float | None = None
    last_value: float | None = None
    gap: float | None = None
    n_open: int | None = None
    n_listed: int | None = None
    received: int | None = None
    sent: int | None = None
    refused: int | None = None
    verdict: str = "down"
    says: str = ""
    exchanges: bool | None = None
    learns: bool | None = None
    is_worth_it: bool | None = None
    unit: str = ""  # of the next three: recent errors, root mean squares in the target's units
    error: float | None = None
    error_alone: float | None = None
    error_last_value: float | None = None
    sample_age: float | None = None  # seconds
    queued: int | None = None
    certificate_seconds: float | None = None  # until it expires


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
        return json.loads(answer.read(MAX_ANSWER)) if answer.status == 200 else None
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
    """One row per learner."""
    return [_row(config, name, states.get(name), (pids or {}).get(name)) for name in config.names]


def _row(config: MeshConfig, name: str, state: Any, pid: int | None) -> Row:
    n_listed = len(config.neighbors(name))
    if not isinstance(state, dict):
        says = verdict_of(None).says
        return Row(name, False, pid, n_listed=n_listed, says=says, unit=config.target.name)
    verdict, (_, recent) = verdict_of(state), window_of(state)
    edges = list(state.get("neighbors", {}).values())
    refused = sum(each["n"] for each in state.get("refused", ()))
    return Row(
        name,
        bool(state.get("is_ready")),
        state.get("pid") if pid is None else pid,
        round=state.get("n_rounds"),
        samples=state.get("n_learned"),
        mse=state.get("mse"),
        alone=state.get("mse_alone"),
        last_value=state.get("mse_last_value"),
        gap=state.get("neighbor_gap"),
        n_open=sum(bool(edge["is_open"]) for edge in edges),
        n_listed=n_listed,
        received=sum(edge["received_bytes"] for edge in edges),
        sent=sum(edge["sent_bytes"] for edge in edges),
        refused=refused + sum(state.get("strangers", {}).values()),
        verdict=verdict.word,
        says=verdict.says,
        exchanges=verdict.exchanges,
        learns=verdict.learns,
        is_worth_it=verdict.is_worth_it,
        unit=config.target.name,
        error=recent.get("rmse"),
        error_alone=recent.get("rmse_alone"),
        error_last_value=recent.get("rmse_last_value"),
        sample_age=state.get("sample_age"),
        queued=state.get("n_queued"),
        certificate_seconds=_left(state.get("expires")),
    )


def _left(expires: str | None) -> float | None:
    """Seconds until a certificate expires."""
    if expires is None:
        return None
    return round((datetime.fromisoformat(expires) - datetime.now(UTC)).total_seconds())


ALL_WELL, SOME_DOWN, NO_EXCHANGE, NO_LEARNING = 0, 4, 5, 6


def code_of(rows: Sequence[Row]) -> int:
    """The exit code for a mesh: the first of up, exchanging, learning that a learner lacks."""
    if not all(row.is_up for row in rows):
        return SOME_DOWN
    if any(row.exchanges is False for row in rows):
        return NO_EXCHANGE
    return NO_LEARNING if any(row.learns is False for row in rows) else ALL_WELL


def in_words(rows: Sequence[Row]) -> str:
    """The verdict on each learner in a sentence, and one on all of them."""
    known = [row for row in rows if row.is_up]
    parts = [
        f"{len(known)} of {len(rows)} are up",
        f"{sum(row.exchanges is not False for row in known)} exchange",
        f"{sum(row.learns is True for row in known)} learn",
        f"for {sum(row.is_worth_it is True for row in known)} the network is worth it",
    ]
    lines = [f"{row.learner}: {row.verdict}; {row.says}" for row in rows]
    return "\n".join([*lines, ", ".join(parts)])


COLUMNS = ("learner", "pid", "verdict", "samples", "error", "alone", "last value", "last sample",
           "queue", "neighbors", "in", "out", "refused", "certificate")  # fmt: skip


def as_table(rows: Sequence[Row]) -> str:
    """A table as text; errors are recent ones, root mean squares in the target's units."""
    return text_table([COLUMNS, *map(_cells, rows)])


def _cells(row: Row) -> tuple[str, ...]:
    n_open = "-" if row.n_open is None else str(row.n_open)
    return (
        row.learner,
        _whole(row.pid),
        "starting" if not row.is_up and row.pid is not None else row.verdict,
        _whole(row.samples),
        *(_number(value) for value in (row.error, row.error_alone, row.error_last_value)),
        "-" if row.sample_age is None else f"{duration(row.sample_age)} ago",
        _whole(row.queued),
        f"{n_open}/{row.n_listed}",
        _size(row.received),
        _size(row.sent),
        _whole(row.refused),
        "-" if row.certificate_seconds is None else duration(row.certificate_seconds),
    )


def _whole(value: int | None) -> str:
    return "-" if value is None else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _size(n_bytes: int | None) -> str:
    """A number of bytes with a unit.

    >>> _size(999), _size(1_250_000)
    ('999 B', '1.2 MB')
    """
    if n_bytes is None:
        return "-"
    if n_bytes < 1000:
        return f"{n_bytes} B"
    size = float(n_bytes)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.5 or unit == "GB":
            break
    return f"{size:.1f} {unit}" if size < 9.95 else f"{size:.0f} {unit}"
