"""All routes of the console."""

from __future__ import annotations

from fastapi import APIRouter

from app.console import rendering, session, start

ROUTERS: tuple[APIRouter, ...] = (
    rendering.STATIC.router,
    session.open_router,
    session.router,
    start.router,
)
