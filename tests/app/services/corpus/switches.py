"""How each rule is switched off: a case that still passes without its rule is no case of it.

A switch takes the rule out of the code that has it (a bound lifted, a pattern that matches nothing, a check that does
nothing, a fault that nobody notes) or does not say what the caller said. It is handed a `MonkeyPatch` and a copy of
what is said of the file.
"""

from __future__ import annotations

import codecs
import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from app.ingest import arrow as columnar
from app.ingest import build, columns, formats, ndjson, pairs, roles, stream
from app.ingest import columns as convert
from app.ingest import columns as evidence
from app.ingest import csv as delimited
from app.ingest import formats as sources
from app.ingest import value_columns as text
from app.ingest import values as missing
from app.ingest.columns import ItemNames
from app.ingest.errors import Fault, Faults

Switch = Callable[[pytest.MonkeyPatch, dict[str, Any]], None]
NEVER = "^\0$"  # a pattern that no text matches


def put(owner: Any, name: str, value: Any) -> Switch:
    """Put something else in the place of what has the rule."""
    return lambda patch, said: patch.setattr(owner, name, value)


def every(*switches: Switch) -> Switch:
    """Several at once."""

    def off(patch: pytest.MonkeyPatch, said: dict[str, Any]) -> None:
        for switch in switches:
            switch(patch, said)

    return off


def unsaid(name: str) -> Switch:
    """Do not say what the caller said."""
    return lambda patch, said: said.__delitem__(name)


def lifted(limit: str) -> Switch:
    """Lift a limit out of reach."""
    return lambda patch, said: said.__setitem__(limit, 1 << 30)


def lowered(limit: str) -> Switch:
    """Lower a limit by one."""
    return lambda patch, said: said.__setitem__(limit, said[limit] - 1)


def unnoted(part: str) -> Switch:
    """Let faults whose description has this part pass without a note."""

    def off(patch: pytest.MonkeyPatch, said: dict[str, Any]) -> None:
        note = Faults.add_many

        def deaf(self: Faults, column: str | None, count: int, first: Iterable[Fault]) -> None:
            described = list(first)
            if not any(part in fault.detail for fault in described):
                note(self, column, count, described)

        patch.setattr(Faults, "add_many", deaf)

    return off


def checked_names(repair: Callable[[str], str]) -> Switch:
    """Repair names before they are checked."""

    def off(patch: pytest.MonkeyPatch, said: dict[str, Any]) -> None:
        check = delimited.check_names

        def lenient(names: list[str], *rest: Any) -> list[str]:
            seen: dict[str, None] = {}
            for name in map(repair, names):
                seen[name + "_" if name in seen else name] = None
            return check(list(seen), *rest)

        for module in (delimited, columnar, ndjson):
            patch.setattr(module, "check_names", lenient)

    return off


EXACT_ALONE = put(
    delimited.CsvTable,
    "_parse",
    lambda self, block, wanted, numeric: self._parse_exactly(block, wanted),
)


def _split(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """CSV as who knows only its commas reads it."""
    return (line.removesuffix("\n").split(delimiter) for line in lines)


def _text_reader(**options: Any) -> Switch:
    """Open text otherwise."""
    reader = SimpleNamespace(
        BufferedReader=io.BufferedReader,
        TextIOWrapper=lambda raw, *args, **given: io.TextIOWrapper(raw, *args, **given | options),
    )
    return put(delimited, "io", reader)


GRAMMAR = every(
    EXACT_ALONE,
    _text_reader(newline="\n"),
    put(delimited, "csv", SimpleNamespace(reader=_split, Error=csv.Error)),
)


def _decoder(codec: str) -> Callable[[], codecs.IncrementalDecoder]:
    return partial(codecs.getincrementaldecoder(codec), errors="replace")


class _NeverEnded(delimited._Lines):
    ended = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]


class _NeverEndedRecorder(delimited._Recorder):
    ended = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]


