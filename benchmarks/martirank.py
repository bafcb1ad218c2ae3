"""MartiRank: `python -m benchmarks.martirank`.

The table of benchmarks.stumps, 1,000,000 × 30 by default. T = 10 and T = 40 layers, from the matrix
to the ranker, and the binning of it alone; scoring at T = 20; then a stream of --stream rows drawn
batch by batch into `SampledMartiRank.partial_fit`, with the memory that it adds after the first
batch. Medians of --repeats.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numba
import numpy as np

from benchmarks import at_least_one
from benchmarks.stumps import make_data
from core import MartiRank, SampledMartiRank
from core.coding import fit_bins
from core.martirank.sampled import Demand
from core.metrics import auc


def seconds(task: Callable[[], object], repeats: int) -> float:
    """Return the median time of a task, after a first run that is not counted."""
    task()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return median(times)


def peak_mb() -> float:
    """Return the greatest memory that the process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=at_least_one, default=1_000_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--stream", type=at_least_one, default=10_000_000)
    parser.add_argument("--test-rows", type=at_least_one, default=200_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=at_least_one, default=3)
    given = parser.parse_args()
    numba.set_num_threads(given.threads)
    stream(given.stream, given.features, given.test_rows)  # first, while the process is small
    measure_fits(given.rows, given.features, given.repeats, given.test_rows)


def measure_fits(n_rows: int, n_features: int, repeats: int, n_test: int) -> None:
    """Fit and score, and print a line per number of layers."""
    X, y = make_data(n_rows, n_features, seed=0)
    X_test, y_test = make_data(n_test, n_features, seed=1)
    rows = np.concatenate([np.flatnonzero(y == 1), np.flatnonzero(y == 0)])
    weight = np.ones(len(y))
    binning = seconds(lambda: fit_bins(X, rows, weight, 255), repeats)
    print(f"{n_rows:,} × {n_features}, {numba.get_num_threads()} threads; binning {binning:.2f} s")
    print("| layers | fit, s | without binning | test AUC | scoring, M rows/s |")
    print("|---:|---:|---:|---:|---:|")
    for layers in (10, 20, 40):
        ranker = MartiRank(n_rounds=layers)
        took = seconds(partial(ranker.fit, X, y), repeats)
        area = auc(y_test, ranker.decision_function(X_test))
        scored = len(X_test) / seconds(partial(ranker.score_rows, X_test), repeats) / 1e6
        print(f"| {layers} | {took:.2f} | {took - binning:.2f} | {area:.4f} | {scored:.1f} |")


def stream(n_rows: int, n_features: int, n_test: int) -> None:
    """Feed batches of 100,000 rows at most, and tell what they cost."""
    batch = min(n_rows, 100_000)
    ranker = SampledMartiRank(n_rounds=20, noise_rate=0.0, n_bags=2)
    demand = Demand(layer_rows=n_rows / 40)
    before, start = 0.0, time.perf_counter()
    drawing = 0.0
    for seed in range(n_rows // batch):
        began = time.perf_counter()
        X, y = make_data(batch, n_features, seed=2 + seed)
        drawing += time.perf_counter() - began
        ranker.partial_fit(X, y, demand=demand)
        if seed == 0:
            before = peak_mb()
    took = time.perf_counter() - start - drawing
    X, y = make_data(n_test, n_features, seed=1)
    print(
        f"stream of {n_rows:,} rows: {took:.1f} s, {peak_mb() - before:.0f} MB added after the first "
        f"batch, complete {ranker.is_complete_}, test AUC {auc(y, ranker.decision_function(X)):.4f}"
    )


if __name__ == "__main__":
    main()
