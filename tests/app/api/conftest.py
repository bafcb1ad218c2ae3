"""Running services for the tests of HTTP."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from live_service import Service, running
from pydantic import SecretStr

from app.infra.settings import Settings


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> SecretStr:
    """The URL of a migrated SQLite database for the tests of a module."""
    path = tmp_path_factory.mktemp("module") / "rankwright.db"
    shutil.copy(_sqlite_template, path)
    return SecretStr(f"sqlite:///{path}")


@pytest.fixture
def settings(tmp_path: Path, sqlite_url: str) -> Settings:
    """An embedded state of the test's own. Nothing listens at its broker's socket."""
    return Settings(state_dir=tmp_path, database_url=SecretStr(sqlite_url))


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    """A running service on SQLite."""
    with running(settings) as service:
        yield service


@pytest.fixture
def service_on_both(tmp_path: Path, database_url: str) -> Iterator[Service]:
    """A running service; the test runs on SQLite and on PostgreSQL."""
    with running(Settings(state_dir=tmp_path, database_url=SecretStr(database_url))) as service:
        yield service


@pytest.fixture
def client(service: Service) -> httpx.Client:
    """A client with every scope."""
    return service.client(service.key())
