"""Remembering what the database said, for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Memory(Generic[Key, Value]):
    """Answers that stay good for `seconds`, counted from before the look that gave them.

    Half that time into its life an answer that is still in use is looked up anew, by `refresh`, while requests go
    on with the old one: so a busy process never waits for the database, and never has all its requests ask at once.
    """

    def __init__(
        self, refresh: Callable[[Key], object], *, seconds: float = 0.9, size: int = 10_000
    ) -> None:
        self._refresh = refresh
        self.seconds = seconds
        self._size = size
        self._known: dict[Key, tuple[float, float, Value]] = {}  # refresh at, good until, answer

    def get(self, key: Key) -> Value | None:
        """The answer, if there is a good one. Never waits."""
        entry = self._known.get(key)
        if entry is None:
            return None
        refresh_at, good_until, value = entry
        now = time.monotonic()
        if now > refresh_at:
            if now > good_until:
                return None
            self._known[key] = (good_until, good_until, value)  # once is enough
            self._refresh(key)
        return value

    def put(self, key: Key, value: Value, looked_at: float) -> None:
        """Remember what a look that began at this monotonic time gave."""
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[key] = (looked_at + self.seconds / 2, looked_at + self.seconds, value)

    def drop(self, key: Key) -> None:
        """Forget one answer."""
        self._known.pop(key, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()
