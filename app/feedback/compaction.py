"""Compaction of decisions: the small segments that a process seals each minute become few large ones.

The decisions of a log are compacted when their day (UTC) is over, or earlier when there are many. The result is final:
it is listed for warehouses, and no other segment replaces it. A decision that a repeated request made again is stored
once. The large segment covers the numbers of the small ones, which are consecutive, so a log file that is sealed again
is still recognised.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from app.feedback import repository
from app.feedback.decision_ids import (
    DecisionKeys,
    DecisionKeySet,
    first_copies,
    join_keys,
    keys_of,
)
from app.feedback.repository import DAY, PendingSegment
from app.feedback.segments import MAX_ROWS_AT_ONCE, read_file, write_segment
from app.feedback.upkeep import Files, name_new_file
from app.platform import catalogue
from app.platform.blobs import Blob, BlobDamaged, BlobMissing
from app.platform.errors import Unavailable
from app.platform.ids import new_id
from app.platform.sql import Session, read_clock
from app.scoring.decisions import REPEAT_SECONDS

log = logging.getLogger(__name__)

COMPACTED_ROWS = 1 << 18
"""Maximum number of rows in a compacted segment. A log with so many does not wait for the end of the day."""
SEGMENTS_AT_ONCE = 5_000
_UNREADABLE = (BlobMissing, BlobDamaged, pa.ArrowException, OSError)


def compact(files: Files, owner: str) -> int:
    """Make segments of past days final, in as few as possible; returns how many became final."""
    count = 0
    for log_id in files.reading(_logs, owner):
        try:
            while not files.stop() and (made := _compact_next(files, owner, log_id)):
                count += made
        except (Unavailable, *_UNREADABLE) as error:
            # A damaged file of one log does not stop the others.
            log.warning("the decisions of the log %s are not compacted: %s", log_id, error)
    if count:  # the dispatcher needs Arrow's memory again only in an hour
        pa.default_memory_pool().release_unused()
    return count


def _today(session: Session) -> float:
    return read_clock(session) // DAY * DAY


def _logs(session: Session, owner: str) -> Sequence[str]:
    return repository.pending_logs(session, owner, _today(session), COMPACTED_ROWS)


def _next_run(
    session: Session, owner: str, log_id: str
) -> tuple[list[PendingSegment], dict[str, Blob]]:
    """Return the next segments that become one, and their blobs by key.

    They are consecutive and begin on one past day, or as many as one segment may have. Losses count for the day on
    which a segment begins.
    """
    run: list[PendingSegment] = []
    rows, is_whole = 0, False
    for segment in repository.pending_segments(session, owner, log_id, SEGMENTS_AT_ONCE):
        if run and segment.first_sequence != run[-1].last_sequence + 1:
            break  # the file with the numbers between them may be sealed later
        if run and (
            rows + segment.rows > COMPACTED_ROWS
            or segment.first_at // DAY != run[0].first_at // DAY
        ):
            is_whole = True
            break
        run.append(segment)
        rows += segment.rows
    if not is_whole:
        today = _today(session)
        run = list(takewhile(lambda segment: min(segment.first_at, segment.sealed_at) < today, run))
    return run, catalogue.entries(session, [segment.key for segment in run])


def _compact_next(files: Files, owner: str, log_id: str) -> int:
    """Make the next segments of a log final; returns their number."""
    run, found = files.reading(_next_run, owner, log_id)
    if not run:
        return 0
    paths = _readable(files, run, found)
    if not paths:
        return files.writing(repository.finish_segment, owner, run[0].id)
    run = run[: len(paths)]
    others = files.reading(_final_near, owner, run)
    kept = _first_ones(files, paths, others)
    if len(run) == 1 and kept.all():
        return files.writing(_finish, owner, run, others.keys())
    blob = write_segment(
        files.blobs, _in_large_batches(_filtered(paths, kept)), pq.read_schema(paths[0])
    )
    newest = run[-1]
    row = {
        "id": new_id("seg"),
        "owner": owner,
        "name": newest.name,
        "alias": newest.alias,
        "log_id": log_id,
        "first_sequence": run[0].first_sequence,
        "last_sequence": newest.last_sequence,
        "origin": newest.origin,
        "first_at": min(segment.first_at for segment in run),
        "last_at": max(segment.last_at for segment in run),
        "rows": int(kept.sum()),
        "lost": sum(segment.lost for segment in run),
        "segment_key": blob.key,
        "segment_bytes": blob.bytes,
        "sealed_at": max(segment.sealed_at for segment in run),
    }
    done = name_new_file(files, _replace, owner, run, others.keys(), row, blob)
    return len(run) if done else 0


def _readable(files: Files, run: Sequence[PendingSegment], found: dict[str, Blob]) -> list[Path]:
    """Return the files of the first readable segments with equal columns. An unreadable one becomes final unchanged."""
    paths: list[Path] = []
    schema = None
    for segment in run:
        try:
            path = files.blobs.fetch(found[segment.key])
            columns = pq.read_schema(path)
        except (KeyError, *_UNREADABLE):
            break
        if schema is not None and not columns.equals(schema):
            break
        schema = columns
        paths.append(path)
    return paths


def _final_near(
    session: Session, owner: str, run: Sequence[PendingSegment]
) -> dict[str, Blob | None]:
    """Return the final segments that may repeat decisions of these."""
    keys = repository.final_keys(
        session,
        owner,
        run[0].name,
        run[0].alias,
        min(segment.first_at for segment in run) - REPEAT_SECONDS,
        max(segment.last_at for segment in run) + REPEAT_SECONDS,
    )
    found = catalogue.entries(session, list(keys))
    return {key: found.get(key) for key in keys}


def _is_first(
    session: Session, owner: str, run: Sequence[PendingSegment], others: Collection[str]
) -> bool:
    """Return False if another dispatcher has made more segments final meanwhile: they may contain repetitions."""
    repository.lock_alias(session, owner, run[0].name, run[0].alias)
    return _final_near(session, owner, run).keys() == set(others)


def _finish(
    session: Session, owner: str, run: Sequence[PendingSegment], others: Collection[str]
) -> bool:
    """Make a segment final without a change."""
    return _is_first(session, owner, run, others) and repository.finish_segment(
        session, owner, run[0].id
    )


def _replace(
    session: Session,
    owner: str,
    run: Sequence[PendingSegment],
    others: Collection[str],
    row: dict[str, Any],
    blob: Blob,
) -> bool:
    """Put one final segment in place of others."""
    return _is_first(session, owner, run, others) and repository.replace_segments(
        session, owner, run, row, blob
    )


def _first_ones(
    files: Files, paths: Sequence[Path], others: Mapping[str, Blob | None]
) -> npt.NDArray[np.bool_]:
    """Return which decisions to keep: a repeated request's are dropped if they are earlier, or in a final segment."""
    keys = join_keys([_keys(path) for path in paths])
    kept = first_copies(keys)
    for blob in others.values():
        with suppress(*_UNREADABLE):
            if blob is not None:
                final = DecisionKeySet()
                final.add(_keys(files.blobs.fetch(blob)))
                kept &= ~final.has(keys)
    return kept


def _keys(path: Path) -> DecisionKeys:
    return join_keys([keys_of(each.column(0)) for each in read_file(path, ["decision_id"])])


def _filtered(paths: Iterable[Path], kept: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    start = 0
    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(MAX_ROWS_AT_ONCE):
                some = kept[start : start + batch.num_rows]
                start += batch.num_rows
                yield batch if some.all() else batch.filter(pa.array(some))


def _in_large_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of `MAX_ROWS_AT_ONCE` rows: each becomes a row group."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        while rows >= MAX_ROWS_AT_ONCE:
            whole = _together(held)
            yield whole.slice(0, MAX_ROWS_AT_ONCE)
            rest = whole.slice(MAX_ROWS_AT_ONCE)
            held, rows = [rest], rest.num_rows
    if rows:
        yield _together(held)


def _together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    (batch,) = table.to_batches()
    return batch
