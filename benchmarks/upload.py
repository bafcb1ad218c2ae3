"""A long table streamed to the API: its memory, and its rate beside the disk's: `python -m benchmarks.upload`.

    python -m benchmarks.upload [--megabytes 5000] [--repeats 5] [--folder DIR]

One uvicorn process with default settings but for the longest upload takes a CSV and answers once it is on disk; no
worker runs. In turns with it, either first in every other round, `dd` writes the same bytes to the same disk with
fsync, twice in a row: the second finds memory that was in use a moment ago, the first may find some that a virtual
machine has to be lent anew, which takes it many times the processor. A first round warms up. Client and `dd` read the
same file of up to 500 MB in memory, again and again. That the client keeps nobody waiting is shown by a sink, which
reads the same request, keeps nothing and answers. Memory is what the resident size of the API grows by, looked at
every 20 ms.

With `--files` a folder of Parquet files becomes one dataset, in a service of its own each time, as `rankwright serve`
starts it in an empty state folder:

    python -m benchmarks.upload --megabytes 0 --files 10 100 --rows 1000000 [--columns 8] [--slots 1] [--folder DIR]

once sent by the client, and once read where they lie (`RANKWRIGHT_FILES_DIR`). Seconds are from the first byte, or from
the naming of the folder, until the dataset is ready. CPU seconds are those of all processes of the service, and of the
client. Memory is anonymous (mapped files are not in it), looked at five times a second: the most of one process, and of
all together. Beside it readers that learn nothing about the rows read the same files and write one table.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import repeat
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rankwright

from app.access import service as keys
from app.main import open_context
from app.platform import migrate
from app.platform.settings import Settings
from app.serve.prepare import OWNER
from benchmarks import at_least_one, with_peers
from benchmarks.http_score import HOST, free_port

MB = 1_000_000
COLUMNS = 30
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Source:
    """Bytes of a table without its header, in memory and in a file, and how often they are sent."""

    rows: bytes
    file: Path
    count: int

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.count * len(self.rows)


@dataclass(frozen=True)
class Cost:
    """The cost of a run: seconds on the clock and of the processor."""

    seconds: float
    cpu: float


def make_source(folder: Path, size: int) -> Source:
    """Write rows of about 500 MB, or of a small table all: few enough runs of `dd` that their start does not count."""
    X = np.random.Generator(np.random.Philox(5)).normal(size=(4_400, COLUMNS))
    lines = [",".join(f"{v:.4f}" for v in row) + f",{i % 2}\n" for i, row in enumerate(X.tolist())]
    block = "".join(lines).encode()  # about a megabyte
    blocks = max(1, size // len(block))
    rows = block * min(blocks, 500)
    file = folder / "source"
    file.write_bytes(rows)
    return Source(rows, file, max(1, size // len(rows)))


def send(port: int, secret: str, source: Source) -> float:
    """Upload the source; returns the seconds until the answer."""
    header = ",".join([f"x{i}" for i in range(COLUMNS)] + ["y"]).encode() + b"\n"

    def body() -> Iterator[bytes]:
        yield header
        yield from repeat(source.rows, source.count)

    connection = http.client.HTTPConnection(HOST, port)
    start = time.perf_counter()
    said = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "text/csv",
        "Content-Length": str(len(header) + source.size),
    }
    connection.request("POST", "/v1/datasets?label=y", body(), said)
    answer = connection.getresponse()
    text = answer.read()
    seconds = time.perf_counter() - start
    connection.close()
    if answer.status != 202:
        raise RuntimeError(f"{answer.status}: {text.decode()}")
    return seconds


class Sink(BaseHTTPRequestHandler):
    """Reads what comes, keeps nothing, answers."""

    def do_POST(self) -> None:
        """Take one request."""
        left = int(self.headers["Content-Length"])
        buffer = memoryview(bytearray(1 << 20))
        while left:
            if not (read := self.rfile.readinto(buffer[: min(left, len(buffer))])):
                return  # the client is gone
            left -= read
        self.send_response(202)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def sink() -> Iterator[int]:
    """Serve a sink from a process of its own; yields its port."""
    with HTTPServer((HOST, 0), Sink) as server:
        process = multiprocessing.get_context("fork").Process(target=server.serve_forever)
        process.start()
        try:
            yield server.server_port
        finally:
            process.terminate()
            process.join()


def measure_client(source: Source, repeats: int) -> Cost:
    """Send to a sink, to measure the client's own limit."""
    costs = []
    with sink() as port:
        for _ in range(repeats):
            before = time.process_time()
            seconds = send(port, "", source)
            costs.append(Cost(seconds, time.process_time() - before))
    return middle(costs)


