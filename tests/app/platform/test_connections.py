"""The file of connections: what it may say, and what is refused with the entry, the field and the rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.platform import json_files
from app.platform.connections import ConnectionsFile, read_connections
from app.platform.json_files import BadFile
from app.platform.settings import Settings
from tests.raising import raises

CREDENTIALS = "[default]\naws_access_key_id = a\naws_secret_access_key = b\n"
Write = Callable[[Any], Path]
STORE = {"driver": "s3", "owners": ["ann"], "prefix": "s3://blobs/exports"}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(content: Any) -> Path:
        file = tmp_path / "connections.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    return put


@pytest.fixture
def database(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "url").write_text("postgresql://reader:geheim@db.example/warehouse\n")
    query = {"sql": "select * from loans where at >= $1", "parameters": {"since": "date"}}
    return {
        "driver": "postgresql",
        "owners": ["ann", "bea"],
        "url_file": str(tmp_path / "url"),
        "queries": {"loans": query},
    }


def test_stores_and_databases_are_read(
    write: Write, tmp_path: Path, database: dict[str, Any]
) -> None:
    (tmp_path / "credentials").write_text(CREDENTIALS)
    more = {"endpoint": "http://127.0.0.1:9", "credentials_file": str(tmp_path / "credentials")}
    found = read_connections(write({"exports": STORE | more, "warehouse": database}))
    store = found["exports"]
    assert (store.prefix, store.bucket.url) == ("s3://blobs/exports/", "s3://blobs/exports")
    assert store.bucket.endpoint == more["endpoint"]
    assert dict(found["warehouse"].queries["loans"].parameters) == {"since": "date"}
    assert found["warehouse"].database_url() == "postgresql://reader:geheim@db.example/warehouse"
    assert "geheim" not in repr(found)


@pytest.mark.parametrize(
    "change",
    [
        {"driver": "ftp"},
        {"driver": None},
        {"prefx": "s3://blobs"},
        {"owners": []},
        {"owners": "ann"},
        {"owners": ["Ann!"]},
        {"owners": [1]},
        {"prefix": None},
        {"prefix": "gs://blobs"},
        {"prefix": "s3://Blobs"},
        {"prefix": "s3://blobs/a//b"},
        {"prefix": "s3://blobs/../b"},
        {"prefix": "s3://blobs?x"},
        {"endpoint": "ftp://host"},
        {"endpoint": "https://user:word@host"},
        {"credentials_file": "/nowhere"},
        {"ca_file": "/nowhere"},
        {"queries": {}},
    ],
)
def test_a_wrong_store_is_refused(write: Write, change: dict[str, Any]) -> None:
    with pytest.raises(BadFile) as refused:
        read_connections(write({"exports": STORE | change}))
    assert "'exports'" in str(refused.value)
    assert "word@" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"url_file": "/nowhere"},
        {"queries": None},
        {"queries": {}},
        {"queries": {"Loans!": {"sql": "select 1"}}},
        {"queries": {"loans": "select 1"}},
        {"queries": {"loans": {"sql": ""}}},
        {"queries": {"loans": {"sql": "select 1", "limit": 3}}},
        {"queries": {"loans": {"sql": "select 1", "parameters": ["since"]}}},
        {"queries": {"loans": {"sql": "select 1", "parameters": {"1st": "text"}}}},
        {"queries": {"loans": {"sql": "select 1", "parameters": {"since": "datum"}}}},
        {"prefix": "s3://blobs"},
    ],
)
def test_a_wrong_database_is_refused(
    write: Write, database: dict[str, Any], change: dict[str, Any]
) -> None:
    with pytest.raises(BadFile) as refused:
        read_connections(write({"warehouse": database | change}))
    assert "'warehouse'" in str(refused.value)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *("", "mysql://host/x", "postgresql:///x", "postgresql://h/x\nmore", "postgresql://[::1/x"),
        *("postgresql://h:abc/x", "postgresql://h:0/x", "postgresql://h:65536/x"),
        *("postgresql://h:5432,i:５/x", "postgresql://u:p%zz@h/x"),
        *("postgresql://h/x?sslmod=require", "postgresql://h/x?sslmode=sometimes"),
    ],
)
def test_a_wrong_url_is_refused_without_being_shown(
    write: Write, database: dict[str, Any], tmp_path: Path, url: str
) -> None:
    (tmp_path / "url").write_text(url)
    with pytest.raises(BadFile) as refused:
        read_connections(write({"warehouse": database}))
    assert url == "" or url not in str(refused.value)


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, '{"Exports!": {}}', '{"a": 1}'])
def test_a_file_that_is_no_object_of_connections_is_refused(write: Write, content: str) -> None:
    with pytest.raises(BadFile):
        read_connections(write(content))


def test_a_process_does_not_start_with_a_wrong_file(write: Write) -> None:
    with raises(ValueError, "connections_file", "'ftp'"):
        Settings(connections_file=write({"exports": STORE | {"driver": "ftp"}}))
    assert Settings(connections_file="").connections_file is None  # type: ignore[arg-type]  # as compose.yml passes it


def test_a_changed_file_is_read_again_and_a_wrong_one_is_not_used(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "CHECKED_EVERY", 0.0)
    connections = ConnectionsFile(write({"exports": STORE}))
    assert list(connections.of("ann")) == ["exports"]
    assert list(connections.of("bea")) == []
    write({"exports": STORE | {"owners": ["bea"]}, "b": STORE, "a": STORE})
    assert list(connections.of("ann")) == ["a", "b"]
    write("{")
    assert list(connections.of("bea")) == ["exports"]
    assert connections.problem is not None
    assert dict(ConnectionsFile(None).of("ann")) == {}
