"""Rankers of lists beside LightGBM's lambdarank and XGBoost's rank:ndcg: `python -m benchmarks.lists [FOLDER]`.

Tables:

- drawn: --queries lists of 5 to 40 rows with 30 columns. A row's worth depends on ten of them, by steps, bends and
  pairs; a list's level and the noise of each row are added, and grades 0 to 4 are cuts of the sum. Some columns tell
  only which list a row is of.
- with FOLDER, its `rank.train`, `rank.test` and their `.query` files: text of svmlight's format, and a list's length a
  line. LightGBM's repository has such a table in examples/lambdarank.

Protocol: of the drawn table each repetition draws whole lists: 60 % to train, 20 % to choose the number of rounds by
NDCG@10, up to --rounds with a patience of 50, and 20 % to test; the files have parts of their own, of which a quarter
of the training lists, drawn anew in each repetition, chooses. All have a learning rate of .05, 31 leaves of at least 20
rows, 255 bins, one thread, and nothing else is tuned. NDCG@10 and the area within lists are means over the repetitions;
in brackets the difference from LambdaMART and the half-width of its 95 % t interval. Seconds are of the fit with all
--rounds rounds and without a validation part, their median; the ratio is to LightGBM's.

Peers that are not installed are left out of the table, and named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from benchmarks import at_least_one, is_here
from core import LambdaMART, LogitBoost, RankBoost
from core.metrics import ListAuc, ListNdcg, list_values

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SETTINGS: Mapping[str, Any] = {
    "learning_rate": 0.05, "max_leaves": 31, "min_samples_leaf": 20.0, "max_depth": 64
}  # fmt: skip
PATIENCE = 50
METRICS = (ListNdcg(10), ListAuc())


class Lists(NamedTuple):
    """Rows of lists, those of a list together."""

    X: Floats
    grade: Integers
    query: Integers

    def of(self, queries: Integers) -> Lists:
        """Return the rows of these lists."""
        rows = np.isin(self.query, queries)
        return Lists(self.X[rows], self.grade[rows], self.query[rows])

    @property
    def sizes(self) -> Integers:
        """Rows of each list."""
        return np.unique(self.query, return_counts=True)[1]


class Parts(NamedTuple):
    """Lists to train, to choose the number of rounds, and to test."""

    train: Lists
    valid: Lists
    test: Lists


Score = Callable[[Floats], Floats]
Fit = Callable[[Lists, "Lists | None", int], Score]


def draw_lists(n_queries: int) -> Lists:
    """Draw lists whose levels say nothing about the order within them."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(n_queries), rng.integers(5, 41, n_queries))
    X = rng.normal(size=(len(query), 30))
    level = rng.normal(size=(n_queries, 5))[query]
    X[:, 25:] = level + 0.2 * X[:, 25:]
    worth = np.tanh(2 * X[:, 0]) + (X[:, 1] > 0.5) + 0.7 * np.abs(X[:, 2]) + 0.6 * X[:, 3] * X[:, 4]
    worth += (
        0.5 * np.sin(3 * X[:, 5])
        + 0.4 * np.maximum(X[:, 6], X[:, 7])
        + 0.3 * X[:, 8:10].sum(axis=1)
    )
    worth += level.sum(axis=1) + rng.normal(size=len(query))
    return Lists(X, np.digitize(worth, [0.5, 2.0, 3.5, 5.0]).astype(np.int64), query)


def read_lists(folder: Path, name: str) -> Lists:
    """Read `name` and `name.query` of a folder."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(folder / name), zero_based=False)
    sizes = np.loadtxt(folder / f"{name}.query", dtype=np.int64)
    return Lists(X.toarray(), y.astype(np.int64), np.repeat(np.arange(len(sizes)), sizes))


def divide(table: Lists, seed: int) -> Parts:
    """Draw the three parts of a table."""
    queries = np.random.default_rng(seed).permutation(np.unique(table.query))
    first, second = len(queries) * 3 // 5, len(queries) * 4 // 5
    return Parts(*(table.of(part) for part in np.split(queries, [first, second])))


def fit_ours(train: Lists, valid: Lists | None, rounds: int, *, make: Callable[[], Any]) -> Score:
    """Fit one of our rankers of lists."""
    ranker = make().set_params(n_rounds=rounds)
    score: Score
    given = {"query": train.query, "graded": True} if ranker.takes_query else {}
    y = train.grade if ranker.takes_query else train.grade > 0
    if valid is None:
        score = ranker.fit(train.X, y, **given).decision_function
        return score

    def ndcg(scores: Floats) -> float:
        return float(
            np.nanmean(list_values(valid.grade, scores, valid.query, METRICS[:1], graded=True))
        )

    ranker.fit_watched(
        train.X, y, X_valid=valid.X, metric=ndcg, patience=PATIENCE, every=1, **given
    )
    score = ranker.decision_function
    return score


def fit_lightgbm(train: Lists, valid: Lists | None, rounds: int) -> Score:
    """Fit LightGBM's lambdarank."""
    import lightgbm

    parameters = {
        "objective": "lambdarank", "learning_rate": 0.05, "num_leaves": 31, "min_data_in_leaf": 20,
        "num_threads": 1, "verbose": -1, "metric": "ndcg", "eval_at": [10], "deterministic": True,
    }  # fmt: skip
    table = lightgbm.Dataset(train.X, train.grade, group=train.sizes)
    watched: dict[str, Any] = {}
    if valid is not None:
        held_out = lightgbm.Dataset(valid.X, valid.grade, group=valid.sizes, reference=table)
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        watched = {"valid_sets": [held_out], "callbacks": [stop]}
    booster = lightgbm.train(parameters, table, rounds, **watched)
    return lambda rows: np.asarray(booster.predict(rows, num_threads=1), dtype=np.float64)


