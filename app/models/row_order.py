"""Serial dependence of a table's rows: tests of drift that assume independent rows would mislead for a time series.

Rows with a column of times are a series in that order. Without times, those of a column or a class are a series in the
order of the table if neighbours are significantly similar: it may be that of time. A series is tested with the serial
dependence that it shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets.matrices import read_times
from app.ingest.hints import time_column
from app.ingest.sampling import Draws, draws, sampled_rows
from app.ingest.values import DATETIME, NUMERIC
from app.platform.documents import Validation
from app.platform.errors import Invalid
from app.platform.tables import Dataset, DatasetKind

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.profile import TableReader
    from core.base.ranker import Floats
    from core.metrics.serial import SerialDependence

Bins = npt.NDArray[np.intp]

TOO_DEPENDENT = (
    "the values change so slowly, over time or along the table, that these rows are worth fewer than 20 independent "
    "ones"
)
IS_TIME = "it orders the rows in time, so it is always different on newer rows"
_FEW = 60  # rows, of which independent ones may look dependent


class RowOrder(TypedDict):
    """The order of a table's rows: by time or not. `time` is the column of times, and `time_type` its type.

    `label` is the column within whose values neighbouring rows are compared, because tables are often sorted by it.
    `grouped` is True if a column groups the rows, which tests then take into account.
    """

    time: str | None
    time_type: str | None
    label: str | None
    grouped: bool


def row_order(validation: Validation, dataset: Dataset) -> RowOrder:
    """The time column is that of the model's validation, else one that the columns suggest."""
    columns = dataset.columns or []
    types = {column["name"]: column["type"] for column in columns}
    named = validation.get("time_column")
    known = any(
        column["name"] == named
        and column["type"] in (NUMERIC, DATETIME)
        and column["role"] in ("feature", "protected", "identifier")
        and not column.get("missing")
        for column in columns
    )
    time = named if known else time_column(columns)
    return {
        "time": time,
        "time_type": None if time is None else types[time],
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


def in_time(times: Floats, drawn: Draws) -> Bins:
    """Return the order of rows in time. Those of one time, such as a day, are in the order of their random draws: the
    table may be sorted within it.
    """
    return np.lexsort((drawn, times))


def newest_date(path: str, order: RowOrder) -> float | None:
    """Return the time of the newest row in seconds since 1970; None unless a column of dates orders the rows."""
    if order["time_type"] != DATETIME or (times := read_order_times(path, order)) is None:
        return None
    return float(times.max()) if times.size else None


class ScoreSeries(NamedTuple):
    """The scores by class, and all with labels and the numbers of their `rows`, by time, or in the order of the table
    without times.
    """

    positives: Floats
    negatives: Floats
    every: Floats
    y: npt.NDArray[np.int8]
    rows: Bins
    by_time: bool
    grouped: bool


def score_series(
    y: npt.NDArray[np.int8], scores: Floats, path: str, order: RowOrder
) -> ScoreSeries:
    """Return the scores of each class in the order of their rows."""
    times = read_order_times(path, order)
    rows = np.arange(len(y)) if times is None else in_time(times, draws(0, len(y)))
    y, scores = y[rows], scores[rows]
    by_class = scores[y == 1], scores[y != 1]
    return ScoreSeries(*by_class, scores, y, rows, times is not None, order["grouped"])


def scores_alike(scores: Floats, stratum: npt.NDArray[np.generic] | None = None) -> bool:
    """Return True if neighbouring scores, within values of `stratum`, are significantly more alike than by chance."""
    from core.metrics.drift import bin_edges
    from core.metrics.serial import order_matters

    edges = bin_edges(scores)
    bins = np.searchsorted(edges, scores)
    return order_matters(bins, edges.size + 1, ordered=True, stratum=stratum)


_MOST_ROWS = 1 << 14  # of a sample; the PSI of so many has a standard error below 0.001
_MOST_CELLS = 1 << 20


def most_sampled(n_columns: int) -> int:
    """Return how many rows of a table with so many columns are compared."""
    return max(2, min(_MOST_ROWS, _MOST_CELLS // max(1, n_columns)))


class SampledRows:
    """Sampled rows of a table in their order.

    `by_time` sorts them by time (None without times), `stratum` are the values within which neighbouring rows are
    compared, `weight` are the rows' weights, and `time` is the column of times. `alone` is the number of independent
    rows that a row counts as, where entities have several. `chosen` are the rows of the sample among those of a
    `TableReader`; None: all.
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
        chosen: Bins | None = None,
    ) -> None:
        self._by_time, self._stratum, self._grouped = by_time, stratum, grouped
        self._alone, self._chosen = alone, chosen
        self.weight, self.time = weight, time

    @classmethod
    def of_table(
        cls, table: TableReader, path: str, order: RowOrder, weight: str | None, n_columns: int
    ) -> SampledRows:
        """Draw rows of the table's own sample, to compare so many columns."""
        held = table.sampled_rows
        chosen = np.searchsorted(held, sampled_rows(table.rows, most_sampled(n_columns)))
        by_time = stratum = own = None
        if (times := read_order_times(path, order)) is not None:
            rows = held[chosen]
            by_time = in_time(times[rows], draws(0, table.rows)[rows])
        elif order["label"] is not None and not order["grouped"]:
            stratum = np.asarray(table.sample(order["label"]))[chosen]
        if weight is not None:
            values = table.sample(weight).to_numpy(zero_copy_only=False)
            own = values[chosen].astype(np.float64)
        time, grouped = order["time"], order["grouped"]
        return cls(by_time, stratum, own, time=time, grouped=grouped, chosen=chosen)

    def of(self, sample: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column of the sample, from the column of a `TableReader.sample`."""
        import pyarrow as pa

        if self._chosen is None or len(self._chosen) == len(sample):
            return sample
        return sample.take(pa.array(self._chosen))

    @property
    def size(self) -> int:
        """The number of rows that `of_table` has drawn."""
        assert self._chosen is not None
        return len(self._chosen)

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
        """Return the dependence over time, or in the order of the table; None if there are too few rows."""
        from core.metrics.serial import serial_dependence

        series = bins if self._by_time is None else bins[self._by_time]
        return serial_dependence(series, n_bins, ordered=ordered, worth=worth)

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
