"""Scheduled tests: due once, made once, and what they find where the truth is known."""

from __future__ import annotations

import functools
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, select

from app.evaluation.checks import check_model
from app.feedback import alarms as alarm_service
from app.feedback import monitor_results, monitoring, shadow
from app.feedback.monitor_repository import MonitoredAlias
from app.feedback.period_rows import PeriodRows
from app.findings.finding import Finding
from app.jobs import execution, queue
from app.jobs import service as jobs
from app.models import aliases
from app.platform.database import Database
from app.platform.sql import Session, read_clock
from app.platform.tables import Alarm, Job, MonitorTest
from tests.app.feedback.simulator import (
    DAY,
    MONDAY,
    WEEK,
    Rows,
    Simulator,
    age_datasets,
    draw,
    feedback,
    table,
)
from tests.app.workbench import OWNER, Workbench, on_both, quiet
from tests.long_form import long_form, rest

LIVE = MonitoredAlias(OWNER, "m", "live")
World = Callable[..., Simulator]


def train(bench: Workbench, rows: int, rounds: int) -> None:
    """Make an alias of a model whose validation has half of the rows."""
    text = table(draw(np.random.default_rng(1), rows))
    job = bench.work_on(
        bench.ready(text, label="y", positive="1", name="m"),
        name="m",
        algorithm={"name": "rankboost", "n_rounds": rounds},
        validation={"method": "holdout", "fraction": 0.5},
    )
    assert job.state == "succeeded", job.error
    bench.db.writing(aliases.set_alias, OWNER, "m", "live", job.model_id, if_revision=None)


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path
) -> Callable[[int, int], Path]:
    """Return the folder of a worker that has trained; it is trained once for the tests of this module."""

    @functools.cache
    def once(rows: int, rounds: int) -> Path:
        folder = tmp_path_factory.mktemp("trained")
        shutil.copy(_sqlite_template, folder / "rankwright.db")
        db = Database(f"sqlite:///{folder / 'rankwright.db'}")
        train(Workbench(db, folder), rows, rounds)
        db.close()
        return folder

    return once


@pytest.fixture
def world(bench: Workbench, trained: Callable[[int, int], Path]) -> World:
    """Return an alias of a trained model; on SQLite with a copy of what was trained once."""

    def make(rows: int = 6000, rounds: int = 5, **given: Any) -> Simulator:
        if bench.db.url.get_backend_name() != "sqlite":
            train(bench, rows, rounds)
            return Simulator(bench.db, bench.blobs, OWNER, "m", **given)
        folder = trained(rows, rounds)
        with (
            closing(sqlite3.connect(folder / "rankwright.db")) as kept,
            closing(sqlite3.connect(bench.db.url.database or "")) as own,
        ):
            kept.backup(own)
        shutil.copytree(folder / "blobs", bench.blobs.root, dirs_exist_ok=True)
        return Simulator(bench.db, bench.blobs, OWNER, "m", **given)

    return make


def schedule(bench: Workbench) -> Job | None:
    """Queue the due tests, as housekeeping does: the quick check may not miss any."""
    may_be_due = bench.db.reading(monitoring.may_be_due, LIVE)
    job = bench.db.writing(monitoring.schedule, bench.settings, LIVE)
    assert may_be_due or job is None
    return job


def run_monitor(bench: Workbench) -> None:
    """Make all tests that are due."""
    assert schedule(bench) is not None
    job = bench.work()
    assert job.state == "succeeded", job.error


def made_tests(db: Database, family: str | None = None) -> list[MonitorTest]:
    with db.read() as session:
        statement = select(MonitorTest).order_by(MonitorTest.period_start, MonitorTest.family)
        if family is not None:
            statement = statement.where(MonitorTest.family == family)
        return list(session.scalars(statement))


def alarms(db: Database) -> list[Alarm]:
    with db.read() as session:
        return list(session.scalars(select(Alarm).order_by(Alarm.raised_at, Alarm.id)))


