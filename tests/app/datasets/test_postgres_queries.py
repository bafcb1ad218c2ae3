"""Queries of a real PostgreSQL: what they write, which types they have, and how each failure is named."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets import postgres as sources
from app.datasets.postgres import Query, QueryRows, check_query, read_query
from app.ingest.errors import BadTable
from app.jobs.fetching import Fetching, FetchStopped, SourceError
from app.platform.errors import ServiceError, Unavailable
from app.platform.settings import Settings
from tests.long_form import LONG_FORM, long_form, rest
from tests.servers import PostgresServer
from tests.waiting import eventually, patience


class Step(Fetching):
    """A step that keeps what is reported, and may be told what to do then."""

    def __init__(
        self,
        seconds: float | None = None,
        size: int = 1 << 30,
        then: Callable[[], object] | None = None,
    ) -> None:
        most = patience() if seconds is None else seconds
        super().__init__(Settings(source_seconds=most, source_bytes=size))
        self.reports: list[int] = []
        self.then = then

    def report(self, done: int, total: int = 0) -> None:
        self.reports.append(done)
        if self.then is not None:
            self.then()
        super().report(done, total)


PASSWORD = "tell-nobody-of-this"


class Source:
    """A database with a role that can only read, and a role that needs a password."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        server.create("sourced")
        server.run("CREATE ROLE reader LOGIN")
        server.run("CREATE ROLE group_of_writers")
        server.require_password("guarded", PASSWORD)

    def run(self, statement: str) -> None:
        """Run statements as the superuser."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def url(self, role: str, password: str = "") -> str:
        return f"postgresql://{role}:{password}@/sourced?host={self.server.folder}"

    def query(
        self,
        sql: str,
        types: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        url: str | None = None,
    ) -> Query:
        return Query(
            "warehouse", "loans", url or self.url("reader"), sql, types or {}, parameters or {}
        )


@pytest.fixture(scope="module")
def source(postgres: PostgresServer) -> Iterator[Source]:
    made = Source(postgres)
    yield made
    postgres.drop("sourced")
    for role in ("reader", "group_of_writers", "guarded"):
        postgres.run(f"DROP ROLE {role}")


def read(query: Query, folder: Path, step: Step | None = None) -> tuple[pa.Table, QueryRows]:
    file = folder / "rows.parquet"
    found = read_query(query, file, step or Step())
    return pq.read_table(file), found


def refused(query: Query, folder: Path, step: Step | None = None) -> ServiceError:
    """The error of a query, which never has its URL or password."""
    with pytest.raises(ServiceError) as caught:
        read(query, folder, step)
    said = json.dumps([caught.value.detail, caught.value.errors])
    assert PASSWORD not in said
    assert str(os.fspath(folder)) not in said
    assert "postgresql://" not in said
    return caught.value


def test_rows_of_a_query(source: Source, tmp_path: Path) -> None:
    """All rows arrive, in batches, with their missing values, the snapshot and its time."""
    sql = (
        "SELECT i AS number, CASE WHEN i % 4 > 0 THEN i * 0.25 END AS quarter, 'text ' || i AS words"
        " FROM generate_series(1, 20000) i"
    )
    step = Step()
    table, found = read(source.query(sql), tmp_path, step)
    assert found.rows == table.num_rows == 20_000
    assert table.column("number").to_pylist() == list(range(1, 20_001))
    quarters = [i * 0.25 if i % 4 > 0 else None for i in range(1, 20_001)]
    assert table.column("quarter").type == pa.float64()
    assert table.column("quarter").to_pylist() == quarters
    assert table.column("words")[-1].as_py() == "text 20000"
    assert found.snapshot.count(":") == 2
    assert found.at > 1.7e9
    assert step.reports == sorted(step.reports)
    assert step.reports[-1] > 0


def test_parameters_are_bound(source: Source, tmp_path: Path) -> None:
    """A value is a value whatever it has in it, and has the declared type."""
    injection = "x'; DROP TABLE accounts; --"
    types = {
        "name": "text",
        "least": "integer",
        "share": "number",
        "active": "boolean",
        "day": "date",
        "since": "timestamp",
    }
    given = {
        "since": "2026-01-31T12:00:00+02:00",
        "name": injection,
        "least": 2**40,
        "share": 0.5,
        "active": True,
        "day": "2026-01-31",
    }
    sql = (
        "SELECT $1 AS name, $2 AS least, $3 AS share, $4 AS active, $5 AS day, $6 AS since"
        " WHERE $2 > 1 AND $5 < DATE '2026-02-01'"
    )
    table, _ = read(source.query(sql, types, given), tmp_path)
    (row,) = table.to_pylist()
    assert row["name"] == injection
    assert row["least"] == 2**40
    assert row["share"] == 0.5
    assert row["active"] is True
    assert row["day"].isoformat() == "2026-01-31"
    assert row["since"].isoformat() == "2026-01-31T10:00:00+00:00"


SUPPORTED = {
    "true": True,
    "1::int2": 1,
    "2::int4": 2,
    "9223372036854775807::int8": 2**63 - 1,
    "1.5::float4": 1.5,
    "1.5::float8": 1.5,
    "12.25::numeric(10, 2)": 12.25,
    "123456789012345678901234567890.5::numeric": 1.2345678901234568e29,
    "'Infinity'::numeric": math.inf,
    "1e400::numeric": math.inf,
    "NULL::numeric": None,
    "NULL": None,
    "'a'::text": "a",
    "'a'::varchar(3)": "a",
    "'a'::char(3)": "a  ",
    "'a'::\"char\"": "a",
    "'a'::name": "a",
    "'Ab'::citext": "Ab",
    "'low'::level": "low",
    "7::positive": 7,
    "1.25::price": 1.25,
    "'00112233-4455-6677-8899-aabbccddeeff'::uuid": "00112233-4455-6677-8899-aabbccddeeff",
    "NULL::uuid": None,
    "'{\"a\": 1}'::json": '{"a": 1}',
    "'{\"a\":1}'::jsonb": '{"a": 1}',
    "DATE '2026-01-31'": "2026-01-31",
    "TIMESTAMP '2026-01-31 12:00'": "2026-01-31T12:00:00",
    "TIMESTAMPTZ '2026-01-31 12:00+02'": "2026-01-31T10:00:00+00:00",
}
UNSUPPORTED = {
    "1::money": "money",
    "'10.0.0.1'::inet": "inet",
    "'10.0.0.0/8'::cidr": "cidr",
    "'08:00:2b:01:02:03'::macaddr": "macaddr",
    "TIME '12:00'": "time",
    "TIMETZ '12:00+02'": "timetz",
    "INTERVAL '1 day'": "interval",
    "ARRAY[1, 2]": "_int4",
    "ARRAY['a']": "_text",
    "'\\x00'::bytea": "bytea",
    "int4range(1, 2)": "another type",
    "ROW(1, 'a')::pair": "pair",
    "1::oid": "oid",
    "'pg_class'::regclass": "regclass",
    "'now'::regproc": "regproc",
    "B'101'": "bit",
    "point(1, 2)": "point",
    "'a'::tsvector": "tsvector",
    "'a=>1'::hstore": "hstore",
}


@pytest.fixture(scope="module")
def types(source: Source) -> None:
    source.run("CREATE EXTENSION citext")
    source.run("CREATE EXTENSION hstore")
    source.run("CREATE TYPE level AS ENUM ('low', 'high')")
    source.run("CREATE TYPE pair AS (a int, b text)")
    source.run("CREATE DOMAIN positive AS int CHECK (value > 0)")
    source.run("CREATE DOMAIN price AS numeric(10, 2)")


@pytest.mark.usefixtures("types")
def test_supported_types(source: Source, tmp_path: Path) -> None:
    """Each is cast to a type that a dataset can have."""
    columns = ", ".join(f"{sql} AS c{number}" for number, sql in enumerate(SUPPORTED))
    not_numbers = "'NaN'::numeric AS a, 'NaN'::float8 AS b"
    table, _ = read(source.query(f"SELECT {not_numbers}, {columns}"), tmp_path)
    (row,) = table.to_pylist()
    assert all(math.isnan(row.pop(name)) for name in "ab")
    for (sql, expected), value in zip(SUPPORTED.items(), row.values(), strict=True):
        shown = value.isoformat() if hasattr(value, "isoformat") else value
        assert (sql, shown) == (sql, expected)


@pytest.mark.usefixtures("types")
def test_unsupported_types(source: Source, tmp_path: Path) -> None:
    """All of a query's are named with their columns."""
    columns = ", ".join(f"{sql} AS c{number}" for number, sql in enumerate(UNSUPPORTED))
    error = refused(source.query(f"SELECT 1 AS fine, {columns}"), tmp_path)
    assert isinstance(error, BadTable)
    assert error.code == "unsupported_type"
    found = {each["column"]: each["detail"] for each in error.errors}
    assert list(found) == [f"c{number}" for number in range(len(UNSUPPORTED))]
    for name, detail in zip(UNSUPPORTED.values(), found.values(), strict=True):
        assert f" {name}," in detail


