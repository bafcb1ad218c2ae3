"""The form of a training job, built from the API's own schemas: its fields, and the JSON made from them.

A field has the name of its value in the body, with dots: `validation.fraction`. An error of the API about a member of
the body is therefore shown next to its field.
"""

from __future__ import annotations

import csv
import json
import pprint
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from rankwright.types import Algorithm, Job

from app.console.words import in_labels, slug, title
from app.http.schemas import LABELS

Schema = Mapping[str, Any]
Json = dict[str, Any]

CHOICES: Mapping[str, Mapping[str, str]] = {
    "validation.method": {
        "": "Automatic",
        "holdout": "Held-out rows",
        "cross_validation": "Cross-validation",
        "dataset": "Another dataset",
        "none": "None: train on all rows",
    },
    "search.method": {
        "": "No search",
        "grid": "Grid: try all combinations",
        "random": "Random: try random combinations",
        "halving": "Halving: try many on few rows, the best on more",
    },
}
FIRST: Mapping[str, str] = {
    "bipartite": "auto",
    "multilabel": "adaboost_mh",
    "preferences": "rankboost",
    "graded": "lambdamart",
}
"""Default algorithm for each kind of dataset."""
PLACED = ("dataset_id", "algorithm", "name", "objective", "validation", "search")
"""The fields of a request that have a place of their own on the form; the others stand below."""
PROTECTED = "protected_features"
"""The field that is shown only for a dataset with protected columns, in a place of its own."""
MONOTONE = "algorithm.monotone"
"""The field of constraints: for each column of the form a field below it, with a direction."""
MORE_COLUMNS, MORE_DIRECTIONS = "more.column.", "more.direction."
"""The beginnings of the fields of further constraints, whose column is chosen, too."""
N_MORE = 5
NOT_RECORDED = ("baselines", "timeout_seconds", "priority", "tags")
"""Those of the others that a job does not show as they were asked for."""
TITLES: Mapping[str, str] = {
    "algorithm.name": "Algorithm",
    "name": "Model name",
    "objective.metric": "Objective",
    "validation.method": "Validate on",
    "search.method": "Search method",
}
DOCS: Mapping[str, str] = {
    "name": "Defaults to the name of the algorithm.",
    "seed": "The same seed and data always give the same model.",
    "tags": "One per line, for example team=risk.",
    "objective.fpr_min": "Lower end of the false positive rate window.",
    "objective.fpr_max": "Upper end of the false positive rate window. With 0.05 only the top of the list counts, "
    "where at most 5 % of the negatives are flagged.",
    "validation.fraction": "Fraction of the rows to hold out for validation.",
    "validation.folds": "Number of folds.",
    "dataset_id": "The table to train on. Its state must be ready.",
    "algorithm.name": "`auto` tries many algorithms and combines the best.",
    "protected_features": "Names separated by commas. The model records who decided so and when, and its report "
    "repeats it.",
    "validation.dataset_id": "The table to validate on. It needs the same columns and different rows.",
}
NOT_CHOSEN: Mapping[str, str] = {
    "validation.method": "Repeated cross-validation for a small table (fewer than 3,000 rows, or fewer than 100 of a "
    "class). Otherwise a quarter of the rows is held out: the newest if there are dates.",
}
"""Descriptions of choices that have not been made."""
_BY = ("name", "metric", "method")
MAX_BRACKETS = 100
"""Lists and objects in an object that is entered: printing the request in Python fails on hundreds of levels."""
_INTEGER = re.compile(r"[+-]?\d{1,300}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.IGNORECASE)
_RANGE = re.compile(r"(\S+)\s+to\s+(\S+?)(\s+log)?", re.IGNORECASE)


_schemas: dict[str, Any] = {}


def schemas_of(app: FastAPI) -> dict[str, Any]:
    """Cached: building the whole API document takes seconds."""
    if not _schemas:
        routes = [
            route
            for route in app.routes
            if isinstance(route, APIRoute)
            and route.path == "/v1/jobs"
            and "POST" in (route.methods or ())
        ]
        made = get_openapi(title=app.title, version=app.version, routes=routes)
        _schemas.update(made["components"]["schemas"])
    return _schemas


def values_of(app: FastAPI, schema: str, member: str) -> Mapping[str, str]:
    """Map the values of an `enum` to their descriptions, or to themselves."""
    found = schemas_of(app)[schema]["properties"][member]
    return dict(zip(found["enum"], found.get(LABELS, found["enum"]), strict=True))


def asked_of(job: Job, app: FastAPI, *, defaults: bool) -> Json:
    """Without `defaults`, return only parameters that differ from them."""
    shown, request = job.to_json(), schemas_of(app)["JobRequest"]["properties"]
    return {
        name: shown[name]
        for name, schema in request.items()
        if name not in (*PLACED, *NOT_RECORDED)
        and shown.get(name) not in (None, [])
        and (defaults or shown[name] != schema.get("default"))
    }


@dataclass
class Field:
    """A field of the form: its path in the body, its schema, its current value and its errors."""

    path: str
    schema: Schema
    value: str = ""
    error: str = ""
    doc: str = ""
    choices: Mapping[str, str] | None = None
    """The values of a choice that other fields depend on, each with its label."""

    @property
    def id(self) -> str:
        return "f-" + self.path.replace(".", "-")

    @property
    def title(self) -> str:
        return TITLES.get(self.path) or title(self.path)

    @property
    def options(self) -> list[str] | None:
        """None if the schema does not list the values."""
        found: list[str] = []
        for kind in _kinds(self.schema):
            if kind.get("type") == "boolean":
                found += ["true", "false"]
            elif "const" in kind or "enum" in kind:
                found += [str(value) for value in kind.get("enum", [kind.get("const")])]
            elif kind.get("type") == "null":
                found.append("none")
            else:
                return None
        return found

    @property
    def default(self) -> str:
        """Empty if there is none."""
        if "default" not in self.schema:
            return ""
        value = self.schema["default"]
        if value == []:
            return ""
        return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


class JobForm:
    def __init__(
        self,
        given: Mapping[str, str],
        *,
        algorithms: Sequence[Algorithm],
        schemas: Schema,
        kind: str,
    ) -> None:
        self._given = given
        self._schemas = schemas
        request = schemas["JobRequest"]["properties"]
        names = [each.name for each in algorithms]
        chosen = given.get("algorithm.name") or FIRST.get(kind, names[0])
        self.algorithms = algorithms
        self.algorithm = next((each for each in algorithms if each.name == chosen), None)
        parameters: Schema = self.algorithm.parameters["properties"] if self.algorithm else {}
        self.dataset = self._field("dataset_id", request["dataset_id"])
        self.chosen = self._field("algorithm.name", {}, chosen)
        self.name = self._field("name", request["name"])
        self.monotone = read_constraints(given)
        self.parameters = [
            self._field(f"algorithm.{name}", schema) for name, schema in parameters.items()
        ]
        for each in self.parameters:
            if each.path == MONOTONE and self.monotone:
                each.value = json.dumps(self.monotone, ensure_ascii=False)
        self.objective = self._union("objective") if kind != "preferences" else []
        self.validation = self._union("validation")
        self.search = [] if chosen == "auto" else self._union("search")
        self.space = [
            self._field(f"search.space.{name}", schema)
            for name, schema in parameters.items()
            if self.search and self.search[0].value
        ]
        self.protected = self._field(PROTECTED, request[PROTECTED])
        self.others = [
            self._field(name, request[name]) for name in request if name not in (*PLACED, PROTECTED)
        ]
        self.unplaced: list[str] = []

    @property
    def fields(self) -> list[Field]:
        """The field of protected columns is on the page only if it was sent."""
        protected = [self.protected] if PROTECTED in self._given else []
        return [
            *(self.dataset, self.chosen, self.name),
            *(*self.parameters, *self.objective, *self.validation),
            *(*self.search, *self.space, *protected, *self.others),
        ]

    def body(self) -> Json:
        """Only fields that are filled in."""
        body: Json = {}
        for field in self.fields:
            if field.value.strip():
                value = slug(field.value) if field.path == "name" else _read(field)
                _put(body, field.path.split("."), value)
        if body.get("objective") == {"metric": "auc"}:
            del body["objective"]
        return body

    def place(self, problem: Json) -> None:
        """Assign the API's errors to the fields that they name."""
        named = {field.path: field for field in self.fields}
        for error in problem.get("errors") or [{"detail": problem["detail"]}]:
            path = error.get("pointer", "").strip("/").replace("/", ".")
            while path and path not in named:
                path = path.rpartition(".")[0]
                path = next((f"{path}.{by}" for by in _BY if f"{path}.{by}" in named), path)
            if path:
                field, detail = named[path], error["detail"]
                detail = in_labels(detail, path.replace(".", "/"), field.title)
                field.error = f"{field.error}; {detail}" if field.error else detail
            else:
                self.unplaced.append(error["detail"])

    def _field(self, path: str, schema: Schema, value: str | None = None) -> Field:
        doc = DOCS.get(path) or schema.get("description", "")
        return Field(path, schema, self._given.get(path, "") if value is None else value, doc=doc)

    def _union(self, name: str) -> list[Field]:
        """Return the field that chooses an option, and the fields of the chosen option."""
        union = self._schemas["JobRequest"]["properties"][name]
        union = next((kind for kind in _kinds(union) if "discriminator" in kind), union)
        by = union["discriminator"]["propertyName"]
        path = f"{name}.{by}"
        options = [self._schemas[each["$ref"].rpartition("/")[2]] for each in union["oneOf"]]
        members = {option["properties"][by]["const"]: option for option in options}
        choices = CHOICES.get(path) or {
            value: member["properties"][by][LABELS][0] for value, member in members.items()
        }
        value = self._given.get(path, "")
        if value not in members:
            value = next(iter(choices))
        choice = replace(self._field(path, {}, value), choices=choices)
        if not value:
            choice.doc = NOT_CHOSEN.get(path, "")
            return [choice]
        said, _, _ = members[value]["description"].partition("\n\n")
        choice.doc = DOCS.get(path) or said.replace("\n", " ")
        return [
            choice,
            *(
                self._field(f"{name}.{parameter}", schema)
                for parameter, schema in members[value]["properties"].items()
                if parameter not in (by, "space")
            ),
        ]


def read_constraints(given: Mapping[str, str]) -> dict[str, str]:
    """Map columns to directions."""
    below = MONOTONE + "."
    found = {
        name.removeprefix(below): way
        for name, way in given.items()
        if name.startswith(below) and way.strip()
    }
    for name, column in given.items():
        if name.startswith(MORE_COLUMNS) and column.strip():
            way = given.get(MORE_DIRECTIONS + name.removeprefix(MORE_COLUMNS), "")
            found[column.strip()] = way
    return found


def _kinds(schema: Schema) -> Sequence[Schema]:
    kinds: Sequence[Schema] = schema.get("anyOf", [schema])
    return kinds


def _put(body: Json, path: Sequence[str], value: object) -> None:
    for part in path[:-1]:
        body = body.setdefault(part, {})
    body[path[-1]] = value


def _read(field: Field) -> object:
    text = field.value.strip()
    if field.path.startswith("search.space."):
        return read_space(text, field.schema)
    if field.path == PROTECTED:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True)) or [""]]
    if field.path == "tags":
        pairs = (line.partition("=") for line in text.splitlines() if line.strip())
        return {name.strip(): value.strip() for name, _, value in pairs}
    return read_value(text, field.schema)


