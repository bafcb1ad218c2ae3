"""Serial dependence of the rows of a table: tests of drift that assume independent rows would be misleading for a time
series.

Rows with a column of times are tested as a series, with the serial dependence that they show. Without times, a column
or a class whose neighbouring rows are significantly similar is not tested, because the order of the table may or may
not be that of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets.matrices import read_times
from app.ingest.hints import time_column
from app.ingest.values import DATETIME, NUMERIC
from app.platform.errors import Invalid
from app.platform.tables import Dataset, DatasetKind, Model

if TYPE_CHECKING:
    from app.ingest.profile import TableReader
    from core.base.ranker import Floats
    from core.metrics.serial import SerialDependence

Bins = npt.NDArray[np.intp]

TOO_SHORT = (
    "there are too few rows for a test: neighbouring rows in time are so similar that they form "
    "fewer than three independent stretches"
)
NO_TIME = (
    "neighbouring rows are similar, so they are not independent, and no complete time column "
    "orders them as a series"
)


class RowOrder(TypedDict):
    """The order of a table's rows: by time or not.

    `time` is the column of times, if there is one. `label` is the column within whose values neighbouring rows are
    compared, because tables are often sorted by it. `grouped` is True if a column groups the rows, which tests then
    take into account.
    """

    time: str | None
    label: str | None
    grouped: bool


def row_order(model: Model, dataset: Dataset) -> RowOrder:
    """Return the order of a dataset's rows. The time column is the model's, else one that the columns suggest."""
    columns = dataset.columns or []
    named = model.validation.get("time_column")
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
    """Return the times of a table's rows; None if there is no time column, or a row has no time."""
    if order["time"] is None:
        return None
    try:
        return read_times(Path(path), order["time"])
    except Invalid:
        return None


class ScoreSeries(NamedTuple):
    """The scores of each class, in the order of time, or of the table if there is no time."""

    positives: Floats
    negatives: Floats
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
    return ScoreSeries(scores[y == 1], scores[y != 1], times is not None, order["grouped"])


def scores_alike(scores: Floats) -> bool:
    """Return True if neighbouring scores are significantly more similar than in random order."""
    from core.metrics.drift import bin_edges
    from core.metrics.serial import order_matters

    edges = bin_edges(scores)
    return order_matters(np.searchsorted(edges, scores), edges.size + 1, ordered=True)


class Sampled:
    """Sampled rows of a table, in their order."""

    def __init__(self, table: TableReader, path: str, order: RowOrder) -> None:
        self._by_time: npt.NDArray[np.intp] | None = None
        self._label: npt.NDArray[np.generic] | None = None
        self._grouped = order["grouped"]
        if (times := read_order_times(path, order)) is not None:
            self._by_time = np.argsort(times[table.sampled_rows], kind="stable")
        elif order["label"] is not None and not self._grouped:
            self._label = np.asarray(table.sample(order["label"]))

    @property
    def has_times(self) -> bool:
        """True if the rows are ordered by time."""
        return self._by_time is not None

    def dependence(
        self, bins: Bins, n_bins: int, *, ordered: bool, worth: float
    ) -> SerialDependence | None:
        """Return the serial dependence of the rows over time; None if there are too few rows."""
        from core.metrics.serial import serial_dependence

        assert self._by_time is not None
        return serial_dependence(bins[self._by_time], n_bins, ordered=ordered, worth=worth)

    def are_alike(self, bins: Bins, n_bins: int, *, ordered: bool) -> bool:
        """Return True if neighbouring rows of the table are significantly more similar than in random order; never for
        grouped rows.
        """
        from core.metrics.serial import order_matters

        if self._grouped:
            return False
        return order_matters(bins, n_bins, ordered=ordered, stratum=self._label)


def depend(
    samples: Sequence[Sampled], bins: Sequence[Bins], n_bins: int, *, ordered: bool, worth: float
) -> tuple[tuple[SerialDependence, SerialDependence] | None, str | None]:
    """Return the serial dependences of two samples (None if independent), and the reason why there can be no test, if
    any.
    """
    if all(each.has_times for each in samples):
        old, new = (
            each.dependence(own, n_bins, ordered=ordered, worth=worth)
            for each, own in zip(samples, bins, strict=True)
        )
        return (None, TOO_SHORT) if old is None or new is None else ((old, new), None)
    alike = any(
        each.are_alike(own, n_bins, ordered=ordered)
        for each, own in zip(samples, bins, strict=True)
    )
    return None, NO_TIME if alike else None
