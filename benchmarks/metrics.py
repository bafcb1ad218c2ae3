"""What judging a ranking costs: `python -m benchmarks.metrics`.

`summarise` (curve, AUC and partial AUC with intervals, counts) beside scikit-learn's curve and two areas, no intervals;
then placing one score on the stored curve, and thinning it to a thousand points.
"""

from __future__ import annotations

from collections.abc import Callable
from timeit import repeat

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_curve

from core.metrics import summarise

SIZES = (140, 10_000, 1_000_000)


def seconds(call: Callable[[], object], number: int) -> float:
    """Best time of a call, of five runs."""
    return min(repeat(call, number=number, repeat=5)) / number


def measure(n_rows: int, weighted: bool) -> str:
    """One row of the table."""
    rng = np.random.default_rng(0)
    y = (rng.random(n_rows) < 0.3).astype(np.int64)
    scores = rng.normal(size=n_rows) + y
    weight = rng.random(n_rows) + 0.5 if weighted else None
    number = max(1, 20_000 // n_rows)

    def sklearn() -> None:
        sklearn_curve(y, scores, sample_weight=weight, drop_intermediate=False)
        roc_auc_score(y, scores, sample_weight=weight)
        roc_auc_score(y, scores, sample_weight=weight, max_fpr=0.05)

    ours = seconds(lambda: summarise(y, scores, weight), number)
    theirs = seconds(sklearn, number)
    curve = summarise(y, scores, weight).curve
    curve.locate_one(0.5)  # prepares the look-up
    place = seconds(lambda: curve.locate_one(0.5), 10_000)
    thin = seconds(lambda: curve.thin(1000), 1)
    return (
        f"| {n_rows:,} | {'yes' if weighted else 'no'} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} "
        f"| {place * 1e6:.2f} | {thin * 1e3:.2f} |"
    )


def main() -> None:
    """Print the table."""
    print("| rows | weights | summarise, ms | scikit-learn, ms | locate_one, µs | thin(1000), ms |")
    print("|---:|---|---:|---:|---:|---:|")
    for n_rows in SIZES:
        for weighted in (False, True):
            print(measure(n_rows, weighted))


if __name__ == "__main__":
    main()
