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

- real: the tables of a folder (`--tables DIR`, as `benchmarks.auto` reads them) of at least 10,000 rows, with their
  words and gaps. 200 rounds at rate .1 with trees of 31 and of 255 leaves; LogitBoost and RankBoost beside LightGBM
  and XGBoost, categories given to all as such. A fifth of the rows is held out for the AUC.

Each fit runs in a process of its own; the libraries take turns, and medians are shown. Binning and
boosting are timed together: the time from the matrix to the ranker, ours with all its checks. The peers run in
this environment (`pip install .[bench]`), or by another interpreter (`--peers-python`).
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
from functools import partial
from math import nan
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import at_least_one, shown_ratio, with_peers
from benchmarks.stumps import make_data, peak_memory

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
    """The shape of a table."""

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


def fit_rankwright(
    data: Data,
    threads: int,
    settings: Settings,
    algorithm: str = "RankBoost",
    rounds: int = N_ROUNDS,
) -> Fit:
    """Fit this library's RankBoost, or LogitBoost, on trees."""
    import numba

    import core
    from core.base.table import CodedTable

    numba.set_num_threads(threads)
    names = tuple(f"x{j}" for j in range(data.X.shape[1]))
    categories = tuple(
        tuple(f"c{k:06}" for k in range(n)) if n else None for n in data.n_categories.tolist()
    )

    def table(X: Floats) -> Floats | CodedTable:
        return CodedTable(X, names, categories) if data.n_categories.any() else X

    def make(n_rounds: int) -> core.RankBoost | core.LogitBoost:
        booster: type[core.RankBoost | core.LogitBoost] = getattr(core, algorithm)
        return booster(n_rounds=n_rounds, weak_ranker="tree", max_bins=MAX_BINS, **settings)

    make(2).fit(table(data.X[:40_000]), data.y[:40_000])  # loads the kernels
    before = peak_memory()
    start = Stopwatch()
    ranker = make(rounds).fit(table(data.X), data.y)
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
# The defaults of each library.
XGBOOST_DEFAULT: Settings = {"learning_rate": 0.3, "max_depth": 6}
LIGHTGBM_DEFAULT: Settings = {"learning_rate": 0.1}

# Settings for rare positives: a lower rate, larger leaves, bounded steps, balanced classes.
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


def fit_xgboost(
    data: Data, threads: int, settings: Settings | None = None, rounds: int = N_ROUNDS
) -> Fit:
    """Fit XGBoost's histogram method."""
    import xgboost

    types = ["c" if n else "q" for n in data.n_categories]
    options: Settings = {"feature_types": types, "enable_categorical": True, "nthread": threads}
    parameters = XGBOOST | {"nthread": threads} | (settings or {})
    before = peak_memory()
    start = Stopwatch()
    table = xgboost.QuantileDMatrix(data.X, data.y, max_bin=MAX_BINS, **options)
    booster = xgboost.train(parameters, table, rounds)
    seconds = start.read()
    memory = peak_memory() - before
    return Fit(*seconds, memory, booster.predict(xgboost.DMatrix(data.X_test, **options)))


def fit_lightgbm(
    data: Data, threads: int, settings: Settings | None = None, rounds: int = N_ROUNDS
) -> Fit:
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
    booster = lightgbm.train(parameters, table, rounds)
    seconds = start.read()
    return Fit(*seconds, peak_memory() - before, np.asarray(booster.predict(data.X_test)))


def fit_tuned(
    fit: Callable[[Data, int, Settings], Fit], choices: list[Settings], data: Data, threads: int
) -> Fit:
    """Fit with the settings that rank a fifth of the training rows best, learnt from the others."""
    from sklearn.metrics import roc_auc_score

    held = np.random.default_rng(0).random(len(data.y)) < 0.2
    inner = Data(data.X[~held], data.y[~held], data.X[held], data.y[held], data.n_categories)
    aucs = [
        roc_auc_score(inner.y_test, fit(inner, threads, settings).scores) for settings in choices
    ]
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


REAL_ROUNDS = 200
REAL_RATE = 0.1
MIN_ROWS = 10_000
REAL_LEAVES = (31, 255)
OURS = {"logistic": "LogitBoost", "ranking": "RankBoost"}
REAL_PEERS = ("lightgbm", "xgboost")


def fit_real(library: str, leaves: int, data: Data, threads: int) -> Fit:
    """Fit trees of so many leaves, not bounded in depth, with one of the losses of this library or by a peer."""
    if library == "lightgbm":
        settings: Settings = {"num_leaves": leaves, "learning_rate": REAL_RATE}
        return fit_lightgbm(data, threads, settings, REAL_ROUNDS)
    if library == "xgboost":
        settings = {"max_leaves": leaves, "max_depth": 0, "grow_policy": "lossguide"}
        settings |= {"learning_rate": REAL_RATE}
        return fit_xgboost(data, threads, settings, REAL_ROUNDS)
    settings = {"max_leaves": leaves, "max_depth": 60, "learning_rate": REAL_RATE}
    return fit_rankwright(data, threads, settings, OURS[library], REAL_ROUNDS)


