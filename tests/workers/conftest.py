"""Fixtures of the workers' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Shop

from app.infra.settings import Settings
from workers.slots import Slots

QUICK = {"heartbeat_seconds": 0.2, "lease_seconds": 30.0, "look_seconds": 0.2}


@pytest.fixture
def make_shop(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Makes a shop on the test's database, with settings of the test's choice."""
    shops: list[Shop] = []

    def make(**settings: object) -> Shop:
        given = QUICK | {"database_url": database_url, "blob_url": f"file://{tmp_path}/blobs"}
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
