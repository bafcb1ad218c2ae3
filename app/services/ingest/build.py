"""The way of a table through the house: source, roles, label, rows, Parquet, profile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from app.services.ingest.categories import CategoryLimits
from app.services.ingest.convert import Converter, check_type, holds_text
from app.services.ingest.evidence import Evidence, Found, find_types
from app.services.ingest.faults import ENOUGH, BadTable, Faults, show, too_many_rows
from app.services.ingest.missing import MissingTokens
from app.services.ingest.roles import Roles, assign, label_type, order_pair
from app.services.ingest.rows import MAX_NAME, Doubt, Source
from app.services.ingest.sources import open_sources
from app.services.ingest.survey import survey_table
from app.services.ingest.text import as_text
from app.services.ingest.writer import CATEGORIES, TableWriter
from app.services.times import is_dated

Callback = Callable[[int, int, Mapping[str, float]], None]

LABEL, ITEM, WEIGHT, GROUP = "label", "item", "weight", "group"
LABELS, CATEGORICAL, DROP = "labels", "categorical", "drop"
TABLE_FILE = "table.parquet"
PROFILE_FILE = "profile.json"


def ingest(
    payload: Mapping[str, Any], callback: Callback, attempt: type[Build] | None = None
) -> dict[str, Any]:
    """Read the upload that the payload describes and write the typed table and its profile into its work folder.

    The payload names path, content_type, content_encoding, dataset_kind, label, positive, labels, item, weight,
    group, categorical, drop, missing, dialect (None, or the arguments of `Dialect`), workdir and limits (rows, columns,
    bytes, categories, category_length). Returns what the dataset row needs; raises BadTable with every fault, line and
    column. Pure: it reads and writes only the files named. `attempt` is how it is built, if not as a table of its own.
    """
    attempt = attempt or Build
    missing = MissingTokens(payload["missing"])
    with ExitStack() as stack:
        for source in open_sources(
            payload, stack, missing, partial(attempt.may_be_numbers, payload)
        ):
            build = attempt(source, missing, payload, callback)
            try:
                found = build.run()
            except Doubt:
                continue
            features = [c["name"] for c in found["columns"] if c["role"] == "feature"]
            folder = Path(payload["workdir"])
            _, whole = build.source.progress()
            # All is read, and only the look is left.
            told = partial(callback, whole, whole, {"rows": found["rows"]})
            with ThreadPoolExecutor(1) as aside:
                sha256 = aside.submit(_hash_file, folder / TABLE_FILE)
                profile = survey_table(folder / TABLE_FILE, features, found["label"], told)
            (folder / PROFILE_FILE).write_bytes(orjson.dumps(profile))
            return found | {"profile": PROFILE_FILE, "sha256": sha256.result()}
    raise AssertionError("the last source of a format is exact, and an exact source has no doubt")


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _roles(names: Sequence[str], payload: Mapping[str, Any]) -> Roles:
    said = (LABEL, LABELS, ITEM, WEIGHT, GROUP, CATEGORICAL, DROP)
    given = {role: payload[role] for role in said}
    return assign(names, kind=payload["dataset_kind"], **given)


class Build:
    """One attempt at a table by one source."""

    rows_before = 0
    """Rows that are in the table already, before those of the upload."""

    def __init__(
        self,
        source: Source,
        missing: MissingTokens,
        payload: Mapping[str, Any],
        callback: Callback,
    ) -> None:
        self.source = source
        self._missing = missing
        self._payload = payload
        self._callback = callback
        self._faults = Faults()
        self._roles = _roles(source.names, payload)
        self._path = Path(payload["workdir"]) / TABLE_FILE
        self._limits = CategoryLimits(
            payload["limits"]["categories"], payload["limits"]["category_length"]
        )

    @staticmethod
    def may_be_numbers(payload: Mapping[str, Any], names: Sequence[str]) -> Collection[str]:
        """Tell which columns of the upload are to be tried as numbers first."""
        roles = _roles(names, payload)
        return [name for name in roles.features if name not in roles.categorical]

    def run(self) -> dict[str, Any]:
        """Build the table; raises BadTable, or Doubt if the source is not the last to be asked."""
        if self.source.schema is not None:
            self._check_types(self.source.schema)
        converter = self._make_converter()
        rows = self._write(converter)
        identifiers = self._judge_text(converter)
        if self._roles.item and not self._faults.total:
            converter.items.report_repeated(self._roles.item, self._faults)
            if self._faults.total and not self.source.exact:
                raise Doubt
        if self._faults.total:
            raise self._faults.summarise()
        self._check_whole(converter, rows)
        if len(identifiers) == len(self._roles.features):
            raise _no_features(identifiers)
        return self._result(converter, rows, identifiers)

    def _make_converter(self, how: type[Converter] = Converter) -> Converter:
        return how(
            self._roles,
            self._find_pairs(),
            self._find_types(),
            self._limits,
            self._missing,
            self._faults,
            self.source.decimal,
        )

    def _find_pairs(self) -> Mapping[str, tuple[str, ...]]:
        """Tell each label's values, the negative one first; fewer than two where there are no two."""
        positive = self._payload["positive"]
        return {
            label: order_pair(values, positive) if len(values) == 2 else values
            for label, values in self._label_values().items()
        }

    def _check_types(self, schema: pa.Schema) -> None:
        types = dict(zip(self.source.names, schema.types, strict=True))
        wrong: list[BadTable] = []
        undeclared = [n for n in self._roles.features if n not in self._roles.categorical]
        for name in [*undeclared, *([self._roles.weight] if self._roles.weight else [])]:
            try:
                check_type(name, types[name], text=name != self._roles.weight)
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
            raise refusal

    def _find_types(self) -> Found:
        """Tell which features are text and which are dates, as far as the source can tell."""
        roles, schema = self._roles, self.source.schema
        undeclared = [name for name in roles.features if name not in roles.categorical]
        if schema is not None:
            types = dict(zip(self.source.names, schema.types, strict=True))
            texts = {name for name in undeclared if holds_text(types[name])}
            dates = find_types(self.source, texts, self._missing).dates
            typed = {name for name in undeclared if is_dated(types[name])}
            found = Found(texts.difference(dates), typed.union(dates))
        else:
            numeric = getattr(self.source, "numeric", ())
            open_ones = [name for name in undeclared if name not in numeric]
            found = find_types(self.source, open_ones, self._missing)
        return Found({*found.text, *roles.categorical}, found.dates)

    def _judge_text(self, converter: Converter) -> list[str]:
        """Check the columns of text now that all rows are read; return those that are identifiers."""
        identifiers = []
        for name, column in converter.text.items():
            guessed = self.source.hasty and name not in self._roles.categorical
            if guessed and not self._is_text(column.evidence):
                raise Doubt  # the first rows misled
            if column.is_identifier():
                identifiers.append(name)
            else:
                column.judge(self._faults)
        if self._faults.total and not self.source.exact:
            raise Doubt
        return identifiers

    def _is_text(self, evidence: Evidence) -> bool:
        """Tell whether a column that was taken for text is; one whose type says so is, unless it is of dates."""
        typed = self.source.schema is not None
        return not evidence.speaks_for_dates() if typed else evidence.speaks_for_text()

    def _label_values(self) -> dict[str, tuple[str, ...]]:
        """Return the first two values of each label in the file, or fewer where there are no two."""
        labels = self._roles.labels
        seen: dict[str, dict[str, None]] = {label: {} for label in labels}
        aside = Faults()  # the rows are judged when all columns are read
        for rows in self.source.batches(aside, labels) if labels else ():
            for label, values in seen.items():
                if len(values) < 2:
                    text = as_text(rows.batch.column(label), self._missing)
                    found = pc.unique(text).drop_null().to_pylist()
                    values.update(dict.fromkeys(found[:2]))
            if all(len(values) >= 2 for values in seen.values()):
                break
        return {
            label: tuple(self._check_label_text(label, value) for value in list(values)[:2])
            for label, values in seen.items()
        }

    def _check_label_text(self, label: str, value: str) -> str:
        if len(value) > MAX_NAME or "\0" in value:
            raise BadTable(
                f"a label must be at most {MAX_NAME} characters without NUL, got {show(value)}",
                column=label,
            )
        return value

    def _write(self, converter: Converter) -> int:
        limit = self._payload["limits"]["rows"]
        count = 0
        dropped = self._roles.dropped
        columns = [name for name in self.source.names if name not in dropped] if dropped else None
        with TableWriter(self._path, _fields(self._roles, converter.text)) as writer:
            for rows in self.source.batches(self._faults, columns):
                arrays = converter.convert(rows)
                count += rows.batch.num_rows
                if self._faults.total and not self.source.exact:
                    raise Doubt
                if count > limit:
                    raise too_many_rows(limit)
                if self._faults.total >= ENOUGH:
                    break
                if not self._faults.total:
                    writer.write(arrays)
                self._callback(*self.source.progress(), {"rows": count})
        return count

    def _check_whole(self, converter: Converter, rows: int) -> None:
        if rows == self.rows_before:
            if not self.source.exact:
                raise Doubt
            raise BadTable("the table has a header but no rows", code="no_rows")
        for label, pair in converter.pairs.items():
            if len(pair) < 2:
                only = f"only the value {show(pair[0])}" if pair else "no value"
                raise BadTable(
                    f"the label {show(label)} must have two different values, got {only} in {rows} rows",
                    column=label,
                    code="one_class",
                )
        if self._roles.weight and not converter.weight_sum > 0:
            raise BadTable(
                f"the weights must have a sum above 0, got {converter.weight_sum:g}",
                column=self._roles.weight,
            )
        if not np.isfinite(converter.weight_sum):
            raise BadTable(
                "the sum of the weights is beyond the range of a double", column=self._roles.weight
            )

    def _result(
        self, converter: Converter, rows: int, identifiers: Collection[str]
    ) -> dict[str, Any]:
        labels = [
            {
                "name": label,
                "negative": pair[0],
                "positive": pair[1],
                "negatives": converter.class_counts[label][0],
                "positives": converter.class_counts[label][1],
            }
            for label, pair in converter.pairs.items()
        ]
        single = labels[0] if self._payload[LABELS] is None and labels else {}
        return {
            "file": TABLE_FILE,
            "rows": rows,
            "negatives": single.get("negatives"),
            "positives": single.get("positives"),
            "label": single.get("name"),
            "negative": single.get("negative"),
            "positive": single.get("positive"),
            "labels": None if self._payload[LABELS] is None else labels,
            "item": self._roles.item,
            "columns": self._columns(converter, identifiers),
        }

    def _columns(self, converter: Converter, identifiers: Collection[str]) -> list[dict[str, Any]]:
        roles = self._roles
        columns = []
        for name in self.source.names:
            column: dict[str, Any] = {"name": name, "type": "numeric", "role": "feature"}
            if name in roles.dropped:
                column |= {"type": None, "role": "dropped", "missing": None}
            elif name in converter.text:
                role = "identifier" if name in identifiers else "feature"
                column |= {"type": "categorical", "role": role} | converter.text[name].summary()
            elif name in roles.labels:
                column |= {"type": label_type(converter.pairs[name]), "role": LABEL}
                column |= converter.label_profiles[name].summary()
            elif name == roles.item:
                column |= {"type": "categorical", "role": ITEM} | converter.items.summary()
            elif name == roles.group:
                column |= {"type": "categorical", "role": GROUP} | converter.group_profile.summary()
            else:
                role = WEIGHT if name == roles.weight else "feature"
                column |= {"type": converter.type_of(name), "role": role}
                column |= converter.profiles[name].summary()
            columns.append(column)
        return columns


def _no_features(identifiers: Sequence[str]) -> BadTable:
    shown = ", ".join(map(show, identifiers[:10])) + (", …" if len(identifiers) > 10 else "")
    return BadTable(
        f"a table needs at least one feature column, but nearly every row has its own value in {shown}; "
        "to learn from such a column declare it categorical",
        column=identifiers[0],
        code="no_features",
    )


def _fields(roles: Roles, text: Collection[str]) -> list[pa.Field]:
    """The columns of the typed table, in order."""
    special = (
        *((label, LABEL, pa.int8()) for label in roles.labels),
        (roles.item, ITEM, pa.string()),
        (roles.weight, WEIGHT, pa.float64()),
        (roles.group, GROUP, pa.string()),
    )
    return [
        pa.field(name, CATEGORIES if name in text else pa.float64()) for name in roles.features
    ] + [pa.field(name, kind, metadata={"role": role}) for name, role, kind in special if name]
