"""Slots: a warm process each, jobs claimed for it, limits kept, every end written."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from threading import Thread

import pytest
from harness import ENDLESS, LONG, Shop, csv_table, is_running
from servers import eventually
from sqlalchemy import update

from app.db.tables import Job
from app.services import datasets, jobs
from workers.slots import Slots

MakeShop = Callable[..., Shop]
MakeSlots = Callable[[Shop], Slots]

BIG = 100_000  # rows
SMALL = 500

# What touches the claim runs on SQLite and PostgreSQL; the rest does not depend on the database.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def fit_process(slots: Slots) -> int:
    """The pid of the only slot's process, once it is warm."""

    def warm() -> int | None:
        process = slots._slots[0]._process
        return process.pid if slots._idle and process is not None else None

    pid: int = eventually(warm, seconds=60)
    return pid


def hurry(shop: Shop, job_id: str) -> None:
    """Take the back-off away, so that the test need not wait for it."""
    with shop.db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))


def test_a_wake_up_starts_the_next_job_and_goes_on_until_none_is_left(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    shop = make_shop(look_seconds=600.0)  # so that only the wake-up can have done it
    slots = make_slots(shop)
    dataset_id = shop.upload(csv_table(200))
    slots.wake()
    eventually(lambda: datasets.get(shop.db, "tester", dataset_id).status == "ready")
    fit_process(slots)  # idle again: what comes now, only the next wake-up can tell of
    first, second = shop.train(dataset_id, 5), shop.train(dataset_id, 5)
    slots.wake()
    for job_id in (first, second):
        job = shop.reaches(job_id, "succeeded")
        assert (job.attempt, job.worker_id) == (1, "wrk_0")
        assert shop.models_of(job_id) == 1
        assert shop.states_of(job_id) == ["queued", "running", "succeeded"]
    assert (slots.by_message, slots.by_look) == (2, 0)


@on_sqlite
def test_a_lost_message_is_found_by_the_look(make_shop: MakeShop, make_slots: MakeSlots) -> None:
    shop = make_shop()
    slots = make_slots(shop)
    dataset_id = shop.ready_table()
    assert shop.reaches(shop.train(dataset_id, 5), "succeeded").attempt == 1
    assert slots.by_message == 0
    assert slots.by_look == slots.looks_in_a_row >= 1


@on_sqlite
def test_a_wake_up_waits_for_an_idle_slot(make_shop: MakeShop, make_slots: MakeSlots) -> None:
    shop = make_shop()
    slots = make_slots(shop)
    job_id = shop.train(shop.ready_table(BIG), ENDLESS)
    shop.fitting(job_id)
    hoarded = Thread(target=slots.wake)
    hoarded.start()
    hoarded.join(0.3)
    assert hoarded.is_alive()
    jobs.cancel(shop.db, "tester", job_id)
    hoarded.join(30)
    assert not hoarded.is_alive()


def test_two_slots_run_two_jobs_at_once(make_shop: MakeShop, make_slots: MakeSlots) -> None:
    shop = make_shop(worker_slots=2)
    make_slots(shop)
    dataset_id = shop.ready_table(BIG)
    both = [shop.train(dataset_id, ENDLESS) for _ in range(2)]
    for job_id in both:
        shop.fitting(job_id)
    assert {shop.job(job_id).state for job_id in both} == {"running"}


@on_sqlite
def test_a_killed_fit_process_is_replaced_and_its_job_runs_again(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    shop = make_shop()
    slots = make_slots(shop)
    dataset_id = shop.ready_table(SMALL)
    pid = fit_process(slots)
    job_id = shop.train(dataset_id, LONG)
    shop.fitting(job_id)
    os.kill(pid, signal.SIGKILL)
    shop.reaches(job_id, "queued")
    hurry(shop, job_id)
    job = shop.reaches(job_id, "succeeded")
    assert job.attempt == 2
    assert shop.models_of(job_id) == 1
    assert shop.states_of(job_id) == ["queued", "running", "queued", "running", "succeeded"]
    reasons = [e.data.get("reason") for e in jobs.events(shop.db, "tester", job_id, after=0)]
    assert f"fit process {pid} was killed by SIGKILL" in reasons
    assert fit_process(slots) != pid


@on_sqlite
def test_a_process_that_died_idle_costs_no_attempt(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    shop = make_shop(look_seconds=600.0)
    slots = make_slots(shop)
    dataset_id = shop.upload(csv_table(200))
    pid = fit_process(slots)
    process = slots._slots[0]._process
    assert process is not None
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not process.alive)
    slots.wake()
    eventually(lambda: datasets.get(shop.db, "tester", dataset_id).status == "ready", seconds=60)
    ingest = jobs.list_page(shop.db, "tester", kind="ingest").data[0]
    assert ingest.attempt == 1


def test_cancel_stops_the_fit_and_keeps_the_process(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    shop = make_shop()
    slots = make_slots(shop)
    dataset_id = shop.ready_table(BIG)
    pid = fit_process(slots)
    job_id = shop.train(dataset_id, ENDLESS)
    shop.fitting(job_id)
    jobs.cancel(shop.db, "tester", job_id)
    job = shop.ends(job_id)
    assert (job.state, job.error, shop.models_of(job_id)) == ("cancelled", None, 0)
    assert fit_process(slots) == pid


@on_sqlite
def test_a_fit_that_does_not_hear_is_killed(make_shop: MakeShop, make_slots: MakeSlots) -> None:
    shop = make_shop()
    slots = make_slots(shop)
    dataset_id = shop.ready_table(BIG)
    pid = fit_process(slots)
    job_id = shop.train(dataset_id, ENDLESS)
    shop.fitting(job_id)
    os.kill(pid, signal.SIGSTOP)
    jobs.cancel(shop.db, "tester", job_id)
    assert shop.ends(job_id).state == "cancelled"
    assert not is_running(pid)
    assert fit_process(slots) != pid


@on_sqlite
def test_a_job_past_its_timeout_is_stopped(make_shop: MakeShop, make_slots: MakeSlots) -> None:
    shop = make_shop()
    make_slots(shop)
    job_id = shop.train(shop.ready_table(BIG), ENDLESS, timeout_seconds=0.25)
    job = shop.ends(job_id)
    assert job.state == "timed_out"
    assert job.error is not None
    assert job.error["code"] == "timed_out"
    assert "timeout_seconds (0.25)" in job.error["detail"]
    assert shop.models_of(job_id) == 0


@on_sqlite
def test_a_job_over_its_memory_fails_with_the_limit_named(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    roomy = make_shop()
    slots = make_slots(roomy)
    big, small = roomy.ready_table(BIG), roomy.ready_table(200)
    slots.stop()
    limit = 4 * 1024**2
    tight = make_shop(job_memory_bytes=limit)
    make_slots(tight)
    job = tight.ends(tight.train(big, ENDLESS))
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["code"] == "memory_limit"
    assert str(limit) in job.error["detail"]
    assert tight.ends(tight.train(small, 5)).state == "succeeded"


def test_stopping_gives_the_job_back_as_if_never_claimed(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    shop = make_shop()
    slots = make_slots(shop)
    dataset_id = shop.ready_table(SMALL)
    pid = fit_process(slots)
    job_id = shop.train(dataset_id, LONG)
    shop.fitting(job_id)
    slots.stop()
    assert not is_running(pid)
    given_back = shop.job(job_id)
    assert (given_back.state, given_back.attempt) == ("queued", 0)
    make_slots(shop)
    assert shop.reaches(job_id, "succeeded").attempt == 1
    assert shop.models_of(job_id) == 1


@on_sqlite
def test_the_users_fault_fails_at_once(make_shop: MakeShop, make_slots: MakeSlots) -> None:
    shop = make_shop()
    make_slots(shop)
    tables = (b"x,y\n1,0\n2,1\n3,2\n", b"x,y\n1,1\n2,1\n", b"")
    for dataset_id in [shop.upload(table) for table in tables]:

        def refused(dataset_id: str = dataset_id) -> bool:
            return datasets.get(shop.db, "tester", dataset_id).status == "invalid"

        eventually(refused, seconds=60)
    for ingest in jobs.list_page(shop.db, "tester", kind="ingest").data:
        assert (ingest.state, ingest.attempt) == ("failed", 1)
        assert ingest.error is not None
        assert ingest.error["detail"]


@on_sqlite
def test_nothing_is_left_in_staging(make_shop: MakeShop, make_slots: MakeSlots) -> None:
    shop = make_shop()
    slots = make_slots(shop)
    dataset_id = shop.ready_table(BIG)
    shop.reaches(shop.train(dataset_id, 5), "succeeded")
    cancelled = shop.train(dataset_id, ENDLESS)
    shop.fitting(cancelled)
    jobs.cancel(shop.db, "tester", cancelled)
    shop.ends(cancelled)
    slots.stop()
    assert list((shop.settings.blob_dir / "staging").iterdir()) == []
