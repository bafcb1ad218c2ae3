"""Checks of y, sample weights, groups and pairs."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData

Floats = npt.NDArray[np.float64]

# Bounds of a weight (of a row, a pair, or the cost of an error) above 0: squares and products of two are finite and
# above 0.
MIN_WEIGHT = 1e-100
MAX_WEIGHT = 1e100
WEIGHT_RULE = f"0 or between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}"

MAX_GRADE = 31
"""Greatest grade of a row; its gain in NDCG is 2^31 - 1."""
GRADE_RULE = f"whole numbers from 0 to {MAX_GRADE}"

LABEL_TYPES = frozenset(
    {"bool", "object", "str", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


def check_labels(y: Any, n_samples: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the two classes, sorted, and the mask of the rows of the greater one; InvalidData for other labels."""
    from sklearn.utils import column_or_1d

    try:
        labels = column_or_1d(y, warn=True)
    except ValueError as error:
        raise InvalidData(str(error)) from error
    if len(labels) != n_samples:
        raise InvalidData(f"y must have one label per row of X ({n_samples}), got {len(labels)}")
    if labels.dtype.kind == "S":  # no artifact keeps them
        raise InvalidData(f"y must contain numbers, booleans or strings, got {labels.dtype}")
    return two_classes(labels)


