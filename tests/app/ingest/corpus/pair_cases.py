"""Lists of pairs: which item is better than which."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from app.ingest.formats import CSV, NDJSON
from tests.app.ingest.corpus.case import TYPED, Case, Refused, Table, typed_body


def pairs(body: str, rule: str, name: str, expected: Table | Refused) -> Case:
    """A case of a list of pairs in CSV."""
    return Case(name, rule, body.encode(), expected, pairs=True)


def cases() -> Iterator[Case]:
    """Items that are there and that are not, weights, columns, formats."""
    found = "pairs are found"
    expected = Table({"better": [0, 1], "worse": [1, 2]})
    yield pairs("better,worse\na,b\nb,c\n", found, "pairs", expected)
    yield pairs("worse,better\nb,a\nc,b\n", found, "pairs the other way round", expected)
    yield pairs('better,worse\n" a ",b\nb ,\tc\n', found, "spaced pairs", expected)
    expected = Table({"better": [3, 4], "worse": [4, 3]})
    yield pairs("better,worse\né,7\n7,é\n", found, "pairs in a circle", expected)
    expected = Table({"better": [0, 1], "worse": [1, 2], "weight": [0.5, 2.0]})
    yield pairs("better,worse,weight\na,b,0.5\nb,c,2\n", found, "pairs with weights", expected)
    expected = Table({"better": [0, 0], "worse": [1, 1]})
    rows = [{"better": "a", "worse": "b"}] * 2
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    yield Case("a pair twice", found, body, expected, NDJSON, pairs=True)
    for content_type in TYPED:
        body = typed_body(pa.table({"better": ["a", "a"], "worse": ["b", "b"]}), content_type)
        yield Case("a pair twice", found, body, expected, content_type, pairs=True)
    for name, item, detail in (
        ("unknown", "z", "the dataset has no item 'z'"),
        ("in another case", "A", "the dataset has no item 'A'"),
        ("in another form", "e\u0301", "the dataset has no item 'e\u0301'"),
        ("written as a number is not", "7.0", "the dataset has no item '7.0'"),
        ("missing", "", "the item must not be missing"),
        ("a word for missing", "NA", "the dataset has no item 'NA'"),
    ):
        for column, row in (("better", f"{item},b"), ("worse", f"a,{item}")):
            body_text = f"better,worse\na,b\n{row}\n"
            refusal = Refused(detail, 3, column)
            yield pairs(body_text, "pairs are of items", f"the {column} item {name}", refusal)
    refusal = Refused("item 'b' cannot be better than itself", 3, "worse")
    yield pairs("better,worse\na,b\nb, b\n", "no item beats itself", "a pair of one", refusal)
    for weight in ("-1", "inf", "", "heavy", "true", "1e999", "nan", "1e101"):
        refusal = Refused("a weight must be 0 or between 1e-100 and 1e+100, got", 3, "weight")
        body_text = f"better,worse,weight\na,b,1\nb,c,{weight}\n"
        yield pairs(body_text, "weights of pairs", f"the weight {weight!r} of a pair", refusal)
    beside = b"better,worse,weight\na,b,0\nb,c,1\n"
    refusal = Refused("the sum of the weights must be above 0", None, "weight")
    body = b"better,worse,weight\na,b,0\nb,c,0\n"
    yield Case("pairs of no weight", "", body, refusal, pairs=True, beside=beside)
    refusal = Refused("the table has a header but no pairs", code="no_rows")
    yield Case(
        "no pairs", "", b"better,worse\n", refusal, pairs=True, beside=b"better,worse\na,b\n"
    )
    columns = "pairs have their columns"
    refusal = Refused(
        "must have the columns better and worse, got 'better', 'than'",
        None,
        "worse",
        "unknown_column",
    )
    yield pairs("better,than\na,b\n", columns, "no worse", refusal)
    refusal = Refused("got also 'by'", None, "by", "unknown_column")
    yield pairs("better,worse,by\na,b,me\n", columns, "a column beside", refusal)
    body = b"better,worse\na,b\nb,c\nc,a\n"
    refusal = Refused("a table can have at most 2 pairs; this one has more", code="too_many_rows")
    rule = "at most so many rows"
    yield Case("a pair too many", rule, body, refusal, CSV, {"rows": 2}, pairs=True)
    expected = Table({"better": [0, 1, 2], "worse": [1, 2, 0]})
    rule = "as many rows as may be"
    yield Case("three pairs of three", rule, body, expected, CSV, {"rows": 3}, pairs=True)


CASES = list(cases())
