"""Columns -> the float64 matrix that every scan reads.

In this version a column is numeric or boolean, and a missing value is NaN. Text, categories and
dates are refused by name; there is nothing to learn at fit yet beyond the columns' names and order.
"""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from .errors import InvalidData


def is_table(X: object) -> bool:
    """Whether X is a table with named columns (pandas, pyarrow, polars) rather than an array."""
    return bool(nw.dependencies.is_into_dataframe(X))


def to_matrix(table: Any) -> npt.NDArray[np.float64]:
    """Turn a table of numeric columns into a matrix, nulls into NaN.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or polars.DataFrame of shape (n_samples, n_features)
        Integer, float, decimal and boolean columns, or columns without any value.
        Integers beyond 2**53 are rounded.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64, Fortran order

    Raises
    ------
    InvalidData
        A column is of another type, two columns share a name, or some names only are text; the
        message names them.
    """
    try:
        frame = nw.from_native(table, eager_only=True)
        names = list(frame.columns)
    except nw.exceptions.DuplicateError as error:
        raise InvalidData(f"column names must be unique: {error}") from error
    if len({isinstance(name, str) for name in names}) > 1:
        raise InvalidData(f"column names must be all text or none, got {names}")
    matrix = np.empty(frame.shape, dtype=np.float64, order="F")
    refused = []
    for j, column in enumerate(frame.iter_columns()):
        if column.null_count() == len(column):
            matrix[:, j] = np.nan
        elif column.dtype.is_numeric() or column.dtype == nw.Boolean:
            matrix[:, j] = column.cast(nw.Float64).to_numpy()
        else:
            refused.append(f"{names[j]!r} ({column.dtype})")
    if refused:
        raise InvalidData(f"columns must be numeric, got {', '.join(refused)}")
    return matrix
