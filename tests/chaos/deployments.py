"""The deployments that are attacked: `rankwright serve` as a user starts it, and every process by itself, with the
blobs in a common folder or in a bucket.
"""

from __future__ import annotations

import functools
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import httpx
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from app.access import service as keys
from app.platform.database import Database
from app.platform.migrate import upgrade
from app.platform.processes import die_with_parent
from app.platform.settings import Settings
from app.serve.broker import socket_path
from tests.buckets import BucketServer
from tests.chaos import inside, processes
from tests.chaos.disk import Disk
from tests.chaos.processes import Found
from tests.servers import PostgresServer, ValkeyServer
from tests.waiting import patience

OWNER = "default"
START_SECONDS = 900.0
RESTART_SECONDS = 0.2
BROKER_AWAY_SECONDS = 150.0
DATABASE_AWAY_SECONDS = 120.0
BUCKET_AWAY_SECONDS = 120.0

SHORT_LEASES = {
    "lease_seconds": 3.0,
    "heartbeat_seconds": 0.5,
    "reap_seconds": 0.5,
}
COMMON = {
    "blob_grace_seconds": 20.0,
    "fan_out_cells": 0,
    "job_max_attempts": 10_000,
    "job_threads": 1,
    "log_format": "json",
    "log_level": "INFO",
    "warm_up": False,  # a process that is soon killed need not be quick
}


class Outage(NamedTuple):
    """A server that can be away for minutes: how to stop it, and how to start it again."""

    what: str
    seconds: float
    begin: Callable[[], object]
    end: Callable[[], object]


class Deployment(ABC):
    """A running service in a folder of its own, with the operations on it."""

    name: str
    changes: tuple[str, ...] = ()
    """The changes of `mutants` that all its processes have, mutants or not."""

    n_workers: int
    """How many worker processes it has."""

    state: str
    """The folder, below the deployment's own, of what must not be lost."""

    def __init__(
        self,
        folder: Path,
        given: Mapping[str, object],
        mutant: str | None,
        *,
        own_disk: bool = False,
    ) -> None:
        self.disk = Disk(folder / self.state) if own_disk else None
        self.folder = folder
        self._start_servers()
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True)
        self.port = _free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.settings = Settings.model_validate({**COMMON, **given, **self._places()})
        self.environment = self._environment(mutant)
        self.secret = ""
        self._starts = 0
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._restart_at: dict[str, float] = {}

    @abstractmethod
    def _start_servers(self) -> None:
        """Start the servers that its processes need."""

    @abstractmethod
    def _places(self) -> Mapping[str, object]:
        """Return the settings for database, broker and blobs."""

    @abstractmethod
    def _commands(self) -> Mapping[str, list[str]]:
        """Return the commands that are started here, by name."""

    @property
    @abstractmethod
    def broker(self) -> redis.Redis:
        """Return the broker's address."""

    def _environment(self, mutant: str | None) -> dict[str, str]:
        given = self.settings.model_dump(exclude_unset=True)
        ours = {
            f"RANKWRIGHT_{name.upper()}": str(
                value.get_secret_value() if hasattr(value, "get_secret_value") else value
            )
            for name, value in given.items()
        }
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RANKWRIGHT_")}
        mutants = [*self.changes, *([mutant] if mutant else [])]
        return kept | ours | dict(inside.environment(self.folder, mutants))

    def _own(self, name: str) -> dict[str, str]:
        """Return the environment of one process."""
        return {}

    def start(self) -> None:
        """Start everything, and wait until it is ready."""
        for name in self._commands():
            self._start(name)
        self.wait_until_ready()

    def _start(self, name: str) -> None:
        self._starts += 1
        with (self.logs / f"{self._starts:05d}-{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", *self._commands()[name]],
                env=self.environment | self._own(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=functools.partial(die_with_parent, os.getpid()),  # noqa: PLW1509
            )

    def tend(self) -> None:
        """Start the processes that have died, as an operator would."""
        now = time.monotonic()
        for name, process in self._processes.items():
            if process.poll() is None:
                continue
            if now >= self._restart_at.setdefault(name, now + RESTART_SECONDS):
                del self._restart_at[name]
                self._start(name)

    def wait_until_ready(self) -> None:
        """Wait until the API and everything behind it is well; start again what dies meanwhile."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.tend()
            try:
                if httpx.get(f"{self.address}/health/staffed", timeout=10).is_success:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        raise TimeoutError(f"the {self.name} deployment was not ready; see {self.logs}")

    def running(self) -> list[Found]:
        """Its processes."""
        return processes.running(self.folder)

    @abstractmethod
    def outages(self) -> list[Outage]:
        """Return the servers that a long run takes away, each once."""

    def end_processes(self) -> None:
        """End the processes in good order; keep database and blobs."""
        for found in self.running():
            processes.send(found.pid, signal.SIGCONT)
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(patience())
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def close(self) -> None:
        """End everything."""
        self.end_processes()
        if self.disk is not None:
            self.disk.close()


class Embedded(Deployment):
    """`rankwright serve`: SQLite and a private broker, watched by one process."""

    name = "embedded"
    n_workers = 1
    state = "state"
    changes = ("restart-at-once",)

    def _start_servers(self) -> None:
        """None: `serve` has its own."""

    def _places(self) -> Mapping[str, object]:
        return {"state_dir": self.folder / self.state}

    def _commands(self) -> Mapping[str, list[str]]:
        state = str(self.folder / self.state)
        return {"serve": ["app.cli", "serve", "--port", str(self.port), "--state-dir", state]}

    def start(self) -> None:
        """Start it, and take the key that it makes at its first start."""
        super().start()
        self.secret = (self.folder / self.state / "api-key").read_text().strip()

    def outages(self) -> list[Outage]:
        """Return the broker. It hangs, because `serve` would at once replace a killed one."""
        stop, resume = (
            functools.partial(self._send_broker, number)
            for number in (signal.SIGSTOP, signal.SIGCONT)
        )
        return [Outage("broker", BROKER_AWAY_SECONDS, stop, resume)]

    def _send_broker(self, number: signal.Signals) -> None:
        for found in self.running():
            if found.role == "broker":
                processes.send(found.pid, number)

    @property
    def broker(self) -> redis.Redis:
        """Return the broker's address."""
        return _door(socket_path(self.folder / self.state))


