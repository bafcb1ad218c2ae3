"""What an upload is, by its bytes: at the doors of datasets."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from app.ingest.formats import CSV, JSON_ARRAY, NDJSON, PARQUET, XLSX
from tests.app.ingest.test_workbooks import Cells, book, cell, sheets
from tests.app.live_service import Service
from tests.app.refusals import everything, refused
from tests.long_form import long_form

ROWS = [{"a": float(i), "left": "yes" if i % 3 else "no"} for i in range(12)]
TEXT = "a,left\n" + "".join(f"{row['a']},{row['left']}\n" for row in ROWS)


def archive(name: str, body: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, body)
    return packed.getvalue()


def parquet(table: pa.Table) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


@pytest.fixture
def workbook(tmp_path: Any) -> bytes:
    texts = ["a", "left", "yes", "no"]
    rows = [cell("A1", 0, "s") + cell("B1", 1, "s")]
    rows += [
        cell(f"A{i}", row["a"]) + cell(f"B{i}", 2 if row["left"] == "yes" else 3, "s")
        for i, row in enumerate(ROWS, start=2)
    ]
    return book(tmp_path / "t", [f"<row>{row}</row>" for row in rows], texts).read_bytes()


@pytest.fixture
def client(service: Service) -> httpx.Client:
    return service.client(service.key())


def test_the_bytes_of_an_upload_decide_what_it_is(
    service: Service, client: httpx.Client, workbook: bytes
) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    cases = [
        (workbook, XLSX, None),
        (json.dumps(ROWS, indent=1).encode(), JSON_ARRAY, None),
        (lines, NDJSON, None),
        (parquet(pa.Table.from_pylist(ROWS)), PARQUET, None),
        (archive("t.csv", TEXT.encode()), CSV, "zip"),
        (archive("t.json", json.dumps(ROWS).encode()), JSON_ARRAY, "zip"),
    ]
    made = []
    for number, (body, kind, packed) in enumerate(cases):
        said: tuple[dict[str, Any], ...] = (
            {"content": body, "headers": {"Content-Type": CSV}},
            {"files": {"file": ("table.csv", body)}},
            {"files": {"file": ("table", body, "application/octet-stream")}},
        )
        answer = client.post("/v1/datasets", params={"label": "left"}, **said[number % 3])
        assert answer.status_code == 202, answer.text
        found = answer.json()
        assert (found["content_type"], found["content_encoding"]) == (kind, packed)
        made.append(found["id"])
    service.work()
    for dataset_id in made:
        found = client.get(f"/v1/datasets/{dataset_id}").json()
        assert (found["status"], found["rows"], found["positives"]) == ("ready", 12, 8), found


def test_what_the_bytes_leave_open_is_as_it_is_said(client: httpx.Client) -> None:
    for name, said, kind in (
        ("table", "application/octet-stream", CSV),
        ("table.dat", "application/vnd.ms-excel", CSV),
        ("table.parquet", "application/octet-stream", CSV),
    ):
        answer = client.post("/v1/datasets", files={"file": (name, TEXT, said)})
        assert answer.json()["content_type"] == kind
    for name, body in (
        ("t.bin", b"\0\1\2"),
        ("t.zip", b"no archive"),
        ("t.zip", archive("t.npy", b"\x93NUMPY\0")),
    ):
        answer = client.post("/v1/datasets", files={"file": (name, body)})
        refused(answer, 415, "unsupported_media_type")
    path, headers = "/v1/datasets?delimiter=comma", {"Content-Type": CSV}
    foreign = client.post(path, content=json.dumps(ROWS), headers=headers)
    assert refused(foreign, 422, "invalid")["errors"][0]["parameter"] == "delimiter"


def test_a_sheet_may_have_numbers_as_text(
    service: Service, client: httpx.Client, tmp_path: Path
) -> None:
    numbers = [(f"{i}.234,5", i + 0.125) for i in range(1, 13)]
    texts = ["text", "number", "left", "yes", "no", *(text for text, _ in numbers)]
    rows = ["".join(cell(f"{column}1", k, "s") for k, column in enumerate("ABC"))]
    for k, (_, number) in enumerate(numbers):
        left = cell(f"C{k + 2}", 3 + k % 2, "s")
        rows.append(cell(f"A{k + 2}", 5 + k, "s") + cell(f"B{k + 2}", number) + left)
    path = book(tmp_path / "numbers", [f"<row>{row}</row>" for row in rows], texts)
    asked = {"label": "left", "decimal": "comma", "thousands": "point"}
    answer = client.post(
        "/v1/datasets", params=asked, content=path.read_bytes(), headers={"Content-Type": XLSX}
    )
    service.work()
    found = client.get(answer.headers["Location"]).json()
    assert found["status"] == "ready", found
    of = {column["name"]: column for column in found["columns"]}
    assert (of["text"]["min"], of["text"]["max"]) == (1234.5, 12234.5)
    assert (of["number"]["min"], of["number"]["max"]) == (1.125, 12.125)


ERRORS = ("#DIV/0!", "#N/A", "#REF!")


@pytest.mark.parametrize("several", [False, True])
def test_errors_in_cells_are_missing_values_with_a_warning(
    service: Service, client: httpx.Client, tmp_path: Path, several: bool
) -> None:
    """As many as there are, among numbers and among words, in one file or in parts."""
    texts = ["number", "word", "left", "yes", "no", "DE", "FR", "#N/A"]
    names = "".join(cell(f"{column}1", k, "s") for k, column in enumerate("ABC"))
    rows = []
    for k in range(24):
        at = k % 12 + 2 if several else k + 2
        number = cell(f"A{at}", ERRORS[k % 3], "e") if k % 4 == 1 else cell(f"A{at}", k + 0.5)
        word = cell(f"B{at}", "#N/A", "e") if k % 4 == 2 else cell(f"B{at}", 5 + k % 2, "s")
        left = cell(f"C{at}", "#NAME?", "e") if k == 7 else cell(f"C{at}", 3 + k % 2, "s")
        rows.append(f'<row r="{at}">{number}{word}{left}</row>')
    head = f'<row r="1">{names}</row>'
    parts = [rows[:12], rows[12:]] if several else [rows]
    files = [book(tmp_path / f"{k}", [head, *some], texts) for k, some in enumerate(parts)]
    asked: dict[str, Any] = {"params": {"label": "left", "positive": "yes"}}
    how: dict[str, Any] = {"headers": {"Content-Type": XLSX}}
    if several:
        upload = client.post("/v1/uploads", **asked).json()["id"]
        for part, file in enumerate(files, start=1):
            client.put(f"/v1/uploads/{upload}/parts/{part}", content=file.read_bytes(), **how)
        answer = client.post(f"/v1/uploads/{upload}/close", json={"parts": 2})
    else:
        answer = client.post("/v1/datasets", content=files[0].read_bytes(), **asked, **how)
    service.work()
    found = client.get(f"/v1/datasets/{answer.json()['id']}").json()
    assert found["status"] == "ready", found
    of = {column["name"]: column for column in found["columns"]}
    assert [(of[name]["type"], of[name]["missing"]) for name in ("number", "word")] == [
        ("numeric", 6),
        ("categorical", 6),
    ]
    warned = {
        each["column"]: each for each in found["warnings"] if each["code"] == "errors_in_cells"
    }
    assert {name: (each["count"], each["line"]) for name, each in warned.items()} == {
        "number": (6, 3),
        "word": (6, 4),
        "left": (1, 9),
    }
    assert all(error in warned["number"]["detail"] for error in ERRORS)
    if not several:
        asked["params"]["strict"] = "true"
        answer = client.post("/v1/datasets", content=files[0].read_bytes(), **asked, **how)
        service.work()
        assert client.get(answer.headers["Location"]).json()["status"] == "invalid"


@long_form
def test_archives_within_gzip(service: Service, client: httpx.Client, workbook: bytes) -> None:
    packed = gzip.compress(workbook), gzip.compress(archive("t.csv", TEXT.encode()))
    for body, status in zip(packed, ("ready", "invalid"), strict=True):
        for encoding in ({}, {"Content-Encoding": "gzip"}):
            answer = client.post(
                "/v1/datasets?label=left", content=body, headers={"Content-Type": XLSX, **encoding}
            )
            service.work()
            assert client.get(answer.headers["Location"]).json()["status"] == status


def test_a_nested_column_s_refusal_names_drop(service: Service, client: httpx.Client) -> None:
    table = pa.Table.from_pylist([{**row, "tags": [1], "more": {"x": 1}} for row in ROWS])
    asked: dict[str, Any] = {"headers": {"Content-Type": PARQUET}, "content": parquet(table)}
    answer = client.post("/v1/datasets?label=left", **asked)
    service.work()
    (error, other) = client.get(answer.headers["Location"]).json()["errors"]
    assert {error["column"], other["column"]} == {"tags", "more"}
    assert error["suggestion"] == {"drop": "tags,more"}
    answer = client.post("/v1/datasets", params={"label": "left", **error["suggestion"]}, **asked)
    service.work()
    assert client.get(answer.headers["Location"]).json()["status"] == "ready"


SECOND: Cells = [["x", "y"], [1, 2]]


@pytest.fixture
def two_sheets(tmp_path: Path) -> bytes:
    """Return a workbook whose table is the second sheet, beside a hidden one and a title above a header."""
    loans: Cells = [["a", "left"], *([row["a"], row["left"]] for row in ROWS)]
    titled: Cells = [["Loans, May"], [], *loans]
    made: dict[str, Cells | None] = {"notes": SECOND, "loans": loans, "May": titled, "old": loans}
    return sheets(tmp_path / "two", made, hidden=["old"]).read_bytes()


def test_a_workbook_is_checked_without_being_stored(
    service: Service, client: httpx.Client, two_sheets: bytes
) -> None:
    before = everything(service)

    def check(sheet: str | None, **more: Any) -> httpx.Response:
        params = {"label": "left"} | ({} if sheet is None else {"sheet": sheet})
        asked = {"params": params, "headers": {"Content-Type": XLSX}, "content": two_sheets} | more
        return client.post("/v1/datasets/validate", **asked)

    found = check("loans").json()
    assert (found["sheet"], found["sheets"]) == ("loans", ["notes", "loans", "May"])
    assert (found["rows"], found["positives"]) == (12, 8)
    assert found["preview"]["columns"] == ["a", "left"]
    assert found["preview"]["data"][:2] == [[0.0, "no"], [1.0, "yes"]]
    for sheet, parameter in (("Q3", "sheet"), ("old", "sheet"), ("May", None), (None, None)):
        code = "invalid_table" if sheet else "unknown_column"  # the first sheet has no label
        problem = refused(check(sheet), 422, code)
        assert problem["errors"][0]["sheets"] == ["notes", "loans", "May"]
        assert problem["errors"][0].get("parameter") == parameter
    assert "sheet 'notes'" in check(None).json()["detail"]
    for name in ("", "x" * 256):
        problem = refused(check(name), 422, "invalid")
        assert problem["errors"][0]["parameter"] == "sheet"
    text = check("loans", headers={"Content-Type": CSV}, content=TEXT)
    assert refused(text, 422, "invalid")["errors"][0]["parameter"] == "sheet"
    assert check("loans", content=two_sheets[:-50]).status_code == 422
    plain = client.post("/v1/datasets/validate", headers={"Content-Type": CSV}, content=TEXT).json()
    assert (plain["sheet"], plain["sheets"]) == (None, None)
    assert plain["preview"]["data"][0] == [0.0, "no"]
    assert everything(service) == before


def test_a_workbook_to_check_is_refused_at_its_size(service: Service, client: httpx.Client) -> None:
    path, headers = "/v1/datasets/validate", {"Content-Type": XLSX}
    made = io.BytesIO()
    with xlsxwriter.Workbook(made, {"in_memory": True}) as large:
        sheet = large.add_worksheet("loans")
        for row in range(2000):
            sheet.write_row(row, 0, [row, "x" * 30])
    with service.setting(max_score_bytes=100_000):
        answer = client.post(path, headers=headers, content=made.getvalue())
        assert "'loans'" in refused(answer, 422, "too_large")["detail"]
    with service.setting(max_body_bytes=1000):
        refused(client.post(path, headers=headers, content=made.getvalue()), 413, "too_large")
    answer = client.post(path, headers=headers, content=made.getvalue())
    assert answer.status_code == 422  # one value


@long_form
def test_a_dataset_says_which_sheet_it_is(
    service: Service, client: httpx.Client, two_sheets: bytes, workbook: bytes
) -> None:
    headers = {"Content-Type": XLSX}

    def read(path: str, body: bytes, **params: str) -> dict[str, Any]:
        answer = client.post(path, params=params, headers=headers, content=body)
        assert answer.status_code == 202, answer.text
        service.work()
        found: dict[str, Any] = client.get(answer.headers["Location"]).json()
        return found

    wrong = read("/v1/datasets", two_sheets, label="left", sheet="Q3")
    assert wrong["status"] == "invalid"
    assert wrong["errors"][0]["sheets"] == ["notes", "loans", "May"]
    again = client.post(f"/v1/datasets/{wrong['id']}/read", json={"sheet": "loans"})
    assert again.status_code == 202, again.text
    service.work()
    first = client.get(again.headers["Location"]).json()
    assert (first["status"], first["dialect"]) == ("ready", {"sheet": "loans"})
    alone = read("/v1/datasets", workbook, label="left")
    assert alone["dialect"] is None  # there was no choice
    # A version has the sheet of its parent, unless it says otherwise.
    versions = f"/v1/datasets/{first['id']}/versions"
    appended = client.post(f"{versions}/validate", headers=headers, content=two_sheets).json()
    assert (appended["rows"], appended["sheet"]) == (24, "loans")
    more = {"headers": {"Content-Type": CSV}, "content": "a,left\n100,yes\n101,no\n"}
    appended = client.post(f"{versions}/validate", **more).json()  # type: ignore[arg-type]
    assert appended["preview"]["data"] == [[100.0, "yes"], [101.0, "no"]]  # not those of the parent
    assert read(versions, two_sheets)["rows"] == 24
    assert read(versions, two_sheets, mode="replace")["dialect"] == {"sheet": "loans"}
    other = read(versions, workbook, mode="replace")
    assert other["errors"][0]["suggestion"] == {"sheet": "rows"}
    assert read(versions, workbook, mode="replace", sheet="rows")["status"] == "ready"
    as_text = client.post(
        versions, params={"mode": "replace"}, headers={"Content-Type": CSV}, content=TEXT
    )
    service.work()
    assert client.get(as_text.headers["Location"]).json()["status"] == "ready"


def test_other_files_of_office_are_refused_in_words(client: httpx.Client) -> None:
    magic = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    locked = magic + "EncryptedPackage".encode("utf-16-le") + bytes(600)
    for body, said in ((magic, ".xls"), (locked, "password")):
        for kind in (XLSX, CSV, "application/vnd.ms-excel"):
            answer = client.post("/v1/datasets", files={"file": ("t.xls", body, kind)})
            assert said in refused(answer, 415, "unsupported_media_type")["detail"]
