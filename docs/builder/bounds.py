"""Types and bounds in words: of JSON schemas, and of the annotations of Python's parameters."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types

Json = Mapping[str, Any]


def number(value: float) -> str:
    """Return a bound as people write it: 1,000 and 1e-12."""
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:g}"


def span(
    least: float | None, most: float | None, *, above: bool = False, below: bool = False
) -> str:
    """Return a range of numbers in words; empty without bounds."""
    if least is None and most is None:
        return ""
    if least is not None and most is not None and not above and not below:
        return f"{number(least)} to {number(most)}"
    words = []
    if least is not None:
        words.append(f"above {number(least)}" if above else f"{number(least)} or more")
    if most is not None:
        words.append(f"below {number(most)}" if below else f"at most {number(most)}")
    return " and ".join(words)


def count(least: int | None, most: int | None, what: str) -> str:
    """Return how many characters or items there may be, in words; empty if any number."""
    if not least and most is None:
        return ""
    if not least:
        return f"at most {number(most or 0)} {what}s"
    if most is None:
        return f"{number(least)} or more {what}s"
    if least == most:
        return f"{number(least)} {what}{'s' if least > 1 else ''}"
    return f"{number(least)}–{number(most)} {what}s"


# --- JSON schemas ---------------------------------------------------------------------------------


def schema_words(schema: Json, name_of: Callable[[str], str]) -> str:
    """Return the type of a schema, with its bounds, in words. `name_of` makes a link of a schema's name."""
    if "$ref" in schema:
        return name_of(schema["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            found = [schema_words(each, name_of) for each in schema[several]]
            return alternatives(dict.fromkeys(found))
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return alternatives(map(_literal, schema["enum"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return alternatives(schema_words({**schema, "type": each}, name_of) for each in kind)
    return with_bounds(_kind(schema, name_of), _bounds(schema))


def with_bounds(kind: str, bounds: str) -> str:
    """Return a type and its bounds."""
    return f"{kind} ({bounds})" if bounds else kind


def _kind(schema: Json, name_of: Callable[[str], str]) -> str:
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return f"list of {len(schema['prefixItems'])} values"
        items = schema.get("items") or {}
        return f"list of {schema_words(items, name_of)}" if items else "list"
    if kind == "object":
        values = schema.get("additionalProperties")
        has_type = isinstance(values, Mapping) and values
        return (
            f"object of {schema_words(typing.cast(Json, values), name_of)}"
            if has_type
            else "object"
        )
    form = {"binary": "bytes", "date-time": "time (RFC 3339)", "date": "date", "uri": "URL"}
    if schema.get("format") in form:
        return form[schema["format"]]
    return str(kind or "any")


def _bounds(schema: Json) -> str:
    above, below = "exclusiveMinimum" in schema, "exclusiveMaximum" in schema
    least = schema.get("exclusiveMinimum" if above else "minimum")
    most = schema.get("exclusiveMaximum" if below else "maximum")
    return ", ".join(
        filter(
            None,
            (
                span(least, most, above=above, below=below),
                count(schema.get("minLength"), schema.get("maxLength"), "character"),
                count(schema.get("minItems"), schema.get("maxItems"), "item"),
                count(schema.get("minProperties"), schema.get("maxProperties"), "entry").replace(
                    "entrys", "entries"
                ),
            ),
        )
    )


def alternatives(words: Any) -> str:
    """Return words with commas between them, and an `or` before the last."""
    *others, last = [str(each) for each in words] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def _literal(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`{{.whole}}" if value is not None else "null"


# --- Python's annotations -------------------------------------------------------------------------


def words_of(annotation: Any) -> str:
    """Return a type of Python in words, with its bounds."""
    if isinstance(annotation, str):
        return f"`{annotation}`"
    origin = get_origin(annotation)
    if origin is Annotated:
        kind, *metadata = get_args(annotation)
        bounds = _bounds_of(metadata)
        if bounds and get_origin(kind) in (Union, types.UnionType):
            return alternatives(
                with_bounds(words_of(each), bounds) if each in (int, float) else words_of(each)
                for each in get_args(kind)
            )
        return with_bounds(words_of(kind), bounds)
    if origin is Literal:
        return alternatives(_literal(value) for value in get_args(annotation))
    if origin in (Union, types.UnionType):
        return alternatives(map(words_of, get_args(annotation)))
    return f"`{python_type(annotation)}`"


def _bounds_of(metadata: list[Any]) -> str:
    least = most = None
    above = below = False
    for each in metadata:
        if isinstance(each, annotated_types.Ge | annotated_types.Gt):
            above = isinstance(each, annotated_types.Gt)
            least = typing.cast(float, each.gt if isinstance(each, annotated_types.Gt) else each.ge)
        if isinstance(each, annotated_types.Le | annotated_types.Lt):
            below = isinstance(each, annotated_types.Lt)
            most = typing.cast(float, each.lt if isinstance(each, annotated_types.Lt) else each.le)
    return span(least, most, above=above, below=below)


def python_type(annotation: Any) -> str:
    """Return an annotation as it is written in Python, without what `Annotated` adds and without modules."""
    if isinstance(annotation, str):
        return annotation
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Ellipsis:
        return "..."
    if isinstance(annotation, list):  # of the arguments of a callable
        return "[" + ", ".join(map(python_type, annotation)) + "]"
    if isinstance(annotation, typing.TypeVar):
        return annotation.__name__
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    origin, given = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return python_type(given[0])
    if origin is Literal:
        return (
            "Literal["
            + ", ".join(json.dumps(each) if isinstance(each, str) else repr(each) for each in given)
            + "]"
        )
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(python_type, given)))
    if origin is not None:
        name = getattr(origin, "__name__", str(origin)).rpartition(".")[2]
        if name == "ndarray":
            return "ndarray"
        return f"{name}[{', '.join(map(python_type, given))}]" if given else name
    if annotation is Any:
        return "Any"
    return str(getattr(annotation, "__name__", annotation)).rpartition(".")[2]
