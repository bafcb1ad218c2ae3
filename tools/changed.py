"""Name the tests that can see what has changed: `make check` runs them.

Changed are the lines that differ from the commit that is shared with BASE (`origin/main`, or HEAD where there is none),
and files that git does not know yet. They belong to definitions: functions, classes and constants of a module. From
these, the search follows every use of a name, also in other packages, to the test files that use it:

- by name, through helpers and fixtures;
- by path: an endpoint, or a page of the console, is used by the test files that contain its path;
- by file: a template, or a file of data, is used by the definition, or the template, that names it;
- by kind: what a job does is seen by the test files of its domain that do work.

The search does not continue through the lists that hold everything (`REGISTRIES`), nor beyond `REACH` uses: only
their own tests are run. So a change of what everything stands on needs `make test`.
"""

from __future__ import annotations

import ast
import gc
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "core": "core",
    "app": "app",
    "migrations": "migrations",
    "workers": "workers",
    "client/rankwright": "rankwright",
    "tests": "tests",
    "tools": "tools",
    "benchmarks": "benchmarks",
}
"""The folder of each package, and its name."""
REGISTRIES = (
    "app.console.pages",
    "app.jobs.kinds",
    "app.main",
    "app.preload",
    "app.science",
    "app.serve",
    "core.registry",
)
"""Modules that list the parts of the program: whoever uses one of them does not use all parts."""
REACH = 6
"""The number of uses, one of the other, from a change to a test."""
NAMES = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
"""Names with what is read of them."""
TEXT = re.compile(r'''(?<![fF])(?:"""(?s:.*?)"""|"[^"\n]*")|#.*''')
"""Docstrings, comments and strings without names."""
WORK = re.compile(r"\.work\(|\bbench\b|\.run\(")
"""How tests run jobs."""
WHOLE = ""
"""The name of a module's statements that define nothing."""


class Definition(NamedTuple):
    """A module and the name of what it defines at its top level."""

    module: str
    name: str


def git(*words: str) -> list[str]:
    """Return the lines of a command of git; none where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_lines() -> dict[PurePath, set[int] | None]:
    """Return the changed lines of each file that differs from the shared commit; None for all of a new file."""
    base = git("merge-base", "HEAD", os.environ.get("BASE", "origin/main"))[:1] or ["HEAD"]
    new = git("ls-files", "--others", "--exclude-standard")
    found: dict[PurePath, set[int] | None] = {PurePath(name): None for name in new}
    lines: set[int] = set()
    for line in git("diff", "--unified=0", "--no-renames", "--no-color", *base):
        if line.startswith(("--- a/", "+++ b/")):
            lines = set()
            found[PurePath(line[6:])] = lines
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            begin, count = int(hunk[1]), int(hunk[2] or 1)
            lines |= set(range(begin, begin + max(count, 1) + (count == 0)))
    return found


def module_of(path: PurePath) -> str | None:
    """Return the module of a file of Python."""
    for folder, package in PACKAGES.items():
        if path.is_relative_to(folder) and path.suffix == ".py":
            parts = path.relative_to(folder).with_suffix("").parts
            return ".".join((package, *(part for part in parts if part != "__init__")))
    return None


@cache
def modules() -> dict[str, Path]:
    """Return the file of each module."""
    return {
        str(module_of(path.relative_to(ROOT))): path
        for folder in PACKAGES
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "node_modules" not in path.parts
    }


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module.

    Without the collection of garbage, which would go through all trees again and again: they stay.
    """
    gc.disable()
    try:
        return ast.parse(modules()[module].read_text(encoding="utf-8"))
    finally:
        gc.enable()


