"""Outcomes: what happened to the entities that were scored. Checks the columns of requests; writes and reads segments.

An outcome names a decision or an entity. Outcomes of entities are attributed to decisions when they are read
(`attribution`), because a decision may be recorded after the outcome has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from app.feedback.segments import hash_ids
from app.ingest.values import (
    DATETIME,
    NUMERIC,
    USUAL,
    Notation,
    category,
    read_json,
    spell,
    spell_date,
)
from app.platform.errors import is_plain, shown

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

COLUMNS = (
    "decision_id",
    "id",
    "label",
    "event_at",
    "known_at",
    "source",
    "weight",
    "amount",
)
"""The columns of a request."""
STORED = (*COLUMNS, "has_known_at")
TIMES = ("event_at", "known_at")
MAX_ROWS = 100_000
"""Maximum number of outcomes in a request."""
INLINE_ROWS = 200
"""Maximum number of rows of a request that is stored in a row of the database instead of a file."""
MAX_TEXT = 255
MAX_SOURCE = 64
CLOCK_SKEW_SECONDS = 300.0
"""How far a time may be ahead of the service's clock."""
YES, NO = frozenset({"true", "1"}), frozenset({"false", "0"})
"""Labels that mean positive and negative, unless they are label values of the model with another meaning."""
KIND = "outcomes"
"""Kind of the segments in the blob store."""


def label_means(label: str | None, positive: str | None, negative: str | None) -> bool | None:
    """Return True if a label is positive for a model with these label values, False if negative, None if neither.

    The model's own values take precedence: for a model whose positive value is `0`, the label `0` is positive.

    >>> [label_means(label, "churned", "stayed") for label in ("churned", "stayed", "true", "0", "maybe")]
    [True, False, True, False, None]
    """
    if label is None:
        return None
    if label == positive:
        return True
    if label == negative:
        return False
    return True if label in YES else False if label in NO else None


Report = Callable[[int, str | None, str], bool]
"""Reports an error: the row from 0, the column or None for the whole row, and the rule that is broken. Returns False if
there are too many errors to continue.
"""


@dataclass(frozen=True)
class Outcomes:
    """Checked outcomes as lists, one value per row."""

    decision_id: list[str | None]
    id: list[str | None]
    label: list[str | None]
    event_at: list[float | None]
    known_at: list[float]
    source: list[str | None]
    weight: list[float | None]
    amount: list[float | None]
    has_known_at: list[bool]
    """False: `known_at` is when the request was received."""

    def __len__(self) -> int:
        return len(self.label)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(getattr(self, name) for name in STORED), strict=True)

    def take(self, chosen: Sequence[int]) -> Outcomes:
        return Outcomes(
            **{name: [values[i] for i in chosen] for name, values in vars(self).items()}
        )

    def as_json(self) -> bytes:
        """Return the form in a row of the database."""
        return orjson.dumps(vars(self))

    @classmethod
    def from_json(cls, stored: bytes) -> Outcomes:
        """Inverse of `as_json`."""
        return cls(**orjson.loads(stored))


def check(
    columns: Mapping[str, Sequence[Any]],
    n_rows: int,
    now: float,
    report: Report,
    *,
    notation: Notation = USUAL,
    in_seconds: Collection[str] = (),
) -> Outcomes:
    """Values are JSON values or text; times of the columns in `in_seconds` are seconds. `now` is the default of
    `known_at`.

    Every broken rule goes to `report`; the result is valid only if there is none.
    """
    found: dict[str, list[Any]] = {name: [None] * n_rows for name in COLUMNS}
    nothing = [None] * n_rows
    places = [
        (name, columns.get(name, nothing), _READERS[name], found[name], name in in_seconds)
        for name in COLUMNS
    ]
    decision_ids, ids = found["decision_id"], found["id"]
    events, knowns = found["event_at"], found["known_at"]
    for row in range(n_rows):
        wrong: list[tuple[str | None, str]] = []
        for name, values, read, target, seconds in places:
            value = values[row]
            if value is None:
                continue
            try:
                target[row] = value if seconds else read(value, notation)
            except ValueError as error:
                wrong.append((name, f"{name} {error}, got {shown(value)}"))
        if not wrong:
            wrong = _check_row(decision_ids[row], ids[row], events[row], knowns[row], now)
        if not all(report(row, *each) for each in wrong):
            break
    found["known_at"] = [now if at is None else at for at in knowns]
    return Outcomes(**found, has_known_at=[at is not None for at in knowns])


