"""Blobs that no row names, and rows that nobody needs, go once their time has come."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from queue_steps import OWNER, add_dataset, change, claimed, submit
from sqlalchemy import select

from app.db import idempotency as idempotency_rows
from app.db import workers as worker_rows
from app.db.model_tables import Model
from app.db.session import Database
from app.db.tables import Idempotency, Outbox, Worker
from app.infra.blobs import BlobStore
from app.infra.ids import new_id
from app.infra.settings import Settings
from app.services import dispatch, jobs
from app.services.dispatch import sweep

LATER = 4e9
DAY = 86400.0


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


class TestSweep:
    def age(self, blobs: BlobStore, key: str, seconds: float = 2 * DAY) -> None:
        then = time.time() - seconds
        path = blobs.path(key)
        for each in (*path.rglob("*"), path):
            os.utime(each, (then, then))

    def put(self, blobs: BlobStore, kind: str, content: bytes) -> tuple[str, str]:
        with blobs.writer(kind) as writer:
            writer.write(content)
            return writer.commit()

    def test_only_old_blobs_that_no_row_names_go(self, db: Database, blobs: BlobStore) -> None:
        upload, _ = self.put(blobs, "uploads", b"upload")
        table, _ = self.put(blobs, "tables", b"table")
        artifact, sha256 = self.put(blobs, "artifacts", b"artifact")
        orphans = [
            self.put(blobs, kind, b"orphan")[0] for kind in ("uploads", "tables", "artifacts")
        ]
        young, _ = self.put(blobs, "uploads", b"young")
        for key in (upload, table, artifact, *orphans):
            self.age(blobs, key)
        add_dataset(db, upload_key=upload, table_key=table)
        add_model(db, sha256)
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

    def test_a_blob_published_anew_meanwhile_stays(
        self, db: Database, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key, _ = self.put(blobs, "uploads", b"again")
        self.age(blobs, key)
        named = dispatch.blob_rows.named

        def publish_then_ask(*args: object) -> set[str]:
            self.put(blobs, "uploads", b"again")
            return named(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(dispatch.blob_rows, "named", publish_then_ask)
        assert sweep(db, blobs, Settings(blob_grace_seconds=DAY)) == 0
        assert blobs.path(key).exists()

    def test_rows_that_nobody_needs_go_too(self, db: Database, blobs: BlobStore) -> None:
        ended, waiting = submit(db), submit(db)
        jobs.cancel(db, OWNER, ended.id)
        with db.write() as session:
            for row in session.scalars(select(Outbox)):
                row.published_at = 1.0
            idempotency_rows.reserve(session, OWNER, "r", "old", "f")
            session.scalars(select(Idempotency)).one().created_at = 1.0
            idempotency_rows.reserve(session, OWNER, "r", "new", "f")
            for id_ in ("wrk_old", "wrk_new"):
                worker_rows.hello(session, id_, host="h", version="1", slots=1)
            session.get_one(Worker, "wrk_old").seen_at = 1.0
        sweep(db, blobs, Settings())
        with db.read() as session:
            assert session.scalars(select(Outbox.job_id)).all() == [waiting.id]
            assert session.scalars(select(Idempotency.key)).all() == ["new"]
            assert session.scalars(select(Worker.id)).all() == ["wrk_new"]


def add_model(db: Database, sha256: str) -> None:
    """Write a model's row that names an artifact."""
    with db.write() as session:
        session.add(
            Model(
                id=new_id("mdl"),
                owner=OWNER,
                name="churn",
                version=1,
                job_id=new_id("job"),
                dataset_id=new_id("ds"),
                algorithm="rankboost",
                parameters={},
                objective={},
                validation={},
                optimised_for={},
                features=[],
                label="y",
                positive="1",
                negative="0",
                seed=0,
                tags={},
                warnings=[],
                fit_seconds=0.1,
                artifact_sha256=sha256,
                artifact_bytes=8,
                created_at=1.5,
            )
        )
