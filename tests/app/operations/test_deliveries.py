"""Deliveries to webhooks: at least once and with the same id, whatever dies; retried, bounded and fair."""

from __future__ import annotations

import base64
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select, text, update
from sqlalchemy import event as sql_event
from standardwebhooks import Webhook as Verifier

from app.operations import deliveries
from app.operations.deliveries import (
    FAILING_SECONDS,
    JITTER,
    MAX_ATTEMPTS_AT_ONCE,
    MAX_OF_WEBHOOK,
    MAX_RETRY_AFTER_SECONDS,
    RETRY_SECONDS,
    Courier,
    delay_seconds,
)
from app.platform import failpoints, outbox
from app.platform.database import Database
from app.platform.encryption import Cipher, read_keys
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import db_now
from app.platform.tables import (
    AuditEntry,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    OutboxEvent,
    Webhook,
    WebhookDisabled,
)
from app.webhooks.delivery_repository import WebhookCounts, count_webhooks
from app.webhooks.secrets import new_secret
from app.webhooks.sending import Sender
from tests.app.operations import mortal
from tests.app.webhooks.receivers import Receiver, status
from tests.long_form import DATABASES, long_form, rest
from tests.waiting import eventually, patience

OWNER = "ada"
SECRET, OLD = new_secret(), new_secret()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode())
    return file


@pytest.fixture
def settings(keys: Path) -> Settings:
    return Settings(secrets_keys_file=keys, webhook_networks="127.0.0.0/8")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().serve() as receiver:
        yield receiver


@pytest.fixture
def courier(db: Database, settings: Settings) -> Courier:
    return patient(db, settings)


def hook(db: Database, settings: Settings, url: str, owner: str = OWNER, **values: Any) -> str:
    """Add a webhook; returns its id."""
    assert settings.secrets_keys_file is not None
    cipher = Cipher(read_keys(settings.secrets_keys_file))
    row = Webhook(
        id=new_id("wh"),
        owner=owner,
        url=url,
        description="",
        events=[],
        secret=cipher.encrypt(SECRET),
        previous_secret=cipher.encrypt(OLD),
        created_at=db_now(),
    )
    for name, value in values.items():
        setattr(row, name, value)
    with db.write() as session:
        session.add(row)
        session.flush()
        return row.id


def event(db: Database, *targets: str, owner: str = OWNER) -> str:
    id_ = db.writing(outbox.record, owner, "job.succeeded", {"id": "job_1"}, targets)
    assert id_ is not None
    return id_


def deliver(courier: Courier) -> None:
    """Make the attempts that are due, until none is."""
    while courier.start_due():
        assert courier.wait(patience())


def make_due(db: Database) -> None:
    """End all leases, and all waits for retries."""
    with db.write() as session:
        session.execute(
            update(Delivery).where(Delivery.state == DeliveryState.QUEUED).values(due_at=1.0)
        )


def state(db: Database, event_id: str) -> tuple[str, int, list[tuple[int, int | None, str | None]]]:
    """The state of the delivery of an event, its number of attempts, and each as number, status and error."""
    with db.read() as session:
        delivery = session.scalars(select(Delivery).where(Delivery.event_id == event_id)).one()
        attempts = session.scalars(
            select(DeliveryAttempt)
            .where(DeliveryAttempt.event_id == event_id)
            .order_by(DeliveryAttempt.attempt)
        )
        logged = [(each.attempt, each.status, each.error) for each in attempts]
        return delivery.state, delivery.attempt, logged


def webhook(db: Database, id_: str) -> Webhook:
    with db.read() as session:
        return session.get_one(Webhook, id_)


