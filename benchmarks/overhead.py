"""The overhead of a fit as a job: `python -m benchmarks.overhead`.

One fit of some ten seconds (RankBoost on trees, 200,000 × 30 numbers, one thread) in a process that does nothing else,
and then as a job of `rankwright serve`: with heartbeats, progress once a second, the looks for a cancel and at memory
ten times a second, SQL for all of that on the same machine, and a callback after every round. They take turns, and
the service runs only for the job. The last row makes a checkpoint as often as its bound allows, where 60 s are usual.

Two runs of one fit differ by several per cent on a machine that is shared, so the parts are measured one by one:

- telling: the seconds that the fit spends in the callback and what feeds it, by the clock;
- rounds: those of the job and of the bare fit are the same work. Of each the quieter half of its times in all runs is
  averaged, and these are summed up: what is left is how fast the process itself runs, its memory and its threads;
- the other processes: one long job, while all other processes of the service are stopped and let go on by turns; what
  they take from it is missing in its rounds a second. Nearly an upper bound: what falls due meanwhile is made up for.

Reading the table, judging and storing come beside the fit.
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
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rankwright import types
from rankwright.resources import Job

from app.datasets.matrices import Columns, read_table
from benchmarks import rounds
from benchmarks.many_jobs import ONE_THREAD
from benchmarks.stumps import make_data
from core import RankBoost, save
from examples.demo import running_service
from tests.chaos import inside, processes
from workers.fit_process import environment_of_fit

ROWS, FEATURES, ROUNDS = 200_000, 30, 1_600
NAMES = [f"x{j}" for j in range(FEATURES)]
JOBS: dict[str, dict[str, str]] = {
    "as a job": {},
    "as a job, checkpoints all the time": {"RANKWRIGHT_CHECKPOINT_SECONDS": "0.001"},
}
PHASE_SECONDS = 4.0
SETTLE_SECONDS = 0.5
"""After a change of phase: what fell due meanwhile is done."""
LONG = 100_000
"""Rounds of the long job: as many as a job may have, and more than it has time for."""
OTHERS = {"serve", "api", "worker", "broker"}


def fit_bare(path: Path, recorded: Path, n_rounds: int) -> dict[str, Any]:
    """Fit as the job does, and nothing else; its seconds, and the hash of the model."""
    table = read_table(path, Columns(NAMES, "y", None, None))
    few = table.take(np.arange(2_000))  # loads the kernels
    RankBoost(n_rounds=2, weak_ranker="tree").fit(few.coded, few.y)
    ranker = RankBoost(n_rounds=n_rounds, weak_ranker="tree")
    rounds.record(recorded)
    started = time.perf_counter()
    ranker.fit(table.coded, table.y, table.weight)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "model": hashlib.sha256(save(ranker)).hexdigest()}


def run_bare(folder: Path, path: Path, n_rounds: int) -> dict[str, Any]:
    """The same in a process of its own, with the environment of a fit process; and the times of its rounds."""
    began, recorded = time.monotonic(), folder / "bare-rounds"
    command = [sys.executable, "-m", "benchmarks.overhead", "--bare", str(path), str(recorded)]
    done = subprocess.run(
        [*command, "--rounds", str(n_rounds)],
        env=environment_of_fit(os.environ, threads=1),
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told | {"rounds": rounds.read(recorded, began)}


@contextmanager
def job_under_way(
    folder: Path, path: Path, n_rounds: int, environment: Mapping[str, str]
) -> Iterator[Job]:
    """The fit as a job of a service that runs for it alone; it is in the queue when the block begins."""
    variables = {**ONE_THREAD, **rounds.environment(folder / "rounds"), **environment}
    # Marks its processes, so that they can be found; nothing else reads it.
    variables[inside.FOLDER] = str(folder)
    with running_service(folder / "state", variables) as client:
        dataset = client.upload(path, name="table", label="y", progress=False)
        yield client.train(
            dataset,
            "rankboost",
            weak_ranker="tree",
            n_rounds=n_rounds,
            validation={"method": "none"},
        )


def run_job(
    folder: Path, path: Path, n_rounds: int, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The fit as a job; seconds of the fit and of the whole job, and the times of its rounds."""
    began = time.monotonic()
    with job_under_way(folder, path, n_rounds, environment) as job:
        model = job.wait().data
    ends = (cast(str, job.data.started_at), cast(str, job.data.finished_at))
    started, finished = map(datetime.fromisoformat, ends)
    return {
        "seconds": model.fit_seconds,
        "whole": (finished - started).total_seconds(),
        "model": model.artifact.sha256,
        "rounds": rounds.read(folder / "rounds", began)[-n_rounds:],  # the warm-up fits, too
    }


def taken_from_outside(folder: Path, path: Path, n_pairs: int) -> list[float]:
    """Return the other processes' cost to a fit: the fraction of rounds missing, for each pair of phases."""
    # The table has the cost of checkpoints; those of so many rounds would be greater than any other fit's.
    with job_under_way(folder, path, LONG, {"RANKWRIGHT_CHECKPOINT_SECONDS": "0"}) as job:
        while _still_runs(job).progress is None:
            time.sleep(0.5)
        time.sleep(PHASE_SECONDS)
        found = [one for one in processes.running(folder) if one.role != "child"]
        if missing := OTHERS - {one.role for one in found}:
            sys.exit(f"no process was found of {', '.join(sorted(missing))}")
        others = [one.pid for one in found]
        phases = []
        try:
            for pair in range(n_pairs):
                for stopped in (pair % 2 == 0, pair % 2 == 1):  # neither is always the first
                    phases.append((pair, stopped, *_phase(others, stopped)))
        finally:
            for pid in others:
                processes.send(pid, signal.SIGCONT)
        _still_runs(job)
        job.cancel()
    times = rounds.read(folder / "rounds", phases[0][2])[:, 0]
    paces = {(pair, stopped): _pace(times, start, end) for pair, stopped, start, end in phases}
    return [1.0 - paces[pair, False] / paces[pair, True] for pair in range(n_pairs)]