REAL: dict[str, Callable[[Data, int], Fit]] = {
    f"{library}, {leaves} leaves, real": partial(fit_real, library, leaves)
    for leaves in REAL_LEAVES
    for library in (*OURS, *REAL_PEERS)
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


def measure(name: str, folder: Path, threads: int, scores: Path) -> dict[str, float]:
    """Fit once, in this process, and write the scores of the test rows to a file."""
    data = Data(*(np.load(folder / f"{part}.npy") for part in Data._fields))
    fit = (FITS | RARE | REAL)[name](data, threads)
    np.save(scores, fit.scores)
    return {"seconds": fit.seconds, "cpu_seconds": fit.cpu_seconds, "memory": fit.memory}


def measure_apart(name: str, folder: Path, threads: int, peers_python: str) -> dict[str, float]:
    """Fit once, in a process of its own."""
    from core.metrics import auc, partial_auc

    environment = os.environ | {
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "NUMBA_THREADING_LAYER": "workqueue",
    }
    is_peer = name.startswith(REAL_PEERS)
    scores = folder / "scores.npy"
    command = [peers_python if is_peer else sys.executable, "-m", "benchmarks.trees"]
    command += ["--child", name, str(folder), str(scores), "--threads", str(threads)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{name} failed:\n{result.stderr}")
    metrics: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    y, given = np.load(folder / "y_test.npy"), np.load(scores).astype(np.float64)
    return metrics | {"auc": auc(y, given), "pauc": partial_auc(y, given, fpr_max=0.05)}


def print_table(runs: dict[tuple[str, int], list[dict[str, float]]]) -> None:
    """Print medians as a Markdown table."""

    def middle(key: tuple[str, int], metric: str) -> float:
        return median(run[metric] for run in runs[key]) if key in runs else nan

    print(
        "| fit | threads | s | XGBoost's / this | CPU s | XGBoost's / this | memory MB | test AUC "
        "| pAUC to .05 |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, threads in runs:
        key = name, threads
        times = [
            f"{middle(key, metric):.2f} "
            f"| {shown_ratio(middle(('xgboost, depth 6', threads), metric) / middle(key, metric))}"
            for metric in ("seconds", "cpu_seconds")
        ]
        print(
            f"| {name} | {threads} | {' | '.join(times)} "
            f"| {middle(key, 'memory') / 1e6:.0f} | {middle(key, 'auc'):.4f} "
            f"| {middle(key, 'pauc'):.4f} |"
        )


def save(folder: Path, data: Data) -> None:
    """Write a table for the processes that fit."""
    for part, array in zip(Data._fields, data, strict=True):
        np.save(folder / f"{part}.npy", array)


Runs = dict[tuple[str, int], list[dict[str, float]]]


def take_turns(
    names: list[str], folder: Path, threads: list[int], repeats: int, peers_python: str
) -> Runs:
    """Fit by turns on the table of a folder. Peers that are not installed are left out."""
    if peers_python == sys.executable:
        names = with_peers(names, {name: name for name in REAL_PEERS})
    runs: Runs = {(name, n_threads): [] for n_threads in threads for name in names}
    for _ in range(repeats):
        for (name, n_threads), metrics in runs.items():
            metrics.append(measure_apart(name, folder, n_threads, peers_python))
    return runs


def race(shape: Shape, threads: list[int], repeats: int, peers_python: str) -> None:
    """Draw a table, let the fits take turns, print medians."""
    names = [*FITS, *(RARE if shape.positive < 0.1 else ())]
    with tempfile.TemporaryDirectory() as path:
        n_categories = np.zeros(shape.features, dtype=np.int64)
        n_categories[shape.features - len(shape.categories) :] = shape.categories
        train, test = draw(shape, shape.rows, 0), draw(shape, shape.rows // 5, 1)
        save(Path(path), Data(*train, *test, n_categories))
        del train, test
        runs = take_turns(names, Path(path), threads, repeats, peers_python)
    print(
        f"\n{N_ROUNDS} rounds on {shape.rows:,} × {shape.features}, {shape.positive:.2%} positive, "
        f"{shape.missing:.0%} missing, {len(shape.categories)} columns categorical, {MAX_BINS} bins, "
        f"learning rate {LEARNING_RATE}, medians of {repeats}. Memory: what the fit adds to the "
        f"peak of a process that holds its input and its library; the binned table would be "
        f"{shape.rows * shape.features / 1e6:.0f} MB.\n"
    )
    print_table(runs)


def read_real(folder: Path, name: str) -> Data:
    """Read a table of a folder; every fifth row of a shuffle is for testing.

    Columns of more words than a table may have are left out.
    """
    import pyarrow as pa

    from benchmarks.auto import read_table
    from core.base.table import MAX_CATEGORIES, to_matrix

    features, y = read_table(folder, name, most_rows=None)
    features = features.select(
        [
            column
            for column, field in zip(features.column_names, features.schema, strict=True)
            if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type))
            or len(features[column].unique()) <= MAX_CATEGORIES
        ]
    )
    X, categories = to_matrix(features)
    n_categories = np.array([len(names or ()) for names in categories], dtype=np.int64)
    test = np.zeros(len(y), dtype=np.bool_)
    test[np.random.default_rng(0).permutation(len(y))[::5]] = True
    X = np.ascontiguousarray(X)
    labels: Labels = y.astype(np.int64)
    return Data(X[~test], labels[~test], X[test], labels[test], n_categories)


def race_on_real(given: argparse.Namespace) -> None:
    """Let the fits take turns on the tables of a folder, print medians and how they compare."""
    from benchmarks.auto import Refused

    fits = [
        f"{library}, {n} leaves, real" for n in given.leaves for library in (*OURS, *REAL_PEERS)
    ]
    tables = given.only or sorted(path.stem for path in given.tables.glob("*.parquet"))
    columns = [*OURS.values(), *(name for name in REAL_PEERS)]
    print(
        f"\n{REAL_ROUNDS} rounds, rate {REAL_RATE}, {MAX_BINS} bins, binning included, medians of {given.repeats}. "
        "Ratio: seconds of the faster peer by those of ours; above 1 ours is faster.\n"
    )
    aucs = " | ".join(f"AUC {name}" for name in columns)
    print(
        f"| table | leaves | threads | s {' | s '.join(columns)} | LogitBoost's ratio | RankBoost's ratio | {aucs} |"
    )
    print("|---|---:|---:|" + "---:|" * (2 * len(columns) + 2))
    ratios: dict[tuple[int, int], list[list[float]]] = {}
    for table in tables:
        with tempfile.TemporaryDirectory() as path:
            try:
                data = read_real(given.tables, table)
            except Refused as refusal:
                print(refusal, file=sys.stderr)
                continue
            if len(data.y) + len(data.y_test) < MIN_ROWS:
                continue
            shape = f"{len(data.y):,} × {data.X.shape[1]}"
            save(Path(path), data)
            del data
            runs = take_turns(fits, Path(path), given.threads, given.repeats, given.peers_python)
        for leaves in given.leaves:
            for n_threads in given.threads:
                of_fits = [
                    runs[f"{name}, {leaves} leaves, real", n_threads]
                    for name in (*OURS, *REAL_PEERS)
                ]
                seconds = [median(run["seconds"] for run in fit) for fit in of_fits]
                fastest = min(seconds[len(OURS) :])
                found = [fastest / own for own in seconds[: len(OURS)]]
                ratios.setdefault((leaves, n_threads), []).append(found)
                cells = [f"{value:.2f}" for value in (*seconds, *found)]
                cells += [f"{median(run['auc'] for run in fit):.4f}" for fit in of_fits]
                row = [f"{table}, {shape}", str(leaves), str(n_threads), *cells]
                print(f"| {' | '.join(row)} |", flush=True)
    for (leaves, n_threads), of_tables in ratios.items():
        means = np.exp(np.mean(np.log(of_tables), axis=0))
        means_given = " | ".join(f"{mean:.2f}" for mean in means)
        row = ["geometric mean", str(leaves), str(n_threads), *[""] * len(columns), means_given]
        print(f"| {' | '.join(row)} |{' |' * len(columns)}")


def main() -> None:
    """Race on one shape of table after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=[*DATA, "real"], nargs="+", default=["plain"])
    parser.add_argument("--tables", type=Path, help="folder of the real tables")
    parser.add_argument("--only", nargs="+", help="names of real tables; all of the folder")
    parser.add_argument("--leaves", type=int, nargs="+", choices=REAL_LEAVES, default=REAL_LEAVES)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=at_least_one, help="of the drawn tables, instead of theirs")
    parser.add_argument("--repeats", type=at_least_one, default=3)
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument(
        "--child", nargs=3, metavar=("FIT", "FOLDER", "OUT"), help=argparse.SUPPRESS
    )
    given = parser.parse_args()
    if given.child:
        name, folder, out = given.child
        print(json.dumps(measure(name, Path(folder), given.threads[0], Path(out))))
        return
    if "real" in given.data and given.tables is None:
        parser.error("--data real needs --tables")
    for shape in given.data:
        if shape == "real":
            race_on_real(given)
        else:
            drawn = DATA[shape] if given.rows is None else DATA[shape]._replace(rows=given.rows)
            race(drawn, given.threads, given.repeats, given.peers_python)


if __name__ == "__main__":
    main()
