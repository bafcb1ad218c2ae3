"""Jobs on a Dask cluster whose scheduler, workers or own process die, hang or have no disk: with production leases."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from distributed.core import rpc
from sqlalchemy import update

from app.jobs import queue
from app.jobs import service as jobs
from app.platform.failpoints import VARIABLE
from app.platform.processes import child_environment
from app.platform.settings import Settings
from app.platform.tables import Job
from app.training.cluster import read_security
from tests.chaos import inside
from tests.harness import OWNER, Shop, csv_table, warm_process
from tests.long_form import long_form
from tests.waiting import eventually, patience
from workers import fit_process
from workers.fit_process import FitProcess
from workers.slots import Slots

pytestmark = [
    pytest.mark.timeout(900),  # many processes start, one after the other
    long_form,
]

"""Seconds that anything may take here on cores that are busy with other work."""

N_ROUNDS = 30
PRODUCTION = {
    name: Settings.model_fields[name].default for name in ("heartbeat_seconds", "lease_seconds")
}
JOB, WORKER, SCHEDULER = "job", "worker", "scheduler"

# Passings of the failpoints at which the job's process stops, and a worker. A host is asked to begin, to make each of
# its two shards, for the totals, for the first sums and for those after each of the rounds.
ASKED = {"begin": 1, "a shard": 3, "totals": 4, "first sums": 5, "a round": 20, "last round": 35}
SEAMS = {
    JOB: {"connected": "connect=stop"}
    | {name: f"ask=stop@{passing}" for name, passing in ASKED.items()}
    | {"rounds are done": "release=stop"},
    WORKER: {"a host": "host=stop"}
    | {name: f"answer=stop@{passing}" for name, passing in ASKED.items()},
}


class Machines:
    """A scheduler and workers that have joined it, each a process. What has ended is started again by `heal`."""

    def __init__(self, folder: Path, secret: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        self.address = f"tls://127.0.0.1:{self._port}"
        self.secret = secret
        own = {"RANKWRIGHT_STATE_DIR": str(folder), "RANKWRIGHT_DASK_SECRET_FILE": str(secret)}
        self._environment = child_environment() | own
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def heal(self, n_workers: int = 2, faults: str = "") -> None:
        """Start what has ended, and wait until all have joined; with faults the last worker is a new one."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            for worker in self.workers:
                worker.wait(patience())  # each ends with its scheduler
            self.scheduler = self._start(
                *("-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", self._port),
                *("--protocol", "tls", "--dashboard-address", "127.0.0.1:0"),
                *("--tls-ca-file", str(self.secret), "--tls-cert", str(self.secret)),
            )
        if faults and self.workers:
            self.workers[-1].kill()
            self.workers[-1].wait()
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < n_workers:
            armed = {VARIABLE: faults} if len(self.workers) == n_workers - 1 else {}
            self.workers.append(self._start("-m", "workers.join", self.address, **armed))
        eventually(lambda: self._n_joined() == n_workers)

    def _start(self, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *words],
            env=self._environment | variables,
            stderr=subprocess.DEVNULL,
        )

    def _n_joined(self) -> int | None:
        """Return how many workers the scheduler knows, None if it does not answer yet."""

        async def ask() -> int:
            arguments = read_security(self.secret).get_connection_args("client")
            async with rpc(self.address, connection_args=arguments) as scheduler:
                return len((await scheduler.identity())["workers"])

        try:
            return asyncio.run(asyncio.wait_for(ask(), 5.0))
        except (OSError, TimeoutError):
            return None

    def end(self) -> None:
        """Kill all."""
        for process in (self.scheduler, *self.workers):
            if process is not None:
                process.kill()
                process.wait()


@pytest.fixture
def machines(tmp_path: Path, dask_secret: Path) -> Iterator[Machines]:
    made = Machines(tmp_path / "machines", dask_secret)
    try:
        made.heal()
        yield made
    finally:
        made.end()


