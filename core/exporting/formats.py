"""The formats of exported models, and which algorithms they can hold."""

import importlib.util
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from core.errors import NotExportable

Format = Literal["onnx", "python", "sql"]
FORMATS: tuple[Format, ...] = get_args(Format)

Kind = Literal["numeric", "boolean", "datetime", "categorical"]


class ColumnReading(NamedTuple):
    """How a table's values are read as a column, besides numbers, strings, NULL and NaN."""

    name: str
    kind: Kind
    missing_numbers: tuple[float, ...] = ()
    """Numbers that count as missing, besides NaN."""
    missing_texts: tuple[str, ...] = ("",)
    """Strings that count as missing among numbers, booleans and dates: in lower case, without surrounding spaces."""


FLOAT32_SUM = "its sum is rounded to float32 after each tree, which no query can do"
CROSSED = "its scores depend on crosses of columns; crosses must be 0"

_ALGORITHMS = (
    *(
        "rankboost",
        "coordinate_rankboost",
        "smooth_margin_rank",
        "adaboost",
        "aucboost",
        "logitboost",
        "lambdamart",
    ),
    *(
        "random_forest",
        "imported_trees",
        "additive",
        "scorecard",
        "treerank",
        "treerank_forest",
        "logistic",
    ),
    *("auc_svm", "pauc_svm", "pauc_svm_dc", "top_push", "p_norm_push", "asymmetric_svm"),
)
_REQUIRED: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {"weak_ranker": ("stump", "tree"), "feature_map": (None,)}
)
"""Values that a parameter must have."""


def refusal(algorithm: str, format: Format, reason: object) -> NotExportable:
    return NotExportable(f"{algorithm} cannot be exported as {format}: {reason}")


def check_exportable(
    algorithm: str,
    parameters: Mapping[str, Any],
    format: Format,
    reading: Sequence[ColumnReading] = (),
) -> None:
    """Raise NotExportable if `why_not` names a reason."""
    if reason := why_not(algorithm, parameters, format, reading):
        raise refusal(algorithm, format, reason)


def why_not(
    algorithm: str,
    parameters: Mapping[str, Any],
    format: Format,
    reading: Sequence[ColumnReading] = (),
) -> str | None:
    """Return why a format cannot hold the rankers of an algorithm with these parameters; None if it may.

    A ranker that it may hold can still be too large, or have crosses, or categories that databases spell in several
    ways. `source` is the library of an imported model.
    """
    if algorithm not in _ALGORITHMS:
        return "only stumps, trees, scorecards, linear models and ranking trees can be exported"
    required = dict(_REQUIRED)
    if algorithm == "treerank":
        required["splitter"] = "leafrank", "axis"
    for name, values in required.items():
        given = parameters.get(name, values[0])
        if not any(given is value or given == value for value in values):
            return f"{name} must be {' or '.join(map(str, values))}, got {given}"
    if format == "sql" and str(parameters.get("source")).startswith("XGBoost"):
        return FLOAT32_SUM
    if format == "sql" and (reason := _why_no_query(reading)):
        return reason
    if format == "onnx" and not _has_onnx():
        return "the packages are not installed: pip install 'rankwright-server[onnx]'"
    return None


_IDENTIFIER_BYTES = 63
"""PostgreSQL ignores the rest of a name."""


def _why_no_query(reading: Sequence[ColumnReading]) -> str | None:
    """Return which column databases would read otherwise, or not tell from another one, without an error."""
    seen: dict[bytes, str] = {}
    for column in reading:
        if column.kind == "datetime":
            return f"column {column.name!r} has dates, which SQLite, PostgreSQL and DuckDB do not store and read alike"
        key = column.name.lower().encode()[:_IDENTIFIER_BYTES]
        if key in seen:
            return (
                f"columns {seen[key]!r} and {column.name!r} have the same name in a database, which ignores case, or "
                f"all after {_IDENTIFIER_BYTES} bytes"
            )
        seen[key] = column.name
    return None


@cache
def _has_onnx() -> bool:
    return all(importlib.util.find_spec(package) for package in ("onnx", "onnxruntime"))
