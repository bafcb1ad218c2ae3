"""A refusal costs no more than its bytes: bodies, addresses and headers that are made to cost more, at two sizes."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import httpx
import pyarrow as pa
import pytest

from app.datasets import description
from app.datasets.description import Format, check_format
from app.http.forms import FormReader
from app.ingest.csv import CsvTable, Layout
from app.ingest.errors import Errors
from app.ingest.formats import ARROW, CSV, NDJSON
from app.ingest.ndjson import NdjsonTable
from app.ingest.stream import TableBytes
from app.ingest.value_columns import MissingTokens
from app.platform.errors import MAX_ERRORS, Invalid, ServiceError
from app.scoring import table_rows
from app.scoring.features import FeatureIndex
from app.scoring.json_rows import IdAndIgnored, read
from app.scoring.table_rows import Bounds, TableOptions
from tests.app.live_service import Service
from tests.long_form import one_in

TIMES = 8
MAX_RATIO = 24.0  # of the cost at `TIMES` the size: 8 where it is linear, 64 where it is quadratic
MIN_SECONDS = 2e-3  # below that a ratio says nothing
BOUNDS = Bounds(100_000, 1 << 26, 1 << 26)
NAMES = ("age", "income", "x")
FEATURES = FeatureIndex([{"name": n, "type": "numeric", "missing": True} for n in NAMES])


def ask_json(body: bytes, *, lenient: bool = False) -> None:
    read(FEATURES, body, IdAndIgnored(), BOUNDS, lenient=lenient)


def ask_query(query: bytes) -> None:
    FEATURES.row_of_query(query)


def ask_table(media_type: str, options: TableOptions | None = None) -> Callable[[bytes], None]:
    def ask(body: bytes) -> None:
        table = Format(media_type, None)
        how = table_rows.check_options(options or TableOptions(), table)
        reader, source = table_rows.read_body(body, table, FEATURES, how, None, BOUNDS)
        for _ in reader.batches(source):
            pass

    return ask


def ask_fields(query: bytes) -> None:
    description.describe(dict(pair.split("=") for pair in query.decode().split("&")))


def ask_content_type(value: bytes) -> None:
    with pytest.raises(ServiceError):
        FormReader(value.decode())
    check_format(value.decode(), None)


def read_all(table: CsvTable | NdjsonTable) -> None:
    errors = Errors()
    for _ in table.batches(errors):
        pass
    if errors.total:
        raise errors.summarise()


def read_bad_bytes(body: bytes) -> None:
    """A row of many columns with bytes that are no text in each, where all columns are wanted."""
    names = [f"c{i}" for i in range(body.count(b","))]
    layout = Layout(names, frozenset(), ",", 0, 0)
    read_all(CsvTable(TableBytes(body, None, 1 << 26), layout, MissingTokens(None)))


def read_wide_lines(body: bytes) -> None:
    read_all(NdjsonTable(TableBytes(body, None, 1 << 26), 100_000, 100_000))


def arrow_of(columns: int) -> bytes:
    table = pa.table({f"c{i}": [1.0] for i in range(columns)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def columns(names: list[Any], data: object = ()) -> bytes:
    return json.dumps({"columns": names, "data": data}).encode()


def keys(n: int) -> dict[str, int]:
    return {f"k{i}": 1 for i in range(n)}


IGNORED = TableOptions(ignore=tuple(f"i{i}" for i in range(1000)))
CASES: dict[str, tuple[Callable[[bytes], None], Callable[[int], bytes]]] = {
    "columns that come again": (ask_json, lambda n: columns(["x"] * n + ["age"] * n)),
    "columns that are unknown": (ask_json, lambda n: columns(list(keys(n)))),
    "columns that are no names": (ask_json, lambda n: columns([[["x"]]] * n)),
    "rows of wrong length": (ask_json, lambda n: columns(["x"], [[1, 2]] * n)),
    "rows of texts": (ask_json, lambda n: columns(["x"], [["a"]] * n)),
    "a row of unknown names": (ask_json, lambda n: json.dumps({"rows": [keys(n)]}).encode()),
    "a row of one name": (ask_json, lambda n: b'{"rows":[{%s}]}' % b",".join([b'"x":"a"'] * n)),
    "rows that are no objects": (ask_json, lambda n: b'{"rows":[%s]}' % b",".join([b"1"] * n)),
    "other members": (ask_json, lambda n: json.dumps(keys(n)).encode()),
    "a number of many digits": (ask_json, lambda n: b'{"rows":[{"x":%s}]}' % (b"7" * 10 * n)),
    "an exponent of many digits": (ask_json, lambda n: b'{"rows":[{"x":1e%s}]}' % (b"9" * 10 * n)),
    "a name without end": (ask_json, lambda n: columns(["a" * 10 * n])),
    "brackets": (ask_json, lambda n: b'{"rows":' + b"[" * 10 * n),
    "parameters that are unknown": (
        ask_query,
        lambda n: urlencode(keys(n)).encode(),
    ),
    "parameters that come again": (
        ask_query,
        lambda n: b"&".join([b"x=1"] * n),
    ),
    "fields that are unknown": (ask_fields, lambda n: urlencode(keys(n)).encode()),
    "parameters of a Content-Type": (ask_content_type, lambda n: b'text/csv;a="' + b";" * 4 * n),
    "a header of CSV": (ask_table(CSV), lambda n: ",".join(keys(n)).encode() + b"\n"),
    "one that is to be ignored": (
        ask_table(CSV, IGNORED),
        lambda n: ",".join(keys(n)).encode() + b"\n",
    ),
    "a header that does not end": (ask_table(CSV), lambda n: b'"' + b"\n" * 10 * n),
    "rows of CSV that are too short": (ask_table(CSV), lambda n: b"x,age\n" + b"1\n" * 10 * n),
    "bytes that are no text": (read_bad_bytes, lambda n: b",".join([b"\xff"] * n) + b"\n"),
    "quotes": (ask_table(CSV), lambda n: b"x\n" + b'"\n' * 10 * n),
    "a key more in each line": (
        ask_table(NDJSON),
        lambda n: b"".join(b'{"k%d":1}\n' % i for i in range(n)),
    ),
    "all keys in one line": (read_wide_lines, lambda n: json.dumps(keys(n)).encode()),
    "lines of one byte": (ask_table(NDJSON), lambda n: b"1\n" * n),
    "one key many times": (ask_table(NDJSON), lambda n: b"{%s}" % b",".join([b'"x":1'] * n)),
    "columns of Arrow": (ask_table(ARROW), arrow_of),
}


@pytest.mark.parametrize("name", CASES)
def test_cost_grows_as_the_bytes_do(name: str) -> None:
    ask, make = CASES[name]
    refusals: list[ServiceError] = []

    def cost(body: bytes) -> float:
        started = time.thread_time()
        try:
            ask(body)
        except ServiceError as error:
            refusals.append(error)
        return time.thread_time() - started

    small, large = make(1000), make(1000 * TIMES)
    ask_table(CSV)(b"x\n1\n")  # what is imported and compiled at the first time
    gc.disable()
    try:
        costs = [min(cost(body) for _ in range(3)) for body in (small, large)]
    finally:
        gc.enable()
    assert costs[1] <= MAX_RATIO * max(costs[0], MIN_SECONDS), costs
    for refusal in refusals:
        assert len(refusal.errors) <= MAX_ERRORS
        assert len(refusal.detail) < 10_000


def test_no_name_is_compared_with_all_others() -> None:
    compared = 0

    class Name(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Name("x") for _ in range(5000)] + [Name("age") for _ in range(5000)]
    with pytest.raises(Invalid):
        FEATURES.matrix_of_table(names, [])
    assert compared <= 4 * len(names)


def test_errors_are_made_as_long_as_somebody_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[object] = []
    plain = FeatureIndex.unknown

    def unknown(self: FeatureIndex, name: object) -> str:
        described.append(name)
        return plain(self, name)

    monkeypatch.setattr(FeatureIndex, "unknown", unknown)
    table = ask_table(CSV)
    for ask, body in (
        (ask_json, columns(list(keys(5000)))),
        (ask_json, json.dumps({"rows": [keys(5000)] * 3}).encode()),
        (table, ",".join(keys(5000)).encode() + b"\n"),
        (ask_query, urlencode(keys(5000)).encode()),
    ):
        described.clear()
        with pytest.raises(Invalid) as caught:
            ask(body)
        assert len(described) <= MAX_ERRORS
        assert len(caught.value.errors) == MAX_ERRORS
        assert caught.value.detail.startswith(f"{MAX_ERRORS} or more errors")


def test_lines_without_bytes_are_bounded_where_a_table_is_only_checked(
    service: Service, client: httpx.Client
) -> None:
    names = json.dumps(keys(1500) | {"y": 1}).encode()
    body = names + b"\n{}" * (service.settings.max_score_bytes // 8 // 1501 + 1)
    answer = client.post(
        "/v1/datasets/validate?label=y", content=body, headers={"Content-Type": NDJSON}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "too_large")
    assert "rows × columns" in answer.json()["detail"]


def test_answers_to_requests_that_have_too_much_to_say(client: httpx.Client) -> None:
    """Few bytes come back, whatever goes in; nobody reads more than a hundred errors."""
    many, words = keys(20_000), ["bad"] * 20_000
    job = {"dataset_id": "ds_x", "algorithm": {"name": "rankboost"}}
    asked: list[tuple[str, Any, int]] = [
        ("/v1/jobs", many, 422),
        ("/v1/jobs", job | many, 422),
        ("/v1/jobs", job | {"algorithm": {"name": "rankboost"} | many}, 422),
        ("/v1/jobs", job | {"tags": many}, 422),
        ("/v1/jobs", job | {"search": {"method": "grid", "space": many}}, 422),
        ("/v1/jobs", job | {"name": "a" * 1_000_000}, 422),
        ("/v1/jobs", job | {"a" * 1_000_000: 1}, 422),
        ("/v1/jobs", job | {"algorithm": {"name": "rankboost", "a" * 1_000_000: 1}}, 422),
        ("/v1/jobs", keys(100_000), 413),
        ("/v1/keys", {"name": "n", "scopes": words}, 422),
        ("/v1/keys", {"name": "n", "scopes": words * 2}, 413),
        ("/v1/evaluations", {"model": "m", "dataset_id": "ds_x", "windows": words}, 422),
        ("/v1/comparisons", {"models": words, "dataset_id": "ds_x"}, 422),
        ("/v1/batch-scores", {"model": "m", "dataset_id": "ds_x", "keep": words}, 422),
        ("/v1/batch-scores", {"model": "m", "dataset_id": "ds_x"} | many, 422),
        ("/v1/batch-scores", {"model": "m", "dataset_id": "ds_x", "keep": words * 2}, 413),
    ]
    for path, body, status in asked:
        answer = client.post(path, json=body)
        about = (path, str(body)[:60], answer.text[:300])
        assert answer.status_code == status, about
        assert len(answer.json().get("errors", [])) <= MAX_ERRORS, about
        assert len(answer.content) <= 16_000, about


def test_headers_that_have_too_much_to_say(client: httpx.Client) -> None:
    sixty = 60_000
    for name, value in {
        "Accept": ",".join(["a/b;q=0"] * (sixty // 8)),
        "Prefer": ",".join(["handling"] * (sixty // 9)),
        "If-None-Match": ",".join(['"a"'] * (sixty // 4)),
        "Range": "bytes=" + "0-1," * (sixty // 4),
        "Last-Event-ID": "9" * sixty,
        "Idempotency-Key": "k" * sixty,
        "Authorization": "Bearer " + "k" * sixty,
    }.items():
        answer = client.get("/v1/models", headers={name: value})
        assert answer.status_code in (200, 401, 406, 422), (name, answer.text)
    for method, path in (("PUT", "/v1/datasets/ds_x/pairs"), ("POST", "/v1/datasets?label=y")):
        for start in ("text/csv", "multipart/form-data"):
            content_type = f'{start};boundary=x;a="' + ";" * sixty
            headers = {"Content-Type": content_type}
            answer = client.request(method, path, content=b"x\n", headers=headers)
            assert answer.status_code in (404, 415), (method, start, answer.text)
            assert len(answer.content) < 2000


LONG = "x" * 200_000
JOB = {"dataset_id": "ds_x", "algorithm": {"name": "rankboost"}}
MAX_REFUSAL = 4_000
"""Bytes of a refusal of one value, however long the value is."""


def algorithm(**parameters: Any) -> dict[str, Any]:
    return JOB | {"algorithm": {"name": "rankboost"} | parameters}


@pytest.mark.parametrize(
    "value",
    one_in(5, [LONG, [LONG], [[LONG] * 3], {LONG: 1}, {"low": LONG}, 10**4000]),
    ids=["text", "list", "lists", "name", "range", "number"],
)
def test_a_long_value_is_not_repeated(client: httpx.Client, value: Any) -> None:
    """At each kind of position of a body."""
    asked: list[tuple[str, str, Any]] = [
        ("POST", "/v1/jobs", value),
        ("POST", "/v1/jobs", JOB | {"dataset_id": value}),
        ("POST", "/v1/jobs", JOB | {"algorithm": value}),
        ("POST", "/v1/jobs", JOB | {"algorithm": {"name": value}}),
        ("POST", "/v1/jobs", algorithm(n_rounds=value)),
        ("POST", "/v1/jobs", algorithm(weak_ranker=value)),
        ("POST", "/v1/jobs", algorithm(random_state=value)),
        ("POST", "/v1/jobs", JOB | {"name": value}),
        ("POST", "/v1/jobs", JOB | {"timeout_seconds": value}),
        ("POST", "/v1/jobs", JOB | {"tags": {"a": [value]}}),
        ("POST", "/v1/jobs", JOB | {"search": {"method": value}}),
        ("POST", "/v1/jobs", JOB | {"search": {"method": "grid", "space": {"n_rounds": [value]}}}),
        ("POST", "/v1/jobs/validate", algorithm(n_rounds=value)),
        ("POST", "/v1/keys", {"name": "n", "scopes": value}),
        ("POST", "/v1/keys", {"name": "n", "scopes": ["read", value]}),
        ("POST", "/v1/evaluations", {"model": value, "dataset_id": "ds_x"}),
        ("POST", "/v1/comparisons", {"models": ["a", value], "dataset_id": "ds_x"}),
        ("PUT", "/v1/models/m/aliases/a", {"version": value}),
    ]
    for method, path, body in asked:
        answer = client.request(method, path, json=body)
        about = (path, str(body)[:100], answer.text[:300])
        assert 400 <= answer.status_code < 500, about
        assert len(answer.content) <= MAX_REFUSAL, about


def test_a_long_name_is_not_repeated(client: httpx.Client) -> None:
    name = LONG[:50_000]
    for path in (f"/{name}", f"/v1/models/{name}", f"/v1/jobs/{name}", f"/v1/models/{name}/score"):
        for asked in (
            path,
            f"/v1/jobs?{name}=1",
            f"/v1/jobs?limit={name}",
            f"/v1/jobs?after={name}",
        ):
            answer = client.get(asked)
            assert 400 <= answer.status_code < 500, asked[:60]
            assert len(answer.content) <= MAX_REFUSAL, (asked[:60], answer.text[:300])
    for body in (JOB | {LONG: 1}, algorithm(**{LONG: 1}), JOB | {"tags": {LONG: 1}}, {LONG: LONG}):
        answer = client.post("/v1/jobs", json=body)
        assert answer.status_code == 422
        assert len(answer.content) <= MAX_REFUSAL, answer.text[:300]


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        ("text/csv", f"{LONG},y\n1,2\n"),
        ("text/csv", f"x,y\n1,2,{LONG}\n"),
        ("text/csv", f"x,y\n{LONG},\xff\n"),
        (NDJSON, f'{{"{LONG}":1}}\n'),
        (NDJSON, f'{{"x":{{"{LONG}":1}},"y":1}}\n'),
        (NDJSON, LONG),
        (LONG[:50_000], "x,y\n"),
    ],
)
def test_a_long_value_of_a_table_is_not_repeated(
    client: httpx.Client, media_type: str, text: str
) -> None:
    answer = client.post(
        "/v1/datasets/validate?label=y",
        content=text.encode("latin-1"),
        headers={"Content-Type": media_type},
    )
    assert 400 <= answer.status_code < 500, answer.text[:300]
    assert len(answer.content) <= MAX_REFUSAL, answer.text[:300]


def test_what_programs_read_is_whole_or_absent(client: httpx.Client) -> None:
    """Half a pointer points elsewhere, and half a path is no reference."""
    short, long = "a" * 500, "a" * 5000
    for name, is_there in ((short, True), (long, False)):
        (error,) = client.post("/v1/jobs", json=JOB | {name: 1}).json()["errors"]
        assert error.get("pointer") == (f"/{name}" if is_there else None)
        assert error["detail"]
        problem = client.get(f"/{name}").json()
        assert problem["instance"] == (f"/{name}" if is_there else None)
        (error,) = client.get(f"/v1/jobs?{name}=1").json()["errors"]
        assert error.get("parameter") == (name if is_there else None)


def test_many_errors_with_long_places_are_fewer(client: httpx.Client) -> None:
    body = JOB | {f"{i:04d}{'a' * 900}": 1 for i in range(100)}
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 422
    errors = answer.json()["errors"]
    assert 5 <= len(errors) < 100
    assert len(answer.content) <= 16_000
    assert all(error["pointer"].removeprefix("/") in body for error in errors)
