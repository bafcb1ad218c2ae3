"""What every blob store does; a new one is added to `STORES` and must pass as it is."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.platform.blobs import Blob, BlobDamaged, BlobMissing, BlobStore, FolderStore
from tests import swift
from tests.app.queue_steps import at_once
from tests.long_form import LONG_FORM
from tests.sentences import Sentences

if TYPE_CHECKING:
    from tests.buckets import BucketServer

# `make buckets` runs this file with Swift.
STORES = ("folder", "bucket", *(("swift",) if LONG_FORM and swift.is_installed() else ()))


@pytest.fixture(scope="module")
def swift_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[swift.SwiftServer]:
    server = swift.SwiftServer(tmp_path_factory.mktemp("swift"))
    yield server
    server.close()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "blobs")
    if request.param == "swift":
        prefix = f"/{tmp_path.name}"  # each test has its own
        found: BlobStore = request.getfixturevalue("swift_server").store(tmp_path / "blobs", prefix)
        return found
    server: BucketServer = request.getfixturevalue("bucket_server")
    server.clear()
    return server.store(tmp_path / "blobs")


def put(store: BlobStore, content: bytes, kind: str = "uploads") -> Blob:
    return store.put(kind, io.BytesIO(content))


def replace(store: BlobStore, blob: Blob, content: bytes) -> Blob:
    """Store other bytes, and return a blob that expects the first ones."""
    other = put(store, content)
    return Blob(other.key, blob.sha256, blob.bytes)


def keys(store: BlobStore, prefix: str = "") -> set[str]:
    return {found.key for found in store.list(prefix)}


def test_a_stream_is_stored_with_its_hash_and_size(store: BlobStore) -> None:
    content = bytes(range(256)) * 20_000
    blob = put(store, content)
    assert blob == (blob.key, hashlib.sha256(content).hexdigest(), len(content))
    assert blob.kind == "uploads"
    assert store.fetch(blob).read_bytes() == content
    store.verify(blob)
    assert put(store, b"").bytes == 0


def test_a_finished_file_is_moved_in(store: BlobStore) -> None:
    file = store.staging_dir() / "table"
    file.write_bytes(b"rows")
    blob = store.publish(file, "tables", hashlib.sha256(b"rows").hexdigest())
    store.verify(blob)
    assert blob.bytes == 4
    assert not file.exists()


def test_blobs_are_listed_by_segments_of_their_keys(store: BlobStore) -> None:
    upload, table, parts = (put(store, b"x", kind) for kind in ("uploads", "tables", "table-parts"))
    store.staging_dir()
    assert keys(store) == {upload.key, table.key, parts.key}
    assert keys(store, "tables") == {table.key}
    assert keys(store, table.key.rpartition("/")[0]) == {table.key}
    assert keys(store, "table") == keys(store, "unknown") == set()
    (found,) = store.list("uploads")
    assert (found.key, found.bytes) == (upload.key, 1)
    assert 0.0 <= found.age < 60.0


def test_other_files_of_a_folder_are_not_blobs(tmp_path: Path) -> None:
    for name in ("rankwright.db", "lost+found/x", "uploads/x", "uploads/ab/cdef", "a/b/c/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert keys(FolderStore(tmp_path)) == set()


def test_what_is_deleted_is_missing(store: BlobStore, sentences: Sentences) -> None:
    blob = Blob("uploads/ab/abcd", "0" * 64, 4)
    assert not store.delete(blob.key)
    with sentences.raises(BlobMissing):
        store.fetch(blob)
    stored = put(store, b"x")
    assert store.delete(stored.key)
    for read in (store.fetch, store.verify):
        with pytest.raises(BlobMissing) as error:
            read(stored)
        assert stored.key in error.value.detail
    assert keys(store) == set()


def test_equal_bytes_put_at_once_are_blobs_of_their_own(store: BlobStore) -> None:
    blobs = at_once(*[lambda: put(store, b"equal")] * 8)
    assert len({blob.key for blob in blobs}) == 8
    assert keys(store) == {blob.key for blob in blobs}
    store.delete(blobs[0].key)
    for blob in blobs[1:]:
        store.verify(blob)


def test_an_interrupted_writer_leaves_nothing(store: BlobStore) -> None:
    def interrupted() -> None:
        with store.writer("uploads") as writer:
            writer.write(b"half")
            assert keys(store) == set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert keys(store) == set()
    assert store.clear_staging(-60.0) == 0


def test_a_blob_can_be_pinned_and_checked(store: BlobStore) -> None:
    blob = put(store, b"whole")
    assert store.pin(blob, store.staging_dir()).read_bytes() == b"whole"
    store.check(blob)
    with pytest.raises(BlobDamaged):
        store.check(blob._replace(bytes=4))


def test_a_writer_commits_once(store: BlobStore) -> None:
    with store.writer("uploads") as writer:
        writer.write(b"whole")
        assert writer.commit() == writer.commit() == writer.blob
    assert keys(store) == {writer.key}
    assert store.fetch(writer.blob).read_bytes() == b"whole"


def test_truncated_bytes_are_never_returned(store: BlobStore, sentences: Sentences) -> None:
    blob = replace(store, put(store, b"whole"), b"who")
    for read in (store.fetch, store.verify):
        with pytest.raises(BlobDamaged) as error:
            read(blob)
        assert blob.key in error.value.detail
    sentences(error.value.detail.replace(blob.key, "uploads/ab/abcd"))


def test_other_bytes_of_the_same_size_fail_verification(
    store: BlobStore, sentences: Sentences
) -> None:
    blob = replace(store, put(store, b"these"), b"those")
    with pytest.raises(BlobDamaged) as error:
        store.verify(blob)
    sentences(error.value.detail.replace(blob.key, "uploads/ab/abcd"))


def test_a_key_does_not_lead_out_of_the_store(store: BlobStore) -> None:
    for key in ("../secret", "uploads/../../secret", "/etc/passwd"):
        with pytest.raises((ValueError, BlobMissing)):
            store.fetch(Blob(key, "", 1))


def test_a_blob_of_six_gibibytes(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if "swift" not in STORES:
        pytest.skip("`make buckets` runs it")
    store = request.getfixturevalue("swift_server").store(tmp_path / "blobs")
    file, block, digest = store.staging_dir() / "table", bytes(range(256)) * 4096, hashlib.sha256()
    with file.open("wb") as out:
        for n in range(6 << 10):
            digest.update(chunk := n.to_bytes(4, "big") + block[4:])
            out.write(chunk)
    blob = store.publish(file, "tables", digest.hexdigest())
    assert blob.bytes == 6 << 30
    store.verify(blob)
    assert store.delete(blob.key)
