"""The decisions of a period with their outcomes, read from segments into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.feedback.attribution import (
    JOIN_COLUMNS,
    Attribution,
    AttributionRule,
    LabelValues,
    needed_span,
)
from app.feedback.decision_ids import hash_decision_ids
from app.feedback.outcomes import schema as outcome_schema
from app.feedback.periods import Period
from app.feedback.segments import FEATURE, read_file

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Floats

COLUMNS = (
    *JOIN_COLUMNS,
    "alias_revision",
    "score",
    "probability",
    "threshold",
    "flag",
    "explored",
    "propensity",
    "keep",
)
_NO_RULE = AttributionRule("all_before_event", 0.0)
UNKNOWN = -1
"""A missing label or flag."""


class SegmentFile(TypedDict):
    """A segment in a local file, the times of its first and last decision, and the number of lost decisions."""

    path: str
    first_at: float
    last_at: float
    lost: int


@dataclass(frozen=True, eq=False)
class PeriodRows:
    """The decisions of a period, without repeated ones, as arrays of equal length.

    `model` is the position in `models`. `label` and `flag` are 1, 0 or `UNKNOWN`. `propensity` and `probability` are
    NaN where they are not known. `weight` is the weight of the outcome, or 1. `ambiguous` is whether the outcome is
    that of an entity with other decisions within the horizon. `entity` is a hash of the entity's id,
    or, where none was recorded (`identified` is False), of the decision's. `kept` are the positions of these rows among
    all rows of the period in the order of the files.
    """

    models: Sequence[str]
    model: npt.NDArray[np.int32]
    alias_revision: npt.NDArray[np.int32]
    at: Floats
    score: Floats
    probability: Floats
    threshold: Floats
    flag: npt.NDArray[np.int8]
    explored: npt.NDArray[np.bool_]
    propensity: Floats
    keep: Floats
    label: npt.NDArray[np.int8]
    weight: Floats
    corrected: npt.NDArray[np.int32]
    ambiguous: npt.NDArray[np.bool_]
    entity: npt.NDArray[np.uint64]
    identified: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.intp]

    @property
    def size(self) -> int:
        return len(self.score)

    @property
    def entities(self) -> npt.NDArray[np.uint64] | None:
        """None if no id was recorded: decisions are then assumed to be independent."""
        return self.entity if self.identified.any() else None

    def take(self, rows: npt.NDArray[Any]) -> PeriodRows:
        """The rows are positions or a mask."""
        arrays = {name: values for name, values in vars(self).items() if name != "models"}
        return PeriodRows(self.models, **{name: values[rows] for name, values in arrays.items()})


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes to attribute: rows of their segments, the declared rule, and the label values of each model. With
    `silence_is_negative`, a decision without any outcome is negative. `folder` is for temporary files.
    """

    table: pa.Table
    rule: AttributionRule
    labels: Mapping[str, LabelValues]
    silence_is_negative: bool
    folder: Path


def overlapping(files: Sequence[SegmentFile], start: float, end: float) -> list[SegmentFile]:
    """Return files that may have decisions from `start` to before `end`."""
    return [each for each in files if each["first_at"] < end and each["last_at"] >= start]


