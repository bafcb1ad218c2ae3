"""What is public of `core`: what its packages export. Documents and examples use nothing else of it.

docs/stability.md states the rule. Modules below these packages are internal, whatever the names in them are called.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from tests.test_public_docstrings import PACKAGES as DOCUMENTED

ROOT = Path(__file__).parents[1]
PACKAGES = tuple(name for name in DOCUMENTED if name.startswith("core"))
ERRORS = "core.errors"
"""Its exceptions are public."""

PAGES = ("README.md", "docs/**/*.md", "examples/*.md")
PROGRAMS = ("examples/*.py", "client/rankwright/**/*.py")
NOTEBOOKS = ("examples/*.ipynb",)
BLOCK = re.compile(r"^ *```python\n(.*?)```", re.DOTALL | re.MULTILINE)
PATH = re.compile(r"`(core(?:\.\w+)+)[^`]*`")


def files(patterns: tuple[str, ...]) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


@cache
def public() -> frozenset[str]:
    """Return the public packages and names, by path."""
    found = {*PACKAGES, ERRORS}
    for package in PACKAGES:
        found |= {f"{package}.{name}" for name in importlib.import_module(package).__all__}
    errors = vars(importlib.import_module(ERRORS))
    found |= {f"{ERRORS}.{name}" for name, value in errors.items() if isinstance(value, type)}
    return frozenset(found)


def imported(program: str) -> Iterator[str]:
    """Yield the paths of what a program imports from core."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if f"{alias.name}.".startswith("core."))
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("core."):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def programs_of(text: str) -> Iterator[str]:
    """Yield the Python blocks of a page; of a session what was typed."""
    for block in map(dedent, BLOCK.findall(text)):
        examples = doctest.DocTestParser().get_examples(block)
        yield "".join(each.source for each in examples) if examples else block


def internal(programs: Iterator[str] | list[str]) -> list[str]:
    return [path for program in programs for path in imported(program) if path not in public()]


@pytest.mark.parametrize("page", files(PAGES), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_uses_public_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert internal(programs_of(text)) == []
    named = {path for path in PATH.findall(text) if not path.endswith(".py")}
    assert sorted(named - public()) == []


@pytest.mark.parametrize("program", files(PROGRAMS), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_program_uses_public_names(program: Path) -> None:
    assert internal([program.read_text(encoding="utf-8")]) == []


@pytest.mark.parametrize("notebook", files(NOTEBOOKS), ids=lambda path: path.name)
def test_a_notebook_uses_public_names(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    plain = [re.sub(r"^\s*[!%].*$", "pass", source, flags=re.MULTILINE) for source in sources]
    assert internal(plain) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_of_public_names_use_public_names(package: str) -> None:
    found = importlib.import_module(package)
    docs = {name: getattr(found, name).__doc__ for name in found.__all__} | {package: found.__doc__}
    wrong = {}
    for name, doc in docs.items():
        examples = doctest.DocTestParser().get_examples(doc or "")
        if used := internal(["".join(each.source for each in examples)]):
            wrong[name] = used
    assert wrong == {}
