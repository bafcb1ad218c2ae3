"""A backup taken while the service works is a state of its own: whole, and its models score the same bits."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from app.cli import commands
from app.jobs import queue
from app.jobs.dispatcher import Reaper
from app.operations import backup
from app.operations.backup import BackupError, back_up, restore
from app.operations.doctor import Level, examine
from app.platform import migrate
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import FINAL_STATES, Job
from tests.app.live_service import Service, running
from tests.app.queue_steps import add_dataset
from tests.app.uploads import put
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences

ROWS = {"columns": ["age", "income", "score 1"], "data": [[0.5, -1.0, 0.25], [None, 2.0, -0.5]]}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> Settings:
    """An embedded state."""
    folder = tmp_path_factory.mktemp("state")
    shutil.copy(_sqlite_template, folder / "rankwright.db")
    return Settings(state_dir=folder)


@pytest.fixture(scope="module")
def made(
    state: Settings, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, list[float], str]:
    """A backup taken under load, a key, what a model gave before it, and the job that ran."""
    with running(state) as service:
        secret = service.key()
        client = service.client(secret)
        dataset_id = service.upload(client)
        service.train(client, dataset_id)
        (state.state_dir / "api-key").write_text(secret + "\n")
        scores = client.post("/v1/models/churn/score", json=ROWS).json()["scores"]
        client.post("/v1/jobs", json={"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}})
        claimed = service.context.db.writing(
            queue.claim, state, "wrk_a"
        )  # one runs, while it is taken
        assert claimed is not None
        target = tmp_path_factory.mktemp("backups") / "today"
        with at_work(service, dataset_id):
            back_up(state, target)
    return target, secret, scores, claimed.job_id


@contextmanager
def at_work(service: Service, dataset_id: str) -> Iterator[None]:
    """Uploads, trainings and deletions go on for the length of a block."""
    stop = threading.Event()
    faults: list[BaseException] = []
    rounds: list[str] = []

    def work() -> None:
        client = service.client(service.key())
        while not stop.is_set():
            try:
                other = service.upload(client, name=f"n{len(rounds)}")
                service.train(client, dataset_id)
                client.delete(f"/v1/datasets/{other}").raise_for_status()
            except BaseException as error:
                faults.append(error)
                return
            rounds.append(other)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while not rounds and thread.is_alive():
            thread.join(0.01)
        yield
    finally:
        stop.set()
        thread.join()
    assert not faults
    assert rounds


def test_what_is_restored_is_sound_and_scores_the_same_bits(
    made: tuple[Path, str, list[float], str], tmp_path: Path
) -> None:
    source, secret, scores, claimed_id = made
    settings = Settings(
        state_dir=tmp_path / "restored", lease_seconds=0.01, heartbeat_seconds=0.001
    )
    restore(source, settings)
    found = list(
        examine(settings, {}, broker_url=f"redis+socket://{tmp_path}/none", runs=False, deep=True)
    )
    failed = {finding.part for finding in found if finding.level == Level.FAIL}
    assert failed <= {"queue"}  # jobs wait, and nobody runs them yet
    assert next(finding for finding in found if finding.part == "keys").level == Level.OK
    assert settings.state_dir.stat().st_mode & 0o777 == 0o700
    with running(settings) as service:
        client = service.client(secret)
        answer = client.post("/v1/models/churn:1/score", json=ROWS)
        assert answer.json()["scores"] == scores
        with service.context.db.read() as session:
            # The claimed one, and what the work beside the backup had just claimed.
            running_jobs = set(session.scalars(select(Job.id).where(Job.state == "running")))
        assert claimed_id in running_jobs
        assert set(Reaper(service.context.db, settings).reap().requeued) == running_jobs
        service.work()
        with service.context.db.read() as session:
            states = set(session.scalars(select(Job.state)))
        assert states <= set(FINAL_STATES)


def test_from_the_shell_by_a_tar_file(
    made: tuple[Path, str, list[float], str], state: Settings, tmp_path: Path, sentences: Sentences
) -> None:
    target, restored = tmp_path / "state.tar", tmp_path / "restored"
    made_keys = (state.own_secrets_keys.read_text(), state.own_secrets_keys.name)
    done = rankwright("backup", str(target), state_dir=state.state_dir)
    assert "keep beside" not in done.stdout
    assert (done.exit_code, "verified" in done.stdout) == (0, True)
    assert target.stat().st_mode & 0o777 == 0o600
    with tarfile.open(target) as tar:
        assert tar.getnames()[-1] == "manifest.json"
    assert rankwright("restore", str(target), state_dir=restored).exit_code == 0
    assert (restored / made_keys[1]).read_text() == made_keys[0]
    again = rankwright("restore", str(target), state_dir=restored)
    assert (again.exit_code, again.stdout) == (1, "")
    sentences(again.stderr)
    looked = rankwright("doctor", "--deep", "--json", state_dir=restored)
    said = json.loads(looked.stdout)
    assert said["ok"] == (looked.exit_code == 0)
    assert {found["part"] for found in said["findings"] if found["level"] == "FAIL"} <= {"queue"}
    nothing = rankwright("doctor", state_dir=tmp_path / "nowhere")
    assert (nothing.exit_code, "FAIL database" in nothing.stdout) == (1, True)
    assert rankwright("doctor", "--depe", state_dir=restored).exit_code == 2


def rankwright(*words: str, state_dir: Path) -> Result:
    """Run a command to its end."""
    return CliRunner().invoke(commands(), words, env={"RANKWRIGHT_STATE_DIR": str(state_dir)})


def tampered(source: Path, folder: Path, **changes: Any) -> Path:
    """A copy of a backup with another manifest."""
    copy = folder / "copy"
    shutil.copytree(source, copy)
    manifest = copy / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))
    return copy


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"format": 2}, 1),
        ({"revision": "9999"}, 9999),
        ({"files": {"rankwright.db": {"bytes": 1, "sha256": "00"}}}, "rankwright.db"),
        ({"files": {"../evil": {"bytes": 1, "sha256": "00"}}}, "manifest.json"),
        ({"files": {}}, "manifest.json"),
        ({"files": []}, "manifest.json"),
        ({"colour": "red"}, "'colour'"),
    ],
)
def test_a_manifest_that_lies(
    made: tuple[Path, str, list[float], str], tmp_path: Path, changes: dict[str, Any], named: object
) -> None:
    source = tampered(made[0], tmp_path, **changes)
    with raises(BackupError, named):
        restore(source, Settings(state_dir=tmp_path / "restored"))
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]  # nothing half-made


@pytest.mark.usefixtures("made")  # which makes what lies in `state`
def test_what_is_no_backup(state: Settings, tmp_path: Path, sentences: Sentences) -> None:
    (tmp_path / "file.tar").write_bytes(b"this is no tar file" * 100)
    (tmp_path / "folder").mkdir()
    for source in ("file.tar", "folder"):
        with raises(BackupError, tmp_path / source):
            restore(tmp_path / source, Settings(state_dir=tmp_path / "restored"))
    with sentences.raises(BackupError):
        back_up(Settings(state_dir=tmp_path / "nowhere"), tmp_path / "backup")
    with raises(BackupError, tmp_path / "none"):
        back_up(state, tmp_path / "none" / "backup")


def test_tables_of_another_version_are_not_backed_up(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path)
    migrate.upgrade(settings.sqlalchemy_url)
    with closing(sqlite3.connect(settings.database_file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0104'")
    settings.blob_dir.mkdir()
    with raises(BackupError, "0104"):
        back_up(settings, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_blobs_that_are_gone_are_said_to_be(
    made: tuple[Path, str, list[float], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(state_dir=tmp_path / "restored")
    restore(made[0], settings)
    (artifact, *_) = sorted((settings.blob_dir / "artifacts").rglob("*/*"))
    artifact.write_bytes(b"damaged")
    found = back_up(settings, tmp_path / "again")
    assert len(found.missing) >= 1
    assert all(artifact.name in row for row in found.missing)
    monkeypatch.setattr(backup, "copy", lambda *_: ("0" * 64, 1))  # what is read back is wrong
    with raises(BackupError, "0" * 64):
        back_up(settings, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


@long_form
def test_an_interrupted_backup_has_no_name_of_a_backup(state: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    shutil.copytree(state.state_dir, folder)
    settings = Settings(state_dir=folder)
    db = Database(settings.sqlalchemy_url)
    add_dataset(db, upload_key=put(FolderStore(settings.blob_dir), "uploads", b"x", db).key)
    db.close()
    backups = tmp_path / "backups"
    backups.mkdir()
    environment = os.environ | {"RANKWRIGHT_STATE_DIR": str(folder)}
    # It dies when it has written everything, before the file has its name.
    dies = (
        "import os, pathlib, sys; from app import cli; pathlib.Path.rename = lambda *_: os._exit(9);"
        "sys.argv[:1] = ['rankwright', 'backup']; cli.main()"
    )
    command = [sys.executable, "-c", dies, str(backups / "today.tar")]
    assert subprocess.run(command, env=environment, check=False).returncode == 9
    assert list(backups.glob("*.tar")) == []
    made = back_up(settings, backups / "today.tar")
    assert made.missing == []
    assert {path.name for path in backups.iterdir() if path.suffix} >= {"today.tar"}
    assert list(backups.glob("*.partial")) == []
