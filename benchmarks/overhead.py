"""What a fit pays for being a job: `python -m benchmarks.overhead`.

One fit of some ten seconds (RankBoost on trees, 200,000 × 30 numbers, one thread) in a process that does nothing else,
and then as a job of `rankwright serve`: with heartbeats, progress once a second, the looks for a cancel and at memory
ten times a second, SQL for all of that on the same machine, and a callback after every round. They take turns, and
the service runs only for the job. The time of the fit within the job is compared with the bare one; reading the table,
judging and storing come beside it. The last row makes a checkpoint as often as its bound allows, where 60 s are usual.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from app.services.tables import Columns, read_table
from benchmarks.fan_out import ONE_THREAD, write_table
from core import RankBoost, save
from examples.demo import running_service
from workers.fit_process import environment_of_fit

ROWS, FEATURES, ROUNDS = 200_000, 30, 1_600
NAMES = [f"x{j}" for j in range(FEATURES)]


def fit_bare(path: Path, rounds: int) -> dict[str, Any]:
    """Fit as the job does, and nothing else; its seconds, and the hash of the model."""
    table = read_table(path, Columns(NAMES, "y", None, None))
    few = table.take(np.arange(2_000))  # loads the kernels
    RankBoost(n_rounds=2, weak_ranker="tree").fit(few.coded, few.y)
    ranker = RankBoost(n_rounds=rounds, weak_ranker="tree")
    started = time.perf_counter()
    ranker.fit(table.coded, table.y, table.weight)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "model": hashlib.sha256(save(ranker)).hexdigest()}


def run_bare(path: Path, rounds: int) -> dict[str, Any]:
    """The same in a process of its own, with the environment of a fit process."""
    command = [sys.executable, "-m", "benchmarks.overhead", "--bare", str(path)]
    done = subprocess.run(
        [*command, "--rounds", str(rounds)],
        env=environment_of_fit(os.environ, threads=1),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run_job(state: Path, path: Path, rounds: int, environment: dict[str, str]) -> dict[str, Any]:
    """The fit as a job of a service that runs for it alone; seconds of the fit and of the whole job."""
    with running_service(state, ONE_THREAD | environment) as client:
        dataset = client.upload(path, {"name": "table", "label": "y"}, lambda sent: None)
        job = client.request(
            "POST",
            "/v1/jobs",
            json={
                "dataset_id": dataset["id"],
                "algorithm": {"name": "rankboost", "weak_ranker": "tree", "n_rounds": rounds},
                "validation": {"method": "none"},
            },
        )
        while job["finished_at"] is None:
            time.sleep(0.5)
            job = client.request("GET", f"/v1/jobs/{job['id']}")
        if job["state"] != "succeeded":
            sys.exit(f"the job has {job['state']}: {job['error']}")
        model = client.request("GET", f"/v1/models/{job['model_id']}")
    started, finished = (datetime.fromisoformat(job[key]) for key in ("started_at", "finished_at"))
    return {
        "seconds": model["fit_seconds"],
        "whole": (finished - started).total_seconds(),
        "model": model["artifact"]["sha256"],
    }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare is not None:
        print(json.dumps(fit_bare(given.bare, given.rounds)))
        return
    jobs = {
        "as a job": {},
        "as a job, checkpoints all the time": {"RANKWRIGHT_CHECKPOINT_SECONDS": "0.001"},
    }
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ("bare", *jobs)}
    with tempfile.TemporaryDirectory(prefix="rw-") as folder:
        path, state = Path(folder) / "table.parquet", Path(folder) / "state"
        write_table(path, given.rows)
        for repeat in range(given.repeats):
            turn = repeat % len(runs)  # no one of them is always the first
            for name in [*runs][turn:] + [*runs][:turn]:
                if name in jobs:
                    runs[name].append(run_job(state, path, given.rounds, jobs[name]))
                else:
                    runs[name].append(run_bare(path, given.rounds))
    print("| fit | seconds | times bare, median of pairs | least to most | seconds beside it |")
    print("|---|---|---|---|---|")
    for name, each in runs.items():
        ratios = [
            one["seconds"] / bare["seconds"] for one, bare in zip(each, runs["bare"], strict=True)
        ]
        beside = [one["whole"] - one["seconds"] for one in each if "whole" in one]
        print(
            f"| {name} | {median(one['seconds'] for one in each):.2f} | {median(ratios):.4f} "
            f"| {min(ratios):.4f} to {max(ratios):.4f} "
            f"| {f'{median(beside):.2f}' if beside else ''} |"
        )
    models = {one["model"] for each in runs.values() for one in each}
    print(f"\n{len(models)} model(s) by all of them: the bits are the same if it is one.")


if __name__ == "__main__":
    main()
