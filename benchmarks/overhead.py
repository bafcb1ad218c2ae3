"""What a fit pays for being a job: `python -m benchmarks.overhead`.

One fit of some ten seconds (RankBoost on trees, 200,000 × 30 numbers, one thread) in a process that does nothing else,
and then as a job of `rankwright serve`: with heartbeats, progress once a second, the looks for a cancel and at memory
ten times a second, SQL for all of that on the same machine, and a callback after every round. They take turns, and
the service runs only for the job. The time of the fit within the job is compared with the bare one; reading the table,
judging and storing come beside it. The last row makes a checkpoint as often as its bound allows, where 60 s are usual.

Two runs of one fit differ by several per cent on a machine that is shared. So what a job pays is measured in its two
parts as well. Inside the fit: the seconds that it takes to tell of the rounds, by the clock. Outside it: one long job,
while all processes but its own are stopped and let go on by turns; what they take from it is missing in its rounds a
second.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np

from app.cli.api_client import ApiClient
from app.services.tables import Columns, read_table
from benchmarks import rounds
from benchmarks.fan_out import ONE_THREAD, write_table
from chaos import inside, processes
from core import RankBoost, save
from examples.demo import running_service
from workers.fit_process import environment_of_fit

ROWS, FEATURES, ROUNDS = 200_000, 30, 1_600
NAMES = [f"x{j}" for j in range(FEATURES)]
JOBS: dict[str, dict[str, str]] = {
    "as a job": {},
    "as a job, checkpoints all the time": {"RANKWRIGHT_CHECKPOINT_SECONDS": "0.001"},
}
PHASE_SECONDS = 4.0
LONG = 100_000
"""Rounds of the long job: more than it has time for."""


def fit_bare(path: Path, recorded: Path, n_rounds: int) -> dict[str, Any]:
    """Fit as the job does, and nothing else; its seconds, those spent on telling, and the hash of the model."""
    table = read_table(path, Columns(NAMES, "y", None, None))
    few = table.take(np.arange(2_000))  # loads the kernels
    RankBoost(n_rounds=2, weak_ranker="tree").fit(few.coded, few.y)
    ranker = RankBoost(n_rounds=n_rounds, weak_ranker="tree")
    rounds.record(recorded)
    began, started = time.monotonic(), time.perf_counter()
    ranker.fit(table.coded, table.y, table.weight)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "telling": telling(recorded, began),
        "model": hashlib.sha256(save(ranker)).hexdigest(),
    }


def telling(recorded: Path, since: float) -> float:
    """The seconds that the recorded rounds took to tell of."""
    return float(np.diff(rounds.read(recorded, since)).sum())


def run_bare(path: Path, recorded: Path, n_rounds: int) -> dict[str, Any]:
    """The same in a process of its own, with the environment of a fit process."""
    command = [sys.executable, "-m", "benchmarks.overhead", "--bare", str(path), str(recorded)]
    done = subprocess.run(
        [*command, "--rounds", str(n_rounds)],
        env=environment_of_fit(os.environ, threads=1),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def job_under_way(
    folder: Path, path: Path, n_rounds: int, environment: Mapping[str, str]
) -> Iterator[tuple[ApiClient, dict[str, Any]]]:
    """The fit as a job of a service that runs for it alone; it is in the queue when the block begins."""
    variables = {**ONE_THREAD, **rounds.environment(folder / "rounds"), **environment}
    # By this one its processes are found; nothing else takes note of it.
    variables[inside.FOLDER] = str(folder)
    with running_service(folder / "state", variables) as client:
        dataset = client.upload(path, {"name": "table", "label": "y"}, lambda sent: None)
        yield (
            client,
            client.request(
                "POST",
                "/v1/jobs",
                json={
                    "dataset_id": dataset["id"],
                    "algorithm": {
                        "name": "rankboost",
                        "weak_ranker": "tree",
                        "n_rounds": n_rounds,
                    },
                    "validation": {"method": "none"},
                },
            ),
        )


def run_job(
    folder: Path, path: Path, n_rounds: int, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The fit as a job; seconds of the fit, of the telling and of the whole job."""
    began = time.monotonic()
    with job_under_way(folder, path, n_rounds, environment) as (client, submitted):
        job = submitted
        while job["finished_at"] is None:
            time.sleep(0.5)
            job = client.request("GET", f"/v1/jobs/{job['id']}")
        if job["state"] != "succeeded":
            sys.exit(f"the job has {job['state']}: {job['error']}")
        model = client.request("GET", f"/v1/models/{job['model_id']}")
    started, finished = (datetime.fromisoformat(job[key]) for key in ("started_at", "finished_at"))
    return {
        "seconds": model["fit_seconds"],
        "telling": telling(folder / "rounds", began),
        "whole": (finished - started).total_seconds(),
        "model": model["artifact"]["sha256"],
    }


