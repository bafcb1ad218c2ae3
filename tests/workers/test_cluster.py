"""Shards on real Dask workers, each a process: the same bits, and workers that are lost, hung or of another version."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import typer
from distributed.diagnostics.plugin import SchedulerPlugin
from sqlalchemy import select, update

from app.cli import processes
from app.jobs import child_jobs
from app.jobs import service as jobs
from app.platform.processes import child_environment
from app.platform.settings import Settings, checked_scheduler
from app.platform.tables import Job, Model
from app.serve.prepare import make_cluster_secret
from app.training import cluster
from app.training.cluster import DaskHosts, read_security
from core import LogitBoost, MartiRank, RankBoost, save
from core.base.checkpoint import Checkpoints
from core.base.columns import ColumnTable
from core.base.ranker import Ranker
from core.base.shards import Piece
from core.base.table import CodedTable
from core.coding import stored
from core.errors import ShardsLost
from tests.core.boosting.row_losses import HingeBoost
from tests.core.coding.test_stored import make_rows
from tests.core.column_sources import ArrayColumns
from tests.harness import ENDLESS, OWNER, Shop, csv_table
from tests.long_form import LONG_FORM, long_form
from tests.raising import mentions, raises
from tests.sentences import Sentences
from tests.waiting import eventually, patience
from workers import join
from workers.fit_process import FitProcess
from workers.slots import Slots

SECONDS = 1000.0
"""How long a worker may be silent."""
HUNG_SECONDS = 5.0
"""The same once it has been stopped: otherwise it sends a heartbeat each half second."""


class Cluster:
    """A scheduler in this process, and workers that have joined it by the command."""

    def __init__(self, scheduler: Any, folder: Path, secret: Path) -> None:
        own = {"RANKWRIGHT_STATE_DIR": str(folder), "RANKWRIGHT_DASK_SECRET_FILE": str(secret)}
        self._environment = child_environment() | own
        self.secret = secret
        self.address: str = scheduler.address
        self._scheduler = scheduler
        self._processes: list[subprocess.Popen[bytes]] = []

    def grow(self, n_workers: int) -> None:
        """Have at least so many workers."""
        missing = n_workers - len(self._scheduler.workers)
        joined = threading.Semaphore(0)
        self._scheduler.plugins["joined"] = Joined(joined)
        for _ in range(missing):
            command = [sys.executable, "-m", "app.cli", "worker", "--join", self.address]
            self._processes.append(subprocess.Popen(command, env=self._environment))
        for _ in range(missing):
            assert joined.acquire(timeout=patience())

    @property
    def place(self) -> tuple[str, Path]:
        """The address, and the file of the secret."""
        return self.address, self.secret

    @property
    def addresses(self) -> list[str]:
        """Of the workers, ascending."""
        return sorted(self._scheduler.workers)

    def process(self, address: str) -> int:
        """Return the id of the process of a worker."""
        from distributed import Client

        security = read_security(self.secret)
        with Client(self.address, set_as_default=False, security=security) as client:
            return int(client.run(os.getpid, workers=[address])[address])

    def end(self) -> None:
        """Stop all workers, and wait for their ends."""
        for process in self._processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._processes:
            process.wait(patience())


class Joined(SchedulerPlugin):
    """Counts the workers that join."""

    name = "joined"

    def __init__(self, joined: threading.Semaphore) -> None:
        self._joined = joined

    def add_worker(self, scheduler: Any, worker: str) -> None:
        self._joined.release()


def scheduler(secret: Path, host: str = "127.0.0.1", **options: Any) -> Any:
    """A scheduler without workers."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=0,
        host=host,
        dashboard_address=f"{host}:0",
        protocol="tls://",
        security=read_security(secret),
        **options,
    )


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory, dask_secret: Path) -> Iterator[Cluster]:
    """A cluster at ports of loopback."""
    with scheduler(dask_secret, silence_logs=50) as local:
        made = Cluster(local.scheduler, tmp_path_factory.mktemp("cluster"), dask_secret)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SHARD_ROWS", 20)
    monkeypatch.setattr("core.boosting.stumps.MIN_LISTED_CELLS", 0)


def make_stumps(n_rounds: int = 12) -> Ranker:
    return RankBoost(n_rounds=n_rounds)


def make_trees() -> Ranker:
    return RankBoost(n_rounds=12, weak_ranker="tree", min_samples_leaf=2)


def make_drawn_trees() -> Ranker:
    return LogitBoost(n_rounds=12, min_samples_leaf=2, subsample=0.7, early_stopping_rounds=5)


def make_layers() -> Ranker:
    return MartiRank(n_rounds=4)


