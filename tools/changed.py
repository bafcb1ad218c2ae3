"""Name the tests that can see what has changed: `make check` runs them, the nearest first.

Changed are the definitions (functions, classes and constants of a module) whose syntax tree differs from that of the
commit that is shared with BASE (`origin/main`, or HEAD where there is none): a comment or a line break changes none.
From these, the search follows every use of a name, also in other packages, to the tests that use it:

- by name, through helpers and fixtures;
- by path: an endpoint, or a page of the console, is used by the tests that contain its path;
- by file: a template, or a file of data, is used by the definition, or the template, that names it;
- by kind: what a job does is seen by the tests of its domain that run jobs.

The search does not continue through the lists that hold everything (`REGISTRIES`), nor beyond `REACH` uses: only
their own tests are run. So a change of what everything stands on needs `make test`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple, TypedDict

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".pytest_cache" / "definitions.json"
"""What was read of each module, by the hash of its source."""
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
DOCUMENTED = "core", "rankwright"
"""Packages whose docstrings only the tests of docstrings read. Elsewhere they may be descriptions of the API."""
DOCSTRING_TESTS = "tests.test_public_docstrings", "tests.test_doctests"
PUBLIC_TESTS = "tests.test_public_api", *DOCSTRING_TESTS
"""What reads the names that packages export."""
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


class Defined(TypedDict):
    """What is read of a definition.

    spans: its first and last lines. A name may be defined more than once.
    names: the names in its source.
    paths: paths of the API or console that it serves, without the router's prefix.
    """

    spans: list[tuple[int, int]]
    names: list[str]
    paths: list[str]


class Facts(TypedDict):
    """What is read of a module.

    imports: of each imported name, the level of the import, its module, and the name there; None for a module.
    prefix: the prefix of its router.
    """

    imports: dict[str, tuple[int, str, str | None]]
    definitions: dict[str, Defined]
    prefix: str


def git(*words: str) -> list[str]:
    """Return the lines of a command of git; none where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


@cache
def base() -> str:
    """Return the commit that changes are relative to."""
    return next(iter(git("merge-base", "HEAD", os.environ.get("BASE", "origin/main"))), "HEAD")


def changed_files() -> list[PurePath]:
    """Return the files that differ from the shared commit, and those that git does not know yet."""
    new = git("ls-files", "--others", "--exclude-standard")
    return [*map(PurePath, git("diff", "--name-only", "--no-renames", base()) + new)]


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
def known() -> dict[str, Facts]:
    """Return what is read of each module; from the cache where its source has not changed."""
    try:
        kept = json.loads(CACHE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = {}
    tool = hashlib.sha1(Path(__file__).read_bytes()).hexdigest()
    found, stored = {}, {}
    for module, path in modules().items():
        text = path.read_text(encoding="utf-8")
        key = hashlib.sha1(f"{tool} {module} {sys.version_info[:2]} {text}".encode()).hexdigest()
        found[module] = stored[key] = kept.get(key) or facts_of(
            text, module, exports=path.name == "__init__.py"
        )
    if stored.keys() != kept.keys():
        CACHE.parent.mkdir(exist_ok=True)
        part = CACHE.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(stored), encoding="utf-8")
        part.replace(CACHE)
    return found


def statements_of(tree: ast.Module, *, exports: bool) -> dict[str, list[ast.stmt]]:
    """Return the statements of a module by the name that they define.

    exports: whether it is a package, of which the imports of type checking define nothing.
    """
    statements: defaultdict[str, list[ast.stmt]] = defaultdict(list)
    for statement in tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom | ast.Expr) and not (
            exports and isinstance(statement, ast.If)
        ):
            for name in names_of(statement) or [WHOLE]:
                statements[name].append(statement)
    return statements


