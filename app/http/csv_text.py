"""Text in CSV files that people will open in a spreadsheet: none of it is a formula there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_BEGINS_ONE = r"^[=+\-@\t\r]"


def safe(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def plain_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same for every text of a batch; words of a dictionary are written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from app.ingest.value_columns import is_text

    columns = []
    for column in batch.columns:
        words = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        if is_text(words.type):
            apostrophe = pa.scalar("'", words.type)
            escaped = pc.binary_join_element_wise(apostrophe, words, pa.scalar("", words.type))
            words = pc.if_else(pc.match_substring_regex(words, _BEGINS_ONE), escaped, words)
        columns.append(words)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