def fit_on(
    place: tuple[str, Path],
    folder: Path,
    callback: Callable[..., None] | None = None,
    ranker: Ranker | None = None,
    made: list[DaskHosts] | None = None,
) -> bytes:
    X, y, names, categories = make_rows(1)
    with DaskHosts(*place, SECONDS) as hosts:
        if made is not None:
            made.append(hosts)
        table = ColumnTable(ArrayColumns(X, names, categories, b"rows"), folder, placement=hosts)
        return save((ranker or make_stumps()).fit(table, y, callback=callback))


def in_memory(ranker: Ranker | None = None) -> bytes:
    X, y, names, categories = make_rows(1)
    return save((ranker or make_stumps()).fit(CodedTable(X, names, categories), y))


@long_form
def test_the_bits_are_those_of_one_process(workers: Cluster, tmp_path: Path) -> None:
    for n_workers in (1, 2, 4, 8):
        workers.grow(n_workers)
        for make in (make_stumps, make_trees, make_drawn_trees, make_layers):
            assert fit_on(workers.place, tmp_path, None, make()) == in_memory(make())


def test_a_loss_that_is_one_class_of_its_own_is_found_by_the_workers(
    workers: Cluster, tmp_path: Path
) -> None:
    workers.grow(2)
    X, y, names, categories = make_rows(1)
    ranker = HingeBoost(n_rounds=6, min_samples_leaf=2)
    rows = CodedTable(X, names, categories)
    alone = ranker.fit(rows, y).decision_function(rows)
    with DaskHosts(*workers.place, SECONDS) as hosts:
        table = ColumnTable(ArrayColumns(X, names, categories, b"rows"), tmp_path, placement=hosts)
        assert (ranker.fit(table, y).decision_function(rows) == alone).all()


