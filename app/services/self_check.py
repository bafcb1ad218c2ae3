"""Whether a worker or a dispatcher does its work, judged from outside its process: for container health checks.

The API answers for itself, by HTTP.
"""

from __future__ import annotations

from app.db import overdue
from app.db import workers as worker_rows
from app.db.session import Database
from app.errors import Unavailable
from app.infra.producer import BrokerAway, Producer
from app.infra.settings import Settings
from app.services.health import SILENT_BEATS

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
