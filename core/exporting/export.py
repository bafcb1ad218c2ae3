"""`export_model`: a ranker as a file for another runtime."""

from typing import Literal, get_args

from sklearn.utils.validation import check_is_fitted

from core.artifact import algorithm_of
from core.base.parameters import check_value
from core.base.ranker import Ranker
from core.errors import InvalidParameter, NotExportable
from core.probability import Calibration

from .program import Unsupported, program_of
from .python_file import write_python
from .sql_query import write_sql

Format = Literal["python", "sql"]
FORMATS: tuple[Format, ...] = get_args(Format)


def export_model(
    ranker: Ranker, format: Format, *, calibration: Calibration | None = None
) -> bytes:
    """Return a fitted ranker as a file that scores without this library.

    Parameters
    ----------
    ranker : Ranker
        Stumps, trees, a scorecard, a linear model, an additive model, ranking trees, or imported trees.
    format : {"python", "sql"}
        "python": a file without dependencies, with a function `score` of a dict. "sql": one SELECT for SQLite,
        PostgreSQL and DuckDB, for up to 1,920 leaves and columns.
    calibration : Calibration, optional
        Maps scores to probabilities, which the Python file returns, too.

    Returns
    -------
    bytes
        UTF-8 text.

    Raises
    ------
    NotExportable
        The message names the algorithm, the format and the reason.
    InvalidParameter
        The ranker is not fitted, or there is no such format.

    Notes
    -----
    The scores of the Python file are those of `decision_function`, bit for bit; those of the query agree to 1e-9. Both
    take texts for the categories: one that the ranker does not know counts as missing.

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
    try:
        program = program_of(ranker)
        return write_sql(program) if format == "sql" else write_python(program, calibration)
    except Unsupported as reason:
        name = algorithm_of(ranker) or type(ranker).__name__
        raise NotExportable(f"{name} cannot be exported as {format}: {reason}") from None
