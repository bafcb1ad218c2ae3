"""Compaction, retention and erasure: what is left, also if the process ends at any step."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select, update

from app.feedback import upkeep
from app.feedback.segments import read_segments
from app.operations.housekeeping import Housekeeper
from app.platform import catalogue, failpoints
from app.platform.failpoints import FailpointError
from app.platform.tables import (
    AliasFeedback,
    AuditEntry,
    BlobEntry,
    DecisionSegment,
    Erasure,
    OutcomeSegment,
)
from tests.app.feedback.mortal_log import keep_house
from tests.app.feedback.test_api_outcomes import record, send, stored
from tests.app.live_service import OWNER, STRANGER, Service
from tests.long_form import long_form, one_in, rest

EVENT = "2026-01-02"


def keeper(service: Service) -> Housekeeper:
    return Housekeeper(service.context.db, service.blobs, service.settings, threading.Event())


def decisions(service: Service, owner: str = OWNER) -> list[str]:
    """Return the entities of all decisions of an owner."""
    with service.context.db.read() as session:
        rows = session.scalars(
            select(DecisionSegment)
            .where(DecisionSegment.owner == owner)
            .order_by(DecisionSegment.first_at)
        ).all()
        blobs = [catalogue.find(session, row.segment_key) for row in rows]
        assert sum(row.rows for row in rows) == sum(
            batch.num_rows for batch in read_segments(service.blobs, blobs, ["id"])
        )
    return [
        id_
        for batch in read_segments(service.blobs, blobs, ["id"])
        for id_ in batch.column("id").to_pylist()
    ]


def texts_in_files(service: Service) -> set[str]:
    """Return all texts in files of decisions and outcomes, also those of dictionaries that no row uses."""
    found: set[str] = set()
    for kind in ("decisions", "outcomes"):
        for each in service.blobs.list(kind):
            for batch in pq.ParquetFile(service.blobs.root / each.key).iter_batches():
                for column in batch.columns:
                    if pa.types.is_dictionary(column.type):
                        found.update(column.dictionary.to_pylist())
                    elif pa.types.is_string(column.type):
                        found.update(filter(None, column.to_pylist()))
    return found


def ripen(service: Service) -> None:
    """Let the time pass after which no process can still have an earlier decision in its log."""
    passed = upkeep.SETTLE_SECONDS + 1
    with service.context.db.write() as session:
        for erasure in session.scalars(select(Erasure)):
            erasure.requested_at -= passed
            if erasure.report is not None:
                verified = erasure.report["verified_at"]
                then = None if verified is None else verified - passed
                erasure.report = {**erasure.report, "verified_at": then}


def settle(service: Service) -> None:
    """Carry out all erasures to their end."""
    service.work()
    ripen(service)
    keeper(service).round()
    service.work()
    keeper(service).round()


def test_an_entity_is_erased(service: Service, client: httpx.Client) -> None:
    first = record(service, ["c1", "c2", "c1"])
    record(service, ["c3"])
    theirs = service.client(service.key(owner=STRANGER))
    record(service, ["c1"], owner=STRANGER)
    for sender in (client, theirs):
        send(
            sender,
            {"id": "c1", "label": 1, "event_at": EVENT},
            {"id": "c2", "label": 1, "event_at": EVENT},
        )
    send(client, {"decision_id": first[0], "label": 0}, {"decision_id": first[1], "label": 0})
    answer = client.post("/v1/erasures", json={"id": "c1"})
    assert answer.status_code == 202
    made = answer.json()
    assert answer.headers["Location"] == f"/v1/erasures/{made['id']}"
    assert client.get("/v1/audit").json()["data"][0]["summary"] == f"erasure {made['id']}"
    assert (made["done_at"], made["erased"]) == (None, None)
    assert made["due_at"] > made["requested_at"]
    keeper(service).round()
    assert decisions(service) == ["c2", "c3"]
    assert [(row["id"], row["decision_id"]) for row in stored(service)] == [
        ("c2", None),
        (None, first[1]),
    ]
    assert decisions(service, STRANGER) == ["c1"]
    assert len(stored(service, STRANGER)) == 2
    found = client.get(answer.headers["Location"]).json()
    assert (found["done_at"], found["erased"]) == (
        None,
        {"decisions": 2, "outcomes": 2},
    )
    record(service, ["c1"])  # from the log of a process
    settle(service)
    assert decisions(service) == ["c2", "c3"]
    found = client.get(answer.headers["Location"]).json()
    assert found["done_at"] is not None
    assert found["erased"] == {"decisions": 3, "outcomes": 2}


def test_the_id_is_forgotten(service: Service, client: httpx.Client) -> None:
    secret_id = "person-7f3e91"
    record(service, ["c2", secret_id], callers=["key_1", f"key of {secret_id}"])
    send(
        client,
        {"id": secret_id, "label": 1, "event_at": EVENT, "source": f"by {secret_id}"},
        {"id": "c2", "label": 1, "event_at": EVENT, "source": "review"},
    )
    assert [text for text in texts_in_files(service) if secret_id in text]
    client.post("/v1/erasures", json={"id": secret_id})
    settle(service)
    assert secret_id not in client.get("/v1/erasures").text
    assert secret_id not in client.get("/v1/audit").text
    with service.context.db.write() as session:
        assert session.scalars(select(Erasure.entity_id)).all() == [None]
    with service.context.db.read() as session:
        dump = [
            str(row)
            for table in (Erasure, AuditEntry, OutcomeSegment)
            for row in session.execute(select(*table.__table__.c))
        ]
    assert not [row for row in dump if secret_id in row]
    assert not [text for text in texts_in_files(service) if secret_id in text]


def test_the_old_files_are_deleted_at_once(service: Service, client: httpx.Client) -> None:
    record(service, ["c1", "c2"])
    (old,) = (each.key for each in service.blobs.list("decisions"))
    client.post("/v1/erasures", json={"id": "c1"})
    keeper(service).round()
    (new,) = (each.key for each in service.blobs.list("decisions"))
    assert new != old


def test_an_entity_without_rows_is_soon_erased(service: Service, client: httpx.Client) -> None:
    record(service, ["c2"])
    made = client.post("/v1/erasures", json={"id": "nobody"}).json()
    settle(service)
    found = client.get(f"/v1/erasures/{made['id']}").json()
    assert found["erased"] == {"decisions": 0, "outcomes": 0}
    assert found["done_at"] is not None
    assert decisions(service) == ["c2"]


@pytest.mark.parametrize(("point", "nth"), one_in(3, ["rewrite", "rewritten"], [1, 2, 3, 4]))
def test_a_process_that_ends_at_a_step_loses_nothing(
    service: Service,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    nth: int,
) -> None:
    named = record(service, ["c1", "c2"])
    record(service, ["c3", "c1"])
    send(client, {"id": "c1", "label": 1, "event_at": EVENT})
    send(client, {"decision_id": named[0], "label": 1}, {"decision_id": named[1], "label": 0})
    client.post("/v1/erasures", json={"id": "c1"})
    monkeypatch.setattr(failpoints, "armed", failpoints.parse(f"{point}=raise@{nth}"))
    with pytest.raises(FailpointError):
        keeper(service).round()
    keeper(service).round()
    assert decisions(service) == ["c2", "c3"]
    assert [row["decision_id"] for row in stored(service)] == [named[1]]
    blobs_are_named(service)


def blobs_are_named(service: Service) -> None:
    """Check that after the grace period, exactly the blobs are left that rows name."""
    with service.context.db.write() as session:
        session.execute(update(BlobEntry).values(published_at=0.0))
    for each in service.blobs.list():
        os.utime(service.blobs.root / each.key, (1.0, 1.0))
    keeper(service).round()
    with service.context.db.read() as session:
        named = {
            *session.scalars(select(DecisionSegment.segment_key)),
            *session.scalars(select(OutcomeSegment.segment_key)),
        } - {None}
    there = {each.key for kind in ("decisions", "outcomes") for each in service.blobs.list(kind)}
    assert there == named


@long_form
@pytest.mark.parametrize("point", ["rewrite", *rest("rewritten")])
def test_a_killed_process_is_continued(service: Service, client: httpx.Client, point: str) -> None:
    record(service, ["c1", "c2"])
    send(client, {"id": "c1", "label": 1, "event_at": EVENT})
    client.post("/v1/erasures", json={"id": "c1"})
    url = service.settings.sqlalchemy_url
    assert keep_house(service.settings.state_dir, url, f"{point}=kill@2") == -9
    keeper(service).round()
    assert decisions(service) == ["c2"]
    assert stored(service) == []
    blobs_are_named(service)


def test_bad_requests_to_erase(service: Service, client: httpx.Client) -> None:
    cases: list[Any] = [
        {},
        {"id": ""},
        {"id": " "},
        {"id": 7},
        {"id": None},
        {"id": "x" * 256},
        {"id": "a\0"},
        [],
        {"id": "a", "x": 1},
    ]
    for body in cases:
        answer = client.post("/v1/erasures", json=body)
        assert answer.status_code == 422
        assert client.get("/v1/erasures").json()["data"] == []


def test_who_may_erase(service: Service, client: httpx.Client) -> None:
    reader = service.client(service.key(scopes=["read", "outcomes", "score"]))
    assert reader.post("/v1/erasures", json={"id": "c1"}).status_code == 403
    made = client.post("/v1/erasures", json={"id": "c1"}).json()
    assert reader.get(f"/v1/erasures/{made['id']}").json() == made
    theirs = service.client(service.key(owner=STRANGER))
    assert theirs.get(f"/v1/erasures/{made['id']}").status_code == 404
    assert theirs.get("/v1/erasures").json()["data"] == []
    assert client.get("/v1/erasures/era_1").status_code == 404


def test_a_request_to_erase_is_made_once(service: Service, client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "e1"}
    first = client.post("/v1/erasures", json={"id": "c1"}, headers=headers)
    assert client.post("/v1/erasures", json={"id": "c1"}, headers=headers).json() == first.json()
    assert len(client.get("/v1/erasures").json()["data"]) == 1


# --- compaction and retention ---------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MAX_INLINE", 3)


def sent(client: httpx.Client, count: int) -> None:
    for i in range(count):
        send(client, {"id": f"c{i}", "label": i % 2, "event_at": EVENT})


@pytest.mark.usefixtures("few")
def test_small_segments_become_one(service: Service, client: httpx.Client) -> None:
    sent(client, 2)
    keeper(service).round()
    assert count(service) == 2
    sent(client, 5)  # two are duplicates
    before = stored(service)
    keeper(service).round()
    assert count(service) == 1
    assert stored(service) == before
    assert len(before) == 5
    with service.context.db.read() as session:
        (row,) = session.scalars(select(OutcomeSegment)).all()
        assert (row.rows, row.content) == (5, None)
    send(client, {"id": "c0", "label": 0, "event_at": EVENT})
    assert send(client, {"id": "c0", "label": 0, "event_at": EVENT}).json()["duplicates"] == 1


def count(service: Service) -> int:
    with service.context.db.read() as session:
        return len(session.scalars(select(OutcomeSegment.id)).all())


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("point", ["rewrite", *rest("rewritten")])
def test_compaction_that_ends_at_a_step_loses_nothing(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    sent(client, 5)
    before = stored(service)
    monkeypatch.setattr(failpoints, "armed", failpoints.parse(f"{point}=raise"))
    with pytest.raises(FailpointError):
        keeper(service).round()
    assert stored(service) == before
    keeper(service).round()
    assert stored(service) == before
    blobs_are_named(service)


@pytest.mark.usefixtures("few")
def test_an_erasure_in_the_middle_of_a_compaction_wins(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(client, 4)
    client.post("/v1/erasures", json={"id": "c1"})
    files = keeper_files(service)
    erase: Callable[[], object] = lambda: upkeep.erase(files, OWNER)  # noqa: E731
    armed = {"rewrite": once(erase)}
    monkeypatch.setattr(failpoints, "armed", armed)
    assert upkeep.compact(files, OWNER) == 0
    assert [row["id"] for row in stored(service)] == ["c0", "c2", "c3"]


def once(work: Callable[[], object]) -> Callable[[], None]:
    done: list[bool] = []

    def act() -> None:
        if not done:
            done.append(True)
            work()

    return act


def test_an_erased_outcome_can_be_sent_again(service: Service) -> None:
    client = service.client(service.key())
    row = {"id": "c1", "label": True, "event_at": "2026-01-02T10:00:00Z"}
    send(client, row)
    assert client.post("/v1/erasures", json={"id": "c1"}).is_success
    keeper(service).round()
    assert send(client, row).json()["duplicates"] == 0
    assert send(client, row).json()["duplicates"] == 1


def keeper_files(service: Service) -> upkeep.Files:
    db = service.context.db
    return upkeep.Files(db.reading, db.writing, service.blobs, lambda keys: 0)


def test_outcomes_are_kept_as_long_as_the_decisions(service: Service, client: httpx.Client) -> None:
    old = {"id": "c1", "label": 1, "event_at": "2020-01-01", "known_at": "2020-01-01"}
    send(client, old)
    send(client, old | {"label": 0, "known_at": None})
    settings: Any = {"days": 10**6}
    with service.context.db.write() as session:
        session.add(
            AliasFeedback(owner=OWNER, name="m", alias="a", revision=1, settings=settings, at=1.0)
        )
    keeper(service).round()
    assert len(stored(service)) == 2
    with service.context.db.write() as session:
        session.execute(update(AliasFeedback).values(settings={"days": 400}))
    keeper(service).round()
    assert len(stored(service)) == 1
