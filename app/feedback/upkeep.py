"""Upkeep of the files of decisions and outcomes: compaction, retention and erasure.

Housekeeping calls these functions in rounds. Each step writes a new file, changes the row that names the old one in a
transaction, and then deletes the old file. A process that is killed in between leaves a file that no row names, which
the sweeper deletes, and the next round continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.feedback import outcome_repository as repository
from app.feedback.outcome_repository import OpenErasure, Segment
from app.feedback.outcome_service import find_blobs, find_segments, tables
from app.feedback.outcomes import KIND, schema
from app.feedback.segments import MAX_ROWS_AT_ONCE, read_segments, write_segment
from app.platform import catalogue, failpoints
from app.platform.blobs import Blob, BlobStore
from app.platform.ids import new_id
from app.platform.sql import Json, Reading, Session
from app.platform.tables import OutcomeSegment

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

SMALL_ROWS = 50_000
"""A segment of outcomes with fewer rows is compacted with others."""
MAX_INLINE, MAX_SMALL_FILES = 1_000, 50
"""Numbers of small segments of an owner, in rows of the database and in files, from which they are compacted."""
SEGMENTS_AT_ONCE = 5_000
COMPACTED_ROWS = 1_000_000
"""Maximum number of rows in a compacted segment."""
KEPT_DAYS = 400.0
"""Days for which outcomes are kept if no alias of the owner has feedback settings."""
DAY_SECONDS = 86_400.0
BATCH = 500
ERASURES_AT_ONCE = 1_000
MAX_PASSES = 10
"""Maximum number of passes of a round: new rows of an entity may arrive while it is erased."""
SETTLE_SECONDS = DAY_SECONDS
"""How long after a request to erase an entity its decisions may still arrive from the log of a process."""


@dataclass(frozen=True)
class Files:
    """Transactions, the blob store, and a function that deletes blobs without a row. `stop`: the process is ending."""

    reading: Reading
    writing: Reading
    blobs: BlobStore
    discard: Callable[[Collection[str]], int]
    stop: Callable[[], bool] = lambda: False


def compact(files: Files, owner: str) -> int:
    """Merge the owner's small segments of outcomes, if there are many; returns their number."""
    total = 0
    while not files.stop():
        small, found = files.reading(_small, owner)
        chosen, rows = [], 0
        for segment in small:
            rows += segment.rows
            if rows > COMPACTED_ROWS:
                break
            chosen.append(segment)
        parts = tables(files.blobs, owner, chosen, found)
        if not chosen or not _replace(files, owner, chosen, parts):
            break
        total += len(chosen)
    return total


def _small(session: Session, owner: str) -> tuple[list[Segment], dict[str, Blob]]:
    """Return the segments to compact, and their blobs by key."""
    count = repository.count_small(session, owner, SMALL_ROWS)
    if count.inline < MAX_INLINE and count.files < MAX_SMALL_FILES:
        return [], {}
    segments = repository.small_segments(session, owner, SMALL_ROWS, SEGMENTS_AT_ONCE)
    return segments, find_blobs(session, segments)


def _replace(files: Files, owner: str, old: Sequence[Segment], parts: Iterator[pa.Table]) -> bool:
    """Replace segments by one with the rows of `parts` (without rows, none). Returns False if they have changed."""
    rows = 0
    known: list[float] = []

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows

        for part in parts:
            if part.num_rows:
                rows += part.num_rows
                known.extend(pc.min_max(part["known_at"]).as_py().values())
                yield from part.unify_dictionaries().to_batches(MAX_ROWS_AT_ONCE)

    blob = write_segment(files.blobs, batches(), schema(), KIND)

    def swap(session: Session) -> bool:
        new = None
        if rows:
            new = OutcomeSegment(
                id=new_id("out"),
                owner=owner,
                rows=rows,
                first_known_at=min(known),
                last_known_at=max(known),
                segment_key=blob.key,
                segment_bytes=blob.bytes,
                content=None,
                received_at=old[-1].at,
            )
        if not repository.replace_outcomes(session, owner, old, new):
            return False
        if rows:
            catalogue.add(session, [blob])
        return True

    return _exchange(files, swap, [each.key for each in old if each.key is not None])


def _exchange(files: Files, swap: Callable[[Session], bool], old: Collection[str]) -> bool:
    """Make a row name a written file, in a transaction, and delete the old ones. False: the row has changed."""
    done = name_new_file(files, swap)
    if done:
        files.discard(old)
    return done


def name_new_file(files: Files, swap: Callable[..., bool], *args: object) -> bool:
    """Return `swap(session, *args)`, called in a transaction: it makes a row name a written file."""
    failpoints.reach("rewrite")
    done = files.writing(swap, *args)
    failpoints.reach("rewritten")
    return done


def retain(files: Files, owner: str) -> int:
    """Delete segments whose outcomes are older than any decision that is kept; returns their number.

    Such an outcome belongs to no decision: an event is never before its decision, and never known before it happens.
    """
    days = files.reading(repository.longest_days, owner)
    age = (KEPT_DAYS if days is None else days) * DAY_SECONDS
    total = 0
    while not files.stop():
        count = files.writing(repository.delete_known_before, owner, age, BATCH)
        total += count
        if count < BATCH:
            break
    return total


