"""The index of an owner's decisions and outcomes in a process, for counts in responses: new outcomes, and known ids.

The index contains hashes, is updated when a request arrives, and is bounded in size. The counts inform the sender only;
attribution (`app.feedback.attribution`) does not use them.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from app.feedback import outcome_repository as repository
from app.feedback.decision_ids import Hashes, hash_decision_ids
from app.feedback.outcome_repository import Segment
from app.feedback.outcomes import Outcomes
from app.feedback.segments import hash_ids
from app.platform import catalogue
from app.platform.blobs import Blob
from app.platform.sql import Reading, Session

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DECISIONS = 5_000_000
"""Maximum number of indexed decisions of an owner, of 16 bytes each."""
MAX_OUTCOMES = 1_000_000
"""Maximum number of indexed outcomes of an owner."""
MAX_BYTES = 1_500_000_000
"""Approximate maximum size in memory of all indexes of a process, in bytes: enough for four owners with the maximum
number of rows. The least recently used indexes are dropped.
"""
STATED_BYTES, INDEX_BYTES = 300, 2_000
"""Approximate sizes in memory of an indexed outcome, and of an empty index."""
FRESH_SECONDS = 2.0
"""How long an index is used before new segments are read."""
REBUILT_SECONDS = 3600.0
"""Age at which an index is rebuilt, without the rows that have been deleted since."""
OVERLAP_SECONDS = 10.0
"""How far back new segments are looked for: a transaction may commit later than one that began after it."""


class Counts(NamedTuple):
    """Numbers of outcomes in a request. None: there are too many decisions or outcomes to look up."""

    matched: int | None
    unmatched: int | None
    corrected: int | None
    duplicates: int | None
    replayed: int | None


class Stated(NamedTuple):
    """The newest statement about a decision or an event: when it became known, and a hash of its content."""

    known_at: float
    said: bytes


class Reader(NamedTuple):
    """How an index reads: a transaction, and the rows of segments."""

    reading: Reading
    decisions: Callable[[Sequence[Blob]], Iterator[pa.RecordBatch]]
    outcomes: Callable[[Sequence[Segment], Mapping[str, Blob]], Iterator[Outcomes]]


@dataclass
class _Index:
    """The decisions and outcomes of one owner. None: too many."""

    built: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    looked: float = -math.inf
    erased: int = 0
    decisions_since: float = 0.0
    outcomes_since: float = 0.0
    segments: dict[str, float] = field(default_factory=dict)
    ids: Hashes | None = field(default_factory=lambda: np.empty(0, np.uint64))
    decision_ids: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    stated: dict[bytes, Stated] | None = field(default_factory=dict)
    replaced: set[bytes] = field(default_factory=set)

    @property
    def bytes(self) -> int:
        hashes = self.decision_ids.nbytes + (0 if self.ids is None else self.ids.nbytes)
        return INDEX_BYTES + hashes + STATED_BYTES * self.n_stated

    @property
    def n_stated(self) -> int:
        return len(self.stated or ()) + len(self.replaced)

    def clear(self) -> None:
        empty = _Index(self.built)
        self.decisions_since, self.outcomes_since = empty.decisions_since, empty.outcomes_since
        self.segments, self.stated = empty.segments, empty.stated
        self.replaced = empty.replaced
        self.ids, self.decision_ids = empty.ids, empty.decision_ids

    def add_decisions(self, batches: Iterator[pa.RecordBatch]) -> None:
        assert self.ids is not None
        ids, decision_ids = [self.ids], [self.decision_ids]
        for batch in batches:
            ids.append(batch.column("id_hash").drop_null().to_numpy())
            decision_ids.append(hash_decision_ids(batch.column("decision_id")))
        self.ids = np.unique(np.concatenate(ids))
        self.decision_ids = np.unique(np.concatenate(decision_ids))

    def add_outcomes(self, outcomes: Outcomes) -> None:
        if self.stated is not None:
            found = self.compare(outcomes)
            self.stated |= found.newest
            self.replaced |= found.replaced
            if self.n_stated > MAX_OUTCOMES:
                self.stated, self.replaced = None, set()

    def compare(self, outcomes: Outcomes) -> _Compared:
        return _compare(outcomes, self.stated or {}, self.replaced)

    def matched(self, owner: str, outcomes: Outcomes) -> int | None:
        """Return the outcomes whose decision or entity has been recorded; None if unknown."""
        if self.ids is None:
            return None
        import pyarrow as pa

        by_decision = [each for each in outcomes.decision_id if each is not None]
        pairs = zip(outcomes.id, outcomes.decision_id, strict=True)
        by_id = [id_ for id_, decision_id in pairs if decision_id is None and id_ is not None]
        hashes = hash_decision_ids(pa.array(by_decision, pa.string()))
        found = np.isin(hash_ids(owner, by_id), self.ids).sum()
        return int(found + np.isin(hashes, self.decision_ids).sum())


class _Compared(NamedTuple):
    """Positions of outcomes to store, numbers of corrections and of replays, newest statements of changed keys, and
    the statements that they replace.
    """

    kept: list[int]
    corrected: int
    replayed: int
    newest: dict[bytes, Stated]
    replaced: set[bytes]


def _compare(
    outcomes: Outcomes, stated: Mapping[bytes, Stated], replaced: Container[bytes]
) -> _Compared:
    kept: list[int] = []
    corrected = replayed = 0
    newest: dict[bytes, Stated] = {}
    old: set[bytes] = set()
    for i, row in enumerate(outcomes.rows()):
        decision_id, id_, label, event_at, known_at, source, weight, amount, has_known_at = row
        key = _hash("decision", decision_id) if decision_id else _hash("id", id_, event_at)
        said = _hash(label, event_at, source, weight, amount)
        before = newest.get(key) or stated.get(key)
        is_newest = before is None or before.known_at <= known_at
        if before is not None:
            if is_newest and before.said == said:
                continue
            if not has_known_at and (key + said in replaced or key + said in old):
                replayed += 1
                continue
            corrected += is_newest
            old.add(key + (before.said if is_newest else said))
        kept.append(i)
        if is_newest:
            newest[key] = Stated(known_at, said)
    return _Compared(kept, corrected, replayed, newest, old)


def _hash(*values: object) -> bytes:
    return hashlib.blake2b(orjson.dumps(values), digest_size=8).digest()


class KnownRows:
    """The indexes of a process. Its methods may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indexes: OrderedDict[str, _Index] = OrderedDict()
        self._stores: Counter[str] = Counter()

    def compare(self, owner: str, outcomes: Outcomes, reader: Reader) -> tuple[Counts, list[int]]:
        """Return the counts of a request, and the positions of its outcomes to store.

        An outcome is a duplicate if its content equals the newest known outcome of the same decision or event. Without
        `known_at`, it is a replay if its content equals an earlier one. It is a correction if it is newer and differs.
        """
        index = self._index_of(owner)
        with index.lock:
            begun = time.monotonic()
            if begun - index.looked > FRESH_SECONDS:
                _refresh(owner, index, reader)
            found = index.compare(outcomes)
            if len(found.kept) < len(outcomes) and index.looked < begun:
                # A duplicate is not stored, so a correction that another process has just stored must be seen.
                _refresh(owner, index, reader)
                found = index.compare(outcomes)
            matched = index.matched(owner, outcomes)
            if matched is not None and matched < len(outcomes) and index.looked < begun:
                # The decisions of the others may be newer than the index.
                _refresh(owner, index, reader)
                matched = index.matched(owner, outcomes)
            is_known = index.stated is not None
        if index.looked >= begun:
            self._drop_oldest()
        counts = Counts(
            matched,
            None if matched is None else len(outcomes) - matched,
            found.corrected if is_known else None,
            len(outcomes) - len(found.kept) - found.replayed if is_known else None,
            found.replayed if is_known else None,
        )
        return counts, found.kept

    def add(self, owner: str, outcomes: Outcomes) -> None:
        """Add outcomes that this process has stored."""
        with self._lock:
            index = self._indexes.get(owner)
        if index is not None:
            with index.lock:
                index.add_outcomes(outcomes)

    def stores(self, owner: str) -> int:
        """Count a stored request; returns the number of the owner's in this process."""
        with self._lock:
            self._stores[owner] += 1
            return self._stores[owner]

    def _index_of(self, owner: str) -> _Index:
        """Return an index, perhaps empty. Each owner's has a lock of its own, so that no owner waits for another."""
        now = time.monotonic()
        with self._lock:
            index = self._indexes.pop(owner, None)
            if index is None or now - index.built > REBUILT_SECONDS:
                index = _Index(now)
            self._indexes[owner] = index
        return index

    def _drop_oldest(self) -> None:
        with self._lock:
            size = sum(each.bytes for each in self._indexes.values())
            while size > MAX_BYTES and len(self._indexes) > 1:
                size -= self._indexes.popitem(last=False)[1].bytes


