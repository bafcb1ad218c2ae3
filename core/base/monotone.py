"""Monotone constraints: the score never falls, or never rises, as the value of a column grows.

A constraint compares rows that differ in the constrained column alone, both with a known value there. **A missing value
has no place in the order**: it is neither low nor high, so that the score of a row without the value may be above or
below those of rows with one. **Categories have no order**: write an ordered category as a number.

`check_monotone` proves a constraint on the fitted ranker. It walks what the ranker is made of (coefficients, steps,
leaves) and takes no sample of rows, so that a proof holds for every row that can be scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc

from core.base.parameters import check_value
from core.errors import InvalidParameter

from .parameters import Since

Direction = Literal["increasing", "decreasing"]
Floats = npt.NDArray[np.float64]
Directions = npt.NDArray[np.int8]
"""Of each column 1 if the score must not fall as its value grows, -1 if it must not rise, 0 if it is free."""

Monotone = Annotated[
    dict[str | int, Direction] | None,
    Doc(
        'Monotone constraints: columns, by name or by index if they have no names, each "increasing" or '
        '"decreasing". With everything else equal, a greater value then never lowers the score, or never raises '
        "it. Missing values are not constrained. None: no constraint."
    ),
    Since("0.3.0"),
]

SIGNS: dict[str, int] = {"increasing": 1, "decreasing": -1}

MAX_VALUE = float(np.finfo(np.float64).max)

# Times that an example's two values are put twice as far apart until their scores differ.
MAX_DOUBLINGS = 128

MISSING_RULE = (
    "missing values have no place in the order: only rows with a known value are compared"
)


@dataclass(frozen=True)
class Violation:
    """Two rows that violate a constraint: they differ in one column only, and their scores are in the wrong order."""

    column: int
    """Index of the constrained column."""
    lower: float
    """Its value in the first row."""
    higher: float
    """Its value in the second row, above `lower`."""
    rows: npt.NDArray[np.float64] | None = None
    """Both rows, shape (2, n_features), as the ranker reads them; None if all other values may be anything."""
    part: str | None = None
    """Where it was found, such as "tree 3"."""
    is_line: bool = False
    """Whether the scores of all pairs of values are in the wrong order, the more so the further apart the values."""


@dataclass(frozen=True)
class Verification:
    """The result of verifying constraints on a fitted ranker's parts: comparisons made and violations found."""

    compared: int
    """Number of comparisons: of neighbouring steps, coefficients with 0, or pairs of leaves."""
    violations: Sequence[Violation] = ()
    """Where a part of the ranker breaks a constraint: the first of each column, or of each tree."""
    is_sum: bool = False
    """Whether the parts are added up, so that a part may break a constraint which the ranker keeps."""

    def __add__(self, other: "Verification") -> "Verification":
        return Verification(
            self.compared + other.compared,
            (*self.violations, *other.violations),
            is_sum=self.is_sum or other.is_sum,
        )


def walk_slopes(
    directions: Directions, slope: Floats, center: Floats, spread: Floats
) -> Verification:
    """Verify the signs of constrained coefficients in a linear score; examples vary at `center` ± `spread`."""
    violations = []
    for j in np.flatnonzero(directions * slope < 0.0).tolist():
        rows = np.tile(center, (2, 1))
        rows[:, j] = _widen(rows[:, j], spread[j])
        violations.append(Violation(j, float(rows[0, j]), float(rows[1, j]), rows, is_line=True))
    return Verification(int(np.count_nonzero(directions)), violations)


def _widen(ends: Floats, step: float) -> Floats:
    return np.asarray(np.clip(ends + np.array([-step, step]), -MAX_VALUE, MAX_VALUE))


