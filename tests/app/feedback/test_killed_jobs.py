"""Jobs of the feedback loop whose worker is killed at each step: nothing is lost, and nothing is made twice."""

from __future__ import annotations

from collections import Counter

import httpx
from sqlalchemy import func, select, update

from app.jobs.dispatcher import Reaper
from app.platform.settings import Settings
from app.platform.tables import Alarm, Dataset, DecisionSegment, Job, MonitorTest
from tests.app.feedback.simulator import feedback
from tests.app.feedback.test_api_monitor import LIVE, monitoring, simulate, train
from tests.app.feedback.test_decision_datasets import backfill, labels, live, outcomes, people
from tests.app.live_service import Service
from tests.app.mortal_worker import work
from tests.app.queue_steps import hear_nothing
from tests.long_form import LONG_FORM, long_form

__all__ = ["live"]

STEPS = ["finish=kill", "finished=kill"]
WITH_FILES = ["adopted=kill", *STEPS]
if LONG_FORM:
    STEPS = ["claimed=kill", "fit=kill", *STEPS]
    WITH_FILES = ["claimed=kill", "fit=kill", "adopt=kill", *WITH_FILES]


def survive(service: Service, steps: list[str], job_id: str) -> None:
    """Let a worker be killed at each step of a job, and the next one go on; at last it succeeds."""
    db = service.context.db
    url = db.url.render_as_string(hide_password=False)
    settings = Settings.model_validate(service.settings.model_dump() | {"database_url": url})
    with db.write() as session:
        session.execute(update(Job).values(max_attempts=99))
    for step in steps:
        assert work(settings, step) == -9, step
        hear_nothing(db)
        Reaper(db, settings).reap()
        with db.write() as session:
            session.execute(update(Job).values(not_before=0.0))
    assert work(settings) == 0
    with db.read() as session:
        job = session.get_one(Job, job_id)
        assert job.state == "succeeded", job.error


def test_a_backfill_is_stored_once(live: Service) -> None:
    client = live.client(live.key())
    text = "id,at,score,age,income,score 1\n" + "".join(
        f"c{i},2026-01-{1 + i % 28:02},0.5,{i},2,3\n" for i in range(200)
    )
    answer = client.post(
        "/v1/decisions",
        params={"model": "churn@live"},
        content=text,
        headers={"Content-Type": "text/csv"},
    )
    survive(live, WITH_FILES, answer.json()["id"])
    with live.context.db.read() as session:
        assert session.scalar(select(func.sum(DecisionSegment.rows))) == 200


@long_form
def test_a_dataset_from_decisions_is_made_once(live: Service) -> None:
    client = live.client(live.key())
    rows = people(60)
    backfill(live, client, rows)
    outcomes(client, *labels(rows))
    made = client.post("/v1/datasets", json={"name": "d", "source": {"decisions": "churn@live"}})
    survive(live, WITH_FILES, made.json()["job_id"])
    found = client.get(made.headers["Location"]).json()
    assert (found["status"], found["rows"]) == ("ready", 60)
    with live.context.db.read() as session:
        count = select(func.count()).select_from(Dataset).where(Dataset.name == "d")
        assert session.scalar(count) == 1


@long_form
def test_scheduled_tests_are_made_once_with_one_alarm(
    service: Service, client: httpx.Client
) -> None:
    train(service, client)
    simulator = simulate(service)
    simulator.put_settings(feedback())
    for number in range(1, 5):
        simulator.week(number, slope=2.0 if number < 3 else 0.5)
    db = service.context.db
    job = db.writing(monitoring.schedule, service.settings, LIVE)
    assert job is not None
    survive(service, STEPS, job.id)
    with db.read() as session:
        tests = Counter(session.execute(select(MonitorTest.family, MonitorTest.period_start)).all())
        alarms = session.scalars(select(Alarm).where(Alarm.family == "ranking")).all()
    assert set(tests.values()) == {1}
    assert {family for family, _ in tests} >= {"unlabelled", "ranking", "calibration"}
    assert len(alarms) == 1
