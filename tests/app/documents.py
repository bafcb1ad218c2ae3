"""Compare a JSON document with its TypedDict: every key and every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import is_typeddict


def misfits(value: Any, kind: Any, at: str = "$") -> list[str]:
    """Return the places where the value is not of the type; for a union, of the member that fits best."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return []
    if is_typeddict(kind):
        return _of_keys(value, kind, at)
    if origin in (Union, UnionType):
        return min((misfits(value, each, at) for each in args), key=len)
    if origin is Literal:
        return [] if value in args else [f"{at} is {value!r}"]
    if origin in (list, Sequence) and isinstance(value, list | tuple):
        return [
            line for i, each in enumerate(value) for line in misfits(each, args[0], f"{at}[{i}]")
        ]
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return [
            line for key, each in value.items() for line in misfits(each, args[1], f"{at}.{key}")
        ]
    of: Any = origin or {None: NoneType, float: (int, float)}.get(kind, kind)
    fits = isinstance(value, of) and (kind is bool or not isinstance(value, bool))
    return [] if fits else [f"{at} is {value!r}, not {kind}"]


def _of_keys(value: Any, kind: Any, at: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{at} is {value!r}, not {kind.__name__}"] * 2
    # `__required_keys__` takes no notice of NotRequired where annotations are text
    optional = {
        key
        for key, hint in get_type_hints(kind, include_extras=True).items()
        if get_origin(hint) is NotRequired
    }
    hints = get_type_hints(kind)
    lines = [f"{at} has no {key}" for key in hints.keys() - optional - value.keys()]
    lines += [f"{at} has {key} beside {kind.__name__}" for key in value.keys() - hints.keys()]
    for key in value.keys() & hints.keys():
        lines += misfits(value[key], hints[key], f"{at}.{key}")
    return lines
