"""Celery, used only for wake-up messages to the workers. A message means only that there is work."""

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
    """The broker could not be reached in time. Nothing is lost: idle workers also poll for jobs."""


def make_celery(broker_url: str) -> Celery:
    """Raises ValueError for an unsupported kind of broker."""
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
        # The reaper requeues lost jobs; the broker never redelivers. A message that is lost with its worker costs
        # nothing, and late acknowledgement would start a long job again at each visibility timeout.
        task_acks_late=False,
        result_backend=None,
        task_ignore_result=True,
        # One message per free slot. `worker_disable_prefetch` stays off: with a threads pool a finishing task does
        # not wake Celery's loop, which then costs up to a second a job.
        worker_prefetch_multiplier=1,
        # A retry would delay a request while the broker is unavailable, and workers also poll for jobs.
        task_publish_retry=False,
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        task_default_queue=QUEUE,
        # By default a worker stops trying after 100 failed connections.
        broker_connection_max_retries=None,
        broker_connection_retry_on_startup=True,
        # Celery must not replace the standard streams and the root logger.
        worker_redirect_stdouts=False,
        worker_hijack_root_logger=False,
        # Nobody queries workers over the broker: the database has their heartbeats.
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        # ETA and countdown are not used: a job has `not_before`, by the database's clock.
    )
    return celery


class Producer:
    """Sends wake-up messages; logs the begin and the end of an outage once. Thread-safe."""

    def __init__(self, broker_url: str) -> None:
        self._celery = make_celery(broker_url)
        # A broker that hangs must not delay a request by more than two seconds: a worker finds the job by polling.
        self._celery.conf.broker_transport_options = {
            "socket_timeout": SOCKET_SECONDS,
            "socket_connect_timeout": SOCKET_SECONDS,
            "max_retries": 0,
        }
        self._celery.conf.broker_connection_timeout = SOCKET_SECONDS
        self._rest_until = 0.0
        self._is_away = False

    def wake(self) -> None:
        """Raises BrokerAway; within a second after a failure at once."""
        if time.monotonic() < self._rest_until:
            raise BrokerAway("the broker was recently unavailable")
        try:
            self._celery.send_task(WAKE_TASK, queue=QUEUE, ignore_result=True, retry=False)
        except (OperationalError, RedisError, OSError) as error:
            self._rest_until = time.monotonic() + REST_SECONDS
            if not self._is_away:
                log.warning(
                    "the broker is unavailable: %s; workers poll the database for jobs", error
                )
            self._is_away = True
            raise BrokerAway(f"the broker is unavailable: {error}") from error
        if self._is_away:
            log.info("the broker is available again")
        self._is_away = False

    def ping(self) -> None:
        """Write a key for a second: a Redis at its memory limit responds to a ping. Raises BrokerAway."""
        try:
            with self._celery.connection_for_write() as connection:
                connection.default_channel.client.set("rankwright:probe", 1, px=1000)
        except (OperationalError, RedisError, OSError) as error:
            raise BrokerAway(f"the broker is unavailable: {error}") from error

    def close(self) -> None:
        self._celery.close()
