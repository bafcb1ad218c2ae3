"""A backup of PostgreSQL, with blobs in a folder or a bucket, taken under load and restored."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select
from standardwebhooks import Webhook as Verifier

from app.operations import backup
from app.operations.audit_seals import Sealer
from app.operations.backup import (
    AUDIT,
    SECRETS,
    BackupError,
    back_up,
    back_up_and_prune,
    restore,
)
from app.operations.deliveries import Courier
from app.operations.doctor import Level, examine
from app.operations.metrics import DatabaseCollector
from app.platform import migrate
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.sql import Base
from app.platform.stores import open_store
from app.webhooks.sending import Sender
from tests.app.console.test_oidc_sign_in import make_due, refresh, sign_in
from tests.app.live_service import NAMES, OWNER, running, table
from tests.app.operations.test_api_backup import at_work
from tests.app.operations.test_deliveries import deliver
from tests.app.webhooks.receivers import Receiver
from tests.buckets import BucketServer
from tests.identity_provider import IdentityProvider, free_port
from tests.identity_provider import running as running_provider
from tests.long_form import long_form, rest
from tests.raising import raises
from tests.sentences import Sentences
from tests.servers import PostgresServer
from tests.waiting import patience

ROWS = {"rows": [dict.fromkeys(NAMES, 0.5), dict.fromkeys(NAMES, -1.0)]}
Place = Callable[[str], dict[str, Any]]


@pytest.fixture
def create(postgres: PostgresServer) -> Iterator[Callable[[str], SecretStr]]:
    """Creates databases, by name."""
    created: list[str] = []

    def create(name: str) -> SecretStr:
        created.append(name)
        return SecretStr(postgres.create(name))

    yield create
    for name in created:
        postgres.drop(name)


@pytest.fixture(params=["bucket", *rest("folder")])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Settings of a blob store of a name."""
    if request.param == "folder":
        return lambda name: {"blob_url": f"file://{tmp_path}/{name}-blobs"}
    server = request.getfixturevalue("bucket_server")
    server.clear()
    return lambda name: server.settings | {"blob_url": f"s3://blobs/{name}"}


