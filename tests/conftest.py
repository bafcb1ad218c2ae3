"""Databases and brokers for every test that asks. The servers are real, private and started once a process."""

from __future__ import annotations

import functools
import gc
import logging
import os
import shutil
import sqlite3
import ssl
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import pytest
import typer.main
from hypothesis import settings
from sqlalchemy import URL, Engine, create_engine, delete, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from app.platform import database as sessions
from app.platform import migrate
from app.platform.database import Database
from app.platform.logging import LineHandler
from app.platform.processes import trim_heap
from app.platform.sql import Base
from tests.durations import Durations, share
from tests.long_form import DATABASES, LONG_FORM, leave_one_database
from tests.sentences import Snapshot, sentences
from tests.servers import PostgresServer, ValkeyServer

if TYPE_CHECKING:
    from tests.buckets import BucketServer

__all__ = ["sentences"]

NEEDED_MIB = 2000
"""Disk space of a run of all tests, of three processes."""

os.environ["RANKWRIGHT_WARM_UP"] = "false"  # two seconds for each of the many fit processes

# No example is timed: hypothesis's deadline would fail some on a busy machine. `make long` tries ten times as many.
settings.register_profile("tests", deadline=None, max_examples=300 if LONG_FORM else 30)
settings.load_profile("tests")

# Nothing of a test is to outlive a power cut: no file and no commit of this process waits for the disk, as PostgreSQL's
# do not either (servers.py). Of what a SQLite test takes, that is more than half.
os.fsync = lambda fd: None


def _log_handlers() -> Iterator[None]:
    """Take away the handlers that commands of this process leave behind: they write to the streams of tests that have
    ended, and what they complain of would come into the output of a later test's command.
    """
    log = logging.getLogger()
    before, level = log.handlers[:], log.level
    yield
    for handler in log.handlers[:]:
        if isinstance(handler, LineHandler) and handler not in before:
            log.removeHandler(handler)
            log.setLevel(level)


_of_tests = pytest.fixture(autouse=True, name="log_handlers")(_log_handlers)
_of_modules = pytest.fixture(autouse=True, scope="module", name="log_handlers_of_module")(
    _log_handlers
)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Give free memory back after each file: of what a process holds at its end, a tenth would be free otherwise."""
    if nextitem is None or nextitem.path != item.path:
        trim_heap()


class _Fearless(sqlite3.Connection):
    """Waits for no disk, whatever it is asked."""

    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        return super().execute(sql.replace("synchronous=FULL", "synchronous=OFF"), *given)


# A statement is compiled once for each kind of database. SQLAlchemy would compile it anew for each engine, of which
# there is one a test: that is a fifth of the tests of the queue.
for _dialect in (SQLiteDialect_pysqlite, PGDialect_psycopg):
    _dialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]
    _dialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]


def _create_engine(url: URL, **options: Any) -> Engine:
    if url.get_backend_name() == "sqlite":
        options["connect_args"]["factory"] = _Fearless
    return create_engine(url, execution_options={"compiled_cache": _compiled}, **options)


_compiled: LRUCache[Any, Any] = LRUCache(5000)
sessions.create_engine = _create_engine  # type: ignore[assignment, attr-defined]  # it is imported there

# What a function of the command line takes is found once, not at each command that a test runs: to read the
# annotations of all commands takes longer than most of them. So does reading the certificates that a client trusts.
typer.main.get_params_from_function = functools.cache(typer.main.get_params_from_function)  # type: ignore[attr-defined]  # it is imported there
_create_context = ssl.create_default_context
_trusting_the_public = functools.cache(lambda: _create_context(cafile=certifi.where()))


def _context(*rest: Any, **given: Any) -> ssl.SSLContext:
    shared = not rest and given == {"cafile": certifi.where()}
    return _trusting_the_public() if shared else _create_context(*rest, **given)


ssl.create_default_context = _context


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options that write files of the tests anew."""
    parser.addoption("--sentences", action="store_true", help="write tests/sentences.txt")
    parser.addoption("--record-durations", action="store_true", help="write tests/durations.txt")


