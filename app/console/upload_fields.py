"""The fields of an upload in words for people: on the form for a new table, and where a stored one is read again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rankwright.types import Dataset

from app.console.words import Field


class UploadField(NamedTuple):
    """A field: its label, what it is for, and what may be chosen (the API's value, and words); else it is a text."""

    title: str
    note: str
    choices: Mapping[str, str] | None = None
    suggests: str | None = None
    """The id of a list on the page to choose from."""


_COLUMNS = "columns"
UPLOAD_FIELDS: dict[str, UploadField] = {
    "name": UploadField("Name", "What the dataset is called here."),
    "label": UploadField(
        "Label",
        "The column that says what happened: which rows you would have wanted at the top. Empty: a column called "
        "label, target, class or y, else the last one.",
        suggests=_COLUMNS,
    ),
    "positive": UploadField(
        "Values to catch",
        "The value of the label that you want at the top of the list; several are separated by commas. Empty: you can "
        "choose on the dataset's page, which lists the values.",
        suggests="values",
    ),
    "group": UploadField(
        "Rows that belong together",
        "A column, such as the customer. Rows with the same value are never divided between learning and judging, "
        "so that no row is judged by its copy.",
        suggests=_COLUMNS,
    ),
    "weight": UploadField(
        "Weight of a row",
        "A column of numbers: a row of weight 2 counts as two rows.",
        suggests=_COLUMNS,
    ),
    "query": UploadField(
        "List that a row belongs to",
        "A column, such as the question of a search. Rows are put in order within each list.",
        suggests=_COLUMNS,
    ),
    "kind": UploadField(
        "What is known of the rows",
        "Mostly: which of two classes a row belongs to.",
        {
            "bipartite": "two classes",
            "graded": "grades from 0 to 31",
            "multilabel": "several labels of two classes",
            "preferences": "items, and which is better than which",
        },
    ),
    "labels": UploadField(
        "Several labels", "For several labels: their columns, separated by commas."
    ),
    "item": UploadField(
        "Name of the item",
        "For items that are compared: the column with their names.",
        suggests=_COLUMNS,
    ),
    "categorical": UploadField(
        "Numbers that are names",
        "Columns of codes, such as postal codes, separated by commas: 007 is not 7, and 8 is not more than 7.",
    ),
    "numeric": UploadField(
        "Columns of numbers", "Separated by commas. Any other text in them counts as missing."
    ),
    "drop": UploadField(
        "Columns to leave out",
        "Separated by commas: what is not known yet when a row is to be scored, or may not be used.",
    ),
    "missing": UploadField(
        "Words for “not known”",
        r"Separated by commas. Empty: NA, N/A, #N/A, <NA>, null, \N, NaN and ?. An empty cell is always missing; among "
        "numbers or dates so are a point, a dash and None.",
    ),
    "strict": UploadField(
        "Odd values",
        "What happens to a value that does not fit its column, and to a row without a label.",
        {"false": "count as missing, with a warning", "true": "make the table invalid"},
    ),
    "encoding": UploadField(
        "Letters of a CSV",
        "Choose another if ä or é come out wrong.",
        {
            "utf-8": "UTF-8",
            "utf-16": "UTF-16",
            "latin-1": "Latin-1",
            "windows-1252": "Windows-1252 (western Europe)",
        },
    ),
    "delimiter": UploadField(
        "What divides the columns of a CSV",
        "Found in the first line unless you choose.",
        {"comma": "comma ,", "semicolon": "semicolon ;", "tab": "tab", "pipe": "pipe |"},
    ),
    "decimal": UploadField(
        "Decimal mark of a CSV",
        "A decimal comma is never guessed.",
        {"point": "point: 1.5", "comma": "comma: 1,5"},
    ),
    "thousands": UploadField(
        "Mark between thousands of a CSV",
        "Never guessed. Empty: there is none.",
        {
            "point": "point: 1.234,5",
            "comma": "comma: 1,234.5",
            "space": "space: 1 234,5",
            "apostrophe": "apostrophe: 1'234.5",
        },
    ),
    "dates": UploadField(
        "Dates with slashes",
        "What 03/04/2026 means. Empty: found by the values, if one shows it. 2026-04-03 and 03.04.2026 are always "
        "read.",
        {"day_first": "day first: 3 April", "month_first": "month first: 4 March"},
    ),
}
MAIN_FIELDS = ("name", "label", "positive")
ROLE_FIELDS = ("group", "weight", "query")
OTHER_FIELDS = tuple(name for name in UPLOAD_FIELDS if name not in (*MAIN_FIELDS, *ROLE_FIELDS))


def said_of(dataset: Dataset) -> dict[str, str]:
    """Return what is known of a dataset's table as the fields of an upload."""
    found: dict[str, str | None] = {
        "name": dataset.name,
        "kind": dataset.kind,
        "label": dataset.label,
        "positive": dataset.positive,
        "weight": dataset.weight,
        "group": dataset.group,
        "query": dataset.query,
        "item": dataset.item,
        "labels": joined(each.name for each in dataset.labels or ()),
        "categorical": joined(dataset.categorical or ()),
        "numeric": joined(dataset.numeric or ()),
        "drop": joined(dataset.drop or ()),
        "missing": None if dataset.missing is None else joined(dataset.missing) or ",",
        "strict": "true" if dataset.strict else None,
        **(dataset.dialect or {}),
    }
    return {name: text for name, text in found.items() if text}


FORM_FIELDS = {name: Field(name, each.title) for name, each in UPLOAD_FIELDS.items()}
"""The fields of an upload's form, by the parameter of the API that each one fills."""


def joined(names: Iterable[str]) -> str:
    """Write names as the API takes several in one text: with commas between, and in quotes where one has a comma."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()


def changes_of(dataset: Dataset, form: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a form that differ from what is known of the dataset, and those that were emptied."""
    said = said_of(dataset)
    given = {name: form[name].strip() for name in UPLOAD_FIELDS if name in form}
    if given.get("kind") == "":
        given["kind"] = "bipartite"
    changed = {name: text for name, text in given.items() if text and text != said.get(name)}
    return changed, [name for name, text in given.items() if not text and name in said]
