"""/health and /metrics: for machines that watch over the service."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from pydantic import Field
from starlette.responses import JSONResponse, PlainTextResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import ContextDep
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
    parts: dict[str, Part] = Field(default_factory=dict)


@router.get("/health/live", summary="Is the process alive?")
async def live() -> Health:
    """Answers as long as the process does."""
    return Health(status="ok")


@router.get(
    "/health/ready",
    response_model=Health,
    summary="Can it take and do work?",
    responses={503: {"model": Health, "description": "A part is away; each is named."}},
)
def ready(context: ContextDep) -> Response:
    """Looks at database, blob store and broker, whether a worker was heard from, and whether the process ends."""
    checks = health.ready(context.db, context.blobs, context.producer, context.settings)
    parts = {check.name: Part(ok=check.ok, detail=check.detail) for check in checks}
    if context.drain.begun:
        parts["api"] = Part(ok=False, detail="this process was told to end")
    well = all(part.ok for part in parts.values())
    body = Health(status="ok" if well else "unavailable", parts=parts)
    return JSONResponse(body.model_dump(), 200 if well else 503)


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
