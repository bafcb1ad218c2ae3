"""POST /v1/decisions: formats, what is stored, errors of each row, repetitions, and access."""

from __future__ import annotations

import io
import json
import threading
import time
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rankwright
from sqlalchemy import func, select

from app.feedback import backfill
from app.feedback.segments import hash_ids
from app.jobs import execution, queue
from app.platform.errors import Overtaken
from app.platform.ids import is_id
from app.platform.tables import DecisionSegment, JobUpload
from tests.app.feedback.recording import point, record
from tests.app.feedback.test_upkeep import settle
from tests.app.live_service import OWNER, STRANGER, Service
from tests.long_form import rest
from tests.raising import mentions
from tests.sentences import Sentences

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
URL = "/v1/decisions"
LIVE = {"model": "churn@live"}
NAMES = ("age", "income", "score 1")


@pytest.fixture
def live(service: Service) -> Service:
    """A service with an alias that records decisions."""
    client = service.client(service.key())
    point(client, service.train(client, service.upload(client))["output"]["id"])
    record(client, days=3650)
    return service


def table(n: int = 3, **more: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        "id": [f"c{i}" for i in range(n)],
        "at": [f"2025-03-{i + 1:02}T12:00:00Z" for i in range(n)],
        "score": [0.5 * i for i in range(n)],
        "age": [30.0 + i for i in range(n)],
        "income": [1.0 + i for i in range(n)],
        "score 1": [None, *[2.0] * (n - 1)],
    }
    return found | more


def as_csv(columns: dict[str, list[Any]]) -> bytes:
    lines = [",".join(columns)]
    lines += [
        ",".join("" if value is None else str(value) for value in row)
        for row in zip(*columns.values(), strict=True)
    ]
    return "\n".join(lines).encode()


