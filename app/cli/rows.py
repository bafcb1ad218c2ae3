"""Rows of a file as a model takes them: the features it has, text where it wants text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from app.services.ingest.missing import MissingTokens


def read_rows(file: Path, features: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Read the model's features from a CSV or Parquet file, in the model's order; other columns are left out.

    What is not a number where the model wants one stays as it is: the service says what is wrong with it.
    """
    table = pq.read_table(file) if file.suffix == ".parquet" else _read_csv(file, features)
    table = table.rename_columns([name.strip() for name in table.column_names])
    wanted = [feature for feature in features if feature["name"] in table.column_names]
    columns = {
        feature["name"]: _as_wanted(table.column(feature["name"]), feature) for feature in wanted
    }
    return pa.table(columns)


def _read_csv(file: Path, features: Sequence[Mapping[str, Any]]) -> pa.Table:
    with pyarrow.csv.open_csv(file) as reader:
        names = reader.schema.names
    words = {feature["name"] for feature in features if feature["type"] == "categorical"}
    return pyarrow.csv.read_csv(
        file,
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in names if name.strip() in words},
            null_values=MissingTokens().spellings(),
            strings_can_be_null=True,
        ),
    )


def _as_wanted(column: pa.ChunkedArray, feature: Mapping[str, Any]) -> pa.ChunkedArray:
    if feature["type"] != "numeric" or not pa.types.is_string(column.type):
        return column
    missing = MissingTokens()
    tidy = pa.chunked_array([missing.tidy(chunk) for chunk in column.chunks], pa.string())
    try:
        return pc.cast(tidy, pa.float64())
    except pa.ArrowInvalid:
        return column
