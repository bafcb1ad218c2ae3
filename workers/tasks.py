"""The one task: a wake-up. It names no job, because the jobs table knows what is next."""

from __future__ import annotations

from celery import Celery

from app.platform.broker import WAKE_TASK
from workers.slots import Slots


def register(app: Celery, slots: Slots) -> None:
    """Have wake-ups ring the bell of these slots."""

    @app.task(name=WAKE_TASK)
    def wake() -> None:
        slots.wake()
