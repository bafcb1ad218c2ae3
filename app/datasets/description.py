"""What a caller says of a table: its name, roles, kind and dialect, and the format of its bytes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.ingest.formats import (
    CHOICES,
    CONTENT_TYPES,
    CSV,
    ZIP_ARCHIVE,
    check_length,
    encoding_of,
    find_clash,
    foreign_fields,
)
from app.ingest.roles import split_names
from app.ingest.values import DEFAULT_TOKENS, TYPED_TOKENS
from app.platform.errors import MAX_ERRORS, Invalid, UnsupportedMedia, first_doubled, nearest
from app.platform.tables import DatasetKind, VersionMode

DIALECT_FIELDS = {
    "encoding": "Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`.",
    "delimiter": "Of a CSV: `comma`, `semicolon`, `tab` or `pipe`.",
    "decimal": "Of a CSV: `point` or `comma`, what stands before decimals.",
    "thousands": "Of a CSV: `point`, `comma`, `space` or `apostrophe`, what stands between thousands.",
    "dates": "`day_first` or `month_first`: what 03/04/2026 means. 2026-04-03 and 03.04.2026 need it not.",
}
FIELD_TEXTS = {
    "name": "Name of the dataset. Default: `table`.",
    "label": "Column of the label.",
    "positive": "Value of the label that counts as positive; or several, separated by commas. All others are negative.",
    "weight": "Column of the row weights.",
    "group": "Column of groups: rows with the same value are never divided between training and validation.",
    "query": "Column of queries: rows with the same value are one list, such as the answers to one question. Rankers "
    "learn and are judged within queries. Rows of a query are never divided between training and validation.",
    "item": "Column of the items' names, for `preferences`.",
    "labels": "Columns of the labels, separated by commas, for `multilabel`.",
    "categorical": "Columns to read as categories although they hold numbers, separated by commas. Put a name that "
    "contains a comma in quotes.",
    "numeric": "Columns to read as numbers, separated by commas. Any other text in them counts as missing.",
    "drop": "Columns to leave out, separated by commas.",
    "missing": "Texts that mean a missing value, separated by commas, in upper or lower case. An empty cell is always "
    f"missing, and so are `{'`, `'.join(TYPED_TOKENS)}` in columns of numbers, dates or booleans. "
    f"Default: `{','.join(DEFAULT_TOKENS)}`.",
    "strict": "`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is a "
    "warning. Default: `false`.",
    "encoding": f"{DIALECT_FIELDS['encoding']} UTF-8 or UTF-16 unless it is given.",
    "delimiter": f"{DIALECT_FIELDS['delimiter']} Read off the header unless it is given.",
    "decimal": f"{DIALECT_FIELDS['decimal']} The point unless it is given.",
    "thousands": f"{DIALECT_FIELDS['thousands']} Nothing unless it is given.",
    "dates": f"{DIALECT_FIELDS['dates']} Found by the values, if one shows it, unless it is given.",
    "kind": "`bipartite`: rows with a label of two values. `preferences`: rows are items, "
    "and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. "
    "`multilabel`: rows with several labels of two values each. "
    "`graded`: rows with a label of grades, whole numbers from 0 to 31; the greater is the better.",
}
CONTENT_ENCODINGS = ("gzip", "zstd")
KINDS = tuple(DatasetKind)
FIELDS = (
    *("name", "label", "positive", "labels", "weight", "group", "query", "item", "kind"),
    *("categorical", "numeric", "drop", "missing", "strict"),
    *CHOICES,
)
LISTS = frozenset({"labels", "categorical", "numeric", "drop", "missing"})
MAX_TEXT_LENGTH = 255  # characters of a name
MAX_LIST_LENGTH = 4096  # characters of a list of names
MAX_LABELS = 100
_ROLES = ("label", "item", "weight", "group", "query")
_BOOLEANS = ("true", "false")
_NO_ITEM = "rows have labels; items belong to kind=preferences"
_ONE_LABEL = "several labels belong to kind=multilabel"
_NO_LABEL = "items have no label; pairs say which one is better"
FOREIGN: Mapping[str, Mapping[str, str]] = {
    DatasetKind.BIPARTITE: {"item": _NO_ITEM, "labels": _ONE_LABEL},
    DatasetKind.PREFERENCES: {
        **dict.fromkeys(("label", "positive", "labels"), _NO_LABEL),
        "weight": "items have no weight; pairs have weights",
        "query": "pairs say which items are compared; items of one query belong together by group",
    },
    DatasetKind.MULTILABEL: {
        "item": _NO_ITEM,
        "query": "rows of a query are put in order by one label",
        **dict.fromkeys(("label", "positive"), "the option labels names the labels"),
    },
    DatasetKind.GRADED: {
        "item": _NO_ITEM,
        "labels": _ONE_LABEL,
        "positive": "grades are whole numbers, and a greater one is better",
    },
}
"""Fields that mean nothing for a kind, and why."""
MODES = tuple(VersionMode)
CLOSED: Mapping[str, Collection[str]] = {
    "kind": KINDS,
    "strict": _BOOLEANS,
    "mode": MODES,
    **CHOICES,
}
"""The fields that take one of a few values."""
VERSION_FIELDS = ("mode", *CHOICES)


@dataclass(frozen=True)
class Description:
    """What the caller says about a table."""

    name: str
    label: str | None
    positive: str | None
    weight: str | None
    group: str | None
    item: str | None
    labels: list[str] | None
    kind: str
    categorical: list[str] | None = None
    numeric: list[str] | None = None
    drop: list[str] | None = None
    missing: list[str] | None = None
    strict: bool = False
    dialect: dict[str, str] | None = None
    query: str | None = None


@dataclass(frozen=True)
class Format:
    """What the bytes of an upload are; `charset` is what the Content-Type says of a text."""

    content_type: str
    content_encoding: str | None
    charset: str | None = None


def describe(given: Mapping[str, str], also: Sequence[str] = ()) -> Description:
    """Check what the caller says about a table; every error is named. `also` are fields that may have been meant."""
    errors: list[dict[str, str]] = []
    for field, value in given.items():
        if len(errors) >= MAX_ERRORS:
            break
        if field not in FIELDS:
            names = (*FIELDS, *also)
            hint = nearest(field, names) or f"known are {', '.join(names)}"
            detail = f"{field[:MAX_TEXT_LENGTH]} is not known here; {hint}"
        elif not 0 < len(value) <= max_length(field) or "\0" in value:
            detail = f"{field} must have 1 to {max_length(field)} characters and no NUL"
        else:
            continue
        errors.append({"parameter": field[:MAX_TEXT_LENGTH], "detail": detail})
    kind = given.get("kind", "bipartite")
    if kind not in KINDS:
        detail = f"kind must be {' or '.join(KINDS)}, got {kind[:100]!r}"
        errors.append({"parameter": "kind", "detail": detail})
    errors += [
        {"parameter": field, "detail": f"{field} cannot be given with kind={kind}: {why}"}
        for field, why in FOREIGN.get(kind, {}).items()
        if field in given
    ]
    if "group" in given and "query" in given:
        detail = "group and query cannot be given together: rows of a query stay together as those of a group do"
        errors.append({"parameter": "group", "detail": detail})
    lists, wrong = _read_lists(given, kind)
    errors += wrong
    for field, known in CHOICES.items():
        if field in given and given[field] not in known:
            detail = f"{field} must be one of {', '.join(known)}, got {given[field][:100]!r}"
            errors.append({"parameter": field, "detail": detail})
    if (clash := find_clash(given)) is not None:
        errors.append({"parameter": "thousands", "detail": clash})
    roles = [(role, given[role]) for role in _ROLES if role in given]
    if given.get("strict", "false") not in _BOOLEANS:
        detail = f"strict must be true or false, got {given['strict'][:100]!r}"
        errors.append({"parameter": "strict", "detail": detail})
    for field in ("drop", "labels", "categorical", "numeric"):
        roles += [(field, name) for name in lists.get(field) or ()]
    if len({name for _, name in roles}) < len(roles):
        named = ", ".join(f"{role}={column!r}" for role, column in roles[:20])
        errors.append(
            {
                "parameter": "label",
                "detail": f"each role needs a column of its own, got {named[:1000]}",
            }
        )
    if errors:
        raise Invalid(errors[0]["detail"], errors=errors)
    return Description(
        name=given.get("name", "table"),
        label=given.get("label"),
        positive=given.get("positive"),
        weight=given.get("weight"),
        group=given.get("group"),
        query=given.get("query"),
        item=given.get("item"),
        labels=lists.get("labels"),
        kind=kind,
        categorical=lists.get("categorical"),
        numeric=lists.get("numeric"),
        drop=lists.get("drop"),
        missing=lists.get("missing"),
        strict=given.get("strict") == "true",
        dialect={field: given[field] for field in CHOICES if field in given} or None,
    )


def schema_of(field: str, most: int | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a field's value. `most` is its maximum length, if another than `max_length` says."""
    if field in CLOSED:
        return {"type": "string", "enum": [str(value) for value in CLOSED[field]]}
    return {"type": "string", "minLength": 1, "maxLength": most or max_length(field)}


