"""The AUC by period of the rows' time (vintages): by month, or by quarters, years or decades if there are more.

Periods are those of UTC. A period with too few rows of a class has no AUC, because an interval from so few rows may
miss the true value. Rows that belong together (groups) may be in several periods; within each they count as one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets.matrices import read_times
from app.ingest.hints import date_columns, time_column
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
MAX_PERIODS = 60
MIN_OF_CLASS = 10
"""Least effective number of rows of each class for the AUC of a period."""

_UNITS = ((1, "month"), (3, "quarter"), (12, "year"), (120, "decade"))


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
        unit, number, limits = _divide_dates(times[known])
        found["unit"] = unit
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


def _divide_dates(
    seconds: Floats,
) -> tuple[str, npt.NDArray[np.int64], Callable[[int], Json]]:
    """Return the unit of the periods, the period of each time (seconds since 1970, also before), and a function that
    names a period and gives its limits.
    """
    days = np.floor(seconds / 86_400.0).astype(np.int64).astype("datetime64[D]")
    months = days.astype("datetime64[M]").astype(np.int64)  # since January 1970
    length, unit = next(
        (each for each in _UNITS if len(np.unique(months // each[0])) <= MAX_PERIODS), _UNITS[-1]
    )

    def limits(place: int) -> Json:
        start, end = (
            str(np.datetime64(length * each, "M").astype("datetime64[D]"))
            for each in (place, place + 1)
        )
        year = start[:-6]
        match unit:
            case "month":
                name = start[:-3]
            case "quarter":
                name = f"{year}-Q{(int(start[-5:-3]) + 2) // 3}"
            case "year":
                name = year
            case _:
                name = f"{year}s"
        return {"name": name, "start": start, "end": end}

    return unit, months // length, limits