def as_parquet(columns: dict[str, list[Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def send(
    client: httpx.Client,
    body: bytes,
    kind: str = CSV,
    path: str = URL,
    headers: dict[str, str] | None = None,
    **params: Any,
) -> httpx.Response:
    return client.post(
        path,
        params=LIVE | params,
        content=body,
        headers={"Content-Type": kind} | (headers or {}),
    )


def done(service: Service, client: httpx.Client, body: bytes, **more: Any) -> dict[str, Any]:
    """Send decisions and run the job; returns the job."""
    answer = send(client, body, **more)
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"/v1/jobs/{answer.json()['id']}"
    service.work()
    job: dict[str, Any] = client.get(answer.headers["Location"]).json()
    return job


def stored(service: Service) -> list[dict[str, Any]]:
    """Return the stored decisions, in the order of time."""
    found: list[dict[str, Any]] = []
    with service.context.db.read() as session:
        rows = session.scalars(select(DecisionSegment).order_by(DecisionSegment.first_at)).all()
        for row in rows:
            part = pq.read_table(service.context.fetch(row.segment_key)).to_pylist()
            assert row.rows == len(part) == row.last_sequence - row.first_sequence + 1
            assert row.first_at == min(each["at"] for each in part)
            assert row.last_at == max(each["at"] for each in part)
            assert (row.owner, row.name, row.alias) == (OWNER, "churn", "live")
            assert (row.origin, row.lost) == ("backfill", 0)
            found += part
    return sorted(found, key=lambda each: each["at"])


def uploads(service: Service) -> int:
    with service.context.db.read() as session:
        return session.scalar(select(func.count()).select_from(JobUpload)) or 0


def ndjson(columns: dict[str, list[Any]]) -> bytes:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows).encode()


def json_array(columns: dict[str, list[Any]]) -> bytes:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps(rows).encode()


@pytest.mark.parametrize(
    ("kind", "write"),
    [
        (CSV, as_csv),
        *rest(
            ("application/x-ndjson", ndjson),
            ("application/json", json_array),
            (PARQUET, as_parquet),
        ),
    ],
)
def test_decisions_are_stored_as_the_alias_would_have_made_them(
    live: Service, kind: str, write: Any
) -> None:
    client = live.client(live.key())
    columns = table(flag=[True, False, None], threshold=[None, None, 0.75], probability=[0.1] * 3)
    job = done(live, client, write(columns), kind=kind)
    assert (job["kind"], job["state"], job["output"]) == ("backfill", "succeeded", None)
    first, second, third = stored(live)
    model = client.get("/v1/models/churn@live").json()
    assert first["model_id"] == model["id"]
    assert (first["id"], first["score"], first["probability"]) == ("c0", 0.0, 0.1)
    assert first["at"] == 1740830400.0
    assert first["id_hash"] == hash_ids(OWNER, ["c0"])[0]
    assert (first["revision"], first["alias_revision"], first["keep"]) == (1, 1, 1.0)
    assert (first["explored"], first["propensity"]) == (False, None)
    assert [first[f"feature.{name}"] for name in NAMES] == [30.0, 1.0, None]
    assert [second[f"feature.{name}"] for name in NAMES] == [31.0, 2.0, 2.0]
    assert [each["flag"] for each in (first, second, third)] == [True, False, True]
    assert all(is_id(each["decision_id"], "dec") for each in (first, second, third))
    assert uploads(live) == 0


def test_decisions_that_are_sent_again_are_skipped(live: Service, sentences: Sentences) -> None:
    client = live.client(live.key())
    done(live, client, as_csv(table(3)))
    before = stored(live)
    job = done(live, client, as_csv(table(5)))
    after = stored(live)
    assert job["state"] == "succeeded"
    assert len(after) == 5
    assert after[:3] == before
    events = client.get(f"/v1/jobs/{job['id']}/events").json()["data"]
    (text,) = [each["data"]["text"] for each in events if each["type"] == "message"]
    sentences(text)
    key = {"Idempotency-Key": "k1"}
    again = done(live, client, as_csv(table(5)), headers=key)
    assert again["state"] == "succeeded"
    assert len(stored(live)) == 5
    replay = send(client, as_csv(table(5)), headers=key)
    assert replay.json()["id"] == again["id"]
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert send(client, as_csv(table(2)), headers=key).status_code == 422


def test_decisions_whose_ids_have_the_same_last_digits_are_all_stored(live: Service) -> None:
    client = live.client(live.key())
    ids = [f"dec_{number:016x}8e8f90128e8f9012" for number in range(4)]
    for some in (ids[:3], ids[1:]):
        done(live, client, as_csv(table(len(some), decision_id=some)))
    assert sorted(each["decision_id"] for each in stored(live)) == ids


ODD = ["CRM/2025/7", "a b", "100%", "%41", "é?x=1#y", "<b>&amp;", "7", "\U0001f600" * 255]
"""Keys of other systems."""


def test_the_ids_of_other_systems_name_decisions(live: Service, client: httpx.Client) -> None:
    """They are read, given outcomes, and stored once, whatever their time."""
    columns = table(len(ODD), decision_id=ODD, id=[None] * len(ODD))
    assert done(live, client, as_parquet(columns), kind=PARQUET)["state"] == "succeeded"
    for number, id_ in enumerate(ODD):
        found = client.get(f"{URL}/{quote(id_, safe='')}")
        assert found.status_code == 200, found.text
        assert (found.json()["decision_id"], found.json()["score"]) == (id_, 0.5 * number)
    assert rankwright.Client(live.url, live.key()).read_decision(ODD[0]).score == 0.0
    rows = [{"decision_id": int(id_) if id_ == "7" else id_, "label": True} for id_ in ODD]
    assert client.post("/v1/outcomes", json={"rows": rows}).json()["matched"] == len(ODD)
    for unknown in ("CRM", "CRM/2025/8", "x" * 256, "A", "validate"):
        assert client.get(f"{URL}/{quote(unknown, safe='')}").status_code == 404
    later = {"at": [f"2025-04-{i + 1:02}" for i in range(len(ODD))]}
    job = done(live, client, as_parquet(columns | later), kind=PARQUET)
    assert job["state"] == "succeeded"
    assert len(stored(live)) == len(ODD)
    made = client.post("/v1/erasures", json={"id": ODD[0]}).json()
    settle(live)
    erased = client.get(f"/v1/erasures/{made['id']}").json()["erased"]
    assert erased == {"decisions": 1, "outcomes": 1}
    assert client.get(f"{URL}/{ODD[0]}").status_code == 404


def test_a_decision_id_names_one_decision_of_an_owner(live: Service, client: httpx.Client) -> None:
    for alias, ids in (("live", ["x", "y"]), ("other", ["z", "y"])):
        model_id = client.get("/v1/models/churn@live").json()["id"]
        client.put(f"/v1/models/churn/aliases/{alias}", json={"model_id": model_id})
        client.put(f"/v1/models/churn/aliases/{alias}/feedback", json={"days": 3650})
        body = as_csv(table(2, decision_id=ids))
        job = done(live, client, body, model=f"churn@{alias}")
    (error,) = job["error"]["errors"]
    assert (error["column"], error["line"]) == ("decision_id", 3)
    assert [each["decision_id"] for each in stored(live)] == ["x", "y"]
    # The time and the alias are part of the ids that we make.
    assert done(live, client, as_csv(table(2)), model="churn@other")["state"] == "succeeded"


@pytest.mark.parametrize("other", ["live", "other"])
def test_of_two_backfills_at_once_one_finds_the_ids_of_the_other(
    service_on_both: Service, other: str
) -> None:
    """Both have read their tables before either is stored, and both are stored at the same moment."""
    service = service_on_both
    client = service.client(service.key())
    model_id = service.train(client, service.upload(client))["output"]["id"]
    client.put("/v1/models/churn/aliases/live", json={"model_id": model_id})
    client.put("/v1/models/churn/aliases/other", json={"model_id": model_id})
    for alias in ("live", "other"):
        client.put(f"/v1/models/churn/aliases/{alias}/feedback", json={"days": 3650})
    locations = [
        send(client, as_csv(table(2, decision_id=ids)), model=f"churn@{alias}").headers["Location"]
        for alias, ids in (("live", ["x", "y"]), (other, ["y", "z"]))
    ]
    db, blobs, settings = service.context.db, service.context.blobs, service.settings
    read: list[tuple[Any, Any, Any]] = []
    for _ in locations:
        claim = db.writing(queue.claim, settings, "test-worker")
        prepared = db.reading(execution.prepare, settings, claim, blobs.staging_dir())
        result = execution.run(execution.fetch(blobs, prepared), lambda step, of, info: None)
        read.append((claim, result, execution.publish(blobs, claim, result)))
    at_once, overtaken = threading.Barrier(2), []

    def end(claim: Any, result: Any, published: Any) -> None:
        at_once.wait()
        try:
            db.writing(execution.complete, claim, result, published)
        except Overtaken as error:
            overtaken.append(db.writing(queue.give_back, claim, str(error)))

    threads = [threading.Thread(target=end, args=each) for each in read]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overtaken == ["queued"]
    assert service.work() == 1
    jobs = [client.get(each).json() for each in locations]
    with db.read() as session:
        rows = session.scalars(select(DecisionSegment)).all()
        tables = [pq.read_table(service.context.fetch(row.segment_key)) for row in rows]
    ids = sorted(pa.concat_tables(tables)["decision_id"].to_pylist())
    if other == "live":
        assert [job["state"] for job in jobs] == ["succeeded"] * 2
        assert ids == ["x", "y", "z"]
    else:
        assert sorted(job["state"] for job in jobs) == ["failed", "succeeded"]
        assert ids in (["x", "y"], ["y", "z"])
    assert {job["attempt"] for job in jobs} == {1}


@pytest.mark.parametrize("id_", [".", ".."])
def test_an_id_that_no_address_can_contain_is_refused(
    live: Service, client: httpx.Client, sentences: Sentences, id_: str
) -> None:
    job = done(live, client, as_csv(table(2, decision_id=["a", id_], id=[".", ".."])))
    (error,) = job["error"]["errors"]
    assert (error["column"], error["line"]) == ("decision_id", 3)
    sentences(error)


def test_the_rows_need_no_order_and_become_several_files(
    live: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "SEGMENT_ROWS", 2)
    client = live.client(live.key())
    columns = {name: values[::-1] for name, values in table(9).items()}
    columns["feature.age"] = columns.pop("age")  # as where another column has its name
    done(live, client, as_csv(columns))
    found = [(each["id"], each["feature.age"]) for each in stored(live)]
    assert found == [(f"c{i}", 30.0 + i) for i in range(9)]


def test_a_lenient_caller_may_omit_features_and_send_other_columns(live: Service) -> None:
    client = live.client(live.key())
    columns = table(2, note=["x", "y"])
    del columns["age"]
    answer = send(client, as_csv(columns))
    live.work()
    job = client.get(f"/v1/jobs/{answer.json()['id']}").json()
    assert job["state"] == "failed"
    codes = {each["column"]: each["code"] for each in job["error"]["errors"]}
    assert codes == {"age": "absent_feature", "note": "unknown_column"}
    done(live, client, as_csv(columns), headers={"Prefer": "handling=lenient"})
    assert [each["feature.age"] for each in stored(live)] == [None, None]


WRONG: dict[str, tuple[dict[str, list[Any]], str, int]] = {
    "no id": ({"id": ["c0", None, "c2"]}, "id", 3),
    "a long id": ({"id": ["c0", "c1", "c" * 256]}, "id", 4),
    "no time": ({"at": ["2025-03-01", None, "2025-03-03"]}, "at", 3),
    "no date": ({"at": ["2025-03-01", "soon", "2025-03-03"]}, "at", 3),
    "the future": ({"at": ["2025-03-01", "2025-03-02", "2999-01-01"]}, "at", 4),
    "too old": ({"at": ["1999-12-31", "2025-03-02", "2025-03-03"]}, "at", 2),
    "no score": ({"score": [0.1, None, 0.2]}, "score", 3),
    "a text as score": ({"score": [0.1, "high", 0.2]}, "score", 3),
    "an infinite score": ({"score": [0.1, "1e999", 0.2]}, "score", 3),
    "a probability above 1": ({"probability": [0.1, 1.1, 0.2]}, "probability", 3),
    "a negative probability": ({"probability": [-0.1, 1, 0.2]}, "probability", 2),
    "a propensity of 0": ({"propensity": [0.1, 0, 0.2]}, "propensity", 3),
    "a propensity above 1": ({"propensity": [0.1, 2, 0.2]}, "propensity", 3),
    "a keep of 0": ({"keep": [0.1, 0, 0.2]}, "keep", 3),
    "no flag": ({"flag": ["true", "maybe", "false"]}, "flag", 3),
    "an explored row without propensity": ({"explored": [False, True, False]}, "propensity", 3),
    "a long decision id": ({"decision_id": ["x" * 256, None, None]}, "decision_id", 2),
    "a decision id with NUL": ({"decision_id": ["x", None, "a\0b"]}, "decision_id", 4),
    "a decision id twice": ({"decision_id": ["x", None, "x"]}, "decision_id", 4),
    "neither id": ({"id": [None] * 3, "decision_id": ["x", " ", "y"]}, "id", 3),
    "a decision twice": (
        {"id": ["c0", "c0", "c2"], "at": ["2025-03-01", "2025-03-01", "2025-03-03"]},
        "at",
        3,
    ),
    "a text as number": ({"age": [1, "old", 3]}, "age", 3),
}


def test_an_invalid_row_is_named_and_nothing_is_stored(live: Service, sentences: Sentences) -> None:
    client = live.client(live.key())
    tables: list[tuple[dict[str, list[Any]], str, int | None]] = [
        (table() | more, column, line) for more, column, line in WRONG.values()
    ]
    for absent in ("at", "score", "id"):
        columns = table()
        del columns[absent]
        tables.append((columns, absent, None))
    for columns, column, line in tables:
        job = done(live, client, as_csv(columns))
        code = "absent_column" if line is None else "invalid_table"
        assert (job["state"], job["error"]["code"]) == ("failed", code)
        (error,) = job["error"]["errors"]
        assert (error["column"], error.get("line")) == (column, line)
        sentences(error)
        assert stored(live) == []
        assert uploads(live) == 0
        retried = client.post(f"/v1/jobs/{job['id']}/retry")
        assert (retried.status_code, retried.json()["code"]) == (409, "upload_deleted")
    job = done(live, client, as_csv(table() | WRONG["too old"][0]))
    assert mentions(job["error"]["errors"][0]["detail"], 3650)


def test_bad_requests_are_refused(live: Service, sentences: Sentences) -> None:
    client, body = live.client(live.key()), as_csv(table())
    model_id = client.get("/v1/models/churn@live").json()["id"]
    client.put("/v1/models/churn/aliases/silent", json={"model_id": model_id})
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"model": "churn"}, 422, "invalid"),
        ({"model": "churn:1"}, 422, "invalid"),
        ({"model": "churn@other"}, 404, "not_found"),
        ({"model": "churn@silent"}, 409, "no_feedback"),
        ({"model": ""}, 422, "invalid"),
        ({"weight": "w"}, 422, "invalid"),
    ]
    for params, status, code in cases:
        answer = send(client, body, **params)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        sentences(answer.json())
    for key, status in (
        (live.key(owner=STRANGER), 404),
        (live.key(scopes=["read"]), 403),
        (live.key(scopes=["outcomes"]), 403),
        (None, 401),
    ):
        assert send(live.client(key), body).status_code == status
    assert uploads(live) == 0
    assert send(live.client(live.key(scopes=["score"])), body).status_code == 202


