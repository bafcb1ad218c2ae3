"""Suggestions for splitting a table's rows, from its columns: the one with dates, and the one that names groups.

Columns are described as in a dataset's `columns`: name, type, role, and profile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.ingest.values import CATEGORICAL, DATETIME, NUMERIC
from core.base.columns import MIN_DISTINCT_ROWS

DescribedColumn = Mapping[str, Any]

_IDS = {"id", "uuid", "guid"}
_NAMES = {"name", "number", "no", "nr"}
_OWNERS = {
    *("account", "borrower", "client", "company", "customer", "employee", "household", "member"),
    *("participant", "patient", "person", "respondent", "student", "subject", "user"),
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MAX_DISTINCT_FRACTION = 0.9
"""Of the rows: with more distinct values nearly every row has its own, as with an identifier."""


def date_columns(columns: Sequence[DescribedColumn]) -> list[DescribedColumn]:
    """Return the features that are dates or times of more than one value."""
    return [
        column
        for column in columns
        if (column["role"], column["type"]) == ("feature", DATETIME) and column["distinct"] > 1
    ]


def time_column(columns: Sequence[DescribedColumn]) -> str | None:
    """Return the column of dates that orders the rows: every row has a date, and its latest value is the latest of all.

    Other dates of a row (birth, order, delivery) are older. None if there is no such column, or no other feature.
    """
    complete = [column for column in date_columns(columns) if not column["missing"]]
    if not complete or sum(column["role"] == "feature" for column in columns) == 1:
        return None
    name: str = max(complete, key=lambda column: float(column["max"]))["name"]
    return name


def group_column(columns: Sequence[DescribedColumn], rows: int) -> str | None:
    """Return the first feature that seems to identify what rows belong to, such as `customer_id`.

    The name ends with `id`, or with a word such as `customer` or `patient`; the column has at least 30 distinct values,
    and at least one in ten rows repeats a value. A numeric column with only a lower bound of the number of distinct
    values (no `top`) qualifies if its range alone implies that values repeat.
    """
    names = (column["name"] for column in columns if _names_groups(column, rows))
    return next(names, None)


def names_entity(name: str) -> bool:
    """Return True for names ending with `id`, `nummer` (German), or a word such as `customer` or `customer_number`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if len(words) > 1 and words[-1] in _NAMES:
        words.pop()
        return words[-1] in _OWNERS
    return bool(words) and (words[-1] in _IDS | _OWNERS or words[-1].endswith("nummer"))


def _names_groups(column: DescribedColumn, rows: int) -> bool:
    if column["role"] != "feature" or column["type"] not in (CATEGORICAL, NUMERIC):
        return False
    if not names_entity(column["name"]) or column["distinct"] < MIN_DISTINCT_ROWS:
        return False
    most = _MAX_DISTINCT_FRACTION * (rows - column["missing"])
    if column["type"] == CATEGORICAL:  # with more distinct values it would be an identifier
        return True
    if "top" in column:
        return bool(column["distinct"] <= most)
    return bool(column["max"] - column["min"] + 1 <= most)
