"""Tables 4 and 5 of Narasimhan & Agarwal on tables of one's own: `python -m benchmarks.paper4_tables DIR`.

DIR holds tables as `<name>.parquet`. A table is given as `name`, its label in the column `label`,
or as `name:column:value`, where the rows of that value are positive. Columns of text are left out.

Protocol, after the paper's §8 and appendix B.2: of each table at most --rows rows are drawn; in each of
--splits splits two thirds of either class are for training and the rest for the test. Parameters
are chosen by the partial AUC of the window on a third of the training part, drawn by class, that the
candidates were not fitted on; the chosen ones are then fitted on the whole training part. The SVMs
do so themselves, along one warm path of C; where one is anchored at the machine for the whole AUC, so
that its objective is another one, the report marks it, and where constant scores are its own optimum
whatever C. The test part is used for the printed figures only.
Windows: [0.02, 0.05], judged by the partial AUC (Table 4); [0, 0.1] and [0.05, 0.1], judged by
the TPR at an FPR of 0.1 (Table 5).

Every figure is appended to --results, one JSON object a line, and never computed twice: the script
can be run in pieces, by table and contestant. --report prints the tables from that file: mean and
standard deviation over the splits, which share rows; and the mean difference from logistic regression,
with its standard error over the splits.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.base.parameters import list_parameters
from core.metrics import auc, partial_auc, tpr_at_fpr
from core.registry import ALGORITHMS

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Window = tuple[float, float]

WINDOWS: tuple[Window, ...] = ((0.02, 0.05), (0.0, 0.1), (0.05, 0.1))
TABLES = ("a9a", "ijcnn1", "letter_raw:class:Q", "spambase", "satimage", "magic_gamma")


class Scored(NamedTuple):
    """Scores of new rows, and whether an SVM said that it had collapsed, and that it was anchored."""

    scores: Floats
    collapsed: bool
    anchored: bool


class Contestant(NamedTuple):
    """An algorithm of the registry, or a control, and the parameters to choose from."""

    algorithm: str
    grid: dict[str, list[Any]]


SVM: dict[str, list[Any]] = {"C": ["auto"], "validation_fraction": [1 / 3]}
TREES = {"n_rounds": [100, 300], "max_leaves": [7, 31]}

# One line each. B.2: pAUCBoost took 100 rounds on letter and 25 on the larger tables.
CONTESTANTS = {
    "logistic": Contestant("logistic", {"C": [1e-3, 1e-2, 0.1, 1.0, 10.0]}),
    "auc_svm": Contestant("auc_svm", SVM),
    "pauc_svm": Contestant("pauc_svm", SVM),
    "pauc_svm_dc": Contestant("pauc_svm_dc", SVM),
    "pauc_svm_sigmoid": Contestant("pauc_svm", SVM | {"surrogate": ["sigmoid"]}),
    "pauc_svm_bins": Contestant("pauc_svm", SVM | {"feature_map": ["bins"]}),
    "pauc_svm_fourier": Contestant(
        "pauc_svm", SVM | {"feature_map": ["fourier"], "n_components": [500], "tol": [1e-3]}
    ),
    "asymmetric_svm": Contestant("asymmetric_svm", SVM),
    "greedy_pairs": Contestant("greedy_pairs", {"coarseness": [100]}),
    "komori_eguchi_25": Contestant("komori_eguchi_boost", {"n_rounds": [25]}),
    "komori_eguchi_100": Contestant("komori_eguchi_boost", {"n_rounds": [100]}),
    "komori_eguchi": Contestant(
        "komori_eguchi_boost",
        {"weak_ranker": ["spline", "stump"], "penalty": [1e-4, 1e-3, 1e-2], "n_rounds": [100]},
    ),
    "rankboost": Contestant("rankboost", {"weak_ranker": ["tree"]} | TREES),
    "lightgbm": Contestant("lightgbm", {"num_leaves": [7, 31], "n_estimators": [100, 300]}),
}


def logistic(**parameters: Any) -> Any:
    """Logistic regression on standardised columns, the missing at their mean."""
    model = LogisticRegression(max_iter=1000, **parameters)
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), model)


def lightgbm(**parameters: Any) -> Any:
    """LightGBM with a smaller rate than its default, on one thread."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(learning_rate=0.05, n_jobs=1, verbose=-1, **parameters)