@long_form
def test_dates_that_no_dataset_can_have(source: Source, tmp_path: Path) -> None:
    """Infinity and years beyond 9999 are refused with the column."""
    for sql in (
        "SELECT 'infinity'::date AS d",
        "SELECT '-infinity'::timestamp AS d",
        "SELECT 'infinity'::timestamptz AS d",
        "SELECT TIMESTAMP '294000-01-01' AS d",
        "SELECT DATE '4000-01-01 BC' AS d",
        "SELECT d FROM (VALUES (DATE '2026-01-31'), (NULL), ('infinity')) AS t (d)",
    ):
        error = refused(source.query(sql), tmp_path)
        assert isinstance(error, BadTable)
        assert error.errors[0]["column"] == "d"


QUERY_ERRORS = {
    "SELECT secret FROM accounts": "source_forbidden",
    "SELECT name::int FROM visible": "source_query_failed",
    "SELECT 1; ROLLBACK; CREATE TABLE made AS SELECT 1 AS a": "source_query_failed",
    "SELECT changed()": "source_query_failed",
}
if LONG_FORM:  # each is a process
    QUERY_ERRORS |= {
        "SELECT * FROM no_such_table": "source_not_found",
        "SELECT * FROM no_schema.t": "source_not_found",
        "SELECT 1 AS a WHERE false": "source_empty",
        "SELECT 1 AS a, 2 AS a": "duplicate_column",
    }
    QUERY_ERRORS |= dict.fromkeys(
        (
            "",
            "SELEC 1",
            "SELECT no_such_column FROM visible",
            "SELECT 1 / (id - id) FROM visible",
            "SELECT 1 AS a; SELECT 2 AS a",
            "DELETE FROM visible",
            "WITH d AS (DELETE FROM visible RETURNING id) SELECT id FROM d",
            "SELECT $1 AS a",
            "COMMIT",
        ),
        "source_query_failed",
    )


