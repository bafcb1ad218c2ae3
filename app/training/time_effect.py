"""Does validation on the newest rows differ from validation on random rows? An exact test of a baseline's AUC.

One random split cannot answer this: its rows are others than the newest ones, and its AUC varies with the split. So the
baseline is fitted and validated on `N_SPLITS` random splits of the rows, each with as many training and validation
rows as the split by time. Without any effect of time the rows are exchangeable. Then the split by time is like one more
random split, and its AUC is the lowest or the highest of all with probability 2 / (N_SPLITS + 1) at most: 5 %. This
holds for any number of rows or positives, for ties and for weights. It does not hold for rows that belong together, so
tables with groups have no test.

References
----------
Phipson & Smyth, "Permutation p-values should never be zero", Statistical Applications in Genetics and Molecular Biology
9 (2010).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import StoredTable, Table, check_classes
from app.platform.documents import NewestArea, RandomSplits
from app.platform.errors import Invalid
from app.training.splits import RowSplit
from core import metrics

N_SPLITS = 39
"""Random splits: the fewest with which an AUC outside their range is significant at 5 %, two-sided."""

MAX_ROWS, MAX_CELLS, MIN_ROWS = 6_000, 300_000, 100
"""Rows of both parts, and rows times features, at most; and rows to which a time limit may reduce them, at least."""

_MAX_DRAWS = 200 * N_SPLITS
"""Random splits that are drawn, at most, until both parts of `N_SPLITS` of them have both classes."""


@dataclass(frozen=True)
class TimedRows:
    """A sample of the rows of a split by time: the table, and for each row whether it is one of the newest."""

    table: Table
    is_newest: npt.NDArray[np.bool_]

    @classmethod
    def draw(cls, table: Table, by_time: RowSplit, seed: int) -> TimedRows | None:
        """Draw rows of a split; None for rows without times, with groups or in a file, or if a part has too few rows
        of a class.
        """
        if table.time is None or table.group is not None or isinstance(table, StoredTable):
            return None
        rows = np.concatenate(by_time)
        order = np.argsort(rows)
        is_newest = np.repeat([False, True], [len(each) for each in by_time])[order]
        most = min(MAX_ROWS, MAX_CELLS // max(len(table.names), 1))
        return cls(table.take(rows[order]), is_newest).thinned(most, seed)

    def thinned(self, most: int, seed: int) -> TimedRows | None:
        """Keep at most so many rows, up to half of them of the rarer class; None if a part has too few rows of a class.

        The draw depends on the classes, not on the time: rows that are exchangeable stay so.
        """
        y, rng = self.table.y, np.random.default_rng(seed)
        classes = sorted((np.flatnonzero(y == of_class) for of_class in (0, 1)), key=len)
        n_rarer = min(len(classes[0]), most // 2)
        sizes = (n_rarer, min(len(classes[1]), most - n_rarer))
        chosen = [
            rng.choice(rows, size, replace=False) for rows, size in zip(classes, sizes, strict=True)
        ]
        rows = np.sort(np.concatenate(chosen))
        thin = TimedRows(self.table.take(rows), self.is_newest[rows])
        return thin if thin.has_classes(thin.is_newest) else None

    def has_classes(self, is_held_out: npt.NDArray[np.bool_]) -> bool:
        try:
            for part in (is_held_out, ~is_held_out):
                check_classes(self.table.y[part], "a part")
        except Invalid:
            return False
        return True


def compare_with_random_splits(
    timed: TimedRows,
    auc_of: Callable[[Table, RowSplit], metrics.Interval],
    seed: int,
    limit: float | None = None,
) -> RandomSplits | None:
    """Compare the AUC on the newest rows with those on random rows; `auc_of` fits a ranker on a split.

    None if too few random splits have both classes in both parts, or for lack of time. If the fits would take longer
    than `limit` seconds, they have fewer rows. Errors of `auc_of` are raised.
    """
    started = time.perf_counter()
    newest = auc_of(timed.table, _split_of(timed.is_newest))
    seconds = (time.perf_counter() - started) * (N_SPLITS + 1)
    if limit is not None and seconds > limit:
        n_rows = int(len(timed.is_newest) * limit / seconds)
        fewer = timed.thinned(n_rows, seed) if n_rows >= MIN_ROWS else None
        if fewer is None:
            return None
        timed = fewer
        newest = auc_of(timed.table, _split_of(timed.is_newest))
    rng, aucs = np.random.default_rng(seed), []
    for _ in range(_MAX_DRAWS):
        is_held_out = rng.permutation(timed.is_newest)
        if timed.has_classes(is_held_out):
            aucs.append(auc_of(timed.table, _split_of(is_held_out)).value)
            if len(aucs) == N_SPLITS:
                return _compared(newest, aucs, len(timed.is_newest))
    return None


def _split_of(is_held_out: npt.NDArray[np.bool_]) -> RowSplit:
    return RowSplit(np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out))


def _compared(newest: metrics.Interval, aucs: list[float], rows: int) -> RandomSplits:
    """The p-value is two-sided."""
    of_newest: NewestArea = {"value": newest.value, "low": newest.low, "high": newest.high}
    lower = sum(auc <= newest.value for auc in aucs)
    higher = sum(auc >= newest.value for auc in aucs)
    p_value = min(1.0, 2.0 * (1 + min(lower, higher)) / (1 + len(aucs)))
    return {
        "value": float(np.mean(aucs)),
        "low": min(aucs),
        "high": max(aucs),
        "newest": of_newest,
        "splits": len(aucs),
        "rows": rows,
        "p_value": p_value,
    }
