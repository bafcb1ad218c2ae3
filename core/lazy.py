"""Names that are imported when they are first asked for (PEP 562), and old names, of modules and of what is in them."""

import ast
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any


def lazy_names(
    package: dict[str, Any], new_names: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's `__getattr__`, `__dir__` and `__all__`: they give the names it imports `if TYPE_CHECKING`.

    Who wants one ranker does not wait for the others. Python looks for a missing name of a module in its `__getattr__`
    (PEP 562), and this one imports it.

    Parameters
    ----------
    package : dict
        The package's `globals()`. A name that was asked for is stored there.
    new_names : mapping of str to str, optional
        The new name of each renamed thing in the package, by its old name, which warns (DeprecationWarning).
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
            return _find_renamed(package, attribute, new_names)
        package[attribute] = value = getattr(import_module(homes[attribute]), attribute)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*package, *homes})

    return __getattr__, __dir__, sorted(homes)


def old_names(module: dict[str, Any], new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__`: it knows old names, and warns of them (DeprecationWarning).

    Bind it `if not TYPE_CHECKING`: a type checker takes every name for one of a module that has `__getattr__`.

    Parameters
    ----------
    module : dict
        The module's `globals()`.
    new_names : mapping of str to str
        The new name of each renamed thing in the module, by its old name.
    """

    def __getattr__(attribute: str) -> Any:  # noqa: N807
        return _find_renamed(module, attribute, new_names)

    return __getattr__


def _find_renamed(module: dict[str, Any], old: str, new_names: Mapping[str, str]) -> Any:
    name = module["__name__"]
    if old not in new_names:
        raise AttributeError(f"module {name!r} has no attribute {old!r}")
    warnings.warn(f"{name}.{old} is now {new_names[old]}", DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[name], new_names[old])


class MovedModules(MetaPathFinder, Loader):
    """Import a module by its old name, with a DeprecationWarning.

    Parameters
    ----------
    new_names : mapping of str to str
        The full name of each moved module, by its old full name.
    """

    def __init__(self, new_names: Mapping[str, str]) -> None:
        self._new_names = new_names
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old name; None for any other name."""
        return ModuleSpec(name, self) if name in self._new_names else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the moved module itself, so that it exists once, and whole: another thread may ask for it already."""
        new = self._new_names[spec.name]
        warnings.warn(f"{spec.name} is now {new}", DeprecationWarning, stacklevel=2)
        module = import_module(new)
        self._specs.setdefault(new, module.__spec__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec: the import under the old name has replaced it."""
        module.__spec__ = self._specs[module.__name__]
