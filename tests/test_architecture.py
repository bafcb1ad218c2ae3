"""The rules of docs/architecture.md that a program can read, but who imports whom: lint-imports holds that."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "app", "workers")
OURS = (*PACKAGES, "tests", "migrations", "benchmarks", "chaos", "fuzz", "examples")

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
# Machine code that this program compiled, in folders that nobody else may write to (docs/security.md).
UNPICKLES = ROOT / "core" / "kernel.py"
FORBIDDEN_CALLS = {"eval", "exec", "__import__"}


def modules(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if path.parent != ROOT / "migrations" / "versions"  # written by Alembic
    )


def test_nothing_runs_what_it_is_given() -> None:
    found = {path: names for path in modules(*PACKAGES) if (names := dangerous(path.read_text()))}
    assert found == {UNPICKLES: {"pickle"}}


def dangerous(source: str) -> set[str]:
    """The modules that it imports and the functions that it calls of those that run what they are given."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module.split(".")[0]} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & FORBIDDEN_CALLS
    return found


def test_what_runs_what_it_is_given_is_found() -> None:
    source = "import numpy, pickle.x\nfrom joblib import load\neval('1')\n"
    assert dangerous(source) == {"pickle", "joblib", "eval"}


# What is handed a session: the transaction is opened at the edge (docs/architecture.md).
HANDED = ("service", "repository", "queue", "queue_repository", "child_jobs")
OPENING = {"read", "write", "reading", "writing"}
ENDING = {"commit", "rollback", "begin"}


def test_services_are_handed_a_session_and_never_end_it() -> None:
    services = [path for path in modules("app") if path.stem in HANDED]
    called = {path: calls_on_sessions(path.read_text()) for path in services}
    assert {path for path, names in called.items() if names & (OPENING | ENDING)} == set()
    assert calls_on_sessions("with self._db.read() as session:\n  session.commit()") == {
        "read",
        "commit",
    }


def calls_on_sessions(source: str) -> set[str]:
    """The methods that are called on what is named as a database or a session."""
    return {
        node.func.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value).rpartition(".")[2].lstrip("_") in {"db", "session"}
    }
