"""Housekeeping: deletes old rows, and blobs to which no row refers.

Rows are deleted in batches, each in a short transaction with a pause after it, so that even a million rows block
nobody. If the process ends in between, the next round continues.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from app.access import repository as access_rows
from app.access import service as access
from app.feedback import repository as feedback_rows
from app.feedback.monitor_repository import MonitoredAlias
from app.http import repository as idempotency_rows
from app.jobs import queue_repository as queue_rows
from app.jobs import repository as worker_rows
from app.operations import repository, retention, seal_repository
from app.operations.repository import Conditions, EndedJob, OwnedDataset
from app.operations.sweeping import discard, sweep
from app.platform import catalogue
from app.platform.blobs import Blob, BlobStore
from app.platform.database import Database
from app.platform.encryption import BadKeys
from app.platform.errors import Conflict, NotFound, OutOfSpace, TooMany, Unavailable
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import Upkeep
from app.webhooks import repository as webhook_rows

log = logging.getLogger(__name__)

DAY = 86400.0
BATCH = 500
REST_SECONDS = 0.02
RETRY_SECONDS = 60.0
ROUNDS_PER_GRACE = 24
ENTRY_SECONDS = 7 * DAY  # no transaction is open for so long
TESTS_SECONDS = 60.0


def run_housekeeping(
    db: Database, blobs: BlobStore, settings: Settings, stop: threading.Event
) -> None:
    Housekeeper(db, blobs, settings, stop).run()


class Housekeeper:
    """Runs housekeeping in rounds, in a thread of the dispatcher. Two instances at once are harmless."""

    def __init__(
        self, db: Database, blobs: BlobStore, settings: Settings, stop: threading.Event
    ) -> None:
        self._db = db
        self._blobs = blobs
        self._settings = settings
        self._stop = stop
        # Jobs that ended before this have no event left to prune.
        self._events_pruned = repository.FIRST

    def run(self) -> None:
        """After an error the next round starts as usual. Between rounds, scheduled tests are queued every minute."""
        interval = self._settings.blob_grace_seconds / ROUNDS_PER_GRACE
        next_round = time.monotonic()
        while not self._stop.is_set():
            is_round = time.monotonic() >= next_round
            pause = interval if is_round else TESTS_SECONDS
            try:
                if is_round:
                    self.round()
                else:
                    self.schedule_tests()
            except Unavailable as error:
                log.warning("housekeeping waits: %s", error)
                pause = min(pause, RETRY_SECONDS)
            except Exception:
                log.exception("housekeeping failed; the next round will try again")
            if is_round:
                next_round = time.monotonic() + pause
            self._stop.wait(min(pause, TESTS_SECONDS))

    def round(self) -> Counter[str]:
        """Delete everything that has reached its maximum age; returns the numbers by kind."""
        removed = Counter(
            {
                "remembered answers": self._each(
                    idempotency_rows.prune, idempotency_rows.KEPT_SECONDS
                ),
                "workers": self._each(worker_rows.prune, DAY),
                "parts of jobs": self._each(queue_rows.prune_child_jobs, DAY),
                "audit entries": self._prune_audit(),
                "history of aliases": self._each(
                    repository.prune_alias_history, self._days("audit")
                ),
                "requests to change aliases": self._each(
                    repository.prune_alias_requests, self._days("audit")
                ),
                "suspended protections": self._each(repository.prune_break_glass, DAY),
                "names of datasets": self._in_batches(
                    lambda session: repository.prune_dataset_names(session, BATCH)
                ),
                "open uploads": self._each(repository.prune_uploads, self._days("uploads")),
                "batch scores": self._each(repository.prune_batch_scores, self._days("scores")),
                "files of decisions": self._prune_decisions(),
                "sessions": self._each(access_rows.prune_sessions, 0.0),
                "events": self._prune_events(),
                "deliveries to deleted webhooks": self._in_batches(
                    lambda session: webhook_rows.prune_orphans(session, BATCH)
                ),
                "events of webhooks": self._each(
                    webhook_rows.prune_events, webhook_rows.KEEP_SECONDS
                ),
                "jobs": self._prune_jobs(),
                "invalid datasets": self._prune_datasets(
                    repository.is_without_table, "invalid_datasets"
                ),
                "unused datasets": self._prune_datasets(repository.is_unused, "unused_datasets"),
                "expired resources": self._apply_retention(),
                "deleted resources": self._empty_trash(),
                "entries of deleted blobs": self._each(catalogue.prune_deleted, ENTRY_SECONDS),
            }
        )
        removed["files of erased rows"] = self._discard_erased()
        removed.update(self._keep_up_feedback())
        removed["ids of late erasures"] = self._in_batches(
            lambda session: repository.expire_erasures(session, BATCH)
        )
        self._renew_secrets()
        removed["blobs"] = sweep(self._db, self._blobs, self._settings)
        if not self._stop.is_set():  # else parts of the round may have ended early
            self._db.writing(repository.note_success, Upkeep.HOUSEKEEPING)
        removed = +removed
        if removed:
            log.info("removed %s", ", ".join(f"{count} {what}" for what, count in removed.items()))
        return removed

    def _prune_audit(self) -> int:
        """Remove entries from the start of the log."""
        age, total = self._days("audit"), 0
        if age is not None:
            keys = self._settings.read_audit_keys()
            while count := self._db.writing(seal_repository.prune, keys, age):
                total += count
                if self._stop.wait(REST_SECONDS):
                    break
        return total

    def _renew_secrets(self) -> None:
        try:
            keys = self._settings.read_secrets_keys()
        except BadKeys as error:
            log.warning("secrets are not encrypted anew: %s", error)
            return
        if len(keys) > 1:
            from app.webhooks import secrets  # as below

            self._db.writing(secrets.renew, keys)

    def _prune_decisions(self) -> int:
        """Delete segments that are older than the days of their alias."""
        with self._db.read() as session:
            aliases = repository.aliases_with_decisions(session)
        prunes = [partial(_prune_decisions_of, of) for of in aliases]
        return sum(map(self._in_batches, prunes))

    def schedule_tests(self) -> int:
        """Queue the jobs of monitors whose tests are due."""
        count, after = 0, MonitoredAlias("", "", "")
        while not self._stop.is_set():
            with self._db.read() as session:
                page = repository.recorded_aliases(session, after, BATCH)
            for of in page:
                from app.feedback import monitoring  # as below

                after = of
                if not self._db.reading(monitoring.may_be_due, of):
                    continue
                # An owner with too many jobs gets this one later.
                with access.by_command(of.owner, "monitor"), suppress(TooMany, OutOfSpace):
                    found = self._db.writing(monitoring.schedule, self._settings, of)
                    count += found is not None
            if len(page) < BATCH:
                break
        return count

    def _days(self, what: str) -> float | None:
        days: float | None = getattr(self._settings, f"keep_{what}_days")
        return None if days is None else days * DAY

    def _each(self, prune: Callable[[Session, float, int], int], age: float | None) -> int:
        """Delete in batches; with None as `age` keep all."""
        if age is None:
            return 0
        return self._in_batches(lambda session: prune(session, age, BATCH))

    def _in_batches(self, prune: Callable[[Session], int]) -> int:
        """Pause between the batches."""
        total = 0
        while True:
            with self._db.write() as session:
                count = prune(session)
            total += count
            if count < BATCH or self._stop.wait(REST_SECONDS):
                return total

    def _prune_events(self) -> int:
        """Keep the last event of each job."""
        age = self._days("events")
        total = 0
        while age is not None and (page := self._ended(age, self._events_pruned, unneeded=False)):
            total += self._prune_events_of([job.id for job in page], spare_last=True)
            if self._stop.is_set():
                break
            self._events_pruned = page[-1]
        return total

    def _prune_jobs(self) -> int:
        """Delete jobs that ended long ago and to which nothing refers."""
        age = self._days("jobs")
        total, after = 0, repository.FIRST
        while age is not None and (page := self._ended(age, after, unneeded=True)):
            ids, after = [job.id for job in page], page[-1]
            # there may be thousands: read them page by page
            self._prune_events_of(ids, spare_last=False)
            with self._db.write() as session:
                total += repository.prune_jobs(session, ids)
            if self._stop.wait(REST_SECONDS):
                break
        return total

    def _ended(self, age: float, after: EndedJob, *, unneeded: bool) -> Sequence[EndedJob]:
        with self._db.read() as session:
            return repository.ended_jobs(session, age, after, BATCH, unneeded=unneeded)

    def _prune_events_of(self, job_ids: Sequence[str], *, spare_last: bool) -> int:
        return self._in_batches(
            lambda session: repository.prune_events(session, job_ids, BATCH, spare_last=spare_last)
        )

    def _prune_datasets(self, which: Callable[[float], Conditions], what: str) -> int:
        """Delete datasets as their owners could; one in use is kept."""
        age = self._days(what)
        total, after = 0, ""
        while age is not None and not self._stop.wait(REST_SECONDS):
            with self._db.read() as session:
                page = repository.find_datasets(session, which(age), after, BATCH)
            if not page:
                break
            after = page[-1].id
            for dataset in page:
                total += self._delete(dataset, which(age))
        return total

    def _delete(self, dataset: OwnedDataset, conditions: Conditions) -> int:
        """Delete one dataset, unless it is in use now."""
        # Imported here: it loads the readers of tables, which a dispatcher does not need otherwise.
        from app.datasets import service as datasets

        def check(session: Session) -> None:
            # a job used the dataset meanwhile
            if not repository.is_still_so(session, conditions, dataset.id):
                raise Conflict(
                    f"dataset {dataset.id} was used in the meantime", code="dataset_in_use"
                )

        try:
            with access.by_command(dataset.owner, "housekeeping"):
                self._db.writing(datasets.delete_for_good, dataset.owner, dataset.id, check)
        except (Conflict, NotFound):
            return 0
        return 1

    def _apply_retention(self) -> int:
        """Delete what is older than the days of its owner."""
        total = 0
        with self._db.read() as session:
            rules = retention.rules(session)
        for owner, days in rules:
            for kind, limit in days.items():
                total += self._expire(owner, kind, limit)
                if self._stop.is_set():
                    return total
        return total

    def _expire(self, owner: str, kind: str, days: float) -> int:
        if kind == "jobs":
            with self._db.read() as session:
                ids = repository.find_expired(session, kind, owner, days, BATCH)
            self._prune_events_of(ids, spare_last=False)
            with self._db.write() as session:
                return repository.prune_jobs(session, ids)
        if kind not in ("datasets", "models"):
            return self._in_batches(
                lambda session: repository.prune_expired(session, kind, owner, days, BATCH)
            )
        from app.models import service as models  # as above
        from app.trash import service as trash

        with self._db.read() as session:
            ids = repository.find_expired(session, kind, owner, days, BATCH)
        total = 0
        for id_ in ids:
            if kind == "datasets":
                ((_, conditions),) = repository.expired(kind, owner, days)
                total += self._delete(OwnedDataset(id_, owner), conditions)
                continue

            def delete(session: Session, id_: str = id_) -> None:
                models.delete(session, owner, id_)
                trash.delete(session, owner, id_)

            with access.by_command(owner, "housekeeping"), suppress(NotFound, Conflict):
                self._db.writing(delete)
                total += 1
        return total

    def _discard_erased(self) -> int:
        """Delete files that erasures have replaced, whatever their age, but not during a backup."""
        total = 0
        with self._db.read() as session:
            found = repository.old_files_of_erasures(session)
        for old in found:
            total += discard(self._db, self._blobs, self._settings, old.keys)
            with self._db.write() as session:
                if not catalogue.is_held(session, self._settings.blob_grace_seconds):
                    repository.forget_old_files(session, old)
        return total

    def _keep_up_feedback(self) -> Counter[str]:
        """Compact decisions and outcomes, delete old outcomes, erase entities; returns numbers of segments and rows."""
        with self._db.read() as session:
            of_outcomes = repository.owners_of_outcomes(session)
            to_erase = repository.owners_to_erase(session)
            of_decisions = repository.owners_of_pending_decisions(session)
        removed: Counter[str] = Counter()
        if not of_outcomes and not to_erase and not of_decisions:
            return removed
        from app.feedback import compaction, upkeep  # as above

        files = upkeep.Files(
            self._db.reading,
            self._db.writing,
            self._blobs,
            partial(discard, self._db, self._blobs, self._settings),
            self._stop.is_set,
        )
        steps = (
            ("erased rows", upkeep.erase, to_erase),
            ("old outcomes", upkeep.retain, of_outcomes),
            ("small segments of outcomes", upkeep.compact, of_outcomes),
            ("small segments of decisions", compaction.compact, of_decisions),
        )
        for what, step, owners in steps:
            for owner in owners:
                if self._stop.wait(REST_SECONDS):
                    return removed
                try:
                    removed[what] += step(files, owner)
                except Unavailable as error:  # a missing file of one owner does not stop the others
                    log.warning("%s wait: %s", what, error)
        if to_erase:
            from app.erasure import service as erasures

            with suppress(TooMany, OutOfSpace):  # an owner with too many jobs gets these later
                self._db.writing(
                    erasures.search_again, self._settings, upkeep.SETTLE_SECONDS, BATCH
                )
        return removed

    def _empty_trash(self) -> int:
        """Delete what has been in the trash for long enough."""
        from app.trash import service as trash  # as above

        total = 0
        while not self._stop.wait(REST_SECONDS):
            with self._db.read() as session:
                page = trash.find_old(session, BATCH)
            for entry in page:
                with access.by_command(entry.owner, "housekeeping"), suppress(NotFound, Conflict):
                    self._db.writing(trash.delete, entry.owner, entry.id)
                    total += 1
            if len(page) < BATCH:
                break
        return total


_PAGE = 500


class NamedBlob(NamedTuple):
    """A blob, the row that refers to it in words, and its entry in the catalogue."""

    key: str
    row: str
    blob: Blob | None


def named_blobs(db: Database) -> Iterator[NamedBlob]:
    """Yield every blob of a row, once for each row. Each page is read in its own transaction."""
    for column in repository.blob_columns():
        after: Sequence[str | int] = ()
        while True:
            with db.read() as session:
                page = repository.page(session, column, after, _PAGE)
                found = catalogue.entries(session, [key for _, key in page])
            for ids, key in page:
                yield NamedBlob(key, f"{column.what} {' '.join(map(str, ids))}", found.get(key))
            if len(page) < _PAGE:
                break
            after = page[-1][0]
    with db.read() as session:
        of_parts = repository.of_parts(session)
        found = catalogue.entries(session, [key for _, key in of_parts])
    for id_, key in of_parts:
        yield NamedBlob(key, f"result of part {id_}", found.get(key))


def is_named(db: Database, key: str) -> bool:
    """Return True if a row refers to the blob."""
    with db.read() as session:
        return bool(repository.named(session, [key]))


def _prune_decisions_of(of: MonitoredAlias, session: Session) -> int:
    return feedback_rows.prune_segments(session, *of, BATCH)