@on_both
def test_periods_are_tested_again_by_another_rule_of_outcomes(
    bench: Workbench, world: World
) -> None:
    """Customers come back in the second week, and their outcomes, of the first decision, become known after it."""
    simulator = world(rows=2000)
    simulator.put_settings(feedback())
    n = 800
    first, ids = draw(simulator.rng, n), [f"c{i}" for i in range(n)]
    simulator.decide(MONDAY, first, ids=ids)
    simulator.decide(MONDAY + WEEK, draw(simulator.rng, n), ids=ids)
    simulator.know(
        ids, first.y.tolist(), MONDAY + 3 * WEEK, event_at=MONDAY + 2 * WEEK, entities=True
    )

    def known() -> list[tuple[int, int | None]]:
        shown = bench.db.reading(monitor_results.read, OWNER, "m", "live", None)().periods
        return [
            (test.known, period.ambiguous)
            for period in reversed(shown[-2:])
            for test in period.tests
            if test.family == "ranking"
        ]

    run_monitor(bench)
    assert known() == [(0, 0), (n, n)]
    before = made_tests(bench.db)
    rule = {**feedback()["outcome"], "attribute": "first_before_event"}
    simulator.put_settings(feedback(outcome=rule))
    run_monitor(bench)
    assert known() == [(n, n), (0, 0)]
    while schedule(bench) is not None:
        bench.work()
    # The tests of scores and columns need no outcomes; those by the earlier rule are kept, and shown again with it.
    after = made_tests(bench.db)
    counts = [Counter(each.family for each in tests) for tests in (before, after)]
    assert counts[1]["unlabelled"] >= counts[0]["unlabelled"]
    assert counts[1]["ranking"] >= 2 * counts[0]["ranking"]
    simulator.put_settings(feedback())
    assert known() == [(0, 0), (n, n)]


@on_both
def test_scheduled_tests_are_made_once_for_each_period_and_family(
    bench: Workbench, world: World
) -> None:
    simulator = world(rows=2000)
    assert schedule(bench) is None  # no settings
    simulator.put_settings(feedback())
    assert schedule(bench) is None  # no decisions
    for number in (1, 2):
        simulator.week(number, 400)
    first = schedule(bench)
    assert first is not None
    assert schedule(bench) is None  # a job works on them
    assert bench.work().state == "succeeded"
    made = made_tests(bench.db)
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
    keys = [(each.family, each.period_start) for each in made_tests(bench.db)]
    assert len(set(keys)) == len(keys)


def monitor_now(bench: Workbench) -> float:
    return bench.db.reading(read_clock)


def test_a_fall_of_the_auc_raises_an_alarm_and_no_fall_raises_none(
    bench: Workbench, world: World
) -> None:
    simulator = world()
    simulator.put_settings(feedback())
    for number in range(1, 7):
        simulator.week(number, slope=2.0 if number < 4 else 0.7)
    run_monitor(bench)
    ranking = made_tests(bench.db, "ranking")[:6]
    assert [each.found["status"] for each in ranking[:3]] == ["passed"] * 3
    assert "alarm" in [each.found["status"] for each in ranking[3:]]
    (alarm,) = [each for each in alarms(bench.db) if each.family == "ranking"]
    assert alarm.period_start >= MONDAY + 3 * WEEK
    assert alarm.found["value"] < alarm.found["expected"] - 0.05
    assert ranking[2].found["alpha_spent"] == pytest.approx(0.02 * 3 / 52)
    # The open alarm contradicts the check of the model, and no other check; an acknowledged one does not.
    contradicted = {each.question for each in checks(bench) if is_of_alarm(each)}
    kept = next(each for each in checks(bench) if each.question == "ranking_kept")
    assert contradicted == {
        {"ranking": "ranking_kept", "unlabelled": "stable", "calibration": "probabilities"}[
            each.family
        ]
        for each in alarms(bench.db)
    }
    assert (kept.answer, kept.used[0], kept.rows and kept.rows.of) == ("no", "ranking", "monitor")
    assert f"{alarm.found['value']:.3f}" in kept.words
    for each in alarms(bench.db):
        acknowledge(bench, each, "keep")
    assert not any(map(is_of_alarm, checks(bench)))


def is_of_alarm(finding: Finding) -> bool:
    return finding.rows is not None and finding.rows.of == "monitor"


