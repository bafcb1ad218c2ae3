"""The SVMs beside a plain form of their authors' method: `python -m benchmarks.svm`.

Two tables are drawn: 1,000,000 × 30 with 1 % positive rows and 20,000 × 16 with 4 %; columns are normal, and the
positives' mean stands --shift standard deviations away in a random direction, far enough that no window collapses.
On each the programme ½‖w‖² + C R(w) is solved to within tol · C of its minimum, tol = 1e-4, at C = 1, 10 and 100, for
FPR 0 to .05, .02 to .05, and 0 to 1.

- ours: `core.linear`, standardisation, intercept and all: seconds of CPU and of the clock, iterations, and by how much
  the process grew at most, as a share of the table (Linux only);
- plain: the one-slack cutting plane method of Joachims (2006) as the paper uses it, written here: the most violated
  constraint by a sort and prefix sums, one plane an iteration, no line search; stopped by ξ as in Algorithm 1. It
  gets the standardised table and the same solver of the small programme. --plain-seconds bounds it; where it was
  cut off, its gap is told.

After that iterations against the length of the window, as in the paper's Figures 8 and 9, on the smaller table,
drawn in docs/figures/svm-iterations.svg.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks import at_least_one, is_here
from core.linear import AUCSVM, PAUCSVM
from core.linear.cutting_planes import solve_simplex_qp
from core.metrics.window import window_counts

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

TOL = 1e-4
WINDOWS = ((0.0, 0.05), (0.02, 0.05), (0.0, 1.0))
COSTS = (1.0, 10.0, 100.0)
FIGURE = Path("docs/figures/svm-iterations.svg")


class Run(NamedTuple):
    """The cost of solving one programme; `gap` as a fraction of C."""

    cpu: float
    clock: float
    iterations: int
    objective: float
    gap: float


def draw_table(n: int, d: int, share: float, shift: float) -> tuple[Floats, Labels]:
    """Draw normal columns, the positives moved."""
    rng = np.random.default_rng(0)
    y = np.zeros(n, dtype=np.bool_)
    y[rng.choice(n, int(n * share), replace=False)] = True
    X = rng.normal(size=(n, d))
    direction = rng.normal(size=d)
    X[y] += shift * direction / np.linalg.norm(direction)
    return X, y


def run_ours(X: Floats, y: Labels, window: tuple[float, float], C: float) -> Run:
    """Fit the estimator."""
    low, high = window
    ranker: AUCSVM | PAUCSVM = AUCSVM(C=C, tol=TOL, max_iter=10_000)
    if window != (0.0, 1.0):
        ranker = PAUCSVM(C=C, fpr_min=low, fpr_max=high, tol=TOL, anchor=None, max_iter=10_000)
    cpu, clock = time.process_time(), time.perf_counter()
    ranker.fit(X, y)
    took = time.process_time() - cpu, time.perf_counter() - clock
    if ranker.collapsed_:
        raise SystemExit(f"the window {window} collapses: choose a greater --shift")
    return Run(*took, ranker.n_iter_, ranker.objective_, (ranker.gap_ or 0.0) / C)


def share_of_memory(ranker: AUCSVM | PAUCSVM, X: Floats, y: Labels) -> float:
    """Return by how much a fit makes the process grow at most, as a share of the table."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the greatest size so far
    before = _resident("VmRSS")
    ranker.fit(X, y)
    return (_resident("VmHWM") - before) / X.nbytes


def _resident(figure: str) -> int:
    """Read a size of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(figure))


def most_violated(
    Xp: Floats, Xn: Floats, w: Floats, low: int, high: int
) -> tuple[float, Floats, float]:
    """Algorithms 2 and 3 with prefix sums: the plane's loss and gradient, and R(w)."""
    s, z = Xp @ w, Xn @ w
    order = np.argsort(-z)[:high]
    z = z[order]
    sums = np.concatenate([[0.0], np.cumsum(z)])
    above = np.minimum(np.searchsorted(-z, -s, side="right"), low)
    inside = np.maximum(np.searchsorted(-z, -(s - 1.0), side="right"), low)
    margin = sums[inside] - inside * s + (inside - low)
    runs = np.where(sums[above] - above * s > margin, above, inside)
    unit = len(s) * (high - low)
    value = float((sums[runs] - runs * s + np.maximum(runs - low, 0)).sum()) / unit
    crossed = len(s) - np.cumsum(np.bincount(runs, minlength=high + 1))[:high]
    gradient = (crossed @ Xn[order] - runs @ Xp) / unit
    return float(np.maximum(runs - low, 0).sum()) / unit, gradient, value


def run_plain(X: Floats, y: Labels, window: tuple[float, float], C: float, seconds: float) -> Run:
    """The one-slack cutting plane method, on a standardised table."""
    Xp, Xn = X[y], X[~y]
    low, high = window_counts(len(Xn), *window)
    losses, gradients = np.zeros(1), np.zeros((1, X.shape[1]))
    cpu, clock = time.process_time(), time.perf_counter()
    w, iterations = np.zeros(X.shape[1]), 0
    while True:
        iterations += 1
        loss, gradient, value = most_violated(Xp, Xn, w, low, high)
        slack = float((losses + gradients @ w).max())
        if value - slack <= TOL or time.perf_counter() - clock > seconds:
            break
        losses, gradients = np.append(losses, loss), np.vstack([gradients, gradient])
        u = solve_simplex_qp(C * C * (gradients @ gradients.T), -C * losses)
        w = -C * (u @ gradients)
    took = time.process_time() - cpu, time.perf_counter() - clock
    return Run(*took, iterations, 0.5 * float(w @ w) + C * value, value - slack)


