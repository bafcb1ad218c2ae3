"""Tables of decisions of another system: their columns, and the conversion of their rows to rows of a segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.feedback.decision_ids import (
    DECISION_ID_RULE,
    ID_RULE,
    DecisionKeys,
    DecisionKeySet,
    first_copies,
    is_valid_decision_id,
    is_valid_id,
    keys_of,
)
from app.feedback.file_repository import BACKFILL
from app.feedback.joining import DAY_SECONDS
from app.feedback.outcomes import CLOCK_SKEW_SECONDS
from app.feedback.segments import FEATURE, SegmentFeature, hash_ids, read_file, schema_of
from app.ingest.columns import check_type
from app.ingest.errors import MAX_COUNTED_ERRORS, Errors, show, too_many_rows
from app.ingest.rows import MAX_NAME_LENGTH, Rows, Source
from app.ingest.value_columns import (
    NAMES,
    MissingTokens,
    as_text,
    encode,
    find_unfit,
    read_column,
    to_mask,
)
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC, Notation, spell_date
from app.platform.errors import MAX_ERRORS, refuse_all, shown
from app.platform.ids import id_at

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.value_columns import MissingTokens

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

AT, SCORE = "at", "score"
REQUIRED = (AT, SCORE)
OPTIONAL = (
    "id",
    "decision_id",
    "threshold",
    "flag",
    "probability",
    "explored",
    "propensity",
    "keep",
)
COLUMNS = (*REQUIRED, *OPTIONAL)
"""The columns of a table that are not features."""
ALL = "*"
"""In `ignore`: every column that is neither one of `COLUMNS` nor a recorded feature."""


@dataclass(frozen=True)
class Recorded:
    """What decisions share: alias, model, recorded features. Those before `earliest` would be deleted at once."""

    owner: str
    name: str
    alias: str
    revision: int
    alias_revision: int
    model_id: str
    features: tuple[SegmentFeature, ...]
    earliest: float
    now: float

    @property
    def ref(self) -> str:
        return f"{self.name}@{self.alias}"

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Recorded:
        features = tuple(SegmentFeature(*each) for each in stored["features"])
        return cls(**{**stored, "features": features})


class WrittenFile(NamedTuple):
    """A file with decisions of an alias that are already stored, and the times of the first and the last of them."""

    path: str
    alias: str
    first_at: float
    last_at: float


@dataclass
class StoredDecisions:
    """The ids of the owner's earlier backfills. Ids that we make contain time and alias: for them, only files of their
    alias and time are read.
    """

    files: Sequence[WrittenFile]
    _ids: dict[str, DecisionKeySet] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)

    def find(self, alias: str, at: Floats, keys: DecisionKeys, *, given: bool) -> dict[str, Mask]:
        """Return for each alias which of these decisions it has. `given`: the caller has made some of the ids."""
        first, last = at.min(), at.max()
        for file in self.files:
            may_have = file.alias == alias and file.first_at <= last and file.last_at >= first
            if (given or may_have) and file.path not in self._read:
                self._read.add(file.path)
                ids = self._ids.setdefault(file.alias, DecisionKeySet())
                for batch in read_file(Path(file.path), ["decision_id"]):
                    ids.add(keys_of(batch.column("decision_id")))
        return {of: ids.has(keys) for of, ids in self._ids.items()}


class DecisionReader:
    """Reads decisions from a table. `skipped` counts the decisions that are already stored, and `rows` counts all.

    `gives_ids` is True if the table has ids of another system, which decisions of any alias and time may have.
    """

    def __init__(
        self,
        recorded: Recorded,
        missing: MissingTokens,
        stored: StoredDecisions,
        max_rows: int,
        *,
        ignore: Sequence[str] = (),
        lenient: bool = False,
    ) -> None:
        self._recorded = recorded
        self._missing = missing
        self._stored = stored
        self._max_rows = max_rows
        self._ignore = frozenset(ignore)
        self._lenient = lenient
        self._key = blake2b(
            digest_size=10,
            key=blake2b(f"{recorded.owner}\0{recorded.ref}".encode(), digest_size=16).digest(),
        )
        self._seen = DecisionKeySet()
        self.rows = self.skipped = 0
        self.gives_ids = False

    def batches(self, source: Source) -> Iterator[pa.RecordBatch]:
        """Yield new decisions as rows of a segment. Raises Invalid for wrong columns, and BadTable for wrong values."""
        places = self._find_columns(source.names)
        if source.schema is not None:
            self._check_types(dict(zip(source.names, source.schema.types, strict=True)), places)
        errors = Errors()
        wanted = [name for name in source.names if name in places.values()]
        for rows in source.batches(errors, wanted):
            self.rows += rows.batch.num_rows
            if self.rows > self._max_rows:
                raise too_many_rows(self._max_rows)
            batch = self._read(rows, places, source.notation, errors)
            if errors.total >= MAX_COUNTED_ERRORS:
                break
            if batch is not None and not errors.total and batch.num_rows:
                yield batch
        if errors.total:
            raise errors.summarise()

    def _find_columns(self, names: Sequence[str]) -> dict[str, str]:
        """Map columns of a segment to those of the table. Raises Invalid for unknown and absent ones."""
        there = set(names)
        places = {name: name for name in COLUMNS if name in there}
        absent = []
        for feature in self._recorded.features:
            plain = feature.name if feature.name not in COLUMNS else None
            for name in (feature.column, plain):
                if name is not None and name in there:
                    places[feature.column] = name
                    break
            else:
                if not feature.protected:
                    absent.append(plain or feature.column)
        alias = self._recorded.ref
        errors = [
            _error(name, f"the table must have the column {name}", "absent_column")
            for name in REQUIRED
            if name not in there
        ]
        if not {"id", "decision_id"} & there:
            detail = "the table must have the column id or decision_id"
            errors.append(_error("id", detail, "absent_column"))
        if not self._lenient:
            errors += [
                _error(
                    name,
                    f"{alias} records the feature {show(name)}, which the table does not have",
                    "absent_feature",
                )
                for name in absent
            ]
        used = {*places.values(), *self._ignore}
        unknown = (
            [] if self._lenient or ALL in self._ignore else [n for n in names if n not in used]
        )
        errors += [
            _error(
                name,
                f"{show(name)} is no column of decisions, and no feature that {alias} records: rename it, or ignore it",
                "unknown_column",
            )
            for name in unknown
        ]
        refuse_all(errors[:MAX_ERRORS])
        return places

    def _check_types(self, types: Mapping[str, pa.DataType], places: Mapping[str, str]) -> None:
        for name in places.values():
            check_type(name, types[name], text=True)

    def _read(
        self, rows: Rows, places: Mapping[str, str], notation: Notation, errors: Errors
    ) -> pa.RecordBatch | None:
        """Return the rows that are not yet stored; None if a row is invalid."""
        before, n = errors.total, rows.batch.num_rows
        reading = _Reading(rows, places, notation, errors, self._missing)
        at = self._times(reading)
        score = reading.numbers(SCORE, required=True)
        ids = reading.ids("id", is_valid_id, ID_RULE)
        given = reading.ids("decision_id", is_valid_decision_id, DECISION_ID_RULE)
        self.gives_ids |= given is not None
        if ids is not None or given is not None:
            has_id = np.zeros(n, np.bool_)
            for texts in (ids, given):
                if texts is not None:
                    has_id |= texts.is_valid().to_numpy(zero_copy_only=False)
            detail = "a row must have an id or a decision_id"
            rows.report(
                errors, "id" if "id" in places else "decision_id", ~has_id, lambda row: detail
            )
        threshold = reading.numbers("threshold")
        probability = reading.numbers("probability", least=0.0, most=1.0)
        propensity = reading.numbers("propensity", above=0.0, most=1.0)
        keep = reading.numbers("keep", above=0.0, most=1.0)
        flag, explored = reading.flags("flag"), reading.flags("explored")
        rows.report(
            errors,
            "propensity",
            (explored == 1.0) & np.isnan(propensity),
            lambda row: "an explored row must have a propensity",
        )
        features = [reading.feature(feature, feature.column) for feature in self._recorded.features]
        if errors.total > before:
            return None
        flag = np.where(np.isnan(flag) & ~np.isnan(threshold), score >= threshold, flag)
        decision_ids = self._complete(given, ids, at)
        keys = keys_of(decision_ids)
        self._report_repeated(reading, keys, given, ids, at)
        recorded = self._recorded
        stored = self._stored.find(recorded.ref, at, keys, given=given is not None)
        known = stored.pop(recorded.ref, np.zeros(n, np.bool_))
        for alias, taken in stored.items():
            rule = f"decision_id must name one decision, and {alias} has a decision of this id"
            reading.report("decision_id", taken, lambda row, rule=rule: rule)
        if errors.total > before:
            return None
        constants = {
            "revision": recorded.revision,
            "alias_revision": recorded.alias_revision,
            "model_id": recorded.model_id,
            "caller": None,
            "origin": BACKFILL,
            "request_id": None,
        }
        columns: dict[str, Any] = {
            "decision_id": decision_ids,
            "id": pa.nulls(n, pa.string()) if ids is None else ids,
            "at": pa.array(at),
            "score": pa.array(score),
            "probability": _nullable(probability),
            "threshold": _nullable(threshold),
            "flag": pa.array(flag == 1.0, mask=np.isnan(flag)),
            "explored": pa.array(explored == 1.0),
            "propensity": _nullable(propensity),
            "keep": pa.array(np.where(np.isnan(keep), 1.0, keep)),
        }
        columns |= dict(zip((each.column for each in recorded.features), features, strict=True))
        texts = columns["id"].to_pylist()
        no_id = np.array([text is None for text in texts], np.bool_)
        columns["id_hash"] = pa.array(
            hash_ids(recorded.owner, [text or "" for text in texts]), mask=no_id
        )
        schema = schema_of(recorded.features)
        batch = pa.RecordBatch.from_arrays(
            [
                _cast(columns[each.name], each.type)
                if each.name in columns
                else _constant(constants[each.name], n, each.type)
                for each in schema
            ],
            schema=schema,
        )
        self.skipped += int(known.sum())
        return batch.filter(pa.array(~known)) if known.any() else batch

    def _times(self, reading: _Reading) -> Floats:
        """Report times in the future, or too old to be kept."""
        at = reading.values(AT, DATETIME, required=True)
        recorded = self._recorded
        late = at > recorded.now + CLOCK_SKEW_SECONDS
        reading.report(AT, late, lambda row: "at must not be in the future")
        days = round((recorded.now - recorded.earliest) / DAY_SECONDS)
        alias = recorded.ref
        reading.report(
            AT,
            at < recorded.earliest,
            lambda row: (
                f"at must be within the last {days} days, for which {alias} keeps decisions (`days`)"
            ),
        )
        return at

    def _complete(self, given: pa.Array | None, ids: pa.Array | None, at: Floats) -> pa.Array:
        """Return the decision ids, else derived from entity and time, so that a repeated table has the same ids."""
        found: list[str | None] = [None] * len(at) if given is None else given.to_pylist()
        entities = [None] * len(at) if ids is None else ids.to_pylist()
        for row, (decision_id, entity, time) in enumerate(
            zip(found, entities, at.tolist(), strict=True)
        ):
            if decision_id is None:
                hashed = self._key.copy()
                hashed.update(f"{time!r}\0{entity}".encode())
                found[row] = id_at("dec", time, hashed.digest())
        return pa.array(found, pa.string())

    def _report_repeated(
        self,
        reading: _Reading,
        keys: DecisionKeys,
        given: pa.Array | None,
        ids: pa.Array | None,
        at: Floats,
    ) -> None:
        """Report decisions that occur earlier in the table."""
        repeated = ~first_copies(keys) | self._seen.has(keys)
        self._seen.add(keys)
        if given is not None:
            named = to_mask(given.is_valid())
            rule = "decision_id must occur once in the table"
            reading.report("decision_id", repeated & named, lambda row: rule)
            repeated &= ~named

        def detail(row: int) -> str:
            assert ids is not None
            entity = shown(ids[row].as_py())
            return f"the decision about {entity} at {spell_date(at[row])} occurs twice in the table"

        reading.rows.report(reading.errors, AT, repeated, detail)


@dataclass(frozen=True)
class _Reading:
    """Reads the columns of a batch; wrong values are reported."""

    rows: Rows
    places: Mapping[str, str]
    notation: Notation
    errors: Errors
    missing: MissingTokens

    def report(self, name: str, bad: Mask, detail: Any) -> None:
        """Report the rows of a mask, with their values."""
        if not bad.any():
            return
        place = self.places[name]
        column = self.rows.batch.column(place)

        def with_value(row: int) -> str:
            return f"{detail(row)}, got {shown(column[row].as_py())}"

        self.rows.report(self.errors, place, bad, with_value)

    def values(self, name: str, kind: str, *, required: bool = False) -> Floats:
        """Return floats, NaN where missing or without such a column."""
        n = self.rows.batch.num_rows
        if name not in self.places:
            return np.full(n, np.nan)
        column = self.rows.batch.column(self.places[name])
        found, bad = read_column(column, kind, self.missing, self.notation, numbers=True)
        rule = self.notation.rule(kind)
        plain = name.removeprefix(FEATURE)
        bad = bad | np.isinf(found)
        self.report(name, bad, lambda row: f"{plain} must be {rule}")
        if required:
            absent = np.isnan(found) & ~bad
            self.rows.report(self.errors, name, absent, lambda row: f"{name} must not be missing")
        return found

    def numbers(
        self,
        name: str,
        *,
        required: bool = False,
        least: float | None = None,
        above: float | None = None,
        most: float | None = None,
    ) -> Floats:
        found = self.values(name, NUMERIC, required=required)
        bad = np.zeros(len(found), np.bool_)
        bounds = []
        if least is not None:
            bad |= found < least
            bounds.append(f"at least {least:g}")
        if above is not None:
            bad |= found <= above
            bounds.append(f"greater than {above:g}")
        if most is not None:
            bad |= found > most
            bounds.append(f"at most {most:g}")
        self.report(name, bad, lambda row: f"{name} must be {' and '.join(bounds)}")
        return found

    def flags(self, name: str) -> Floats:
        """Return booleans as 1 and 0, NaN where missing."""
        return self.values(name, BOOLEAN)

    def ids(self, name: str, is_valid: Callable[[str], bool], rule: str) -> pa.Array | None:
        """Return ids, null where empty; None without such a column."""
        if name not in self.places:
            return None
        texts = as_text(self.rows.batch.column(self.places[name]), NAMES)
        bad = [text is not None and not is_valid(text) for text in texts.to_pylist()]
        self.report(name, np.array(bad, np.bool_), lambda row: f"{name} {rule}")
        return texts

    def feature(self, feature: SegmentFeature, name: str) -> pa.Array:
        """Return a feature in its type; null where missing or not in the table."""
        n = self.rows.batch.num_rows
        if name not in self.places:
            return pa.nulls(n)
        if feature.type != CATEGORICAL:
            found = self.values(name, feature.type)
            absent = np.isnan(found)
            if feature.type == BOOLEAN:
                return pa.array(found == 1.0, mask=absent)
            if feature.type == DATETIME:
                micro = np.round(np.where(absent, 0.0, found) * 1e6).astype(np.int64)
                return pa.array(micro, mask=absent).cast(pa.timestamp("us", tz="UTC"))
            return pa.array(found, mask=absent)
        coded = encode(self.rows.batch.column(self.places[name]), self.missing)
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy()
        unfit = np.append(find_unfit(coded.dictionary, MAX_NAME_LENGTH), False)[codes]
        rule = f"a category must have at most {MAX_NAME_LENGTH} characters and no NUL"
        self.report(name, unfit, lambda row: rule)
        return coded.dictionary_decode() if not unfit.any() else pa.nulls(n)


def _nullable(values: Floats) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _constant(value: Any, n: int, kind: pa.DataType) -> pa.Array:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return _cast(pa.array([value] * n, plain), kind)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return column.cast(pa.string()).dictionary_encode()
    return column if column.type == kind else column.cast(kind)


def _error(column: str, detail: str, code: str) -> dict[str, str]:
    return {"column": column[:1000], "detail": detail, "code": code}