def checks(bench: Workbench) -> list[Finding]:
    return bench.db.reading(check_model, OWNER, "m@live")[1]


def test_the_shift_of_a_column_is_named_until_it_is_accepted(
    bench: Workbench, world: World
) -> None:
    simulator = world(rows=2000)
    simulator.put_settings(feedback())
    for number in range(1, 4):
        simulator.week(number, shift=0.0 if number < 2 else 1.5)
    run_monitor(bench)
    made = made_tests(bench.db, "unlabelled")
    assert [each.found["status"] for each in made[:4]] == ["passed", "alarm", "alarm", "not_tested"]
    shifted = made[1].found["details"]["shifted"]
    assert {"", "a"} <= {each["name"] for each in shifted}
    (alarm,) = [each for each in alarms(bench.db) if each.family == "unlabelled"]
    assert alarm.period_start == MONDAY + WEEK  # the second test has found the same change
    acknowledge(bench, alarm, "renew")
    forget(bench, MONDAY + 3 * WEEK)
    for number in (4, 5, 6):
        simulator.week(number, shift=1.5 if number < 6 else 3.0)
    run_monitor(bench)
    made = made_tests(bench.db, "unlabelled")
    # It covers the size of the change, and no further growth.
    assert [each.found["status"] for each in made[3:6]] == ["passed", "passed", "alarm"]
    assert made[3].found["details"]["shifted"] != []
    assert len([each for each in alarms(bench.db) if each.family == "unlabelled"]) == 2


def acknowledge(bench: Workbench, alarm: Alarm, reference: Any) -> None:
    bench.db.writing(alarm_service.acknowledge, OWNER, alarm.id, "known", reference, "Ann")


def forget(bench: Workbench, since: float) -> None:
    """Delete the tests from a time on, as if this time had not come yet when the others were made."""
    with bench.db.write() as session:
        session.execute(delete(MonitorTest).where(MonitorTest.period_start >= since))


def put_guarantee(bench: Workbench, **rates: float | None) -> None:
    guarantee: Any = {"tpr": None, "confidence": 0.95, **rates}
    alias = bench.db.reading(aliases.get_alias, OWNER, "m", "live").alias
    bench.db.writing(
        aliases.set_alias,
        OWNER,
        "m",
        "live",
        alias.model_id,
        guarantee=guarantee,
        if_revision=alias.revision,
    )


def test_a_broken_guarantee_is_found(bench: Workbench, world: World) -> None:
    simulator = world()
    put_guarantee(bench, fpr=0.1)
    simulator.put_settings(feedback())
    for number in range(1, 5):
        if number == 3:
            simulator.flag_share = 0.5
        simulator.week(number, ids=[f"row {number} {i}" for i in range(1000)])
    run_monitor(bench)
    made = [each.found for each in made_tests(bench.db, "guarantee")[:4]]
    assert [each["status"] for each in made] == ["passed", "passed", "alarm", "alarm"]
    assert {each["population"] for each in made} == {"all"}
    assert (made[0]["metric"], made[0]["expected"], made[2]["from_period"]) == ("fpr", 0.1, 3)
    assert len([each for each in alarms(bench.db) if each.family == "guarantee"]) == 1


def test_a_guarantee_is_tested_on_the_decisions_that_were_made_under_it(
    bench: Workbench, world: World
) -> None:
    """The bound is tightened while decisions of the same week have already been made under another."""
    simulator = world()
    put_guarantee(bench, fpr=0.6)
    simulator.put_settings(feedback())
    simulator.flag_share = 0.5
    simulator.week(1, ids=[f"old {i}" for i in range(1000)])
    put_guarantee(bench, fpr=0.1)
    simulator.flag_share = 0.1
    rows = draw(simulator.rng, 1000)
    ids = simulator.decide(MONDAY + 1.0, rows, ids=[f"new {i}" for i in range(1000)])
    simulator.know(ids, rows.y.tolist(), MONDAY + WEEK + 10 * DAY)
    run_monitor(bench)
    test = made_tests(bench.db, "guarantee")[0].found
    assert (test["status"], test["expected"]) == ("passed", 0.1)
    own = simulator.flags[~rows.y].mean()
    assert test["value"] == pytest.approx(own)
    assert own < 0.1


