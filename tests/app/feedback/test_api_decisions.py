"""Scores of an alias with feedback: each has a decision, which is recorded with what was scored, in every format."""

from __future__ import annotations

import errno
import io
import itertools
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from app.scoring import large_tables
from tests.app.feedback.recording import FEEDBACK, UNDER, point, record, recorded, segments
from tests.app.live_service import Service
from tests.app.score_formats import ARROW, CSV, FEATURES, NDJSON, PARQUET, answering, bodies, draw
from tests.app.score_formats import headers as headers_of

ROWS = draw(50, seed=1)
BODIES = bodies(ROWS)
SMALL = 1 << 14


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    return start(max_body_bytes=SMALL, max_score_bytes=1 << 20, max_streamed_bytes=1 << 22)


@pytest.fixture(scope="module")
def model_id(shared: Service) -> Iterator[str]:
    with answering(shared) as found:
        yield found


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(autouse=True)
def before(shared: Service, client: httpx.Client, model_id: str) -> int:
    """Switch recording on, with all features and a guarantee; return the number of segments."""
    point(client, model_id, guarantee={"flagged": 0.3})
    record(client)
    return len(segments(shared))


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is recorded."""
    since = row["since"]
    at = None if since is None else datetime.fromisoformat(since).replace(tzinfo=UTC)
    return {f"feature.{name}": row[name] for name in FEATURES} | {"feature.since": at}


def read_answer(answer: httpx.Response, accept: str) -> list[dict[str, Any]]:
    """Return the rows of an answer in one of the formats."""
    if accept == NDJSON:
        return [json.loads(line) for line in answer.text.splitlines()]
    table: pa.Table
    if accept == CSV:
        table = pa_csv.read_csv(io.BytesIO(answer.content))
    elif accept == ARROW:
        table = pa.ipc.open_stream(answer.content).read_all()
    else:
        table = pq.read_table(io.BytesIO(answer.content))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_one_row_has_a_decision_that_is_recorded_with_its_features(
    shared: Service, client: httpx.Client, before: int, model_id: str
) -> None:
    query = {"age": "41.5", "plan": "x", "member": "true", "since": "2024-02-15T12:30:00"}
    answer = client.get(f"{UNDER}/score", params={"id": "cid", "cid": "c1", "balance": "", **query})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert "ETag" not in answer.headers
    assert answer.headers["Cache-Control"] == "no-store"
    assert body["id"] == "c1"
    assert body["review"] == body["flag"]
    (found,) = recorded(shared, before)
    assert found["decision_id"] == body["decision_id"]
    assert found["id"] == "c1"
    assert found["score"] == body["score"]
    assert found["probability"] == body["probability"]
    assert found["flag"] == body["flag"] == (body["score"] >= found["threshold"])
    assert found["model_id"] == model_id == body["model_id"]
    assert found["request_id"] == answer.headers["X-Request-ID"]
    assert (found["explored"], found["keep"], found["origin"]) == (False, 1.0, "score")
    expected = {"age": 41.5, "balance": None, "plan": "x", "member": True}
    assert {name: found[f"feature.{name}"] for name in expected} == expected
    assert found["feature.since"] == datetime(2024, 2, 15, 12, 30, tzinfo=UTC)
    # The recorded probability is that of the calibration, whatever prevalence is asked.
    asked = {"reasons": "2", "probability": "true", "prevalence": "0.1"}
    other = client.get(f"{UNDER}/score", params={"balance": "", **query, **asked}).json()
    assert len(other["reasons"]) == 2
    assert other["probability"] != body["probability"]
    again = recorded(shared, before)[-1]
    assert (again["decision_id"], again["probability"]) == (
        other["decision_id"],
        body["probability"],
    )


def test_a_number_as_an_id_is_one_text_in_all_protocols(
    shared: Service, client: httpx.Client, before: int
) -> None:
    row = {"age": 41.5, "balance": 1.0, "plan": "x", "member": True, "since": "2024-02-15"}
    given = {"id": "cid", "rows": [row | {"cid": 7.0}]}
    assert client.post(f"{UNDER}/score", json=given).is_success
    types = {"plan": "BYTES", "since": "BYTES", "member": "BOOL"}
    inputs = [
        {"name": name, "shape": [1, 1], "datatype": types.get(name, "FP64"), "data": [value]}
        for name, value in {**row, "cid": 7.0}.items()
    ]
    asked = {"inputs": inputs, "parameters": {"id": "cid"}}
    answer = client.post("/oip/v2/models/churn@live/infer", json=asked)
    assert answer.is_success, answer.text
    assert [found["id"] for found in recorded(shared, before)] == ["7", "7"]


def test_an_unusual_word_is_recorded_as_missing(
    shared: Service, client: httpx.Client, before: int
) -> None:
    row: dict[str, Any] = {
        "age": 1.5,
        "balance": "",
        "plan": "never seen",
        "member": "",
        "since": "",
    }
    assert client.get(f"{UNDER}/score", params=row).status_code == 200
    (found,) = recorded(shared, before)
    empty = ("plan", "member", "since", "balance")
    assert [found[f"feature.{name}"] for name in empty] == [None] * 4


@pytest.mark.parametrize("path", ["score", "rank"])
def test_tables_have_decisions_in_every_format(
    shared: Service, client: httpx.Client, before: int, path: str
) -> None:
    accepted = itertools.cycle([CSV, NDJSON, ARROW, PARQUET])
    for (content_type, encoding, body), accept in zip(BODIES.values(), accepted, strict=False):
        headers = headers_of(content_type, encoding, Accept=accept)
        answer = client.post(f"{UNDER}/{path}", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        rows = read_answer(answer, accept)
        found = {row["decision_id"]: row for row in recorded(shared, before)}
        before += 1
        assert len(found) == len(rows) == len(ROWS)
        scored = ROWS if path == "score" else [ROWS[row["index"]] for row in rows]
        for row, sent in zip(rows, scored, strict=True):
            kept = found[row["decision_id"]]
            assert kept["score"] == pytest.approx(row["score"])
            assert kept["flag"] == row["review"]
            assert plain(sent) == {name: kept[name] for name in plain(sent)}


def test_json_rows_have_decisions_and_ids(
    shared: Service, client: httpx.Client, before: int
) -> None:
    rows = [{name: row[name] for name in FEATURES} | {"cid": k} for k, row in enumerate(ROWS)]
    answer = client.post(f"{UNDER}/score", params={"id": "cid"}, json={"rows": rows})
    assert answer.status_code == 200, answer.text
    body, found = answer.json(), recorded(shared, before)
    assert body["decision_ids"] == [row["decision_id"] for row in found]
    assert body["reviews"] == body["flags"] == [row["flag"] for row in found]
    assert [row["id"] for row in found] == [str(k) for k in range(len(ROWS))]
    assert len({row["id_hash"] for row in found}) == len(ROWS)
    top = client.post(f"{UNDER}/rank", params={"id": "cid", "top": 3}, json={"rows": rows}).json()
    again = {row["decision_id"]: row["id"] for row in recorded(shared, before + 1)}
    assert len(again) == len(ROWS)  # the rows that are not returned were scored, too
    assert [again[id_] for id_ in top["decision_ids"]] == [str(id_) for id_ in top["ids"]]


def test_large_tables_are_recorded_block_by_block(
    shared: Service, client: httpx.Client, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_tables, "BLOCK_ROWS", 37)
    rows = draw(1000, seed=2)
    content_type, _, body = bodies(rows)["csv"]
    assert len(body) > SMALL
    answer = client.post(
        f"{UNDER}/score", content=body, headers=headers_of(content_type, Accept=NDJSON)
    )
    assert answer.status_code == 200, answer.text
    made = [json.loads(line)["decision_id"] for line in answer.text.splitlines()]
    assert made == [row["decision_id"] for row in recorded(shared, before)]
    assert len(set(made)) == 1000


def test_other_protocols_are_recorded(shared: Service, client: httpx.Client, before: int) -> None:
    records = [{name: row[name] for name in FEATURES} for row in ROWS[:3]]
    for path, body in (
        (f"{UNDER}/invocations", {"dataframe_records": records}),
        (f"{UNDER}:predict", {"instances": records}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        found = recorded(shared, before)[-3:]
        assert [row["score"] for row in found] == answer.json()["predictions"]
        assert answer.json()["decision_ids"] == [row["decision_id"] for row in found]
        # Without exploration the propensity of rows that are not flagged is unknown.
        assert {(row["flag"], row["propensity"]) for row in found} <= {(True, 1.0), (False, None)}


def test_only_scores_of_the_alias_are_decisions(
    shared: Service, client: httpx.Client, before: int, model_id: str
) -> None:
    rows = {"rows": [{name: ROWS[0][name] for name in FEATURES}]}
    for ref in (model_id, "churn", "churn:1"):
        body = client.post(f"/v1/models/{ref}/score", json=rows).json()
        assert "decision_ids" not in body
    assert client.post(f"{UNDER}/explain", json=rows).status_code == 200
    # Nor is anything of a request with an error.
    good = bodies(draw(1000, seed=2))["csv"][2]
    for table in (BODIES["csv"][2] + b"what;1;x;true;\r\n", good + b"what;1;x;true;\r\n"):
        answer = client.post(f"{UNDER}/score", content=table, headers=headers_of(CSV))
        assert answer.status_code == 422
    assert client.get(f"{UNDER}/score", params={"age": "what"}).status_code == 422
    assert recorded(shared, before) == []
    now = client.get(FEEDBACK).headers["ETag"]
    assert client.delete(FEEDBACK, headers={"If-Match": now}).status_code == 204
    assert "decision_ids" not in client.post(f"{UNDER}/score", json=rows).json()
    assert recorded(shared, before) == []


def test_a_repeated_request_has_the_same_decisions_and_is_recorded_once(
    shared: Service, client: httpx.Client, before: int
) -> None:
    rows = {"rows": [{name: row[name] for name in FEATURES} for row in ROWS[:2]] * 2}
    made = []
    for key in ("one", "other"):
        for _ in range(2):
            headers = {"Idempotency-Key": key}
            body = client.post(f"{UNDER}/score", json=rows, headers=headers).json()
            made.append(body["decision_ids"])
    assert made[0] == made[1] != made[2] == made[3]
    assert len(set(made[0])) == 4  # equal rows of one request are two decisions
    assert [row["decision_id"] for row in recorded(shared, before)] == made[0] + made[2]
    # A proxy may send the same id with every request.
    headers = {"X-Request-ID": "constant"}
    without = [
        client.post(f"{UNDER}/score", json=rows, headers=headers).json()["decision_ids"]
        for _ in range(2)
    ]
    assert len(set(without[0] + without[1])) == 8


def test_explored_rows_are_reviewed_and_are_the_same_within_a_period(
    shared: Service, client: httpx.Client, before: int
) -> None:
    record(client, explore={"of": "unflagged", "rate": 0.5}, keep=0.25, features=["age"])
    many = draw(400, seed=3)
    rows = {
        "rows": [
            {name: row[name] for name in FEATURES} | {"cid": f"c{k}"}
            for k, row in enumerate(many[:100])
        ]
    }
    first = client.post(f"{UNDER}/score", params={"id": "cid"}, json=rows).json()
    again = client.post(f"{UNDER}/score", params={"id": "cid"}, json=rows).json()
    assert first["reviews"] == again["reviews"]
    explored = [r and not f for r, f in zip(first["reviews"], first["flags"], strict=True)]
    assert 0.25 < sum(explored) / first["flags"].count(False) < 0.75
    assert all(r for r, f in zip(first["reviews"], first["flags"], strict=True) if f)
    found = recorded(shared, before)
    kept = {row["decision_id"] for row in found}
    # Explored rows are always recorded, and of the others about a quarter.
    assert {id_ for id_, e in zip(first["decision_ids"], explored, strict=True) if e} <= kept
    others = [row for row in found if not row["explored"]]
    assert 0.1 < len(others) / (200 - 2 * sum(explored)) < 0.4
    for row in found:
        assert row["keep"] == (1.0 if row["explored"] else 0.25)
        assert row["propensity"] == (1.0 if row["flag"] else 0.5)
        assert [name for name in row if name.startswith("feature.")] == ["feature.age"]


def test_lenders_explore_among_the_flagged(
    shared: Service, client: httpx.Client, before: int
) -> None:
    record(client, explore={"of": "flagged", "rate": 0.5})
    rows = {"rows": [{name: row[name] for name in FEATURES} for row in draw(100, seed=4)]}
    body = client.post(f"{UNDER}/score", json=rows).json()
    found = recorded(shared, before)
    for row, review in zip(found, body["reviews"], strict=True):
        assert review == (row["explored"] or not row["flag"])
        assert row["propensity"] == (0.5 if row["flag"] else 1.0)
        assert not row["explored"] or row["flag"]
    assert any(row["explored"] for row in found)
    assert not all(row["explored"] for row in found if row["flag"])


def test_scoring_continues_when_the_disk_is_full(
    shared: Service, client: httpx.Client, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> float:
        registry = shared.context.metrics.registry
        return registry.get_sample_value("rankwright_decisions_lost_total") or 0.0

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    row: dict[str, Any] = {"age": 1.5, "balance": "", "plan": "x", "member": "", "since": ""}
    already = lost()
    with monkeypatch.context() as full:
        full.setattr(os, "posix_fallocate", refuse)
        answer = client.get(f"{UNDER}/score", params=row)
        assert answer.status_code == 200
        rows = [{name: ROWS[k][name] for name in FEATURES} for k in range(3)]
        assert client.post(f"{UNDER}/score", json={"rows": rows}).status_code == 200
    assert lost() == already + 4
    assert recorded(shared, before) == []
