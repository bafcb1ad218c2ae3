"""Make two modules of the client from docs/openapi.json: types.py, what the service answers, and api.py, what it can be
asked. The build of the package runs this (setup.py); nothing but Python is needed.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "openapi.json"
PACKAGE = HERE / "rankwright"
WIDTH = 100
HEAD = '''"""What the service answers: every object of its API, by the name that /openapi.json has for it.

Made from that description by make_modules.py; not in the repository.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal

from rankwright.records import Record
'''
API_HEAD = '''"""A function for every operation of the API, by the name that /openapi.json has for it.

A function returns the request, and sends nothing. Its keywords are a TypedDict, which the command line reads, too.
Made from that description by make_modules.py; not in the repository.
"""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from rankwright import types
from rankwright.operations import (
    HEADER,
    REPEATED,
    ApiRequest,
    Page,
    bytes_of,
    json_of,
    keywords,
    nothing_of,
    one_of,
    page_of,
    record_of,
)
from rankwright.transport import segment, segments

if TYPE_CHECKING:
    from typing_extensions import Unpack
'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
TEXTS = {
    "probability": "bool",
    "interval": "bool",
    "categories": "str | Mapping[str, Sequence[str]] | Sequence[str]",
}
"""Types of query parameters that are described as texts: the service reads them itself."""
SHARED = {
    "Paged": ("list_jobs", "limit", "after"),
    "Searched": ("list_jobs", "search", "created_after", "created_before"),
    "Idempotent": ("submit_job", "idempotency_key"),
    "Awaited": ("submit_job", "prefer"),
    "Columns": (
        *("upload_dataset", "name", "label", "positive", "weight", "group", "query", "item"),
        *("labels", "kind", "categorical", "numeric", "drop", "protected", "missing", "strict"),
    ),
    "Text": ("upload_dataset", "encoding", "delimiter", "decimal", "thousands", "dates"),
    "VersionText": (
        *("create_version", "encoding", "delimiter", "decimal", "thousands", "dates", "sheet"),
    ),
    "ScoredText": (
        *("score_rows", "missing", "encoding", "delimiter", "decimal", "thousands", "dates"),
    ),
    "RowFields": ("score_rows", "id", "ignore"),
    "Probability": ("score_rows", "probability", "interval", "prevalence"),
    "Reasons": (
        *("score_rows", "reasons", "reference", "direction", "threshold", "exclude_protected"),
    ),
    "BatchScored": ("create_batch_score", "model", "keep", "top", "file_name", "sheet"),
    "Trained": (
        *("submit_job", "name", "objective", "validation", "search", "baselines", "seed", "tags"),
        *("protected_features", "timeout_seconds", "priority", "label_noise"),
    ),
    "Evaluated": (
        *("create_evaluation", "windows", "group_by", "at", "cutoffs", "protected", "costs"),
    ),
    "Compared": ("create_comparison", "windows", "metrics", "capacity", "costs"),
    "Rates": ("read_operating_point", "fpr", "tpr", "threshold", "confidence"),
    "Costs": (
        *("read_operating_point", "flagged", "cost_false_positive", "cost_false_negative"),
        *("prevalence", "amount", "rule", "rule_flags", "total_rows"),
    ),
    "BaseScore": ("read_scorecard", "base_score", "base_odds"),
}
"""Keywords that several operations take, with an operation that has them: each is described once."""
_REF = "#/components/schemas/"


def write_modules() -> None:
    """Write the modules into the package. Raises FileNotFoundError without the description."""
    for name, text in modules(json.loads(DOCUMENT.read_text(encoding="utf-8"))).items():
        (PACKAGE / name).write_text(text, encoding="utf-8")


def modules(document: Schema) -> dict[str, str]:
    """Return the modules of the client that are made from the description, by the names of their files."""
    return {"types.py": make_types(document), "api.py": make_api(document)}


