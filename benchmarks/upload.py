"""A long table streamed to the API: its memory, and its rate beside the disk's: `python -m benchmarks.upload`.

    python -m benchmarks.upload [--megabytes 5000] [--repeats 5] [--folder DIR]

One uvicorn process with default settings but for the longest upload takes a CSV and answers once it is on disk; no
worker runs. In turns with it, either first in every other round, `dd` writes the same bytes to the same disk with
fsync, twice in a row: the second finds memory that was in use a moment ago, the first may find some that a virtual
machine has to be lent anew, which takes it many times the processor. A first round warms up. Client and `dd` read the
same file of up to 500 MB in memory, again and again. That the client keeps nobody waiting is shown by a sink, which
reads the same request, keeps nothing and answers. Memory is what the resident size of the API grows by, looked at
every 20 ms.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import repeat
from pathlib import Path
from statistics import median

import numpy as np

from app.access import service as keys
from app.main import open_context
from app.platform import migrate
from app.platform.settings import Settings
from benchmarks import at_least_one
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


def main() -> None:
    """Serve, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=at_least_one, default=5_000)
    parser.add_argument("--repeats", type=at_least_one, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="rankwright-bench-", dir=MEMORY) as memory,
        tempfile.TemporaryDirectory(prefix="rankwright-bench-", dir=args.folder) as disk,
    ):
        source = make_source(Path(memory), args.megabytes * MB)
        client = measure_client(source, args.repeats)
        with api(Path(disk), source.size + 100 * MB) as (port, server, secret):
            found = measure(Path(disk), port, server, secret, source, args.repeats)
    report(source, client, found)


if __name__ == "__main__":
    main()