class Split(Deployment):
    """API, dispatcher and two workers beside PostgreSQL and Valkey: each a process that can die alone."""

    name = "split"
    n_workers = 2
    state = "blobs"

    def _start_servers(self) -> None:
        # What was committed must outlive a crash of the server: that is what is tested.
        self.postgres = PostgresServer(durable=True)
        self.valkey = ValkeyServer()
        self._database_url = self.postgres.create("chaos")

    def _places(self) -> Mapping[str, object]:
        return {
            "database_url": self._database_url,
            "broker_url": self.valkey.broker_url,
            "blob_url": f"file://{self.folder / self.state}",
        }

    def _commands(self) -> Mapping[str, list[str]]:
        return {
            "api": ["app.cli", "api", "--port", str(self.port)],
            "dispatcher": ["app.cli", "dispatcher"],
            "worker-1": ["workers"],
            "worker-2": ["workers"],
        }

    def start(self) -> None:
        """Make the tables and a key, and start it."""
        upgrade(self._database_url)
        db = Database(self._database_url, pool_size=1)
        _, self.secret = db.writing(
            keys.create, OWNER, f"chaos {secrets.token_hex(4)}", keys.SCOPES
        )
        db.close()
        super().start()

    @property
    def broker(self) -> redis.Redis:
        """Return the broker's address."""
        return _door(self.valkey.socket)

    def outages(self) -> list[Outage]:
        """Return the broker, which comes back empty, and the database, which crashes."""
        crash = functools.partial(self.postgres.stop, signal.SIGQUIT)
        return [
            Outage("broker", BROKER_AWAY_SECONDS, self.valkey.stop, self.valkey.start),
            Outage("database", DATABASE_AWAY_SECONDS, crash, self.postgres.start),
        ]

    def close(self) -> None:
        """End everything in good order, the servers last."""
        super().close()
        self.valkey.close()
        self.postgres.close()


class InBucket(Split):
    """As `Split`, but the processes share no disk: blobs are in a bucket, and each process has a cache of its own."""

    name = "bucket"
    state = "caches"

    def _start_servers(self) -> None:
        super()._start_servers()
        self.folder.mkdir(exist_ok=True)
        self.bucket = BucketServer(self.folder)

    def _places(self) -> Mapping[str, object]:
        caches = self.folder / self.state
        return {**super()._places(), **self.bucket.settings, "blob_cache_dir": caches / "audit"}

    def _own(self, name: str) -> dict[str, str]:
        return {"RANKWRIGHT_BLOB_CACHE_DIR": str(self.folder / self.state / name)}

    def outages(self) -> list[Outage]:
        """Return the bucket, too."""
        away = Outage("bucket", BUCKET_AWAY_SECONDS, self.bucket.close, self.bucket.open)
        return [*super().outages(), away]

    def close(self) -> None:
        """End everything in good order, the servers last."""
        super().close()
        self.bucket.close()


DEPLOYMENTS = {deployment.name: deployment for deployment in (Embedded, Split, InBucket)}


def _door(socket: Path) -> redis.Redis:
    # One try: an attack that waits for a hanging broker attacks nothing else meanwhile.
    once = Retry(NoBackoff(), 0)
    return redis.Redis(unix_socket_path=str(socket), socket_timeout=1.0, retry=once)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
