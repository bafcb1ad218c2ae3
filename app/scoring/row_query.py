"""The query of `GET /v1/models/{ref}/score`: the values of one row, and the options beside them."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote_plus

from app.ingest.fields import QueryFields, take_fields
from app.platform.errors import Invalid, shown
from app.scoring.json_rows import IdAndIgnored
from app.scoring.probabilities import DEFAULT, ProbabilityFields, ProbabilityOptions
from app.scoring.reasons import ReasonFields, ReasonOptions
from app.scoring.table_rows import JsonRowFields

OPTIONS: tuple[type[QueryFields], ...] = (ProbabilityFields, ReasonFields, JsonRowFields)


_MARKS = tuple(mark for fields in OPTIONS for mark in fields.marks)
"""A query without any of these, as most are, has no options."""


class RowQuery(NamedTuple):
    """A query. `values` has the parameters of the features."""

    values: bytes
    probability: ProbabilityOptions = DEFAULT
    reasons: ReasonOptions | None = None
    id: str | None = None
    """The id of the row."""

    @property
    def tag(self) -> bytes:
        """The options, except reasons, for an ETag."""
        if self.probability == DEFAULT and self.id is None:
            return b""
        return repr((self.probability, self.id)).encode()

    @classmethod
    def of(cls, query: bytes, features: Collection[str]) -> RowQuery:
        """Raises Invalid for wrong options. An empty value is missing, and a feature precedes an option of its name."""
        if not any(mark in query for mark in _MARKS):
            return cls(query)
        values, (probability, reasons, beside) = take_fields(query, features, OPTIONS)
        id: str | None = None
        if beside:
            named = IdAndIgnored.of(JsonRowFields.parse(beside))
            named.check(features)
            values, id = _take_id(values, named, features)
        return cls(
            values,
            ProbabilityFields.parse(probability).options() if probability else DEFAULT,
            ReasonFields.parse(reasons).options() if reasons else None,
            id,
        )


def _take_id(
    query: bytes, beside: IdAndIgnored, features: Collection[str]
) -> tuple[bytes, str | None]:
    """Take the id and the ignored parameters out of a query. Raises Invalid."""
    pairs, ids = [], []
    for pair in query.split(b"&"):
        raw_name, _, raw = pair.partition(b"=")
        name = unquote_plus(raw_name.decode("latin-1"))
        if name == beside.id:
            ids.append(unquote_plus(raw.decode("latin-1")))
        if name in features or not (name == beside.id or beside.ignores(name, features)):
            pairs.append(pair)
    if beside.id is not None and len(ids) != 1:
        detail = f"the query must have {shown(beside.id)}, the id of the row, exactly once"
        errors = [{"parameter": beside.id, "detail": detail}]
        raise Invalid(detail, code="invalid_id", errors=errors)
    return b"&".join(pairs), ids[0] if ids else None
