"""Fixtures of the application's tests: running services, workers without processes, uploads."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from app.http import openapi
from app.ingest.errors import BadTable
from app.platform import migrate
from app.platform.broker import Producer
from app.platform.database import Database
from app.platform.settings import Settings
from tests.app.live_service import Service, running
from tests.app.refusals import MAX_BODY, MAX_UPLOAD, everything
from tests.app.uploads import Ready, read
from tests.app.workbench import Workbench
from tests.long_form import DATABASES
from tests.servers import PostgresServer

_described: dict[str, Any] = {}


def _describe_once(app: FastAPI, docs: openapi.DomainDocs) -> dict[str, Any]:
    """The description of the API, made once for all applications of this process: it takes two seconds."""
    if not _described:
        _described.update(_describe(app, docs))
    return {**_described, "info": {**_described["info"]}}


_describe = openapi._complete
openapi._complete = _describe_once


@pytest.fixture
def ready(tmp_path: Path) -> Callable[..., Ready]:
    """Read a sound CSV."""
    return lambda body, *rest, **roles: read(tmp_path, body, *rest, **roles)


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., BadTable]:
    """Read a CSV that must be refused, by default for a strict caller, and return the refusal."""

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


@pytest.fixture
def producer(broker_url: str) -> Iterator[Producer]:
    """A connection to the broker, which is empty."""
    producer = Producer(broker_url)
    yield producer
    producer.close()


# --- running services ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> SecretStr:
    """The URL of a migrated SQLite database for the tests of a module."""
    path = tmp_path_factory.mktemp("module") / "rankwright.db"
    shutil.copy(_sqlite_template, path)
    return SecretStr(f"sqlite:///{path}")


@pytest.fixture(scope="module")
def start(
    tmp_path_factory: pytest.TempPathFactory, sqlite_file: SecretStr
) -> Iterator[Callable[..., Service]]:
    """Start a service for the tests of a module, with settings by name; all of them share a database."""
    with ExitStack() as stack:

        def start(**given: Any) -> Service:
            state = tmp_path_factory.mktemp("state")
            settings = Settings(state_dir=state, database_url=sqlite_file, **given)
            return stack.enter_context(running(settings))

        yield start


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    """A running service for all tests of a module."""
    return start()


@pytest.fixture
def settings(tmp_path: Path, sqlite_url: str) -> Settings:
    """An embedded state of the test's own. Nothing listens at its broker's socket."""
    return Settings(state_dir=tmp_path, database_url=SecretStr(sqlite_url))


@pytest.fixture(scope="session")
def _running(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> Iterator[Service]:
    state = tmp_path_factory.mktemp("state")
    shutil.copy(_sqlite_template, state / "rankwright.db")
    with running(Settings(state_dir=state)) as service:
        yield service


@pytest.fixture
def service(_running: Service) -> Service:
    """A running service on SQLite with nothing in it. A test that ends it, or counts what it did, starts its own."""
    _running.empty()
    return _running


@pytest.fixture(scope="session")
def _postgres_of_services(postgres: PostgresServer) -> SecretStr:
    url = postgres.create("services")
    migrate.upgrade(url)
    return SecretStr(url)


@pytest.fixture(scope="session")
def _running_on_postgres(
    tmp_path_factory: pytest.TempPathFactory, _postgres_of_services: SecretStr
) -> Iterator[Service]:
    state = tmp_path_factory.mktemp("state")
    with running(Settings(state_dir=state, database_url=_postgres_of_services)) as service:
        yield service


@pytest.fixture(params=DATABASES)
def service_on_both(request: pytest.FixtureRequest) -> Service:
    """A running service with nothing in it, on SQLite and on PostgreSQL; see `leave_one_database`."""
    name = {"sqlite": "_running", "postgres": "_running_on_postgres"}[request.param]
    service: Service = request.getfixturevalue(name)
    service.empty()
    return service


@pytest.fixture
def client(service: Service) -> httpx.Client:
    """A client with every scope."""
    return service.client(service.key())


@pytest.fixture(scope="module")
def small(start: Callable[..., Service]) -> Service:
    """A service with small limits, for a module of refusals."""
    return start(max_body_bytes=MAX_BODY, max_upload_bytes=MAX_UPLOAD, max_columns=10)


@pytest.fixture(scope="module")
def dataset_id(small: Service) -> str:
    """A ready dataset of the small service."""
    return small.upload(small.client(small.key()))


@pytest.fixture(scope="module")
def model_id(small: Service, dataset_id: str) -> str:
    """A model of the small service."""
    model_id: str = small.train(small.client(small.key()), dataset_id)["output"]["id"]
    return model_id


@pytest.fixture
def nothing_is_left(small: Service, dataset_id: str, model_id: str) -> Iterator[None]:
    """Check after the test that no request to the small service has left a row or a blob."""
    before = everything(small)
    yield
    assert everything(small) == before
