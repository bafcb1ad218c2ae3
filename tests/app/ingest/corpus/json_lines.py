"""NDJSON: one flat object a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.ingest.formats import NDJSON
from tests.app.ingest.corpus.case import Case, Refused, Table


def json_case(
    name: str, rule: str, body: str | bytes, expected: Table | Refused, **said: Any
) -> Case:
    """A case of NDJSON."""
    body = body.encode() if isinstance(body, str) else body
    return Case(name, rule, body, expected, NDJSON, said)


def values_of(*values: str) -> str:
    """Write lines with these values of `a`, as JSON."""
    return "".join(f'{{"a": {value}, "y": {i % 2}}}\n' for i, value in enumerate(values))


def values() -> Iterator[Case]:
    """Values of a line."""
    kept: Sequence[tuple[str, list[str], list[Any], str]] = [
        ("numbers", ["1", "-2.5", "1e3", "0.1"], [1.0, -2.5, 1000.0, 0.1], "numeric"),
        ("zeros", ["0", "-0.0", "0.0"], [0.0, -0.0, 0.0], "numeric"),
        ("numbers in quotes", ['"1"', '" 2.5 "', '"007"'], [1.0, 2.5, 7.0], "numeric"),
        ("large integers", ["9007199254740993", "18446744073709551615"], [2.0**53, 2.0**64], "numeric"),
        ("larger integers", ["18446744073709551616", "-9223372036854775809"], [2.0**64, -(2.0**63)], "numeric"),
        ("an endless integer", ["1" + "0" * 300, "2"], [1e300, 2.0], "numeric"),
        ("small numbers", ["5e-324", "1e-400", "2"], [5e-324, 0.0, 2.0], "numeric"),
        ("booleans", ["true", "false", "null"], [1.0, 0.0, None], "boolean"),
        ("booleans in quotes", ['"TRUE"', "false"], [1.0, 0.0], "boolean"),
        ("null", ["1", "null", "2"], [1.0, None, 2.0], "numeric"),
        ("tokens", ['"NA"', '"?"', "2"], [None, None, 2.0], "numeric"),
        ("texts", ['"u"', '"w"'], ["u", "w"], "categorical"),
        ("escapes", ['"\\u00e9\\n\\t\\\\x"', '"\\ud83e\\udd8a"'], ["é\n\t\\x", "🦊"], "categorical"),
        ("escaped quotes", ['"say \\"x\\""', '"\\u0022"'], ['say "x"', '"'], "categorical"),
        ("brackets in text", ['"{}"', '"[1, 2]"'], ["{}", "[1, 2]"], "categorical"),
        ("texts and numbers", ['"u"', "1", "2.50"], ["u", "1", "2.5"], "categorical"),
        ("dates", ['"1970-01-01"', '"1970-01-02T00:00Z"'], [0.0, 86400.0], "datetime"),
        ("formulas", ['"=1+1"', '"@x"'], ["=1+1", "@x"], "categorical"),
    ]  # fmt: skip
    for name, cells, found, kind in kept:
        expected = Table({"a": found}, {"a": kind})
        yield json_case(f"values: {name}", "values as text", values_of(*cells), expected)
    declared = [
        ("whole numbers", ["1", "2.0", "3"], ["1", "2", "3"]),
        ("large integers", ["9007199254740993", "9007199254740992"], ["9007199254740993", "9007199254740992"]),
        ("booleans", ["true", "false"], ["true", "false"]),
        ("numbers", ["0.1", "1e22", "1e21"], ["0.1", "1e+22", "1e+21"]),
        ("values of all kinds", ["3", "3.0", '"3"', "2.5", "true"], ["3", "3", "3", "2.5", "true"]),
    ]  # fmt: skip
    for name, cells, texts in declared:
        expected = Table({"a": list(texts)}, {"a": "categorical"})
        rule = "categorical by declaration"
        yield json_case(f"declared {name}", rule, values_of(*cells), expected, categorical=["a"])
    detail = (
        "a category must have at most 255 characters (RANKWRIGHT_MAX_CATEGORY_LENGTH) without NUL"
    )
    body = values_of('"u"', '"\\u0000"')
    yield json_case("a NUL", "no NUL in a category", body, Refused(detail, 2, "a"))
    refusal = Refused("'1e999' is outside the range of a float64", 2, "a")
    yield json_case("1e999 in quotes", "meant as numbers", values_of("1", '"1e999"'), refusal)


def lines() -> Iterator[Case]:
    """Forms of a line."""
    two = Table({"a": [1.0, 2.0], "y": [0, 1]})
    first, second = '{"a": 1, "y": 0}', '{"a": 2, "y": 1}'
    blank = "blank lines do not count"
    yield json_case("blank lines", blank, f"\n{first}\n\n  \t\n{second}\n\n\n", two)
    yield json_case("CRLF and blank lines", blank, f"{first}\r\n\r\n{second}\r\n\r\n", two)
    yield json_case("a byte order mark", "byte order mark", f"\ufeff{first}\n{second}\n", two)
    yield json_case("no end of the last line", "values as text", f"{first}\n{second}", two)
    yield json_case("spaces around", "values as text", f"  {first}\t\n {second} ", two)
    body = '{"a": 1, "y": 0, "b": "u"}\n{"y": 1, "c": 5}\n{"c": 6, "a": 3, "y": 1, "b": "w"}\n'
    expected = Table({"a": [1.0, None, 3.0], "b": ["u", None, "w"], "c": [None, 5.0, 6.0]})
    yield json_case("absent keys", "absent is missing", body, expected, label="y")
    refusal = Refused("the label is missing", 3, "y")
    body = f'{first}\n{second}\n{{"a": 3}}\n'
    yield json_case("an absent label", "no label is missing", body, refusal)
    yield from bad_lines(first, second)


def bad_lines(first: str, second: str) -> Iterator[Case]:
    """Lines that are no JSON, no object, or not flat."""
    two = Table({"a": [1.0, 2.0], "y": [0, 1]})
    for name, line, detail in (
        ("a trailing comma", '{"a": 1, "y": 0,}', "the line is not valid JSON"),
        ("single quotes", "{'a': 1, 'y': 0}", "the line is not valid JSON"),
        ("a bare key", "{a: 1, y: 0}", "the line is not valid JSON"),
        ("NaN", '{"a": NaN, "y": 0}', "the line is not valid JSON"),
        ("Infinity", '{"a": Infinity, "y": 0}', "the line is not valid JSON"),
        ("a number without end", '{"a": 1e999, "y": 0}', "the line is not valid JSON"),
        ("a hexadecimal", '{"a": 0x10, "y": 0}', "the line is not valid JSON"),
        ("a leading zero", '{"a": 007, "y": 0}', "the line is not valid JSON"),
        ("a plus", '{"a": +1, "y": 0}', "the line is not valid JSON"),
        ("a comment", '{"a": 1, "y": 0} // x', "the line is not valid JSON"),
        ("two objects", f"{first}{second}", "the line is not valid JSON"),
        ("an open text", '{"a": "x, "y": 0}', "the line is not valid JSON"),
        ("an open object", '{"a": 1, "y": 0', "the line is not valid JSON"),
        ("a tab in a text", '{"a": "x\tz", "y": 0}', "the line is not valid JSON"),
        ("a lone surrogate", '{"a": "\\ud800", "y": 0}', "the line is not valid JSON"),
        ("a bad escape", '{"a": "\\x", "y": 0}', "the line is not valid JSON"),
        ("a NUL", '{"a": 1, "y": 0}\0', "the line is not valid JSON"),
        ("depth", '{"a": ' + "[" * 5000 + "]" * 5000 + "}", "the line is not valid JSON: depth"),
    ):  # fmt: skip
        body = f"{first}\n{second}\n\n{line}\n"
        yield json_case(f"{name} in a line", "lines are JSON", body, Refused(detail, 4))
    broken = f"{first}\n{second}\n".encode() + b'{"a": "K\xf6ln", "y": 0}\n'
    yield json_case("a byte of Latin-1", "lines are JSON", broken, Refused("not valid UTF-8", 3))
    body = '{"a": 1,\n"y": 0}\n' + second
    refusal = Refused("the line is not valid JSON", 1, total=2)
    yield json_case("an object of two lines", "lines are JSON", body, refusal)
    for name, line in (
        ("list", "[1, 0]"),
        ("number", "3"),
        ("text", '"x"'),
        ("null", "null"),
        ("list of objects", f"[{first}]"),
    ):
        body = f"{first}\n{second}\n{line}\n"
        refusal = Refused("the line must be a JSON object", 3)
        yield json_case(f"a {name}", "lines are objects", body, refusal)
    for name, value in (
        ("list", "[1]"),
        ("object", '{"b": 1}'),
        ("empty list", "[]"),
        ("deep list", "[" * 500 + "]" * 500),
    ):
        body = f'{first}\n{second}\n{{"a": {value}, "y": 1}}\n'
        detail = "a value must be a number, a string, true, false or null"
        yield json_case(
            f"a value that is a {name}", "values are flat", body, Refused(detail, 3, "a")
        )
    body = f'{first[:-1]}, "b": [1]}}\n{second[:-1]}, "b": {{"c": 2}}}}\n'
    yield json_case("nested and dropped", "dropped columns are not read", body, two, drop=["b"])


def keys() -> Iterator[Case]:
    """Keys of a line, and repeated keys."""
    twice = "keys come once"
    for name, line, key, times in (
        ("twice", '{"a": 1, "y": 0, "a": 2}', "a", 2),
        ("twice with the same value", '{"a": 1, "a": 1, "y": 0}', "a", 2),
        ("thrice", '{"y": 0, "y": 0, "a": 1, "y": 0}', "y", 3),
        ("twice by an escape", '{"a": 1, "\\u0061": 2, "y": 0}', "a", 2),
        ("twice beside quotes", '{"a": 1, "a": "\\"", "y": 0}', "a", 2),
    ):
        body = f'{{"a": 3, "y": 1}}\n{line}\n'
        detail = f"the key '{key}' occurs {times} times in one object"
        refusal = Refused(detail, 2, key, "duplicate_column")
        yield json_case(f"a key {name}", twice, body, refusal)
    body = '{"a": 3, "y": 1, "b": {"a": 1}}\n{"a": 4, "y": 0, "b": {"a": 1}}\n'
    expected = Table({"a": [3.0, 4.0]})
    rule = "dropped columns are not read"
    yield json_case("a key within another", rule, body, expected, drop=["b"])
    refusal = Refused("must be at most 255 printable UTF-8 characters, got 'b\\x00'", 2)
    body = '{"a": 1, "y": 0}\n{"a": 2, "y": 1, "b\\u0000": 1}\n'
    yield json_case("a key with a NUL, late", "names are printable", body, refusal)
    refusal = Refused("column 3 has no name", 2)
    body = '{"a": 1, "y": 0}\n{"a": 2, "y": 1, "": 1}\n'
    yield json_case("a key without a name", "names are there", body, refusal)
    refusal = Refused("the file has no objects with keys; each line must be a JSON object", 1)
    beside = b'{"a": 1, "y": 0}\n{"a": 2, "y": 1}\n'
    for name, text in (
        ("no bytes", ""),
        ("blank lines alone", "\n\n"),
        ("objects without keys", "{}\n{}\n"),
    ):
        yield json_case(name, "there are objects", text, refusal)
    for name, text, detail in (
        ("a CSV", "a,y\n1,0\n2,1\n", "the line is not valid JSON"),
        ("a JSON document", '[\n{"b": 1},\n]\n', "the line is not valid JSON"),
        ("UTF-16", '{"a": 1}\n', "the line is not valid JSON"),
    ):
        raw = text.encode("utf-16") if name == "UTF-16" else text.encode()
        total = {"a CSV": 3, "a JSON document": 3, "UTF-16": 2}[name]
        refusal = Refused(detail, 1, total=total)
        yield Case(f"{name} is no NDJSON", "", raw, refusal, NDJSON, beside=beside)


CASES = [*values(), *lines(), *keys()]
