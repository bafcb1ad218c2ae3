"""The very top of the list with rare positives: `python -m benchmarks.very_top [DIR]`.

`TopPush`, the p-norm push of linear scores, stumps and trees, and `PAUCSVM` for the first hundredth, beside rankers of
the whole area, logistic regression and LightGBM. Tables:

- drawn: 6,000 rows of ten features, 3 % positive, and a few negatives far out in a feature that orders most pairs.
- with DIR, each of `TABLES` in it (`<name>.parquet`, labels in the column `label`): public tables with rare positives.
  Text is read as the index of its sorted values, for all alike.

Protocol: each repetition draws stratified parts of 60 % to train, 20 % to choose the number of rounds of LightGBM and
of LogitBoost (by average precision), and 20 % to test, on which all figures are means over the repetitions. Linear
rankers choose C on a part of the training rows themselves, and nothing else is tuned. At top: the fraction of positives
above every negative. Precision: among as many first rows as there are positives, with ties in their mean order.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks import at_least_one, is_here
from benchmarks.monotone import PATIENCE, Parts, divide
from core import AUCSVM, PAUCSVM, Logistic, LogitBoost, PNormPush, RankBoost, TopPush
from core.metrics import AveragePrecision, PrecisionAt, auc, measure, partial_auc

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

TABLES = ("abalone_19", "letter", "mine_injuries", "yeast_me2")


class Table(NamedTuple):
    """A table and its labels."""

    X: Floats
    y: Labels


def draw_table(rows: int) -> Table:
    """Draw a table whose rare positives are easy but for some negatives far out in one feature."""
    rng = np.random.default_rng(0)
    y = (np.arange(rows) % 33 == 0).astype(np.int64)
    X = rng.normal(size=(rows, 10)) + np.outer(y, [2.0, 1.5, 1.0, *[0.0] * 7])
    far = np.flatnonzero(y == 0)[:: max(rows // 60, 1)]
    X[far, 0] += 8.0
    return Table(X, y)


def read_table(path: Path, most: int) -> Table:
    """Read a table, of which at most a number of rows are drawn."""
    table = pd.read_parquet(path)
    if len(table) > most:
        table = table.sample(most, random_state=0)
    y = table.pop("label").to_numpy(dtype=np.int64)
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = pd.Categorical(table[name]).codes
    return Table(table.to_numpy(dtype=np.float64), y)


Score = Callable[[Floats], Floats]
Fit = Callable[[Table, Parts], Score]


def average_precision(y: Labels, scores: Floats) -> float:
    """Return the average precision."""
    return measure(y, scores, [AveragePrecision()])[0].interval.value


def fit_ours(table: Table, parts: Parts, make: Callable[[], Any]) -> Score:
    """Fit one of our rankers."""
    ranker = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant scores were the optimum: see docs/top.md
        ranker.fit(table.X[parts.train], table.y[parts.train])
    return lambda rows: np.asarray(ranker.decision_function(rows))


def fit_trees(table: Table, parts: Parts, make: Callable[[], Any]) -> Score:
    """Fit boosted trees, which stop by the average precision on the second part."""
    ranker, y = make(), table.y
    ranker.fit_watched(
        table.X[parts.train],
        y[parts.train],
        X_valid=table.X[parts.valid],
        metric=lambda scores: average_precision(y[parts.valid], scores),
        patience=PATIENCE,
    )
    return lambda rows: np.asarray(ranker.decision_function(rows))


def fit_lightgbm(table: Table, parts: Parts, n_rounds: int) -> Score:
    """Fit LightGBM, which stops by the average precision on the second part."""
    import lightgbm

    model = lightgbm.LGBMClassifier(
        n_estimators=n_rounds, learning_rate=0.05, num_leaves=31, min_child_samples=20,
        verbose=-1, n_jobs=1, metric="average_precision",
    )  # fmt: skip
    X, y = table.X, table.y
    model.fit(
        X[parts.train], y[parts.train], eval_X=X[parts.valid], eval_y=y[parts.valid],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip
    return lambda rows: np.asarray(model.booster_.predict(rows, raw_score=True))


TREES: Mapping[str, Any] = {"learning_rate": 0.05, "max_leaves": 31, "max_depth": 64}


def contestants(n_rounds: int) -> Iterator[tuple[str, Fit]]:
    """Yield every contestant; boosters have at most a number of rounds."""
    stumps, trees = partial(RankBoost, n_rounds=min(n_rounds, 100)), {**TREES, "n_rounds": n_rounds}
    boosted = partial(RankBoost, weak_ranker="tree", **trees)
    linear: dict[str, Callable[[], Any]] = {
        "TopPush": TopPush,
        "p-norm push, linear, p = 4": PNormPush,
        "p-norm push, linear, p = 16": partial(PNormPush, push=16.0),
        "PAUCSVM, [0, .01]": partial(PAUCSVM, fpr_max=0.01),
        "AUCSVM": AUCSVM,
        "Logistic": Logistic,
        "RankBoost, stumps": stumps,
        "RankBoost, stumps, p = 8": partial(stumps, push=8.0),
    }
    of_trees: dict[str, Callable[[], Any]] = {
        "RankBoost, trees": boosted,
        "RankBoost, trees, p = 4": partial(boosted, push=4.0),
        "LogitBoost": partial(LogitBoost, **trees),
    }
    for name, make in linear.items():
        yield name, partial(fit_ours, make=make)
    for name, make in of_trees.items():
        yield name, partial(fit_trees, make=make)
    if is_here("lightgbm"):
        yield "LightGBM", partial(fit_lightgbm, n_rounds=n_rounds)


def metric_estimates_of(y: Labels, scores: Floats) -> tuple[float, ...]:
    """Return the fraction of positives at the top, the precision, the average precision and the areas."""
    at_top = (scores[y == 1] > scores[y == 0].max()).mean()
    asked: list[Any] = [PrecisionAt(count=int(y.sum())), AveragePrecision()]
    return (
        float(at_top),
        *(found.interval.value for found in measure(y, scores, asked)),
        partial_auc(y, scores, 0.0, 0.01),
        auc(y, scores),
    )


def main() -> None:
    """Measure, and print one table each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--drawn-rows", type=at_least_one, default=6_000)
    parser.add_argument("--most-rows", type=at_least_one, default=20_000)
    parser.add_argument("--repeats", type=at_least_one, default=5)
    parser.add_argument("--rounds", type=at_least_one, default=1000, help="of boosting, at most")
    given = parser.parse_args()
    tables = {"drawn": draw_table(given.drawn_rows)}
    for name in given.tables if given.directory else ():
        tables[name] = read_table(given.directory / f"{name}.parquet", given.most_rows)
    for name, table in tables.items():
        print(f"\n{name}: {len(table.X):,} × {table.X.shape[1]}, {table.y.mean():.1%} positive")
        print("| | at top | precision | AP | pAUC [0, .01] | AUC | s |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for contestant, fit in contestants(given.rounds):
            rows = []
            for seed in range(given.repeats):
                parts = divide(table.y, seed)
                begun = time.perf_counter()
                score = fit(table, parts)
                seconds = time.perf_counter() - begun
                scores = score(table.X[parts.test])
                rows.append((*metric_estimates_of(table.y[parts.test], scores), seconds))
            means = np.mean(rows, axis=0)
            shown = " | ".join(f"{value:.3f}" for value in means[:-1])
            print(f"| {contestant} | {shown} | {means[-1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
