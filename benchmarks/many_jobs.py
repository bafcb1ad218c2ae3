"""A thousand small jobs at once: `python -m benchmarks.many_jobs`.

So many clients submit as many training jobs (20 stumps on 1,000 × 10 numbers) as fast as they are answered, to
`rankwright serve` and a second worker beside its own, each of one slot and one thread. Told are the times of the
submits, from request to 202, and the jobs a second from the first submit to the last end. Every job must have made one
model.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import local
from typing import cast

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rankwright
from rankwright import types

from benchmarks import at_least_one
from examples.demo import running_service

JOBS, CLIENTS, WORKERS = 1_000, 32, 2
ROWS, FEATURES, ROUNDS = 1_000, 10, 20
ONE_THREAD = {"RANKWRIGHT_WORKER_SLOTS": "1", "RANKWRIGHT_JOB_THREADS": "1"}
START_SECONDS = 120.0
"""How long a worker may take to be ready."""


def write_table(path: Path) -> None:
    """Write the table as Parquet."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES))
    y = (X[:, 0] + rng.normal(size=ROWS) > 0.5).astype(np.int8)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(FEATURES)} | {"y": y}), path)


@contextmanager
def more_workers(n: int, state: Path, client: rankwright.Client) -> Iterator[None]:
    """Run so many workers beside the service's own, until the block ends."""
    environment = os.environ | ONE_THREAD | {"RANKWRIGHT_STATE_DIR": str(state)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "workers"], env=environment, stderr=subprocess.DEVNULL
        )
        for _ in range(n)
    ]
    try:
        deadline = time.monotonic() + START_SECONDS
        while f"{1 + n} heard from" not in str(client.health("staffed").to_json()):
            if time.monotonic() > deadline:
                sys.exit(f"{n} more workers were not ready within {START_SECONDS:.0f} s")
            time.sleep(0.1)
        yield
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait()


class Submitter:
    """Submits jobs over a connection per thread."""

    def __init__(self, url: str, secret: str, dataset_id: str) -> None:
        self._url, self._secret = url, secret
        self._body = {
            "dataset_id": dataset_id,
            "algorithm": {"name": "rankboost", "n_rounds": ROUNDS},
            "validation": {"method": "holdout"},
        }
        self._own = local()

    def submit(self, number: int) -> float:
        """Submit one job; the seconds until it was accepted."""
        if not hasattr(self._own, "http"):
            headers = {"Authorization": f"Bearer {self._secret}"}
            self._own.http = httpx.Client(base_url=self._url, headers=headers, timeout=60.0)
        started = time.perf_counter()
        answer = self._own.http.post(
            "/v1/jobs", json=self._body, headers={"Idempotency-Key": uuid.uuid4().hex}
        )
        seconds = time.perf_counter() - started
        if answer.status_code != 202:
            sys.exit(f"job {number} was answered {answer.status_code}: {answer.text}")
        return seconds


def wait_for_all(client: rankwright.Client) -> list[types.Job]:
    """Wait until no training job is open; all of them."""
    for state in ("queued", "running"):
        while next(client.jobs.list(kind="train", state=state), None) is not None:
            time.sleep(0.2)
    return [job.data for job in client.jobs.list(kind="train")]


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=at_least_one, default=JOBS)
    parser.add_argument("--clients", type=at_least_one, default=CLIENTS)
    parser.add_argument("--workers", type=at_least_one, default=WORKERS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        path, state = Path(folder) / "table.parquet", Path(folder) / "state"
        write_table(path)
        with (
            running_service(state, ONE_THREAD) as client,
            more_workers(given.workers - 1, state, client),
        ):
            dataset = client.upload(path, name="table", label="y", progress=False)
            secret = os.environ.get("RANKWRIGHT_API_KEY") or (state / "api-key").read_text().strip()
            submitter = Submitter(client.url, secret, dataset.id)
            with ThreadPoolExecutor(given.clients) as pool:
                started = time.perf_counter()
                seconds = sorted(pool.map(submitter.submit, range(given.jobs)))
                submitted = time.perf_counter() - started
            jobs = wait_for_all(client)
    states = Counter(job.state for job in jobs)
    models = {job.output and job.output.id for job in jobs}
    if states != {"succeeded": given.jobs} or len(models) != given.jobs:
        sys.exit(f"{states}, {len(models)} models")
    first = min(datetime.fromisoformat(job.created_at) for job in jobs)
    last = max(datetime.fromisoformat(cast(str, job.finished_at)) for job in jobs)
    whole = (last - first).total_seconds()
    p50, p99 = (1e3 * seconds[round(share * (len(seconds) - 1))] for share in (0.5, 0.99))
    print(
        "| jobs | workers | submits a second | submit p50, ms | p99, ms | worst, ms | jobs a second |"
    )
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {given.jobs} | {given.workers} | {given.jobs / submitted:.0f} | {p50:.1f} | {p99:.1f} "
        f"| {1e3 * seconds[-1]:.1f} | {given.jobs / whole:.1f} |"
    )


if __name__ == "__main__":
    main()
