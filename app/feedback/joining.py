"""The decisions of an alias with their outcomes, as of a time. The cohort table, the monitor and datasets read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    Read,
    needed_span,
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
    """Decisions with known outcomes. `mature`: the horizon has passed. `silent`: no outcome, negative by the declared
    rule, so that `labelled.label` is 0.
    """

    batch: pa.RecordBatch
    labelled: Labelled
    mature: Mask
    silent: Mask


@dataclass(frozen=True)
class DecisionsOfAlias:
    """The files of an alias's decisions between two times, as of one moment. The files never change."""

    segments: Sequence[AliasSegment]
    blobs: Sequence[Blob]
    labels: dict[str, LabelValues]
    since: float
    until: float

    @property
    def rows(self) -> int:
        """The decisions in the files, some of which may be earlier or later."""
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
    """Include all files that the rule needs to attribute outcomes."""
    first, _ = needed_span(AttributionRule.declared(rule), since, until)
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
    """Yield the decisions with their outcomes as of `decisions.until`, as `join_files` does.

    Raises BlobMissing if a file was replaced in the meantime because an entity was erased. Then start again.
    """

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_segments(blobs, decisions.blobs, names)

    outcomes = read_outcomes(reading, blobs, owner)
    return join_files(
        outcomes,
        read,
        decisions.labels,
        decisions.since,
        decisions.until,
        rule,
        blobs.staging,
        columns,
    )


def join_files(
    outcomes: pa.Table,
    read: Read,
    labels: Mapping[str, LabelValues],
    since: float,
    as_of: float,
    rule: OutcomeRule,
    folder: Path,
    columns: Sequence[str] = (),
) -> Iterator[Joined]:
    """Yield the decisions from `since` to `as_of` with their outcomes, in the order of the files, without repetitions.

    Batches have `JOIN_COLUMNS` and the other `columns`. `folder` is for temporary files.
    """
    attribution = AttributionRule.declared(rule)
    joined = Attribution(outcomes, attribution, as_of, labels, folder)
    del outcomes
    joined.first_pass(read)
    wanted = list(dict.fromkeys([*JOIN_COLUMNS, *columns]))
    for whole in read(wanted):
        batch, labelled = whole, joined.label(whole)
        at = batch.column("at").to_numpy()
        made = (at >= since) & (at <= as_of)
        made &= labelled.counts
        if not made.all():
            batch = whole.take(np.flatnonzero(made))
            labelled, at = Labelled(*(each[made] for each in labelled)), at[made]
        mature = at + attribution.horizon <= as_of
        silent = mature & ~labelled.stated & (rule["silence"] == "negative")
        if silent.any():
            label = np.where(silent, np.int8(0), labelled.label)
            labelled = labelled._replace(label=label)
        yield Joined(batch, labelled, mature, silent)
