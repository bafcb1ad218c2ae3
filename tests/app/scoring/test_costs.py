"""A request costs in proportion to its bytes, or it holds a permit; and no owner's model keeps the others waiting."""

from __future__ import annotations

import gzip
import io
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.models.artifacts import load_ranker
from app.scoring import cost
from app.scoring import service as scoring
from app.scoring.cost import ScoringCost, measure
from app.scoring.service import ModelCache
from tests.app.live_service import NAMES, OWNER, STRANGER, Service, table
from tests.long_form import rest
from tests.waiting import patience

ROW = {"age": 0.25, "income": -1.5, "score 1": 0.5}
JSON, CSV, NDJSON = "application/json", "text/csv", "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
MANY = 100_000


@pytest.fixture(scope="module")
def model_id(shared: Service) -> str:
    client = shared.client(shared.key())
    model_id: str = shared.train(client, shared.upload(client, table(200)))["output"]["id"]
    return model_id


@pytest.fixture
def scorer(shared: Service, model_id: str) -> httpx.Client:
    return shared.client(shared.key(scopes=["score"]))


def nulls(rows: int) -> bytes:
    """An Arrow stream of empty columns: its size does not depend on its rows."""
    sink = io.BytesIO()
    batch = pa.record_batch({name: pa.nulls(rows) for name in NAMES})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def zeros(rows: int) -> bytes:
    """An Arrow stream of compressed columns."""
    sink = io.BytesIO()
    batch = pa.record_batch({name: np.zeros(rows) for name in NAMES})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def columns(rows: int) -> bytes:
    return json.dumps({"inputs": {name: [1] * rows for name in NAMES}}).encode()


BODIES = {
    "score, JSON": ("score", JSON, "gzip", b'{"rows": [' + b"{}," * MANY + b"{}]}"),
    "score, NDJSON": ("score", NDJSON, "gzip", b'{"age":1}\n' + b"{}\n" * MANY),
    "score, CSV": ("score", CSV, "gzip", ",".join(NAMES).encode() + b"\n,," * MANY + b"\n"),
    "rank, CSV": ("rank", CSV, "gzip", ",".join(NAMES).encode() + b"\n,," * MANY + b"\n"),
    "score, nulls of Arrow": ("score", ARROW, None, nulls(MANY)),
    "score, Arrow compressed": ("score", ARROW, None, zeros(MANY)),
    "invocations, columns": ("invocations", JSON, "gzip", columns(MANY)),
    "invocations, CSV": ("invocations", CSV, "gzip", b"1,2,3\n" * MANY),
}


def test_a_few_bytes_are_not_many_rows(scorer: httpx.Client, model_id: str) -> None:
    for door, content_type, encoding, body in BODIES.values():
        headers = {"Content-Type": content_type, "Prefer": "handling=lenient"}
        sent = body if encoding is None else gzip.compress(body, 9)
        headers |= {} if encoding is None else {"Content-Encoding": encoding}
        assert len(sent) < 10_000
        answer = scorer.post(f"/v1/models/{model_id}/{door}", content=sent, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "too_many_rows")


