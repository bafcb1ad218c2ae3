"""One row has one score: by every route, and by every export, or it is refused by name."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ingest.formats import ARROW, CSV, NDJSON
from tests.app.feedback.recording import recorded
from tests.app.ingest.corpus.case import typed_body
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.servers import PostgresServer

MISSING = "-999,9999,unknown"
WORDS = ["red", "dark red", "it's", "nan", "1", "true", "x,y", 'say "hi"']
Value = str | float | bool | None
AMOUNTS: list[Value] = [0, -0.0, 1.5, -2, 1e300, 2**53 + 1, None, -999, 9999.0, "-999", "9999.0"]
AMOUNTS += ["", "unknown", " 3 ", "1e3", "-", "(5)", "UNKNOWN", 7.25]
PLANS: list[Value] = [" red ", "TRUE", True, 1, 1.0, "1.0", 2.5, "2.50", "new", None, "", "unknown"]
PLANS += [*WORDS, -999, "Unknown"]
TIMES: list[Value] = ["2026-01-31", "31.01.2026", "2026-01-31T12:00:00.1234567Z", None, ""]
TIMES += ["2024-02-29 10:00 UTC", "unknown", " 2025-06-01"]
VALUES: dict[str, list[Value]] = {
    "amount": AMOUNTS,
    "member": [True, False, "true", "FALSE", 1, 0, None, "", "unknown", " True", -999],
    "since": TIMES,
    "plan": PLANS,
}
Row = dict[str, Value]
ROWS = st.tuples(*map(st.sampled_from, VALUES.values())).map(
    lambda values: dict(zip(VALUES, values, strict=True))
)


def spelled(value: Value) -> str:
    """Return a value as a program writes it into a text."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def table_of(rows: list[Row]) -> str:
    sink = io.StringIO(newline="")
    values = [[spelled(value) for value in row.values()] for row in rows]
    csv.writer(sink).writerows([list(rows[0]), *values])
    return sink.getvalue()


