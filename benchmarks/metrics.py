"""The time to judge a ranking: `python -m benchmarks.metrics [--rscript PATH]`.

- A curve and three areas, of the whole, [0, .05] and [0, .3], beside scikit-learn's, which sorts for each.
- `summarise` (curve, AUC and partial AUC with intervals, counts) beside scikit-learn's curve and two areas, no
  intervals; then placing one score on the stored curve, and thinning it to a thousand points.
- Inference beside R's pROC, if an Rscript that has it is on the path or named: DeLong's interval, the interval of a
  partial AUC (pROC's is that of 2,000 bootstrap samples), and comparisons. pROC compares two curves of a window by the
  bootstrap alone, and its time for five curves is ten times that for two.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Callable
from timeit import repeat

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_curve

from benchmarks import at_least_one
from core.metrics import auc_interval, compare, partial_auc_interval, roc_curve, summarise

SIZES = (140, 10_000, 1_000_000)
WINDOWS = ((0.0, 1.0), (0.0, 0.05), (0.0, 0.3))

# Seconds of one call each, as `measure_inference` takes them; the scores are alike, not the same.
PROC = """
suppressPackageStartupMessages(library(pROC))
set.seed(0)
least <- function(call, times) min(sapply(seq_len(times), function(i) system.time(call())["elapsed"]))
n <- 20000; y <- as.integer(runif(n) < .3); a <- rnorm(n) + y
curve <- function(y, s, ...) roc(y, s, levels = c(0, 1), direction = "<", quiet = TRUE, ...)
one <- function() ci.auc(curve(y, a))
over_window <- curve(y, a, partial.auc = c(1, .95), partial.auc.focus = "specificity")
drawn <- function() ci.auc(over_window, boot.n = 2000, progress = "none")
N <- 100000; Y <- as.integer(runif(N) < .3); A <- rnorm(N) + Y; B <- A + rnorm(N)
pair <- function() roc.test(curve(Y, A), curve(Y, B), method = "delong")
cat(least(one, 5), least(drawn, 1), 10 * least(pair, 1), "\n")
"""


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


def measure_areas(n_rows: int) -> str:
    """One row of the table of a curve with three areas."""
    rng = np.random.default_rng(0)
    y = (rng.random(n_rows) < 0.3).astype(np.int64)
    scores = rng.normal(size=n_rows) + y

    def ours() -> None:
        curve = roc_curve(y, scores)
        for window in WINDOWS:
            curve.partial_area(*window)

    def theirs() -> None:
        sklearn_curve(y, scores, drop_intermediate=False)
        for _, high in WINDOWS:
            roc_auc_score(y, scores, max_fpr=high)

    number = max(1, 20_000 // n_rows)
    one, other = seconds(ours, number), seconds(theirs, number)
    return f"| {n_rows:,} | {one * 1e3:.2f} | {other * 1e3:.2f} | {other / one:.1f} |"


def measure_inference(rscript: str | None) -> list[str]:
    """The rows of the table of intervals and comparisons."""
    rng = np.random.default_rng(0)
    y = (rng.random(100_000) < 0.3).astype(np.int64)
    scores = [rng.normal(size=y.size) + y for _ in range(5)]
    few, one = y[:20_000], scores[0][:20_000]

    ours = (
        seconds(lambda: auc_interval(few, one), 100),
        seconds(lambda: partial_auc_interval(few, one, 0.0, 0.05), 100),
        seconds(lambda: compare(y, scores), 1),
        seconds(lambda: compare(y, scores, WINDOWS), 1),
    )
    theirs = ["–"] * len(ours)
    if rscript is not None:
        run = subprocess.run([rscript, "-"], input=PROC, capture_output=True, check=True, text=True)
        for place, metric in enumerate(run.stdout.split()[-3:]):
            theirs[place] = f"{float(metric) * 1e3:.1f}"
    names = (
        "DeLong interval, 20,000 rows",
        "interval over [0, .05], 20,000 rows",
        "AUCs of five scorers, 100,000 rows",
        "five scorers over three windows, 100,000 rows",
    )
    return [
        f"| {name} | {own * 1e3:.2f} | {their} |"
        for name, own, their in zip(names, ours, theirs, strict=True)
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rscript", default=shutil.which("Rscript"))
    parser.add_argument("--rows", type=at_least_one, nargs="+", default=SIZES)
    options = parser.parse_args()
    print("| rows | curve and three areas, ms | scikit-learn, ms | times |\n|---:|---:|---:|---:|")
    for n_rows in options.rows:
        print(measure_areas(n_rows))
    print()
    print("| rows | weights | summarise, ms | scikit-learn, ms | locate_one, µs | thin(1000), ms |")
    print("|---:|---|---:|---:|---:|---:|")
    for n_rows in options.rows:
        for weighted in (False, True):
            print(measure(n_rows, weighted))
    print("\n| inference | ours, ms | pROC, ms |\n|---|---:|---:|")
    print("\n".join(measure_inference(options.rscript)))


if __name__ == "__main__":
    main()
