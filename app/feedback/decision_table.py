"""The table of a dataset from decisions: which decisions are its rows, and their labels and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import TypedDict

from app.datasets.sources import SourceTable
from app.feedback.attribution import LabelValues
from app.feedback.joining import Joined, join_files
from app.feedback.outcomes import Outcomes, as_table, read_segment, schema
from app.feedback.segments import FEATURE, read_file, write_file
from app.ingest.errors import BadTable, show
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME
from app.jobs.progress import Callback
from app.platform.documents import OutcomeRule

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("explored", "propensity", "keep", "origin")
"""Columns that are read in addition to the columns of the join and the features."""
FILE = "decisions.parquet"
ENTITY, AT, WEIGHT = "entity", "decision_at", "decision_weight"
"""Columns of the table other than features and label."""

POSITIVE, NEGATIVE = "1", "0"
"""Values of the label if the model has none."""
LABEL = "label"


class InlineOutcomes(TypedDict):
    """The content of a small request of outcomes, in a file, and when it was received."""

    path: str
    at: float


class Prepared(TypedDict):
    """What is read, and how."""

    owner: str
    since: float | None
    until: float | None
    as_of: float
    rule: OutcomeRule
    decisions: list[str]
    outcomes: list[str]
    inline: list[InlineOutcomes]
    sha256: str
    labels: dict[str, list[str | None]]
    features: list[list[str]]
    label: str
    positive: str
    negative: str


class TableWriter:
    """Joins decisions with their outcomes, and writes the rows of the table."""

    def __init__(self, prepared: Prepared, workdir: Path, callback: Callback) -> None:
        self._prepared = prepared
        self._workdir = workdir
        self._callback = callback
        self._types: dict[str, str] = {each[0]: each[1] for each in prepared["features"]}
        taken = {*self._types}
        self._label = _free(prepared["label"], taken)
        self._entity, self._at, self._weight = (
            _free(name, taken | {self._label}) for name in (ENTITY, AT, WEIGHT)
        )
        self._rows: Counter[tuple[str, str]] = Counter()
        self._excluded = dict.fromkeys(
            ("pending", "missing", "withdrawn", "unrecognised", "not_explored"), 0
        )
        self._weights = [np.inf, -np.inf]

    def write(self) -> SourceTable:
        sha256 = write_file(self._workdir / FILE, self._batches(), self._schema())
        if not self._rows:
            left = ", ".join(f"{n} {name}" for name, n in self._excluded.items() if n)
            raise BadTable(
                "no decision of these dates is mature and has a known label: "
                + (f"of the decisions, {left}" if left else "there are no decisions"),
                code="no_mature_decisions",
            )
        is_weighted = self._weights[0] < self._weights[1]
        prepared = self._prepared
        return {
            "file": FILE,
            "sha256": sha256,
            "label": self._label,
            "positive": prepared["positive"],
            "weight": self._weight if is_weighted else None,
            "group": self._entity,
            "drop": [] if is_weighted else [self._weight],
            "found": {
                "time_column": self._at,
                "files": len(prepared["decisions"]),
                "sha256": prepared["sha256"],
                "rows": [
                    {
                        "origin": origin,
                        "positives": self._rows[origin, POSITIVE],
                        "negatives": self._rows[origin, NEGATIVE],
                    }
                    for origin in sorted({origin for origin, _ in self._rows})
                ],
                "excluded": self._excluded,
            },
        }

    def _schema(self) -> pa.Schema:
        types = {
            CATEGORICAL: pa.string(),
            BOOLEAN: pa.bool_(),
            DATETIME: pa.timestamp("us", tz="UTC"),
        }
        fields = [(name, types.get(kind, pa.float64())) for name, kind in self._types.items()]
        fields += [
            (self._entity, pa.string()),
            (self._at, pa.timestamp("us", tz="UTC")),
            (self._weight, pa.float64()),
            (self._label, pa.string()),
        ]
        return pa.schema(fields)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        prepared = self._prepared
        files = [Path(path) for path in prepared["decisions"]]
        labels = {id_: LabelValues(*values) for id_, values in prepared["labels"].items()}

        def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
            for path in files:
                yield from read_file(path, names)

        columns = [*COLUMNS, *(FEATURE + name for name in self._types)]
        done = 0
        for joined in join_files(
            _outcomes(prepared),
            read,
            labels,
            prepared["since"] or 0.0,
            prepared["as_of"],
            prepared["rule"],
            self._workdir,
            columns,
        ):
            made = self._rows_of(joined)
            if made is not None:
                yield made
            done += joined.batch.num_rows
            self._callback(0, 1, {"rows": done})

    def _rows_of(self, joined: Joined) -> pa.RecordBatch | None:
        prepared, batch, labelled = self._prepared, joined.batch, joined.labelled
        at = batch.column("at").to_numpy()
        inside = np.ones(len(at), np.bool_)
        if prepared["until"] is not None:
            inside &= at < prepared["until"]
        propensity = _floats(batch.column("propensity"))
        explored = batch.column("explored").to_numpy(zero_copy_only=False).astype(np.bool_)
        # Nobody has looked for the outcome of a row on the side that is explored, unless it was drawn.
        is_seen = explored | np.isnan(propensity) | (propensity >= 1.0)
        known = labelled.label >= 0
        for name, rows in (
            ("pending", ~joined.mature),
            ("not_explored", joined.mature & ~is_seen),
            ("unrecognised", joined.mature & is_seen & labelled.unrecognised),
            (
                "withdrawn",
                joined.mature & is_seen & ~known & labelled.stated & ~labelled.unrecognised,
            ),
            ("missing", joined.mature & is_seen & ~known & ~labelled.stated),
        ):
            self._excluded[name] += int((rows & inside).sum())
        chosen = np.flatnonzero(inside & joined.mature & is_seen & known)
        if not len(chosen):
            return None
        positive = labelled.label[chosen] == 1
        weight = np.where(np.isnan(labelled.weight), 1.0, labelled.weight)[chosen]
        weight /= np.where(np.isnan(propensity), 1.0, propensity)[chosen]
        weight /= _floats(batch.column("keep"))[chosen]
        self._weights = [
            min(self._weights[0], float(weight.min())),
            max(self._weights[1], float(weight.max())),
        ]
        some = batch.take(pa.array(chosen))
        origins = some.column("origin").cast(pa.string()).to_pylist()
        self._rows.update(
            zip(origins, (POSITIVE if each else NEGATIVE for each in positive), strict=True)
        )
        entities = [
            decision_id if id_ is None else id_
            for id_, decision_id in zip(
                some.column("id").to_pylist(), some.column("decision_id").to_pylist(), strict=True
            )
        ]
        times = np.round(at[chosen] * 1e6).astype(np.int64)
        words = np.where(positive, prepared["positive"], prepared["negative"])
        columns: list[Any] = [_feature(some, name, kind) for name, kind in self._types.items()]
        columns += [
            pa.array(entities, pa.string()),
            pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            pa.array(weight),
            pa.array(words.tolist(), pa.string()),
        ]
        wanted = self._schema()
        return pa.RecordBatch.from_arrays(
            [
                _as_type(column, field.name, field.type)
                for column, field in zip(columns, wanted, strict=True)
            ],
            schema=wanted,
        )


def _outcomes(prepared: Prepared) -> pa.Table:
    parts = [read_segment(Path(path)) for path in prepared["outcomes"]]
    inline = [
        (Outcomes.from_json(Path(each["path"]).read_bytes()), each["at"])
        for each in prepared["inline"]
    ]
    if inline:
        parts.append(as_table(prepared["owner"], inline))
    if not parts:
        return schema().empty_table()
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def _free(name: str, taken: set[str]) -> str:
    """Return a column name that no feature has."""
    while name in taken:
        name += "_"
    return name


def _floats(column: pa.Array) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def _feature(batch: pa.RecordBatch, name: str, kind: str) -> pa.Array:
    column = batch.column(FEATURE + name)
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _as_type(column: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    """Return the type that the alias records now. Raises BadTable if a column was recorded with another one."""
    try:
        return column if column.type == kind else column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadTable(
            f"{show(name)} was recorded as {column.type}, and is now {kind}: begin with later decisions (`since`)",
            column=name,
        ) from error
