"""The decisions of an alias with their outcomes, as of a time: what the cohort table, the monitor and datasets read."""

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
    """A batch of decisions with what is known of each. `mature`: the horizon has passed. `silent`: there is no outcome,
    and by the declared rule this means negative; `labelled.label` is 0 then.
    """

    batch: pa.RecordBatch
    labelled: Labelled
    mature: Mask
    silent: Mask


@dataclass(frozen=True)
class DecisionsOfAlias:
    """The decisions of an alias up to a time: their files at one moment, which never change."""

    segments: Sequence[AliasSegment]
    blobs: Sequence[Blob]
    labels: dict[str, LabelValues]
    until: float

    @property
    def rows(self) -> int:
        """The number of decisions in the files, some of which may be later than `until`."""
        return sum(segment.rows for segment in self.segments)


def find_decisions(
    session: Session, owner: str, name: str, alias: str, *, since: float, until: float
) -> DecisionsOfAlias:
    """Return the decisions of an alias in files that have decisions from `since` to `until`."""
    segments = repository.alias_segments(session, owner, name, alias, since=since, until=until)
    found = catalogue.find_all(session, [each.key for each in segments])
    values = repository.values_of_models(session, owner, name)
    labels = {model_id: LabelValues(*each) for model_id, each in values.items()}
    return DecisionsOfAlias(segments, [found[each.key] for each in segments], labels, until)


def join(
    reading: Reading,
    blobs: BlobStore,
    owner: str,
    decisions: DecisionsOfAlias,
    rule: OutcomeRule,
    columns: Sequence[str] = (),
) -> Iterator[Joined]:
    """Yield the decisions up to `decisions.until` with their outcomes as of that time, as `join_files` does.

    Raises BlobMissing if a file was replaced meanwhile because an entity was erased: then begin again.
    """

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_segments(blobs, decisions.blobs, names)

    outcomes = read_outcomes(reading, blobs, owner)
    return join_files(outcomes, read, decisions.labels, decisions.until, rule, columns)


def join_files(
    outcomes: pa.Table,
    read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]],
    labels: Mapping[str, LabelValues],
    as_of: float,
    rule: OutcomeRule,
    columns: Sequence[str] = (),
) -> Iterator[Joined]:
    """Yield the decisions up to a time with their outcomes as of that time, in the order of the files.

    `read` returns some columns of the decisions. Batches have `JOIN_COLUMNS` and the other `columns`. The outcomes are
    in memory, the decisions are read twice.
    """
    horizon = rule["horizon_days"] * DAY_SECONDS
    joined = Attribution(outcomes, AttributionRule(rule["attribute"], horizon), as_of, labels)
    del outcomes
    joined.first_pass(read(JOIN_COLUMNS))
    wanted = list(dict.fromkeys([*JOIN_COLUMNS, *columns]))
    for whole in read(wanted):
        batch, labelled = whole, joined.label(whole)
        at = batch.column("at").to_numpy()
        made = at <= as_of
        if not made.all():
            batch = whole.take(np.flatnonzero(made))
            labelled, at = Labelled(*(each[made] for each in labelled)), at[made]
        mature = at + horizon <= as_of
        silent = mature & ~labelled.stated & (rule["silence"] == "negative")
        if silent.any():
            label = np.where(silent, np.int8(0), labelled.label)
            labelled = labelled._replace(label=label)
        yield Joined(batch, labelled, mature, silent)