def test_an_event_arrives_signed_with_both_secrets_after_a_rotation(
    db: Database, settings: Settings, courier: Courier, receiver: Receiver
) -> None:
    later = db.reading(lambda session: session.execute(select(db_now())).scalar_one()) + 3600.0
    id_ = hook(db, settings, receiver.url, previous_valid_until=later)
    sent = event(db, id_)
    deliver(courier)
    assert state(db, sent) == ("delivered", 1, [(1, 204, None)])
    [found] = receiver.received
    assert found.id == sent
    for secret in (SECRET, OLD):
        body = Verifier(secret).verify(found.body, dict(found.headers))
        assert isinstance(body, dict)
        assert (body["type"], body["data"]) == ("job.succeeded", {"id": "job_1"})
    with db.write() as session:
        session.execute(update(Webhook).values(previous_valid_until=1.0))
    event(db, id_)
    deliver(courier)
    assert len(receiver.received[1].headers["webhook-signature"].split()) == 1


def test_failures_are_retried_with_the_same_id_and_body_and_success_ends_them(
    db: Database, settings: Settings, courier: Courier, receiver: Receiver
) -> None:
    id_ = hook(db, settings, receiver.url)
    sent = event(db, id_)
    for code in (500, 302, 404):
        receiver.answer = status(code)
        deliver(courier)
        assert webhook(db, id_).failing_since is not None
        make_due(db)
    receiver.answer = status(200)
    deliver(courier)
    assert state(db, sent) == (
        "delivered",
        4,
        [(1, 500, None), (2, 302, None), (3, 404, None), (4, 200, None)],
    )
    assert receiver.ids() == [sent] * 4
    assert len({each.body for each in receiver.received}) == 1
    assert webhook(db, id_).failing_since is None


def test_the_schedule_ends_after_three_days(
    db: Database, settings: Settings, courier: Courier, receiver: Receiver
) -> None:
    receiver.answer = status(503)
    id_ = hook(db, settings, receiver.url)
    sent = event(db, id_)
    for number in range(1, len(RETRY_SECONDS) + 2):
        deliver(courier)
        assert state(db, sent)[1] == number
        make_due(db)
    assert state(db, sent)[0] == "failed"
    deliver(courier)
    assert len(receiver.received) == len(RETRY_SECONDS) + 1
    assert webhook(db, id_).disabled_at is None
    assert 3 * 86_400 <= sum(RETRY_SECONDS) <= 3.5 * 86_400


def test_the_time_to_the_next_attempt() -> None:
    for attempt, planned in enumerate(RETRY_SECONDS, 1):
        found = {delay_seconds(attempt, None) for _ in range(50)}
        assert all(
            each is not None and planned * (1 - JITTER) <= each <= planned * (1 + JITTER)
            for each in found
        )
        assert len(found) > 1
    assert delay_seconds(len(RETRY_SECONDS) + 1, 10.0) is None
    assert delay_seconds(1, 100.0) == 100.0
    assert delay_seconds(1, 1e9) == MAX_RETRY_AFTER_SECONDS
    assert (delay_seconds(9, 1.0) or 0.0) > 70_000.0


def disabled(db: Database, id_: str) -> tuple[bool, str | None, list[str]]:
    with db.read() as session:
        entries = session.scalars(
            select(AuditEntry.summary).where(
                AuditEntry.owner == OWNER, AuditEntry.principal_id.is_(None)
            )
        ).all()
    row = webhook(db, id_)
    return row.disabled_at is not None, row.disabled_reason, [each or "" for each in entries]


