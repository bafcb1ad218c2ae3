"""POST score and rank of tables: every format has the figures of JSON; an error names its line and column."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from app.scoring.answers import ScoresResponse
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.score_formats import (
    ARROW,
    CSV,
    FEATURES,
    FILE,
    LABEL,
    NDJSON,
    PARQUET,
    answering,
    as_arrow,
    as_csv,
    as_ndjson,
    as_parquet,
    as_table,
    bodies,
    draw,
    headers,
)
from tests.long_form import LONG_FORM, rest

MOST = 1 << 20
ROWS = draw(50, seed=1)
BODIES = bodies(ROWS)
NOTHING = pa.Array.from_buffers(
    pa.null(), (1 << 31) - 1, [None]
)  # so many rows, and not a byte of them


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    return start(max_score_bytes=MOST)


@pytest.fixture(scope="module")
def address(shared: Service) -> Iterator[str]:
    with answering(shared) as model_id:
        yield f"/v1/models/{model_id}"


@pytest.fixture(scope="module")
def scorer(shared: Service) -> httpx.Client:
    return shared.client(shared.key(scopes=["score"]))


@pytest.fixture(scope="module")
def expected(scorer: httpx.Client, address: str) -> dict[str, Any]:
    data = [[row[name] for name in FEATURES] for row in ROWS]
    answer = scorer.post(f"{address}/score", json={"columns": FEATURES, "data": data})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert len(set(found["scores"])) > 10
    return found


def test_every_format_gives_the_figures_of_json(
    scorer: httpx.Client, address: str, expected: dict[str, Any]
) -> None:
    for name in BODIES:
        content_type, encoding, body = BODIES[name]
        said = headers(content_type, encoding)
        answer = scorer.post(f"{address}/score", content=body, headers=said)
        assert answer.json() == expected
        assert answer.headers["X-Model-ID"] == expected["model_id"]
        ranking = scorer.post(f"{address}/rank?top=5", content=body, headers=said).json()
        order = sorted(range(len(ROWS)), key=lambda i: (-expected["scores"][i], i))
        assert ranking["indices"] == order[:5]


def test_json_may_be_compressed(
    shared: Service,
    scorer: httpx.Client,
    address: str,
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.http.dependencies.COMPUTATION_WAIT_SECONDS", 0.01)
    body = json.dumps({"rows": [{name: row[name] for name in FEATURES} for row in ROWS]})
    said = headers("application/json", "gzip")
    sent = gzip.compress(body.encode())
    with shared.computing():  # a few bytes may be many
        refused(
            scorer.post(f"{address}/score", content=sent, headers=said),
            429,
            "too_many_computations",
        )
    assert scorer.post(f"{address}/score", content=sent, headers=said).json() == expected
    bomb = gzip.compress(b" " * (9 << 20))
    refused(scorer.post(f"{address}/score", content=bomb, headers=said), 422, "too_large")


def test_every_answer_holds_the_same(
    scorer: httpx.Client, address: str, expected: dict[str, Any]
) -> None:
    for media_type in (CSV, NDJSON, ARROW, PARQUET):
        said = headers(CSV, Accept=f"{media_type}, */*;q=0.1")
        answer = scorer.post(f"{address}/score", content=as_csv(ROWS), headers=said)
        assert answer.headers["Content-Type"].partition(";")[0] == media_type
        assert answer.headers["Vary"] == "Accept"
        source = pa.BufferReader(answer.content)
        match media_type:
            case "text/csv":
                table = pyarrow.csv.read_csv(source)
            case "application/vnd.apache.parquet":
                table = pq.read_table(source)
            case "application/x-ndjson":
                table = pa.Table.from_pylist([json.loads(line) for line in answer.iter_lines()])
            case _:
                table = pa.ipc.open_stream(source).read_all()
        assert table.column_names == ["score", "fpr", "tpr", "probability"]
        for name in table.column_names:
            plural = "probabilities" if name == "probability" else f"{name}s"
            assert table.column(name).to_pylist() == expected[plural]
        ranked = scorer.post(f"{address}/rank?top=3", content=as_csv(ROWS), headers=said)
        assert ranked.content.count(b"\n") == 4 or media_type != CSV
        none = scorer.post(f"{address}/score", content=as_csv([]), headers=said)
        assert none.status_code == 200


def test_an_answer_that_cannot_be_made(scorer: httpx.Client, address: str) -> None:
    said = headers(CSV, Accept="text/html, image/*")
    problem = refused(
        scorer.post(f"{address}/score", content=as_csv(ROWS), headers=said), 406, "not_acceptable"
    )
    assert [error["detail"].split()[-1] for error in problem["errors"]] == [
        "application/json",
        CSV,
        ARROW,
        NDJSON,
        PARQUET,
    ]


def test_lines_are_what_json_says_of_each_row() -> None:
    for rows in (0, 1, 300):
        values = np.random.default_rng(0).normal(size=rows) * 10.0 ** np.linspace(-300, 300, rows)
        values[:3] = [np.nan, -0.0, 1e22][:rows]
        named = {'100%s "é"': values, "fpr": None, "index": np.arange(rows)}
        lines = [
            {name: None if column is None else column[i].item() for name, column in named.items()}
            for i in range(rows)
        ]
        expected = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
        assert ScoresResponse({}, named).write(NDJSON) == expected


def test_a_csv_for_programs_has_the_texts_as_they_are() -> None:
    answer = ScoresResponse({}, {"=1+1": np.array([1.5]), "a,b": None, "id": pa.array(["-5"])})
    assert answer.write(CSV) == b'=1+1,"a,b",id\n1.5,,"-5"\n'


def test_columns_that_are_no_feature(
    scorer: httpx.Client, address: str, expected: dict[str, Any]
) -> None:
    for query, more, status in (
        ("", {}, 422),
        ("?ignore=left", {}, 422),
        (f"?ignore=left,{'%22who%2C%20where%22'}", {}, 200),
        ("?ignore=*", {}, 200),
        ("", {"Prefer": "handling=lenient"}, 200),
        ("?ignore=left,left", {}, 422),
        ("?ignore=left,who", {}, 422),
        ("?ignore=*,age", {}, 422),
        ("?ignore=,", {}, 422),
        ("?decimal=semicolon", {}, 422),
        ("?thousands=dot", {}, 422),
        ("?thousands=point", {}, 422),  # of what is no CSV
        ("?dates=first", {}, 422),
    ):
        rows = [{**row, "who, where": f"p{k}"} for k, row in enumerate(ROWS)]
        body = as_ndjson(rows, ("who, where", *FEATURES, LABEL))
        answer = scorer.post(
            f"{address}/score{query}", content=body, headers=headers(NDJSON, **more)
        )
        if status == 200:
            assert answer.json() == expected
        else:
            assert refused(answer, 422, answer.json()["code"])["errors"]
        if not query and not more:
            assert [error["column"] for error in answer.json()["errors"]] == ["who, where", LABEL]


def test_absent_features(scorer: httpx.Client, address: str) -> None:
    said = headers(CSV)
    few = as_csv(ROWS, ("plan", "age"))  # the others were missing in training
    gaps = [dict.fromkeys(FEATURES) | {name: row[name] for name in ("age", "plan")} for row in ROWS]
    found = scorer.post(f"{address}/score", content=few, headers=said).json()
    assert found == scorer.post(f"{address}/score", content=as_csv(gaps), headers=said).json()
    without = as_csv(ROWS, FEATURES[1:])
    problem = refused(
        scorer.post(f"{address}/score", content=without, headers=said), 422, "absent_feature"
    )
    assert problem["errors"][0]["column"] == "age"
    lenient = headers(CSV, Prefer="handling=lenient")
    answer = scorer.post(f"{address}/score", content=without, headers=lenient)
    assert answer.headers["Preference-Applied"] == "handling=lenient"
    assert len(answer.json()["scores"]) == len(ROWS)


def test_values_are_spelled_as_in_the_model_s_table_or_as_is_said(
    scorer: httpx.Client, address: str, expected: dict[str, Any]
) -> None:
    points = as_csv(ROWS, comma=False)
    said = headers(CSV)
    answer = scorer.post(f"{address}/score", content=points, headers=said)
    assert "as 1234,5, got '" in refused(answer, 422, "invalid_table")["detail"]
    answer = scorer.post(f"{address}/score?decimal=point", content=points, headers=said)
    assert answer.json() == expected
    other = points.replace(b"-999", b"unknown").replace(b"|na", b"|unknown")
    asked = f"{address}/score?decimal=point&delimiter=pipe&missing=unknown"
    assert scorer.post(asked, content=other, headers=said).json() == expected
    a_number = scorer.post(f"{address}/score", content=b"age\n-999\n", headers=said).json()
    missing = scorer.post(f"{address}/score", content=b"age\nNa\n", headers=said).json()
    assert a_number == missing


def test_errors_are_told_with_line_or_row_column_and_value(
    scorer: httpx.Client, address: str
) -> None:
    rows = [dict(row) for row in ROWS[:4]]
    wrong = {"age": "old", "member": "perhaps", "since": "2024-13-45"}
    places = {"age": 1, "member": 2, "since": 3}
    for name, value in wrong.items():
        rows[places[name]][name] = value
    for content_type, body, place in (
        (CSV, as_csv(rows), {"line": 3}),
        (NDJSON, as_ndjson(rows), {"line": 2}),
    ):
        answer = scorer.post(f"{address}/score", content=body, headers=headers(content_type))
        problem = refused(answer, 422, "invalid_table")
        errors = {error["column"]: error for error in problem["errors"]}
        assert set(errors) == set(wrong)
        assert errors["age"].items() >= place.items()
        assert "'old'" in errors["age"]["detail"]
        assert "true" in errors["member"]["detail"]
        assert "2026-01-31" in errors["since"]["detail"]
    ages = pa.table({"age": pa.array(["1.5", "old", "2"])})
    answer = scorer.post(f"{address}/score", content=as_arrow(ages), headers=headers(ARROW))
    assert refused(answer, 422, "invalid_table")["errors"][0]["detail"].startswith("row 2:")
    ragged = as_csv(ROWS) + b"1;2\r\n"
    answer = scorer.post(f"{address}/score", content=ragged, headers=headers(CSV))
    assert refused(answer, 422, "invalid_table")["errors"][0]["line"] == len(ROWS) + 2


def test_what_is_no_table_or_too_large(scorer: httpx.Client, address: str) -> None:
    for content_type, encoding, body, status, code in (
        (CSV, "gzip", gzip.compress(b"age\n" + b"1\n" * MOST), 422, "too_large"),
        (CSV, None, b"age\n" + b"1\n" * (MOST // 8), 422, "too_many_rows"),
        (CSV, "gzip", b"age\n1\n", 422, "invalid_table"),
        (CSV, "br", b"age\n1\n", 415, "unsupported_media_type"),
        (CSV, None, b"", 422, "invalid_table"),
        (CSV, None, b"PAR1", 422, "invalid_table"),
        (CSV, None, b"age;age\n1;1\n", 422, "duplicate_column"),
        (CSV, None, b'age\n"1\n', 422, "invalid_table"),
        (CSV, None, b"age\n1e400\n", 422, "invalid_table"),
        (NDJSON, None, b"[1]\n", 422, "invalid_table"),
        (NDJSON, None, b'{"age": [1]}\n', 422, "invalid_table"),
        (ARROW, None, b"", 422, "invalid_table"),
        (ARROW, None, as_arrow(as_table(ROWS))[:900], 422, "invalid_table"),
        (ARROW, None, as_arrow(pa.table({"age": NOTHING})), 422, "too_many_rows"),
        (ARROW, None, as_arrow(pa.table({"age": np.zeros(1 << 18)}), "zstd"), 422, "too_many_rows"),
        (ARROW, None, as_arrow(pa.table({"age": [[1.0]]})), 422, "unsupported_type"),
        (
            ARROW,
            None,
            as_arrow(as_table(ROWS, ("since",)).rename_columns(["age"])),
            422,
            "unsupported_type",
        ),
        (ARROW, None, as_arrow(pa.table({"age": [np.inf]})), 422, "invalid_table"),
        (FILE, None, as_arrow(as_table(ROWS)), 422, "invalid_table"),
        (FILE, None, b"ARROW1\0\0ARROW1", 422, "invalid_table"),
        (PARQUET, None, as_parquet(as_table(ROWS)), 415, "unsupported_media_type"),
        ("text/plain", None, b"age\n1\n", 415, "unsupported_media_type"),
        (f"{CSV}; charset=ebcdic", None, b"age\n1\n", 415, "unsupported_media_type"),
    ):
        said = headers(content_type, encoding)
        refused(scorer.post(f"{address}/score", content=body, headers=said), status, code)


def test_what_arrow_claims_is_looked_up_before_it_is_read(
    scorer: httpx.Client, address: str
) -> None:
    """A few bytes that claim gigabytes of text, and one dictionary under thousands of batches."""
    text = pa.table({"plan": pa.array(["x" * (8 * MOST)])})
    answer = scorer.post(
        f"{address}/score?ignore=plan", content=as_arrow(text, "zstd"), headers=headers(ARROW)
    )
    refused(answer, 422, "too_large")
    said = headers(ARROW)
    for words in ([f"w{k}" for k in range(2000)], ["x" * (MOST // 50)]):
        coded = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array(words))
        table = pa.table({"age": np.zeros(100), "plan": coded})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
        answer = scorer.post(f"{address}/score", content=sink.getvalue(), headers=said)
        refused(answer, 422, "too_large")
    with pa.ipc.new_stream(sink := io.BytesIO(), pa.schema([("age", pa.float64())])) as writer:
        for _ in range(5000):
            writer.write_batch(pa.record_batch({"age": [1.0]}))
    answer = scorer.post(f"{address}/score", content=sink.getvalue(), headers=said)
    refused(answer, 422, "too_large", "4096 messages")


def test_one_text_under_many_views_is_as_long_as_all_of_them(
    scorer: httpx.Client, address: str, expected: dict[str, Any]
) -> None:
    long = pa.array(["x" * (MOST // 8)], pa.string_view()).buffers()
    views = pa.py_buffer(long[1].to_pybytes() * len(ROWS))
    bomb = pa.Array.from_buffers(pa.string_view(), len(ROWS), [None, views, long[2]])
    words = pa.DictionaryArray.from_arrays(pa.array([0] * len(ROWS), pa.int32()), bomb)
    table = as_table(ROWS)
    plan = table["plan"].cast(pa.string())
    for column, status in ((bomb, 422), (words, 422), (plan.cast(pa.string_view()), 200)):
        body = as_arrow(table.set_column(table.column_names.index("plan"), "plan", column))
        answer = scorer.post(f"{address}/score", content=body, headers=headers(ARROW))
        assert answer.status_code == status, answer.text
    assert answer.json() == expected


def test_rows_without_bytes_are_bounded_in_json_too(scorer: httpx.Client, address: str) -> None:
    empty: dict[str, list[dict[str, float]]] = {"rows": [{}] * (MOST // (8 * len(FEATURES)) + 1)}
    lenient = {"Prefer": "handling=lenient"}
    for door in ("score", "explain"):
        answer = scorer.post(f"{address}/{door}", json=empty, headers=lenient)
        refused(answer, 422, "too_many_rows")


@pytest.mark.parametrize("content_type", [ARROW, *rest(CSV, NDJSON, FILE)])
def test_damaged_tables_are_refused_or_read(
    scorer: httpx.Client, address: str, content_type: str
) -> None:
    rng = np.random.default_rng(3)
    whole = next(body for kind, code, body in BODIES.values() if kind == content_type and not code)
    for _ in range(60 if LONG_FORM else 20):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), rng.integers(1, 8)):
            damaged[place] = rng.integers(256)
        answer = scorer.post(
            f"{address}/score", content=bytes(damaged), headers=headers(content_type)
        )
        assert answer.status_code in {200, 422}, answer.text
