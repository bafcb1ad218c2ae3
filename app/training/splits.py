"""Divisions: which rows a ranker learns from and which judge it, once or fold by fold.

**By content.** What is never divided is a *unit*: the rows of a group, or without groups rows of equal features. Units
are sorted by a hash of group or content and of the seed, those with a positive row and those without apart, and cut
into parts of equal mass. So every part has its share of both classes, copies of a row stand on one side, and who judges
depends on seed and content alone, not on the order of rows or columns.

**By time.** Rows stand in the order of a named column, and whoever judges comes later than all that was learnt from;
rows of the same time stay together. A holdout is the latest share. k folds are k expanding windows: the rows are cut
into k + 1 stretches, and of each but the first the rankers learn from all before it. Rows of a group that was learnt
from do not judge. Rows of equal features may: that what comes is like what came is no leak, it is what is to be
predicted. There is no stratifying either: classes come as they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Rows, Table, Units, check_classes, cut, split
from app.platform.errors import Invalid

HOLDOUT, CROSS_VALIDATION = "holdout", "cross_validation"
FOLDS, MOST_FOLDS, MOST_REPEATS = 5, 20, 20

_SALT = 2**34
"""What sets the seed of one repeat off from the next; a job's seed is below 2³², that of a search below 2³³."""


class Division(NamedTuple):
    """Rows to learn from and rows to judge by, both ascending; there may be rows in neither."""

    train: Rows
    test: Rows


def divide_rows(table: Table, validation: Mapping[str, Any], seed: int) -> list[Division]:
    """Divide as a job's `validation` says, by time where the table has times.

    A holdout is one division; cross-validation is `folds` of them for each of the `repeats`, repeat by repeat.
    Raises Invalid when a part lacks a class.
    """
    if validation["method"] == HOLDOUT:
        if table.time is None:
            return [Division(*split(table, validation["fraction"], seed))]
        return [_hold_out_latest(table, table.time, validation["fraction"])]
    folds = validation["folds"]
    if table.time is not None:
        return _expanding_windows(table, table.time, folds)
    return [
        division
        for repeat in range(validation.get("repeats", 1))
        for division in _divide_by_content(table, folds, seed + repeat * _SALT)
    ]


def _divide_by_content(table: Table, folds: int, seed: int) -> list[Division]:
    units = Units.of(table, seed)
    of_units = np.empty(len(units.sizes), dtype=np.int8)
    for members, mass in units.strata():
        of_units[members] = _parts_of(mass, folds)
    return _folds(table, units.spread(of_units), folds)


def _parts_of(mass: npt.NDArray[np.int64], parts: int) -> npt.NDArray[np.intp]:
    """Cut what stands in a row into parts of equal mass: each goes where its middle lies."""
    if not len(mass):
        return np.empty(0, dtype=np.intp)
    ends = np.cumsum(mass)
    places: npt.NDArray[np.intp] = (2 * ends - mass) * parts // (2 * ends[-1])
    return places


def _folds(table: Table, fold: npt.NDArray[np.int8], folds: int) -> list[Division]:
    divisions = []
    for k in range(folds):
        test = fold == k
        division = Division(np.flatnonzero(~test), np.flatnonzero(test))
        divisions.append(_checked(table, division, f"fold {k + 1} of {folds}"))
    return divisions


def _hold_out_latest(table: Table, time: npt.NDArray[np.float64], fraction: float) -> Division:
    if not 0 < fraction < 1:
        raise Invalid(f"validation.fraction must lie between 0 and 1, got {fraction}")
    times, counts = np.unique(time, return_counts=True)
    held = cut(counts[::-1], fraction)
    later = time >= times[-held] if held else np.zeros(len(time), dtype=bool)
    return _checked(table, _before_and_after(table, ~later, later), None)


def _expanding_windows(table: Table, time: npt.NDArray[np.float64], folds: int) -> list[Division]:
    _, place, counts = np.unique(time, return_inverse=True, return_counts=True)
    stretch = _parts_of(counts, folds + 1)[place]
    return [
        _checked(
            table,
            _before_and_after(table, stretch < k, stretch == k),
            f"window {k} of {folds}",
        )
        for k in range(1, folds + 1)
    ]


def _before_and_after(
    table: Table, before: npt.NDArray[np.bool_], after: npt.NDArray[np.bool_]
) -> Division:
    if table.group is not None:
        after = after & ~np.isin(table.group, table.group[before])
    return Division(np.flatnonzero(before), np.flatnonzero(after))


def _checked(table: Table, division: Division, which: str | None) -> Division:
    of = "" if which is None else f" of {which}"
    check_classes(table.y[division.train], f"the training part{of}")
    check_classes(table.y[division.test], f"the validation part{of}")
    return division


@dataclass(frozen=True)
class Inner:
    """One part held out, a share of the rows; or with more than one split so many folds, each held out once.

    The rows are parted into the folds `n_repeats` times, each time anew; splits are numbered repeat by repeat.
    """

    n_splits: int
    fraction: float
    n_repeats: int = 1


def check_one_split(inner: Inner, of: str) -> None:
    """Raise Invalid for inner folds of data that are held out once only."""
    if inner.n_splits != 1:
        raise Invalid(
            f"a search with {of} holds out one part: leave out search.folds, got {inner.n_splits}",
            code="unsupported",
        )
