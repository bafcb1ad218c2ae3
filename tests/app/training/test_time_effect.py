"""The test of an effect of time: how often it finds one where there is none, and where there is one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from app.datasets.matrices import Table
from app.training.splits import RowSplit
from app.training.time_effect import N_SPLITS, TimedRows, compare_with_random_splits
from core import metrics
from tests.long_form import LONG_FORM, rest

REPEATS = 4000 if LONG_FORM else 25


def table_of(
    rng: np.random.Generator,
    n: int,
    share: float,
    *,
    signal: float = 1.0,
    kinds: int = 0,
    weighted: bool = False,
    drift: float = 0.0,
) -> Table:
    """Rows in an order of time, four at each time. `kinds` values of each feature, if any: ties. With a `drift` the
    signal fades towards the end of the time.
    """
    y = np.zeros(n, dtype=np.int8)
    y[rng.permutation(n)[: max(8, round(share * n))]] = 1
    time = np.arange(n) // 4
    X = rng.normal(size=(n, 3))
    X[:, 0] += signal * y * (1.0 - drift * time / time[-1])
    if kinds:
        X = np.round(X * kinds / 4.0)
    weight = rng.exponential(size=n) if weighted else None
    names, categories = ("a", "b", "c"), (None, None, None)
    return Table(np.asfortranarray(X), y, weight, None, names, categories, time.astype(float))


def auc_of(table: Table, row_split: RowSplit) -> metrics.Interval:
    """The AUC along the line between the means of the classes: the test is exact for any ranker, and this is quick."""
    learnt, held_out = table.take(row_split.train), table.take(row_split.test)
    positive = learnt.y == 1
    weight = np.ones(len(positive)) if learnt.weight is None else learnt.weight
    mean, other = (
        np.average(learnt.X[rows], axis=0, weights=weight[rows]) for rows in (positive, ~positive)
    )
    scores = held_out.X @ (mean - other)
    return metrics.auc_interval(held_out.y, scores, 0.95, sample_weight=held_out.weight)


def share_significant(table: Callable[[np.random.Generator], Table], repeats: int) -> float:
    """In how many of the repeats an effect of time is significant."""
    found = 0
    for seed in range(repeats):
        rows = table(np.random.default_rng(seed))
        newest = np.arange(len(rows.y)) >= 0.75 * len(rows.y)
        split = RowSplit(np.flatnonzero(~newest), np.flatnonzero(newest))
        timed = TimedRows.draw(rows, split, seed)
        compared = None if timed is None else compare_with_random_splits(timed, auc_of, seed)
        found += compared is not None and compared["p_value"] <= 0.05
    return found / repeats


@pytest.mark.parametrize(
    "case",
    [
        {"n": 60, "share": 0.15},
        *rest(
            {"n": 200, "share": 0.05, "kinds": 2, "weighted": True},
            {"n": 200, "share": 0.3, "weighted": True, "signal": 0.0},
            {"n": 120, "share": 0.5, "signal": 4.0},
        ),
    ],
)
def test_without_an_effect_of_time_one_in_twenty_is_found_at_most(case: dict[str, float]) -> None:
    found = share_significant(lambda rng: table_of(rng, **case), REPEATS)  # type: ignore[arg-type]
    # At most 5 %, and four standard errors.
    assert found <= 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / REPEATS)


def test_a_strong_effect_is_found() -> None:
    found = share_significant(lambda rng: table_of(rng, 600, 0.3, signal=1.5, drift=1.0), 10)
    assert found >= 0.8


def test_a_sample_keeps_the_rarer_class_and_the_part_of_each_row() -> None:
    rows = table_of(np.random.default_rng(0), 9_000, 0.1)
    newest = np.arange(9_000) >= 6_000
    split = RowSplit(np.flatnonzero(~newest), np.flatnonzero(newest))
    timed = TimedRows.draw(rows, split, 0)
    assert timed is not None
    assert len(timed.table.y) == 6_000
    assert timed.table.y.sum() == 900
    assert timed.table.time is not None
    assert (timed.is_newest == (timed.table.time >= 6_000 // 4)).all()


def test_no_comparison_of_rows_that_belong_together_or_are_too_few() -> None:
    rows = table_of(np.random.default_rng(0), 60, 0.2)
    split = RowSplit(np.arange(40), np.arange(40, 60))
    grouped = Table(**{**vars(rows), "group": np.arange(60, dtype=np.uint64) // 2})
    assert TimedRows.draw(grouped, split, 0) is None
    one_class = Table(**{**vars(rows), "y": np.arange(60) < 40})
    assert TimedRows.draw(one_class, split, 0) is None


def test_a_limit_of_time_takes_fewer_rows_or_ends_the_comparison() -> None:
    rows = table_of(np.random.default_rng(0), 2_000, 0.3)
    timed = TimedRows.draw(rows, RowSplit(np.arange(1_500), np.arange(1_500, 2_000)), 0)
    assert timed is not None
    whole = compare_with_random_splits(timed, auc_of, 0)
    assert whole is not None
    assert (whole["rows"], whole["splits"]) == (2_000, N_SPLITS)
    assert compare_with_random_splits(timed, auc_of, 0, limit=0.0) is None
