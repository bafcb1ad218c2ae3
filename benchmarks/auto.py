"""`auto` beside LightGBM, XGBoost and logistic regression: `python -m benchmarks.auto --data DIR`.

Tables, splits, budgets and metrics are fixed in `auto_protocol.json`, which was committed before the first run. DIR
holds the tables as `<name>.parquet`, the label (0 or 1) in the column that the protocol names, categories as
text. Of a greater table `most_rows` rows are drawn by the seed of each split, keeping the share of positives;
half of either class trains, half tests. The protocol's tables are those of a public collection that have at
least 1,000 rows and on which logistic regression does not reach an AUC of .99, each source once.

`auto` and the tuned peers have the same seconds by the clock, last fits included, the same threads and the same inner
splits; see `auto_peers` for how the peers are tuned. All of them are told to care for AUC and for the partial AUC in
the window alike. Every library is warmed up first, as the workers of the service are.

Each result is appended to a file at once, and a run goes on where another has ended. `--summary` prints the tables
of what is in the file: for each metric means over the splits, mean ranks over the tables, and `auto` against every
peer by the corrected resampled t-test of Nadeau & Bengio (2003), in which the variance of the mean difference over
J splits is (1/J + n_test/n_train) s².
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata, t

from benchmarks.auto_peers import Floats, Task, as_categories, score_default, score_tuned
from core import RankAverage
from core.metrics import auc, partial_auc
from core.registry import ALGORITHMS
from core.selection import Auto, auto_ranker, split_rows
from core.table import to_matrix

PROTOCOL = Path(__file__).with_name("auto_protocol.json")
PEERS = ("lightgbm", "xgboost", "logistic")
METHODS = ("auto", *(f"{peer} {how}" for peer in PEERS for how in ("tuned", "default")))
METRICS = ("auc", "pauc")
Protocol = dict[str, Any]
Record = dict[str, Any]


def read_table(folder: Path, name: str, label: str) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """Read the features and the label."""
    table = pd.read_parquet(folder / f"{name}.parquet")
    y = table.pop(label).to_numpy(dtype=np.int64)
    return table, y


def divide(
    y: npt.NDArray[np.int64], seed: int, most_rows: int, train_share: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Draw training and test rows, stratified."""
    rng = np.random.Generator(np.random.Philox(seed))
    kept_share = min(1.0, most_rows / len(y))
    train, test = [], []
    for value in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == value))
        rows = rows[: round(kept_share * len(rows))]
        n_train = round(train_share * len(rows))
        train.append(rows[:n_train])
        test.append(rows[n_train:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def warm_up() -> None:
    """Compile and load every kernel, as the service's workers do."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = X[:, 0] > 0
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "x", "z")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for algorithm in ALGORITHMS.values():
            if algorithm.target == "binary":
                algorithm().fit(X, y).decision_function(X)
                if algorithm().takes_categories():
                    algorithm().fit(frame, y).decision_function(frame)
        RankAverage().fit(X, y).decision_function(X)


def make_task(
    protocol: Protocol, X: pd.DataFrame, y: npt.NDArray[np.int64], seed: int
) -> tuple[Task, npt.NDArray[np.int64]]:
    """Give a split's task, in the peers' form, and the test labels."""
    train, test = divide(y, seed, protocol["most_rows"], protocol["train_share"])
    learnt, judged = as_categories(X.iloc[train], X.iloc[test])
    learnt, judged = learnt.reset_index(drop=True), judged.reset_index(drop=True)
    positive = y[train] == 1
    n_rare = int(min(positive.sum(), (~positive).sum()))
    planner = Auto(n_rows=len(train), n_rare=n_rare, budget_seconds=protocol["budget_seconds"])
    matrix, _ = to_matrix(learnt)
    inner = split_rows(matrix, positive, np.ones(len(train)), planner.n_splits, seed=seed)
    window = (protocol["window"][0], protocol["window"][1])
    return Task(learnt, y[train], judged, inner, window, protocol["threads"], seed), y[test]


def score_auto(task: Task, budget: float) -> tuple[Floats, list[Record]]:
    """Run `auto`; give the test rows' scores and what it chose."""
    searched = auto_ranker(
        task.X,
        task.y,
        budget_seconds=budget,
        fpr_min=task.window[0],
        fpr_max=task.window[1],
        random_state=task.seed,
    )
    members = [
        {"algorithm": m.algorithm, "weight": m.weight, "n_rounds": m.parameters.get("n_rounds")}
        for m in searched.chosen.members
    ]
    return searched.ranker.decision_function(task.X_test), members


def measure(task: Task, y_test: npt.NDArray[np.int64], method: str, budget: float) -> Record:
    """Run one method on one split."""
    more: Record = {}
    start = time.perf_counter()
    if method == "auto":
        scores, more["members"] = score_auto(task, budget)
    else:
        peer, how = method.split()
        if how == "tuned":
            scores, more["candidates"] = score_tuned(task, peer, budget)
        else:
            scores = score_default(task, peer)
    seconds = time.perf_counter() - start
    return {
        "auc": auc(y_test, scores),
        "pauc": partial_auc(y_test, scores, *task.window),
        "seconds": seconds,
        **more,
    }


def run(
    protocol: Protocol, folder: Path, results: Path, tables: list[str], tell: Callable[[str], None]
) -> None:
    """Run what is not in the file yet, and append it."""
    done = {(one["table"], one["seed"], one["method"]) for one in read_results(results)}
    for name in tables:
        X, y = read_table(folder, name, protocol["label"])
        for seed in protocol["split_seeds"]:
            methods = [method for method in METHODS if (name, seed, method) not in done]
            if not methods:
                continue
            task, y_test = make_task(protocol, X, y, seed)
            for method in methods:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = measure(task, y_test, method, protocol["budget_seconds"])
                record = {
                    "table": name,
                    "seed": seed,
                    "method": method,
                    "n_train": len(task.y),
                    "n_test": len(y_test),
                    **found,
                }
                with results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                tell(
                    f"{name} {seed} {method}: AUC {found['auc']:.4f}, pAUC {found['pauc']:.4f}, "
                    f"{found['seconds']:.1f} s"
                )


def read_results(path: Path) -> list[Record]:
    """Read the results so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def corrected_t_test(differences: Floats, test_to_train: float) -> float:
    """Give the two-sided p-value of no mean difference over resampled splits.

    C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003, eq. 9.
    """
    n = len(differences)
    if n < 2:
        return float("nan")
    variance = (1.0 / n + test_to_train) * differences.var(ddof=1)
    if variance <= 0.0:
        return 1.0 if differences.mean() == 0.0 else 0.0
    return float(2.0 * t.sf(abs(differences.mean()) / np.sqrt(variance), n - 1))


def summarise(records: list[Record], level: float) -> Iterator[str]:
    """Give lines of Markdown: every figure, mean ranks, tests, and times."""
    frame = pd.DataFrame(records)
    for metric in METRICS:
        figures = frame.pivot_table(index=["table", "seed"], columns="method", values=metric)
        figures = figures[[m for m in METHODS if m in figures]].dropna()
        means = figures.groupby("table").mean()
        yield f"\n### {metric}: means over the splits\n"
        yield "| table | " + " | ".join(means.columns) + " | auto less the best peer | p |"
        yield "|---|" + "---:|" * (len(means.columns) + 2)
        worse = 0
        for table, row in means.iterrows():
            best = row.drop("auto").idxmax()
            difference, p = compare(frame, figures, str(table), str(best))
            worse += difference < 0 and p < level
            cells = " | ".join(f"**{v:.4f}**" if v == row.max() else f"{v:.4f}" for v in row)
            yield f"| {table} | {cells} | {difference:+.4f} ({best}) | {p:.3f} |"
        ranks = means.apply(lambda row: pd.Series(rankdata(-row), row.index), axis=1).mean()
        yield "| mean rank | " + " | ".join(f"{rank:.2f}" for rank in ranks) + " | | |"
        yield f"\nSignificantly worse than the best peer on {worse} of {len(means)} tables.\n"
        yield "| auto against | tables won | lost | significantly better | significantly worse |"
        yield "|---|---:|---:|---:|---:|"
        for peer in means.columns.drop("auto"):
            tests = [compare(frame, figures, str(table), peer) for table in means.index]
            won = sum(d > 0 for d, _ in tests)
            lost = sum(d < 0 for d, _ in tests)
            better = sum(d > 0 and p < level for d, p in tests)
            beaten = sum(d < 0 and p < level for d, p in tests)
            yield f"| {peer} | {won} | {lost} | {better} | {beaten} |"
    seconds = frame.groupby("method")["seconds"].agg(["mean", "max"])
    yield "\n| seconds | mean | most |\n|---|---:|---:|"
    for method, row in seconds.iterrows():
        yield f"| {method} | {row['mean']:.2f} | {row['max']:.2f} |"


def compare(
    frame: pd.DataFrame, figures: pd.DataFrame, table: str, peer: str
) -> tuple[float, float]:
    """Give `auto` less a peer on a table, and the corrected p-value."""
    own = figures.loc[table]
    sizes = frame[frame["table"] == table].iloc[0]
    differences = (own["auto"] - own[peer]).to_numpy()
    return float(differences.mean()), corrected_t_test(
        differences, sizes["n_test"] / sizes["n_train"]
    )


def main() -> None:
    """Run the protocol, or what is left of it, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with <name>.parquet")
    parser.add_argument("--results", type=Path, default=Path("auto-results.jsonl"))
    parser.add_argument("--protocol", type=Path, default=PROTOCOL)
    parser.add_argument("--tables", nargs="+", help="some of the protocol's; default: all")
    parser.add_argument("--summary", action="store_true", help="only print what is in the file")
    arguments = parser.parse_args()
    protocol: Protocol = json.loads(arguments.protocol.read_text())
    if not arguments.summary:
        numba.set_num_threads(protocol["threads"])
        warm_up()
        run(
            protocol,
            arguments.data,
            arguments.results,
            arguments.tables or protocol["tables"],
            lambda line: print(line, flush=True),
        )
    for line in summarise(read_results(arguments.results), protocol["level"]):
        print(line)


if __name__ == "__main__":
    main()
