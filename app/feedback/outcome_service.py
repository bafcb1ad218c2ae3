"""Storing outcomes: each request is one segment, written in the transaction of the request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from app.access import quotas
from app.feedback import outcome_repository as repository
from app.feedback.outcome_repository import Segment
from app.feedback.outcomes import (
    KIND,
    NO,
    STORED,
    YES,
    Outcomes,
    Report,
    as_table,
    read_segment,
    schema,
)
from app.feedback.segments import read_segments, write_segment
from app.platform import catalogue
from app.platform.blobs import Blob, BlobStore
from app.platform.errors import shown
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Reading, Session, db_now
from app.platform.tables import OutcomeSegment

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_VALUES = 10
_SMALL_AT_ONCE = 1_000


def check_labels(
    reading: Reading, owner: str, labels: Sequence[str | None], report: Report
) -> None:
    """Report labels that no model with recorded decisions has: more likely misspelt than a future value."""
    foreign = [
        (row, label)
        for row, label in enumerate(labels)
        if label is not None and label not in YES and label not in NO
    ]
    if not foreign:
        return
    known = reading(repository.label_values, owner)
    few = ", ".join(map(shown, sorted(known)[:_SHOWN_VALUES])) or "there is none"
    for row, label in foreign:
        if label not in known:
            rule = (
                "label must be true, false, 1, 0, null, or a label value of a model whose decisions are recorded "
                f"({few}), got {shown(label)}"
            )
            if not report(row, "label", rule):
                return


def write(blobs: BlobStore, owner: str, outcomes: Outcomes, now: float) -> Blob:
    """No row refers to the file yet."""
    table = as_table(owner, [(outcomes, now)])
    return write_segment(blobs, table.to_batches(), table.schema, KIND)


def store(
    session: Session, settings: Settings, owner: str, outcomes: Outcomes, blob: Blob | None
) -> None:
    """Insert a request's segment; `blob` has the rows, unless they are few. Raises TooMany for the quota."""
    if not len(outcomes):
        return
    if blob is not None:
        quotas.admit_bytes(session, settings, owner, blob.bytes)
        catalogue.add(session, [blob])
    repository.add(
        session,
        OutcomeSegment(
            id=new_id("out"),
            owner=owner,
            rows=len(outcomes),
            first_known_at=min(outcomes.known_at),
            last_known_at=max(outcomes.known_at),
            segment_key=None if blob is None else blob.key,
            segment_bytes=None if blob is None else blob.bytes,
            content=outcomes.as_json() if blob is None else None,
            received_at=db_now(),
        ),
    )


def tables(
    blobs: BlobStore, owner: str, segments: Iterable[Segment], found: Mapping[str, Blob]
) -> Iterator[pa.Table]:
    """Yield the rows of segments in order; `found` has blobs by key. Consecutive small requests become one table."""
    small: list[tuple[Outcomes, float]] = []
    for segment in segments:
        if segment.content is not None:
            small.append((Outcomes.from_json(segment.content), segment.at))
            if len(small) < _SMALL_AT_ONCE:
                continue
        if small:
            yield as_table(owner, small)
            small = []
        if segment.key is not None:
            yield read_segment(blobs.fetch(found[segment.key]))
    if small:
        yield as_table(owner, small)


def read_outcomes(reading: Reading, blobs: BlobStore, owner: str) -> pa.Table:
    """Return outcomes in the order received: some hundred bytes of memory each."""
    import pyarrow as pa

    segments, found = reading(find_segments, owner)
    parts = list(tables(blobs, owner, segments, found))
    if not parts:
        return schema().empty_table()
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def find_segments(session: Session, owner: str) -> tuple[list[Segment], dict[str, Blob]]:
    """Return segments, oldest first, and their blobs by key."""
    segments = repository.outcome_segments(session, owner)
    return segments, find_blobs(session, segments)


def find_blobs(session: Session, segments: Iterable[Segment]) -> dict[str, Blob]:
    keys = [each.key for each in segments if each.key is not None]
    return catalogue.find_all(session, keys)


def decision_keys(blobs: BlobStore, stored: Sequence[Blob]) -> Iterator[pa.RecordBatch]:
    """Yield decision ids and hashes of entities."""
    return read_segments(blobs, stored, ["id_hash", "decision_id"])


def lists(
    blobs: BlobStore, owner: str, segments: Sequence[Segment], found: Mapping[str, Blob]
) -> Iterator[Outcomes]:
    for table in tables(blobs, owner, segments, found):
        yield Outcomes(**{name: table[name].to_pylist() for name in STORED})
