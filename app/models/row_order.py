"""Serial dependence of a table's rows: tests of drift that assume independent rows would mislead for a time series.

Rows with a column of times are tested as a series, with the serial dependence that they show. Without times, a column
or a class whose neighbouring rows are significantly similar is not tested, because the order of the table may or may
not be that of time.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets.matrices import read_times
from app.ingest.hints import time_column
from app.ingest.values import DATETIME, NUMERIC
from app.platform.documents import Validation
from app.platform.errors import Invalid
from app.platform.tables import Dataset, DatasetKind

if TYPE_CHECKING:
    from app.ingest.profile import TableReader
    from core.base.ranker import Floats
    from core.metrics.serial import SerialDependence

Bins = npt.NDArray[np.intp]

TOO_DEPENDENT = (
    "neighbouring rows in time are so similar, or follow such a trend, that they count as fewer than 20 independent "
    "rows or three independent stretches"
)
IS_TIME = "it orders the rows in time, so it is always different on newer rows"
_FEW = 60  # rows, of which independent ones may look dependent
NO_TIME = (
    "neighbouring rows are similar, so they are not independent, and no complete time column "
    "orders them as a series"
)


class RowOrder(TypedDict):
    """The order of a table's rows: by time or not. `time` is the column of times.

    `label` is the column within whose values neighbouring rows are compared, because tables are often sorted by it.
    `grouped` is True if a column groups the rows, which tests then take into account.
    """

    time: str | None
    label: str | None
    grouped: bool


def row_order(validation: Validation, dataset: Dataset) -> RowOrder:
    """The time column is that of the model's validation, else one that the columns suggest."""
    columns = dataset.columns or []
    named = validation.get("time_column")
    known = any(
        column["name"] == named
        and column["type"] in (NUMERIC, DATETIME)
        and column["role"] in ("feature", "protected", "identifier")
        and not column.get("missing")
        for column in columns
    )
    return {
        "time": named if known else time_column(columns),
        "label": dataset.label if dataset.kind == DatasetKind.BIPARTITE else None,
        "grouped": dataset.group is not None or dataset.query is not None,
    }


def read_order_times(path: str, order: RowOrder) -> Floats | None:
    """Return None without a time column, or if a row has no time."""
    if order["time"] is None:
        return None
    try:
        return read_times(Path(path), order["time"])
    except Invalid:
        return None


class ScoreSeries(NamedTuple):
    """The scores by class, and all with labels, by time, or in the order of the table without times."""

    positives: Floats
    negatives: Floats
    every: Floats
    y: npt.NDArray[np.int8]
    by_time: bool
    grouped: bool


def score_series(
    y: npt.NDArray[np.int8], scores: Floats, path: str, order: RowOrder
) -> ScoreSeries:
    """Return the scores of each class in the order of their rows."""
    times = read_order_times(path, order)
    if times is not None:
        rows = np.argsort(times, kind="stable")
        y, scores = y[rows], scores[rows]
    return ScoreSeries(
        scores[y == 1], scores[y != 1], scores, y, times is not None, order["grouped"]
    )


def scores_alike(scores: Floats, stratum: npt.NDArray[np.generic] | None = None) -> bool:
    """Return True if neighbouring scores, within values of `stratum`, are significantly more alike than by chance."""
    from core.metrics.drift import bin_edges
    from core.metrics.serial import order_matters

    edges = bin_edges(scores)
    bins = np.searchsorted(edges, scores)
    return order_matters(bins, edges.size + 1, ordered=True, stratum=stratum)


SAMPLED_ROWS = 1 << 14
"""Rows of a table whose columns are compared: the PSI of so many has a standard error below 0.001."""


class SampledRows:
    """Sampled rows of a table in their order.

    `by_time` sorts them by time (None without times), `stratum` are the values within which neighbouring rows are
    compared, `weight` are the rows' weights, and `time` is the column of times. `alone` is the number of independent
    rows that a row counts as, where entities have several.
    """

    def __init__(
        self,
        by_time: npt.NDArray[np.intp] | None = None,
        stratum: npt.NDArray[np.generic] | None = None,
        weight: Floats | None = None,
        *,
        time: str | None = None,
        grouped: bool = False,
        alone: float = 1.0,
    ) -> None:
        self._by_time, self._stratum, self._grouped = by_time, stratum, grouped
        self._alone = alone
        self.weight, self.time = weight, time

    @classmethod
    def of_table(
        cls, table: TableReader, path: str, order: RowOrder, weight: str | None
    ) -> SampledRows:
        """Keep the rows that `thin` keeps of a table's sample."""
        by_time = stratum = None
        if (times := read_order_times(path, order)) is not None:
            by_time = np.argsort(thin(times[table.sampled_rows]), kind="stable")
        elif order["label"] is not None and not order["grouped"]:
            stratum = thin(np.asarray(table.sample(order["label"])))
        own = None
        if weight is not None:
            own = thin(table.sample(weight).to_numpy(zero_copy_only=False).astype(np.float64))
        return cls(by_time, stratum, own, time=order["time"], grouped=order["grouped"])

    @property
    def has_times(self) -> bool:
        return self._by_time is not None

    @property
    def worth(self) -> float:
        """The number of independent rows of equal weight that one row counts as, at most 1 (Kish)."""
        if self.weight is None:
            return self._alone
        return self._alone * float(
            self.weight.sum() ** 2 / np.square(self.weight).sum() / self.weight.size
        )

    def masses(self, bins: Bins, n_bins: int) -> Floats:
        """Return the weight in each bin, shape (n_bins,)."""
        return np.bincount(bins, self.weight, n_bins).astype(np.float64)

    def dependence(
        self, bins: Bins, n_bins: int, *, ordered: bool, worth: float
    ) -> SerialDependence | None:
        """Return the dependence over time; None if there are too few rows."""
        from core.metrics.serial import serial_dependence

        assert self._by_time is not None
        return serial_dependence(bins[self._by_time], n_bins, ordered=ordered, worth=worth)

    def are_alike(self, bins: Bins, n_bins: int, *, ordered: bool) -> bool:
        """Return True if neighbouring rows are significantly more alike than at random; never for grouped rows."""
        from core.metrics.serial import order_matters

        if self._grouped:
            return False
        return order_matters(bins, n_bins, ordered=ordered, stratum=self._stratum)


def say_dependent(rows: float) -> str:
    """Say why a series with this number of rows has no test."""
    if rows < _FEW:
        return f"{rows:.0f} rows are too few to tell how similar neighbouring rows in time are"
    return TOO_DEPENDENT


def thin(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Keep at most `SAMPLED_ROWS` rows, drawn at random, in their order; the same ones of each column of a table."""
    return column[_drawn(len(column))]


@lru_cache(maxsize=4)
def _drawn(n_rows: int) -> Bins:
    if n_rows <= SAMPLED_ROWS:
        return np.arange(n_rows)
    rng = np.random.default_rng(0)
    return np.sort(rng.choice(n_rows, SAMPLED_ROWS, replace=False, shuffle=False))
