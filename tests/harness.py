"""Helpers of the tests of workers and recovery: tables to train on, jobs, and worker processes to kill."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sqlalchemy import func, select

from app import cli
from app.datasets import service as datasets
from app.datasets.description import Format, describe
from app.jobs import execution, queue
from app.jobs import queue_repository as part_rows
from app.jobs import service as jobs
from app.platform import catalogue
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.stores import open_store
from app.platform.tables import FINAL_STATES, Job, Model, ModelOutOfFold
from app.training.progress import FITTING
from core.boosting import RankBoost
from core.kernels import SUFFIX
from core.kernels.folders import folders
from tests.waiting import eventually
from workers.slots import Slots

OWNER = "tester"
LONG = 40_000  # rounds: a second or so on a small table, time enough to interfere
ENDLESS = 100_000  # rounds: half a minute or more on a big table, longer than any test looks at it


@functools.cache
def csv_table(rows: int, features: int = 4) -> bytes:
    """A table whose first column carries the signal."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, features))
    y = (X[:, 0] + rng.normal(size=rows) > 0).astype(np.int8)
    columns = {f"x{j}": X[:, j] for j in range(features)} | {"y": y}
    out = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(columns), out)
    return out.getvalue()


class Shop:
    """One deployment's database and blobs, and what an owner does with them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.db = Database(settings.sqlalchemy_url)
        self.blobs = open_store(settings)

    def upload(
        self,
        table: bytes,
        content_type: str = "text/csv",
        *,
        label: str = "y",
        positive: str = "1",
        **settings: object,
    ) -> str:
        """Accept a table, with the shop's settings unless others are given; return the dataset's id."""
        blob = self.blobs.put("uploads", io.BytesIO(table))
        upload = datasets.StoredUpload.of(blob, Format(content_type, None))
        said = describe({"name": "table", "label": label, "positive": positive})
        with self.db.write() as session:
            catalogue.add(session, [blob])
            given = self.settings.model_copy(update=settings)
            return datasets.accept(session, given, OWNER, said, upload).id

    def train(
        self,
        dataset_id: str,
        rounds: int,
        *,
        folds: int | None = None,
        timeout_seconds: float | None = None,
        weak_ranker: Literal["stump", "tree"] = "stump",
    ) -> str:
        """Submit a training job of so many rounds, cross-validated where it has folds; returns its id."""
        parameters = RankBoost(n_rounds=rounds, weak_ranker=weak_ranker).get_params()
        spec: dict[str, Any] = {
            "algorithm": {"name": "rankboost", "parameters": parameters},
            "objective": {"metric": "auc"},
            "validation": {"method": "cross_validation", "folds": folds}
            if folds
            else {"method": "none"},
            "search": None,
            "baselines": {"algorithms": [], "skipped": None, "share": None},
            "validation_dataset": None,
            "protected_columns": [],
            "seed": 0,
            "model_name": "model",
        }
        with self.db.write() as session:
            job = jobs.enqueue(
                session,
                self.settings,
                owner=OWNER,
                kind="train",
                name="model",
                spec=spec,
                dataset_id=dataset_id,
                timeout_seconds=timeout_seconds,
            )
        return job.id

    def job(self, job_id: str) -> Job:
        """The job as it is now."""
        return self.db.reading(jobs.find, OWNER, job_id)

    def reaches(self, job_id: str, *states: str) -> Job:
        """Wait until the job is in one of the states; a final one that was not asked for is an error at once."""

        def arrived() -> Job | None:
            job = self.job(job_id)
            if job.state in states:
                return job
            assert job.state not in FINAL_STATES, (job.state, job.error)
            return None

        found: Job = eventually(arrived)
        return found

    def fitting(self, job_id: str) -> Job:
        """Wait until the job's fit has reported its first rounds."""
        found: Job = eventually(
            lambda: (job := self.job(job_id)).progress.get("phase") == FITTING and job,
        )
        return found

    def ends(self, job_id: str) -> Job:
        """Wait until the job has ended, in whatever way."""
        return self.reaches(job_id, *FINAL_STATES)

    def ready_table(self, rows: int = 200) -> str:
        """Upload a table and wait until a worker has read it; returns the dataset's id."""
        dataset_id = self.upload(csv_table(rows))
        self.becomes_ready(dataset_id)
        return dataset_id

    def becomes_ready(self, dataset_id: str) -> None:
        """Wait until a worker has read the table."""
        eventually(
            lambda: self.db.reading(datasets.find, OWNER, dataset_id).status == "ready",
        )

    def read_here(self, table: bytes) -> str:
        """Upload a table and read it in this process, without a worker; returns the dataset's id."""
        dataset_id = self.upload(table)
        claim = self.db.writing(queue.claim, self.settings, "wrk_here")
        assert claim is not None
        workdir = self.blobs.staging_dir()
        payload = execution.fetch(
            self.blobs, self.db.reading(execution.prepare, self.settings, claim, workdir)
        )
        result = execution.run(payload, lambda step, of, info: None)
        published = execution.publish(self.blobs, claim, result)
        self.db.writing(execution.complete, claim, result, published)
        shutil.rmtree(workdir)
        assert self.db.reading(datasets.find, OWNER, dataset_id).status == "ready"
        return dataset_id

    def models_of(self, job_id: str) -> int:
        """How many models the job made."""
        with self.db.read() as session:
            count = select(func.count()).select_from(Model).where(Model.job_id == job_id)
            return session.scalar(count) or 0

    def why_invalid(self, dataset_id: str) -> str:
        """Wait until the dataset is invalid; returns the first reason."""

        def told() -> str | None:
            dataset = self.db.reading(datasets.find, OWNER, dataset_id)
            assert dataset.status != "ready"
            return str(dataset.errors[0]["detail"]) if dataset.errors else None

        reason: str = eventually(told)
        return reason

    def parts_of(self, job_id: str) -> list[Job]:
        """The job's parts, in order."""
        with self.db.read() as session:
            return list(part_rows.of_parent(session, job_id))

    def out_of_fold_of(self, job_id: str) -> int:
        """How many sets of out-of-fold scores the job made."""
        with self.db.read() as session:
            count = select(func.count()).select_from(ModelOutOfFold).join(Model)
            return session.scalar(count.where(Model.job_id == job_id)) or 0

    def artifact_of(self, job_id: str) -> str:
        """The hash of the job's model."""
        with self.db.read() as session:
            return session.scalars(
                select(Model.artifact_sha256).where(Model.job_id == job_id)
            ).one()

    def states_of(self, job_id: str) -> list[str]:
        """The states that the job went through, by its events."""
        events = self.db.reading(jobs.events, OWNER, job_id, after=0, limit=200)
        return [event.data["state"] for event in events if event.type == "state"]

    def first_steps_of(self, job_id: str) -> list[int]:
        """Return the first step that each attempt has reported."""
        events = self.db.reading(jobs.events, OWNER, job_id, after=0, limit=200)
        told: list[int] = []
        awaited = False
        for event in events:
            awaited = awaited or event.data.get("state") == "running"
            is_step = event.type == "progress" and event.data["phase"] == FITTING
            if (
                awaited and is_step and event.data.get("step")
            ):  # 0: a table is read column by column
                told.append(event.data["step"])
                awaited = False
        return told

    def close(self) -> None:
        """Return the connections to the pool."""
        self.db.close()


