"""A request whose values of a feature are all unknown categories is answered with a warning, by every protocol."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.app.live_service import Service
from tests.long_form import rest

NDJSON = "application/x-ndjson"
MODEL = "/v1/models/plans"


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    client = shared.client(shared.key())
    rows = "".join(f"{i % 9},{'uvw'[i % 3]},{int(i % 9 + i % 2 > 5)}\n" for i in range(120))
    dataset_id = shared.upload(client, f"a,plan,y\n{rows}", label="y", positive="1")
    shared.train(client, dataset_id, name="plans")
    return client


def warned(given: Any) -> list[str]:
    return [each["feature"] for each in given or ()]


@pytest.mark.parametrize(("plan", "expected"), [("nonsense", ["plan"]), *rest(("u", []))])
def test_every_protocol_warns(
    shared: Service, client: httpx.Client, plan: str, expected: list[str]
) -> None:
    rows = [{"a": 1, "plan": plan}, {"a": 2, "plan": None}]
    csv = f"a,plan\n1,{plan}\n2,\n"
    inputs = [
        {"name": "a", "datatype": "FP64", "shape": [2], "data": [1, 2]},
        {"name": "plan", "datatype": "BYTES", "shape": [2], "data": [plan, None]},
    ]
    table: dict[str, Any] = {"content": csv, "headers": {"Content-Type": "text/csv"}}
    asks_lines: dict[str, Any] = {
        "content": csv,
        "headers": {"Content-Type": "text/csv", "Accept": NDJSON},
    }
    requests: list[tuple[str, dict[str, Any], bool]] = [
        (f"{MODEL}/score", {"json": {"rows": rows}}, True),
        (f"{MODEL}/score", table, True),
        (f"{MODEL}/score", asks_lines, False),
        (f"{MODEL}/rank", {"json": {"rows": rows}}, True),
        (f"{MODEL}/invocations", {"json": {"dataframe_records": rows}}, True),
        (f"{MODEL}/invocations", table, True),
        (f"{MODEL}:predict", {"json": {"instances": rows}}, True),
        ("/oip/v2/models/plans/infer", {"json": {"inputs": inputs}}, False),
    ]
    for path, sent, in_body in requests:
        got = client.post(path, **sent)
        assert got.status_code == 200, got.text
        assert warned(json.loads(got.headers.get("X-Warnings", "[]"))) == expected, path
        if in_body:
            assert warned(got.json().get("warnings")) == expected, path
    with shared.setting(max_body_bytes=1):
        got = client.post(f"{MODEL}/score", **table)
    assert warned(got.json().get("warnings")) == expected
    assert ("X-Warnings" in got.headers) == bool(expected)

    made = client.post("/v1/batch-scores?model=plans", **table).json()
    assert made["warnings"] is None
    shared.work()
    ended = client.get(f"/v1/batch-scores/{made['id']}").json()
    assert warned(ended["warnings"]) == expected
    assert ended["warnings"] is not None
