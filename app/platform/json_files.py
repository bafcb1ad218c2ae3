"""JSON files of the operator, such as roles and connections: bounded reading, and reading again after a change."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

Content = TypeVar("Content")

CHECKED_EVERY = 1.0
"""Seconds between two looks at a file."""


class BadFile(ValueError):
    """A file cannot be used. The message names the file, the entry, the field and the rule."""


def read_json(file: Path, max_bytes: int) -> Any:
    """Raises BadFile."""
    try:
        if file.stat().st_size > max_bytes:
            raise BadFile(f"{file} must have at most {max_bytes:,} bytes")
        return json.loads(file.read_bytes())
    except OSError as error:
        raise BadFile(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{file} is not valid JSON: {error}") from None


class WatchedFile(Generic[Content]):
    """The content of a file, read again within a second after a change.

    If the new content cannot be used, the last good content remains in force, an error is logged and `problem` says
    why.
    """

    def __init__(
        self, file: Path | None, read: Callable[[Path], Content], empty: Content, what: str
    ) -> None:
        """Without a file the content is `empty`. `what` names it in the log. Raises BadFile."""
        self._file = file
        self._read = read
        self._what = what
        self._stamp = self._look()
        self._content = empty if file is None else read(file)
        self._checked_at = time.monotonic()
        self.problem: str | None = None

    def content(self) -> Content:
        now = time.monotonic()
        if self._file is not None and now - self._checked_at >= CHECKED_EVERY:
            self._checked_at = now
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                self._read_again(self._file)
        return self._content

    def _read_again(self, file: Path) -> None:
        try:
            self._content = self._read(file)
        except BadFile as error:
            self.problem = str(error)
            log.error("%s: %s; the earlier content remains in force", self._what, error)
        else:
            self.problem = None
            log.info("%s: read again from %s", self._what, file)

    def _look(self) -> tuple[int, int, int] | None:
        """Return what changes with the content; None without a file."""
        try:
            found = None if self._file is None else os.stat(self._file)
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)
