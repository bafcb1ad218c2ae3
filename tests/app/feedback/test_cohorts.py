"""The cohort table: every decision is counted once in each period, and maturity goes by the time of the decision."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import httpx
import numpy as np
import pytest

from app.feedback import cohorts
from app.feedback.cohort_schemas import CohortCounts
from app.feedback.cohorts import start_of, tabulate
from app.feedback.joining import DAY_SECONDS, find_decisions, join
from app.feedback.outcomes import Outcomes
from app.feedback.periods import period_at
from app.platform.documents import OutcomeRule, PeriodKind
from app.platform.ids import new_id
from app.platform.sql import db_now
from app.platform.tables import OutcomeSegment
from tests.app.feedback.recording import add_decisions as record
from tests.app.live_service import OWNER, STRANGER, Service

MONDAY = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
RULE: OutcomeRule = {
    "horizon_days": 30.0,
    "silence": None,
    "attribute": "last_before_event",
}


def day(number: float) -> float:
    return MONDAY + number * DAY_SECONDS


def outcome(service: Service, owner: str = OWNER, **values: Any) -> None:
    row = {
        "decision_id": None,
        "label": "1",
        "source": None,
        "weight": None,
        "amount": None,
        "has_known_at": True,
    } | values
    columns: dict[str, Any] = {name: [value] for name, value in row.items()}
    outcomes = Outcomes(**columns)
    with service.context.db.write() as session:
        session.add(
            OutcomeSegment(
                id=new_id("out"),
                owner=owner,
                rows=1,
                first_known_at=row["known_at"],
                last_known_at=row["known_at"],
                segment_key=None,
                segment_bytes=None,
                content=outcomes.as_json(),
                received_at=db_now(),
            )
        )


def table(
    service: Service,
    as_of: float,
    period: PeriodKind = "week",
    since: float = 0.0,
    **rule: Any,
) -> cohorts.Tabulated:
    db = service.context.db
    own: Any = {**RULE, **rule}
    found = db.reading(find_decisions, OWNER, "churn", "live", own, since=since, until=as_of)
    joined = join(db.reading, service.blobs, OWNER, found, own, cohorts.COLUMNS)
    return tabulate(found, joined, period, own["horizon_days"])


def numbers(counts: CohortCounts) -> dict[str, float]:
    return {name: value for name, value in vars(counts).items() if value}


def test_cohorts_by_week(service: Service) -> None:
    record(
        service,
        [
            {"id": "a", "at": day(0), "threshold": 0.4, "flag": True},
            {"id": "b", "at": day(1), "threshold": 0.6, "flag": False, "explored": True},
            {"id": "c", "at": day(6.9), "model_id": "mdl_2", "keep": 0.5},
        ],
        lost=4,
    )
    record(service, [{"id": "d", "at": day(7)}, {"id": "a", "at": day(8)}])
    record(service, [{"id": "z", "at": day(7)}], alias="other")
    record(service, [{"id": "a", "at": day(7)}], owner=STRANGER)
    outcome(service, id="a", event_at=day(3), known_at=day(5))
    outcome(service, id="b", event_at=day(9), known_at=day(9), label="0")
    outcome(service, id="b", event_at=day(9), known_at=day(20), label="1")
    outcome(service, id="c", event_at=day(9), known_at=day(12), label=None)
    outcome(service, id="d", event_at=day(8), known_at=day(12), label="x")
    outcome(service, STRANGER, id="d", event_at=day(8), known_at=day(13), label="1")
    found = table(service, as_of=day(37))
    first, second = found.cohorts
    assert (first.start, first.end, first.lost) == (day(0), day(7), 4)
    assert (first.is_mature, second.is_mature) == (True, False)
    assert numbers(first.counts) == {
        "decisions": 3,
        "estimated": 4.0,
        "mature": 3,
        "with_outcome": 2,
        "positives": 2,
        "withdrawn": 1,
        "corrections": 1,
        "flagged": 1,
        "explored": 1,
    }
    assert [(p.model_id, p.threshold, p.counts.decisions) for p in first.parts] == [
        ("mdl_1", 0.4, 1),
        ("mdl_1", 0.6, 1),
        ("mdl_2", None, 1),
    ]
    assert numbers(second.counts) == {
        "decisions": 2,
        "estimated": 2.0,
        "mature": 1,
        "unrecognised": 1,
        "pending": 1,
    }
    assert found.total.decisions == 5
    last = first.arrival[-1]
    assert last.positive == pytest.approx(2 / 3)


def test_later_knowledge_is_not_seen(service: Service) -> None:
    record(service, [{"id": "a", "at": day(0)}, {"id": "b", "at": day(20)}])
    outcome(service, id="a", event_at=day(3), known_at=day(5), label="0")
    outcome(service, id="a", event_at=day(3), known_at=day(15), label="1")
    assert table(service, as_of=day(4)).total.with_outcome == 0
    before, after = table(service, as_of=day(10)).total, table(service, as_of=day(30)).total
    assert (before.decisions, before.positives, before.negatives, before.corrections) == (
        1,
        0,
        1,
        0,
    )
    assert (after.decisions, after.positives, after.negatives, after.corrections) == (2, 1, 0, 1)


def test_silence_is_negative_only_if_declared_and_mature(service: Service) -> None:
    record(
        service, [{"id": "a", "at": day(0)}, {"id": "b", "at": day(1)}, {"id": "c", "at": day(9)}]
    )
    outcome(service, id="b", event_at=day(2), known_at=day(2))
    unknown = table(service, as_of=day(35)).total
    assert (unknown.missing, unknown.silent, unknown.negatives, unknown.pending) == (1, 0, 0, 1)
    negative = table(service, as_of=day(35), silence="negative").total
    assert (negative.missing, negative.silent, negative.negatives, negative.pending) == (0, 1, 1, 1)
    assert negative.with_outcome == 1
    outcome(service, id="a", event_at=day(29), known_at=day(34))
    late = table(service, as_of=day(35), silence="negative").total
    assert (late.silent, late.positives) == (0, 2)


def test_an_event_after_the_horizon_does_not_count(service: Service) -> None:
    record(service, [{"id": "a", "at": day(0)}])
    outcome(service, id="a", event_at=day(31), known_at=day(31))
    found = table(service, as_of=day(40), silence="negative").total
    assert (found.positives, found.silent) == (0, 1)


def test_no_decisions(service: Service) -> None:
    found = table(service, as_of=day(1))
    assert (found.cohorts, found.arrival, found.total.decisions) == ([], [], 0)


def test_every_decision_is_in_one_state(service: Service) -> None:
    rng = np.random.default_rng(3)
    times = np.sort(rng.uniform(0, 70, 300))
    rows = [{"id": f"e{rng.integers(80)}", "at": day(float(at))} for at in times]
    for start in range(0, 300, 100):
        record(service, rows[start : start + 100])
    for _ in range(40):
        event = float(rng.uniform(0, 80))
        label = [None, "0", "1", "x"][rng.integers(4)]
        known = day(event + float(rng.uniform(0, 20)))
        id_ = f"e{rng.integers(90)}"
        outcome(service, id=id_, event_at=day(event), known_at=known, label=label)
    periods: tuple[PeriodKind, ...] = ("day", "week", "month")
    for period in periods:
        found = table(service, as_of=day(75), period=period, silence="negative")
        starts = (start_of(np.array([row["at"]]), period)[0] * DAY_SECONDS for row in rows)
        assert {each.start: each.counts.decisions for each in found.cohorts} == Counter(starts)
        for each in (found.total, *(cohort.counts for cohort in found.cohorts)):
            known_states = (each.with_outcome, each.silent, each.withdrawn, each.unrecognised)
            assert sum(known_states) + each.pending + each.missing == each.decisions
            assert each.positives + each.negatives == each.with_outcome + each.silent
        assert found.total.decisions == 300
        assert found.total.positives > 0


def test_periods_follow_each_other() -> None:
    for period in ("day", "week", "month"):
        start = int(start_of(np.array([MONDAY]), period)[0])
        for _ in range(500):
            end = int(period_at(start * DAY_SECONDS, period).end / DAY_SECONDS)
            inside = np.array([start, end - 1e-3, end]) * DAY_SECONDS
            assert start_of(inside, period).tolist() == [start, start, end]
            start = end
        before = np.array([-1.0, -40 * DAY_SECONDS])
        assert (start_of(before, period) < 0).all()


@pytest.mark.parametrize(
    ("rule", "positives"), [("last_before_event", 1), ("first_before_event", 0)]
)
def test_the_first_decision_may_be_before_the_periods(
    service: Service, rule: str, positives: int
) -> None:
    record(service, [{"id": "a", "at": day(0)}])
    record(service, [{"id": "a", "at": day(20)}])
    outcome(service, id="a", event_at=day(21), known_at=day(22))
    found = table(service, as_of=day(30), since=day(14), attribute=rule)
    assert (found.total.decisions, found.total.positives) == (1, positives)


def test_a_decision_that_is_recorded_twice_counts_once(service: Service) -> None:
    row = {"id": "a", "at": day(0), "decision_id": new_id("dec")}
    for _ in range(2):
        record(service, [row, {"id": "b", "at": day(1)}])
    outcome(service, id="a", event_at=day(21), known_at=day(22))
    found = table(service, as_of=day(30))
    assert (found.total.decisions, found.total.positives) == (3, 1)


ROUTE = "/v1/models/churn/aliases/live/cohorts"


@pytest.fixture
def watched(service: Service, client: httpx.Client) -> httpx.Client:
    """A client of an owner whose alias `churn@live` records decisions."""
    made = service.train(client, service.upload(client))["output"]["id"]
    assert client.put("/v1/models/churn/aliases/live", json={"model_id": made}).is_success
    settings = {"outcome": {"horizon_days": 30, "silence": None}}
    assert client.put("/v1/models/churn/aliases/live/feedback", json=settings).is_success
    return client


def test_the_table_over_http(
    service: Service, watched: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(
        service, [{"id": "a", "at": day(0), "threshold": 0.4}, {"id": "b", "at": day(9)}], lost=2
    )
    outcome(service, id="a", event_at=day(3), known_at=day(5))
    query = {"as_of": "2026-04-15T00:00:00Z", "periods": "8"}
    found = watched.get(ROUTE, params=query).json()
    assert (found["period"], found["outcome"]["horizon_days"]) == ("week", 30.0)
    first, second = found["cohorts"]
    assert (first["start"], first["lost"], first["is_mature"]) == (
        "2026-03-02T00:00:00.000Z",
        2,
        True,
    )
    assert first["counts"]["positives"] == 1
    assert first["parts"][0]["threshold"] == 0.4
    assert (first["arrival"][1]["days"], first["arrival"][1]["positive"]) == (5.0, 1.0)
    assert second["counts"]["pending"] + second["counts"]["missing"] == 1
    assert found["total"]["decisions"] == 2
    few = watched.get(ROUTE, params=query | {"periods": "1", "period": "month"}).json()
    assert few["cohorts"] == []
    early = watched.get(ROUTE, params=query | {"as_of": "0001-01-01T00:00:00Z", "period": "month"})
    assert early.json()["cohorts"] == []
    monkeypatch.setattr("app.feedback.cohort_endpoints.MAX_DECISIONS", 1)
    answer = watched.get(ROUTE, params=query)
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_rows")
    for bad in ("period=year", "periods=0", "periods=401", "as_of=1", "as_of=2026-01-01", "x=1"):
        assert watched.get(f"{ROUTE}?{bad}").status_code == 422
    assert watched.get("/v1/models/churn/aliases/other/cohorts").status_code == 404
