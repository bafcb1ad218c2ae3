"""Parquet and Arrow: the types that columns may have, and those that they may not."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from app.ingest.formats import ARROW, ARROW_FILE, PARQUET
from tests.app.ingest.corpus.case import TYPED, Case, Refused, Table, typed_body, typed_column

DAY = datetime.date(1970, 1, 2)
AT = datetime.datetime(1970, 1, 2, 0, 0, 0, 500_000)


def coded(*values: Any, kind: pa.DataType | None = None) -> pa.DictionaryArray:
    """Return the values, and the first once more, as codes."""
    codes = pa.array([*range(len(values)), 0], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(values, kind))


def numbers() -> Iterator[tuple[str, str, pa.Array, list[Any], str]]:
    """Yield a name, the rule, an array, and what is read of it."""
    for bits in (8, 16, 32, 64):
        least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        kind = getattr(pa, f"int{bits}")()
        array = pa.array([least, None, most], kind)
        yield f"int{bits}", "integers", array, [float(least), None, float(most)], "numeric"
        kind = getattr(pa, f"uint{bits}")()
        array = pa.array([0, None, 2**bits - 1], kind)
        yield f"uint{bits}", "integers", array, [0.0, None, float(2**bits - 1)], "numeric"
    array = pa.array([2**53 + 1, 2**53 + 3])
    yield "integers beyond doubles", "integers", array, [2.0**53, 2.0**53 + 4], "numeric"
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        array = pa.array(np.array([0.5, np.nan, -0.0]), pa.float64()).cast(kind)
        yield str(kind), "floats", array, [0.5, None, -0.0], "numeric"
    array = pa.array(np.array([5e-324, 1.7976931348623157e308]))
    yield "extreme doubles", "floats", array, [5e-324, 1.7976931348623157e308], "numeric"
    third = [Decimal("0.3"), None, Decimal("-8.41")]
    for kind in (
        pa.decimal32(9, 2),
        pa.decimal64(18, 2),
        pa.decimal128(38, 2),
        pa.decimal256(76, 2),
        pa.decimal128(12, 4),
    ):
        values = [
            None if value is None else value.quantize(Decimal(10) ** -kind.scale) for value in third
        ]
        yield f"{kind}", "decimals", pa.array(values, kind), [0.3, None, -8.41], "numeric"
    for kind in (
        pa.decimal32(9, 1),
        pa.decimal64(18, 1),
        pa.decimal128(38, 1),
        pa.decimal256(76, 1),
        pa.decimal128(12, 1),
    ):
        array = pa.array([Decimal("0.3"), Decimal("-0.7")], kind)
        yield f"{kind} of tenths", "decimals are exact", array, [0.3, -0.7], "numeric"
    wide = [Decimal("123456789012345678901234567890.12345678"), Decimal("0.1")]
    array = pa.array(wide, pa.decimal128(38, 8))
    yield "a long decimal", "decimals", array, [1.2345678901234568e29, 0.1], "numeric"
    array = pa.array([Decimal(12300), Decimal(-100)], pa.decimal128(5, -2))
    yield "a decimal of hundreds", "decimals", array, [12300.0, -100.0], "numeric"
    yield "booleans", "logical", pa.array([True, None, False]), [1.0, None, 0.0], "boolean"
    yield "nulls", "nothing but nulls", pa.nulls(2), [None, None], "numeric"
    yield "coded integers", "dictionaries", coded(7, 8), [7.0, 8.0, 7.0], "numeric"
    yield "coded floats", "dictionaries", coded(0.5, None), [0.5, None, 0.5], "numeric"
    yield "coded booleans", "dictionaries", coded(True, False), [1.0, 0.0, 1.0], "boolean"
    array = coded(Decimal("0.3"), Decimal("0.7"))
    yield "coded decimals", "dictionaries", array, [0.3, 0.7, 0.3], "numeric"


def dates() -> Iterator[tuple[str, str, pa.Array, list[Any], str]]:
    """Yield the same for dates and times."""
    rule = "typed dates"
    yield "date32", rule, pa.array([DAY, None]), [86400.0, None], "datetime"
    yield "date64", rule, pa.array([DAY, None], pa.date64()), [86400.0, None], "datetime"
    for unit in ("s", "ms", "us", "ns"):
        array = pa.array([AT.replace(microsecond=0), None], pa.timestamp(unit))
        yield f"timestamp {unit}", rule, array, [86400.0, None], "datetime"
    for unit in ("ms", "us", "ns"):
        array = pa.array([AT, AT], pa.timestamp(unit))
        yield f"halves of seconds in {unit}", rule, array, [86400.5] * 2, "datetime"
    before = pa.array([-(10**9) // 2, -(10**9)], pa.timestamp("ns"))
    yield "before 1970", rule, before, [-0.5, -1.0], "datetime"
    zoned = pa.array([AT, AT], pa.timestamp("us", "Europe/Paris"))
    yield "in a zone", rule, zoned, [86400.5] * 2, "datetime"
    zoned = pa.array([AT, AT], pa.timestamp("us", "+05:30"))
    yield "in a numbered zone", rule, zoned, [86400.5] * 2, "datetime"
    far = pa.array([datetime.date(9999, 12, 31), datetime.date(1, 1, 1)])
    yield "the first and the last day", rule, far, [253402214400.0, -62135596800.0], "datetime"
    yield "coded dates", "dictionaries", coded(DAY, None), [86400.0, None, 86400.0], "datetime"
    yield "coded times", "dictionaries", coded(AT, AT), [86400.5] * 3, "datetime"
    rule = "texts of dates"
    texts = pa.array(["1970-01-02", None, "1970-01-01T00:00:01Z", " ? "])
    yield "texts of dates", rule, texts, [86400.0, None, 1.0, None], "datetime"
    large = texts.cast(pa.large_string())
    yield "large texts of dates", rule, large, [86400.0, None, 1.0, None], "datetime"
    yield (
        "coded texts of dates",
        rule,
        coded("1970-01-02", None),
        [86400.0, None, 86400.0],
        "datetime",
    )


def texts() -> Iterator[tuple[str, str, pa.Array, list[Any], str]]:
    """Yield the same for text."""
    rule = "typed text"
    plain = pa.array(["u", None, " w ", "NA", ""])
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(kind), rule, plain.cast(kind), ["u", None, "w", None, None], "categorical"
    numerals = pa.array(["1", "2"])
    yield "numerals", rule, numerals, ["1", "2"], "categorical"
    yield "true and false", rule, pa.array(["true", "false"]), ["true", "false"], "categorical"
    yield "coded text", "dictionaries", coded("u", "w"), ["u", "w", "u"], "categorical"
    large = coded("u", None, kind=pa.large_string())
    yield "coded large text", "dictionaries", large, ["u", None, "u"], "categorical"
    formulas = pa.array(["=1+1", "../x", "é", "e\u0301"])
    yield "any text", "text is kept", formulas, ["=1+1", "../x", "é", "e\u0301"], "categorical"
    declared: dict[str, tuple[pa.Array, list[Any]]] = {
        "integers": (pa.array([7, 2**53 + 1]), ["7", str(2**53 + 1)]),
        "floats": (pa.array([1.0, 0.1]), ["1", "0.1"]),
        "decimals": (pa.array([Decimal("0.30"), Decimal("7.00")]), ["0.3", "7"]),
        "declared booleans": (pa.array([True, False]), ["true", "false"]),
        "declared dates": (pa.array([DAY, None]), ["1970-01-02", None]),
        "codes": (coded(7, 8), ["7", "8", "7"]),
        "nulls": (pa.array([None, None], pa.null()), [None, None]),
    }
    for name, (array, values) in declared.items():
        yield name, "categorical by declaration", array, values, "categorical"


IN_PARQUET = {"coded text"}
"""Of codes and their values; its writer does not write others as such."""

UNSUPPORTED: dict[str, pa.Array] = {
    "time32": pa.array([datetime.time(12)] * 2, pa.time32("s")),
    "time64": pa.array([datetime.time(12)] * 2),
    "duration": pa.array([datetime.timedelta(1)] * 2),
    "list": pa.array([[1], [2]]),
    "large list": pa.array([[1], [2]], pa.large_list(pa.int8())),
    "fixed list": pa.array([[1], [2]], pa.list_(pa.int8(), 1)),
    "list view": pa.array([[1], [2]], pa.list_view(pa.int8())),
    "struct": pa.array([{"b": 1}] * 2),
    "map": pa.array([[("b", 1)]] * 2, pa.map_(pa.string(), pa.int8())),
    "binary": pa.array([b"x", b"\xff"]),
    "fixed binary": pa.array([b"xx", b"zz"], pa.binary(2)),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * 2, pa.binary(16))),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "2"])),
}
STREAM_ONLY: dict[str, pa.Array] = {
    "interval": pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
    "union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2], [1.0, 2.0]),
    "coded binary": coded(b"x", b"z"),
}


def unsupported() -> Iterator[Case]:
    """Types that are no feature, or no label."""
    for content_type in TYPED:
        arrays = {PARQUET: UNSUPPORTED, ARROW: UNSUPPORTED | STREAM_ONLY, ARROW_FILE: STREAM_ONLY}[
            content_type
        ]
        for name, array in arrays.items():
            body = typed_column(array, content_type)
            detail = "; it must be numeric, boolean, text, dates or times"
            refusal = Refused(detail, None, "a", "unsupported_type")
            yield Case(f"a {name} is no feature", "types are known", body, refusal, content_type)
            if name in ("time32", "time64", "duration", "json"):
                continue  # as a label these are text
            table = pa.table({"n": range(len(array)), "y": array})
            detail = "a label, item, group or categorical column must contain strings, numbers or booleans, not "
            refusal = Refused(detail, code="unsupported_type")
            body = typed_body(table, content_type)
            yield Case(f"a {name} is no label", "roles are text", body, refusal, content_type)
        given = {"weight": "a", "label": "y"}
        for name, array in (("text", pa.array(["1", "2"])), ("date", pa.array([DAY, DAY]))):
            table = pa.table({"n": [1, 2], "a": array, "y": [0, 1]})
            refusal = Refused("it must be numeric or boolean", None, "a", "unsupported_type")
            body = typed_body(table, content_type)
            yield Case(
                f"a {name} is no weight", "types are known", body, refusal, content_type, given
            )
        many = pa.table({"s": [b"u", b"v"], "t": [[1], [2]], "a": [1, 2], "y": [0, 1]})
        refusal = Refused("column 's' has the type", None, "s", "unsupported_type", total=2)
        body = typed_body(many, content_type)
        yield Case("two columns of no type", "types are known", body, refusal, content_type)
        given_drop = {"drop": ["s", "t"]}
        rule = "dropped columns are not read"
        yield Case(
            "two columns dropped", rule, body, Table({"a": [1.0, 2.0]}), content_type, given_drop
        )
        wide = pa.array([{f"field {i}": i for i in range(2_000)}] * 2)
        refusal = Refused("…; it must be numeric", None, "a", "unsupported_type")
        body = typed_column(wide, content_type)
        yield Case("a type of many words", "types are known", body, refusal, content_type)


def roles() -> Iterator[Case]:
    """Labels, groups and errors of typed columns, told by row."""
    labels: list[tuple[str, pa.Array, str, str]] = [
        ("integers", pa.array([0, 1]), "0", "1"),
        ("floats", pa.array([-0.5, 1.0]), "-0.5", "1"),
        ("decimals", pa.array([Decimal("0.30"), Decimal("1.00")]), "0.3", "1"),
        ("booleans", pa.array([False, True]), "false", "true"),
        ("text", pa.array(["a", " b"]), "a", "b"),
        ("large text", pa.array(["a", "b"], pa.large_string()), "a", "b"),
        ("codes", pa.array(["a", "b"]).dictionary_encode(), "a", "b"),
        ("half floats", pa.array([0, 1], pa.float32()).cast(pa.float16()), "0", "1"),
        ("dates", pa.array([DAY, DAY.replace(day=3)]), "1970-01-02", "1970-01-03"),
        ("large integers", pa.array([2**53, 2**53 + 1]), str(2**53), str(2**53 + 1)),
    ]
    for content_type in TYPED:
        for name, array, negative, positive in labels:
            table = pa.table({"n": [1, 2], "g": array, "y": array})
            result = {"negative": negative, "positive": positive}
            expected = Table({"y": [0, 1], "g": [negative, positive]}, result=result)
            body = typed_body(table, content_type)
            given = {"group": "g"}
            yield Case(
                f"a label of {name}",
                "the later text is positive",
                body,
                expected,
                content_type,
                given,
            )
        infinite = typed_column(pa.array([1.0, 2.0, np.inf]), content_type)
        refusal = Refused("row 3: 'inf' is not a finite number", None, "a")
        yield Case("inf", "numbers are finite", infinite, refusal, content_type)
        table = pa.table({"a": [1, 2, 3], "y": [0, 1, None]})
        refusal = Refused("row 3: the label is missing", None, "y")
        body = typed_body(table, content_type)
        yield Case("a null label", "no label is missing", body, refusal, content_type)
        table = pa.table({"a": [1, 2, 3], "y": [0, 1, 2]})
        refusal = Refused(
            "row 3: '2' is a third value of the label, in addition to '0' and '1'", None, "y"
        )
        body = typed_body(table, content_type)
        yield Case("a third value", "two values", body, refusal, content_type)
        for name, array in (
            ("integers", pa.array([1, -999])),
            ("floats", pa.array([1.0, -999.0])),
            ("codes", coded(1, -999)),
        ):
            values = [1.0, None, 1.0][: len(array)]
            given_token = {"missing": ["-999"]}
            body = typed_column(array, content_type)
            expected = Table({"a": values}, {"a": "numeric"})
            rule = "a token is a number"
            yield Case(f"-999 among {name}", rule, body, expected, content_type, given_token)
        body = typed_body(pa.table({"a": [True, False], "y": [0, 2]}), content_type)
        expected = Table({"a": [1.0, 0.0]}, {"a": "boolean"})
        given_token = {"missing": ["1"]}
        yield Case("1 among booleans", rule, body, expected, content_type, given_token)
        yield from _dates(content_type)
        dotted = pa.table({"a.b": [1.0, 2.0], "a": [3.0, 4.0], ".": [5.0, 6.0], "y": [0, 1]})
        expected = Table({"a.b": [1.0, 2.0], "a": [3.0, 4.0], ".": [5.0, 6.0]})
        body = typed_body(dotted, content_type)
        yield Case("dots in names", "names are kept", body, expected, content_type)


def _dates(content_type: str) -> Iterator[Case]:
    """Dates by their type, and by what texts look like."""
    beyond = pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32())
    body = typed_column(beyond, content_type)
    expected = Table({"a": [(2.0**31 - 1) * 86400, 0.0]}, {"a": "datetime"})
    yield Case("a day beyond all years", "typed dates", body, expected, content_type)
    days = [f"2026-01-{day:02}" for day in range(1, 25)]
    body = typed_column(pa.array(["x", *days]), content_type)
    refusal = Refused("row 1: 'x' is not a date, such as 2026-01-31", None, "a")
    yield Case("texts of dates that come late", "texts of dates", body, refusal, content_type)
    few = [*days[:3], "x", "z", "x"]
    body = typed_column(pa.array(few), content_type)
    expected = Table({"a": few}, {"a": "categorical"})
    yield Case("dates, then text", "text is no slip", body, expected, content_type)


def far_times() -> Iterator[Case]:
    """Times that some way to count them cannot reach."""
    table = pa.table(
        {"a": pa.array([datetime.datetime(3000, 1, 1)] * 2, pa.timestamp("us")), "y": [0, 1]}
    )
    body = typed_body(table, PARQUET, use_deprecated_int96_timestamps=True)
    expected = Table({"a": [32503680000.0] * 2}, {"a": "datetime"})
    yield Case("the year 3000 as INT96", "far dates", body, expected, PARQUET)
    tenths = typed_column(pa.array([Decimal("0.3"), Decimal("0.7")], pa.decimal128(38, 19)), ARROW)
    forged = tenths.replace(b"\x26\0\0\0\x13\0\0\0", b"\x26\0\0\0\x13\1\1\1")
    forged = forged.replace(b"\x13\0\0\0\x26\0\0\0", b"\x13\1\1\1\x26\0\0\0")
    refusal = Refused("a column of decimal128(38, 16843027) cannot be read")
    yield Case("a forged scale", "", forged, refusal, ARROW, beside=tenths)
    far = pa.array([2**62, 1], pa.timestamp("s"))
    refusal = Refused("a date or time that is read as a string must be in the years 1 to 9999")
    given = {"categorical": ["a"]}
    beside = typed_column(pa.array([2, 1], pa.timestamp("s")), ARROW)
    body = typed_column(far, ARROW)
    yield Case("a time beyond all years as text", "", body, refusal, ARROW, given, beside=beside)


def supported() -> Iterator[Case]:
    """Every type in every format that has it."""
    for content_type in TYPED:
        seen: set[str] = set()
        for name, rule, array, values, kind in (*numbers(), *dates(), *texts()):
            if content_type == PARQUET and (
                name == "a decimal of hundreds"
                or (name.startswith("coded") and name not in IN_PARQUET)
            ):
                continue
            if content_type == ARROW_FILE and rule in seen:
                continue  # a file has the columns of a stream: one of each kind will do
            seen.add(rule)
            said = {"categorical": ["a"]} if rule == "categorical by declaration" else {}
            body = typed_column(array, content_type)
            yield Case(
                f"typed: {name}", rule, body, Table({"a": values}, {"a": kind}), content_type, said
            )


CASES = [*supported(), *unsupported(), *roles(), *far_times()]
