"""An import within a function keeps a module out of a process that starts without it, or a library may be absent."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
OPTIONAL = {"dask", "distributed"}
"""Libraries of extras: the message of the function that needs one says how to install it."""

STARTS = (
    "import app.main",
    "import workers.__main__; from app.jobs import kinds; [kinds.find_kind(name) for name in kinds.KINDS]",
    "import workers.child",
    "from app.jobs import dispatcher; from app.operations import housekeeping",
    "import app.cli",
    "from app.cli import commands; commands()",
    "import sys; sys.argv = ['rankwright', 'serve']; from app.cli import commands; commands()",
    "import app.serve.supervisor",
)
"""What each process imports: API, worker (with the kinds of job that it prepares), fit process before its first job,
dispatcher, command line without commands, with all and with those of the server, `serve`."""


def loaded(start: str) -> Set[str]:
    """Return the modules in the memory of a process of its own after an import."""
    program = f"{start}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE
    )
    return set(json.loads(out.stdout))


def late_imports(source: str) -> Iterator[tuple[int, list[str]]]:
    """Return line and imported modules of each import within a function, `a.b` and `a.b.c` for `from a.b import c`."""

    def visit(node: ast.AST, *, in_function: bool) -> Iterator[tuple[int, list[str]]]:
        for child in ast.iter_child_nodes(node):
            if in_function and isinstance(child, ast.Import):
                yield child.lineno, [alias.name for alias in child.names]
            elif in_function and isinstance(child, ast.ImportFrom) and child.module:
                names = [f"{child.module}.{alias.name}" for alias in child.names]
                yield child.lineno, [child.module, *names]
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from visit(child, in_function=in_function or is_function)

    return visit(ast.parse(source), in_function=False)


def needless(
    module: str, source: str, processes: list[Set[str]], known: Mapping[str, object]
) -> list[int]:
    """Return the lines of late imports of modules that every process with this module has from its start.

    A process that has not this module from its start says nothing: whatever loads it later loads what it needs.
    `known` has all modules of the project, so that a submodule is told from a name.
    """
    found = []
    for line, names in late_imports(source):
        if names[0].partition(".")[0] in OPTIONAL:
            continue
        targets = [names[0], *(name for name in names[1:] if name in known)]
        keeps_out = [
            process
            for process in processes
            if (module in process or module.removesuffix(".__init__") in process)
            and any(target not in process for target in targets)
        ]
        if not keeps_out:
            found.append(line)
    return found


def test_each_import_within_a_function_keeps_a_process_small() -> None:
    with ThreadPoolExecutor(len(STARTS)) as pool:
        processes = list(pool.map(loaded, STARTS))
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for folder in ("app", "core", "workers", "migrations")
        for path in (ROOT / folder).rglob("*.py")
    }
    found = {
        name: lines
        for name, path in paths.items()
        if name.startswith("app.") and (lines := needless(name, path.read_text(), processes, paths))
    }
    assert found == {}


def test_a_needless_late_import_is_found() -> None:
    source = "def f():\n    import slow\n    from a import b\n    def g():\n        import quick\n"
    assert list(late_imports(source)) == [(2, ["slow"]), (3, ["a", "a.b"]), (5, ["quick"])]
    one, other = {"m", "quick", "a", "a.b"}, {"n", "quick"}
    assert needless("m", source, [one, other], {"a.b": None}) == [3, 5]
    assert needless("m", source, [one - {"a.b"}, other], {"a.b": None}) == [5]
    assert needless("n", source, [one, other], {}) == [5]
