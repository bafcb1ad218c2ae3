"""The fields of an upload in the console's forms: from the API's description, with the page's own labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.routing import APIRoute
from rankwright.types import Dataset

from app.console.words import FieldLabel
from app.http.forms import FORM


@dataclass(frozen=True)
class Words:
    """A field's label, its purpose, and the meanings of its values and of none.

    suggests: the id of the HTML list with suggestions.
    """

    title: str
    note: str
    choices: Mapping[str, str] = field(default_factory=dict)
    suggests: str | None = None
    unset: str = "default"


class UploadField(NamedTuple):
    """A field: label, purpose, and choices (the API's value and a text); without choices it is a text field."""

    title: str
    note: str
    choices: Mapping[str, str] | None
    suggests: str | None
    unset: str


_COLUMNS = "columns"
WORDS: Mapping[str, Words] = {
    "name": Words("Name", "Name of the dataset."),
    "label": Words(
        "Label",
        "The column with the known outcome. If empty, the service uses a column named label, target, class or y, or "
        "else the last column.",
        suggests=_COLUMNS,
    ),
    "positive": Words(
        "Positive values",
        "Label values of the rows that should rank at the top, separated by commas. If empty, you can choose on the "
        "dataset page, which lists the values.",
        suggests="values",
    ),
    "group": Words(
        "Group column",
        "A column such as the customer id. Rows with the same value stay on the same side of a split, so that the "
        "model is not validated on rows related to its training rows.",
        suggests=_COLUMNS,
    ),
    "weight": Words(
        "Weight column",
        "A numeric column. A row with weight 2 counts as two rows.",
        suggests=_COLUMNS,
    ),
    "query": Words(
        "Query column",
        "A column that identifies the list of each row, such as a search query. Rows are ranked within each query.",
        suggests=_COLUMNS,
    ),
    "kind": Words(
        "Kind of data",
        "Usually each row belongs to one of two classes.",
        {
            "bipartite": "two classes",
            "graded": "grades from 0 to 31",
            "multilabel": "several two-class labels",
            "preferences": "pairs of items, one better than the other",
        },
    ),
    "labels": Words("Several labels", "Columns of the labels, separated by commas."),
    "item": Words(
        "Item column",
        "For pairs of items: the column with the item names.",
        suggests=_COLUMNS,
    ),
    "categorical": Words(
        "Categorical columns",
        "Numeric codes to treat as categories, such as postal codes, separated by commas. 007 then differs from 7.",
    ),
    "numeric": Words(
        "Numeric columns", "Separated by commas. Values that are not numbers count as missing."
    ),
    "drop": Words(
        "Columns to drop",
        "Separated by commas. Drop columns that are not known when a row is scored, or that you may not use.",
    ),
    "protected": Words(
        "Protected columns",
        "Columns with a legally protected attribute, such as sex or age, separated by commas. They are stored and "
        "compared between groups, but are not features of a model unless you decide so when you train it.",
    ),
    "missing": Words(
        "Missing values",
        r"Texts that mean “missing”, separated by commas. Default: NA, N/A, #N/A, <NA>, null, \N, NaN and ?. Empty "
        "cells are always missing. In numeric and date columns so are a period, a dash and None.",
    ),
    "strict": Words(
        "Invalid values",
        "How to treat values that do not fit the column type, and rows without a label.",
        {"false": "treat as missing, with a warning", "true": "reject the table"},
    ),
    "sheet": Words(
        "Sheet",
        "For an Excel workbook with several sheets: the name of the sheet with the table. If empty, the service "
        "reads the first visible sheet; for a table to score, the sheet of the training table if the workbook has it.",
        unset="first visible sheet",
    ),
    "encoding": Words(
        "CSV encoding",
        "Choose another encoding if characters such as ä or é look wrong.",
        {
            "utf-8": "UTF-8",
            "utf-16": "UTF-16",
            "latin-1": "Latin-1",
            "windows-1252": "Windows-1252 (western Europe)",
        },
        unset="detect",
    ),
    "delimiter": Words(
        "CSV separator",
        "Detected from the first line by default.",
        {"comma": "comma ,", "semicolon": "semicolon ;", "tab": "tab", "pipe": "pipe |"},
        unset="detect",
    ),
    "decimal": Words(
        "CSV decimal separator",
        "A decimal comma is never detected automatically.",
        {"point": "point: 1.5", "comma": "comma: 1,5"},
    ),
    "thousands": Words(
        "CSV thousands separator",
        "Never detected automatically. Leave empty if there is none.",
        {
            "point": "point: 1.234,5",
            "comma": "comma: 1,234.5",
            "space": "space: 1 234,5",
            "apostrophe": "apostrophe: 1'234.5",
        },
        unset="none",
    ),
    "dates": Words(
        "Date order",
        "How to read dates such as 03/04/2026. By default the order is detected if the values are unambiguous. "
        "2026-04-03 and 03.04.2026 are always read.",
        {"day_first": "day first: 3 April", "month_first": "month first: 4 March"},
        unset="detect",
    ),
}
MAIN_FIELDS = ("name", "label", "positive")
ROLE_FIELDS = ("group", "weight", "query")
SHEET = "sheet"


def describe_form(app: FastAPI, path: str) -> Mapping[str, Any]:
    """`path` is that of the API."""
    for route in app.routes:
        if isinstance(route, APIRoute) and route.path == path and "POST" in (route.methods or ()):
            content = (route.openapi_extra or {})["requestBody"]["content"]
            found: Mapping[str, Any] = content[FORM]["schema"]["properties"]
            return {name: schema for name, schema in found.items() if name != "file"}
    raise LookupError(path)


def upload_fields(app: FastAPI) -> dict[str, UploadField]:
    """Return fields by API parameter; those with the page's own texts come first."""
    schemas = describe_form(app, "/v1/datasets")
    return {
        name: _field(name, schemas[name]) for name in sorted(schemas, key=[*WORDS, *schemas].index)
    }


def _field(name: str, schema: Mapping[str, Any]) -> UploadField:
    plain = name.replace("_", " ").capitalize()
    words = WORDS.get(name, Words(plain, schema["description"]))
    choices = None
    if "enum" in schema:
        choices = {value: words.choices.get(value, value) for value in schema["enum"]}
    return UploadField(words.title, words.note, choices, words.suggests, words.unset)


def form_fields(fields: Mapping[str, UploadField]) -> dict[str, FieldLabel]:
    return {name: FieldLabel(name, each.title) for name, each in fields.items()}


def with_sheets(fields: Mapping[str, UploadField], sheets: Sequence[str]) -> dict[str, UploadField]:
    """With several `sheets` of a workbook, the sheet is a field."""
    found = dict(fields)
    if len(sheets) > 1:
        found[SHEET] = found[SHEET]._replace(choices={name: name for name in sheets})
    return found


def sheets_of(error: Mapping[str, Any] | None, checked: Mapping[str, Any] | None) -> list[str]:
    """Return sheet names from an error or a check."""
    errors = (error or {}).get("errors") or []
    of_book = checked or next((each for each in errors if each.get("sheets")), {})
    return of_book.get("sheets") or []


def for_templates(app: FastAPI, sheets: Sequence[str] = ()) -> dict[str, Any]:
    """Return a template's variables. With several `sheets` of a workbook, the sheet is a main field."""
    fields = with_sheets(upload_fields(app), sheets)
    main = (*MAIN_FIELDS, SHEET) if len(sheets) > 1 else MAIN_FIELDS
    others = [name for name in fields if name not in (*main, *ROLE_FIELDS)]
    return {"fields": fields, "main": main, "roles": ROLE_FIELDS, "others": others}


def said_of(dataset: Dataset, names: Iterable[str]) -> dict[str, str]:
    """Return the fields that describe the table as it was read."""
    known = dataset.to_json()
    known |= known["dialect"] or {}
    if known["labels"] is not None:
        known["labels"] = [each["name"] for each in known["labels"]]
    found = {name: _text_of(known.get(name)) for name in names}
    return {name: text for name, text in found.items() if text}


def _text_of(value: object) -> str:
    """Empty for no value, and for the default."""
    if isinstance(value, list):
        return joined(value) or ","
    if value is None or value is False:
        return ""
    return "true" if value is True else str(value)


def joined(names: Iterable[str]) -> str:
    """Separate names by commas, quoted if they contain one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()


def changes_of(
    dataset: Dataset, form: Mapping[str, str], names: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the fields that differ from the dataset's, and those that were emptied."""
    said = said_of(dataset, names)
    given = {name: form[name].strip() for name in names if name in form}
    if given.get("kind") == "":
        given["kind"] = "bipartite"
    changed = {name: text for name, text in given.items() if text and text != said.get(name)}
    return changed, [name for name, text in given.items() if not text and name in said]