def test_the_status_410_disables_at_once(
    db: Database,
    settings: Settings,
    courier: Courier,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver.answer = status(410)
    id_ = hook(db, settings, receiver.url)
    sent, waiting = event(db, id_), event(db, id_)
    with db.write() as session:
        session.execute(
            update(Delivery).where(Delivery.event_id == waiting).values(due_at=db_now() + 1e6)
        )
    deliver(courier)
    assert state(db, sent) == ("failed", 1, [(1, 410, None)])
    assert state(db, waiting)[0] == "failed"
    is_disabled, reason, entries = disabled(db, id_)
    assert (is_disabled, reason, len(entries)) == (True, WebhookDisabled.GONE, 1)
    assert id_ in entries[0]
    assert any(id_ in each.getMessage() for each in caplog.records if each.levelno >= 30)


def test_five_days_without_success_disable(
    db: Database, settings: Settings, courier: Courier, receiver: Receiver
) -> None:
    receiver.answer = status(500)
    id_ = hook(db, settings, receiver.url, failing_since=db_now() - FAILING_SECONDS + 3600)
    event(db, id_)
    deliver(courier)
    assert disabled(db, id_)[0] is False
    with db.write() as session:
        session.execute(update(Webhook).values(failing_since=db_now() - FAILING_SECONDS - 1))
    sent = event(db, id_)
    deliver(courier)
    assert disabled(db, id_)[:2] == (True, WebhookDisabled.FAILING)
    assert state(db, sent)[0] == "failed"
    assert len(disabled(db, id_)[2]) == 1


def test_a_success_after_years_of_failures_disables_nothing(
    db: Database, settings: Settings, courier: Courier, receiver: Receiver
) -> None:
    id_ = hook(db, settings, receiver.url, failing_since=1.0)
    event(db, id_)
    deliver(courier)
    assert disabled(db, id_) == (False, None, [])
    assert webhook(db, id_).failing_since is None


def test_deliveries_without_an_active_webhook_fail(
    db: Database, settings: Settings, courier: Courier, receiver: Receiver
) -> None:
    off = hook(db, settings, receiver.url, disabled_at=1.0, disabled_reason="requested")
    sent, deleted = event(db, off), event(db, "wh_deleted")
    deliver(courier)
    for each in (sent, deleted):
        assert state(db, each) == ("failed", 0, [])
    assert receiver.received == []


def test_what_is_deleted_while_it_is_sent_leaves_nothing(
    db: Database, settings: Settings, courier: Courier, receiver: Receiver
) -> None:
    id_ = hook(db, settings, receiver.url)
    event(db, id_)
    kept = event(db, hook(db, settings, receiver.url))

    def answer(found: Any, connection: Any) -> None:
        if found.id != kept:
            with db.write() as session:
                session.execute(delete(OutboxEvent).where(OutboxEvent.id == found.id))
                session.execute(delete(Webhook).where(Webhook.id == id_))
        status(204)(found, connection)

    receiver.answer = answer
    deliver(courier)
    assert state(db, kept)[0] == "delivered"
    with db.read() as session:
        assert session.scalars(select(DeliveryAttempt.event_id)).all() == [kept]


@pytest.mark.parametrize("given", ["none", "other", "damaged"])
def test_a_secret_that_cannot_be_read_is_a_failed_attempt(
    db: Database, settings: Settings, receiver: Receiver, tmp_path: Path, given: str
) -> None:
    sent = event(db, hook(db, settings, receiver.url))
    other = tmp_path / "other"
    other.write_text(base64.b64encode(os.urandom(32)).decode())
    wrong = Settings(
        secrets_keys_file=None if given == "none" else other,
        webhook_networks="127.0.0.0/8",
        state_dir=tmp_path,
    )
    if given == "damaged":
        other.write_text("x")
    deliver(patient(db, wrong))
    assert state(db, sent) == ("queued", 1, [(1, None, "secret_unreadable")])
    assert receiver.received == []
    make_due(db)
    deliver(patient(db, settings))
    assert state(db, sent)[0] == "delivered"


on_both = pytest.mark.parametrize("database_url", DATABASES, indirect=True)
POINTS = [point for point in failpoints.POINTS if point.startswith("delivery_")]


@on_both
@pytest.mark.parametrize(
    "point", ["delivery_sent", *rest(*(point for point in POINTS if point != "delivery_sent"))]
)
def test_a_death_at_any_step_loses_nothing(
    database_url: str,
    db: Database,
    settings: Settings,
    keys: Path,
    receiver: Receiver,
    point: str,
) -> None:
    id_ = hook(db, settings, receiver.url)
    sent = [event(db, id_) for _ in range(3)]
    seam = f"{point}=kill@2" if point == "delivery_end" else f"{point}=kill"
    assert mortal.work(seam, mortal.deliver, database_url, keys) == -signal.SIGKILL
    before = set(receiver.ids())
    make_due(db)
    deliver(patient(db, settings))
    assert set(receiver.ids()) == set(sent)
    assert before <= set(sent)
    for each in sent:
        assert state(db, each)[0] == "delivered"


@pytest.mark.parametrize("point", POINTS)
def test_an_error_at_any_step_loses_nothing(
    db: Database,
    settings: Settings,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    sent = event(db, hook(db, settings, receiver.url))
    monkeypatch.setattr(failpoints, "armed", failpoints.parse(f"{point}=raise"))
    courier, stop = patient(db, settings), threading.Event()
    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.01)
    thread = threading.Thread(target=courier.run, args=(stop,))
    thread.start()

    def is_delivered() -> bool:
        make_due(db)
        return state(db, sent)[0] == "delivered"

    try:
        eventually(is_delivered)
    finally:
        stop.set()
        thread.join()
    assert set(receiver.ids()) == {sent}


def test_two_dispatchers_send_each_delivery_once(
    db: Database, settings: Settings, receiver: Receiver
) -> None:
    ids = [hook(db, settings, receiver.url) for _ in range(3)]
    sent = [event(db, *ids) for _ in range(8)]
    couriers = [patient(db, settings) for _ in range(3)]
    threads = [threading.Thread(target=deliver, args=(each,)) for each in couriers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    deliver(couriers[0])
    assert sorted(receiver.ids()) == sorted(sent * 3)


class Held:
    """A receiver that answers no request until `free` is set."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.receiver = Receiver(answer=self.answer)

    def answer(self, found: Any, connection: Any) -> None:
        self.free.wait()
        status(204)(found, connection)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    with held.receiver.serve():
        yield held
        held.free.set()


def patient(db: Database, settings: Settings) -> Courier:
    """A courier whose attempts end only when the receiver answers."""
    return Courier(db, settings, Sender(settings.networks_of_webhooks, seconds=patience()))


def test_a_slow_receiver_holds_up_no_other(
    db: Database, settings: Settings, receiver: Receiver, held: Held
) -> None:
    slow = hook(db, settings, held.receiver.url)
    quick = hook(db, settings, receiver.url)
    for _ in range(50):
        event(db, slow)
    for _ in range(8):
        event(db, quick)
    courier = patient(db, settings)
    eventually(lambda: courier.start_due() == 0 and len(receiver.received) == 8)
    assert len(held.receiver.received) == MAX_OF_WEBHOOK
    held.free.set()
    assert courier.wait(patience())


def test_slow_webhooks_of_one_owner_hold_up_no_other_owner(
    db: Database, settings: Settings, receiver: Receiver, held: Held
) -> None:
    slow = [hook(db, settings, held.receiver.url) for _ in range(20)]
    for _ in range(5):
        event(db, *slow)
    courier = patient(db, settings)
    eventually(lambda: courier.start_due() == 0)
    eventually(lambda: len(held.receiver.received) == MAX_ATTEMPTS_AT_ONCE // 2)
    for number in range(3):
        owner = f"owner {number}"
        sent = event(db, hook(db, settings, receiver.url, owner), owner=owner)
        eventually(lambda: courier.start_due() == 0 and sent in receiver.ids())  # noqa: B023
    assert len(held.receiver.received) == MAX_ATTEMPTS_AT_ONCE // 2
    held.free.set()
    assert courier.wait(patience())


def test_a_failing_webhook_gets_one_attempt_at_a_time(
    db: Database, settings: Settings, held: Held
) -> None:
    id_ = hook(db, settings, held.receiver.url, failing_since=1.0)
    for _ in range(5):
        event(db, id_)
    courier = patient(db, settings)
    assert courier.start_due() == 1
    assert courier.start_due() == 0
    held.free.set()
    assert courier.wait(patience())


def test_a_resolver_that_hangs_keeps_its_place(
    db: Database, settings: Settings, receiver: Receiver
) -> None:
    free = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        free.wait()
        return ["127.0.0.1"]

    slow = hook(db, settings, f"http://slow.example:{receiver.port}/")
    sent = [event(db, slow) for _ in range(10)]
    sender = Sender(settings.networks_of_webhooks, resolve=resolve, seconds=0.05)
    courier = Courier(db, settings, sender)
    assert courier.start_due() == MAX_OF_WEBHOOK
    assert courier.wait(patience())  # all have timed out
    assert courier.start_due() == 0
    assert {error for each in sent for _, _, error in state(db, each)[2]} == {"timed_out"}
    free.set()
    eventually(lambda: courier.start_due() > 0)
    assert courier.wait(patience())


def test_a_stopping_dispatcher_waits_for_attempts_but_not_forever(
    db: Database, settings: Settings, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "STOP_SECONDS", 0.1)
    sent = event(db, hook(db, settings, held.receiver.url))
    courier, stop = patient(db, settings), threading.Event()
    assert courier.start_due() == 1
    eventually(lambda: held.receiver.received)
    stop.set()
    courier.run(stop)
    held.free.set()
    assert courier.wait(patience())
    assert state(db, sent) == ("queued", 1, [])  # sent again after its lease


def test_an_outage_of_the_database_while_an_outcome_is_written(
    db: Database,
    settings: Settings,
    receiver: Receiver,
    courier: Courier,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from app.platform.errors import Unavailable

    monkeypatch.setattr(deliveries, "LOOK_SECONDS", 0.01)
    sent = event(db, hook(db, settings, receiver.url))
    fails = iter([True, True, False])
    write: Callable[..., Any] = deliveries.end_attempt

    def end(*given: Any) -> Any:
        if next(fails):
            raise Unavailable("down")
        return write(*given)

    monkeypatch.setattr(deliveries, "end_attempt", end)
    deliver(courier)
    assert state(db, sent)[0] == "delivered"
    assert receiver.ids() == [sent]


@long_form
def test_an_idle_dispatcher_reads_one_row_of_an_index(db: Database, settings: Settings) -> None:
    id_ = hook(db, settings, "http://127.0.0.1:9/")
    for _ in range(300):
        event(db, id_)
    with db.write() as session:
        session.execute(update(Delivery).values(due_at=db_now() + 1e6))
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "deliveries" in statement:
            seen.append((statement, parameters))

    sql_event.listen(db.engine, "before_cursor_execute", note)
    assert patient(db, settings).start_due() == 0
    sql_event.remove(db.engine, "before_cursor_execute", note)
    [(statement, parameters)] = seen
    explain = "EXPLAIN" if db.dialect == "postgresql" else "EXPLAIN QUERY PLAN"
    with db.write() as session:
        if db.dialect == "postgresql":
            session.execute(text("ANALYZE deliveries"))
            session.execute(text("SET LOCAL enable_seqscan = off"))  # for so few rows
        found = session.connection().exec_driver_sql(f"{explain} {statement}", parameters)
        plan = str(found.all())
    assert "ix_deliveries_state_due_at" in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


def test_secrets_and_urls_are_not_logged(
    db: Database, settings: Settings, courier: Courier, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sent = event(db, hook(db, settings, "http://127.0.0.1:1/path-with-a-token"))
    deliver(courier)
    assert state(db, sent)[2] == [(1, None, "connection_failed")]
    for record in caplog.records:
        assert "path-with-a-token" not in record.getMessage()
        assert SECRET not in record.getMessage()


def test_counts_for_metrics_and_doctor(db: Database, settings: Settings) -> None:
    assert db.reading(count_webhooks) == WebhookCounts(0, 0, 0, 0.0)
    url = "https://receiver.example/"
    working, waiting = hook(db, settings, url), hook(db, settings, url)
    failing = hook(db, settings, url, failing_since=1.0)
    disabled_ = hook(db, settings, url, disabled_at=1.0, failing_since=1.0)
    for target, late in ((working, 500.0), (waiting, -500.0), (failing, 900.0), (disabled_, 900.0)):
        sent = event(db, target)
        with db.write() as session:
            due_at = db_now() - late
            session.execute(update(Delivery).where(Delivery.event_id == sent).values(due_at=due_at))
    found = db.reading(count_webhooks)
    assert (found.working, found.failing, found.disabled) == (2, 1, 1)
    assert 500.0 <= found.late_seconds < 900.0