def print_speed(n: int, d: int, share: float, shift: float, seconds: float) -> None:
    """Print both methods' figures on one table."""
    X, y = draw_table(n, d, share, shift)
    run_ours(X[:2000], y[:2000], (0.0, 1.0), 1.0)  # kernels are loaded by the first fit
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if seconds else X
    print(f"\n{n:,} × {d}, {100 * share:g} % positive\n")
    print(
        "| FPR | C | ours CPU s | clock s | iterations | gap/C | plain CPU s | iterations | gap/C |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for window in WINDOWS:
        for C in COSTS:
            ours = run_ours(X, y, window, C)
            cells = [
                f"{window[0]:g} to {window[1]:g}",
                f"{C:g}",
                f"{ours.cpu:.3f}",
                f"{ours.clock:.3f}",
                f"{ours.iterations}",
                f"{ours.gap:.1e}",
            ]
            if seconds:
                plain = run_plain(Z, y, window, C, seconds)
                cells += [f"{plain.cpu:.3f}", f"{plain.iterations}", f"{plain.gap:.1e}"]
            print("| " + " | ".join(cells + ["–"] * (9 - len(cells))) + " |")


def print_memory(n: int, d: int, share: float, shift: float) -> None:
    """Print the memory of fits relative to a table; for a small one it mostly shows the allocator."""
    X, y = draw_table(n, d, share, shift)
    rankers = {
        "whole AUC, C = 100": AUCSVM(C=100.0),
        "[0, .05], C = 100": PAUCSVM(C=100.0, fpr_max=0.05),
        "[0, .05], C chosen": PAUCSVM(fpr_max=0.05),
    }
    shares = [f"{name}: {share_of_memory(own, X, y):.2f}" for name, own in rankers.items()]
    print(f"\n{n:,} × {d}, memory as a share of the table: " + ", ".join(shares))


def print_iterations(shift: float, seconds: float, n: int, figure: Path | None) -> None:
    """Print iterations by the length of the window: from 0 on (Fig. 8) and from elsewhere (Fig. 9)."""
    X, y = draw_table(n, 16, 0.04, shift)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    rows: list[tuple[str, list[tuple[float, float]], float]] = [
        (f"0 to β, C = {C:g}", [(0.0, b) for b in (0.05, 0.1, 0.2, 0.5, 1.0)], C)
        for C in (1.0, 10.0, 100.0, 1000.0)
    ]
    rows += [
        (f"{a:g} on, C = 10", [(a, a + b) for b in (0.02, 0.05, 0.1, 0.2, 0.5)], 10.0)
        for a in (0.0, 0.1, 0.3, 0.5)
    ]
    print("\nIterations by the length of the window, ours / plain (+: cut off)\n")
    curves: list[Curve] = []
    for title, windows, C in rows:
        cells, points = [], []
        for window in windows:
            exact = window[0], min(round(window[1], 10), 1.0)
            ours = run_ours(X, y, exact, C).iterations
            plain = run_plain(Z, y, exact, C, seconds) if seconds else None
            text = "" if plain is None else f" / {plain.iterations}{'+' * (plain.gap > TOL)}"
            cells.append(f"{exact[1] - exact[0]:g}: {ours}{text}")
            points.append((exact[1] - exact[0], ours, None if plain is None else plain.iterations))
        print(f"- {title}: " + ", ".join(cells))
        curves.append(Curve(title, points))
    if figure is not None and is_here("matplotlib"):
        draw(curves, figure)


class Curve(NamedTuple):
    """Iterations of ours and of the plain method, by the length of the window."""

    title: str
    points: list[tuple[float, int, int | None]]


def draw(curves: list[Curve], path: Path) -> None:
    """Draw windows from 0 on beside windows from elsewhere: ours solid, plain dashed."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = path.name  # the same file for the same figures
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    panels = {
        "windows [0, β] (as Fig. 8)": curves[:4],
        "windows [α, β], C = 10 (Fig. 9)": curves[4:],
    }
    for axis, (title, shown) in zip(axes, panels.items(), strict=True):
        for i, curve in enumerate(shown):
            lengths, ours, plain = zip(*curve.points, strict=True)
            axis.plot(lengths, ours, "o-", color=f"C{i}", markersize=4, label=curve.title)
            if None not in plain:
                axis.plot(lengths, plain, "--", color=f"C{i}", linewidth=1)
        axis.set(title=title, xlabel="length of the window", yscale="log")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("iterations (dashed: plain)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the larger table")
    parser.add_argument("--shift", type=float, default=2.8)
    parser.add_argument(
        "--plain-seconds", type=float, default=60.0, help="for each run; 0 leaves it out"
    )
    parser.add_argument("--small", type=at_least_one, default=20_000, help="of the smaller table")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print(f"one thread of {os.cpu_count()}; tol = {TOL:g}")
    with threadpool_limits(limits=1):
        print_speed(options.small, 16, 0.04, options.shift, options.plain_seconds)
        print_speed(options.rows, 30, 0.01, options.shift, options.plain_seconds)
        print_memory(options.rows, 30, 0.01, options.shift)
        print_iterations(
            options.shift, min(options.plain_seconds, 5.0), options.small, options.figure
        )


if __name__ == "__main__":
    main()
