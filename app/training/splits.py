"""Splits of rows into training and validation rows, once or fold by fold; and the operations on a split.

**By content.** What is never divided is a *unit*: the rows of a group, or without groups rows of equal features, unless
there are so few distinct ones that equal rows are of a kind and no copies (`core.base.columns.are_kinds`). Units are
sorted by a hash of group or content and of the seed, those with a positive row and those without apart, and cut
into parts of equal mass. So every part has both classes in proportion, copies of a row are on one side, and the split
depends on seed and content alone, not on the order of rows or columns.

**By time.** Rows are in the order of a named column, and validation rows are later than all training rows; rows of
the same time stay together. A holdout is the latest fraction. k folds are k expanding windows: the rows are cut into
k + 1 stretches, each but the first validates once, and the rankers learn from all rows before it. Rows of a group that
was trained on do not validate. Rows of equal features may: that new rows are like old ones is no leak, it is what is
to be predicted. There is no stratifying either: classes come as they come.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Floats, Rows, Table, check_classes
from app.ingest import rows as row_hashes
from app.ingest.rows import Hashes
from app.platform.documents import Objective, PartMetrics, Validation
from app.platform.errors import Invalid
from app.training.interpretation import draw
from core.base.columns import MIN_DISTINCT_ROWS, ROWS_AT_ONCE

if TYPE_CHECKING:
    from core.base.columns import ColumnTable
    from core.base.ranker import Callback, Ranker
    from core.base.table import CodedTable

HOLDOUT, CROSS_VALIDATION = "holdout", "cross_validation"
HOLDOUT_FRACTION = 0.25
"""Fraction of the rows that is held out by default."""
FIRST_ROWS = 3000
"""Rows that are looked at before all are, to see whether rows are of few kinds."""
BYTES_PER_CELL = 18
"""Of a table in memory: as float64, once more while it is split, and its codes; up to 1.5 of lists, as measured."""
BYTES_PER_ROW = 90
"""More of each row, as measured: its label, its place in the split, its weights and scores."""
BYTES_PER_VALIDATION_CELL = 16
"""Of a validation dataset in memory: as float64, and once more with the other table's categories."""
BYTES_PER_CELL_OF_FOLDS = 8
"""More under cross-validation: the table stays while a fold's part of it is learnt from."""
WAYS_OUT = (
    "use more rows of the rarer class (in more groups, if there are groups) or fewer folds; "
    "validation.method 'none' trains a model without validation"
)
FOLDS, MAX_FOLDS, MAX_REPEATS = 5, 20, 20
_SALT = 2**34
"""Difference of the seeds of two repeats; a job's seed is below 2³², that of its search below 2³³."""


Fold = tuple[int, int]
"""Repeat and fold, from 0."""


def folds_of(validation: Validation) -> list[Fold]:
    """Return the folds, repeat by repeat; none without cross-validation."""
    if validation["method"] != CROSS_VALIDATION:
        return []
    repeats, folds = validation.get("repeats", 1), validation["folds"]
    return [(repeat, fold) for repeat in range(repeats) for fold in range(folds)]


class RowSplit(NamedTuple):
    """Training and validation rows, each int64 and ascending; a row may be in neither."""

    train: Rows
    test: Rows


@dataclass(frozen=True)
class InnerSplits:
    """Splits of training rows for a search: one holdout of a `fraction`, or `n_splits` > 1 folds."""

    n_splits: int
    fraction: float