def _check_row(
    decision_id: str | None, id_: str | None, event: float | None, known: float | None, now: float
) -> list[tuple[str | None, str]]:
    """Return the column and the rule that a row breaks."""
    latest = now + CLOCK_SKEW_SECONDS
    if known is not None and known > latest:
        return [("known_at", f"known_at must not be in the future, got {spell_date(known)}")]
    if decision_id is None and id_ is None:
        return [(None, "a row must have a decision_id or an id")]
    if event is None:
        if decision_id is None:
            return [("event_at", "a row with an id and no decision_id must have event_at")]
    elif known is not None and event > known:
        rule = f"event_at must not be later than known_at ({spell_date(known)})"
        return [("event_at", f"{rule}, got {spell_date(event)}")]
    elif event > latest:
        return [("event_at", f"event_at must not be in the future, got {spell_date(event)}")]
    return []


def _text(
    most: int, write: Callable[[str | float | bool], str] = spell
) -> Callable[[Any, Notation], str | None]:
    rule = f"must have 1 to {most} characters and no control characters"

    def read(value: Any, notation: Notation) -> str | None:
        if not isinstance(value, str | int | float) or value != value:  # noqa: PLR0124 - NaN
            raise ValueError("must be a string, a number, true, false or null")
        text = write(value)
        if not text:
            return None
        if len(text) > most or not is_plain(text):
            raise ValueError(rule)
        return text

    return read


def _time(value: Any, notation: Notation) -> float | None:
    return _known(read_json(DATETIME, value, notation=notation))


def _number(value: Any, notation: Notation) -> float | None:
    return _known(read_json(NUMERIC, value, notation=notation))


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _weight(value: Any, notation: Notation) -> float | None:
    number = _number(value, notation)
    if number is not None and number <= 0.0:
        raise ValueError("must be greater than 0")
    return number


_READERS: Final[Mapping[str, Callable[[Any, Notation], Any]]] = {
    "decision_id": _text(MAX_TEXT),
    "id": _text(MAX_TEXT),
    "label": _text(MAX_TEXT, category),
    "event_at": _time,
    "known_at": _time,
    "source": _text(MAX_SOURCE),
    "weight": _weight,
    "amount": _number,
}


def schema() -> pa.Schema:
    import pyarrow as pa

    words = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("decision_id", pa.string()),
            ("id", pa.string()),
            ("id_hash", pa.uint64()),
            ("label", words),
            ("event_at", pa.float64()),
            ("known_at", pa.float64()),
            ("source", words),
            ("weight", pa.float64()),
            ("amount", pa.float64()),
            ("has_known_at", pa.bool_()),
            ("received_at", pa.float64()),
            ("sequence", pa.int64()),
        ]
    )


def as_table(owner: str, requests: Sequence[tuple[Outcomes, float]]) -> pa.Table:
    """Return outcomes of requests, each with the time when it was received, as rows of a segment.

    `sequence` orders outcomes with equal `known_at`: microseconds since 1970, and one more for each row of a request.
    """
    import pyarrow as pa

    columns: dict[str, Any] = {
        name: [value for outcomes, _ in requests for value in getattr(outcomes, name)]
        for name in STORED
    }
    hashes = iter(hash_ids(owner, [id_ for id_ in columns["id"] if id_ is not None]).tolist())
    columns["id_hash"] = [None if id_ is None else next(hashes) for id_ in columns["id"]]
    columns["received_at"] = [at for outcomes, at in requests for _ in range(len(outcomes))]
    columns["sequence"] = [
        int(at * 1e6) + row for outcomes, at in requests for row in range(len(outcomes))
    ]
    return pa.table(
        [pa.array(columns[field.name], _plain(field.type)).cast(field.type) for field in schema()],
        schema=schema(),
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    plain: pa.DataType = kind.value_type if pa.types.is_dictionary(kind) else kind
    return plain


def read_segment(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [field.name for field in schema() if pa.types.is_dictionary(field.type)]
    return pq.read_table(path, read_dictionary=names).cast(schema())