class Trainer:
    """A shop whose only slot fits on the cluster, as no table fits in the memory of its jobs."""

    def __init__(
        self,
        make_shop: Callable[..., Shop],
        make_slots: Callable[..., Slots],
        patch: pytest.MonkeyPatch,
        folder: Path,
        **settings: object,
    ) -> None:
        self._orders = inside.orders_path(folder, "child")
        patch.setattr(queue, "backoff_seconds", lambda attempt: 3600.0)  # until `again`
        start, environment = FitProcess.start_job, fit_process.environment_of_fit
        self.memory_bytes: int | None = 1000

        def start_small(process: FitProcess, payload: Mapping[str, Any], limit: int | None) -> None:
            given = payload if self.memory_bytes is None else {"memory_bytes": self.memory_bytes}
            start(process, {**payload, **given}, limit)

        def armed(inherited: Mapping[str, str], threads: int) -> dict[str, str]:
            orders = inside.environment(folder, ["small-shards"])
            return environment({**inherited, **orders}, threads)

        patch.setattr(FitProcess, "start_job", start_small)
        patch.setattr(fit_process, "environment_of_fit", armed)
        self.shop = make_shop(**PRODUCTION | settings)
        self.table = self.shop.read_here(csv_table(2600))
        self._slots = make_slots(self.shop, own=True)

    def expected(self, n_rounds: int = N_ROUNDS) -> str:
        """Fit in the memory of the job; return the hash of the model."""
        self.memory_bytes, before = None, self.memory_bytes
        job_id = self.shop.train(self.table, n_rounds)
        self.shop.reaches(job_id, "succeeded")
        self.memory_bytes = before
        return self.shop.artifact_of(job_id)

    def arm(self, faults: str) -> int:
        """Have a new process for jobs, which stops at a failpoint; return its id."""
        self._orders.write_text(json.dumps([faults]))
        before = warm_process(self._slots)
        os.kill(before, signal.SIGKILL)
        pid: int = eventually(lambda: (now := warm_process(self._slots)) != before and now)
        self._orders.unlink()  # read before its first line
        return pid

    @property
    def pid(self) -> int:
        """Of the process for jobs."""
        process = self._slots.slots[0].process
        assert process is not None
        return process.pid

    def lost(self, job_id: str, n_attempts: int) -> None:
        """Wait until a job has lost so many attempts, and is queued."""
        states = [*(["queued", "running"] * n_attempts), "queued"]
        eventually(lambda: self.shop.states_of(job_id) == states)

    def again(self, job_id: str) -> None:
        """End the wait between two attempts."""
        with self.shop.db.write() as session:
            session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))

    def check(self, job_id: str, expected: str, n_attempts: int) -> list[str]:
        """Check that a job has succeeded at its last attempt, and nothing twice; return why attempts were lost."""
        job = self.shop.reaches(job_id, "succeeded")
        assert self.shop.artifact_of(job_id) == expected
        assert self.shop.models_of(job_id) == 1
        assert job.attempt == n_attempts
        assert self.shop.states_of(job_id) == ["queued", "running"] * n_attempts + ["succeeded"]
        events = self.shop.db.reading(jobs.events, OWNER, job_id, after=0, limit=200)
        assert [event.seq for event in events] == [*range(1, len(events) + 1)]
        return [why for event in events if (why := event.data.get("reason"))]


