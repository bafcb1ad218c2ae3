"""Reading of an uploaded list of pairs (better, worse[, weight]) of item names into pairs of row numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.ingest.build import Callback
from app.ingest.columns import check_type
from app.ingest.errors import MAX_COUNTED_ERRORS, BadTable, Errors, show
from app.ingest.readers import open_source
from app.ingest.rows import Rows, Source
from app.ingest.value_columns import NAMES, MissingTokens, as_text, read_column
from app.ingest.values import NUMERIC
from core.base.target import WEIGHT_RULE, are_weights

BETTER, WORSE, WEIGHT = "better", "worse", "weight"
PAIRS_FILE = "pairs.parquet"

_MISSING = MissingTokens()

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


def ingest_pairs(payload: Mapping[str, Any], callback: Callback) -> dict[str, Any]:
    """Read a list of pairs; write `pairs.parquet` into the work folder of the payload. Returns their counts.

    The payload has path, content_type, content_encoding, workdir and limits as in `ingest`, and the path and the item
    column of the table of items. Row numbers refer to that table. Raises BadTable with every error, line and column.
    Only the files in the payload are read and written.
    """
    items = pq.read_table(payload["items"]["path"], columns=[payload["items"]["column"]])
    names = items.column(0).cast(pa.large_string()).combine_chunks()
    with ExitStack() as stack:
        return _Build(open_source(payload, stack, _MISSING), names, payload, callback).run()


class _Build:
    def __init__(
        self, source: Source, names: pa.Array, payload: Mapping[str, Any], callback: Callback
    ) -> None:
        self._source = source
        self._names = names
        self._limit = payload["limits"]["rows"]
        self._callback = callback
        self._errors = Errors()
        self._path = Path(payload["workdir"]) / PAIRS_FILE
        self._weighted = WEIGHT in source.names
        self._occurs = np.zeros(len(names), dtype=bool)
        self._weight_sum = 0.0

    def run(self) -> dict[str, Any]:
        """Raises BadTable."""
        self._check_columns()
        count = self._write()
        if self._errors.total:
            raise self._errors.summarise()
        if not count:
            raise BadTable("the table has a header but no pairs", code="no_rows")
        if self._weighted and not self._weight_sum > 0:
            raise BadTable(
                f"the sum of the weights must be above 0, got {self._weight_sum:g}", column=WEIGHT
            )
        with self._path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return {
            "file": PAIRS_FILE,
            "sha256": sha256,
            "pairs": count,
            "items": int(np.count_nonzero(self._occurs)),
            "weighted": self._weighted,
        }

    def _check_columns(self) -> None:
        given = self._source.names
        for name in (BETTER, WORSE):
            if name not in given:
                shown = ", ".join(map(show, given[:20]))
                raise BadTable(
                    f"a table of pairs must have the columns better and worse, got {shown}",
                    column=name,
                    code="unknown_column",
                )
        for name in given:
            if name not in {BETTER, WORSE, WEIGHT}:
                raise BadTable(
                    f"a table of pairs can have only the columns better, worse and weight, got also {show(name)}",
                    column=name,
                    code="unknown_column",
                )
        if self._weighted and self._source.schema is not None:
            types = dict(zip(given, self._source.schema.types, strict=True))
            check_type(WEIGHT, types[WEIGHT], text=False)

    def _write(self) -> int:
        fields = [(BETTER, pa.int64()), (WORSE, pa.int64())]
        if self._weighted:
            fields.append((WEIGHT, pa.float64()))
        count = 0
        with pq.ParquetWriter(self._path, pa.schema(fields), compression="lz4") as writer:
            for rows in self._source.batches(self._errors):
                columns = self._convert(rows)
                count += rows.batch.num_rows
                if count > self._limit:
                    raise BadTable(
                        f"a table can have at most {self._limit} pairs; this one has more",
                        code="too_many_rows",
                    )
                if self._errors.total >= MAX_COUNTED_ERRORS:
                    break
                if not self._errors.total:
                    writer.write_table(pa.table(columns, names=[name for name, _ in fields]))
                self._callback(*self._source.progress(), {"pairs": count})
        return count

    def _convert(self, rows: Rows) -> list[npt.NDArray[Any]]:
        texts = [as_text(rows.batch.column(name), NAMES) for name in (BETTER, WORSE)]
        better, worse = self._find(rows, BETTER, texts[0]), self._find(rows, WORSE, texts[1])
        same = (better == worse) & (better >= 0)
        rows.report(
            self._errors,
            WORSE,
            same,
            lambda row: f"item {show(texts[1][row].as_py())} cannot be better than itself",
        )
        columns: list[npt.NDArray[Any]] = [better, worse]
        if self._weighted:
            columns.append(self._weight(rows))
        return columns

    def _find(self, rows: Rows, column: str, text: pa.Array) -> Numbers:
        """Return the row of each item; -1, with an error, for an unknown one."""
        found = pc.index_in(text.cast(pa.large_string()), value_set=self._names, skip_nulls=True)
        number: Numbers = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        bad = number < 0

        def detail(row: int) -> str:
            item = text[row].as_py()
            if item is None:
                return "the item must not be missing"
            return f"the dataset has no item {show(item)}"

        rows.report(self._errors, column, bad, detail)
        self._occurs[number[~bad]] = True
        return number

    def _weight(self, rows: Rows) -> npt.NDArray[np.float64]:
        column = rows.batch.column(WEIGHT)
        values, wrong = read_column(column, NUMERIC, _MISSING)
        bad = wrong | ~are_weights(values)

        def detail(row: int) -> str:
            value = column[row].as_py()
            return (
                f"a weight must be {WEIGHT_RULE}, got {show('' if value is None else str(value))}"
            )

        rows.report(self._errors, WEIGHT, bad, detail)
        self._weight_sum += float(values[~bad].sum())
        return values
