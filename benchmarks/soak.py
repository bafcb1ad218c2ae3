"""A service under load for a long time: `python -m benchmarks.soak --minutes 30 --clients 16`.

Starts `rankwright serve` and lets clients upload tables, train, score, judge and clean up behind them for so long, each
in an order of its own, as fast as the service answers. 429 and 503 with `Retry-After` are answers, and waited for;
anything else that is not success is an error. The private memory of each process is read once a second: its median in
the last fifth of the time beside that in the second fifth says whether it grows.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx
import numpy as np
import pandas as pd

from benchmarks import at_least_one
from examples.demo import running_service

FEATURES = [f"x{j}" for j in range(10)]
MIB = 1024**2


def make_table(rows: int, seed: int) -> bytes:
    """Return a table of ten features, different for each seed, because equal bytes would share a file."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, len(FEATURES)))
    y = (X[:, :3].sum(1) + rng.normal(size=rows) > 1).astype(int)
    out = io.StringIO()
    pd.DataFrame(X.round(4), columns=FEATURES).assign(y=y).to_csv(out, index=False)
    return out.getvalue().encode()


class Client(threading.Thread):
    """A client that uses the service without a pause."""

    def __init__(self, number: int, url: str, secret: str, end: float) -> None:
        super().__init__()
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []
        self.told_to_wait = 0
        self._rng = random.Random(number)
        self._number = number
        self._rounds = 0
        self._end = end
        headers = {"Authorization": f"Bearer {secret}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=120)

    def run(self) -> None:
        """Go round until the time is over."""
        with self._http:
            while time.monotonic() < self._end:
                self._rounds += 1
                try:
                    self._round()
                except (httpx.HTTPError, KeyError, ValueError) as error:
                    self.errors.append(f"{type(error).__name__}: {error}")

    def _round(self) -> None:
        seed = self._number * 10**6 + self._rounds
        table = make_table(self._rng.choice([200, 1000, 5000]), seed)
        dataset = self._ask(
            "upload",
            "POST",
            "/v1/datasets",
            params={"name": "soak", "label": "y", "positive": "1"},
            headers={"Content-Type": "text/csv", "Prefer": "wait=60"},
            content=table,
        )
        body = {
            "dataset_id": dataset["id"],
            "name": f"soak-{self._number}",
            "algorithm": {
                "name": self._rng.choice(["rankboost", "treerank", "auc_svm", "logistic"])
            },
            "baselines": False,
        }
        job = self._ask("train", "POST", "/v1/jobs", headers={"Prefer": "wait=60"}, json=body)
        while job["state"] in ("queued", "running"):
            time.sleep(0.2)
            job = self._ask("look", "GET", f"/v1/jobs/{job['id']}")
        if job["state"] != "succeeded":
            raise ValueError(f"job {job['id']} has {job['state']}: {job['error']}")
        address = f"/v1/models/{job['output']['id']}"
        for _ in range(self._rng.randrange(50)):
            row = {name: f"{self._rng.gauss(0, 1):.3f}" for name in FEATURES}
            self._ask("score", "GET", f"{address}/score", params=row)
        rows = {"columns": FEATURES, "data": [[0.5] * len(FEATURES)] * 1000}
        self._ask("score 1,000", "POST", f"{address}/score", json=rows)
        self._ask("metrics", "GET", f"{address}/metrics")
        evaluated = {"model": job["output"]["id"], "dataset_id": dataset["id"]}
        wait = {"Prefer": "wait=60"}
        evaluation = self._ask("evaluate", "POST", "/v1/evaluations", headers=wait, json=evaluated)
        while evaluation["status"] == "processing":
            time.sleep(0.2)
            evaluation = self._ask("look", "GET", f"/v1/evaluations/{evaluation['id']}")
        for path in (
            f"/v1/evaluations/{evaluation['id']}",
            address,
            f"/v1/datasets/{dataset['id']}",
        ):
            self._ask("delete", "DELETE", path)

    def _ask(self, what: str, method: str, path: str, **given: Any) -> Any:
        while True:
            started = time.perf_counter()
            answer = self._http.request(method, path, **given)
            if answer.status_code in (429, 503) and "Retry-After" in answer.headers:
                self.told_to_wait += 1
                time.sleep(float(answer.headers["Retry-After"]))
                continue
            self.seconds[what].append(time.perf_counter() - started)
            if not answer.is_success:
                raise ValueError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
            return answer.json() if answer.content else None


class Memory(threading.Thread):
    """Reads the private memory of the processes of a folder's service, once a second."""

    def __init__(self, folder: Path, end: float) -> None:
        super().__init__()
        self.read: defaultdict[str, list[float]] = defaultdict(list)
        self._mark = f"RANKWRIGHT_STATE_DIR={folder}".encode()
        self._end = end

    def run(self) -> None:
        """Read until the time is over."""
        while time.monotonic() < self._end:
            sums: Counter[str] = Counter()
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    if self._mark in (entry / "environ").read_bytes().split(b"\0"):
                        module, *rest = (entry / "cmdline").read_text().split("\0")[2:]
                        name = rest[0] if module == "app.cli" else module
                        sums[name] += _private_bytes(entry)
                except OSError:
                    continue  # it has ended
            for name, size in sums.items():
                self.read[name].append(size / MIB)
            time.sleep(1)


def _private_bytes(entry: Path) -> int:
    lines = (entry / "smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def report(clients: list[Client], memory: Memory) -> None:
    """Print what the clients saw, and what the processes held."""
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for client in clients:
        for what, taken in client.seconds.items():
            seconds[what] += taken
    if not seconds:
        sys.exit("no request was answered: nothing was measured")
    print("\n| request | count | median, ms | p99, ms |\n|---|---:|---:|---:|")
    for what, taken in sorted(seconds.items()):
        p99 = quantiles(taken, n=100)[-1] if len(taken) > 1 else taken[0]
        print(f"| {what} | {len(taken):,} | {median(taken) * 1e3:.1f} | {p99 * 1e3:.1f} |")
    errors = [error for client in clients for error in client.errors]
    waits = sum(client.told_to_wait for client in clients)
    print(f"\n{len(errors)} errors; told to wait {waits} times\n")
    for error in errors[:20]:
        print(f"- {error}")
    print("| process | MB in the second fifth | in the last | most |\n|---|---:|---:|---:|")
    for name, read in sorted(memory.read.items()):
        fifth = max(len(read) // 5, 1)
        early, late = median(read[fifth : 2 * fifth] or read), median(read[-fifth:])
        print(f"| {name} | {early:.0f} | {late:.0f} | {max(read):.0f} |")


def main() -> None:
    """Run the clients, and print the report."""
    parser = argparse.ArgumentParser(description="Does it stay well under load?")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=at_least_one, default=16)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankwright-soak-") as folder:
        state = Path(folder, "state")
        with running_service(state) as api:
            secret = (state / "api-key").read_text().strip()
            end = time.monotonic() + 60 * arguments.minutes
            clients = [Client(number, api.url, secret, end) for number in range(arguments.clients)]
            memory = Memory(state, end)
            for thread in (*clients, memory):
                thread.start()
            for thread in (*clients, memory):
                thread.join()
        report(clients, memory)


if __name__ == "__main__":
    main()
