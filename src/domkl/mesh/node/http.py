"""A node's local face: HTTP for whoever has samples, wants predictions, or watches."""

import asyncio
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

import domkl
from domkl.errors import DataError, DomklError, MeshError
from domkl.mesh.node.guard import Guard, Rules
from domkl.mesh.node.intake import QueueFullError
from domkl.mesh.node.journal import JournalFullError
from domkl.mesh.node.node import INVALID, Node
from domkl.mesh.node.report import registry_of, state_of
from domkl.mesh.node.samples import Batch, Given, Inputs, Prepared, explained

RETRY = "1"  # seconds
AT_ONCE = 64  # samples checked before others are heard


class Accepted(BaseModel):
    """A sample that is on disk, and will be learned once."""

    number: int = Field(description="counted from 1")
    id: str | None = None


class Predicted(BaseModel):
    """What the learner says of inputs now, in the target's own units."""

    prediction: float
    deviation: float | None = Field(description="its standard deviation, where there is one")
    n_outside: int = Field(description="inputs that were clipped to their range")


class Problem(BaseModel):
    """Why something was refused."""

    detail: str


class NotReadyError(DomklError):
    """The node compiles, or stops."""


class TooFewError(DomklError):
    """A series has not enough values yet."""


STATUS: dict[type[DomklError], int] = {
    DataError: 422,
    QueueFullError: 429,
    JournalFullError: 507,
    MeshError: 503,
    NotReadyError: 503,
    TooFewError: 409,
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (401, 403, 409, 413, 422, 429, 503, 507)
}


def create_app(node: Node, rules: Rules) -> FastAPI:
    """The HTTP face of a node."""
    app = FastAPI(
        title="domkl node",
        version=domkl.__version__,
        summary="A learner of a mesh: samples in, predictions out.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
    )
    app.add_middleware(Guard, rules=rules)
    app.add_exception_handler(DomklError, _on_error)
    app.add_exception_handler(RequestValidationError, partial(_on_invalid, node))
    _add_learning(app, node)
    _add_watching(app, node)
    return app


def _add_learning(app: FastAPI, node: Node) -> None:
    desk = node.ledger.desk

    @app.post("/learn", status_code=202, responses=ANSWERS)
    async def learn(body: Given | Batch) -> Accepted | list[Accepted]:
        """Accept a sample, or a list of samples, all or none; they are on disk when this answers.

        A full queue answers 429, a full disk 507; nothing was accepted then.
        """
        _check_ready(node)
        given = body if isinstance(body, list) else [body]
        numbers = await node.accept(await _prepared(node, given)) if given else []
        found = [Accepted(number=n, id=g.id) for n, g in zip(numbers, given, strict=True)]
        return found if isinstance(body, list) else found[0]

    @app.post("/predict", responses=ANSWERS)
    async def predict(body: Inputs) -> Predicted:
        """Predict for inputs; without x, the next value of a series."""
        _check_ready(node)
        if body.x is None:
            x, n_outside = _next_inputs(node), 0
        else:
            x, n_outside = desk.inputs(body.x)
        y_hat, deviation = node.predict(x)
        return Predicted(prediction=y_hat, deviation=deviation, n_outside=n_outside)


def _add_watching(app: FastAPI, node: Node) -> None:
    registry = registry_of(node)

    @app.get("/state")
    async def state(digest: bool = False) -> dict[str, Any]:
        """Measures, the agreed model, neighbors; with digest, a checksum of the learned state."""
        return state_of(node, with_digest=digest)

    @app.get("/healthz", responses={503: {"model": Problem}})
    async def healthz() -> dict[str, str]:
        """200 while the node learns and predicts."""
        _check_ready(node)
        return {"status": "ready"}

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _check_ready(node: Node) -> None:
    if not node.is_ready:
        raise NotReadyError("node must be ready, and is starting or stopping; try again later")


async def _prepared(node: Node, given: list[Given]) -> list[Prepared]:
    """All of them, or the first that is wrong; long lists let others have their turn."""
    found = []
    for k, each in enumerate(given, 1):
        try:
            found.append(node.ledger.desk.sample(each))
        except DataError as error:
            node.rejected[INVALID] += len(given)
            where = f"sample {k} of {len(given)}: " if len(given) > 1 else ""
            raise DataError(where + str(error)) from None
        if k % AT_ONCE == 0:
            await asyncio.sleep(0)
    return found


def _next_inputs(node: Node) -> Any:
    series = node.ledger.series
    if series is None:
        raise DataError("x must be given, got none: the mesh has no lags")
    if series.lags is None:
        raise TooFewError(
            f"series must have {series.n_lags} values to predict the next, got {series.position}"
        )
    return series.lags


async def _on_error(request: Request, error: Exception) -> JSONResponse:
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    headers = {"Retry-After": RETRY} if status in (429, 503, 507) else None
    return JSONResponse({"detail": str(error)}, status, headers)


async def _on_invalid(node: Node, request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    node.rejected[INVALID] += request.url.path == "/learn"
    return JSONResponse({"detail": f"body must fit; {explained(error.errors())}"}, 422)
