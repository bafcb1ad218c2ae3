"""Ids of rows: they go in with the rows and come back with the scores, at every door; other fields can be ignored."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.scoring import large_tables
from tests.app.live_service import NAMES, Service, table
from tests.app.refusals import refused

ROWS = [[0.25, -1.5, 0.5], [1.0, 0.0, None], [-2.0, 0.75, -0.125]]
KEYS = ["c1", "=c2", "é 3"]
OBJECTS = [
    {"customer": key, "left": "yes", **dict(zip(NAMES, row, strict=True))}
    for key, row in zip(KEYS, ROWS, strict=True)
]
LISTS: dict[str, Any] = {
    "columns": ["left", *NAMES, "customer"],
    "data": [["yes", *row, key] for key, row in zip(KEYS, ROWS, strict=True)],
}
ARROW, NDJSON = "application/vnd.apache.arrow.stream", "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
QUERY = "?id=customer&ignore=left"


@pytest.fixture(scope="module")
def model_id(shared: Service) -> str:
    client = shared.client(shared.key())
    model_id: str = shared.train(client, shared.upload(client, table(200)))["output"]["id"]
    return model_id


@pytest.fixture
def scorer(shared: Service, model_id: str) -> httpx.Client:
    return shared.client(shared.key(scopes=["score"]))


@pytest.fixture
def path(model_id: str) -> str:
    return f"/v1/models/{model_id}"


@pytest.fixture
def plain(scorer: httpx.Client, path: str) -> dict[str, Any]:
    """The answer without ids."""
    found: dict[str, Any] = scorer.post(
        f"{path}/score", json={"columns": NAMES, "data": ROWS}
    ).json()
    return found


def as_csv() -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(OBJECTS[0]))
    writer.writeheader()
    writer.writerows(OBJECTS)
    return text.getvalue().encode()


def as_arrow(keys: Any = KEYS) -> bytes:
    batch = pa.table(
        {"customer": keys, "left": ["yes"] * 3}
        | {
            name: pa.array(values)
            for name, values in zip(NAMES, zip(*ROWS, strict=True), strict=True)
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_table(batch, max_chunksize=2)
    return sink.getvalue()


BODIES: dict[str, tuple[str, bytes]] = {
    "objects": ("application/json", json.dumps({"rows": OBJECTS}).encode()),
    "lists": ("application/json", json.dumps(LISTS).encode()),
    "CSV": ("text/csv", as_csv()),
    "NDJSON": (NDJSON, "\n".join(map(json.dumps, OBJECTS)).encode()),
    "Arrow": (ARROW, as_arrow()),
}


def test_ids_come_back_with_scores(scorer: httpx.Client, path: str, plain: dict[str, Any]) -> None:
    for kind, body in BODIES.values():
        headers = {"Content-Type": kind}
        found = scorer.post(f"{path}/score{QUERY}", content=body, headers=headers).json()
        assert found == plain | {"ids": KEYS}
        ranked = scorer.post(f"{path}/rank{QUERY}&top=2", content=body, headers=headers).json()
        assert ranked["ids"] == [KEYS[i] for i in ranked["indices"]]


def test_the_body_may_name_them(scorer: httpx.Client, path: str, plain: dict[str, Any]) -> None:
    for form in ({"rows": OBJECTS}, LISTS):
        for ignore in (["left"], ["*"], ["left", "another"]):
            body = {**form, "id": "customer", "ignore": ignore}
            assert scorer.post(f"{path}/score", json=body).json() == plain | {"ids": KEYS}
        ignored = scorer.post(f"{path}/score", json={**form, "ignore": ["*"]})
        assert ignored.json() == plain
        parts = scorer.post(
            f"{path}/explain", json={**form, "id": "customer", "ignore": ["*"]}
        ).json()
        assert [each["id"] for each in parts["explanations"]] == KEYS
        assert [each["score"] for each in parts["explanations"]] == plain["scores"]


def test_tables_have_them_as_a_column(
    scorer: httpx.Client, path: str, plain: dict[str, Any]
) -> None:
    for name in ("objects", "CSV"):
        for media_type in ("text/csv", NDJSON, ARROW, PARQUET):
            kind, body = BODIES[name]
            headers = {"Content-Type": kind, "Accept": media_type}
            answer = scorer.post(f"{path}/score{QUERY}", content=body, headers=headers)
            if media_type == "text/csv":
                rows = list(csv.DictReader(io.StringIO(answer.text)))
                assert [row["id"] for row in rows] == KEYS
                continue
            if media_type == NDJSON:
                rows = [json.loads(line) for line in answer.text.splitlines()]
            elif media_type == ARROW:
                rows = pa.ipc.open_stream(answer.content).read_all().to_pylist()
            else:
                rows = pq.read_table(io.BytesIO(answer.content)).to_pylist()
            assert [row["id"] for row in rows] == KEYS
            assert [row["score"] for row in rows] == plain["scores"]


def test_ids_keep_their_values(scorer: httpx.Client, path: str) -> None:
    for keys in ([7, 2**53 + 1, -1], [1.5, 2.5, None], [True, False, None]):
        rows = [row | {"customer": key} for row, key in zip(OBJECTS, keys, strict=True)]
        assert scorer.post(f"{path}/score{QUERY}", json={"rows": rows}).json()["ids"] == keys
        sent = as_arrow(keys)
        headers = {"Content-Type": ARROW}
        assert (
            scorer.post(f"{path}/score{QUERY}", content=sent, headers=headers).json()["ids"] == keys
        )


@pytest.mark.parametrize("number", [2**64 - 1, 2**64, -(2**63) - 1, 10**29 + 1])
def test_whole_numbers_of_any_size_are_different_ids(
    scorer: httpx.Client, path: str, number: int
) -> None:
    """Of more than 64 bits, they come back as the text of their digits."""
    keys = [number, number + 1, 7]
    expected = keys if max(keys) < 2**64 and min(keys) >= 0 else list(map(str, keys))
    rows = [row | {"customer": key} for row, key in zip(OBJECTS, keys, strict=True)]
    lists = {**LISTS, "data": [[*row[:-1], k] for row, k in zip(LISTS["data"], keys, strict=True)]}
    split = {"dataframe_split": {"columns": lists["columns"], "data": lists["data"]}}
    for address, body in (
        ("score", {"rows": rows}),
        ("score", lists),
        ("invocations", {"dataframe_records": rows}),
        ("invocations", split),
    ):
        query = QUERY if address == "score" else "?id=customer"
        found = scorer.post(f"{path}/{address}{query}", json=body).json()["ids"]
        assert found == expected, address
    lines = "\n".join(map(json.dumps, rows))
    sent = {"Content-Type": NDJSON}
    found = scorer.post(f"{path}/score{QUERY}", content=lines, headers=sent).json()["ids"]
    assert found == list(map(str, keys))


def test_a_key_that_occurs_twice_is_refused(scorer: httpx.Client, path: str) -> None:
    row = json.dumps(OBJECTS[0])
    doubled = row[:-1] + f', "{NAMES[0]}": 1}}'
    for address, body in (
        ("score", '{"rows": [%s]}'),
        ("score", '{"rows": [{}], "rows": [%s]}'),
        ("invocations", '{"instances": [%s]}'),
        ("invocations", '{"dataframe_records": [%s]}'),
    ):
        sent = {"Content-Type": "application/json"}
        query = QUERY if address == "score" else "?id=customer"
        answer = scorer.post(f"{path}/{address}{query}", content=body % doubled, headers=sent)
        assert answer.status_code == 422, body
        assert answer.json()["code"] == "duplicate_column"


def test_a_feature_may_be_the_id(scorer: httpx.Client, path: str, plain: dict[str, Any]) -> None:
    rows = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    for body in ({"rows": rows}, {"columns": NAMES, "data": ROWS}):
        found = scorer.post(f"{path}/score?id=age", json=body).json()
        assert found == plain | {"ids": [row[0] for row in ROWS]}


def test_one_row_by_query(scorer: httpx.Client, path: str) -> None:
    features: dict[str, Any] = dict(zip(NAMES, ROWS[0], strict=True))
    bare = scorer.get(f"{path}/score", params=features)
    asked = {"id": "customer", "customer": "é 3", "left": "yes", "ignore": "left"}
    for _ in range(2):
        found = scorer.get(f"{path}/score", params=features | asked)
        assert found.json() == {"id": "é 3", **bare.json()}
    assert found.headers["ETag"] != bare.headers["ETag"]
    reasoned = scorer.get(f"{path}/score", params=features | asked | {"interval": "true"})
    assert reasoned.json()["id"] == "é 3"
    other = {"ignore": "*", "more": "1"}
    assert scorer.get(f"{path}/score", params=features | other).json() == bare.json()
    for wrong in ({"id": "customer"}, {"id": ""}, {"ignore": "age"}, {"left": "yes"}):
        assert scorer.get(f"{path}/score", params=features | wrong).status_code == 422


def test_batches_have_them_as_the_first_column(
    shared: Service, model_id: str, plain: dict[str, Any]
) -> None:
    client = shared.client(shared.key())
    for name, top in (("CSV", 2), ("Arrow", None)):
        kind, body = BODIES[name]
        asked: dict[str, Any] = {"model": model_id, "id": "customer", "keep": "left"}
        asked |= {} if top is None else {"top": top}
        headers = {"Content-Type": kind}
        sent = client.post("/v1/batch-scores", params=asked, content=body, headers=headers)
        shared.work()
        found = client.get(f"{sent.headers['Location']}/result")
        rows = pq.read_table(io.BytesIO(found.content)).to_pylist()
        assert [*rows[0]][:3] == ["id", "left", "row_number"]
        expected = sorted(zip(plain["scores"], KEYS, strict=True), reverse=True)[:top]
        assert sorted(((row["score"], row["id"]) for row in rows), reverse=True) == expected


def test_batches_of_datasets_have_them(
    shared: Service, scorer: httpx.Client, model_id: str
) -> None:
    client = shared.client(shared.key())
    lines = [",".join([*NAMES, "customer", "left"])]
    lines += [f"{i},0,1,c{i % 7},{'ny'[i % 2]}" for i in range(40)]
    text = "\n".join(lines) + "\n"
    dataset_id = shared.upload(client, text, positive="y")
    asked = {"model": model_id, "dataset_id": dataset_id, "id": "customer"}
    sent = client.post("/v1/batch-scores", json=asked)
    shared.work()
    found = client.get(f"{sent.headers['Location']}/result", params={"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(found.text)))
    assert [row["id"] for row in rows] == [f"c{i % 7}" for i in range(40)]
    assert scorer.post("/v1/batch-scores", json=asked).status_code == 403
    for wrong in ({"id": "nobody"}, {"keep": ["customer"]}, {"id": ""}, {"id": 7}):
        assert client.post("/v1/batch-scores", json=asked | wrong).status_code == 422


def test_ids_that_a_batch_cannot_have(scorer: httpx.Client, model_id: str) -> None:
    for wrong in ({"id": ""}, {"id": "left", "keep": "left"}, {"id": "customer", "keep": "id"}):
        body, headers = as_csv(), {"Content-Type": "text/csv"}
        for door in ("", "/validate"):
            answer = scorer.post(
                f"/v1/batch-scores{door}",
                params={"model": model_id, "ignore": "*", **wrong},
                content=body,
                headers=headers,
            )
            assert answer.status_code == 422


@pytest.mark.parametrize("rows", [0, 50])
def test_large_tables_carry_them(
    shared: Service, scorer: httpx.Client, path: str, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(large_tables, "BLOCK_ROWS", 7)
    lines = [",".join([*NAMES, "customer"]), *(f"{i},0,1,c{i}" for i in range(rows))]
    body = ("\n".join(lines) + "\n").encode()
    with shared.setting(max_body_bytes=len(body) - 1):
        for media_type in ("application/json", NDJSON, PARQUET):
            headers = {"Content-Type": "text/csv", "Accept": media_type}
            answer = scorer.post(f"{path}/score?id=customer", content=body, headers=headers)
            if media_type == PARQUET:
                ids = pq.read_table(io.BytesIO(answer.content)).column("id").to_pylist()
            elif media_type == NDJSON:
                ids = [json.loads(line)["id"] for line in answer.text.splitlines()]
            else:
                ids = answer.json()["ids"]
            assert ids == [f"c{i}" for i in range(rows)]


INVOCATIONS: dict[str, dict[str, Any]] = {
    "dataframe_split": {"dataframe_split": LISTS},
    "dataframe_records": {"dataframe_records": OBJECTS},
    "instances": {"instances": OBJECTS},
    "inputs": {"inputs": {name: [row[name] for row in OBJECTS] for name in OBJECTS[0]}},
}


def test_containers_paths_carry_them(
    scorer: httpx.Client, path: str, plain: dict[str, Any]
) -> None:
    for body in INVOCATIONS.values():
        expected = {"predictions": plain["scores"], "ids": KEYS}
        assert scorer.post(f"{path}/invocations?id=customer", json=body).json() == expected
        named = scorer.post(f"{path}/invocations", json={**body, "id": "customer"})
        assert named.json() == expected
        headers = {"Accept": "text/csv"}
        lines = scorer.post(f"{path}/invocations?id=customer", json=body, headers=headers).text
        assert [row[0] for row in csv.reader(io.StringIO(lines))] == KEYS
        twice = scorer.post(f"{path}/invocations?id=customer", json={**body, "id": "customer"})
        assert twice.status_code == 422
        assert scorer.post(f"{path}/invocations?id=nobody", json=body).status_code == 422


def test_a_csv_at_invocations_carries_them(
    scorer: httpx.Client, path: str, plain: dict[str, Any]
) -> None:
    headers = {"Content-Type": "text/csv"}
    answer = scorer.post(f"{path}/invocations?id=customer", content=as_csv(), headers=headers)
    assert answer.json() == {"predictions": plain["scores"], "ids": KEYS}


def tensors(values: list[Any], datatype: str = "BYTES") -> dict[str, Any]:
    flat = [value for row in ROWS for value in row]
    return {
        "inputs": [
            {"name": "customer", "datatype": datatype, "shape": [3], "data": values},
            {"name": "x", "datatype": "FP64", "shape": [3, 3], "data": flat},
        ]
    }


def test_tensors_carry_them(scorer: httpx.Client, model_id: str, plain: dict[str, Any]) -> None:
    door = f"/oip/v2/models/{model_id}/infer"
    for asked, query in (({"parameters": {"id": "customer"}}, ""), ({}, "?id=customer")):
        for values, datatype in ((KEYS, "BYTES"), ([7, 8, 9], "INT64")):
            body = tensors(values, datatype) | asked
            outputs = scorer.post(door + query, json=body).json()["outputs"]
            assert outputs[0]["data"] == plain["scores"]
            assert outputs[-1] == {"name": "id", "datatype": datatype, "shape": [3], "data": values}
    encoded = b"".join(len(k.encode()).to_bytes(4, "little") + k.encode() for k in KEYS)
    described = tensors([])["inputs"]
    described[0] = {
        **{k: v for k, v in described[0].items() if k != "data"},
        "parameters": {"binary_data_size": len(encoded)},
    }
    head = json.dumps(
        {"inputs": described, "parameters": {"id": "customer", "binary_data_output": True}}
    ).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    answer = scorer.post(door, content=head + encoded, headers=headers)
    assert answer.content.endswith(encoded)
    numbers = np.array([3, 2, 1], "<i4").tobytes()
    described[0] |= {"datatype": "INT32", "parameters": {"binary_data_size": len(numbers)}}
    head = json.dumps({"inputs": described, "parameters": {"id": "customer"}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    answer = scorer.post(door, content=head + numbers, headers=headers)
    assert answer.json()["outputs"][-1]["data"] == [3, 2, 1]


def test_bad_ids_of_tensors(scorer: httpx.Client, model_id: str) -> None:
    for body in (
        tensors(KEYS) | {"parameters": {"id": 7}},
        tensors(KEYS) | {"parameters": {"id": "nobody"}},
        tensors(KEYS) | {"parameters": {"id": "x"}},
        tensors([["a"], ["b"], ["c"]]) | {"parameters": {"id": "customer"}},
        tensors([{}, {}, {}]) | {"parameters": {"id": "customer"}},
        {"inputs": tensors(KEYS)["inputs"][:1], "parameters": {"id": "customer"}},
    ):
        answer = scorer.post(f"/oip/v2/models/{model_id}/infer", json=body)
        if body["inputs"][0]["data"] == [["a"], ["b"], ["c"]]:  # one value a row is a value
            assert answer.json()["outputs"][-1]["data"] == ["a", "b", "c"]
            continue
        assert answer.status_code == 422


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such field": ({"rows": OBJECTS, "id": "nobody"}, ""),
    "no such column": ({**LISTS, "id": "nobody"}, ""),
    "a list as id": ({"rows": [OBJECTS[0] | {"customer": []}], "id": "customer"}, "?ignore=*"),
    "an object in a list": (
        {"columns": [*NAMES, "customer"], "data": [[1, 2, 3, {}]], "id": "customer"},
        "",
    ),
    "a name that is none": ({"rows": OBJECTS, "id": 7}, ""),
    "an empty name": ({"rows": OBJECTS, "id": ""}, ""),
    "named twice": ({"rows": OBJECTS, "id": "customer"}, QUERY),
    "ignored twice": ({"rows": OBJECTS, "ignore": ["left"]}, QUERY),
    "ignore as text": ({"rows": OBJECTS, "ignore": "left"}, ""),
    "ignore of numbers": ({"rows": OBJECTS, "ignore": [1]}, ""),
    "ignore of null": ({"rows": OBJECTS, "ignore": 7}, ""),
    "an ignored feature": ({"rows": OBJECTS, "ignore": ["age"]}, "?id=customer"),
    "a short row": ({"columns": LISTS["columns"], "data": [[1]], "id": "customer"}, ""),
    "a row that is none": ({"rows": [7], "id": "customer"}, ""),
    "an unknown field": ({"rows": OBJECTS, "id": "customer"}, ""),
    "more beside": ({"rows": OBJECTS, "id": "customer", "more": 1}, ""),
}


def test_bad_ids_are_refused(scorer: httpx.Client, path: str) -> None:
    for body, query in BAD.values():
        for door in ("score", "explain"):
            assert scorer.post(f"{path}/{door}{query}", json=body).status_code == 422


def test_a_table_without_the_column(scorer: httpx.Client, path: str) -> None:
    headers = {"Content-Type": "text/csv"}
    answer = scorer.post(f"{path}/score?id=nobody&ignore=*", content=as_csv(), headers=headers)
    refused(answer, 422, "unknown_column")
