"""The categories of a feature, by what callers send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.ingest.values import SPACES

MISSING = float("nan")


class CategoryIndex(dict[Any, float]):
    """The categories of a feature: `index[value]` is the position of what a caller sends, text or a value of JSON.

    NaN stands for what is missing and for texts that are no category. None of those is kept: they are without number.
    """

    def __init__(self, categories: Sequence[str]) -> None:
        super().__init__((text, float(i)) for i, text in enumerate(categories))
        self[None] = self[MISSING] = MISSING

    def __missing__(self, value: str | float | bool) -> float:
        """The same for what is not spelled as a category is."""
        from app.ingest.value_columns import spell_number

        if isinstance(value, str):
            return self.get(value.strip(SPACES), MISSING)
        if isinstance(value, bool):
            return self.get("true" if value else "false", MISSING)
        return self.get(spell_number(value), MISSING)
