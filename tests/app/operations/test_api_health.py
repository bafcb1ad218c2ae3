"""Health and figures: each part named, down when it is down."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from app import __version__
from app.jobs import repository as workers
from app.main import create_app
from app.platform import migrate
from app.platform.database import Database
from app.platform.schema import REVISION, OtherTables
from app.platform.settings import Settings
from tests.app.live_service import Service, running
from tests.servers import ValkeyServer

SERVES = {"database", "schema", "blob_store"}
WORKS = {"broker", "worker"}


def test_each_part_that_is_away_is_named(
    tmp_path: Path, database_url: str, valkey: ValkeyServer
) -> None:
    settings = Settings(
        state_dir=tmp_path,
        database_url=SecretStr(database_url),
        broker_url=SecretStr(valkey.broker_url),
    )
    with running(settings) as service:
        client = service.client()

        def away() -> set[str]:
            found = {}
            for path, expected in (("ready", SERVES), ("staffed", SERVES | WORKS)):
                answer = client.get(f"/health/{path}")
                parts = answer.json()["parts"]
                assert set(parts) == expected
                found[path] = {name for name, part in parts.items() if not part["ok"]}
                assert answer.status_code == (503 if found[path] else 200)
            assert found["ready"] == found["staffed"] & SERVES
            return found["staffed"]

        assert away() == {"worker"}
        with service.context.db.write() as session:
            workers.register(session, "w1", host="here", version="0", slots=1)
        assert away() == set()
        with service.context.db.write() as session:
            workers.seen(session, "w1", by_message=0, by_look=9, note="finds its jobs by looking")
        assert "here: finds its jobs by looking" in client.get("/health/staffed").text
        shutil.rmtree(service.context.blobs.root)
        assert away() == {"blob_store"}


def test_it_is_ready_without_broker_and_workers_as_scores_are_answered(service: Service) -> None:
    client = service.client(service.key())
    service.train(client, service.upload(client))
    assert client.get("/v1/models/churn/score?age=1&income=1").status_code == 200
    assert client.get("/health/ready").status_code == 200
    staffed = client.get("/health/staffed")
    parts = staffed.json()["parts"]
    assert staffed.status_code == 503
    assert {name for name, part in parts.items() if not part["ok"]} == WORKS
    assert "unavailable" in parts["broker"]["detail"]


def at_revision(db: Database, revision: str) -> None:
    with db.write() as session:
        session.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))


@pytest.mark.parametrize(
    ("revision", "way"),
    [
        ("0020", f"works with {REVISION}: run `rankwright migrate`"),
        ("0099", "does not know; .* run the version that made them, or a later one"),
        ("ae1027a6acf", "does not know; .* run the version that made them, or a later one"),
    ],
)
def test_an_api_does_not_begin_on_tables_of_another_version(
    settings: Settings, revision: str, way: str
) -> None:
    db = Database(settings.sqlalchemy_url)
    at_revision(db, revision)
    db.close()
    with pytest.raises(OtherTables, match=f"tables are at revision {revision}, .*{way}"):
        create_app(settings)


def test_an_api_that_runs_goes_on_when_its_tables_are_migrated(settings: Settings) -> None:
    with running(settings) as service:
        client = service.client(service.key())
        at_revision(service.context.db, "0099")
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["parts"]["schema"]["ok"]) == (200, True)
        service.upload(client)


def test_a_database_that_comes_late_is_asked_then(tmp_path: Path) -> None:
    with running(Settings(state_dir=tmp_path)) as service:
        client = service.client()

        def schema() -> tuple[int, str]:
            answer = client.get("/health/ready")
            return answer.status_code, answer.json()["parts"]["schema"]["detail"]

        assert schema() == (503, "the database has no tables: run `rankwright migrate`")
        migrate.upgrade(service.settings.sqlalchemy_url)
        at_revision(service.context.db, "0099")
        assert schema()[0] == 503
        assert "revision 0099, which" in schema()[1]
        at_revision(service.context.db, REVISION)
        assert schema() == (200, f"began at revision {REVISION}")


def test_health_metrics_and_openapi_tell_version_and_build(settings: Settings) -> None:
    with running(settings.model_copy(update={"build": "5e6c84d"})) as service:
        client = service.client(service.key())
        for path in ("live", "ready", "staffed"):
            shown = client.get(f"/health/{path}").json()
            assert (shown["version"], shown["build"]) == (__version__, "5e6c84d")
        info = client.get("/openapi.json").json()["info"]
        assert (info["version"], info["x-build"]) == (__version__, "5e6c84d")
        line = f'rankwright_build_info{{build="5e6c84d",version="{__version__}"}} 1.0'
        assert line in client.get("/metrics").text.splitlines()


def test_figures(settings: Settings) -> None:
    with running(settings) as service:
        client = service.client(service.key())
        service.train(client, service.upload(client))
        client.get("/v1/models/churn/score?age=1&income=1")
        client.get("/v1/nothing")
        answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'rankwright_jobs{kind="train",state="succeeded"} 1.0' in lines
    assert 'rankwright_jobs{kind="ingest",state="succeeded"} 1.0' in lines
    assert 'rankwright_jobs_ended_total{kind="train",outcome="succeeded"} 1.0' in lines
    assert "rankwright_workers 0.0" in lines
    for name in ("resident_memory_bytes", "cpu_seconds_total", "open_fds"):
        assert any(line.startswith(f"process_{name} ") for line in lines)
    assert "rankwright_queue_oldest_seconds 0.0" in lines
    assert "rankwright_uploads 0.0" in lines
    assert any(line.startswith("rankwright_disk_free_bytes{disk=") for line in lines)
    labels = '{method="GET",route="/v1/models/{ref}/score",status="200"}'
    assert f"rankwright_http_request_seconds_count{labels} 1.0" in lines
    within = f'{{le="60.0",{labels[1:]}'
    assert f"rankwright_http_request_seconds_bucket{within} 1.0" in lines
    labels = '{method="GET",route="unrouted",status="404"}'
    assert f"rankwright_http_request_seconds_count{labels} 1.0" in lines
