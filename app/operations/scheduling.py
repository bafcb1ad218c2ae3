"""The runs of schedules, in a thread of each dispatcher: each due time queues one refresh, by any dispatcher.

The thread sleeps until the next due time, at most for `LOOK_SECONDS`: then one look into an index finds out whether
there is an earlier one. What runs a schedule is imported when one is due.
"""

from __future__ import annotations

import logging
import threading
from functools import cached_property, partial

from app.platform.blobs import BlobStore
from app.platform.callers import Actor, Caller, acting_as
from app.platform.connections import ConnectionsFile
from app.platform.database import Database
from app.platform.errors import OutOfSpace, ServiceError, Unavailable
from app.platform.ids import new_id
from app.platform.roles import RoleFile
from app.platform.settings import Settings
from app.platform.tables import SchedulePaused
from app.schedules import due_repository as rows
from app.schedules.due_repository import DueSchedule

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""Longest time between two looks for due schedules: so late is the first run of a schedule that was just created."""
MIN_SECONDS = 1.0
"""Shortest time between two looks."""
BATCH = 100
"""Schedules that are read at once."""


class Scheduler:
    """Runs what is due. Any number of them can work at once, in one dispatcher each."""

    def __init__(self, db: Database, blobs: BlobStore, settings: Settings) -> None:
        self._db = db
        self._blobs = blobs
        self._settings = settings

    @cached_property
    def _connections(self) -> ConnectionsFile:
        return ConnectionsFile(self._settings.connections_file)

    @cached_property
    def _roles(self) -> RoleFile:
        return RoleFile(self._settings.roles_file)

    def run(self, stop: threading.Event) -> None:
        """After an error the next round starts as usual."""
        wait = MIN_SECONDS
        while not stop.wait(wait):
            wait = LOOK_SECONDS
            try:
                self.run_due(stop)
                until = self._db.reading(rows.seconds_until_due)
            except Unavailable:
                continue  # `Database` logs it
            except Exception:
                log.exception("schedules continue after an error")
                continue
            if until is not None:
                wait = min(max(until, MIN_SECONDS), LOOK_SECONDS)

    def run_due(self, stop: threading.Event | None = None) -> int:
        """Handle due schedules, up to `BATCH`; returns the number of queued jobs."""
        queued = 0
        for due in self._db.reading(rows.list_due, BATCH):
            if stop is not None and stop.is_set():
                break
            try:
                queued += self._run(due)
            except Unavailable:
                raise
            except Exception:  # one schedule must not stop the others
                from app.schedules import service as schedules

                log.exception("the schedule %s has failed", due.id)
                message = "the service failed: see its log"
                self._db.writing(schedules.note_error, due, "internal_error", message)
        return queued

    def _run(self, due: DueSchedule) -> bool:
        """Return True if this dispatcher has queued a job."""
        from app.schedules import service as schedules

        found = self._db.reading(schedules.prepare_run, self._roles.content(), due)
        if isinstance(found, SchedulePaused):
            if self._db.writing(schedules.pause, due, found):
                log.warning("the schedule %s was paused: %s", due.id, found)
        elif isinstance(found, str):
            message = f"skipped: the job {found} of an earlier run has not ended"
            self._db.writing(schedules.note_error, due, schedules.RUN_IN_PROGRESS, message)
        elif found is not None:
            return self._queue(due, found)
        return False

    def _queue(self, due: DueSchedule, caller: Caller) -> bool:
        from app.schedules import service as schedules

        connections = self._connections.of(due.owner)
        actor = Actor(
            owner=due.owner,
            principal_id=caller.principal_id,
            key_id=caller.key_id,
            action="scheduled refresh",
            make_id=partial(new_id, "aud"),
            path=f"/v1/schedules/{due.id}",
            scope=schedules.SCOPE,
            caller=caller,
        )
        try:
            with acting_as(actor), self._blobs.writer("uploads") as writer:
                writer.sync()
                job_id = self._db.writing(
                    schedules.run, self._settings, connections, caller, due, writer
                )
        except ServiceError as error:
            if isinstance(error, Unavailable) and not isinstance(error, OutOfSpace):
                raise
            self._db.writing(schedules.note_error, due, error.code, error.detail)
            return False
        return job_id is not None
