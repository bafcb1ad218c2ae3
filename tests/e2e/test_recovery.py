"""The two proofs of recovery, and an orderly end: real workers, a real broker, on SQLite and on PostgreSQL."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LONG, OWNER, Shop, children_of, is_running, worker
from servers import eventually

from app.db import workers as worker_rows
from app.infra.producer import Producer
from app.infra.settings import Settings
from app.services import jobs
from app.services.dispatch import Dispatcher

ROWS = 500


@pytest.fixture
def shop(database_url: str, broker_url: str, tmp_path: Path) -> Iterator[Shop]:
    """A deployment with short leases and a running dispatcher."""
    settings = Settings.model_validate(
        {
            "database_url": database_url,
            "broker_url": broker_url,
            "blob_url": f"file://{tmp_path}/blobs",
            "heartbeat_seconds": 0.3,
            "lease_seconds": 2.0,
            "reap_seconds": 0.3,
            "look_seconds": 0.3,
        }
    )
    shop = Shop(settings)
    producer = Producer(broker_url)
    stop = threading.Event()
    dispatcher = threading.Thread(
        target=Dispatcher(shop.db, shop.blobs, settings, producer).run, args=(stop,)
    )
    dispatcher.start()
    yield shop
    stop.set()
    dispatcher.join()
    producer.close()
    shop.close()


def test_a_killed_workers_job_runs_again_and_yields_one_model(shop: Shop, tmp_path: Path) -> None:
    with worker(shop.settings, tmp_path / "first.log") as first:
        dataset_id = shop.ready_table(ROWS)
        job_id = shop.train(dataset_id, LONG)
        lost = shop.fitting(job_id)
        fits = children_of(first.pid)
        assert len(fits) == 1
        first.kill()
        first.wait()
        eventually(lambda: not any(map(is_running, fits)))
        with worker(shop.settings, tmp_path / "second.log"):
            job = shop.reaches(job_id, "succeeded")
    assert job.attempt == 2
    assert job.worker_id != lost.worker_id
    assert shop.models_of(job_id) == 1
    assert shop.states_of(job_id) == ["queued", "running", "queued", "running", "succeeded"]


def test_a_worker_stopped_past_its_lease_and_resumed_cannot_finish(
    shop: Shop, tmp_path: Path
) -> None:
    log = tmp_path / "first.log"
    with worker(shop.settings, log) as first:
        dataset_id = shop.ready_table(ROWS)
        job_id = shop.train(dataset_id, LONG)
        lost = shop.fitting(job_id)
        (fit,) = children_of(first.pid)
        first.send_signal(signal.SIGSTOP)
        # Its fit goes on meanwhile, to the end: the stopped worker will have a whole result in its hands.
        with worker(shop.settings, tmp_path / "second.log"):
            job = shop.reaches(job_id, "succeeded")
            first.send_signal(signal.SIGCONT)
            eventually(lambda: f"{job_id}: the lease was lost" in log.read_text())
        assert job.attempt == 2
        assert job.worker_id != lost.worker_id
        after = shop.job(job_id)
        assert (after.state, after.model_id, after.attempt) == ("succeeded", job.model_id, 2)
        assert shop.models_of(job_id) == 1
        assert shop.states_of(job_id) == ["queued", "running", "queued", "running", "succeeded"]
        # And it is as good as before: the next job is its own, on the same warm process.
        again = shop.reaches(shop.train(dataset_id, 5), "succeeded")
        assert again.worker_id == lost.worker_id
        assert children_of(first.pid) == [fit]


def test_an_orderly_end_gives_the_job_back(shop: Shop, tmp_path: Path) -> None:
    with worker(shop.settings, tmp_path / "first.log") as first:
        dataset_id = shop.ready_table(ROWS)
        job_id = shop.train(dataset_id, LONG)
        shop.fitting(job_id)
        fits = children_of(first.pid)
        first.send_signal(signal.SIGTERM)
        given_back = shop.reaches(job_id, "queued")
        assert given_back.attempt == 0
        assert first.wait(30) == 0
        assert not any(map(is_running, fits))
    with shop.db.read() as session:
        assert worker_rows.alive(session, 3600.0) == []
    with worker(shop.settings, tmp_path / "second.log"):
        assert shop.reaches(job_id, "succeeded").attempt == 1
    assert shop.models_of(job_id) == 1


def test_messages_wake_workers_and_are_counted(shop: Shop, tmp_path: Path) -> None:
    patient = shop.settings.model_copy(update={"look_seconds": 600.0})
    with worker(patient, tmp_path / "worker.log"):
        dataset_id = shop.ready_table(ROWS)
        shop.reaches(shop.train(dataset_id, 5), "succeeded")

        def counted() -> bool:
            with shop.db.read() as session:
                return any(row.by_message > 0 for row in worker_rows.alive(session, 3600.0))

        eventually(counted)
    assert jobs.list_page(shop.db, OWNER).data[0].state == "succeeded"
