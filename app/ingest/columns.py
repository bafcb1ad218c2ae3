"""From what the reader gave, text or typed, to float64, categories, label codes and group text.

A value that does not fit the others of its feature is a slip: it counts as missing, and is told. What does not fit a
label, an item, a weight or a group is a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.categories import CategoryLimits, TextColumn
from app.ingest.decimals import as_doubles
from app.ingest.dialect import with_point
from app.ingest.errors import BadTable, Faults, brief, show
from app.ingest.evidence import BOOLEAN, CATEGORICAL, DATETIME, TRUTH, Evidence, weigh
from app.ingest.items import ItemNames
from app.ingest.numerals import NUMBER
from app.ingest.profile import ColumnProfile, Floats, TextProfile
from app.ingest.roles import Roles
from app.ingest.rows import MAX_NAME, Rows
from app.ingest.times import DATE, is_dated, parse_dates, typed_seconds
from app.ingest.value_columns import as_text, find_unfit, is_text
from app.ingest.values import SPACES, MissingTokens
from core.target import WEIGHT_RULE, are_weights

Mask = npt.NDArray[np.bool_]

_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
_HINT = (
    ", as nearly all values are: name what stands for a missing value in missing, "
    "or the column in categorical"
)
_THOUSANDS = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$"
_MOST_ODD = 1 << 14
"""Distinct texts that do not fit their column, of which more is known than their number."""
_MOST_LABELS = 1000


@dataclass(frozen=True)
class Parsed:
    """A column of a batch as numbers: `values` with NaN for missing, what is true or false, and what is neither."""

    values: Floats
    boolean: Mask
    bad: Mask
    plain: bool = False
    """Whether nothing is boolean and nothing bad."""


def holds_text(kind: pa.DataType) -> bool:
    """Tell whether a typed column is categorical by its type."""
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def check_type(name: str, kind: pa.DataType, *, text: bool) -> None:
    """Raise BadTable unless a typed column can be read as numbers, or where `text` is allowed as categories."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    if not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
        or (text and (is_text(kind) or is_dated(kind)))
    ):
        allowed = "numeric, boolean, text, dates or times" if text else "numeric or boolean"
        raise BadTable(
            f"column {show(name)} has the type {brief(kind)}; it must be {allowed}",
            column=name,
            code="unsupported_type",
        )


def parse(column: pa.Array, missing: MissingTokens, decimal: str = ".") -> Parsed:
    """Read a column as numbers."""
    parsed = _parse(column, missing, decimal)
    values = missing.blank(parsed.values)
    if values is parsed.values:
        return parsed
    if parsed.plain:
        return replace(parsed, values=values)
    return replace(parsed, values=np.where(parsed.boolean, parsed.values, values))


def _parse(column: pa.Array, missing: MissingTokens, decimal: str) -> Parsed:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    nothing = np.zeros(len(column), dtype=bool)
    if is_text(column.type):
        try:
            values = _floats(pc.cast(with_point(column, decimal), pa.float64()))
        except pa.ArrowInvalid:
            return _parse_untidy(with_point(missing.tidy(column), decimal))
        if np.count_nonzero(np.isfinite(values)) + column.null_count == len(column):
            return Parsed(values, nothing, nothing, plain=True)
        return _parse_untidy(with_point(missing.tidy(column), decimal))
    if pa.types.is_boolean(column.type):
        return Parsed(_floats(pc.cast(column, pa.uint8())), ~nothing, nothing)
    values = _floats(as_doubles(column))
    bad = nothing if pa.types.is_integer(column.type) else np.isinf(values)
    return Parsed(values, nothing, bad, plain=not bad.any())


def _parse_untidy(text: pa.Array) -> Parsed:
    lower = pc.utf8_lower(text)
    number = _mask(pc.match_substring_regex(text, NUMBER))
    boolean = _mask(pc.is_in(lower, TRUTH)) & _mask(pc.is_valid(text))
    values = np.full(len(text), np.nan)
    values[number] = _floats(pc.cast(text.filter(pa.array(number)), pa.float64()))
    values[boolean] = _mask(pc.equal(lower, "true"))[boolean]
    bad = np.isinf(values) | ~(number | boolean | _mask(pc.is_null(text)))
    return Parsed(values, boolean, bad)


