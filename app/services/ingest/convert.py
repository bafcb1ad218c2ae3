"""From what the reader gave, text or typed, to float64, categories, label codes and group text.

What does not fit is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.services.ingest.categories import CategoryLimits, TextColumn
from app.services.ingest.decimals import as_doubles
from app.services.ingest.dialect import with_point
from app.services.ingest.evidence import TRUTH, Found
from app.services.ingest.faults import BadTable, Faults, brief, show
from app.services.ingest.items import ItemNames
from app.services.ingest.missing import SPACES, MissingTokens
from app.services.ingest.numerals import NUMBER
from app.services.ingest.profile import ColumnProfile, Floats, TextProfile
from app.services.ingest.roles import Roles
from app.services.ingest.rows import MAX_NAME, Rows
from app.services.ingest.text import as_text, find_unfit, is_text
from app.services.times import DATE, is_dated, parse_dates, typed_seconds

Mask = npt.NDArray[np.bool_]

_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
_HINT = (
    ", as nearly all values are: name what stands for a missing value in missing, "
    "or the column in categorical"
)


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
    bad = np.isinf(values)
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
    """Turns batches into rows of the typed table, and keeps the profile of every column as it goes."""

    hint = _HINT
    """What is said beside a value that does not fit the others of its column."""

    def __init__(
        self,
        roles: Roles,
        pairs: Mapping[str, tuple[str, ...]],
        types: Found,
        limits: CategoryLimits,
        missing: MissingTokens,
        faults: Faults,
        decimal: str,
    ) -> None:
        self.roles = roles
        self.pairs = pairs
        self.faults = faults
        self.text = {
            name: TextColumn(name, limits, declared=name in roles.categorical)
            for name in roles.features
            if name in types.text
        }
        self.dates = types.dates
        self._missing = missing
        self._decimal = decimal
        self.profiles = {name: ColumnProfile() for name in self._numeric}
        self.label_profiles = {label: TextProfile() for label in roles.labels}
        self.group_profile = TextProfile()
        self.items = ItemNames()
        self.class_counts = {label: [0, 0] for label in roles.labels}
        self.weight_sum = 0.0
        self._boolean: dict[str, bool] = {}

    @property
    def _numeric(self) -> list[str]:
        numbers = [name for name in self.roles.features if name not in self.text]
        return numbers + ([self.roles.weight] if self.roles.weight else [])

    def type_of(self, name: str) -> str:
        """Return the type that all rows so far agree on; a column of missing values only counts as numeric."""
        if name in self.dates:
            return "datetime"
        return "boolean" if self._boolean.get(name, False) else "numeric"

    def convert(self, rows: Rows) -> list[pa.Array]:
        """Return the columns of the typed table in its order. Meaningless once there are faults."""
        arrays = []
        for name in self.roles.features:
            if name in self.text:
                arrays.append(self.text[name].take(rows, self._missing))
            elif name in self.dates:
                arrays.append(pa.array(self._date(rows, name)))
            else:
                arrays.append(pa.array(self._number(rows, name, self.hint)[0]))
        arrays += [self._label(rows, label) for label in self.roles.labels]
        if self.roles.item:
            arrays.append(self._item(rows, self.roles.item))
        if self.roles.weight:
            arrays.append(self._weight(rows, self.roles.weight))
        if self.roles.group:
            arrays.append(self._group(rows, self.roles.group))
        return arrays

    def _number(self, rows: Rows, name: str, hint: str = "") -> tuple[Floats, Mask]:
        """Return the values, NaN where missing or at fault, and the mask of the faults."""
        column = rows.batch.column(name)
        parsed = parse(column, self._missing, self._decimal)
        boolean = self._boolean.get(name)
        if parsed.plain and not boolean:
            self.profiles[name].update(parsed.values)
            if self.profiles[name].known:
                self._boolean[name] = False
            return parsed.values, parsed.bad
        good = ~(parsed.bad | np.isnan(parsed.values))
        if boolean is None and good.any():
            boolean = bool(parsed.boolean[np.argmax(good)])
            self._boolean[name] = boolean
        mixed = good & (parsed.boolean != boolean) if boolean is not None else ~good & False
        bad = parsed.bad | mixed
        values = parsed.values
        if bad.any():
            self._report(
                rows,
                name,
                bad,
                lambda row: _what_is_wrong(column[row].as_py(), boolean, hint, self._decimal),
            )
            values = np.where(bad, np.nan, values)
        self.profiles[name].update(values)
        return values, bad

    def _date(self, rows: Rows, name: str) -> Floats:
        """Return the seconds since 1970, NaN where missing or at fault."""
        column = rows.batch.column(name)
        if is_dated(column.type):
            values = typed_seconds(column)
        else:
            text = as_text(column, self._missing)
            values, bad = parse_dates(text)
            self._report(
                rows, name, bad, lambda row: f"{show(text[row].as_py())} is not {DATE}{self.hint}"
            )
        self.profiles[name].update(values)
        return values

    def _label(self, rows: Rows, name: str) -> pa.Array:
        pair = self.pairs[name]
        text = as_text(rows.batch.column(name), self._missing)
        codes = pc.index_in(text, pa.array(pair, pa.string()))
        codes = pc.if_else(pc.is_valid(text), codes, pa.scalar(None, pa.int32()))
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
        counts = np.bincount(labels, minlength=2)
        for value, count in enumerate(counts.tolist()):
            self.class_counts[name][value] += count
        self.label_profiles[name].update(dict(zip(pair, counts.tolist(), strict=False)))
        return pa.array(labels)

    def _weight(self, rows: Rows, name: str) -> pa.Array:
        values, reported = self._number(rows, name)
        bad = (np.isnan(values) & ~reported) | (values < 0)
        if bad.any():

            def detail(row: int) -> str:
                return (
                    "a weight must not be missing"
                    if np.isnan(values[row])
                    else f"a weight must be at least 0, got {values[row]:g}"
                )

            self._report(rows, name, bad, detail)
        with np.errstate(over="ignore"):  # a sum beyond a double is refused in the end
            self.weight_sum += float(np.sum(values))
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

    def _report(self, rows: Rows, name: str, bad: Mask, detail: Callable[[int], str]) -> None:
        first = np.flatnonzero(bad)[: self.faults.wanted(name)]
        described = [rows.fault(int(row), name, detail(int(row))) for row in first]
        self.faults.add_many(name, int(np.count_nonzero(bad)), described)


def _what_is_wrong(value: object, boolean: bool | None, hint: str, decimal: str) -> str:
    text = str(value).strip(SPACES)
    if boolean:
        return f"{show(text)} is neither true nor false, as the values above are"
    if text.lower() in _INFINITE:
        return f"{show(text)} is not a finite number"
    if text.lower() in {"true", "false"}:
        return f"{show(text)} is not a number, as the values above are"
    if _looks_numeric(with_point(pa.array([text]), decimal)[0].as_py()):
        return f"{show(text)} is beyond the range of a double"
    other = text.replace(".", ",") if decimal == "," else text.replace(",", ".", 1)
    if other != text and _looks_numeric(with_point(pa.array([other]), decimal)[0].as_py()):
        hint = f"; write the decimal {'comma' if decimal == ',' else 'point'}: {show(other)}"
        if decimal == ".":
            hint += ", or say decimal=comma"
    return f"{show(text)} is not a number{hint}"


def _looks_numeric(text: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(text), NUMBER).as_py())


def _floats(column: pa.Array) -> Floats:
    """Return float64 with NaN for null, never a view of Arrow's read-only memory where nulls were filled."""
    values: Floats = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)


def _mask(column: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask
