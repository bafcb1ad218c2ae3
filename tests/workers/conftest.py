"""Fixtures of the workers' tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.platform.settings import Settings
from app.serve.prepare import make_cluster_secret
from tests.harness import Crew, Shop, csv_table
from workers.fit_process import FitProcess, Message, is_stopped
from workers.slots import Slots

QUICK = {
    "heartbeat_seconds": 0.2,
    "lease_seconds": 30.0,
    "poll_seconds": 0.2,
    "fan_out_cells": 0,
    "checkpoint_seconds": 0.2,
    "job_threads": 1,
}


@pytest.fixture(scope="session")
def dask_secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a Dask cluster's key and certificate."""
    path = tmp_path_factory.mktemp("dask") / "dask.pem"
    make_cluster_secret(path)
    return path


@pytest.fixture
def make_shop(sqlite_url: str, tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Makes a shop with settings of the test's choice. On SQLite: tests/e2e/test_recovery.py is on PostgreSQL."""
    shops: list[Shop] = []

    def make(**settings: object) -> Shop:
        given = QUICK | {"database_url": sqlite_url, "blob_url": f"file://{tmp_path}/blobs"}
        shops.append(Shop(Settings.model_validate(given | settings)))
        return shops[-1]

    yield make
    for shop in shops:
        shop.close()


class WarmProcess(FitProcess):
    """A fit process that outlives its slot: idle, it is the next slot's, which need not start one."""

    def __init__(self, threads: int, idle: list[WarmProcess]) -> None:
        super().__init__(threads)
        self.threads = threads
        self._idle = idle
        self._is_busy = True
        self._is_ready = False

    def receive(self, timeout: float) -> Message | None:
        """Receive; the first message to each slot is that it is ready."""
        if self._is_ready:
            self._is_ready = False
            return {"type": "ready"}
        message = super().receive(timeout)
        if message is not None and message["type"] in ENDS:
            self._is_busy = False
        return message

    def start_job(self, payload: Mapping[str, Any], memory_bytes: int | None) -> None:
        """Be busy until the job ends."""
        self._is_busy = True
        super().start_job(payload, memory_bytes)

    def kill(self) -> None:
        """Wait for the next slot, or end if it is not idle."""
        is_idle = self.alive and not self._is_busy and not is_stopped(self.pid)
        if is_idle and len(self._idle) < MAX_IDLE:
            self._is_ready = True
            self._idle.append(self)
        else:
            super().kill()


MAX_IDLE = 2
ENDS = {"ready", "result", "error", "memory", "stopped"}


@pytest.fixture(scope="session")
def warm_processes() -> Iterator[Callable[[int], FitProcess]]:
    """Fit processes for the slots of all tests. They are started by a thread that lives as long as they may."""
    idle: list[WarmProcess] = []

    def take(threads: int) -> FitProcess:
        while idle:
            process = idle.pop()
            if process.alive and process.threads == threads:
                return process
            FitProcess.kill(process)
        return starter.submit(WarmProcess, threads, idle).result()

    with ThreadPoolExecutor(1) as starter:
        yield take
        for process in idle:
            FitProcess.kill(process)


@pytest.fixture
def make_slots(
    warm_processes: Callable[[int], FitProcess],
) -> Iterator[Callable[..., Slots]]:
    """Starts slots on a shop, with fit processes of their own or with warm ones; they are stopped after the test."""
    started: list[Slots] = []

    def make(shop: Shop, *, own: bool = False) -> Slots:
        start_fit = FitProcess if own else warm_processes
        worker_id = f"wrk_{len(started)}"
        slots = Slots(shop.db, shop.blobs, shop.settings, worker_id, start_fit=start_fit)
        slots.start()
        started.append(slots)
        return slots

    yield make
    for slots in started:
        slots.stop()


@pytest.fixture(scope="session")
def crew(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> Iterator[Crew]:
    """A crew on SQLite, for what does not depend on the database."""
    folder = tmp_path_factory.mktemp("crew")
    shutil.copy(_sqlite_template, folder / "rankwright.db")
    shop = Shop(Settings.model_validate(QUICK | {"state_dir": folder}))
    table = shop.read_here(csv_table(100_000))
    slots = Slots(shop.db, shop.blobs, shop.settings, "wrk_crew")
    slots.start()
    yield Crew(shop, slots, table)
    slots.stop()
    shop.close()
