"""Every query that a caller can reach takes the owner, so none can find another owner's rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.platform.sql import Base
from app.platform.tables import BrowserSession

APP = Path(__file__).parents[1] / "app"
MODULES = {str(path.relative_to(APP)): path.read_text() for path in sorted(APP.rglob("*.py"))}
VERBS = {"select", "update", "delete", "get", "fetch_page", "join"}
FOR_ALL_OWNERS = {
    "operations/seal_repository.py": "the audit log of all owners is sealed and verified as one",
    "operations/repository.py": "figures for who runs the service; what is old goes, and files that no row names",
    "platform/outbox.py": "a dispatcher claims the next delivery of anybody, and holds it by its token",
    "webhooks/delivery_repository.py": "a dispatcher sends the deliveries of all owners",
    "schedules/due_repository.py": "a dispatcher runs the schedules of all owners",
    "jobs/queue_repository.py": "workers claim the next job of anybody, and hold it and its parts by its token",
}
BY_ANOTHER_SECRET = {
    (
        "access/repository.py",
        "find_caller",
    ): "a key or session is found by its hash, and says who the owner is",
    (
        "access/repository.py",
        "usable_among",
    ): "whether the hash of a secret is that of a usable key or session; nothing of it is returned",
    (
        "access/repository.py",
        "same_person",
    ): "ids of principals, of whatever owner, to compare with those of a request",
    ("access/repository.py", "touch"): "by the id of the key that was found so",
    ("access/repository.py", "owners_at_limit"): "a count for who runs the service",
    ("access/repository.py", "list_quotas"): "for who runs the service, who sets them",
    (
        "erasure/repository.py",
        "to_search_again",
    ): "housekeeping asks for the ids and owners of requests that are due",
    ("operations/repository.py", "list_retention"): "for who runs the service, who sets it",
    (
        "jobs/repository.py",
        "_states_of_ids",
    ): "the watcher asks for ids that were found with their owner",
    (
        "platform/tables.py",
        "break_glass_until",
    ): "by the owner of the alias that the column belongs to",
    ("platform/tables.py", "owner"): "pairs belong to whom their dataset belongs",
    ("webhooks/repository.py", "lock_all"): "housekeeping encrypts secrets with a newer key",
    ("models/repository.py", "has_any"): "whether this process will have anything to score with",
}
OWNED = {
    mapper.class_.__name__
    for mapper in Base.registry.mappers
    # a session is found by its own secret; its owner is the one that its person has chosen
    if "owner" in mapper.columns and mapper.class_ is not BrowserSession
}


def queries(source: str) -> Iterator[tuple[str, bool, set[str]]]:
    """Each function of a module: its name, whether it takes an owner, and the owned tables that it asks."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            arguments = [*function.args.args, *function.args.kwonlyargs]
            asked = {
                name.id
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and _verb(node) in VERBS
                for argument in node.args
                for name in ast.walk(argument)
                if isinstance(name, ast.Name) and name.id in OWNED
            }
            yield function.name, "owner" in {argument.arg for argument in arguments}, asked


def _verb(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def without_owner(name: str, source: str) -> set[str]:
    """Return the functions that query owned tables without an owner."""
    return {
        function
        for function, says_owner, asked in queries(source)
        if asked and not says_owner and (name, function) not in BY_ANOTHER_SECRET
    }


def test_a_query_says_whose() -> None:
    found = {
        name: functions
        for name, source in MODULES.items()
        if name not in FOR_ALL_OWNERS and (functions := without_owner(name, source))
    }
    assert found == {}


def test_each_exception_is_needed() -> None:
    assert MODULES.keys() >= FOR_ALL_OWNERS.keys()
    for name, function in BY_ANOTHER_SECRET:
        asking = {f: asked for f, _, asked in queries(MODULES[name])}
        assert asking[function], (name, function)


@pytest.mark.parametrize(
    "line",
    [
        "session.get(Dataset, id_)",
        "select(Model.id).where(Model.id == id_)",
        "session.execute(delete(Job).where(Job.id == id_))",
    ],
)
def test_one_without_is_seen(line: str) -> None:
    function = "def find({}):\n    return " + line
    assert without_owner("x.py", function.format("session, id_")) == {"find"}
    assert not without_owner("x.py", function.format("session, owner, id_"))
