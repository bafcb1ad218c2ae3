"""The cost of words and gaps: `python -m benchmarks.words [--data DIR]`.

**Words beside codes.** Every algorithm that takes categories is fitted with its defaults on a table of the census's
shape, 41 columns of which 28 hold words, then on the same table with words written as whole numbers, then on the table
with a fifth of all values missing. Seconds are of the processor, after a small fit that loads kernels.

**Logistic regression beside scikit-learn's.** Ours is the whole fit, its design included; theirs is the fit alone, on
sparse one-hot columns that are ready. Both minimise the same sum, so what either leaves above the least found can be
told. Solvers: Newton's with Cholesky up to 1,500 coordinates, Newton's with conjugate gradients, and L-BFGS, each with
the tolerance that comes with it.

The census-shaped table is drawn. With --data, a folder of Parquet files with a column `label`, the real tables in it
that have words come before it.

**Crosses.** `logitboost` of 200 rounds at fixed settings, `logistic` and `lambdamart` (--crossed) without crosses and
with at most K (--crosses), on the named tables (--tables; `benchmarks.auto` reads them) or on the drawn one: AUC and
partial AUC over [0, .05] of the test rows of two splits, the processor's seconds of both fits, in turns, the
nanoseconds that a row takes to score, and the size of the artifact.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import at_least_one
from benchmarks.auto import WINDOW, read_table, split_rows
from core import save
from core.base.table import MAX_CATEGORIES, CodedTable, to_matrix
from core.metrics import auc, partial_auc
from core.registry import ALGORITHMS

Labels = npt.NDArray[np.bool_]

PARTS = ["logistic", "algorithms", "crosses"]
BOOSTED = {"n_rounds": 200, "learning_rate": 0.1, "max_leaves": 31}
CROSSED: dict[str, dict[str, Any]] = {"logitboost": BOOSTED, "logistic": {}, "lambdamart": BOOSTED}
N_WORDS, N_NUMBERS = 28, 13
FEW_COORDINATES = 1500


def draw_census(n: int, seed: int) -> tuple[pd.DataFrame, Labels]:
    """Draw a table of 41 columns that go together in threes, 28 of words: 2 to 50 of them, some of them rare."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    score, before = np.zeros(n), np.zeros(n, np.int64)
    for j in range(N_WORDS):
        size = int(2 + 48 * (j % 7) ** 2 / 36)
        share = np.sort(rng.dirichlet(np.full(size, 0.5)))[::-1]
        codes = rng.choice(size, n, p=share)
        if j % 3:  # mostly repeats the column before
            same = rng.random(n) < 0.7
            codes = np.where(same, before % size, codes)
        before = codes
        score += rng.normal(size=size)[codes] * 0.3
        names = np.array([f"word {k}" for k in range(size)], dtype=object)
        columns[f"word_{j}"] = names[codes]
    for j in range(N_NUMBERS):
        x = rng.normal(size=n)
        if j % 3 == 0:
            x = np.where(rng.random(n) < 0.9, 0.0, np.exp(x))  # such as capital gains
        score += 0.3 * x
        columns[f"number_{j}"] = x
    y = score + rng.logistic(size=n) > np.quantile(score, 0.8)
    return pd.DataFrame(columns), y


def read_tables(folder: Path) -> Iterator[tuple[str, pd.DataFrame, Labels]]:
    """Return the tables of a folder that have words, without columns of more words than a table may have."""
    for path in sorted(folder.glob("*.parquet")):
        table = pd.read_parquet(path)
        if "label" not in table:
            continue
        y = table.pop("label").to_numpy()
        y = y == y.max()
        words = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
        kept = [name for name in words if table[name].nunique() <= MAX_CATEGORIES]
        if not kept:
            continue
        table = table.drop(columns=set(words) - set(kept))
        table[kept] = table[kept].astype(object).astype("category")
        yield path.stem, table, y


def take(table: pd.DataFrame, y: Labels, n: int) -> tuple[pd.DataFrame, Labels]:
    """Draw so many rows."""
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:n])
    return table.iloc[rows].reset_index(drop=True), y[rows]


def as_codes(table: CodedTable) -> CodedTable:
    """Write words as whole numbers, and the missing as one more."""
    matrix = np.nan_to_num(table.matrix, nan=-1.0)
    return CodedTable(matrix, table.names, (None,) * len(table.names))


def coded(table: pd.DataFrame) -> CodedTable:
    """Return a table as the service fits on it."""
    matrix, categories = to_matrix(table)
    return CodedTable(matrix, tuple(str(name) for name in table), categories)


def with_gaps(table: CodedTable, share: float) -> CodedTable:
    """Remove a fraction of all values."""
    gone = np.random.default_rng(1).random(table.matrix.shape) < share
    matrix = np.asfortranarray(np.where(gone, np.nan, table.matrix))
    return CodedTable(matrix, table.names, table.categories)


def cpu_of_fit(name: str, X: Any, y: Labels) -> tuple[float, Any]:
    """Fit with the defaults; return the processor's seconds, and the ranker."""
    ranker = ALGORITHMS[name]()
    started = time.process_time()
    ranker.fit(X, y)
    return time.process_time() - started, ranker