def test_a_guarantee_is_not_tested_on_selected_decisions(bench: Workbench, world: World) -> None:
    """Outcomes are known of the flagged and the explored ones."""
    simulator = world(rows=2000, flag_share=0.1)
    put_guarantee(bench, fpr=0.1)
    simulator.put_settings(feedback())
    simulator.explore = 0.3
    rows = draw(simulator.rng, 2000)
    ids = np.array(simulator.decide(MONDAY, rows))
    known = simulator.flags | simulator.explored
    simulator.know(ids[known].tolist(), rows.y[known].tolist(), MONDAY + WEEK)
    run_monitor(bench)
    first, second = (each.found for each in made_tests(bench.db, "guarantee")[:2])
    assert (first["status"], first["population"]) == ("not_tested", "all")
    assert (second["status"], second["population"]) != ("not_tested", "all")


def test_few_outcomes_of_unflagged_rows_count_for_all_of_them(
    bench: Workbench, world: World
) -> None:
    simulator = world(rows=2000, flag_share=0.1)
    simulator.put_settings(feedback())
    for number in (1, 2):
        rows = draw(simulator.rng, 2000)
        start = MONDAY + (number - 1) * WEEK
        ids = np.array(simulator.decide(start, rows))
        known = simulator.flags | (simulator.rng.random(rows.size) < 0.01)
        simulator.know(ids[known].tolist(), rows.y[known].tolist(), start + WEEK)
    run_monitor(bench)
    tests = made_tests(bench.db, "ranking")[:2]
    (version,) = tests[1].found["details"]["versions"]
    flagged = rows.y[simulator.flags]
    assert version["flagged_known"] == version["flagged"] == len(flagged)
    assert version["flagged_positives"] == np.count_nonzero(flagged)
    for each in tests:
        # The few known outcomes of the other side count for so many decisions that they are worth few rows.
        assert each.found["status"] in ("waiting", "passed")
        assert each.found["population"] == "all"
        metrics = each.found["details"]["metrics"]
        assert metrics["missing"] > 1000
        assert metrics["precision"]["low"] < metrics["precision"]["value"]
    assert [each for each in alarms(bench.db) if each.family == "ranking"] == []


def test_explored_decisions_do_not_shift_columns(bench: Workbench, world: World) -> None:
    """They are all recorded, and a tenth of the others: each must count as one of those."""
    simulator = world(rows=2000, flag_share=0.5)
    simulator.put_settings(feedback(keep=0.1))
    simulator.keep, simulator.explore = 0.1, 0.9
    for number in (1, 2):
        simulator.decide(MONDAY + (number - 1) * WEEK, draw(simulator.rng, 8000))
    run_monitor(bench)
    for each in made_tests(bench.db, "unlabelled")[:2]:
        assert (each.found["status"], each.found["details"]["shifted"]) == ("passed", [])
    assert alarms(bench.db) == []


def test_a_period_that_cannot_be_tested_is_not_part_of_the_next_test(
    bench: Workbench, world: World
) -> None:
    """Outcomes are known of flagged rows only, then of explored ones, too."""
    simulator = world(rows=2000, flag_share=0.1)
    simulator.put_settings(feedback())
    for number, explore in ((1, 0.0), (2, 0.3)):
        simulator.explore = explore
        rows = draw(simulator.rng, 4000)
        start = MONDAY + (number - 1) * WEEK
        ids = np.array(simulator.decide(start, rows))
        known = simulator.flags | simulator.explored
        simulator.know(ids[known].tolist(), rows.y[known].tolist(), start + WEEK)
    run_monitor(bench)
    first, second = (each.found for each in made_tests(bench.db, "ranking")[:2])
    assert (first["status"], first["population"]) == ("not_tested", "flagged")
    assert (second["status"], second["population"]) == ("passed", "all")
    assert abs(second["value"] - second["expected"]) < 0.05
    assert second["details"]["metrics"]["explored"] > 300
    assert second["state"]["measurement"]["first"] == 2
    of_flagged, of_all = (each.found for each in made_tests(bench.db, "calibration")[:2])
    assert (of_flagged["status"], of_flagged["population"]) == ("passed", "flagged")
    assert (of_all["status"], of_all["population"], of_all["since"]) == ("passed", "all", 1)
    assert of_flagged["state"]["reference"]["level"] != of_all["state"]["reference"]["level"]