def make_types(document: Schema) -> str:
    """Return the module: a class for every object that an answer other than an error can hold."""
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    wanted: dict[str, None] = {}
    left = [*_answers(document)]
    while left:
        for name in _refs(left.pop()):
            if name not in wanted:
                wanted[name] = None
                left.append(schemas[name])
    parts: dict[str, str] = {}
    objects = {name: schemas[name] for name in sorted(wanted) if "properties" in schemas[name]}
    bases = _bases(objects)
    waiting = sorted(name for name in wanted if not _is_page(schemas[name]))
    while waiting:
        name = waiting.pop(0)
        base = bases.get(name)
        if base and base not in parts:  # a class comes after its base
            waiting[:0] = [base, name]
        elif name not in parts and schemas[name].get("type") == "object":
            inherited = objects[base]["properties"] if base else {}
            parts[name] = _class(name, schemas[name], base or "Record", inherited)
        elif name not in parts:
            parts[name] = f"{name} = {_type(schemas[name])}"
    return "\n\n".join([HEAD, *parts.values()]) + "\n"


def _bases(objects: Mapping[str, Schema]) -> dict[str, str]:
    """Return for each object that has all fields of another one, and more of them than it adds, that other one."""
    fields = {
        name: {
            (field, json.dumps(described, sort_keys=True), field in schema.get("required", []))
            for field, described in schema["properties"].items()
        }
        for name, schema in objects.items()
    }
    found = {}
    for name, own in fields.items():
        smaller = [
            (len(theirs), other)
            for other, theirs in fields.items()
            if theirs <= own and (theirs < own or other < name) and len(theirs) > len(own - theirs)
        ]
        if smaller:
            found[name] = max(smaller)[1]
    return found


def _answers(document: Schema) -> Iterator[Schema]:
    for path in document["paths"].values():
        for operation in path.values():
            for status, response in operation.get("responses", {}).items():
                if status.startswith("2"):
                    yield response.get("content", {})


def _refs(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str) and value.startswith(_REF):
                yield value.removeprefix(_REF)
            elif key not in ("examples", "example"):
                yield from _refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from _refs(value)


def _is_page(schema: Schema) -> bool:
    return {"data", "has_more", "next"} == set(schema.get("properties", {}))


def _class(name: str, schema: Schema, base: str, inherited: Schema) -> str:
    lines = [f"class {name}({base}):"]
    lines += _text(schema.get("description") or f"{name}.")
    lines.append("")
    required = schema.get("required", [])
    for field, described in schema.get("properties", {}).items():
        if field in inherited:
            continue
        hint = _type(described)
        if field not in required and hint != "Any" and not hint.endswith("| None"):
            hint += " | None"
        lines.append(f"    {field}: {hint}" + ("" if field in required else " = None"))
        if described.get("description"):
            lines += _text(described["description"])
    return "\n".join(lines)


