"""Machines without a common disk: blobs in a bucket, and a cache on each."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

from app.jobs import service as jobs
from app.operations.sweeping import sweep
from app.platform import catalogue
from app.platform.tables import BlobEntry, BlobState, Job, Model
from core import load
from tests.harness import ENDLESS, OWNER, Shop, csv_table, warm_process
from tests.long_form import long_form
from tests.waiting import eventually
from workers.slots import Slots

if TYPE_CHECKING:
    from tests.buckets import BucketServer

ROUNDS = 30


@pytest.fixture
def machine(
    bucket_server: BucketServer, make_shop: Callable[..., Shop], tmp_path: Path
) -> Callable[[str], Shop]:
    """A machine with a cache of its own on an empty disk."""
    bucket_server.clear()
    return lambda name: make_shop(**bucket_server.settings, blob_cache_dir=tmp_path / name)


def catalogued(shop: Shop) -> set[str]:
    """The objects that the catalogue has."""
    with shop.db.read() as session:
        keys = session.scalars(select(BlobEntry.key).where(BlobEntry.state == BlobState.STORED))
        return {f"some/prefix/{key}" for key in keys}


def model_of(shop: Shop, job_id: str) -> Path:
    """The artifact of the job's model, as this machine gets it."""
    with shop.db.read() as session:
        key = session.scalars(select(Model.artifact_key).where(Model.job_id == job_id)).one()
        return shop.blobs.fetch(catalogue.find(session, key))


def test_api_worker_and_reader_share_only_database_and_bucket(
    bucket_server: BucketServer, machine: Callable[[str], Shop], make_slots: Callable[[Shop], Slots]
) -> None:
    api, worker, reader = machine("api"), machine("worker"), machine("reader")
    make_slots(worker)
    table = api.ready_table()
    job_id = api.train(table, ROUNDS)
    assert api.ends(job_id).state == "succeeded"
    assert load(model_of(reader, job_id).read_bytes()).n_rounds_ == ROUNDS
    assert bucket_server.objects().keys() == catalogued(api)
    staging = worker.settings.blob_dir / "staging"
    eventually(lambda: list(staging.iterdir()) == [])


@long_form
def test_a_job_that_moves_to_another_machine_goes_on_from_its_checkpoint(
    machine: Callable[[str], Shop], make_slots: Callable[[Shop], Slots]
) -> None:
    first, second = machine("first"), machine("second")
    table = first.read_here(csv_table(100_000))
    slots = make_slots(first)
    fit = warm_process(slots)
    job_id = first.train(table, ENDLESS)
    eventually(lambda: first.first_steps_of(job_id))
    early = first.job(job_id).checkpoint_key
    # The checkpoint is of a later step than the first that is reported.
    eventually(lambda: first.job(job_id).checkpoint_key not in (None, early))
    os.kill(fit, signal.SIGKILL)
    slots.stop()
    first.reaches(job_id, "queued")
    shutil.rmtree(first.settings.blob_dir)  # the machine is gone
    with second.db.write() as session:  # no test waits out the back-off
        session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))
    make_slots(second)
    began, resumed = eventually(lambda: len(steps := second.first_steps_of(job_id)) == 2 and steps)
    assert resumed > began
    second.db.writing(jobs.cancel, OWNER, job_id)
    assert second.ends(job_id).state == "cancelled"


@long_form
def test_an_outage_of_the_bucket_loses_and_doubles_nothing(
    bucket_server: BucketServer, machine: Callable[[str], Shop], make_slots: Callable[[Shop], Slots]
) -> None:
    api, worker = machine("api"), machine("worker")
    table = api.ready_table() if make_slots(worker) else ""
    jobs = [api.train(table, ROUNDS) for _ in range(4)]
    for _ in range(3):
        with bucket_server.away():
            time.sleep(1.0)
        time.sleep(0.3)
    for job_id in jobs:
        assert api.ends(job_id).state == "succeeded"
        assert api.models_of(job_id) == 1
    settings = worker.settings.model_copy(update={"blob_grace_seconds": 0.1})
    time.sleep(1.2)  # the bucket's clock has whole seconds
    sweep(worker.db, worker.blobs, settings)
    assert bucket_server.objects().keys() == catalogued(api)
    reader = machine("reader")
    for job_id in jobs:
        load(model_of(reader, job_id).read_bytes())
