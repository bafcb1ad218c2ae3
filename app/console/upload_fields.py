"""The fields of an upload in the console's forms: from the API's description, with the page's own labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.routing import APIRoute
from rankwright.types import Dataset

from app.console.words import Field
from app.http.forms import FORM


@dataclass(frozen=True)
class Words:
    """The page's texts for a field: its label, its purpose, and the meanings of its values and of no value. `suggests`
    is the id of a list of suggestions on the page.
    """

    title: str
    note: str
    choices: Mapping[str, str] = field(default_factory=dict)
    suggests: str | None = None
    unset: str = "as usual"


class UploadField(NamedTuple):
    """A field: its label, its purpose, and its choices (the API's value and a text); without choices it is a text
    field.
    """

    title: str
    note: str
    choices: Mapping[str, str] | None
    suggests: str | None
    unset: str


_COLUMNS = "columns"
WORDS: Mapping[str, Words] = {
    "name": Words("Name", "What the dataset is called here."),
    "label": Words(
        "Label",
        "The column that says what happened: which rows you would have wanted at the top. Empty: a column called "
        "label, target, class or y, else the last one.",
        suggests=_COLUMNS,
    ),
    "positive": Words(
        "Values to catch",
        "The value of the label that you want at the top of the list; several are separated by commas. Empty: you can "
        "choose on the dataset's page, which lists the values.",
        suggests="values",
    ),
    "group": Words(
        "Rows that belong together",
        "A column, such as the customer. Rows with the same value are never divided between learning and judging, "
        "so that no row is judged by its copy.",
        suggests=_COLUMNS,
    ),
    "weight": Words(
        "Weight of a row",
        "A column of numbers: a row of weight 2 counts as two rows.",
        suggests=_COLUMNS,
    ),
    "query": Words(
        "List that a row belongs to",
        "A column, such as the question of a search. Rows are put in order within each list.",
        suggests=_COLUMNS,
    ),
    "kind": Words(
        "What is known of the rows",
        "Mostly: which of two classes a row belongs to.",
        {
            "bipartite": "two classes",
            "graded": "grades from 0 to 31",
            "multilabel": "several labels of two classes",
            "preferences": "items, and which is better than which",
        },
    ),
    "labels": Words("Several labels", "For several labels: their columns, separated by commas."),
    "item": Words(
        "Name of the item",
        "For items that are compared: the column with their names.",
        suggests=_COLUMNS,
    ),
    "categorical": Words(
        "Numbers that are names",
        "Columns of codes, such as postal codes, separated by commas: 007 is not 7, and 8 is not more than 7.",
    ),
    "numeric": Words(
        "Columns of numbers", "Separated by commas. Any other text in them counts as missing."
    ),
    "drop": Words(
        "Columns to leave out",
        "Separated by commas: what is not known yet when a row is to be scored, or may not be used.",
    ),
    "missing": Words(
        "Words for “not known”",
        r"Separated by commas. Empty: NA, N/A, #N/A, <NA>, null, \N, NaN and ?. An empty cell is always missing; among "
        "numbers or dates so are a point, a dash and None.",
    ),
    "strict": Words(
        "Odd values",
        "What happens to a value that does not fit its column, and to a row without a label.",
        {"false": "count as missing, with a warning", "true": "make the table invalid"},
    ),
    "encoding": Words(
        "Letters of a CSV",
        "Choose another if ä or é come out wrong.",
        {
            "utf-8": "UTF-8",
            "utf-16": "UTF-16",
            "latin-1": "Latin-1",
            "windows-1252": "Windows-1252 (western Europe)",
        },
        unset="found by the service",
    ),
    "delimiter": Words(
        "What divides the columns of a CSV",
        "Found in the first line unless you choose.",
        {"comma": "comma ,", "semicolon": "semicolon ;", "tab": "tab", "pipe": "pipe |"},
        unset="found by the service",
    ),
    "decimal": Words(
        "Decimal mark of a CSV",
        "A decimal comma is never guessed.",
        {"point": "point: 1.5", "comma": "comma: 1,5"},
    ),
    "thousands": Words(
        "Mark between thousands of a CSV",
        "Never guessed. Empty: there is none.",
        {
            "point": "point: 1.234,5",
            "comma": "comma: 1,234.5",
            "space": "space: 1 234,5",
            "apostrophe": "apostrophe: 1'234.5",
        },
        unset="none",
    ),
    "dates": Words(
        "Dates with slashes",
        "What 03/04/2026 means. Empty: found by the values, if one shows it. 2026-04-03 and 03.04.2026 are always "
        "read.",
        {"day_first": "day first: 3 April", "month_first": "month first: 4 March"},
        unset="found by the service",
    ),
}
MAIN_FIELDS = ("name", "label", "positive")
ROLE_FIELDS = ("group", "weight", "query")


def describe_form(app: FastAPI, path: str) -> Mapping[str, Any]:
    """Return the JSON Schemas of the form fields of a table upload to a path of the API."""
    for route in app.routes:
        if isinstance(route, APIRoute) and route.path == path and "POST" in (route.methods or ()):
            content = (route.openapi_extra or {})["requestBody"]["content"]
            found: Mapping[str, Any] = content[FORM]["schema"]["properties"]
            return {name: schema for name, schema in found.items() if name != "file"}
    raise LookupError(path)


def upload_fields(app: FastAPI) -> dict[str, UploadField]:
    """Return the fields of an upload by the API parameter that each one fills; fields with the page's own texts come
    first.
    """
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


def form_fields(fields: Mapping[str, UploadField]) -> dict[str, Field]:
    """Return the fields with their labels, by the API parameter that each one fills."""
    return {name: Field(name, each.title) for name, each in fields.items()}


def for_templates(app: FastAPI) -> dict[str, Any]:
    """Return the variables of templates with fields of an upload."""
    fields = upload_fields(app)
    others = [name for name in fields if name not in (*MAIN_FIELDS, *ROLE_FIELDS)]
    return {"fields": fields, "main": MAIN_FIELDS, "roles": ROLE_FIELDS, "others": others}


def said_of(dataset: Dataset, names: Iterable[str]) -> dict[str, str]:
    """Return the known facts about a dataset's table as fields of an upload."""
    known = dataset.to_json()
    known |= known["dialect"] or {}
    if known["labels"] is not None:
        known["labels"] = [each["name"] for each in known["labels"]]
    found = {name: _text_of(known.get(name)) for name in names}
    return {name: text for name, text in found.items() if text}


def _text_of(value: object) -> str:
    """Return a value as the API's text; empty for no value, and for the default."""
    if isinstance(value, list):
        return joined(value) or ","
    if value is None or value is False:
        return ""
    return "true" if value is True else str(value)


def joined(names: Iterable[str]) -> str:
    """Write several names in one text as the API takes them: separated by commas; a name with a comma is quoted."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()


def changes_of(
    dataset: Dataset, form: Mapping[str, str], names: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a form that differ from the dataset's fields, and the fields that were emptied."""
    said = said_of(dataset, names)
    given = {name: form[name].strip() for name in names if name in form}
    if given.get("kind") == "":
        given["kind"] = "bipartite"
    changed = {name: text for name, text in given.items() if text and text != said.get(name)}
    return changed, [name for name, text in given.items() if not text and name in said]
