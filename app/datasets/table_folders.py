"""Folders of files that are more than their files: tables of lake formats, and Hive partitions.

The log of a Delta, Hudi or Iceberg table says which of its files are the table; the others are removed or replaced
rows. In a Hive folder, `year=2026/part-0.parquet`, the path has the value of a column that the file lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    import pyarrow as pa

DELTA, HUDI, ICEBERG = "Delta", "Hudi", "Iceberg"
LOGS: Mapping[str, str] = {"_delta_log": DELTA, ".hoodie": HUDI}
"""Names of folders with the log of a table."""
METADATA, ICEBERG_DATA, _METADATA_ENDING = "metadata", "data", ".metadata.json"
_NULL = "__HIVE_DEFAULT_PARTITION__"

Partition = dict[str, str | None]
"""The columns that the path of a file has, each with the file's value; None: missing."""


def lake_format(paths: Iterable[str]) -> str | None:
    """Detect the format from paths below the folder; None for a folder of plain files."""
    for path in paths:
        steps = path.split("/")
        for step in steps[:-1]:
            if (known := LOGS.get(step)) is not None:
                return known
        if len(steps) > 1 and steps[-2] == METADATA and path.endswith(_METADATA_ENDING):
            return ICEBERG
    return None


def lake_of(folder: Path) -> str | None:
    """Detect the format of a folder on disk, which may be a partition; None for plain files."""
    while is_partition(folder.name):
        folder = folder.parent
    for name, known in LOGS.items():
        if (folder / name).is_dir():
            return known
    top = folder.parent if folder.name == ICEBERG_DATA else folder
    is_iceberg = any((top / METADATA).glob(f"*{_METADATA_ENDING}"))
    return ICEBERG if is_iceberg else None


def lake_rule(known: str) -> str:
    """Return why a lake table is refused, and what to do, for a message."""
    return (
        f"is a {known} table: its log says which of its files are rows of the table, and the others were removed or "
        "replaced. Export the table to Parquet or CSV in a new folder, or read it with a query"
    )


def is_partition(step: str) -> bool:
    column, mark, _ = step.partition("=")
    return bool(column.strip() and mark)


def partition_of(path: str) -> Partition:
    """Return the columns in a path below the table's folder.

    >>> partition_of("year=2026/branch=S%C3%BCd/part-0.parquet")
    {'year': '2026', 'branch': 'Süd'}
    """
    found: Partition = {}
    for step in path.split("/")[:-1]:
        if is_partition(step):
            column, _, value = step.partition("=")
            found[unquote(column)] = None if value == _NULL else unquote(value)
    return found


def partition_types(partitions: Sequence[Partition]) -> dict[str, pa.DataType]:
    """Whole numbers if all values are, else text."""
    import pyarrow as pa

    names = dict.fromkeys(name for each in partitions for name in each)
    return {
        name: pa.int64()
        if all(map(_is_whole, (each.get(name) for each in partitions)))
        else pa.string()
        for name in names
    }


def _is_whole(value: str | None) -> bool:
    return value is None or re.fullmatch("0|[1-9][0-9]{0,17}", value) is not None


def add_columns(path: Path, partition: Partition, types: Mapping[str, pa.DataType]) -> None:
    """Write a path's columns into a Parquet file by row groups.

    Raises ValueError if the file has one of them with another value, and ArrowException for a damaged file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = path.with_name(f"{path.name}.partition")
    with pq.ParquetFile(path) as file:
        both = [name for name in types if name in file.schema_arrow.names]
        if both:
            raise ValueError(f"has the column {both[0]!r} in its path and in the file")
        schema = file.schema_arrow
        for name, kind in types.items():
            schema = schema.append(pa.field(name, kind))
        with pq.ParquetWriter(written, schema, compression="zstd") as writer:
            for batch in file.iter_batches():
                columns = list(batch.columns)
                for name, kind in types.items():
                    value = partition.get(name)
                    known = int(value) if value is not None and pa.types.is_integer(kind) else value
                    columns.append(pa.repeat(pa.scalar(known, kind), batch.num_rows))
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    written.replace(path)
