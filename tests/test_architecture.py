"""The rules of docs/architecture.md that a program can check, except the layers, which lint-imports checks."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.raising import mentions

ROOT = Path(__file__).parent.parent
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
PACKAGES = ("core", "app", "migrations", "workers")


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


# Modules whose functions take a session: the transaction is opened at the edge (docs/architecture.md).
HANDED = (
    "service",
    "repository",
    "queue",
    "child_jobs",
    "execution",
    "kinds",
    "comparisons",
    "evaluations",
    "tasks",
    "margins",
    "aliases",
    "curves",
    "included",
    "operating_points",
    "reason_codes",
)
OPENING = {"read", "write", "reading", "writing"}
ENDING = {"commit", "rollback", "begin"}


def test_services_are_handed_a_session_and_never_end_it() -> None:
    services = [path for path in modules("app") if path.stem.endswith(HANDED)]
    assert len(services) > 25
    called = {path: calls_on_sessions(path.read_text()) for path in services}
    assert {path for path, names in called.items() if names & (OPENING | ENDING)} == set()
    source = "with self._db.read() as session:\n  session.commit()"
    assert calls_on_sessions(source) == {"read", "commit"}


def calls_on_sessions(source: str) -> set[str]:
    """Return the methods that are called on names of a database or a session."""
    return {
        node.func.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value).rpartition(".")[2].lstrip("_") in {"db", "session"}
    }


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    assert len(graph.modules) > 200
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert find_circle(imports) is None


def test_a_circle_of_imports_is_found() -> None:
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": set()}) is None
    circle = find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    assert circle is not None
    assert set(circle) == {"b", "c"}


def find_circle(imports: Mapping[str, Set[str]]) -> list[str] | None:
    """Return the modules of a circle, the first one again at the end; None where there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return None


def test_the_walks_name_functions_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    walks = text.partition("## Four walks")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert len(walks) == 4
    for walk in walks:
        assert 4 <= len(re.findall(r"^\d+\. ", walk, re.MULTILINE)) <= 12, walk
        named = re.findall(r"`([\w/]+\.py)::([\w.]+)`", walk)
        assert named
        missing = [(path, name) for path, name in named if name not in definitions(path)]
        assert missing == []


def definitions(path: str) -> set[str]:
    """Return the functions and classes of a file, and their methods as `Class.method`."""
    found = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{each.name}" for each in node.body if isinstance(each, FUNCTION)
            }
        if isinstance(node, (ast.ClassDef, *FUNCTION)):
            found.add(node.name)
    return found


JOINED_OWNERS = {
    "access/repository.py": 1,  # the limits of owners who have reached theirs: a count
    "erasure/repository.py": 1,  # a search of every table, by its columns
    "jobs/queue_repository.py": 5,  # the limits of owners, and which owners' jobs wait for whose
    "operations/repository.py": 4,
    "platform/tables.py": 3,  # a model's aliases, whether their protection is suspended, and legal holds
}
"""Comparisons of one table's owner with another's, by file."""


def test_one_place_says_whose_rows_a_caller_reads() -> None:
    sources = {
        path.relative_to(ROOT / "app").as_posix(): path.read_text() for path in modules("app")
    }
    compared = {name: len(re.findall(r"\.owner (?:==|!=)", text)) for name, text in sources.items()}
    where = {name: count for name, count in compared.items() if count}
    where["platform/tables.py"] -= 1  # readable_by
    assert where.items() <= JOINED_OWNERS.items()


def test_errors_and_warnings_are_not_asserted_by_their_wording() -> None:
    """Tests name the class, the code and the values: tests/raising.py. Sentences are in tests/sentences.txt."""
    assert [path for path in modules("tests") if is_worded(path.read_text())] == []
    assert is_worded("with pytest.raises((A, B), match='must be above 0'):\n  f()")
    with pytest.raises(ValueError):  # noqa: PT011 - the only error of the helper
        mentions("C must be above 0", "must be above")


def is_worded(source: str) -> bool:
    """Return True if the message of an error or a warning is compared with a pattern."""
    return "match=" in source and any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"pytest.raises", "pytest.warns"}
        and any(each.arg == "match" for each in node.keywords)
        for node in ast.walk(ast.parse(source))
    )
