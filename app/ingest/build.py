"""Construction of the typed table from an upload, and appending of an upload to a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import TypedDict

from app.ingest.columns import (
    MAX_STRAY,
    TYPE_FRACTION,
    CategoryLimits,
    Converter,
    Evidence,
    UnreadableWords,
    check_type,
    holds_text,
)
from app.ingest.csv import CsvTable
from app.ingest.errors import (
    MAX_COUNTED_ERRORS,
    MAX_ROWS,
    BadTable,
    Errors,
    RowError,
    show,
    too_many_rows,
)
from app.ingest.fields import join_names, split_names
from app.ingest.formats import changes
from app.ingest.hints import group_column, names_entity, time_column
from app.ingest.profile import Floats, Survey, TextProfile, count_queries
from app.ingest.readers import open_source
from app.ingest.repair import with_repair
from app.ingest.roles import (
    LABEL_NAMES,
    assign,
    find_positives,
    is_certain,
    label_type,
    name_class,
    order_pair,
    suggest_labels,
    unknown_positive,
)
from app.ingest.rows import ERRORS_IN_CELLS, MAX_NAME_LENGTH, Rows, Source, errors_of_cells
from app.ingest.value_columns import (
    MissingTokens,
    as_categories,
    count_codes,
    encode,
    is_dated,
    read_column,
)
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC, Notation
from app.ingest.writer import CATEGORIES, TableWriter

Callback = Callable[[int, int, Mapping[str, float]], None]


class FoundOrder(TypedDict, total=False):
    """The order of day and month in dates with slashes, if the values have shown it."""

    dates: str


LABEL, ITEM, WEIGHT, GROUP, QUERY = "label", "item", "weight", "group", "query"
LABELS, DECLARED_NUMERIC, DROP, STRICT = "labels", "numeric", "drop", "strict"
PROTECTED = "protected"
BIPARTITE = "bipartite"
TABLE_FILE = "table.parquet"
PROFILE_FILE = "profile.json"
_LISTED = 10  # names or values in a message
_WRITE_DATES = "write them as 2024-01-31"
_MAX_MISTAKES = 0.01
"""Largest fraction of the rows whose label may be dropped as a mistake: a more frequent value is taken for a class."""
_MAX_COUNTED_VALUES = 100
"""Most values of a label that are shown with their rows."""
_MAX_VALUES = 1000  # of a label, among which the positive one is looked for
_MIN_RUNNING = 3  # rows of a running number: two rise by chance


def ingest(
    payload: Mapping[str, Any], callback: Callback, attempt: type[Build] | None = None
) -> dict[str, Any]:
    """Read an upload; write the typed table and its profile into the work folder of the payload.

    The payload has path, content_type, content_encoding, dataset_kind, label, positive, labels, item, weight, group,
    query, categorical, numeric, drop, protected, missing, strict, dialect (None, or the arguments of `Dialect`),
    workdir and limits (rows, columns, bytes, categories, category_length). Returns the columns of the dataset's row.
    Raises BadTable with every error, line and column. Only the files in the payload are read and written.
    """
    kind = attempt or Build

    def read(given: Mapping[str, Any]) -> dict[str, Any]:
        with ExitStack() as stack:
            missing = MissingTokens(given["missing"])
            return kind(open_source(given, stack, missing), missing, given, at_end).run()

    def at_end(_done: int, total: int, rows: Mapping[str, float]) -> None:
        callback(total, total, rows)

    source: Source | None = None
    with system_memory(), ExitStack() as stack:
        try:
            missing = MissingTokens(payload["missing"])
            source = open_source(payload, stack, missing)
            build = kind(source, missing, payload, callback)
            return describe_table(build, build.run())
        except BadTable as refusal:
            if isinstance(source, CsvTable) and (line := source.line_of_header()) is not None:
                refusal.suggest(f"; the header seems to be line {line}: delete the lines above", {})
                raise
            raise with_repair(payload, refusal, read) from refusal


@contextmanager
def system_memory() -> Iterator[None]:
    """Make Arrow allocate from the system: its own pools return their pages after each batch and request new ones."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def describe_table(build: Build, found: dict[str, Any]) -> dict[str, Any]:
    features = [c["name"] for c in found["columns"] if c["role"] in (_FEATURE, PROTECTED)]
    table = build.path
    # Everything is read; only the survey is left.
    progress = partial(build.report, found["rows"], is_read=True)
    if build.query is not None:
        found["queries"] = count_queries(table, build.query, found["label"])
        progress()
    with ThreadPoolExecutor(1) as aside:
        sha256 = aside.submit(hash_file, table)
        types = {column["name"]: column["type"] for column in found["columns"]}
        profile = build.survey.describe(
            table,
            features,
            progress,
            types,
            time_column(found["columns"]),
            weight=build.weight,
            group=build.group or build.query,
        )
    table.with_name(PROFILE_FILE).write_bytes(orjson.dumps(profile))
    return found | {
        "profile": PROFILE_FILE,
        "sha256": sha256.result(),
        "sheet": build.source.sheet,
        "sheets": build.source.sheets,
    }


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Build:
    """Builds the typed table from one source.

    The types of the columns are guessed from the first rows. After all rows are read, the types and the frequent
    words are known; if a guess was wrong or a column has too many words, the table is read again.
    """

    converter = Converter
    rows_before = 0
    """Rows of the parent table, which come before those of the upload."""
    metadata: Mapping[str, str] | None = None
    """What the file says beside its columns."""

    def __init__(
        self,
        source: Source,
        missing: MissingTokens,
        payload: Mapping[str, Any],
        callback: Callback,
    ) -> None:
        self.source = source
        self.notation = source.notation
        self._strict: bool = payload[STRICT]
        self._cell_errors = [] if self._strict else errors_of_cells(source)
        self._missing = MissingTokens([*missing.codes.tokens, *self._cell_errors])
        self._tokens = missing.codes.tokens
        self._payload = payload
        self._callback = callback
        self._errors = Errors()
        self._is_written = False
        roles = (
            LABEL,
            LABELS,
            ITEM,
            WEIGHT,
            GROUP,
            QUERY,
            CATEGORICAL,
            DECLARED_NUMERIC,
            DROP,
            PROTECTED,
        )
        given = {role: payload[role] for role in roles}
        # A column without a name is mostly a row index, or comes from a comma at the end of lines.
        named = {
            name
            for value in given.values()
            for name in ([value] if isinstance(value, str) else value or ())
        }
        self._nameless = [
            name for name in source.names if name in source.unnamed and name not in named
        ]
        given[DROP] = [*(given[DROP] or ()), *self._nameless]
        given[LABEL] = self._name_label(given)
        try:
            self._roles = assign(source.names, kind=payload["dataset_kind"], **given)
        except BadTable as refusal:
            if payload[LABEL] is not None and payload[LABEL] not in source.names:
                self._suggest_label(refusal, payload[LABEL])
            raise
        self.path = Path(payload["workdir"]) / TABLE_FILE
        self._limits = CategoryLimits(
            payload["limits"]["categories"], payload["limits"]["category_length"]
        )

    def _name_label(self, given: Mapping[str, Any]) -> str | None:
        """Return the declared label; else a column with a usual name of labels; else the last column with two values if
        the last of all is a running number; else the last column.
        """
        if given[LABEL] or given[LABELS] or self._payload["dataset_kind"] != BIPARTITE:
            return cast(str | None, given[LABEL])
        taken = {
            *(given[WEIGHT], given[GROUP], given[QUERY]),
            *given[DROP],
            *(given[PROTECTED] or ()),
        }
        free = [name for name in self.source.names if name not in taken]
        if not free or not set(LABEL_NAMES).isdisjoint(free) or not self._is_running(free[-1]):
            return None
        return next(iter(suggest_labels(None, free[:-1], self._first_values())), None)

    def _is_running(self, name: str) -> bool:
        rows = next(iter(self.source.batches(Errors(), [name])), None)
        if rows is None or rows.batch.num_rows < _MIN_RUNNING:
            return False
        try:
            values, bad = read_column(rows.batch.column(name), NUMERIC, self._missing)
        except (BadTable, pa.ArrowException):  # a type that is refused when the table is read
            return False
        return not bad.any() and bool(np.all(values % 1 == 0) and np.all(np.diff(values) > 0))

    @property
    def query(self) -> str | None:
        return self._roles.query

    @property
    def group(self) -> str | None:
        return self._roles.group

    @property
    def weight(self) -> str | None:
        return self._roles.weight

    def report(self, rows: int, *, is_read: bool = False) -> None:
        """Report progress; `is_read`: the source is read to its end."""
        done, total = self.source.progress()
        self._callback(total if is_read else done, total, {"rows": rows})

    def run(self) -> dict[str, Any]:
        """Raises BadTable."""
        if self.source.schema is not None:
            self._check_types(self.source.schema)
        pairs = self._find_pairs()
        types, kept, settled = self._known_types(), dict[str, pa.Array](), False
        while True:
            converter = self._read(pairs, types, kept)
            if self._errors.total:
                self._check_value_errors(converter)
                raise self._refusal(converter)
            # All rows were seen once: the types are final, or two readings could differ for ever.
            order = self.notation.dates
            if not settled:
                self._settle_order(converter)
            found = types if settled else self._settle_types(converter, self._roles.features)
            settled = True
            more = {
                name: words
                for name, column in converter.text.items()
                if name not in kept and (words := column.most_frequent()) is not None
            }
            as_read = (found, self.notation.dates) == (converter.types, order)
            if as_read and not more and self._is_written:
                break
            types, kept = found, kept | more
        return self._conclude(converter)

    def _conclude(self, converter: Converter) -> dict[str, Any]:
        """Check everything that was read, and describe the table. Raises BadTable."""
        if self._roles.item:
            converter.items.report_repeated(self._roles.item, self._errors)
        self._check_value_errors(converter)
        if self._errors.total:
            raise self._refusal(converter)
        self._check_whole(converter)
        identifiers = self._identifiers(converter)
        if set(self._roles.features) <= {*identifiers, *self._roles.protected}:
            refusal = _no_features(identifiers)
            for warning in self._warnings(converter, identifiers):
                if (said := warning.get("suggestion")) is not None:
                    refusal.suggest(f"; {show(warning['column'])} is {warning['detail']}", said)
                    break
            raise refusal
        return self._result(converter, identifiers)

    def _known_types(self) -> dict[str, str]:
        """Return the types that do not depend on values: declared ones, and those of typed columns."""
        roles, schema = self._roles, self.source.schema
        types = dict.fromkeys(roles.categorical, CATEGORICAL) | dict.fromkeys(
            roles.numeric, NUMERIC
        )
        if schema is None:
            return types
        typed = dict(zip(self.source.names, schema.types, strict=True))
        for name in roles.features:
            if name in types or holds_text(typed[name]):
                continue
            if is_dated(typed[name]):
                types[name] = DATETIME
            else:
                types[name] = BOOLEAN if _is_boolean(typed[name]) else NUMERIC
        return types

    def _settle_types(self, converter: Converter, names: Iterable[str]) -> dict[str, str]:
        known = self._known_types()
        return {
            name: known[name] if name in known else self._type_of(converter.evidence(name))
            for name in names
        }

    def _type_of(self, evidence: Evidence) -> str:
        """In a typed file, text is never a number, even if it consists of digits."""
        read = evidence.type if self.source.schema is None else evidence.text_type
        return read(self.notation.dates)

    def _settle_order(self, converter: Converter) -> None:
        known = self._known_types()
        names = (name for name in self._roles.features if name not in known)
        self._take_order(map(converter.evidence, names))

    def _take_order(self, evidences: Iterable[Evidence]) -> None:
        """Use the order of day and month that the values show, unless one is declared. A table has one order."""
        if self.source.notation.dates is None:
            shown = {orders[0] for each in evidences if len(orders := each.orders()) == 1}
            self.notation = replace(self.notation, dates=shown.pop() if len(shown) == 1 else None)

    def _first_types(self, rows: Rows, types: Mapping[str, str]) -> dict[str, str]:
        found: dict[str, Evidence] = {}
        for name in self._roles.features:
            if name in types:
                continue
            column, evidence = rows.batch.column(name), Evidence(self.notation)
            if pa.types.is_floating(column.type):
                evidence.add_numbers(len(column) - column.null_count, 1, whole=False)
            else:
                coded = encode(column, self._missing)
                counts = count_codes(coded)
                evidence.weigh(coded.dictionary.filter(pa.array(counts > 0)), counts[counts > 0])
            found[name] = evidence
        if found:
            self._take_order(found.values())
        return {**types, **{name: self._type_of(each) for name, each in found.items()}}

    def _read(
        self,
        pairs: Mapping[str, tuple[str, ...]],
        types: Mapping[str, str],
        kept: Mapping[str, pa.Array],
    ) -> Converter:
        """Read all rows; write the table until it is clear that it must be rewritten. Statistics: in the converter."""
        count = 0
        converter: Converter | None = None
        with ExitStack() as stack:
            writer: TableWriter | None = None
            fields: list[pa.Field] = []
            for rows in self._batches(types):
                if converter is None:
                    converter = self._make_converter(pairs, self._first_types(rows, types), kept)
                    fields = self._fields(converter)
                    writer = stack.enter_context(TableWriter(self.path, fields, self.metadata))
                arrays = converter.convert(rows)
                count += rows.batch.num_rows
                if count > self._payload["limits"]["rows"]:
                    raise too_many_rows(self._payload["limits"]["rows"], setting=MAX_ROWS)
                value_errors = converter.value_errors.total if self._strict else 0
                if self._errors.total + value_errors >= MAX_COUNTED_ERRORS:
                    break
                if writer is not None and (
                    self._errors.total or self._is_void(converter, types, kept)
                ):
                    stack.close()
                    writer = None
                if writer is not None:
                    writer.write(arrays)
                    if count == rows.batch.num_rows:  # they show which columns to skip
                        self.survey = self._make_survey(converter)
                    names = (field.name for field in fields)
                    self.survey.add(dict(zip(names, arrays, strict=True)), len(arrays[0]))
                self.report(count)
            self._is_written = writer is not None
        if self._errors.total:
            if converter is None:
                raise self._errors.summarise()
            return converter
        self._check_rows(0 if converter is None else converter.rows + converter.unlabelled.total)
        assert converter is not None
        return converter

    def _batches(self, types: Mapping[str, str]) -> Iterator[Rows]:
        columns = [name for name in self.source.names if name not in self._roles.dropped]
        numeric = [name for name in self._roles.features if types.get(name, NUMERIC) == NUMERIC]
        return self.source.batches(self._errors, columns, numeric)

    def _check_rows(self, count: int) -> None:
        if count == self.rows_before:
            raise BadTable("the table has a header but no rows", code="no_rows")

    def _is_void(
        self, converter: Converter, types: Mapping[str, str], kept: Mapping[str, pa.Array]
    ) -> bool:
        """Return True if the rows so far show that the table must be read again with other types or categories."""
        doubted = [name for name in (*converter.odd, *converter.padded) if name not in types]
        return any(
            kind != converter.types[name]
            for name, kind in self._settle_types(converter, doubted).items()
        ) or any(
            column.distinct > self._limits.number and not column.is_identifier()
            for name, column in converter.text.items()
            if name not in kept
        )

    def _make_converter(
        self,
        pairs: Mapping[str, tuple[str, ...]],
        types: Mapping[str, str],
        kept: Mapping[str, pa.Array],
    ) -> Converter:
        return self.converter(
            self._roles,
            pairs,
            types,
            kept,
            self._limits,
            self._missing,
            self._errors,
            self.notation,
            order_found=self.notation.dates != self.source.notation.dates,
            rest=self._takes_rest(),
            strict=self._strict,
        )

    def _make_survey(self, converter: Converter) -> Survey:
        return self._survey_of(self._surveyed(converter), self.source.rows)

    def _surveyed(self, converter: Converter) -> list[str]:
        identifiers = self._identifiers(converter)
        return [name for name in self._roles.features if name not in identifiers]

    def _survey_of(self, features: Sequence[str], rows: int | None) -> Survey:
        alone = self._payload[LABELS] is None and not self._roles.graded and self._roles.labels
        return Survey(features, self._roles.labels[0] if alone else None, rows)

    def _fields(self, converter: Converter) -> list[pa.Field]:
        roles = self._roles
        special = (
            *((label, LABEL, pa.int8()) for label in roles.labels),
            (roles.item, ITEM, pa.string()),
            (roles.weight, WEIGHT, pa.float64()),
            (roles.group, GROUP, pa.string()),
            (roles.query, QUERY, pa.string()),
        )
        return [
            pa.field(name, CATEGORIES if name in converter.text else pa.float64())
            for name in roles.features
        ] + [pa.field(name, kind, metadata={"role": role}) for name, role, kind in special if name]

    def _takes_rest(self) -> bool:
        """Return True if every label value other than the positive one is negative."""
        return self._payload["positive"] is not None and not self._strict

    def _find_pairs(self) -> Mapping[str, tuple[str, ...]]:
        """Return the values of each label, the negative one first; fewer than two if the file does not have two."""
        positive = self._payload["positive"]
        if self._roles.graded:
            return {}
        return {
            label: self._order(list(values), positive)
            for label, values in self._label_values().items()
        }

    def _order(self, values: Sequence[str], positive: str | None) -> tuple[str, ...]:
        """Return the negative value and the name of the positive class, then the values of a class of several."""
        if len(values) < 2:
            return tuple(values)
        if positive is None:
            return order_pair(values[:2])
        known = values if self._takes_rest() or len(split_names(positive)) > 1 else values[:2]
        chosen = find_positives(known, positive)
        if chosen is None:
            raise unknown_positive(known, positive)
        negative = next((value for value in known if value not in chosen), None)
        if negative is None:
            raise BadTable(
                f"positive must not include every value of the label, got {show(positive)}",
                column=self._roles.labels[0],
                code="one_class",
            )
        return (
            (negative, *chosen)
            if len(chosen) == 1
            else (negative, name_class(known, chosen, positive), *chosen)
        )

    def _first_values(self) -> dict[str, list[str]]:
        rows = next(iter(self.source.batches(Errors())), None)
        found: dict[str, list[str]] = {}
        if rows is None:
            return found
        for name in self.source.names:
            with suppress(BadTable):  # a column of another type than text
                coded = encode(rows.batch.column(name), self._missing)
                found[name] = coded.dictionary.drop_null().to_pylist()
        return found

    def _check_types(self, schema: pa.Schema) -> None:
        types = dict(zip(self.source.names, schema.types, strict=True))
        wrong: list[BadTable] = []
        undeclared = [n for n in self._roles.features if n not in self._roles.categorical]
        numbers = [self._roles.weight] if self._roles.weight else []
        numbers += self._roles.labels if self._roles.graded else ()
        for name in [*undeclared, *numbers]:
            try:
                check_type(name, types[name], text=name not in numbers)
            except BadTable as error:
                wrong.append(error)
        if wrong:
            names = ", ".join(show(str(error.errors[0]["column"])) for error in wrong[:10])
            refusal = BadTable(
                wrong[0].detail, column=wrong[0].errors[0]["column"], code=wrong[0].code
            )
            if len(wrong) > 1:
                refusal.detail += f" ({len(wrong)} such columns: {names})"
            refusal.errors = [error.errors[0] for error in wrong]
            refusal.total = len(wrong)
            odd = [
                str(error["column"]) for error in refusal.errors if error["column"] not in numbers
            ]
            if odd:
                listed = ",".join([*sorted(self._roles.dropped), *odd])
                refusal.suggest(f"; drop={listed} ignores it", {"drop": listed}, column=odd[0])
            raise refusal

    def _check_value_errors(self, converter: Converter) -> None:
        """Accept rare value errors as missing values, unless the caller is strict."""
        identifiers = self._identifiers(converter)
        for name, count in converter.value_errors.counts.items():
            if name is None or name in identifiers:
                continue
            known = converter.evidence(name).known
            most = (1 - TYPE_FRACTION) * known
            if name in self._roles.numeric and count > most and not self._strict:
                self._errors.add_many(name, count, [self._no_numbers(converter, name, count)])
            elif self._strict or (name not in converter.text and count > most):
                self._errors.add_many(name, count, converter.value_errors.of(name))
        if self._strict:
            self._errors.add_all(converter.unlabelled)

    def _no_numbers(self, converter: Converter, name: str, count: int) -> RowError:
        first = converter.value_errors.of(name)[0]
        shown = ", ".join(map(show, converter.odd_values(name)[:3]))
        detail = (
            f"{count} of {converter.evidence(name).known} values of this numeric column are not numbers, such as "
            f"{shown}; list the strings for missing values in missing, or the column in categorical"
        )
        return replace(first, detail=detail)

    def _identifiers(self, converter: Converter) -> list[str]:
        """Return the columns that are excluded from the features because each value names one row: nearly unique text,
        or unique whole numbers in a column named like an identifier.
        """
        return [
            name
            for name in self._roles.features
            if name not in self._roles.protected
            and (
                converter.text[name].is_identifier()
                if name in converter.text
                else self._has_numeric_ids(converter, name)
            )
        ]

    def _has_numeric_ids(self, converter: Converter, name: str) -> bool:
        return (
            converter.types[name] == NUMERIC
            and name not in self._roles.numeric
            and names_entity(name)
            and converter.profiles[name].is_identifier()
        )

    def _refusal(self, converter: Converter) -> BadTable:
        """Summarise the collected errors, and suggest fields with which the table would be valid."""
        refusal = self._errors.summarise()
        for encoding in ("latin-1", "windows-1252"):  # which lacks five bytes
            about = f"encoding={encoding}"
            if any(about in error["detail"] for error in refusal.errors):
                refusal.suggest("", {"encoding": encoding}, about=about)
                break
        wrong = [
            name
            for name in dict.fromkeys(error.get("column") for error in refusal.errors)
            if name is not None and converter.propose_notations(name)
        ]
        for more in (converter.text, ()):  # includes numbers with separators that are read as words
            if wrong and (
                said := self._number_notation(converter.propose_notations(*wrong, *more))
            ):
                refusal.suggest("", said, column=wrong[0])
                break
        label = self._roles.labels[0] if len(self._roles.labels) == 1 else None
        values: Mapping[str, int] = converter.label_values.get(label or "", {})
        if label is not None and any("third value" in e["detail"] for e in refusal.errors):
            shown = ", ".join(map(show, list(values)[:_LISTED])) + (
                ", …" if len(values) > _LISTED else ""
            )
            # A value in very few rows is an error, such as a total or a second header.
            common = [
                value for value in values if values[value] > _MAX_MISTAKES * sum(values.values())
            ]
            if len(common) == 2:
                suggestion = {"positive": order_pair(common)[1]}
            elif common:
                suggestion = {"positive": min(common, key=lambda value: (values[value], value))}
            else:  # the label is a number to be predicted
                suggestion = {}
            refusal.suggest(
                f"; its values are {shown}; set positive to one of them, and all others count as negative",
                suggestion,
                about="third value",
                values=count_values(values),
            )
            if not self._payload[LABEL] and len(values) > _LISTED:
                self._suggest_label(refusal, None, label)
        return refusal

    def _suggest_label(self, refusal: BadTable, wanted: str | None, taken: str = "") -> None:
        names = [name for name in self.source.names if name != taken]
        likely = suggest_labels(wanted, names, self._first_values())
        if likely:
            listed = ", ".join(map(show, likely))
            refusal.suggest(f"; likely labels are {listed}", {"label": likely[0]})

    def _label_values(self) -> dict[str, dict[str, None]]:
        labels, positive = self._roles.labels, self._payload["positive"]
        seen: dict[str, dict[str, None]] = {label: {} for label in labels}

        def settled(values: Mapping[str, None]) -> bool:
            if positive is None:
                return len(values) >= 2
            chosen = find_positives(values, positive)
            return chosen is not None and len(values) > len(chosen)

        aside = Errors()  # rows are checked when all columns are read
        for rows in self.source.batches(aside, labels) if labels else ():
            for label, values in seen.items():
                if not settled(values) and len(values) < _MAX_VALUES:
                    text = as_categories(rows.batch.column(label), self._missing)
                    found = pc.unique(text).drop_null().to_pylist()
                    values.update(dict.fromkeys(found[:_MAX_VALUES]))
            if all(map(settled, seen.values())):
                break
        for label, values in seen.items():
            for value in list(values)[:2]:
                self._check_label_text(label, value)
        return seen

    def _check_label_text(self, label: str, value: str) -> None:
        """Raise BadTable for a label value that is too long or contains NUL."""
        if len(value) > MAX_NAME_LENGTH or "\0" in value:
            raise BadTable(
                f"a label must be at most {MAX_NAME_LENGTH} characters without NUL, got {show(value)}",
                column=label,
            )

    def _check_whole(self, converter: Converter) -> None:
        """Raise BadTable unless the whole table has two label values (or grades) and a positive sum of weights."""
        for label, pair in converter.pairs.items():
            if len(pair) < 2:
                only = f"only the value {show(pair[0])}" if pair else "no value"
                raise BadTable(
                    f"the label {show(label)} must have two different values, got {only} in "
                    f"{converter.rows + converter.unlabelled.total} rows",
                    column=label,
                    code="one_class",
                )
        if self._roles.graded and sum(map(bool, converter.grade_counts)) < 2:
            graded = self._roles.labels[0]
            grades = [grade for grade, count in enumerate(converter.grade_counts) if count]
            got = f"only {grades[0]}" if grades else "none"
            raise BadTable(
                f"the label {show(graded)} must have two different grades, got {got} "
                f"in {converter.rows + converter.unlabelled.total} rows",
                column=graded,
                code="one_class",
            )
        if self._roles.weight and not converter.weight_sum > 0:
            raise BadTable(
                f"the sum of the weights must be above 0, got {converter.weight_sum:g}",
                column=self._roles.weight,
            )

    def _result(self, converter: Converter, identifiers: Collection[str]) -> dict[str, Any]:
        labels = [
            {
                "name": label,
                "negative": self._negative(converter, label),
                "positive": pair[1],
                "negatives": converter.class_counts[label][0],
                "positives": converter.class_counts[label][1],
            }
            for label, pair in converter.pairs.items()
        ]
        single = labels[0] if self._payload[LABELS] is None and labels else {}
        return {
            "file": TABLE_FILE,
            "rows": converter.rows,
            "negatives": single.get("negatives"),
            "positives": single.get("positives"),
            "label": self._roles.labels[0] if self._roles.graded else single.get("name"),
            "negative": single.get("negative"),
            "positive": single.get("positive"),
            "labels": None if self._payload[LABELS] is None else labels,
            "item": self._roles.item,
            "queries": None,
            "grades": _grades(converter) if self._roles.graded else None,
            "columns": (columns := self._columns(converter, identifiers)),
            "warnings": [
                *self._warnings(converter, identifiers),
                *self._propose_group(columns, converter.rows),
            ],
            **self._found_dialect(),
        }

    def _found_dialect(self) -> dict[str, Any]:
        """Return the dialect with the sheet, if there was a choice, and the order of dates, if the values show it."""
        found: dict[str, Any] = {**self._found_order()}
        if len(self.source.sheets or ()) > 1:
            found["sheet"] = self.source.sheet
        return {"dialect": {**(self._payload["dialect"] or {}), **found}} if found else {}

    def _found_order(self) -> FoundOrder:
        order = self.notation.dates
        return {} if order is None or order == self.source.notation.dates else {"dates": order}

    def _number_notation(self, notations: Sequence[Notation]) -> dict[str, str]:
        """Return the upload fields for the notation, if only one is possible."""
        return changes(notations[0], self.notation) if len(notations) == 1 else {}

    def _negative(self, converter: Converter, label: str) -> str:
        positive, *several = converter.pairs[label][1:]
        positives = {positive, *several}
        others = [value for value in converter.label_values[label] if value not in positives]
        return (
            converter.pairs[label][0] if len(others) <= 1 else f"not {positive}"[:MAX_NAME_LENGTH]
        )

    def _describe_label(self, converter: Converter, label: str) -> dict[str, Any]:
        """Return the profile of a label: its values in the upload, and whether the positive one was guessed."""
        negative, *positives = converter.pairs[label]
        guessed = self._payload["positive"] is None and not is_certain(negative, positives[0])
        values = count_values(converter.label_values[label], positives[1:] or positives)
        return {"values": values, "guessed": guessed}

    def _warnings(self, converter: Converter, identifiers: Collection[str]) -> list[dict[str, Any]]:
        """Each warning tells how values that did not fit were handled, and which upload field changes that."""
        found = []
        for label in self._roles.labels:
            if converter.unlabelled.total:
                first = converter.unlabelled.of(label)[0]
                count = converter.unlabelled.total
                rows = (
                    "1 row without a label is"
                    if count == 1
                    else f"{count} rows without a label are"
                )
                detail = f"{rows} ignored; the first is {_describe_row(first)}"
                found.append(
                    _warning("rows_without_label", label, detail, count, STRICT, first.line)
                )
            pair = converter.pairs.get(label, ())
            negatives = len(converter.label_values[label].keys() - set(pair[1:]))
            if negatives > 1:
                detail = f"{negatives} values other than {show(pair[1])} count as negative"
                found.append(_warning("label_of_many_values", label, detail, negatives, "positive"))
        why = (
            "its name in the header is empty, like that of"
            if self.source.schema is None
            else "it is"
        )
        for unnamed in self._nameless:
            detail = (
                f"ignored, because {why} a row index; to use it as a feature, list it in numeric or "
                "categorical"
            )
            found.append(
                _warning("column_without_name", unnamed, detail, converter.rows, DECLARED_NUMERIC)
            )
        for column_of_ids in identifiers:
            if column_of_ids not in converter.text:
                detail = (
                    "ignored, because its name is that of an identifier and every row has another whole number; to use "
                    "it as a feature, list it in numeric"
                )
                known = converter.profiles[column_of_ids].known
                found.append(_warning("identifier", column_of_ids, detail, known, DECLARED_NUMERIC))
        for place, faulty in self.source.error_cells.items():
            if self._cell_errors and place in {*self._roles.features, *self._roles.labels}:
                found.append(
                    _warning(
                        ERRORS_IN_CELLS, place, faulty.detail, faulty.cells, STRICT, faulty.line
                    )
                )
        for name, count in converter.value_errors.counts.items():
            if name is None or name in identifiers:
                continue
            first = converter.value_errors.of(name)[0]
            values = "1 value is" if count == 1 else f"{count} values are"
            detail = (
                f"{values} counted as missing; the first is {_describe_row(first)}: {first.detail}"
            )
            if name in converter.text:
                detail += " (RANKWRIGHT_MAX_CATEGORY_LENGTH is the limit)"
            said = self._number_notation(converter.propose_notations(name))
            said = said or self._missing_words(converter, name)
            field = next(reversed(said), STRICT)
            found.append(
                _warning("values_taken_for_missing", name, detail, count, field, first.line, said)
            )
        padded = [name for name in converter.padded if name not in self._roles.numeric]
        for name in padded:
            zeros = converter.zeros[name]
            detail = (
                f"{zeros.rows} {'number has' if zeros.rows == 1 else 'numbers have'} leading zeros, such as "
                f"{show(zeros.example)}, which are lost; if they are codes, list the column in categorical"
            )
            said = {CATEGORICAL: join_names([*sorted(self._roles.categorical), *padded])}
            found.append(
                _warning("leading_zeros", name, detail, zeros.rows, CATEGORICAL, None, said)
            )
        for name in self._roles.features:
            if name in self._roles.numeric or converter.types.get(name, NUMERIC) != NUMERIC:
                continue
            profile = converter.profiles.get(name)
            if profile is not None and (day := profile.written_day()) is not None:
                detail = (
                    f"read as numbers although all values look like dates: {day}; {_WRITE_DATES}, or list the column "
                    "in numeric"
                )
                found.append(
                    _warning("dates_not_read", name, detail, profile.known, DECLARED_NUMERIC)
                )
        stray = self._stray_words(converter)
        for name, column in converter.text.items():
            if self.source.schema is None and (codes := column.codes()) is not None:
                detail = (
                    f"read as categories, because all values have {codes.longest} digits and some have leading "
                    f"zeros, such as {show(codes.example)}; if they are numbers, list the column in numeric"
                )
                said = {DECLARED_NUMERIC: join_names([*sorted(self._roles.numeric), name])}
                found.append(
                    _warning(
                        "leading_zeros", name, detail, codes.rows, DECLARED_NUMERIC, None, said
                    )
                )
            if (odd := stray.get(name)) is not None:
                found.append(self._warn_of_words(name, odd, stray.values()))
            lost = column.coded_missing() if self._payload["missing"] is None else None
            if lost is not None and lost[0] not in self._cell_errors:
                found.append(self._warn_of_code(name, *lost))
            if (number := column.grouped_number()) is not None:
                said = self._number_notation(number[1])
                how = f"set {_spelled(said)}" if said else "write the numbers without them"
                detail = (
                    f"read as categories although nearly all values look like numbers: {show(number[0])} has "
                    f"thousands separators; {how}, or list the column in categorical"
                )
                field = next(reversed(said), CATEGORICAL)
                found.append(
                    _warning(
                        "numbers_with_thousands", name, detail, column.known, field, None, said
                    )
                )
            if (unread := column.unread_date()) is not None:
                text, orders = unread
                said = {"dates": orders[0]} if len(orders) == 1 else {}
                why = (
                    "no value shows which number is the day"
                    if not said
                    else "other columns have the opposite order"
                    if self.notation.dates is None
                    else f"the table is read with dates={self.notation.dates}"
                )
                detail = (
                    f"read as categories although nearly all values look like dates: {show(text)}; {why}: set "
                    f"{' or '.join(f'dates={order}' for order in orders)}, or list the column in categorical"
                )
                found.append(
                    _warning(
                        "dates_of_unknown_order", name, detail, column.known, "dates", None, said
                    )
                )
            if (date := column.other_date()) is not None:
                detail = (
                    f"read as categories although nearly all values look like dates: {show(date)}; {_WRITE_DATES}, or "
                    "list the column in categorical"
                )
                found.append(_warning("dates_not_read", name, detail, column.known, CATEGORICAL))
            if name in identifiers:
                detail = (
                    f"ignored, because nearly every row has a different value ({column.distinct} of "
                    f"{column.known}); to use it as a feature, list it in categorical"
                )
                found.append(_warning("identifier", name, detail, column.distinct, CATEGORICAL))
            elif column.distinct > self._limits.number:
                rarest = column.distinct - self._limits.number
                detail = (
                    f"{column.distinct} different categories are more than the {self._limits.number} allowed by "
                    f"RANKWRIGHT_MAX_CATEGORIES: the {rarest} rarest categories, in {column.pooled} rows, count as "
                    "missing; to ignore the column, list it in drop"
                )
                found.append(_warning("words_pooled", name, detail, rarest, DROP))
        order = {name: number for number, name in enumerate(self.source.names)}
        return sorted(found, key=lambda warning: order[warning["column"]])

    def _missing_words(self, converter: Converter, name: str) -> dict[str, str]:
        """Suggest to declare a column's erroneous values as missing, if they are few words without a digit."""
        words = converter.odd_values(name)
        if not 0 < len(words) <= MAX_STRAY or any(re.search("[0-9]", word) for word in words):
            return {}
        return {"missing": join_names([*self._tokens, *sorted(words)])}

    def _propose_group(
        self, columns: Sequence[Mapping[str, Any]], rows: int
    ) -> list[dict[str, Any]]:
        """Warn that a column seems to group the rows, unless a group column is declared."""
        if self._roles.group is not None or self._roles.query is not None:
            return []
        name = group_column(columns, rows)
        if name is None:
            return []
        detail = (
            f"{show(name)} seems to identify what a row belongs to, and its values repeat; rows with the "
            "same value may be on both sides of a split, which makes the metrics too optimistic: set "
            f"group={name} if this is the case"
        )
        return [_warning("rows_of_groups", name, detail, rows, GROUP, None, {GROUP: name})]

    def _stray_words(self, converter: Converter) -> dict[str, UnreadableWords]:
        """Return the columns that became categorical because of a few words among numbers or dates."""
        of_text = self.source.schema is not None
        found = {
            name: column.stray_words(of_text=of_text) for name, column in converter.text.items()
        }
        return {name: stray for name, stray in found.items() if stray is not None}

    def _warn_of_words(
        self, name: str, odd: UnreadableWords, all_odd: Iterable[UnreadableWords]
    ) -> dict[str, Any]:
        """Warn of a few words among numbers, and suggest to declare them as missing, except those with a digit ("16+").
        A table has one list of missing words, so the warnings of all columns suggest the same.
        """
        words = {word for each in all_odd for word in each.words}
        missing = sorted(word for word in words if not re.search("[0-9]", word))
        said = {"missing": join_names([*self._tokens, *missing])}
        field, how = "missing", f"set missing={said['missing']} if it stands for a missing value"
        if not set(odd.words).issubset(missing):
            said, how = {}, "list the strings for missing values in missing"
            if odd.what == "numbers":
                field, how = (
                    DECLARED_NUMERIC,
                    "list the column in numeric to count all of them as missing",
                )
        which = ", ".join(map(show, odd.words))
        rows = "1 row" if odd.rows == 1 else f"{odd.rows} rows"
        detail = (
            f"read as categories although {odd.distinct - len(odd.words)} of {odd.distinct} different "
            f"values are {odd.what}: {which} in {rows}; {how}, or list the column in categorical"
        )
        return _warning("words_among_numbers", name, detail, odd.rows, field, None, said)

    def _warn_of_code(self, name: str, word: str, rows: int) -> dict[str, Any]:
        others = [token for token in self._tokens if token.lower() != word.lower()]
        said = {"missing": join_names(others)} if others else {}
        how = f"set missing={said['missing']}" if said else "set missing to other words"
        values = "1 row" if rows == 1 else f"{rows} rows"
        detail = f"{show(word)} in {values} counts as missing, but is written like the categories; if it is one, {how}"
        return _warning("missing_word_like_code", name, detail, rows, "missing", None, said)

    def _columns(self, converter: Converter, identifiers: Collection[str]) -> list[dict[str, Any]]:
        roles = self._roles
        columns = []
        for name in self.source.names:
            feature = PROTECTED if name in roles.protected else _FEATURE
            column: dict[str, Any] = {"name": name, "type": "numeric", "role": feature}
            if name in roles.dropped:
                column |= {"type": None, "role": "dropped", "missing": None}
            elif name in converter.text:
                role = _IDENTIFIER if name in identifiers else feature
                column |= {"type": "categorical", "role": role} | converter.text[name].summary()
            elif name in roles.labels and roles.graded:
                of_label = TextProfile()
                of_label.update({str(it["grade"]): it["rows"] for it in _grades(converter)})
                column |= {"role": LABEL} | of_label.summary()
            elif name in roles.labels:
                values = (self._negative(converter, name), converter.pairs[name][1])
                column |= {"type": label_type(values), "role": LABEL}
                column |= self._describe_label(converter, name)
                of_label = TextProfile()
                of_label.update(dict(zip(values, converter.class_counts[name], strict=True)))
                column |= of_label.summary()
            elif name == roles.item:
                column |= {"type": "categorical", "role": ITEM} | converter.items.summary()
            elif name == roles.group:
                column |= {"type": "categorical", "role": GROUP} | converter.group_profile.summary()
            elif name == roles.query:
                column |= {"type": "categorical", "role": QUERY} | converter.query_profile.summary()
            else:
                role = _IDENTIFIER if name in identifiers else feature
                role = WEIGHT if name == roles.weight else role
                column |= {"type": converter.types.get(name, NUMERIC), "role": role}
                column |= converter.profiles[name].summary()
            columns.append(column)
        return columns


