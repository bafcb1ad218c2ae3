"""/health and /metrics: for machines that watch over the service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import Field
from starlette.responses import JSONResponse, PlainTextResponse, Response

from app import __version__
from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import Context, ContextDep
from app.http.schemas import Resource, one_of
from app.operations import health

router = APIRouter(tags=["health"], route_class=GuardedRoute)

PROMETHEUS = CONTENT_TYPE_PLAIN_0_0_4


class Part(Resource):
    """One part of the service."""

    ok: bool
    detail: str


class Health(Resource):
    """State of the service and of its parts."""

    status: Annotated[
        str,
        one_of(("ok", "unavailable")),
        Field(description="`ok` or `unavailable`.", examples=["ok"]),
    ]
    version: str
    build: Annotated[
        str, Field(description="The build: `RANKWRIGHT_BUILD` of the process. An image sets it.")
    ]
    parts: dict[str, Part] = Field(default_factory=dict)


@router.get("/health/live", summary="Is the process alive?")
async def live(context: ContextDep) -> Health:
    """200 as long as the process answers."""
    return Health(status="ok", version=__version__, build=context.settings.build)


_AWAY: dict[int | str, dict[str, Any]] = {
    503: {
        "model": Health,
        "description": "A part of the service is unavailable; the answer names each part.",
    }
}


@router.get(
    "/health/ready",
    response_model=Health,
    summary="Can the process answer?",
    responses=_AWAY,
)
def ready(context: ContextDep) -> Response:
    """Check what this process needs to answer and to accept work: the database, its tables and the blob store; and
    whether the process is about to stop. For a proxy or an orchestrator: on 503, send no requests to this process.
    """
    return _answer(context, _can_serve(context))


@router.get(
    "/health/staffed",
    response_model=Health,
    summary="Can the process answer, and do workers run?",
    responses=_AWAY,
)
def staffed(context: ContextDep) -> Response:
    """Check the same, and also the broker, and whether a worker has sent a heartbeat. For an alarm: if this is 503 but
    `/health/ready` is 200, the service scores rows and accepts jobs, but jobs wait.
    """
    work = health.does_work(context.db, context.producer, context.settings)
    return _answer(context, [*_can_serve(context), *work])


def _can_serve(context: Context) -> list[health.Check]:
    return health.can_serve(context.db, context.schema, context.blobs)


def _answer(context: Context, checks: list[health.Check]) -> Response:
    parts = {check.name: Part(ok=check.ok, detail=check.detail) for check in checks}
    if context.drain.begun:
        parts["api"] = Part(ok=False, detail="this process was told to end")
    well = all(part.ok for part in parts.values())
    body = Health(
        status="ok" if well else "unavailable",
        version=__version__,
        build=context.settings.build,
        parts=parts,
    )
    return JSONResponse(body.model_dump(), 200 if well else 503)


@router.get("/oip/v2/health/live", include_in_schema=False)
async def oip_live() -> Response:
    """Answer that this process runs, as the Open Inference Protocol writes it."""
    return JSONResponse({"live": True})


@router.get("/oip/v2/health/ready", include_in_schema=False)
def oip_ready(context: ContextDep) -> Response:
    """Answer whether this process can score, as the Open Inference Protocol writes it."""
    found = _answer(context, _can_serve(context))
    return JSONResponse({"ready": found.status_code == 200}, found.status_code)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="Read metrics for Prometheus",
    responses={200: {"content": {PROMETHEUS: {"schema": {"type": "string"}}}}},
)
@needs("operator")
def metrics(context: ContextDep) -> Response:
    """Durations of requests by route and status, jobs by kind and state, and live workers, for all owners together.
    The requests are those of all API processes that share this port. Needs scope `operator`. Scope `admin` is enough
    while only one owner has ever had a key.
    """
    return PlainTextResponse(generate_latest(context.metrics.registry), media_type=PROMETHEUS)
