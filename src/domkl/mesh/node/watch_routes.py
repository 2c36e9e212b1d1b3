"""What a node answers to those who watch it: its history, its newest samples, a live stream."""

import json
import math
import reprlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from domkl.errors import DataError
from domkl.mesh.config.settings import MeshConfig
from domkl.mesh.node.node import Node
from domkl.mesh.node.telemetry import state_of
from domkl.mesh.store.history import HistoryRows
from domkl.mesh.store.history_json import history_of, samples_of

EVERY = 1.0  # seconds between two lines of the stream
MOST_WATCHERS = 32
MOST_SECONDS = 1e12  # of a time or a step in a question: 30,000 years
LINES = "application/x-ndjson"


def watch_routes(node: Node) -> Iterator[Route]:
    """The requests."""
    n_watchers = 0
    target = node.format.model.target

    async def history(request: Request) -> Response:
        """Errors, weights, queue and traffic since a time (of 1970) in steps of seconds; events.

        Steps are longer than asked for where shorter ones are not kept so long.
        """
        since, step = span_of(request)
        recorder = node.recorder
        rows = recorder.rows(since, max(step, 1.0))
        happened = [each._asdict() for each in recorder.events if each.time >= since]
        answer = {
            "learner": node.folder.name,
            "now": recorder.clock(),
            "target": target_of(node.folder.config),
            **history_of(rows, recorder.horizons, target),
            "events": happened,
        }
        return JSONResponse(answer)

    async def recent(request: Request) -> Response:
        """The newest 1000: number, time, label, prediction, deviation, alone, last value."""
        horizon = horizon_of(request)
        if horizon not in node.recorder.horizons:
            raise DataError(f"horizon must be one of {node.recorder.horizons}, got {horizon}")
        return JSONResponse(samples_of(node.recorder.samples(horizon), target))

    async def watch(request: Request) -> Response:
        """A line of JSON now and every second: first what there is, then what is new."""
        if n_watchers >= MOST_WATCHERS:
            raise HTTPException(503, f"at most {MOST_WATCHERS} may watch at once; close a page")
        return StreamingResponse(lines(), media_type=LINES, headers={"Cache-Control": "no-store"})

    async def lines() -> AsyncIterator[bytes]:
        nonlocal n_watchers
        n_watchers += 1
        try:
            async for line in news_of(node):
                yield json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        finally:
            n_watchers -= 1

    yield Route("/history", history)
    yield Route("/recent", recent)
    yield Route("/watch", watch)


def span_of(request: Request) -> tuple[float, float]:
    """The time since when, and the step, both in seconds."""
    found = []
    for name, default in (("since", "0"), ("step", "1")):
        said = request.query_params.get(name, default)
        try:
            found.append(float(said))
        except ValueError:
            found.append(math.nan)
        if not 0 <= found[-1] <= MOST_SECONDS:
            wanted = f"must be seconds, from 0 to {MOST_SECONDS:g}"
            raise DataError(f"{name} {wanted}, got {reprlib.repr(said)}")
    return found[0], found[1]


def horizon_of(request: Request) -> int:
    """The horizon that is asked for."""
    said = request.query_params.get("horizon", "1")
    try:
        return int(said)
    except ValueError:
        raise DataError(f"horizon must be a whole number, got {reprlib.repr(said)}") from None


async def news_of(node: Node) -> AsyncIterator[dict[str, Any]]:
    """The lines of the stream."""
    yield {"hello": hello_of(node)}
    recorder = node.recorder
    second, number = int(recorder.clock()) - 1, recorder.history.last_number
    noted = recorder.events[-1].number if recorder.events else 0
    while True:
        rows = recorder.seconds_after(second)
        samples = {h: recorder.samples(h, number) for h in recorder.horizons}
        happened = [each._asdict() for each in recorder.events if each.number > noted]
        target = node.format.model.target
        yield {
            "time": recorder.clock(),
            "learners": {
                node.folder.name: state_of(node)
                | {
                    "rows": history_of(HistoryRows(1, rows), recorder.horizons, target),
                    "samples": {str(h): samples_of(s, target) for h, s in samples.items()},
                    "events": happened,
                }
            },
        }
        second = int(rows["index"][-1]) if len(rows) else second
        number = max([number, *(int(s["index"][-1]) for s in samples.values() if len(s))])
        noted = recorder.events[-1].number if recorder.events else 0
        if not await node.sleep(EVERY):
            return


def hello_of(node: Node) -> dict[str, Any]:
    """What a page of this node must know first: the node, its neighbors, the target."""
    config, name = node.folder.config, node.folder.name
    near = config.neighbors(name)
    return hello_of_mesh(config, (name, *near)) | {
        "watched": [name],
        "edges": [[name, each] for each in near],
    }


def hello_of_mesh(config: MeshConfig, names: tuple[str, ...]) -> dict[str, Any]:
    """The same of some learners of a mesh."""
    return {
        "mesh": config.name,
        "target": target_of(config),
        "silence": config.timing.silence,
        "learners": [{"name": name, "place": config.member(name).place} for name in names],
        "watched": list(names),
        "edges": [list(edge) for edge in config.edges],
        "horizons": [1] if config.forecast is None else list(config.forecast.horizons),
        "kernels": [kernel_name(each) for each in config.bank()],
    }


def target_of(config: MeshConfig) -> dict[str, Any]:
    """Name and range of what is predicted."""
    return {name: getattr(config.target, name) for name in ("name", "low", "high")}


def kernel_name(kernel: Any) -> str:
    """A kernel in a word or two."""
    bandwidth = getattr(kernel, "bandwidth", None)
    name = type(kernel).__name__.lower()
    is_number = isinstance(bandwidth, float) and math.isfinite(bandwidth)
    return f"{name} {bandwidth:.3g}" if is_number else name