def fit_xgboost(train: Lists, valid: Lists | None, rounds: int) -> Score:
    """Fit XGBoost's rank:ndcg, leaf by leaf as the others."""
    import xgboost

    parameters = {
        "objective": "rank:ndcg", "eta": 0.05, "max_leaves": 31, "max_depth": 0, "nthread": 1,
        "grow_policy": "lossguide", "tree_method": "hist", "max_bin": 255, "eval_metric": "ndcg@10",
    }  # fmt: skip
    table = xgboost.DMatrix(train.X, train.grade, group=train.sizes, nthread=1)
    watched: dict[str, Any] = {}
    if valid is not None:
        held_out = xgboost.DMatrix(valid.X, valid.grade, group=valid.sizes, nthread=1)
        watched = {
            "evals": [(held_out, "valid")], "early_stopping_rounds": PATIENCE, "verbose_eval": False
        }  # fmt: skip
    booster = xgboost.train(parameters, table, rounds, **watched)
    last = booster.best_iteration + 1 if valid is not None else rounds

    def score(rows: Floats) -> Floats:
        found = booster.predict(xgboost.DMatrix(rows, nthread=1), iteration_range=(0, last))
        return np.asarray(found, dtype=np.float64)

    return score


def contestants() -> Iterator[tuple[str, Fit]]:
    """Yield every contestant, LambdaMART first."""
    ours: dict[str, Callable[[], Any]] = {
        "LambdaMART": partial(LambdaMART, **SETTINGS),
        "RankBoost, trees": partial(RankBoost, weak_ranker="tree", **SETTINGS),
        "RankBoost, stumps": RankBoost,
        "LogitBoost, without lists": partial(LogitBoost, **SETTINGS),
    }
    for name, make in ours.items():
        yield name, partial(fit_ours, make=make)
    if is_here("lightgbm"):
        yield "LightGBM, lambdarank", fit_lightgbm
    if is_here("xgboost"):
        yield "XGBoost, rank:ndcg", fit_xgboost


def versus(own: list[float], ours: list[float]) -> str:
    """Write a mean, and the half-width of the interval of its difference from ours."""
    if own is ours or len(own) < 2:
        return f"{np.mean(own):.4f}"
    gap = np.subtract(own, ours)
    width = student.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
    return f"{np.mean(own):.4f} ({gap.mean():+.4f} ± {width:.4f})"


def measure(draw: Callable[[int], Parts], repeats: int, rounds: int) -> None:
    """Print the table of one data set; `draw` returns the parts of a repetition."""
    found: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for seed in range(repeats):
        train, valid, test = draw(seed)
        for name, fit in contestants():
            ndcg, area, seconds = found.setdefault(name, ([], [], []))
            score = fit(train, valid, rounds)
            values = list_values(test.grade, score(test.X), test.query, METRICS, graded=True)
            for metrics, own in zip((ndcg, area), np.nanmean(values, axis=1), strict=True):
                metrics.append(float(own))
            begun = time.perf_counter()
            fit(train, None, rounds)
            seconds.append(time.perf_counter() - begun)
    ours = found["LambdaMART"]
    peer = found.get("LightGBM, lambdarank", ours)
    print("| | NDCG@10 | area within lists | s | ratio |")
    print("|---|---:|---:|---:|---:|")
    for name, (ndcg, area, seconds) in found.items():
        ratio = float(np.median(np.divide(seconds, peer[2])))
        print(
            f"| {name} | {versus(ndcg, ours[0])} | {versus(area, ours[1])} "
            f"| {np.median(seconds):.2f} | {ratio:.2f} |"
        )


def main() -> None:
    """Measure, and print one table each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--queries", type=at_least_one, default=1_000)
    parser.add_argument("--repeats", type=at_least_one, default=5)
    parser.add_argument("--rounds", type=at_least_one, default=300)
    given = parser.parse_args()
    numba.set_num_threads(1)
    fit_ours(draw_lists(20), None, 1, make=LambdaMART)  # kernels are loaded before any clock runs
    fit_ours(draw_lists(20), None, 1, make=RankBoost)
    table = draw_lists(given.queries)
    print(f"\ndrawn: {len(table.sizes):,} lists, {len(table.X):,} × {table.X.shape[1]}")
    measure(partial(divide, table), given.repeats, given.rounds)
    if given.folder is None:
        return
    train, test = (read_lists(given.folder, f"rank.{part}") for part in ("train", "test"))
    width = max(train.X.shape[1], test.X.shape[1])
    train, test = (
        each._replace(X=np.pad(each.X, ((0, 0), (0, width - each.X.shape[1]))))
        for each in (train, test)
    )

    def draw(seed: int) -> Parts:
        queries = np.random.default_rng(seed).permutation(np.unique(train.query))
        held_out, rest = np.split(queries, [len(queries) // 4])
        return Parts(train.of(rest), train.of(held_out), test)

    print(f"\n{given.folder.name}: {len(train.sizes):,} + {len(test.sizes):,} lists, × {width}")
    measure(draw, given.repeats, given.rounds)


if __name__ == "__main__":
    main()
