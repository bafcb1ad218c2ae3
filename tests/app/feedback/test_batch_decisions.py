"""Batch scores by an alias with feedback: their decisions become a segment with the result."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from tests.app.feedback.recording import point, record, recorded, segments
from tests.app.live_service import Service
from tests.app.score_formats import CSV, FEATURES, answering, as_csv, draw
from tests.long_form import long_form, rest

ROWS = draw(60, seed=5)


@pytest.fixture(scope="module")
def model_id(shared: Service) -> Iterator[str]:
    with answering(shared) as found:
        yield found


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(autouse=True)
def before(shared: Service, client: httpx.Client, model_id: str) -> int:
    """Switch recording on; return the number of segments."""
    point(client, model_id, guarantee={"flagged": 0.3})
    record(client)
    return len(segments(shared))


def score(
    service: Service, client: httpx.Client, model: str, **params: Any
) -> list[dict[str, Any]]:
    """Score an upload; return the rows of the result."""
    body = "\r\n".join(
        f"{line};{'cid' if k == 0 else f'c{k}'}"
        for k, line in enumerate(as_csv(ROWS).decode().splitlines())
    ).encode()
    answer = client.post(
        "/v1/batch-scores",
        params={"model": model, "id": "cid", **params},
        content=body,
        headers={"Content-Type": CSV},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    batch = client.get(f"/v1/batch-scores/{answer.json()['id']}").json()
    assert batch["status"] == "ready", batch
    result = client.get(f"/v1/batch-scores/{batch['id']}/result")
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(result.content)).to_pylist()
    return rows


def test_a_batch_is_one_segment(shared: Service, client: httpx.Client, before: int) -> None:
    rows = score(shared, client, "churn@live")
    found = recorded(shared, before)
    (segment,) = segments(shared)[before:]
    assert (segment.origin, segment.rows, segment.lost) == ("batch", len(ROWS), 0)
    assert [row["decision_id"] for row in rows] == [row["decision_id"] for row in found]
    assert [row["review"] for row in rows] == [row["flag"] for row in found]
    assert [row["score"] for row in rows] == [row["score"] for row in found]
    assert [row["id"] for row in found] == [f"c{k}" for k in range(1, len(ROWS) + 1)]
    assert [row["feature.plan"] for row in found] == [row["plan"] for row in ROWS]
    assert [row["feature.member"] for row in found] == [row["member"] for row in ROWS]
    blob = client.get(f"/v1/decisions/{found[7]['decision_id']}").json()
    assert (blob["id"], blob["origin"]) == ("c8", "batch")


@pytest.mark.parametrize("params", [{"top": 5, "reasons": 2}, *rest({"top": 5})])
def test_the_best_rows_name_their_decisions(
    shared: Service, client: httpx.Client, before: int, params: dict[str, Any]
) -> None:
    rows = score(shared, client, "churn@live", **params)
    found = {row["decision_id"]: row for row in recorded(shared, before)}
    assert len(rows) == params.get("top", len(ROWS))
    assert len(found) == len(ROWS)
    for row in rows:
        assert found[row["decision_id"]]["id"] == row["id"]
        assert found[row["decision_id"]]["score"] == row["score"]


def test_datasets_are_recorded_with_the_types_of_the_model(
    shared: Service, client: httpx.Client, before: int
) -> None:
    dataset_id = client.get("/v1/datasets").json()["data"][0]["id"]
    answer = client.post("/v1/batch-scores", json={"model": "churn@live", "dataset_id": dataset_id})
    assert answer.status_code == 202, answer.text
    shared.work()
    found = recorded(shared, before)
    people = draw(160)
    assert [row["feature.age"] for row in found] == [row["age"] for row in people]
    assert [row["feature.member"] for row in found] == [row["member"] for row in people]
    assert {row["feature.since"] is None for row in found} == {True, False}
    assert all(row["id"] is None and row["id_hash"] is None for row in found)


@long_form
def test_a_batch_by_id_is_not_recorded(
    shared: Service, client: httpx.Client, before: int, model_id: str
) -> None:
    rows = score(shared, client, model_id)
    assert set(rows[0]).isdisjoint({"decision_id", "review"})
    assert recorded(shared, before) == []
    assert FEATURES[0] not in rows[0]
