"""What a table and a model cost: memory of the processes, bytes of database and files, seconds.

    python -m benchmarks.sizing [--copies 1 10] [--models 10]

Starts `rankwright serve` on an empty state. Uploads a real table (45,211 rows, 15 features), repeated as often as
`--copies` says, trains models on it with the defaults of `logitboost`, and prints a line for each size. Memory is the
peak of the proportional set size, read ten times a second.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import at_least_one
from examples.demo import running_service

TABLE = Path(__file__).parents[1] / "examples" / "data" / "bank-marketing.parquet"
MIB = 1024**2


class Memory(threading.Thread):
    """Reads the proportional set size of the processes of a state folder until it is told to stop."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._mark = f"RANKWRIGHT_STATE_DIR={folder}".encode()
        self._stop_reading = threading.Event()
        self.most: Counter[str] = Counter()

    def run(self) -> None:
        """Read ten times a second."""
        while not self._stop_reading.wait(0.1):
            sums = self.read()
            sums["all"] = sum(sums.values())
            for name, size in sums.items():
                self.most[name] = max(self.most[name], size)

    def read(self) -> Counter[str]:
        """Return the bytes of each process now, by its module."""
        sums: Counter[str] = Counter()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark not in (entry / "environ").read_bytes().split(b"\0"):
                    continue
                words = (entry / "cmdline").read_text().split("\0")
                lines = (entry / "smaps_rollup").read_text().splitlines()
            except OSError:
                continue  # it has ended, or is another user's
            name = next((word for word in words if word.startswith(("app.", "workers"))), words[0])
            sums[name] += sum(int(x.split()[1]) for x in lines if x.startswith("Pss:")) * 1024
        return sums

    def end(self) -> None:
        """Stop reading."""
        self._stop_reading.set()
        self.join()


def measure(state: Path, http: httpx.Client, copies: int, models: int) -> list[str]:
    """Upload, train and score; return the cells of a line."""
    table = pa.concat_tables([pq.read_table(TABLE)] * copies)
    file = state.parent / f"table-{copies}.parquet"
    pq.write_table(table, file)
    before = _stored(state)
    started = time.perf_counter()
    params = {"name": f"bank-{copies}", "label": "subscribed", "positive": "yes"}
    made = http.post(
        "/v1/datasets",
        params=params,
        content=file.read_bytes(),
        headers={"Content-Type": "application/vnd.apache.parquet"},
    )
    dataset = _ready(http, f"/v1/datasets/{made.raise_for_status().json()['id']}", "status")
    upload_seconds = time.perf_counter() - started
    files_of_table = _stored(state)["files"] - before["files"]
    memory = Memory(state)
    memory.start()
    seconds = []
    job = {"dataset_id": dataset["id"], "name": f"bank-{copies}", "baselines": False}
    first = _stored(state)
    for seed in range(models):
        started = time.perf_counter()
        asked = job | {"algorithm": {"name": "logitboost"}, "seed": seed}
        answer = http.post("/v1/jobs", json=asked).raise_for_status().json()
        ended = _ready(http, f"/v1/jobs/{answer['id']}", "state")
        if ended["state"] != "succeeded":
            sys.exit(f"the job failed: {ended['error']}")
        seconds.append(time.perf_counter() - started)
    memory.end()
    last = _stored(state)
    fit = max((size for name, size in memory.most.items() if name == "workers.child"), default=0)
    per_model = {name: (last[name] - first[name]) / models for name in last}
    return [
        f"{table.num_rows:,}",
        f"{file.stat().st_size / MIB:.1f}",
        f"{upload_seconds:.1f}",
        f"{files_of_table / MIB:.1f}",
        f"{sorted(seconds)[len(seconds) // 2]:.1f}",
        f"{fit / MIB:.0f}",
        f"{memory.most['all'] / MIB:.0f}",
        f"{per_model['database'] / 1024:.0f}",
        f"{per_model['files'] / 1024:.0f}",
    ]


def _ready(http: httpx.Client, path: str, member: str) -> Any:
    while True:
        found = http.get(path).raise_for_status().json()
        if found[member] not in ("processing", "queued", "running", "waiting"):
            return found
        time.sleep(0.05)


def _stored(state: Path) -> dict[str, int]:
    """Return the bytes of the database without its log, and of the blobs."""
    database = (state / "rankwright.db").stat().st_size
    blobs = (each for each in (state / "blobs").rglob("*") if "staging" not in each.parts)
    return {
        "database": database,
        "files": sum(each.stat().st_size for each in blobs if each.is_file()),
    }


def main() -> None:
    """Measure each size, and print the table."""
    parser = argparse.ArgumentParser(description="What does a table or a model cost?")
    parser.add_argument("--copies", type=at_least_one, nargs="+", default=[1, 10])
    parser.add_argument("--models", type=at_least_one, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankwright-sizing-") as folder:
        state = Path(folder, "state")
        with running_service(state) as api:
            secret = (state / "api-key").read_text().strip()
            headers = {"Authorization": f"Bearer {secret}"}
            with httpx.Client(base_url=api.url, headers=headers, timeout=600) as http:
                print(
                    "| rows | file, MB | seconds until ready | stored files, MB | seconds per model | fit, MB | "
                    "all processes, MB | database per model, kB | files per model, kB |"
                )
                print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
                for copies in given.copies:
                    print(f"| {' | '.join(measure(state, http, copies, given.models))} |")


if __name__ == "__main__":
    main()
