"""Packages whose names are imported when they are first asked for (PEP 562): who wants one ranker pays for no other."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(
    package: dict[str, Any],
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Give a package's `__getattr__`, `__dir__` and `__all__`, of what it imports `if TYPE_CHECKING`.

    Parameters
    ----------
    package : dict
        The package's `globals()`, which keep what was asked for.
    """
    name, source = package["__name__"], Path(package["__file__"]).read_text(encoding="utf-8")
    homes = {
        alias.name: f"{name}.{statement.module}"
        for statement in ast.walk(ast.parse(source))
        if isinstance(statement, ast.ImportFrom) and statement.level == 1
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