@long_form
def test_periods_with_few_positives_are_tested_together(bench: Workbench, world: World) -> None:
    simulator = world(rows=2000)
    simulator.put_settings(feedback())
    for number in range(1, 5):
        simulator.week(number, 120)
    run_monitor(bench)
    made = [each.found for each in made_tests(bench.db, "ranking")[:4]]
    tested = [each for each in made if each["status"] == "passed"]
    assert made[0]["status"] == "waiting"
    assert tested
    assert tested[0]["state"]["measurement"]["first"] == 1
    assert tested[0]["state"]["measurement"]["last"] == tested[0]["number"] > 1
    assert tested[0]["state"]["measurement"]["positives"] >= 50


def test_another_model_begins_another_term_and_versions_are_apart(
    bench: Workbench, world: World
) -> None:
    simulator = world(rows=2000)
    first_model = simulator.served()
    simulator.put_settings(feedback())
    simulator.week(1, 600)
    text = table(draw(np.random.default_rng(2), 2000))
    other = bench.work_on(
        bench.ready(text, label="y", positive="1", name="other"),
        name="m",
        algorithm={"name": "rankboost", "n_rounds": 8},
        validation={"method": "holdout", "fraction": 0.5},
    ).model_id
    revision = bench.db.reading(aliases.get_alias, OWNER, "m", "live").alias.revision
    bench.db.writing(aliases.set_alias, OWNER, "m", "live", other, if_revision=revision)
    simulator.week(2, 300, model=first_model)
    simulator.week(2, 700)
    simulator.week(3, 600)
    run_monitor(bench)
    made = [each.found for each in made_tests(bench.db, "ranking")[:3]]
    assert [each["number"] for each in made] == [1, 1, 2]
    assert made[1]["model_id"] == made[2]["model_id"] == other
    assert made[1]["rows"] == 700
    versions = made[1]["details"]["versions"]
    assert {each["model_id"]: each["rows"] for each in versions} == {
        other: 700,
        first_model.model_id: 300,
    }
    assert made[1]["expected"] != made[0]["expected"]


def test_outcomes_of_entities_silence_duplicates_and_the_horizon(
    bench: Workbench, world: World
) -> None:
    simulator = world(rows=2000)
    rule: Any = {"horizon_days": 30.0, "silence": "negative", "attribute": "last_before_event"}
    simulator.put_settings(feedback(outcome=rule))
    rows = draw(simulator.rng, 800)
    ids = [f"c{i}" for i in range(rows.size)]
    simulator.decide(MONDAY, rows, ids=ids, duplicates=300)
    positive = [id_ for id_, y in zip(ids, rows.y, strict=True) if y]
    simulator.know(
        positive,
        [True] * len(positive),
        MONDAY + 3 * WEEK,
        event_at=MONDAY + 2 * WEEK,
        entities=True,
    )
    # What is known after the horizon is not used.
    late = [id_ for id_, y in zip(ids, rows.y, strict=True) if not y][:50]
    known_at, event_at = MONDAY + WEEK + 31 * DAY, MONDAY + 2 * WEEK
    simulator.know(late, [True] * len(late), known_at, event_at=event_at, entities=True)
    run_monitor(bench)
    found = made_tests(bench.db, "ranking")[0].found
    assert (found["rows"], found["known"], found["positives"]) == (800, 800, len(positive))


@on_both
def test_two_jobs_make_a_test_once_with_one_alarm(bench: Workbench, world: World) -> None:
    """The second job has read before the first one wrote: a dispatcher was paused, or a worker was thought dead."""
    simulator = world(rows=2000)
    simulator.put_settings(feedback())
    for number in (1, 2):
        simulator.week(number, 400, shift=2.0)
    for _ in range(2):
        with bench.db.write() as session:
            jobs.enqueue(
                session,
                bench.settings,
                owner=OWNER,
                kind="monitor",
                name="m@live",
                spec={"name": "m", "alias": "live"},
            )
    first, second = bench.claim(), bench.claim()
    results = [(claim, execution.run(bench.prepare(claim), quiet)) for claim in (first, second)]
    for claim, result in results:
        bench.complete(claim, result)
    made = [(each.family, each.period_start) for each in made_tests(bench.db)]
    assert len(set(made)) == len(made)
    assert len([each for each in alarms(bench.db) if each.family == "unlabelled"]) == 1
    states = [bench.db.reading(jobs.find, OWNER, claim.job_id).state for claim in (first, second)]
    assert states == ["succeeded", "succeeded"]


