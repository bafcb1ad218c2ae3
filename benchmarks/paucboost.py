"""PAUCBoost beside RankBoost on tables of one's own: `python -m benchmarks.paucboost DIR`.

DIR holds tables as `<name>.parquet`; the label is the column named by --label, two values, the
greater positive. Tables without it are passed over. Columns of text are left out; missing values stay.

Protocol: of each table at most --rows rows are drawn; each split puts a random half of either class
into the training part and the rest into the test part. Both algorithms boost trees for the same
number of rounds, with the same parameters, all at their defaults; nothing is tuned per table, and the
test part is used for the printed figures only. PAUCBoost decides on its finish within the training
part, by how many standard errors the partial AUC rises there; since nothing else depends on it, one
fit tells what it would be for each of several thresholds (`least_rise`). AUC and partial AUC from 0 to
--fpr-max (interpolated) are means over the splits; differences are PAUCBoost less RankBoost, in
thousandths, with the standard error of the mean over the splits, which share rows and so are not
independent.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from core import PAUCBoost, RankBoost
from core.metrics import auc, partial_auc

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


LEAST_RISES = (0.0, 1.0, 2.0)


class Figures(NamedTuple):
    """What one split gave; `base` is RankBoost, `finished` PAUCBoost with its finish, `rise` in standard errors."""

    base_pauc: float
    finished_pauc: float
    base_auc: float
    finished_auc: float
    rise: float


def read_table(path: Path, label: str, rows: int) -> tuple[Floats, Labels] | None:
    """Read the numeric columns and the label; None where there is no label of two values."""
    table = pd.read_parquet(path)
    if label not in table or table[label].nunique() != 2:
        return None
    if len(table) > rows:
        table = table.sample(rows, random_state=0)
    y = (table.pop(label) == table_max(path, label)).to_numpy(dtype=np.int64)
    X = table.select_dtypes("number").to_numpy(dtype=np.float64)
    return (X, y) if X.shape[1] and len(np.unique(y)) == 2 else None


def table_max(path: Path, label: str) -> Any:
    """Give the greater of the label's two values."""
    return pd.read_parquet(path, columns=[label])[label].max()


def halve(y: Labels, seed: int) -> npt.NDArray[np.bool_]:
    """Draw half of the rows of each class."""
    rng = np.random.default_rng(seed)
    drawn = np.zeros(len(y), dtype=np.bool_)
    for value in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == value))
        drawn[rows[: (len(rows) + 1) // 2]] = True
    return drawn


def measure(X: Floats, y: Labels, seed: int, n_rounds: int, fpr_max: float) -> Figures:
    """Fit both on one split."""
    train = halve(y, seed)
    base = RankBoost(n_rounds=n_rounds, weak_ranker="tree", random_state=seed)
    finished = PAUCBoost(n_rounds=n_rounds, fpr_max=fpr_max, least_rise=0.0, random_state=seed)
    scores = [
        ranker.fit(X[train], y[train]).decision_function(X[~train]) for ranker in (base, finished)
    ]
    base_pauc, pauc = (partial_auc(y[~train], s, fpr_max=fpr_max) for s in scores)
    base_auc, area = (auc(y[~train], s) for s in scores)
    before, after, error = (
        finished.inner_pauc_before_,
        finished.inner_pauc_after_,
        finished.inner_pauc_error_,
    )
    rise = (after - before) / error if finished.finish_kept_ else -np.inf
    return Figures(base_pauc, pauc, base_auc, area, rise)


def difference(before: Floats, after: Floats) -> str:
    """Give the mean difference and its standard error, in thousandths."""
    d = 1000.0 * (after - before)
    error = d.std(ddof=1) / np.sqrt(len(d)) if len(d) > 1 else np.nan
    return f"{d.mean():+.1f} ± {error:.1f}"


def main() -> None:
    """Measure each table and print a row of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--label", default="label")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--fpr-max", type=float, default=0.05)
    parser.add_argument("--tables", nargs="+", help="names, without .parquet; default: all")
    arguments = parser.parse_args()
    print(
        f"{arguments.rounds} rounds, {arguments.splits} splits in halves, "
        f"at most {arguments.rows:,} rows, window 0 to {arguments.fpr_max}.\n"
    )
    print("| table | rows | positive | pAUC | AUC | ", end="")
    print(" | ".join(f"kept above {c:g} | Δ pAUC·1000 | Δ AUC·1000" for c in LEAST_RISES) + " |")
    print("|---|" + "---:|" * (4 + 3 * len(LEAST_RISES)))
    everything = []
    for path in sorted(arguments.folder.glob("*.parquet")):
        if arguments.tables and path.stem not in arguments.tables:
            continue
        table = read_table(path, arguments.label, arguments.rows)
        if table is None:
            continue
        X, y = table
        runs = [
            measure(X, y, seed, arguments.rounds, arguments.fpr_max)
            for seed in range(arguments.splits)
        ]
        everything += runs
        print(f"| {path.stem} | {len(y)} | {y.mean():.4f} {cells(runs)}", flush=True)
    print(f"| all | | {cells(everything)}")


def cells(runs: list[Figures]) -> str:
    """Give RankBoost's means, and for each threshold how often the finish is kept and what it changes."""
    base_pauc, pauc, base_auc, area, rise = np.array(runs, dtype=np.float64).T
    text = f"| {base_pauc.mean():.4f} | {base_auc.mean():.4f} |"
    for least_rise in LEAST_RISES:
        kept = rise > least_rise
        text += f" {kept.sum()} of {len(kept)} |"
        for before, after in ((base_pauc, pauc), (base_auc, area)):
            text += f" {difference(before, np.where(kept, after, before))} |"
    return text


if __name__ == "__main__":
    main()
