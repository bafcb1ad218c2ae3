"""The AUC by period of the rows' time (vintages): by month, or by quarters, years or decades if there are more.

Periods are those of UTC. A period with too few rows of a class has no AUC, because an interval from so few rows may
miss the true value. Rows that belong together (groups) may be in several periods; within each they count as one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets.matrices import read_times
from app.ingest.hints import date_columns, time_column
from app.ingest.periods import MAX_PERIODS, divide
from app.ingest.values import DATETIME, NUMERIC
from app.platform.documents import Validation
from app.platform.errors import Invalid, counted
from app.platform.sql import Json
from app.platform.tables import Dataset, DatasetKind

if TYPE_CHECKING:
    from app.datasets.matrices import Table
    from core.base.ranker import Floats

BY_PERIOD = "periods"
"""Key of the stored metrics."""
MIN_OF_CLASS = 10
"""Least effective number of rows of each class for the AUC of a period."""


class TimeOfRows(TypedDict):
    """`dated`: the column has dates, otherwise numbers."""

    column: str
    dated: bool


def time_of_rows(validation: Validation, dataset: Dataset) -> TimeOfRows | None:
    """Return the column of the validation, else the latest date of at least half of the rows.

    None if there is none, or if rows do not have one label.
    """
    if dataset.kind != DatasetKind.BIPARTITE:
        return None
    columns = dataset.columns or []
    named = validation.get("time_column")
    for column in columns:
        usable = column["role"] in ("feature", "identifier")
        if column["name"] == named and usable and column["type"] in (NUMERIC, DATETIME):
            return {"column": column["name"], "dated": column["type"] == DATETIME}
    if (complete := time_column(columns)) is not None:
        return {"column": complete, "dated": True}
    most = (dataset.rows or 0) / 2
    dates = [column for column in date_columns(columns) if column["missing"] <= most]
    if not dates or len([each for each in columns if each["role"] == "feature"]) == 1:
        return None
    latest: str = max(dates, key=lambda column: float(column["max"]))["name"]
    return {"column": latest, "dated": True}


def measure_periods(
    table: Table, scores: Floats, path: str, time: TimeOfRows, level: float
) -> Json | None:
    """The earliest is the first; None if the column has no times."""
    try:
        times = read_times(Path(path), time["column"], complete=False)
    except Invalid:
        return None
    known = np.isfinite(times)
    if table.weight is not None:
        known &= table.weight > 0.0
    found: Json = {
        "column": time["column"],
        "unit": "value",
        "missing": int(np.count_nonzero(~np.isfinite(times))),
        "omitted": 0,
        "reason": None,
        "periods": [],
    }
    if not known.any():
        return found | {"reason": "no row has a time"}
    if time["dated"]:
        divided = divide(times[known])
        found["unit"], number = divided.unit, divided.number

        def limits(place: int) -> Json:
            return {**divided.limits(place)}
    else:
        values, number = np.unique(times[known], return_inverse=True)
        if len(values) > MAX_PERIODS:
            n_values = counted(len(values), "distinct value", "distinct values")
            return found | {
                "reason": f"the column has numbers, not dates, with {n_values} (at most {MAX_PERIODS})"
            }

        def limits(place: int) -> Json:
            return {"name": f"{values[place]:.15g}", "start": None, "end": None}

    rows, numbers = np.flatnonzero(known), np.unique(number)
    found["omitted"] = int(np.isin(number, numbers[:-MAX_PERIODS]).sum())
    for each in numbers[-MAX_PERIODS:].tolist():
        found["periods"].append(limits(each) | _measure(table, scores, rows[number == each], level))
    return found


def _measure(table: Table, scores: Floats, rows: npt.NDArray[np.intp], level: float) -> Json:
    """Return counts of a period's rows, and their AUC, or why there is none."""
    from core.metrics.groups import check_rows, effective_units
    from core.metrics.intervals import interval_of_rows
    from core.metrics.window import WHOLE

    y, scores = table.y[rows], scores[rows]
    weight, group = (
        None if column is None else column[rows] for column in (table.weight, table.group)
    )
    positives = int(np.count_nonzero(y == 1))
    found: Json = {
        "rows": len(y),
        "positives": positives,
        "negatives": len(y) - positives,
        "auc": None,
        "reason": None,
    }
    few = [
        name
        for name, n in (("positives", positives), ("negatives", found["negatives"]))
        if n < MIN_OF_CLASS
    ]
    if not few:
        checked = check_rows(y, {"scores": scores}, weight, group)
        effective = zip(("positives", "negatives"), effective_units(checked), strict=True)
        few = [f"independent {name}" for name, n in effective if n < MIN_OF_CLASS]
    if few:
        return found | {"reason": f"fewer than {MIN_OF_CLASS} {' and '.join(few)}"}
    area = interval_of_rows(check_rows(y, {"scores": scores}, weight, group), WHOLE, level)
    return found | {"auc": area._asdict()}
