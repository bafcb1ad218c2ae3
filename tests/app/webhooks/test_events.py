"""Events: each is recorded if and only if its cause is committed, for the webhooks that take its type."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from app.feedback import alarms
from app.feedback.monitor_repository import MonitoredAlias
from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.platform import events
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import Delivery, JobState
from tests.app.live_service import OWNER as OURS
from tests.app.live_service import Service, table
from tests.app.queue_steps import OWNER, change, claimed, finish, hear_nothing, submit
from tests.app.reports.alias_request_steps import team
from tests.app.webhooks.event_steps import recorded, subscribe

SETTINGS = Settings(lease_seconds=60.0, job_max_attempts=1)


def types_of(db: Database, owner: str = OWNER) -> list[str]:
    return [type_ for type_, _ in recorded(db, owner)]


def test_an_event_goes_to_the_webhooks_that_take_its_type(db: Database) -> None:
    every, some = subscribe(db), subscribe(db, types=["job.failed"])
    subscribe(db, types=["job.succeeded"])
    subscribe(db, owner="bob")
    id_ = db.writing(events.record, OWNER, "job.failed", "job_1", name="churn")
    with db.read() as session:
        found = session.scalars(select(Delivery.target).where(Delivery.event_id == id_)).all()
    assert {*found} == {every, some}
    assert recorded(db) == [("job.failed", {"id": "job_1", "object": "job", "name": "churn"})]


def test_without_a_webhook_for_its_type_nothing_is_stored(db: Database) -> None:
    subscribe(db, types=["job.succeeded"])
    subscribe(db, owner="bob")
    assert db.writing(events.record, OWNER, "job.failed", "job_1") is None
    assert recorded(db) == []


def succeed(db: Database) -> None:
    finish(db, claimed(db))


def fail(db: Database) -> None:
    db.writing(queue.fail, claimed(db), queue.problem("c", "t", "d"))


def time_out(db: Database) -> None:
    db.writing(queue.time_out, claimed(db))


def cancel_queued(db: Database) -> None:
    job_id = db.reading(jobs.list_page, OWNER, limit=1, after=None).data[0].id
    db.writing(jobs.cancel, OWNER, job_id)


def cancel_running(db: Database) -> None:
    claim = claimed(db)
    db.writing(jobs.cancel, OWNER, claim.job_id)
    assert types_of(db) == []
    db.writing(queue.fail, claim, None, state=JobState.CANCELLED)


def lose(db: Database) -> None:
    claimed(db, SETTINGS)
    hear_nothing(db)
    Reaper(db, SETTINGS).reap()


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (succeed, "succeeded"),
        (fail, "failed"),
        (time_out, "timed_out"),
        (cancel_queued, "cancelled"),
        (cancel_running, "cancelled"),
        (lose, "failed"),
    ],
)
def test_each_end_of_a_job_is_an_event(
    db: Database, end: Callable[[Database], None], state: str
) -> None:
    subscribe(db)
    job = submit(db, SETTINGS)
    assert recorded(db) == []
    end(db)
    ((type_, data),) = recorded(db)
    assert type_ == f"job.{state}"
    assert (data["id"], data["kind"], data["name"]) == (job.id, "train", "churn")


def test_a_retry_is_no_end(db: Database) -> None:
    subscribe(db)
    submit(db, Settings(job_max_attempts=2))
    db.writing(queue.retry_later, claimed(db), "the disk was full")
    assert recorded(db) == []


def test_the_end_of_a_child_job_is_no_event(db: Database) -> None:
    subscribe(db)
    parent, child = submit(db), submit(db)
    change(db, child.id, parent_id=parent.id, kind="train_part", stage=0, part=0)
    claims = {each.job_id: each for each in (claimed(db), claimed(db))}
    db.writing(queue.succeed, claims[child.id], result={})
    assert recorded(db) == []
    finish(db, claims[parent.id])
    assert [data["id"] for _, data in recorded(db)] == [parent.id]


def test_a_cause_that_is_rolled_back_leaves_no_event(db: Database) -> None:
    subscribe(db)
    submit(db)
    claim = claimed(db)

    def finish_and_fail() -> None:
        with db.write() as session:
            queue.finish(session, claim)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        finish_and_fail()
    assert recorded(db) == []
    finish(db, claim)
    assert types_of(db) == ["job.succeeded"]


def test_an_alarm_is_raised_and_cleared(db: Database) -> None:
    subscribe(db)
    of = MonitoredAlias(OWNER, "churn", "live")
    alarm = db.writing(alarms.raise_alarm, of, "ranking", 0.0, {})
    assert alarm is not None
    assert db.writing(alarms.raise_alarm, of, "ranking", 0.0, {}) is None
    db.writing(alarms.acknowledge, OWNER, alarm.id, "seen", "keep", "ann")
    assert types_of(db) == ["alarm.raised", "alarm.cleared"]
    assert all(data["id"] == alarm.id for _, data in recorded(db))


def test_data_and_models_have_events(service: Service) -> None:
    client, db = service.client(service.key()), service.context.db
    subscribe(db, OURS)

    def new(did: Callable[[], object]) -> list[tuple[str, Any]]:
        before = len(recorded(db, OURS))
        did()
        service.work()
        return [(type_, data["id"]) for type_, data in recorded(db, OURS)[before:]]

    uploaded: list[str] = []
    first = new(lambda: uploaded.append(service.upload(client)))
    assert [type_ for type_, _ in first] == ["job.succeeded", "dataset.ready"]
    (dataset,) = uploaded
    assert first[1][1] == dataset
    bad = new(lambda: service.upload(client, "a,left\n1,yes\n2,yes\n"))
    assert sorted(type_ for type_, _ in bad) == ["dataset.failed", "job.failed"]
    trained = service.train(client, dataset)["output"]["id"]
    told = [data for _, data in recorded(db, OURS) if data.get("kind") == "train"]
    assert [data["model_id"] for data in told] == [trained]
    later = service.upload(client, table(seed=1))
    question = {"model": trained, "dataset_id": later}
    done = new(lambda: client.post("/v1/evaluations", json=question))
    assert sorted(type_ for type_, _ in done) == ["evaluation.ready", "job.succeeded"]
    evaluation = dict(done)["evaluation.ready"]
    assert client.get(f"/v1/evaluations/{evaluation}").json()["status"] == "ready"

    def cancel() -> None:
        made = client.post("/v1/evaluations", json=question).json()
        client.post(f"/v1/jobs/{made['job_id']}/cancel")

    assert sorted(type_ for type_, _ in new(cancel)) == ["evaluation.failed", "job.cancelled"]


def test_changes_of_aliases_have_events(service: Service) -> None:
    """Without names of people and without reasons."""
    us = team(service)
    db = service.context.db
    subscribe(db, OURS)
    approved, rejected = us.asked(), us.asked()
    withdrawn, void = us.asked(), us.asked()
    us.decide(rejected, "reject")
    us.decide(withdrawn, "withdraw", by=us.ann)
    us.decide(approved)
    found = recorded(db, OURS)
    assert [(type_, data["id"]) for type_, data in found] == [
        *(("alias_request.created", each) for each in (approved, rejected, withdrawn, void)),
        ("alias_request.rejected", rejected),
        ("alias_request.withdrawn", withdrawn),
        ("alias.changed", "churn@live"),
        ("alias_request.void", void),
        ("alias_request.approved", approved),
    ]
    changed = next(data for type_, data in found if type_ == "alias.changed")
    assert (changed["model_id"], changed["revision"], changed["change"]) == (us.second, 3, "set")
    deleted = us.asked("delete", reason="A secret reason")
    us.decide(deleted)
    assert [type_ for type_, _ in recorded(db, OURS)[-2:]] == [
        "alias.deleted",
        "alias_request.approved",
    ]
    text = repr(recorded(db, OURS))
    for hidden in ("Ann", "Bob", "secret"):
        assert hidden not in text


def test_the_page_lists_every_type() -> None:
    page = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \| ([^|]+) \|", page, flags=re.MULTILINE)
    assert dict(listed) == dict(events.TYPES)
