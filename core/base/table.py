"""Tables as the float64 matrix that every algorithm reads.

A column is numeric (or boolean), or categorical: of text, or of a categorical type. A fit learns the names and the
order of the columns and the categories of each categorical one: its distinct values as text, sorted. In the matrix a
categorical column holds the index of the category, 0 to K - 1. A missing value is NaN, and so is a category that the
fit did not see: no algorithm meets anything but 0 to K - 1 and NaN.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


Categories = tuple[tuple[str, ...] | None, ...]
"""The categories of each column, ascending; None for a numeric one."""

MAX_CATEGORIES = 65_535  # of a column: their codes fit 16 bits

# Bytes of all categories as JSON; escaped once more they still fit into an artifact's header.
MAX_CATEGORY_TEXT = 3 * 2**20


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table whose categorical columns already hold category indices: what the service fits on.

    InvalidData: the parts do not fit together; the message names what does not.
    """

    matrix: npt.NDArray[np.float64]
    """Numbers, or indices of categories; NaN is missing. Shape (n_samples, n_features), float64."""
    names: tuple[str, ...]
    categories: Categories
    """None for a numeric column; for a categorical one its categories, ascending."""

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.dtype != np.float64:
            raise InvalidData(
                "a coded table's matrix must be float64 of two dimensions, "
                f"got {self.matrix.dtype} of shape {self.matrix.shape}"
            )
        n_columns = self.matrix.shape[1]
        if len(self.names) != n_columns or len(self.categories) != n_columns:
            raise InvalidData(
                f"a coded table of {n_columns} columns must have as many names and categories, "
                f"got {len(self.names)} and {len(self.categories)}"
            )
        if len(set(self.names)) < n_columns or not all(isinstance(n, str) for n in self.names):
            raise InvalidData(f"column names must be unique strings, got {list(self.names)}")
        for name, column, categories in zip(
            self.names, self.matrix.T, self.categories, strict=True
        ):
            if categories is None:
                continue
            check_categories(f"the categories of {name!r}", categories)
            known = column[~np.isnan(column)]
            if not np.isin(known, np.arange(len(categories))).all():
                raise InvalidData(f"{name!r} must contain positions 0 to {len(categories) - 1}")


def check_categories(what: str, categories: Any) -> None:
    """Raise InvalidData for anything but a sequence of texts in strictly ascending order."""
    if not isinstance(categories, list | tuple) or not all(isinstance(c, str) for c in categories):
        raise InvalidData(f"{what} must be a list of strings")
    if len(categories) > MAX_CATEGORIES:
        raise InvalidData(
            f"{what} must be at most {MAX_CATEGORIES} distinct values, got {len(categories)}"
        )
    if any(a >= b for a, b in pairwise(categories)):
        raise InvalidData(f"{what} must be unique and ascending")
    try:
        "".join(categories).encode()
    except UnicodeEncodeError as error:
        raise InvalidData(f"{what} must be valid Unicode: {error}") from error


def is_table(X: object) -> bool:
    """Return True if X is a table with named columns (pandas, pyarrow, polars), False if it is an array."""
    import narwhals.stable.v2 as nw

    if isinstance(X, CodedTable | np.ndarray):  # known without any library
        return isinstance(X, CodedTable)
    return bool(nw.dependencies.is_into_dataframe(X))


def to_numbers(X: Any) -> npt.NDArray[np.float64]:
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"X must be rows of numbers of equal length, or a table with named columns: {error}"
        ) from error
    if matrix.ndim != 2:
        raise InvalidData(f"X must have two dimensions, got {matrix.ndim}")
    return matrix


def to_matrix(
    table: Any, categories: Categories | None = None
) -> tuple[npt.NDArray[np.float64], Categories]:
    """Return a table as a matrix (numbers, category indices, NaN for nulls), and the categories of each column.

    InvalidData: a column is of another type, or of another kind than at fit; a column has too many categories; two
    columns share a name, or some names only are text. The message names them.

    table: of shape (n_samples, n_features). Integer, float, decimal and boolean columns are numeric, those of text or
        of a categorical type categorical; a column without any value fits both. Integers beyond 2**53 are rounded.
    categories: from the fit. A value that is not among a column's categories counts as missing. None: learn them from
        this table.
    """
    import narwhals.stable.v2 as nw

    if isinstance(table, CodedTable):
        return _recode(table, categories)
    try:
        frame = nw.from_native(table, eager_only=True)
        names = list(frame.columns)
    except nw.exceptions.DuplicateError as error:
        raise InvalidData(f"column names must be unique: {error}") from error
    if len({isinstance(name, str) for name in names}) > 1:
        raise InvalidData(f"either all column names or none must be strings, got {names}")
    _refuse_columns(frame, categories)
    matrix = np.empty(frame.shape, dtype=np.float64, order="F")
    learnt: list[tuple[str, ...] | None] = []
    for j, column in enumerate(frame.iter_columns()):
        known = None if categories is None else categories[j]
        if known is None and not _is_text(column):
            matrix[:, j] = np.nan if _is_empty(column) else column.cast(nw.Float64).to_numpy()
        else:
            known = _encode(column, known, matrix[:, j])
        learnt.append(known)
    if categories is None:
        check_text(names, tuple(learnt))
    return matrix, tuple(learnt)


