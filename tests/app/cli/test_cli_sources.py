"""`rankwright sources | fetch | refresh`, and the same with the client, against a real S3 server (moto)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from rankwright.transport import parameter_value
from typer.testing import Result

from app.operations.doctor import Level, check_connections
from tests.app.cli.conftest import typing
from tests.app.live_service import OWNER, Service, table

if TYPE_CHECKING:
    from tests.buckets import BucketServer

Run = Callable[..., Result]
PREFIX = "s3://blobs/exports/"


@pytest.fixture(scope="module")
def sourced(
    start: Callable[..., Service],
    bucket_server: BucketServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Service:
    import obstore

    from app.platform.object_store import open_bucket

    bucket_server.clear()
    store = open_bucket(bucket_server.bucket(prefix=""))
    obstore.put(store, "exports/people.csv", table().encode())
    connection = {
        "driver": "s3",
        "owners": [OWNER],
        "prefix": PREFIX,
        "endpoint": bucket_server.url,
        "credentials_file": str(bucket_server.credentials),
    }
    file = tmp_path_factory.mktemp("connections") / "connections.json"
    file.write_text(json.dumps({"exports": connection}))
    return start(connections_file=file)


@pytest.fixture
def run(sourced: Service) -> Iterator[Run]:
    with typing(sourced) as run:
        yield run


def test_a_dataset_is_fetched_and_refreshed(run: Run) -> None:
    assert PREFIX in run("sources").stdout
    [known] = json.loads(run("sources", "--json").stdout)["data"]
    assert known["name"] == "exports"
    words = ("fetch", f"{PREFIX}people.csv", "--name", "sourced", "--label", "left")
    first = json.loads(run(*words, "--positive", "yes", "--json").stdout)
    assert (first["status"], first["positive"]) == ("ready", "yes")
    again = json.loads(run("refresh", "sourced", "--json").stdout)
    assert (again["status"], again["refresh_of"]) == ("unchanged", first["id"])


def test_a_name_means_the_newest_ready_version(run: Run, bucket_server: BucketServer) -> None:
    import obstore

    from app.platform.object_store import open_bucket

    store = open_bucket(bucket_server.bucket(prefix=""))
    obstore.put(store, "exports/nightly.csv", table().encode())
    words = ("fetch", f"{PREFIX}nightly.csv", "--name", "nightly", "--label", "left")
    first = json.loads(run(*words, "--positive", "yes", "--json").stdout)
    obstore.delete(store, "exports/nightly.csv")
    run("refresh", "nightly", code=2)
    planned = run("schedules", "create", "nightly", "0 5 * * *", "--json")
    assert json.loads(planned.stdout)["dataset_id"] == first["id"]
    obstore.put(store, "exports/nightly.csv", table().encode())
    assert first["id"] in run("refresh", "nightly").stdout
    obstore.put(store, "exports/nightly.csv", table(seed=1).encode())
    again = json.loads(run("refresh", "nightly", "--json").stdout)
    assert (again["status"], again["refresh_of"]) == ("ready", first["id"])


def test_parameters_have_the_types_of_the_query() -> None:
    assert parameter_value("7", "text") == "7"
    assert parameter_value("7", "integer") == 7
    assert parameter_value("7", "number") == 7.0
    assert parameter_value("true", "boolean") is True
    for text, type_ in (("x", "integer"), ("nan", "number"), ("yes", "boolean"), ("true", None)):
        assert parameter_value(text, type_) == text


def test_the_doctor_examines_each_store(sourced: Service, bucket_server: BucketServer) -> None:
    [found] = check_connections(sourced.settings)
    assert found.level is Level.OK
    assert sourced.settings.connections_file is not None
    content = json.loads(sourced.settings.connections_file.read_text())
    content["exports"]["prefix"] = "s3://missing/exports"
    other = sourced.settings.connections_file.with_name("other.json")
    other.write_text(json.dumps(content))
    [missing] = check_connections(sourced.settings.model_copy(update={"connections_file": other}))
    assert missing.level is Level.FAIL