def _rough(self: missing.MissingTokens, column: pa.Array) -> pa.Array:
    """The ASCII letters and digits of a text, in small letters."""
    texts = _TIDY(self, column).to_pylist()
    return pa.array([None if t is None else _rough_text(t) for t in texts], pa.string())


def _rough_text(value: str) -> str:
    plain = unicodedata.normalize("NFKD", value).encode("ascii", "ignore").decode().lower()
    return "".join(filter(str.isalnum, plain))[:200] or "none"


_TIDY = missing.MissingTokens.tidy


def _tokens_without_empty(self: missing.MissingTokens, tokens: Any = None) -> None:
    _INIT(self, tokens)
    self._lower = self._lower.slice(1)


_INIT = missing.MissingTokens.__init__


def _passed_over(arrays: list[pa.Array], names: list[str], first: int) -> pa.RecordBatch:
    """A batch with nulls where a column is damaged: to read it as it is could end this process."""

    def sound(array: pa.Array) -> pa.Array:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            return pa.nulls(len(array), array.type)
        return array

    return pa.RecordBatch.from_arrays(list(map(sound, arrays)), names=list(names))


def _whatever(column: pa.Array) -> pa.Array:
    return pa.array(["some", "other"] * len(column))[: len(column)]


def _any_number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


NOTHING: Callable[..., None] = lambda *args, **given: None  # noqa: E731 - it is a value here
DAMAGE = every(put(stream, "DAMAGE", ()), put(columnar, "DAMAGE", ()))
TEXT_IS_NOTHING = put(evidence, "CATEGORICAL", evidence.NUMERIC)
TRUTH_NEVER = every(
    put(evidence, "TRUTH", pa.array(["\0"])), put(convert, "TRUTH", pa.array(["\0"]))
)


def truth(*words: str) -> Switch:
    """Take other words for true and false."""
    return every(
        put(evidence, "TRUTH", pa.array(list(words))), put(convert, "TRUTH", pa.array(list(words)))
    )


def untyped(*kinds: str) -> Switch:
    """Let no type be of these kinds."""
    return every(*(put(pa.types, f"is_{kind}", lambda kind: False) for kind in kinds))