def read_files(files: Sequence[SegmentFile], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield batches in order, with exactly these columns; a column that a file lacks is null."""
    for each in files:
        yield from read_file(Path(each["path"]), columns)


def recorded_features(files: Sequence[SegmentFile], model_id: str) -> set[str]:
    """Return the features that every file with decisions of a model has."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found: set[str] | None = None
    for each in files:
        models = pq.read_table(each["path"], columns=["model_id"]).column(0)
        if model_id not in pc.unique(models.cast("string")).to_pylist():
            continue
        names = {
            name.removeprefix(FEATURE)
            for name in pq.read_schema(each["path"]).names
            if name.startswith(FEATURE)
        }
        found = names if found is None else found & names
    return found or set()


def within(batch: pa.RecordBatch, period: Period) -> npt.NDArray[np.bool_]:
    at = batch.column("at").to_numpy()
    inside: npt.NDArray[np.bool_] = (at >= period.start) & (at < period.end)
    return inside


def read_period(
    files: Sequence[SegmentFile], period: Period, outcomes: Outcomes | None, as_of: float
) -> PeriodRows:
    """Return decisions with their outcomes as of `as_of`; without `outcomes`, all are unknown.

    Other decisions to which an outcome may belong are also read.
    """
    own = near = overlapping(files, period.start, period.end)
    if outcomes is None:
        nothing = outcome_schema().empty_table()
        join = Attribution(nothing, _NO_RULE, as_of, {}, Path(gettempdir()))
    else:
        near = overlapping(files, *needed_span(outcomes.rule, period.start, period.end))
        join = Attribution(outcomes.table, outcomes.rule, as_of, outcomes.labels, outcomes.folder)
    join.first_pass(lambda columns: read_files(near, columns))
    parts: list[dict[str, Any]] = []
    models: dict[str, int] = {}
    passed = 0
    for batch in _read_own(own, near, join):
        labelled = join.label(batch)
        inside = within(batch, period)
        numbers = passed + np.cumsum(inside) - 1
        passed += int(inside.sum())
        wanted = inside & labelled.counts
        if not wanted.any():
            continue
        label = labelled.label
        if outcomes is not None and outcomes.silence_is_negative:
            label = np.where(labelled.stated, label, 0).astype(np.int8)
        part = _arrays(batch, models) | {
            "label": label,
            "weight": np.where(np.isnan(labelled.weight), 1.0, labelled.weight),
            "corrected": labelled.corrections,
            "ambiguous": labelled.ambiguous,
            "kept": numbers,
        }
        parts.append({name: values[wanted] for name, values in part.items()})
    if not parts:
        return _nothing()
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return PeriodRows(list(models), **arrays)


def _read_own(
    own: Sequence[SegmentFile], near: Sequence[SegmentFile], join: Attribution
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the period's own files, which are some of `near`; the join passes over the others."""
    import pyarrow.parquet as pq

    paths = {each["path"] for each in own}
    for each in near:
        if each["path"] in paths:
            yield from read_files([each], COLUMNS)
        else:
            join.skip(pq.read_metadata(each["path"]).num_rows)


def _nothing() -> PeriodRows:
    none = np.empty(0)
    words: dict[str, Any] = {
        name: none.astype(kind)
        for name, kind in {
            "model": np.int32,
            "alias_revision": np.int32,
            "flag": np.int8,
            "explored": np.bool_,
            "label": np.int8,
            "corrected": np.int32,
            "ambiguous": np.bool_,
            "entity": np.uint64,
            "identified": np.bool_,
            "kept": np.intp,
        }.items()
    }
    numbers = ("at", "score", "probability", "threshold", "propensity", "keep", "weight")
    arrays: dict[str, Any] = words | dict.fromkeys(numbers, none)
    return PeriodRows([], **arrays)


def _arrays(batch: pa.RecordBatch, models: dict[str, int]) -> dict[str, Any]:
    """New models are added to `models`."""
    import pyarrow as pa

    named = batch.column("model_id")
    coded = named if pa.types.is_dictionary(named.type) else named.dictionary_encode()
    places = [models.setdefault(each, len(models)) for each in coded.dictionary.to_pylist()]
    found = {
        "model": np.array(places, np.int32)[coded.indices.to_numpy()],
        "alias_revision": batch.column("alias_revision").to_numpy(),
        "explored": batch.column("explored").to_numpy(zero_copy_only=False),
    }
    for name in ("at", "score", "probability", "threshold", "propensity", "keep"):
        found[name] = floats(batch.column(name))
    flag, hashes = batch.column("flag"), batch.column("id_hash")
    has_flag = flag.is_valid().to_numpy(zero_copy_only=False)
    flags = np.full(batch.num_rows, UNKNOWN, np.int8)
    if has_flag.any():
        flags[has_flag] = flag.drop_null().to_numpy(zero_copy_only=False)
    found["flag"] = flags
    # A decision without an id counts as a separate entity.
    own = hash_decision_ids(batch.column("decision_id"))
    has_id = hashes.is_valid().to_numpy(zero_copy_only=False)
    if has_id.any():
        own = own.copy()
        own[has_id] = hashes.drop_null().to_numpy()
    found["entity"], found["identified"] = own, has_id
    return found


def floats(column: pa.Array) -> Floats:
    """Convert numbers, booleans or times (to seconds); null is NaN."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_timestamp(column.type):
        seconds = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).cast(pa.float64())
        return floats(seconds) / 1e6
    plain = column if pa.types.is_floating(column.type) else column.cast(pa.float64())
    found: Floats = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found
