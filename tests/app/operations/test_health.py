"""Each part of the service is looked at by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from servers import ValkeyServer

from app.jobs import repository as workers
from app.operations import health
from app.platform.blobs import BlobStore
from app.platform.broker import Producer
from app.platform.database import Database
from app.platform.settings import Settings


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def look(db: Database, blobs: BlobStore, broker_url: str) -> dict[str, str]:
    """What is wrong, by part."""
    producer = Producer(broker_url)
    try:
        checks = health.ready(db, blobs, producer, Settings())
    finally:
        producer.close()
    assert [check.name for check in checks] == ["database", "blob_store", "broker", "worker"]
    return {check.name: check.detail for check in checks if not check.ok}


def test_parts(db: Database, blobs: BlobStore, valkey: ValkeyServer, tmp_path: Path) -> None:
    assert set(look(db, blobs, valkey.broker_url)) == {"worker"}
    with db.write() as session:
        workers.hello(session, "w", host="h", version="0", slots=1)
    assert look(db, blobs, valkey.broker_url) == {}
    assert "away" in look(db, blobs, f"redis+socket://{tmp_path}/none.sock")["broker"]
    shutil.rmtree(blobs.root)
    assert set(look(db, blobs, valkey.broker_url)) == {"blob_store"}


def test_a_database_that_is_away(blobs: BlobStore, valkey: ValkeyServer) -> None:
    away = Database("sqlite:////nowhere/rankwright.db")
    assert look(away, blobs, valkey.broker_url) == {
        "database": "the database is away",
        "worker": "the database is away",
    }
