"""Ranking trees and forests: `python -m benchmarks.treerank`.

Four figures, each the median of `--repeats` runs in a process of its own, on `--threads` threads:

- *bin*: a table of `--rows` × `--features` coded, once;
- *grow*: one tree of depth 8 on it, LeafRank of depth 3 in its nodes, binning apart;
- *score*: the same rows through that tree;
- *forest*: 50 trees on 20,000 × 16, binning and out-of-bag AUC included.

`bin_added` and `grow_added` are the memory that binning and growing take at their peaks, in multiples of
the binned table (a byte a cell); growing counts the coded table that it stands on.

The reference implementation, the R package TreeRank by N. Baskiotis, has been removed from CRAN, so it
cannot be run beside this one: Debian's R alone does not bring it. The one figure of it that we
know, 68 s for a forest of 50 trees of AUC .796 on 20,000 × 16, is as we were told it, on another
machine and another table: a scale, not a comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import at_least_one
from benchmarks.stumps import peak_memory
from core import TreeRankForest
from core.base.ranker import Floats, ignore
from core.metrics import auc
from core.treerank.growth import TreeLimits, TreeRows, grow
from core.treerank.leafrank import LeafRank, Shape, code_sample
from core.treerank.tree import Booleans

DEPTH, LEAFRANK_DEPTH, LEAST = 8, 3, 5.0
FOREST_ROWS, FOREST_FEATURES, TREES = 20_000, 16, 50


def make_table(n_rows: int, n_features: int, seed: int) -> tuple[Floats, Booleans]:
    """Draw numbers, of which four are informative: one by itself, one by its square, two together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    signal = X[:, 0] - 0.5 * X[:, 1] * X[:, 3] + 0.3 * X[:, 2] ** 2
    return X, signal + rng.normal(size=n_rows) > 0.8


def measure_tree(n_rows: int, n_features: int) -> dict[str, float]:
    """Bin, grow and score."""
    X, y = make_table(n_rows, n_features, 0)
    weight = np.ones(n_rows)
    before = peak_memory()
    started = time.perf_counter()
    table = code_sample(TreeRows(X, y, weight, np.zeros(n_features, dtype=np.int64)), 255)
    binned = time.perf_counter()
    bin_added = peak_memory() - before
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    held = peak_memory() - table.table.words.nbytes - table.order.nbytes
    growing = time.perf_counter()
    division = LeafRank(
        table,
        np.arange(n_rows),
        weight,
        weight,
        Shape(LEAFRANK_DEPTH, 2**LEAFRANK_DEPTH, LEAST),
    )
    tree = grow(division, TreeLimits(DEPTH, None, LEAST), ignore)
    grown = time.perf_counter()
    grow_added = peak_memory() - held
    tree.find_leaves(X[:1])  # links the tree, once
    linked = time.perf_counter()
    tree.find_leaves(X)
    scored = time.perf_counter()
    return {
        "bin_seconds": binned - started,
        "grow_seconds": grown - growing,
        "score_rows_per_second": n_rows / (scored - linked),
        "leaves": tree.n_leaves,
        "cuts": int((tree.rules.arrays()["cut_feature"] >= 0).sum()),
        "training_auc": tree.auc,
        "bin_added": bin_added / (n_rows * n_features),
        "grow_added": grow_added / (n_rows * n_features),
    }


def measure_forest() -> dict[str, float]:
    """Fit a forest with its defaults, and judge it on as many rows again."""
    X, y = make_table(2 * FOREST_ROWS, FOREST_FEATURES, 0)
    training, test = slice(0, FOREST_ROWS), slice(FOREST_ROWS, None)
    started = time.perf_counter()
    forest = TreeRankForest(n_trees=TREES).fit(X[training], y[training])
    seconds = time.perf_counter() - started
    return {
        "forest_seconds": seconds,
        "oob_auc": forest.oob_auc_,
        "test_auc": auc(y[test], forest.decision_function(X[test])),
    }


def run(part: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Measure a part in several processes; return the median of each metric."""
    environment = os.environ | {"NUMBA_NUM_THREADS": str(arguments.threads)}
    command = [sys.executable, "-m", "benchmarks.treerank", "--part", part]
    command += ["--rows", str(arguments.rows), "--features", str(arguments.features)]
    runs = []
    for _ in range(arguments.repeats):
        answer = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        )
        runs.append(json.loads(answer.stdout))
    return {name: median(one[name] for one in runs) for name in runs[0]}


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=at_least_one, default=1_000_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=at_least_one, default=3)
    parser.add_argument("--part", choices=["tree", "forest"], help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Print the table, or, as one of its own processes, one part's figures."""
    arguments = parse()
    if arguments.part:
        metrics: dict[str, Any] = (
            measure_forest()
            if arguments.part == "forest"
            else measure_tree(arguments.rows, arguments.features)
        )
        print(json.dumps(metrics))
        return
    for part in ("tree", "forest"):
        for name, value in run(part, arguments).items():
            print(f"{name:24s} {value:>16,.4g}")


if __name__ == "__main__":
    main()
