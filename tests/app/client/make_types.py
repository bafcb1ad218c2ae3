"""`make openapi`: write the service's own description, openapi.json, and from it client/rankwright/types.py.

Both are kept in the repository; a test makes them anew and compares.
"""

from __future__ import annotations

import json
import re
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.main import create_app
from app.platform.settings import Settings

Schema = Mapping[str, Any]

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "openapi.json"
TYPES = ROOT / "client" / "rankwright" / "types.py"
WIDTH = 100
HEAD = '''"""What the service answers: every object of its API, by the name that /openapi.json has for it.

Made from that description by tests/app/client/make_types.py; not written by hand.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal

from rankwright.records import Record
'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_REF = "#/components/schemas/"


def describe() -> dict[str, Any]:
    """Return the service's description of itself, without the name of its build."""
    with tempfile.TemporaryDirectory() as folder:
        document: dict[str, Any] = create_app(Settings(state_dir=Path(folder))).openapi()
    del document["info"]["x-build"]
    return document


def as_text(document: Schema) -> str:
    """Return the description as openapi.json has it."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


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
    parts = [HEAD]
    for name in sorted(wanted):
        if schemas[name].get("type") == "object" and not _is_page(schemas[name]):
            parts.append(_class(name, schemas[name]))
        elif not _is_page(schemas[name]):
            parts.append(f"{name} = {_type(schemas[name])}")
    return "\n\n".join(parts) + "\n"


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


def _class(name: str, schema: Schema) -> str:
    lines = [f"class {name}(Record):"]
    lines += _text(schema.get("description") or f"{name}.")
    lines.append("")
    required = schema.get("required", [])
    for field, described in schema.get("properties", {}).items():
        hint = _type(described)
        if field not in required and hint != "Any" and not hint.endswith("| None"):
            hint += " | None"
        lines.append(f"    {field}: {hint}" + ("" if field in required else " = None"))
        if described.get("description"):
            lines += _text(described["description"])
    return "\n".join(lines)


def _text(text: str) -> list[str]:
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
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


if __name__ == "__main__":
    described = describe()
    DOCUMENT.write_text(as_text(described), encoding="utf-8")
    TYPES.write_text(make_types(described), encoding="utf-8")