def count_values(
    counts: Mapping[str, int], positives: Collection[str] = ()
) -> list[dict[str, Any]]:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    # What is longer than a name cannot be named, and NUL cannot be kept.
    others = [
        (value, count)
        for value, count in ordered
        if value not in positives and len(value) <= MAX_NAME_LENGTH and "\0" not in value
    ]
    shown = {value for value, _ in others[: max(0, _MAX_COUNTED_VALUES - len(positives))]}
    return [
        {"value": value, "count": count, "positive": value in positives}
        for value, count in ordered
        if value in positives or value in shown
    ]


def _warning(
    code: str,
    column: str,
    detail: str,
    count: int,
    parameter: str,
    line: int | None = None,
    suggestion: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    suggested = {"suggestion": dict(suggestion)} if suggestion else {}
    return {
        "code": code,
        "column": column,
        "detail": detail,
        "count": count,
        "parameter": parameter,
        "line": line,
        **suggested,
    }


def _spelled(fields: Mapping[str, str]) -> str:
    return " and ".join(f"{field}={value}" for field, value in fields.items())


def _describe_row(error: RowError) -> str:
    of_part = f" of part {error.part}" if error.part else ""
    if error.line:
        return f"in line {error.line}{of_part}"
    return f"this{of_part}"


def _is_boolean(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_boolean(kind))


def _no_features(identifiers: Sequence[str]) -> BadTable:
    shown = ", ".join(map(show, identifiers[:10])) + (", …" if len(identifiers) > 10 else "")
    return BadTable(
        "a table must have at least one feature column, but nearly every row has a different value in "
        f"{shown}; to use such a column as a feature, list it in categorical or numeric",
        column=identifiers[0],
        code="no_features",
    )


def _grades(converter: Converter) -> list[dict[str, int]]:
    counts = enumerate(converter.grade_counts)
    return [{"grade": grade, "rows": count} for grade, count in counts if count]


_STEPS = 1000
_DROPPED, _IDENTIFIER, _FEATURE, _WEIGHT = "dropped", "identifier", "feature", "weight"


def append(payload: Mapping[str, Any], callback: Callback) -> dict[str, Any]:
    """Write a table of the rows of `payload["parent"]` and then those of the upload. Returns the same as `ingest`.

    The parent has `path` (its typed table), `rows`, `columns` (name, type, role) and `pairs` (for each label its
    negative and its positive value).
    """
    return ingest(payload, callback, Appending)


class NoRows(Source):
    """A source without rows, with the columns of a typed table."""

    def __init__(self, parent: Mapping[str, Any]) -> None:
        self.names = [column["name"] for column in parent["columns"]]

    def progress(self) -> tuple[int, int]:
        return 1, 1

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        return iter(())


class Extended(Source):
    schema = None  # the types are those of the table, whatever the upload's are
    has_parent = True

    def __init__(self, parent: Mapping[str, Any], upload: Source) -> None:
        self.names = [column["name"] for column in parent["columns"]]
        self.notation = upload.notation
        self.sheet, self.sheets, self.error_cells = upload.sheet, upload.sheets, upload.error_cells
        self._parent = parent
        self._upload = upload
        self._types = {column["name"]: column["type"] for column in parent["columns"]}
        self._rows_read = 0

    def progress(self) -> tuple[int, int]:
        """Each source counts as 1,000 units."""
        done, whole = self._upload.progress()
        if not self.has_parent:
            return done, whole
        own = _STEPS * self._rows_read // self._parent["rows"]
        return own + _STEPS * done // max(whole, 1), 2 * _STEPS

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        wanted = list(self.names if columns is None else columns)
        if self.has_parent:
            yield from self._parents_rows(wanted)
        yield from self._upload.batches(errors, wanted, numeric)

    def _parents_rows(self, wanted: list[str]) -> Iterator[Rows]:
        self._rows_read = 0
        with pq.ParquetFile(self._parent["path"]) as file:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number, columns=wanted, use_threads=False)
                for batch in group.to_batches():
                    arrays = [self._as_uploaded(name, batch.column(name)) for name in wanted]
                    read = pa.RecordBatch.from_arrays(arrays, names=wanted)
                    yield Rows(read, self._rows_read)
                    self._rows_read += batch.num_rows

    def _as_uploaded(self, name: str, column: pa.Array) -> pa.Array:
        """Return a column of the typed table as the converter reads it: labels as text, booleans as true and false."""
        if (pair := self._parent["pairs"].get(name)) is not None:
            return pa.DictionaryArray.from_arrays(column.cast(pa.int32()), pa.array(pair))
        if self._types[name] == "boolean" and pa.types.is_floating(column.type):
            return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.bool_()), pc.equal(column, 1.0))
        return column