@pytest.fixture(scope="module")
def tables(source: Source) -> None:
    source.run("CREATE TABLE accounts (secret text)")
    source.run("CREATE TABLE visible (id int, name text)")
    source.run("INSERT INTO visible VALUES (1, 'a value of a row')")
    source.run("GRANT SELECT ON visible TO reader")
    source.run(
        "CREATE FUNCTION changed() RETURNS int LANGUAGE sql SECURITY DEFINER AS"
        " 'INSERT INTO visible VALUES (2, NULL) RETURNING id'"
    )


@long_form
@pytest.mark.usefixtures("tables")
def test_check_of_a_query(source: Source) -> None:
    """It runs nothing, finds errors of the SQL and of permissions, and names a table that the role could change."""
    types = {"least": "integer", "day": "date"}
    sql = "SELECT id, 1 / (id - id) AS never FROM visible WHERE id > $1 AND $2 < now()"
    assert check_query(source.query(sql, types), Step()) is None
    for sql, code in (
        ("SELECT * FROM accounts", "source_forbidden"),
        ("SELECT * FROM no_such_table", "source_not_found"),
        ("SELEC", "source_query_failed"),
    ):
        with pytest.raises(SourceError) as caught:
            check_query(source.query(sql), Step())
        assert caught.value.code == code
    source.run("GRANT UPDATE ON visible TO reader")
    try:
        assert check_query(source.query("SELECT id FROM visible"), Step()) == "public.visible"
    finally:
        source.run("REVOKE UPDATE ON visible FROM reader")


