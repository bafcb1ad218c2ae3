"""Columns that say nothing: the same in every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_constant(column: Mapping[str, Any]) -> bool:
    """Whether all rows have the same value, or all have none: where only some have none, that may tell them apart."""
    distinct, missing = column["distinct"], column["missing"]
    return bool(distinct == 0 or (distinct == 1 and missing == 0))
