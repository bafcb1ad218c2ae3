"""A worker without processes; uploads that are sound, and uploads that must be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from uploads import Ready, read
from workbench import Workbench

from app.ingest.errors import BadTable
from app.platform.database import Database


@pytest.fixture
def ready(tmp_path: Path) -> Callable[..., Ready]:
    """Read a sound CSV."""
    return lambda body, *rest, **roles: read(tmp_path, body, *rest, **roles)


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., BadTable]:
    """Read a CSV that must be refused, by a strict caller unless it is said, and return the refusal."""

    def attempt(body: bytes | str, *rest: Any, strict: bool = True, **roles: Any) -> BadTable:
        with pytest.raises(BadTable) as caught:
            read(tmp_path, body, *rest, strict=strict, **roles)
        return caught.value

    return attempt


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workbench]:
    """A worker without processes: on SQLite, or on both databases where the test is marked `on_both`."""
    db = Database(request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url"))
    yield Workbench(db, tmp_path)
    db.close()
