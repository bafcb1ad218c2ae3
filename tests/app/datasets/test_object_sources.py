"""Datasets from objects of a real S3 server (moto): the requests, what is read, what is refused, and refreshes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

import httpx
import pyarrow.parquet as pq
import pytest

from app.access.repository import stored_bytes
from app.datasets import object_download
from app.platform import json_files
from tests.app.live_service import OWNER, STRANGER, Service, table
from tests.app.refusals import refused
from tests.long_form import rest
from tests.waiting import patience

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


class Exports(NamedTuple):
    """A service with a connection to a bucket, and what a test does with both."""

    service: Service
    api: httpx.Client
    server: BucketServer

    def put(self, key: str, body: bytes) -> None:
        import obstore

        from app.platform.object_store import open_bucket

        obstore.put(open_bucket(self.server.bucket(prefix="")), key, body)

    def ask(self, url: str, **more: Any) -> httpx.Response:
        return ask(self.api, url, **more)

    def made(self, answer: httpx.Response) -> dict[str, Any]:
        """The dataset after its job has ended."""
        assert answer.status_code == 202, answer.text
        self.service.work()
        found: dict[str, Any] = self.api.get(f"/v1/datasets/{answer.json()['id']}").json()
        return found

    def failure(self, answer: httpx.Response) -> dict[str, Any]:
        """The error of the job of an invalid dataset."""
        dataset = self.made(answer)
        assert dataset["status"] == "invalid"
        error: dict[str, Any] = self.api.get(f"/v1/jobs/{dataset['job_id']}").json()["error"]
        return error


@pytest.fixture(scope="module")
def sourced(start: Callable[..., Service], connections: Path) -> Service:
    return start(connections_file=connections)


@pytest.fixture
def exports(
    sourced: Service, bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Exports]:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 0.3)
    bucket_server.clear()
    yield Exports(sourced, sourced.client(sourced.key()), bucket_server)
    bucket_server.fault = None


def ask(api: httpx.Client, url: str, **more: Any) -> httpx.Response:
    body = {"name": "people", "source": {"url": url}, **LABEL, **more}
    return api.post("/v1/datasets", json=body)


def parquet(text: str) -> bytes:
    import pyarrow.csv as pa_csv

    buffer = io.BytesIO()
    pq.write_table(pa_csv.read_csv(io.BytesIO(text.encode())), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("with space=1/people.parquet", parquet),
        *rest(
            ("people.csv", str.encode),
            ("people.csv.gz", lambda text: gzip.compress(text.encode())),
        ),
    ],
)
def test_an_object_becomes_the_dataset_of_its_bytes(
    exports: Exports, name: str, encode: Callable[[str], bytes]
) -> None:
    body = encode(table())
    exports.put(f"exports/{name}", body)
    dataset = exports.made(exports.ask(PREFIX + name))
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
    again = exports.api.post(f"/v1/datasets/{dataset['id']}/read", json={"drop": "age"})
    reread = exports.made(again)
    assert (reread["status"], reread["source"]) == ("ready", source)


def test_all_objects_below_a_prefix_are_one_table_in_the_order_of_their_keys(
    exports: Exports,
) -> None:
    whole = table(300)
    header, *rows = whole.splitlines(keepends=True)
    for number in range(3):
        part = header + "".join(rows[100 * number : 100 * number + 100])
        exports.put(f"exports/day/{number}/part.csv", part.encode())
    exports.put("exports/day/_SUCCESS", b"")
    exports.put("exports/day/_log/1.json", b"[]")
    exports.put("exports/daytime/other.csv", b"no,table\n1,2\n")
    dataset = exports.made(exports.ask(f"{PREFIX}day/"))
    assert dataset["status"] == "ready", dataset["errors"]
    assert dataset["rows"] == 300
    assert dataset["source"]["files"] == 3
    assert [each["url"] for each in dataset["source"]["objects"]] == [
        f"{PREFIX}day/{number}/part.csv" for number in range(3)
    ]
    exports.put("exports/whole.csv", whole.encode())
    one = exports.made(exports.ask(f"{PREFIX}whole.csv"))
    shown = [
        exports.api.get(f"/v1/datasets/{each['id']}/preview", params={"limit": 200}).json()
        for each in (dataset, one)
    ]
    assert shown[0] == shown[1]
    assert dataset["columns"] == one["columns"]
    again = exports.made(
        exports.api.post(f"/v1/datasets/{dataset['id']}/read", json={"drop": "age"})
    )
    assert again["status"] == "ready"


def test_a_url_outside_of_the_prefixes_is_refused(exports: Exports) -> None:
    for url, code in (
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
    ):
        for path in ("/v1/datasets", "/v1/datasets/validate"):
            answer = exports.api.post(path, json={"name": "people", "source": {"url": url}})
            problem = refused(answer, 422, code)
            assert problem["errors"][0]["pointer"] == "/source/url"
    assert exports.server.requests == []


def test_a_request_that_breaks_a_rule_is_refused_with_its_place(exports: Exports) -> None:
    one: dict[str, Any] = {"url": f"{PREFIX}a.csv"}
    for source, more, status, pointer in (
        ({}, {}, 422, "/source"),
        (one | {"decisions": "a@b"}, {}, 422, "/source"),
        (one | {"query": "a"}, {}, 422, "/source"),
        (one | {"since": None}, {}, 422, "/source"),
        ({"connection": "exports"}, {}, 422, "/source"),
        ({"url": 1}, {}, 422, "/source/url"),
        (one | {"sql": "select 1"}, {}, 422, "/source/sql"),
        (one, {"kind": "none"}, 422, "/kind"),
        (one, {"lable": "left"}, 422, "/lable"),
        ({"decisions": "a@b"}, {"label": "left"}, 422, "/label"),
        ({"connection": "none", "query": "a"}, {}, 404, "/source/connection"),
        ({"connection": "exports", "query": "a"}, {}, 404, "/source/connection"),
    ):
        body = {"name": "people", "source": source, **more}
        answer = exports.api.post("/v1/datasets", json=body)
        assert answer.status_code == status, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer


def test_each_owner_sees_the_own_connections(exports: Exports) -> None:
    assert exports.api.get("/v1/sources").json() == {
        "data": [{"name": "exports", "driver": "s3", "prefix": PREFIX, "queries": None}]
    }
    stranger = exports.service.client(exports.service.key(STRANGER))
    assert [each["name"] for each in stranger.get("/v1/sources").json()["data"]] == ["theirs"]
    assert ask(stranger, f"{PREFIX}a.csv").status_code == 422


def test_a_valid_request_can_be_checked_without_asking_the_store(exports: Exports) -> None:
    answer = exports.api.post(
        "/v1/datasets/validate", json={"name": "a", "source": {"url": f"{PREFIX}a.csv"}}
    )
    assert (answer.status_code, answer.json()) == (200, {"valid": True})
    assert exports.server.requests == []


def always(status: str, *headers: tuple[str, str], body: bytes = b"") -> Fault:
    """A store that gives one answer to everything."""

    def answer(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        start(status, [("Content-Length", str(len(body))), *headers])
        return [body]

    return answer


Fault = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]


# --- what a store can do ---------------------------------------------------------------------------


def test_what_is_not_there_or_has_nothing_is_named(exports: Exports) -> None:
    exports.put("exports/empty.csv", b"")
    exports.put("exports/folder/_SUCCESS", b"")
    exports.put("exports/mixed/a.csv", b"a,left\n1,yes\n")
    exports.put("exports/mixed/b.exe", b"MZ")
    for name, code in (
        ("none.csv", "source_not_found"),
        ("empty.csv", "source_empty"),
        ("folder/", "source_empty"),
        ("none/", "source_empty"),
        ("mixed/", "source_not_a_table"),
    ):
        error = exports.failure(exports.ask(PREFIX + name))
        assert error["code"] == code
        assert "exports" in error["detail"]


def test_a_store_that_is_away_or_refuses_is_named_without_its_address(exports: Exports) -> None:
    exports.put("exports/people.csv", table().encode())
    with exports.server.away():
        error = exports.failure(exports.ask(f"{PREFIX}people.csv"))
    assert error["code"] == "source_unreachable"
    assert str(exports.server.port) not in json.dumps(error)


def test_an_answer_that_no_repetition_changes_ends_the_read_at_once(
    exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 600.0)
    for status, code in (
        ("301 Moved", "source_misconfigured"),
        ("400 Bad Request", "source_misconfigured"),
        ("405 Method Not Allowed", "source_misconfigured"),
        ("501 Not Implemented", "source_misconfigured"),
        ("401 Unauthorized", "source_forbidden"),
        ("403 Forbidden", "source_forbidden"),
        ("404 Not Found", "source_not_found"),
    ):
        moved = [("x-amz-bucket-region", "eu-west-1")] if status.startswith("301") else []
        exports.server.fault = always(status, *moved)
        for name in ("people.csv", "people/"):
            error = exports.failure(exports.ask(PREFIX + name))
            assert error["code"] == code
            assert str(exports.server.port) not in json.dumps(error)


def test_a_store_cannot_redirect_to_another_host(
    exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with closing(socket.create_server(("127.0.0.2", 0))) as internal:

        def redirect(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
            there = f"http://127.0.0.2:{internal.getsockname()[1]}/secret"
            start("307 Temporary Redirect", [("Content-Length", "0"), ("Location", there)])
            return [b""]

        exports.server.fault = redirect
        for name in ("people.csv", "people/"):
            error = exports.failure(exports.ask(PREFIX + name))
            assert error["code"] == "source_unreachable"
        internal.settimeout(0)
        with pytest.raises(BlockingIOError):
            internal.accept()


def test_a_store_without_ranges_is_named(exports: Exports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 600.0)
    exports.put("exports/people.csv", table().encode())
    exports.server.fault = lambda environ, _: environ.pop("HTTP_RANGE", None) and None
    error = exports.failure(exports.ask(f"{PREFIX}people.csv"))
    assert error["code"] == "source_misconfigured"


def test_keys_that_are_no_names_of_files(exports: Exports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", 600.0)
    for key in ("../a.csv", "x//a.csv", "a&#10;.csv", "a" * 3000 + ".csv"):
        found = f"<Key>exports/day/{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        found = f"<Contents>{found}<ETag>a</ETag><Size>5</Size></Contents>"
        listing = f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        exports.server.fault = always("200 OK", body=listing.encode())
        error = exports.failure(exports.ask(f"{PREFIX}day/"))
        assert error["code"] == "source_not_a_table"


def test_an_endless_answer_is_not_kept(exports: Exports) -> None:
    body = table().encode()
    exports.put("exports/people.csv", body)
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

    api_of_s3 = exports.server.client()
    exports.server.fault = answer
    assert exports.failure(exports.ask(f"{PREFIX}people.csv"))["code"] == "source_unreachable"
    assert sent[0] < 1 << 30


def test_a_store_that_fails_for_a_while_is_asked_again(
    exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.buckets import Dropped

    monkeypatch.setattr(object_download, "PATIENCE_SECONDS", patience())
    exports.put("exports/people.csv", table().encode())
    left = [3]

    def fail(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes] | None:
        left[0] -= 1
        if left[0] < 0:
            return None
        if left[0] % 2:
            raise Dropped
        start("503 Slow Down", [("Content-Length", "0")])
        return [b""]

    exports.server.fault = fail
    dataset = exports.made(exports.ask(f"{PREFIX}people.csv"))
    assert dataset["status"] == "ready"
    assert left[0] < 0


@pytest.mark.parametrize("change", [b"other bytes", None], ids=["shorter", "as long"])
def test_an_object_that_changes_while_it_is_read_is_no_mixture(
    exports: Exports, monkeypatch: pytest.MonkeyPatch, change: bytes | None
) -> None:
    monkeypatch.setattr(object_download, "RANGE_BYTES", 1000)
    monkeypatch.setattr(object_download, "RANGES_AT_ONCE", 1)
    body = table().encode()
    exports.put("exports/people.csv", body)
    changed: list[bool] = []

    def replace(environ: WSGIEnvironment, start: StartResponse) -> None:
        if environ.get("HTTP_RANGE", "").startswith("bytes=2000-") and not changed:
            changed.append(True)
            exports.put("exports/people.csv", body[::-1] if change is None else change)

    exports.server.fault = replace
    error = exports.failure(exports.ask(f"{PREFIX}people.csv"))
    assert changed
    assert error["code"] == "source_changed"


def test_limits_of_a_source(exports: Exports) -> None:
    body = table().encode()
    exports.put("exports/people.csv", body)
    exports.put("exports/two/1.csv", body)
    exports.put("exports/two/2.csv", body)
    with exports.service.setting(source_bytes=len(body)):
        assert exports.made(exports.ask(f"{PREFIX}people.csv"))["status"] == "ready"
        assert exports.failure(exports.ask(f"{PREFIX}two/"))["code"] == "source_too_large"
    used = exports.service.context.db.reading(stored_bytes, OWNER)
    with exports.service.setting(quota_bytes=used + len(body) // 2):
        assert exports.failure(exports.ask(f"{PREFIX}people.csv"))["code"] == "quota_exceeded"
    with exports.service.setting(source_seconds=1e-6):
        assert exports.failure(exports.ask(f"{PREFIX}two/"))["code"] == "source_timed_out"


@pytest.mark.parametrize("url", ["two/", *rest("people.csv")])
def test_a_dataset_of_a_source_is_read_again_under_the_limit_of_sources(
    exports: Exports, url: str
) -> None:
    body = table().encode()
    for name in ("people.csv", "two/1.csv", "two/2.csv"):
        exports.put(f"exports/{name}", body)
    with exports.service.setting(max_upload_bytes=len(body) // 2):
        first = exports.made(exports.ask(PREFIX + url))
        assert first["status"] == "ready", first["errors"]
        path = f"/v1/datasets/{first['id']}/read"
        again = exports.made(exports.api.post(path, json={"drop": "age"}))
        assert again["status"] == "ready", again["errors"]
        assert again["source"] == first["source"]
    with exports.service.setting(source_bytes=len(body) // 2):
        again = exports.made(exports.api.post(path, json={"drop": "age"}))
        assert again["status"] == "invalid"
        assert "RANKWRIGHT_SOURCE_BYTES" in json.dumps(again["errors"])


def test_bytes_that_are_no_table_are_errors_of_the_table(exports: Exports) -> None:
    exports.put("exports/people.parquet", b"PAR1 and nothing more")
    exports.put("exports/parts/1.csv", table().encode())
    exports.put("exports/parts/2.parquet", parquet(table()))
    assert exports.made(exports.ask(f"{PREFIX}people.parquet"))["status"] == "invalid"
    assert exports.failure(exports.ask(f"{PREFIX}parts/"))["code"] == "parts_differ"


def test_a_connection_that_was_taken_away_is_not_used(
    exports: Exports, connections: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "CHECKED_EVERY", 0.0)
    exports.put("exports/people.csv", table().encode())
    ready = exports.made(exports.ask(f"{PREFIX}people.csv"))
    answer = exports.ask(f"{PREFIX}people.csv")
    before = len(exports.server.requests)
    try:
        connections.write_text("{}")
        assert exports.failure(answer)["code"] == "source_not_allowed"
        assert exports.ask(f"{PREFIX}people.csv").status_code == 422
        assert exports.api.post(f"/v1/datasets/{ready['id']}/refresh").status_code == 422
        assert exports.api.get("/v1/sources").json() == {"data": []}
        connections.write_text("{")
        assert exports.api.get("/v1/sources").json() == {"data": []}
    finally:
        write(connections, exports.server)
    assert exports.api.get("/v1/sources").json()["data"]
    assert len(exports.server.requests) == before


# --- refresh ---------------------------------------------------------------------------------------


def test_a_refresh_reads_the_same_source_into_the_next_version(exports: Exports) -> None:
    exports.put("exports/people.csv", table().encode())
    first = exports.made(exports.ask(f"{PREFIX}people.csv", drop="age"))
    exports.put("exports/people.csv", table(200, seed=1).encode())
    answer = exports.api.post(f"/v1/datasets/{first['id']}/refresh")
    assert answer.headers["Location"] == f"/v1/datasets/{answer.json()['id']}"
    second = exports.made(answer)
    assert (second["status"], second["rows"], second["drop"]) == ("ready", 200, ["age"])
    assert (second["refresh_of"], second["parent_id"]) == (first["id"], first["id"])
    assert (second["name"], second["version"]) == (first["name"], first["version"] + 1)
    assert second["source"]["objects"] != first["source"]["objects"]
    assert second["sha256"] != first["sha256"]
    assert exports.api.get(f"/v1/datasets/{first['id']}").json() == first
    third = exports.made(exports.api.post(f"/v1/datasets/{second['id']}/refresh"))
    assert (third["status"], third["sha256"]) == ("unchanged", second["sha256"])
    job = exports.api.get(f"/v1/jobs/{third['job_id']}").json()
    assert (job["state"], job["dataset_id"]) == ("succeeded", second["id"])
    exports.put("exports/people.csv", table().replace("income", "wages", 1).encode())
    error = exports.failure(exports.api.post(f"/v1/datasets/{second['id']}/refresh"))
    assert (error["code"], len(error["errors"])) == ("source_columns_changed", 2)


def test_a_dataset_whose_source_was_not_read_has_no_bytes(exports: Exports) -> None:
    """Neither those of the version that it refreshes: these are gone when that version is deleted."""
    exports.put("exports/people.csv", table().encode())
    first = exports.made(exports.ask(f"{PREFIX}people.csv"))
    pending = [
        exports.ask(f"{PREFIX}none.csv"),
        exports.api.post(f"/v1/datasets/{first['id']}/refresh"),
    ]
    exports.server.clear()
    nothing = hashlib.sha256(b"").hexdigest()
    for answer in pending:
        dataset = exports.made(answer)
        assert (dataset["status"], dataset["bytes"], dataset["rows"]) == ("invalid", 0, None)
        assert dataset["sha256"] == dataset["upload_sha256"] == nothing
        assert dataset["source"]["objects"] is None
    exports.put("exports/people.csv", table(200).encode())
    job = exports.api.get(f"/v1/datasets/{dataset['id']}").json()["job_id"]
    assert exports.api.post(f"/v1/jobs/{job}/retry").status_code == 202
    exports.service.work()
    retried = exports.api.get(f"/v1/datasets/{dataset['id']}").json()
    assert (retried["status"], retried["rows"]) == ("ready", 200)


def test_only_a_ready_dataset_from_a_connection_can_be_refreshed(exports: Exports) -> None:
    uploaded = exports.service.upload(exports.api)
    for path in (f"/v1/datasets/{uploaded}/refresh", f"/v1/datasets/{uploaded}/refresh/validate"):
        refused = exports.api.post(path)
        assert (refused.status_code, refused.json()["code"]) == (409, "not_refreshable")
    exports.put("exports/people.csv", table().encode())
    pending = exports.ask(f"{PREFIX}people.csv").json()["id"]
    refused = exports.api.post(f"/v1/datasets/{pending}/refresh")
    assert (refused.status_code, refused.json()["code"]) == (409, "dataset_not_ready")
    exports.service.work()
    checked = exports.api.post(f"/v1/datasets/{pending}/refresh/validate")
    assert (checked.status_code, checked.json()) == (200, {"valid": True})
    stranger = exports.service.client(exports.service.key(STRANGER))
    assert stranger.post(f"/v1/datasets/{pending}/refresh").status_code == 404
    reader = exports.service.client(exports.service.key(scopes=["read"]))
    assert reader.post(f"/v1/datasets/{pending}/refresh").status_code == 403
    key = {"Idempotency-Key": "once"}
    once = [
        exports.api.post(f"/v1/datasets/{pending}/refresh", headers=key).json()["id"]
        for _ in range(2)
    ]
    assert once[0] == once[1]


def test_the_bytes_stay_in_the_store_of_the_service(exports: Exports) -> None:
    """The next reading asks no other system."""
    exports.put("exports/people.csv", table().encode())
    first = exports.made(exports.ask(f"{PREFIX}people.csv"))
    with exports.server.away():
        again = exports.api.post(f"/v1/datasets/{first['id']}/read", json={"drop": "age"})
        assert exports.made(again)["status"] == "ready"


def test_an_erased_person_is_removed_from_the_stored_objects_and_the_proof_names_the_source(
    exports: Exports,
) -> None:
    for number in range(2):
        rows = [f"{number}{n},{n % 7},{'yes' if n % 3 else 'no'}" for n in range(40)]
        exports.put(f"exports/persons/{number}.csv", "\n".join(["who,x,left", *rows, ""]).encode())
    dataset = exports.made(exports.ask(f"{PREFIX}persons/", group="who"))
    assert (dataset["status"], dataset["rows"]) == ("ready", 80)
    asked = exports.api.post("/v1/erasures", json={"id": "139", "key_columns": ["who"]})
    assert asked.status_code == 202, asked.text
    exports.service.work()
    proof = exports.api.get(f"/v1/erasures/{asked.json()['id']}").json()
    remains = {each["what"]: each["resource"] for each in proof["report"]["remains"]}
    assert remains["source"] == "exports"
    left = exports.api.get("/v1/datasets", params={"name": "people", "latest": True}).json()["data"]
    newest = exports.api.get(f"/v1/datasets/{left[0]['id']}").json()
    assert (newest["rows"], newest["source"]["url"]) == (79, f"{PREFIX}persons/")
    refreshed = exports.made(exports.api.post(f"/v1/datasets/{newest['id']}/refresh"))
    assert (refreshed["status"], refreshed["rows"]) == ("ready", 80)


def test_hive_partitions_are_columns(exports: Exports) -> None:
    for year, left in ((2025, "no"), (2026, "yes")):
        body = parquet("age\n" + "\n".join(str(year % 7 + i) for i in range(20)))
        exports.put(f"exports/hive/year={year}/left={left}/part-0.parquet", body)
    made = exports.made(exports.ask(f"{PREFIX}hive/"))
    assert (made["status"], made["rows"], made["positives"]) == ("ready", 40, 20)
    types = {each["name"]: each["type"] for each in made["columns"]}
    assert types == {"age": "numeric", "year": "numeric", "left": "categorical"}
    exports.put("exports/text/left=no/part-0.csv", b"age\n1\n")
    assert exports.failure(exports.ask(f"{PREFIX}text/"))["code"] == "source_not_a_table"


@pytest.mark.parametrize(
    ("log", "at"),
    [
        ("loans/_delta_log/00000000000000000000.json", "loans/"),
        ("loans/.hoodie/hoodie.properties", "loans/"),
        ("loans/metadata/v1.metadata.json", "loans/"),
        ("loans/metadata/v1.metadata.json", "loans/data/"),
    ],
)
def test_tables_of_lake_formats_are_refused(exports: Exports, log: str, at: str) -> None:
    """Their folders have files with removed rows."""
    for part in ("a", "b"):
        exports.put(f"exports/{at}part-{part}.parquet", parquet("age,left\n1,no\n2,yes"))
    exports.put(f"exports/{log}", b"{}")
    assert exports.failure(exports.ask(f"{PREFIX}{at}"))["code"] == "source_not_a_table"
