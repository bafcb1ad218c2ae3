"""Slots: how they find work and share it, and how they stop. Each test has slots of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from app.datasets import service as datasets
from app.jobs import child_jobs as parts
from app.platform import resources
from app.platform.blobs import FolderStore
from tests.harness import ENDLESS, OWNER, Shop, csv_table, is_running, warm_process
from tests.long_form import LONG_FORM, long_form
from tests.waiting import eventually, patience
from workers.slots import Slots, threads_per_fit

MakeShop = Callable[..., Shop]
MakeSlots = Callable[..., Slots]

BIG = 400_000 if LONG_FORM else 300  # rows
NEVER = 600.0  # seconds between two looks: what happens, a message did


@long_form
def test_a_wake_up_starts_the_next_job_and_goes_on_until_none_is_left(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    shop = make_shop(poll_seconds=NEVER)
    slots = make_slots(shop)
    dataset_id = shop.upload(csv_table(200))
    slots.wake()
    eventually(lambda: shop.db.reading(datasets.find, OWNER, dataset_id).status == "ready")
    warm_process(slots)  # idle again: what comes now, only the next wake-up can tell of
    first, second = shop.train(dataset_id, 5), shop.train(dataset_id, 5)
    slots.wake()
    for job_id in (first, second):
        job = shop.reaches(job_id, "succeeded")
        assert (job.attempt, job.worker_id) == (1, "wrk_0")
        assert shop.models_of(job_id) == 1
        assert shop.states_of(job_id) == ["queued", "running", "succeeded"]
    assert (slots.by_message, slots.by_poll) == (2, 0)


def test_stopping_gives_the_job_back_as_if_never_claimed(
    make_shop: MakeShop, make_slots: MakeSlots
) -> None:
    # No checkpoint but that of the worker's end, which waits for it.
    shop = make_shop(checkpoint_seconds=0, stop_seconds=patience())
    slots = make_slots(shop, own=LONG_FORM)
    pid = warm_process(slots)
    job_id = shop.train(shop.read_here(csv_table(5_000)), ENDLESS)
    eventually(lambda: shop.first_steps_of(job_id))
    slots.stop()
    assert is_running(pid) is not LONG_FORM  # a warm process is the next slot's
    given_back = shop.job(job_id)
    assert (given_back.state, given_back.attempt) == ("queued", 0)
    assert given_back.checkpoint_key is not None
    kept = FolderStore(shop.settings.blob_dir).path(given_back.checkpoint_key)
    assert kept.exists()
    make_slots(shop)
    first, second = eventually(lambda: len(told := shop.first_steps_of(job_id)) == 2 and told)
    assert first < second
    shop.db.writing(parts.end_early, OWNER, job_id)
    job = shop.reaches(job_id, "succeeded")
    assert (job.attempt, job.checkpoint_key) == (1, None)
    assert shop.models_of(job_id) == 1
    eventually(lambda: list((shop.settings.blob_dir / "staging").iterdir()) == [])
    eventually(lambda: not kept.exists())


BOMB = """
import sys, pyarrow as pa, pyarrow.parquet as pq
table = pa.table({"t": ["x" * (1 << 20)] * 320, "y": [0, 1] * 160})
pq.write_table(table, sys.stdout.buffer, compression="zstd", use_dictionary=False)
"""
"""Writes a Parquet file of some kilobytes, whose text takes 320 MB once it is read; in a process that can end."""


def test_a_job_over_its_memory_fails_with_the_limit_named_and_others_go_on(
    make_shop: MakeShop, make_slots: MakeSlots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the share of the machine's memory that is the default, where the machine has little."""
    limit = 64 * 1024**2  # more than what the first fit of its kind loads
    monkeypatch.setattr(resources, "total_bytes", lambda: 4 * limit)
    monkeypatch.setattr("workers.fit_process.MAX_STOPPED_LOOKS", 1e9)  # of the neighbour
    shop = make_shop()
    big, small = (shop.read_here(csv_table(rows)) for rows in (BIG, 200))
    workers = {f"wrk_{number}": make_slots(shop) for number in range(2)}
    neighbour = shop.train(small, ENDLESS)
    beside = workers[shop.fitting(neighbour).worker_id or ""].slots[0].process
    os.kill(beside.pid, signal.SIGSTOP)  # the longer it fits the more it takes
    with monkeypatch.context() as patch:
        if not LONG_FORM:  # to take so much, a fit needs time
            taken = {beside.pid: 0}
            measure = lambda process: taken.get(process.pid, limit + 1)  # noqa: E731
            patch.setattr("workers.fit_process.FitProcess.job_memory_bytes", measure)
        job = shop.ends(shop.train(big, ENDLESS, weak_ranker="tree"))
    assert job.state == "failed"
    assert job.error["code"] == "memory_limit"
    assert f" {limit} bytes, the share" in job.error["detail"]
    assert "RANKWRIGHT_JOB_MEMORY_BYTES" in job.error["detail"]
    assert shop.ends(shop.train(small, 5)).state == "succeeded"
    packed = subprocess.run([sys.executable, "-c", BOMB], stdout=subprocess.PIPE, check=True).stdout
    assert len(packed) < 100_000
    dataset_id = shop.upload(packed, "application/vnd.apache.parquet")
    assert "more memory than" in shop.why_invalid(dataset_id)
    os.kill(beside.pid, signal.SIGCONT)
    shop.db.writing(parts.end_early, OWNER, neighbour)
    assert shop.ends(neighbour).state == "succeeded"
    assert shop.job(neighbour).attempt == 1


def test_the_threads_of_a_fit_are_the_setting_or_a_share_of_the_cores(make_shop: MakeShop) -> None:
    cores = threads_per_fit(make_shop(job_threads=None).settings)
    assert threads_per_fit(make_shop(job_threads=None, worker_slots=10 * cores).settings) == 1
    assert threads_per_fit(make_shop(job_threads=3, worker_slots=2).settings) == 3
