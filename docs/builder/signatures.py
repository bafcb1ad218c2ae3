"""Signatures and parameters of Python's functions and classes, with what is known of each parameter."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import textwrap
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from docs.builder.bounds import python_type, words_of
from docs.builder.docstrings import Docstring

WIDTH = 88
_EMPTY = inspect.Parameter.empty
_ONLY: Mapping[Any, str] = {
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.POSITIONAL_ONLY: "positional",
}
_PREFIX: Mapping[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


@dataclass(frozen=True)
class Shown:
    """One parameter as the reference shows it."""

    name: str
    kind: str
    """Its type with its bounds, in words."""
    short: str
    """Its type as Python writes it; empty if it has none."""
    default: str | None
    """As Python writes it; None if the parameter must be passed."""
    text: str
    """What it means; empty if nobody wrote it."""
    prefix: str = ""
    """Stars of `*args` and `**fields`."""
    only: str = ""
    """`keyword` or `positional`, if it can be passed in no other way."""


def hints_of(item: Any) -> Mapping[str, Any]:
    """Return the annotations of a function or a class, each as an object if it can be had."""
    target = inspect.getattr_static(item, "__init__") if isinstance(item, type) else item
    for each in (target, item):
        try:
            found = typing.get_type_hints(each, include_extras=True)
        except (NameError, TypeError, AttributeError):
            found = {}
        if found:
            return found
    return {}


def parameters_of(item: Any, described: Mapping[str, Any] | None = None) -> list[Shown]:
    """Return the parameters of a function or a class. `described`: entries of a docstring by name."""
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):
        return []
    if described is None:
        described = Docstring.of(item).described("Parameters", "Keywords", "Attributes")
    hints, own = (
        hints_of(item),
        field_texts(item) if isinstance(item, type) else keyword_texts(item),
    )
    return [
        _shown(
            each,
            hints.get(each.name, each.annotation),
            described.get(each.name),
            own.get(each.name, ""),
        )
        for each in signature.parameters.values()
        if each.name not in ("self", "cls") and not each.name.startswith("_")
    ]


def _shown(parameter: inspect.Parameter, annotation: Any, entry: Any, own: str) -> Shown:
    has_type = annotation is not _EMPTY
    metadata = getattr(annotation, "__metadata__", ())
    doc = next((each.documentation for each in metadata if hasattr(each, "documentation")), "")
    told = next((each for each in metadata if isinstance(each, str) and " " in each), "")
    kind = words_of(annotation) if has_type else ""
    if entry is not None and entry.kind and not doc:
        kind = entry.kind
    only = _ONLY.get(parameter.kind, "")
    return Shown(
        parameter.name,
        kind,
        tidy(python_type(annotation)) if has_type else "",
        None if parameter.default is _EMPTY else default_words(parameter.default),
        (doc or (entry.text if entry is not None else "") or own or told).strip(),
        _PREFIX.get(parameter.kind, ""),
        only,
    )


def default_words(value: Any) -> str:
    """Return a default as Python writes it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return repr(value)
    if inspect.isfunction(value) or isinstance(value, type):
        return str(value.__name__)
    text = repr(value)
    if text.startswith("<"):
        return "..."
    return re.sub(r"\b[a-z_]+(?:\.[a-z_]+)+\.(?=[A-Z])", "", text) if len(text) < 60 else "..."


def tidy(annotation: str) -> str:
    """Return an annotation without the modules and the steps of the client."""
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", annotation)
    return re.sub(r"Annotated\[(.+?), .*\]", r"\1", text)


def signature_text(name: str, parameters: list[Shown], returns: str = "") -> str:
    """Return a signature: on one line if it is short, else with a line for each parameter."""
    shown = [*_with_marks(parameters)]
    end = f" -> {returns}" if returns else ""
    line = f"{name}({', '.join(shown)}){end}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in shown), f"){end}"])


def _with_marks(parameters: list[Shown]) -> Iterator[str]:
    """Yield the parameters, with `/` and `*` where Python needs them."""
    before = ""
    starred = False
    for each in parameters:
        if before == "positional" and each.only != "positional":
            yield "/"
        if each.only == "keyword" and not starred and not each.prefix:
            starred = True
            yield "*"
        starred = starred or each.prefix == "*"
        before = each.only
        kind = f": {each.short}" if each.short else ""
        equals = " = " if kind else "="
        yield f"{each.prefix}{each.name}{kind}" + (
            f"{equals}{each.default}" if each.default is not None else ""
        )
    if before == "positional":
        yield "/"


def keyword_texts(item: Any) -> dict[str, str]:
    """Return what the keywords of an operation of the client mean, by name: they are in a TypedDict."""
    kind = getattr(item, "keywords", None)
    if kind is None:
        return {}
    found = typing.get_type_hints(kind, include_extras=True)
    return {
        name: next(
            (each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)), ""
        )
        for name, hint in found.items()
    }


@cache
def field_texts(kind: type) -> dict[str, str]:
    """Return the texts below the fields of a class, by name."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for line, after in itertools.pairwise(body):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        found[line.target.id] = inspect.cleandoc(text)
    return found
