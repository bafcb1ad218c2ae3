"""Segments: immutable Parquet files of decisions in the blob store, and their columns.

A decision is one scoring of one entity; an id names the entity. Outcomes have files of their own
(`app.feedback.outcomes`), which name decisions or ids.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from app.platform.blobs import Blob, BlobStore
from app.scoring.decisions import (
    FEATURE,
    KIND,
    PROTECTED,
    DecisionStream,
    SegmentFeature,
    decode,
    hash_id,
    hash_ids,
    schema_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FEATURE",
    "KIND",
    "MAX_ROWS_AT_ONCE",
    "PROTECTED",
    "SegmentFeature",
    "hash_id",
    "hash_ids",
    "read_file",
    "read_segments",
    "schema_of",
    "segment_of",
    "write_segment",
]

MAX_ROWS_AT_ONCE = 1 << 16
"""Maximum number of rows in a row group, and in a batch that a reader holds in memory."""
_BLOCKS_AT_ONCE = 1 << 14
"""Encoded blocks of a log that become one row group."""


class WrittenSegment(NamedTuple):
    """A stored file of decisions, with its number of rows, and the times of the first and the last of them."""

    blob: Blob
    rows: int
    first_at: float
    last_at: float


def segment_of(
    blobs: BlobStore, stream: DecisionStream, contents: Sequence[bytes], default_at: float
) -> WrittenSegment:
    """Store encoded decisions as one file. A decision of a repeated request is stored once.

    `default_at` is the time of a segment without rows, whose decisions are all lost.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    seen: set[str] = set()
    times: list[float] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(contents), _BLOCKS_AT_ONCE):
            some = contents[start : start + _BLOCKS_AT_ONCE]
            batch = decode(stream.owner, stream.features, some)
            times.append(pc.min(batch.column("at")).as_py())
            times.append(pc.max(batch.column("at")).as_py())
            fresh = []
            for row, id_ in enumerate(batch.column("decision_id").to_pylist()):
                if id_ not in seen:
                    seen.add(id_)
                    fresh.append(row)
            yield batch if len(fresh) == batch.num_rows else batch.take(pa.array(fresh, pa.int64()))

    blob = write_segment(blobs, batches(), schema_of(stream.features))
    known = times or [default_at]
    return WrittenSegment(blob, len(seen), min(known), max(known))


def write_segment(
    blobs: BlobStore, batches: Iterable[pa.RecordBatch], schema: pa.Schema, kind: str = KIND
) -> Blob:
    """Store batches as `write_file` does; the blob is durable but not yet in the catalogue."""
    folder = blobs.staging_dir()
    try:
        file = folder / "segment.parquet"
        return blobs.publish(file, kind, write_file(file, batches, schema))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_file(file: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
    """Write batches to Parquet, in row groups of at most `MAX_ROWS_AT_ONCE` rows. Returns the SHA-256."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=MAX_ROWS_AT_ONCE)
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_segments(
    blobs: BlobStore, found: Iterable[Blob], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield rows as `read_file` does, with one segment open at a time. Raises BlobMissing and BlobDamaged."""
    for blob in found:
        yield from read_file(blobs.fetch(blob), columns)


def read_file(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `MAX_ROWS_AT_ONCE` rows with exactly these columns.

    A column that the file lacks, because the feature was not recorded at that time, is null (of Arrow's type null).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        has = set(file.schema_arrow.names)
        # A file is read by the names of its leaves: one that is the start of another also reads the other.
        known = [name for name in columns if name in has]
        for batch in file.iter_batches(MAX_ROWS_AT_ONCE, columns=known):
            yield pa.RecordBatch.from_arrays(
                [
                    batch.column(name) if name in has else pa.nulls(batch.num_rows)
                    for name in columns
                ],
                names=list(columns),
            )
