"""All routes of the console."""

from __future__ import annotations

from fastapi import APIRouter

from app.console import (
    admin,
    choices,
    datasets,
    evaluation,
    jobs,
    models,
    rendering,
    scoring,
    session,
    start,
    top,
    train,
    uploads,
)

ROUTERS: tuple[APIRouter, ...] = (
    rendering.STATIC.router,
    session.open_router,
    session.router,
    start.router,
    models.router,
    top.router,
    evaluation.router,
    scoring.router,
    admin.router,
    choices.router,
    datasets.router,
    uploads.router,
    train.router,
    jobs.router,
)
