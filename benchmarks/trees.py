"""Boosted trees beside XGBoost and LightGBM: `python -m benchmarks.trees`.

100 rounds, at most 255 bins; trees of depth 6 for this library and XGBoost, of 31 leaves for this
library and LightGBM; the same threads for all. `--data` names shapes of tables, several in one run:

- plain: 1,000,000 × 30 numbers, one row in ten positive;
- wide: 150,000 × 200;
- missing: plain, a tenth of the cells missing;
- mixed: 500,000 × 30, a tenth missing, ten columns of 3 to 300 categories, given to all as such;
- rare: 300,000 × 30, 1 % positive, and rarer: 0.17 %. There each library also runs with its own
  defaults, and with the best of five settings: the peers' by the AUC of a fifth of the training
  rows, ours as the service's grid search finds it on a quarter of them. Times are of the last fit.

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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.stumps import make_data, peak_memory
from core.metrics import auc, partial_auc

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
N_ROUNDS = 100
MAX_BINS = 255
LEARNING_RATE = 0.3  # XGBoost's default
TREES: dict[str, dict[str, Any]] = {
    "depth 6": {"max_depth": 6, "max_leaves": None},
    "31 leaves": {"max_depth": 12, "max_leaves": 31},
}


class Shape(NamedTuple):
    """What a table looks like."""

    rows: int = 1_000_000
    features: int = 30
    positive: float = 0.1
    missing: float = 0.0
    categories: tuple[int, ...] = ()  # of the last columns


DATA = {
    "plain": Shape(),
    "wide": Shape(rows=150_000, features=200),
    "missing": Shape(missing=0.1),
    "mixed": Shape(500_000, missing=0.1, categories=(3, 5, 8, 12, 20, 30, 50, 100, 200, 300)),
    "rare": Shape(rows=300_000, positive=0.01),
    "rarer": Shape(rows=300_000, positive=1 / 600),
}


class Data(NamedTuple):
    """Training rows, test rows, and the number of categories of each column, 0 for a number.

    Categories are given as their positions.
    """

    X: Floats
    y: Labels
    X_test: Floats
    y_test: Labels
    n_categories: Labels


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


Settings = dict[str, Any]


def fit_rankwright(data: Data, threads: int, settings: Settings) -> Fit:
    """Fit this library's RankBoost on trees."""
    import numba

    from core import RankBoost
    from core.table import CodedTable

    numba.set_num_threads(threads)
    names = tuple(f"x{j}" for j in range(data.X.shape[1]))
    categories = tuple(
        tuple(f"c{k:03}" for k in range(n)) if n else None for n in data.n_categories.tolist()
    )

    def table(X: Floats) -> Floats | CodedTable:
        return CodedTable(X, names, categories) if data.n_categories.any() else X

    def make(n_rounds: int) -> RankBoost:
        return RankBoost(n_rounds=n_rounds, weak_ranker="tree", max_bins=MAX_BINS, **settings)

    make(2).fit(table(data.X[:40_000]), data.y[:40_000])  # loads the kernels
    before = peak_memory()
    start = Stopwatch()
    ranker = make(N_ROUNDS).fit(table(data.X), data.y)
    seconds = start.read()
    return Fit(*seconds, peak_memory() - before, ranker.decision_function(table(data.X_test)))


XGBOOST: Settings = {
    "objective": "binary:logistic",
    "tree_method": "hist",
    "max_depth": 6,
    "max_bin": MAX_BINS,
    "learning_rate": LEARNING_RATE,
}
LIGHTGBM: Settings = {
    "objective": "binary",
    "num_leaves": 31,
    "max_bin": MAX_BINS,
    "learning_rate": LEARNING_RATE,
    "verbose": -1,
}
# What each does unless it is told otherwise.
XGBOOST_DEFAULT: Settings = {"learning_rate": 0.3, "max_depth": 6}
LIGHTGBM_DEFAULT: Settings = {"learning_rate": 0.1}

