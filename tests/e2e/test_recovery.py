"""Recovery and an orderly end, with real workers and a real broker, on PostgreSQL.

The same SQL on SQLite: tests/app/jobs. Processes killed on SQLite: test_chaos.py.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import Popen

import pytest

from app.jobs import repository as worker_rows
from app.jobs.dispatcher import Dispatcher
from app.operations.housekeeping import run_housekeeping
from app.platform.broker import Producer
from app.platform.settings import Settings
from tests.harness import LONG, Shop, children_of, csv_table, is_running, worker
from tests.long_form import long_form
from tests.waiting import eventually, patience

ROWS = 500


@pytest.fixture
def shop(postgres_url: str, broker_url: str, tmp_path: Path) -> Iterator[Shop]:
    """A deployment with short leases and a running dispatcher."""
    settings = Settings.model_validate(
        {
            "database_url": postgres_url,
            "broker_url": broker_url,
            "blob_url": f"file://{tmp_path}/blobs",
            "heartbeat_seconds": 0.3,
            # On a machine that is busy with other work, a worker is silent for seconds.
            "lease_seconds": 15.0,
            "reap_seconds": 0.3,
            "poll_seconds": 0.3,
            "fan_out_cells": 0,
            "job_threads": 1,
        }
    )
    shop = Shop(settings)
    stop = threading.Event()
    beside = partial(run_housekeeping, shop.db, shop.blobs, settings)
    dispatcher = threading.Thread(target=Dispatcher(shop.db, settings, beside).run, args=(stop,))
    dispatcher.start()
    yield shop
    stop.set()
    dispatcher.join()
    shop.close()


@contextmanager
def two_workers(shop: Shop, folder: Path) -> Iterator[dict[str | None, Popen[bytes]]]:
    """Two warm worker processes by their ids."""
    with worker(shop.settings, folder) as first, worker(shop.settings, folder) as second:

        def introduced() -> dict[str | None, Popen[bytes]]:
            known: dict[str | None, Popen[bytes]] = {}
            for process in (first, second):
                log = folder / f"{process.pid}.log"
                if found := re.search(r"worker (wrk_\w+) is ready", log.read_text()):
                    known[found.group(1)] = process
            return known

        eventually(lambda: len(introduced()) == 2)
        yield introduced()


@long_form
def test_a_worker_stopped_past_its_lease_and_resumed_cannot_finish(
    shop: Shop, tmp_path: Path
) -> None:
    with two_workers(shop, tmp_path) as workers:
        dataset_id = shop.ready_table(ROWS)
        job_id = shop.train(dataset_id, LONG)
        lost = shop.fitting(job_id)
        stopped = workers.pop(lost.worker_id)
        (fit,) = children_of(stopped.pid)
        stopped.send_signal(signal.SIGSTOP)
        # Its fit goes on meanwhile, to the end: the stopped worker will have a whole result in its hands. PostgreSQL
        # takes the locks of a transaction back that was stopped in its middle, after a minute.
        job = shop.reaches(job_id, "succeeded")
        stopped.send_signal(signal.SIGCONT)
        log = tmp_path / f"{stopped.pid}.log"
        eventually(lambda: f"{job_id}: the lease was lost" in log.read_text())
        assert job.attempt == 2
        assert job.worker_id in workers
        after = shop.job(job_id)
        assert (after.state, after.model_id, after.attempt) == ("succeeded", job.model_id, 2)
        assert shop.models_of(job_id) == 1
        assert shop.states_of(job_id) == ["queued", "running", "queued", "running", "succeeded"]
        # And it is as good as before: it takes its share of a job in parts, on the same warm process, and the other's
        # once that one is killed in the middle of a fit, which ends with it.
        shared_id = shop.train(dataset_id, LONG // 2, folds=3)
        everyone = {lost.worker_id, *workers}
        eventually(lambda: everyone == busy_with(shop, shared_id))
        (other,) = workers.values()
        (orphan,) = children_of(other.pid)
        other.kill()
        other.wait()
        eventually(lambda: not is_running(orphan))
        shared = shop.reaches(shared_id, "succeeded")
        assert shared.worker_id == lost.worker_id
        assert children_of(stopped.pid) == [fit]
        parts = shop.parts_of(shared_id)
        assert [part.state for part in parts] == ["succeeded"] * 4
        assert sorted(part.attempt for part in parts) == [1, 1, 1, 2]
        assert (shop.models_of(shared_id), shop.out_of_fold_of(shared_id)) == (1, 1)


def busy_with(shop: Shop, job_id: str) -> set[str | None]:
    """The workers that run a part of the job."""
    return {part.worker_id for part in shop.parts_of(job_id) if part.state == "running"}


@long_form
def test_messages_wake_a_worker_and_its_orderly_end_gives_the_job_back(
    shop: Shop, tmp_path: Path
) -> None:
    """It finds no job by polling. Another worker goes on from the checkpoint: tests/workers/test_slots.py."""
    patient = shop.settings.model_copy(update={"poll_seconds": 1e6})
    producer = Producer(patient.celery_broker_url)
    with worker(patient, tmp_path) as process:
        dataset_id = shop.upload(csv_table(ROWS))
        producer.wake()
        shop.becomes_ready(dataset_id)
        job_id = shop.train(dataset_id, LONG)
        producer.wake()

        def counted() -> bool:
            with shop.db.read() as session:
                return any(row.by_message > 0 for row in worker_rows.alive(session, 3600.0))

        eventually(counted)
        shop.fitting(job_id)
        fits = children_of(process.pid)
        process.send_signal(signal.SIGTERM)
        given_back = shop.reaches(job_id, "queued")
        assert given_back.attempt == 0
        assert given_back.checkpoint_key is not None
        assert process.wait(patience()) == 0
        assert fits
        assert not any(map(is_running, fits))
    with shop.db.read() as session:
        assert worker_rows.alive(session, 3600.0) == []
