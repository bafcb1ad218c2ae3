"""Whether a worker or a dispatcher does its work, judged from outside its process: for container health checks.

The API answers for itself, by HTTP.
"""

from __future__ import annotations

from app.jobs import overdue_repository as overdue
from app.jobs import workers_repository as worker_rows
from app.operations.health import SILENT_BEATS
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.settings import Settings

OWED_SECONDS = 60.0
MISSED_ROUNDS = 4


def worker_fault(db: Database, producer: Producer, settings: Settings, host: str) -> str | None:
    """Why no worker of this host is well; None when one is. It reaches what a worker needs, and looks for its row."""
    within = SILENT_BEATS * settings.heartbeat_seconds
    try:
        producer.ping()
        with db.read() as session:
            alive = [worker.host for worker in worker_rows.alive(session, within)]
    except (BrokerAway, Unavailable) as error:
        return str(error)
    return None if host in alive else f"no worker of {host} was heard from within {within:g} s"


def dispatcher_fault(db: Database, producer: Producer, settings: Settings) -> str | None:
    """Why the dispatcher is not well; None when it is: it can reach what it needs, and left nothing undone for long."""
    late = MISSED_ROUNDS * settings.reap_seconds
    try:
        producer.ping()
        with db.read() as session:
            wake_ups = overdue.wake_ups(session, OWED_SECONDS)
            leases = overdue.leases(session, settings.lease_seconds, late)
    except (BrokerAway, Unavailable) as error:
        return str(error)
    if wake_ups:
        return f"wake-ups owed for more than {OWED_SECONDS:g} s: {wake_ups}"
    if leases:
        return f"jobs without a lease for more than {late:g} s: {leases}"
    return None
