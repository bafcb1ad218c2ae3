"""Fixtures of the workers' tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.platform.settings import Settings
from app.serve.prepare import make_cluster_secret
from tests.harness import Crew, Shop, csv_table
from workers.slots import Slots

QUICK = {
    "heartbeat_seconds": 0.2,
    "lease_seconds": 30.0,
    "look_seconds": 0.2,
    "fan_out_cells": 0,
    "checkpoint_seconds": 0.2,
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


@pytest.fixture
def make_slots() -> Iterator[Callable[[Shop], Slots]]:
    """Starts slots on a shop; they are stopped after the test."""
    started: list[Slots] = []

    def make(shop: Shop) -> Slots:
        slots = Slots(shop.db, shop.blobs, shop.settings, f"wrk_{len(started)}")
        slots.start()
        started.append(slots)
        return slots

    yield make
    for slots in started:
        slots.stop()


@pytest.fixture(scope="module")
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
