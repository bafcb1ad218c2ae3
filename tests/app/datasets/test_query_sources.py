"""Datasets from queries of a real PostgreSQL: the requests, what is stored, refreshes, and what the doctor finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from app.datasets import query_source
from app.datasets.query_parameters import TYPES, check_parameters
from app.operations.doctor import Level, check_connections
from app.platform.connections import PARAMETER_TYPES
from app.platform.errors import Invalid
from app.platform.settings import Settings
from tests.app.live_service import OWNER, Service
from tests.servers import PostgresServer

PASSWORD = "tell-nobody-of-this"
LABEL = {"label": "bad", "positive": "true"}
QUERIES: dict[str, Any] = {
    "loans": {
        "sql": "SELECT id, amount, bad FROM loans WHERE id <= $1 AND granted >= $2 ORDER BY id",
        "parameters": {"most": "integer", "since": "date"},
    },
    "typed": {
        "sql": "SELECT $1 AS a, $2 AS b, $3 AS c, $4 AS d, $5 AS e, $6 AS f",
        "parameters": {type_: type_ for type_ in PARAMETER_TYPES},
    },
    "changing": {"sql": "SELECT * FROM changing"},
    "missing": {"sql": "SELECT * FROM no_such_table"},
}
GIVEN = {"most": 400, "since": "2026-01-31"}


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> Iterator[str]:
    postgres.create("lender")
    postgres.require_password("lender", PASSWORD)
    run(
        postgres,
        "CREATE TABLE loans AS SELECT i AS id, (i * 7919 % 1000)::numeric(10, 2) AS amount,"
        " DATE '2026-01-01' + i AS granted, i * 7919 % 1000 < 300 AS bad FROM generate_series(1, 1000) i;"
        " GRANT SELECT ON loans TO lender",
    )
    yield f"postgresql://lender:{PASSWORD}@/lender?host={postgres.folder}"
    postgres.drop("lender")
    postgres.run("DROP ROLE lender")


def run(server: PostgresServer, statement: str) -> None:
    """Run statements in the database as the superuser."""
    with psycopg.connect(f"host={server.folder} user=postgres dbname=lender") as connection:
        connection.execute(statement.encode())


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory, url: str) -> Path:
    folder = tmp_path_factory.mktemp("connections")
    (folder / "url").write_text(url)
    entry = {
        "driver": "postgresql",
        "owners": [OWNER],
        "url_file": str(folder / "url"),
        "queries": QUERIES,
    }
    theirs = entry | {"owners": ["nobody-here"]}
    file = folder / "connections.json"
    file.write_text(json.dumps({"warehouse": entry, "theirs": theirs}))
    return file


@pytest.fixture(scope="module")
def sourced(start: Callable[..., Service], connections: Path) -> Service:
    return start(connections_file=connections)


@pytest.fixture
def api(sourced: Service, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    monkeypatch.setattr(query_source, "PATIENCE_SECONDS", 0.0)
    return sourced.client(sourced.key())


def ask(api: httpx.Client, query: str, given: dict[str, Any], **more: Any) -> httpx.Response:
    source = {"connection": "warehouse", "query": query, "parameters": given, **more}
    return api.post("/v1/datasets", json={"name": "loans", "source": source, **LABEL})


def made(sourced: Service, api: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """The dataset after its job has ended."""
    assert answer.status_code == 202, answer.text
    sourced.work()
    found: dict[str, Any] = api.get(f"/v1/datasets/{answer.json()['id']}").json()
    return found


def failure(sourced: Service, api: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """The error of the job of an invalid dataset. Neither the job nor its events have the password."""
    dataset = made(sourced, api, answer)
    assert dataset["status"] == "invalid"
    found = api.get(f"/v1/jobs/{dataset['job_id']}")
    assert PASSWORD not in found.text
    error: dict[str, Any] = found.json()["error"]
    return error


def test_a_query_becomes_a_dataset(
    sourced: Service, api: httpx.Client, postgres: PostgresServer
) -> None:
    """With its lineage; and a refresh reads the rows that the query has by then."""
    dataset = made(sourced, api, ask(api, "loans", GIVEN))
    assert dataset["status"] == "ready", dataset["errors"]
    assert dataset["rows"] == 371
    types = {each["name"]: each["type"] for each in dataset["columns"]}
    assert types["amount"] == "numeric"
    source = dataset["source"]
    assert source["connection"] == "warehouse"
    assert source["query"] == "loans"
    assert source["parameters"] == GIVEN
    assert source["snapshot"].count(":") == 2
    assert source["bytes"] > 0
    assert len(source["sha256"]) == 64
    run(postgres, "DELETE FROM loans WHERE id = 100")
    newer = made(sourced, api, api.post(f"/v1/datasets/{dataset['id']}/refresh"))
    assert newer["status"] == "ready", newer["errors"]
    assert newer["rows"] == 370
    assert newer["refresh_of"] == dataset["id"]
    assert newer["source"]["snapshot"] != source["snapshot"]


def test_other_types_than_before(
    sourced: Service, api: httpx.Client, postgres: PostgresServer
) -> None:
    """A refresh names the columns that have changed."""
    make = "CREATE TABLE changing AS SELECT i AS a, {} AS b, i % 3 = 0 AS bad FROM generate_series(1, 60) i;"
    grant = " GRANT SELECT ON changing TO lender"
    run(postgres, make.format("i * 2") + grant)
    dataset = made(sourced, api, ask(api, "changing", {}))
    assert dataset["status"] == "ready", dataset["errors"]
    run(postgres, "DROP TABLE changing; " + make.format("'text ' || i % 5") + grant)
    error = failure(sourced, api, api.post(f"/v1/datasets/{dataset['id']}/refresh"))
    assert error["code"] == "source_columns_changed"
    assert "'b'" in json.dumps(error["errors"])


def test_parameters_of_a_request(sourced: Service, api: httpx.Client) -> None:
    """Each missing, unknown or wrong one is a 422 that names it, before a job is made."""
    assert set(TYPES) == set(PARAMETER_TYPES)
    good = {
        "text": "x",
        "integer": 1,
        "number": 0.5,
        "boolean": False,
        "date": "2026-01-31",
        "timestamp": "2026-01-31T12:00:00+02:00",
    }
    wrong: dict[str, list[Any]] = {
        "text": [1, None, "a\0b", "x" * 1001, ["x"], {"a": 1}],
        "integer": [1.5, "1", True, 2**63, -(2**63) - 1, None, [1]],
        "number": ["1", True, None, {}],
        "boolean": [0, 1, "true", None],
        "date": ["2026-02-30", "31.1.2026", "2026-01-31T00:00:00Z", 20260131, "", None],
        "timestamp": [
            "2026-01-31",
            "2026-01-31T12:00:00",
            "now",
            0,
            "0001-01-01T00:00:00+10:00",
            None,
        ],
    }
    check_parameters({"integer": "integer"}, {"integer": -(2**63)}, "")
    with pytest.raises(Invalid):
        check_parameters({"number": "number"}, {"number": 10**400}, "")
    jobs = len(api.get("/v1/jobs").json()["data"])
    for name, values in wrong.items():
        for value in values:
            answer = ask(api, "typed", good | {name: value})
            assert answer.status_code == 422, (name, value, answer.text)
            pointers = [each["pointer"] for each in answer.json()["errors"]]
            assert pointers == [f"/source/parameters/{name}"]
        missing = {each: value for each, value in good.items() if each != name}
        assert ask(api, "typed", missing).status_code == 422
    answer = ask(api, "typed", good | {"more": 1, "a/b": 2})
    assert [each["pointer"] for each in answer.json()["errors"]] == [
        "/source/parameters/more",
        "/source/parameters/a~1b",
    ]
    assert len(api.get("/v1/jobs").json()["data"]) == jobs


def test_connections_and_queries_of_a_request(api: httpx.Client) -> None:
    """Unknown ones, and those of others, do not exist."""
    assert ask(api, "no-such-query", {}).status_code == 404
    assert ask(api, "loans", GIVEN, connection="theirs").status_code == 404
    assert ask(api, "loans", GIVEN, connection="elsewhere").status_code == 404
    assert ask(api, "loans", GIVEN, sql="SELECT 1").status_code == 422


def test_failures_of_a_job(sourced: Service, api: httpx.Client) -> None:
    """They have the codes of the query's errors."""
    assert failure(sourced, api, ask(api, "missing", {}))["code"] == "source_not_found"
    error = failure(sourced, api, ask(api, "loans", {"most": 0, "since": "2026-01-31"}))
    assert error["code"] == "source_empty"


