"""A job of the feedback loop whose worker is killed at each step: nothing is lost, and nothing is made twice."""

from __future__ import annotations

from sqlalchemy import func, select, update

from app.jobs.dispatcher import Reaper
from app.platform.settings import Settings
from app.platform.tables import DecisionSegment, Job
from tests.app.feedback.test_decision_datasets import live
from tests.app.live_service import Service
from tests.app.mortal_worker import work
from tests.app.queue_steps import hear_nothing
from tests.long_form import LONG_FORM

__all__ = ["live"]

STEPS = ["adopted=kill", "finish=kill", "finished=kill"]
if LONG_FORM:
    STEPS = ["claimed=kill", "fit=kill", "adopt=kill", *STEPS]


def test_a_backfill_is_stored_once(live: Service) -> None:
    client, db = live.client(live.key()), live.context.db
    text = "id,at,score,age,income,score 1\n" + "".join(
        f"c{i},2026-01-{1 + i % 28:02},0.5,{i},2,3\n" for i in range(200)
    )
    answer = client.post(
        "/v1/decisions",
        params={"model": "churn@live"},
        content=text,
        headers={"Content-Type": "text/csv"},
    )
    url = db.url.render_as_string(hide_password=False)
    settings = Settings.model_validate(live.settings.model_dump() | {"database_url": url})
    with db.write() as session:
        session.execute(update(Job).values(max_attempts=99))
    for step in STEPS:
        assert work(settings, step) == -9, step
        hear_nothing(db)
        Reaper(db, settings).reap()
        with db.write() as session:
            session.execute(update(Job).values(not_before=0.0))
    assert work(settings) == 0
    with db.read() as session:
        job = session.get_one(Job, answer.json()["id"])
        assert job.state == "succeeded", job.error
        assert session.scalar(select(func.sum(DecisionSegment.rows))) == 200