@runtime_checkable
class FittedRanker(Protocol):
    """Interface of the rankers that `check_monotone` accepts; see `core.base.ranker.Ranker`."""

    def find_directions(
        self, monotone: Mapping[str | int, Direction] | None = None
    ) -> Directions | None: ...

    def walk_monotone(self, directions: Directions) -> Verification: ...

    def score_rows(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...

    def _feature_name(self, feature: int) -> str: ...


@dataclass(frozen=True)
class MonotoneCheck:
    """The result of `check_monotone`: whether a fitted ranker obeys its monotone constraints.

    Examples
    --------
    >>> from core import LogitBoost
    >>> from core.explain import check_monotone
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> check_monotone(LogitBoost(n_rounds=5, monotone={0: "increasing"}).fit(X, y)).columns
    {'x0': 'increasing'}
    """

    verdict: Literal["proven", "violated", "not_proven"]
    """"proven": it keeps them for all rows. "violated": `violation` is an example. "not_proven": a part of the ranker
    breaks one, and no rows were found whose scores do."""
    columns: Mapping[str, Direction]
    """The constraints, by column."""
    compared: int
    """Number of comparisons of the proof: of neighbouring steps, coefficients with 0, or pairs of leaves."""
    violation: Mapping[str, Any] | None = None
    """Of the first violation: column, lower and higher value, the scores of both rows, and the rows."""

    def as_json(self) -> dict[str, Any]:
        """Return the result of the check as JSON values.

        Returns
        -------
        dict
            With the keys verdict, columns, compared, missing (the rule for missing values) and violation.
        """
        return {
            "verdict": self.verdict,
            "columns": dict(self.columns),
            "compared": self.compared,
            "missing": MISSING_RULE,
            "violation": None if self.violation is None else dict(self.violation),
        }


def find_directions(
    monotone: Mapping[str | int, Direction] | None,
    names: Sequence[str] | None,
    n_categories: Sequence[int] | npt.NDArray[np.int64],
) -> Directions | None:
    """Return the direction of each column; None without constraints.

    InvalidParameter: a key is no column, names one twice, or is of a categorical column; or a direction is unknown.

    names: of the columns; None if they have none: keys are then indices, which JSON writes as text.
    n_categories: of each column; 0 for a numeric one.
    """
    if not monotone:
        return None
    directions = np.zeros(len(n_categories), dtype=np.int8)
    for key, direction in monotone.items():
        if not isinstance(direction, str) or direction not in SIGNS:
            raise InvalidParameter(
                f"monotone[{_shown(key)}] must be one of {', '.join(map(repr, SIGNS))}, got {direction!r}"
            )
        j = find_column("monotone", key, names, len(directions))
        if n_categories[j]:
            raise InvalidParameter(
                f"monotone requires a numeric column; {key!r} is categorical and has no order: encode an "
                "ordered category as a number"
            )
        if directions[j]:
            raise InvalidParameter(f"monotone names column {j} twice")
        directions[j] = SIGNS[direction]
    return directions


def find_column(parameter: str, key: str | int, names: Sequence[str] | None, n_columns: int) -> int:
    """Return the index of the column that a key of a parameter names.

    InvalidParameter: it is no column; the message has the parameter.

    names: of the columns; None if they have none: keys are then indices, which JSON writes as text.
    """
    j = (
        _index(key)
        if names is None
        else next((place for place, name in enumerate(names) if name == key), -1)
    )
    if not 0 <= j < n_columns:
        known = (
            f"the columns are {_list(names)}"
            if names is not None
            else f"columns have no names: use an index from 0 to {n_columns - 1}"
        )
        raise InvalidParameter(f"{parameter} has {_shown(key)}, which is not a column; {known}")
    return j


def _index(key: str | int) -> int:
    """Return a key as a column index, if it is one or its text (at most 18 digits); -1 otherwise."""
    if isinstance(key, str):
        return int(key) if key.isdecimal() and len(key) <= 18 else -1
    return int(key) if isinstance(key, Integral) and not isinstance(key, bool) else -1


def _shown(key: str | int) -> str:
    # Python refuses to write an integer of more than 4,300 digits.
    if isinstance(key, int) and abs(key) >= 10**18:
        return "an integer of 19 digits or more"
    text = repr(key) if isinstance(key, str) else str(key)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")


def check_monotone(
    ranker: FittedRanker, monotone: Mapping[str | int, Direction] | None = None
) -> MonotoneCheck:
    """Prove that a fitted ranker keeps monotone constraints, or find rows that show that it does not.

    Parameters
    ----------
    ranker : Ranker
        Fitted.
    monotone : mapping of str or int to "increasing" or "decreasing", optional
        The constraints to prove; None: those that the ranker was fitted with.

    Returns
    -------
    MonotoneCheck

    Raises
    ------
    InvalidParameter
        A constraint names no column, or a categorical one; or the algorithm of the ranker supports no proof.

    Notes
    -----
    Exact: for a sum of functions of single columns it compares all neighbouring steps. For trees it compares, tree by
    tree, every pair of leaves that rows can reach which differ in a constrained column alone: O(n_trees · n_leaves² ·
    n_features). Trees that all keep a constraint have a sum that keeps it, also after rounding, since every addition
    rounds in the same order. If a part breaks one, two rows that differ there are scored by the whole ranker. Rows of
    a linear score are put further apart until their scores differ by more than rounding takes away. If trees read a
    cross of a constrained column, nothing is proven: rows of each of its values are scored to find a violation.

    Examples
    --------
    >>> from core import RankBoost
    >>> from core.explain import check_monotone
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = RankBoost(n_rounds=20, monotone={0: "increasing"}).fit(X, y)
    >>> check_monotone(ranker).verdict
    'proven'
    """
    check_value("ranker", FittedRanker, ranker)
    check_value("monotone", Mapping | None, monotone)
    directions = ranker.find_directions(monotone)
    if directions is None:
        return MonotoneCheck("proven", {}, 0)
    names = {j: ranker._feature_name(j) for j in np.flatnonzero(directions).tolist()}
    words = {sign: word for word, sign in SIGNS.items()}
    columns: dict[str, Any] = {name: words[int(directions[j])] for j, name in names.items()}
    walk = ranker.walk_monotone(directions)
    for found in walk.violations:
        rows, scores = _show_violation(ranker, found, directions)
        if scores is None:
            continue
        lower, higher = rows[:, found.column].tolist()
        violation = {
            "column": names[found.column],
            "lower": lower,
            "higher": higher,
            "scores": scores,
            "rows": [[None if np.isnan(x) else x for x in row] for row in rows.tolist()],
            "part": found.part,
        }
        return MonotoneCheck("violated", columns, walk.compared, violation)
    return MonotoneCheck("not_proven" if walk.violations else "proven", columns, walk.compared)


def _show_violation(
    ranker: FittedRanker, found: Violation, directions: Directions
) -> tuple[Floats, list[float] | None]:
    """Return two violating rows, and their scores if these are in the wrong order in the ranker, else None."""
    if found.rows is None:
        rows = np.zeros((2, len(directions)))
        rows[:, found.column] = found.lower, found.higher
    else:
        rows = np.array(found.rows, order="C")
    step = max(found.higher / 2.0 - found.lower / 2.0, float(np.spacing(abs(found.lower))))
    for _ in range(1 + MAX_DOUBLINGS * found.is_line):
        first, second = ranker.score_rows(rows).tolist()
        if (second - first) * directions[found.column] < 0.0:
            return rows, [first, second]
        rows[:, found.column] = _widen(rows[:, found.column], step)
        step = min(2.0 * step, MAX_VALUE)
    return rows, None
