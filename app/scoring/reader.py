"""How a model reads a value of each of its features: from a query, from JSON, and from the columns of a table.

One value is the same number wherever it stands: `ingest.values` has the rules, and docs/formats.md prints them. A
category becomes its position; a text that is none of the model's categories counts as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

import numpy as np
import numpy.typing as npt

from app.ingest.values import (
    MISSING,
    NUMERIC,
    USUAL,
    MissingCodes,
    Notation,
    category,
    is_category,
    read_json,
    read_json_column,
    read_text,
)
from app.platform.errors import advise_on_number, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.value_columns import MissingTokens

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_NULL_OR_TEXT = frozenset({str, type(None)})
_MANY_TEXTS = 150  # Arrow parses this many strings or more faster than Python


class CategoryIndex(dict[Any, float]):
    """The positions of a feature's categories, by value of a caller, text or JSON, in any spelling.

    NaN means a missing value or a text that is not a category. Such texts are not cached, because there may be any
    number of them.
    """

    def __init__(self, categories: Sequence[str]) -> None:
        super().__init__((text, float(i)) for i, text in enumerate(categories))
        self[None] = MISSING

    def __missing__(self, value: str | float | bool) -> float:
        """Look up a value whose spelling differs from the category's."""
        return self.get(category(value), MISSING)


class ReadColumn(NamedTuple):
    """A column as numbers, the mask of the values that do not fit, and the texts of a categorical one."""

    values: Floats
    bad: Mask | None
    texts: pa.DictionaryArray | None


class FeatureReader:
    """Reads the values of one feature."""

    def __init__(
        self,
        name: str,
        kind: str,
        words: Sequence[str] | None,
        codes: MissingCodes,
        notation: Notation,
    ) -> None:
        self.name, self.kind = name, kind
        self.categories = None if words is None else CategoryIndex(words)
        self.codes, self.notation = codes, notation

    def read_query(self, raw: bytes) -> float:
        """Read the value of a query's parameter. Raises ValueError, also for a category that is not UTF-8."""
        text = unquote(raw).decode()
        if self.categories is not None:
            return self.categories[text]
        try:
            return read_text(self.kind, text, self.codes, self.notation)
        except ValueError:
            if b"+" not in raw or b"%" in raw:
                raise
        # `+` is a space in a form, but a plus sign in 1e+5.
        return read_text(self.kind, raw.decode(), self.codes, self.notation)

    def read_cells(self, cells: Sequence[Any]) -> Floats:
        """Read JSON values. Raises ValueError or TypeError for a wrong one."""
        if self.categories is not None:
            return np.fromiter(map(self.categories.__getitem__, cells), np.float64, len(cells))
        if len(cells) >= _MANY_TEXTS and _NULL_OR_TEXT.issuperset(map(type, cells)):
            return self._read_texts(cells)
        return read_json_column(self.kind, cells, self.codes, self.notation)

    def _read_texts(self, cells: Sequence[str | None]) -> Floats:
        import pyarrow as pa

        from app.ingest.value_columns import tokens_of

        texts = pa.array(cells, pa.string())
        missing, notation = tokens_of(self.codes.tokens), self.notation.or_point
        values, bad, _ = self.read_column(texts, missing, notation)
        if bad is None or bad.any():
            raise ValueError("a value does not fit")
        return values

    def read_column(
        self, column: pa.Array, missing: MissingTokens, notation: Notation
    ) -> ReadColumn:
        """Read a column of a table with its own codes and notation, NaN where a value is missing or does not fit."""
        from app.ingest.value_columns import encode, read_column

        if self.categories is None:
            return ReadColumn(
                *read_column(column, self.kind, missing, notation, numbers=True), None
            )
        coded = encode(column, missing)
        positions = [self.categories[word] for word in coded.dictionary.to_pylist()]
        codes = coded.indices.fill_null(len(positions)).to_numpy()
        return ReadColumn(np.array([*positions, np.nan])[codes], None, coded)

    def fits(self, value: Any) -> bool:
        """Return True if a JSON value fits the type."""
        if self.categories is not None:
            return is_category(value)
        try:
            read_json(self.kind, value, self.codes, self.notation)
        except ValueError:
            return False
        return True

    def is_unknown(self, value: Any) -> bool:
        """Return True for a known value that is none of the categories."""
        return value is not None and not self.codes.has_category(value)

    def wrong_type(self, value: object, notation: Notation | None = None) -> str:
        """Return the message for a value of the wrong type, in the notation of a table or of the model."""
        notation = notation or self.notation
        if self.kind == NUMERIC and not isinstance(value, str):
            notation = USUAL
        rule = "text in UTF-8" if self.categories is not None else notation.rule(self.kind)
        detail = f"feature {shown(self.name)} must be {rule}, got {shown(value)}"
        if rule == USUAL.number_rule and isinstance(value, str):
            return advise_on_number(detail, value)
        return detail


def unquote(text: bytes) -> bytes:
    """Decode a name or value of a query."""
    return unquote_to_bytes(text.replace(b"+", b" "))
