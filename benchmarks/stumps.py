"""Stump boosting beside LightGBM and XGBoost: `python -m benchmarks.stumps`.

100 rounds on 1,000,000 × 30 numbers, one row in ten positive, at most 255 bins, the same threads
for all. Each fit runs in a process of its own, so that its peak memory can be told; the libraries
take turns, and medians are shown. Binning and boosting are timed apart. Ours is the public `fit`,
checks included; its binning is timed by a second call, and the rest counts as boosting.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from math import nan
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import at_least_one, shown_ratio, with_peers

Floats = npt.NDArray[np.float64]
N_ROUNDS = 100
MAX_BINS = 255
LEARNING_RATE = 0.5  # of .1, .3, .5 and 1 the best for LightGBM and XGBoost on these data


class Times(NamedTuple):
    """Seconds of both phases, what the fit added to the process's peak, and the test scores."""

    binning: float
    boosting: float
    memory: int
    scores: Floats


def make_data(n_rows: int, n_features: int, seed: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Draw columns of several shapes, and labels that depend on twelve of them; 10 % positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[:, 1::5] = np.exp(X[:, 1::5])  # skewed
    X[:, 2::5] = np.round(3 * X[:, 2::5])  # few values
    X[:, 3::5] = rng.random(X[:, 3::5].shape)
    signal = (
        X[:, 0]
        + 0.8 * np.log(X[:, 1])
        + 0.2 * X[:, 2]
        + 2 * (X[:, 3] > 0.6)
        + np.sin(2 * X[:, 4])
        + 0.5 * X[:, 5:12].sum(axis=1) / X[:, 5:12].std()
    )
    signal += 1.5 * rng.normal(size=n_rows)
    return X, (signal > np.quantile(signal, 0.9)).astype(np.int64)


def peak_memory() -> int:
    """Most bytes that this process has held so far.

    On Linux, from the process's own memory map: getrusage also counts what its parent held.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def fit_rankwright(X: Floats, y: npt.NDArray[np.int64], X_test: Floats, threads: int) -> Times:
    """Fit this library's RankBoost."""
    import numba

    from core import RankBoost
    from core.coding import fit_bins

    numba.set_num_threads(threads)
    RankBoost(n_rounds=2).fit(X[:40_000], y[:40_000])  # loads the kernels
    before = peak_memory()
    start = time.perf_counter()
    ranker = RankBoost(n_rounds=N_ROUNDS, max_bins=MAX_BINS, learning_rate=LEARNING_RATE).fit(X, y)
    total = time.perf_counter() - start
    memory = peak_memory() - before
    rows = np.concatenate([np.flatnonzero(y == 1), np.flatnonzero(y == 0)])
    start = time.perf_counter()
    fit_bins(X, rows, np.ones(len(y)), MAX_BINS)
    binning = time.perf_counter() - start
    return Times(binning, total - binning, memory, ranker.decision_function(X_test))


def fit_lightgbm(X: Floats, y: npt.NDArray[np.int64], X_test: Floats, threads: int) -> Times:
    """Fit LightGBM with two leaves."""
    import lightgbm

    parameters = {
        "objective": "binary",
        "num_leaves": 2,
        "max_bin": MAX_BINS,
        "learning_rate": LEARNING_RATE,
        "num_threads": threads,
        "verbose": -1,
    }
    before = peak_memory()
    start = time.perf_counter()
    data = lightgbm.Dataset(X, y, params=parameters).construct()
    binned = time.perf_counter()
    booster = lightgbm.train(parameters, data, N_ROUNDS)
    end = time.perf_counter()
    memory = peak_memory() - before
    return Times(binned - start, end - binned, memory, np.asarray(booster.predict(X_test)))


def fit_xgboost(X: Floats, y: npt.NDArray[np.int64], X_test: Floats, threads: int) -> Times:
    """Fit XGBoost with trees of depth 1."""
    import xgboost

    parameters = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": 1,
        "max_bin": MAX_BINS,
        "learning_rate": LEARNING_RATE,
        "nthread": threads,
    }
    before = peak_memory()
    start = time.perf_counter()
    data = xgboost.QuantileDMatrix(X, y, max_bin=MAX_BINS, nthread=threads)
    binned = time.perf_counter()
    booster = xgboost.train(parameters, data, N_ROUNDS)
    end = time.perf_counter()
    memory = peak_memory() - before
    scores = booster.predict(xgboost.DMatrix(X_test, nthread=threads))
    return Times(binned - start, end - binned, memory, scores)


