"""Segments of decisions: columns, writing, and reading within bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.feedback import segments
from app.feedback.segments import SegmentFeature, hash_id, hash_ids, schema_of
from app.platform.blobs import FolderStore

FEATURES = [
    SegmentFeature("age", "numeric"),
    SegmentFeature("age.at", "datetime"),
    SegmentFeature("town", "categorical"),
    SegmentFeature("member", "boolean"),
]


def rows(n: int, start: int = 0, features: list[SegmentFeature] = FEATURES) -> pa.RecordBatch:
    """Return `n` decisions with distinct scores, in the schema of a segment."""
    schema = schema_of(features)
    values = {
        "decision_id": [f"dec_{i:032x}" for i in range(start, start + n)],
        "id": [None if i % 3 == 0 else f"c{i}" for i in range(n)],
        "at": np.arange(n, dtype=float),
        "revision": [1] * n,
        "alias_revision": [2] * n,
        "model_id": ["mdl_1"] * n,
        "score": np.arange(start, start + n, dtype=float),
        "explored": [False] * n,
        "propensity": [1.0] * n,
        "keep": [1.0] * n,
        "origin": ["score"] * n,
    }
    arrays = []
    for field in schema:
        given = values.get(field.name)
        arrays.append(pa.nulls(n, field.type) if given is None else pa.array(given, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def test_the_rows_of_several_segments_are_read_in_order_and_in_small_batches(
    tmp_path: Path,
) -> None:
    blobs = FolderStore(tmp_path)
    schema = schema_of(FEATURES)
    first = segments.write_segment(blobs, [rows(100_000), rows(5, 100_000)], schema)
    second = segments.write_segment(blobs, [rows(3, 100_005)], schema)
    batches = list(segments.read_segments(blobs, [first, second], ["score", "id"]))
    assert max(batch.num_rows for batch in batches) <= segments.MAX_ROWS_AT_ONCE
    assert [batch.schema.names for batch in batches] == [["score", "id"]] * len(batches)
    (batch,) = segments.read_segments(blobs, [second], schema.names)
    assert batch.schema.types == schema.types
    scores = np.concatenate([batch.column("score").to_numpy() for batch in batches])
    np.testing.assert_array_equal(scores, np.arange(100_008))
    groups = pq.ParquetFile(blobs.fetch(first)).metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert max(sizes) <= segments.MAX_ROWS_AT_ONCE
    assert sum(sizes) == 100_005


def test_a_feature_that_was_not_recorded_is_null_and_no_prefix_of_another(tmp_path: Path) -> None:
    blobs = FolderStore(tmp_path)
    few = [SegmentFeature("age.at", "datetime")]
    blob = segments.write_segment(blobs, [rows(2, features=few)], schema_of(few))
    (batch,) = segments.read_segments(blobs, [blob], ["feature.age", "decision_id"])
    assert batch.schema.names == ["feature.age", "decision_id"]
    assert batch.column("feature.age").null_count == 2
    assert batch.column("decision_id").null_count == 0


def test_nothing_of_a_failed_write_remains(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(2)
        raise OSError

    blobs = FolderStore(tmp_path)
    with pytest.raises(OSError):  # noqa: PT011  # the one above
        segments.write_segment(blobs, batches(), schema_of(FEATURES))
    assert list(blobs.list()) == []
    assert blobs.clear_staging(-1) == 0


def test_the_hash_of_an_id_is_keyed_by_the_owner() -> None:
    assert hash_id("alice", "c1") != hash_id("bob", "c1")
    assert hash_id("alice", "c1") != hash_id("alice", "c2")
    hashed = hash_ids("alice", ["c1", "", "Zürich"])
    assert hashed.dtype == np.uint64
    assert hashed.tolist() == [hash_id("alice", id_) for id_ in ("c1", "", "Zürich")]
    assert len(hash_ids("alice", [])) == 0
