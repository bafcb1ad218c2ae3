"""Random forests beside those of scikit-learn: `python -m benchmarks.forests --data DIR --tables NAME ...`.

DIR holds tables as for `benchmarks.auto`. Two thirds of the rows, at most 30,000, are learnt from, the others judge;
means of three splits. Both have as many trees and one thread, and the seconds are of CPU. scikit-learn gets the numbers
of categories, with gaps.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from benchmarks.auto import WINDOW, read_table
from core import RandomForest
from core.metrics import auc, partial_auc

MAX_ROWS, SPLITS = 30_000, 3


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", required=True)
    parser.add_argument("--trees", type=int, default=300)
    given = parser.parse_args()
    numba.set_num_threads(1)
    forests: dict[str, Any] = {
        "`random_forest`": RandomForest(n_trees=given.trees),
        "the same, `log_loss`": RandomForest(n_trees=given.trees, criterion="log_loss"),
        "scikit-learn, random forest": RandomForestClassifier(given.trees, random_state=0),
        "`random_forest`, `random`": RandomForest(n_trees=given.trees, splitter="random"),
        "scikit-learn, extra trees": ExtraTreesClassifier(given.trees, random_state=0),
    }
    RandomForest(n_trees=1).fit([[0.0], [1.0]] * 50, [0, 1] * 50)  # compiled before
    print("| Table | Forest | AUC | pAUC | CPU seconds of the fit |\n|---|---|---:|---:|---:|")
    for name in given.tables:
        features, y = read_table(given.data, name, None)
        table = pd.DataFrame(
            {column: features[column].to_pandas() for column in features.column_names}
        )
        for title, forest in forests.items():
            found = [measure(forest, table, y, split) for split in range(SPLITS)]
            area, partial, seconds = np.mean(found, axis=0)
            print(f"| {name} | {title} | {area:.4f} | {partial:.4f} | {seconds:.1f} |", flush=True)


def measure(
    forest: Any, table: pd.DataFrame, y: np.ndarray[Any, Any], split: int
) -> tuple[float, float, float]:
    """Return AUC and partial AUC on the rows that were not learnt from, and the seconds of the fit."""
    order = np.random.default_rng(split).permutation(len(y))
    n = min(2 * len(y) // 3, MAX_ROWS)
    if isinstance(forest, RandomForest):
        X: Any = table
    else:
        words = table.select_dtypes(exclude="number").columns
        codes = {word: pd.factorize(table[word])[0] for word in words}
        X = table.assign(**codes).astype(float)
    start = time.process_time()
    forest.fit(X.iloc[order[:n]], y[order[:n]])
    seconds = time.process_time() - start
    rest = X.iloc[order[n:]]
    ours = isinstance(forest, RandomForest)
    scores = forest.decision_function(rest) if ours else forest.predict_proba(rest)[:, 1]
    held = y[order[n:]]
    return auc(held, scores), partial_auc(held, scores, *WINDOW), seconds


if __name__ == "__main__":
    main()