class Converter:
    """Turns batches into rows of the typed table, and keeps the profile of every column as it goes.

    `types` has the type of every feature, `kept` the words that are not pooled of the columns that have too many.
    With `rest` a label's values other than the positive one are all negative.
    """

    hint = _HINT
    """What is said beside a value that does not fit the others of its column."""

    def __init__(
        self,
        roles: Roles,
        pairs: Mapping[str, tuple[str, ...]],
        types: Mapping[str, str],
        kept: Mapping[str, pa.Array],
        limits: CategoryLimits,
        missing: MissingTokens,
        faults: Faults,
        decimal: str,
        *,
        rest: bool = False,
        strict: bool = False,
    ) -> None:
        self.roles = roles
        self.pairs = pairs
        self.types = dict(types)
        self.faults = faults
        self.slips = Faults()
        self.text = {
            name: TextColumn(name, limits, declared=name in roles.categorical, kept=kept.get(name))
            for name in roles.features
            if types[name] == CATEGORICAL
        }
        self._missing = missing
        self._decimal = decimal
        self._rest = rest
        self._strict = strict
        numbers = [name for name in roles.features if name not in self.text]
        self.profiles = {
            name: ColumnProfile() for name in [*numbers, *([roles.weight] if roles.weight else [])]
        }
        self.label_values: dict[str, Counter[str]] = {label: Counter() for label in roles.labels}
        self.group_profile = TextProfile()
        self.items = ItemNames()
        self.class_counts = {label: [0, 0] for label in roles.labels}
        self.unlabelled = Faults()
        self.weight_sum = 0.0
        self.rows = 0
        self._odd: dict[str, Counter[str]] = {}

    def evidence(self, name: str) -> Evidence:
        """What the values of a feature look like, those that do not fit included."""
        if name in self.text:
            return self.text[name].evidence()
        profile = self.profiles[name]
        found = weigh(self._odd.get(name, {}))
        if self.types[name] == DATETIME:
            found.dates += profile.known
        elif self.types[name] == BOOLEAN:
            found.booleans += profile.known
        else:
            found.add_numbers(profile.known, profile.distinct, whole=profile.whole)
        return found

    @property
    def odd(self) -> Mapping[str, int]:
        """The features with values that do not fit, each with the number of distinct ones."""
        return {name: len(values) for name, values in self._odd.items()}

    def convert(self, rows: Rows) -> list[pa.Array]:
        """Return the columns of the typed table in its order. Meaningless once there are faults."""
        if len(self.roles.labels) == 1 and not self._strict:
            rows = self._labelled(rows, self.roles.labels[0])
        self.rows += rows.batch.num_rows
        arrays = []
        for name in self.roles.features:
            if name in self.text:
                arrays.append(self.text[name].take(rows, self._missing, self.slips))
            elif self.types[name] == DATETIME:
                arrays.append(pa.array(self._date(rows, name)))
            else:
                arrays.append(pa.array(self._number(rows, name)))
        arrays += [self._label(rows, label) for label in self.roles.labels]
        if self.roles.item:
            arrays.append(self._item(rows, self.roles.item))
        if self.roles.weight:
            arrays.append(self._weight(rows, self.roles.weight))
        if self.roles.group:
            arrays.append(self._group(rows, self.roles.group))
        return arrays

    def _labelled(self, rows: Rows, label: str) -> Rows:
        """Leave out the rows without a label."""
        text = as_text(rows.batch.column(label), self._missing)
        if not text.null_count:
            return rows
        without = _mask(pc.is_null(text))
        first = np.flatnonzero(without)[: self.unlabelled.wanted(label)].tolist()
        described = [rows.fault(row, label, "the label is missing") for row in first]
        self.unlabelled.add_many(label, int(np.count_nonzero(without)), described)
        return rows.keep(~without)

    def _number(self, rows: Rows, name: str) -> Floats:
        """Return the values of a feature, NaN where missing or a slip."""
        column = rows.batch.column(name)
        boolean = self.types[name] == BOOLEAN
        parsed = parse(column, self._missing, self._decimal)
        values = parsed.values
        if not parsed.plain or boolean:
            bad = parsed.bad | (~(parsed.boolean | np.isnan(values)) if boolean else parsed.boolean)
            if bad.any():
                self._slip(
                    rows,
                    name,
                    bad,
                    lambda row: _what_is_wrong(
                        column[row].as_py(), boolean, self.hint, self._decimal
                    ),
                )
                values = np.where(bad, np.nan, values)
        self.profiles[name].update(values)
        return values

    def _date(self, rows: Rows, name: str) -> Floats:
        """Return the seconds since 1970, NaN where missing or a slip."""
        column = rows.batch.column(name)
        if is_dated(column.type):
            values = typed_seconds(column)
        else:
            text = as_text(column, self._missing)
            values, bad = parse_dates(text)
            if bad.any():
                self._slip(
                    rows,
                    name,
                    bad,
                    lambda row: f"{show(text[row].as_py())} is not {DATE}{self.hint}",
                )
        self.profiles[name].update(values)
        return values

    def _slip(self, rows: Rows, name: str, bad: Mask, detail: Callable[[int], str]) -> None:
        """Count values that do not fit their column, and remember what they look like."""
        self._report(rows, name, bad, detail, self.slips)
        texts = as_text(rows.batch.column(name).filter(pa.array(bad)), self._missing)
        odd = self._odd.setdefault(name, Counter())
        found = pc.value_counts(texts)
        for value, count in zip(
            found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True
        ):
            if value in odd or len(odd) < _MOST_ODD:
                odd[value] += count

    def _label(self, rows: Rows, name: str) -> pa.Array:
        pair = self.pairs[name]
        text = as_text(rows.batch.column(name), self._missing)
        if self._rest and len(pair) == 2:
            codes = pc.cast(pc.equal(text, pair[1]), pa.int32())
        else:
            codes = pc.index_in(text, pa.array(pair, pa.string()))
            codes = pc.if_else(pc.is_valid(text), codes, pa.scalar(None, pa.int32()))
        self._note_values(name, text)
        bad = _mask(pc.is_null(codes))
        if bad.any():
            beside = " and ".join(show(value) for value in pair)

            def detail(row: int) -> str:
                value = text[row].as_py()
                if value is None:
                    return "the label is missing"
                return f"{show(value)} is a third value of the label, beside {beside}"

            self._report(rows, name, bad, detail)
        labels = codes.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int8)
        for value, count in enumerate(np.bincount(labels, minlength=2).tolist()):
            self.class_counts[name][value] += count
        return pa.array(labels)

    def _note_values(self, name: str, text: pa.Array) -> None:
        seen = self.label_values[name]
        found = pc.value_counts(text.drop_null())
        for value, count in zip(
            found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True
        ):
            if value in seen or len(seen) < _MOST_LABELS:
                seen[value] += count

    def _weight(self, rows: Rows, name: str) -> pa.Array:
        column = rows.batch.column(name)
        parsed = parse(column, self._missing, self._decimal)
        reported = parsed.bad | parsed.boolean
        self._report(
            rows,
            name,
            reported,
            lambda row: _what_is_wrong(column[row].as_py(), False, "", self._decimal),
        )
        values = np.where(reported, np.nan, parsed.values)
        self.profiles[name].update(values)
        bad = ~(are_weights(values) | reported)
        if bad.any():

            def detail(row: int) -> str:
                return (
                    "a weight must not be missing"
                    if np.isnan(values[row])
                    else f"a weight must be {WEIGHT_RULE}, got {values[row]:g}"
                )

            self._report(rows, name, bad, detail)
        self.weight_sum += float(values[~bad].sum())
        return pa.array(values)

    def _item(self, rows: Rows, name: str) -> pa.Array:
        text = self._names(rows, name, "item")
        self.items.add(rows, text)
        return text

    def _names(self, rows: Rows, name: str, role: str) -> pa.Array:
        text = as_text(rows.batch.column(name), self._missing)
        bad = _mask(pc.is_null(text))
        if bad.any():
            self._report(rows, name, bad, lambda _row: f"the {role} must not be missing")
        unfit = find_unfit(text, MAX_NAME)
        if unfit.any():
            rule = f"the {role} must have at most {MAX_NAME} characters without NUL"
            self._report(rows, name, unfit, lambda row: f"{rule}, got {show(text[row].as_py())}")
        return text

    def _group(self, rows: Rows, name: str) -> pa.Array:
        text = self._names(rows, name, "group")
        counts = pc.value_counts(text.drop_null())
        self.group_profile.update(
            dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True))
        )
        return text

    def _report(
        self,
        rows: Rows,
        name: str,
        bad: Mask,
        detail: Callable[[int], str],
        faults: Faults | None = None,
    ) -> None:
        faults = self.faults if faults is None else faults
        first = np.flatnonzero(bad)[: faults.wanted(name)]
        described = [rows.fault(int(row), name, detail(int(row))) for row in first]
        if count := int(np.count_nonzero(bad)):
            faults.add_many(name, count, described)