def test_a_checked_upload_of_a_few_bytes_is_not_many_rows(shared: Service) -> None:
    body = b'{"left":1,"age":2}\n{"left":0,"age":3}\n' + b'{"left":1}\n' * MANY
    answer = shared.client(shared.key()).post(
        "/v1/datasets/validate?name=many&label=left",
        content=gzip.compress(body, 9),
        headers={"Content-Type": NDJSON, "Content-Encoding": "gzip"},
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_rows")


def test_json_is_decompressed_up_to_the_limit_of_a_body(
    shared: Service, scorer: httpx.Client, model_id: str
) -> None:
    data = [[0.5, 1.5, 2.5]] * 400
    tensor = {"name": "x", "datatype": "FP64", "shape": [400, 3]}
    bodies = {
        "invocations": {"dataframe_split": {"columns": NAMES, "data": data}},
        "infer": {"inputs": [tensor | {"data": [v for row in data for v in row]}]},
    }
    doors = {
        "invocations": f"/v1/models/{model_id}/invocations",
        "infer": f"/oip/v2/models/{model_id}/infer",
    }
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    for name, body in bodies.items():
        sent = gzip.compress(json.dumps(body).encode())
        assert scorer.post(doors[name], content=sent, headers=headers).status_code == 200
        with shared.setting(max_body_bytes=4_000):
            refused = scorer.post(doors[name], content=sent, headers=headers)
        assert (len(sent) < 4_000, refused.status_code) == (True, 413)
    texts = [b"0.5"] * 1_200
    encoded = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    of_texts = tensor | {"datatype": "BYTES", "parameters": {"binary_data_size": len(encoded)}}
    head = json.dumps({"inputs": [of_texts]}).encode()
    headers = {
        "Content-Encoding": "gzip",
        "Inference-Header-Content-Length": str(len(head)),
    }
    sent = gzip.compress(head + encoded)
    assert scorer.post(doors["infer"], content=sent, headers=headers).status_code == 200
    with shared.setting(max_body_bytes=4_000):
        assert scorer.post(doors["infer"], content=sent, headers=headers).status_code == 413


# --- what a row costs ---------------------------------------------------------------------------


def test_the_cost_of_a_row_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def score(X: np.ndarray[Any, Any]) -> None:
        nonlocal now
        assert np.isnan(X[0]).all()
        now += 0.001 + 0.0002 * len(X)

    monkeypatch.setattr("time.perf_counter", lambda: now)
    found = measure(score, [None, 3, 0])
    assert found.row == pytest.approx(0.0002)
    assert found.of(1000) == pytest.approx(0.201)


def test_a_very_dear_row_is_measured_alone() -> None:
    rows = []
    clock = iter(range(100))

    def score(X: np.ndarray[Any, Any]) -> None:
        rows.append(len(X))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.perf_counter", lambda: next(clock))
        assert measure(score, [None]).of(3) == pytest.approx(3.0)
    assert set(rows) == {1}


@pytest.fixture
def dear(shared: Service, model_id: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScoringCost]:
    """Have the model measured as one whose row takes a second, while this test runs."""
    found = ScoringCost(0.0, 1.0)
    models = shared.app.state.models
    monkeypatch.setattr(cost, "measure", lambda *_: found)
    monkeypatch.setattr("app.http.dependencies.COMPUTATION_WAIT_SECONDS", 0.01)
    models.forget(OWNER, model_id)
    yield found
    models.forget(OWNER, model_id)


DOORS: dict[str, tuple[str, str, str | None, str | bytes | None]] = {
    "one row": ("GET", "score", None, None),
    "JSON": ("POST", "score", JSON, json.dumps({"rows": [ROW]})),
    "ranking": ("POST", "rank", JSON, json.dumps({"columns": NAMES, "data": [[1, 2, 3]]})),
    "CSV": ("POST", "score", CSV, ",".join(NAMES) + "\n1,2,3\n"),
    "Arrow": ("POST", "score", ARROW, nulls(2)),
    "parts": ("POST", "explain", JSON, json.dumps({"rows": [ROW]})),
    "invocations": ("POST", "invocations", JSON, json.dumps({"instances": [ROW]})),
    "tensors": (
        "POST",
        "infer",
        JSON,
        json.dumps(
            {"inputs": [{"name": "x", "datatype": "FP64", "shape": [1, 3], "data": [1, 2, 3]}]}
        ),
    ),
}


def test_dear_rows_take_a_permit(
    shared: Service, scorer: httpx.Client, model_id: str, dear: ScoringCost
) -> None:
    for method, name, content_type, body in DOORS.values():
        path = f"/{'oip/v2' if name == 'infer' else 'v1'}/models/{model_id}/{name}"
        headers = {} if content_type is None else {"Content-Type": content_type}
        params = ROW if method == "GET" else None
        ask = partial(scorer.request, method, path, content=body, headers=headers, params=params)
        assert ask().status_code == 200
        with shared.computing():
            refused = ask()
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_computations")
        assert ask().status_code == 200


def test_cheap_rows_take_none(shared: Service, scorer: httpx.Client, model_id: str) -> None:
    with shared.computing():
        for _ in range(2):
            assert scorer.get(f"/v1/models/{model_id}/score", params=ROW).status_code == 200
            rows = scorer.post(f"/v1/models/{model_id}/score", json={"rows": [ROW] * 50})
            assert rows.status_code == 200


def test_dear_rows_hold_up_nobody(
    shared: Service,
    scorer: httpx.Client,
    model_id: str,
    dear: ScoringCost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a row is scored, the event loop answers."""
    models: ModelCache = shared.app.state.models
    monkeypatch.setattr(models.recent, "seconds", 600.0)
    served = models.find(OWNER, model_id)
    begun, go = threading.Event(), threading.Event()

    class Slow:
        def score_rows(self, X: Any) -> Any:
            begun.set()
            go.wait(patience())
            return served.ranker.score_rows(X)

    slow: Any = replace(served, ranker=Slow())  # type: ignore[arg-type]  # all that is asked of it
    remembered = models.recent.get((OWNER, model_id))
    assert remembered is not None
    models.recent.put((OWNER, model_id), remembered._replace(served=slow), time.monotonic())
    for method in ("GET", "POST"):
        begun.clear()
        go.clear()
        with ThreadPoolExecutor(1) as pool:
            given: dict[str, Any] = (
                {"params": ROW} if method == "GET" else {"json": {"rows": [ROW]}}
            )
            asked = pool.submit(scorer.request, method, f"/v1/models/{model_id}/score", **given)
            try:
                assert begun.wait(patience())
                assert shared.client().get("/health/live", timeout=patience()).status_code == 200
            finally:
                go.set()
            assert asked.result().status_code == 200


# --- loading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["/v1/models/{}/score", *rest("/oip/v2/models/{}/config")])
def test_a_model_that_is_loaded_holds_up_no_other_owner(
    shared: Service, model_id: str, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    """Fifty requests wait for one owner's model; those of another owner are answered."""
    other = shared.client(shared.key(owner=STRANGER))
    theirs = shared.train(other, shared.upload(other, table(100, seed=3)))["output"]["id"]
    models: ModelCache = shared.app.state.models
    models.forget(OWNER, model_id)
    models.forget(STRANGER, theirs)
    begun, go = threading.Event(), threading.Event()
    first: list[Path] = []

    def load(path: Path, sha256: str) -> Any:
        first[:] = first or [path]
        if path == first[0]:
            begun.set()
            go.wait(patience())
        return load_ranker(path, sha256)

    monkeypatch.setattr(scoring, "load_ranker", load)
    headers = {"Authorization": f"Bearer {shared.key(scopes=['score'])}"}

    def ask(_: int) -> int:
        with httpx.Client(
            base_url=shared.url, headers=headers, timeout=patience(), verify=False
        ) as client:
            params = ROW if door.endswith("score") else None
            return client.get(door.format(model_id), params=params).status_code

    with ThreadPoolExecutor(50) as pool:
        waiting = [pool.submit(ask, n) for n in range(50)]
        try:
            assert begun.wait(patience())
            answer = other.get(f"/v1/models/{theirs}/score", params=ROW, timeout=patience())
            assert answer.status_code == 200
            assert not any(each.done() for each in waiting)
        finally:
            go.set()
        assert {each.result() for each in waiting} == {200}


def test_strings_of_json_are_counted_without_names() -> None:
    rows = [{"a": "x", "b": 1, "c": "12:30:00"}, {"a": None, "b": "2", "c": ""}]
    assert cost.count_texts(json.dumps({"rows": rows}, separators=(",", ":")).encode()) == 4
    lists = {"columns": ["a", "b"], "data": [["x", "y"], ["z", 1]]}
    assert cost.count_texts(json.dumps(lists, separators=(",", ":")).encode()) == 5
    assert cost.count_texts(b'{"rows":[{"a":1,"b":2}]}') == 0
    assert cost.count_texts(b"{}") == 0


def test_strings_that_are_numbers_cost_more_than_numbers(
    shared: Service, scorer: httpx.Client, model_id: str
) -> None:
    """Many of them take a permit; as many numbers do not."""
    numbers = {"columns": NAMES, "data": [[1, 2, 3]] * 25_000}
    strings = {"columns": NAMES, "data": [["1", "2", "3"]] * 25_000}
    with shared.computing():
        for body, status in ((numbers, 200), (strings, 429)):
            text = json.dumps(body, separators=(",", ":"))
            headers = {"Content-Type": JSON}
            answer = scorer.post(f"/v1/models/{model_id}/score", content=text, headers=headers)
            assert answer.status_code == status
