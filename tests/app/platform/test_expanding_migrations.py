"""Migrations after the first only add, so that processes of the version before work on, on the new tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from app.platform import migrate

FOLDER = migrate.VERSIONS
FIRST = "0020"
"""Makes the tables, and so has nothing that it could take away; to be raised to the last one of each release."""
SINCE = sorted(path for path in FOLDER.glob("*.py") if path.name[:4] > FIRST)
TAKES_AWAY = ("drop_", "rename_", "alter_column")


def calls(source: str) -> Iterator[tuple[str, ast.Call]]:
    """Return the calls of `upgrade`, its own and its helpers': the method's name, and the call."""
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef) and function.name != "downgrade":
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield node.func.attr, node


def breaks(source: str) -> list[str]:
    """Return the changes that would break an older process."""
    found = []
    for name, call in calls(source):
        if name.startswith(TAKES_AWAY):
            found.append(ast.unparse(call))
        if name == "add_column":
            column = next(arg for arg in call.args if isinstance(arg, ast.Call))
            said = {word.arg: ast.unparse(word.value) for word in column.keywords}
            if said.get("nullable") != "True" and "server_default" not in said:
                found.append(ast.unparse(call))
    return found


def test_they_only_add() -> None:
    assert {path.name: found for path in SINCE if (found := breaks(path.read_text()))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "batch_op.drop_column('name')",
        "op.rename_table('a', 'b')",
        "op.alter_column('a', 'b', nullable=False)",
        "op.add_column('a', sa.Column('b', sa.Text(), nullable=False))",
        "batch_op.add_column(sa.Column('b', sa.Text()))",
    ],
)
def test_what_takes_away_is_seen(line: str) -> None:
    assert breaks(f"def upgrade():\n    {line}\ndef downgrade():\n    op.drop_table('a')") == [line]