class _AppendingConverter(Converter):
    hint = "; a column keeps its type with mode=append, and can change it with mode=replace"

    def _feature(self, rows: Rows, name: str) -> Floats:
        """Dates of the typed rows are numbers already."""
        column = rows.batch.column(name)
        # The check of types accepts no uploaded number as a date, so this one was read before.
        if self.types[name] != DATETIME or not pa.types.is_floating(column.type):
            return super()._feature(rows, name)
        values: Floats = column.to_numpy()
        self.profiles[name].update(values)
        return values


class Appending(Build):
    converter = _AppendingConverter

    def __init__(
        self,
        source: Source,
        missing: MissingTokens,
        payload: Mapping[str, Any],
        callback: Callback,
    ) -> None:
        self._parent = parent = payload["parent"]
        self._features = {
            column["name"]: column
            for column in parent["columns"]
            if column["role"] in (_FEATURE, PROTECTED, _IDENTIFIER)
        }
        self.rows_before = parent["rows"]
        known = {column["name"]: column["role"] for column in parent["columns"]}
        _check_names(
            parent["columns"],
            [name for name in source.names if name in known or name not in source.unnamed],
        )
        if source.schema is not None:
            types = dict(zip(source.names, source.schema.types, strict=True))
            _check_types(parent["columns"], types, graded=payload["dataset_kind"] == "graded")
        kept = self._names(lambda c: c["type"] == CATEGORICAL and c["role"] != _IDENTIFIER)
        dropped = [name for name, role in known.items() if role == _DROPPED]
        options = {**payload, CATEGORICAL: kept, DROP: dropped}
        super().__init__(Extended(parent, source), missing, options, callback)

    def _names(self, which: Callable[[Mapping[str, Any]], bool]) -> list[str]:
        return [name for name, column in self._features.items() if which(column)]

    def _make_converter(self, *args: Any) -> Converter:
        converter = super()._make_converter(*args)
        converter.items.rows_before = self.rows_before
        return converter

    def _takes_rest(self) -> bool:
        positive = self._payload["positive"]
        negatives = [pair[0] for pair in self._parent["pairs"].values()]
        return positive is not None and negatives == [f"not {positive}"[:MAX_NAME_LENGTH]]

    def _find_pairs(self) -> Mapping[str, tuple[str, ...]]:
        pairs: Mapping[str, tuple[str, ...]] = self._parent["pairs"]
        return pairs

    def _describe_label(self, converter: Converter, label: str) -> dict[str, Any]:
        """If the parent's rows have only classes, the positive values have no counts."""
        several = converter.pairs[label][2:]
        if not several and not self._takes_rest():
            return super()._describe_label(converter, label)
        return {"values": [{"value": value, "count": None, "positive": True} for value in several]}

    def _known_types(self) -> dict[str, str]:
        return {name: column["type"] for name, column in self._features.items()}

    def _settle_types(self, converter: Converter, names: Iterable[str]) -> dict[str, str]:
        """Keep the parent's types. A column that is boolean, or empty, both there and here becomes boolean."""
        kinds = {name: converter.types[name] for name in names}
        for name, kind in kinds.items():
            found = converter.evidence(name)
            if kind == NUMERIC and found.booleans == found.known > 0:
                kinds[name] = BOOLEAN
        return kinds

    def _identifiers(self, converter: Converter | None = None) -> list[str]:
        """They are those of the parent."""
        return self._names(lambda column: column["role"] == _IDENTIFIER)


