"""How soon a job starts, and how soon a table becomes scores: `python -m benchmarks.latency [--against COMMIT]`.

It starts `rankwright serve` with default durability, on its own SQLite and on a private PostgreSQL, and measures on the
breast cancer table (569 × 30) while nothing else runs:

- submit → start: the job's `started_at - created_at`, both by the database's clock;
- upload, job (RankBoost, 100 rounds, 25 % holdout) and score, by the client's clock, and the CPU of all processes.

`--against COMMIT` also serves that commit's code, taken from git's archive, in the same Python environment. The two
services take turns, so other load on the machine affects both. The ratio is the median, over the turns, of this code's
seconds divided by the other's. With `--at-most R` the exit code is 1 if the ratio exceeds R on any database.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

import httpx

from benchmarks import at_least_one
from benchmarks.upload import cpu_of_family
from examples.demo import OUTPUT, ROOT, running_service
from examples.tumours import write_table
from tests.servers import PostgresServer

SUBMITS = 200
TOURS = 20
WARM_UPS = 3
WAIT = {"Prefer": "wait=30"}


@dataclass(frozen=True)
class Tour:
    """Seconds of the steps of one tour, and the CPU seconds of all processes of the service."""

    upload: float
    job: float
    score: float
    cpu: float

    @property
    def total(self) -> float:
        """Seconds from the upload to the score."""
        return self.upload + self.job + self.score


@dataclass
class Service:
    """A running service, and what was measured on it."""

    label: str
    client: httpx.Client
    pid: int
    waits: list[float] = field(default_factory=list)
    tours: list[Tour] = field(default_factory=list)

    def tour(self, table: bytes, row: Mapping[str, str]) -> Tour:
        """Upload, train and score once."""
        cpu, started = cpu_of_family(self.pid), time.perf_counter()
        dataset = self.upload(table)
        uploaded = time.perf_counter()
        job = self.submit(dataset)
        trained = time.perf_counter()
        self.client.get(f"/v1/models/{job['output']['id']}/score", params=row).raise_for_status()
        scored = time.perf_counter()
        spent = cpu_of_family(self.pid) - cpu
        return Tour(uploaded - started, trained - uploaded, scored - trained, spent)

    def upload(self, table: bytes) -> str:
        """Upload the table; return the dataset's id."""
        response = self.client.post(
            "/v1/datasets",
            params={"name": "table", "label": "diagnosis", "positive": "malignant"},
            headers={"Content-Type": "text/csv", **WAIT},
            content=table,
        )
        dataset_id: str = response.raise_for_status().json()["id"]
        return dataset_id

    def submit(self, dataset_id: str) -> dict[str, Any]:
        """Train once and wait for the end; return the job."""
        body = {
            "dataset_id": dataset_id,
            "name": "model",
            "algorithm": {"name": "rankboost", "n_rounds": 100},
            # One fit, whatever the default for small tables: the time is that of the service.
            "validation": {"method": "holdout"},
        }
        job: dict[str, Any] = self.client.post("/v1/jobs", json=body, headers=WAIT).json()
        assert job["state"] == "succeeded", job
        return job


def seconds_to_start(job: Mapping[str, Any]) -> float:
    """Return the seconds from the commit of the submit to the start of the run."""
    created, started = (datetime.fromisoformat(job[key]) for key in ("created_at", "started_at"))
    return (started - created).total_seconds()


def measure(
    services: Sequence[Service], table: bytes, row: Mapping[str, str], n_submits: int, n_tours: int
) -> None:
    """Measure on each service in turn; the first of a turn is the second of the next."""
    datasets = {}
    for service in services:
        for _ in range(WARM_UPS):
            service.tour(table, row)
        datasets[service.label] = service.upload(table)
    turns = list(services)
    for _ in range(n_submits):
        for service in turns:
            service.waits.append(seconds_to_start(service.submit(datasets[service.label])))
        turns.reverse()
    for _ in range(n_tours):
        for service in turns:
            service.tours.append(service.tour(table, row))
        turns.reverse()


