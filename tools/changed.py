"""Name the tests of what has changed: `make check` runs them.

Changed are the files that differ from the commit that is shared with BASE (`origin/main`, or HEAD where there is none),
and files that git does not know yet. A changed test file is run itself; a changed file that tests share
(tests/harness.py) is run by `make test` only. Of a module, the tests are:

- the test files that use it, directly or through the tests' own helpers, or that use a module of the same package that
  uses it (a test of `core.metrics.fairness` for a change of `core.metrics.curve`);
- the test files beside the mirrored path that are named after it (tests/core/metrics/test_ks.py of core/metrics/ks.py);
- of a module of `app`, which tests reach by HTTP, and of `workers` and the client, the folder of its tests; of a module
  of `core` that such a module uses, the files of that folder that are named after it.

A name that a package exports for another module is a use of the module that defines it.
"""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePath

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "core": "core",
    "app": "app",
    "migrations": "migrations",
    "workers": "workers",
    "client/rankwright": "rankwright",
    "tests": "tests",
}
"""The folder of each package, and its name."""


def git(*words: str) -> list[str]:
    """Return the lines of a command of git; none where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files() -> list[PurePath]:
    """List the files that differ from the shared commit, and those that are new."""
    base = git("merge-base", "HEAD", os.environ.get("BASE", "origin/main"))[:1] or ["HEAD"]
    names = git("diff", "--name-only", *base) + git("ls-files", "--others", "--exclude-standard")
    return [PurePath(name) for name in dict.fromkeys(names)]


def module_of(path: PurePath) -> str | None:
    """Return the module that a file is, or that owns it: app.console of app/console/templates/job.html."""
    for folder, package in PACKAGES.items():
        if path.is_relative_to(folder):
            rest = path.relative_to(folder)
            parts = rest.with_suffix("").parts if rest.suffix == ".py" else rest.parts[:1]
            return ".".join((package, *(part for part in parts if part != "__init__")))
    return None


@cache
def modules() -> dict[str, Path]:
    """Return the file of each module."""
    return {
        str(module_of(path.relative_to(ROOT))): path
        for folder in PACKAGES
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(modules()[module].read_text())


def source_of(module: str, node: ast.ImportFrom) -> str:
    """Return the absolute name of what `from … import` imports from."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    above = len(parts) - node.level + (modules()[module].name == "__init__.py")
    return ".".join([*parts[:above], *filter(None, [node.module])])


@cache
def exports(package: str) -> dict[str, str]:
    """Return the module that each name comes from that a package exports for another of its modules."""
    found: dict[str, str] = {}
    if package in modules() and modules()[package].name == "__init__.py":
        for node in ast.walk(tree_of(package)):
            if isinstance(node, ast.ImportFrom):
                source = source_of(package, node)
                if source.startswith(f"{package}."):
                    found |= {each.asname or each.name: source for each in node.names}
    return found


def definition(module: str, name: str) -> str | None:
    """Return the project's module that defines a name of a module, or that has this name; None for other projects'."""
    if f"{module}.{name}" in modules():
        return f"{module}.{name}"
    if module not in modules():
        return None
    source = exports(module).get(name)
    return module if source is None else definition(source, name)


def dotted(node: ast.expr) -> str:
    """Return a name with dots as written; empty for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


@cache
def uses(module: str) -> frozenset[str]:
    """Return the project's modules whose names a module uses."""
    found: set[str] = set()
    known: dict[str, str] = {}  # local names of modules
    attributes: list[ast.Attribute] = []
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute):
            attributes.append(node)
        elif isinstance(node, ast.Import):
            for each in node.names:
                known[each.asname or each.name] = each.name
        elif isinstance(node, ast.ImportFrom):
            source = source_of(module, node)
            for each in node.names:
                where = definition(source, each.name)
                if where == f"{source}.{each.name}":
                    known[each.asname or each.name] = where
                elif where is not None:
                    found.add(where)
    for attribute in attributes:
        if (of := known.get(dotted(attribute.value))) is not None:
            where = definition(of, attribute.attr)
            found |= set() if where is None else {where}
    return frozenset(
        found | {each for each in known.values() if each in modules() and not exports(each)}
    )


def users_of(module: str) -> set[str]:
    """Return the modules that use a module."""
    return {each for each in modules() if each != module and module in uses(each)}


def tests_through_helpers(module: str) -> Iterator[Path]:
    """Yield the test files that use a module, directly or through helpers of the tests."""
    seen, waiting = set[str](), {module}
    while waiting:
        users = {each for each in users_of(waiting.pop()) if each.startswith("tests.")} - seen
        seen |= users
        waiting |= {each for each in users if not is_test(each)}
    yield from (modules()[each] for each in sorted(seen) if is_test(each))


def is_test(module: str) -> bool:
    """Whether a module has tests, and not what tests share."""
    return module.rpartition(".")[2].startswith("test_")


def folder_of(module: str) -> Path | None:
    """Return the folder, or the file, of the tests that reach a module through the service or the command line."""
    package, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    if package == "rankwright":
        return ROOT / "tests/app" / ("cli" if part == "cli" else "client")
    if package == "workers":
        return ROOT / "tests/workers"
    if package == "migrations":
        return ROOT / "tests/app/platform/test_migrations.py"
    folder = ROOT / "tests" / package / part
    return folder if package == "app" and part and folder.is_dir() else None


def named_after(module: str, folder: Path) -> list[Path]:
    """Return the test files of a folder that are named after a module."""
    name = module.rpartition(".")[2].strip("_").removesuffix("s")
    return sorted(folder.glob(f"test_{name}*.py")) + sorted(folder.glob(f"test_*_{name}*.py"))


def tests_of(paths: Iterable[PurePath]) -> list[Path]:
    """Return the folders and files of the tests of changed files."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.parts[0] == "tests":
            if path.name.startswith("test_") and (ROOT / path).is_file():
                found[ROOT / path] = None
            continue
        module = module_of(path)
        if module is None:
            continue
        if (folder := folder_of(module)) is not None:
            found[folder] = None
        elif (beside := ROOT / "tests" / path.parent).is_dir():
            found |= dict.fromkeys(named_after(module, beside))
        if path.name == "__init__.py" and module.startswith("core"):
            found |= dict.fromkeys(sorted((ROOT / "tests").glob("test_public_*.py")))
        users = users_of(module)
        package = module.partition(".")[0]
        for each in [module, *sorted(users)]:
            if each.partition(".")[0] == package:
                found |= dict.fromkeys(tests_through_helpers(each))
            elif (folder := folder_of(each)) is not None and folder.is_dir():
                found |= dict.fromkeys(named_after(module, folder))
    return [path for path in found if not any(parent in found for parent in path.parents)]


if __name__ == "__main__":
    print(*(path.relative_to(ROOT) for path in tests_of(changed_files())))