SWITCHES: dict[str, Switch] = {
    # The text of a CSV
    "csv grammar": GRAMMAR,
    "unclosed quotes": every(
        put(delimited, "_Lines", _NeverEnded), put(delimited, "_Recorder", _NeverEndedRecorder)
    ),
    "rows as wide as the header": unnoted("where the header has"),
    "byte order mark": every(put(delimited, "BOM", NEVER.encode()), put(codecs, "BOM_UTF8", b"")),
    "UTF-16 is seen": put(formats, "_sniff_codec", lambda head: "utf-8"),
    "what is said of a CSV": unsaid("dialect"),
    "UTF-8": _text_reader(errors="replace"),
    "bytes of an encoding": put(stream, "codecs", SimpleNamespace(getincrementaldecoder=_decoder)),
    "the delimiter is seen": put(delimited, "_sniff", lambda header: "\0"),
    "no other format": put(delimited, "_FOREIGN", {}),
    "not empty": put(delimited, "find_codec", lambda upload, dialect: upload),
    "there are rows": put(build.Build, "_check_rows", NOTHING),
    # Names
    "names are kept": checked_names(_rough_text),
    "names are printable": checked_names(
        lambda name: "".join(c if c.isprintable() else "_" for c in name)
    ),
    "names have a length": put(delimited, "MAX_NAME", 1 << 20),
    "names are there": checked_names(lambda name: name if name.strip() else "nameless"),
    "names differ": checked_names(str.strip),
    "names differ in any form": put(
        delimited, "unicodedata", SimpleNamespace(normalize=lambda form, name: name)
    ),
    "names are UTF-8": put(columnar, "_unreadable_name", lambda error: error),
    # Values
    "numbers": every(
        EXACT_ALONE, put(evidence, "_NUMBER_LIKE", NEVER), put(convert, "NUMBER", NEVER)
    ),
    "only numbers are numbers": every(
        EXACT_ALONE, put(evidence, "_NUMBER_LIKE", ".*"), put(convert, "NUMBER", ".*")
    ),
    "meant as numbers": every(EXACT_ALONE, put(evidence, "_NUMBER_LIKE", r"^[+-]?[0-9]{1,9}$")),
    "slips are faults": put(evidence, "MOSTLY", 1.0),
    "rare slips are missing": lambda patch, said: said.__setitem__("strict", True),
    "codes beside numbers": put(evidence.Evidence, "_has_codes", lambda self: False),
    "slips are no codes": put(evidence.Evidence, "_has_codes", lambda self: True),
    "text is no slip": put(evidence, "MOSTLY", 0.0),
    "all rows have a say": every(
        put(delimited, "_BLOCK_BYTES", 16),
        put(delimited, "_COLUMN_BYTES", 1),
        put(build.Build, "_judge", lambda self, converter, name: converter.types[name]),
    ),
    "text": TEXT_IS_NOTHING,
    "text is kept": put(missing.MissingTokens, "tidy", _rough),
    "spaces around": every(EXACT_ALONE, put(missing, "SPACES", "\0")),
    "booleans": TRUTH_NEVER,
    "booleans are two words": truth("true", "false", "yes", "no", "t", "f", "on", "off", "falsch"),
    "missing tokens": put(missing, "DEFAULT_TOKENS", ()),
    "empty is missing": every(
        EXACT_ALONE, put(missing.MissingTokens, "__init__", _tokens_without_empty)
    ),
    "what is said to be missing": unsaid("missing"),
    "a token is a number": put(missing.MissingTokens, "blank", lambda self, values: values),
    "a token is no Python": put(missing, "read_number", _any_number),
    "dates": put(evidence, "DATE_PATTERN", NEVER),
    "dates are of ISO": put(evidence, "DATE_PATTERN", ".*"),
    "the calendar": put(
        convert, "parse_dates", lambda text: (np.zeros(len(text)), np.zeros(len(text), bool))
    ),
    "identifiers": put(columns, "LEAST_IDENTIFIERS", 1 << 30),
    "categories are no identifiers": every(
        put(columns, "LEAST_IDENTIFIERS", 1), put(columns, "MOSTLY", 0.0)
    ),
    "categorical by declaration": unsaid("categorical"),
    "no NUL in a category": put(
        columns, "find_unfit", lambda values, most: np.zeros(len(values), bool)
    ),
    "no NUL in a name": put(
        convert, "find_unfit", lambda values, most: np.zeros(len(values), bool)
    ),
    # Limits
    **{f"at most so many {name}": lifted(name) for name in ("rows", "columns", "bytes")},
    **{f"as many {name} as may be": lowered(name) for name in ("rows", "columns", "bytes")},
    "at most so many categories": lifted("categories"),
    "as many categories as may be": lowered("categories"),
    "at most so long a category": lifted("category_length"),
    "as long a category as may be": lowered("category_length"),
    # Roles
    "the label is said": unsaid("label"),
    "the label is found by its name": put(roles, "LABEL_NAMES", ()),
    "the label is the last": put(roles, "LABEL_NAMES", ("a",)),
    "the positive value is said": unsaid("positive"),
    "the greater number is positive": put(roles, "read_number", lambda value: None),
    "words are favoured": put(roles, "FAVOURED", frozenset()),
    "the later text is positive": put(
        build, "order_pair", lambda values, positive: roles.order_pair(values, positive)[::-1]
    ),
    "the positive value is there": put(build, "order_pair", lambda values, said: tuple(values)),
    "a number is no Python": put(roles, "read_number", _any_number),
    "two values": unnoted("is a third value of the label"),
    "no label is missing": unnoted("the label is missing"),
    "both values": put(build.Build, "_check_whole", NOTHING),
    "a label has a length": put(build.Build, "_check_label_text", lambda self, name, value: value),
    "roles are of the table": put(roles, "_check_known", NOTHING),
    "roles are apart": put(roles, "_check_apart", NOTHING),
    "only features are declared": put(roles, "_check_declared", NOTHING),
    "there are features": put(roles, "_check_features", NOTHING),
    "identifiers alone are no table": put(columns, "LEAST_IDENTIFIERS", 1 << 30),
    "the weight is said": unsaid("weight"),
    "weights have a range": unnoted("a weight must be 0 or between"),
    "no weight is missing": unnoted("a weight must not be missing"),
    "weights are numbers": unnoted("is not a"),
    "weights have a sum": put(build.Build, "_check_whole", NOTHING),
    "the group is said": unsaid("group"),
    "no group is missing": unnoted("the group must not be missing"),
    "the item is said": unsaid("item"),
    "the item is found by its name": put(roles, "ITEM_NAMES", ()),
    "no item is missing": unnoted("the item must not be missing"),
    "no item twice": put(ItemNames, "report_repeated", NOTHING),
    "labels are said": unsaid("labels"),
    "dropped columns are not read": unsaid("drop"),
    # Pairs
    "pairs are of items": every(
        unnoted("the dataset has no item"), unnoted("the item must not be missing")
    ),
    "no item beats itself": unnoted("cannot be better than itself"),
    "weights of pairs": unnoted("a weight must be 0 or between"),
    "pairs have their columns": put(pairs._Build, "_check_columns", NOTHING),
    "pairs are found": put(pairs, "as_text", lambda column, tokens: _whatever(column)),
    # NDJSON
    "lines are JSON": unnoted("the line is not JSON"),
    "lines are objects": unnoted("the line must be a JSON object"),
    "values are flat": unnoted("a value must be a number"),
    "keys come once": put(ndjson, "_check_doubled", NOTHING),
    "absent is missing": put(
        ndjson, "_text", lambda value, was=ndjson._text: "absent" if value is None else was(value)
    ),
    "blank lines do not count": put(
        ndjson, "_lines", lambda stream, was=ndjson._lines: (line or b"[]" for line in was(stream))
    ),
    "values as text": put(ndjson, "_text", lambda value: None if value is None else "7"),
    "there are objects": put(ndjson, "_nothing", lambda: ValueError("nothing")),
    # Typed columns
    "integers": untyped("integer"),
    "floats": untyped("floating"),
    "decimals": untyped("decimal"),
    "decimals are exact": put(convert, "as_doubles", lambda column: column.cast(pa.float64())),
    "logical": untyped("boolean"),
    "nothing but nulls": untyped("null"),
    "typed dates": untyped("date", "timestamp"),
    "far dates": put(
        columnar.pq, "ParquetFile", lambda path, **given: _PARQUET(path, pre_buffer=False)
    ),
    "typed text": put(convert, "is_text", lambda kind: False),
    "dictionaries": untyped("dictionary"),
    "texts of dates": put(evidence.Evidence, "text_type", lambda self: evidence.CATEGORICAL),
    "types are known": put(build, "check_type", NOTHING),
    "roles are text": put(text, "spell", _whatever),
    "numbers are finite": unnoted("is not a finite number"),
    # Bytes
    "damage is told": DAMAGE,
    "arrays are sound": put(columnar, "_sound", _passed_over),
    "compression is undone": every(unsaid("encoding"), put(stream, "_MAGIC", {})),
    "compression is seen": put(stream, "_MAGIC", {}),
    "known compression": put(stream, "CODECS", frozenset({"gzip", "zstd", "br"})),
    "known format": put(sources, "BadTable", ValueError),
}

_PARQUET = columnar.pq.ParquetFile
