"""The doctor's findings for a sound state, and for each thing that can be wrong with one."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text, update

from app import __version__
from app.access import service as keys
from app.jobs import repository as worker_rows
from app.operations.audit_seals import Sealer
from app.operations.doctor import Finding, Level, examine
from app.platform import audit_keys
from app.platform.audit_keys import make_key
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.encryption import make_keys
from app.platform.ids import new_id
from app.platform.schema import REVISION
from app.platform.settings import Settings
from app.platform.state_folder import make_private
from app.platform.tables import DecisionSegment, Role, Webhook
from tests.app.operations.test_audit_seals import add
from tests.app.queue_steps import OWNER, add_dataset, claimed, hear_nothing, submit
from tests.app.uploads import put
from tests.identity_provider import ec_key, free_port, odd_provider
from tests.otlp import receiver
from tests.raising import mentions
from tests.sentences import Sentences
from tests.servers import PostgresServer, ValkeyServer

LONG_AGO = 1.5


@pytest.fixture
def state(tmp_path: Path, database_url: str) -> Settings:
    """An empty state, as it is before anything was accepted."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    FolderStore(folder / "blobs")
    make_key(folder / audit_keys.FILE)
    return Settings(
        state_dir=folder,
        database_url=SecretStr(database_url),
        heartbeat_seconds=600.0,  # nobody sends any here: the first must last, however slow the test is
        lease_seconds=3600.0,
    )


@pytest.fixture
def well(state: Settings, db: Database) -> Settings:
    """The same with a key, a worker and a dispatcher."""
    _, secret = db.writing(keys.create, OWNER, "first", keys.SCOPES)
    file = state.state_dir / "api-key"
    file.write_text(secret + "\n")
    file.chmod(0o600)
    with db.write() as session:
        worker_rows.register(session, "wrk_a", host="here", version=__version__, slots=1)
        worker_rows.register(
            session, "dsp_a", host="here", version=__version__, slots=0, role=Role.DISPATCHER
        )
    return state


class Doctor:
    """Looks, with a broker that answers."""

    def __init__(self, broker_url: str) -> None:
        self._broker_url = broker_url

    def __call__(
        self, settings: Settings, environment: Mapping[str, str] | None = None, **asked: Any
    ) -> list[Finding]:
        given: dict[str, Any] = {"broker_url": self._broker_url, "runs": None, "deep": False}
        return list(examine(settings, environment or {}, **given | asked))

    def finds(self, settings: Settings, *rest: Any, **asked: Any) -> dict[str, tuple[Level, str]]:
        """Return the findings that are not well, by part; each must come with advice."""
        unwell = [found for found in self(settings, *rest, **asked) if found.level != Level.OK]
        assert all(found.advice for found in unwell)
        return {found.part: (found.level, found.detail) for found in unwell}


@pytest.fixture
def doctor(valkey: ValkeyServer) -> Doctor:
    return Doctor(valkey.broker_url)


def test_a_sound_state(well: Settings, db: Database, doctor: Doctor, sentences: Sentences) -> None:
    submit(db)
    blobs = FolderStore(well.blob_dir)
    upload, table = put(blobs, "uploads", b"a", db).key, put(blobs, "tables", b"b", db).key
    add_dataset(db, upload_key=upload, table_key=table)
    found = doctor(well, deep=True)
    assert {finding.level for finding in found} == {Level.OK}
    said = {finding.part: finding.detail for finding in found}
    assert said["queue"].startswith("1 queued, 0 running")
    sentences(said["blobs"])
    sentences(said["keys"])
    assert "here (1 slot" in said["workers"]
    assert list((well.blob_dir / "staging").iterdir()) == []


def test_without_the_key_of_the_audit_log_it_says_whether_the_log_is_sealed(
    well: Settings, db: Database, doctor: Doctor
) -> None:
    file = well.state_dir / audit_keys.FILE
    elsewhere = file.rename(well.state_dir / "elsewhere")
    assert doctor.finds(well)["audit log"][1].startswith("not sealed")
    add(db, 1)
    Sealer(db, FolderStore(well.blob_dir), audit_keys.read_keys(elsewhere)).seal()
    assert not doctor.finds(well)["audit log"][1].startswith("not sealed")


