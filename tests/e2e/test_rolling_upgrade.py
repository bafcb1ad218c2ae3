"""An upgrade under load: processes of older code are replaced by those of today, one by one.

There is one migration as yet. So the older code is that of the last commit that changed this migration, and old and new
processes use the same tables: tested is that they work side by side, and that their replacement loses nothing. From the
second migration on, the old processes are to be started on the tables of the release before, and the tables migrated
under them: a process starts only on the tables of its own version.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.access import service as keys
from app.jobs import repository as worker_rows
from app.platform.settings import Settings
from tests.harness import Shop, csv_table, environment
from tests.waiting import eventually, patience

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    "UPGRADE" not in os.environ,
    reason="a minute and more: `make upgrade` (test_migrations.py is the short form)",
)
LAST_OLD_TABLES = "0200_tables"
"""The last migration of the release before, whose code is taken as it was then: to be raised with each release."""

CALLERS = 1
ROUNDS = 1  # of each caller at least, after each step
FINAL = {"succeeded", "failed", "cancelled", "timed_out"}


@pytest.fixture(scope="module")
def old_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the version before."""
    path = f"migrations/versions/{LAST_OLD_TABLES}.py"
    commit = git("log", "-1", "--format=%H", "--", path).decode().strip()
    archive = git("archive", commit) if commit else b""
    if not archive:
        pytest.skip("this checkout has no history to take the old code from")
    folder = tmp_path_factory.mktemp("old")
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    return folder