def print_algorithms(table: pd.DataFrame, y: Labels, names: list[str]) -> None:
    """Print each algorithm's time on words, on codes, and with gaps."""
    words = coded(table)
    tables = words, as_codes(words), with_gaps(words, 0.2)
    few = np.arange(len(y)) < 1500
    print("| algorithm | words, CPU s | codes | words / codes | words and gaps | gaps / words |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in names:
        if ALGORITHMS[name].target != "binary" or not ALGORITHMS[name]().takes_categories():
            continue
        seconds = []
        for X in tables:
            small = CodedTable(np.asfortranarray(X.matrix[few]), X.names, X.categories)
            cpu_of_fit(name, small, y[few])
            seconds.append(cpu_of_fit(name, X, y)[0])
        of_words, of_codes, of_gaps = seconds
        print(
            f"| {name} | {of_words:.2f} | {of_codes:.2f} | {of_words / of_codes:.2f} | {of_gaps:.2f} "
            f"| {of_gaps / of_words:.2f} |",
            flush=True,
        )


def print_logistic(name: str, table: pd.DataFrame, y: Labels) -> None:
    """Print our logistic regression and scikit-learn's on one table."""
    design = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
        (
            make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True)),
            make_column_selector(dtype_include="number"),
        ),
        sparse_threshold=1.0,
    )
    Z = design.fit_transform(table).tocsr()
    sign = np.where(y, 1.0, -1.0)
    seconds, ours = cpu_of_fit("logistic", coded(table), y)
    lines = [("ours", seconds, ours.objective_, auc(y, ours.decision_function(coded(table))))]
    solvers = {"newton-cg": {}, "lbfgs": {"max_iter": 1000}}
    if Z.shape[1] <= FEW_COORDINATES:
        solvers = {"newton-cholesky": {}} | solvers
    for solver, given in solvers.items():
        theirs = LogisticRegression(solver=solver, **given)
        started = time.process_time()
        with threadpool_limits(1):
            theirs.fit(Z, y)
        seconds = time.process_time() - started
        w, scores = theirs.coef_[0], theirs.decision_function(Z)
        value = 0.5 * float(w @ w) + float(np.logaddexp(0.0, -sign * scores).sum())
        lines.append((solver, seconds, value, auc(y, scores)))
    least = min(value for _, _, value, _ in lines)
    for who, seconds, value, area in lines:
        print(
            f"| {name} | {len(y):,} × {table.shape[1]} | {Z.shape[1]:,} | {who} | {seconds:.2f} "
            f"| {value - least:.1e} | {area:.5f} |",
            flush=True,
        )


def print_crosses(
    algorithm: str, name: str, table: pa.Table, y: npt.NDArray[np.int8], most: int, n: int
) -> None:
    """Print what crosses change on a table, by two splits of which n rows at most are learnt from."""
    metrics: dict[int, list[list[float]]] = {0: [], most: []}
    found = []
    for split in range(2):
        training, test = split_rows(y, split, 3)
        X, X_test = table.take(training[:n]), table.take(test)
        for k, of_splits in metrics.items():
            ranker: Any = ALGORITHMS[algorithm](**CROSSED[algorithm], crosses=k)
            started = time.process_time()
            ranker.fit(X, y[training[:n]] == 1)
            seconds = time.process_time() - started
            rows = ranker.checked_rows(X_test)
            ranker.score_rows(rows)
            started = time.process_time()
            scores = ranker.score_rows(rows)
            nanoseconds = (time.process_time() - started) / len(rows) * 1e9
            areas = auc(y[test], scores), partial_auc(y[test], scores, *WINDOW)
            of_splits.append([*areas, seconds, nanoseconds, len(save(ranker)) / 1024])
        found.append(len(ranker.structure()["crosses"]))
    columns = []
    for digits, without, with_crosses in zip(
        (4, 4, 2, 0, 0),
        *(zip(*of_splits, strict=True) for of_splits in metrics.values()),
        strict=True,
    ):
        told = [f"{value:.{digits}f}".removeprefix("0") for value in (*without, *with_crosses)]
        columns.append(f"{told[0]} {told[1]} | {told[2]} {told[3]}")
    shape = f"{name}, {min(n, len(training)):,}"
    print(f"| {shape} | {found[0]}, {found[1]} | {' | '.join(columns)} |", flush=True)


def main() -> None:
    """Print the tables of docs/benchmarks.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of Parquet files with a column `label`")
    parser.add_argument("--rows", type=at_least_one, default=60_000)
    parser.add_argument("--algorithms", nargs="*", default=list(ALGORITHMS))
    parser.add_argument("--logistic-rows", type=int, nargs="*", default=[40_000])
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--crosses", type=at_least_one, default=30, help="at most so many")
    parser.add_argument("--crossed", nargs="*", default=list(CROSSED), choices=list(CROSSED))
    parser.add_argument("--tables", nargs="*", default=[], help="tables of --data to cross")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    census = draw_census(options.rows, 0)
    if "logistic" in options.parts:
        tables = [] if options.data is None else list(read_tables(options.data))
        for n in options.logistic_rows:
            print(f"\nlogistic regression, {n:,} rows at most\n")
            print("| table | shape | coordinates | solver | CPU s | above the least | AUC |")
            print("|---|---|---:|---|---:|---:|---:|")
            for name, table, y in [*tables, ("census-shaped", *census)]:
                print_logistic(name, *take(table, y, n))
    if "algorithms" in options.parts:
        print(f"\ncensus-shaped, {options.rows:,} rows\n")
        print_algorithms(*census, options.algorithms)
    if "crosses" in options.parts:
        named = {name: read_table(options.data, name) for name in options.tables}
        if not named:
            named["census-shaped"] = pa.Table.from_pandas(census[0]), census[1].astype(np.int8)
        for algorithm in options.crossed:
            print(f"\n{algorithm}: crosses, {options.crosses} at most, two splits\n")
            print("| table, rows | crosses | AUC | with | pAUC | with | fit, CPU s | with", end="")
            print(" | a row, ns | with | artifact, kB | with |")
            print("|---|" + "---:|" * 11)
            for name, labelled in named.items():
                print_crosses(algorithm, name, *labelled, options.crosses, options.rows)


if __name__ == "__main__":
    main()
