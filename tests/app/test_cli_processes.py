"""The commands that run and manage a deployment, as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from servers import eventually

import app
from app.db import migrate
from app.db.session import Database
from app.errors import Unauthenticated
from app.services.keys import KeyRing

CLI = [sys.executable, "-m", "app.cli"]


def environment(**settings: str) -> dict[str, str]:
    """An environment with these settings and no others."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RANKWRIGHT_")}
    return kept | {f"RANKWRIGHT_{name.upper()}": value for name, value in settings.items()}


def run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*CLI, *words], env=environment(**settings), capture_output=True, text=True, check=False
    )


@contextmanager
def running(*words: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on until it is ended."""
    process = subprocess.Popen(
        [*CLI, *words], env=environment(**settings), stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_version_is_one() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    assert app.__version__ == project["project"]["version"]


def test_migrate_brings_an_empty_database_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    for _ in range(2):  # and has nothing to do the second time
        done = run("migrate", database_url=url)
        assert done.returncode == 0, done.stderr
        assert migrate.current(url) == migrate.head()


def test_keys_are_made_listed_and_revoked(database_url: str) -> None:
    made = run(
        *("keys", "create", "--owner", "team", "--name", "ci", "--scope", "read"),
        *("--scope", "score"),
        database_url=database_url,
    )
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    key_id = made.stderr.split()[0]
    db = Database(database_url)
    ring = KeyRing(db, on_use=print, seconds=0.0)
    assert ring.authenticate(secret.encode()).scopes == {"read", "score"}

    listed = run("keys", "list", "--owner", "team", database_url=database_url).stdout
    assert key_id in listed
    assert secret not in listed
    assert key_id not in run("keys", "list", "--owner", "other", database_url=database_url).stdout

    foreign = run("keys", "revoke", key_id, "--owner", "other", database_url=database_url)
    assert foreign.returncode == 1
    assert key_id in foreign.stderr
    revoked = run("keys", "revoke", key_id, "--owner", "team", database_url=database_url)
    assert revoked.returncode == 0, revoked.stderr
    with pytest.raises(Unauthenticated):
        ring.authenticate(secret.encode())
    assert "revoked" in run("keys", "list", "--owner", "team", database_url=database_url).stdout
    db.close()


@pytest.mark.parametrize(
    ("words", "settings", "named"),
    [
        (["keys", "create", "--owner", "t", "--name", "n", "--scope", "x"], {}, "got x"),
        (["keys", "create", "--owner", "T!", "--name", "n", "--scope", "read"], {}, "'T!'"),
        (["migrate"], {"worker_slots": "0"}, "RANKWRIGHT_WORKER_SLOTS"),
        (["worker"], {"lease_seconds": "soon"}, "RANKWRIGHT_LEASE_SECONDS"),
        (["dispatcher"], {"blob_url": "s3://bucket"}, "RANKWRIGHT_BLOB_URL"),
        (["worker"], {"blob_url": "s3://bucket"}, "RANKWRIGHT_BLOB_URL"),
        (["migrate"], {"database_url": "mysql://u:secret@host/db"}, "got mysql://"),
        (["migrate"], {"database_url": "nonsense"}, "RANKWRIGHT_DATABASE_URL"),
        (["migrate"], {"database_url": "sqlite:////no/such/folder/x.db"}, "database"),
    ],
)
def test_a_fault_is_one_sentence(
    sqlite_url: str, words: list[str], settings: dict[str, str], named: str
) -> None:
    done = run(*words, **({"database_url": sqlite_url} | settings))
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_the_dispatcher_ends_when_told(database_url: str, broker_url: str, tmp_path: Path) -> None:
    settings = {"database_url": database_url, "broker_url": broker_url, "state_dir": str(tmp_path)}
    with running("dispatcher", **settings) as process:
        eventually((tmp_path / "blobs").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_worker_is_this_process(database_url: str, broker_url: str, tmp_path: Path) -> None:
    settings = {"database_url": database_url, "broker_url": broker_url, "state_dir": str(tmp_path)}
    with running("worker", **settings) as process:
        command = Path(f"/proc/{process.pid}/cmdline")
        eventually(lambda: command.read_text().split("\0")[1:3] == ["-m", "workers"])
        eventually((tmp_path / "blobs").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_the_api_serves_and_ends_when_told(
    sqlite_url: str, broker_url: str, tmp_path: Path
) -> None:
    settings = {"database_url": sqlite_url, "broker_url": broker_url, "state_dir": str(tmp_path)}
    with running("api", "--port", "0", **settings) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "running on" in line)
        address = line[line.index("http://") :].split()[0]
        assert httpx.get(f"{address}/health/live").status_code == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0
