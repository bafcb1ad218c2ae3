"""Batch scores over HTTP: asked for by a dataset or with rows of their own, scored by a job, read back as a file."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from app.operations import repository as blob_rows
from app.platform.tables import BatchScore
from app.scoring.service import rank
from app.scoring.tasks import BestRows
from tests.app.live_service import STRANGER, Service
from tests.app.refusals import refused
from tests.app.score_formats import (
    ARROW,
    CSV,
    DIALECT,
    FEATURES,
    LABEL,
    NDJSON,
    PARQUET,
    Row,
    answering,
    as_arrow,
    as_csv,
    as_ndjson,
    as_parquet,
    as_table,
    draw,
    headers,
)
from tests.long_form import rest

PATH = "/v1/batch-scores"
ROWS = [row | {"id": f"p{k}"} for k, row in enumerate(draw(150, seed=2))]
ROWS[1]["id"], ROWS[2]["id"] = "=1+1", None
WITH_ID = ("id", *FEATURES)
NO_BOOK = {"sheet": None, "sheets": None}
"""What a check says of a table that is not in a workbook."""


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    return start(max_body_bytes=50_000)


@pytest.fixture(scope="module")
def model_id(shared: Service) -> Iterator[str]:
    with answering(shared) as model_id:
        yield model_id


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key(scopes=["score"]))


@pytest.fixture(scope="module")
def expected(client: httpx.Client, model_id: str) -> dict[str, list[float]]:
    """Return the answer of POST score for the rows."""
    rows = [{name: row[name] for name in FEATURES} for row in ROWS]
    found = client.post(f"/v1/models/{model_id}/score", json={"rows": rows}).json()
    return {name: found[f"{name}s"] for name in ("score", "fpr", "tpr")}


def ask(
    client: httpx.Client, body: bytes, kind: str = CSV, at: str = "", **params: Any
) -> httpx.Response:
    sent: dict[str, Any] = {"params": params, "content": body}
    return client.post(f"{PATH}{at}", headers=headers(kind), **sent)


def scored(service: Service, client: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """Have the job done; return the resource."""
    assert answer.status_code == 202, answer.text
    assert answer.json()["status"] == "processing"
    assert answer.headers["Location"] == f"{PATH}/{answer.json()['id']}"
    service.work()
    found: dict[str, Any] = client.get(answer.headers["Location"]).json()
    return found


def result(client: httpx.Client, batch: dict[str, Any]) -> pa.Table:
    answer = client.get(f"{PATH}/{batch['id']}/result")
    assert answer.status_code == 200, answer.text
    return pq.read_table(pa.BufferReader(answer.content))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CSV, as_csv(ROWS, WITH_ID)),
        (PARQUET, as_parquet(as_table(ROWS, WITH_ID))),
        *rest(
            (NDJSON, as_ndjson(ROWS, WITH_ID)),
            (ARROW, as_arrow(as_table(ROWS, WITH_ID))),
        ),
    ],
)
def test_rows_of_their_own_get_the_figures_of_post_score(
    shared: Service,
    client: httpx.Client,
    model_id: str,
    expected: dict[str, list[float]],
    kind: str,
    body: bytes,
) -> None:
    batch = scored(shared, client, ask(client, body, kind, model="churn", keep="id,plan"))
    assert (batch["status"], batch["rows"], batch["error"]) == ("ready", len(ROWS), None)
    assert (batch["model_id"], batch["dataset_id"]) == (model_id, None)
    table = result(client, batch)
    assert [column["name"] for column in batch["columns"]] == table.column_names
    assert table.column_names == [
        *("id", "plan", "row_number"),
        *("score", "fpr", "tpr", "probability"),
    ]
    assert table.column("row_number").to_pylist() == list(range(1, len(ROWS) + 1))
    assert {name: table.column(name).to_pylist() for name in expected} == expected
    # Kept columns of a CSV are never interpreted, ids neither: a missing word is a word like any other.
    missing = "na" if kind == CSV else None
    assert table.column("id").to_pylist() == [row["id"] or missing for row in ROWS]
    assert table.column("plan").to_pylist() == [row["plan"] or missing for row in ROWS]
    job = shared.client(shared.key()).get(f"/v1/jobs/{batch['job_id']}").json()
    assert (job["kind"], job["state"], job["dataset_id"]) == ("batch_score", "succeeded", None)
    assert job["output"] == {"kind": "batch_score", "id": batch["id"]}
    again = scored(shared, client, ask(client, body, kind, model=model_id, keep="id,plan"))
    assert again["sha256"] == batch["sha256"]  # the same bits


def test_the_rows_of_a_dataset(
    shared: Service, client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    owner = shared.client(shared.key())
    names = ("id", *FEATURES, LABEL)
    dataset_id = shared.upload(
        owner, as_csv(ROWS, names).decode(), label=LABEL, categorical="plan", **DIALECT
    )
    asked = {"model": "churn@champion", "dataset_id": dataset_id}
    refused(client.post(PATH, json=asked), 404, "not_found", "/model")
    asked["model"] = "churn:1"
    for bad in (0, "x", 2_000_000, 1.5):
        refused(client.post(PATH, json=asked | {"top": bad}), 422, "invalid", "/top")
    keep = ["id", "since", "member", LABEL, "age"]
    refused(client.post(PATH, json=asked | {"keep": keep}), 403, "forbidden", "'read'")
    with shared.context.db.write():  # this blocks SQLite's only writer: reading does not wait
        found = client.post(f"{PATH}/validate", json=asked)
    assert (found.status_code, found.json()) == (200, {"valid": True})
    unknown = client.post(f"{PATH}/validate", json=asked | {"model": "nobody"})
    refused(unknown, 404, "not_found", "/model")
    batch = scored(shared, client, client.post(PATH, json=asked))
    assert (batch["dataset_id"], batch["keep"]) == (dataset_id, [])
    table = result(client, batch)
    assert table.select([*expected]).to_pydict() == expected
    kept = scored(shared, owner, owner.post(PATH, json=asked | {"keep": keep}))
    table = result(owner, kept)
    assert table.column("score").to_pylist() == expected["score"]
    for name in (LABEL, "member", "age"):
        assert table.column(name).to_pylist() == [row[name] for row in ROWS]
    times = [row["since"] and datetime.fromisoformat(row["since"]) for row in ROWS]
    assert table.column("since").to_pylist() == [t and t.replace(tzinfo=UTC) for t in times]
    # A key that may not read the dataset cannot read its columns here in any form, only the scores.
    address = f"{PATH}/{kept['id']}/result"
    tag = {"If-None-Match": f'"{kept["sha256"]}"'}
    for form, sent in (("parquet", {}), ("csv", {}), ("parquet", tag)):
        answer = client.get(address, params={"format": form}, headers=sent)
        refused(answer, 403, "forbidden", "'read'", "score")
    reader = shared.client(shared.key(scopes=["read"]))
    refused(reader.get(address), 403, "forbidden", "'score'")
    assert client.get(f"{PATH}/{batch['id']}/result").status_code == 200
    assert owner.delete(f"/v1/datasets/{dataset_id}").status_code == 204
    refused(client.get(address), 403, "forbidden", "'read'")
    assert owner.get(address).status_code == 200
    listed = owner.get(PATH, params={"dataset_id": dataset_id}).json()["data"]
    assert [entry["id"] for entry in listed] == [kept["id"], batch["id"]]


def test_a_result_is_kept_read_in_ranges_and_as_csv(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    body = gzip.compress(as_csv(ROWS, WITH_ID))
    sent = headers(CSV, "gzip", Prefer="handling=lenient")
    asked = {"model": model_id, "keep": "id"}
    answer = client.post(PATH, params=asked, content=body, headers=sent)
    refused(client.get(f"{PATH}/{answer.json()['id']}/result"), 409, "batch_score_not_ready")
    refused(client.delete(f"{PATH}/{answer.json()['id']}"), 409, "batch_score_in_use")
    owner = shared.client(shared.key())
    refused(owner.delete(f"/v1/models/{model_id}"), 409, "model_in_use")
    batch = scored(shared, client, answer)
    address = f"{PATH}/{batch['id']}/result"
    whole = client.get(address)
    tag = whole.headers["ETag"]
    assert (tag, len(whole.content)) == (f'"{batch["sha256"]}"', batch["bytes"])
    assert client.get(address, headers={"If-None-Match": tag}).status_code == 304
    part = client.get(address, headers={"Range": "bytes=4-9"})
    assert (part.status_code, part.content) == (206, whole.content[4:10])
    for ranges in ("bytes=9-4", "bytes=0-1,3-4", "rows=1-2", "bytes=", "\xff"):
        answer = client.get(address, headers=[(b"Range", ranges.encode("latin-1"))])
        assert (answer.status_code, answer.content) == (200, whole.content)
    beyond = client.get(address, headers={"Range": f"bytes={batch['bytes']}-"})
    refused(beyond, 416, "range_not_satisfiable")
    assert beyond.headers["Content-Range"] == f"bytes */{batch['bytes']}"
    text = client.get(address, params={"format": "csv"}).content
    assert text.splitlines()[2].startswith(b'"\'=1+1",')
    read = pyarrow.csv.read_csv(pa.BufferReader(text))
    scores = result(client, batch).column("score").to_pylist()
    assert read.column("score").to_pylist() == scores
    by_comma = client.get(address, params={"format": "csv", "decimal": "comma"}).content
    options = pyarrow.csv.ParseOptions(delimiter=";")
    numbers = pyarrow.csv.ConvertOptions(decimal_point=",")
    read = pyarrow.csv.read_csv(
        pa.BufferReader(by_comma), parse_options=options, convert_options=numbers
    )
    assert read.column("score").to_pylist() == scores
    sheet = client.get(address, params={"format": "xlsx"})
    assert sheet.headers["Content-Disposition"].endswith('.xlsx"')
    (head, *rows) = (
        CalamineWorkbook.from_filelike(io.BytesIO(sheet.content)).get_sheet_by_index(0).to_python()
    )
    assert head == result(client, batch).column_names
    assert [row[head.index("score")] for row in rows] == pytest.approx(scores)
    assert rows[1][0] == "=1+1"  # a text, and no formula
    for limit in ("MAX_SHEET_CELLS", "MAX_SHEET_TEXT"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"app.http.responses.{limit}", 3)
            problem = refused(client.get(f"{address}?format=xlsx"), 422, "invalid", "csv")
            assert problem["errors"][0]["parameter"] == "format"
    refused(client.get(f"{address}?format=ods"), 422, "invalid", "format")
    refused(client.get(f"{address}?format=csv&decimal=;"), 422, "invalid", "decimal")
    # The sweeper keeps the result as long as its row exists.
    db = shared.context.db
    with db.read() as session:
        key = session.get_one(BatchScore, batch["id"]).result_key or ""
        assert blob_rows.named(session, [key]) == {key}
    for other in client.get(PATH).json()["data"]:
        assert client.delete(f"{PATH}/{other['id']}").status_code == 204
    assert client.get(PATH).json()["data"] == []
    with db.read() as session:
        assert blob_rows.named(session, [key]) == set()
    refused(client.get(address), 404, "not_found")


def test_bad_rows_fail_the_job_with_their_lines(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    rows: list[Row] = [dict(row) for row in ROWS]
    for place in range(3, 150):
        rows[place]["age"] = "old"
        rows[place]["since"] = "tomorrow"
    answer = ask(client, as_csv(rows), model=model_id)
    batch = scored(shared, client, answer)
    assert (batch["status"], batch["rows"]) == ("failed", None)
    errors = batch["error"]["errors"]
    assert batch["error"]["code"] == "invalid_table"
    assert "(and 293 more)" in batch["error"]["detail"]
    assert (errors[0]["line"], errors[0]["column"]) == (5, "age")
    assert {error["column"] for error in errors} == {"age", "since"}
    refused(client.get(f"{PATH}/{batch['id']}/result"), 409, "batch_score_not_ready", "failed")
    owner = shared.client(shared.key())
    retried = owner.post(f"/v1/jobs/{batch['job_id']}/retry").json()["id"]
    assert client.get(f"{PATH}/{batch['id']}").json()["job_id"] == retried
    shared.work()
    for body, code in (
        (as_csv(ROWS, FEATURES[1:]), "absent_feature"),
        (as_csv(ROWS, WITH_ID), "unknown_feature"),
        (b"PAR1 this is none", "invalid_table"),
    ):
        kind = PARQUET if body.startswith(b"PAR1") else CSV
        batch = scored(shared, client, ask(client, body, kind, model=model_id))
        assert (batch["status"], batch["error"]["code"]) == ("failed", code)
    assert client.delete(f"{PATH}/{batch['id']}").status_code == 204


def test_a_setting_has_failed_jobs_show_nothing_of_rows(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    rows: list[Row] = [dict(row) for row in ROWS]
    rows[3]["age"] = "secret"
    with shared.setting(terse_errors=True):
        batch = scored(shared, client, ask(client, as_csv(rows), model=model_id))
    assert (batch["status"], batch["error"]["code"]) == ("failed", "invalid_table")
    assert batch["error"]["errors"] == []
    job = shared.client(shared.key()).get(f"/v1/jobs/{batch['job_id']}")
    for text in (orjson.dumps(batch["error"]).decode(), job.text):
        assert "secret" not in text
        assert "age" not in text


def test_checks_and_replays(shared: Service, client: httpx.Client, model_id: str) -> None:
    before = client.get(PATH).json()["data"]
    check = partial(ask, client, at="/validate", model="churn")
    found = check(as_csv(ROWS))
    assert found.json() == {"valid": True, "rows": len(ROWS), "ignored": [], **NO_BOOK}
    refused(check(as_csv(ROWS, WITH_ID)), 422, "unknown_feature")
    refused(check(b"x" * 60_000), 413, "too_large")
    refused(check(as_parquet(as_table(ROWS)), PARQUET), 415, "unsupported_media_type")
    assert client.get(PATH).json()["data"] == before
    sent: Any = {"params": {"model": "churn"}}
    sent["headers"] = headers(CSV) | {"Idempotency-Key": "tonight"}
    first = client.post(PATH, content=as_csv(ROWS), **sent)
    again = client.post(PATH, content=as_csv(ROWS), **sent)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    refused(client.post(PATH, content=as_csv(ROWS[1:]), **sent), 422, "idempotency_key_reused")
    shared.work()
    stranger = shared.client(shared.key(owner=STRANGER))
    refused(stranger.get(f"{PATH}/{first.json()['id']}"), 404, "not_found")
    refused(stranger.get(f"{PATH}/{first.json()['id']}/result"), 404, "not_found")
    assert stranger.get(PATH).json()["data"] == []


def test_a_caller_may_wait(shared: Service, client: httpx.Client, model_id: str) -> None:
    with shared.at_work():
        sent = headers(CSV, Prefer="wait=60")
        answer = client.post(PATH, params={"model": model_id}, content=as_csv(ROWS), headers=sent)
    assert answer.status_code == 201
    assert answer.json()["status"] == "ready"
    assert answer.headers["Preference-Applied"] == "wait=60"


def summary(client: httpx.Client, batch: dict[str, Any]) -> dict[str, Any]:
    answer = client.get(f"{PATH}/{batch['id']}/summary")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_summary_of_what_came_out(
    shared: Service, client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    owner = shared.client(shared.key())
    guarantee = {"model_id": model_id, "guarantee": {"fpr": 0.2}}
    cutoff = owner.put("/v1/models/churn/aliases/best", json=guarantee).json()["cutoff"][
        "threshold"
    ]
    scores = expected["score"]
    best = sorted(range(len(ROWS)), key=lambda row: -scores[row])
    body = as_csv(ROWS, (*WITH_ID, LABEL))
    asked = {"model": "churn@best", "keep": "id,since", "file_name": "may.csv"}
    answer = ask(client, body, reasons=2, **asked)
    refused(client.get(f"{PATH}/{answer.json()['id']}/summary"), 409, "batch_score_not_ready")
    batch = scored(shared, client, answer)
    assert (batch["file_name"], batch["alias"]) == ("may.csv", "best")
    found = summary(client, batch)
    assert (found["batch_score_id"], found["rows"]) == (batch["id"], len(ROWS))
    assert (found["threshold"], found["flagged"]) == (
        cutoff,
        sum(score >= cutoff for score in scores),
    )
    assert 0 < found["flagged"] < len(ROWS)
    assert found["ignored"] == [LABEL]
    (histogram,) = found["scores"]
    assert (histogram["low"], histogram["high"]) == (min(scores), max(scores))
    assert histogram["mean"] == pytest.approx(np.mean(scores))
    assert sum(histogram["counts"]) == len(ROWS)
    # The first rows are the best of the result, as it has them.
    table = result(client, batch)
    assert found["columns"] == table.column_names
    first = pa.table(dict(zip(found["columns"], zip(*found["first"], strict=True), strict=True)))
    assert first.column("row_number").to_pylist() == [row + 1 for row in best[:50]]
    for name in ("id", "score", "flag", "probability", "reason_1_text", "reason_2_contribution"):
        assert first.column(name).to_pylist() == table.column(name).take(best[:50]).to_pylist()
    # Of the best rows alone, the histogram is still of all.
    few = scored(shared, client, ask(client, body, top=3, **asked))
    alone = summary(client, few)
    assert alone["scores"] == found["scores"]
    assert alone["flagged"] == found["flagged"]
    assert [row[2] for row in alone["first"]] == [row + 1 for row in best[:3]]


def test_the_label_of_the_model_is_let_through_and_unknown_columns_are_not(
    shared: Service, client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    body = as_csv(ROWS, (*FEATURES, LABEL))
    checked = ask(client, body, model="churn", at="/validate")
    assert checked.json() == {"valid": True, "rows": len(ROWS), "ignored": [LABEL], **NO_BOOK}
    batch = scored(shared, client, ask(client, body, model="churn"))
    table = result(client, batch)
    assert LABEL not in table.column_names
    assert table.column("score").to_pylist() == expected["score"]
    assert (batch["file_name"], batch["alias"]) == (None, None)
    kept = scored(shared, client, ask(client, body, model="churn", keep=LABEL))
    assert result(client, kept).column(LABEL).to_pylist() == [row[LABEL] for row in ROWS]
    assert summary(client, kept)["ignored"] == []
    both = ask(client, as_csv(ROWS, (*WITH_ID, LABEL)), model="churn", at="/validate")
    assert [error["column"] for error in refused(both, 422, "unknown_feature")["errors"]] == ["id"]


def test_what_the_dataset_of_the_model_has_beside_its_features_is_let_through(
    shared: Service, client: httpx.Client
) -> None:
    owner = shared.client(shared.key())
    rows = [
        {"age": age, "house": f"h{age % 9}", "size": age % 7, LABEL: "no" if age < 50 else "yes"}
        for age in range(20, 90)
    ]
    names = ("age", "house", "size", LABEL)
    sent: dict[str, Any] = {"label": LABEL, "group": "house", "weight": "size"}
    dataset_id = shared.upload(owner, as_csv(rows, names, comma=False).decode(), **sent)
    shared.train(owner, dataset_id, name="houses")
    table = as_csv(rows, (*names, "age")[1:], comma=False)  # in another order
    checked = ask(client, table, model="houses", at="/validate")
    assert checked.json() == {
        "valid": True,
        "rows": 70,
        "ignored": ["house", "size", LABEL],
        **NO_BOOK,
    }
    batch = scored(shared, client, ask(client, table, model="houses"))
    assert summary(client, batch)["ignored"] == ["house", "size", LABEL]
    assert "house" not in result(client, batch).column_names
    # Without the dataset the label alone is known.
    assert owner.delete(f"/v1/datasets/{dataset_id}").status_code == 204
    error = refused(ask(client, table, model="houses", at="/validate"), 422, "unknown_feature")
    assert [each["column"] for each in error["errors"]] == ["house", "size"]


def test_the_summary_of_kept_columns_needs_the_scope_read(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    owner = shared.client(shared.key())
    text = as_csv(ROWS, ("id", *FEATURES, LABEL)).decode()
    dataset_id = shared.upload(owner, text, label=LABEL, categorical="plan", **DIALECT)
    asked = {"model": "churn", "dataset_id": dataset_id}
    batch = scored(shared, owner, owner.post(PATH, json=asked | {"keep": ["since", "plan"]}))
    refused(client.get(f"{PATH}/{batch['id']}/summary"), 403, "forbidden", "'read'")
    found = summary(owner, batch)
    assert found["ignored"] == []  # the rows are the dataset's own
    row = ROWS[found["first"][0][2] - 1]
    since = row["since"] and f"{row['since']}Z".replace("T", " ")
    assert found["first"][0][:2] == [since, row["plan"]]
    # So do reasons, whose texts have values of the rows.
    refused(client.post(PATH, json=asked | {"reasons": 1}), 403, "forbidden", "reasons")
    told = scored(shared, owner, owner.post(PATH, json=asked | {"reasons": 1}))
    for part in ("result", "summary"):
        refused(client.get(f"{PATH}/{told['id']}/{part}"), 403, "forbidden", "reasons")
        assert owner.get(f"{PATH}/{told['id']}/{part}").status_code == 200
    own = scored(shared, client, ask(client, as_csv(ROWS), model="churn", reasons=1))
    assert summary(client, own)["first"]  # they were sent with the key's own request
    plain = scored(shared, owner, owner.post(PATH, json=asked))
    assert summary(client, plain)["rows"] == len(ROWS)


@given(
    st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=8),
    st.integers(1, 12),
)
def test_batch_by_batch_the_best_rows_are_those_of_a_stable_sort(
    batches: list[list[int]], top: int
) -> None:
    schema = pa.schema([("word", pa.dictionary(pa.int32(), pa.string())), ("row", pa.int64())])
    schema = schema.append(pa.field("score", pa.float64()))
    best, seen = BestRows(top, schema), 0
    scores = [score for batch in batches for score in batch]
    for batch in batches:
        words = pa.array([f"w{score}" for score in batch], pa.string()).dictionary_encode()
        rows = pa.array(range(seen, seen + len(batch)), pa.int64())
        best.add([words, rows, pa.array(batch, pa.float64())])
        seen += len(batch)
        assert best.rows_held <= 3 * top
    expected = sorted(range(seen), key=lambda row: -scores[row])[:top]
    found = best.table()
    assert found.column("row").to_pylist() == expected
    assert found.column("word").to_pylist() == [f"w{scores[row]}" for row in expected]
    ranks = rank(np.array(scores, dtype=float), top).tolist()
    assert ranks == expected


def test_the_best_rows_hold_no_words_of_others() -> None:
    for rising in (True, False):
        schema = pa.schema(
            [("word", pa.dictionary(pa.int32(), pa.string())), ("score", pa.float64())]
        )
        best, before = BestRows(2, schema), pa.total_allocated_bytes()
        for k in range(100):
            words = [f"{k}, {i}: {'x' * 200}" for i in range(1000)] + [None]
            scores = np.zeros(1001) + (k if rising else -k)
            scores[-2:] += 0.5
            best.add([pa.array(words).dictionary_encode(), pa.array(scores)])
        assert pa.total_allocated_bytes() - before < 100_000  # the words of one batch take 200,000
        (column,) = best.table().column("word").chunks
        k = 99 if rising else 0
        assert column.to_pylist() == [f"{k}, 999: {'x' * 200}", None]
        assert len(column.dictionary) == 1


def test_what_cannot_be_asked_for(client: httpx.Client, model_id: str) -> None:
    for params, body, kind, status, code in (
        ({}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "top": "0"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "top": "1000001"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "top": "1e3"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "top": "٣"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "top": ""}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "file_name": "a/b.csv"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "file_name": "a\nb"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "file_name": ""}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "file_name": "x" * 256}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "nobody"}, as_csv(ROWS), CSV, 404, "not_found"),
        ({"model": "churn", "keep": "score"}, as_csv(ROWS), CSV, 422, "column_in_two_roles"),
        ({"model": "churn", "keep": ","}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "colour": "red"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn", "decimal": "comma"}, b"{}", NDJSON, 422, "invalid"),
        ({"model": "churn", "thousands": "comma"}, as_csv(ROWS), CSV, 422, "invalid"),
        ({"model": "churn"}, b"", CSV, 422, "empty_body"),
        ({"model": "churn"}, b"x", "text/html", 415, "unsupported_media_type"),
        ({}, b"{", "application/json", 400, "malformed_json"),
        ({}, b"[]", "application/json", 422, "invalid"),
        ({}, b'{"model": "churn", "dataset_id": "ds_1"}', "application/json", 404, "not_found"),
        ({}, b'{"model": 1, "dataset_id": "\\u0000"}', "application/json", 422, "invalid"),
        ({}, b'{"model": "churn", "x": 1}', "application/json", 422, "invalid"),
        ({}, b'"' + b"x" * 60_000, "application/json", 413, "too_large"),
    ):
        before = client.get(PATH).json()["data"]
        for path in (PATH, f"{PATH}/validate"):
            answer = client.post(path, params=params, content=body, headers=headers(kind))
            refused(answer, status, code)
        assert client.get(PATH).json()["data"] == before


def test_a_form_says_the_same(shared: Service, client: httpx.Client, model_id: str) -> None:
    form: dict[str, Any] = {
        "data": {"model": model_id, "keep": "id"},
        "files": {"file": ("C:\\tables\\t\u200b é.csv", as_csv(ROWS, WITH_ID))},
    }
    batch = scored(shared, client, client.post(PATH, **form))
    assert batch["file_name"] == "t é.csv"  # without folders, and without what cannot be printed
    form["data"]["file_name"] = "june.csv"
    assert client.post(PATH, **form).json()["file_name"] == "june.csv"
    shared.work()
    assert result(client, batch).column("id").to_pylist()[0] == "p0"


def test_one_that_is_deleted_as_its_job_begins_fails_the_job(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    asked = ask(client, as_csv(ROWS), model=model_id).json()
    with shared.context.db.write() as session:  # in the moment between a check and its commit
        session.delete(session.get_one(BatchScore, asked["id"]))
    shared.work()
    job = shared.client(shared.key()).get(f"/v1/jobs/{asked['job_id']}").json()
    assert (job["state"], job["error"]["code"]) == ("failed", "batch_score_deleted")
