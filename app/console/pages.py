"""All routes of the console."""

from __future__ import annotations

from fastapi import APIRouter

from app.console import (
    admin,
    datasets,
    evaluation,
    jobs,
    rendering,
    scoring,
    session,
    start,
    uploads,
)

ROUTERS: tuple[APIRouter, ...] = (
    rendering.STATIC.router,
    session.open_router,
    session.router,
    start.router,
    evaluation.router,
    scoring.router,
    admin.router,
    datasets.router,
    uploads.router,
    jobs.router,
)
