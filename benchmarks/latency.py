"""The time of the paths that users take every day: `python -m benchmarks.latency [--against COMMIT]`.

It starts `rankwright serve` with default durability, on its own SQLite and on a private PostgreSQL, and measures while
nothing else runs:

- submit → start: the job's `started_at - created_at`, both by the database's clock;
- ten paths, by the client's clock (`Service.paths`): upload, training and a score of the breast cancer table (569 ×
  30), whose sum is the time from a table to a score; the same of 45,211 calls of a bank with stumps and trees; scores
  by id and by alias; all rows in one request;
- the CPU of all processes of the service in one tour of all paths, and their memory before it (PSS).

`--against COMMIT` also serves that commit's code, taken from git's archive, in the same Python environment. The two
services take turns, so other load on the machine affects both. A ratio is the median, over the turns, of this code's
seconds divided by the other's. With `--at-most R` the exit code is 1 if the ratio of any path exceeds R.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pyarrow.parquet as pq

from app.ingest.formats import ARROW, PARQUET
from benchmarks import at_least_one
from benchmarks.first_minute import weight
from benchmarks.http_bulk import as_arrow
from benchmarks.upload import cpu_of_family
from examples.demo import OUTPUT, ROOT, TABLE, running_service
from examples.tumours import write_table
from tests.servers import PostgresServer

SUBMITS = 200
TOURS = 20
WARM_UPS = 3
SCORES = 50  # one after the other, in one measurement
WAIT = {"Prefer": "wait=60"}
CALLS = as_arrow(pq.read_table(TABLE).drop_columns("subscribed"))
TOGETHER = ("upload", "job", "score")


@dataclass
class Service:
    """A running service, and what was measured on it."""

    label: str
    client: httpx.Client
    pid: int
    megabytes: float = 0.0
    waits: list[float] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: list[float] = field(default_factory=list)

    def tour(self, table: bytes, row: Mapping[str, str]) -> None:
        """Take all paths once, and note the seconds of each."""
        cpu = cpu_of_family(self.pid)
        for name, seconds in self.paths(table, row):
            self.seconds[name].append(seconds)
        self.cpu.append(cpu_of_family(self.pid) - cpu)

    def paths(self, table: bytes, row: Mapping[str, str]) -> Iterator[tuple[str, float]]:
        """Take one path after the other; yields its name and its seconds."""
        clock = _Clock()
        dataset = self.upload(table)
        yield "upload", clock.lap()
        model = self.submit(dataset)["output"]["id"]
        yield "job", clock.lap()
        self.score(model, row)
        yield "score", clock.lap()
        calls = self.upload(TABLE.read_bytes(), PARQUET, "calls", "subscribed", "yes")
        yield "upload, 45,211 rows", clock.lap()
        stumps = self.submit(calls, name="rankboost")["output"]["id"]
        yield "job with stumps, 45,211 rows", clock.lap()
        self.submit(calls, name="logitboost")
        yield "job with trees, 45,211 rows", clock.lap()
        for _ in range(SCORES):
            self.score(model, row)
        yield f"{SCORES} scores by id", clock.lap()
        for _ in range(SCORES):
            self.score("model@live", row)
        yield f"{SCORES} scores by alias", clock.lap()
        path = f"/v1/models/{stumps}/score"
        self.client.post(path, content=CALLS, headers={"Content-Type": ARROW}).raise_for_status()
        yield "45,211 scores in one request", clock.lap()
        self.client.get("/v1/models", params={"limit": 100}).raise_for_status()
        yield "list of models", clock.lap()

    def upload(
        self,
        table: bytes,
        content_type: str = "text/csv",
        name: str = "table",
        label: str = "diagnosis",
        positive: str = "malignant",
    ) -> str:
        """Upload a table; return the dataset's id."""
        response = self.client.post(
            "/v1/datasets",
            params={"name": name, "label": label, "positive": positive},
            headers={"Content-Type": content_type, **WAIT},
            content=table,
        )
        dataset_id: str = response.raise_for_status().json()["id"]
        return dataset_id

    def submit(self, dataset_id: str, name: str = "rankboost") -> dict[str, Any]:
        """Train once and wait for the end; return the job."""
        body = {
            "dataset_id": dataset_id,
            "name": "model",
            "algorithm": {"name": name, "n_rounds": 100},
            # One fit, whatever the default for small tables: the time is that of the service.
            "validation": {"method": "holdout"},
        }
        job: dict[str, Any] = self.client.post("/v1/jobs", json=body, headers=WAIT).json()
        assert job["state"] == "succeeded", job
        return job

    def point_alias(self, model: str) -> None:
        """Create the alias by which rows are scored."""
        self.client.put(
            "/v1/models/model/aliases/live",
            json={"model_id": model},
            headers={"If-None-Match": "*"},
        ).raise_for_status()

    def score(self, reference: str, row: Mapping[str, str]) -> None:
        """Score one row."""
        self.client.get(f"/v1/models/{reference}/score", params=row).raise_for_status()


class _Clock:
    """Seconds since the last lap."""

    def __init__(self) -> None:
        self._at = time.perf_counter()

    def lap(self) -> float:
        before, self._at = self._at, time.perf_counter()
        return self._at - before


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
        service.megabytes = sum(weight(service.pid).values())
        service.point_alias(service.submit(service.upload(table))["output"]["id"])
        for _ in range(WARM_UPS):
            service.tour(table, row)
        service.seconds.clear()
        service.cpu.clear()
        datasets[service.label] = service.upload(table)
    turns = list(services)
    for _ in range(n_submits):
        for service in turns:
            service.waits.append(seconds_to_start(service.submit(datasets[service.label])))
        turns.reverse()
    for _ in range(n_tours):
        for service in turns:
            service.tour(table, row)
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


def print_tables(database: str, services: Sequence[Service]) -> float:
    """Print what was measured, with the ratios of the first service to the last; return the greatest ratio."""
    print(f"\n| {database} | {' | '.join(each.label for each in services)} | ratio |")
    print(f"|---|{'---:|' * (len(services) + 1)}")
    rows = {"submit → start": [each.waits for each in services]}
    rows |= {name: [each.seconds[name] for each in services] for name in services[0].seconds}
    rows["upload, job and score"] = [
        [sum(steps) for steps in zip(*(each.seconds[name] for name in TOGETHER), strict=True)]
        for each in services
    ]
    rows["CPU of a tour"] = [each.cpu for each in services]
    worst = 0.0
    for name, measured in rows.items():
        ratio = median(a / b for a, b in zip(measured[0], measured[-1], strict=True))
        worst = max(worst, ratio)
        cells = (f"{1e3 * median(seconds):.1f} ms" for seconds in measured)
        print(f"| {name} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
    cells = (f"{each.megabytes:.0f} MB" for each in services)
    ratio = services[0].megabytes / services[-1].megabytes
    print(f"| memory before the first job | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
    return max(worst, ratio)


def main() -> None:
    """Print a table for each database."""
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
            ratios[database] = print_tables(database, services)
    if given.at_most is not None and (worst := max(ratios.values())) > given.at_most:
        sys.exit(f"each ratio must be at most {given.at_most:g}, got {worst:.3f}")


if __name__ == "__main__":
    main()