def drawn() -> str:
    """Return a table with numbers, booleans, dates and words, some of them missing by code."""
    rng = np.random.default_rng(3)
    lines = ["amount,member,since,plan,y"]
    for _ in range(600):
        amount, member = round(float(rng.normal(2, 4)), 2), bool(rng.random() < 0.5)
        year, word = int(rng.integers(2020, 2027)), WORDS[int(rng.integers(len(WORDS)))]
        odds = amount / 4 + member - (year - 2023) / 2 + WORDS.index(word) / 3 - 1
        gone = rng.random(4) < 0.15
        odds += 2.0 * gone[0] - gone[1] + gone[2] - 2 * gone[3]
        cells = [
            "-999" if gone[0] else str(amount),
            "unknown" if gone[1] else str(member).lower(),
            "unknown" if gone[2] else f"{year}-06-01",
            "unknown" if gone[3] else '"' + word.replace('"', '""') + '"',
            "yes" if rng.logistic() < odds else "no",
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


TEXT = drawn()
FIELDS = {"label": "y", "positive": "yes", "missing": MISSING, "name": "codes"}


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    client = shared.client(shared.key())
    dataset_id = shared.upload(client, TEXT, **FIELDS)
    tree = {"name": "rankboost", "weak_ranker": "tree", "n_rounds": 30}
    shared.train(client, dataset_id, name="codes", algorithm=tree)
    found = client.get("/v1/models/codes").json()
    assert [each["type"] for each in found["features"]] == [
        *("numeric", "boolean", "datetime", "categorical"),
    ]
    assert found["missing"] == MISSING.split(",")
    return client


Scores = list[float]
MODEL = "/v1/models/codes"


def posted(client: httpx.Client, path: str, member: str, **sent: Any) -> Any:
    got = client.post(path, **sent)
    assert got.status_code == 200, (path, got.text)
    return got.json()[member]


def of_objects(client: httpx.Client, rows: list[Row]) -> Scores:
    found: Scores = posted(client, f"{MODEL}/score", "scores", json={"rows": rows})
    return found


def of_lists(client: httpx.Client, rows: list[Row]) -> Scores:
    body = {"columns": list(rows[0]), "data": [list(row.values()) for row in rows]}
    found: Scores = posted(client, f"{MODEL}/score", "scores", json=body)
    return found


def of_queries(client: httpx.Client, rows: list[Row]) -> Scores:
    found = []
    for row in rows:
        query = urlencode({name: spelled(value) for name, value in row.items()})
        got = client.get(f"{MODEL}/score?{query}")
        assert got.status_code == 200, got.text
        found.append(got.json()["score"])
    return found


def of_table(content_type: str, *paths: str) -> Callable[[httpx.Client, list[Row]], Scores]:
    def route(client: httpx.Client, rows: list[Row]) -> Scores:
        if content_type == CSV:
            body = table_of(rows).encode()
        elif content_type == NDJSON:
            body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        else:
            texts = {name: [spelled(row[name]) for row in rows] for name in rows[0]}
            body = typed_body(pa.table(texts), content_type)
        headers = {"Content-Type": content_type}
        (path, member) = paths or (f"{MODEL}/score", "scores")
        found: Scores = posted(client, path, member, content=body, headers=headers)
        return found

    return route


def of_mlflow(form: str) -> Callable[[httpx.Client, list[Row]], Scores]:
    def route(client: httpx.Client, rows: list[Row]) -> Scores:
        data = [list(row.values()) for row in rows]
        given = {
            "dataframe_records": rows,
            "dataframe_split": {"columns": list(rows[0]), "data": data},
            "inputs": {name: [row[name] for row in rows] for name in rows[0]},
        }
        body = {form: given[form]}
        found: Scores = posted(client, f"{MODEL}/invocations", "predictions", json=body)
        return found

    return route


def of_tensors(client: httpx.Client, rows: list[Row]) -> Scores:
    inputs = [
        {
            "name": name,
            "datatype": "BYTES",
            "shape": [len(rows)],
            "data": [spelled(row[name]) for row in rows],
        }
        for name in rows[0]
    ]
    outputs = posted(client, "/oip/v2/models/codes/infer", "outputs", json={"inputs": inputs})
    (scores,) = (each["data"] for each in outputs if each["name"] == "score")
    found: Scores = scores
    return found


def of_explanations(client: httpx.Client, rows: list[Row]) -> Scores:
    explained = posted(client, f"{MODEL}/explain", "explanations", json={"rows": rows})
    return [each["score"] for each in explained]


ROUTES: dict[str, Callable[[httpx.Client, list[Row]], Scores]] = {
    "lists": of_lists,
    "queries": of_queries,
    "CSV": of_table(CSV),
    "NDJSON": of_table(NDJSON),
    "Arrow": of_table(ARROW),
    "MLflow, CSV": of_table(CSV, f"{MODEL}/invocations", "predictions"),
    "MLflow, records": of_mlflow("dataframe_records"),
    "MLflow, split": of_mlflow("dataframe_split"),
    "MLflow, inputs": of_mlflow("inputs"),
    "Open Inference Protocol": of_tensors,
    "explanations": of_explanations,
}


@given(rows=st.lists(ROWS, min_size=1, max_size=12))
@settings(max_examples=200 if LONG_FORM else 15, deadline=None)
def test_a_row_has_one_score_by_every_route(client: httpx.Client, rows: list[Row]) -> None:
    expected = of_objects(client, rows)
    for name, route in ROUTES.items():
        assert route(client, rows) == expected, name


def test_every_value_has_one_score_by_every_route(shared: Service, client: httpx.Client) -> None:
    """And by a batch."""
    n = max(map(len, VALUES.values()))
    rows = [{name: own[k % len(own)] for name, own in VALUES.items()} for k in range(n)]
    expected = of_objects(client, rows)
    for name, route in ROUTES.items():
        assert route(client, rows) == expected, name
    sent = {"content": table_of(rows), "headers": {"Content-Type": CSV}}
    made = client.post("/v1/batch-scores?model=codes", **sent)  # type: ignore[arg-type]
    shared.work()
    result = client.get(f"{made.headers['Location']}/result?format=csv").text
    lines = list(csv.DictReader(io.StringIO(result)))
    assert [float(line["score"]) for line in lines] == expected


def test_a_code_is_no_unknown_category(client: httpx.Client) -> None:
    row = {name: values[0] for name, values in VALUES.items()}
    for plan, warned in (("unknown", False), ("-999", False), ("new", True)):
        answer = client.post(f"{MODEL}/score", json={"rows": [row | {"plan": plan}]})
        assert ("X-Warnings" in answer.headers) == warned, plan


@pytest.mark.parametrize("value", [True, "yes", "2026-01-31", [1], {}])
def test_what_is_no_number_is_refused_by_every_route(client: httpx.Client, value: Any) -> None:
    row = {name: values[0] for name, values in VALUES.items()} | {"amount": value}
    answer = client.post(f"{MODEL}/score", json={"rows": [row]})
    assert refused(answer, 422, "invalid_feature_value")["errors"][0]["pointer"] == "/rows/0/amount"
    if isinstance(value, str):
        query = urlencode({name: spelled(each) for name, each in row.items()})
        problem = refused(client.get(f"{MODEL}/score?{query}"), 422, "invalid_feature_value")
        assert problem["errors"][0]["parameter"] == "amount"
        sent = {"content": table_of([row]), "headers": {"Content-Type": CSV}}
        assert client.post(f"{MODEL}/score", **sent).status_code == 422  # type: ignore[arg-type]


def test_earlier_decisions_have_the_codes_of_the_model(
    shared: Service, client: httpx.Client
) -> None:
    alias, sent = f"{MODEL}/aliases/earlier", {"guarantee": {"flagged": 0.3}}
    model_id = client.get(MODEL).json()["id"]
    assert client.put(alias, json={"model_id": model_id, **sent}).is_success
    assert client.put(f"{alias}/feedback", json={}).is_success
    body = "id,at,score,amount,member,since,plan\nc1,2026-11-01,0.5,-999,unknown,unknown,unknown\n"
    headers = {"Content-Type": CSV}
    for missing, plan in ((None, None), ("NA,-999", "unknown")):
        params = {"model": "codes@earlier"} | ({} if missing is None else {"missing": missing})
        if missing is not None:
            body = "id,at,score,amount,member,since,plan\nc2,2026-11-01,0.5,-999,NA,NA,unknown\n"
        before = len(recorded(shared, alias="earlier"))
        answer = client.post("/v1/decisions", params=params, content=body, headers=headers)
        assert answer.status_code == 202, answer.text
        shared.work()
        (row,) = recorded(shared, alias="earlier")[before:]
        found = {name: row[f"feature.{name}"] for name in VALUES}
        assert found == {"amount": None, "member": None, "since": None, "plan": plan}


# Exports.


class Exported(NamedTuple):
    """A model without dates, which no query can read alike, and its rows."""

    file: Callable[[str], bytes]
    rows: list[Row]
    expected: Scores


@pytest.fixture(scope="module")
def exported(shared: Service, client: httpx.Client) -> Exported:
    tree = {"name": "rankboost", "weak_ranker": "tree", "n_rounds": 30}
    dataset_id = shared.upload(client, TEXT, **FIELDS, drop="since")
    shared.train(client, dataset_id, name="undated", algorithm=tree)
    features = ["amount", "member", "plan"]
    n = 60
    rows: list[Row] = [
        {name: VALUES[name][k * step % len(VALUES[name])] for name, step in zip(features, (1, 3, 7), strict=True)}
        for k in range(n)
    ]  # fmt: skip
    answer = client.post("/v1/models/undated/score", json={"rows": rows})

    def file(format: str) -> bytes:
        got = client.get(f"/v1/models/undated/artifact?format={format}")
        assert got.status_code == 200, got.text
        return got.content

    return Exported(file, rows, answer.json()["scores"])


def test_the_python_file_reads_as_the_service_does(exported: Exported) -> None:
    scope: dict[str, Any] = {}
    exec(exported.file("python"), scope)
    pairs = list(zip(exported.rows, exported.expected, strict=True))
    plain = [(row, score) for row, score in pairs if row["amount"] != "(5)"]
    assert [scope["score"](row) for row, _ in plain] == [score for _, score in plain]
    for value in (True, "yes", "2026-01-31", "(5)", float("inf")):
        with raises(ValueError, "amount"):
            scope["score"](exported.rows[0] | {"amount": value})


Execute = Callable[[list[str], list[tuple[Any, ...]], str], list[tuple[Any, ...]]]


@pytest.fixture(params=["sqlite", "postgres", "duckdb"])
def database(request: pytest.FixtureRequest) -> tuple[str, Execute]:
    """The name of a database, and a function that creates the table `rows` and runs a query."""
    name: str = request.param

    def execute(types: list[str], rows: list[tuple[Any, ...]], query: str) -> list[tuple[Any, ...]]:
        if name == "sqlite":
            connection: Any = sqlite3.connect(":memory:")
        elif name == "duckdb":
            connection = pytest.importorskip("duckdb").connect()
        else:
            server: PostgresServer = request.getfixturevalue("postgres")
            connection = psycopg.connect(f"host={server.folder} user=postgres dbname=postgres")
        cursor = connection.cursor()
        columns = ", ".join(
            f"{column} {kind}"
            for column, kind in zip(("n", "amount", "member", "plan"), types, strict=True)
        )
        cursor.execute(f"CREATE TEMPORARY TABLE rows ({columns})")
        marks = ", ".join(["%s" if name == "postgres" else "?"] * len(types))
        cursor.executemany(f"INSERT INTO rows VALUES ({marks})", rows)
        found = sorted(cursor.execute(query).fetchall())
        connection.close()
        return found

    return name, execute


def number(value: Value) -> float | None:
    """Return a number as a column of doubles stores it."""
    known = value is not None and not (isinstance(value, str) and not value.strip("-"))
    return float(str(value)) if known else None


def test_a_query_reads_typed_columns_as_the_service_does(
    exported: Exported, database: tuple[str, Execute]
) -> None:
    name, execute = database
    flags = {"true": True, "1": True, "false": False, "0": False}
    rows, expected = [], []
    for k, (row, score) in enumerate(zip(exported.rows, exported.expected, strict=True)):
        amount, member = row["amount"], spelled(row["member"]).strip().lower()
        if str(amount).lower() in ("unknown", "(5)") or member == "-999":
            continue
        plan = None if row["plan"] is None else spelled(row["plan"])
        if plan != "2.50":
            rows.append((k, number(amount), flags.get(member), plan))
            expected.append(score)
    types = ["INTEGER", "DOUBLE PRECISION", "BOOLEAN", "TEXT"]
    found = execute(types, rows, exported.file("sql").decode())
    np.testing.assert_allclose([row[-1] for row in found], expected, rtol=1e-9)
    assert name


def test_a_query_reads_texts_as_the_service_does_or_gives_no_score(
    exported: Exported,
) -> None:
    """SQLite imports a CSV as text, and compares and casts texts without an error."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rows (n INTEGER, amount TEXT, member TEXT, plan TEXT)")
    odd: list[Row] = [
        {"amount": amount, "member": member, "plan": "red"}
        for amount, member in (
            *(("2026-01-31", "true"), ("12 %", "true"), ("abc", "true"), ("1,5", "true")),
            *(("1", "yes"), ("1", "2026-01-31"), ("1", "2")),
        )
    ]
    rows = [*exported.rows, *odd]
    texts = [(k, *map(spelled, row.values())) for k, row in enumerate(rows)]
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", texts)
    found = [row[-1] for row in sorted(connection.execute(exported.file("sql").decode()))]
    connection.close()
    assert found[len(exported.rows) :] == [None] * len(odd)
    for row, score, expected in zip(exported.rows, found, exported.expected, strict=False):
        if row["amount"] == "(5)":
            assert score is None
        else:
            assert score == pytest.approx(expected, rel=1e-9), row


@pytest.mark.parametrize(
    ("kind", "database"),
    [
        *(("REAL", "sqlite"), ("DOUBLE", "duckdb"), ("DECIMAL(9, 2)", "duckdb")),
        *(("DOUBLE PRECISION", "postgres"), ("NUMERIC(9, 2)", "postgres")),
    ],
    indirect=["database"],
)
def test_a_query_knows_categories_by_number(
    exported: Exported, database: tuple[str, Execute], kind: str
) -> None:
    _, execute = database
    row, expected = next(
        (row, score)
        for row, score in zip(exported.rows, exported.expected, strict=True)
        if spelled(row["plan"]) in ("1", "1.0") and isinstance(row["amount"], int | float)
    )
    types = ["INTEGER", "DOUBLE PRECISION", "BOOLEAN", kind]
    member = spelled(row["member"]).strip().lower() in ("true", "1")
    known = None if row["member"] in (None, "", "unknown", -999) else member
    ((*_, score),) = execute(types, [(0, row["amount"], known, 1)], exported.file("sql").decode())
    assert score == pytest.approx(expected, rel=1e-9)


def test_onnxruntime_knows_the_codes(exported: Exported) -> None:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(exported.file("onnx"))
    flags = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
    for row, expected in zip(exported.rows, exported.expected, strict=True):
        if str(row["amount"]).lower() in ("unknown", "(5)"):
            continue
        amount, member = number(row["amount"]), spelled(row["member"]).strip().lower()
        inputs = {
            "amount": np.array([[np.nan if amount is None else amount]]),
            "member": np.array([[flags.get(member, np.nan)]]),
            "plan": np.array([[spelled(row["plan"]).strip()]], object),
        }
        (score, *_) = session.run(None, inputs)
        assert score.item() == pytest.approx(expected, rel=1e-9), row


def test_no_query_is_written_that_reads_otherwise(client: httpx.Client) -> None:
    model = client.get(MODEL).json()
    assert "'since'" in model["artifact"]["not_exportable"]["sql"]
    refused(client.get(f"{MODEL}/artifact?format=sql"), 422, "not_exportable", "since")