def _refresh(owner: str, index: _Index, reader: Reader) -> None:
    """Add the new segments. After an erasure the index is rebuilt."""
    index.looked = time.monotonic()
    erased = reader.reading(repository.count_erased, owner)
    if erased != index.erased:
        index.clear()
        index.erased = erased
    decisions, outcomes, blobs = reader.reading(_find_new, owner, index)
    if index.ids is not None:
        if len(index.ids) + sum(each.rows for each in decisions) > MAX_DECISIONS:
            index.ids, index.decision_ids = None, np.empty(0, np.uint64)
        elif decisions:
            stored = [blobs[each.key] for each in decisions if each.key is not None]
            index.add_decisions(reader.decisions(stored))
    if index.stated is not None:
        if sum(each.rows for each in outcomes) > 2 * MAX_OUTCOMES:
            index.stated = None
        else:
            for batch in reader.outcomes(outcomes, blobs):
                index.add_outcomes(batch)
    index.decisions_since = max([index.decisions_since, *(each.at for each in decisions)])
    index.outcomes_since = max([index.outcomes_since, *(each.at for each in outcomes)])
    earliest = min(index.decisions_since, index.outcomes_since) - OVERLAP_SECONDS
    index.segments = {id_: at for id_, at in index.segments.items() if at >= earliest}
    index.segments |= {each.id: each.at for each in (*decisions, *outcomes)}


def _find_new(
    session: Session, owner: str, index: _Index
) -> tuple[list[Segment], list[Segment], dict[str, Blob]]:
    """Return segments of decisions and of outcomes that the index lacks, and blobs by key."""
    since = index.decisions_since - OVERLAP_SECONDS, index.outcomes_since - OVERLAP_SECONDS
    decisions = repository.decision_segments(session, owner, since[0])
    decisions = [each for each in decisions if each.id not in index.segments]
    outcomes = repository.new_outcome_segments(session, owner, since[1], index.segments)
    keys = [each.key for each in (*decisions, *outcomes) if each.key is not None]
    return decisions, outcomes, catalogue.find_all(session, keys)
