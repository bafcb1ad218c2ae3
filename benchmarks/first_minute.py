"""The first minute of a new user: a fresh clone, an empty cache and the README's commands, timed.

    python -m benchmarks.first_minute [--runs 3]

Clones this repository at HEAD into a temporary folder and sets it up as `make demo` would. Then, so many times each and
told as medians: `make demo` cold and again, `rankwright serve` until it is ready, the first job of a service, what
imports and commands take, what an idle service weighs, and what all kernels take to compile. *Cold* is with neither
kernels nor bytecode of ours. How fast the machine is, `import numba` tells.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks import at_least_one
from examples.tumours import write_table

ROOT = Path(__file__).parents[1]
JOB = {"name": "cancer", "algorithm": {"name": "rankboost", "n_rounds": 200}}


class Clone:
    """A fresh clone with its environment, and a home without caches."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        self.kernels = folder / "kernels"
        self.home = folder / "home"
        self.home.mkdir()
        kept = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "PATH"))}
        self.environment = kept | {
            "HOME": str(self.home),
            "RANKWRIGHT_KERNEL_CACHE": str(self.kernels),
        }
        subprocess.run(["git", "clone", "--quiet", ROOT, self.root], check=True)
        started = time.monotonic()
        self.run(["make", ".venv/.runtime", f"PYTHON={sys.executable}"])
        self.seconds_to_install = time.monotonic() - started

    def run(self, command: list[str]) -> str:
        """Run a command in the clone; returns what it printed."""
        environment = self.environment
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def python(self, code: str) -> str:
        """Run a line of Python in the clone's environment."""
        return self.run([".venv/bin/python", "-c", code])

    def forget(self) -> None:
        """Remove the kernels and the bytecode of the clone, not that of libraries."""
        shutil.rmtree(self.kernels, ignore_errors=True)
        for package in ("app", "core", "migrations", "workers", "examples"):
            for cache in (self.root / package).rglob("__pycache__"):
                shutil.rmtree(cache)

    @contextmanager
    def service(self) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
        """A service, its address and its seconds until it was ready."""
        with tempfile.TemporaryDirectory() as state:
            started = time.monotonic()
            process = subprocess.Popen(
                [".venv/bin/rankwright", "serve", "--port", "0", "--state-dir", state],
                cwd=self.root,
                env=self.environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if line.startswith("ready at "):
                        break
                seconds = time.monotonic() - started
                key = Path(state, "api-key").read_text().strip()
                self.client = httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=300)
                with self.client:
                    yield process, line.split()[2].rstrip(","), seconds
            finally:
                process.send_signal(signal.SIGINT)
                process.wait()


def first_job(clone: Clone, address: str, table: bytes) -> float:
    """Upload breast cancer, then train 200 rounds of stumps; seconds from submission to the model."""
    query = {"name": "cancer", "label": "diagnosis", "positive": "malignant"}
    headers = {"Content-Type": "text/csv", "Prefer": "wait=60"}
    url = f"{address}/v1/datasets"
    dataset = clone.client.post(url, params=query, content=table, headers=headers).json()
    while dataset["status"] == "processing":
        dataset = clone.client.get(f"{url}/{dataset['id']}").json()
    assert dataset["status"] == "ready", dataset
    started = time.monotonic()
    url = f"{address}/v1/jobs"
    body = JOB | {"dataset_id": dataset["id"]}
    job = clone.client.post(url, json=body, headers={"Prefer": "wait=60"}).json()
    while job["state"] not in ("succeeded", "failed", "cancelled"):
        job = clone.client.get(f"{url}/{job['id']}", headers={"Prefer": "wait=60"}).json()
    assert job["state"] == "succeeded", job
    return time.monotonic() - started


