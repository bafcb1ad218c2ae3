"""The rules of docs/architecture.md that a program can read: who imports whom, how large, and what never appears."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "app", "workers")
OURS = (*PACKAGES, "tests", "migrations", "benchmarks", "chaos", "fuzz", "examples")
MODULE_LINES = 400
FUNCTION_LINES = 60

# Code that runs whatever bytes or text it is given.
FORBIDDEN_IMPORTS = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
}
FORBIDDEN_CALLS = {"eval", "exec", "__import__"}


def modules(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if path.parent != ROOT / "migrations" / "versions"  # written by Alembic
    )


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "path", paths, ids=[str(path.relative_to(ROOT)) for path in paths]
    )


def test_the_import_contracts_hold() -> None:
    """The contracts are in pyproject.toml."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 broken" in checked.stdout


@named(modules(*OURS))
def test_a_module_fits_in_the_head(path: Path) -> None:
    source = path.read_text()
    assert path.stem not in {"utils", "util", "helpers"}, "name the noun it is about"
    assert len(source.splitlines()) <= MODULE_LINES
    long = [
        f"{function.name}: {lines} lines"
        for function in functions(ast.parse(source))
        if (lines := code_lines(function)) > FUNCTION_LINES
    ]
    assert not long, f"more than {FUNCTION_LINES} lines: {long}"


@named(modules(*PACKAGES))
def test_nothing_runs_what_it_is_given(path: Path) -> None:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module.split(".")[0]} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & FORBIDDEN_CALLS
    assert not found


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def test_the_measure_leaves_docstrings_out() -> None:
    source = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    assert [code_lines(function) for function in functions(ast.parse(source))] == [2]
