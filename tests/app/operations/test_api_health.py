"""Health and figures: each part named, down when it is down."""

from __future__ import annotations

import math
import os
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import make_url, text

from app import __version__, main
from app.jobs import repository as workers
from app.main import create_app
from app.operations import health, repository
from app.platform import migrate, object_store
from app.platform.database import Database
from app.platform.schema import REVISION, CannotBegin, OtherTables
from app.platform.settings import Settings
from app.platform.tables import Role, Worker
from tests.app.live_service import Service, running
from tests.buckets import BucketServer
from tests.identity_provider import IdentityProvider
from tests.identity_provider import running as running_provider
from tests.long_form import DATABASES, long_form
from tests.raising import raises
from tests.sentences import Sentences
from tests.servers import PostgresServer, ValkeyServer
from tests.waiting import eventually, patience

SERVES = {"database", "schema", "blob_store", "disk"}
WORKS = {"broker", "worker", "dispatcher"}


@pytest.mark.parametrize("database_url", DATABASES, indirect=True)
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

        assert away() == {"worker", "dispatcher"}
        with service.context.db.write() as session:
            workers.register(session, "w1", host="here", version="0", slots=1)
        assert away() == {"dispatcher"}
        with service.context.db.write() as session:
            workers.register(session, "d1", host="here", version="0", slots=0, role=Role.DISPATCHER)
        assert away() == set()
        with service.context.db.write() as session:
            workers.seen(session, "w1", by_message=0, by_poll=9, note="finds its jobs by looking")
        assert "here: finds its jobs" in client.get("/health/staffed").text
        with service.context.db.write() as session:
            session.get_one(Worker, "d1").seen_at -= 14.0
        assert away() == {"dispatcher"}
        shutil.rmtree(service.blobs.root)
        assert away() == {"blob_store", "dispatcher"}


def test_each_dependency_that_is_away_is_in_health_and_metrics(
    tmp_path: Path, bucket_server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "PROBED_SECONDS", 0.0)
    postgres, broker, idp = PostgresServer(), ValkeyServer(), IdentityProvider()
    with running_provider(idp), closing(broker), closing(postgres):
        migrate.upgrade(url := postgres.create("health"))
        files: dict[str, Any] = {**idp.files(tmp_path)}
        settings = Settings(
            state_dir=tmp_path,
            database_url=SecretStr(url),
            broker_url=SecretStr(broker.broker_url),
            **files,
            **bucket_server.settings | {"blob_url": "s3://blobs/health"},
        )
        with running(settings) as service:
            client = service.client(service.key())
            [provider] = service.app.state.authenticator.tokens.tokens.providers.values()

            def full() -> None:
                vars(settings).update(min_free_bytes=1 << 62)

            def emptied() -> None:
                vars(settings).update(min_free_bytes=1)

            def away() -> tuple[set[str], set[str]]:
                """What health and metrics say is away. Other processes need it, too, so this one is ready."""
                provider._fetched_last = -math.inf  # of half a minute ago
                parts = client.get("/health/staffed").json()["parts"]
                shown = {name for name, part in parts.items() if not part["ok"]}
                found = re.findall(
                    r'_dependency_up\{dependency="(\w+)"\} 0', client.get("/metrics").text
                )
                assert client.get("/health/ready").status_code == 200
                return shown - {"worker", "dispatcher", "schema"}, set(found)

            eventually(lambda: away() == (set(), set()))
            for name, take, bring in (
                ("broker", broker.stop, broker.start),
                ("identity_provider", idp.stop, idp.start),
                ("blob_store", bucket_server.close, bucket_server.open),
                ("disk", full, emptied),
                ("database", postgres.stop, postgres.start),
            ):
                take()
                expected = {name}, {name}
                eventually(partial(lambda expected: away() == expected, expected))
                bring()
                eventually(lambda: away() == (set(), set()))


@long_form
def test_it_answers_while_requests_hold_every_thread_and_connection(settings: Settings) -> None:
    with ExitStack() as stack:
        service = stack.enter_context(running(settings.model_copy(update={"database_pool": 1})))
        client = service.client(service.key())
        service.app.state.authenticator.known.recent.seconds = (
            600.0  # as long as all may take to arrive
        )
        assert client.get("/v1/jobs").status_code == 200  # the key is known
        engine = service.context.db.engine
        held = [stack.enter_context(engine.connect()) for _ in range(2)]
        threads = stack.enter_context(ThreadPoolExecutor(45))
        waiting = [threads.submit(client.get, "/v1/jobs") for _ in range(45)]
        eventually(lambda: service.context.requests.taken == 45)
        for path in ("live", "ready"):
            assert client.get(f"/health/{path}").status_code == 200
        assert service.client().get("/oip/v2/health/ready").status_code == 200
        assert not any(each.done() for each in waiting)
        for connection in held:
            connection.close()
        assert {each.result().status_code for each in waiting} == {200}


def test_it_leaves_no_thread_behind(settings: Settings) -> None:
    others = set(threading.enumerate())

    def looking() -> int:
        own = set(threading.enumerate()) - others
        return sum(thread.name.startswith("health-") for thread in own)

    with running(settings) as service:
        service.client().get("/health/staffed")
        assert looking() == len(SERVES | WORKS)
    eventually(lambda: not looking())


