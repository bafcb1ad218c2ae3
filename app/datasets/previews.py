"""The first rows of a dataset, as its owner wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.datasets.service import LONGEST_TEXT, get
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.errors import Conflict
from app.platform.tables import DatasetStatus

if TYPE_CHECKING:
    import pyarrow as pa


def preview(
    db: Database, blobs: BlobStore, owner: str, dataset_id: str, limit: int
) -> dict[str, Any]:
    """The first rows of a ready dataset, in the order of its columns."""
    import pyarrow.parquet as pq

    dataset = get(db, owner, dataset_id)
    if dataset.status != DatasetStatus.READY or dataset.table_key is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready, it is {dataset.status}", code="dataset_not_ready"
        )
    with pq.ParquetFile(blobs.path(dataset.table_key)) as file:
        batch = next(file.iter_batches(batch_size=limit), None)
        names = file.schema_arrow.names
    columns = [] if batch is None else [_plain(column) for column in batch.columns]
    labels = dataset.labels or [
        {"name": dataset.label, "negative": dataset.negative, "positive": dataset.positive}
    ]
    for label in labels:  # kept as 0 and 1; shown in the caller's words
        if label["name"] in names and columns:
            words = (label["negative"], label["positive"])
            at = names.index(label["name"])
            columns[at] = [words[int(value)] for value in columns[at]]
    return {"columns": names, "data": [list(row) for row in zip(*columns, strict=True)]}


def _plain(column: pa.Array) -> list[Any]:
    """Values as JSON has them: NaN and infinity as null."""
    import pyarrow as pa

    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [
            value if value is not None and abs(value) < float("inf") else None for value in values
        ]
    return [
        value if isinstance(value, bool | int | float | None) else _cut(str(value))
        for value in values
    ]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
