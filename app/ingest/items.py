"""The names of a table's items: each row is one, and no two may be the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.ingest.errors import Fault, Faults, show
from app.ingest.profile import MAX_DISTINCT
from app.ingest.rows import Rows


class ItemNames:
    """Collects the names batch by batch; whether they differ is known once all are there.

    The first `rows_before` of them are those of a table that the upload adds to: only the others have lines.
    """

    def __init__(self) -> None:
        self.rows_before = 0
        self._texts: list[pa.Array] = []
        self._lines: list[npt.NDArray[np.int64]] = []

    def add(self, rows: Rows, text: pa.Array) -> None:
        """Take the names of a batch in."""
        self._texts.append(text.cast(pa.large_string()))  # all of them may be over 2 GiB
        if rows.lines is not None:
            self._lines.append(rows.lines)

    def report_repeated(self, column: str, faults: Faults) -> None:
        """Add a fault for every name that stands in an earlier row as well."""
        names = pa.chunked_array(self._texts, pa.large_string())
        coded = names.combine_chunks().dictionary_encode()
        code = coded.indices.to_numpy()
        repeated = np.ones(len(code), dtype=bool)
        first = np.unique(code, return_index=True)[1]
        repeated[first] = False
        if not repeated.any():
            return
        at = np.flatnonzero(repeated)
        lines = np.concatenate(self._lines) if self._lines else None
        described = []
        for row in at[: faults.wanted(column)].tolist():
            name = show(coded.dictionary[int(code[row])].as_py())
            detail = f"item {name} is in {self._place(int(first[code[row]]), lines)} already"
            number = row - self.rows_before
            if lines is None:
                where = self._place(row, lines)
                described.append(Fault(f"{where}: {detail}", None, column, number + 1))
            else:
                described.append(Fault(detail, int(lines[number]), column))
        faults.add_many(column, len(at), described)

    def _place(self, row: int, lines: npt.NDArray[np.int64] | None) -> str:
        number = row - self.rows_before
        if number < 0:
            return "the version before"
        return f"row {number + 1}" if lines is None else f"line {int(lines[number])}"

    def summary(self) -> dict[str, object]:
        """Return the members of the column's profile; every name occurs once."""
        count = sum(map(len, self._texts))
        return {
            "missing": 0,
            "distinct": min(count, MAX_DISTINCT),
            "min": None,
            "max": None,
            "mean": None,
        }