# What is tried for rare positives: slower, more to a leaf, no longer steps, classes balanced.
XGBOOST_TUNED: list[Settings] = [
    {},
    {"learning_rate": 0.1},
    {"learning_rate": 0.1, "min_child_weight": 10},
    {"learning_rate": 0.1, "max_delta_step": 1},
    {"learning_rate": 0.1, "scale_pos_weight": 30},
]
LIGHTGBM_TUNED: list[Settings] = [
    {},
    {"learning_rate": 0.1},
    {"learning_rate": 0.1, "min_sum_hessian_in_leaf": 10},
    {"learning_rate": 0.1, "max_delta_step": 1},
    {"learning_rate": 0.1, "scale_pos_weight": 30},
]


RANKWRIGHT_TUNED: Settings = {"min_samples_leaf": [5.0, 10.0, 20.0, 50.0, 100.0]}


def fit_xgboost(data: Data, threads: int, settings: Settings | None = None) -> Fit:
    """Fit XGBoost's histogram method."""
    import xgboost

    types = ["c" if n else "q" for n in data.n_categories]
    options: Settings = {"feature_types": types, "enable_categorical": True, "nthread": threads}
    parameters = XGBOOST | {"nthread": threads} | (settings or {})
    before = peak_memory()
    start = Stopwatch()
    table = xgboost.QuantileDMatrix(data.X, data.y, max_bin=MAX_BINS, **options)
    booster = xgboost.train(parameters, table, N_ROUNDS)
    seconds = start.read()
    memory = peak_memory() - before
    return Fit(*seconds, memory, booster.predict(xgboost.DMatrix(data.X_test, **options)))


def fit_lightgbm(data: Data, threads: int, settings: Settings | None = None) -> Fit:
    """Fit LightGBM with 31 leaves."""
    import lightgbm

    parameters = LIGHTGBM | {"num_threads": threads} | (settings or {})
    before = peak_memory()
    start = Stopwatch()
    table = lightgbm.Dataset(
        data.X,
        data.y,
        params=parameters,
        categorical_feature=np.flatnonzero(data.n_categories).tolist(),
    ).construct()
    booster = lightgbm.train(parameters, table, N_ROUNDS)
    seconds = start.read()
    return Fit(*seconds, peak_memory() - before, np.asarray(booster.predict(data.X_test)))


def fit_tuned(
    fit: Callable[[Data, int, Settings], Fit], choices: list[Settings], data: Data, threads: int
) -> Fit:
    """Fit with the settings that rank a fifth of the training rows best, learnt from the others."""
    held = np.random.default_rng(0).random(len(data.y)) < 0.2
    inner = Data(data.X[~held], data.y[~held], data.X[held], data.y[held], data.n_categories)
    aucs = [auc(inner.y_test, fit(inner, threads, settings).scores) for settings in choices]
    return fit(data, threads, choices[int(np.argmax(aucs))])


def fit_rankwright_tuned(data: Data, threads: int) -> Fit:
    """Fit with the settings that the service's grid search chooses."""
    from core.selection import GridSearch, search_ranker

    planner = GridSearch(
        "rankboost",
        RANKWRIGHT_TUNED,
        {"weak_ranker": "tree", "leaf": "newton", "n_rounds": N_ROUNDS, "max_bins": MAX_BINS},
    )
    chosen = search_ranker(data.X, data.y, planner).chosen.members[0].parameters
    of_trees = {"leaf": "newton", "min_samples_leaf": chosen["min_samples_leaf"]}
    return fit_rankwright(data, threads, of_trees)


DEPTH_6 = {"learning_rate": LEARNING_RATE} | TREES["depth 6"]
LEAVES_31 = {"learning_rate": LEARNING_RATE} | TREES["31 leaves"]
FITS: dict[str, Callable[[Data, int], Fit]] = {
    "rankwright, depth 6": lambda data, threads: fit_rankwright(data, threads, DEPTH_6),
    "rankwright, depth 6, 20 % of rows": lambda data, threads: fit_rankwright(
        data, threads, DEPTH_6 | {"subsample": 0.2}
    ),
    "xgboost, depth 6": fit_xgboost,
    "rankwright, 31 leaves": lambda data, threads: fit_rankwright(data, threads, LEAVES_31),
    "lightgbm, 31 leaves": fit_lightgbm,
}
RARE: dict[str, Callable[[Data, int], Fit]] = {
    "rankwright, its defaults": lambda data, threads: fit_rankwright(data, threads, {}),
    "xgboost, its defaults": lambda data, threads: fit_xgboost(data, threads, XGBOOST_DEFAULT),
    "lightgbm, its defaults": lambda data, threads: fit_lightgbm(data, threads, LIGHTGBM_DEFAULT),
    "rankwright, tuned": fit_rankwright_tuned,
    "xgboost, tuned": lambda data, threads: fit_tuned(fit_xgboost, XGBOOST_TUNED, data, threads),
    "lightgbm, tuned": lambda data, threads: fit_tuned(fit_lightgbm, LIGHTGBM_TUNED, data, threads),
}