def _in_docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _text(text: str) -> list[str]:
    text = _in_docstring(" ".join(text.split()))
    wrapped = textwrap.wrap(text, WIDTH)
    if len(wrapped) == 1 and not wrapped[0].endswith('"'):
        return [f'    """{wrapped[0]}"""']
    return [f'    """{wrapped[0]}', *(f"    {line}" for line in wrapped[1:]), '    """']


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        values = [value for value in schema["enum"] if value is not None]
        hint = f"Literal[{', '.join(map(repr, values))}]"
        return hint if len(values) == len(schema["enum"]) else f"{hint} | None"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _union([_type(each) for each in schema[several]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union([_type({**schema, "type": each}) for each in kind])
    if kind == "array":
        return f"list[{_type(schema.get('items', {}))}]"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"dict[str, {_type(inner) if isinstance(inner, Mapping) else 'Any'}]"
    return PLAIN.get(str(kind), "Any")


def _union(hints: list[str]) -> str:
    if "Any" in hints:
        return "Any"
    several = list(
        dict.fromkeys(part for hint in hints for part in re.split(r" \| (?![^\[]*\])", hint))
    )
    if "float" in several and "int" in several:
        several.remove("int")
    if "None" in several:
        several.remove("None")
        several.append("None")
    return " | ".join(several)


# --- operations -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """What a caller can say of a request.

    Attributes
    ----------
    place : {"path", "query", "header", "body"}
    name : str
        Name in the client.
    key : str
        Name in the request.
    schema : mapping
    text : str
        Its description, in one line.
    required : bool
    """

    place: str
    name: str
    key: str
    schema: Schema
    text: str
    required: bool

    @property
    def hint(self) -> str:
        """Its type. A text in which commas separate names is also taken as a list of names."""
        hint = _input_type(self.schema)
        if self.place == "query" and hint == "str":
            hint = TEXTS.get(self.name, hint)
        if self.takes_names or (self.is_repeated and hint == "Sequence[str]"):
            return "str | Sequence[str]"
        return hint

    @property
    def is_repeated(self) -> bool:
        return bool(self.schema.get("type") == "array")

    @property
    def takes_names(self) -> bool:
        return "str" in _input_type(self.schema).split(" | ") and (
            "separated by commas" in self.text.lower()
        )


def make_api(document: Schema) -> str:
    """Return the module: for every operation its keywords, and a function that returns its request."""
    operations = sorted(
        (
            (operation["operationId"], method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ),
        key=lambda each: each[0],
    )
    options = {
        name: [field for field in _fields(document, operation) if not field.required]
        for name, _, _, operation in operations
    }
    shared = {
        kind: [field for field in options[name] if field.name in names]
        for kind, (name, *names) in SHARED.items()
    }
    parts = [API_HEAD, *(_keywords(kind, fields, {}) for kind, fields in shared.items())]
    for name, method, path, operation in operations:
        if options[name]:
            parts.append(_keywords(_kind(name), options[name], shared))
        parts.append(_operation(document, name, method, path, operation))
    return "\n\n".join(parts) + "\n"


def _kind(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))


def _keywords(kind: str, options: list[Field], shared: Mapping[str, list[Field]]) -> str:
    """Return the TypedDict of keywords, which has those that other operations take, too, from a base."""
    lines: dict[str, list[str]] = {}
    texts = {field.name: _keyword(field) for field in options}
    for base, fields in shared.items():
        if all(texts.get(field.name) == _keyword(field) for field in fields):
            lines[base] = [texts.pop(field.name) for field in fields]
    if len(lines) == 1 and not texts:
        return f"{kind} = {next(iter(lines))}"
    bases = ", ".join([*lines] or ["TypedDict"])
    return "\n".join([f"class {kind}({bases}, total=False):", *(texts.values() or ["    pass"])])


def _keyword(field: Field) -> str:
    marks = [repr(field.text)]
    marks += ["HEADER"] * (field.place == "header") + ["REPEATED"] * field.is_repeated
    return f"    {field.name}: Annotated[{field.hint} | None, {', '.join(marks)}]"


def _operation(document: Schema, name: str, method: str, path: str, operation: Schema) -> str:
    fields = _fields(document, operation)
    options = [field for field in fields if not field.required]
    kind = _kind(name)
    lines = [f"@keywords({kind})"] if options else []
    hint, read = _answer(document, operation)
    has_body = [*operation.get("requestBody", {}).get("content", {})] == ["application/json"]
    in_path = [f"{field.name}: {field.hint}" for field in fields if field.place == "path"]
    taken = [*in_path, *(["/"] if in_path else [])]
    taken += [
        f"{field.name}: {field.hint}"
        for field in fields
        if field.required and field.place != "path"
    ]
    if options:
        taken.append(f"**fields: Unpack[{kind}]")
    lines += [
        f"def {name}({', '.join(taken)}) -> ApiRequest[{hint}]:",
        *_docstring(operation, fields),
    ]
    put = [f'"{method}"', _path(path, fields), f"{read}"]
    given = [
        f'"{field.key}": {field.name}'
        for field in fields
        if field.required and field.place != "path"
    ]
    if given or options:
        put.append(f"{{{', '.join([*given, *(['**fields'] * bool(options))])}}}")
    for place, chosen in (
        ("headers", [field.name for field in fields if field.place == "header"]),
        ("body", [field.name for field in fields if field.place == "body"]),
        ("joined", [field.name for field in fields if field.takes_names]),
    ):
        if chosen or (place == "body" and has_body):
            put.append(f"{place}=[{', '.join(map(_quoted, chosen))}]")
    lines += [f"    return ApiRequest.of({', '.join(put)})"]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return json.dumps(text)


def _fields(document: Schema, operation: Schema) -> list[Field]:
    """Return the fields of an operation: path parameters first, then required ones, then the others.

    `format` is left out where one of the formats is JSON: the function reads that. So is a parameter that stands for
    any parameters. The fields of a JSON object belong to the request, unless the body can also be a table: what can be
    said of a table is said in the query, and its rows are the caller's to add.
    """
    found = []
    content = operation.get("requestBody", {}).get("content", {})
    json_body = _resolved(document, content.get("application/json", {}).get("schema", {}))
    properties = json_body.get("properties", {})
    answers_json = "application/json" in _content(operation)
    for each in operation.get("parameters", []):
        schema, name = each["schema"], each["name"]
        if schema.get("type") == "object" or (name == "format" and answers_json):
            continue
        text = " ".join((each.get("description") or "").split())
        python_name = name.lower().replace("-", "_")
        found.append(
            Field(each["in"], python_name, name, schema, text, each.get("required", False))
        )
    if list(content) == ["application/json"]:
        required = json_body.get("required", [])
        for name, schema in properties.items():
            text = " ".join((schema.get("description") or "").split())
            found.append(Field("body", name, name, schema, text, name in required))
    return sorted(found, key=lambda field: (field.place != "path", not field.required))


def _resolved(document: Schema, schema: Schema) -> Schema:
    if "$ref" in schema:
        found: Schema = document["components"]["schemas"][schema["$ref"].removeprefix(_REF)]
        return found
    return schema


def _content(operation: Schema) -> Schema:
    found: dict[str, Any] = {}
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            found |= response.get("content", {})
    return found


def _answer(document: Schema, operation: Schema) -> tuple[str, str]:
    """Return the type of the answer, and what reads it."""
    content = _content(operation)
    if not content:
        return "None", "nothing_of"
    if "application/json" not in content:
        return "bytes", "bytes_of"
    schema = content["application/json"].get("schema", {})
    several = [
        each["$ref"] for each in schema.get("anyOf", schema.get("oneOf", [])) if "$ref" in each
    ]
    if several:
        names = [f"types.{ref.removeprefix(_REF)}" for ref in several]
        return " | ".join(names), f"one_of({', '.join(names)})"
    if "$ref" not in schema:
        return "Any", "json_of"
    resolved = _resolved(document, schema)
    if _is_page(resolved):
        item = f"types.{resolved['properties']['data']['items']['$ref'].removeprefix(_REF)}"
        return f"Page[{item}]", f"page_of({item})"
    name = f"types.{schema['$ref'].removeprefix(_REF)}"
    return name, f"record_of({name})"


_WITH_SLASHES = frozenset({"decision_id"})
"""Ids that callers choose."""


def _path(path: str, fields: list[Field]) -> str:
    parts = path
    for field in fields:
        if field.place == "path":
            read = "segments" if field.name in _WITH_SLASHES else "segment"
            value = field.name if field.hint == "int" else f"{read}({field.name})"
            parts = parts.replace(f"{{{field.key}}}", f"{{{value}}}")
    return f'"{path}"' if parts == path else f'f"{parts}"'


def _docstring(operation: Schema, fields: list[Field]) -> list[str]:
    lines = [_in_docstring(operation["summary"].rstrip(".")) + "."]
    if operation.get("description"):
        text = _in_docstring(operation["description"].strip())
        lines += ["", *re.sub(r"\n{3,}", "\n\n", text).splitlines()]
    told = [field for field in fields if field.text and field.required]
    if told:  # of the optional ones the TypedDict says it
        lines += ["", "Parameters", "----------"]
        for field in told:
            lines.append(f"{field.name} : {field.hint}")
            lines += textwrap.wrap(
                _in_docstring(field.text), WIDTH, initial_indent="    ", subsequent_indent="    "
            )
    if len(lines) == 1:
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *(f"    {line}".rstrip() for line in lines[1:]), '    """']


def _input_type(schema: Schema) -> str:
    """Return the type that a caller may pass for a schema.

    Any text may stand for one of several: a newer service may know more, and each says which it knows.
    """
    if "$ref" in schema or "oneOf" in schema:
        return "Mapping[str, Any]"
    if "anyOf" in schema:
        kinds = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return _union([_input_type(each) for each in kinds])
    if "enum" in schema:
        values = schema["enum"]
        if set(values) == {"true", "false"}:
            return "bool"
        return f"Literal[{', '.join(map(_quoted, values))}] | str"
    match schema.get("type"):
        case "array":
            return f"Sequence[{_input_type(schema.get('items', {}))}]"
        case "object":
            inner = schema.get("additionalProperties")
            return f"Mapping[str, {_input_type(inner) if isinstance(inner, Mapping) else 'Any'}]"
        case "string" if schema.get("format") == "date-time":
            return "str | datetime"
        case kind:
            return PLAIN.get(str(kind), "Any")


if __name__ == "__main__":
    write_modules()
