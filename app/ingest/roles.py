"""Assignment of a role to each column, and the choice of the positive label value."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from app.ingest.errors import BadTable, show
from app.ingest.fields import join_names, split_names
from app.ingest.rows import MAX_NAME_LENGTH
from app.ingest.values import category, read_number

LABEL_NAMES = ("label", "target", "class", "y")
"""Names of the label column, tried in this order if no label is given; without any of them the last column is the
label.
"""

ITEM_NAMES = ("item", "id")
"""Names of the item column, tried in this order if a table of items names none."""

_LISTED = 20  # names in a message
_BOOLEANS = {"true", "false"}
_SUGGESTED = 5

FAVOURED = frozenset({"true", "yes", "y", "t", "positive", "pos", "+"})


@dataclass(frozen=True)
class Roles:
    """The labels or the item, the optional weight, group and query, and the features in the order of the file.

    `categorical` and `numeric` are features that were declared so, `dropped` the columns that are not read. `graded`:
    the label is a grade, a whole number. `protected` are read like features, but no model is trained on them unless a
    job says so.
    """

    labels: tuple[str, ...]
    item: str | None
    weight: str | None
    group: str | None
    features: list[str]
    query: str | None = None
    graded: bool = False
    categorical: frozenset[str] = frozenset()
    numeric: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    protected: frozenset[str] = frozenset()


def assign(
    names: Sequence[str],
    *,
    kind: str,
    label: str | None,
    labels: Sequence[str] | None,
    item: str | None,
    weight: str | None,
    group: str | None,
    query: str | None = None,
    categorical: Sequence[str] | None = None,
    numeric: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    protected: Sequence[str] | None = None,
) -> Roles:
    """`preferences` have an item column, `multilabel` several labels, other kinds one label.

    Raises BadTable for an unknown column, and for a column with two roles.
    """
    named = [("label", label), *(("label", name) for name in labels or ())]
    named += [("item", item), ("weight", weight), ("group", group), ("query", query)]
    named += [("dropped", name) for name in drop or ()]
    declared = [("categorical", name) for name in categorical or ()]
    declared += [("numeric", name) for name in numeric or ()]
    marked = [("protected", name) for name in protected or ()]
    _check_known([*named, *declared, *marked], names)
    _check_apart(named)
    _check_apart(declared)
    free = [name for name in names if name not in {weight, group, query, *(drop or ())}]
    if kind == "preferences":
        roles = _assign_item(names, item, weight, group, free)
    else:
        roles = _assign_labels(names, label, labels, weight, group, free)
    _check_declared([*declared, *marked], roles.features)
    _check_features(
        "besides its protected columns, a table needs",
        [name for name in roles.features if name not in (protected or ())],
        protected or (),
    )
    return replace(
        roles,
        query=query,
        graded=kind == "graded",
        categorical=frozenset(categorical or ()),
        numeric=frozenset(numeric or ()),
        dropped=frozenset(drop or ()),
        protected=frozenset(protected or ()),
    )


def suggest_labels(
    wanted: str | None, names: Sequence[str], values: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the likely label columns, the most likely first.

    First the names similar to `wanted`; then the columns with two values in `values` (the first rows): those with a
    usual name of labels, then from the last column to the first.
    """
    lower = {name.lower(): name for name in names}
    close = get_close_matches((wanted or "").lower(), lower, n=_SUGGESTED, cutoff=0.75)
    two = [name for name in reversed(names) if len(set(values.get(name, ()))) == 2]
    two.sort(key=lambda name: name.lower() not in LABEL_NAMES)
    return list(dict.fromkeys([*(lower[name] for name in close), *two]))[:_SUGGESTED]


def _check_known(named: Sequence[tuple[str, str | None]], names: Sequence[str]) -> None:
    known = set(names)
    for role, name in named:
        if name is not None and name not in known:
            raise BadTable(
                f"the {role} column {show(name)} is not in the table; it has {_listed(names)}",
                column=name,
                code="unknown_column",
            )


def _check_apart(named: Sequence[tuple[str, str | None]]) -> None:
    seen: dict[str, str] = {}
    for role, name in named:
        if name is None:
            continue
        if name in seen:
            raise BadTable(
                f"each column can have only one role, got {show(name)} as {seen[name]} and as {role}",
                column=name,
                code="column_in_two_roles",
            )
        seen[name] = role


def _check_declared(declared: Sequence[tuple[str, str]], features: Sequence[str]) -> None:
    """Raise BadTable for a declared type of a column that is not a feature."""
    known = set(features)
    for kind, name in declared:
        if name not in known:
            raise BadTable(
                f"a {kind} column must be a feature; {show(name)} has another role",
                column=name,
                code="column_in_two_roles",
            )


