"""Lazily imported package names (PEP 562)."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(
    package: dict[str, Any],
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package, which import its names on first use.

    Who wants one ranker does not wait for the others. Python looks for a missing name of a module in its `__getattr__`
    (PEP 562), and this one imports it.

    package: the package's `globals()`. A name that was asked for is stored there.
    """
    name, source = package["__name__"], Path(package["__file__"]).read_text(encoding="utf-8")
    guarded = [each for each in ast.parse(source).body if isinstance(each, ast.If)]
    homes = {
        alias.name: f"{name}.{statement.module}" if statement.level else f"{statement.module}"
        for block in guarded
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

    def __getattr__(attribute: str) -> Any:  # noqa: N807 - the interpreter's name for it
        if attribute not in homes:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        package[attribute] = value = getattr(import_module(homes[attribute]), attribute)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*package, *homes})

    return __getattr__, __dir__, sorted(homes)
