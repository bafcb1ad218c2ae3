"""A long job gives its slot to another owner's job at a checkpoint, and continues from it, with real fit processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import update

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.platform.failpoints import VARIABLE
from app.platform.tables import Dataset, Job, Model
from tests.app.queue_steps import hear_nothing
from tests.harness import (
    ENDLESS,
    LONG,
    OWNER,
    Shop,
    children_of,
    csv_table,
    environment,
    warm_process,
)
from tests.long_form import long_form, rest
from tests.waiting import eventually, patience
from workers import fit_process
from workers.fit_process import FitProcess, is_stopped
from workers.slots import Presence, Slots

MakeShop = Callable[..., Shop]
MakeSlots = Callable[..., Slots]
OTHER = "other"


def give(shop: Shop, table: type[Dataset | Job], id_: str) -> None:
    """Give a dataset or a queued job to the other owner."""
    with shop.db.write() as session:
        session.execute(update(table).where(table.id == id_).values(owner=OTHER))


STOPS = "fit=stop@100"
"""Has a fit process stop itself between a first checkpoint and the end of its fit, until it was asked to give way."""
ROUNDS = LONG // 2
AT_ONCE = {"checkpoint_seconds": 1e-9}


def ask(shop: Shop, reaper: Reaper, job_id: str, others: str, fit: Callable[[], int]) -> str:
    """Have a job run for two minutes, and another owner's job wait for its slot; returns that job's id."""
    eventually(lambda: is_stopped(fit()))
    eventually(lambda: shop.job(job_id).checkpoint_key and shop.first_steps_of(job_id))
    with shop.db.write() as session:
        session.execute(
            update(Job).where(Job.id == job_id).values(started_at=Job.started_at - 120.0)
        )
    reaper.reap()
    assert shop.job(job_id).yield_requested_at is None  # nobody waits
    short = shop.train(others, 5)
    give(shop, Job, short)
    reaper.reap()
    assert shop.job(job_id).yield_requested_at is not None
    return short


def wait_for_other(shop: Shop, job_id: str) -> None:
    eventually(lambda: shop.db.reading(jobs.find, OTHER, job_id).state == "succeeded")


@long_form
@pytest.mark.parametrize("url", ["sqlite_url", *rest("postgres_url")])
def test_the_model_is_that_of_an_uninterrupted_fit(
    make_shop: MakeShop,
    make_slots: MakeSlots,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    request: pytest.FixtureRequest,
) -> None:
    environment_of_fit, give_way = fit_process.environment_of_fit, FitProcess.give_way
    asked = threading.Event()

    def give_way_and_tell(process: FitProcess) -> None:
        give_way(process)
        asked.set()

    def armed(inherited: Mapping[str, str], threads: int) -> dict[str, str]:
        return environment_of_fit(inherited, threads) | {VARIABLE: STOPS}

    monkeypatch.setattr(fit_process, "environment_of_fit", armed)
    monkeypatch.setattr(fit_process, "MAX_STOPPED_LOOKS", 1e9)
    monkeypatch.setattr(FitProcess, "give_way", give_way_and_tell)
    shop = make_shop(database_url=request.getfixturevalue(url), **AT_ONCE)
    mine, others = shop.read_here(csv_table(300)), shop.read_here(csv_table(200))
    give(shop, Dataset, others)
    slots = make_slots(shop, own=True)
    pid = warm_process(slots)
    presence = Presence(slots)
    presence.start()
    long = shop.train(mine, ROUNDS)
    short = ask(shop, Reaper(shop.db, shop.settings), long, others, lambda: pid)
    eventually(asked.is_set)
    os.kill(pid, signal.SIGCONT)
    wait_for_other(shop, short)
    job = shop.reaches(long, "succeeded")
    whole = shop.train(mine, ROUNDS)
    shop.reaches(whole, "succeeded")
    assert job.attempt == 1
    assert shop.states_of(long) == ["queued", "running", "queued", "running", "succeeded"]
    first, second = shop.first_steps_of(long)
    assert first < second
    assert shop.artifact_of(long) == shop.artifact_of(whole)
    assert shop.models_of(long) == 1
    presence.end()
    ended = shop.db.reading(jobs.find, OTHER, short).finished_at
    assert ended is not None
    assert job.finished_at is not None
    assert ended < job.finished_at


WORKER = """
import os, sys
from workers import __main__, fit_process
fit_process.MAX_STOPPED_LOOKS = 1e9
os._exit(__main__.main(sys.argv[1:]))
"""


@contextmanager
def mortal(shop: Shop, folder: Path, faults: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process with these faults."""
    with (folder / "worker.log").open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            env=environment(shop.settings) | {VARIABLE: faults},
            stdout=out,
            stderr=out,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@long_form
@pytest.mark.parametrize("point", ["yield", "finished"])
def test_a_worker_killed_while_its_job_gives_way_costs_no_model(
    make_shop: MakeShop, make_slots: MakeSlots, tmp_path: Path, broker_url: str, point: str
) -> None:
    """An error there: tests/app/jobs/test_yielding.py."""
    shop = make_shop(broker_url=broker_url, **AT_ONCE)
    mine, others = shop.read_here(csv_table(300)), shop.read_here(csv_table(200))
    give(shop, Dataset, others)
    reaper = Reaper(shop.db, shop.settings)
    with mortal(shop, tmp_path, f"{point}=kill,{STOPS}") as process:
        long = shop.train(mine, ROUNDS)
        eventually(lambda: children_of(process.pid))
        (fit,) = children_of(process.pid)
        short = ask(shop, reaper, long, others, lambda: fit)
        os.kill(fit, signal.SIGCONT)
        assert process.wait(patience()) == -9
    attempt, state = {"yield": (1, "running"), "finished": (0, "queued")}[point]
    job = shop.job(long)
    assert (job.attempt, job.state) == (attempt, state)
    assert job.checkpoint_key is not None
    hear_nothing(shop.db)
    reaper.reap()
    make_slots(shop)
    wait_for_other(shop, short)
    assert shop.reaches(long, "succeeded").attempt == attempt + 1
    whole = shop.train(mine, ROUNDS)
    shop.reaches(whole, "succeeded")
    assert shop.artifact_of(long) == shop.artifact_of(whole)
    with shop.db.read() as session:
        assert session.query(Model).filter(Model.job_id == long).count() == 1


@long_form
def test_a_cancel_reaches_a_job_that_was_asked_to_give_way(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    shop = make_shop()
    mine = shop.read_here(csv_table(300))
    make_slots(shop)
    job_id = shop.train(mine, ENDLESS)
    shop.fitting(job_id)
    with shop.db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(yield_requested_at=1.0))
    shop.db.writing(jobs.cancel, OWNER, job_id)
    assert shop.ends(job_id).state == "cancelled"
    assert shop.db.writing(queue.claim, shop.settings, "wrk_a") is None