def test_what_the_doctor_finds(
    connections: Path, url: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    """Each query that cannot be run, a table that the role can change, a privileged role, and a URL without TLS."""

    def found(**queries: Any) -> list[Level]:
        entry = {"driver": "postgresql", "owners": [OWNER], "url_file": str(tmp_path / "url")}
        file = tmp_path / "connections.json"
        file.write_text(json.dumps({"warehouse": entry | {"queries": queries}}))
        levels = []
        for finding in check_connections(Settings(connections_file=file)):
            assert PASSWORD not in f"{finding.detail} {finding.advice}"
            levels.append(finding.level)
        return levels

    (tmp_path / "url").write_text(url)
    assert found(loans=QUERIES["loans"], missing=QUERIES["missing"]) == [Level.OK, Level.FAIL]
    run(postgres, "GRANT DELETE ON loans TO lender")
    assert found(loans=QUERIES["loans"]) == [Level.OK, Level.WARN]
    run(postgres, "REVOKE DELETE ON loans FROM lender; ALTER ROLE lender REPLICATION")
    assert found(loans=QUERIES["loans"]) == [Level.FAIL]
    run(postgres, "ALTER ROLE lender NOREPLICATION")
    (tmp_path / "url").write_text(
        f"postgresql://lender:{PASSWORD}@192.0.2.1:1/lender?host=/nowhere,db.internal"
    )
    assert found(loans=QUERIES["loans"]) == [Level.WARN, Level.FAIL]