def write_with_dd(folder: Path, source: Source) -> Cost:
    """Write the source to disk."""
    target = folder / "dd"
    command = ["dd", f"if={source.file}", f"of={target}", "bs=1M", "oflag=append"]
    before, start = children_cpu(), time.perf_counter()
    for left in reversed(range(source.count)):
        # The last call writes the whole file through to the disk.
        conversion = "conv=notrunc" if left else "conv=notrunc,fsync"
        subprocess.run([*command, conversion], check=True, capture_output=True)
    cost = Cost(time.perf_counter() - start, children_cpu() - before)
    target.unlink()
    return cost


def children_cpu() -> float:
    """CPU seconds of child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def middle(costs: list[Cost]) -> Cost:
    """The medians."""
    return Cost(median(cost.seconds for cost in costs), median(cost.cpu for cost in costs))


class Watch:
    """Looks at the resident size of a process until the block ends."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.idle = self._resident()
        self.peak = self.idle

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.02):
            self.peak = max(self.peak, self._resident())

    def _resident(self) -> int:
        found = re.search(r"VmRSS:\s+(\d+) kB", self._status.read_text())
        return 1024 * int(found[1]) if found else 0


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens."""
    while process.poll() is None:
        try:
            http.client.HTTPConnection(HOST, port).connect()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


@dataclass
class Found:
    """The cost of the rounds, and the server's growth in each."""

    uploads: list[Cost]
    writes: list[Cost]
    rewrites: list[Cost]
    growth: list[int]


def measure(
    folder: Path, port: int, server: int, secret: str, source: Source, repeats: int
) -> Found:
    """Upload and write in turns."""
    found = Found([], [], [], [])

    def upload() -> None:
        before = cpu_of(server)
        with Watch(server) as watch:
            seconds = send(port, secret, source)
        found.uploads.append(Cost(seconds, cpu_of(server) - before))
        found.growth.append(watch.peak - watch.idle)
        for file in (folder / "blobs" / "uploads").rglob("*"):
            if file.is_file():
                file.unlink()

    def write() -> None:
        found.writes.append(write_with_dd(folder, source))
        found.rewrites.append(write_with_dd(folder, source))

    for i in range(1 + repeats):
        for step in (upload, write) if i % 2 else (write, upload):
            os.sync()  # do not wait for what other processes have yet to write
            step()
    return Found(found.uploads[1:], found.writes[1:], found.rewrites[1:], found.growth[1:])


@contextmanager
def api(folder: Path, longest: int) -> Iterator[tuple[int, int, str]]:
    """Serve the API on this folder; yields its port, its process id and a key."""
    settings = Settings(state_dir=folder)
    migrate.upgrade(settings.sqlalchemy_url)
    context = open_context(settings)
    _, secret = context.db.writing(keys.create, "bench", "bench", ["train"])
    context.db.close()
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.http_score", "--serve", str(folder), str(port)]
    environment = os.environ | {"RANKWRIGHT_MAX_UPLOAD_BYTES": str(longest)}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            wait_for(port, process)
            yield port, process.pid, secret
        finally:
            process.terminate()
            process.wait()


def shares(writes: list[Cost], uploads: list[Cost]) -> str:
    """How fast uploads are beside writes, pair by pair: the median, the least and the greatest."""
    pairs = zip(writes, uploads, strict=True)
    ratios = [write.seconds / upload.seconds for write, upload in pairs]
    return f"{median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})"


def report(source: Source, client: Cost, found: Found) -> None:
    """Print the tables."""
    rows = {
        "upload": middle(found.uploads),
        "dd, fsync": middle(found.writes),
        "dd, fsync, once more": middle(found.rewrites),
        "the client alone, into a sink": client,
    }
    print(f"{source.size / MB:,.0f} MB, medians of {len(found.uploads)} rounds\n")
    print("| | MB/s | CPU s per GB |\n|---|---:|---:|")
    for name, cost in rows.items():
        print(
            f"| {name} | {source.size / MB / cost.seconds:,.0f} | {cost.cpu * 1e9 / source.size:.2f} |"
        )
    print(f"| upload / dd | {shares(found.writes, found.uploads)} | |")
    print(f"| upload / dd once more | {shares(found.rewrites, found.uploads)} | |\n")
    print(f"The API grew by {max(found.growth) / MB:.0f} MB at most.")


# --- a folder of many files ----------------------------------------------------------------------