def _check_features(what: str, features: Sequence[str], names: Sequence[str]) -> None:
    if not features:
        raise BadTable(
            f"{what} at least one feature column, got only {_listed(names)}", code="no_features"
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(show, names[:_LISTED]))
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return shown + more or "no column"


def _assign_labels(
    names: Sequence[str],
    label: str | None,
    labels: Sequence[str] | None,
    weight: str | None,
    group: str | None,
    free: list[str],
) -> Roles:
    if labels is None and label is None:
        label = next((name for name in LABEL_NAMES if name in free), free[-1] if free else None)
    chosen = tuple(labels) if labels else (label,) if label else ()
    features = [name for name in free if name not in chosen]
    _check_features("a table needs a label and", features if chosen else [], names)
    return Roles(chosen, None, weight, group, features)


def _assign_item(
    names: Sequence[str], item: str | None, weight: str | None, group: str | None, free: list[str]
) -> Roles:
    if item is None:
        item = next((name for name in ITEM_NAMES if name in free), None)
    if item is None:
        raise BadTable(
            "a table of items must have a column with their names: set item to it, or call it "
            f"{' or '.join(ITEM_NAMES)}",
            code="no_item",
        )
    features = [name for name in free if name != item]
    _check_features("a table of items needs", features, names)
    return Roles((), item, weight, group, features)


def order_pair(values: Sequence[str]) -> tuple[str, str]:
    """Return (negative, positive) of a label's two values.

    The positive value is the larger number; else a word such as true or yes; else the later one in text order.
    """
    first, second = sorted(values)
    low, high = read_number(first), read_number(second)
    if low is not None and high is not None and low != high:
        return (first, second) if low < high else (second, first)
    if first.lower() in FAVOURED and second.lower() not in FAVOURED:
        return second, first
    return first, second


def is_certain(negative: str, positive: str) -> bool:
    """Return True if two values determine the positive one: 1 with 0 or -1, or a word such as yes with any other."""
    numbers = read_number(negative), read_number(positive)
    if None not in numbers:
        return numbers in ((0.0, 1.0), (-1.0, 1.0))
    return positive.lower() in FAVOURED and negative.lower() not in FAVOURED


def find_positives(values: Collection[str], positive: str) -> tuple[str, ...] | None:
    """Return the values that the name of the positive class denotes; None if one is missing in `values`.

    That is the value with exactly this text, else the only one with the same number; else all values that the name
    lists, separated by commas.
    """
    if (one := _find_value(values, positive.strip())) is not None:
        return (one,)
    listed = [_find_value(values, name) for name in split_names(positive)]
    found = tuple(dict.fromkeys(value for value in listed if value is not None))
    return found if None not in listed and len(found) > 1 else None


def name_class(known: Collection[str], values: Sequence[str], positive: str) -> str:
    """Return the name of a class of several label values; the order in `positive` does not matter.

    The name is `positive` itself if a list of the values would be too long, or would denote another value.
    """
    listed = sorted(values, key=lambda value: (read_number(value) or 0.0, value))
    name = join_names(listed)
    same = len(name) <= MAX_NAME_LENGTH and _find_value(known, name) is None
    return name if same and split_names(name) == listed else positive.strip()


def _find_value(values: Collection[str], name: str) -> str | None:
    """Return the value with this name, or the only one that is equal as a boolean or number; else None."""
    name = category(name)
    if name in values:
        return name
    if (folded := name.lower()) in _BOOLEANS and {each.lower() for each in values} == _BOOLEANS:
        return next(each for each in values if each.lower() == folded)
    if (wanted := read_number(name)) is None:
        return None
    equal = [value for value in values if read_number(value) == wanted]
    return equal[0] if len(equal) == 1 else None


def unknown_positive(values: Sequence[str], positive: str) -> BadTable:
    """The positive label is neither a value nor a list of values."""
    listed = [show(value) for value in values[:_LISTED]]
    rest = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
    shown = " and ".join(listed) if len(values) == 2 else ", ".join(listed) + rest
    several = ", or several of them separated by commas" if len(values) > 2 else ""
    return BadTable(
        f"positive must be one of the label's values {shown}{several}, got {show(positive)}",
        code="unknown_positive",
    )


def label_type(pair: Sequence[str]) -> str:
    """Return numeric, boolean or categorical."""
    if {value.lower() for value in pair} == _BOOLEANS:
        return "boolean"
    return "categorical" if None in map(read_number, pair) else "numeric"