BASELINES: dict[str, Callable[..., Any]] = {"logistic": logistic, "lightgbm": lightgbm}


def read_table(folder: Path, table: str, rows: int) -> tuple[Floats, Labels]:
    """Read the numeric columns and the label, of at most so many rows."""
    name, column, value = table.split(":") if ":" in table else (table, "label", None)
    frame = pd.read_parquet(folder / f"{name}.parquet")
    if len(frame) > rows:
        frame = frame.sample(rows, random_state=0)
    label = frame.pop(column)
    positive = label == label.max() if value is None else label.astype(str) == value
    X = frame.select_dtypes("number").to_numpy(dtype=np.float64)
    return X, positive.to_numpy(dtype=np.int64)


def draw(y: Labels, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Draw a share of the rows of each class."""
    rng = np.random.default_rng(seed)
    drawn = np.zeros(len(y), dtype=np.bool_)
    for value in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == value))
        drawn[rows[: round(share * len(rows))]] = True
    return drawn


def takes_window(algorithm: str) -> bool:
    """Return True if the algorithm is told the window; others are only judged by it."""
    return algorithm in ALGORITHMS and "fpr_max" in {
        parameter.name for parameter in list_parameters(ALGORITHMS[algorithm])
    }


def score(
    algorithm: str, parameters: dict[str, Any], window: Window | None, data: tuple[Any, ...]
) -> Scored:
    """Fit on the first two of data, and score the third."""
    X, y, X_new = data
    if window is not None:
        parameters = parameters | {"fpr_min": window[0], "fpr_max": window[1]}
    make = BASELINES[algorithm] if algorithm in BASELINES else ALGORITHMS[algorithm]
    model = make(**parameters).fit(X, y)
    told = (
        bool(getattr(model, "collapsed_", False)),
        getattr(model, "anchor_cost_", None) is not None,
    )
    if hasattr(model, "decision_function"):
        return Scored(np.asarray(model.decision_function(X_new)), *told)
    return Scored(np.asarray(model.predict_proba(X_new)[:, 1]), *told)


def candidates(contestant: Contestant) -> Iterator[dict[str, Any]]:
    """Return every combination of the grid."""
    for values in product(*contestant.grid.values()):
        yield dict(zip(contestant.grid, values, strict=True))


def run(
    contestant: Contestant, X: Floats, y: Labels, seed: int, windows: list[Window]
) -> Iterator[dict[str, Any]]:
    """Choose, fit and judge on one split, for each window; a fit that no window changes is made once."""
    train = draw(y, 2 / 3, seed)
    X_train, y_train = X[train], y[train]
    inner = draw(y_train, 2 / 3, seed + 1000)
    inside = X_train[inner], y_train[inner], X_train[~inner]
    whole = X_train, y_train, X[~train]
    fits: dict[str, Scored] = {}
    start = time.process_time()

    def scores_of(part: str, data: tuple[Any, ...], parameters: Any, window: Any) -> Scored:
        told = window if takes_window(contestant.algorithm) else None
        key = json.dumps([part, parameters, told])
        if key not in fits:
            fits[key] = score(contestant.algorithm, parameters, told, data)
        return fits[key]

    for window in windows:
        grid = list(candidates(contestant))
        chosen, areas = grid[0], []
        if len(grid) > 1:
            for parameters in grid:
                held = scores_of("inner", inside, parameters, window).scores
                areas.append(partial_auc(y_train[~inner], held, *window))
            chosen = grid[int(np.argmax(areas))]
        (scores, collapsed, anchored), test = scores_of("whole", whole, chosen, window), y[~train]
        yield {
            "window": list(window),
            "parameters": chosen,
            "pauc": partial_auc(test, scores, *window),
            "empirical_pauc": partial_auc(test, scores, *window, definition="empirical"),
            "tpr": tpr_at_fpr(test, scores, window[1]),
            "auc": auc(test, scores),
            "collapsed": collapsed,
            "anchored": anchored,
            "cpu_seconds": round(time.process_time() - start, 2),
        }
        start = time.process_time()


def measure(arguments: argparse.Namespace) -> None:
    """Append what is not in the results yet."""
    done = {_key(record) for record in _read(arguments.results)}
    for table in arguments.tables:
        X, y = read_table(arguments.folder, table, arguments.rows)
        facts = {"table": table, "rows": len(y), "columns": X.shape[1], "positive": y.mean()}
        for name, seed in product(arguments.contestants, range(arguments.splits)):
            base = facts | {"contestant": name, "split": seed}
            wanted = [WINDOWS[k] for k in arguments.windows]
            windows = [w for w in wanted if _key(base | {"window": list(w)}) not in done]
            for record in run(CONTESTANTS[name], X, y, seed, windows):
                with arguments.results.open("a") as file:
                    file.write(json.dumps(base | record) + "\n")
        print(f"{table}: {len(y)} rows, done", flush=True)


def report(arguments: argparse.Namespace) -> None:
    """Print the tables of what has been measured, in Markdown."""
    if not arguments.results.exists():
        sys.exit(f"nothing was measured: there is no {arguments.results}")
    frame = pd.DataFrame(_read(arguments.results))
    frame = frame[
        frame["table"].isin(arguments.tables) & frame["contestant"].isin(arguments.contestants)
    ]
    frame["window"] = frame["window"].map(tuple)
    for window in (WINDOWS[k] for k in arguments.windows):
        metric = "pauc" if window == WINDOWS[0] else "tpr"
        part = frame[frame["window"] == window]
        print(f"\n{metric}, window {list(window)}\n")
        print("| table | rows | positive | " + " | ".join(arguments.contestants) + " |")
        print("|---|---:|---:|" + "---:|" * len(arguments.contestants))
        for table, rows in part.groupby("table", sort=False):
            values = rows.pivot(index="split", columns="contestant", values=metric)
            cells = [
                _cell(values, name) + _count_departures(rows, name)
                for name in arguments.contestants
            ]
            first = rows.iloc[0]
            print(
                f"| {table} | {first['rows']} | {first['positive']:.4f} | "
                + " | ".join(cells)
                + " |"
            )
    seconds = frame.groupby("contestant")["cpu_seconds"].sum().round()
    print(f"\nCPU seconds, tables and windows together: {seconds.to_dict()}")


def _cell(values: pd.DataFrame, name: str) -> str:
    """Mean and standard deviation of a contestant, and its difference from logistic regression."""
    if name not in values:
        return "—"
    text = f"{values[name].mean():.4f} ± {values[name].std():.4f}"
    if name == "logistic" or "logistic" not in values:
        return text
    difference = values[name] - values["logistic"]
    return f"{text} ({difference.mean():+.4f} ± {difference.sem():.4f})"


def _count_departures(rows: pd.DataFrame, name: str) -> str:
    """Say in how many of the splits an SVM was anchored, and in how many of these it had collapsed."""
    told = rows[rows["contestant"] == name]
    if not told["anchored"].any():
        return ""
    collapsed, anchored = int(told["collapsed"].sum()), int(told["anchored"].sum())
    return f", anchored in {anchored} of {len(told)}" + f" ({collapsed} collapsed)" * (
        collapsed > 0
    )


def _key(record: dict[str, Any]) -> tuple[Any, ...]:
    return (
        record["table"],
        record["rows"],
        record["contestant"],
        record["split"],
        tuple(record["window"]),
    )


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    """Measure, or report what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, default=Path("paper4.jsonl"))
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--contestants", nargs="+", default=list(CONTESTANTS), choices=CONTESTANTS)
    parser.add_argument("--windows", nargs="+", type=int, default=[0, 1, 2], choices=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--report", action="store_true", help="print what --results holds")
    arguments = parser.parse_args()
    report(arguments) if arguments.report else measure(arguments)


if __name__ == "__main__":
    main()