def taken_from_outside(folder: Path, path: Path, n_pairs: int) -> list[float]:
    """What the other processes take from a fit: of each pair of phases the share of rounds that are missing."""
    with job_under_way(folder, path, LONG, {}) as (client, job):
        while client.request("GET", f"/v1/jobs/{job['id']}")["progress"] is None:
            time.sleep(0.5)
        time.sleep(PHASE_SECONDS)
        others = [found.pid for found in processes.running(folder) if found.role != "child"]
        phases = []
        try:
            for pair in range(n_pairs):
                for stopped in (pair % 2 == 0, pair % 2 == 1):  # neither is always the first
                    phases.append((pair, stopped, *_phase(others, stopped)))
        finally:
            for pid in others:
                processes.send(pid, signal.SIGCONT)
        client.request("POST", f"/v1/jobs/{job['id']}/cancel")
    times = rounds.read(folder / "rounds", phases[0][2])[:, 0]
    paces = {(pair, stopped): _pace(times, start, end) for pair, stopped, start, end in phases}
    return [1.0 - paces[pair, False] / paces[pair, True] for pair in range(n_pairs)]


def _phase(others: list[int], stopped: bool) -> tuple[float, float]:
    for pid in others:
        processes.send(pid, signal.SIGSTOP if stopped else signal.SIGCONT)
    start = time.monotonic()
    time.sleep(PHASE_SECONDS)
    return start, time.monotonic()


def _pace(times: np.ndarray, start: float, end: float) -> float:
    """Rounds a second between two of them."""
    between = times[(times >= start) & (times <= end)]
    return (len(between) - 1) / float(between[-1] - between[0])


def compare(folder: Path, path: Path, n_rounds: int, repeats: int) -> None:
    """Print how long the fit takes bare and as a job, and how long it tells."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ("bare", *JOBS)}
    for repeat in range(repeats):
        turn = repeat % len(runs)  # no one of them is always the first
        for name in [*runs][turn:] + [*runs][:turn]:
            if name in JOBS:
                runs[name].append(run_job(folder, path, n_rounds, JOBS[name]))
            else:
                runs[name].append(run_bare(path, folder / "bare-rounds", n_rounds))
    print(
        "| fit | seconds | times bare, median of pairs | mean | least to most | telling, % | seconds beside it |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, each in runs.items():
        ratios = [
            one["seconds"] / bare["seconds"] for one, bare in zip(each, runs["bare"], strict=True)
        ]
        beside = [one["whole"] - one["seconds"] for one in each if "whole" in one]
        print(
            f"| {name} | {median(one['seconds'] for one in each):.2f} | {median(ratios):.4f} "
            f"| {mean_of(ratios, '.4f')} | {min(ratios):.4f} to {max(ratios):.4f} "
            f"| {median(100 * one['telling'] / one['seconds'] for one in each):.2f} "
            f"| {f'{median(beside):.2f}' if beside else ''} |"
        )
    models = {one["model"] for each in runs.values() for one in each}
    print(f"\n{len(models)} model(s) by all of them: the bits are the same if it is one.")


def mean_of(values: list[float], form: str) -> str:
    """The mean and its standard error."""
    return f"{fmean(values):{form}} ± {stdev(values) / len(values) ** 0.5:{form}}"


def main() -> None:
    """Print a table, and a line on what comes from outside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9, help="fits of each kind; 0: none")
    parser.add_argument("--pairs", type=int, default=60, help="pairs of phases; 0: none")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--bare", type=Path, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare is not None:
        print(json.dumps(fit_bare(*given.bare, given.rounds)))
        return
    with tempfile.TemporaryDirectory(prefix="rw-") as name:
        folder = Path(name)
        path = folder / "table.parquet"
        write_table(path, given.rows)
        if given.repeats:
            compare(folder, path, given.rounds, given.repeats)
        if given.pairs:
            taken = taken_from_outside(folder, path, given.pairs)
            print(
                f"\nAll other processes take {mean_of([100 * share for share in taken], '.2f')} % of the rounds a "
                f"second: {given.pairs} pairs of {PHASE_SECONDS:.0f} s with and without them."
            )


if __name__ == "__main__":
    main()