def _check_names(columns: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Raise BadTable unless the upload has the parent's columns, in any order; dropped ones may be absent."""
    known = [column["name"] for column in columns]
    errors = Errors()
    for column in columns:
        if column["name"] not in names and column["role"] != _DROPPED:
            detail = (
                "the column is missing; with mode=append an upload must have the same columns as the previous "
                "version"
            )
            errors.add(RowError(detail, None, column["name"]))
    for name in names:
        if name not in known:
            detail = (
                "the previous version has no such column; with mode=append columns cannot be added"
            )
            errors.add(RowError(detail, None, name))
    if errors.total:
        raise errors.summarise()


def _check_types(
    columns: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType], *, graded: bool
) -> None:
    errors = Errors()
    features = (_FEATURE, PROTECTED, _IDENTIFIER)
    checked = (*features, _WEIGHT, LABEL) if graded else (*features, _WEIGHT)
    for column in columns:
        name, kind = column["name"], column["type"]
        if column["role"] not in checked or kind == CATEGORICAL:
            continue
        check_type(name, types[name], text=column["role"] in features)
        if not _may_hold(types[name], kind):
            detail = f"the column has the type {types[name]}, but is {kind} in the previous version"
            errors.add(RowError(detail, None, name))
    if errors.total:
        raise errors.summarise()


def _may_hold(type_: pa.DataType, kind: str) -> bool:
    """Return True if an Arrow type can be read as a column of this kind."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_null(type_):
        return True
    if kind == "datetime":
        return not (
            pa.types.is_boolean(type_)
            or pa.types.is_integer(type_)
            or pa.types.is_floating(type_)
            or pa.types.is_decimal(type_)
        )
    return not is_dated(type_)