def read_value(text: str, schema: Schema) -> object:
    """Text that does not fit the schema is unchanged, so that the API reports the error."""
    types = {kind.get("type") for kind in _kinds(schema)}
    if text.lower() in ("none", "null") and "null" in types:
        return None
    if "object" in types and text.startswith("{"):
        try:
            found = json.loads(text)
            json.dumps(found, allow_nan=False)  # a value that the client could not send stays text
            return text if text.count("{") + text.count("[") > MAX_BRACKETS else found
        except (ValueError, RecursionError):
            return text
    if text.lower() in ("true", "false") and "boolean" in types:
        return text.lower() == "true"
    if _INTEGER.fullmatch(text) and types & {"integer", "number"}:
        return int(text)
    if _NUMBER.fullmatch(text) and types & {"integer", "number"}:
        number = float(text)
        return number if abs(number) < float("inf") else text
    return text


def read_space(text: str, schema: Schema) -> object:
    """Read values separated by commas, or `low to high`, optionally followed by `log`."""
    found = _RANGE.fullmatch(text)
    if found is None:
        return [read_value(part.strip(), schema) for part in text.split(",") if part.strip()]
    types = {kind.get("type") for kind in _kinds(schema)}
    return {
        "low": read_value(found[1], schema),
        "high": read_value(found[2], schema),
        **({"log": True} if found[3] else {}),
        **({"integer": True} if "integer" in types else {}),
    }


def as_curl(base: str, body: Json) -> str:
    written = json.dumps(body, indent=2, ensure_ascii=False).replace("'", "'\\''")
    return (
        f"curl {base}v1/jobs \\\n"
        '  -H "Authorization: Bearer $RANKWRIGHT_API_KEY" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d '{written}'"
    )


def as_python(base: str, body: Json) -> str:
    written = pprint.pformat(body, sort_dicts=False, width=76).replace("\n", "\n    ")
    return (
        "import os\n\nimport requests\n\n"
        "answer = requests.post(\n"
        f'    "{base}v1/jobs",\n'
        '    headers={"Authorization": f"Bearer {os.environ[\'RANKWRIGHT_API_KEY\']}"},\n'
        f"    json={written},\n"
        ")\n"
        'print(answer.json()["id"])'
    )