def _what_is_wrong(value: object, boolean: bool, hint: str, decimal: str) -> str:
    text = str(value).strip(SPACES)
    if boolean:
        return f"{show(text)} is neither true nor false, as nearly all values are"
    if text.lower() in _INFINITE:
        return f"{show(text)} is not a finite number"
    if text.lower() in {"true", "false"}:
        return f"{show(text)} is not a number{hint}"
    if _matches(with_point(pa.array([text]), decimal)[0].as_py(), NUMBER):
        return f"{show(text)} is beyond the range of a double"
    if decimal == "." and _matches(text, _THOUSANDS):
        return f"{show(text)} is not a number; write thousands without commas: {show(text.replace(',', ''))}"
    other = text.replace(".", ",") if decimal == "," else text.replace(",", ".", 1)
    if other != text and _matches(with_point(pa.array([other]), decimal)[0].as_py(), NUMBER):
        hint = f"; write the decimal {'comma' if decimal == ',' else 'point'}: {show(other)}"
        if decimal == ".":
            hint += ", or say decimal=comma"
    return f"{show(text)} is not a number{hint}"


def _matches(text: str, pattern: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(text), pattern).as_py())


def _floats(column: pa.Array) -> Floats:
    """Return float64 with NaN for null, never a view of Arrow's read-only memory where nulls were filled."""
    values: Floats = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)


def _mask(column: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask
