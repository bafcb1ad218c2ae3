"""The Celery worker: how it runs here, beside the configuration that it shares with the producer."""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery, signals
from celery.apps.worker import Worker
from celery.worker import state

from app.infra.producer import QUEUE

log = logging.getLogger(__name__)


class CeleryWorker(Worker):
    """Celery's worker program without its signal handlers: `workers.__main__` owns the signals.

    Celery's own would wait for the running tasks on SIGTERM, do nothing useful on SIGQUIT with a threads pool,
    and re-execute the program on a SIGHUP that comes without a terminal.
    """

    def install_platform_tweaks(self, worker: Any) -> None:
        """Install nothing."""

    def end(self) -> None:
        """Have the loop end; to be called from another thread."""
        state.should_stop = 0
        if self.hub is not None:
            self.hub.call_soon(lambda: None)  # wakes the loop, which then sees the flag


def make_worker(app: Celery, slots: int, name: str) -> CeleryWorker:
    """The worker that takes wake-ups off the queue, with a thread for each slot."""
    # Connected, the signal keeps Celery from setting up logging of its own.
    signals.setup_logging.connect(_keep_logging)
    return CeleryWorker(
        app=app,
        hostname=f"{name}@%h",
        queues=[QUEUE],
        pool="threads",
        concurrency=slots,
        quiet=True,
        # Workers tell each other nothing: the database knows who is alive.
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )


def _keep_logging(**_: Any) -> None:
    """Leave the logging as `app.infra.logging` set it up."""
