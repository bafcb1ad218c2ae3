"""Datasets from objects of a real S3 server (moto): the requests, what is read, what is refused, and refreshes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from wsgiref.types import StartResponse, WSGIEnvironment

import httpx
import pyarrow.parquet as pq
import pytest

from app.access.repository import stored_bytes
from app.datasets import object_download
from app.platform import json_files
from tests.app.live_service import OWNER, STRANGER, Service, table

if TYPE_CHECKING:
    from tests.buckets import BucketServer

PREFIX = "s3://blobs/exports/"
LABEL = {"label": "left", "positive": "yes"}


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory, bucket_server: BucketServer) -> Path:
    file = tmp_path_factory.mktemp("connections") / "connections.json"
    write(file, bucket_server)
    return file


def write(file: Path, server: BucketServer, **more: Any) -> None:
    store = {
        "driver": "s3",
        "owners": [OWNER],
        "prefix": PREFIX,
        "endpoint": server.url,
        "credentials_file": str(server.credentials),
    }
    theirs = store | {"owners": [STRANGER], "prefix": "s3://blobs/theirs"}
    file.write_text(json.dumps({"exports": store, "theirs": theirs, **more}))


@pytest.fixture(scope="module")
def sourced(start: Callable[..., Service], connections: Path) -> Service:
    return start(connections_file=connections)


@pytest.fixture
def api(
    sourced: Service, bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[httpx.Client]:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 0.3)
    bucket_server.clear()
    yield sourced.client(sourced.key())
    bucket_server.fault = None


@pytest.fixture
def put(bucket_server: BucketServer) -> Callable[[str, bytes], object]:
    import obstore

    from app.platform.object_store import open_bucket

    store = open_bucket(bucket_server.bucket(prefix=""))
    return lambda key, body: obstore.put(store, key, body)


def ask(api: httpx.Client, url: str, **more: Any) -> httpx.Response:
    body = {"name": "people", "source": {"url": url}, **LABEL, **more}
    return api.post("/v1/datasets", json=body)


def made(sourced: Service, api: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """The dataset after its job has ended."""
    assert answer.status_code == 202, answer.text
    sourced.work()
    found: dict[str, Any] = api.get(f"/v1/datasets/{answer.json()['id']}").json()
    return found


def failure(sourced: Service, api: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """The error of the job of an invalid dataset."""
    dataset = made(sourced, api, answer)
    assert dataset["status"] == "invalid"
    error: dict[str, Any] = api.get(f"/v1/jobs/{dataset['job_id']}").json()["error"]
    return error


def parquet(text: str) -> bytes:
    import pyarrow.csv as pa_csv

    buffer = io.BytesIO()
    pq.write_table(pa_csv.read_csv(io.BytesIO(text.encode())), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("people.csv", str.encode),
        ("people.csv.gz", lambda text: gzip.compress(text.encode())),
        ("with space=1/people.parquet", parquet),
    ],
)
def test_an_object_becomes_the_dataset_of_its_bytes(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    name: str,
    encode: Callable[[str], bytes],
) -> None:
    body = encode(table())
    put(f"exports/{name}", body)
    dataset = made(sourced, api, ask(api, PREFIX + name))
    assert dataset["status"] == "ready", dataset["errors"]
    assert (dataset["rows"], dataset["label"], dataset["bytes"]) == (120, "left", len(body))
    sha256 = hashlib.sha256(body).hexdigest()
    assert dataset["sha256"] == dataset["upload_sha256"] == sha256
    source = dataset["source"]
    assert (source["kind"], source["connection"], source["url"]) == (
        *("object", "exports"),
        PREFIX + name,
    )
    assert source["sha256"] == sha256
    assert source["read_at"] >= dataset["created_at"][:16]
    [read] = source["objects"]
    assert (read["url"], read["bytes"], read["sha256"]) == (PREFIX + name, len(body), sha256)
    assert read["etag"]
    again = api.post(f"/v1/datasets/{dataset['id']}/read", json={"drop": "age"})
    reread = made(sourced, api, again)
    assert (reread["status"], reread["source"]) == ("ready", source)


def test_all_objects_below_a_prefix_are_one_table_in_the_order_of_their_keys(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    whole = table(300)
    header, *rows = whole.splitlines(keepends=True)
    for number in range(3):
        part = header + "".join(rows[100 * number : 100 * number + 100])
        put(f"exports/day/{number}/part.csv", part.encode())
    put("exports/day/_SUCCESS", b"")
    put("exports/day/_log/1.json", b"[]")
    put("exports/daytime/other.csv", b"no,table\n1,2\n")
    dataset = made(sourced, api, ask(api, f"{PREFIX}day/"))
    assert dataset["status"] == "ready", dataset["errors"]
    assert dataset["rows"] == 300
    assert dataset["source"]["files"] == 3
    assert [each["url"] for each in dataset["source"]["objects"]] == [
        f"{PREFIX}day/{number}/part.csv" for number in range(3)
    ]
    put("exports/whole.csv", whole.encode())
    one = made(sourced, api, ask(api, f"{PREFIX}whole.csv"))
    shown = [
        api.get(f"/v1/datasets/{each['id']}/preview", params={"limit": 200}).json()
        for each in (dataset, one)
    ]
    assert shown[0] == shown[1]
    assert dataset["columns"] == one["columns"]
    again = made(sourced, api, api.post(f"/v1/datasets/{dataset['id']}/read", json={"drop": "age"}))
    assert again["status"] == "ready"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("s3://blobs/theirs/people.csv", "source_not_allowed"),
        ("s3://blobs/exportsmore/people.csv", "source_not_allowed"),
        ("s3://other/exports/people.csv", "source_not_allowed"),
        ("gs://blobs/exports/people.csv", "source_not_allowed"),
        ("s3://blobs/exports/../theirs/people.csv", "invalid"),
        ("s3://blobs/exports/./people.csv", "invalid"),
        ("s3://blobs/exports/%2e%2e/theirs/people.csv", "invalid"),
        ("s3://blobs/exports//people.csv", "invalid"),
        ("s3://blobs/exports/people.csv?versionId=1", "invalid"),
        ("s3://blobs/exports/people.csv#a", "invalid"),
        ("s3://blobs/exports/people.csv\n", "invalid"),
        ("s3://blobs/exports/people.csv\\..", "invalid"),
        ("s3://user:word@blobs/exports/people.csv", "invalid"),
        ("http://127.0.0.1/exports/people.csv", "source_not_allowed"),
        ("file:///etc/people.csv", "invalid"),
        ("/etc/people.csv", "invalid"),
        ("s3://blobs/exports/people.exe", "invalid"),
        ("s3://blobs/exports/" + "a" * 2000, "invalid"),
        ("", "invalid"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/datasets/validate"])
def test_a_url_outside_of_the_prefixes_is_refused(
    api: httpx.Client, bucket_server: BucketServer, path: str, url: str, code: str
) -> None:
    answer = api.post(path, json={"name": "people", "source": {"url": url}})
    assert answer.status_code == 422, answer.text
    assert (answer.json()["code"], answer.json()["errors"][0]["pointer"]) == (code, "/source/url")
    assert bucket_server.requests == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"source": {}}, "/source"),
        ({"source": {"url": f"{PREFIX}a.csv", "decisions": "a@b"}}, "/source"),
        ({"source": {"url": f"{PREFIX}a.csv", "query": "a"}}, "/source"),
        ({"source": {"url": f"{PREFIX}a.csv", "since": None}}, "/source"),
        ({"source": {"connection": "exports"}}, "/source"),
        ({"source": {"url": 1}}, "/source/url"),
        ({"source": {"url": f"{PREFIX}a.csv", "sql": "select 1"}}, "/source/sql"),
        ({"source": {"url": f"{PREFIX}a.csv"}, "kind": "none"}, "/kind"),
        ({"source": {"url": f"{PREFIX}a.csv"}, "lable": "left"}, "/lable"),
        ({"source": {"decisions": "a@b"}, "label": "left"}, "/label"),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused_with_its_place(
    api: httpx.Client, body: dict[str, Any], pointer: str
) -> None:
    answer = api.post("/v1/datasets", json={"name": "people", **body})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    "source", [{"connection": "none", "query": "a"}, {"connection": "exports", "query": "a"}]
)
def test_an_unknown_connection_is_not_found(api: httpx.Client, source: dict[str, str]) -> None:
    answer = api.post("/v1/datasets", json={"name": "people", "source": source})
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["pointer"] == "/source/connection"


def test_each_owner_sees_the_own_connections(sourced: Service, api: httpx.Client) -> None:
    assert api.get("/v1/sources").json() == {
        "data": [{"name": "exports", "driver": "s3", "prefix": PREFIX, "queries": None}]
    }
    stranger = sourced.client(sourced.key(STRANGER))
    assert [each["name"] for each in stranger.get("/v1/sources").json()["data"]] == ["theirs"]
    assert ask(stranger, f"{PREFIX}a.csv").status_code == 422


def test_a_valid_request_can_be_checked_without_asking_the_store(
    api: httpx.Client, bucket_server: BucketServer
) -> None:
    answer = api.post(
        "/v1/datasets/validate", json={"name": "a", "source": {"url": f"{PREFIX}a.csv"}}
    )
    assert (answer.status_code, answer.json()) == (200, {"valid": True})
    assert bucket_server.requests == []


# --- what a store can do ---------------------------------------------------------------------------


def test_what_is_not_there_or_has_nothing_is_named(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    put("exports/empty.csv", b"")
    put("exports/folder/_SUCCESS", b"")
    put("exports/mixed/a.csv", b"a,left\n1,yes\n")
    put("exports/mixed/b.exe", b"MZ")
    for name, code in (
        ("none.csv", "source_not_found"),
        ("empty.csv", "source_empty"),
        ("folder/", "source_empty"),
        ("none/", "source_empty"),
        ("mixed/", "source_not_a_table"),
    ):
        error = failure(sourced, api, ask(api, PREFIX + name))
        assert error["code"] == code
        assert "exports" in error["detail"]


def test_a_store_that_is_away_or_refuses_is_named_without_its_address(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
) -> None:
    put("exports/people.csv", table().encode())
    with bucket_server.away():
        error = failure(sourced, api, ask(api, f"{PREFIX}people.csv"))
    assert error["code"] == "source_unreachable"
    assert str(bucket_server.port) not in json.dumps(error)

    def forbid(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        start("403 Forbidden", [("Content-Length", "0")])
        return [b""]

    bucket_server.fault = forbid
    error = failure(sourced, api, ask(api, f"{PREFIX}people.csv"))
    assert error["code"] == "source_forbidden"
    assert str(bucket_server.port) not in json.dumps(error)


@pytest.mark.parametrize(
    ("status", "headers", "of_object", "of_prefix"),
    [
        ("301 Moved", {"x-amz-bucket-region": "eu-west-1"}, *["source_misconfigured"] * 2),
        ("400 Bad Request", {}, *["source_misconfigured"] * 2),
        ("405 Method Not Allowed", {}, *["source_misconfigured"] * 2),
        ("501 Not Implemented", {}, *["source_misconfigured"] * 2),
        ("401 Unauthorized", {}, *["source_forbidden"] * 2),
        ("403 Forbidden", {}, *["source_forbidden"] * 2),
        ("404 Not Found", {}, *["source_not_found"] * 2),
    ],
)
def test_an_answer_that_no_repetition_changes_ends_the_read_at_once(
    sourced: Service,
    api: httpx.Client,
    bucket_server: BucketServer,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    headers: dict[str, str],
    of_object: str,
    of_prefix: str,
) -> None:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 600.0)

    def answer(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        start(status, [("Content-Length", "0"), *headers.items()])
        return [b""]

    bucket_server.fault = answer
    for name, code in (("people.csv", of_object), ("people/", of_prefix)):
        error = failure(sourced, api, ask(api, PREFIX + name))
        assert error["code"] == code
        assert str(bucket_server.port) not in json.dumps(error)


def test_a_store_without_ranges_is_named(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 600.0)
    put("exports/people.csv", table().encode())
    bucket_server.fault = lambda environ, _: environ.pop("HTTP_RANGE", None) and None
    error = failure(sourced, api, ask(api, f"{PREFIX}people.csv"))
    assert error["code"] == "source_misconfigured"


@pytest.mark.parametrize(
    "key", ["../a.csv", "x//a.csv", "a&#10;.csv", "a" * 3000 + ".csv"], ids=lambda key: key[:10]
)
def test_keys_that_are_no_names_of_files(
    sourced: Service,
    api: httpx.Client,
    bucket_server: BucketServer,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
) -> None:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 600.0)
    listing = (
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>exports/day/"
        f"{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>a</ETag><Size>5</Size></Contents>"
        "</ListBucketResult>"
    ).encode()

    def answer(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        start("200 OK", [("Content-Length", str(len(listing)))])
        return [listing]

    bucket_server.fault = answer
    assert failure(sourced, api, ask(api, f"{PREFIX}day/"))["code"] == "source_not_a_table"


def test_an_endless_answer_is_not_kept(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
) -> None:
    body = table().encode()
    put("exports/people.csv", body)
    sent = [0]

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes] | None:
        if environ["REQUEST_METHOD"] != "GET":
            return None
        found = api_of_s3.head("/blobs/exports/people.csv").headers
        kept = ("etag", "last-modified")
        given = [(name, found[name]) for name in kept]
        length = len(body)
        start("206 Partial Content", [*given, ("Content-Range", f"bytes 0-{length - 1}/{length}")])

        def endless() -> Iterator[bytes]:
            while sent[0] < 1 << 30:
                sent[0] += 1 << 20
                yield b"x" * (1 << 20)

        return endless()

    api_of_s3 = bucket_server.client()
    bucket_server.fault = answer
    assert failure(sourced, api, ask(api, f"{PREFIX}people.csv"))["code"] == "source_unreachable"
    assert sent[0] < 1 << 30


def test_a_store_that_fails_for_a_while_is_asked_again(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.buckets import Dropped

    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 60.0)
    put("exports/people.csv", table().encode())
    left = [7]

    def fail(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes] | None:
        left[0] -= 1
        if left[0] < 0:
            return None
        if left[0] % 2:
            raise Dropped
        start("503 Slow Down", [("Content-Length", "0")])
        return [b""]

    bucket_server.fault = fail
    dataset = made(sourced, api, ask(api, f"{PREFIX}people.csv"))
    assert dataset["status"] == "ready"
    assert left[0] < 0


@pytest.mark.parametrize("change", [b"other bytes", None], ids=["shorter", "as long"])
def test_an_object_that_changes_while_it_is_read_is_no_mixture(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
    monkeypatch: pytest.MonkeyPatch,
    change: bytes | None,
) -> None:
    monkeypatch.setattr(object_download, "RANGE_BYTES", 1000)
    monkeypatch.setattr(object_download, "RANGES_AT_ONCE", 1)
    body = table().encode()
    put("exports/people.csv", body)
    changed: list[bool] = []

    def replace(environ: WSGIEnvironment, start: StartResponse) -> None:
        if environ.get("HTTP_RANGE", "").startswith("bytes=2000-") and not changed:
            changed.append(True)
            put("exports/people.csv", body[::-1] if change is None else change)

    bucket_server.fault = replace
    error = failure(sourced, api, ask(api, f"{PREFIX}people.csv"))
    assert changed
    assert error["code"] == "source_changed"


def test_limits_of_a_source(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    body = table().encode()
    put("exports/people.csv", body)
    put("exports/two/1.csv", body)
    put("exports/two/2.csv", body)
    with sourced.setting(source_bytes=len(body)):
        assert made(sourced, api, ask(api, f"{PREFIX}people.csv"))["status"] == "ready"
        assert failure(sourced, api, ask(api, f"{PREFIX}two/"))["code"] == "source_too_large"
    used = sourced.context.db.reading(stored_bytes, OWNER)
    with sourced.setting(quota_bytes=used + len(body) // 2):
        assert failure(sourced, api, ask(api, f"{PREFIX}people.csv"))["code"] == "quota_exceeded"
    with sourced.setting(source_seconds=1e-6):
        assert failure(sourced, api, ask(api, f"{PREFIX}two/"))["code"] == "source_timed_out"


@pytest.mark.parametrize("url", ["people.csv", "two/"])
def test_a_dataset_of_a_source_is_read_again_under_the_limit_of_sources(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object], url: str
) -> None:
    body = table().encode()
    for name in ("people.csv", "two/1.csv", "two/2.csv"):
        put(f"exports/{name}", body)
    with sourced.setting(max_upload_bytes=len(body) // 2):
        first = made(sourced, api, ask(api, PREFIX + url))
        assert first["status"] == "ready", first["errors"]
        path = f"/v1/datasets/{first['id']}/read"
        again = made(sourced, api, api.post(path, json={"drop": "age"}))
        assert again["status"] == "ready", again["errors"]
        assert again["source"] == first["source"]
    with sourced.setting(source_bytes=len(body) // 2):
        again = made(sourced, api, api.post(path, json={"drop": "age"}))
        assert again["status"] == "invalid"
        assert "RANKWRIGHT_SOURCE_BYTES" in json.dumps(again["errors"])


def test_bytes_that_are_no_table_are_errors_of_the_table(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    put("exports/people.parquet", b"PAR1 and nothing more")
    put("exports/parts/1.csv", table().encode())
    put("exports/parts/2.parquet", parquet(table()))
    assert made(sourced, api, ask(api, f"{PREFIX}people.parquet"))["status"] == "invalid"
    assert failure(sourced, api, ask(api, f"{PREFIX}parts/"))["code"] == "parts_differ"


def test_a_connection_that_was_taken_away_is_not_used(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
    connections: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_files, "CHECKED_EVERY", 0.0)
    put("exports/people.csv", table().encode())
    ready = made(sourced, api, ask(api, f"{PREFIX}people.csv"))
    answer = ask(api, f"{PREFIX}people.csv")
    before = len(bucket_server.requests)
    try:
        connections.write_text("{}")
        assert failure(sourced, api, answer)["code"] == "source_not_allowed"
        assert ask(api, f"{PREFIX}people.csv").status_code == 422
        assert api.post(f"/v1/datasets/{ready['id']}/refresh").status_code == 422
        assert api.get("/v1/sources").json() == {"data": []}
        connections.write_text("{")
        assert api.get("/v1/sources").json() == {"data": []}
    finally:
        write(connections, bucket_server)
    assert api.get("/v1/sources").json()["data"]
    assert len(bucket_server.requests) == before


# --- refresh ---------------------------------------------------------------------------------------


def test_a_refresh_reads_the_same_source_into_the_next_version(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    put("exports/people.csv", table().encode())
    first = made(sourced, api, ask(api, f"{PREFIX}people.csv", drop="age"))
    put("exports/people.csv", table(200, seed=1).encode())
    answer = api.post(f"/v1/datasets/{first['id']}/refresh")
    assert answer.headers["Location"] == f"/v1/datasets/{answer.json()['id']}"
    second = made(sourced, api, answer)
    assert (second["status"], second["rows"], second["drop"]) == ("ready", 200, ["age"])
    assert (second["refresh_of"], second["parent_id"]) == (first["id"], first["id"])
    assert (second["name"], second["version"]) == (first["name"], first["version"] + 1)
    assert second["source"]["objects"] != first["source"]["objects"]
    assert second["sha256"] != first["sha256"]
    assert api.get(f"/v1/datasets/{first['id']}").json() == first
    third = made(sourced, api, api.post(f"/v1/datasets/{second['id']}/refresh"))
    assert (third["status"], third["sha256"]) == ("ready", second["sha256"])


def test_a_refresh_with_other_columns_fails_and_lists_them(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    put("exports/people.csv", table().encode())
    first = made(sourced, api, ask(api, f"{PREFIX}people.csv"))
    lines = table().splitlines()
    words = "\n".join([lines[0], *("w" + line for line in lines[1:])])
    renamed = table().replace("income", "wages", 1)
    for body, n_columns in ((words, 1), (renamed, 2)):
        put("exports/people.csv", body.encode())
        error = failure(sourced, api, api.post(f"/v1/datasets/{first['id']}/refresh"))
        assert (error["code"], len(error["errors"])) == ("source_columns_changed", n_columns)


def test_a_dataset_whose_source_was_not_read_has_no_bytes(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
) -> None:
    """Neither those of the version that it refreshes: these are gone when that version is deleted."""
    put("exports/people.csv", table().encode())
    first = made(sourced, api, ask(api, f"{PREFIX}people.csv"))
    pending = [
        ask(api, f"{PREFIX}none.csv"),
        api.post(f"/v1/datasets/{first['id']}/refresh"),
    ]
    bucket_server.clear()
    nothing = hashlib.sha256(b"").hexdigest()
    for answer in pending:
        dataset = made(sourced, api, answer)
        assert (dataset["status"], dataset["bytes"], dataset["rows"]) == ("invalid", 0, None)
        assert dataset["sha256"] == dataset["upload_sha256"] == nothing
        assert dataset["source"]["objects"] is None
    put("exports/people.csv", table(200).encode())
    job = api.get(f"/v1/datasets/{dataset['id']}").json()["job_id"]
    assert api.post(f"/v1/jobs/{job}/retry").status_code == 202
    sourced.work()
    retried = api.get(f"/v1/datasets/{dataset['id']}").json()
    assert (retried["status"], retried["rows"]) == ("ready", 200)


def test_only_a_ready_dataset_from_a_connection_can_be_refreshed(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    uploaded = sourced.upload(api)
    for path in (f"/v1/datasets/{uploaded}/refresh", f"/v1/datasets/{uploaded}/refresh/validate"):
        refused = api.post(path)
        assert (refused.status_code, refused.json()["code"]) == (409, "not_refreshable")
    put("exports/people.csv", table().encode())
    pending = ask(api, f"{PREFIX}people.csv").json()["id"]
    refused = api.post(f"/v1/datasets/{pending}/refresh")
    assert (refused.status_code, refused.json()["code"]) == (409, "dataset_not_ready")
    sourced.work()
    checked = api.post(f"/v1/datasets/{pending}/refresh/validate")
    assert (checked.status_code, checked.json()) == (200, {"valid": True})
    stranger = sourced.client(sourced.key(STRANGER))
    assert stranger.post(f"/v1/datasets/{pending}/refresh").status_code == 404
    reader = sourced.client(sourced.key(scopes=["read"]))
    assert reader.post(f"/v1/datasets/{pending}/refresh").status_code == 403
    key = {"Idempotency-Key": "once"}
    once = [api.post(f"/v1/datasets/{pending}/refresh", headers=key).json()["id"] for _ in range(2)]
    assert once[0] == once[1]


def test_a_model_of_the_first_version_is_not_affected(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    put("exports/people.csv", table().encode())
    first = made(sourced, api, ask(api, f"{PREFIX}people.csv"))
    model = sourced.train(api, first["id"])["output"]["id"]
    before = api.get(f"/v1/models/{model}").json()
    made(sourced, api, api.post(f"/v1/datasets/{first['id']}/refresh"))
    assert api.get(f"/v1/models/{model}").json() == before


def test_the_bytes_stay_in_the_store_of_the_service(
    sourced: Service,
    api: httpx.Client,
    put: Callable[[str, bytes], object],
    bucket_server: BucketServer,
) -> None:
    """The next reading asks no other system."""
    put("exports/people.csv", table().encode())
    first = made(sourced, api, ask(api, f"{PREFIX}people.csv"))
    with bucket_server.away():
        again = api.post(f"/v1/datasets/{first['id']}/read", json={"drop": "age"})
        assert made(sourced, api, again)["status"] == "ready"


def test_an_erased_person_is_removed_from_the_stored_objects_and_the_proof_names_the_source(
    sourced: Service, api: httpx.Client, put: Callable[[str, bytes], object]
) -> None:
    for number in range(2):
        rows = [f"{number}{n},{n % 7},{'yes' if n % 3 else 'no'}" for n in range(40)]
        put(f"exports/persons/{number}.csv", "\n".join(["who,x,left", *rows, ""]).encode())
    dataset = made(sourced, api, ask(api, f"{PREFIX}persons/", group="who"))
    assert (dataset["status"], dataset["rows"]) == ("ready", 80)
    asked = api.post("/v1/erasures", json={"id": "139", "key_columns": ["who"]})
    assert asked.status_code == 202, asked.text
    sourced.work()
    proof = api.get(f"/v1/erasures/{asked.json()['id']}").json()
    remains = {each["what"]: each["resource"] for each in proof["report"]["remains"]}
    assert remains["source"] == "exports"
    left = api.get("/v1/datasets", params={"name": "people", "latest": True}).json()["data"]
    newest = api.get(f"/v1/datasets/{left[0]['id']}").json()
    assert (newest["rows"], newest["source"]["url"]) == (79, f"{PREFIX}persons/")
    refreshed = made(sourced, api, api.post(f"/v1/datasets/{newest['id']}/refresh"))
    assert (refreshed["status"], refreshed["rows"]) == ("ready", 80)
