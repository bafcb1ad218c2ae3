"""What every format is read into: batches of rows that know where they stand in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from app.services.ingest.faults import Fault, Faults

if TYPE_CHECKING:
    import pyarrow as pa


MAX_NAME = 255


class Doubt(Exception):
    """A fast reader met something that only the exact reader of its format may judge."""


@dataclass(frozen=True)
class Rows:
    """A batch, the number of its first row (from 0) and, where the format has lines, the line of each row."""

    batch: pa.RecordBatch
    first: int
    lines: npt.NDArray[np.int64] | None = None

    def fault(self, row: int, column: str | None, detail: str) -> Fault:
        """Describe what is wrong in a row of this batch, with its line or, without lines, its number from 1."""
        if self.lines is not None:
            return Fault(detail, int(self.lines[row]), column)
        number = self.first + row + 1
        return Fault(f"row {number}: {detail}", None, column, number)


class Source(Protocol):
    """A table that can be read any number of times, in batches."""

    names: list[str]
    exact: bool
    """Whether its verdict on a fault is final; if not, `Doubt` sends the table to the next source."""
    hasty: bool
    """Whether the first rows tell which columns are text; if any later row says otherwise, there is `Doubt`."""

    decimal: str
    """What stands before the decimals of numbers that are text."""

    @property
    def schema(self) -> pa.Schema | None:
        """The types, where the format has any."""
        ...

    def batches(self, faults: Faults, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield all rows, or of some columns. Rows that cannot be told apart from others go to `faults`."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return how far the reading is, and out of what."""
        ...