def two_classes(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    if labels.dtype.kind not in "biufUSO":
        raise InvalidData(f"y must contain numbers, booleans or strings, got {labels.dtype}")
    missing = missing_labels(labels)
    if missing.any():
        raise InvalidData(f"y must not contain missing values, got NaN at row {missing.argmax()}")
    if labels.dtype.kind in "biuf":  # two values are found without a sort
        classes = np.array([labels.min(), labels.max()])
        positive = np.asarray(labels == classes[1])
        if classes[0] != classes[1] and np.all(positive | (labels == classes[0])):
            return classes, positive
    try:
        classes = np.unique(labels)
    except TypeError as error:
        raise InvalidData(f"y must contain two values that can be ordered: {error}") from error
    if len(classes) < 2:
        raise InvalidData(f"y must have two classes, got {len(classes)} class: {classes.tolist()}")
    if len(classes) > 2:
        kind = "continuous" if labels.dtype.kind == "f" and (classes % 1).any() else "multiclass"
        shown = ", ".join(repr(value) for value in classes[:3].tolist())
        raise InvalidData(
            f"Only binary classification is supported. The type of the target is {kind}: "
            f"y must contain two values, got {len(classes)} ({shown}, ...)"
        )
    return classes, np.asarray(labels == classes[1])


def check_grades(y: Any, n_samples: int) -> npt.NDArray[np.int64]:
    """Return grades, shape (n_samples,). InvalidData: not one per row, not integers in 0 .. `MAX_GRADE`, or equal."""
    labels = as_vector("y", y)
    if len(labels) != n_samples:
        raise InvalidData(f"y must have one label per row of X ({n_samples}), got {len(labels)}")
    if labels.dtype.kind == "O" and all(isinstance(v, int | float | np.number) for v in labels):
        with suppress(OverflowError):
            labels = np.array(labels.tolist(), dtype=np.float64)
    if labels.dtype.kind not in "biuf":
        raise InvalidData(f"y must contain grades, {GRADE_RULE}, got {labels.dtype}")
    missing = missing_labels(labels)
    if missing.any():
        raise InvalidData(f"y must not contain missing values, got NaN at row {missing.argmax()}")
    usable = (labels >= 0) & (labels <= MAX_GRADE)
    if labels.dtype.kind == "f":
        usable &= np.floor(labels) == labels
    if not usable.all():
        first = int(np.argmin(usable))
        raise InvalidData(
            f"y must contain grades, {GRADE_RULE}, got {labels[first]} at row {first}"
        )
    grade = labels.astype(np.int64)
    if grade.min() == grade.max():
        raise InvalidData(f"y must have at least two grades, got {grade[0]} in every row")
    return grade


def missing_labels(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind == "O":
        return np.array([_is_missing(value) for value in labels], dtype=np.bool_)
    return np.zeros(len(labels), dtype=np.bool_)


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 - only NaN differs from itself
    except TypeError:  # pandas.NA has no truth value
        return True


def check_class_weights(
    sample_weight: Any, positive: npt.NDArray[np.bool_], classes: npt.NDArray[Any]
) -> Floats:
    """Return the weights as float64, all 1 for None; InvalidData for a bad weight, or a class without weight.

    With several labels a row belongs to each class that one of its labels has.
    """
    n_samples = len(positive)
    weight = check_row_weights(sample_weight, n_samples)
    for value, rows in zip(classes.tolist(), (~positive, positive), strict=True):
        if not weight[rows.reshape(n_samples, -1).any(axis=1)].any():
            raise InvalidData(
                "sample_weight must be above 0 for some row of each class, but is zero for every row of class "
                f"{value!r}"
            )
    return weight


def check_row_weights(sample_weight: Any, n_samples: int) -> Floats:
    if sample_weight is None:
        return np.ones(n_samples)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"sample_weight must contain numbers: {error}") from error
    if weight.ndim == 0:
        weight = np.full(n_samples, weight)
    if weight.shape != (n_samples,):
        raise InvalidData(
            f"sample_weight must have one weight per row of X ({n_samples}), got shape {weight.shape}"
        )
    check_range("sample_weight", weight, "at row")
    return weight


def number_units(name: str, labels: Any, length: int) -> npt.NDArray[np.intp]:
    """Return the number of each row's label (group or query): the distinct labels, sorted, counted from 0.

    InvalidData: there is not one label per row, a label is NaN or not a number, boolean or text, or an array of objects
    holds numbers, booleans and text beside each other. numpy's scalars count as Python's.
    """
    vector = as_vector(name, labels)
    if vector.size != length:
        raise InvalidData(
            f"{name} must have one value for each of the {length} rows of y, got {vector.size}"
        )
    if vector.dtype.kind == "O":
        kinds = {_kind_of(value) for value in vector}
        if None in kinds:
            raise InvalidData(
                f"{name} must contain numbers, booleans or strings, got other objects"
            )
        if len(kinds) > 1:
            raise InvalidData(
                f"{name} must contain values of one type, got {' and '.join(sorted(map(str, kinds)))}"
            )
        if kinds == {"numbers"} and not all(isinstance(each, int | np.integer) for each in vector):
            vector = vector.astype(np.float64)
    if vector.dtype.kind == "f":
        if (nan := np.isnan(vector)).any():
            raise InvalidData(
                f"{name} must not contain NaN, got one at index {int(np.argmax(nan))}"
            )
    elif vector.dtype.kind not in "biuUSO":
        raise InvalidData(f"{name} must contain numbers, booleans or strings, got {vector.dtype}")
    return np.unique(vector, return_inverse=True)[1].astype(np.intp, copy=False)


def _kind_of(label: Any) -> str | None:
    if isinstance(label, str):
        return "text"
    if isinstance(label, bool | np.bool_):
        return "booleans"
    return "numbers" if isinstance(label, int | float | np.integer | np.floating) else None


def as_vector(name: str, values: Any) -> npt.NDArray[Any]:
    vector = as_array(name, values, "a one-dimensional array")
    if vector.ndim != 1:
        raise InvalidData(f"{name} must be one-dimensional, got shape {vector.shape}")
    if vector.size == 0:
        raise InvalidData(f"{name} must not be empty")
    return vector


def as_array(name: str, values: Any, what: str = "an array") -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidData(f"{name} must be {what}, got ragged rows") from error


def as_numbers(name: str, values: Any) -> Floats:
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise InvalidData(f"{name} must contain real numbers, got {array.dtype}")
    return array.astype(np.float64, copy=False)


def as_table(name: str, values: Any) -> Floats:
    table = as_numbers(name, values)
    if table.ndim != 2 or not len(table):
        raise InvalidData(f"{name} must be a table with rows, got shape {table.shape}")
    return table


def check_range(name: str, weight: Floats, at: str) -> None:
    """Raise InvalidData for weights that are neither 0 nor from `MIN_WEIGHT` to `MAX_WEIGHT`."""
    usable = are_weights(weight)
    if not usable.all():
        first = int(np.argmin(usable))
        raise InvalidData(f"{name} must be {WEIGHT_RULE}, got {weight[first]:g} {at} {first}")


def are_weights(values: Floats) -> npt.NDArray[np.bool_]:
    in_range = (values >= MIN_WEIGHT) & (values <= MAX_WEIGHT)
    return np.asarray((values == 0) | in_range)


class Pairs(NamedTuple):
    """Checked pairs (better, worse, weight), all of weight above 0."""

    better: npt.NDArray[np.int64]
    worse: npt.NDArray[np.int64]
    """Indices of rows; `better` should be scored above `worse`. Shape (n_pairs,), int64."""
    weight: npt.NDArray[np.float64]
    """Shape (n_pairs,), float64."""


def check_pairs(pairs: Any, pair_weight: Any, n_items: int) -> Pairs:
    """Check a list of pairs, and return those of weight above 0.

    InvalidData: a pair or a weight breaks one of the rules below; the message names it. O(n_pairs) time and memory.

    pairs: (n_pairs, 2); rows (better, worse). Cycles, contradictions and repetitions are allowed.
    pair_weight: (n_pairs,), or None; 0 or between 1e-100 and 1e100, as of rows, and not all 0; None is 1 for each pair.
    n_items: number of rows that pairs may name.
    """
    rows = _check_rows(pairs, n_items)
    better, worse = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    if pair_weight is None:
        return Pairs(better, worse, np.ones(len(better)))
    weight = _check_weight(pair_weight, len(better))
    present = weight > 0
    if not present.all():
        better, worse, weight = better[present], worse[present], weight[present]
    return Pairs(better, worse, weight)


def _check_rows(pairs: Any, n_items: int) -> npt.NDArray[Any]:
    try:
        rows = np.asarray(pairs)
    except ValueError as error:
        raise InvalidData("pairs must be rows of two, got rows of different lengths") from error
    if rows.size == 0:
        raise InvalidData(f"pairs must not be empty, got shape {rows.shape}")
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise InvalidData(f"pairs must be of shape (n_pairs, 2), got {rows.shape}")
    if rows.dtype.kind not in "iu":
        raise InvalidData(f"pairs must contain integers (row indices of X), got {rows.dtype}")
    outside = (rows < 0) | (rows >= n_items)
    if outside.any():
        pair, side = divmod(int(outside.argmax()), 2)
        raise InvalidData(
            f"pairs must contain row indices of X, from 0 to {n_items - 1}, got {rows[pair, side]} in pair "
            f"{pair}"
        )
    same = rows[:, 0] == rows[:, 1]
    if same.any():
        pair = int(same.argmax())
        raise InvalidData(
            f"a pair must have two different rows, got ({rows[pair, 0]}, {rows[pair, 1]}) as pair {pair}"
        )
    return rows


def _check_weight(pair_weight: Any, n_pairs: int) -> npt.NDArray[np.float64]:
    try:
        weight = np.asarray(pair_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"pair_weight must contain numbers: {error}") from error
    if weight.shape != (n_pairs,):
        raise InvalidData(
            f"pair_weight must have one weight per pair ({n_pairs}), got shape {weight.shape}"
        )
    check_range("pair_weight", weight, "for pair")
    if not weight.any():
        raise InvalidData("pair_weight must be above 0 for some pair, got 0 for every pair")
    return weight
