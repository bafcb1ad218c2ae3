"""CPU of estimated reasons: `python -m benchmarks.reasons [--data DIR --tables NAME …] [--explained 32] [--rounds 5]`.

A mean of ranks of boosted trees, as `auto` makes them, is fitted on a table: drawn, or those of DIR as
`benchmarks.auto` reads them. Then the Shapley values of some rows are estimated against 64 others. Beside it the same
values by scoring each mixed row for itself, which is what a ranker without trees does; the two take turns. CPU is that
of the process, the least of the rounds. The error is the mean of the standard errors that are told, of both the same.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import at_least_one, shown_ratio
from benchmarks.auto import read_table
from core import LogitBoost, RankAverage, RankBoost
from core.base.ranker import Ranker
from core.explain import shapley_estimate

N_REFERENCES, N_DRAWN = 64, 12


def draw_table(n_rows: int) -> tuple[pa.Table, npt.NDArray[np.int8]]:
    """Return a table of numbers and a label that depends on some of them, alone and together."""
    X = np.random.default_rng(0).normal(size=(n_rows, N_DRAWN))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] > 0).astype(np.int8)
    return pa.table({f"x{j}": X[:, j] for j in range(N_DRAWN)}), y


def measure(ranker: Ranker, rows: pa.Table, references: pa.Table) -> tuple[float, Any]:
    """Return the CPU for a row in milliseconds, and the estimate."""
    begun = time.process_time()
    found = shapley_estimate(ranker, rows, references)
    return 1e3 * (time.process_time() - begun) / len(rows), found


def main() -> None:
    """Measure each table, and print a line of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.parquet")
    parser.add_argument("--tables", nargs="+", default=["drawn"], metavar="NAME")
    parser.add_argument("--drawn-rows", type=at_least_one, default=20_000)
    parser.add_argument("--explained", type=at_least_one, default=32, help="rows with reasons")
    parser.add_argument("--rounds", type=at_least_one, default=5)
    parser.add_argument("--trees", type=at_least_one, default=80, help="of each member")
    given = parser.parse_args()
    print("| table | features | error | CPU a row, ms | by each mixed row, ms | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in given.tables:
        X, y = draw_table(given.drawn_rows) if given.data is None else read_table(given.data, name)
        members = [
            RankBoost(weak_ranker="tree", leaf="newton", max_leaves=127, n_rounds=given.trees),
            LogitBoost(max_leaves=31, n_rounds=given.trees),
        ]
        ranker = RankAverage(members=members).fit(X, y)
        order = np.random.default_rng(0).permutation(len(y))
        references = X.take(order[:N_REFERENCES])
        rows = X.take(order[N_REFERENCES : N_REFERENCES + given.explained])
        for_itself = RankAverage(members=members).fit(X, y)
        for each in for_itself.members_:
            setattr(each, "score_mixed", partial(Ranker.score_mixed, each))  # noqa: B010 - mypy knows it as a method
        both: list[list[float]] = [[], []]
        for _ in range(given.rounds + 1):  # the first compiles or loads
            for of_one, one in zip(both, (ranker, for_itself), strict=True):
                milliseconds, found = measure(one, rows, references)
                of_one.append(milliseconds)
        walked, scored = (min(of_one[1:]) for of_one in both)
        print(
            f"| {name} | {X.num_columns} | {found.errors.mean():.5f} | {walked:.2f} | {scored:.2f} | "
            f"{shown_ratio(scored / walked)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