def test_a_failed_job_is_not_repeated_at_once(bench: Workbench, world: World) -> None:
    simulator = world(rows=2000)
    simulator.put_settings(feedback())
    simulator.week(1, 300)
    assert schedule(bench) is not None
    bench.db.writing(queue.fail, bench.claim(), queue.problem("internal", "Internal error", "no"))
    assert schedule(bench) is None


def test_a_challenger_that_ranks_better_wins(bench: Workbench, world: World) -> None:
    simulator = world(rows=2000, rounds=1, flag_share=0.1)
    text = table(draw(np.random.default_rng(2), 4000))
    challenger = bench.work_on(
        bench.ready(text, label="y", positive="1", name="other"),
        name="m",
        algorithm={"name": "rankboost", "n_rounds": 40},
        validation={"method": "holdout", "fraction": 0.25},
    ).model_id
    simulator.put_settings(feedback(monitor=None, shadow=challenger))
    for number in range(1, 9):
        simulator.week(number, 600)
    # The decisions are older than the challenger's dataset: no transaction is needed to find this out.
    assert not bench.db.reading(monitoring.may_be_due, LIVE)
    assert schedule(bench) is None
    age_datasets(bench.db)
    run_monitor(bench)
    made = made_tests(bench.db)
    assert {each.family for each in made} == {"shadow"}
    found = bench.db.reading(monitor_results.read_shadow, OWNER, "m", "live")
    assert found.comparison is not None
    assert found.comparison.winner == "challenger"
    assert found.comparison.low > 0.0
    assert found.comparison.rows == 4800
    assert found.swap is not None
    assert found.swap.champion_only.rows == found.swap.challenger_only.rows > 0
    assert sum(cell["rows"] for cell in found.swap.model_dump().values()) == 4800
    assert found.challenger_id == challenger