SETTLED_SECONDS = 600.0
LOOK_SECONDS = 0.2
WORDS = ("one year", "two years", "month to month", "none", "trial", "other")
_READ = """
import resource, sys
from pathlib import Path
files, target = sorted(map(str, Path(sys.argv[1]).glob("*.parquet"))), sys.argv[2]
{read}
used = resource.getrusage(resource.RUSAGE_SELF)
most = next(l for l in open("/proc/self/status") if l.startswith("VmHWM:"))
print(used.ru_utime + used.ru_stime, int(most.split()[1]) * 1024 / 1e6)
"""
_READERS = {
    "pyarrow.dataset, into one file": """
import pyarrow.dataset as ds, pyarrow.parquet as pq
table = ds.dataset(files)
with pq.ParquetWriter(target, table.schema) as writer:
    for batch in table.to_batches():
        writer.write_batch(batch)
""",
    "polars, streamed into one file": """
import polars
polars.scan_parquet(files).sink_parquet(target)
""",
    "duckdb, into one file": """
import duckdb
duckdb.sql(f"copy (from read_parquet({files})) to '{target}' (format parquet)")
""",
}


def write_files(folder: Path, count: int, rows: int, columns: int) -> None:
    """Write Parquet files of numbers, some of them missing, words, dates and a label of two words."""
    folder.mkdir()
    for number in range(count):
        rng = np.random.Generator(np.random.Philox([11, number]))
        x = rng.normal(size=(columns - 3, rows))
        table = {f"x{i}": pa.array(column, mask=column > 2 - i / 4) for i, column in enumerate(x)}
        words = rng.integers(len(WORDS), size=rows, dtype=np.int32)
        table["contract"] = pa.DictionaryArray.from_arrays(
            pa.array(words, mask=rng.random(rows) < 0.03), WORDS
        ).cast(pa.string())
        days = rng.integers(8_000, 20_000, size=rows, dtype=np.int32)
        table["since"] = pa.array(days).cast(pa.date32())
        left = (rng.random(rows) < 1 / (1 + np.exp(2 - x[0]))).astype(np.int8)
        table["left"] = pa.DictionaryArray.from_arrays(pa.array(left), ["no", "yes"]).cast(
            pa.string()
        )
        pq.write_table(pa.table(table), folder / f"part-{number:04d}.parquet")


class Tree(threading.Thread):
    """Looks at a process and all that it started until the block ends; sizes in MB."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.most_of_one = self.most_of_all = 0.0

    def __enter__(self) -> Tree:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Look now and then."""
        while not self._ended.wait(LOOK_SECONDS):
            sizes = [anonymous(pid) / MB for pid in family(self._pid)]
            self.most_of_one = max(self.most_of_one, *sizes)
            self.most_of_all = max(self.most_of_all, sum(sizes))


def family(pid: int) -> list[int]:
    """Return a process and all that it has started, and these in turn."""
    found = [pid]
    for one in found:
        for listed in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, _text_of(listed).split())
    return found


def anonymous(pid: int) -> int:
    """Bytes of a process's own memory; 0 if it has ended."""
    found = re.search(r"RssAnon:\s+(\d+) kB", _text_of(Path(f"/proc/{pid}/status")))
    return 1024 * int(found[1]) if found else 0


def cpu_of_family(pid: int) -> float:
    """CPU seconds of a process and all that it started, with those that have ended."""
    ticks = 0
    for one in family(pid):
        if fields := _text_of(Path(f"/proc/{one}/stat")).rpartition(")")[2].split():
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # the process has ended


@contextmanager
def service(folder: Path, files: Path, slots: int | None) -> Iterator[tuple[int, str]]:
    """Run `rankwright serve` in an empty state folder; yields its process id and its address, once it is quiet."""
    environment = os.environ | {"RANKWRIGHT_FILES_DIR": str(files)}
    if slots is not None:
        environment["RANKWRIGHT_WORKER_SLOTS"] = str(slots)
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--state-dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout is not None
    try:
        ready = next((line for line in process.stdout if line.startswith("ready at ")), None)
        if ready is None:
            raise RuntimeError("the service did not start")
        threading.Thread(target=process.stdout.read, daemon=True).start()
        until = time.monotonic() + SETTLED_SECONDS
        time.sleep(3.0)  # a worker starts to compile some time after it is ready
        while _compiles(process.pid) and time.monotonic() < until:
            time.sleep(0.5)
        yield process.pid, ready.split()[2].rstrip(",")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _compiles(pid: int) -> bool:
    return any("workers.compile" in _text_of(Path(f"/proc/{one}/cmdline")) for one in family(pid))


@dataclass(frozen=True)
class Ingested:
    """How a folder of files became a dataset; sizes in MB."""

    rows: int
    seconds: float
    to_close: float
    """Of the seconds, those until all files had come."""
    service_cpu: float
    client_cpu: float
    most_of_one: float
    most_of_all: float
    load: float


