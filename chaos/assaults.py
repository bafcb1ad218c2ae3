"""What is done to a deployment at random moments: processes, broker and database killed, stopped, wiped, deceived."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import psycopg
import redis

from app.infra.producer import QUEUE
from chaos import processes
from chaos.deployments import Deployment, Split

STORM_SECONDS = (1.0, 12.0)
"""How long another process holds SQLite's lock: also longer than the busy timeout."""
AWAY_SECONDS = (1.0, 8.0)
FORGED = 30
LONGER_SECONDS = 5.0
"""How much longer than its lease a worker stands still, unless another has its job before."""
RUBBISH = (
    b"",
    b"\xff\xfe",
    b"{}",
    b"[1, 2]",
    b'{"body": "W10=", "headers": {"task": "os.system", "id": "x"}, "properties": {}}',
    b'{"body": 7, "headers": null, "properties": {"delivery_tag": null}}',
)


class Death(NamedTuple):
    """A process that ended, or stood still for longer than a lease, by our hand."""

    pid: int
    role: str
    at: float


class Frozen(NamedTuple):
    """A worker that was stopped, and the job that it had."""

    pid: int
    job_id: str | None


class Assaults:
    """Attacks now this, now that. What lasts for a while is ended by `tend`, at the latest by `relent`."""

    def __init__(
        self, deployment: Deployment, busy: Callable[[], dict[int, str]], seed: int
    ) -> None:
        self._busy = busy  # the workers that have a job
        self.deaths: list[Death] = []
        self.done: Counter[str] = Counter()
        self._deployment = deployment
        self._random = random.Random(seed)
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._frozen: Frozen | None = None
        kills = ["api", "dispatcher", "worker", "worker", "child", "child"]
        self._assaults: list[Callable[[], None]] = [
            *(partial(self.kill, role) for role in kills * 2),
            self._stop_worker,
            self._stop_worker,
            self._wipe_broker,
            self._hang_broker,
            self._forge,
        ]
        if isinstance(deployment, Split):
            self._assaults += [self._crash_database, self._kill_backend, self._lose_broker]
        else:
            self._assaults += [
                self._storm,
                partial(self.kill, "serve"),
                partial(self.kill, "broker"),
            ]

    @property
    def kills(self) -> int:
        """How many processes were ended by a signal from here."""
        return sum(n for what, n in self.done.items() if what.startswith("kill "))

    def attack(self) -> None:
        """Do one thing, whatever comes to mind."""
        self._random.choice(self._assaults)()

    def tend(self) -> None:
        """End what has lasted long enough."""
        now = time.monotonic()
        due = [end for at, end in self._later if at <= now]
        self._later = [(at, end) for at, end in self._later if at > now]
        for end in due:
            end()
        if (frozen := self._frozen) is not None and frozen.job_id is not None:
            others = {job for pid, job in self._busy().items() if pid != frozen.pid}
            if frozen.job_id in others:
                self._thaw(frozen.pid)

    def relent(self) -> None:
        """End everything that lasts."""
        due, self._later = self._later, []
        for _, end in due:
            end()

    def kill(self, role: str) -> None:
        """Kill a process of this role."""
        found = [process.pid for process in self._deployment.running() if process.role == role]
        if found:
            self.kill_process(self._random.choice(found), role)

    def kill_process(self, pid: int, role: str) -> None:
        """Kill this process; whoever it started ends with it."""
        if role == "serve":
            for process in self._deployment.running():
                self.deaths.append(Death(process.pid, process.role, time.time()))
        if processes.send(pid, signal.SIGKILL):
            self.deaths.append(Death(pid, role, time.time()))
            self.done[f"kill {role}"] += 1

    def kill_soon(self, pid: int, role: str, seconds: float) -> None:
        """Kill a process that hangs, once it has hung for a while."""
        self._in(seconds, partial(self.kill_process, pid, role))

    def _in(self, seconds: float, end: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, end))

    def _stop_worker(self) -> None:
        """Stop a worker, one that has a job if there is one, until its lease is over.

        It goes on as if nothing had been, at the moment when another has its job, if that comes soon.
        """
        found = {p.pid for p in self._deployment.running() if p.role == "worker"}
        if not found or self._frozen is not None:
            return
        busy = {pid: job for pid, job in self._busy().items() if pid in found}
        pid = self._random.choice(sorted(busy or found))
        if processes.send(pid, signal.SIGSTOP):
            self._frozen = Frozen(pid, busy.get(pid))
            self.deaths.append(Death(pid, "worker", time.time()))
            self.done["stop a worker past its lease"] += 1
            seconds = self._deployment.settings.lease_seconds + LONGER_SECONDS
            self._in(seconds, partial(self._thaw, pid))

    def _thaw(self, pid: int) -> None:
        if self._frozen is not None and self._frozen.pid == pid:
            self._frozen = None
            processes.send(pid, signal.SIGCONT)

    def _resume(self, pid: int) -> None:
        processes.send(pid, signal.SIGCONT)

    def _wipe_broker(self) -> None:
        with contextlib.suppress(redis.RedisError), self._deployment.broker as broker:
            broker.flushall()
            self.done["wipe the broker"] += 1

    def _hang_broker(self) -> None:
        found = [p.pid for p in self._deployment.running() if p.role == "broker"]
        if isinstance(self._deployment, Split):
            found = [self._deployment.valkey.pid]
        if found and processes.send(found[0], signal.SIGSTOP):
            self.done["hang the broker"] += 1
            self._in(self._random.uniform(*AWAY_SECONDS), partial(self._resume, found[0]))

    def _forge(self) -> None:
        """Put messages into the queue that nobody sent: rubbish, copies, another order."""
        with contextlib.suppress(redis.RedisError), self._deployment.broker as broker:
            known = list(broker.lrange(QUEUE, 0, -1))
            self._random.shuffle(known)
            broker.delete(QUEUE)
            forged = [*known, *known, self._random.choice(RUBBISH)]
            broker.lpush(QUEUE, *forged[-FORGED:])
            self.done["forge messages"] += 1

    def _lose_broker(self) -> None:
        assert isinstance(self._deployment, Split)
        valkey = self._deployment.valkey
        if not valkey.running:
            return
        processes.send(valkey.pid, signal.SIGCONT)
        valkey.stop()
        self.done["kill broker"] += 1
        self._in(self._random.uniform(*AWAY_SECONDS), valkey.start)

    def _crash_database(self) -> None:
        assert isinstance(self._deployment, Split)
        postgres = self._deployment.postgres
        if not postgres.running:
            return
        postgres.stop(self._random.choice([signal.SIGQUIT, signal.SIGINT]))
        self.done["kill database"] += 1
        self._in(self._random.uniform(*AWAY_SECONDS), postgres.start)

    def _kill_backend(self) -> None:
        """Kill one server process of PostgreSQL: the others end, too, and it recovers."""
        assert isinstance(self._deployment, Split)
        url = self._deployment.settings.sqlalchemy_url.replace("+psycopg", "")
        with contextlib.suppress(psycopg.OperationalError):
            with psycopg.connect(url, connect_timeout=2) as connection:
                rows = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'rankwright'"
                ).fetchall()
            if rows:
                os.kill(self._random.choice(rows)[0], signal.SIGKILL)
                self.done["kill database backend"] += 1

    def _storm(self) -> None:
        """Hold SQLite's write lock for a while, as a process outside of the service would."""
        path = self._deployment.settings.sqlalchemy_url.removeprefix("sqlite:///")
        seconds = self._random.uniform(*STORM_SECONDS)

        def hold() -> None:
            with contextlib.closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as db:
                try:
                    db.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    return
                time.sleep(seconds)
                db.execute("ROLLBACK")

        self.done["hold SQLite's lock"] += 1
        threading.Thread(target=hold, daemon=True).start()