def weight(pid: int) -> dict[str, float]:
    """Proportional set size of a process and all that it started, in MB, by name."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents.setdefault(int(status.read_text().rpartition(")")[2].split()[1]), []).append(
                int(status.parent.name)
            )
        except OSError:
            continue
    sizes: dict[str, float] = {}
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        waiting += parents.get(one, [])
        words = Path(f"/proc/{one}/cmdline").read_bytes().decode().split("\0")
        known = ("workers.child", "workers.compile", "workers", "api", "serve")
        name = next((name for name in known if name in words), Path(words[0]).name)
        lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        (kib,) = (int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        sizes[name] = sizes.get(name, 0.0) + kib / 1024
    return sizes


def clocked(call: Callable[[], object]) -> float:
    """Return the seconds of wall time of a call."""
    started = time.monotonic()
    call()
    return time.monotonic() - started


def cpu_of(call: Callable[[], object]) -> float:
    """Return the processor seconds of the processes that a call starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(clone: Clone, table: bytes, idle_seconds: float) -> Iterator[tuple[str, float]]:
    """All figures once."""
    demo = ["make", "demo", f"PYTHON={sys.executable}"]
    clone.forget()
    yield "make demo, everything compiled for the first time, s", clocked(lambda: clone.run(demo))
    yield "make demo, again, s", clocked(lambda: clone.run(demo))

    clone.forget()
    with clone.service() as (_, address, seconds):
        yield "serve until ready, cold, s", seconds
        yield "first job, cold, submission to model, s", first_job(clone, address, table)
    clone.run([".venv/bin/python", "-m", "workers.compile"])  # what the first job left to do
    with clone.service() as (process, address, seconds):
        yield "serve until ready, warm, s", seconds
        time.sleep(idle_seconds)
        for name, size in (sizes := weight(process.pid)).items():
            yield f"idle: {name}, MB", size
        yield "idle: all processes, MB", sum(sizes.values())
        yield "first job, warm, submission to model, s", first_job(clone, address, table)
        time.sleep(1.0)
        yield "after a first job: all processes, MB", sum(weight(process.pid).values())

    for what in ("numba", "core"):
        clone.python(f"import {what}")
        yield f"import {what}, s", clocked(lambda what=what: clone.python(f"import {what}"))  # type: ignore[misc]
    for command in ("--help", "upload --help", "train --help", "score --help"):
        words = [".venv/bin/rankwright", *command.split()]
        yield f"rankwright {command}, s", clocked(lambda words=words: clone.run(words))  # type: ignore[misc]

    shutil.rmtree(clone.kernels, ignore_errors=True)
    compile_all = [".venv/bin/python", "-m", "workers.compile", "--processes"]
    yield "all kernels, one process, CPU-s", cpu_of(lambda: clone.run([*compile_all, "1"]))
    shutil.rmtree(clone.kernels, ignore_errors=True)
    yield "all kernels, as many processes as cores, s", clocked(lambda: clone.run(compile_all[:-1]))
    yield (
        "kernels",
        float(len({path.name.rsplit(".", 4)[0] for path in clone.kernels.glob("*.kernel")})),
    )
    yield "kernels with their types", float(len(list(clone.kernels.glob("*.kernel"))))


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=at_least_one, default=3)
    parser.add_argument(
        "--idle-seconds", type=float, default=8.0, help="before an idle service is weighed"
    )
    given = parser.parse_args()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="rankwright-first-") as folder:
        write_table(Path(folder, "tumours.csv"))
        table = Path(folder, "tumours.csv").read_bytes()
        clone = Clone(Path(folder))
        found["installation (pip), s"] = [clone.seconds_to_install]
        for _ in range(given.runs):
            for name, value in measure(clone, table, given.idle_seconds):
                found.setdefault(name, []).append(value)
    print("| figure | median | runs |\n|---|---|---|")
    for name, values in found.items():
        shown = ", ".join(f"{value:.3g}" for value in values)
        print(f"| {name} | {statistics.median(values):.3g} | {shown} |")


if __name__ == "__main__":
    main()