def _still_runs(job: Job) -> types.Job:
    now = job.refresh()
    if now.finished_at is not None:
        sys.exit(f"the long job has {now.state}, which is too early: {now.error}")
    return now


def _phase(others: list[int], stopped: bool) -> tuple[float, float]:
    for pid in others:
        processes.send(pid, signal.SIGSTOP if stopped else signal.SIGCONT)
    time.sleep(SETTLE_SECONDS)
    start = time.monotonic()
    time.sleep(PHASE_SECONDS)
    return start, time.monotonic()


def _pace(times: np.ndarray, start: float, end: float) -> float:
    """Rounds a second between two of them."""
    during = times[(times >= start) & (times <= end)]
    return (len(during) - 1) / float(during[-1] - during[0])


def compare(folder: Path, path: Path, n_rounds: int, repeats: int) -> None:
    """Print how long the fit takes bare and as a job, and how long it spends on reporting."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ("bare", *JOBS)}
    for repeat in range(repeats):
        turn = repeat % len(runs)  # no one of them is always the first
        for name in [*runs][turn:] + [*runs][:turn]:
            if name in JOBS:
                runs[name].append(run_job(folder, path, n_rounds, JOBS[name]))
            else:
                runs[name].append(run_bare(folder, path, n_rounds))
    bare = between(runs["bare"])
    print(
        "| fit | seconds | over bare, median of pairs | least to most | rounds over bare | telling, % "
        "| seconds beside it |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, each in runs.items():
        seconds = [one["seconds"] for one in each]
        ratios = [
            one / one_bare["seconds"] for one, one_bare in zip(seconds, runs["bare"], strict=True)
        ]
        told = [100 * np.diff(one["rounds"]).sum() / one["seconds"] for one in each]
        beside = [one["whole"] - one["seconds"] for one in each if "whole" in one]
        print(
            f"| {name} | {median(seconds):.2f} | {median(ratios):.3f} | {min(ratios):.3f} to {max(ratios):.3f} "
            f"| {ratio(between(each), bare) if name in JOBS else 1} "
            f"| {median(told):.2f} | {f'{median(beside):.2f}' if beside else ''} |"
        )
    models = {one["model"] for each in runs.values() for one in each}
    print(f"\n{len(models)} model(s) by all of them: the bits are the same if it is one.")


def between(runs: list[dict[str, Any]]) -> np.ndarray:
    """The seconds of each round from the second one on, without the telling: shape (n_runs, n_rounds - 1)."""
    return np.array([run["rounds"][1:, 0] - run["rounds"][:-1, 1] for run in runs])


def ratio(job: np.ndarray, bare: np.ndarray) -> str:
    """The job's `quiet` time as a multiple of the bare one's, with its standard error by the jackknife."""
    n = len(job)
    without = [quiet(np.delete(job, i, 0)) / quiet(np.delete(bare, i, 0)) for i in range(n)]
    error = ((n - 1) * np.var(without)) ** 0.5
    return f"{quiet(job) / quiet(bare):.4f} ± {error:.4f}"


def quiet(times: np.ndarray) -> float:
    """The sum over rounds of the mean of the lower half of their times, shape (n_runs, n_rounds)."""
    half = -(-len(times) // 2)
    return float(np.sort(times, axis=0)[:half].mean(axis=0).sum())


def mean_of(values: list[float]) -> str:
    """The mean and its standard error."""
    return f"{fmean(values):.2f} ± {stdev(values) / len(values) ** 0.5:.2f}"


def main() -> None:
    """Print a table, and a line on the other processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9, help="fits of each kind; 0: none")
    parser.add_argument("--pairs", type=int, default=50, help="pairs of phases; 0: none")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--bare", type=Path, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name in ("repeats", "pairs"):
        if (n := getattr(given, name)) < 0 or n == 1:
            parser.error(f"--{name} must be 0 or at least 2, as one has no error; got {n}")
    if not (given.repeats or given.pairs or given.bare):
        parser.error("--repeats and --pairs are both 0: nothing would be measured")
    if given.bare is not None:
        path, recorded = given.bare
        print(json.dumps(fit_bare(path, recorded, given.rounds)))
        return
    with tempfile.TemporaryDirectory(prefix="rw-") as name:
        folder = Path(name)
        path = folder / "table.parquet"
        X, y = make_data(given.rows, FEATURES, seed=0)
        columns = dict(zip(NAMES, X.T, strict=True)) | {"y": y.astype(np.int8)}
        pq.write_table(pa.table(columns), path)
        if given.repeats:
            compare(folder, path, given.rounds, given.repeats)
        if given.pairs:
            taken = taken_from_outside(folder, path, given.pairs)
            print(
                f"\nAll other processes take {mean_of([100 * share for share in taken])} % of the rounds a "
                f"second: {given.pairs} pairs of {PHASE_SECONDS:.0f} s with and without them."
            )


if __name__ == "__main__":
    main()