def git(*words: str) -> bytes:
    """Return git's output for this checkout; empty if git fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    return b"" if done.returncode else done.stdout


@pytest.fixture
def shop(postgres_url: str, broker_url: str, tmp_path: Path) -> Iterator[Shop]:
    """A deployment without a process of ours: callers' jobs find their workers by the workers' own look."""
    given = {
        "database_url": postgres_url,
        "broker_url": broker_url,
        "blob_url": f"file://{tmp_path}/blobs",
        "poll_seconds": 0.1,
        "fan_out_cells": 0,
        "drain_seconds": 0.5,
    }
    shop = Shop(Settings.model_validate(given))
    yield shop
    shop.close()


class Fleet:
    """The processes of one deployment, of whatever code, started and told to end one by one."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.addresses: tuple[str, ...] = ()
        self._shop = shop
        self._folder = folder

    @contextmanager
    def api(self, code: Path) -> Iterator[None]:
        """An API, known to callers once it answers; they learn by its refusal that it is gone."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        with self._process(code, "app.cli", "api", "--port", str(port)):
            eventually(lambda: answers(address), every=0.1)
            self.addresses += (address,)
            yield

    @contextmanager
    def worker(self, code: Path) -> Iterator[None]:
        """A worker, from when it is warm."""
        before = self._workers()
        with self._process(code, "workers"):
            eventually(lambda: self._workers() > before, every=0.1)
            yield

    @contextmanager
    def _process(self, code: Path, *words: str) -> Iterator[None]:
        log = self._folder / f"{len(list(self._folder.glob('*.log')))}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=code,
                # Each server stands on the client of its own version.
                env=environment(self._shop.settings) | {"PYTHONPATH": str(code / "client")},
                stdout=out,
                stderr=out,
            )
        try:
            yield
            process.terminate()
            assert process.wait(patience()) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()

    def _workers(self) -> int:
        with self._shop.db.read() as session:
            return len(worker_rows.alive(session, 60.0))


def answers(address: str) -> bool:
    """Return True if an API answers there."""
    try:
        return httpx.get(f"{address}/health/live", timeout=5).is_success
    except httpx.TransportError:
        return False


class Caller(threading.Thread):
    """Uploads, trains and scores, round after round; asks again where a client may, and nowhere else."""

    def __init__(self, fleet: Fleet, secret: str) -> None:
        super().__init__()
        self.rounds = 0
        self.jobs: list[str] = []
        self.fault: BaseException | None = None
        self.enough = threading.Event()
        self._fleet = fleet
        self._headers = {"Authorization": f"Bearer {secret}", "Connection": "close"}

    def run(self) -> None:
        """Continue until told to stop, or until an error."""
        try:
            while not self.enough.is_set():
                self._round()
                self.rounds += 1
        except BaseException as error:  # for the test to raise
            self.fault = error

    def _round(self) -> None:
        dataset = self._make(
            "/v1/datasets",
            {"Content-Type": "text/csv"},
            params={"name": "table", "label": "y", "positive": "1"},
            content=csv_table(60),
        )
        self._until(f"/v1/datasets/{dataset['id']}", lambda it: it["status"] == "ready")
        body = {
            "dataset_id": dataset["id"],
            "name": "model",
            "algorithm": {"name": "rankboost"},
            "search": {"method": "grid", "space": {"n_rounds": [3, 5]}},
            "validation": {"method": "cross_validation", "folds": 2},
            "baselines": False,
        }
        job = self._make("/v1/jobs", {}, json=body)
        self.jobs.append(job["id"])
        job = self._until(f"/v1/jobs/{job['id']}", lambda it: it["state"] in FINAL)
        assert job["state"] == "succeeded", job["error"]
        listed = self._ask("GET", "/v1/jobs", params={"limit": "20"})["data"]
        assert job["id"] in {each["id"] for each in listed}
        row = {f"x{j}": "1" for j in range(4)}
        score = self._ask("GET", f"/v1/models/{job['output']['id']}/score", params=row)
        assert score["model_id"] == job["output"]["id"]

    def _make(self, path: str, headers: dict[str, str], **given: Any) -> Any:
        key = {"Idempotency-Key": uuid.uuid4().hex}  # one for all tries
        return self._ask("POST", path, headers | key, **given)

    def _until(self, path: str, arrived: Callable[[Any], bool]) -> Any:
        return eventually(lambda: arrived(shown := self._ask("GET", path)) and shown)

    def _ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, **given: Any
    ) -> Any:
        given["headers"] = self._headers | (headers or {})

        def answered() -> httpx.Response | None:
            for address in self._fleet.addresses:
                try:
                    answer = httpx.request(method, address + path, timeout=patience(), **given)
                except httpx.TransportError:
                    continue  # nobody there, or gone in the middle of it
                if answer.status_code != 503:
                    return answer
                assert answer.headers["Retry-After"]
            return None

        answer = eventually(answered)
        assert answer.is_success, (method, path, answer.status_code, answer.text)
        return answer.json()


def test_an_upgrade_loses_nothing_and_shows_no_fault(
    shop: Shop, old_code: Path, tmp_path: Path
) -> None:
    secret = shop.db.writing(keys.create, "tester", "test", ["read", "train", "score"])[1]
    fleet = Fleet(shop, tmp_path)
    callers = [Caller(fleet, secret) for _ in range(CALLERS)]

    def work_on() -> None:
        """Wait until each caller has gone through so many rounds more."""
        goals = [caller.rounds + ROUNDS for caller in callers]

        def arrived() -> bool:
            for caller in callers:
                if caller.fault is not None:
                    raise caller.fault
            return all(caller.rounds >= goal for caller, goal in zip(callers, goals, strict=True))

        eventually(arrived)

    with ExitStack() as old, ExitStack() as new:
        old_api, old_worker = (old.enter_context(ExitStack()) for _ in range(2))
        old_worker.enter_context(fleet.worker(old_code))
        old_api.enter_context(fleet.api(old_code))
        for caller in callers:
            caller.start()
        for caller in callers:
            new.callback(caller.enough.set)
        work_on()  # old code alone
        new.enter_context(fleet.worker(ROOT))
        work_on()
        new.enter_context(fleet.api(ROOT))
        old_api.close()
        work_on()  # old worker, new API
        old_worker.close()
        work_on()
        for caller in callers:
            caller.enough.set()
        for caller in callers:
            caller.join()
            assert caller.fault is None
    accepted = [job for caller in callers for job in caller.jobs]
    assert len(accepted) == len(set(accepted)) >= 4 * ROUNDS * CALLERS
    for job_id in accepted:
        assert shop.models_of(job_id) == 1
        assert shop.out_of_fold_of(job_id) == 1