def facts_of(text: str, module: str, *, exports: bool) -> Facts:
    """Read a module."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    statements = statements_of(tree, exports=exports)
    prefixes = [
        str(node.value.value)
        for statement in statements.get("router", [])
        for node in ast.walk(statement)
        if isinstance(node, ast.keyword)
        and node.arg == "prefix"
        and isinstance(node.value, ast.Constant)
    ]
    return {
        "imports": dict(imports_of(tree)),
        "definitions": {
            name: defined(each, lines, in_test=module.startswith("tests."))
            for name, each in statements.items()
        },
        "prefix": "".join(prefixes),
    }


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


def imports_of(tree: ast.Module) -> Iterator[tuple[str, tuple[int, str, str | None]]]:
    """Yield the imported names of a module, also those within functions."""
    waiting: list[ast.AST] = [tree]
    for node in waiting:  # expressions hold none
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name, (0, each.name, None)) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                yield each.asname or each.name, (node.level, node.module or "", each.name)
        elif not isinstance(node, ast.expr):
            waiting += ast.iter_child_nodes(node)


def defined(statements: list[ast.stmt], lines: list[str], *, in_test: bool) -> Defined:
    """Read a definition.

    To look for words takes a tenth of the time of a walk through the syntax tree. In a test, a word in a string may be
    the name of a fixture.
    """
    spans = [(first_line(each), each.end_lineno or each.lineno) for each in statements]
    source = "".join(line for first, last in spans for line in lines[first - 1 : last])
    paths = [
        str(call.args[0].value)
        for statement in statements
        for call in getattr(statement, "decorator_list", [])
        if isinstance(call, ast.Call)
        and "router." in ast.unparse(call.func)
        and call.args
        and isinstance(call.args[0], ast.Constant)
    ]
    return {
        "spans": spans,
        "names": sorted(set(NAMES.findall(source if in_test else TEXT.sub("", source)))),
        "paths": paths,
    }


def take_docstrings(statement: ast.stmt) -> Iterator[str]:
    """Take the docstrings, and texts below attributes, out of a statement, and yield them."""
    for node in ast.walk(statement):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for each in body:
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    yield str(each.value.value)
                    each.value.value = ""


def first_line(statement: ast.stmt) -> int:
    """Return the line where a statement begins, with its decorators."""
    above = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(int(each.lineno) for each in above), statement.lineno)


@cache
def source_of(module: str, level: int, name: str) -> str:
    """Return the absolute name of what an import imports from."""
    if not level:
        return name
    parts = module.split(".")
    above = len(parts) - level + (modules()[module].name == "__init__.py")
    return ".".join([*parts[:above], *filter(None, [name])])


@cache
def imports(module: str) -> dict[str, Definition]:
    """Return what the imported names of a module are; a module itself has no name."""
    found = {}
    for own, (level, source, name) in known()[module]["imports"].items():
        if name is not None:
            meant = definition(source_of(module, level, source), name)
        else:
            meant = Definition(source, WHOLE) if source in modules() else None
        if meant is not None:
            found[own] = meant
    return found


@cache
def definition(module: str, name: str) -> Definition | None:
    """Return where a name of a module is defined, through packages that export it; None for other projects' names."""
    if f"{module}.{name}" in modules():
        return Definition(f"{module}.{name}", WHOLE)
    if module not in modules():
        return None
    facts = known()[module]
    if modules()[module].name == "__init__.py" and name not in facts["definitions"]:
        level, source, there = facts["imports"].get(name, (0, "", None))
        if there is not None:
            return definition(source_of(module, level, source), there)
    return Definition(module, name)


@cache
def fixtures(folder: Path) -> dict[str, Definition]:
    """Return the fixtures that conftest.py files give to the tests of a folder."""
    found = dict(fixtures(folder.parent)) if folder != ROOT / "tests" else {}
    module = module_of(PurePath((folder / "conftest.py").relative_to(ROOT)))
    if module in modules():
        found |= {name: Definition(module, name) for name in known()[module]["definitions"] if name}
    return found


def uses(module: str, names: list[str]) -> Iterator[Definition]:
    """Yield the definitions that the names in the source of a definition mean."""
    imported, own = imports(module), known()[module]["definitions"]
    given = fixtures(modules()[module].parent) if module.startswith("tests.") else {}
    for words in names:
        first, *rest = words.split(".")
        used = imported.get(first)
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
    for module, facts in known().items():
        for name, each in facts["definitions"].items():
            for used in uses(module, each["names"]):
                found[used].add(Definition(module, name))
    return found


@cache
def text_of(where: Definition) -> str:
    """Return the source of a definition."""
    lines = modules()[where.module].read_text(encoding="utf-8").splitlines(keepends=True)
    spans = known()[where.module]["definitions"][where.name]["spans"]
    return "".join(line for first, last in spans for line in lines[first - 1 : last])


def with_text(pattern: str, within: str) -> Iterator[Definition]:
    """Yield the definitions below a package, or not below tests, whose source has text of a pattern."""
    wanted = re.compile(pattern)
    for module, path in modules().items():
        tests = module.startswith("tests.")
        if (module.startswith(within) if within else not tests) and wanted.search(
            path.read_text(encoding="utf-8")
        ):
            names = known()[module]["definitions"]
            yield from (
                where for name in names if wanted.search(text_of(where := Definition(module, name)))
            )


def tests_by_path(path: str) -> Iterator[Definition]:
    """Yield what tests contain the last words of a path, if they are not those of every test."""
    words = [word for word in path.split("/") if word and not word.startswith("{")]
    if words and not path.endswith("}"):
        return with_text("/" + re.escape(words[-1]) + r"(?![\w/{-])", "tests.")
    whole = re.sub(r"\\\{\w+\\\}", r"[^/\\s]+", re.escape(path)) + r"[\"?]"
    return with_text(whole, "tests.")


