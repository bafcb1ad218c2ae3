"""How the time of a fit grows with rows and columns: `python -m benchmarks.scaling`.

20 rounds of trees of depth 6 (this library, XGBoost) or 31 leaves (LightGBM) at most, two threads:
10,000 to 10,000,000 rows of 30 numbers, and 100,000 rows of 10 to 1,000. Each fit runs in a process
of its own, binning and checks included; the best of `--repeats` is drawn, docs/figures/scaling.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import at_least_one, is_here, trees, with_peers
from benchmarks.stumps import make_data

N_ROUNDS = 20
BY_ROWS = [(10**k, 30) for k in (4, 5, 6, 7)]
BY_COLUMNS = [(100_000, d) for d in (10, 30, 100, 300, 1_000)]
FITS = {
    "Rankwright": "rankwright, depth 6",
    "XGBoost": "xgboost, depth 6",
    "LightGBM": "lightgbm, 31 leaves",
}
PEERS = {"XGBoost": "xgboost", "LightGBM": "lightgbm"}
COLOURS = {"Rankwright": "#0072b2", "XGBoost": "#d55e00", "LightGBM": "#009e73"}
FIGURE = Path("docs/figures/scaling.svg")

Seconds = dict[str, dict[tuple[int, int], float]]


def measure(fit: str, folder: Path, threads: int) -> float:
    """Fit once, in this process, and give the seconds."""
    trees.N_ROUNDS = N_ROUNDS
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    n_categories = np.zeros(X.shape[1], dtype=np.int64)
    data = trees.Data(X, y, X[:1000], y[:1000], n_categories)
    return trees.FITS[fit](data, threads).seconds


def measure_apart(fit: str, folder: Path, threads: int) -> float:
    """Fit once, in a process of its own."""
    environment = os.environ | {
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "NUMBA_THREADING_LAYER": "workqueue",
    }
    command = [sys.executable, "-m", "benchmarks.scaling", "--child", fit, str(folder)]
    command += ["--threads", str(threads)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(result.stdout.splitlines()[-1]))


def race(shapes: list[tuple[int, int]], threads: int, repeats: int, seconds: Seconds) -> None:
    """Time all fits on all shapes, and print each as it comes."""
    for rows, columns in shapes:
        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            X, y = make_data(rows, columns, 0)
            np.save(folder / "X.npy", X)
            np.save(folder / "y.npy", y)
            del X, y
            for name in seconds:
                fit = FITS[name]
                times = [measure_apart(fit, folder, threads) for _ in range(repeats)]
                seconds[name][rows, columns] = min(times)
        figures = " | ".join(f"{seconds[name][rows, columns]:.3f}" for name in seconds)
        print(f"| {rows:,} | {columns:,} | {figures} |", flush=True)


def draw(seconds: Seconds, threads: int, path: Path) -> None:
    """Draw both series."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    style: Any = {"svg.hashsalt": "scaling", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(style):
        figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
        for axis, shapes, at, label in (
            (axes[0], BY_ROWS, 0, "rows, of 30 columns"),
            (axes[1], BY_COLUMNS, 1, "columns, of 100,000 rows"),
        ):
            for name in seconds:
                done = [shape for shape in shapes if shape in seconds[name]]
                axis.loglog(
                    [shape[at] for shape in done],
                    [seconds[name][shape] for shape in done],
                    marker="o",
                    markersize=4,
                    color=COLOURS[name],
                    label=name,
                )
            axis.set_xlabel(label)
            axis.grid(True, which="major", color="#dddddd", linewidth=0.6)
        axes[0].set_ylabel("seconds")
        axes[0].set_title(f"{N_ROUNDS} rounds of trees, {threads} threads", loc="left", fontsize=9)
        axes[0].legend(frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Time, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=at_least_one, default=1)
    parser.add_argument("--most-rows", type=int, default=10**7)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    parser.add_argument("--child", nargs=2, metavar=("FIT", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        fit, folder = arguments.child
        print(measure(fit, Path(folder), arguments.threads))
        return
    print(
        f"{N_ROUNDS} rounds, threads: {arguments.threads}, best of {arguments.repeats}; seconds.\n"
    )
    seconds: Seconds = {name: {} for name in with_peers(FITS, PEERS)}
    print(f"| rows | columns | {' | '.join(seconds)} |")
    print("|---:|---:|" + "---:|" * len(seconds))
    by_rows = [shape for shape in BY_ROWS if shape[0] <= arguments.most_rows]
    by_columns = [shape for shape in BY_COLUMNS if shape[0] <= arguments.most_rows]
    if not by_rows:
        parser.error(f"--most-rows must be at least {BY_ROWS[0][0]}, got {arguments.most_rows}")
    race(by_rows, arguments.threads, arguments.repeats, seconds)
    race(by_columns, arguments.threads, arguments.repeats, seconds)
    if by_columns and is_here("matplotlib"):
        draw(seconds, arguments.threads, arguments.figure)


if __name__ == "__main__":
    main()