def rows(url: SecretStr) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a database, by table."""
    with closing(Database(url.get_secret_value(), pool_size=1)) as db, db.read() as session:
        return {
            table.name: sorted(map(tuple, session.execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
        }


def failures(settings: Settings) -> dict[str, str]:
    """What the doctor finds wrong, except the missing broker and workers, and the jobs that wait for these: a backup
    under load can have some.
    """
    found = examine(settings, {}, broker_url="redis+socket:///none", runs=False, deep=True)
    return {
        each.part: each.detail
        for each in found
        if each.level == Level.FAIL and each.part != "queue"
    }


def test_a_backup_under_load_is_restored(
    create: Callable[[str], SecretStr], place: Place, tmp_path: Path
) -> None:
    source = create("backed_up")
    migrate.upgrade(source.get_secret_value())
    settings = Settings(state_dir=tmp_path / "state", database_url=source, **place("source"))
    target = tmp_path / "backup.tar"
    with running(settings) as service:
        secret = service.key()
        client = service.client(secret)
        dataset = service.upload(client)
        model = service.train(client, dataset)["output"]["id"]
        scores = client.post(f"/v1/models/{model}/score", json=ROWS).json()
        with at_work(service, dataset):
            made = back_up(settings, target)
        assert made.missing == []
        quiet = back_up(settings, tmp_path / "quiet")
        at_rest = rows(source)
    elsewhere = Settings(
        state_dir=tmp_path / "elsewhere", database_url=create("restored"), **place("restored")
    )
    assert restore(target, elsewhere).files == made.files
    assert failures(elsewhere) == {}
    with running(elsewhere) as service:
        assert service.client(secret).post(f"/v1/models/{model}/score", json=ROWS).json() == scores
        again = service.client(secret)
        assert service.train(again, service.upload(again))["state"] == "succeeded"
    # A backup at rest is restored row by row.
    third = Settings(state_dir=tmp_path / "third", database_url=create("third"), **place("third"))
    restore(tmp_path / "quiet", third)
    found = rows(third.database_url or source)
    for name in at_rest.keys() - {"blob_holds", "last_successes"}:
        assert found[name] == at_rest[name], name
    assert found["blob_holds"] == []
    stored = {each.key for each in open_store(third).list()}
    assert stored == {name.removeprefix(backup.BLOBS) for name in quiet.files if "blobs/" in name}


@long_form
def test_a_restored_service_signs_in_sends_webhooks_and_refreshes_sources(
    create: Callable[[str], SecretStr], bucket_server: BucketServer, tmp_path: Path
) -> None:
    import obstore

    from app.platform.object_store import open_bucket

    port, source = free_port(), create("with_secrets")
    migrate.upgrade(source.get_secret_value())
    idp = IdentityProvider(redirect_uris=[f"http://127.0.0.1:{port}/console/oidc/callback"])
    connection = {
        "driver": "s3",
        "owners": [OWNER],
        "prefix": "s3://blobs/exports/",
        "endpoint": bucket_server.url,
        "credentials_file": str(bucket_server.credentials),
    }
    bucket_server.clear()
    exports = open_bucket(bucket_server.bucket(prefix=""))
    (tmp_path / "connections").write_text(json.dumps({"exports": connection}))
    (tmp_path / "audit").write_text("a" * 32)
    without: dict[str, Any] = {
        "connections_file": tmp_path / "connections",
        "webhook_networks": "127.0.0.0/8",
        "blob_url": f"file://{tmp_path}/blobs",
    }
    with running_provider(idp), Receiver().serve() as receiver:
        files: dict[str, Any] = idp.files(tmp_path) | {"audit_key_file": tmp_path / "audit"}
        settings = Settings(state_dir=tmp_path / "a", database_url=source, **without, **files)
        with running(settings, port) as service:
            client = service.client(secret := service.key())
            hook = client.post("/v1/webhooks", json={"url": receiver.url}).json()
            obstore.put(exports, "exports/people.csv", table().encode())
            asked = {"source": {"url": "s3://blobs/exports/people.csv"}, "name": "people"}
            of_source = client.post("/v1/datasets", json=asked | {"label": "left"}).json()["id"]
            service.work()
            cookies = sign_in(service, idp).cookies
            Sealer(service.context.db, service.context.blobs, settings.read_audit_keys()).seal()
            made = back_up(settings, tmp_path / "backup")
        assert {setting: len(ids) for setting, ids in made.keys.items()} == {SECRETS: 1, AUDIT: 1}
        assert all(ids[0] in made.keys_beside for ids in made.keys.values())

        into: dict[str, Any] = {
            "state_dir": tmp_path / "b",
            "database_url": create("again"),
            **without,
        }
        into["blob_url"] += "-again"
        bare = Settings(**into)
        with raises(BackupError, made.keys[SECRETS][0]):
            restore(tmp_path / "backup", bare)
        restore(tmp_path / "backup", settings := Settings(**into, **files))
        with running(settings, port) as service:
            db = service.context.db
            make_due(service)
            assert refresh(service) == 1
            browser = service.client()
            browser.cookies.update(cookies)
            assert browser.get("/console").status_code == 200
            client = service.client(secret)
            assert client.post(f"/v1/webhooks/{hook['id']}/ping").is_success
            sending = Sender(settings.networks_of_webhooks, seconds=patience())
            deliver(Courier(db, settings, sending))
            [sent] = [each for each in receiver.received if b"webhook.ping" in each.body]
            assert Verifier(hook["secret"]).verify(sent.body, dict(sent.headers))
            obstore.put(exports, "exports/people.csv", table(seed=1).encode())
            again = client.post(f"/v1/datasets/{of_source}/refresh").json()["id"]
            service.work()
            assert client.get(f"/v1/datasets/{again}").json()["status"] == "ready"


def test_what_cannot_be_restored(
    create: Callable[[str], SecretStr], tmp_path: Path, sentences: Sentences
) -> None:
    source = create("refused")
    empty = Settings(state_dir=tmp_path / "state", database_url=source)
    (tmp_path / "state" / "blobs").mkdir(parents=True)
    with sentences.raises(BackupError):
        back_up(empty, tmp_path / "nothing.tar")
    migrate.upgrade(source.get_secret_value())
    made = tmp_path / "made.tar"
    back_up(empty, made)
    with sentences.raises(BackupError):
        restore(made, empty)
    with raises(BackupError, made):
        restore(made, Settings(state_dir=tmp_path / "sqlite"))
    other = create("damaged")
    damaged = tmp_path / "damaged"
    with tarfile.open(made) as tar:
        tar.extractall(damaged, filter="data")
    manifest = json.loads((damaged / "manifest.json").read_text())
    table = next(name for name in manifest["files"] if name.startswith("database/"))
    (damaged / table).write_bytes(b"x" * manifest["files"][table]["bytes"])
    into = Settings(state_dir=tmp_path / "state2", database_url=other)
    with raises(BackupError, table):
        restore(damaged, into)
    assert migrate.current(other.get_secret_value()) is None
    del manifest["files"][table]
    (damaged / "manifest.json").write_text(json.dumps(manifest))
    with raises(BackupError, table.removeprefix("database/").partition(".")[0]):
        restore(damaged, into)


def test_old_backups_are_deleted_and_the_age_of_the_newest_is_a_metric(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(state_dir=tmp_path / "state", database_url=SecretStr(postgres_url))
    (tmp_path / "state" / "blobs").mkdir(parents=True)
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / "other.tar").touch()
    for name in (
        "rankwright-2026-11-01T000000Z.tar.partial",
        "rankwright-2026-11-01T000000Z.tar.database",
    ):
        (folder / name).touch()
        os.utime(folder / name, (0, 0))
    for n in range(4):
        monkeypatch.setattr(backup, "NAME", f"rankwright-2026-11-2{n}T000000Z.tar")
        back_up_and_prune(settings, folder, keep=2)
    assert {path.name for path in folder.iterdir()} == {
        "other.tar",
        "rankwright-2026-11-22T000000Z.tar",
        "rankwright-2026-11-23T000000Z.tar",
    }
    with closing(Database(postgres_url, pool_size=1)) as db:
        families = {each.name for each in DatabaseCollector(db, settings).collect()}
    assert any("backup" in name for name in families)