def keep_present(
    matrix: npt.NDArray[np.float64],
    categories: Categories,
    rows: npt.NDArray[np.int64] | None = None,
) -> tuple[npt.NDArray[np.float64], Categories]:
    """Drop the categories that no row (or none of `rows`) has; the matrix is copied if that changes it."""
    kept = list(categories)
    given = matrix
    for j, names in enumerate(categories):
        if names is None:
            continue
        column = given[:, j] if rows is None else given[rows, j]
        present = np.zeros(len(names), dtype=np.bool_)
        present[column[~np.isnan(column)].astype(np.intp)] = True
        if present.all():
            continue
        if matrix is given:
            matrix = given.copy(order="K")
        new_index = np.where(present, np.cumsum(present) - 1.0, np.nan)
        matrix[:, j] = _look_up(given[:, j], new_index)
        kept[j] = tuple(name for name, stays in zip(names, present, strict=True) if stays)
    return matrix, tuple(kept)


def check_text(names: Any, categories: Categories) -> None:
    for name, of_column in zip(names, categories, strict=True):
        if of_column is not None and len(of_column) > MAX_CATEGORIES:
            raise InvalidData(
                f"a categorical column must have at most {MAX_CATEGORIES} distinct values; {name!r} has "
                f"{len(of_column)}"
            )
    n_bytes = len(json.dumps(categories))
    if n_bytes > MAX_CATEGORY_TEXT:
        raise InvalidData(
            f"the categories of all columns must take at most {MAX_CATEGORY_TEXT} bytes as JSON, "
            f"got {n_bytes}"
        )


def _is_empty(column: Any) -> bool:
    return bool(column.null_count() == len(column))


def _is_of_text(dtype: object) -> bool:
    import narwhals.stable.v2 as nw

    return dtype in (nw.String, nw.Categorical, nw.Enum)


def _is_text(column: Any) -> bool:
    """Return True if a column's type makes it categorical; an all-null pandas column may have a text type."""
    import pyarrow as pa

    if not _is_of_text(column.dtype):
        return False
    return not (_is_empty(column) and pa.types.is_null(column.to_arrow().type))


def _refuse_columns(frame: nw.DataFrame[Any], categories: Categories | None) -> None:
    import narwhals.stable.v2 as nw

    other: list[str] = []
    numeric: list[str] = []
    text: list[str] = []
    for j, column in enumerate(frame.iter_columns()):
        if _is_empty(column):
            continue
        shown = f"{frame.columns[j]!r} ({column.dtype})"
        is_text = _is_of_text(column.dtype)
        if not is_text and not column.dtype.is_numeric() and column.dtype != nw.Boolean:
            other.append(shown)
        elif categories is not None and is_text != (categories[j] is not None):
            (numeric if is_text else text).append(shown)
    for rule, shown_columns in (
        ("columns must be numeric, boolean or text", other),
        ("columns that were numeric in fit must be numeric", numeric),
        ("columns that were categorical in fit must contain strings", text),
    ):
        if shown_columns:
            raise InvalidData(f"{rule}, got {', '.join(shown_columns)}")


def _encode(
    column: Any, known: tuple[str, ...] | None, positions: npt.NDArray[np.float64]
) -> tuple[str, ...]:
    """Write the category index of each value to `positions`; return the categories, new ones unless `known`."""
    import pyarrow as pa

    try:
        coded: Any = column.to_arrow()
        if isinstance(coded, pa.ChunkedArray):  # as of frames that were put together
            coded = coded.combine_chunks()
        if not pa.types.is_dictionary(coded.type):
            coded = (coded.cast(pa.string()) if _is_empty(column) else coded).dictionary_encode()
        values = [None if v is None else str(v) for v in coded.dictionary.to_pylist()]
        codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise InvalidData(f"column {column.name!r} cannot be read as text: {error}") from error
    if known is None:
        present = {values[code] for code in np.unique(codes).tolist() if code >= 0}
        known = tuple(sorted(value for value in present if value is not None))
    index = {category: float(k) for k, category in enumerate(known)}
    # The last one is for the code -1 of a missing value.
    of_code = [np.nan if v is None else index.get(v, np.nan) for v in [*values, None]]
    positions[:] = np.array(of_code)[codes]
    return known


def _recode(
    table: CodedTable, categories: Categories | None
) -> tuple[npt.NDArray[np.float64], Categories]:
    if categories is None:
        check_text(table.names, table.categories)
    if categories is None or categories == table.categories:
        return table.matrix, table.categories
    matrix = table.matrix.copy(order="K")
    for j, (name, own, known) in enumerate(
        zip(table.names, table.categories, categories, strict=True)
    ):
        if own == known or np.isnan(matrix[:, j]).all():
            continue
        if own is None or known is None:
            kinds = "numeric", "categorical"
            was, now = kinds if known is None else kinds[::-1]
            raise InvalidData(f"columns that were {was} in fit must be {was}; {name!r} is {now}")
        index = {category: float(k) for k, category in enumerate(known)}
        new_index = np.array([index.get(category, np.nan) for category in own])
        matrix[:, j] = _look_up(matrix[:, j], new_index)
    return matrix, categories


def _look_up(
    indices: npt.NDArray[np.float64], new_index: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    missing = np.isnan(indices)
    looked_up = np.full(len(indices), np.nan)
    looked_up[~missing] = new_index[indices[~missing].astype(np.intp)]
    return looked_up


def column_names(table: Any) -> Any:
    """Return an object from which scikit-learn can read the column names: the table, or an empty one."""
    import pyarrow as pa

    if not isinstance(table, CodedTable):
        return table
    return pa.table(dict.fromkeys(table.names, pa.nulls(0)))
