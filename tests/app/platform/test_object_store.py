"""A bucket as the blob store: cache, faults, outages, memory. What every store does is in test_blob_store.py."""

from __future__ import annotations

import dataclasses
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.platform import object_store
from app.platform.blobs import Blob, BlobDamaged, BlobMissing, BlobStoreAway, new_key
from app.platform.buckets import Bucket
from app.platform.object_store import ObjectStore
from app.platform.settings import MIB
from tests import buckets
from tests.app.queue_steps import at_once
from tests.buckets import BucketServer
from tests.long_form import long_form, rest
from tests.raising import raises
from tests.waiting import eventually, patience

FAULTS = {
    "500": lambda: buckets.status(500, 2),
    "503": lambda: buckets.status(503, 6),
    "dropped": lambda: buckets.dropped(4),
    "slow": lambda: buckets.slow(0.2),
}


@pytest.fixture
def server(bucket_server: BucketServer) -> BucketServer:
    bucket_server.clear()
    return bucket_server


def put(store: ObjectStore, content: bytes, kind: str = "uploads") -> Blob:
    return store.put(kind, io.BytesIO(content))


def elsewhere(server: BucketServer, folder: Path, **given: object) -> ObjectStore:
    """The same bucket, from a machine with an empty cache."""
    return server.store(folder / "elsewhere", **given)


@pytest.fixture(params=["500", *rest("503", "dropped", "slow")])
def fault(request: pytest.FixtureRequest, server: BucketServer) -> Iterator[None]:
    with server.failing(FAULTS[request.param]()):
        yield


def test_a_fault_of_the_server_delays_and_loses_nothing(
    server: BucketServer, fault: None, tmp_path: Path
) -> None:
    content = os.urandom(12 * MIB)
    store = server.store(tmp_path)
    blob = put(store, content)
    other = elsewhere(server, tmp_path)
    assert other.fetch(blob).read_bytes() == content
    assert [found.key for found in store.list()] == [blob.key]
    assert store.delete(blob.key)
    server.fault = None
    assert server.objects() == {}


@long_form
def test_reads_that_fail_midway_go_on(server: BucketServer, tmp_path: Path) -> None:
    content = os.urandom(20 * MIB)
    blob = put(server.store(tmp_path), content)
    count = iter(range(100))

    def every_second(environ, start):  # type: ignore[no-untyped-def]
        if next(count) % 2:
            raise buckets.Dropped

    with server.failing(every_second):
        assert elsewhere(server, tmp_path).fetch(blob).read_bytes() == content


def test_a_listing_that_fails_midway_goes_on(server: BucketServer, tmp_path: Path) -> None:
    store = server.store(tmp_path)
    keys = sorted(new_key("uploads") for _ in range(1010))  # two pages
    for key in keys:
        server.add(f"some/prefix/{key}")
    count = iter(range(100))

    def third(environ, start):  # type: ignore[no-untyped-def]
        if "list-type" in environ["QUERY_STRING"] and 0 < next(count) < 5:
            raise buckets.Dropped

    with server.failing(third):
        assert [found.key for found in store.list()] == keys


