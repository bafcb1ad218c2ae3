"""Labels, weights, groups, items and lists of labels; what is declared and what is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.app.ingest.corpus.case import Case, Refused, Table


def table(header: str, *rows: str) -> bytes:
    """Write a CSV."""
    return "\n".join([header, *rows, ""]).encode()


def labels(*values: str) -> bytes:
    """Write a CSV with a feature `a` of numbers and a label of these values."""
    return table("a,y", *(f"{i + 0.5},{value}" for i, value in enumerate(values)))


def label() -> Iterator[Case]:
    """Which column is the label, and which of its values are positive."""
    for name in ("label", "target", "class", "y"):
        body = table(f"{name},a,b", "0,1,2", "1,3,5", "0,3,4")
        expected = Table({name: [0, 1, 0]}, roles={name: "label", "b": "feature"})
        rule = "the label is found by its name"
        yield Case(f"a label called {name}", rule, body, expected)
    body = table("y,label,class", "1,0,0", "2,1,0", "3,1,1")
    expected = Table({"label": [0, 1, 1]}, roles={"label": "label", "y": "feature"})
    yield Case("label comes first", "the label is found by its name", body, expected)
    body = table("a,b,c", "1,1,0", "2,0,1")
    expected = Table({"c": [0, 1]}, roles={"c": "label", "a": "feature"})
    yield Case("the last is the label", "the label is the last", body, expected)
    expected = Table({"b": [1, 0]}, roles={"b": "label", "c": "feature"})
    yield Case("a label that is said", "the label is said", body, expected, said={"label": "b"})
    pairs: list[tuple[str, str, str, str]] = [
        ("9", "10", "10", "the greater number is positive"),
        ("-1", "1", "1", "the later text is positive"),
        ("1", "-1", "1", "the later text is positive"),
        ("1e3", "9", "1e3", "the greater number is positive"),
        ("2.50", "10", "10", "the greater number is positive"),
        ("yes", "zero", "yes", "words are favoured"),
        ("Positive", "unknown", "Positive", "words are favoured"),
        ("T", "f", "T", "the later text is positive"),
        ("+", "-", "+", "words are favoured"),
        ("no", "yes", "yes", "the later text is positive"),
        ("A", "a", "a", "the later text is positive"),
        ("true", "untrue", "true", "words are favoured"),
        ("Y", "Z", "Y", "words are favoured"),
        ("<=50K", ">50K", ">50K", "the later text is positive"),
        ("good", "bad", "good", "the later text is positive"),
        ("nein", "Ärger", "Ärger", "the later text is positive"),
        ("=1", "+1", "=1", "the later text is positive"),
        ("é", "e\u0301", "é", "the later text is positive"),
        ("1", "x", "x", "the later text is positive"),
        ("10", "9x", "9x", "the later text is positive"),
    ]
    for one, other, positive, rule in pairs:
        codes = [int(one == positive), int(other == positive)]
        expected = Table({"y": codes}, result={"positive": positive})
        yield Case(
            f"of {one} and {other} {positive} is positive", rule, labels(one, other), expected
        )
    yield from odd_labels()
    yield from label_values()


def odd_labels() -> Iterator[Case]:
    """Labels that are no numbers, and `positive`."""
    for one, other, positive in (("1_0", "2", "2"), ("nan", "1", "nan"), ("٣", "2", "٣")):
        codes = [int(one == positive), int(other == positive)]
        expected = Table({"y": codes}, {"y": "categorical"}, result={"positive": positive})
        given: dict[str, Any] = {"missing": ["-"]}
        name = f"{one} is no number beside {other}"
        yield Case(name, "a number is no Python", labels(one, other), expected, said=given)
    for one, other, said, positive in (
        ("0", "1", "0", "0"), ("1", "2", "1.0", "1"), ("no", "yes", " no ", "no"), ("10", "9", "9.0", "9"),
    ):  # fmt: skip
        codes = [int(one == positive), int(other == positive)]
        expected = Table({"y": codes}, result={"positive": positive})
        name = f"of {one} and {other} {said} is said to be positive"
        body = labels(one, other)
        yield Case(name, "the positive value is said", body, expected, said={"positive": said})
    for said in ("2", "yes", "", "01", "1_0"):
        detail = f"positive must be one of the label's values '0' and '1', got {said!r}"
        body = labels("0", "1") if said != "01" else labels("0", "1x")
        if said == "01":
            detail = "positive must be one of the label's values '0' and '1x', got '01'"
        refusal = Refused(detail, code="unknown_positive")
        name = f"positive is {said!r}, which is not there"
        yield Case(name, "the positive value is there", body, refusal, said={"positive": said})


def label_values() -> Iterator[Case]:
    """Exactly two values, none missing."""
    for values, line, wrong, pair in (
        (["0", "1", "2"], 4, "2", "'0' and '1'"),
        (["0", "1", "01"], 4, "01", "'0' and '1'"),
        (["no", "yes", "No"], 4, "No", "'no' and 'yes'"),
        (["a", "b", "b", "c"], 5, "c", "'a' and 'b'"),
    ):
        refusal = Refused(
            f"'{wrong}' is a third value of the label, in addition to {pair}", line, "y"
        )
        yield Case(f"the third value {wrong}", "two values", labels(*values), refusal)
    for token in ("", "NA", " ? ", '""'):
        refusal = Refused("the label is missing", 3, "y")
        body = labels("0", token, "1")
        yield Case(f"the label {token!r} is missing", "no label is missing", body, refusal)
    refusal = Refused("the label is missing", 4, "y")
    body, given = labels("yes", "no", "unknown"), {"missing": ["unknown"]}
    yield Case(
        "a label that is said to be missing", "no label is missing", body, refusal, said=given
    )
    detail = "the label 'y' must have two different values, got only the value '1' in 2 rows"
    refusal = Refused(detail, None, "y", "one_class")
    yield Case("one value of the label", "both values", labels("1", " 1"), refusal)
    body = table("a,y", "1.5,x", "2.5,x", "3,x")
    detail = "got only the value 'x' in 3 rows"
    yield Case(
        "one text of the label", "both values", body, Refused(detail, None, "y", "one_class")
    )
    expected = Table({"y": [0, 1, 0]}, result={"negative": "no", "positive": "yes"})
    yield Case("spaced labels", "spaces around", labels("no ", " yes", "no"), expected)
    for name, value in (("long", "x" * 256), ("with a NUL", "x\0")):
        detail = "a label must be at most 255 characters without NUL, got 'x"
        body = labels("0", value)
        yield Case(
            f"a label that is {name}", "a label has a length", body, Refused(detail, None, "y")
        )
    expected = Table({"y": [0, 1]}, result={"positive": "x" * 255})
    yield Case("a label of 255", "the later text is positive", labels("0", "x" * 255), expected)
    expected = Table({"y": [1, 0, 1]}, {"y": "boolean"}, result={"positive": "true"})
    spellings = {
        "1/0 by pandas": ("0.0", "1.0", "0", "1"),
        "booleans": ("False", "True", "false", "TRUE"),
    }
    for name, each in spellings.items():
        positive = {"1.0": "1", "True": "true"}[each[1]]
        two = Table({"y": [0, 1, 0, 1]}, result={"positive": positive})
        yield Case(f"spellings of {name}", "one value is one label", labels(*each), two)
    yield Case(
        "a boolean label", "the later text is positive", labels("TRUE", "FALSE", "TRUE"), expected
    )


def roles() -> Iterator[Case]:
    """Names that are not there, and columns in two roles."""
    body = table("a,b,y", "1,2,0", "3,4,1")
    for role in ("label", "weight", "group"):
        detail = f"the {role} column 'z' is not in the table; it has 'a', 'b', 'y'"
        refusal = Refused(detail, None, "z", "unknown_column")
        yield Case(f"an unknown {role}", "roles are of the table", body, refusal, said={role: "z"})
    for role, called in (("drop", "dropped"), ("categorical", "categorical"), ("labels", "label")):
        detail = f"the {called} column 'z' is not in the table"
        refusal = Refused(detail, None, "z", "unknown_column")
        given = {role: ["z"]} | ({"kind": "multilabel"} if role == "labels" else {})
        yield Case(f"unknown {role}", "roles are of the table", body, refusal, said=given)
    for one, other in (("label", "weight"), ("label", "group"), ("weight", "group")):
        detail = f"each column can have only one role, got 'a' as {one} and as {other}"
        refusal = Refused(detail, None, "a", "column_in_two_roles")
        yield Case(
            f"{one} and {other}", "roles are apart", body, refusal, said={one: "a", other: "a"}
        )
    for role in ("label", "weight", "group"):
        detail = f"got 'a' as {role} and as dropped"
        refusal = Refused(detail, None, "a", "column_in_two_roles")
        given = {role: "a", "drop": ["a"]}
        yield Case(f"a dropped {role}", "roles are apart", body, refusal, said=given)
    asked: dict[str, dict[str, Any]] = {
        "the label": {"categorical": ["y"]},
        "the weight": {"categorical": ["a"], "weight": "a"},
        "what is dropped": {"categorical": ["a"], "drop": ["a"]},
    }
    for name, given in asked.items():
        column = given["categorical"][0]
        detail = f"a categorical column must be a feature; '{column}' has another role"
        refusal = Refused(detail, None, column, "column_in_two_roles")
        rule = "only features are declared"
        yield Case(f"categorical is {name}", rule, body, refusal, said=given)
    asked = {
        "all dropped": {"drop": ["a", "b"]},
        "all in roles": {"weight": "a", "group": "b"},
        "everything dropped": {"drop": ["a", "b", "y"]},
    }
    for name, given in asked.items():
        detail = "a table needs a label and at least one feature column, got only 'a', 'b', 'y'"
        refusal = Refused(detail, code="no_features")
        yield Case(f"no feature: {name}", "there are features", body, refusal, said=given)
    broken = b"n,a,y\n1,x\xff,0\n2,1,1\n3,1e999,0\n4,inf,1\n"
    expected = Table({"n": [1.0, 2.0, 3.0, 4.0]}, {"a": None}, {"a": "dropped"})
    given = {"drop": ["a"]}
    rule = "dropped columns are not read"
    yield Case("broken values dropped", rule, broken, expected, said=given)
    body = table("n,label,y", "1,x,0", "2,y,1")
    expected = Table({"n": [1.0, 2.0], "y": [0, 1]}, roles={"label": "dropped", "y": "label"})
    yield Case("a label dropped", rule, body, expected, said={"drop": ["label"]})


def weights_and_groups() -> Iterator[Case]:
    """Numbers of a range; any text."""
    given: dict[str, Any] = {"weight": "w"}

    def weighed(*cells: str) -> bytes:
        return table("a,w,y", *(f"{i},{cell},{i % 2}" for i, cell in enumerate(cells)))

    expected = Table({"w": [0.0, 2.5, 1e-100]}, {"w": "numeric"}, {"w": "weight"})
    yield Case("weights", "the weight is said", weighed("0", "2.5", "1e-100"), expected, said=given)
    for cell, rule, detail in (
        ("-1", "weights have a range", "a weight must be 0 or between 1e-100 and 1e+100, got -1"),
        (
            "1e-101",
            "weights have a range",
            "a weight must be 0 or between 1e-100 and 1e+100, got 1e-101",
        ),
        (
            "1e101",
            "weights have a range",
            "a weight must be 0 or between 1e-100 and 1e+100, got 1e+101",
        ),
        ("", "no weight is missing", "a weight must not be missing"),
        ("NA", "no weight is missing", "a weight must not be missing"),
        ("inf", "weights are numbers", "'inf' is not a finite number"),
        ("heavy", "weights are numbers", "'heavy' is not a number"),
        ("2026-01-31", "weights are numbers", "'2026-01-31' is not a number"),
    ):
        body = weighed("1", cell, "1")
        yield Case(f"the weight {cell!r}", rule, body, Refused(detail, 3, "w"), said=given)
    refusal = Refused("the sum of the weights must be above 0, got 0", None, "w")
    yield Case("no weight at all", "weights have a sum", weighed("0", "0"), refusal, said=given)
    given = {"group": "g", "label": "y"}

    def grouped(*cells: str) -> bytes:
        return table("a,g,y", *(f"{i},{cell},{i % 2}" for i, cell in enumerate(cells)))

    expected = Table({"g": ["007", "7", "x, z"]}, {"g": "categorical"}, {"g": "group"})
    body = grouped("007", " 7 ", '"x, z"')
    yield Case("groups", "the group is said", body, expected, said=given)
    refusal = Refused("the group must not be missing", 3, "g")
    yield Case("a group missing", "no group is missing", grouped("u", "", "w"), refusal, said=given)
    for name, cell in (("too long", "x" * 256), ("with a NUL", "x\0z")):
        refusal = Refused("the group must have at most 255 characters without NUL, got 'x", 3, "g")
        body = grouped("u", cell, "w")
        yield Case(f"a group {name}", "no NUL in a name", body, refusal, said=given)


def items_and_labels() -> Iterator[Case]:
    """Tables of items, and of several labels."""
    kind: dict[str, Any] = {"kind": "preferences"}
    for name in ("item", "id"):
        body = table(f"a,{name}", "1,x", "2,z")
        expected = Table({name: ["x", "z"]}, roles={name: "item"})
        yield Case(
            f"items called {name}", "the item is found by its name", body, expected, said=kind
        )
    body = table("id,film", "1,x", "2,z")
    expected = Table({"film": ["x", "z"], "id": [1.0, 2.0]}, roles={"film": "item"})
    yield Case(
        "items that are said", "the item is said", body, expected, said=kind | {"item": "film"}
    )
    refusal = Refused("set item to it, or call it item or id", code="no_item")
    body = table("a,film", "1,x", "2,z")
    beside = table("a,item", "1,x", "2,z")
    yield Case("no item", "", body, refusal, said=kind, beside=beside)
    refusal = Refused("a table of items needs at least one feature column", code="no_features")
    yield Case("items alone", "there are features", table("item", "x", "z"), refusal, said=kind)
    refusal = Refused("item 'x' is already in line 2", 4, "item", total=2)
    body = table("item,a", "x,1", "z,2", "x,3", " x ,4")
    yield Case("an item twice", "no item twice", body, refusal, said=kind)
    refusal = Refused("the item must not be missing", 3, "item")
    yield Case(
        "an item missing", "no item is missing", table("item,a", "x,1", ",2"), refusal, said=kind
    )
    refusal = Refused("the item must have at most 255 characters without NUL", 3, "item")
    body = table("item,a", "x,1", "x\0,2")
    yield Case("an item with a NUL", "no NUL in a name", body, refusal, said=kind)
    kind = {"kind": "multilabel", "labels": ["u", "v"]}
    body = table("a,u,v", "1,0,no", "2,1,no", "3,1,yes")
    expected = Table({"u": [0, 1, 1], "v": [0, 0, 1]}, roles={"u": "label", "v": "label"})
    yield Case("two labels", "labels are said", body, expected, said=kind)
    refusal = Refused("'maybe' is a third value of the label", 4, "v")
    body = table("a,u,v", "1,0,no", "2,1,yes", "3,1,maybe")
    yield Case("a third value of the second label", "two values", body, refusal, said=kind)
    refusal = Refused("the label is missing", 4, "u")
    body = table("a,u,v", "1,0,no", "2,1,yes", "3,,yes")
    yield Case("the first of two labels missing", "no label is missing", body, refusal, said=kind)
    refusal = Refused("the label 'v' must have two different values", None, "v", "one_class")
    body = table("a,u,v", "1,0,no", "2,1,no")
    yield Case("one value of the second label", "both values", body, refusal, said=kind)
    refusal = Refused("got 'u' as label and as label", None, "u", "column_in_two_roles")
    given = {"kind": "multilabel", "labels": ["u", "u"]}
    yield Case("a label twice", "roles are apart", body, refusal, said=given)


CASES = [*label(), *roles(), *weights_and_groups(), *items_and_labels()]
