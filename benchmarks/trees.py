"""Boosted trees beside XGBoost and LightGBM: `python -m benchmarks.trees`.

100 rounds on 1,000,000 × 30 numbers, one row in ten positive, at most 255 bins; trees of depth 6
for this library and XGBoost, of 31 leaves for this library and LightGBM; the same threads for all.
`--data` takes other shapes: 150,000 × 200, a tenth of the cells missing, or one row in 600 positive.
Each fit runs in a process of its own; the libraries take turns, and medians are shown. Binning and
boosting are timed together: the time from the matrix to the ranker, ours with all its checks.
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
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.stumps import make_data, peak_memory
from core.metrics import auc, partial_auc

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
N_ROUNDS = 100
MAX_BINS = 255
LEARNING_RATE = 0.3  # XGBoost's default
TREES: dict[str, dict[str, int | None]] = {
    "depth 6": {"max_depth": 6, "max_leaves": None},
    "31 leaves": {"max_depth": 12, "max_leaves": 31},
}


class Shape(NamedTuple):
    """What a table looks like."""

    rows: int = 1_000_000
    features: int = 30
    positive: float = 0.1
    missing: float = 0.0


DATA = {
    "plain": Shape(),
    "wide": Shape(rows=150_000, features=200),
    "missing": Shape(missing=0.1),
    "rare": Shape(positive=1 / 600),
}


class Fit(NamedTuple):
    """Seconds of a fit by the clock and of all cores, memory added to the peak, test scores."""

    seconds: float
    cpu_seconds: float
    memory: int
    scores: Floats


class Stopwatch:
    """Tells the seconds since it was made, by the clock and of all cores."""

    def __init__(self) -> None:
        self._start = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Read both."""
        return time.perf_counter() - self._start[0], time.process_time() - self._start[1]


def fit_rankwright(
    X: Floats, y: Labels, X_test: Floats, threads: int, trees: str, subsample: float = 1.0
) -> Fit:
    """Fit this library's RankBoost on trees."""
    import numba

    from core import RankBoost

    numba.set_num_threads(threads)

    def make(n_rounds: int) -> RankBoost:
        return RankBoost(
            n_rounds=n_rounds,
            weak_ranker="tree",
            learning_rate=LEARNING_RATE,
            max_bins=MAX_BINS,
            subsample=subsample,
            **TREES[trees],
        )

    make(2).fit(X[:40_000], y[:40_000])  # loads the kernels
    before = peak_memory()
    start = Stopwatch()
    ranker = make(N_ROUNDS).fit(X, y)
    seconds = start.read()
    return Fit(*seconds, peak_memory() - before, ranker.decision_function(X_test))


def fit_xgboost(X: Floats, y: Labels, X_test: Floats, threads: int) -> Fit:
    """Fit XGBoost's histogram method."""
    import xgboost

    parameters = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": 6,
        "max_bin": MAX_BINS,
        "learning_rate": LEARNING_RATE,
        "nthread": threads,
    }
    before = peak_memory()
    start = Stopwatch()
    data = xgboost.QuantileDMatrix(X, y, max_bin=MAX_BINS, nthread=threads)
    booster = xgboost.train(parameters, data, N_ROUNDS)
    seconds = start.read()
    memory = peak_memory() - before
    return Fit(*seconds, memory, booster.predict(xgboost.DMatrix(X_test, nthread=threads)))


def fit_lightgbm(X: Floats, y: Labels, X_test: Floats, threads: int) -> Fit:
    """Fit LightGBM with 31 leaves."""
    import lightgbm

    parameters = {
        "objective": "binary",
        "num_leaves": 31,
        "max_bin": MAX_BINS,
        "learning_rate": LEARNING_RATE,
        "num_threads": threads,
        "verbose": -1,
    }
    before = peak_memory()
    start = Stopwatch()
    data = lightgbm.Dataset(X, y, params=parameters).construct()
    booster = lightgbm.train(parameters, data, N_ROUNDS)
    seconds = start.read()
    return Fit(*seconds, peak_memory() - before, np.asarray(booster.predict(X_test)))