def erase(files: Files, owner: str) -> int:
    """Erase the entities that the owner's open requests name; returns the number of rows.

    Each request has two passes: one immediately, and one after a day, when no process can still have decisions from
    before the request in its log. Then the id is deleted from the request, if the request's job has ended, too.
    """
    requests = files.reading(repository.open_erasures, owner, SETTLE_SECONDS, ERASURES_AT_ONCE)
    if not requests:
        return 0
    ids = sorted({each.entity_id for each in requests})
    erased: Counter[tuple[str, str]] = Counter()
    is_clean = False
    for _ in range(MAX_PASSES):
        found, is_clean = _erase_once(files, owner, ids)
        erased += found
        if is_clean or files.stop():
            break
    if is_clean:  # a whole pass has found no row
        for each in requests:
            files.writing(repository.end_erasure, owner, each, _erased(each, erased))
    return erased.total()


def _erased(request: OpenErasure, erased: Counter[tuple[str, str]]) -> Json:
    before = request.erased or {}
    return {
        kind: before.get(kind, 0) + erased[kind, request.entity_id]
        for kind in ("decisions", "outcomes")
    }


def _erase_once(
    files: Files, owner: str, ids: Sequence[str]
) -> tuple[Counter[tuple[str, str]], bool]:
    """Delete the rows of these entities; returns their numbers by kind and entity, and True if there was none.

    Outcomes come first: some name only a decision, and the decisions contain the entity.
    """
    segments, found = files.reading(_decisions, owner)
    entity_of: dict[str, str] = {}
    affected: list[Segment] = []
    for segment in segments:
        assert segment.key is not None
        before = len(entity_of)
        for batch in read_segments(files.blobs, [found[segment.key]], ["id", "decision_id"]):
            entities = _entities(batch)
            rows = batch.append_column("entity", entities).filter(_is_in(entities, ids)).to_pylist()
            entity_of |= {row["decision_id"]: row["entity"] for row in rows}
        if len(entity_of) > before:
            affected.append(segment)
    erased: Counter[tuple[str, str]] = Counter()
    of_outcomes, is_clean = _erase_outcomes(files, owner, ids, entity_of)
    erased.update(of_outcomes)
    for segment in affected:
        assert segment.key is not None
        erased.update(_erase_decisions(files, owner, segment, found[segment.key], ids))
    return erased, is_clean and not affected


def _decisions(session: Session, owner: str) -> tuple[list[Segment], dict[str, Blob]]:
    segments = repository.find_decisions(session, owner)
    return segments, find_blobs(session, segments)


def _erase_outcomes(
    files: Files, owner: str, ids: Sequence[str], entity_of: dict[str, str]
) -> tuple[Counter[tuple[str, str]], bool]:

    segments, found = files.reading(find_segments, owner)
    erased: Counter[tuple[str, str]] = Counter()
    wanted, is_clean = set(ids), True
    for segment in segments:
        (table,) = tables(files.blobs, owner, [segment], found)
        doomed = pc.or_(
            _is_in(_entities(table), ids), _is_in(table["decision_id"], list(entity_of))
        )
        if not pc.any(doomed).as_py():
            continue
        is_clean = False
        rows = table.filter(doomed).select(["id", "decision_id"]).to_pylist()
        left = _without_unused(table.filter(pc.invert(doomed)).combine_chunks())
        if _replace(files, owner, [segment], iter([left])):
            erased.update(
                (
                    "outcomes",
                    row["id"]
                    if row["id"] in wanted
                    else entity_of.get(row["decision_id"], row["decision_id"]),
                )
                for row in rows
            )
    return erased, is_clean


def _erase_decisions(
    files: Files, owner: str, segment: Segment, old: Blob, ids: Sequence[str]
) -> Counter[tuple[str, str]]:

    erased: Counter[tuple[str, str]] = Counter()
    kept = 0

    with pq.ParquetFile(files.blobs.fetch(old), pre_buffer=False) as file:

        def rest() -> Iterator[pa.RecordBatch]:
            nonlocal kept
            for batch in file.iter_batches(MAX_ROWS_AT_ONCE):
                entities = _entities(batch)
                doomed = _is_in(entities, ids)
                erased.update(("decisions", id_) for id_ in entities.filter(doomed).to_pylist())
                left = batch.filter(pc.invert(doomed))
                kept += left.num_rows
                yield _without_unused(left)

        new = write_segment(files.blobs, rest(), file.schema_arrow)

    def swap(session: Session) -> bool:
        if not repository.replace_decisions(session, owner, segment, new, kept):
            return False
        catalogue.add(session, [new])
        return True

    return erased if _exchange(files, swap, [old.key]) else Counter()


def _without_unused(rows: Rows) -> Rows:
    """Keep only dictionary values that occur; else a file would keep values of erased rows."""
    columns = [
        pc.dictionary_encode(column.cast(field.type.value_type)).cast(field.type)
        if pa.types.is_dictionary(field.type)
        else column
        for column, field in zip(rows.columns, rows.schema, strict=True)
    ]
    return type(rows).from_arrays(columns, schema=rows.schema)


def _entities(rows: Rows) -> pa.Array | pa.ChunkedArray:
    """Return whom decisions or outcomes are about: the entity or, without its id, the decision."""
    return pc.coalesce(rows["id"], rows["decision_id"])


def _is_in(column: pa.Array | pa.ChunkedArray, texts: Sequence[str]) -> pa.Array:

    return pc.is_in(column, pa.array(texts, pa.string())).fill_null(False)