def names_of(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at the top level of a module defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [
                each.id
                for target in targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            ]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


@cache
def statements_of(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of a module by the name that they define."""
    found: defaultdict[str, list[ast.stmt]] = defaultdict(list)
    exports = modules()[module].name == "__init__.py"
    for statement in tree_of(module).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom | ast.Expr) and not (
            exports and isinstance(statement, ast.If)
        ):
            for name in names_of(statement) or [WHOLE]:
                found[name].append(statement)
    return found


def source_of(module: str, node: ast.ImportFrom) -> str:
    """Return the absolute name of what `from … import` imports from."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    above = len(parts) - node.level + (modules()[module].name == "__init__.py")
    return ".".join([*parts[:above], *filter(None, [node.module])])


def import_statements(module: str) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a module, also those within functions."""
    waiting: list[ast.AST] = [tree_of(module)]
    for node in waiting:  # expressions hold none
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, ast.expr):
            waiting += ast.iter_child_nodes(node)


@cache
def imports(module: str) -> dict[str, Definition]:
    """Return what the imported names of a module are; a module itself has no name."""
    found: dict[str, Definition] = {}
    for node in import_statements(module):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name in modules():
                    found[each.asname or each.name] = Definition(each.name, WHOLE)
        else:
            source = source_of(module, node)
            for each in node.names:
                if (meant := definition(source, each.name)) is not None:
                    found[each.asname or each.name] = meant
    return found


@cache
def definition(module: str, name: str) -> Definition | None:
    """Return where a name of a module is defined, through packages that export it; None for other projects' names."""
    if f"{module}.{name}" in modules():
        return Definition(f"{module}.{name}", WHOLE)
    if module not in modules():
        return None
    if modules()[module].name == "__init__.py" and name not in statements_of(module):
        for node in import_statements(module):
            if isinstance(node, ast.ImportFrom):
                for each in node.names:
                    if (each.asname or each.name) == name:
                        return definition(source_of(module, node), each.name)
    return Definition(module, name)


@cache
def fixtures(folder: Path) -> dict[str, Definition]:
    """Return the fixtures that conftest.py files give to the tests of a folder."""
    found = dict(fixtures(folder.parent)) if folder != ROOT / "tests" else {}
    module = module_of(PurePath((folder / "conftest.py").relative_to(ROOT)))
    if module in modules():
        found |= {name: Definition(module, name) for name in statements_of(module) if name}
    return found


def uses(module: str, source: str) -> Iterator[Definition]:
    """Yield the definitions whose names are in the source of a definition.

    To look for words takes a tenth of the time of a walk through the syntax tree. In a test, a word in a string may be
    the name of a fixture.
    """
    known, own = imports(module), statements_of(module)
    given = fixtures(modules()[module].parent) if module.startswith("tests.") else {}
    for words in set(NAMES.findall(source if given else TEXT.sub("", source))):
        first, *rest = words.split(".")
        used = known.get(first)
        if used is not None:
            for name in rest:
                if used is not None and used.name == WHOLE:
                    used = definition(used.module, name)
        elif first in own:
            used = Definition(module, first)
        else:
            used = given.get(first)
        if used is not None:
            yield used


@cache
def users() -> dict[Definition, set[Definition]]:
    """Return the definitions that use each definition."""
    found: defaultdict[Definition, set[Definition]] = defaultdict(set)
    for where, source in texts().items():
        for used in uses(where.module, source):
            found[used].add(where)
    return found


@cache
def texts() -> dict[Definition, str]:
    """Return the source of each definition."""
    found = {}
    for module, path in modules().items():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for name, statements in statements_of(module).items():
            parts = [lines[first_line(each) - 1 : each.end_lineno] for each in statements]
            found[Definition(module, name)] = "".join(line for part in parts for line in part)
    return found


def first_line(statement: ast.stmt) -> int:
    """Return the line where a statement begins, with its decorators."""
    above = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(int(each.lineno) for each in above), statement.lineno)


def naming(file: str) -> set[Definition]:
    """Return the definitions of the program that name a file of their package."""
    return {
        where
        for where, text in texts().items()
        if f'"{file}"' in text and not where.module.startswith("tests.")
    }


def paths_of(where: Definition) -> list[str]:
    """Return the paths of an endpoint, with its router's prefix."""
    found = []
    prefixes = [
        str(argument.value)
        for statement in statements_of(where.module).get("router", [])
        for node in ast.walk(statement)
        if isinstance(node, ast.keyword) and node.arg == "prefix"
        for argument in [node.value]
        if isinstance(argument, ast.Constant)
    ]
    for statement in statements_of(where.module)[where.name]:
        for each in getattr(statement, "decorator_list", []):
            if isinstance(each, ast.Call) and "router." in ast.unparse(each.func):
                first = next(iter(each.args), None)
                if isinstance(first, ast.Constant):
                    found.append("".join(prefixes) + str(first.value))
    return found


def tests_by_path(path: str) -> Iterator[str]:
    """Yield the test modules that contain the last words of a path, if they are not those of every test."""
    words = [word for word in path.split("/") if word and not word.startswith("{")]
    last = re.compile("/" + re.escape(words[-1]) + r"\b") if words else None
    whole = re.compile(re.sub(r"\\\{\w+\\\}", r"[^/\\s]+", re.escape(path)) + r"[\"?]")
    for module, file in modules().items():
        if is_test(module):
            text = file.read_text(encoding="utf-8")
            ends_in_word = last is not None and not path.endswith("}")
            if (last if ends_in_word and last else whole).search(text):
                yield module


def tests_of_kind(module: str) -> Iterator[str]:
    """Yield the test modules of a domain in which jobs are run."""
    folder = ".".join(["tests", *module.split(".")[:2]]) + "."
    for each, file in modules().items():
        if is_test(each) and each.startswith(folder) and WORK.search(file.read_text("utf-8")):
            yield each


def is_test(module: str) -> bool:
    """Whether a module has tests, and not what tests share."""
    return module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")


def definitions_in(path: PurePath, lines: set[int] | None) -> set[Definition]:
    """Return the definitions that changed lines belong to; for no lines, all of the file."""
    module = module_of(path)
    if module is None:
        folder = path.parts[0]
        return naming(path.name) if folder in ("app", "core", "workers", "client") else set()
    if module not in modules():
        return set()
    return {
        Definition(module, name)
        for name, statements in statements_of(module).items()
        for each in statements
        if lines is None
        or lines & set(range(first_line(each), (each.end_lineno or each.lineno) + 1))
    }


def templates_with(path: PurePath) -> list[PurePath]:
    """Return a template, and those that include, import or extend it, directly or by others."""
    found = [path]
    for each in found:
        for other in sorted((ROOT / path.parent).glob("*.html")):
            name = PurePath(other.relative_to(ROOT))
            if name not in found and f'"{each.name}"' in other.read_text(encoding="utf-8"):
                found.append(name)
    return found


def tests_of(changes: dict[PurePath, set[int] | None]) -> list[Path]:
    """Return the test files that can see the changes, the nearest first."""
    found: dict[str, None] = {}
    waiting: set[Definition] = set()
    for path, lines in changes.items():
        for file in templates_with(path) if path.suffix == ".html" else [path]:
            waiting |= definitions_in(file, lines)
        if path.name == "__init__.py":
            found |= dict.fromkeys(tests_named("test_public_"))
        if path.parts[0] == "migrations":
            found |= dict.fromkeys(tests_named("test_migrations"))
    seen: set[Definition] = set()
    for _ in range(REACH + 1):
        reached = sorted(waiting - seen)
        seen |= waiting
        found |= dict.fromkeys(each.module for each in reached if is_test(each.module))
        waiting = set()
        for each in reached:
            next_ones = users().get(each, set())
            if each.module.startswith(REGISTRIES):
                next_ones = {user for user in next_ones if is_test(user.module)}
            if not is_test(each.module):
                waiting |= next_ones
            if each.name and not each.module.startswith("tests."):
                for path_of_api in paths_of(each):
                    found |= dict.fromkeys(tests_by_path(path_of_api))
                if each.name == "KIND":
                    found |= dict.fromkeys(tests_of_kind(each.module))
    return [modules()[each] for each in found]


def tests_named(word: str) -> Iterator[str]:
    """Yield the test modules with a word in their name."""
    yield from (each for each in modules() if is_test(each) and word in each)


if __name__ == "__main__":
    print(*(path.relative_to(ROOT) for path in tests_of(changed_lines())))