@dataclass
class Crew:
    """A shop whose only slot runs for all tests of a module: they leave it as they found it, warm and idle."""

    shop: Shop
    slots: Slots
    table: str  # a dataset on which a long fit is long

    def fit_process(self) -> int:
        """The pid of the slot's process, once it is warm and idle."""
        return warm_process(self.slots)


def warm_process(slots: Slots) -> int:
    """The pid of the only slot's process, once it is warm and idle."""

    def warm() -> int | None:
        process = slots.slots[0].process
        return process.pid if slots.idle and process is not None else None

    pid: int = eventually(warm)
    return pid


def environment(settings: Settings) -> dict[str, str]:
    """The environment that gives another process these settings."""
    given = settings.model_dump(exclude_unset=True)
    values = {
        name: value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
        for name, value in given.items()
    }
    ours = {f"RANKWRIGHT_{name.upper()}": value for name, value in values.items()}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RANKWRIGHT_")}
    return kept | {"RANKWRIGHT_WARM_UP": "false"} | ours


def give_kernels(folder: Path) -> None:
    """Copy what this run of the tests has compiled already into a folder of kernels."""
    folder.mkdir(parents=True, exist_ok=True)
    for compiled in (path for each in folders() for path in each.glob(f"*{SUFFIX}")):
        with contextlib.suppress(
            FileNotFoundError
        ):  # another process of the run has just replaced it
            shutil.copy2(compiled, folder)


def run_here(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `rankwright` to its end in this process, with no settings but these: a Python of its own takes a second."""
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    status: object = 0
    log = logging.getLogger()
    handlers, level = log.handlers[:], log.level
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in [name for name in os.environ if name.startswith("RANKWRIGHT_")]:
            patch.delenv(name)
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["rankwright", *words])
        patch.setattr(os, "execve", _become_another)
        try:
            cli.main()
        except SystemExit as end:
            status = end.code or 0
        finally:  # a command that logs leaves a handler that writes to a stream of its own
            log.handlers[:] = handlers
            log.setLevel(level)
    assert isinstance(status, int)
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return subprocess.CompletedProcess(words, status, *said)


def _become_another(*_: object) -> None:
    raise AssertionError("the command would have taken this process")


@contextmanager
def worker(settings: Settings, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process that logs to `<pid>.log`, ended with the block if the test has not ended it."""
    with (folder / "worker.log").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers"], env=environment(settings), stdout=out, stderr=out
        )
    (folder / "worker.log").rename(folder / f"{process.pid}.log")
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait()


def children_of(pid: int) -> list[int]:
    """The pids of a process's children; threads and processes that end meanwhile are passed over."""
    found: list[int] = []
    gone = contextlib.suppress(FileNotFoundError, ProcessLookupError)
    with gone:  # glob reads the folder of threads, too
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            with gone:
                found += map(int, listed.read_text().split())
    return found


def is_running(pid: int) -> bool:
    """Return True if the process still runs; a zombie does not.

    A process whose first thread has ended before the others also shows as a zombie, but its parent cannot wait for
    it yet: it runs.
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
        return state not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False
