"""What monotone constraints cost, and who keeps them: `python -m benchmarks.monotone [DIR]`.

Boosted trees under the same constraints, beside LightGBM with each of its three methods, XGBoost and scikit-learn's
HistGradientBoosting; and each of them without constraints. Tables:

- drawn: 5,000 rows of ten features, five of which raise or lower the log odds by steps and bends, and in pairs; labels
  are drawn from them, so that the constraints are true.
- with DIR, each `<name>.parquet` in it that `CONSTRAINTS` names: public tables of credit and like decisions. Text is
  read as the index of its sorted values, for all alike.

Protocol: each repetition draws stratified parts of 60 % to train, 20 % to choose the number of rounds by the AUC, up to
1,000 with a patience of 50, and 20 % to test. All have a learning rate of .05 and 31 leaves of at least 20 rows;
nothing else is tuned. AUC and normalised partial AUC on [0, .1] are means over the repetitions; in brackets the
difference from our LogitBoost with constraints, and the half-width of its 95 % t interval.

Falls: copies of a test row, of --grid-rows at most, with 256 values of a constrained column, quantiles of the training
values, are scored in order; counted are pairs of a row and a column for which a score is on the wrong side of the one
before. Ours are also proven by `check_monotone`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from benchmarks import at_least_one, is_here
from core import LogitBoost, RankBoost
from core.base.monotone import Direction, check_monotone
from core.metrics import auc, partial_auc

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

CONSTRAINTS: Mapping[str, Mapping[str, int]] = {
    "german_credit_raw": {"duration": 1, "amount": 1, "age": -1, "rate": 1, "n_credits": 1},
    "bank_marketing": {"balance": 1, "campaign": -1, "previous": 1, "duration": 1},
    "adult_raw": {"education-num": 1, "hours-per-week": 1, "capital-gain": 1, "capital-loss": 1},
    "car_auction": {"ageAtSale": 1, "odomRead": 1, "price": -1, "costAtPurch": -1},
}
"""1: the score must not fall as the value grows; -1: it must not rise."""

SETTINGS: Mapping[str, Any] = {
    "learning_rate": 0.05, "max_leaves": 31, "min_samples_leaf": 20.0, "max_depth": 64
}  # fmt: skip
MAX_ROUNDS, PATIENCE = 1000, 50
GRID = 256


class Table(NamedTuple):
    """A table, its labels, and the direction of each column: 1, -1, or 0 for none."""

    X: Floats
    y: Labels
    directions: npt.NDArray[np.int64]


class Parts(NamedTuple):
    """Rows to train, to choose the number of rounds, and to test."""

    train: npt.NDArray[np.int64]
    valid: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]


Score = Callable[[Floats], Floats]


def draw_table(rows: int) -> Table:
    """Draw labels whose log odds rise or fall in five columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 10))
    odds = 1.2 * np.tanh(2 * X[:, 0]) + (X[:, 1] > 0.5) - np.exp(np.minimum(X[:, 2], 1.5)) / 2
    odds += 0.8 * np.maximum(X[:, 3], 0.0) * (X[:, 5] > 0) - 0.5 * X[:, 4] + np.sin(3 * X[:, 6])
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(2.0 - odds))).astype(np.int64)
    return Table(X, y, np.array([1, 1, -1, 1, -1, 0, 0, 0, 0, 0]))


def read_table(path: Path, most: int) -> Table:
    """Read a table of `CONSTRAINTS`: its first column of labels is `label`."""
    table = pd.read_parquet(path)
    if len(table) > most:
        table = table.sample(most, random_state=0)
    y = table.pop("label").to_numpy(dtype=np.int64)
    constraints = CONSTRAINTS[path.stem]
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = pd.Categorical(table[name]).codes
    X = table.to_numpy(dtype=np.float64)
    return Table(X, y, np.array([constraints.get(name, 0) for name in table.columns]))


