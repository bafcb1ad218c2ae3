"""Every public name of Python has a complete docstring: the API reference and `help()` show these.

A method may leave out what the method that it overrides documents. The parameters of an estimator are documented where
they are declared (`Doc` in the annotation).
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import doctest
import enum
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest
from rankwright import client, operations, records, resources

from core.base.ranker import Ranker

PACKAGES = (
    "core",
    "core.bounds",
    "core.explain",
    "core.metrics",
    "core.monitoring",
    "core.probability",
    "core.selection",
    "rankwright",
)
OURS = ("core", "rankwright")
HEADS = re.compile(r"^([A-Z]\w+(?: \w+)?)\n-{3,}\s*\n", re.MULTILINE)
LONGEST_FIRST_LINE = 100
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
RETURNED = (
    client.Datasets,
    client.Uploads,
    client.Jobs,
    client.Models,
    client.Evaluations,
    client.Comparisons,
    client.BatchScores,
    client.Trash,
    client.Keys,
    client.Promotion,
    resources.Dataset,
    resources.Job,
    resources.Model,
    resources.Evaluation,
    resources.Comparison,
    resources.BatchScore,
    operations.Page,
    records.Record,
)
"""What calls of the client return. The awaited ones have the same methods."""


def sections(doc: str | None) -> dict[str, str]:
    """Return the text of each section of a docstring; that before the first has the name ""."""
    first, *rest = HEADS.split(inspect.cleandoc(doc or ""))
    return {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}


def entries(text: str) -> set[str]:
    """Return the names that a section documents: `X, y : array-like` documents two."""
    heads = [line for line in text.splitlines() if line and not line[0].isspace()]
    return {
        name.strip(" *`") for head in heads for name in head.partition(" : ")[0].split(",") if name
    }


def documented_fields(kind: type) -> set[str]:
    """Return the attributes of a class that its docstring documents, or a text below their declaration."""
    found = sections(kind.__doc__)
    names = entries(found.get("Parameters", "")) | entries(found.get("Attributes", ""))
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            names.add(ast.unparse(field.target))
    return names


@functools.cache
def is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in OURS


def first_line_gaps(doc: str | None) -> Iterator[str]:
    line = (inspect.cleandoc(doc or "").splitlines() or [""])[0]
    if not line.endswith("."):
        yield f"the first line must be a sentence: {line!r}"
    if len(line) > LONGEST_FIRST_LINE:
        yield f"the first line has {len(line)} characters"


def call_gaps(function: Callable[..., Any], docs: list[str | None]) -> Iterator[str]:
    """Yield what none of the docstrings says of the parameters and the result of a function."""
    found = [sections(doc) for doc in docs]
    known = {
        name
        for each in found
        for head in ("Parameters", "Other Parameters")
        for name in entries(each.get(head, ""))
    }
    signature = inspect.signature(function)
    generated = getattr(getattr(function, "keywords", None), "__annotations__", {})
    for name in signature.parameters:  # what openapi.json describes is tested there
        if name not in {"self", "cls", *known, *generated}:
            yield f"no entry for {name}"
    gives = signature.return_annotation not in (None, "None", "Never", inspect.Signature.empty)
    if gives and not any({"Returns", "Yields"} & each.keys() for each in found):
        yield "no Returns"


def example_gaps(doc: str | None) -> Iterator[str]:
    """Yield what is missing of the examples: none, or names that they use and do not import."""
    examples = doctest.DocTestParser().get_examples(sections(doc).get("Examples", ""))
    if not examples:
        yield "no Examples"
    known = {*dir(builtins)}
    for example in examples:
        nodes = [*ast.walk(ast.parse(example.source))]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        known |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        known |= {node.name for node in nodes if isinstance(node, DEFINITIONS) and node.name}
        known |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
        for name in sorted({node.id for node in names} - known):
            yield f"the example does not import {name}"


def function_gaps(function: Callable[..., Any]) -> Iterator[str]:
    yield from first_line_gaps(function.__doc__)
    yield from call_gaps(function, [function.__doc__])
    yield from example_gaps(function.__doc__)


def class_gaps(kind: type) -> Iterator[str]:
    yield from first_line_gaps(kind.__doc__)
    bases = [base for base in kind.__mro__ if is_ours(base)]
    documented = {name for base in bases for name in documented_fields(base)}
    is_ranker = issubclass(kind, Ranker)
    initialiser: Any = inspect.getattr_static(kind, "__init__")
    hints = get_type_hints(initialiser, include_extras=True) if is_ranker else {}
    parameters = [] if issubclass(kind, BaseException) else fields_of(kind)
    for name in parameters:
        declared = any(
            hasattr(note, "documentation") for note in getattr(hints.get(name), "__metadata__", ())
        )
        if not declared and name not in documented:
            yield f"no entry for {name}"
    if not is_ranker and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        # tests/core/test_forms.py looks at fitted rankers.
        annotated = {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
        attributes = entries(sections(kind.__doc__).get("Attributes", ""))
        for name in sorted(attributes - annotated - {*dir(kind)}):
            yield f"{name} is documented, and does not exist"
    yield from example_gaps(kind.__doc__)
    for name in sorted({name for base in bases for name in vars(base) if not name.startswith("_")}):
        homes = [base for base in kind.__mro__ if name in vars(base)]
        if is_ours(homes[0]) and not name.endswith("_request"):  # those are scikit-learn's
            for gap in member_gaps(kind, name, homes):
                yield f"{name}: {gap}"


def fields_of(kind: type) -> list[str]:
    if issubclass(kind, enum.Enum):  # its members are no parameters
        return []
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind) if not each.name.startswith("_")]
    if hasattr(kind, "_fields"):
        return [*kind._fields]
    if "__init__" not in {name for base in kind.__mro__[:-1] for name in vars(base)}:
        return []
    made = kind not in RETURNED and not inspect.isabstract(kind)
    made = made and not getattr(kind, "_is_protocol", False)
    return [*inspect.signature(kind).parameters] if made else []


def member_gaps(kind: type, name: str, homes: list[type]) -> Iterator[str]:
    found = inspect.getattr_static(kind, name)
    docs = [getattr(vars(home)[name], "__doc__", None) for home in homes]
    if isinstance(found, (property, functools.cached_property)):
        yield from first_line_gaps(next(filter(None, docs), None))
        return
    method = getattr(kind, name)
    if inspect.isroutine(method):
        yield from first_line_gaps(next(filter(None, docs), None))
        yield from call_gaps(method, [*docs, method.__doc__])


def public(package: str) -> dict[str, Any]:
    """Return the names that a package exports; of the client with the classes of what its calls return."""
    module = importlib.import_module(package)
    found = {name: getattr(module, name) for name in module.__all__}
    if package == "rankwright":
        found |= {kind.__name__: kind for kind in RETURNED}
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_documented_completely(package: str) -> None:
    gaps = [
        f"{name}: {gap}"
        for name, value in public(package).items()
        if callable(value)
        for gap in (class_gaps if isinstance(value, type) else function_gaps)(value)
    ]
    assert gaps == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_takes_the_place_of_a_public_name(package: str) -> None:
    found = public(package)
    for value in list(found.values()):
        importlib.import_module(getattr(value, "__module__", package))
    assert [name for name, value in public(package).items() if inspect.ismodule(value)] == []


def test_operations_read_from_a_class_are_functions() -> None:
    kinds = (
        client.Client.upload,
        client.AsyncClient.upload,
        client.Jobs.list,
        client.AsyncJobs.list,
    )
    returns = ["Dataset", "AsyncDataset", "Iterator[Job]", "AsyncIterator[AsyncJob]"]
    assert [inspect.signature(kind).return_annotation for kind in kinds] == returns
    assert [inspect.iscoroutinefunction(kind) for kind in kinds] == [False, True, False, False]
    bound = client.Client("http://nowhere", "key").upload
    assert next(iter(inspect.signature(bound).parameters)) == "table"
    assert "limit : int" in (client.Jobs.list.__doc__ or "")


def test_completion_offers_the_fields_of_a_resource() -> None:
    dataset = client.Client("http://nowhere", "key").datasets["ds"]
    assert {"rows", "status", "wait"} <= {*dir(dataset)}
    assert "rows" in dir(dataset.data)
