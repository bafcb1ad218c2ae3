"""The error codes that each operation can answer, read from the source: the errors that its endpoint's calls construct.

Calls are followed by name: through imports, annotations of parameters and fields, and declared results. `make openapi`
writes the codes of statuses 400 to 428 to app/http/error_codes.json, by operation and status. Those of 429 and above
come from the process, not from the operation.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.routing import Route

from app.access.authentication import Authenticator, GuardedRoute
from app.http.problems import of_validation_error

ROOT = Path(__file__).resolve().parents[1]
BASES = ("ServiceError", "CoreError")
INVALID = "422"
"""The status of errors of `core`, and of errors that are listed in one."""
HANDLED = ("app.console", "app.cli", "app.serve", "app.platform.settings")
"""Modules that answer no request of the API."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Symbol(NamedTuple):
    """What a name means: a module (no node), or a function, class or value of it; `owner` is the class of a method."""

    module: str
    node: ast.AST | None
    owner: ast.ClassDef | None = None
    code: str | None = None  # of the instance whose method it is
    enclosed: tuple[tuple[str, Symbol], ...] = ()  # the variables of a function around it


@cache
def _tree(module: str) -> ast.Module | None:
    path = ROOT.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return ast.parse(file.read_text())
    return None


@cache
def _names(module: str) -> Mapping[str, ast.AST]:
    """Return the imports, also of functions, and the definitions of a module by name."""
    found: dict[str, ast.AST] = {}
    tree = _tree(module)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = node
    for node in tree.body if tree else ():
        if isinstance(node, Function | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
    return found


@cache
def _find(module: str, name: str) -> Symbol | None:
    """Return what a name of a module of ours means."""
    node = _names(module).get(name)
    if isinstance(node, ast.Import):
        return None
    if not isinstance(node, ast.ImportFrom):
        inner = f"{module}.{name}"
        return Symbol(module, node) if node else Symbol(inner, None) if _tree(inner) else None
    source = node.module or ""
    if node.level:
        parts = module.split(".")
        is_package = (ROOT.joinpath(*parts) / "__init__.py").exists()
        base = parts[: len(parts) - node.level + is_package]
        source = ".".join([*base, *filter(None, [source])])
    original = next(each.name for each in node.names if name in (each.asname, each.name))
    if source.partition(".")[0] not in ("app", "core"):
        return None
    if _tree(f"{source}.{original}"):
        return Symbol(f"{source}.{original}", None)
    return _find(source, original) if (source, original) != (module, name) else None


@cache
def _methods() -> Mapping[str, list[Symbol]]:
    """Return the methods of all classes of the application by name."""
    found: dict[str, list[Symbol]] = defaultdict(list)
    for path in sorted((ROOT / "app").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for of in ast.walk(_tree(module) or ast.Module([], [])):
            if isinstance(of, ast.ClassDef):
                for node in of.body:
                    if isinstance(node, Function):
                        found[node.name].append(Symbol(module, node, of))
    return found


@cache
def _lineage(of: Symbol) -> Sequence[tuple[str, ast.ClassDef]]:
    """Return a class and those of ours that it inherits from, each with its module."""
    if not isinstance(of.node, ast.ClassDef):
        return []
    found = [(of.module, of.node)]
    for base in of.node.bases:
        inherited = _resolve(of.module, base, {})
        if inherited is not None and inherited.node is not of.node:
            found += _lineage(inherited)
    return found


def _member(of: Symbol, name: str) -> Symbol | None:
    """Return a method of a class, or of an instance that is the value of a name; or the class of a field."""
    code = of.code
    if isinstance(of.node, ast.Call):
        codes = [each.value for each in of.node.keywords if each.arg == "code"]
        code = str(codes[0].value) if codes and isinstance(codes[0], ast.Constant) else None
        made = _resolve(of.module, of.node.func, {})
        if made is None:
            return None
        of = made
    for module, owner in _lineage(of):
        for node in owner.body:
            if isinstance(node, Function) and node.name == name:
                return Symbol(module, node, owner, code)
            if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", None) == name:
                return next(iter(_classes(module, node.annotation)), None)
    return None


@cache
def _classes(module: str, annotation: ast.AST | None) -> Collection[Symbol]:
    """Return the classes of ours that an annotation names, also behind a name such as `CallerDep`."""
    return [*_walk_classes(module, annotation)]


def _walk_classes(module: str, annotation: ast.AST | None) -> Iterator[Symbol]:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    for node in ast.walk(annotation) if annotation else ():
        found = _resolve(module, node, {}) if isinstance(node, ast.Name | ast.Attribute) else None
        if found is not None and isinstance(found.node, ast.ClassDef):
            yield found
        elif found is not None and isinstance(found.node, ast.Subscript):
            yield from _classes(found.module, found.node)


def _resolve(module: str, node: ast.AST, types: Mapping[str, Symbol]) -> Symbol | None:
    if isinstance(node, ast.Name):
        return types.get(node.id) or _find(module, node.id)
    if isinstance(node, ast.Await):
        return _resolve(module, node.value, types)
    if isinstance(node, ast.Call):
        found = _called(module, node, types)
        if found is None or isinstance(found.node, ast.ClassDef):
            return found
        returns = found.node.returns if isinstance(found.node, Function) else None
        return next(iter(_classes(found.module, returns)), None)
    if isinstance(node, ast.Attribute):
        of = _resolve(module, node.value, types)
        if of is not None and of.node is None:
            return _find(of.module, node.attr)
        if of is not None:
            return _member(of, node.attr)
    return None


def _called(module: str, call: ast.Call, types: Mapping[str, Symbol]) -> Symbol | None:
    """Return the function or class that is called; of an object of unknown type, the only method of this name."""
    found = _resolve(module, call.func, types)
    if found is None and isinstance(call.func, ast.Attribute):
        of = _resolve(module, call.func.value, types)
        is_builtin = any(
            hasattr(each, call.func.attr) for each in (str, bytes, dict, list, set, Path)
        )
        named = () if of or is_builtin else _methods().get(call.func.attr, ())
        return named[0] if len(named) == 1 else None
    return found


@cache
def _status(of: Symbol) -> tuple[str, str] | None:
    """Return status and default code of the class of an error."""
    lineage = _lineage(of)
    names = [owner.name for _, owner in lineage]
    if not any(base in names for base in BASES):
        return None
    values: dict[str, Any] = {}
    for _, owner in lineage:
        for node in owner.body:
            if isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
                pairs = (
                    zip(target.elts, value.elts, strict=True)
                    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                    else [(target, value)]
                )
                for one, what in pairs:
                    if isinstance(what, ast.Constant):
                        values.setdefault(ast.unparse(one), what.value)
    return str(values.get("status", INVALID)), str(values.get("code", "error"))


@dataclass
class Codes:
    """The codes that functions construct, with those of what they call."""

    found: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    seen: set[Symbol] = field(default_factory=set)

    def follow(self, of: Symbol) -> None:
        """Add the codes of a function, a class or a value."""
        if of in self.seen:
            return
        self.seen.add(of)
        errors, others = _read(of)
        for status, codes in errors.items():
            self.found[status] |= codes
        for each in others:
            self.follow(each)


@cache
def _read(of: Symbol) -> tuple[Mapping[str, set[str]], Collection[Symbol]]:
    """Return the codes that the text of a symbol has, and what it refers to."""
    found: dict[str, set[str]] = defaultdict(set)
    others: dict[Symbol, None] = {}
    if of.node is None or of.module.startswith(HANDLED):
        return found, others
    if isinstance(of.node, ast.ClassDef):
        return found, () if _status(of) else [*_constructors(of)]
    types = dict(of.enclosed)
    if isinstance(of.node, Function):
        if of.owner is not None:
            types["self"] = Symbol(of.module, of.owner, None, of.code)
        arguments = of.node.args
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            for of_class in _classes(of.module, each.annotation):
                types.setdefault(each.arg, of_class)
    for node in ast.walk(of.node):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            is_made = isinstance(node.value, ast.Call | ast.Await)
            made = _resolve(of.module, node.value, types) if is_made else None
            if made is not None and isinstance(made.node, ast.ClassDef):
                types.setdefault(node.targets[0].id, made)
        if isinstance(node, ast.Call):
            for status, codes in _constructed(of, node, types):
                found[status] |= codes
            if (method := _called(of.module, node, types)) is not None:
                others[method] = None
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "code":
                    found[INVALID] |= _constants(of, value)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            other = _resolve(of.module, node, types)
            if other is not None:
                others[other] = None
    return found, others


def _constructors(of: Symbol) -> Iterator[Symbol]:
    """Yield what makes and validates the objects of a class."""
    for module, owner in _lineage(of):
        for node in owner.body:
            if isinstance(node, ast.AnnAssign):
                yield Symbol(module, node)
            elif isinstance(node, Function) and (
                node.name in ("__init__", "__post_init__", "__call__")
                or any("validator" in ast.unparse(mark) for mark in node.decorator_list)
            ):
                yield Symbol(module, node, owner)


def _constructed(
    of: Symbol, call: ast.Call, types: Mapping[str, Symbol]
) -> Iterator[tuple[str, set[str]]]:
    """Yield status and codes of an error that a call makes, itself or by a function that takes the code."""
    called = _called(of.module, call, types)
    if called is not None and isinstance(called.node, ast.ClassDef):
        if (error := _status(called)) is not None:
            given = _argument(call, "code")
            yield error[0], _constants(of, given) if given else {error[1]}
    elif called is not None and isinstance(called.node, Function):
        names = [each.arg for each in (*called.node.args.posonlyargs, *called.node.args.args)]
        given = _argument(call, "code", names)
        if given is not None:
            for status in _read(called)[0] or (INVALID,):
                yield status, _constants(of, given)


def _argument(call: ast.Call, name: str, names: Sequence[str] = ()) -> ast.AST | None:
    given = dict(zip(names, call.args, strict=False))
    return next((each.value for each in call.keywords if each.arg == name), given.get(name))


def _constants(of: Symbol, value: ast.AST | None) -> set[str]:
    """Return the strings that an expression in the text of a symbol can be."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return {value.value}
    if isinstance(value, ast.IfExp):
        return _constants(of, value.body) | _constants(of, value.orelse)
    if isinstance(value, ast.JoinedStr):
        parts = [
            str(each.value) if isinstance(each, ast.Constant) else of.code for each in value.values
        ]
        return set() if None in parts else {"".join(filter(None, parts))}
    if isinstance(value, ast.Name | ast.Attribute):
        found = _resolve(of.module, value, {})
        if found is not None and isinstance(found.node, ast.Constant):
            return _constants(found, found.node)
    return set()


def codes_of_all(app: Starlette) -> dict[str, dict[str, list[str]]]:
    """Return the codes of the operations that the app describes, by the name of the route and the status.

    A status is left out if an operation has only the codes there that each operation has.
    """
    every = codes_of(GuardedRoute.get_route_handler, Authenticator.authenticate)
    found = {}
    for route in app.routes:
        if isinstance(route, Route) and route.include_in_schema:
            endpoint = route.endpoint
            parts = [endpoint if isinstance(endpoint, FunctionType) else type(endpoint).__call__]
            if getattr(route, "body_field", None) is not None:
                parts.append(of_validation_error)
            own = codes_of(*parts)
            found[route.name] = {
                status: sorted({*codes, *every.get(status, ())})
                for status, codes in own.items()
                if status < "429" and not {*codes} <= {*every.get(status, ())}
            }
    return dict(sorted(found.items()))


def codes_of(*functions: Callable[..., Any]) -> dict[str, list[str]]:
    """Return the codes of functions of the application, and of those that they enclose, by status."""
    codes, seen, waiting = Codes(), set[object](), [*functions]
    while waiting:
        each = waiting.pop()
        if each in seen or not isinstance(each, FunctionType):
            continue
        seen.add(each)
        of = _of_value(each)
        cells = zip(each.__code__.co_freevars, each.__closure__ or (), strict=True)
        values = {name: cell.cell_contents for name, cell in cells}
        variables = ((name, _of_value(value)) for name, value in values.items())
        known = tuple((name, variable) for name, variable in variables if variable is not None)
        codes.follow(of._replace(enclosed=known) if of else Symbol(each.__module__, None))
        waiting += values.values()
        for value in values.values():
            if is_dataclass(value):
                waiting += [getattr(value, name, None) for name in each.__code__.co_names]
    return {status: sorted(found) for status, found in sorted(codes.found.items()) if found}


def _of_value(value: object) -> Symbol | None:
    """Return the function that a value is, or its class."""
    if not isinstance(value, FunctionType):
        found = _find(type(value).__module__, type(value).__name__)
        code = getattr(value, "code", None)
        return found and found._replace(code=code if isinstance(code, str) else None)
    *outer, name = value.__qualname__.split(".")
    owner = _find(value.__module__, outer[-1]) if outer else None
    of = owner.node if owner and isinstance(owner.node, ast.ClassDef) else None
    for node in ast.walk(_tree(value.__module__) or ast.Module([], [])):
        if isinstance(node, Function) and node.name == name:
            first = min([node, *node.decorator_list], key=lambda part: part.lineno)
            if first.lineno == value.__code__.co_firstlineno:
                return Symbol(value.__module__, node, of)
    return None