def is_test(where: Definition) -> bool:
    """Whether a definition is a test that pytest collects."""
    return (
        where.module.startswith("tests.")
        and where.module.rpartition(".")[2].startswith("test_")
        and where.name.startswith("test_")
    )


def contents_of(text: str, *, exports: bool) -> dict[str, tuple[list[str], list[str]]]:
    """Return the docstrings of each definition, and its syntax trees without them."""
    return {
        name: (
            [doc for each in statements for doc in take_docstrings(each)],
            [ast.dump(each) for each in statements],
        )
        for name, statements in statements_of(ast.parse(text), exports=exports).items()
    }


def changed_definitions(path: PurePath) -> Iterator[Definition]:
    """Yield the definitions of a file that differ from the shared commit; of one that is no Python, those that name it.

    An import that differs changes the definitions that use its name.
    """
    module = module_of(path)
    if module is None:
        if path.parts[0] in ("app", "core", "workers", "client"):
            for file in templates_with(path) if path.suffix == ".html" else [path]:
                yield from with_text(re.escape(f'"{file.name}"'), "")
        return
    exports = path.name == "__init__.py"
    texts = [
        "\n".join(git("show", f"{base()}:{path}")),
        (ROOT / path).read_text(encoding="utf-8") if module in modules() else "",
    ]
    before, now = (contents_of(text, exports=exports) for text in texts)
    facts = [facts_of(text, module, exports=exports) for text in texts]
    imported = {name for name, _ in facts[0]["imports"].items() ^ facts[1]["imports"].items()}
    for name in {*before, *now}:
        same_docs, same = (
            name in before and name in now and before[name][part] == now[name][part]
            for part in (0, 1)
        )
        words = facts[1]["definitions"][name]["names"] if name in now else []
        if (
            not same
            or (not same_docs and not module.startswith(DOCUMENTED))
            or any(word.partition(".")[0] in imported for word in words)
        ):
            yield Definition(module, name)
        elif not same_docs:
            yield from (Definition(each, WHOLE) for each in DOCSTRING_TESTS)
    if exports and imported:
        yield from (Definition(each, WHOLE) for each in PUBLIC_TESTS)


def templates_with(path: PurePath) -> list[PurePath]:
    """Return a template, and those that include, import or extend it, directly or by others."""
    found = [path]
    for each in found:
        for other in sorted((ROOT / path.parent).glob("*.html")):
            name = PurePath(other.relative_to(ROOT))
            if name not in found and f'"{each.name}"' in other.read_text(encoding="utf-8"):
                found.append(name)
    return found


def used_by(where: Definition) -> Iterator[Definition]:
    """Yield what can see a change of a definition at once."""
    listed = where.module.startswith(REGISTRIES)
    for user in users().get(where, ()):
        if not listed or user.module.startswith("tests."):
            yield user
    facts = known().get(where.module)
    if facts is None or where.module.startswith("tests."):
        return
    for path in facts["definitions"].get(where.name, {"paths": []})["paths"]:
        yield from tests_by_path(facts["prefix"] + path)
    if where.name == "KIND":
        domain = ".".join(["tests", *where.module.split(".")[:2]]) + "."
        yield from with_text(WORK.pattern, domain)


def tests_of(changes: list[PurePath]) -> list[str]:
    """Return the tests that can see changes of files, as pytest names them, the nearest first."""
    found = tests_that_see({each for path in changes for each in changed_definitions(path)})
    if any(path.parts[0] == "migrations" for path in changes):
        found.append(name_of(Definition("tests.app.platform.test_migrations", WHOLE)))
    return found


def tests_that_see(waiting: set[Definition]) -> list[str]:
    """Return the tests that can see changes of definitions, as pytest names them: the nearest files first.

    Within a file they keep its order, because tests that share what a fixture made may build on those above them.
    """
    found: dict[str, list[Definition]] = {}
    seen: set[Definition] = set()
    for _ in range(REACH + 1):
        reached = sorted(waiting - seen)
        seen |= waiting
        waiting = set()
        for each in reached:
            if is_test(each) or (each.module in PUBLIC_TESTS and each.name == WHOLE):
                found.setdefault(each.module, []).append(each)
            else:
                waiting.update(used_by(each))
    names: list[str] = []
    for module, tests in found.items():
        whole = Definition(module, WHOLE)
        names += map(name_of, [whole] if whole in tests else sorted(tests, key=line_of))
    return names


def line_of(where: Definition) -> int:
    return known()[where.module]["definitions"][where.name]["spans"][0][0]


def name_of(test: Definition) -> str:
    """Return a test's name for pytest; that of its file for all of a file."""
    file = str(modules()[test.module].relative_to(ROOT))
    return f"{file}::{test.name}" if test.name else file


if __name__ == "__main__":
    print(*tests_of(changed_files()))