FITS: dict[str, Callable[..., Fit]] = {
    "rankwright, depth 6": lambda *data: fit_rankwright(*data, "depth 6"),
    "rankwright, depth 6, 20 % of rows": lambda *data: fit_rankwright(*data, "depth 6", 0.2),
    "xgboost, depth 6": fit_xgboost,
    "rankwright, 31 leaves": lambda *data: fit_rankwright(*data, "31 leaves"),
    "lightgbm, 31 leaves": fit_lightgbm,
}


def draw(shape: Shape, n_rows: int, seed: int) -> tuple[Floats, Labels]:
    """Draw a table; values go missing at random, rare positives by thinning."""
    thinned = shape.positive < 0.1
    X, y = make_data(2 * n_rows if thinned else n_rows, shape.features, seed)
    rng = np.random.default_rng([seed, 1])
    if thinned:
        share = shape.positive * 0.9 / (0.1 * (1 - shape.positive))
        kept = np.flatnonzero((y == 0) | (rng.random(len(y)) < share))[:n_rows]
        X, y = X[kept], y[kept]
    if shape.missing:
        X[rng.random(X.shape) < shape.missing] = np.nan
    return X, y


def measure(name: str, folder: Path, threads: int) -> dict[str, float]:
    """Fit once, in this process."""
    X, y, X_test, y_test = (
        np.load(folder / f"{part}.npy") for part in ("X", "y", "X_test", "y_test")
    )
    fit = FITS[name](X, y, X_test, threads)
    return {
        "seconds": fit.seconds,
        "cpu_seconds": fit.cpu_seconds,
        "memory": fit.memory,
        "auc": auc(y_test, fit.scores),
        "pauc": partial_auc(y_test, fit.scores, fpr_max=0.05),
    }


def measure_apart(name: str, folder: Path, threads: int) -> dict[str, float]:
    """Fit once, in a process of its own."""
    environment = os.environ | {
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "NUMBA_THREADING_LAYER": "workqueue",
    }
    command = [sys.executable, "-m", "benchmarks.trees", "--child", name, str(folder)]
    command += ["--threads", str(threads)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return figures


def print_table(runs: dict[tuple[str, int], list[dict[str, float]]]) -> None:
    """Print medians as a Markdown table."""

    def middle(key: tuple[str, int], figure: str) -> float:
        return median(run[figure] for run in runs[key])

    print(
        "| fit | threads | s | XGBoost's / this | CPU s | XGBoost's / this | memory MB | test AUC "
        "| pAUC to .05 |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, threads in runs:
        key = name, threads
        times = [
            f"{middle(key, figure):.2f} "
            f"| {middle(('xgboost, depth 6', threads), figure) / middle(key, figure):.2f}"
            for figure in ("seconds", "cpu_seconds")
        ]
        print(
            f"| {name} | {threads} | {' | '.join(times)} "
            f"| {middle(key, 'memory') / 1e6:.0f} | {middle(key, 'auc'):.4f} "
            f"| {middle(key, 'pauc'):.4f} |"
        )


def main() -> None:
    """Draw the data, let the fits take turns, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=DATA, default="plain")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("FIT", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, folder = arguments.child
        print(json.dumps(measure(name, Path(folder), arguments.threads[0])))
        return
    shape = DATA[arguments.data]
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        for suffix, n_rows, seed in (("", shape.rows, 0), ("_test", shape.rows // 5, 1)):
            X, y = draw(shape, n_rows, seed)
            np.save(folder / f"X{suffix}.npy", X)
            np.save(folder / f"y{suffix}.npy", y)
        del X, y
        runs: dict[tuple[str, int], list[dict[str, float]]] = {
            (name, threads): [] for threads in arguments.threads for name in FITS
        }
        for _ in range(arguments.repeats):
            for (name, threads), figures in runs.items():
                figures.append(measure_apart(name, folder, threads))
    print(
        f"{N_ROUNDS} rounds on {shape.rows:,} × {shape.features}, {shape.positive:.2%} positive, "
        f"{shape.missing:.0%} missing, {MAX_BINS} bins, learning rate {LEARNING_RATE}, medians of {arguments.repeats}. "
        "Memory: what the fit adds to the peak of a process that holds its input and its library.\n"
    )
    print_table(runs)


if __name__ == "__main__":
    main()
