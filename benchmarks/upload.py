"""A long table streamed to the API: its memory, and its rate beside the disk's: `python -m benchmarks.upload`.

    python -m benchmarks.upload [--megabytes 5000] [--repeats 3] [--folder DIR]

One uvicorn process with default settings but for the longest upload takes a CSV that is made on the fly, and answers
once it is on disk. Memory is what its resident size grows by, looked at every 20 ms, after a first small upload. In
turns with it `dd` writes as many zeros to the same disk with fsync. No worker runs: nothing but the upload is measured.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from app.db import migrate
from app.infra.settings import Settings
from app.main import open_context
from app.services import keys
from benchmarks.http_score import HOST, free_port

MB = 1_000_000
COLUMNS = 30


def make_block() -> bytes:
    """Make about a megabyte of rows."""
    X = np.random.Generator(np.random.Philox(5)).normal(size=(4_400, COLUMNS))
    lines = [",".join(f"{v:.4f}" for v in row) + f",{i % 2}\n" for i, row in enumerate(X.tolist())]
    return "".join(lines).encode()


def send(port: int, secret: str, size: int, block: bytes) -> float:
    """Upload rows of about so many bytes; returns the seconds until the answer."""
    header = ",".join([f"x{i}" for i in range(COLUMNS)] + ["y"]).encode() + b"\n"
    count = max(1, size // len(block))

    def body() -> Iterator[bytes]:
        yield header
        for _ in range(count):
            yield block

    connection = http.client.HTTPConnection(HOST, port)
    start = time.perf_counter()
    said = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "text/csv",
        "Content-Length": str(len(header) + count * len(block)),
    }
    connection.request("POST", "/v1/datasets?label=y", body(), said)
    answer = connection.getresponse()
    text = answer.read()
    seconds = time.perf_counter() - start
    connection.close()
    if answer.status != 202:
        raise RuntimeError(f"{answer.status}: {text.decode()}")
    return seconds


def write_with_dd(folder: Path, size: int) -> float:
    """Write so many bytes; returns the seconds until they are on disk."""
    target = folder / "dd"
    megabytes = max(1, size // (1 << 20))
    command = ["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={megabytes}", "conv=fsync"]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds = (time.perf_counter() - start) * size / (megabytes << 20)
    target.unlink()
    return seconds


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


def measure(
    folder: Path, port: int, server: int, secret: str, size: int, repeats: int
) -> tuple[list[float], list[float], list[int]]:
    """Upload and write in turns; returns the seconds of both, and how much the server grew."""
    block = make_block()
    send(port, secret, 20 * MB, block)
    uploads, writes, growth = [], [], []
    for _ in range(repeats):
        with Watch(server) as watch:
            uploads.append(send(port, secret, size, block))
        growth.append(watch.peak - watch.idle)
        for file in (folder / "blobs" / "uploads").rglob("*"):
            if file.is_file():
                file.unlink()
        writes.append(write_with_dd(folder, size))
    return uploads, writes, growth


def main() -> None:
    """Serve, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    args = parser.parse_args()
    size = args.megabytes * MB
    with tempfile.TemporaryDirectory(prefix="rankwright-bench-", dir=args.folder) as name:
        folder = Path(name)
        settings = Settings(state_dir=folder)
        migrate.upgrade(settings.sqlalchemy_url)
        context = open_context(settings)
        _, secret = keys.create(context.db, "bench", "bench", ["train"])
        context.db.close()
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.http_score", "--serve", name, str(port)]
        environment = os.environ | {"RANKWRIGHT_MAX_UPLOAD_BYTES": str(size + 100 * MB)}
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            try:
                wait_for(port, process)
                found = measure(folder, port, process.pid, secret, size, args.repeats)
            finally:
                process.terminate()
                process.wait()
    uploads, writes, growth = found
    ratio = median(write / upload for write, upload in zip(writes, uploads, strict=True))
    print(f"{args.megabytes:,} MB, medians of {args.repeats}\n")
    print("| | MB/s |\n|---|---:|")
    print(f"| upload | {size / MB / median(uploads):,.0f} |")
    print(f"| dd, fsync | {size / MB / median(writes):,.0f} |")
    print(f"| upload / dd | {ratio:.0%} |\n")
    print(f"The API grew by {max(growth) / MB:.0f} MB at most.")


if __name__ == "__main__":
    main()
