"""The rules of docs/architecture.md that a program can check, except the layers, which lint-imports checks."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "app", "migrations", "workers")

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
UNPICKLES = ROOT / "core" / "kernels" / "numba_internals.py"
FORBIDDEN_CALLS = {"eval", "exec", "__import__"}
DANGEROUS_WORD = re.compile(rf"\b({'|'.join(FORBIDDEN_IMPORTS | FORBIDDEN_CALLS)})\b")


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_nothing_runs_what_it_is_given() -> None:
    found = {path: names for path in modules(*PACKAGES) if (names := dangerous(path.read_text()))}
    assert found == {UNPICKLES: {"pickle"}}


def dangerous(source: str) -> set[str]:
    """Return the imported modules and called functions of a source that run code from their input."""
    found: set[str] = set()
    if not DANGEROUS_WORD.search(unicodedata.normalize("NFKC", source)):  # as Python reads names
        return found
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


# Functions that answer a POST: each opens the one transaction in which the answer is written.
ANSWERING = {"run_once", "create_and_respond", "accept_upload"}
SEVERAL = {
    "access.list_audit_entries": "an export reads page by page, and records itself; a page is one transaction",
    "datasets.put_pairs": "looks before a body of hours is sent, accepts it, and reads again after a wait",
    "datasets.put_part": "looks before a body of hours is sent, and accepts it",
    "datasets.close_upload": "reads the parts, puts their manifest on disk, then closes: no writer waits for a disk",
    "datasets.create_version": "looks before the body is sent; `…/validate` looks once more, and then reads the table",
    "datasets.read_table_again": "`…/validate` looks for the dataset, and then reads the table",
    "scoring.create_batch_score": "looks for the model before the body is sent; a dataset is asked for in another way",
    "feedback.read_cohorts": "looks for the files of decisions, and then reads the outcomes while it joins them",
    "datasets.upload_dataset": "a table is accepted in one way, a source in another",
    "feedback.create_decisions": "looks for the alias before the body is sent; `…/validate` looks once more",
    "feedback.create_outcomes": "reads clock and label values, writes a file, then the row: no writer waits for a disk",
    "reports.create_alias_request": "looks for a stored answer; computes and writes the evidence, then the request",
    "reports.approve_alias_request": "checks the file of the artifact, which takes seconds, then makes the change",
    "reports.reject_alias_request": "decides, then reads the request by the clock of the database",
    "reports.withdraw_alias_request": "decides, then reads the request by the clock of the database",
    "reports.put_alias": "computes and writes the evidence, which takes seconds, then moves the alias",
    "models.read_model": "reads the model alone, or together with its parts",
    "training.submit_job": "`…/validate` estimates the job, else it is written",
    "jobs.read_job": "looks for the job, and once more after a wait for its end",
    "jobs.read_events": "a stream looks for the job, and then for its events as long as it lasts",
}


def test_an_endpoint_opens_one_transaction() -> None:
    found: dict[str, tuple[int, bool]] = {}
    for path in sorted(ROOT.glob("app/*/*endpoints.py")):
        found |= {
            f"{path.parent.name}.{name}": opened
            for name, opened in transactions(path.read_text()).items()
        }
    assert len(found) > 50
    assert {name for name, (opened, _) in found.items() if opened > 1} == SEVERAL.keys()
    assert not any(handed_on for _, handed_on in found.values())


def test_transactions_of_an_endpoint_are_found() -> None:
    source = """
@router.get("/both")
def both(context):
    context.db.reading(service.f)
    helper(context)

@router.get("/handed-on")
async def handed_on(context):
    await run_in_threadpool(service.f, context.db)

@router.post("")
async def creates(context):
    return await new.run_once(helper)

def helper(context):
    with context.db.write() as session:
        helper(context)
"""
    assert transactions(source) == {
        "both": (2, False),
        "handed_on": (0, True),
        "creates": (2, False),
    }


def transactions(source: str) -> dict[str, tuple[int, bool]]:
    """By endpoint: in how many places it opens a transaction, by itself or by a function of its module, and whether it
    hands the database on.
    """
    functions = {
        node.name: node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    def look(name: str, seen: set[str]) -> tuple[int, int]:
        opened = named = 0
        for node in ast.walk(functions[name]):
            if isinstance(node, ast.Attribute) and node.attr in ANSWERING:
                opened, named = opened + 1, named + 1
            elif isinstance(node, ast.Attribute):
                named += node.attr == "db"
                opened += node.attr in OPENING and ast.unparse(node.value).endswith(".db")
            elif isinstance(node, ast.Name) and node.id in ANSWERING:
                opened, named = opened + 1, named + 1
            elif isinstance(node, ast.Name) and node.id in functions.keys() - seen:
                seen.add(node.id)
                opens, names = look(node.id, seen)
                opened, named = opened + opens, named + names
        return opened, named

    found = {name: look(name, {name}) for name, node in functions.items() if is_endpoint(node)}
    return {name: (opened, named > opened) for name, (opened, named) in found.items()}


def is_endpoint(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and ast.unparse(decorator.func.value).endswith("router")
        for decorator in node.decorator_list
    )


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


JOINED_OWNERS = {
    "access/repository.py": 1,  # the limits of owners who have reached theirs: a count
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
