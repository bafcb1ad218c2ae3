"""/health and /metrics: for machines that watch over the service."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import Field
from starlette.requests import Request
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


async def _probes(request: Request) -> health.HealthProbes:
    probes: health.HealthProbes = request.app.state.health
    return probes


ProbesDep = Annotated[health.HealthProbes, Depends(_probes)]


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
async def ready(context: ContextDep, probes: ProbesDep) -> Response:
    """Check what this process needs to answer and to accept work: a database that takes changes, its tables, the blob
    store, and free space; and whether the process is about to stop. For a proxy or an orchestrator: on 503, send no
    requests to this process. Where it only scores, ask `/oip/v2/health/ready`: a full disk is no reason there.
    """
    return _answer(context, await probes.can_serve())


@router.get(
    "/health/staffed",
    response_model=Health,
    summary="Can the process answer, and do workers run?",
    responses=_AWAY,
)
async def staffed(context: ContextDep, probes: ProbesDep) -> Response:
    """Check what `/health/ready` checks, the broker, and whether a worker and a dispatcher have sent a heartbeat. For
    an alarm: if this is 503 but `/health/ready` is 200, the service scores rows and accepts jobs, but jobs wait.
    Without a dispatcher, only the jobs of dead workers wait.
    """
    serves, works = await asyncio.gather(probes.can_serve(), probes.does_work())
    return _answer(context, [*serves, *works])


def _answer(context: Context, checks: list[health.Check]) -> Response:
    parts = {check.name: Part(ok=check.ok, detail=check.detail) for check in checks}
    if context.drain.begun:
        parts["api"] = Part(ok=False, detail="this process was told to end")
    elif not context.preloaded.is_set():
        parts["api"] = Part(ok=False, detail="this process still imports what scores need")
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
async def oip_ready(context: ContextDep, probes: ProbesDep) -> Response:
    """Answer whether this process can score, as the Open Inference Protocol writes it."""
    found = _answer(context, await probes.can_score())
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
    The requests are those of all API processes that share this port. The scope `admin` is enough while only one owner
    has ever had a key.
    """
    return PlainTextResponse(generate_latest(context.metrics.registry), media_type=PROMETHEUS)
