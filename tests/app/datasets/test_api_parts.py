"""A dataset of several files: sent as parts, closed, read side by side; and everything that is refused."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from app.access.repository import stored_bytes
from app.datasets import parts
from app.datasets.description import Format
from app.ingest import parts as ingest_parts
from app.ingest.formats import XLSX
from app.operations.repository import prune_uploads
from app.platform.errors import Conflict, Invalid
from tests.app.ingest.test_workbooks import Cells, sheets
from tests.app.live_service import OWNER, STRANGER, Service, table
from tests.app.refusals import CSV, refused
from tests.long_form import long_form, rest
from tests.sentences import Sentences
from tests.waiting import eventually

PARQUET = {"Content-Type": "application/vnd.apache.parquet"}
BOOK = {"Content-Type": XLSX}
FIELDS = {"name": "people", "label": "left", "positive": "yes"}


def cut(text: str, *sizes: int) -> list[str]:
    """Divide the rows of a CSV; each part gets the header."""
    head, *rows = text.splitlines()
    parts, first = [], 0
    for size in (*sizes, len(rows)):
        parts.append("\n".join([head, *rows[first : first + size], ""]))
        first += size
    return parts


def as_parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def opened(client: httpx.Client, **fields: str) -> str:
    answer = client.post("/v1/uploads", params=FIELDS | fields)
    assert answer.status_code == 201, answer.text
    upload_id: str = answer.json()["id"]
    return upload_id


def put(
    client: httpx.Client, upload_id: str, number: int, body: str | bytes, headers: Any = CSV
) -> httpx.Response:
    return client.put(f"/v1/uploads/{upload_id}/parts/{number}", content=body, headers=headers)


def close(client: httpx.Client, upload_id: str, parts: int) -> httpx.Response:
    return client.post(f"/v1/uploads/{upload_id}/close", json={"parts": parts})


def sent(client: httpx.Client, bodies: list[Any], headers: Any = CSV, **fields: str) -> str:
    """Send all parts and close; returns the dataset's id."""
    upload_id = opened(client, **fields)
    for number, body in enumerate(bodies, start=1):
        assert put(client, upload_id, number, body, headers).status_code == 201
    answer = close(client, upload_id, len(bodies))
    assert answer.status_code == 202, answer.text
    dataset_id: str = answer.json()["id"]
    return dataset_id