@pytest.mark.parametrize("prefix", ["c", *rest("branch-")])
def test_a_challenger_is_compared_on_entities_that_it_was_not_trained_on(
    bench: Workbench, world: World, prefix: str
) -> None:
    simulator = world(rows=2000)
    n = 600
    lines = table(draw(np.random.default_rng(2), n // 2)).splitlines()
    columns = ["customer", *(f"{prefix}{i}" for i in range(n // 2))]
    text = "\n".join(f"{line},{id_}" for line, id_ in zip(lines, columns, strict=True))
    challenger = bench.work_on(
        bench.ready(text, label="y", positive="1", group="customer", name="other"),
        name="m",
        algorithm={"name": "logistic"},
    ).model_id
    simulator.put_settings(feedback(monitor=None, shadow=challenger))
    for number in (1, 2):
        simulator.week(number, n, ids=[f"c{i}" for i in range(n)])
    run_monitor(bench)
    found = bench.db.reading(monitor_results.read_shadow, OWNER, "m", "live")
    assert found.compared_before
    weeks = found.tests[-2:]
    if prefix == "c":
        assert [(each.rows, each.left_out) for each in weeks] == [(n // 2, n // 2)] * 2
        assert found.comparison is not None
        assert found.comparison.rows == n
    else:  # no group is an entity of the decisions, so nothing is known of these
        assert [(each.rows, each.left_out) for each in weeks] == [(0, n)] * 2
        assert {each.status for each in weeks} == {"not_tested"}
        assert found.comparison is None


def test_equal_models_have_no_winner(bench: Workbench, world: World) -> None:
    simulator = world(rows=2000)
    simulator.put_settings(feedback(monitor=None, shadow=simulator.served().model_id))
    age_datasets(bench.db)
    simulator.week(1, 600)
    simulator.week(2, 600)
    run_monitor(bench)
    found = bench.db.reading(monitor_results.read_shadow, OWNER, "m", "live")
    assert found.comparison is not None
    assert (found.comparison.difference, found.comparison.winner) == (0.0, None)
    assert found.swap is None


def test_a_challenger_is_compared_on_recorded_decisions_once(
    bench: Workbench, world: World
) -> None:
    simulator = world(rows=2000)
    text = table(draw(np.random.default_rng(2), 1000))
    dataset = bench.ready(text, label="y", positive="1", name="other")
    logistic = {"name": "logistic"}
    first, second = (
        bench.work_on(dataset, name="m", algorithm=logistic).model_id for _ in range(2)
    )
    simulator.put_settings(feedback())
    age_datasets(bench.db)
    for number in range(1, 4):
        simulator.week(number, 600)
    run_monitor(bench)
    assert made_tests(bench.db, "shadow") == []

    # Set after the decisions and their tests: the recorded weeks are compared, and no test is made again.
    simulator.put_settings(feedback(shadow=first))
    others = [each.tested_at for each in made_tests(bench.db, "ranking")]
    run_monitor(bench)
    made = made_tests(bench.db, "shadow")[:3]
    assert [each.found["details"]["challenger_id"] for each in made] == [first] * 3
    assert [each.tested_at for each in made_tests(bench.db, "ranking")][: len(others)] == others
    found = bench.db.reading(monitor_results.read_shadow, OWNER, "m", "live")
    assert found.comparison is not None
    assert found.comparison.rows == 1800

    # Another one may have been chosen for what these weeks showed.
    simulator.put_settings(feedback(shadow=second))
    run_monitor(bench)
    again = made_tests(bench.db, "shadow")[:3]
    assert [each.tested_at for each in again] == [each.tested_at for each in made]
    assert [each.found for each in again] == [each.found for each in made]


@pytest.mark.parametrize("with_ids", [True, *rest(False)])
def test_the_same_customers_every_week(bench: Workbench, world: World, *, with_ids: bool) -> None:
    """60 customers with 20 decisions each are 60 observations, every week the same ones."""
    simulator = world()
    simulator.put_settings(feedback())
    of = np.repeat(np.arange(60), 20)
    drawn = draw(simulator.rng, 60)
    rows = Rows(*(each[of] for each in (drawn.a + 0.15, drawn.b, drawn.word, drawn.y)))
    order = simulator.rng.permutation(of.size)
    rows = Rows(*(each[order] for each in (rows.a, rows.b, rows.word, rows.y)))
    ids = [f"customer {each}" for each in of[order]]
    for number in (1, 2):
        start = MONDAY + (number - 1) * WEEK
        made = simulator.decide(start, rows, ids=ids if with_ids else None)
        simulator.know(made, rows.y.tolist(), start + WEEK)
    run_monitor(bench)
    statuses = {
        family: [each.found["status"] for each in made_tests(bench.db, family)[:2]]
        for family in ("unlabelled", "calibration", "ranking")
    }
    if with_ids:
        assert "alarm" not in {status for found in statuses.values() for status in found}
        assert statuses["ranking"] == ["waiting", "waiting"]  # further weeks bring no new customers
    else:
        assert "alarm" in {status for found in statuses.values() for status in found}


def test_a_guarantee_of_customers_who_come_back(bench: Workbench, world: World) -> None:
    simulator = world()
    put_guarantee(bench, fpr=None, flagged=0.42)
    simulator.put_settings(feedback())
    simulator.flag_share = 0.24  # of few distinct scores: 46 %
    of = np.repeat(np.arange(150), 8)
    drawn = draw(simulator.rng, 150)
    rows = Rows(*(each[of] for each in (drawn.a, drawn.b, drawn.word, drawn.y)))
    for number in range(1, 5):
        start = MONDAY + (number - 1) * WEEK
        ids = [f"customer {each}" for each in of]
        simulator.know(simulator.decide(start, rows, ids=ids), rows.y.tolist(), start + WEEK)
    run_monitor(bench)
    made = [each.found for each in made_tests(bench.db, "guarantee")[:4]]
    assert [each["status"] for each in made] == ["passed"] * 4
    assert made[3]["details"]["window"]["inflation"] > 1.5
    assert made[3]["details"]["observed_since"] > 0.45


def test_a_decision_that_was_sampled_stands_for_others_in_the_swap_set() -> None:
    rows = rows_of_swaps()
    swap = shadow.swap_of(rows, -rows.score)
    assert swap is not None
    assert sum(cell["rows"] for cell in swap.values()) == round(float((1 / rows.keep).sum()))
    assert swap["champion_only"]["rows"] == pytest.approx(swap["challenger_only"]["rows"], abs=4)


def rows_of_swaps() -> PeriodRows:
    n = 200
    score = np.linspace(0.0, 1.0, n)
    explored = np.arange(n) % 20 == 0
    keep = np.where(explored, 1.0, 0.25)
    nothing = np.zeros(n)
    return PeriodRows(
        models=["mdl_1"],
        model=np.zeros(n, np.int32),
        alias_revision=np.ones(n, np.int32),
        at=nothing,
        score=score,
        probability=score,
        threshold=np.full(n, 0.9),
        flag=(score >= 0.9).astype(np.int8),
        explored=explored,
        propensity=nothing,
        keep=keep,
        label=np.zeros(n, np.int8),
        weight=np.ones(n),
        corrected=np.zeros(n, np.int32),
        ambiguous=np.zeros(n, np.bool_),
        entity=np.arange(n, dtype=np.uint64),
        identified=np.zeros(n, np.bool_),
        kept=np.arange(n),
    )


@long_form
def test_corrections_do_not_change_a_closed_test(bench: Workbench, world: World) -> None:
    simulator = world(rows=2000)
    simulator.put_settings(feedback())
    rows = draw(simulator.rng, 800)
    ids = simulator.decide(MONDAY, rows)
    simulator.know(ids, rows.y.tolist(), MONDAY + 2 * WEEK)
    run_monitor(bench)
    before = [(each.family, each.found) for each in made_tests(bench.db)]
    simulator.know(ids, (~rows.y).tolist(), MONDAY + 3 * WEEK)
    assert schedule(bench) is None or bench.work().state == "succeeded"
    after = [(each.family, each.found) for each in made_tests(bench.db)]
    assert after[: len(before)] == before


@long_form
def test_another_prevalence_breaks_the_calibration_and_not_the_ranking(
    bench: Workbench, world: World
) -> None:
    simulator = world()
    assert simulator.served().calibration is not None
    simulator.put_settings(feedback())
    for number in range(1, 5):
        rows = draw(simulator.rng, 1500)
        if number >= 3:  # half of the negatives are not scored any more
            kept = rows.y | (simulator.rng.random(rows.size) < 0.5)
            rows = Rows(*(each[kept] for each in (rows.a, rows.b, rows.word, rows.y)))
        start = MONDAY + (number - 1) * WEEK
        simulator.know(simulator.decide(start, rows), rows.y.tolist(), start + WEEK)
    run_monitor(bench)
    calibration = [each.found["status"] for each in made_tests(bench.db, "calibration")[:4]]
    assert calibration[:2] == ["passed", "passed"]
    assert "alarm" in calibration[2:]
    assert {each.found["status"] for each in made_tests(bench.db, "ranking")[:4]} == {"passed"}
    assert {each.family for each in alarms(bench.db)} >= {"calibration"}


@long_form
@on_both
def test_a_job_that_dies_before_its_end_leaves_nothing_and_is_repeated(
    bench: Workbench, world: World
) -> None:
    simulator = world(rows=2000)
    simulator.put_settings(feedback())
    simulator.week(1, 400, shift=2.0)
    assert schedule(bench) is not None
    claim = bench.claim()
    result = execution.run(bench.prepare(claim), quiet)
    published = execution.publish(bench.blobs, claim, result)

    def die(session: Session) -> None:
        execution.complete(session, claim, result, published)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.db.writing(die)
    assert [*made_tests(bench.db), *alarms(bench.db)] == []
    bench.complete(claim, result)
    made = len(made_tests(bench.db))
    assert made > 0
    assert len(alarms(bench.db)) == 1
