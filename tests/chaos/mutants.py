"""Mutants: the service with one safeguard removed, which the audit must notice. Other changes make attacks sharper,
such as less patience.

A mutant is a change of a module's text, made as a process of a deployment imports it. One that no longer finds its text
ends the process, so that it cannot survive as a mutant in name only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NamedTuple


class Change(NamedTuple):
    """A text in a module, what stands there instead, and how often."""

    module: str
    old: str
    new: str
    times: int


MUTANTS: dict[str, list[Change]] = {
    # Of a small table there is one shard otherwise.
    "small-shards": [
        Change("core.coding.stored", "SHARD_ROWS = 1 << 20", "SHARD_ROWS = 1 << 9", 1)
    ],
    # An older attempt's token is as good as the newest.
    "no-fencing": [
        Change("app.jobs.queue_repository", "Job.lease_token == ", "Job.lease_token >= ", 3)
    ],
    # An idle worker that looks for work finds none: a job whose wake-up is lost waits for ever.
    "no-polling": [
        Change(
            "app.jobs.queue_repository",
            "return bool(session.scalar(_HAS_WORK, ",
            "return bool(0 and session.scalar(_HAS_WORK, ",
            1,
        )
    ],
    # Otherwise a process that dies every five seconds would be started once in fifteen.
    "restart-at-once": [
        Change("app.serve.supervisor", "MAX_BACKOFF_SECONDS = 10.0", "MAX_BACKOFF_SECONDS = 0.2", 1)
    ],
}


def mutate(source: str, changes: Sequence[Change]) -> str:
    """Return the module's text with the changes made. Raises `LookupError` if the text is not as they expect."""
    for change in changes:
        if (found := source.count(change.old)) != change.times:
            raise LookupError(
                f"{change.module} must hold {change.old!r} {change.times} times, it does {found} times"
            )
        source = source.replace(change.old, change.new)
    return source


def install(name: str) -> None:
    """Have this process import the mutant's modules."""
    # One finder for all of them: two that change the same module would ask each other for it without end.
    finder = next((found for found in sys.meta_path if isinstance(found, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    for change in MUTANTS[name]:
        finder.changes.setdefault(change.module, []).append(change)


class _Finder(MetaPathFinder):
    """Finds what the others find, and has the modules in question read by `_Loader`."""

    def __init__(self) -> None:
        self.changes: dict[str, list[Change]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.changes:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.origin is not None:
                spec.loader = _Loader(fullname, spec.origin, self.changes[fullname])
                return spec
        return None


class _Loader(SourceFileLoader):
    """Reads a module's text with changes, past the compiled copy that Python keeps."""

    def __init__(self, fullname: str, path: str, changes: list[Change]) -> None:
        super().__init__(fullname, path)
        self._changes = changes

    def get_code(self, fullname: str) -> CodeType | None:
        """Compile the changed text."""
        try:
            source = mutate(self.get_data(self.path).decode(), self._changes)
        except LookupError as error:
            sys.exit(str(error))
        code: Any = compile(source, self.path, "exec")
        return code  # type: ignore[no-any-return]