def ingest_files(folder: Path, files: Path, slots: int | None, *, is_sent: bool) -> Ingested:
    """Make a dataset of a folder of files, in a service of its own; its state is deleted."""
    state = folder / "state"
    try:
        with service(state, files.parents[1], slots) as (pid, address):
            key = (state / "api-key").read_text().strip()
            with rankwright.Client(address, key) as client, Tree(pid) as tree:
                cpu, own, start = cpu_of_family(pid), time.process_time(), time.perf_counter()
                if is_sent:
                    dataset = client.upload(
                        files, label="left", positive="yes", wait=False, progress=False
                    )
                else:
                    upload = client.uploads.open(name="files", label="left", positive="yes")
                    upload = client.uploads.add_files(upload.id, files.name)
                    dataset = client.uploads.close(upload.id, upload.n_parts, wait=False)
                closed = time.perf_counter() - start
                dataset.wait()
                seconds = time.perf_counter() - start
                own, cpu = time.process_time() - own, cpu_of_family(pid) - cpu
                rows = dataset.data.rows
    finally:
        shutil.rmtree(state, ignore_errors=True)
    if rows is None:
        raise RuntimeError("the dataset has no rows")
    return Ingested(
        rows,
        seconds,
        closed,
        cpu,
        own,
        tree.most_of_one,
        tree.most_of_all,
        os.getloadavg()[0],
    )


def merely_read(folder: Path, files: Path) -> dict[str, tuple[float, float, float]]:
    """Read the files and write one table, each reader in a process of its own; seconds, CPU seconds, MB resident."""
    found = {}
    for name in with_peers(_READERS, {"polars": "polars", "duckdb": "duckdb"}):
        target = folder / "read.parquet"
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _READ.format(read=_READERS[name]), str(files), str(target)],
            check=True,
            capture_output=True,
            text=True,
        )
        cpu, most = map(float, done.stdout.splitlines()[-1].split())  # behind a reader's own bars
        found[name] = (time.perf_counter() - start, cpu, most)
        target.unlink()
    return found


def compare_folders(
    disk: Path, counts: Sequence[int], rows: int, columns: int, slots: int | None
) -> None:
    """Make datasets of folders of so many files, and print a table."""
    print(f"\nFolders of Parquet files, {rows:,} rows and {columns} columns each\n")
    print(
        "| files | rows | MB | | s | of it sending | CPU s | client CPU s | most MB of a process | of all | load |"
    )
    print("|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for count in counts:
        files = disk / "files" / OWNER / f"of-{count}"
        files.parent.mkdir(parents=True, exist_ok=True)
        write_files(files, count, rows, columns)
        size = sum(file.stat().st_size for file in files.iterdir()) / MB
        whole = f"| {count} | {count * rows:,} | {size:,.0f}"
        for name, is_sent in (("sent by the client", True), ("read where they lie", False)):
            os.sync()
            of = ingest_files(disk, files, slots, is_sent=is_sent)
            if of.rows != count * rows:
                raise RuntimeError(f"{of.rows} rows became of {count * rows}")
            print(
                f"{whole} | {name} | {of.seconds:.1f} | {of.to_close:.1f} | {of.service_cpu:.1f} "
                f"| {of.client_cpu:.1f} | {of.most_of_one:.0f} | {of.most_of_all:.0f} | {of.load:.1f} |",
                flush=True,
            )
        for name, (seconds, cpu, most) in merely_read(disk, files).items():
            print(
                f"{whole} | {name} | {seconds:.1f} | | {cpu:.1f} | | {most:.0f} resident | | |",
                flush=True,
            )
        shutil.rmtree(files)


def main() -> None:
    """Serve, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=5_000, help="0: no long table")
    parser.add_argument("--repeats", type=at_least_one, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    parser.add_argument("--files", type=at_least_one, nargs="*", default=[], help="of a folder")
    parser.add_argument("--rows", type=at_least_one, default=1_000_000, help="of a file")
    parser.add_argument("--columns", type=int, default=8, help="of a file, at least 4")
    parser.add_argument("--slots", type=at_least_one, help="of the worker; default: the service's")
    args = parser.parse_args()
    if args.megabytes > 0:
        compare_long_table(args.folder, args.megabytes, args.repeats)
    if args.files:
        with tempfile.TemporaryDirectory(prefix="rankwright-bench-", dir=args.folder) as disk:
            compare_folders(Path(disk), args.files, args.rows, args.columns, args.slots)


def compare_long_table(folder: Path | None, megabytes: int, repeats: int) -> None:
    """Upload a long table and write it with `dd`, and print the tables."""
    with (
        tempfile.TemporaryDirectory(prefix="rankwright-bench-", dir=MEMORY) as memory,
        tempfile.TemporaryDirectory(prefix="rankwright-bench-", dir=folder) as disk,
    ):
        source = make_source(Path(memory), megabytes * MB)
        client = measure_client(source, repeats)
        with api(Path(disk), source.size + 100 * MB) as (port, server, secret):
            found = measure(Path(disk), port, server, secret, source, repeats)
    report(source, client, found)


if __name__ == "__main__":
    main()
