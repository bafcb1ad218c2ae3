"""The Celery consumer: it takes wake-ups off the queue. A wake-up names no job, because the jobs table knows what is
next.
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
    """Return the Celery app whose one task wakes these slots. A URL of another kind of broker is a `ValueError`."""
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
    """Take wake-ups, with a thread for each slot, until the slots stop; to be run in a thread of its own.

    Celery ends at a message that is no JSON: kombu knows no hook before that. The message is off the queue by then, so
    Celery is started again, in this process: fits go on, and slots look for work themselves meanwhile.
    In a thread Celery cannot set its signal handlers, nor should it: they are the main thread's.
    """
    while not slots.stopping.is_set():
        try:
            app.Worker(
                hostname=f"{slots.worker_id}@{socket.gethostname()}",
                queues=[QUEUE],
                pool="threads",
                concurrency=slots.settings.worker_slots,
                quiet=True,
                # Workers tell each other nothing: the database knows who is alive.
                without_gossip=True,
                without_mingle=True,
                without_heartbeat=True,
            ).start()
        except Exception:
            log.exception("Celery crashed")
        if not slots.stopping.wait(RESTART_SECONDS):
            log.warning("Celery ended; it will be restarted")


def _keep_logging(**_: Any) -> None:
    """Leave the logging as `app.platform.logging` has set it up, without Celery's two lines per wake-up."""
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
