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

import numpy as np
import numpy.typing as npt

from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME
from app.platform.blobs import Blob, BlobStore

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "decisions"
"""Kind of these blobs in the store."""
FEATURE = "feature."
"""Prefix of the columns of features, so that no feature has the name of another column."""
MAX_ROWS_AT_ONCE = 1 << 16
"""Most rows of a row group, and of a batch that a reader holds in memory."""
_ID_HASH_BYTES = 8


class SegmentFeature(NamedTuple):
    """A recorded feature and its type (`app.ingest.values`)."""

    name: str
    type: str


def schema_of(features: Iterable[SegmentFeature] = ()) -> pa.Schema:
    """Return the columns of a segment of decisions with these features.

    `propensity` is the probability that the decision was marked for review, and `keep` the probability that it was
    recorded. A decision without a calibrated model has no `probability`; one without a guarantee has no `threshold` and
    no `flag`.
    """
    import pyarrow as pa

    words = pa.dictionary(pa.int32(), pa.string())
    columns = {
        "decision_id": pa.string(),
        "id": pa.string(),
        "id_hash": pa.uint64(),
        "at": pa.float64(),
        "revision": pa.int32(),
        "alias_revision": pa.int32(),
        "model_id": words,
        "score": pa.float64(),
        "probability": pa.float64(),
        "threshold": pa.float64(),
        "flag": pa.bool_(),
        "explored": pa.bool_(),
        "propensity": pa.float32(),
        "keep": pa.float32(),
        "caller": words,
        "origin": words,
        "request_id": pa.string(),
    }
    may_be_null = {"id", "id_hash", "probability", "threshold", "flag", "caller", "request_id"}
    types = {CATEGORICAL: words, BOOLEAN: pa.bool_(), DATETIME: pa.timestamp("us", tz="UTC")}
    fields = [pa.field(name, kind, name in may_be_null) for name, kind in columns.items()]
    fields += [pa.field(FEATURE + name, types.get(kind, pa.float64())) for name, kind in features]
    return pa.schema(fields)


def hash_id(owner: str, id_: str) -> int:
    """Return the hash of an entity's id, of 64 bits. It is keyed by the owner, so that the hashes of two owners cannot
    be compared.
    """
    return int(hash_ids(owner, [id_])[0])


def hash_ids(owner: str, ids: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return the hashes of ids, as `hash_id` does."""
    keyed = hashlib.blake2b(
        digest_size=_ID_HASH_BYTES, key=hashlib.blake2b(owner.encode(), digest_size=16).digest()
    )
    digests = bytearray()
    for id_ in ids:
        hashed = keyed.copy()
        hashed.update(id_.encode())
        digests += hashed.digest()
    return np.frombuffer(bytes(digests), "<u8").astype(np.uint64, copy=False)


def write_segment(
    blobs: BlobStore, batches: Iterable[pa.RecordBatch], schema: pa.Schema, kind: str = KIND
) -> Blob:
    """Store batches of this schema as one Parquet file, and return its blob, which is durable but not yet in the
    catalogue. The batches are written as `write_file` does.
    """
    folder = blobs.staging_dir()
    try:
        file = folder / "segment.parquet"
        return blobs.publish(file, kind, write_file(file, batches, schema))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_file(file: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
    """Write batches one by one to a Parquet file, in row groups of at most `MAX_ROWS_AT_ONCE` rows; returns its SHA-256."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=MAX_ROWS_AT_ONCE)
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_segments(
    blobs: BlobStore, found: Iterable[Blob], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of segments in order, as `read_files` does. Raises BlobMissing and BlobDamaged."""
    return read_files(map(blobs.fetch, found), columns)


def read_files(files: Iterable[Path], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files in order, in batches of at most `MAX_ROWS_AT_ONCE` rows with exactly these columns.

    A column that a file lacks, because the feature was not recorded at that time, is null (of Arrow's type null).
    Only one file is open at a time.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in files:
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