@pytest.mark.usefixtures("tables")
def test_errors_of_a_query(source: Source, tmp_path: Path) -> None:
    """Each has a code; a message names the condition, and has no value of a row. Nothing is changed."""
    for sql, code in QUERY_ERRORS.items():
        error = refused(source.query(sql), tmp_path)
        assert (sql, error.code) == (sql, code)
        assert not isinstance(error, Unavailable)
        assert "a value of a row" not in error.detail
    with psycopg.connect(source.url("postgres")) as connection:
        assert connection.execute("SELECT count(*) FROM visible").fetchone() == (1,)
        assert connection.execute("SELECT to_regclass('made')").fetchone() == (None,)


@long_form
def test_servers_and_logins(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is away may come back; a refused login does not help itself."""
    for url, code in {
        source.url("guarded", "wrong"): "source_forbidden",
        source.url("nobody_of_this_name"): "source_forbidden",
        source.url("reader").replace("sourced", "no_such_database"): "source_forbidden",
        f"postgresql://reader:{PASSWORD}@127.0.0.1:1/sourced": "source_unreachable",
        f"postgresql://reader:{PASSWORD}@/sourced?host=/nowhere": "source_unreachable",
        f"postgresql://reader:{PASSWORD}@[host/": "source_misconfigured",
        f"password={PASSWORD} nonsense": "source_misconfigured",
        f"postgresql://reader:{PASSWORD}@127.0.0.1:abc/sourced": "source_misconfigured",
        f"postgresql://reader:{PASSWORD}@127.0.0.1/sourced?gssencmode=maybe": "source_misconfigured",
        f"postgresql://reader:{PASSWORD}@127.0.0.1/sourced?service=none": "source_misconfigured",
    }.items():
        error = refused(source.query("SELECT 1 AS a", url=url), tmp_path)
        assert (url, error.code) == (url, code)
        assert isinstance(error, Unavailable) == (code == "source_unreachable")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)  # of the service's own database
    no_password = source.query("SELECT 1 AS a", url=source.url("guarded"))
    assert refused(no_password, tmp_path).code == "source_forbidden"
    guarded = source.query("SELECT 1 AS a", url=source.url("guarded", PASSWORD))
    assert read(guarded, tmp_path)[1].rows == 1


OF_A_GROUP = {  # which the role can become
    "GRANT pg_read_server_files TO group_of_writers; GRANT group_of_writers TO reader WITH INHERIT FALSE": (
        "REVOKE pg_read_server_files FROM group_of_writers; REVOKE group_of_writers FROM reader"
    ),
}
PRIVILEGES = OF_A_GROUP | {
    "ALTER ROLE reader SUPERUSER": "ALTER ROLE reader NOSUPERUSER",
    "ALTER ROLE reader CREATEROLE": "ALTER ROLE reader NOCREATEROLE",
    "ALTER ROLE reader REPLICATION": "ALTER ROLE reader NOREPLICATION",
    "ALTER ROLE reader BYPASSRLS": "ALTER ROLE reader NOBYPASSRLS",
    "GRANT pg_read_server_files TO reader": "REVOKE pg_read_server_files FROM reader",
    "GRANT pg_write_server_files TO reader": "REVOKE pg_write_server_files FROM reader",
    "GRANT pg_execute_server_program TO reader": "REVOKE pg_execute_server_program FROM reader",
    "ALTER ROLE group_of_writers CREATEROLE; GRANT group_of_writers TO reader": (
        "ALTER ROLE group_of_writers NOCREATEROLE; REVOKE group_of_writers FROM reader"
    ),
}


def test_privileged_roles(source: Source, tmp_path: Path) -> None:
    """Neither a run nor a check uses them, whether the privilege is their own or that of a role that they can take."""
    query = source.query("SELECT 1 AS a")
    for grant, revoke in (PRIVILEGES if LONG_FORM else OF_A_GROUP).items():  # each is a process
        source.run(grant)
        try:
            assert (grant, refused(query, tmp_path).code) == (grant, "source_privileged")
        finally:
            source.run(revoke)
    source.run("ALTER ROLE reader SUPERUSER")
    try:
        with pytest.raises(SourceError) as caught:
            check_query(query, Step())
        assert caught.value.code == "source_privileged"
    finally:
        source.run("ALTER ROLE reader NOSUPERUSER")


@long_form
def test_limits(source: Source, tmp_path: Path) -> None:
    """Too many bytes and too long a time end a query with the name of the limit."""
    sql = "SELECT md5(i::text) AS a FROM generate_series(1, 300000) i"
    assert refused(source.query(sql), tmp_path, Step(size=1 << 20)).code == "source_too_large"
    endless = source.query("SELECT pg_sleep(600)::text AS a")
    assert refused(endless, tmp_path, Step(seconds=2.0)).code == "source_timed_out"
    growing = "SELECT repeat('x', CASE WHEN i > 10500 THEN 1000000 ELSE 1 END) AS a FROM generate_series(1, 12000) i"
    assert refused(source.query(growing), tmp_path).code == "source_too_large"
    _is_idle(source)


def _is_idle(source: Source) -> None:
    """Wait until the server runs no query of a source."""
    with psycopg.connect(source.url("postgres"), autocommit=True) as connection:

        def running() -> Any:
            sql = (
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rankwright'"
                " AND datname = current_database()"  # other tests have databases of the same server
            )
            return connection.execute(sql).fetchone()[0]

        eventually(lambda: running() == 0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM generate_series(1, 100000000) a",
        *rest(
            "SELECT pg_sleep(600)::text AS a",
            "SELECT count(*) AS a FROM generate_series(1, 100000000) a, generate_series(1, 100000000) b",
        ),
    ],
)
def test_a_stopped_query_ends_at_the_server(source: Source, tmp_path: Path, sql: str) -> None:
    """Whether it computes or returns rows."""
    step = Step()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(read_query, source.query(sql), tmp_path / "rows.parquet", step)
        _wait_for_query(source)
        step.stop()
        with pytest.raises(FetchStopped):
            done.result()
    _is_idle(source)


def _wait_for_query(source: Source) -> None:
    """Wait until the server runs a query of a source."""
    with psycopg.connect(source.url("postgres"), autocommit=True) as connection:
        sql = (
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rankwright' AND state = 'active'"
            " AND query LIKE 'FETCH%' AND datname = current_database()"
        )
        eventually(lambda: connection.execute(sql).fetchone())


@long_form
def test_a_connection_that_is_lost(source: Source, tmp_path: Path) -> None:
    """A backend that is killed while it returns rows is a database that is away, not the end of the rows."""
    sql = "SELECT i AS a, pg_sleep(0.001)::text AS b FROM generate_series(1, 1000000) i"

    def kill() -> None:
        source.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rankwright'"
            " AND datname = current_database()"
        )

    with pytest.raises(Unavailable) as caught:
        read(source.query(sql), tmp_path, Step(then=kill))
    assert caught.value.code == "source_unreachable"


@long_form
def test_a_server_that_is_frozen(source: Source, tmp_path: Path) -> None:
    """It holds nobody: the step ends even if the server accepts everything and answers nothing."""
    step = Step()
    with ThreadPoolExecutor(1) as pool:
        query = source.query("SELECT pg_sleep(600)::text AS a")
        done = pool.submit(read_query, query, tmp_path / "rows.parquet", step)
        _wait_for_query(source)
        with source.server.frozen():
            step.stop()
            with pytest.raises(FetchStopped):
                done.result()


def test_without_the_driver(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to install."""
    monkeypatch.setattr(sources, "DRIVER", "no_such_driver")
    assert refused(source.query("SELECT 1 AS a"), tmp_path).code == "source_driver_missing"
