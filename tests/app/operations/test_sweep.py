"""Blobs that no row names go once their time has come."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.jobs import service as jobs
from app.operations import repository
from app.operations.housekeeping import sweep
from app.platform import failpoints
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.settings import Settings
from tests.app.queue_steps import OWNER, add_dataset, add_model, change, claimed, submit
from tests.app.uploads import put

DAY = 86400.0


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def test_a_column_that_names_blobs_is_found_by_its_name() -> None:
    class Tables(DeclarativeBase):
        pass

    class Picture(Tables):
        __tablename__ = "pictures"
        id: Mapped[str] = mapped_column(primary_key=True)
        key: Mapped[str]
        thumbnail_key: Mapped[str | None]

    (found,) = repository.find_blob_columns(Tables.metadata)
    assert (found.what, found.key.name) == ("thumbnail of pictures", "thumbnail_key")


class TestSweep:
    def age(self, blobs: BlobStore, key: str, seconds: float = 2 * DAY) -> None:
        then = time.time() - seconds
        path = blobs.path(key)
        for each in (*path.rglob("*"), path):
            os.utime(each, (then, then))

    def test_only_old_blobs_that_no_row_names_go(self, db: Database, blobs: BlobStore) -> None:
        upload, _ = put(blobs, "uploads", b"upload")
        table, _ = put(blobs, "tables", b"table")
        artifact, sha256 = put(blobs, "artifacts", b"artifact")
        orphans = [put(blobs, kind, b"orphan")[0] for kind in ("uploads", "tables", "artifacts")]
        young, _ = put(blobs, "uploads", b"young")
        for key in (upload, table, artifact, *orphans):
            self.age(blobs, key)
        add_dataset(db, upload_key=upload, table_key=table)
        add_model(db, artifact_sha256=sha256)
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 3
        assert all(blobs.path(key).exists() for key in (upload, table, artifact, young))
        assert not any(blobs.path(key).exists() for key in orphans)

    def test_old_staging_entries_go_whole(self, db: Database, blobs: BlobStore) -> None:
        old, busy, empty = (blobs.staging_dir() for _ in range(3))
        file = blobs.root / "staging" / "upload"
        for path in (old / "deep" / "x", busy / "x", file):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
        for path in (old, busy, empty, file):
            self.age(blobs, str(path.relative_to(blobs.root)))
        (busy / "x").write_bytes(b"still at it")
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 3
        assert list((blobs.root / "staging").iterdir()) == [busy]

    def test_staging_is_spared_while_a_job_runs_that_long(
        self, db: Database, blobs: BlobStore
    ) -> None:
        workdir = blobs.staging_dir()
        self.age(blobs, str(workdir.relative_to(blobs.root)))
        job = submit(db)
        claimed(db)
        change(db, job.id, started_at=1.0)
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 0
        assert workdir.exists()

    def test_a_checkpoint_stays_as_long_as_its_job_goes_on(
        self, db: Database, blobs: BlobStore
    ) -> None:
        jobs_of = [submit(db) for _ in range(2)]
        keys = [put(blobs, "checkpoints", job.id.encode())[0] for job in jobs_of]
        for job, key in zip(jobs_of, keys, strict=True):
            change(db, job.id, checkpoint_key=key)
            self.age(blobs, key)
        db.writing(jobs.cancel, OWNER, jobs_of[1].id)
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 1
        assert [blobs.path(key).exists() for key in keys] == [True, False]

    def test_a_blob_published_anew_meanwhile_stays(
        self, db: Database, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key, _ = put(blobs, "uploads", b"again")
        self.age(blobs, key)
        named = repository.named

        def publish_then_ask(*args: Any) -> Any:
            put(blobs, "uploads", b"again")
            return named(*args)

        monkeypatch.setattr(repository, "named", publish_then_ask)
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 0
        assert blobs.path(key).exists()

    def test_what_is_published_while_a_sweeper_stands_still_stays(
        self, db: Database, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key, _ = put(blobs, "uploads", b"again")
        self.age(blobs, key)
        monkeypatch.setattr(failpoints, "armed", {"sweep": lambda: put(blobs, "uploads", b"again")})
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 1
        assert blobs.path(key).read_bytes() == b"again"
        assert list((blobs.root / "staging").iterdir()) == []

    def test_what_a_dying_sweeper_has_moved_aside_is_judged_anew(
        self, db: Database, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keys = [put(blobs, kind, b"aside")[0] for kind in ("uploads", "out-of-fold")]
        for key in keys:
            self.age(blobs, key)
            monkeypatch.setattr(failpoints, "armed", failpoints.parse("sweep=raise"))
            with pytest.raises(failpoints.FailpointError):
                blobs.remove_old(key, DAY)
            assert not blobs.path(key).exists()
        add_dataset(db, upload_key=keys[0], table_key=None)  # named since
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 1
        assert [blobs.path(key).exists() for key in keys] == [True, False]
        assert list((blobs.root / "staging").iterdir()) == []

    def test_nothing_named_goes_while_a_backup_holds_the_blobs(
        self, db: Database, blobs: BlobStore
    ) -> None:
        orphan, _ = put(blobs, "uploads", b"orphan")
        self.age(blobs, orphan)
        with blobs.hold_sweeper():
            assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 0
            (hold,) = (blobs.root / "staging").iterdir()
            self.age(blobs, str(hold.relative_to(blobs.root)))  # whoever held them is long dead
            assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 2
        assert not blobs.path(orphan).exists()