def test_an_outage_is_waited_for(
    server: BucketServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends once both have met it. Each logs its beginning and its end."""
    store = server.store(tmp_path, patience=patience())
    blob = put(store, b"before")
    other = elsewhere(server, tmp_path, patience=patience())
    is_away = threading.Event()

    def outage() -> None:
        with server.away():
            is_away.set()
            eventually(lambda: outages_in(caplog) == 2)

    def later(work: Callable[[], Any]) -> Any:
        assert is_away.wait(patience())
        return work()

    made = at_once(
        outage,
        lambda: later(lambda: put(store, b"meanwhile")),
        lambda: later(lambda: other.fetch(blob).read_bytes()),
    )
    assert made[2] == b"before"
    assert server.objects().keys() == {f"some/prefix/{each.key}" for each in (blob, made[1])}
    assert outages_in(caplog) == 4


def test_a_long_outage_is_an_error_and_cached_blobs_can_be_read(
    server: BucketServer, tmp_path: Path
) -> None:
    store = server.store(tmp_path, patience=0.2)
    blob = put(store, b"cached")
    other = elsewhere(server, tmp_path, patience=0.2)
    with server.away():
        assert store.fetch(blob).read_bytes() == b"cached"
        store.check_writable()  # logs a warning: the bucket may come back
        for work in (
            lambda: put(store, b"x"),
            lambda: other.fetch(blob),
            lambda: list(store.list()),
            lambda: store.delete(blob.key),
            lambda: other.verify(blob),
        ):
            with pytest.raises(BlobStoreAway) as error:
                work()
            assert error.value.status == 503
            assert "127.0.0.1" not in error.value.detail
    assert other.fetch(blob).read_bytes() == b"cached"


def test_damaged_bytes_do_not_enter_the_cache(server: BucketServer, tmp_path: Path) -> None:
    store = server.store(tmp_path)
    good, other = put(store, b"these"), put(store, b"those")
    blob = Blob(other.key, good.sha256, 5)
    fresh = elsewhere(server, tmp_path)
    for _ in range(2):
        with pytest.raises(BlobDamaged):
            fresh.fetch(blob)
    assert fresh.cached_bytes == 0


def test_a_truncated_file_of_the_cache_is_downloaded_again(
    server: BucketServer, tmp_path: Path
) -> None:
    store = server.store(tmp_path)
    blob = put(store, b"whole")
    store.fetch(blob).write_bytes(b"who")
    assert store.fetch(blob).read_bytes() == b"whole"


def test_the_cache_is_bounded_and_keeps_what_was_used_last(
    server: BucketServer, tmp_path: Path
) -> None:
    store = server.store(tmp_path, cache_bytes=10 * MIB)
    first = [put(store, bytes(MIB)) for _ in range(8)]
    for place, blob in enumerate(first):  # an hour ago, one after the other
        at = time.time() - 3600.0 + place
        os.utime(store.fetch(blob), (at, at))
    store.fetch(first[0])  # is used now
    for _ in range(6):
        put(store, bytes(MIB))
    assert store.cached_bytes == 10 * MIB  # and no more than is too much is deleted
    server.requests.clear()
    assert store.fetch(first[0]).stat().st_size == MIB
    assert server.requests == []
    assert store.fetch(first[1]).stat().st_size == MIB
    assert server.requests != []


def test_a_pinned_file_outlives_its_eviction(server: BucketServer, tmp_path: Path) -> None:
    store = server.store(tmp_path, cache_bytes=2 * MIB)
    blob = put(store, b"p" * MIB)
    folder = store.staging_dir()
    pinned = store.pin(blob, folder)
    at = time.time() - 3600.0
    os.utime(pinned, (at, at))
    for _ in range(4):
        put(store, bytes(MIB))
    assert not (tmp_path / "cache" / blob.key).exists()
    assert pinned.read_bytes() == b"p" * MIB
    assert store.pin(blob, folder).read_bytes() == b"p" * MIB


def test_threads_that_want_the_same_blob_download_it_once(
    server: BucketServer, tmp_path: Path
) -> None:
    blob = put(server.store(tmp_path), bytes(3 * MIB))
    other = elsewhere(server, tmp_path)
    server.requests.clear()
    paths = at_once(*[lambda: other.fetch(blob)] * 8)
    assert len(set(paths)) == 1
    assert [method for method, _ in server.requests].count("GET") == 1


def test_a_transaction_does_not_wait_for_the_bucket(server: BucketServer, tmp_path: Path) -> None:
    store = server.store(tmp_path)
    with store.writer("uploads") as writer:
        writer.write(b"sent before the transaction")
        writer.sync()
        server.requests.clear()
        blob = writer.commit()
    assert server.requests == []
    assert elsewhere(server, tmp_path).fetch(blob).read_bytes() == b"sent before the transaction"
    with store.writer("uploads") as writer:
        writer.write(b"whole")
        writer.sync()
        writer.write(b", and more")
        blob = writer.commit()
    assert elsewhere(server, tmp_path).fetch(blob).read_bytes() == b"whole, and more"


def test_an_empty_disk_at_the_start_is_filled_from_the_bucket(
    server: BucketServer, tmp_path: Path
) -> None:
    kept = [put(server.store(tmp_path), bytes([n]) * n) for n in range(5)]
    other = elsewhere(server, tmp_path)
    assert [other.fetch(blob).read_bytes() for blob in kept] == [bytes([n]) * n for n in range(5)]
    for blob in kept:
        other.verify(blob)


def test_a_bucket_that_rejects_the_service_or_does_not_exist_is_named_at_the_start(
    server: BucketServer, tmp_path: Path
) -> None:
    with (
        server.failing(buckets.status(403, 100)),
        raises(PermissionError, "s3://blobs/some/prefix"),
    ):
        server.store(tmp_path).check_writable()
    missing = ObjectStore(
        server.bucket("missing"), tmp_path, cache_bytes=MIB, upload_bytes=MIB, patience=0.5
    )
    with raises(PermissionError, "s3://missing"):
        missing.check_writable()
    unusable = Bucket("az://container")  # of no account
    with raises(PermissionError, "az://container"):
        ObjectStore(
            unusable, tmp_path, cache_bytes=MIB, upload_bytes=MIB, patience=0.5
        ).check_writable()
    without = server.bucket()
    with raises(PermissionError, tmp_path / "no-such-file"):
        ObjectStore(
            dataclasses.replace(without, ca_file=tmp_path / "no-such-file"),
            tmp_path,
            cache_bytes=MIB,
            upload_bytes=MIB,
            patience=0.5,
        ).check_writable()
    server.store(tmp_path).check_writable()
    assert server.objects() == {}


def test_a_health_check_does_not_wait_for_a_bucket_that_hangs(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "PROBED_SECONDS", 0.0)
    store = server.store(tmp_path)
    assert is_well(store)
    release = threading.Event()

    def hang(environ, start):  # type: ignore[no-untyped-def]
        release.wait()

    with server.failing(hang):
        for _ in range(2):
            with pytest.raises(BlobStoreAway):
                store.probe()
        release.set()
        eventually(lambda: is_well(store))


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "404 Not Found", "503 Slow Down"])
def test_a_bucket_that_cannot_store_is_not_well(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """The page of a captive portal is no object."""
    monkeypatch.setattr(object_store, "PROBE_SECONDS", patience())
    monkeypatch.setattr(object_store, "PROBED_SECONDS", 0.0)

    def answer(environ, start):  # type: ignore[no-untyped-def]
        start(status, [("Content-Type", "text/html")])
        return [b"<html>Sign in</html>"]

    store = server.store(tmp_path)
    with server.failing(answer):
        assert not is_well(store)
    assert is_well(store)
    assert server.objects() == {}


def test_asking_again_and_again_sends_one_request_to_a_bucket_that_refuses(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "PROBE_SECONDS", patience())
    monkeypatch.setattr(object_store, "PROBED_SECONDS", 30.0 * patience())
    asked: list[str] = []

    def refuse(environ, start):  # type: ignore[no-untyped-def]
        asked.append(environ["REQUEST_METHOD"])
        start("403 Forbidden", [])
        return [b""]

    store = server.store(tmp_path)
    with server.failing(refuse):
        assert not any(is_well(store) for _ in range(20))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("error: InvalidCertificate(\n    Expired,\n)", "InvalidCertificate Expired"),
        (
            "error: InvalidCertificate(\n    Other(\n        OtherError(\n            CaUsedAsEndEntity,",
            "InvalidCertificate CaUsedAsEndEntity",
        ),
        ('ConnectError(\n    "dns error",\n    Custom {', "dns error"),
        ('Os {\n    code: 111,\n    message: "Connection refused",', "Connection refused"),
    ],
)
def test_the_cause_of_an_error_is_kept(text: str, cause: str) -> None:
    """It stands below the first line, in Rust's words."""
    error = OSError(f"Generic S3 error: error sending request\n\nDebug source:\n{text}")
    assert object_store._reason(error).endswith(cause)
    assert object_store._reason(OSError("refused\nwithout a cause")) == "refused"


def outages_in(caplog: pytest.LogCaptureFixture) -> int:
    """The number of lines that the stores have logged."""
    return len([each for each in caplog.records if each.name == object_store.__name__])


def is_well(store: ObjectStore) -> bool:
    try:
        store.probe()
    except BlobStoreAway:
        return False
    return True


def test_a_changed_file_of_credentials_is_used_without_a_restart(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "CREDENTIALS_SECONDS", 0.0)
    seen: list[str] = []

    def note(environ, start):  # type: ignore[no-untyped-def]
        seen.append(environ["HTTP_AUTHORIZATION"].partition("Credential=")[2].partition("/")[0])

    store = server.store(tmp_path, patience=0.3)
    before = server.credentials.read_text()
    try:
        with server.failing(note):
            put(store, b"x")
            server.credentials.write_text(before.replace("tests", "rotated"))
            put(store, b"x")
            server.credentials.write_text("nonsense")
            with pytest.raises(BlobStoreAway):
                put(store, b"x")
    finally:
        server.credentials.write_text(before)
    put(store, b"x")
    assert set(seen) == {"tests", "rotated"}


def test_a_key_of_the_database_does_not_lead_out_of_the_cache(
    server: BucketServer, tmp_path: Path
) -> None:
    store = server.store(tmp_path)
    for work in (store.fetch, store.check, lambda blob: store.delete(blob.key)):
        with pytest.raises((ValueError, BlobMissing)):
            work(Blob("../../etc/passwd", "", 1))


def test_versions_of_a_bucket_are_noticed(server: BucketServer, tmp_path: Path) -> None:
    store = server.store(tmp_path)
    assert not store.keeps_versions()
    on, off = (
        f"<VersioningConfiguration><Status>{each}</Status></VersioningConfiguration>"
        for each in ("Enabled", "Suspended")
    )
    with server.client() as client:
        client.put("/blobs?versioning", content=on).raise_for_status()
        assert store.keeps_versions()
        client.put("/blobs?versioning", content=off).raise_for_status()


PEAK = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from app.platform.buckets import Bucket
from app.platform.object_store import ObjectStore
url, credentials, folder = sys.argv[1:]
bucket = Bucket("s3://blobs/peak", url, Path(credentials))
store = ObjectStore(bucket, Path(folder), cache_bytes=1 << 30, upload_bytes=80 << 20, patience=30)
def prepared():
    file = store.staging_dir() / "f"
    with file.open("wb") as out:
        for _ in range(24):
            out.write(bytes(1 << 20))
    return file
files = [prepared() for _ in range(32)]
with ThreadPoolExecutor(32) as pool:
    list(pool.map(lambda n: store.store_file(files[n], f"uploads/ab/ab{n:030x}"), range(32)))
peak, = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak) << 10)
"""


@long_form
def test_uploads_at_the_same_time_share_a_budget_of_memory(
    server: BucketServer, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", PEAK, server.url, str(server.credentials), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert len(server.objects()) == 32
    assert int(done.stdout) < 256 * MIB  # the whole process; the files have 768 MiB


@long_form
def test_a_file_larger_than_the_budget_is_uploaded(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "MAX_PARTS", 1)
    content = os.urandom(30 * MIB)
    store = server.store(tmp_path, upload_bytes=10 * MIB)
    made = at_once(*[lambda: put(store, content)] * 3)
    assert all(elsewhere(server, tmp_path).fetch(blob).read_bytes() == content for blob in made)
