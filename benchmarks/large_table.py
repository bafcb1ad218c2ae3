"""One large table scored by POST …/score, and by a batch score: seconds, CPU, and the most memory of each process.

    python -m benchmarks.large_table [TABLE.parquet] [--rows 500000] [--label label] [--rounds 100]

`rankwright serve` with default settings trains stumps on the first rows of a Parquet file in random order. Then the
whole table travels as one body in each format, plain, and once compressed in chunks, without a length. Beside it the
same CSV as a batch score: upload, job, result. Memory is the most that the process had since the request began (Linux:
VmHWM), and what of it is no page of a file, looked up 50 times a second. CPU is of all processes of the service.
"""

from __future__ import annotations

import argparse
import gzip
import io
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from app.ingest.formats import ARROW, CSV, NDJSON
from benchmarks import at_least_one
from benchmarks.http_bulk import as_arrow, as_csv
from benchmarks.http_score import cpu_seconds

WAIT = "wait=600"


def family(root: int) -> dict[int, str]:
    """Return the processes below one, each with its command."""
    parents, commands = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            parents[int(folder.name)] = int(stat[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: commands[pid] for pid in found}


def memory(pid: int) -> dict[str, int]:
    """Return figures of a process's memory in MiB, by the names of Linux."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    said = (line.split() for line in lines if line.startswith(("VmHWM", "VmRSS", "RssAnon")))
    return {name.rstrip(":"): int(value) // 1024 for name, value, _ in said}


class Watched:
    """The memory and the CPU of a service while something is asked of it."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._done = threading.Event()
        self._anonymous: dict[int, int] = {}

    def _look(self) -> None:
        while not self._done.wait(0.02):
            for pid in self._pids:
                try:
                    now = memory(pid).get("RssAnon", 0)
                except OSError:
                    continue
                self._anonymous[pid] = max(now, self._anonymous.get(pid, 0))

    def run(self, name: str, ask: Callable[[], int]) -> None:
        """Ask, and print what it took."""
        self._pids = family(self._root)
        for pid in self._pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
        before = {pid: memory(pid) for pid in self._pids}
        looking = threading.Thread(target=self._look)
        looking.start()
        begun, cpu = time.perf_counter(), cpu_seconds(list(self._pids))
        size = ask()
        seconds, cpu = time.perf_counter() - begun, cpu_seconds(list(self._pids)) - cpu
        self._done.set()
        looking.join()
        self._done.clear()
        most = max(self._pids, key=lambda pid: memory(pid)["VmHWM"] - before[pid]["VmRSS"])
        api = next(pid for pid, command in self._pids.items() if " api" in command)
        parts = [f"{name} | {seconds:.1f} | {cpu:.1f}"]
        for pid in (api, most):
            peak, was = memory(pid)["VmHWM"], before[pid]
            own = self._anonymous.get(pid, 0) - was["RssAnon"]
            parts.append(f"{peak} (+{peak - was['VmRSS']}; own +{max(0, own)})")
        print(f"| {' | '.join(parts)} | {size / 1e6:.0f} |", flush=True)
        self._anonymous.clear()


def pieces(body: bytes) -> Iterator[bytes]:
    """Yield a body in pieces: httpx copies what is left of a whole one with each piece that it sends."""
    for start in range(0, len(body), 1 << 20):
        yield body[start : start + (1 << 20)]


def measure(client: httpx.Client, root: int, table: pa.Table, model: str) -> None:
    """Send the table in every way."""
    text, watched = as_csv(table), Watched(root)
    ways: dict[str, tuple[str, str, bytes, str | None]] = {
        "CSV, CSV back": (CSV, CSV, text, None),
        "CSV, JSON back": (CSV, "application/json", text, None),
        "CSV by gzip in chunks, CSV back": (CSV, CSV, gzip.compress(text, 1), "gzip"),
        "Arrow of one batch, Arrow back": (ARROW, ARROW, as_arrow(table), None),
        "NDJSON, NDJSON back": (NDJSON, NDJSON, as_lines(table), None),
    }
    print(
        "| sent | seconds | CPU s | API: most MiB | largest growth | body MB |\n|---|---|---|---|---|---|"
    )
    for name, (kind, accept, body, encoding) in ways.items():
        headers = {"Content-Type": kind, "Accept": accept}
        headers |= {} if encoding is None else {"Content-Encoding": encoding}

        def post(body: bytes = body, headers: dict[str, str] = headers) -> int:
            if "Content-Encoding" not in headers:
                headers = {**headers, "Content-Length": str(len(body))}
            answer = client.post(f"/v1/models/{model}/score", content=pieces(body), headers=headers)
            answer.raise_for_status()
            return len(body)

        watched.run(name, post)

    def batch() -> int:
        answer = client.post(
            f"/v1/batch-scores?model={model}",
            content=pieces(text),
            headers={"Content-Type": CSV, "Prefer": WAIT},
        ).raise_for_status()
        found = answer.json()
        while found["status"] == "scoring":
            found = client.get(f"/v1/batch-scores/{found['id']}").json()
        address = f"/v1/batch-scores/{found['id']}/result?format=csv"
        client.get(address).raise_for_status()
        return len(text)

    watched.run("CSV as a batch score, CSV back", batch)


def as_lines(table: pa.Table) -> bytes:
    """Return a JSON object a line."""
    parts = io.BytesIO()
    for batch in table.to_batches(max_chunksize=20_000):
        parts.writelines(orjson.dumps(row) + b"\n" for row in batch.to_pylist())
    return parts.getvalue()


def drawn(n_rows: int, label: str, rng: np.random.Generator) -> pa.Table:
    """Return a table of 20 normal features, of which the first says something of the label."""
    features = {f"x{number}": rng.normal(size=n_rows) for number in range(20)}
    return pa.table(features | {label: (features["x0"] > rng.normal(size=n_rows)).astype(int)})


def main() -> None:
    """Serve, train, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, nargs="?", help="default: a drawn one")
    parser.add_argument("--rows", type=at_least_one, default=500_000, help="of a drawn table")
    parser.add_argument("--label", default="label")
    parser.add_argument("--rounds", type=at_least_one, default=100)
    parser.add_argument("--trained-on", type=at_least_one, default=100_000, help="rows")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    table = drawn(args.rows, args.label, rng) if args.table is None else pq.read_table(args.table)
    table = table.take(rng.permutation(len(table))).combine_chunks()
    with tempfile.TemporaryDirectory(prefix="rankwright-bench-") as folder:
        state = Path(folder) / "state"
        serve = ["-m", "app.cli", "serve", "--port", "0", "--state-dir", str(state)]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen([sys.executable, *serve], stdout=log, stderr=log)
        try:
            while not (state / "address").exists() or not (state / "api-key").exists():
                assert process.poll() is None, (Path(folder) / "log").read_text()
                time.sleep(0.2)
            key = (state / "api-key").read_text().strip()
            client = httpx.Client(
                base_url=(state / "address").read_text().strip(),
                headers={"Authorization": f"Bearer {key}"},
                timeout=600,
            )
            some = as_csv(table.slice(0, args.trained_on))
            said = {"Content-Type": CSV, "Prefer": WAIT}
            about = {"name": "large", "label": args.label}
            data = client.post("/v1/datasets", params=about, content=some, headers=said).json()
            algorithm = {"name": "rankboost", "n_rounds": args.rounds}
            job = {"dataset_id": data["id"], "name": "large", "algorithm": algorithm}
            trained = client.post("/v1/jobs", json=job, headers={"Prefer": WAIT}).json()
            model = trained["output"]["id"]
            client.post(f"/v1/models/{model}/score", json={"rows": []})
            measure(client, process.pid, table.drop_columns([args.label]), model)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
