"""Packages whose names are imported when they are first asked for (PEP 562): who wants one ranker pays for no other."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: dict[str, Any], modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Give a package's `__getattr__` and `__dir__`.

    Type checkers see the imports that the package makes `if TYPE_CHECKING`; a test holds the two together.

    Parameters
    ----------
    package : dict
        The package's `globals()`, which keep what was asked for.
    modules : mapping of str to str
        For each module of the package, the names that it gives, with spaces between.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def __getattr__(name: str) -> Any:  # noqa: N807 - the interpreter's name for it
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package['__name__']}.{homes[name]}"), name)
        package[name] = value
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*package, *homes})

    return __getattr__, __dir__