def test_blobs(well: Settings, db: Database, doctor: Doctor, sentences: Sentences) -> None:
    blobs = FolderStore(well.blob_dir)
    upload, table = put(blobs, "uploads", b"upload", db).key, put(blobs, "tables", b"table", db).key
    dataset = add_dataset(db, upload_key=upload, table_key=table)
    orphan = blobs.path(put(blobs, "uploads", b"orphan").key)
    then = time.time() - 2 * well.blob_grace_seconds
    os.utime(orphan, (then, then))
    level, detail = doctor.finds(well)["orphans"]
    assert level == Level.WARN
    sentences(detail)
    orphan.unlink()
    blobs.path(table).write_bytes(b"tabel")
    assert doctor.finds(well) == {}  # only reading shows it
    damaged = {"blobs": (Level.FAIL, f"1 of 2 damaged: table of datasets {dataset.id}")}
    assert doctor.finds(well, deep=True) == damaged
    blobs.path(table).write_bytes(b"tab")
    assert doctor.finds(well) == damaged
    blobs.path(table).unlink()
    missing = {"blobs": (Level.FAIL, f"1 of 2 missing: table of datasets {dataset.id}")}
    assert doctor.finds(well) == missing
    blobs.path(upload).write_bytes(b"up")
    level, detail = doctor.finds(well)["blobs"]
    assert level == Level.FAIL
    assert "1 of 2 missing" in detail
    assert "1 of 2 damaged" in detail


def test_identity_providers(well: Settings, doctor: Doctor, tmp_path: Path) -> None:
    """One answers, one is down, one is of another name, and the roles name one that is not trusted."""
    key = ec_key("one").as_dict(private=False)

    def answers(path: str) -> tuple[int, dict[str, str], bytes]:
        told = {"keys": [key]} if path == "/keys" else {"issuer": url, "jwks_uri": f"{url}/keys"}
        return 200, {}, json.dumps(told).encode()

    def look(*issuers: str) -> list[tuple[Level, str]]:
        entries = [{"issuer": each, "audience": "api"} for each in issuers]
        (tmp_path / "oidc").write_text(json.dumps(entries))
        changed = well.model_copy(update={"oidc_file": tmp_path / "oidc", "roles_file": roles})
        return [(each.level, each.detail) for each in doctor(changed) if each.part == "identity"]

    roles: Path | None = None
    with odd_provider(answers) as (url, _):
        levels, details = zip(*look(url, f"{url}/", f"http://127.0.0.1:{free_port()}"), strict=True)
        assert levels == (Level.OK, Level.FAIL, Level.FAIL, Level.WARN)
        assert url in details[0]
        rules = [
            {"issuer": each, "group": "g", "owner": "o", "role": "viewer"} for each in (url, "x")
        ]
        roles = tmp_path / "roles"
        roles.write_text(json.dumps(rules))
        assert [level for level, _ in look(url)] == [Level.OK, Level.WARN]
        roles.write_text(json.dumps(rules[:1]))
        assert [level for level, _ in look(url)] == [Level.OK]