def test_an_answer_may_come_at_a_tick(
    workers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.grow(1)
    monkeypatch.setattr(cluster, "PROBE_SECONDS", 0.002)
    assert fit_on(workers.place, tmp_path, None, make_stumps(60)) == in_memory(make_stumps(60))


def test_every_error_of_a_worker_arrives(workers: Cluster, sentences: Sentences) -> None:
    """Dask's own proxy of an actor waits for ever for those that it does not expect."""
    workers.grow(1)
    with DaskHosts(*workers.place, SECONDS) as hosts:

        class Unreadable(Exception):
            def __init__(self, one: str, other: str) -> None:
                super().__init__(f"{one} {other}")

        def fail(*_: object) -> None:
            raise Unreadable("it cannot be", "unpickled")

        def end_connection(*_: object) -> None:
            raise ConnectionResetError("of its own")

        def name_a_place(*_: object) -> None:
            raise OSError("no disk at /srv/codes nor at tcp://10.0.0.7:41000")

        def find_nothing(*_: object) -> None:
            Path("/srv/codes/1").read_bytes()

        def fill_the_disk(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        piece = Piece(0, (), (), np.ones(1, dtype=bool), np.ones(1))
        for make in (fail, end_connection, name_a_place, find_nothing, fill_the_disk):
            hosts.call("begin", [(1, 1, make, [])] * hosts.n_hosts)
            with pytest.raises(ShardsLost) as lost:
                hosts.call("make", [(1, piece)] * hosts.n_hosts)
            sentences(without_version(lost))
        with pytest.raises(ShardsLost) as lost:
            hosts.call("ask", [(2, "totals", ())] * hosts.n_hosts)
        sentences(without_version(lost))
        hosts.client.run(hide_actors)
        with raises(ShardsLost, "KeyError"):
            hosts.call("begin", [(2, 1, fail, [])] * hosts.n_hosts)
        hosts.client.run(show_actors)
    with DaskHosts(*workers.place, SECONDS) as hosts:
        hosts.client.cancel(list(hosts.hosts.values()))
        with pytest.raises(ShardsLost) as lost:
            hosts.probe()
        sentences(without_version(lost))


def test_an_error_of_one_worker_makes_no_other_leave(workers: Cluster) -> None:
    """The connection to another is still being made then, and must not be closed under it."""
    workers.grow(2)
    before = workers.addresses
    for _ in range(15 if LONG_FORM else 5):
        with DaskHosts(*workers.place, SECONDS) as hosts:
            with pytest.raises(ShardsLost):
                hosts.call("ask", [(1, "totals", ())] * hosts.n_hosts)
            hosts.probe()
    assert workers.addresses == before


def hide_actors(dask_worker: Any) -> None:
    """Let the worker find no actor that is asked. One that is released is still there: without it a worker ends."""

    class Hidden(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise KeyError(key)

    dask_worker.state.actors = Hidden(dask_worker.state.actors)


def show_actors(dask_worker: Any) -> None:
    dask_worker.state.actors = dict(dask_worker.state.actors)


def without_version(lost: pytest.ExceptionInfo[ShardsLost]) -> str:
    """What is said, less the worker's name, which has its version."""
    worker, cluster_, said = str(lost.value).partition(" of the Dask cluster")
    assert worker.startswith("worker ")
    return (cluster_ + said).strip()


def test_a_scheduler_that_is_gone_and_one_that_is_silent(
    workers: Cluster, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    workers.grow(1)

    async def gone(hosts: DaskHosts) -> None:
        raise OSError("connection closed")

    async def silent(hosts: DaskHosts) -> None:
        await asyncio.Event().wait()

    with DaskHosts(*workers.place, SECONDS) as hosts:
        hosts.seconds = 0.1
        for answer in (gone, silent):
            monkeypatch.setattr(DaskHosts, "identify", answer)
            with sentences.raises(ShardsLost):
                hosts.probe()


def test_a_worker_that_cannot_listen_at_its_address_says_so(
    workers: Cluster, tmp_path: Path
) -> None:
    with raises(ShardsLost, "192.0.2.1"):
        asyncio.run(join.work(*workers.place, "192.0.2.1", tmp_path))


@long_form
def test_a_worker_that_hangs_ends_the_fit_and_the_next_goes_on(
    workers: Cluster, tmp_path: Path
) -> None:
    workers.grow(2)
    checkpoints = Checkpoints()
    taken: list[bytes | None] = []
    made: list[DaskHosts] = []
    hung = workers.process(workers.addresses[0])

    def attack(step: int, of: int, info: Mapping[str, float]) -> None:
        if step == 5:
            taken.append(checkpoints.take())
            os.kill(hung, signal.SIGSTOP)
            made[0].seconds = HUNG_SECONDS

    with checkpoints, pytest.raises(ShardsLost):
        fit_on(workers.place, tmp_path, attack, made=made)
    os.kill(hung, signal.SIGCONT)
    steps: list[int] = []
    with Checkpoints(taken[0]) as resumed:
        again = fit_on(workers.place, tmp_path, lambda step, of, info: steps.append(step))
    assert resumed.resumed
    assert [step for step in steps if step] == [*range(6, 13)]  # 0: the table is read
    assert again == in_memory()


def test_a_worker_of_another_version_is_refused_by_both_sides(
    workers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.grow(1)
    own = cluster.describe_program()
    for name in ("version", "libraries", "new"):
        other = OtherProgram(own | {name: "0.1.9"})
        monkeypatch.setattr(cluster, "describe_program", other)
        with pytest.raises(ShardsLost) as refused:
            fit_on(workers.place, tmp_path)
        assert ("0.1.9" in str(refused.value)) == (name in own)
    monkeypatch.undo()
    monkeypatch.setattr(join, "__version__", "0.1.9")
    with raises(ShardsLost, "0.1.9"):
        join.check_versions(*workers.place)


class OtherProgram:
    """Tells of this process what is not so, and of others the truth."""

    def __init__(self, own: dict[str, str]) -> None:
        self._own = own

    def __call__(self) -> dict[str, str]:
        return self._own

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (cluster, "describe_program")


@pytest.mark.parametrize(
    "address",
    [
        "tls://a b:8786",
        "tls://*:1",
        "tls://a:0",
        "tls://a:65536",
        "tls://[::1",
        "http://a:1",
        "tls://a:1/",
        "tcp://a:8786",
    ],
)
def test_what_is_no_address_of_a_scheduler_is_refused(address: str, sentences: Sentences) -> None:
    with sentences.raises(ValueError):
        checked_scheduler(address)
    assert checked_scheduler("tls://[::1]:8786") == "tls://[::1]:8786"


def test_a_worker_that_joins_nothing_takes_no_address() -> None:
    with raises(typer.BadParameter, "--host", "::1", "--join"):
        processes.worker(host="::1")


def test_an_address_that_nobody_answers_is_an_error_at_once(
    tmp_path: Path, dask_secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with socket.socket() as silent:  # accepts, and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for port in (1, silent.getsockname()[1]):
            with raises(ShardsLost, 0.5):
                fit_on((f"tls://127.0.0.1:{port}", dask_secret), tmp_path)


def test_a_cluster_without_workers_is_refused(
    tmp_path: Path, dask_secret: Path, sentences: Sentences
) -> None:
    with scheduler(dask_secret) as empty, sentences.raises(ShardsLost):
        fit_on((empty.scheduler_address, dask_secret), tmp_path)


def test_who_lacks_the_secret_runs_nothing_on_the_cluster(workers: Cluster, tmp_path: Path) -> None:
    """Neither by the scheduler nor by a worker's own port, and nobody joins without it."""
    workers.grow(1)
    other = tmp_path / "other.pem"
    make_cluster_secret(other)
    for address in (workers.address, *workers.addresses):
        assert address.startswith("tls://")
        with pytest.raises(ShardsLost):
            fit_on((address, other), tmp_path)
    with pytest.raises(ShardsLost):
        join.check_versions(workers.address, other)
    # Nor does one who trusts the cluster, but has no key of its own.
    place = urlsplit(workers.address)
    trusting = ssl.create_default_context(cafile=workers.secret)
    trusting.check_hostname = False
    with (
        socket.create_connection((place.hostname, place.port), 10) as plain,
        trusting.wrap_socket(plain) as line,
        raises(ssl.SSLError, "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
    ):
        line.recv(1)


def test_a_secret_that_is_no_key_with_its_certificate_is_named(
    dask_secret: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    make_cluster_secret(other)
    key, certificate = (
        re.search(rf"-----BEGIN {part}-----.*?-----END {part}-----\n", path.read_text(), re.DOTALL)
        for part, path in (("PRIVATE KEY", dask_secret), ("CERTIFICATE", other))
    )
    assert key
    assert certificate
    for text in (None, "", "secret", key[0], certificate[0], key[0] + certificate[0]):
        path = tmp_path / "bad.pem"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        with raises(ShardsLost, "RANKWRIGHT_DASK_SECRET_FILE"):
            read_security(path)


def test_a_secret_is_made_once_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "dask.pem"
    make_cluster_secret(path)
    made = path.read_bytes()
    make_cluster_secret(path)
    assert path.read_bytes() == made
    assert path.stat().st_mode & 0o777 == 0o600
    read_security(path)


def test_without_the_secret_no_worker_joins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKWRIGHT_STATE_DIR", str(tmp_path))
    assert join.main(["tls://127.0.0.1:1"]) == 1
    assert "RANKWRIGHT_DASK_SECRET_FILE" in capfd.readouterr().err


@long_form
def test_an_attempt_whose_worker_of_the_cluster_dies_is_followed_by_one_that_goes_on(
    workers: Cluster,
    make_shop: Callable[..., Shop],
    make_slots: Callable[[Shop], Slots],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the leases of production: the attempt ends by itself, and the job runs again without a lost lease.

    It is the job's last attempt: it goes on from the checkpoint, too, but without the cluster.
    """
    start = FitProcess.start_job

    def start_small(process: FitProcess, payload: Mapping[str, Any], limit: int | None) -> None:
        start(process, {**payload, "memory_bytes": 1000}, limit)  # no table fits in that

    monkeypatch.setattr(FitProcess, "start_job", start_small)
    production = {
        name: Settings.model_fields[name].default for name in ("heartbeat_seconds", "lease_seconds")
    }
    workers.grow(2)
    shop = make_shop(
        dask_address=workers.address,
        dask_secret_file=workers.secret,
        dask_seconds=SECONDS,
        job_max_attempts=2,
        **production,
    )
    table = shop.read_here(csv_table(3000))
    job_id = shop.train(table, ENDLESS, weak_ranker="tree")
    make_slots(shop)
    # The checkpoint is of a later step than the first that is reported.
    eventually(lambda: shop.first_steps_of(job_id))
    early = shop.job(job_id).checkpoint_key
    eventually(lambda: shop.job(job_id).checkpoint_key not in (None, early))
    os.kill(workers.process(workers.addresses[0]), signal.SIGKILL)
    shop.reaches(job_id, "queued")
    with shop.db.write() as session:  # no test waits out the back-off
        session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))
    first, second = eventually(lambda: len(told := shop.first_steps_of(job_id)) == 2 and told)
    assert first < second
    shop.db.writing(child_jobs.end_early, OWNER, job_id)
    job = shop.reaches(job_id, "succeeded")
    assert job.attempt == 2
    assert shop.models_of(job_id) == 1
    with shop.db.read() as session:
        warnings = session.scalars(select(Model.warnings)).one()
    assert "not used for RankBoost" in str(warnings)
    assert shop.states_of(job_id) == ["queued", "running", "queued", "running", "succeeded"]
    events = shop.db.reading(jobs.events, OWNER, job_id, after=0, limit=200)
    (reason,) = [told for event in events if (told := event.data.get("reason"))]
    assert mentions(reason, "Dask")
