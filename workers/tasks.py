"""The Celery consumer of wake-up messages. A message names no job, because the jobs table determines which
one is next.
"""

from __future__ import annotations

import logging
import socket
import warnings
from typing import Any

from celery import Celery, signals
from celery.platforms import SecurityWarning

from app.platform.broker import QUEUE, WAKE_TASK, make_celery
from workers.slots import Slots

log = logging.getLogger(__name__)

RESTART_SECONDS = 1.0


def make_app(broker_url: str, slots: Slots) -> Celery:
    """Return the Celery app whose only task wakes these slots. Raises ValueError for an unsupported kind of broker."""
    # Connected, the signal keeps Celery from setting up logging of its own.
    signals.setup_logging.connect(_keep_logging)
    # Celery warns root of pickled messages; JSON alone is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app = make_celery(broker_url)

    @app.task(name=WAKE_TASK)
    def wake() -> None:
        slots.wake()

    return app


def consume(app: Celery, slots: Slots) -> None:
    """Consume wake-up messages, with a thread for each slot, until the slots stop. To be run in a separate thread.

    Celery ends at a message that is not JSON, which kombu offers no hook to prevent. The message has then left the
    queue, and Celery is started again in this process; fits continue, and slots poll for jobs meanwhile. In a thread
    Celery cannot set its signal handlers, which belong to the main thread.
    """
    while not slots.stopping.is_set():
        try:
            app.Worker(
                hostname=f"{slots.worker_id}@{socket.gethostname()}",
                queues=[QUEUE],
                pool="threads",
                concurrency=slots.settings.worker_slots,
                quiet=True,
                # Workers do not communicate: the database records which are alive.
                without_gossip=True,
                without_mingle=True,
                without_heartbeat=True,
            ).start()
        except Exception:
            log.exception("Celery crashed")
        if not slots.stopping.wait(RESTART_SECONDS):
            log.warning("Celery ended; it will be restarted")


def _keep_logging(**_: Any) -> None:
    """Keep the logging of `app.platform.logging`: prevent Celery's configuration, with its two lines per message."""
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
