"""/health and /metrics, for load balancers, orchestrators and monitoring."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import Field
from starlette.concurrency import run_in_threadpool
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
    """State of one component."""

    ok: bool
    """True if the component works."""
    detail: str
    """What was checked, or what is wrong."""


class Health(Resource):
    """State of the service and its components."""

    status: Annotated[
        str,
        one_of(("ok", "unavailable")),
        Field(description="`ok` or `unavailable`.", examples=["ok"]),
    ]
    version: str
    """Version of the service."""
    build: Annotated[
        str, Field(description="The build: `RANKWRIGHT_BUILD` of the process. An image sets it.")
    ]
    parts: dict[str, Part] = Field(default_factory=dict)
    """State of each component, by name. Empty for `/health/live`."""


async def _probes(request: Request) -> health.HealthProbes:
    probes: health.HealthProbes = request.app.state.health
    return probes


ProbesDep = Annotated[health.HealthProbes, Depends(_probes)]


@router.get("/health/live", summary="Check liveness")
async def check_liveness(context: ContextDep) -> Health:
    """Return 200 as long as the process responds."""
    return Health(status="ok", version=__version__, build=context.settings.build)


_AWAY: dict[int | str, dict[str, Any]] = {
    503: {
        "model": Health,
        "description": "A component of the service is unavailable; the response shows each component.",
    }
}


@router.get(
    "/health/ready",
    response_model=Health,
    summary="Check readiness",
    responses=_AWAY,
)
async def check_readiness(context: ContextDep, probes: ProbesDep) -> Response:
    """Check whether another process would serve better: 503 if this one is starting or stopping, does not know the
    tables of the database, or may not write to the database or the folder of blobs. Use it for a proxy or an
    orchestrator: on 503, send no requests to this process. What all processes share is shown in `parts`, but is no 503:
    a database or bucket that does not respond, and a full disk. Loaded models are served meanwhile; for an alert, use
    `/health/staffed`.
    """
    return _answer(context, await probes.can_serve(), shared_is_well=True)


@router.get(
    "/health/staffed",
    response_model=Health,
    summary="Check readiness including workers",
    responses=_AWAY,
)
async def check_staffing(context: ContextDep, probes: ProbesDep) -> Response:
    """Check everything that `/health/ready` shows, the broker, the identity providers, and whether a worker and a
    dispatcher have sent a heartbeat; 503 if any of these does not work. Use it for an alert: if this returns 503 but
    `/health/ready` returns 200, loaded models are scored, but jobs wait, nobody can sign in, or new data is rejected.
    `parts` shows which. Without a dispatcher, only the jobs of dead workers wait.
    """
    serves, works = await asyncio.gather(probes.can_serve(), probes.does_work())
    return _answer(context, [*serves, *works])


def _answer(
    context: Context, checks: list[health.Check], *, shared_is_well: bool = False
) -> Response:
    """Respond 200 if all work, or, with `shared_is_well`, have only shared failures; else 503."""
    parts = {check.name: Part(ok=check.ok, detail=check.detail) for check in checks}
    if context.drain.begun:
        parts["api"] = Part(ok=False, detail="this process is stopping")
    elif not context.preloaded.is_set():
        parts["api"] = Part(ok=False, detail="this process is still importing the scoring code")
    shared = {check.name for check in checks if shared_is_well and check.shared}
    well = all(part.ok or name in shared for name, part in parts.items())
    body = Health(
        status="ok" if well else "unavailable",
        version=__version__,
        build=context.settings.build,
        parts=parts,
    )
    return JSONResponse(body.model_dump(), 200 if well else 503)


@router.get("/oip/v2/health/live", include_in_schema=False)
async def oip_live() -> Response:
    """Report that this process runs, in the format of the Open Inference Protocol."""
    return JSONResponse({"live": True})


@router.get("/oip/v2/health/ready", include_in_schema=False)
async def oip_ready(context: ContextDep, probes: ProbesDep) -> Response:
    """Report what `/health/ready` does, in the format of the Open Inference Protocol."""
    found = _answer(context, await probes.can_serve(), shared_is_well=True)
    return JSONResponse({"ready": found.status_code == 200}, found.status_code)


@router.get(
    "/metrics",
    response_class=Response,
    summary="Read Prometheus metrics",
    responses={200: {"content": {PROMETHEUS: {"schema": {"type": "string"}}}}},
)
@needs("operator")
async def read_service_metrics(context: ContextDep, probes: ProbesDep) -> Response:
    """Return request durations by route and status, jobs by kind and state, and live workers, for all owners together.
    Requests of all API processes that share this port are counted. The scope `admin` is sufficient while only one
    owner has ever had a key.
    """
    await probes.look_at_dependencies()

    def exposition() -> bytes:
        context.metrics.update()
        return generate_latest(context.metrics.registry)

    return PlainTextResponse(await run_in_threadpool(exposition), media_type=PROMETHEUS)