def archive_of(commit: str) -> bytes:
    """Return a tar file of a commit's files. Raises ValueError if git has no such commit."""
    packed = subprocess.run(
        ["git", "archive", "--format=tar", f"{commit}^{{tree}}"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if packed.returncode != 0:
        raise ValueError(f"git has no commit {commit[:100]!r}: {packed.stderr.decode().strip()}")
    return packed.stdout


def unpack(archive: bytes, folder: Path) -> Path:
    """Unpack a tar file into a folder, and return it."""
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def compile_kernels(code: Path) -> None:
    """Compile the kernels of a checkout, so that no service does so while it is measured."""
    command = [sys.executable, "-P", "-m", "workers.compile"]
    subprocess.run(command, env=os.environ | path_of(code), check=True, stdout=subprocess.DEVNULL)


def path_of(code: Path) -> dict[str, str]:
    """Return the variable that has Python import a checkout's code, rather than the installed one."""
    return {"PYTHONPATH": os.pathsep.join(map(str, (code, code / "client")))}


@contextmanager
def running(label: str, code: Path, folder: Path, database: Mapping[str, str]) -> Iterator[Service]:
    """Serve the code of a checkout on an empty state."""
    environment = {**path_of(code), **database}
    state = folder / "state"
    with (
        running_service(
            state, environment, code=code, log_file=OUTPUT / f"serve-{label}.log"
        ) as api,
        httpx.Client(base_url=api.url, timeout=90.0) as client,
    ):
        secret = (state / "api-key").read_text().strip()
        client.headers["Authorization"] = f"Bearer {secret}"
        yield Service(label, client, int((state / "lock").read_text()))


def print_row(database: str, service: Service) -> None:
    """Print what was measured on one service."""
    waits, tours = service.waits, service.tours
    p95 = quantiles(waits, n=20)[-1] if len(waits) > 1 else waits[0]
    steps = (
        median(getattr(tour, step) for tour in tours)
        for step in ("upload", "job", "score", "total")
    )
    milliseconds = (median(waits), p95, *steps, fmean(tour.cpu for tour in tours))
    cells = (database, service.label, *(f"{1e3 * each:.1f}" for each in milliseconds))
    print(f"| {' | '.join(cells)} |", flush=True)


def ratio(services: Sequence[Service]) -> float:
    """Return how long the first service's tours take, divided by the second's of the same turn."""
    ours, theirs = (service.tours for service in services)
    return median(a.total / b.total for a, b in zip(ours, theirs, strict=True))


def main() -> None:
    """Print one table, and the ratios if another commit is measured, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submits", type=at_least_one, default=SUBMITS)
    parser.add_argument("--tours", type=at_least_one, default=TOURS)
    databases = ("SQLite", "PostgreSQL")
    parser.add_argument("--databases", nargs="+", choices=databases, default=databases)
    parser.add_argument("--against", metavar="COMMIT", help="measure this commit, too, in turns")
    parser.add_argument("--at-most", type=float, metavar="R", help="the highest permitted ratio")
    given = parser.parse_args()
    if given.at_most is not None and given.against is None:
        parser.error("--at-most needs --against")
    try:
        archive = None if given.against is None else archive_of(given.against)
    except ValueError as error:
        parser.error(str(error))
    OUTPUT.mkdir(exist_ok=True)
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="rw-") as name:
        folder = Path(name)
        codes = {"here": ROOT}
        if archive is not None:
            codes[given.against] = unpack(archive, folder / "code")
        for code in codes.values():
            compile_kernels(code)
        path = folder / "table.csv"
        write_table(path)
        header, first = path.read_text().splitlines()[:2]
        row = dict(zip(header.split(","), first.split(","), strict=True))
        del row["diagnosis"]
        print("Milliseconds; CPU is that of all processes in one tour from upload to score.\n")
        print(
            "| database | code | submit → start p50 | p95 | upload | job | score | together | CPU |"
        )
        print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
        for database in given.databases:
            with ExitStack() as running_now:
                environments: list[dict[str, str]] = [{} for _ in codes]
                if database == "PostgreSQL":
                    server = running_now.enter_context(closing(PostgresServer(durable=True)))
                    environments = [
                        {"RANKWRIGHT_DATABASE_URL": server.create(f"rankwright{i}")}
                        for i in range(len(codes))
                    ]
                services = [
                    running_now.enter_context(
                        running(label, code, folder / f"{database}-{i}", environments[i])
                    )
                    for i, (label, code) in enumerate(codes.items())
                ]
                measure(services, path.read_bytes(), row, given.submits, given.tours)
            for service in services:
                print_row(database, service)
            if given.against is not None:
                ratios[database] = ratio(services)
    for database, value in ratios.items():
        print(f"\n{database}: this code takes {value:.2f} times as long as {given.against}")
    if given.at_most is not None and (worst := max(ratios.values())) > given.at_most:
        sys.exit(f"the ratio must be at most {given.at_most:g}, got {worst:.3f}")


if __name__ == "__main__":
    main()