def max_length(field: str) -> int:
    """Return the maximum length of a field in characters."""
    return MAX_LIST_LENGTH if field in LISTS else MAX_TEXT_LENGTH


def _read_lists(
    given: Mapping[str, str], kind: str
) -> tuple[dict[str, list[str]], list[dict[str, str]]]:
    """The fields that hold several names or values, and what is wrong with them."""
    lists = {field: split_names(given[field]) for field in LISTS if field in given}
    if kind == DatasetKind.MULTILABEL:
        lists.setdefault("labels", [""])
    else:
        lists.pop("labels", None)  # the kind has refused it already
    if "missing" in lists:  # the empty value is missing anyway
        lists["missing"] = [token for token in lists["missing"] if token]
    wrong = []
    for field, names in sorted(lists.items()):
        what = "the label columns of a multilabel table" if field == "labels" else "columns"
        if not all(names):
            wrong.append((field, f"{field} must name {what}, as in {field}=a,b,c"))
        elif field == "labels" and len(names) > MAX_LABELS:
            detail = f"labels must be at most {MAX_LABELS} columns, got {len(names)}"
            wrong.append((field, detail))
        elif (twice := first_doubled(names)) is not None:
            wrong.append((field, f"{field} must list each name once, {twice!r} occurs twice"))
    return lists, [{"parameter": field, "detail": detail} for field, detail in wrong]


