"""docs/deploy.md's backup of PostgreSQL: the database first, the blobs after it, while nothing sweeps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.access import service as keys
from app.datasets import service as datasets
from app.operations.doctor import Level, examine
from app.platform.blobs import BlobStore, FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from tests.app.queue_steps import OWNER, add_dataset
from tests.app.uploads import put
from tests.sentences import Sentences
from tests.servers import PostgresServer


@pytest.fixture
def restored(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a database to restore into."""
    yield postgres.create("restored")
    postgres.drop("restored")


def upload(db: Database, blobs: BlobStore, content: bytes) -> str:
    blob = put(blobs, "uploads", content, db)
    return add_dataset(db, upload_key=blob.key, sha256=blob.sha256, status="ready").id


def test_the_order_matters(
    postgres: PostgresServer, postgres_url: str, restored: str, tmp_path: Path, sentences: Sentences
) -> None:
    db, blobs = Database(postgres_url), FolderStore(tmp_path / "blobs")
    db.writing(keys.create, OWNER, "key", keys.SCOPES)
    kept, deleted = upload(db, blobs, b"kept"), upload(db, blobs, b"deleted meanwhile")
    shutil.copytree(blobs.root, tmp_path / "too-early")
    made_meanwhile = upload(db, blobs, b"made between the early copy and the dump")
    postgres.dump("migrated", tmp_path / "dump")
    db.writing(datasets.delete, OWNER, deleted)
    after = upload(db, blobs, b"made after the dump")
    shutil.copytree(blobs.root, tmp_path / "copy")
    db.close()
    postgres.load(tmp_path / "dump", "restored")

    copy = Database(restored)
    page = copy.reading(datasets.list_page, OWNER, limit=10, after=None)
    assert {dataset.id for dataset in page.data} == {kept, deleted, made_meanwhile}
    assert after not in {dataset.id for dataset in page.data}
    copy.close()
    assert trouble(restored, tmp_path / "copy") == {}
    early = trouble(restored, tmp_path / "too-early")
    assert set(early) == {"blobs"}
    assert made_meanwhile in early["blobs"]
    sentences(early["blobs"])


def trouble(url: str, blobs: Path) -> dict[str, str]:
    """Return what the doctor finds wrong, except the missing broker and workers."""
    settings = Settings(database_url=SecretStr(url), blob_url=f"file://{blobs}")
    found = examine(settings, {}, broker_url=f"redis+socket://{blobs}/none", runs=False, deep=True)
    return {finding.part: finding.detail for finding in found if finding.level == Level.FAIL}
