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
from app.http.schemas import Resource
from app.operations import health

router = APIRouter(tags=["health"], route_class=GuardedRoute)

PROMETHEUS = CONTENT_TYPE_PLAIN_0_0_4


class Part(Resource):
    """One part of the service."""

    ok: bool
    detail: str


class Health(Resource):
    """Whether the service is well."""

    status: Annotated[str, Field(description="`ok` or `unavailable`.", examples=["ok"])]
    version: str = __version__
    build: Annotated[
        str, Field(description="`RANKWRIGHT_BUILD` of the process, which an image sets.")
    ]
    parts: dict[str, Part] = Field(default_factory=dict)


@router.get("/health/live", summary="Is the process alive?")
async def live(context: ContextDep) -> Health:
    """Answers as long as the process does."""
    return Health(status="ok", build=context.settings.build)


_AWAY: dict[int | str, dict[str, Any]] = {
    503: {"model": Health, "description": "A part is away; each is named."}
}


@router.get(
    "/health/ready",
    response_model=Health,
    summary="Can it answer?",
    responses=_AWAY,
)
def ready(context: ContextDep) -> Response:
    """Looks at what this process needs to answer and to accept work: the database, its tables, the blob store; and
    whether the process ends. For a proxy or an orchestrator: 503 means that no request should come here.
    """
    return _answer(context, _can_serve(context))


@router.get(
    "/health/staffed",
    response_model=Health,
    summary="Can it answer, and is accepted work done?",
    responses=_AWAY,
)
def staffed(context: ContextDep) -> Response:
    """Looks at the same, at the broker, and whether a worker was heard from. For an alarm: where it is 503 and
    `/health/ready` is not, scores are answered and jobs accepted, but these wait.
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
    body = Health(status="ok" if well else "unavailable", build=context.settings.build, parts=parts)
    return JSONResponse(body.model_dump(), 200 if well else 503)


@router.get("/oip/v2/health/live", include_in_schema=False)
async def live_by_protocol() -> Response:
    """The same for clients of the Open Inference Protocol."""
    return JSONResponse({"live": True})


@router.get("/oip/v2/health/ready", include_in_schema=False)
def ready_by_protocol(context: ContextDep) -> Response:
    """The same for clients of the Open Inference Protocol."""
    found = _answer(context, _can_serve(context))
    return JSONResponse({"ready": found.status_code == 200}, found.status_code)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="Figures for Prometheus",
    responses={200: {"content": {PROMETHEUS: {"schema": {"type": "string"}}}}},
)
@needs("operator")
def metrics(context: ContextDep) -> Response:
    """Times of this process's requests by route and status, jobs by kind and state, workers heard from: of all owners
    together.
    A key of scope `admin` opens it as long as no other owner has a key, or had one.
    """
    return PlainTextResponse(generate_latest(context.registry), media_type=PROMETHEUS)