def test_parts_become_the_dataset_that_one_file_would_be(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    whole = client.get(f"/v1/datasets/{service.upload(client)}").json()
    bodies = cut(table(), 50, 1, 30)
    upload_id = opened(client)
    for number in (3, 1, 4, 2):  # in any order
        answer = put(client, upload_id, number, bodies[number - 1])
        assert (answer.status_code, answer.json()["number"]) == (201, number)
        assert answer.json()["sha256"] == hashlib.sha256(bodies[number - 1].encode()).hexdigest()
    shown = client.get(f"/v1/uploads/{upload_id}").json()
    assert (shown["status"], shown["n_parts"], shown["fields"]) == ("open", 4, FIELDS)
    assert [part["number"] for part in shown["parts"]] == [1, 2, 3, 4]
    closed = close(client, upload_id, 4)
    assert closed.status_code == 202
    assert closed.headers["Location"] == f"/v1/datasets/{closed.json()['id']}"
    job = client.get(f"/v1/jobs/{closed.json()['job_id']}").json()
    assert job["kind"] == "ingest_files"  # a worker of an older version leaves it alone
    assert service.work() == 6  # a job for each part, and the job that plans and puts together
    found = client.get(closed.headers["Location"]).json()
    same = (
        *("name", "kind", "status", "label", "positive", "negative", "rows", "positives"),
        *("columns", "warnings", "errors"),
    )
    assert {name: found[name] for name in same} == {name: whole[name] for name in same}
    preview = [client.get(f"/v1/datasets/{d['id']}/preview").json() for d in (found, whole)]
    profile = [client.get(f"/v1/datasets/{d['id']}/profile").json() for d in (found, whole)]
    assert preview[0] == preview[1]
    assert [p.pop("dataset_id") for p in profile] == [found["id"], whole["id"]]
    assert profile[0] == profile[1]
    chain = ""
    for body in bodies:  # as if each part had been appended
        own = hashlib.sha256(body.encode()).hexdigest()
        chain = hashlib.sha256((chain + own).encode()).hexdigest() if chain else own
    assert found["sha256"] == chain
    assert found["bytes"] == sum(map(len, bodies))
    again = close(client, upload_id, 4)
    assert (again.status_code, again.json()["id"]) == (202, found["id"])
    listed = client.get("/v1/uploads").json()["data"]
    assert [(u["id"], u["status"], u["dataset_id"]) for u in listed] == [
        (upload_id, "closed", found["id"])
    ]
    assert client.delete(f"/v1/datasets/{found['id']}").status_code == 204
    refused(client.get(f"/v1/uploads/{upload_id}"), 404, "not_found")


def test_parts_come_in_the_place_of_a_dataset(service: Service, client: httpx.Client) -> None:
    """They are the version that one file of all rows would have become, with the roles of the dataset."""
    first = service.upload(client, strict="true", drop="income")
    bodies = cut(table(seed=1), 50)
    asked = {"version_of": first, "mode": "replace"}
    upload_id = client.post("/v1/uploads", params=asked).json()["id"]
    for number, body in enumerate(bodies, start=1):
        assert put(client, upload_id, number, body).status_code == 201
    made = close(client, upload_id, 2).json()
    answer = client.post("/v1/uploads", params={**asked, "version_of": made["id"]})
    refused(answer, 409, "dataset_not_ready")
    service.work()
    address = f"/v1/datasets/{first}/versions"
    one = client.post(address, params={"mode": "replace"}, content=table(seed=1), headers=CSV)
    service.work()
    found, whole = (client.get(f"/v1/datasets/{d['id']}").json() for d in (made, one.json()))
    assert (found["version"], whole["version"], found["rows"]) == (2, 3, 120)
    differ = {"id", "version", "job_id", "sha256", "upload_sha256", "bytes", "created_at"}
    assert {k: v for k, v in found.items() if k not in differ} == {
        k: v for k, v in whole.items() if k not in differ
    }
    assert (found["parent_id"], found["mode"], found["status"]) == (first, "replace", "ready")
    assert close(client, upload_id, 2).json()["id"] == made["id"]
    assert client.delete(f"/v1/datasets/{made['id']}").status_code == 204
    refused(client.get(f"/v1/uploads/{upload_id}"), 404, "not_found")


def test_parts_are_added_to_a_dataset(service: Service, client: httpx.Client) -> None:
    """As if each had been appended: one version in place of one for each."""
    first = service.upload(client)
    before = client.get(f"/v1/datasets/{first}").json()
    bodies = cut(table(seed=1), 50, 30)
    upload_id = client.post("/v1/uploads", params={"version_of": first}).json()["id"]
    for number, body in enumerate(bodies, start=1):
        put(client, upload_id, number, body)
    made = close(client, upload_id, 3).json()
    refused(client.post("/v1/uploads", params={"version_of": first}), 409, "not_the_newest_version")
    refused(client.delete(f"/v1/datasets/{first}"), 409, "dataset_in_use")
    # The table and each part have a job, and the one that puts them together has two turns.
    assert service.work() == 6
    found = client.get(f"/v1/datasets/{made['id']}").json()
    assert (found["status"], found["rows"], found["mode"]) == ("ready", 240, "append"), found
    assert (found["version"], found["parent_id"], found["series_id"]) == (2, first, first)
    chain = before["sha256"]
    for body in bodies:
        own = hashlib.sha256(body.encode()).hexdigest()
        chain = hashlib.sha256((chain + own).encode()).hexdigest()
    assert found["sha256"] == chain
    rows = [
        client.get(f"/v1/datasets/{id_}/preview?limit=200").json() for id_ in (first, made["id"])
    ]
    assert rows[1]["data"][:120] == rows[0]["data"]


def test_parts_that_cannot_be_a_version(service: Service, client: httpx.Client) -> None:
    first = service.upload(client)
    asked = {"version_of": first, "mode": "replace"}
    refused(client.post("/v1/uploads", params={**asked, "label": "x"}), 422, "invalid", "label")
    refused(client.post("/v1/uploads", params={**asked, "mode": "all"}), 422, "invalid", "mode")
    refused(client.post("/v1/uploads", params={"mode": "replace"}), 422, "invalid", "mode")
    of_items, body = "/v1/datasets?kind=preferences&item=a", "a,b\nx,1\ny,2\n"
    items = client.post(of_items, content=body, headers=CSV).json()["id"]
    service.work()
    refused(client.post("/v1/uploads", params={"version_of": items}), 422, "invalid", items)
    for nobodys in ("ds_1", "ds_" + "0" * 32, ""):
        answer = client.post("/v1/uploads", params={**asked, "version_of": nobodys})
        refused(answer, 404, "not_found", repr(nobodys))
    stranger = service.client(service.key(STRANGER))
    refused(stranger.post("/v1/uploads", params=asked), 404, "not_found")
    upload_id = client.post("/v1/uploads", params=asked | {"delimiter": "comma"}).json()["id"]
    refused(put(client, upload_id, 1, as_parquet(a=[1]), PARQUET), 422, "invalid", "delimiter")
    assert put(client, upload_id, 1, ROWS).status_code == 201
    assert client.delete(f"/v1/datasets/{first}").status_code == 204
    refused(put(client, upload_id, 2, ROWS), 404, "not_found", first)
    refused(close(client, upload_id, 1), 404, "not_found", first)


def test_types_are_those_of_all_rows(service: Service, client: httpx.Client) -> None:
    """Only the last part shows that a column has words, and must be read again as text."""
    rows = [f"{i},{i % 7},{'yes' if i % 3 else 'no'}" for i in range(300)]
    rows += [f"{i},{'abc'[i % 3]},no" for i in range(60)]
    text = "\n".join(["n,code,left", *rows, ""])
    dataset_id = sent(client, cut(text, 100, 200))
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert found["rows"] == 360
    assert [column["type"] for column in found["columns"][:2]] == ["numeric", "categorical"]


HEAD = "a,b,left\n"
ROWS = HEAD + "1,2,yes\n3,4,no\n"


def test_a_bad_part_is_named(service: Service, client: httpx.Client, sentences: Sentences) -> None:
    for second in ("a,left\n1,yes\n", HEAD + "1,2,yes\n3,4,maybe\n", b"%PDF-1.7"):
        dataset_id = sent(client, [ROWS, second], strict="true")
        service.work()
        found = client.get(f"/v1/datasets/{dataset_id}").json()
        assert (found["status"], found["rows"]) == ("invalid", None)
        assert found["errors"][0]["part"] == 2
        job = client.get(f"/v1/jobs/{found['job_id']}").json()
        sentences(job["error"])
        assert client.get("/v1/jobs", params={"state": "queued"}).json()["data"] == []


@long_form
def test_parts_may_be_workbooks(service: Service, client: httpx.Client, tmp_path: Path) -> None:
    rows: Cells = [[k + 0.5, "yes" if k % 3 else "no"] for k in range(30)]
    notes: Cells = [["x", "y"], [1, 2]]

    def book(some: Cells, sheet: str = "loans") -> bytes:
        made: dict[str, Cells | None] = {"notes": notes, sheet: [["a", "left"], *some]}
        return sheets(tmp_path / "part.xlsx", made).read_bytes()

    fields = {"label": "left", "positive": "yes", "sheet": "loans"}
    dataset_id = sent(client, [book(rows[:10]), book(rows[10:])], BOOK, **fields)
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (found["status"], found["rows"], found["dialect"]) == ("ready", 30, {"sheet": "loans"})
    dataset_id = sent(client, [book(rows[:10]), book(rows[10:], "May")], BOOK, **fields)
    service.work()
    (error,) = client.get(f"/v1/datasets/{dataset_id}").json()["errors"]
    assert (error["part"], error["sheets"]) == (2, ["notes", "May"])


def test_what_is_refused(service: Service, client: httpx.Client) -> None:
    refused(client.post("/v1/uploads", params={"labbel": "x"}), 422, "invalid", "labbel")
    refused(client.post("/v1/uploads?label=x&label=y"), 422, "invalid", "once")
    upload_id = opened(client)
    for number in (0, 1001, -1, 2**70):
        refused(put(client, upload_id, number, ROWS), 422, "invalid", "from 1 to 1000")
    refused(put(client, upload_id, 1, b""), 422, "empty_body")
    html = {"Content-Type": "text/html"}
    refused(put(client, upload_id, 1, ROWS, html), 415, "unsupported_media_type")
    refused(close(client, upload_id, 1), 409, "parts_missing", "lacks 1: 1")
    labelled = f"/v1/uploads/{upload_id}/parts/1?label=x"
    answer = client.put(labelled, content=ROWS, headers=CSV)
    refused(answer, 422, "unknown_parameter", "label")
    for body in ({}, {"parts": 0}, {"parts": 1.5}, {"parts": 10**30}, {"parts": 1, "x": 1}):
        refused(client.post(f"/v1/uploads/{upload_id}/close", json=body), 422, "invalid")
    first = put(client, upload_id, 1, ROWS)
    again = put(client, upload_id, 1, ROWS)
    assert (again.status_code, again.json()) == (200, first.json())
    refused(put(client, upload_id, 1, ROWS + "5,6,no\n"), 409, "part_exists", "part 1 of")
    refused(put(client, upload_id, 3, as_parquet(a=[1]), PARQUET), 422, "parts_differ", "part 3")
    latin = {"Content-Type": "text/csv; charset=latin-1"}
    refused(put(client, upload_id, 3, ROWS, latin), 422, "parts_differ", "charset")
    utf8 = {"Content-Type": "text/csv; charset=utf-8"}
    assert put(client, upload_id, 1, ROWS, utf8).status_code == 200
    for headers in (PARQUET, latin, CSV | {"Content-Encoding": "gzip"}):
        answer = put(client, upload_id, 1, ROWS, headers)
        refused(answer, 409, "part_exists", 1)
    put(client, upload_id, 3, ROWS, utf8)
    refused(close(client, upload_id, 4), 409, "parts_missing", "2, 4")
    refused(close(client, upload_id, 1), 409, "parts_left_over", 1, 3)
    put(client, upload_id, 2, ROWS)
    assert close(client, upload_id, 3).status_code == 202
    refused(put(client, upload_id, 4, ROWS), 409, "upload_closed")
    refused(close(client, upload_id, 2), 409, "parts_left_over")
    refused(client.delete(f"/v1/uploads/{upload_id}"), 409, "upload_closed")
    refused(client.get("/v1/uploads/up_1"), 404, "not_found")
    refused(put(client, "up_" + "0" * 32, 1, ROWS), 404, "not_found")
    other = opened(client, delimiter="comma")
    refused(put(client, other, 1, as_parquet(a=[1]), PARQUET), 422, "invalid", "delimiter")
    assert client.delete(f"/v1/uploads/{other}").status_code == 204
    refused(client.get(f"/v1/uploads/{other}"), 404, "not_found")
    service.work()


def test_a_part_may_be_larger_than_other_bodies(service: Service, client: httpx.Client) -> None:
    body = HEAD + "1,2,yes\n" * (service.settings.max_body_bytes // 8 + 1)
    assert put(client, opened(client), 1, body).status_code == 201


def test_an_upload_is_opened_once_under_a_key(client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "monday"}
    made = client.post("/v1/uploads", params=FIELDS, headers=headers)
    again = client.post("/v1/uploads", params=FIELDS, headers=headers)
    assert (again.status_code, again.json()) == (201, made.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    other = client.post("/v1/uploads", params={"label": "x"}, headers=headers)
    refused(other, 422, "idempotency_key_reused")


@pytest.fixture
def files(service: Service, tmp_path: Path) -> Iterator[Path]:
    """The owner's folder of the service's files, with something else beside it."""
    folder = tmp_path / "files" / OWNER
    (folder / "days").mkdir(parents=True)
    for number, body in enumerate(cut(table(), 50), start=1):
        (folder / "days" / f"{number}.csv").write_text(body)
    (folder / "days" / "_SUCCESS").touch()
    (folder.parent / STRANGER).mkdir()
    (folder.parent / "secret.csv").write_text(ROWS)
    with service.setting(files_dir=folder.parent):
        yield folder


def add(client: httpx.Client, upload_id: str, path: str, **headers: str) -> httpx.Response:
    body = {"path": path}
    return client.post(f"/v1/uploads/{upload_id}/files", json=body, headers=headers)


def test_files_of_the_service(service: Service, client: httpx.Client, files: Path) -> None:
    whole = client.get(f"/v1/datasets/{service.upload(client)}").json()
    upload_id = opened(client)
    added = add(client, upload_id, "days", **{"Idempotency-Key": "once"})
    assert added.status_code == 201, added.text
    paths = [(part["number"], part["path"]) for part in added.json()["parts"]]
    assert paths == [(1, "days/1.csv"), (2, "days/2.csv")]
    again = add(client, upload_id, "days", **{"Idempotency-Key": "once"})
    assert again.json() == added.json()
    refused(add(client, upload_id, "days/2.csv"), 409, "part_exists", "part 2")
    dataset_id = close(client, upload_id, 2).json()["id"]
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (found["status"], found["columns"]) == ("ready", whole["columns"])
    hashes = [hashlib.sha256((files / path).read_bytes()).hexdigest() for _, path in paths]
    assert found["sha256"] == hashlib.sha256("".join(hashes).encode()).hexdigest()
    assert list((files / "days").iterdir())  # they stay
    refused(client.get("/v1/uploads/up_1"), 404, "not_found")


def test_an_owner_names_no_files_of_another(
    service: Service, client: httpx.Client, files: Path
) -> None:
    stranger = service.client(service.key(STRANGER))
    theirs = opened(stranger)
    for path in ("days", "days/1.csv"):
        refused(add(stranger, theirs, path), 422, "file_not_found", path)
    for path in (f"../{OWNER}/days", f"{OWNER}/../../{OWNER}/days"):
        refused(add(stranger, theirs, path), 422, "file_not_allowed")
    (files.parent / STRANGER / "days").symlink_to(files / "days")
    refused(add(stranger, theirs, "days"), 422, "file_not_allowed")
    nobody = service.client(service.key("nobody"))  # without a folder
    refused(add(nobody, opened(nobody), "."), 422, "file_not_found")


def test_files_that_the_service_does_not_read(
    service: Service, client: httpx.Client, files: Path
) -> None:
    upload_id = opened(client)
    (files / "out.csv").symlink_to(files.parent / "secret.csv")
    (files / "in.csv").symlink_to(files / "days" / "1.csv")
    (files / "away").symlink_to(files.parent)
    (files / "none").mkdir()
    (files / "mixed").mkdir()
    (files / "mixed" / "a.csv").write_text(ROWS)
    (files / "mixed" / "b.parquet").write_bytes(as_parquet(a=[1]))
    (files / "deep" / "er").mkdir(parents=True)
    for lake in ("loans/_delta_log", "rides/.hoodie"):
        (files / lake).mkdir(parents=True)
        (files / lake).with_name("part-0.csv").write_text(ROWS)
    (files / "loans" / "year=2026").mkdir()
    (files / "loans" / "year=2026" / "part-0.csv").write_text(ROWS)
    (files / "hive" / "year=2026").mkdir(parents=True)
    (files / "empty.csv").touch()
    (files / "notes.md").write_text("x")
    os.mkfifo(files / "pipe.csv")
    not_allowed = (
        *("../secret.csv", "days/../../secret.csv", str(files / "days"), "/etc/passwd", "a\0.csv"),
        *("out.csv", "in.csv", "away/secret.csv", "none", "deep", "empty.csv", "notes.md"),
        *("pipe.csv", ".", "loans", "loans/year=2026", "rides", "hive"),
    )
    for path in not_allowed:
        refused(add(client, upload_id, path), 422, "file_not_allowed")
    for path in ("missing.csv", "days/1.csv/x"):
        refused(add(client, upload_id, path), 422, "file_not_found", path)
    refused(add(client, upload_id, "x" * 300), 422, "file_not_found")
    refused(add(client, upload_id, "mixed"), 422, "parts_differ", "b.parquet")
    refused(add(client, upload_id, ""), 422, "invalid")
    refused(add(client, "up_" + "0" * 32, "days"), 404, "not_found")
    with service.setting(files_dir=None):
        refused(add(client, upload_id, "days"), 422, "unsupported", "RANKWRIGHT_FILES_DIR")
    assert client.get(f"/v1/uploads/{upload_id}").json()["n_parts"] == 0


@pytest.mark.parametrize("change", ["gone", "written to", "a link"])
def test_a_file_that_changes_before_it_is_read(
    service: Service, client: httpx.Client, files: Path, change: str
) -> None:
    upload_id, file = opened(client), files / "days" / "2.csv"
    add(client, upload_id, "days")
    dataset_id = close(client, upload_id, 2).json()["id"]
    body = file.read_bytes()
    file.unlink()
    if change == "written to":
        file.write_bytes(body.replace(b"yes", b"no ", 1))
    elif change == "a link":
        (files.parent / "same.csv").write_bytes(body)
        file.symlink_to(files.parent / "same.csv")
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (found["status"], found["errors"][0]["part"]) == ("invalid", 2)
    assert "the file 'days/2.csv' " in found["errors"][0]["detail"]


def test_the_bytes_of_all_parts_are_bounded(
    service: Service, client: httpx.Client, files: Path
) -> None:
    with service.setting(max_dataset_bytes=2 * len(ROWS)):
        upload_id = opened(client)
        for number in (1, 2):
            assert put(client, upload_id, number, ROWS).status_code == 201
        assert put(client, upload_id, 2, ROWS).status_code == 200
        most = 2 * len(ROWS)
        numbers = (most, "RANKWRIGHT_MAX_DATASET_BYTES", upload_id, "part 3")
        refused(put(client, upload_id, 3, ROWS), 413, "too_large", *numbers)
        form = {"file": ("more.csv", ROWS)}  # whose size is known only when it has come
        address = f"/v1/uploads/{upload_id}/parts/3"
        refused(client.put(address, files=form), 413, "too_large", len(ROWS))
        other = opened(client)
        size = sum(file.stat().st_size for file in (files / "days").glob("*.csv"))
        refused(add(client, other, "days"), 413, "too_large", 2, size)
    assert close(client, upload_id, 2).status_code == 202
    service.work()


@pytest.mark.parametrize(("form", "jobs"), [("csv", 5), ("parquet", 1)])
def test_the_rows_of_all_parts_are_bounded_early(
    service: Service, client: httpx.Client, form: str, jobs: int, sentences: Sentences
) -> None:
    """Not only when all have been read: Parquet says its rows, of others some are read."""
    if form == "csv":
        dataset_id = sent(client, [ROWS] * 6)
    else:
        body = as_parquet(a=[1, 2], left=["yes", "no"])
        dataset_id = sent(client, [body] * 6, PARQUET)
    with service.setting(max_rows=4):
        assert service.work() == jobs
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert found["status"] == "invalid"
    sentences(found["errors"][0])
    job = client.get(f"/v1/jobs/{found['job_id']}").json()
    assert job["error"]["code"] == "too_many_rows"


def test_parts_of_a_version_that_can_no_longer_be_made_are_refused(
    service: Service, client: httpx.Client, files: Path
) -> None:
    first = service.upload(client)
    upload_id = client.post("/v1/uploads", params={"version_of": first}).json()["id"]
    head = "age,income,score 1,left\n"
    address = f"/v1/datasets/{first}/versions"
    added = client.post(address, content=head + "1,2,3,yes\n", headers=CSV)
    assert added.status_code == 202
    for answer in (put(client, upload_id, 1, head + "4,5,6,no\n"), add(client, upload_id, "days")):
        refused(answer, 409, "not_the_newest_version")
    service.work()


def test_quota_and_expiry(service: Service, client: httpx.Client) -> None:
    """Parts count for the quota while they are open, once when they are a dataset, and not when they are gone."""

    def stored() -> int:
        return service.context.db.reading(stored_bytes, OWNER)

    upload_id = opened(client)
    put(client, upload_id, 1, ROWS)
    put(client, upload_id, 2, ROWS)
    assert stored() == 2 * len(ROWS)
    with service.setting(quota_bytes=2 * len(ROWS)):
        refused(put(client, upload_id, 3, ROWS), 429, "quota_exceeded")
        assert put(client, upload_id, 2, ROWS).status_code == 200
    close(client, upload_id, 2)
    assert stored() == 2 * len(ROWS)
    service.work()
    other = opened(client)
    put(client, other, 1, ROWS + "9,9,no\n")
    with service.context.db.write() as session:
        assert prune_uploads(session, 3600.0, 10) == 0
    with service.context.db.write() as session:
        assert prune_uploads(session, -1.0, 10) == 1  # not the closed one
    refused(client.get(f"/v1/uploads/{other}"), 404, "not_found")
    assert client.get(f"/v1/uploads/{upload_id}").json()["status"] == "closed"


@pytest.mark.parametrize("limit", ["quota_queued_jobs", *rest("max_queued_jobs")])
def test_limits_of_jobs_are_those_of_the_close(
    service: Service, client: httpx.Client, limit: str
) -> None:
    sent(client, [ROWS])
    with service.setting(**{limit: 1}):
        upload_id = opened(client)
        assert put(client, upload_id, 1, ROWS).status_code == 201
        assert close(client, upload_id, 1).status_code in (429, 503)
    assert close(client, upload_id, 1).status_code == 202
    service.work()


@long_form
@pytest.mark.parametrize("service_on_both", ["postgres"], indirect=True)
@pytest.mark.parametrize("how", ["deleted", "forgotten"])
def test_an_upload_that_is_just_being_closed_stays(
    service_on_both: Service, how: str, sentences: Sentences
) -> None:
    service = service_on_both
    client, db = service.client(service.key()), service.context.db
    upload_id = opened(client)
    put(client, upload_id, 1, ROWS)

    def waits() -> bool:
        with db.read() as session:
            blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            return bool(session.scalar(text(blocked)))

    def take_away() -> object:
        if how == "forgotten":
            return db.writing(prune_uploads, -1.0, 10)
        with sentences.raises(Conflict):
            db.writing(parts.delete, OWNER, upload_id)
        return 0

    with ThreadPoolExecutor() as pool:
        with service.context.blobs.writer("uploads") as writer, db.write() as session:
            writer.write(parts.manifest(session, OWNER, upload_id))
            dataset, _ = parts.close(session, service.settings, OWNER, upload_id, 1, writer)
            dataset_id = dataset.id
            taken = pool.submit(take_away)
            eventually(lambda: taken.done() or waits())
        assert taken.result() == 0
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (found["status"], found["rows"]) == ("ready", 2), found["errors"]


def test_parts_that_change_while_an_upload_is_closed_are_a_conflict(
    service: Service, client: httpx.Client
) -> None:
    """The manifest is put on disk before the transaction."""
    upload_id = opened(client)
    put(client, upload_id, 1, ROWS)
    db, blobs = service.context.db, service.context.blobs
    with blobs.writer("uploads") as writer:
        writer.write(db.reading(parts.manifest, OWNER, upload_id))
        put(client, upload_id, 2, ROWS + "5,6,no\n")
        with pytest.raises(Conflict):
            db.writing(parts.close, service.settings, OWNER, upload_id, 2, writer)
    assert close(client, upload_id, 2).status_code == 202


def test_a_part_that_cannot_be_taken_is_refused_before_it_is_sent(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    upload_id = opened(client)
    put(client, upload_id, 1, ROWS)

    def check(number: int, content_type: str, size: int | None) -> bool:
        return service.context.db.reading(
            parts.check_takes_part,
            service.settings,
            OWNER,
            upload_id,
            number,
            Format(content_type, None),
            size,
        )

    assert check(1, "text/csv", len(ROWS))
    assert check(1, "text/csv", None)
    assert not check(2, "text/csv", 10)
    with sentences.raises(Conflict):
        check(1, "text/csv", len(ROWS) + 1)
    with sentences.raises(Invalid):
        check(2, PARQUET["Content-Type"], None)


def test_a_part_whose_job_ends_without_a_result_is_named(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_part = ingest_parts.read_part

    def read(payload: Any, callback: Any) -> Any:
        if payload["part"]["number"] == 2:
            raise Invalid("no memory")
        return read_part(payload, callback)

    monkeypatch.setattr(ingest_parts, "read_part", read)
    dataset_id = sent(client, [ROWS, ROWS])
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (found["status"], found["errors"][0]["detail"]) == ("invalid", "part 2: no memory")