def test_a_check_and_a_cancelled_job_store_nothing(live: Service) -> None:
    client = live.client(live.key())
    path = f"{URL}/validate"
    assert send(client, as_csv(table()), path=path).json() == {"valid": True, "rows": 3}
    wrong = send(client, as_csv(table(score=[1, "x", 2])), path=path)
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["column"] == "score"
    assert live.work() == 0
    assert stored(live) == []
    job_id = send(client, as_csv(table())).json()["id"]
    assert uploads(live) == 1
    assert client.post(f"/v1/jobs/{job_id}/cancel").is_success
    assert uploads(live) == 0
    live.work()
    assert stored(live) == []


def test_many_rows_take_little_time_and_memory_each(live: Service) -> None:
    n = 70_000  # two batches of a file
    start = time.time() - 86_400 * 300
    columns = {
        "id": pa.array([f"c{i}" for i in range(n)]),
        "at": pa.array([int((start + i) * 1e6) for i in range(n)], pa.timestamp("us", "UTC")),
        "score": pa.array([0.5] * n),
        "age": pa.array([1] * n),
        "income": pa.array([1.5] * n),
        "score 1": pa.array([True] * n).cast(pa.int8()),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=backfill.SEGMENT_ROWS)
    client = live.client(live.key())
    job = done(live, client, sink.getvalue(), kind=PARQUET)
    assert job["state"] == "succeeded", job["error"]
    assert len(stored(live)) == n


def test_outcomes_are_counted_with_decisions_that_were_just_stored(
    live: Service, client: httpx.Client
) -> None:
    rows = [{"id": f"c{i}", "label": True, "event_at": "2025-04-01T00:00:00Z"} for i in range(3)]
    assert client.post("/v1/outcomes", json={"rows": rows}).json()["matched"] == 0
    done(live, client, as_csv(table()))
    again = [row | {"label": False} for row in rows]
    assert client.post("/v1/outcomes", json={"rows": again}).json()["unmatched"] == 0
