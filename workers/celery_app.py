"""The Celery worker: how it runs here, beside the configuration that it shares with the producer."""

from __future__ import annotations

import logging
import socket
import warnings
from typing import Any

from celery import Celery, signals
from celery.apps.worker import Worker
from celery.platforms import SecurityWarning
from celery.worker import state
from kombu.transport import redis as transport
from redis.exceptions import DataError

from app.platform.broker import QUEUE

log = logging.getLogger(__name__)


class Channel(transport.Channel):
    """A channel that drops a message which nobody can read: by default its error ends the consumer."""

    def _brpop_read(self, **options: Any) -> bool | None:
        try:
            heard: bool | None = super()._brpop_read(**options)
            return heard
        except (ValueError, LookupError, TypeError, AttributeError, DataError) as error:
            log.warning("a message that cannot be read is dropped: %s", error)
            return None


transport.Transport.Channel = Channel


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
    signals.setup_logging.connect(_quiet_logging)
    # Celery warns root of pickled messages; JSON alone is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app.conf.worker_enable_remote_control = False
    return CeleryWorker(
        app=app,
        hostname=f"{name}@{socket.gethostname()}",
        queues=[QUEUE],
        pool="threads",
        concurrency=slots,
        quiet=True,
        # Workers tell each other nothing: the database knows who is alive.
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )


def _quiet_logging(**_: Any) -> None:
    """Leave the logging as `app.platform.logging` set it up, without Celery's two lines a wake-up."""
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
