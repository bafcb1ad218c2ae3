"""Jobs, workers and the broker: does what is accepted get done?"""

from __future__ import annotations

from collections.abc import Iterator

from app import __version__
from app.jobs import child_jobs_repository as part_rows
from app.jobs import overdue_repository as overdue
from app.jobs import workers_repository as worker_rows
from app.operations import repository as rows
from app.operations.doctor_finding import Finding, age, fail, ok, warn
from app.operations.health import SILENT_BEATS
from app.operations.self_check import MISSED_ROUNDS, OWED_SECONDS
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import JobState

LONG_WAIT = 3600.0
_OPEN = (JobState.QUEUED, JobState.RUNNING, JobState.WAITING)
_START = "start it: `rankwright serve`"


def broker(url: str, *, runs: bool | None) -> Finding:
    """Whether the broker answers. Without it jobs begin a second later, and nothing is lost."""
    producer = Producer(url)
    try:
        producer.ping()
    except BrokerAway as error:
        if runs is False:
            return ok("broker", "not running, as the service is not")
        advice = "start it: until then workers find their jobs by looking, once a second"
        return fail("broker", str(error), advice)
    finally:
        producer.close()
    return ok("broker", "answers")


def jobs(db: Database, settings: Settings, *, runs: bool | None) -> Iterator[Finding]:
    """Whether the queue moves, and the dispatcher sees to what it should."""
    late = MISSED_ROUNDS * settings.reap_seconds
    with db.read() as session:
        counts = rows.open_jobs(session)
        oldest = rows.oldest_due(session)
        wake_ups = overdue.wake_ups(session, OWED_SECONDS)
        leases = overdue.leases(session, settings.lease_seconds, late)
        stuck = len(part_rows.stuck(session))
        alive = worker_rows.alive(session, SILENT_BEATS * settings.heartbeat_seconds)
    said = ", ".join(f"{counts.get(state, 0)} {state}" for state in _OPEN)
    said += "" if oldest is None else f"; the oldest has been due for {age(oldest)}"
    if oldest is not None and not alive:
        yield fail(
            "queue", said, _START if runs is False else "start a worker: `rankwright worker`"
        )
    elif oldest is not None and oldest > LONG_WAIT:
        advice = "see whether the running jobs get on, and add workers"
        yield warn("queue", said, advice)
    else:
        yield ok("queue", said)
    advice = _START if runs is False else "see whether the dispatcher runs: `rankwright dispatcher`"
    if leases:
        yield fail("leases", f"{leases} jobs have had no lease for more than {age(late)}", advice)
    if wake_ups:
        yield fail(
            "wake-ups", f"{wake_ups} have been owed for more than {age(OWED_SECONDS)}", advice
        )
    if stuck:
        yield fail("parts", f"{stuck} jobs wait for parts in vain", advice)
    if not (leases or wake_ups or stuck):
        yield ok("dispatcher", "has left nothing undone")


def workers(db: Database, settings: Settings, *, runs: bool | None) -> Finding:
    """Whether workers were heard from, and are of this version."""
    within = SILENT_BEATS * settings.heartbeat_seconds
    with db.read() as session:
        alive = worker_rows.alive(session, within)
    if not alive:
        if runs is False:
            return ok("workers", "none, as the service is not running")
        detail = f"none was heard from within {age(within)}"
        return fail("workers", detail, "start one: `rankwright worker`")
    names = ", ".join(
        f"{worker.host} ({worker.slots} slot{'s' * (worker.slots > 1)}, version {worker.version})"
        for worker in alive
    )
    notes = [f"{worker.host}: {worker.note}" for worker in alive if worker.note]
    if any(worker.version != __version__ for worker in alive):
        return warn(
            "workers", f"{names}; this is {__version__}", "restart those of another version"
        )
    if notes:
        return warn("workers", "; ".join(notes), "see whether broker and dispatcher run")
    return ok("workers", names)