@dataclass(frozen=True)
class Units:
    """Sets of rows that are never divided, in the order of their hashes.

    `order` lists the rows unit by unit; `sizes` and `positives` count the rows, and the positive rows, of each unit.
    Memory: 24 bytes a row.
    """

    order: npt.NDArray[np.uint32]
    sizes: npt.NDArray[np.uint32]
    positives: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, table: Table, seed: int) -> Units:
        from core.base.splits import has_few_kinds, part_kinds, sort_keys

        hashes = hash_units(table, seed)
        if table.group is None and has_few_kinds(hashes):
            hashes = row_hashes.mix(part_kinds(hashes, table.y > 0, table.weight))
        order, starts = sort_keys(hashes)
        del hashes
        positives = np.add.reduceat(table.y[order], starts, dtype=np.uint32)
        sizes = np.full(len(starts), len(order), dtype=np.uint32)
        sizes[:-1] = starts[1:]
        np.subtract(sizes, starts, out=sizes, casting="unsafe")
        return cls(order, sizes, positives)

    def strata(self) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint32]]]:
        """Yield (mask of units, mass to divide evenly) for the units with a positive row, and for those without."""
        for stratum, mass in (
            (self.positives > 0, self.positives),
            (self.positives == 0, self.sizes),
        ):
            yield stratum, mass[stratum]

    def to_rows(self, of_units: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each row the value of its unit."""
        of_rows, done = np.empty(len(self.order), dtype=of_units.dtype), 0
        for start in range(0, len(self.sizes), ROWS_AT_ONCE):
            run = slice(start, start + ROWS_AT_ONCE)
            values = np.repeat(of_units[run], self.sizes[run])
            of_rows[self.order[done : done + len(values)]] = values
            done += len(values)
        return of_rows


def split_rows(table: Table, validation: Validation, seed: int) -> list[RowSplit]:
    """Return the splits of a job's `validation`, by time if the table has times.

    A holdout is one split; cross-validation is `folds` of them for each of the `repeats`, repeat by repeat. Raises
    Invalid when a part lacks a class.
    """
    if validation["method"] == HOLDOUT:
        if table.time is None:
            return [split(table, validation["fraction"], seed)]
        return [_hold_out_latest(table, table.time, validation["fraction"])]
    folds = validation["folds"]
    if table.time is not None:
        return _expanding_windows(table, table.time, folds)
    return [
        row_split
        for repeat in range(validation.get("repeats", 1))
        for row_split in _split_by_content(table, folds, seed + repeat * _SALT)
    ]


def split(table: Table, fraction: float, seed: int) -> RowSplit:
    """Return the training and validation rows of a split by content, in the order of the table.

    Both strata (see the module) are split where the fraction is closest to `fraction`. Raises Invalid if a part would
    have too few rows of a class.
    """
    check_fraction(fraction)
    units = Units.of(table, seed)
    chosen = np.zeros(len(units.sizes), dtype=bool)
    for members, mass in units.strata():
        chosen[members] = np.arange(len(mass), dtype=np.uint32) < cut(mass, fraction)
    validation = units.to_rows(chosen)
    del units, chosen  # 13 bytes a row
    return _checked(table, RowSplit(np.flatnonzero(~validation), np.flatnonzero(validation)), None)


def _split_by_content(table: Table, folds: int, seed: int) -> list[RowSplit]:
    from core.base.splits import even_parts

    units = Units.of(table, seed)
    of_units = np.empty(len(units.sizes), dtype=np.int8)
    for members, mass in units.strata():
        of_units[members] = even_parts(mass, folds)
    return _folds(table, units.to_rows(of_units), folds)


def _folds(table: Table, fold: npt.NDArray[np.int8], folds: int) -> list[RowSplit]:
    row_splits = []
    for k in range(folds):
        test = fold == k
        row_split = RowSplit(np.flatnonzero(~test), np.flatnonzero(test))
        row_splits.append(_checked(table, row_split, f"fold {k + 1} of {folds}"))
    return row_splits


def _hold_out_latest(table: Table, time: npt.NDArray[np.float64], fraction: float) -> RowSplit:
    check_fraction(fraction)
    times, counts = np.unique(time, return_counts=True)
    n_later = cut(counts[::-1], fraction)
    later = time >= times[-n_later] if n_later else np.zeros(len(time), dtype=bool)
    return _checked(table, _before_and_after(table, ~later, later), None, int(later.sum()))


def _expanding_windows(table: Table, time: npt.NDArray[np.float64], folds: int) -> list[RowSplit]:
    from core.base.splits import even_parts

    _, index, counts = np.unique(time, return_inverse=True, return_counts=True)
    stretch = even_parts(counts, folds + 1)[index]
    return [
        _checked(
            table,
            _before_and_after(table, stretch < k, stretch == k),
            f"window {k} of {folds}",
            int((stretch == k).sum()),
        )
        for k in range(1, folds + 1)
    ]


def _before_and_after(
    table: Table, before: npt.NDArray[np.bool_], after: npt.NDArray[np.bool_]
) -> RowSplit:
    if table.group is not None:
        after = after & ~np.isin(table.group, table.group[before])
    return RowSplit(np.flatnonzero(before), np.flatnonzero(after))


def _checked(table: Table, row_split: RowSplit, which: str | None, later: int = 0) -> RowSplit:
    """Raise Invalid if a part lacks rows of a class. `later` counts the later rows, also of known groups, which
    are left out.
    """
    of = "" if which is None else f" of {which}"
    try:
        check_classes(table.y[row_split.train], f"the training part{of}")
        check_classes(table.y[row_split.test], f"the validation part{of}")
    except Invalid as error:
        ways_out = WAYS_OUT
        if (left_out := later - len(row_split.test)) > 0:
            ways_out = f"{left_out} later rows are left out, because their groups have earlier rows, too; {ways_out}"
        if table.time is not None:
            ways_out += "; set validation.time_column to null to split the rows at random"
        raise Invalid(f"{error.detail}: {ways_out}", code=error.code) from error
    return row_split


def check_fraction(fraction: float) -> None:
    """Raise Invalid for a fraction that leaves one side empty."""
    if not 0 < fraction < 1:
        raise Invalid(f"validation.fraction must be between 0 and 1, got {fraction}")


def check_one_split(inner: InnerSplits, of: str) -> None:
    """Raise Invalid for inner folds of data that support only one holdout."""
    if inner.n_splits != 1:
        raise Invalid(
            f"a search with {of} holds out one part: omit search.folds, got {inner.n_splits}",
            code="unsupported",
        )


def divide(table: Table, train: Rows, validation: Rows) -> tuple[Table, Table]:
    """Return both parts as tables with only the categories of the training part."""
    learnt = table.part(train).known_to()
    return learnt, table.part(validation).coded_as(learnt)


def cut(mass: npt.NDArray[Any], fraction: float) -> int:
    """Return how many units, from the first, have a mass closest to `fraction` of the whole; each side has at least
    one.

    mass: (n_units,) of integers above 0.
    """
    if len(mass) < 2:
        return 0
    total = int(mass.sum(dtype=np.int64))
    wanted = fraction * total
    first, before = 0, 0  # of the run of units in which the wanted mass is reached
    while first + ROWS_AT_ONCE < len(mass):
        of_run = int(mass[first : first + ROWS_AT_ONCE].sum(dtype=np.int64))
        if before + of_run >= wanted:
            break
        first, before = first + ROWS_AT_ONCE, before + of_run
    sums = before + np.cumsum(mass[first : first + ROWS_AT_ONCE], dtype=np.int64)
    above = first + int(np.searchsorted(sums, wanted))
    if above >= len(mass) - 1:
        above, up_to = len(mass) - 2, total - int(mass[-1])
    else:
        up_to = int(sums[above - first])
    below = max(above - 1, 0)
    up_to_below = up_to - int(mass[above]) if above else up_to
    return 1 + (below if abs(up_to_below - wanted) <= abs(up_to - wanted) else above)


def are_alike(table: Table) -> bool:
    hashes = hash_rows(table)
    return bool((hashes == hashes[0]).all())


def note_kinds(table: Table) -> str | None:
    """Warn that equal rows are in both parts of the split."""
    from core.base.splits import has_few_kinds

    if table.group is not None:
        return None
    first = table.part(np.arange(min(FIRST_ROWS, len(table.X))))  # in most tables enough to know
    if not has_few_kinds(hash_rows(first)) or not has_few_kinds(hash_rows(table)):
        return None
    return (
        f"the table has fewer than {MIN_DISTINCT_ROWS} distinct rows, each many times, so duplicates may be on both "
        "sides of the split"
    )


def hash_units(table: Table, seed: int) -> Hashes:
    """Hash each row by its unit: its group, or, without groups, its features."""
    hashes = hash_rows(table) if table.group is None else table.group.copy()
    for start in range(
        0, len(hashes), ROWS_AT_ONCE
    ):  # mixed at once they would take 32 bytes a row
        run = hashes[start : start + ROWS_AT_ONCE]
        run[:] = row_hashes.mix(run ^ np.uint64(seed % 2**64))
    return hashes


def no_such_validation(what: str, method: str) -> Invalid:
    """Return the error for a method that data with `what` does not support."""
    return Invalid(
        f"validation.method must be holdout, dataset or none with {what}, got {method!r}",
        code="unsupported",
    )


def hold_out_units(table: Table, fraction: float, seed: int) -> RowSplit:
    """Hold out a random fraction of the rows; units are not divided."""
    check_fraction(fraction)
    hashes = hash_units(table, seed)
    units, counts = np.unique(hashes, return_counts=True)  # a random order
    held_out = np.isin(hashes, units[: cut(counts, fraction)])
    return RowSplit(np.flatnonzero(~held_out), np.flatnonzero(held_out))


def hash_rows(table: Table) -> Hashes:
    """Hash the features: equal rows have equal hashes, in any table."""
    from app.ingest.profile import add_column  # numba, which the API does without

    hashes = np.zeros(len(table.X), dtype=np.uint64)
    for feature, (name, texts) in enumerate(zip(table.names, table.categories, strict=True)):
        words = None if texts is None else row_hashes.hash_words(texts)
        add_column(hashes, name, table.column(feature), words)
    return hashes


class SplitData(ABC):
    """A table in memory, divided into the parts `train` and, unless there is none, `validation`. `notes` is what the
    model's owner should know about them.
    """

    notes: Sequence[str] = ()

    @abstractmethod
    def fit(self, ranker: Ranker, callback: Callback) -> None:
        """Fit the ranker on the training part."""

    @abstractmethod
    def thinned(self, fraction: float, seed: int) -> SplitData:
        """Return these data with a random fraction of the training part; a larger fraction contains a smaller one."""

    @abstractmethod
    def inner(self, inner: InnerSplits, split: int, seed: int) -> SplitData:
        """Return an inner split of the training part, for the choice among rankers."""

    @abstractmethod
    def value(self, scores: Floats, objective: Objective) -> float:
        """Return the value of the validation part's scores in terms of the objective; higher is better."""

    @abstractmethod
    def evaluate(
        self, ranker: Ranker, objective: Objective, workdir: Path
    ) -> Mapping[str, PartMetrics]:
        """Return the metrics of the ranker by part; large arrays are written to files in the folder."""

    @abstractmethod
    def table(self, part: str) -> Table | None:
        """Return the table with the rows of a part; None if there is no such part."""

    @property
    def n_learnt(self) -> int:
        return len(self._table_of("train").X)

    @property
    def held_out(self) -> CodedTable | ColumnTable:
        """The features of the validation part, in the form that a ranker scores."""
        return self._table_of("validation").coded

    def sample(self, part: str, seed: int) -> Table | None:
        """Return a sample drawn by `interpretation.draw`; None if there is no such part."""
        table = self.table(part)
        return None if table is None else draw(table, seed)

    def evaluation_rows(self, seed: int) -> tuple[str, Table] | None:
        """Return a part (`validation` if there is one) and a sample of its rows of both classes (`draw_classes`).

        None if rows do not have exactly one label.
        """
        return None

    def missing(self) -> list[tuple[bool, bool]]:
        """Return for each feature whether some, and all, of its training values are missing."""
        return [
            _missing_among(self.training_values(feature))
            for feature in range(len(self._table_of("train").names))
        ]

    def training_values(self, feature: int) -> Floats:
        return self._table_of("train").column(feature)

    def _table_of(self, part: str) -> Table:
        table = self.table(part)
        assert table is not None
        return table


def _missing_among(values: npt.NDArray[np.float64]) -> tuple[bool, bool]:
    missing = np.isnan(values)
    return bool(missing.any()), bool(missing.all())
