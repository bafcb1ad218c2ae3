"""`export_model`: a ranker as a file for another runtime."""

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from core.artifact import algorithm_of
from core.base.parameters import check_value
from core.base.ranker import Ranker
from core.errors import InvalidParameter
from core.probability import Calibration

from .formats import ColumnReading, Format, check_exportable, refusal
from .onnx_graph import write_onnx
from .program import Unsupported, program_of
from .python_file import write_python
from .sql_query import write_sql


def export_model(
    ranker: Ranker,
    format: Format,
    *,
    calibration: Calibration | None = None,
    rows: Any = None,
    reading: Sequence[ColumnReading] | None = None,
) -> bytes:
    """Return a fitted ranker as a file that scores without this library.

    Parameters
    ----------
    ranker : Ranker
        Stumps, trees, a scorecard, a linear model, an additive model, ranking trees, or imported trees.
    format : {"onnx", "python", "sql"}
        "onnx": a graph of doubles for onnxruntime 1.24 and later; needs the packages `onnx` and `onnxruntime`.
        "python": a file without dependencies, with a function `score` of a dict. "sql": one SELECT for SQLite,
        PostgreSQL and DuckDB, for up to 1,920 leaves and columns.
    calibration : Calibration, optional
        Maps scores to probabilities, which ONNX and the Python file return, too.
    rows : array or table of shape (n_samples, n_features), optional
        Rows that onnxruntime must score as the ranker does. 500 rows of the ranker's own thresholds are always tried.

    reading : sequence of ColumnReading of length n_features, optional
        How the values of each column are read: its kind, and what counts as missing. Default: numbers and strings, of
        which NULL, NaN and the empty string are missing.

    Returns
    -------
    bytes
        For ONNX the model, else UTF-8 text.

    Raises
    ------
    NotExportable
        The message names the algorithm, the format and the reason, such as two rows that onnxruntime orders otherwise.
    InvalidParameter
        There is no such format.
    NotFittedError
        The ranker is not fitted.

    Notes
    -----
    The Python file has the scores of `decision_function`, bit for bit; the other formats agree to 1e-9. Categories are
    strings in all formats: one that the ranker does not know counts as missing.

    Examples
    --------
    >>> from core import Logistic, export_model
    >>> ranker = Logistic().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> file = {}
    >>> exec(export_model(ranker, "python"), file)
    >>> file["score"]({"x0": 2.0}) == ranker.decision_function([[2.0]])[0]
    np.True_
    """
    if not isinstance(ranker, Ranker):
        raise InvalidParameter(f"ranker must be a Ranker, got {type(ranker).__name__}")
    check_value("format", Format, format)
    check_value("calibration", Calibration | None, calibration)
    check_is_fitted(ranker)
    name = algorithm_of(ranker) or type(ranker).__name__
    check_exportable(name, ranker.get_parameters(), format, reading or ())
    try:
        program = program_of(ranker, reading)
        if format == "onnx":
            own = None if rows is None else ranker.checked_rows(rows)
            return write_onnx(program, ranker, calibration, own)
        return write_sql(program) if format == "sql" else write_python(program, calibration)
    except Unsupported as reason:
        raise refusal(name, format, reason) from None
