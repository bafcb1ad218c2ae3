"""All routes of the console."""

from __future__ import annotations

from fastapi import APIRouter

from app.console import (
    admin,
    choices,
    comparisons,
    datasets,
    evaluation,
    find,
    jobs,
    lists,
    model_aliases,
    model_curve,
    model_parts,
    models,
    rendering,
    row_score,
    scorecard,
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
    find.router,
    models.router,
    model_curve.router,
    model_parts.router,
    scorecard.router,
    model_aliases.router,
    row_score.router,
    top.router,
    comparisons.router,
    evaluation.router,
    scoring.router,
    admin.router,
    choices.router,
    lists.router,
    lists.trash_router,
    datasets.router,
    uploads.router,
    train.router,
    jobs.router,
)
