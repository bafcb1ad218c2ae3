"""Celery, which carries wake-ups and nothing else. A message says only "there is work"."""

from __future__ import annotations

import logging
import ssl
import time

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

WAKE_TASK = "rankwright.wake"
QUEUE = "rankwright"

_SCHEMES = ("redis", "rediss", "redis+socket")

SOCKET_SECONDS = 2.0
REST_SECONDS = 1.0


class BrokerAway(Exception):
    """The broker could not be reached in time. Nothing is lost: idle workers look for jobs themselves."""


def make_celery(broker_url: str) -> Celery:
    """Return the Celery application of producers and workers. Raises ValueError for an unsupported kind of broker."""
    scheme = broker_url.partition("://")[0]
    if scheme not in _SCHEMES:
        raise ValueError(
            f"RANKWRIGHT_BROKER_URL must be a URL of {', '.join(_SCHEMES)}, got {scheme[:20]!r}"
        )
    celery = Celery("rankwright", broker=broker_url)
    if scheme == "rediss":
        # Kombu's default trusts any certificate. Parameters of the URL (`ssl_ca_certs=…`) take the place of this one,
        # and the driver's own default is to verify.
        celery.conf.broker_use_ssl = {"ssl_cert_reqs": ssl.CERT_REQUIRED}
    celery.conf.update(
        # The database redelivers, not the broker: its reaper is the one authority. A message that dies with a
        # worker costs nothing, and late acknowledgement would start a long job again at each visibility timeout.
        task_acks_late=False,
        result_backend=None,
        task_ignore_result=True,
        # One message a free slot. `worker_disable_prefetch` stays off: with a threads pool a finishing task does
        # not wake Celery's loop, which then costs up to a second a job.
        worker_prefetch_multiplier=1,
        # A retry would hold up a request while the broker is away, and workers look for jobs themselves.
        task_publish_retry=False,
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        task_default_queue=QUEUE,
        # By default a worker gives up for good after 100 failed connections.
        broker_connection_max_retries=None,
        broker_connection_retry_on_startup=True,
        # Standard streams and the root logger are ours.
        worker_redirect_stdouts=False,
        worker_hijack_root_logger=False,
        # Workers are not asked over the broker: the database knows which are alive.
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        # No ETA and no countdown anywhere: a job's `not_before` does that, in the database's time.
    )
    return celery


class Producer:
    """Sends wake-ups, and logs once that the broker is away and that it is back. Safe to share between threads."""

    def __init__(self, broker_url: str) -> None:
        self._celery = make_celery(broker_url)
        # A hung broker must not hold a request: two seconds at most, then a worker finds the job itself.
        self._celery.conf.broker_transport_options = {
            "socket_timeout": SOCKET_SECONDS,
            "socket_connect_timeout": SOCKET_SECONDS,
            "max_retries": 0,
        }
        self._celery.conf.broker_connection_timeout = SOCKET_SECONDS
        self._rest_until = 0.0
        self._is_away = False

    def wake(self) -> None:
        """Send one wake-up. Raises BrokerAway, and for a second after that at once."""
        if time.monotonic() < self._rest_until:
            raise BrokerAway("the broker was unavailable a moment ago")
        try:
            self._celery.send_task(WAKE_TASK, queue=QUEUE, ignore_result=True, retry=False)
        except (OperationalError, RedisError, OSError) as error:
            self._rest_until = time.monotonic() + REST_SECONDS
            if not self._is_away:
                log.warning(
                    "the broker is unavailable: %s; workers look for jobs themselves", error
                )
            self._is_away = True
            raise BrokerAway(f"the broker is unavailable: {error}") from error
        if self._is_away:
            log.info("the broker is back")
        self._is_away = False

    def ping(self) -> None:
        """Reach the broker without sending anything. Raises BrokerAway."""
        try:
            with self._celery.connection_for_write() as connection:
                _ = connection.default_channel  # the transport pings as it opens a channel
        except (OperationalError, RedisError, OSError) as error:
            raise BrokerAway(f"the broker is unavailable: {error}") from error

    def close(self) -> None:
        """Close every connection."""
        self._celery.close()