def draw(shape: Shape, n_rows: int, seed: int) -> tuple[Floats, Labels]:
    """Draw a table; values go missing at random, positives become rare by thinning.

    A categorical column is a numeric one in as many quantiles, named in another order.
    """
    thinned = shape.positive < 0.1
    X, y = make_data(2 * n_rows if thinned else n_rows, shape.features, seed)
    rng = np.random.default_rng([seed, 1])
    if thinned:
        share = shape.positive * 0.9 / (0.1 * (1 - shape.positive))
        kept = np.flatnonzero((y == 0) | (rng.random(len(y)) < share))[:n_rows]
        X, y = X[kept], y[kept]
    names = np.random.default_rng(0)  # the same for training and test rows
    for j, n in enumerate(shape.categories, start=shape.features - len(shape.categories)):
        quantile = np.argsort(np.argsort(X[:, j])) * n // len(X)
        X[:, j] = names.permutation(n)[quantile]
    if shape.missing:
        X[rng.random(X.shape) < shape.missing] = np.nan
    return X, y


def measure(name: str, folder: Path, threads: int) -> dict[str, float]:
    """Fit once, in this process."""
    data = Data(*(np.load(folder / f"{part}.npy") for part in Data._fields))
    fit = (FITS | RARE)[name](data, threads)
    return {
        "seconds": fit.seconds,
        "cpu_seconds": fit.cpu_seconds,
        "memory": fit.memory,
        "auc": auc(data.y_test, fit.scores),
        "pauc": partial_auc(data.y_test, fit.scores, fpr_max=0.05),
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


def race(shape: Shape, threads: list[int], repeats: int) -> None:
    """Draw a table, let the fits take turns, print medians."""
    names = [*FITS, *(RARE if shape.positive < 0.1 else ())]
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        for suffix, n_rows, seed in (("", shape.rows, 0), ("_test", shape.rows // 5, 1)):
            X, y = draw(shape, n_rows, seed)
            np.save(folder / f"X{suffix}.npy", X)
            np.save(folder / f"y{suffix}.npy", y)
        n_categories = np.zeros(shape.features, dtype=np.int64)
        n_categories[shape.features - len(shape.categories) :] = shape.categories
        np.save(folder / "n_categories.npy", n_categories)
        del X, y
        runs: dict[tuple[str, int], list[dict[str, float]]] = {
            (name, n_threads): [] for n_threads in threads for name in names
        }
        for _ in range(repeats):
            for (name, n_threads), figures in runs.items():
                figures.append(measure_apart(name, folder, n_threads))
    print(
        f"\n{N_ROUNDS} rounds on {shape.rows:,} × {shape.features}, {shape.positive:.2%} positive, "
        f"{shape.missing:.0%} missing, {len(shape.categories)} columns categorical, {MAX_BINS} bins, "
        f"learning rate {LEARNING_RATE}, medians of {repeats}. Memory: what the fit adds to the "
        f"peak of a process that holds its input and its library; the binned table would be "
        f"{shape.rows * shape.features / 1e6:.0f} MB.\n"
    )
    print_table(runs)


def main() -> None:
    """Race on one shape of table after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=DATA, nargs="+", default=["plain"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("FIT", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, folder = arguments.child
        print(json.dumps(measure(name, Path(folder), arguments.threads[0])))
        return
    for shape in arguments.data:
        race(DATA[shape], arguments.threads, arguments.repeats)


if __name__ == "__main__":
    main()
