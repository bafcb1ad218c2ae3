"""Blobs that no row names go once their time has come."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from app.jobs import service as jobs
from app.operations.sweeping import discard, sweep
from app.platform import catalogue, failpoints
from app.platform.blobs import Blob, BlobWriter, FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import BlobEntry, BlobHold
from tests.app.queue_steps import OWNER, add_dataset, add_model, change, claimed, submit
from tests.app.uploads import put

DAY = 86400.0
SETTINGS = Settings(blob_grace_seconds=DAY)


@pytest.fixture
def blobs(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "blobs")


def age_files(*paths: Path, seconds: float = 2 * DAY) -> None:
    """Have files been written so long ago."""
    then = time.time() - seconds
    for path in paths:
        for each in (*path.rglob("*"), path):
            os.utime(each, (then, then))


def age(db: Database, blobs: FolderStore, *keys: str, seconds: float = 2 * DAY) -> None:
    """Have blobs been published so long ago."""
    age_files(*(blobs.path(key) for key in keys), seconds=seconds)
    with db.write() as session:
        older = {"published_at": BlobEntry.published_at - seconds}
        session.execute(update(BlobEntry).where(BlobEntry.key.in_(keys)).values(older))


def there(blobs: FolderStore) -> set[str]:
    return {found.key for found in blobs.list()}


def entered(db: Database, *keys: str) -> set[str]:
    return set(db.reading(catalogue.entries, keys))


class TestSweep:
    def test_only_old_blobs_that_no_row_names_go(self, db: Database, blobs: FolderStore) -> None:
        kinds = ("uploads", "tables", "artifacts")
        upload, table, artifact = named = [put(blobs, kind, b"named", db).key for kind in kinds]
        orphans = [put(blobs, kind, b"orphan", db).key for kind in kinds]
        young = put(blobs, "uploads", b"young", db).key
        age(db, blobs, *named, *orphans)
        add_dataset(db, upload_key=upload, table_key=table)
        add_model(db, artifact_key=artifact)
        assert sweep(db, blobs, SETTINGS) == 3
        assert there(blobs) == entered(db, *named, *orphans, young) == {*named, young}
        assert sweep(db, blobs, SETTINGS) == 0

    def test_files_without_an_entry_go_when_they_are_old(
        self, db: Database, blobs: FolderStore
    ) -> None:
        """Their transaction was rolled back, or their process has died."""
        old, young = (put(blobs, "uploads", b"x").key for _ in range(2))
        age_files(blobs.path(old))
        assert sweep(db, blobs, SETTINGS) == 1
        assert there(blobs) == {young}

    def test_a_swept_key_gets_no_name_any_more(self, db: Database, blobs: FolderStore) -> None:
        """A transaction of before the sweep fails, however late it is; a row never names a blob that is gone."""
        blob = put(blobs, "uploads", b"x")
        age_files(blobs.path(blob.key))
        assert sweep(db, blobs, SETTINGS) == 1
        with pytest.raises(IntegrityError):
            db.writing(catalogue.add, [blob])
        assert entered(db, blob.key) == set()

    def test_entries_of_deleted_blobs_are_pruned_later(
        self, db: Database, blobs: FolderStore
    ) -> None:
        blob = put(blobs, "uploads", b"x", db)
        kept = put(blobs, "uploads", b"y", db)
        discard(db, blobs, SETTINGS, [blob.key])
        assert db.writing(catalogue.prune_deleted, DAY, 10) == 0
        age(db, blobs, kept.key)
        with db.write() as session:
            session.execute(update(BlobEntry).values(published_at=1.0))
        assert db.writing(catalogue.prune_deleted, DAY, 10) == 1
        assert entered(db, kept.key) == {kept.key}

    def test_old_staging_entries_go_whole(self, db: Database, blobs: FolderStore) -> None:
        old, busy, empty = (blobs.staging_dir() for _ in range(3))
        file = blobs.root / "staging" / "upload"
        for path in (old / "deep" / "x", busy / "x", file):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
        age_files(old, busy, empty, file)
        (busy / "x").write_bytes(b"still at it")
        assert sweep(db, blobs, SETTINGS) == 3
        assert list((blobs.root / "staging").iterdir()) == [busy]

    def test_staging_is_spared_while_a_job_runs_that_long(
        self, db: Database, blobs: FolderStore
    ) -> None:
        workdir = blobs.staging_dir()
        age_files(workdir)
        job = submit(db)
        claimed(db)
        change(db, job.id, started_at=1.0)
        assert sweep(db, blobs, SETTINGS) == 0
        assert workdir.exists()

    def test_a_checkpoint_stays_as_long_as_its_job_goes_on(
        self, db: Database, blobs: FolderStore
    ) -> None:
        jobs_of = [submit(db) for _ in range(2)]
        keys = [put(blobs, "checkpoints", job.id.encode(), db).key for job in jobs_of]
        for job, key in zip(jobs_of, keys, strict=True):
            change(db, job.id, checkpoint_key=key)
        age(db, blobs, *keys)
        db.writing(jobs.cancel, OWNER, jobs_of[1].id)
        assert sweep(db, blobs, SETTINGS) == 1
        assert there(blobs) == {keys[0]}

    def test_a_blob_that_is_named_meanwhile_stays(
        self, db: Database, blobs: FolderStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its row and its entry are committed after the sweeper has read the catalogue."""
        blob = put(blobs, "uploads", b"x")
        age_files(blobs.path(blob.key))
        entries = catalogue.entries

        def read_then_name(*args: Any) -> dict[str, Blob]:
            found = entries(*args)
            if not found:
                db.writing(catalogue.add, [blob])
                add_dataset(db, upload_key=blob.key)
            return found

        with monkeypatch.context() as patched:
            patched.setattr(catalogue, "entries", read_then_name)
            assert sweep(db, blobs, SETTINGS) == 0
        assert there(blobs) == entered(db, blob.key) == {blob.key}

    def test_what_a_dying_sweeper_has_left_goes_in_the_next_round(
        self, db: Database, blobs: FolderStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keys = {put(blobs, "uploads", b"x", db).key, put(blobs, "uploads", b"x").key}
        age(db, blobs, *keys)
        for _ in keys:
            monkeypatch.setattr(failpoints, "armed", failpoints.parse("sweep=raise"))
            with pytest.raises(failpoints.FailpointError):
                sweep(db, blobs, SETTINGS)
        assert there(blobs) == keys
        monkeypatch.setattr(failpoints, "armed", {})
        assert sweep(db, blobs, SETTINGS) == 2
        assert there(blobs) == set()

    def test_nothing_goes_while_a_backup_holds_the_blobs(
        self, db: Database, blobs: FolderStore
    ) -> None:
        keys = [put(blobs, "uploads", b"x", db).key, put(blobs, "uploads", b"x").key]
        age(db, blobs, *keys)
        with catalogue.hold(db):
            assert sweep(db, blobs, SETTINGS) == 0
            assert discard(db, blobs, SETTINGS, keys) == 0
            with db.write() as session:  # whoever held them is long dead
                session.execute(update(BlobHold).values(since=BlobHold.since - 2 * DAY))
            assert sweep(db, blobs, SETTINGS) == 2
        assert there(blobs) == set()

    def test_a_hold_ends_with_its_block(self, db: Database, blobs: FolderStore) -> None:
        key = put(blobs, "uploads", b"x", db).key
        with pytest.raises(KeyboardInterrupt), catalogue.hold(db):
            raise KeyboardInterrupt
        assert discard(db, blobs, SETTINGS, [key]) == 1


def test_only_what_no_row_names_is_discarded(db: Database, blobs: FolderStore) -> None:
    named, unnamed = (blobs.put("uploads", io.BytesIO(b"x")) for _ in range(2))
    db.writing(catalogue.add, [named, unnamed])
    add_dataset(db, upload_key=named.key)
    assert discard(db, blobs, SETTINGS, [named.key, unnamed.key]) == 1
    assert there(blobs) == entered(db, named.key, unnamed.key) == {named.key}
    assert discard(db, blobs, SETTINGS, []) == 0


def test_a_transaction_that_is_refused_publishes_nothing(db: Database, blobs: FolderStore) -> None:
    class Refused(Exception):
        pass

    def refuse(session: Session, writer: BlobWriter) -> None:
        catalogue.commit(session, writer)
        raise Refused

    with blobs.writer("uploads") as writer:
        writer.write(b"x")
        writer.sync()
        with pytest.raises(Refused):
            db.writing(refuse, writer)
        assert there(blobs) == entered(db, writer.key) == set()
        db.writing(catalogue.commit, writer)
        assert there(blobs) == entered(db, writer.key) == {writer.key}
