"""The commands that run and manage a deployment, as processes of their own."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from sqlalchemy import text

import app
from app.access.repository import find_caller
from app.operations.audit_seals import Sealer
from app.platform import audit_keys, migrate
from app.platform.audit_keys import make_key
from app.platform.blobs import FolderStore
from app.platform.callers import Credential
from app.platform.database import Database
from app.platform.schema import REVISION
from app.serve import supervisor
from tests.harness import run_here
from tests.long_form import LONG_FORM, long_form, rest
from tests.servers import PostgresServer
from tests.waiting import eventually, patience

CLI = [sys.executable, "-m", "app.cli"]


def environment(**settings: str) -> dict[str, str]:
    """Return an environment with these settings and no others."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RANKWRIGHT_")}
    return kept | ours(settings)


def ours(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that say these settings."""
    return {f"RANKWRIGHT_{name.upper()}": value for name, value in settings.items()}


def run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return run_here(*words, **ours(settings))


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
    assert (
        run(
            "--version", build="5e6c84d", worker_slots="0"
        ).stdout  # another setting's fault is none here
        == f"rankwright {app.__version__} (build 5e6c84d)\n"
    )
    assert run("--version", build="").stdout.endswith(" (build unknown)\n")
    faulty = run("--version", build="two words")
    assert faulty.returncode == 1
    assert faulty.stdout == f"rankwright {app.__version__}\n"
    assert "RANKWRIGHT_BUILD: must be" in faulty.stderr


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("api", {"worker_slots": "0"}),
        ("dispatcher", {"blob_url": "file:///proc/none"}),
        *rest(
            *((command, {"worker_slots": "0"}) for command in ("serve", "worker", "dispatcher")),
            ("serve", {"database_url": "sqlite:////proc/none/rankwright.db"}),
        ),
        ("migrate", {"database_url": "sqlite:////proc/none/rankwright.db"}),
        ("health worker", {"database_url": "sqlite:////proc/none/rankwright.db"}),
    ],
)
@pytest.mark.usefixtures("idle_services")
def test_where_logs_are_json_an_error_at_the_start_is_too(
    tmp_path: Path, sqlite_url: str, command: str, settings: dict[str, str]
) -> None:
    given = {"state_dir": str(tmp_path), "database_url": sqlite_url, "log_format": "json"}
    done = run(*command.split(), **given | settings)
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert "ERROR" in {line["level"] for line in lines}


@long_form
def test_where_logs_are_json_a_crash_is_too() -> None:
    code = """
import threading
from app.platform.logging import configure_logging
from app.platform.settings import Settings
configure_logging(Settings())
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
raise SystemError("and the process")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(log_format="json"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    of_thread, of_process = (json.loads(line) for line in done.stderr.splitlines())
    assert "ZeroDivisionError" in of_thread["exception"]
    assert "and the process" in of_process["exception"]


def test_migrate_brings_an_empty_database_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    for _ in range(2):  # and has nothing to do the second time
        done = run("migrate", database_url=url)
        assert done.returncode == 0, done.stderr
        assert migrate.current(url) == migrate.head()


@long_form
def test_migrate_can_wait_for_another_process(postgres: PostgresServer) -> None:
    url = postgres.create("awaited")
    try:
        with running("migrate", "--wait", database_url=url) as process:
            assert process.stderr is not None
            assert process.stderr.readline()  # it waits, and says so
            assert migrate.current(url) is None
            migrate.upgrade(url)
            assert process.wait(patience()) == 0
        assert run("migrate", "--wait", database_url=url).returncode == 0
    finally:
        postgres.drop("awaited")


def begin(command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Start a process of the service that is to end by itself."""
    if command == "worker":  # in the place of the command's own process
        return subprocess.run(
            [sys.executable, "-m", "workers"],
            env=environment(**settings),
            capture_output=True,
            text=True,
            check=False,
        )
    return run(*command.split(), *(["--port", "0"] if command == "serve" else []), **settings)


@pytest.fixture
def idle_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `serve` start processes that do nothing, where it ends before they would begin."""
    monkeypatch.setattr(supervisor, "python_command", lambda *_: ["sleep", "600"])


@pytest.fixture(scope="module")
def wrong_password(postgres: PostgresServer) -> str:
    """Return the URL of a database that always refuses us."""
    postgres.require_password("mistaken", "right")
    return f"postgresql://mistaken:wr0ng@/postgres?host={postgres.folder}"


@pytest.mark.parametrize("command", ["api", "migrate", *rest("serve", "dispatcher", "worker")])
def test_no_process_waits_for_a_login_that_is_refused(
    command: str, wrong_password: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not LONG_FORM:
        request.getfixturevalue("idle_services")
    done = begin(command, database_url=wrong_password, state_dir=str(tmp_path))
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert 'user "mistaken"' in said
    assert "wr0ng" not in said
    assert "Traceback" not in said
    # Those that `serve` has begun end when they are told.
    assert "in time" not in said


@pytest.mark.parametrize(
    ("revision", "command"),
    [
        ("0033", "api"),
        ("0033", "migrate --wait"),
        ("9999", "serve"),
        ("9999", "migrate"),
        ("9999", "migrate --wait"),
        *rest(*product(("0033", "9999"), ("dispatcher", "worker"))),
    ],
)
@pytest.mark.usefixtures("idle_services")
def test_no_process_begins_on_tables_of_another_version(
    command: str, revision: str, tmp_path: Path, sqlite_url: str
) -> None:
    db = Database(sqlite_url)
    with db.write() as session:
        session.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    db.close()
    done = begin(command, database_url=sqlite_url, state_dir=str(tmp_path))
    assert done.returncode == 1
    assert f" revision {revision}, " in done.stderr
    assert (REVISION in done.stderr) == (revision != "0033")  # which no release can migrate
    assert "Traceback" not in done.stderr


def test_quotas_are_set_shown_and_listed(sqlite_url: str) -> None:
    told = functools.partial(run, database_url=sqlite_url)
    done = told("quotas", "set", "team", "--models", "3", "--stored-bytes", "1000")
    assert done.returncode == 0, done.stderr
    assert told("quotas", "list").stdout.split() == ["team", "bytes=1000", "models=3"]
    shown = told("quotas", "show", "team").stdout.splitlines()
    assert ["models", "0", "of", "3", "*"] in [line.split() for line in shown]
    assert ["aliases", "0", "of", "no", "limit"] in [line.split() for line in shown]
    assert told("quotas", "set", "team", "--aliases", "2").returncode == 0  # replaces all
    assert told("quotas", "list").stdout.split() == ["team", "aliases=2"]
    assert told("quotas", "set", "team").returncode == 0
    assert told("quotas", "list").stdout == ""
    for words, code, said in (
        (("set", "Team!", "--models", "1"), 1, "'Team!'"),
        (("show", "Team!"), 1, "'Team!'"),
        (("set", "team", "--models", "-1"), 2, "--models"),
        (("set", "team", "--running-jobs", "0"), 2, "--running-jobs"),
        (("set", "team", "--rows", "1"), 2, "--rows"),
    ):
        refused = told("quotas", *words)
        assert (refused.returncode, said in refused.stderr) == (code, True), refused.stderr
        assert "Traceback" not in refused.stderr
    assert told("quotas", "list").stdout == ""


def test_the_audit_log_is_verified(sqlite_url: str, tmp_path: Path) -> None:
    told = functools.partial(run, database_url=sqlite_url, state_dir=str(tmp_path))
    assert (
        told("keys", "create", "--owner", "team", "--name", "n", "--scope", "read").returncode == 0
    )
    unsealed = told("audit", "verify")
    assert (unsealed.returncode, "RANKWRIGHT_AUDIT_KEY_FILE" in unsealed.stderr) == (1, True)
    make_key(tmp_path / audit_keys.FILE)
    db, keys = Database(sqlite_url), audit_keys.read_keys(tmp_path / audit_keys.FILE)
    sealer = Sealer(db, FolderStore(tmp_path / "blobs"), keys)
    assert sealer.seal() == 1
    sealer.record_head()
    good = told("audit", "verify", "--json")
    assert good.returncode == 0, good.stderr
    found = json.loads(good.stdout)
    assert (found["ok"], found["seals"], found["entries"], found["flaws"]) == (True, 1, 1, [])
    assert told("audit", "verify", "--head", found["head"]).returncode == 0
    other = told("audit", "verify", "--head", f"2:{'0' * 64}")
    assert (other.returncode, other.stdout.split(":")[0]) == (1, "truncated")
    with db.write() as session:
        session.execute(text("UPDATE audit_entries SET action = 'nothing'"))
    db.close()
    bad = told("audit", "verify")
    assert (bad.returncode, bad.stdout.split(":")[0]) == (1, "changed_entries")
    for wrong in ("3", "3:abc", f"x:{'0' * 64}"):
        refused = told("audit", "verify", "--head", wrong)
        assert (refused.returncode, "--head" in refused.stderr) == (2, True), refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_key_of_the_audit_log_that_cannot_be_used_is_named_at_the_start(
    sqlite_url: str, tmp_path: Path
) -> None:
    short = tmp_path / "short"
    short.write_text("secret-but-short")
    short.chmod(0o600)
    for file in (short, tmp_path / "none"):
        for command in (("dispatcher",), ("api",), ("audit", "verify")):
            done = run(*command, database_url=sqlite_url, audit_key_file=str(file))
            assert done.returncode == 1
            assert "RANKWRIGHT_AUDIT_KEY_FILE" in done.stderr
            assert str(file) in done.stderr
            assert "secret-but-short" not in done.stderr


def test_keys_are_made_listed_rotated_and_revoked(sqlite_url: str) -> None:
    made = run(
        *("keys", "create", "--owner", "team", "--name", "ci", "--scope", "read"),
        *("--scope", "score"),
        database_url=sqlite_url,
    )
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    key_id = made.stderr.split()[0]
    db = Database(sqlite_url)
    caller = functools.partial(find_caller, credential=Credential.of("key", secret))
    with db.read() as session:
        found = caller(session)
        assert found is not None
        assert (found.key_id, found.owner, set(found.scopes)) == (key_id, "team", {"read", "score"})

    listed = run("keys", "list", "--owner", "team", database_url=sqlite_url).stdout
    assert key_id in listed
    assert secret not in listed
    assert key_id not in run("keys", "list", "--owner", "other", database_url=sqlite_url).stdout

    foreign = run("keys", "revoke", key_id, "--owner", "other", database_url=sqlite_url)
    assert foreign.returncode == 1
    assert key_id in foreign.stderr
    rotated = run("keys", "rotate", key_id, "--owner", "team", database_url=sqlite_url)
    assert rotated.returncode == 0, rotated.stderr
    assert rotated.stdout.strip() not in ("", secret)
    with db.read() as session:
        assert caller(session) is None
    successor = rotated.stderr.split()[0]
    revoked = run("keys", "revoke", successor, "--owner", "team", database_url=sqlite_url)
    assert revoked.returncode == 0, revoked.stderr
    listed = run("keys", "list", "--owner", "team", database_url=sqlite_url).stdout
    assert listed.count("used never  revoked") == 2
    db.close()


@pytest.mark.parametrize(
    ("words", "settings", "named"),
    [
        (["keys", "create", "--owner", "t", "--name", "n", "--scope", "x"], {}, "got x"),
        (["keys", "create", "--owner", "T!", "--name", "n", "--scope", "read"], {}, "'T!'"),
        (["migrate"], {"worker_slots": "0"}, "RANKWRIGHT_WORKER_SLOTS"),
        (["api"], {"processes": "65"}, "should be less than or equal to 64, got '65'"),
        (["worker"], {"lease_seconds": "soon"}, "RANKWRIGHT_LEASE_SECONDS"),
        (["worker"], {"lease_seconds": "9"}, "RANKWRIGHT_HEARTBEAT_SECONDS"),
        (["worker"], {"blob_url": "ftp://bucket"}, "RANKWRIGHT_BLOB_URL"),
        (["migrate"], {"database_url": "mysql://u:secret@host/db"}, "got mysql://"),
        (["migrate"], {"database_url": "nonsense"}, "RANKWRIGHT_DATABASE_URL"),
        (["migrate"], {"database_url": "sqlite:////no/such/folder/x.db"}, "unable to open"),
        (["serve"], {"state_dir": "/dev/null/state"}, "/dev/null/state"),
        (["serve"], {"state_dir": "what?"}, "must be a path without '?', got"),
        (["serve", "--host", "no.such.host.invalid"], {}, "no.such.host.invalid"),
    ],
)
@pytest.mark.usefixtures("idle_services")
def test_a_fault_is_one_sentence(
    sqlite_url: str, tmp_path: Path, words: list[str], settings: dict[str, str], named: str
) -> None:
    done = run(*words, **({"database_url": sqlite_url, "state_dir": str(tmp_path)} | settings))
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
@pytest.mark.usefixtures("idle_services")
def test_a_database_of_another_encoding_is_refused_in_a_sentence(
    postgres: PostgresServer, tmp_path: Path, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    postgres.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    settings = {"database_url": postgres.url(name), "state_dir": str(tmp_path)}
    try:
        key = ("keys", "create", "--owner", "o", "--name", "n", "--scope", "read")
        commands = {
            "LATIN1": (*(["serve", "worker"] if LONG_FORM else []), "doctor"),
            "SQL_ASCII": ("api", "dispatcher", "migrate"),
        }
        for done in (
            run(*key, **settings),
            *(begin(name, **settings) for name in commands[encoding]),
        ):
            assert done.returncode == 1
            said = done.stdout + done.stderr
            assert f" UTF8, got {encoding}" in said
            assert "Traceback" not in said
    finally:
        postgres.drop(name)


def test_the_doctor_tells_programs_of_a_faulty_setting_too(tmp_path: Path) -> None:
    done = run("doctor", "--json", worker_slots="0", state_dir=str(tmp_path))
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert not said["ok"]
    (finding,) = said["findings"]
    assert (finding["part"], finding["level"]) == ("settings", "FAIL")
    assert "RANKWRIGHT_WORKER_SLOTS" in finding["detail"]


@long_form  # `serve` tells its own, in tests/app/serve
def test_the_dispatcher_ends_when_told(postgres_url: str, broker_url: str, tmp_path: Path) -> None:
    settings = {"database_url": postgres_url, "broker_url": broker_url, "state_dir": str(tmp_path)}
    with running("dispatcher", **settings) as process:
        eventually((tmp_path / "blobs").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience()) == 0


@long_form
def test_a_worker_is_this_process(sqlite_url: str, broker_url: str, tmp_path: Path) -> None:
    settings = {"database_url": sqlite_url, "broker_url": broker_url, "state_dir": str(tmp_path)}
    with running("worker", **settings) as process:
        command = Path(f"/proc/{process.pid}/cmdline")
        eventually(lambda: command.read_text().split("\0")[1:4] == ["-P", "-m", "workers"])
        eventually((tmp_path / "blobs").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(patience()) == 0


@pytest.mark.parametrize("command", ["serve", "api"])
@pytest.mark.parametrize("given", ["0", "65", "²"])
def test_a_number_of_processes_is_refused(command: str, given: str) -> None:
    done = run(command, f"--processes={given}")
    assert done.returncode == 2
    assert "'--processes'" in done.stderr
    assert f"'{given}'" in done.stderr
