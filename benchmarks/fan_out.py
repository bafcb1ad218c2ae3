"""The gain of a second worker: `python -m benchmarks.fan_out`.

One cross-validated search (5 folds and all rows, 6 candidates each on an inner holdout, controls beside) on 40,000 × 30
numbers, handed to `rankwright serve` with one worker of one slot and one thread, and then with a second such worker
beside it. From submit to end by the service's own times; the median of `--repeats`. Both must make the same model.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rankwright

from benchmarks import at_least_one
from benchmarks.stumps import make_data
from examples.demo import running_service

ROWS, FEATURES, FOLDS = 40_000, 30, 5
JOB: dict[str, Any] = {
    "algorithm": {"name": "rankboost", "weak_ranker": "tree"},
    "validation": {"method": "cross_validation", "folds": FOLDS},
    "search": {
        "method": "random",
        "space": {"learning_rate": [0.03, 0.1, 0.3], "n_rounds": [50, 100, 200]},
        "n_candidates": 6,
    },
}
ONE_THREAD = {"RANKWRIGHT_WORKER_SLOTS": "1", "RANKWRIGHT_JOB_THREADS": "1"}
START_SECONDS = 120.0
"""How long a worker may take to be ready."""


def write_table(path: Path, rows: int) -> None:
    """Write the table as Parquet."""
    X, y = make_data(rows, FEATURES, seed=0)
    columns = {f"x{j}": X[:, j] for j in range(FEATURES)} | {"y": y.astype(np.int8)}
    pq.write_table(pa.table(columns), path)


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


def train(client: rankwright.Client, dataset_id: str) -> tuple[float, str]:
    """Run the job; returns its seconds, and the hash of its model."""
    job = client.train(dataset_id, **JOB)
    model = job.wait()
    ends = (job.data.created_at, cast(str, job.data.finished_at))
    created, finished = map(datetime.fromisoformat, ends)
    return (finished - created).total_seconds(), model.data.artifact.sha256


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=at_least_one, default=3)
    parser.add_argument("--rows", type=at_least_one, default=ROWS)
    given = parser.parse_args()
    seconds: dict[int, float] = {}
    models = set()
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        table, state = Path(folder) / "table.parquet", Path(folder) / "state"
        write_table(table, given.rows)
        with running_service(state, ONE_THREAD) as client:
            dataset = client.upload(table, name="table", label="y", progress=False)
            for n in (1, 2):
                with more_workers(n - 1, state, client):
                    runs = [train(client, dataset.id) for _ in range(given.repeats)]
                seconds[n] = median(taken for taken, _ in runs)
                models |= {model for _, model in runs}
    print("| workers of one thread | seconds | times one |")
    print("|---|---|---|")
    for n, taken in seconds.items():
        print(f"| {n} | {taken:.1f} | {seconds[1] / taken:.2f} |")
    print(
        f"\n{len(models)} model(s) by {2 * given.repeats} jobs: the bits are the same if it is one."
    )


if __name__ == "__main__":
    main()