@dataclass(frozen=True)
class NewVersion:
    """What the caller says about another version; all else is its parent's."""

    mode: str
    dialect: dict[str, str] | None


def describe_version(given: Mapping[str, str]) -> NewVersion:
    """Check what the caller says about a version; every error is named."""
    errors: list[dict[str, str]] = []
    known = {"mode": MODES, **CHOICES}
    for field, value in given.items():
        if len(errors) >= MAX_ERRORS:
            break
        if field not in known:
            detail = (
                f"{field[:100]} is not known here; a new version has the roles of its parent; "
                + (nearest(field, VERSION_FIELDS) or f"known are {', '.join(VERSION_FIELDS)}")
            )
        elif value not in known[field]:
            detail = f"{field} must be one of {', '.join(known[field])}, got {value[:100]!r}"
        else:
            continue
        errors.append({"parameter": field[:100], "detail": detail})
    if errors:
        raise Invalid(errors[0]["detail"], errors=errors)
    dialect = {field: given[field] for field in CHOICES if field in given}
    return NewVersion(given.get("mode", VersionMode.APPEND), dialect or None)


def check_format(content_type: str, content_encoding: str | None, also: str = "a form") -> Format:
    """The media type without parameters and the encoding, if both can be read. `also` is what else may be sent."""
    check_length(content_type)
    media_type = content_type.partition(";")[0].strip().lower()
    charset = None
    if media_type == CSV:
        try:
            charset = encoding_of(content_type)
        except ValueError as error:
            raise UnsupportedMedia(f"the {error} in the Content-Type") from error
    if media_type not in (*CONTENT_TYPES, ZIP_ARCHIVE):
        known = ", ".join((*CONTENT_TYPES, ZIP_ARCHIVE))
        got = repr(media_type[:100]) if media_type else "none"
        raise UnsupportedMedia(f"Content-Type must be one of {known}, or {also}; got {got}")
    return Format(media_type, check_encoding(content_encoding), charset)


def check_encoding(content_encoding: str | None) -> str | None:
    """The encoding, if it can be read; None for a body that is sent as it is."""
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        return None
    if encoding not in CONTENT_ENCODINGS:
        known = ", ".join(CONTENT_ENCODINGS)
        raise UnsupportedMedia(f"Content-Encoding must be one of {known}, got {encoding[:100]!r}")
    return encoding


def refuse_foreign(dialect: Mapping[str, str] | None, table: Format) -> None:
    """Raise Invalid for fields of a CSV, if the table is none."""
    if fields := foreign_fields(dialect or {}, table.content_type):
        detail = f"{', '.join(fields)} can be set only for {CSV}, got {table.content_type}"
        raise Invalid(detail, errors=[{"parameter": field, "detail": detail} for field in fields])


def refuse_clash(dialect: Mapping[str, str]) -> None:
    """Raise Invalid for one mark between thousands and before decimals."""
    if (clash := find_clash(dialect)) is not None:
        raise Invalid(clash, errors=[{"parameter": "thousands", "detail": clash}])


def find_dialect(description: Description, table: Format) -> dict[str, str] | None:
    """How the text of a table is written, by the fields and the Content-Type; raises Invalid for fields of a CSV."""
    dialect = description.dialect
    refuse_foreign(dialect, table)
    if table.charset is not None:
        return {"encoding": table.charset, **(dialect or {})}
    return dialect