def divide(y: Labels, seed: int) -> Parts:
    """Draw the three parts, stratified."""
    rng = np.random.default_rng(seed)
    part = np.empty(len(y), dtype=np.int64)
    for value in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == value))
        part[rows] = np.minimum(np.arange(len(rows)) * 5 // len(rows), 4)
    return Parts(np.flatnonzero(part < 3), np.flatnonzero(part == 3), np.flatnonzero(part == 4))


def fit_ours(
    table: Table, parts: Parts, make: Callable[[], Any], *, constrained: bool
) -> tuple[Score, str]:
    """Fit one of our rankers; return its scores and what the proof says."""
    ranker = make()
    monotone: dict[str | int, Direction] = {
        j: "increasing" if table.directions[j] > 0 else "decreasing"
        for j in np.flatnonzero(table.directions).tolist()
    }
    X, y = table.X, table.y
    ranker.set_params(n_rounds=MAX_ROUNDS, monotone=monotone if constrained else None)
    ranker.fit_watched(
        X[parts.train],
        y[parts.train],
        X_valid=X[parts.valid],
        metric=lambda scores: auc(y[parts.valid], scores),
        patience=PATIENCE,
    )
    return ranker.decision_function, check_monotone(ranker, monotone).verdict


def fit_lightgbm(table: Table, parts: Parts, method: str | None) -> tuple[Score, str]:
    """Fit LightGBM with a method for its constraints, or without."""
    import lightgbm

    limits: dict[str, Any] = {}
    if method is not None:
        directions = table.directions.tolist()
        limits = {"monotone_constraints": directions, "monotone_constraints_method": method}
    model = lightgbm.LGBMClassifier(
        n_estimators=MAX_ROUNDS, learning_rate=0.05, num_leaves=31, min_child_samples=20,
        verbose=-1, n_jobs=1, metric="auc", **limits,
    )  # fmt: skip
    X, y = table.X, table.y
    model.fit(
        X[parts.train], y[parts.train], eval_X=X[parts.valid], eval_y=y[parts.valid],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip
    booster = model.booster_
    return lambda rows: np.asarray(booster.predict(rows, raw_score=True)), ""


def fit_xgboost(table: Table, parts: Parts, *, constrained: bool) -> tuple[Score, str]:
    """Fit XGBoost, leaf by leaf as the others."""
    import xgboost

    limits = {"monotone_constraints": tuple(table.directions.tolist())} if constrained else {}
    model = xgboost.XGBClassifier(
        n_estimators=MAX_ROUNDS, learning_rate=0.05, max_leaves=31, max_depth=0,
        grow_policy="lossguide", tree_method="hist", eval_metric="auc", n_jobs=1,
        early_stopping_rounds=PATIENCE, **limits,
    )  # fmt: skip
    X, y = table.X, table.y
    model.fit(
        X[parts.train], y[parts.train], eval_set=[(X[parts.valid], y[parts.valid])], verbose=False
    )
    return lambda rows: np.asarray(model.predict(rows, output_margin=True), dtype=np.float64), ""


def fit_sklearn(table: Table, parts: Parts, *, constrained: bool) -> tuple[Score, str]:
    """Fit scikit-learn's HistGradientBoostingClassifier."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_leaf_nodes=31, max_iter=MAX_ROUNDS, scoring="roc_auc",
        early_stopping=True, n_iter_no_change=PATIENCE,
        monotonic_cst=table.directions if constrained else None,
    )  # fmt: skip
    X, y = table.X, table.y
    with threadpool_limits(1):  # as all here
        model.fit(X[parts.train], y[parts.train], X_val=X[parts.valid], y_val=y[parts.valid])
    return model.decision_function, ""


Fit = Callable[[Table, Parts], tuple[Score, str]]


def contestants() -> Iterator[tuple[str, Fit]]:
    """Yield every contestant, ours with constraints first."""
    ours: dict[str, Callable[[], Any]] = {
        "LogitBoost": partial(LogitBoost, **SETTINGS),
        "RankBoost, trees": partial(RankBoost, weak_ranker="tree", **SETTINGS),
        "RankBoost, stumps": RankBoost,
    }
    for constrained in (True, False):
        end = "" if constrained else ", free"
        for name, make in ours.items():
            yield name + end, partial(fit_ours, make=make, constrained=constrained)
        if is_here("lightgbm"):
            for method in ("basic", "intermediate", "advanced") if constrained else (None,):
                yield f"LightGBM, {method or 'free'}", partial(fit_lightgbm, method=method)
        if is_here("xgboost"):
            yield f"XGBoost{end}", partial(fit_xgboost, constrained=constrained)
        yield f"scikit-learn{end}", partial(fit_sklearn, constrained=constrained)


def count_falls(score: Score, table: Table, parts: Parts, n_rows: int) -> float:
    """Return the fraction of (row, constrained column) on whose grid a score falls."""
    rows = table.X[parts.test][:n_rows]
    fallen = []
    for j in np.flatnonzero(table.directions).tolist():
        known = table.X[parts.train, j]
        known = known[~np.isnan(known)]
        values = np.unique(np.quantile(known, np.linspace(0.0, 1.0, GRID)))
        copies = np.repeat(rows, len(values), axis=0)
        copies[:, j] = np.tile(values, len(rows))
        with threadpool_limits(1):
            scores = score(copies).reshape(len(rows), len(values))
        fallen.append((np.diff(scores, axis=1) * table.directions[j] < 0.0).any(axis=1))
    return float(np.mean(fallen))


class MetricEstimates(NamedTuple):
    """What is measured of a contestant, one value per repetition."""

    auc: list[float]
    pauc: list[float]
    falls: list[float]
    seconds: list[float]
    verdicts: list[str]


def measure(table: Table, repeats: int, grid_rows: int) -> dict[str, MetricEstimates]:
    """Return the figures of every contestant."""
    metrics: dict[str, MetricEstimates] = {}
    for seed in range(repeats):
        parts = divide(table.y, seed)
        for name, fit in contestants():
            begun = time.perf_counter()
            score, verdict = fit(table, parts)
            seconds = time.perf_counter() - begun
            scores, y = score(table.X[parts.test]), table.y[parts.test]
            of_it = metrics.setdefault(name, MetricEstimates([], [], [], [], []))
            of_it.auc.append(auc(y, scores))
            of_it.pauc.append(partial_auc(y, scores, 0.0, 0.1))
            of_it.falls.append(count_falls(score, table, parts, grid_rows))
            of_it.seconds.append(seconds)
            of_it.verdicts.append(verdict)
    return metrics


def versus(own: list[float], ours: list[float]) -> str:
    """Write a mean, and the half-width of the interval of its difference from ours."""
    if own is ours or len(own) < 2:
        return f"{np.mean(own):.4f}"
    gap = np.subtract(own, ours)
    width = student.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
    return f"{np.mean(own):.4f} ({gap.mean():+.4f} ± {width:.4f})"


def main() -> None:
    """Measure, and print one table each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--tables", nargs="*", choices=[*CONSTRAINTS], default=[*CONSTRAINTS])
    parser.add_argument("--drawn-rows", type=at_least_one, default=5_000)
    parser.add_argument("--most-rows", type=at_least_one, default=20_000)
    parser.add_argument("--repeats", type=at_least_one, default=10)
    parser.add_argument("--grid-rows", type=at_least_one, default=200)
    given = parser.parse_args()
    tables = {"drawn": draw_table(given.drawn_rows)}
    for name in given.tables if given.directory else ():
        tables[name] = read_table(given.directory / f"{name}.parquet", given.most_rows)
    for name, table in tables.items():
        shape = f"{len(table.X):,} × {table.X.shape[1]}, {table.y.mean():.1%} positive"
        print(f"\n{name}: {shape}, {np.count_nonzero(table.directions)} constrained")
        print("| | AUC | pAUC [0, .1] | falls | proof | s |")
        print("|---|---:|---:|---:|---|---:|")
        metrics = measure(table, given.repeats, given.grid_rows)
        ours = metrics["LogitBoost"]
        for contestant, of_it in metrics.items():
            proofs = ", ".join(sorted(set(of_it.verdicts)))
            print(
                f"| {contestant} | {versus(of_it.auc, ours.auc)} | {versus(of_it.pauc, ours.pauc)} "
                f"| {np.mean(of_it.falls):.1%} | {proofs} | {np.mean(of_it.seconds):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
