"""Attacks on a deployment at random moments: processes, broker and database killed, stopped, wiped, deceived."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import psycopg
import redis

from app.platform.broker import QUEUE
from tests.chaos import inside, processes
from tests.chaos.deployments import Deployment, Embedded, InBucket, Split
from tests.chaos.disk import Disk

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


# Most attacks hit processes that are soon back: a worker takes seconds, and so does its fit process.
_ROLES = ("api", "dispatcher", "dispatcher", "worker", "child", "child", "child")
STOP = "stop a worker past its lease"
_OFTEN = [f"kill {role}" for role in _ROLES]
_OFTEN_EMBEDDED = [f"kill {role}" for role in _ROLES if role != "dispatcher"]
ASSAULTS = {
    Embedded.name: [*_OFTEN_EMBEDDED * 2, "kill serve", "kill broker", "hold SQLite's lock"],
    **{
        name: [*_OFTEN * 2, "kill broker", "kill database", "kill database backend"]
        for name in (Split.name, InBucket.name)
    },
}
for _names in ASSAULTS.values():
    _names += [STOP] * 2
    _names += ["wipe the broker", "hang the broker", "forge messages", "fill the disk"]
TOUCHES = {
    "broker": {"kill broker", "wipe the broker", "hang the broker", "forge messages", "kill serve"},
    "database": {"kill database", "kill database backend"},
    "bucket": set(),
}
"""What would end an outage of a server, or has nothing to strike meanwhile."""


class Death(NamedTuple):
    """A process that we ended, or stopped for longer than a lease."""

    pid: int
    role: str
    at: float


class Frozen(NamedTuple):
    """A worker that was stopped, and the job that it had."""

    pid: int
    job_id: str | None


class Assaults:
    """Attacks at random. `tend` ends an attack that lasts for a while, at the latest `relent` does."""

    def __init__(
        self,
        deployment: Deployment,
        busy: Callable[[], dict[int, str]],
        seed: int,
        names: Sequence[str] = (),
        *,
        may_stop: bool = True,
    ) -> None:
        self._busy = busy  # the workers that have a job
        self._may_stop = may_stop
        self.deaths: list[Death] = []
        self.done: Counter[str] = Counter()
        self._deployment = deployment
        self._random = random.Random(seed)
        self._later: list[tuple[float, Callable[[], object]]] = []
        self._frozen: Frozen | None = None
        self._assaults: dict[str, Callable[[], None]] = {
            **{f"kill {role}": partial(self.kill, role) for role in inside.ROLES},
            STOP: self._stop_worker,
            "wipe the broker": self._wipe_broker,
            "hang the broker": self._hang_broker,
            "forge messages": self._forge,
        }
        if isinstance(deployment, Split):
            self._assaults["kill broker"] = self._lose_broker
            self._assaults["kill database"] = self._crash_database
            self._assaults["kill database backend"] = self._kill_backend
        else:
            self._assaults["kill broker"] = partial(self.kill, "broker")
            self._assaults["hold SQLite's lock"] = self._storm
        wanted = names or ASSAULTS[deployment.name]
        if deployment.disk is not None:
            self._assaults["fill the disk"] = partial(self._fill, deployment.disk)
        else:
            wanted = [name for name in wanted if name != "fill the disk"]
        self._names = [name for name in wanted if may_stop or name != STOP]

    @property
    def kills(self) -> int:
        """Return how many processes were ended by a signal from here."""
        return sum(n for what, n in self.done.items() if what.startswith("kill "))

    @property
    def known(self) -> set[str]:
        """Return the names of the attacks that this deployment allows."""
        return set(self._assaults)

    @property
    def calm(self) -> bool:
        """Return True if no attack lasts at present."""
        return not self._later

    def attack(self, away: str | None = None) -> None:
        """Make one random attack; none on a server that is away already."""
        names = [name for name in self._names if name not in TOUCHES.get(away or "", ())]
        self.do(self._random.choice(names))

    def do(self, name: str) -> None:
        """Make this attack."""
        self._assaults[name]()

    def tend(self) -> None:
        """End the attacks that have lasted long enough."""
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
        """End all attacks that last."""
        due, self._later = self._later, []
        for _, end in due:
            end()

    def kill(self, role: str) -> None:
        """Kill a process of this role."""
        stopped = self._frozen.pid if self._frozen is not None else None
        found = [
            process.pid
            for process in self._deployment.running()
            if process.role == role and stopped not in (process.pid, process.parent)
        ]
        if found:
            self.kill_process(self._random.choice(found), role)

    def kill_process(self, pid: int, role: str) -> None:
        """Kill this process; the processes that it started end with it."""
        if role == "serve":
            for process in self._deployment.running():
                self.deaths.append(Death(process.pid, process.role, time.time()))
        if processes.send(pid, signal.SIGKILL):
            self.deaths.append(Death(pid, role, time.time()))
            self.done[f"kill {role}"] += 1

    def kill_soon(self, pid: int, role: str, seconds: float) -> None:
        """Kill a process that hangs, once it has hung for a while."""
        self._in(seconds, partial(self.kill_process, pid, role))

    def _in(self, seconds: float, end: Callable[[], object]) -> None:
        self._later.append((time.monotonic() + seconds, end))

    def _stop_worker(self) -> None:
        """Stop a worker, one that has a job if possible, until its lease is over.

        It resumes when another worker has its job, if that comes soon.
        """
        found = {p.pid for p in self._deployment.running() if p.role == "worker"}
        if not found or self._frozen is not None:
            return
        busy = {pid: job for pid, job in self._busy().items() if pid in found}
        pid = self._random.choice(sorted(busy or found))
        self._stop(pid, busy.get(pid))

    def stop_at_seam(self, pid: int) -> None:
        """Stop this worker past its lease, between two steps of its job."""
        if self._frozen is None and (job_id := self._busy().get(pid)) is not None:
            self._stop(pid, job_id)

    def _stop(self, pid: int, job_id: str | None) -> None:
        if self._may_stop and processes.send(pid, signal.SIGSTOP):
            self._frozen = Frozen(pid, job_id)
            self.deaths.append(Death(pid, "worker", time.time()))
            self.done[STOP] += 1
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

    def _fill(self, disk: Disk) -> None:
        if disk.fill():
            self.done["fill the disk"] += 1
            self._in(self._random.uniform(*AWAY_SECONDS), disk.make_room)

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
