"""How soon a job starts, and how soon a table becomes scores: `python -m benchmarks.latency`.

Starts `rankwright serve` twice, each with default durability: once on its own SQLite, once on a private
PostgreSQL, and measures on the breast cancer table (569 × 30), with nothing else to do:

- submit → start: the job's `started_at - created_at`, both by the database's clock;
- upload → trained (RankBoost, 100 rounds, 25 % holdout) → scored, by the client's clock.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from benchmarks import at_least_one
from examples.demo import running_service
from examples.tumours import write_table
from tests.servers import PostgresServer

SUBMITS = 200
TOURS = 20
WAIT = {"Prefer": "wait=30"}


def tour(client: httpx.Client, table: bytes, row: dict[str, str], name: str) -> dict[str, Any]:
    """Upload, train and score once; returns the job."""
    dataset = client.post(
        "/v1/datasets",
        params={"name": name, "label": "diagnosis", "positive": "malignant"},
        headers={"Content-Type": "text/csv", **WAIT},
        content=table,
    ).json()
    job = submit(client, dataset["id"], name)
    client.get(f"/v1/models/{job['output']['id']}/score", params=row).raise_for_status()
    return job


def submit(client: httpx.Client, dataset_id: str, name: str) -> dict[str, Any]:
    """Train once and wait for the end; returns the job."""
    body = {
        "dataset_id": dataset_id,
        "name": name,
        "algorithm": {"name": "rankboost", "n_rounds": 100},
    }
    job: dict[str, Any] = client.post("/v1/jobs", json=body, headers=WAIT).json()
    assert job["state"] == "succeeded", job
    return job


def seconds(job: dict[str, Any]) -> float:
    """Return the seconds from the commit of the submit to the start of the run."""
    from datetime import datetime

    created, started = (datetime.fromisoformat(job[key]) for key in ("created_at", "started_at"))
    return (started - created).total_seconds()


def measure(
    client: httpx.Client, table: bytes, row: dict[str, str], n_submits: int, n_tours: int
) -> tuple[list[float], list[float]]:
    """Return the waits of jobs and the lengths of tours, in seconds."""
    job = tour(client, table, row, "warm-up")
    waits = [seconds(submit(client, job["dataset_id"], "again")) for _ in range(n_submits)]
    tours = []
    for _ in range(n_tours):
        started = time.perf_counter()
        tour(client, table, row, "tour")
        tours.append(time.perf_counter() - started)
    return waits, tours


@contextmanager
def databases() -> Iterator[dict[str, dict[str, str]]]:
    """The environments of the two services."""
    server = PostgresServer(durable=True)
    try:
        url = server.create("rankwright")
        yield {"SQLite": {}, "PostgreSQL": {"RANKWRIGHT_DATABASE_URL": url}}
    finally:
        server.close()


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submits", type=at_least_one, default=SUBMITS)
    parser.add_argument("--tours", type=at_least_one, default=TOURS)
    given = parser.parse_args()
    print("| database | submit → start p50 | p95 | upload → trained → scored, median |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="rankwright-bench-") as folder, databases() as variants:
        path = Path(folder) / "table.csv"
        write_table(path)
        header, first = path.read_text().splitlines()[:2]
        row = dict(zip(header.split(","), first.split(","), strict=True))
        del row["diagnosis"]
        for name, environment in variants.items():
            state = Path(folder) / name
            with (
                running_service(state, environment) as service,
                httpx.Client(base_url=service.url, timeout=90.0) as client,
            ):
                secret = (state / "api-key").read_text().strip()
                client.headers["Authorization"] = f"Bearer {secret}"
                waits, tours = measure(client, path.read_bytes(), row, given.submits, given.tours)
            p95 = quantiles(waits, n=20)[-1] if len(waits) > 1 else waits[0]
            print(
                f"| {name} | {median(waits) * 1e3:.1f} ms | {p95 * 1e3:.1f} ms "
                f"| {median(tours):.3f} s |"
            )


if __name__ == "__main__":
    main()
