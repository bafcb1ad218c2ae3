"""The decisions of an alias with their outcomes, as of a time. The cohort table, the monitor and datasets read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from app.feedback import outcome_repository as repository
from app.feedback.attribution import (
    JOIN_COLUMNS,
    Attribution,
    AttributionRule,
    Labelled,
    LabelValues,
    earliest_needed,
    hash_decision_ids,
)
from app.feedback.outcome_repository import AliasSegment
from app.feedback.outcome_service import read_outcomes
from app.feedback.segments import read_segments
from app.platform import catalogue
from app.platform.blobs import Blob, BlobStore
from app.platform.documents import OutcomeRule
from app.platform.sql import Reading, Session

if TYPE_CHECKING:
    import pyarrow as pa

Mask = npt.NDArray[np.bool_]
DAY_SECONDS = 86_400.0


class Joined(NamedTuple):
    """A batch of decisions with their known outcomes. `mature`: the horizon has passed. `silent`: there is no outcome,
    which means negative by the declared rule; then `labelled.label` is 0.
    """

    batch: pa.RecordBatch
    labelled: Labelled
    mature: Mask
    silent: Mask


@dataclass(frozen=True)
class DecisionsOfAlias:
    """The decisions of an alias between two times: their files, as of one moment. The files never change."""

    segments: Sequence[AliasSegment]
    blobs: Sequence[Blob]
    labels: dict[str, LabelValues]
    since: float
    until: float

    @property
    def rows(self) -> int:
        """The number of decisions in the files, some of which may be earlier or later."""
        return sum(segment.rows for segment in self.segments)


def find_decisions(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    rule: OutcomeRule,
    *,
    since: float,
    until: float,
) -> DecisionsOfAlias:
    """Return the decisions of an alias from `since` to `until`, with all files that are needed to attribute outcomes by
    the rule. (All earlier decisions are needed to know whether a decision is the first of its entity.)
    """
    first = earliest_needed(rule["attribute"], since)
    segments = repository.alias_segments(session, owner, name, alias, since=first, until=until)
    found = catalogue.find_all(session, [each.key for each in segments])
    values = repository.values_of_models(session, owner, name)
    labels = {model_id: LabelValues(*each) for model_id, each in values.items()}
    return DecisionsOfAlias(segments, [found[each.key] for each in segments], labels, since, until)


def join(
    reading: Reading,
    blobs: BlobStore,
    owner: str,
    decisions: DecisionsOfAlias,
    rule: OutcomeRule,
    columns: Sequence[str] = (),
) -> Iterator[Joined]:
    """Yield the decisions from `decisions.since` to `decisions.until` with their outcomes as of `decisions.until`, as
    `join_files` does.

    Raises BlobMissing if a file was replaced in the meantime because an entity was erased. Then start again.
    """

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_segments(blobs, decisions.blobs, names)

    outcomes = read_outcomes(reading, blobs, owner)
    return join_files(
        outcomes, read, decisions.labels, decisions.since, decisions.until, rule, columns
    )


def join_files(
    outcomes: pa.Table,
    read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]],
    labels: Mapping[str, LabelValues],
    since: float,
    as_of: float,
    rule: OutcomeRule,
    columns: Sequence[str] = (),
) -> Iterator[Joined]:
    """Yield the decisions from `since` to `as_of` with their outcomes as of `as_of`, in the order of the files. A
    decision that is recorded twice, because its request was repeated, is yielded once.

    `read` returns some columns of the decisions. Batches have `JOIN_COLUMNS` and the other `columns`. The outcomes are
    in memory, the decisions are read twice.
    """
    horizon = rule["horizon_days"] * DAY_SECONDS
    joined = Attribution(outcomes, AttributionRule(rule["attribute"], horizon), as_of, labels)
    del outcomes
    hashes: list[npt.NDArray[np.uint64]] = []

    def keys() -> Iterator[pa.RecordBatch]:
        for batch in read(JOIN_COLUMNS):
            hashes.append(hash_decision_ids(batch.column("decision_id")))
            yield batch

    reading_keys = keys()
    joined.first_pass(reading_keys)
    for _ in reading_keys:  # the first pass may not have needed them
        pass
    is_first = _first_of_each(hashes)
    position = 0
    wanted = list(dict.fromkeys([*JOIN_COLUMNS, *columns]))
    for whole in read(wanted):
        batch, labelled = whole, joined.label(whole)
        at = batch.column("at").to_numpy()
        made = (at >= since) & (at <= as_of)
        made &= is_first[position : position + whole.num_rows]
        position += whole.num_rows
        if not made.all():
            batch = whole.take(np.flatnonzero(made))
            labelled, at = Labelled(*(each[made] for each in labelled)), at[made]
        mature = at + horizon <= as_of
        silent = mature & ~labelled.stated & (rule["silence"] == "negative")
        if silent.any():
            label = np.where(silent, np.int8(0), labelled.label)
            labelled = labelled._replace(label=label)
        yield Joined(batch, labelled, mature, silent)


def _first_of_each(hashes: Sequence[npt.NDArray[np.uint64]]) -> Mask:
    """Return the mask of the rows whose hash has not occurred before."""
    count = sum(map(len, hashes))
    mask = np.zeros(count, bool)
    if count:
        mask[np.unique(np.concatenate(hashes), return_index=True)[1]] = True
    return mask