def pytest_configure(config: pytest.Config) -> None:
    """Read the snapshot of sentences, and measure the files."""
    config.pluginmanager.register(Snapshot(config))
    config.pluginmanager.register(Durations(config))


# Before Python 3.13.2, the process ends if tracing stops while a thread frees memory without the GIL. The threads of
# a fit look for tasks a little longer than the fit lasts, and free their memory then.
_stop_tracing = tracemalloc.stop


def _stop_tracing_when_fits_have_ended() -> None:
    gc.collect()
    until = time.monotonic() + 2.0
    while any(thread.name.startswith("ThreadPool") for thread in threading.enumerate()):
        if time.monotonic() > until:  # a pool of others, which idles
            break
        time.sleep(0.01)
    _stop_tracing()


if sys.version_info < (3, 13, 2):
    tracemalloc.stop = _stop_tracing_when_fits_have_ended


# What is imported to find the tests stays. To go through it for garbage, time and again, takes a third of the time
# until they are found, and a tenth of theirs.
gc.disable()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a disk that is full before hundreds of tests fail for it.

    Collect garbage as always in a process that hands its tests to others: it never finds them itself. Each of the
    others finds its own only.
    """
    config = session.config
    free = shutil.disk_usage(tempfile.gettempdir()).free >> 20
    if free < NEEDED_MIB:
        message = f"{tempfile.gettempdir()} has {free} MiB free: the tests need {NEEDED_MIB} MiB"
        pytest.exit(message, returncode=pytest.ExitCode.USAGE_ERROR)
    if config.getoption("numprocesses", None):
        gc.enable()
    name, processes = (os.environ.get(f"PYTEST_XDIST_WORKER{end}", "") for end in ("", "_COUNT"))
    if name and config.workerinput["dist"] == "each":  # type: ignore[attr-defined]  # of xdist
        process = int(name.removeprefix("gw"))
        config.args = share(config.args, config.rootpath, process, int(processes))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of xdist how the tests are divided, which it does not know."""
    node.workerinput["dist"] = node.config.getoption("dist")


def pytest_collection_finish() -> None:
    """Leave what is there by now out of all that follows."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def bucket_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    """An S3 server of this process; a test that uses it empties the bucket."""
    from tests.buckets import BucketServer  # moto takes a second

    server = BucketServer(tmp_path_factory.mktemp("bucket"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server with nothing in it."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def _postgres_migrated(postgres: PostgresServer) -> str:
    url = postgres.create("migrated")
    migrate.upgrade(url)
    return url


@pytest.fixture
def postgres_url(_postgres_migrated: str) -> Iterator[str]:
    """The URL of a migrated, empty PostgreSQL database that no other test uses meanwhile."""
    yield _postgres_migrated
    # Emptied, not made anew: a database takes PostgreSQL a tenth of a second, this one hundredth.
    database = Database(_postgres_migrated)
    with database.write() as session:
        session.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(delete(table))
    database.close()


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, _sqlite_template: Path) -> str:
    """The URL of a migrated SQLite database of the test's own."""
    path = tmp_path / "rankwright.db"
    shutil.copy(_sqlite_template, path)
    return f"sqlite:///{path}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_one_database(items)


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest) -> str:
    """The test runs on SQLite and on PostgreSQL; see `leave_one_database`."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    """An open, migrated, empty database, of each kind."""
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture(scope="session")
def _valkey() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    yield server
    server.close()


@pytest.fixture
def valkey(_valkey: ValkeyServer) -> ValkeyServer:
    """A running, empty Valkey server. A test that ends it starts one of its own instead."""
    _valkey.client.flushall()
    return _valkey


@pytest.fixture
def broker_url(valkey: ValkeyServer) -> str:
    """The Celery URL of an empty broker."""
    return valkey.broker_url
