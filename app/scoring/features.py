"""A model's features by name: parsing of rows from query strings and from JSON, with validation of every value.

`reader` reads the values.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import orjson

from app.ingest.values import (
    CATEGORICAL,
    MISSING,
    NUMERIC,
    USUAL,
    USUAL_CODES,
    MissingCodes,
    Notation,
    read_json_column,
)
from app.platform.documents import ModelFeature
from app.platform.errors import MAX_ERRORS, escape, refuse_all, shown
from app.scoring.reader import FeatureReader, Floats, unquote

if TYPE_CHECKING:
    from app.ingest.value_columns import MissingTokens
    from app.models.calibrations import ServedCalibration
    from app.scoring.row_parser import RowParser
    from core.base.ranker import Ranker
    from core.linear.points import PointsScale

_ABSENT, _KNOWN = object(), object()
_NOT_PLAIN = b'%+"\\,[{ \t\r\n'  # percent-encoded characters, and JSON's punctuation
_NUMBERS = frozenset({float, int})  # Python's types of JSON numbers
_NUMBERS_OR_NULL = _NUMBERS | {type(None)}


class FeatureIndex:
    """The features in the artifact's order; converts rows from a caller."""

    def __init__(
        self,
        features: Sequence[ModelFeature],
        categories: Sequence[Sequence[str] | None] | None = None,
        notation: Notation = USUAL,
        codes: MissingCodes = USUAL_CODES,
    ) -> None:
        known = categories or [None] * len(features)
        self.notation, self.codes = notation, codes
        self.names: list[str] = [feature["name"] for feature in features]
        self.types: list[str] = [feature["type"] for feature in features]
        self._position = {name: i for i, name in enumerate(self.names)}
        self.may_miss = [bool(feature["missing"]) for feature in features]
        self.readers = [
            FeatureReader(name, kind, words, codes, notation)
            for name, kind, words in zip(self.names, self.types, known, strict=True)
        ]
        self.categories = [reader.categories for reader in self.readers]
        self._all_numeric = not any(self.categories) and {NUMERIC}.issuperset(self.types)
        # If a point separates thousands, a number in a query is not a JSON number.
        self._reads_as_json = self._all_numeric and notation.thousands != "."
        self._n_features = self._n_scored = len(self.names)
        # For a single name `itemgetter` would return the bare value.
        self._values_of = itemgetter(*self.names) if self._n_features > 1 else None
        self._row_parsers: dict[bool, RowParser | None] = {}  # of strict and of lenient callers
        self._noted: dict[int, object] | None = None
        # As JSON, a plain query of all features is so many characters longer.
        self._growth = 2 * len(self.names) + 2

    @property
    def n_categorical(self) -> int:
        return sum(words is not None for words in self.categories)

    @property
    def missing(self) -> MissingTokens:
        """The missing-value codes, for the columns of tables."""
        from app.ingest.value_columns import tokens_of

        return tokens_of(self.codes.tokens)

    def with_protected(self, columns: Mapping[str, Sequence[str]]) -> FeatureIndex:
        """Return the features, and after them protected columns with their groups: a row may have them or not."""
        if not columns:
            return self
        described: list[Any] = [
            {"name": name, "type": kind, "missing": may_miss}
            for name, kind, may_miss in zip(self.names, self.types, self.may_miss, strict=True)
        ]
        described += [{"name": name, "type": CATEGORICAL, "missing": True} for name in columns]
        known = [*([None] * len(self.names)), *columns.values()]
        found = FeatureIndex(described, known, self.notation, self.codes)
        found.readers[: len(self.names)] = self.readers
        found.categories = [reader.categories for reader in found.readers]
        found._n_scored = self._n_features
        return found

    def noting(self) -> FeatureIndex:
        """Return the features for one request, which notes the categorical ones whose values are all unknown."""
        if not any(self.categories):
            return self
        own = copy.copy(self)
        own._noted = {}
        return own

    def note(self, i: int, found: Floats, values: Iterable[object]) -> None:
        """Note whether any of these values is a category, and otherwise the first one."""
        if self._noted is None or self._noted.get(i) is _KNOWN:
            return
        if not np.isnan(found).all():
            self._noted[i] = _KNOWN
        elif i not in self._noted:
            unknown = filter(self.readers[i].is_unknown, values)
            self._noted.update((i, value) for value in islice(unknown, 1))

    def warnings(self) -> list[dict[str, str]]:
        """Return the warnings of the request: features of which every known value is an unknown category."""
        return [
            {
                "code": "unknown_categories",
                "feature": self.names[i],
                "detail": f"no value of feature {shown(self.names[i])} is a category of the model, such as "
                f"{shown(value)}; all of them count as missing"
                if i < self._n_scored
                else f"no value of the protected column {shown(self.names[i])} is one of its groups in the feedback "
                f"settings, such as {shown(value)}; all of them are recorded as missing",
            }
            for i, value in sorted((self._noted or {}).items(), key=itemgetter(0))
            if value is not _KNOWN
        ]

    def row_of_query(self, query: bytes, *, lenient: bool = False) -> Floats:
        """Return one row, of shape (1, n_features), from a raw query string `name=value&…`.

        An empty value is missing. So is an absent name, if it was missing in training or the caller is lenient. Raises
        Invalid that names every parameter that is unknown, repeated, of the wrong type, or absent.
        """
        row = self._row_by_json(query) if self._reads_as_json and query else None
        return self.decode(query, lenient=lenient) if row is None else row

    def _row_by_json(self, query: bytes) -> Floats | None:
        """Parse a query without percent-encoding as JSON after two replacements; None if that fails."""
        if len(query.translate(None, _NOT_PLAIN)) != len(query):
            return None
        text = b'{"' + query.replace(b"=", b'":').replace(b"&", b',"') + b"}"
        try:
            values = orjson.loads(text)
            # Different lengths show that a name was repeated.
            if len(values) == self._n_features and len(text) == len(query) + self._growth:
                row = np.fromiter(map(values.__getitem__, self.names), np.float64)
                if _NUMBERS.issuperset(map(type, values.values())):
                    return self.codes.blank(row[np.newaxis])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            pass
        return None

    def decode(self, query: bytes, *, lenient: bool) -> Floats:
        """Parse parameter by parameter. Raises Invalid with all errors."""
        row: list[Any] = [_ABSENT] * len(self.names)
        errors: list[dict[str, str]] = []
        for pair in query.split(b"&"):
            if not pair:
                continue
            if len(errors) >= MAX_ERRORS:
                break
            raw_name, _, raw_value = pair.partition(b"=")
            name = _unquote(raw_name)
            i = self._position.get(name)
            if i is None:
                errors.append(_error("parameter", name, self.unknown(name), "unknown_feature"))
            elif row[i] is not _ABSENT:
                detail = f"feature {shown(name)} must be given once"
                errors.append(_error("parameter", name, detail, "duplicate_feature"))
            else:
                try:
                    row[i] = self.readers[i].read_query(raw_value)
                except ValueError:
                    row[i], text = MISSING, _unquote(raw_value).strip()
                    detail = self.readers[i].wrong_type(text)
                    errors.append(_error("parameter", name, detail, "invalid_feature_value"))
                else:
                    if self.categories[i] is not None:
                        self.note(i, np.array([row[i]]), [_unquote(raw_value)])
        self._fill(row, lenient, "parameter", "", errors)
        refuse_all(errors)
        return np.array([row], dtype=np.float64)

    def matrix_of_rows(self, rows: Sequence[Any], *, lenient: bool = False) -> Floats:
        plain = self._plain_rows(rows)
        table = plain or self._checked_rows(rows, lenient)
        return self._to_matrix(table, self.names, "/rows", by_name=True)

    def parse_rows(
        self, body: bytes | memoryview, *, lenient: bool = False
    ) -> list[tuple[Any, ...]] | None:
        """Parse `{"rows": [{name: value, …}, …]}` for `matrix_of_parsed`, quickly; None for errors or another shape."""
        if lenient not in self._row_parsers:
            from app.scoring.row_parser import RowParser

            is_number = [
                kind == NUMERIC and categories is None
                for kind, categories in zip(self.types, self.categories, strict=True)
            ]
            may_be_absent = [lenient or may_miss for may_miss in self.may_miss]
            self._row_parsers[lenient] = RowParser.of(self.names, is_number, may_be_absent)
        parser = self._row_parsers[lenient]
        return None if parser is None else parser.parse(body)

    def matrix_of_parsed(self, rows: Sequence[tuple[Any, ...]]) -> Floats:
        """Convert the rows of `parse_rows`. Raises Invalid for values of the wrong type."""
        if self._all_numeric:
            return self.codes.blank(_of_numbers(rows, self._n_features))
        return self._to_matrix(rows, self.names, "/rows", by_name=True)

    def matrix_of_number_table(
        self, body: bytes | memoryview, max_rows: int, *, lenient: bool = False
    ) -> Floats | None:
        """Parse and convert `{"columns": [name, …], "data": [[number, …], …]}` quickly.

        Returns None for errors, another shape, too many rows, or a model of other than numbers.
        """
        from app.scoring.row_parser import parse_table

        table = parse_table(body) if self._all_numeric else None
        if table is None or len(table.data) > max_rows:
            return None
        if {len(table.columns)}.issuperset(map(len, table.data)):
            refuse_all(self._errors_of_columns(table.columns, lenient=lenient))
            X = np.full((len(table.data), self._n_features), MISSING)
            indices = [self._position[name] for name in table.columns]
            X[:, indices] = self.codes.blank(_of_numbers(table.data, len(indices)))
            return X
        return None

    def _plain_rows(self, rows: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Return None if a row does not have exactly the features."""
        try:
            if self._values_of and {self._n_features}.issuperset(map(len, rows)):
                return list(map(self._values_of, rows))
        except (KeyError, TypeError):
            pass
        return None

    def _checked_rows(self, rows: Sequence[Any], lenient: bool) -> Sequence[Sequence[Any]]:
        """Raises Invalid with all errors."""
        errors: list[dict[str, str]] = []
        table: list[list[Any]] = []
        for number, given in enumerate(rows):
            pointer = f"/rows/{number}"
            if not isinstance(given, dict):
                detail = f"a row must be an object of features, got {shown(given)}"
                errors.append(_error("pointer", pointer, detail, "invalid"))
                continue
            unknown = (name for name in given if name not in self._position)
            for name in islice(unknown, MAX_ERRORS - len(errors)):
                at = f"{pointer}/{escape(name)}"
                errors.append(_error("pointer", at, self.unknown(name), "unknown_feature"))
            row = [given.get(name, _ABSENT) for name in self.names]
            if _ABSENT in row:
                self._fill(row, lenient, "pointer", pointer, errors)
            table.append(row)
            if len(errors) >= MAX_ERRORS:
                break
        refuse_all(errors)
        return table

    def matrix_of_table(
        self, columns: Sequence[Any], data: Sequence[Any], *, lenient: bool = False
    ) -> Floats:
        errors = self._errors_of_columns(columns, lenient=lenient)
        for number, values in enumerate(data):
            if len(errors) >= MAX_ERRORS:
                break
            if not isinstance(values, list) or len(values) != len(columns):
                got = f"{len(values)} values" if isinstance(values, list) else shown(values)
                detail = f"a row must be a list of {len(columns)} values, one per column, got {got}"
                errors.append(_error("pointer", f"/data/{number}", detail, "invalid"))
        refuse_all(errors)
        return self._to_matrix(data, columns, "/data", by_name=False)

    def _errors_of_columns(self, columns: Sequence[Any], *, lenient: bool) -> list[dict[str, str]]:
        errors: list[dict[str, str]] = []
        given: set[str] = set()
        # every other name is an error, so the list of errors is soon full
        for number, name in enumerate(columns):
            if len(errors) >= MAX_ERRORS:
                break
            at = f"/columns/{number}"
            if not isinstance(name, str) or name not in self._position:
                errors.append(_error("pointer", at, self.unknown(name), "unknown_feature"))
            elif name in given:
                detail = f"feature {shown(name)} must be given once"
                errors.append(_error("pointer", at, detail, "duplicate_feature"))
            else:
                given.add(name)
        if not errors:
            row = [0.0 if name in given else _ABSENT for name in self.names]
            self._fill(row, lenient, "pointer", "/columns", errors)
        return errors

    def _to_matrix(
        self, table: Sequence[Sequence[Any]], columns: Sequence[str], pointer: str, *, by_name: bool
    ) -> Floats:
        """Return the features' order. If all cells are numbers, they are converted at once."""
        indices = [self._position[name] for name in columns]
        X = np.full((len(table), len(self.names)), MISSING)
        try:
            every = list(chain.from_iterable(table)) if self._all_numeric else None
            if every is not None and _NUMBERS_OR_NULL.issuperset(map(type, every)):
                cells = read_json_column(NUMERIC, every, self.codes, self.notation)
                X[:, indices] = cells.reshape(len(table), len(indices))
            else:
                for i, values in zip(indices, zip(*table, strict=True), strict=False):
                    X[:, i] = self.readers[i].read_cells(values)
                    if self.categories[i] is not None:
                        self.note(i, X[:, i], values)
            return X
        except (ValueError, TypeError):  # a list cannot be looked up among categories
            pass
        self._refuse_cells(table, columns, indices, pointer, by_name)
        raise AssertionError("a cell that does not fit into a float64 is listed above")

    def _refuse_cells(
        self,
        table: Sequence[Sequence[Any]],
        columns: Sequence[str],
        indices: Sequence[int],
        pointer: str,
        by_name: bool,
    ) -> None:
        """Raise Invalid with the cells of the wrong type."""
        misfits = (
            (number, k, i, value)
            for number, values in enumerate(table)
            for k, (i, value) in enumerate(zip(indices, values, strict=True))
            if not self.readers[i].fits(value)
        )
        errors = []
        for number, k, i, value in islice(misfits, MAX_ERRORS):
            where = f"{pointer}/{number}/{escape(columns[k]) if by_name else k}"
            errors.append(
                _error("pointer", where, self.readers[i].wrong_type(value), "invalid_feature_value")
            )
        refuse_all(errors)

    def _fill(
        self,
        row: list[Any],
        lenient: bool,
        key: str,
        at: str,
        errors: list[dict[str, str]],
    ) -> None:
        """Replace absent values by missing ones if training had such or the caller is lenient, else add an error."""
        for i, value in enumerate(row):
            if value is not _ABSENT:
                continue
            if lenient or self.may_miss[i]:
                row[i] = None
            elif len(errors) < MAX_ERRORS:
                name = self.names[i]
                errors.append(_error(key, at or name, self.absent(i), "absent_feature"))

    def absent(self, i: int) -> str:
        """Return the message for an absent feature."""
        name = shown(self.names[i])
        return (
            f"feature {name} is absent, but was never missing in training: send it, with an empty value if "
            "it is unknown"
        )

    def unknown(self, name: object) -> str:
        """Return the message for an unknown feature, with the known ones."""
        names = self.names[: self._n_scored]
        known = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        return f"feature {shown(name)} is unknown; the model has {known}"


def _unquote(text: bytes) -> str:
    return unquote(text).decode("utf-8", "replace")


def _of_numbers(rows: Sequence[Sequence[float | None]], n_columns: int) -> Floats:
    """Convert rows of equal lengths; None is NaN."""
    shape = len(rows), n_columns
    try:
        cells = chain.from_iterable(rows)
        return np.fromiter(cells, np.float64, shape[0] * shape[1]).reshape(shape)
    except TypeError:  # there is a null, which only the slower `array` converts
        return np.array(rows, np.float64).reshape(shape)


def _error(key: str, at: str, detail: str, code: str) -> dict[str, str]:
    return {key: at[:1000], "detail": detail, "code": code}


class LoadedModel(Protocol):
    """The parts of `service.Served` that probabilities, reasons and decisions need."""

    @property
    def model_id(self) -> str: ...
    @property
    def ranker(self) -> Ranker: ...
    @property
    def features(self) -> FeatureIndex: ...
    @property
    def labels(self) -> list[str] | None: ...
    @property
    def calibration(self) -> ServedCalibration | None: ...
    @property
    def why_no_calibration(self) -> str: ...
    @property
    def flag_threshold(self) -> float | None: ...
    @property
    def scale(self) -> PointsScale | None: ...