LIBRARIES: dict[str, Callable[..., Times]] = {
    "rankwright": fit_rankwright,
    "lightgbm": fit_lightgbm,
    "xgboost": fit_xgboost,
}


PEERS = {"lightgbm": "lightgbm", "xgboost": "xgboost"}


def measure(library: str, folder: Path, threads: int) -> dict[str, float]:
    """Fit once, in this process."""
    from core.metrics import auc

    X, y, X_test, y_test = (
        np.load(folder / f"{name}.npy") for name in ("X", "y", "X_test", "y_test")
    )
    times = LIBRARIES[library](X, y, X_test, threads)
    return {
        "binning": times.binning,
        "boosting": times.boosting,
        "memory": times.memory,
        "auc": auc(y_test, times.scores),
    }


def measure_apart(library: str, folder: Path, threads: int) -> dict[str, float]:
    """Fit once, in a process of its own."""
    environment = os.environ | {
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "NUMBA_THREADING_LAYER": "workqueue",
    }
    command = [sys.executable, "-m", "benchmarks.stumps", "--child", library, str(folder)]
    command += ["--threads", str(threads)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    metrics: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return metrics


def print_table(runs: dict[str, list[dict[str, float]]]) -> None:
    """Print medians as a Markdown table."""

    def middle(library: str, metric: Callable[[dict[str, float]], float]) -> float:
        return median(metric(run) for run in runs[library]) if library in runs else nan

    def total(run: dict[str, float]) -> float:
        return run["binning"] + run["boosting"]

    print(
        "| library | binning s | boosting s | total s | LightGBM's / this | memory MB | test AUC |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for library in runs:
        print(
            f"| {library} | {middle(library, lambda run: run['binning']):.2f} "
            f"| {middle(library, lambda run: run['boosting']):.2f} "
            f"| {middle(library, total):.2f} "
            f"| {shown_ratio(middle('lightgbm', total) / middle(library, total))} "
            f"| {middle(library, lambda run: run['memory']) / 1e6:.0f} "
            f"| {middle(library, lambda run: run['auc']):.4f} |"
        )


def main() -> None:
    """Draw the data, let the libraries take turns, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=at_least_one, default=1_000_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=at_least_one, default=5)
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        library, folder = arguments.child
        print(json.dumps(measure(library, Path(folder), arguments.threads)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for suffix, n_rows, seed in (("", arguments.rows, 0), ("_test", arguments.rows // 5, 1)):
            X, y = make_data(n_rows, arguments.features, seed)
            np.save(folder / f"X{suffix}.npy", X)
            np.save(folder / f"y{suffix}.npy", y)
        del X, y
        runs: dict[str, list[dict[str, float]]] = {
            library: [] for library in with_peers(LIBRARIES, PEERS)
        }
        for _ in range(arguments.repeats):
            for library, metrics in runs.items():
                metrics.append(measure_apart(library, folder, arguments.threads))
    print(
        f"{N_ROUNDS} rounds of stumps on {arguments.rows:,} × {arguments.features}, 10 % positive, "
        f"{MAX_BINS} bins, threads: {arguments.threads}, medians of {arguments.repeats}. "
        "Memory: what the fit adds to the peak of a process that holds its input and its library.\n"
    )
    print_table(runs)


if __name__ == "__main__":
    main()
