"""Numbers of a typed column as doubles, each the nearest there is: 0.3 is the 0.3 of a CSV, not 3 times 0.1."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.errors import BadTable, brief

_EXACT_DIGITS = 15  # whole numbers of so many digits are doubles, and so are powers of ten up to 10²²: one rounding
_EXACT_SCALE = 22


def as_doubles(column: pa.Array) -> pa.Array:
    """Return integers, floats and decimals as float64; Arrow's own cast of decimals rounds twice."""
    kind = column.type
    if not pa.types.is_decimal(kind):
        return pc.cast(column, pa.float64(), safe=False)
    if kind.precision <= _EXACT_DIGITS and 0 <= kind.scale <= _EXACT_SCALE:
        whole = column.cast(pa.decimal128(38, kind.scale)).view(pa.decimal128(38, 0))
        digits = whole.cast(pa.int64()).cast(pa.float64())
        return pc.divide(digits, pa.scalar(np.float64(10.0**kind.scale)))
    try:
        return pc.cast(pc.cast(column, pa.string()), pa.float64())
    except pa.ArrowInvalid as error:  # a file may claim any scale
        raise BadTable(f"a column of {kind} cannot be read: {brief(error)}") from error
