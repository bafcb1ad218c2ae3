"""How `auto` keeps to its time: `python -m benchmarks.auto_time`.

On the breast cancer table with the default budget, where it ends long before that; and on 100,000 × 30 with budgets of
10, 30 and 60 seconds, where it should need no more than 110 % of them. Times are by the clock, last fits included.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numba
import numpy as np
from sklearn.datasets import load_breast_cancer

from benchmarks.auto import warm_up
from benchmarks.stumps import make_data
from core.selection import auto_ranker

DEFAULT = 60.0


def main() -> None:
    """Run `auto` on each table and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--budgets", type=float, nargs="+", default=[10.0, 30.0, 60.0])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    numba.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore")
    warm_up()
    X, y = load_breast_cancer(return_X_y=True)
    great = make_data(arguments.rows, arguments.features, seed=0)
    runs = [("breast cancer", X, y == 0, DEFAULT)]
    runs += [(f"{arguments.rows:,} × {arguments.features}", *great, b) for b in arguments.budgets]
    print("| table | budget, s | took, s | share | tryouts | members | AUC on held-out rows |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, rows, labels, budget in runs:
        start = time.perf_counter()
        searched = auto_ranker(np.asarray(rows), labels, budget_seconds=budget, fpr_max=0.05)
        took = time.perf_counter() - start
        first = searched.chosen.candidates[0]
        print(
            f"| {name} | {budget:g} | {took:.1f} | {took / budget:.0%} | {len(searched.tried)} "
            f"| {len(searched.chosen.members)} | {first.auc:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
