"""The trace context of a request goes into the row of its job, and on to every attempt and child job."""

from __future__ import annotations

import pytest

from app.jobs import service as jobs
from app.platform import trace
from app.platform.database import Database
from tests.app.child_job_steps import end_part, fan_out, of
from tests.app.queue_steps import change, claimed, submit

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (PARENT, PARENT),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-03"),  # unknown flags are not passed on
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", PARENT),
        (f"cc-{TRACE}-{SPAN}-01", PARENT),
    ],
)
def test_a_valid_context_is_read(given: str, read: str) -> None:
    assert str(trace.parse(given)) == read


@pytest.mark.parametrize(
    "given",
    [
        "",
        "00",
        TRACE,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",  # version 00 has no more
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01\n",
        f"cc-{TRACE}-{SPAN}-01-\n",
        f" {PARENT}",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE[:-1]}٣-{SPAN}-01",
        PARENT.replace("-", "_"),
        PARENT + "\0",
        "'; DROP TABLE jobs; --",
        "00-" * 5000,
    ],
)
def test_a_malformed_context_is_ignored(given: str) -> None:
    assert trace.parse(given) is None
    with trace.resumed(given):
        assert trace.current_traceparent() is None


def test_a_job_and_its_attempts_have_the_context_of_its_request(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rankwright.jobs")
    with trace.resumed(PARENT):
        job = submit(db)
    assert trace.current_traceparent() is None
    assert job.traceparent == PARENT
    fan_out(db, claim := claimed(db), 2)
    assert claim.traceparent == PARENT
    assert [child.traceparent for child in of(db, job)] == [PARENT] * 2
    end_part(db, first := claimed(db))
    assert (first.parent_id, first.traceparent) == (job.id, PARENT)
    end_part(db, claimed(db))
    with db.write() as session:
        rest = jobs.enqueue_rest(session, claim, "importance", {}, min_timeout_seconds=1.0)
    assert rest.traceparent == PARENT
    traces = [record.fields.get("trace_id") for record in caplog.records]  # type: ignore[attr-defined]
    assert traces
    assert set(traces) == {TRACE}


def test_a_job_without_a_context_has_none(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rankwright.jobs")
    assert submit(db).traceparent is None
    assert claimed(db).traceparent is None
    assert all("trace_id" not in record.fields for record in caplog.records)  # type: ignore[attr-defined]


def test_a_malformed_context_in_a_row_does_no_harm(db: Database) -> None:
    job = submit(db)
    change(db, job.id, traceparent="'; DROP TABLE jobs; --")
    claim = claimed(db)
    with trace.resumed(claim.traceparent):
        assert trace.current_traceparent() is None