def test_a_collector_of_spans(well: Settings, doctor: Doctor) -> None:
    """One takes spans, one is down, and one is not an address."""

    def look(endpoint: str) -> list[tuple[Level, str]]:
        found = doctor(well, {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
        return [(each.level, each.detail) for each in found if each.part == "tracing"]

    assert look("") == []
    with receiver() as collector:
        ((level, detail),) = look(collector.url)
        assert (level, collector.url in detail, collector.spans) == (Level.OK, True, [])
    ((level, detail),) = look(collector.url)
    assert (level, collector.url in detail) == (Level.WARN, True)
    ((level, detail),) = look("collector:4317")
    assert (level, "OTEL_EXPORTER_OTLP_ENDPOINT" in detail) == (Level.FAIL, True)


def test_webhooks(well: Settings, db: Database, doctor: Doctor, tmp_path: Path) -> None:
    """None, a proxy that is down, no keys, one that fails."""
    none = free_port()

    def look(**changes: object) -> list[Level]:
        found = doctor(well.model_copy(update=changes))
        return [each.level for each in found if each.part == "webhooks"]

    assert look() == []
    assert look(webhook_proxy=f"http://127.0.0.1:{none}") == [Level.FAIL]
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        assert look(webhook_proxy=f"http://127.0.0.1:{proxy.getsockname()[1]}") == []
    row = Webhook(
        id="wh_1",
        owner="ada",
        url="https://receiver.example/",
        description="",
        events=[],
        secret="encrypted",
        created_at=1.0,
    )
    with db.write() as session:
        session.add(row)
    assert look() == [Level.FAIL, Level.OK]
    file = tmp_path / "keys"
    make_keys(file)
    assert look(secrets_keys_file=file) == [Level.OK]
    with db.write() as session:
        session.execute(update(Webhook).values(failing_since=1.0))
    assert look(secrets_keys_file=file) == [Level.WARN]
    file.write_text("damaged")
    assert look(secrets_keys_file=file) == [Level.FAIL, Level.WARN]


def test_kernels_that_cannot_be_kept(
    well: Settings, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKWRIGHT_KERNEL_CACHE", "/dev/null/kernels")
    in_the_way = well.state_dir / "kernels"
    in_the_way.write_text("a file, no folder")
    level, detail = doctor.finds(well)["kernels"]
    assert level == Level.WARN
    assert "/dev/null/kernels" in detail
    in_the_way.unlink()
    assert doctor.finds(well) == {}


def test_a_queue_that_stands_still(
    state: Settings, db: Database, doctor: Doctor, sentences: Sentences
) -> None:
    db.writing(keys.create, OWNER, "first", keys.SCOPES)
    assert set(doctor.finds(state)) == {"workers", "dispatcher"}
    assert set(doctor.finds(state, runs=False)) == set()  # nothing waits
    submit(db)
    found = doctor.finds(state, runs=False)
    assert (set(found), found["queue"][0]) == ({"queue"}, Level.FAIL)
    assert set(doctor.finds(state)) == {"queue", "workers", "dispatcher"}
    claim = claimed(db)
    hear_nothing(db, seconds=36_000.0)
    with db.write() as session:
        worker_rows.register(session, claim.job_id, host="there", version="0.0.1", slots=2)
    found = doctor.finds(state)
    assert set(found) == {"leases", "workers", "dispatcher"}
    assert found["leases"][0] == Level.FAIL
    sentences(found["leases"][1])
    assert found["workers"][0] == Level.WARN
    assert "there (2 slots, version" in found["workers"][1]


@pytest.mark.parametrize(
    ("revision", "expected", "words"),
    [
        ("9999", Level.FAIL, f"which is unknown to rankwright {__version__}"),
        (None, Level.WARN, "has no tables"),
    ],
)
def test_tables_of_another_version(
    state: Settings,
    db: Database,
    doctor: Doctor,
    revision: str | None,
    expected: Level,
    words: str,
) -> None:
    try:
        with db.write() as session:
            session.execute(text("DELETE FROM alembic_version"))
            if revision is not None:
                insert = text("INSERT INTO alembic_version VALUES (:revision)")
                session.execute(insert, {"revision": revision})
        level, detail = doctor.finds(state)["database"]
        assert level == expected
        assert words in detail
    finally:
        with db.write() as session:
            session.execute(text("DELETE FROM alembic_version"))
            session.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": REVISION})


def test_before_the_first_start(doctor: Doctor, tmp_path: Path) -> None:
    """Nothing has failed yet, and what the service will need is checked."""
    new = Settings(
        state_dir=tmp_path / "new",
        blob_url="s3://bucket/prefix",
        blob_endpoint=f"http://127.0.0.1:{free_port()}",
    )
    found = {part: level for part, (level, _) in doctor.finds(new).items()}
    assert (found["state folder"], found["database"]) == (Level.WARN, Level.WARN)
    assert found["bucket"] == Level.FAIL
    make_private(
        new.state_dir
    )  # as `serve` does: what the doctor has made there is closed to others


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
def test_a_database_that_takes_no_changes(
    state: Settings, database_url: str, doctor: Doctor
) -> None:
    if database_url.startswith("sqlite"):
        url = database_url.replace("sqlite:///", "sqlite:///file:") + "?mode=ro&uri=true"
        words = "rankwright.db cannot be written"
    else:
        url = f"{database_url}&options=-c%20default_transaction_read_only%3Don"
        words = "the database is read-only"
    found = doctor.finds(state.model_copy(update={"database_url": SecretStr(url)}))
    level, detail = found["database"]
    assert level == Level.FAIL
    assert words in detail


class TestOnSqlite:
    """Return the checks that concern no other database."""

    @pytest.fixture
    def database_url(self, sqlite_url: str) -> str:
        return sqlite_url

    def test_a_wrong_password(
        self, state: Settings, postgres: PostgresServer, doctor: Doctor
    ) -> None:
        postgres.require_password("doctored", "right")
        url = f"postgresql://doctored:wr0ng@/postgres?host={postgres.folder}"
        found = doctor.finds(state.model_copy(update={"database_url": SecretStr(url)}))
        assert found.keys() == {"database"}
        assert 'failed for user "doctored"' in found["database"][1]
        assert "wr0ng" not in found["database"][1]

    def test_folders_and_keys(
        self, well: Settings, db: Database, doctor: Doctor, sentences: Sentences
    ) -> None:
        (well.state_dir / "api-key").chmod(0o644)
        well.state_dir.chmod(0o755)
        found = doctor.finds(well)
        assert set(found) == {"state folder", "key file"}
        assert {level for level, _ in found.values()} == {Level.WARN}
        well.state_dir.chmod(0o700)
        (well.state_dir / "api-key").chmod(0o600)
        (well.state_dir / "api-key").write_text("rw_another")
        assert str(well.state_dir / "api-key") in doctor.finds(well)["keys"][1]
        with db.write() as session:
            session.execute(text("DELETE FROM api_keys"))
        level, detail = doctor.finds(well)["keys"]
        assert level == Level.WARN
        sentences(detail)

    def test_settings_and_disk(self, well: Settings, doctor: Doctor) -> None:
        environment = {
            "RANKWRIGHT_LEESE_SECONDS": "1",
            "RANKWRIGHT_FAULTS": "join=kill",
            "HOME": "/",
        }
        level, detail = doctor.finds(well, environment)["settings"]
        assert level == Level.WARN
        assert "RANKWRIGHT_FAULTS" in detail
        details = [found.detail for found in doctor(well, environment)]
        assert any("RANKWRIGHT_LEESE_SECONDS is set" in each for each in details)
        tight = well.model_copy(update={"lease_seconds": 20.0, "min_free_bytes": 2**62})
        found = doctor.finds(tight)
        assert "lease of 20 s" in found["settings"][1]
        assert found["disk"][0] == Level.FAIL

    def test_nothing_there(self, tmp_path: Path, doctor: Doctor) -> None:
        nowhere = Settings(state_dir=tmp_path / "nowhere")
        found = doctor.finds(nowhere, broker_url=f"redis+socket://{tmp_path}/none", runs=True)
        assert set(found) == {"state folder", "database", "broker"}
        assert not nowhere.state_dir.exists()
        (tmp_path / "nowhere").mkdir(mode=0o700)
        (tmp_path / "nowhere" / "rankwright.db").write_bytes(b"this is no database" * 100)
        level, detail = doctor.finds(nowhere)["database"]
        assert (level, "not an SQLite database" in detail) == (Level.FAIL, True)

    def test_a_damaged_file(self, well: Settings, db: Database, doctor: Doctor) -> None:
        for _ in range(50):
            add_dataset(db, upload_key=put(FolderStore(well.blob_dir), "uploads", b"a", db).key)
        db.close()  # the last to go takes the write-ahead log with it
        file = well.database_file
        content = bytearray(file.read_bytes())
        content[-3000:] = b"\xff" * 3000
        file.write_bytes(content)
        level, detail = doctor.finds(well, deep=True)["database"]
        assert level == Level.FAIL
        assert detail


def test_decisions_that_wait_or_were_lost(well: Settings, db: Database, doctor: Doctor) -> None:
    folder = well.state_dir / "decisions"
    folder.mkdir()
    (folder / "a-1.log").touch()
    add_segment(well, db, sealed_at=time.time(), lost=0)
    assert doctor.finds(well) == {}  # as it is while decisions are recorded
    then = time.time() - 3600
    os.utime(folder / "a-1.log", (then, then))
    level, detail = doctor.finds(well)["decisions"]
    assert level == Level.WARN
    assert mentions(detail, 1)
    assert mentions(detail, "60 min")
    (folder / "a-1.log").rename(folder / "a-1.damaged")
    assert "damaged" in doctor.finds(well)["decisions"][1]
    (folder / "a-1.damaged").unlink()
    add_segment(well, db, sealed_at=time.time(), lost=7)
    assert mentions(doctor.finds(well)["decisions"][1], 7)
    with db.write() as session:
        session.execute(update(DecisionSegment).values(sealed_at=time.time() - 3 * 86_400))
    assert "not compacted" in doctor.finds(well)["decisions"][1]


def add_segment(settings: Settings, db: Database, *, sealed_at: float, lost: int) -> None:
    """Insert a segment of decisions that is not final."""
    blob = put(FolderStore(settings.blob_dir), "decisions", b"a", db)
    with db.write() as session:
        session.add(
            DecisionSegment(
                id=new_id("seg"),
                owner=OWNER,
                name="m",
                alias="a",
                log_id=new_id("log"),
                first_sequence=1,
                last_sequence=1 + lost,
                origin="score",
                first_at=sealed_at,
                last_at=sealed_at,
                rows=1,
                lost=lost,
                segment_key=blob.key,
                segment_bytes=blob.bytes,
                sealed_at=sealed_at,
            )
        )
