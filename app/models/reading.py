"""How a model reads values: what counts as missing in them."""

from __future__ import annotations

from typing import cast

from app.ingest.values import USUAL_CODES, MissingCodes
from app.platform.documents import TableDialect
from app.platform.tables import Model
from core.exporting.formats import ColumnReading, Kind


def reading_of(model: Model) -> list[ColumnReading]:
    """Return how the model reads the values of its features, for an export."""
    codes = codes_of(model.table_dialect)
    texts = tuple(sorted(codes.texts))
    return [
        ColumnReading(each["name"], cast(Kind, each["type"]), codes.numbers, texts)
        for each in model.features
    ]


def codes_of(table_dialect: TableDialect | None) -> MissingCodes:
    """Return what counts as missing in the values of a model: what did in its training table."""
    return USUAL_CODES if table_dialect is None else MissingCodes(table_dialect["missing"])
