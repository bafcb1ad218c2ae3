"""Scheduled looks: due once, made once, and what they find where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from app.feedback import monitor_repository, monitoring
from app.feedback.monitor_repository import MonitoredAlias
from app.models import aliases
from app.platform.database import Database
from app.platform.tables import Alarm, Job, MonitorLook
from tests.app.feedback.simulator import MONDAY, WEEK, Simulator, draw, feedback, table
from tests.app.workbench import OWNER, Workbench, on_both

LIVE = MonitoredAlias(OWNER, "m", "live")


def world(bench: Workbench, rows: int = 6000, **given: Any) -> Simulator:
    """Return an alias of a model whose validation has half of the rows."""
    text = table(draw(np.random.default_rng(1), rows))
    dataset = bench.ready(text, label="y", positive="1", name="m")
    job = bench.work_on(
        dataset,
        name="m",
        algorithm={"name": "rankboost", "n_rounds": 5},
        validation={"method": "holdout", "fraction": 0.5},
    )
    assert job.state == "succeeded", job.error
    model_id = job.model_id
    bench.db.writing(aliases.set_alias, OWNER, "m", "live", model_id, if_revision=None)
    return Simulator(bench.db, bench.blobs, OWNER, "m", **given)


def schedule(bench: Workbench) -> Job | None:
    return bench.db.writing(monitoring.schedule, bench.settings, LIVE)


def look(bench: Workbench) -> None:
    """Make all looks that are due."""
    assert schedule(bench) is not None
    job = bench.work()
    assert job.state == "succeeded", job.error


def looks(db: Database, family: str | None = None) -> list[MonitorLook]:
    with db.read() as session:
        statement = select(MonitorLook).order_by(MonitorLook.period_start, MonitorLook.family)
        if family is not None:
            statement = statement.where(MonitorLook.family == family)
        return list(session.scalars(statement))


def alarms(db: Database) -> list[Alarm]:
    with db.read() as session:
        return list(session.scalars(select(Alarm).order_by(Alarm.raised_at, Alarm.id)))


@on_both
def test_looks_are_made_once_for_each_period_and_family(bench: Workbench) -> None:
    simulator = world(bench, rows=1200)
    assert schedule(bench) is None  # no settings
    simulator.put_settings(feedback())
    assert schedule(bench) is None  # no decisions
    for number in (1, 2):
        simulator.week(number, 400)
    first = schedule(bench)
    assert first is not None
    assert schedule(bench) is None  # a job works on them
    assert bench.work().state == "succeeded"
    made = looks(bench.db)
    families = {"unlabelled", "ranking", "calibration", "guarantee"}
    weeks = {each.period_start for each in made}
    assert min(weeks) == MONDAY
    ended = int((monitor_now(bench) - 3600.0 - MONDAY) // WEEK)
    assert len(weeks) == min(ended, monitoring.MAX_PERIODS_OF_JOB)
    assert {each.family for each in made if each.period_start == MONDAY} == families
    numbers = [each.found["number"] for each in made if each.family == "unlabelled"]
    assert numbers == [(i % 52) + 1 for i in range(len(numbers))]
    while schedule(bench) is not None:
        bench.work()
    keys = [(each.family, each.period_start) for each in looks(bench.db)]
    assert len(set(keys)) == len(keys)


def monitor_now(bench: Workbench) -> float:
    return bench.db.reading(monitor_repository.now)


def test_a_fall_of_the_auc_raises_an_alarm_and_no_fall_raises_none(bench: Workbench) -> None:
    simulator = world(bench)
    simulator.put_settings(feedback())
    for number in range(1, 7):
        simulator.week(number, slope=2.0 if number < 4 else 0.7)
    look(bench)
    ranking = looks(bench.db, "ranking")[:6]
    assert [each.found["status"] for each in ranking[:3]] == ["passed"] * 3
    assert "alarm" in [each.found["status"] for each in ranking[3:]]
    (alarm,) = [each for each in alarms(bench.db) if each.family == "ranking"]
    assert alarm.period_start >= MONDAY + 3 * WEEK
    assert alarm.found["value"] < alarm.found["expected"] - 0.05
    assert ranking[2].found["alpha_spent"] == pytest.approx(0.02 * 3 / 52)


def test_corrections_do_not_change_a_closed_test(bench: Workbench) -> None:
    simulator = world(bench, rows=2000)
    simulator.put_settings(feedback())
    rows = draw(simulator.rng, 800)
    ids = simulator.decide(MONDAY, rows)
    simulator.know(ids, rows.y.tolist(), MONDAY + 2 * WEEK)
    look(bench)
    before = [(each.family, each.found) for each in looks(bench.db)]
    simulator.know(ids, (~rows.y).tolist(), MONDAY + 3 * WEEK)
    assert schedule(bench) is None or bench.work().state == "succeeded"
    after = [(each.family, each.found) for each in looks(bench.db)]
    assert after[: len(before)] == before