@pytest.fixture
def make_trainer(
    make_shop: Callable[..., Shop],
    make_slots: Callable[..., Slots],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Callable[..., Trainer]:
    """Makes a trainer for machines."""

    def make(machines: Machines, checkpoint_seconds: float = 0.0) -> Trainer:
        return Trainer(
            *(make_shop, make_slots, monkeypatch, tmp_path),
            dask_address=machines.address,
            dask_secret_file=machines.secret,
            dask_seconds=5.0,
            job_max_attempts=20,  # the last one would do without the cluster
            checkpoint_seconds=checkpoint_seconds,  # 0: each attempt passes the same failpoints
        )

    return make


@pytest.fixture
def trainer(machines: Machines, make_trainer: Callable[..., Trainer]) -> Trainer:
    return make_trainer(machines)


@pytest.mark.parametrize("victim", [JOB, WORKER, SCHEDULER])
@pytest.mark.parametrize("stops", [JOB, WORKER])
def test_a_job_whose_cluster_dies_at_every_seam_ends_as_if_nothing_had_died(
    stops: str, victim: str, machines: Machines, trainer: Trainer
) -> None:
    """A process stops at a seam, and then itself or another is killed: one attempt for each seam."""
    seams = SEAMS[stops]
    if victim == SCHEDULER:  # workers may answer the last question before its death is heard
        seams = {name: faults for name, faults in seams.items() if name != "last round"}
    expected = trainer.expected()
    job_id, n_lost = "", 0
    for faults in seams.values():
        machines.heal(faults=faults if stops == WORKER else "")
        stopped = trainer.arm(faults) if stops == JOB else machines.workers[-1].pid
        if job_id:
            trainer.again(job_id)
        else:
            job_id = trainer.shop.train(trainer.table, N_ROUNDS)
        eventually(partial(is_stopped, stopped))
        assert machines.scheduler is not None
        victims = {JOB: trainer.pid, WORKER: machines.workers[-1].pid}
        os.kill(victims.get(victim, machines.scheduler.pid), signal.SIGKILL)
        if is_stopped(stopped):
            os.kill(stopped, signal.SIGCONT)
        if "release" in faults and victim != JOB:
            break  # it needs the cluster no more
        n_lost += 1
        trainer.lost(job_id, n_lost)
    else:
        machines.heal()
        trainer.again(job_id)
    assert len(trainer.check(job_id, expected, n_lost + 1)) == n_lost


def is_stopped(pid: int) -> bool:
    """Return True if a process has been stopped by SIGSTOP."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "T"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_attempt_goes_on_from_the_checkpoint_of_one_whose_scheduler_died(
    machines: Machines,
    make_trainer: Callable[..., Trainer],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A worker's death: tests/workers/test_cluster.py."""
    trainer = make_trainer(machines, checkpoint_seconds=0.05)
    expected = trainer.expected(150)
    stopped = trainer.arm("ask=stop@120")
    job_id = trainer.shop.train(trainer.table, 150)
    eventually(partial(is_stopped, stopped))
    eventually(lambda: trainer.shop.job(job_id).checkpoint_key)
    assert machines.scheduler is not None
    machines.scheduler.kill()
    os.kill(stopped, signal.SIGCONT)
    trainer.lost(job_id, 1)
    machines.heal()
    trainer.again(job_id)
    assert len(trainer.check(job_id, expected, 2)) == 1
    assert capfd.readouterr().err.count(f"{job_id} continued from") == 1


def test_a_scheduler_that_hangs_ends_the_attempt_and_no_round(
    machines: Machines, trainer: Trainer
) -> None:
    """Before the rounds it is asked for the workers; in a round the workers answer by themselves."""
    expected = trainer.expected()
    assert machines.scheduler is not None
    machines.scheduler.send_signal(signal.SIGSTOP)
    job_id = trainer.shop.train(trainer.table, N_ROUNDS)
    trainer.lost(job_id, 1)
    stopped = trainer.arm("ask=stop@20")
    machines.scheduler.send_signal(signal.SIGCONT)
    trainer.again(job_id)
    eventually(partial(is_stopped, stopped))
    machines.scheduler.send_signal(signal.SIGSTOP)
    os.kill(stopped, signal.SIGCONT)
    (why,) = trainer.check(job_id, expected, 2)
    assert "scheduler" in why


def test_a_disk_that_is_full_ends_the_attempt_and_the_next_goes_on_once_there_is_room(
    tmp_path: Path, dask_secret: Path, make_trainer: Callable[..., Trainer]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no right to mount")
    machines = Machines(disk, dask_secret)
    try:
        machines.heal()
        trainer = make_trainer(machines)
        expected = trainer.expected()
        filler = disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096):
                pass
        job_id = trainer.shop.train(trainer.table, N_ROUNDS)
        trainer.lost(job_id, 1)
        filler.unlink()
        trainer.again(job_id)
        (why,) = trainer.check(job_id, expected, 2)
        assert "disk" in why
    finally:
        machines.end()
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
