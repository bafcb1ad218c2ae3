"""The health checks of containers: whether this host's worker or dispatcher works.

A check runs every half minute next to fits, so it imports little: neither broker nor metrics.
"""

from __future__ import annotations

from app.jobs import queue_repository as queue_rows
from app.jobs import repository as worker_rows
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.settings import Settings

MISSED_ROUNDS = 4


def worker_problem(db: Database, settings: Settings, host: str) -> str | None:
    """Return why no worker of this host is healthy; None if one has a recent heartbeat.

    The broker is not checked: without it a worker polls for jobs, and a restart of the worker would lose its fit.
    """
    within = worker_rows.MISSED_BEATS * settings.heartbeat_seconds
    try:
        with db.read() as session:
            alive = [worker.host for worker in worker_rows.alive(session, within)]
    except Unavailable as error:
        return str(error)
    return (
        None if host in alive else f"no worker of {host} has sent a heartbeat within {within:g} s"
    )


def dispatcher_problem(db: Database, settings: Settings, host: str) -> str | None:
    """Return None if the heartbeat is recent, the database responds, and no work is overdue."""
    late = MISSED_ROUNDS * settings.reap_seconds
    try:
        with db.read() as session:
            leases = queue_rows.leases(session, settings.lease_seconds, late)
            hosts = [dispatcher.host for dispatcher in worker_rows.dispatchers(session)]
    except Unavailable as error:
        return str(error)
    if leases:
        return f"jobs without a lease for more than {late:g} s: {leases}"
    if host not in hosts:
        silence = worker_rows.DISPATCHER_SILENCE_SECONDS
        return f"no dispatcher of {host} has sent a heartbeat within {silence:g} s"
    return None
