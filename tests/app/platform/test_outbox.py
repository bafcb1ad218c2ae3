"""The outbox: an event is recorded with its cause, and each delivery is claimed by one process at a time."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from app.platform import outbox
from app.platform.database import Database
from app.platform.outbox import ClaimedDelivery
from app.platform.tables import Delivery, OutboxEvent
from tests.app.queue_steps import OWNER, at_once

DATA = {"id": "mdl_1", "metric": 0.5}
LEASE = 60.0


def recorded(db: Database, *targets: str, owner: str = OWNER) -> str:
    id_ = db.writing(outbox.record, owner, "model.created", DATA, targets)
    assert id_ is not None
    return id_


def claimed(
    db: Database, limit: int = 10, target: str | None = None, lease: float = LEASE
) -> list[ClaimedDelivery]:
    """Claim deliveries to a target, or to each that has some."""
    if target is not None:
        return db.writing(outbox.claim, target, limit, lease)
    with db.read() as session:
        found = session.scalars(select(Delivery.target).distinct().order_by(Delivery.target)).all()
    return [each for name in found for each in db.writing(outbox.claim, name, limit, lease)]


def counts(db: Database) -> tuple[int, int]:
    with db.read() as session:
        tables = (OutboxEvent, Delivery)
        events, deliveries = (
            session.scalars(select(func.count()).select_from(table)).one() for table in tables
        )
        return events, deliveries


def end_leases(db: Database) -> None:
    with db.write() as session:
        session.execute(update(Delivery).values(due_at=0.0))


def test_an_event_is_delivered_to_each_target(db: Database) -> None:
    id_ = recorded(db, "wh_a", "wh_b", "wh_a")
    found = claimed(db)
    assert [(each.event_id, each.target) for each in found] == [(id_, "wh_a"), (id_, "wh_b")]
    assert {(each.owner, each.type, each.attempt) for each in found} == {
        (OWNER, "model.created", 1)
    }
    assert all(each.data == DATA for each in found)
    assert claimed(db) == []
    assert all(db.writing(outbox.succeed, each) for each in found)
    end_leases(db)
    assert claimed(db) == []


def test_without_a_target_nothing_is_written(db: Database) -> None:
    assert db.writing(outbox.record, OWNER, "model.created", DATA, ()) is None
    assert counts(db) == (0, 0)


def test_a_cause_that_is_rolled_back_leaves_nothing(db: Database) -> None:
    def cause_and_fail() -> None:
        with db.write() as session:
            outbox.record(session, OWNER, "model.created", DATA, ["wh_a"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        cause_and_fail()
    assert counts(db) == (0, 0)


def test_claims_at_once_never_get_the_same_delivery(db: Database) -> None:
    for _ in range(20):
        recorded(db, "wh_a")
    recorded(db, "wh_b")
    found = at_once(*[functools.partial(claimed, db, 5, "wh_a")] * 6)
    keys = [(each.event_id, each.target) for batch in found for each in batch]
    assert len(keys) == len(set(keys))
    assert all(len(batch) <= 5 for batch in found)
    while batch := claimed(db, 5, "wh_a"):  # those whose rows another claim had locked
        keys += [(each.event_id, each.target) for each in batch]
    assert len(keys) == len(set(keys)) == 20
    assert [each.target for each in claimed(db)] == ["wh_b"]


def test_the_longest_due_is_claimed_first_up_to_the_limit(db: Database) -> None:
    ids = [recorded(db, "wh_a") for _ in range(3)]
    with db.write() as session:
        session.execute(update(Delivery).where(Delivery.event_id == ids[2]).values(due_at=1.0))
    assert [each.event_id for each in claimed(db, 2)] == [ids[2], ids[0]]
    assert [each.event_id for each in claimed(db, 2)] == [ids[1]]


def test_a_delivery_whose_lease_has_ended_is_claimed_again(db: Database) -> None:
    recorded(db, "wh_a")
    (lost,) = claimed(db)
    end_leases(db)
    (held,) = claimed(db)
    assert (held.event_id, held.attempt) == (lost.event_id, 2)
    assert held.lease_token > lost.lease_token
    assert not db.writing(outbox.succeed, lost)
    assert not db.writing(outbox.fail, lost)
    assert not db.writing(outbox.retry, lost, 0.0)
    assert db.writing(outbox.succeed, held)
    assert not db.writing(outbox.fail, held)


def test_a_retry_is_due_later_and_ends_the_lease(db: Database) -> None:
    recorded(db, "wh_a")
    (first,) = claimed(db)
    assert db.writing(outbox.retry, first, 3600.0)
    assert claimed(db) == []
    assert not db.writing(outbox.succeed, first)
    end_leases(db)
    (second,) = claimed(db)
    assert db.writing(outbox.retry, second, 0.0)
    (third,) = claimed(db)
    assert (second.attempt, third.attempt) == (2, 3)


def test_a_delivery_that_was_given_up_is_never_claimed(db: Database) -> None:
    recorded(db, "wh_a", "wh_b")
    first, other = claimed(db)
    assert db.writing(outbox.fail, first)
    end_leases(db)
    assert [each.target for each in claimed(db)] == [other.target]


def test_another_token_or_target_changes_nothing(db: Database) -> None:
    recorded(db, "wh_a")
    (held,) = claimed(db)
    for wrong in (
        replace(held, lease_token=held.lease_token + 1),
        replace(held, target="wh_b"),
        replace(held, event_id="evt_x"),
    ):
        assert not db.writing(outbox.succeed, wrong)
    assert db.writing(outbox.succeed, held)


def test_whether_anything_is_due(db: Database) -> None:
    assert not db.reading(outbox.is_any_due)
    recorded(db, "wh_a")
    assert db.reading(outbox.is_any_due)
    (held,) = claimed(db)
    assert not db.reading(outbox.is_any_due)
    end_leases(db)
    assert db.reading(outbox.is_any_due)
    assert db.writing(outbox.succeed, held)  # nobody else has claimed it
    assert not db.reading(outbox.is_any_due)