def test_a_part_that_hangs_is_named_and_looked_at_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    goes_on = threading.Event()

    def hang(session: object) -> None:
        looks.append(1)
        goes_on.wait(patience())

    monkeypatch.setattr(health, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(repository, "ping", hang)
    client = service.client()
    for _ in range(3):
        answer = client.get("/health/ready")
        assert answer.status_code == 200  # other processes would wait for it, too
        assert "has not responded" in answer.json()["parts"]["database"]["detail"]
    assert len(looks) == 1
    goes_on.set()
    monkeypatch.setattr(health, "ANSWER_SECONDS", patience())
    eventually(lambda: not_well(client, shared=True) == set())


def not_well(
    client: httpx.Client, path: str = "/health/ready", *, shared: bool = False
) -> set[str]:
    """Return what does not work; with `shared`, in other processes either."""
    answer = client.get(path)
    found = {name for name, part in answer.json()["parts"].items() if not part["ok"]}
    assert answer.status_code == (503 if found and not shared else 200)
    return found


def test_it_is_ready_while_no_process_would_accept_anything_new(service: Service) -> None:
    client = service.client(service.key())
    assert not_well(client) == set()
    with service.setting(min_free_bytes=1 << 62):
        assert not_well(client, shared=True) == {"disk"}
        refused = client.post("/v1/datasets?name=people&label=left", content=b"left,x")
        assert refused.status_code == 507
        assert client.get("/oip/v2/health/ready").json() == {"ready": True}  # it can score


def test_it_is_not_ready_while_it_may_not_write(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(state_dir=tmp_path, database_url=SecretStr(sqlite_url))
    with running(settings) as service:
        client = service.client()
        for what, part in (
            (tmp_path / "rankwright.db", "database"),
            (service.blobs.root / "staging", "blob_store"),
            (service.blobs.root / "tables", "blob_store"),
        ):
            what.mkdir(exist_ok=True) if part == "blob_store" else None
            with monkeypatch.context() as patch:
                patch.setattr(os, "access", partial(_access, os.access, what))
                assert not_well(client) == {part}
            assert not_well(client) == set()


def _access(real: Callable[[Path, int], bool], closed: Path, path: Path, mode: int) -> bool:
    """Answer as for a user who may not write to one path. Root, who may run the tests, may write everywhere."""
    return real(path, mode) and not (path == closed and mode & os.W_OK)


def test_an_api_does_not_begin_on_a_file_that_may_not_be_written(
    tmp_path: Path, sqlite_url: str
) -> None:
    url = f"sqlite:///file:{tmp_path / 'rankwright.db'}?mode=ro&uri=true"
    with raises(CannotBegin, tmp_path / "rankwright.db"):
        create_app(Settings(state_dir=tmp_path, database_url=SecretStr(url)))


@long_form
def test_an_api_with_models_is_ready_once_it_can_score_at_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = service.client(service.key())
    service.train(client, service.upload(client))
    go_on = threading.Event()
    monkeypatch.setattr(main, "preload", lambda: go_on.wait(patience()))
    with running(service.settings) as restarted:
        probe = restarted.client()
        assert not_well(probe) == {"api"}
        assert probe.get("/oip/v2/health/ready").json() == {"ready": False}
        go_on.set()
        eventually(lambda: not_well(probe) == set())


def test_an_api_on_a_standby_is_not_ready_until_it_is_promoted(
    tmp_path: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    settings = Settings(state_dir=tmp_path, database_url=SecretStr(postgres_url))
    option = f'ALTER DATABASE "{make_url(postgres_url).database}"'
    postgres.run(f"{option} SET default_transaction_read_only = on")
    try:
        with running(settings) as service:
            client = service.client()
            assert not_well(client) - {"api"} == {"database", "schema"}  # it imports meanwhile
            postgres.run(f"{option} RESET default_transaction_read_only")
            eventually(lambda: not_well(client) == set())
    finally:
        postgres.run(f"{option} RESET default_transaction_read_only")


def at_revision(db: Database, revision: str) -> None:
    with db.write() as session:
        session.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))


def test_an_api_does_not_begin_on_tables_of_another_version(settings: Settings) -> None:
    db = Database(settings.sqlalchemy_url)
    at_revision(db, "9999")
    db.close()
    with raises(OtherTables, "9999"):
        create_app(settings)


def test_an_api_that_runs_goes_on_when_its_tables_are_migrated(settings: Settings) -> None:
    with running(settings) as service:
        client = service.client(service.key())
        at_revision(service.context.db, "9999")
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["parts"]["schema"]["ok"]) == (200, True)
        service.upload(client)


def test_a_database_that_comes_late_is_asked_then(tmp_path: Path, sentences: Sentences) -> None:
    with running(Settings(state_dir=tmp_path)) as service:
        client = service.client()

        def schema() -> tuple[int, str]:
            answer = client.get("/health/ready")
            return answer.status_code, answer.json()["parts"]["schema"]["detail"]

        status, detail = schema()
        assert status == 503
        sentences(detail)
        migrate.upgrade(service.settings.sqlalchemy_url)
        at_revision(service.context.db, "9999")
        assert schema()[0] == 503
        assert "revision 9999, which" in schema()[1]
        at_revision(service.context.db, REVISION)
        assert schema() == (200, f"started at revision {REVISION}")


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
    assert "rankwright_dispatchers 0.0" in lines
    for name in ("resident_memory_bytes", "cpu_seconds_total", "open_fds"):
        assert any(line.startswith(f"process_{name} ") for line in lines)
    assert not any(line.startswith("rankwright_queue_oldest_seconds{") for line in lines)
    assert any(line.startswith("rankwright_disk_free_bytes{disk=") for line in lines)
    labels = '{method="GET",route="/v1/models/{ref}/score",status="200"}'
    assert f"rankwright_http_request_seconds_count{labels} 1.0" in lines
    within = f'{{le="60.0",{labels[1:]}'
    assert f"rankwright_http_request_seconds_bucket{within} 1.0" in lines
    labels = '{method="GET",route="unrouted",status="404"}'
    assert f"rankwright_http_request_seconds_count{labels} 1.0" in lines
