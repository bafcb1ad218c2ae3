"""Scorecards: logistic regression on the weight of evidence (WOE) of the bins of each column."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.base.monotone import Directions, Monotone, Verification, Violation
from core.base.parameters import Since
from core.base.ranker import Callback, ContributionRanker, FitCost, Floats, StopFit, warn_stopped
from core.base.state import FINITE, Array, Integers, Totals, Value
from core.base.training import TrainingData
from core.coding.categories import effective_counts
from core.errors import ArtifactError
from core.metrics.woe import BinEvidence, evidence_of, woe_of

from .blas import one_blas_thread
from .design import fit_design
from .newton import MAX_STEPS, logistic_loss, minimise
from .points import PointsScale
from .ranker import NonNegative
from .smooth import LogisticCost
from .woe_bins import (
    BinRules,
    ColumnBins,
    check_given,
    find_given,
    fit_column_bins,
)

MAX_WEIGHT_SUM = 1e200

Bins = Annotated[
    dict[str | int, list[Any]] | None,
    Doc(
        "Bins of columns, by name or by index if they have no names. For a numeric column a list of edges: a bin "
        "contains the values above one edge and up to the next. For a categorical column a list of groups of "
        "categories; the categories that it does not name form one more group. Columns without bins get automatic "
        "ones. Missing values always have their own bin."
    ),
    Since("0.4.0"),
]
Special = Annotated[
    dict[str | int, list[float]] | None,
    Doc(
        "Special values of numeric columns, by name or by index: each has its own bin, whatever the edges. Not for "
        "a column with a monotone constraint."
    ),
    Since("0.4.0"),
]


@dataclass(kw_only=True, eq=False, repr=False)
class Scorecard(ContributionRanker):
    """Scorecard: logistic regression on the weight of evidence of bins; the score is the log-odds.

    Use it if people must read, edit and approve the model. Each column is divided into a few bins. Each bin has one
    value, and the score of a row is the sum of the values of its bins. For more accurate step functions without
    coefficients, use `Additive`.

    The WOE of a bin is ln(p / q), where p is its fraction of the positives and q that of the negatives. The score is
    b + Σ_j w_j WOE_j. It minimises ½‖w‖² + C Σ ln(1 + exp(-y (b + Σ_j w_j WOE_j))) over w ≥ 0 and b, with y = ±1 and
    each row multiplied by its weight. A coefficient is never negative, so points never rise with the WOE.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        The coefficient w of each column, at least 0.
    intercept_ : float
        b: the log-odds of a row whose bins all have a WOE of 0.
    offset_ : float
        Weighted mean score of the training rows. Contributions are differences from it.
    objective_ : float
        The minimum of the objective.
    n_iter_ : int
        Number of Newton steps.

    Notes
    -----
    Automatic bins start from 40 quantiles, or from the categories ordered by their positive rate. Neighbours are merged
    while a bin has fewer rows than `min_bin_fraction`, while there are more than `max_bins`, and while
    two do not differ at the 0.5 % level (chi-square). The level is low because the closest two of many are compared:
    about 85 % of the columns without information get one bin. With a monotone constraint, neighbours in the wrong order
    are merged first, in given bins, too. Categories with fewer rows than `min_bin_fraction` form one group.

    A bin in which one class has no rows counts as if it had half a row more of each class. A bin without rows has a
    WOE of 0. So has a missing value or an unknown category where no value was missing in `fit`.

    The bins are chosen on the training rows. So the information values of automatic bins are too high on these rows:
    read those of other rows, see `core.metrics.evidence_of`.

    Time: O(n_features · n_samples log n_samples).

    References
    ----------
    N. Siddiqi, "Credit Risk Scorecards", 2006.
    R. Kerber, "ChiMerge: discretization of numeric attributes", AAAI 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Scorecard
    >>> X = np.arange(400.0)[:, None]
    >>> y = (X[:, 0] > 250) ^ (X[:, 0] % 7 == 0)
    >>> ranker = Scorecard(bins={0: [99.0, 249.0]}).fit(X, y)
    >>> ranker.decision_function([[50.0], [200.0], [300.0]]).round(1).tolist()
    [-1.7, -1.8, 1.7]
    """

    keeps_when_stopped = True
    fit_cost = FitCost(1.5e-6)

    max_bins: Annotated[
        int,
        Ge(2),
        Le(50),
        Doc("Maximum number of automatic bins of a column, without the bin of missing values."),
    ] = 6
    min_bin_fraction: Annotated[
        float,
        Ge(0.005),
        Le(0.5),
        Doc("Minimum fraction of the rows, among those with a value, in an automatic bin."),
    ] = 0.05
    bins: Bins = None
    special_values: Special = None
    C: LogisticCost = 1.0
    monotone: Monotone = None
    pdo: Annotated[
        float,
        Gt(0.0),
        Le(1e6),
        Doc("Number of points that double the odds of a negative. It does not change the score."),
        Since("0.4.0"),
    ] = 20.0
    base_score: Annotated[
        float,
        Ge(-1e9),
        Le(1e9),
        Doc("Points of a row at the odds `base_odds`. It does not change the score."),
        Since("0.4.0"),
    ] = 600.0
    base_odds: Annotated[
        float,
        Gt(0.0),
        Le(1e9),
        Doc(
            "Odds at `base_score`: number of negatives to one positive. It does not change the score."
        ),
        Since("0.4.0"),
    ] = 50.0

    coef_: Annotated[Floats, Array("n_features"), Ge(0.0), Le(1e80)] = field(init=False)
    intercept_: Annotated[float, Value(), Ge(-1e290), Le(1e290)] = field(init=False)
    objective_: NonNegative = field(init=False)
    n_iter_: Annotated[int, Value("iterations"), Ge(0), Le(MAX_STEPS)] = field(init=False)
    offset_: float = field(init=False)
    _n_edges: Annotated[Integers, Array("n_features"), Totals("n_all_edges")] = field(init=False)
    _edges: Annotated[Floats, Array("n_all_edges"), FINITE] = field(init=False)
    _n_special: Annotated[Integers, Array("n_features"), Totals("n_all_special")] = field(
        init=False
    )
    _special: Annotated[Floats, Array("n_all_special"), FINITE] = field(init=False)
    _groups: Annotated[Integers, Array("n_grouped"), Ge(0)] = field(init=False)
    _rows: Annotated[Integers, Array(2, "n_all_bins"), Ge(0)] = field(init=False)
    _mass: Annotated[Floats, Array(2, "n_all_bins"), Ge(0.0), Le(MAX_WEIGHT_SUM)] = field(
        init=False
    )
    _squares: Annotated[Floats, Array(2, "n_all_bins"), Ge(0.0), Le(MAX_WEIGHT_SUM)] = field(
        init=False
    )

    def takes_categories(self) -> bool:
        return True

    def check_parameters(self) -> None:
        check_given(self.bins, self.special_values)

    def score_rows(self, X: Floats) -> Floats:
        scores = np.full(len(X), self.intercept_)
        for j, values in enumerate(self._values):
            scores += values[self._columns[j].assign(X[:, j])]
        return scores

    @property
    def scale(self) -> PointsScale:
        """The scale of `points`."""
        return PointsScale(float(self.pdo), float(self.base_score), float(self.base_odds))

    def points(self, X: Any) -> Floats:
        """Return the points of rows: `decision_function` on the scale of `pdo`, `base_score` and `base_odds`.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            More points mean lower odds of a positive.

        References
        ----------
        Siddiqi, chapter 6.
        """
        return self.scale.total(self.decision_function(X))

    def bins_of(self, X: Any) -> Integers:
        """Return the bin of each value.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features), int64
            Index in the list of the column's bins in `structure`: ranges or groups first, then special values, and
            missing values last.
        """
        rows = self.checked_rows(X)
        return np.column_stack(
            [column.assign(rows[:, j]) for j, column in enumerate(self._columns)]
        )

    def evidence(self, level: float = 0.95) -> list[BinEvidence]:
        """Return the evidence of each column's bins on the training rows.

        Parameters
        ----------
        level : float
            Confidence level of the intervals.

        Returns
        -------
        list of BinEvidence
        """
        return [
            evidence_of(self._mass[:, own], self._squares[:, own], level=level)
            for own in self._slices
        ]

    def walk_monotone(self, directions: Directions) -> Verification:
        compared, violations = 0, []
        for j in np.flatnonzero(directions).tolist():
            column, values = self._columns[j], self._values[j]
            points = np.unique(np.concatenate([column.edges, column.special]))
            ends = np.unique(
                np.concatenate(
                    [points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)]
                )
            )
            rises = int(directions[j]) * np.diff(values[column.assign(ends)])
            compared += len(rises)
            for k in np.flatnonzero(rises < 0.0)[:1].tolist():
                rows = np.zeros((2, len(directions)))
                rows[:, j] = ends[k : k + 2]
                violations.append(Violation(j, float(ends[k]), float(ends[k + 1]), rows))
        return Verification(compared, violations)

    def structure(self) -> dict[str, Any]:
        """Describe the scorecard as JSON: for each feature its coefficient, information value and bins."""
        return {
            "type": "scorecard",
            "intercept": self.intercept_,
            "offset": self.offset_,
            "objective": self.objective_,
            "iterations": self.n_iter_,
            "features": [
                {
                    "feature": self._feature_name(j),
                    "coefficient": float(self.coef_[j]),
                    "iv": found.iv,
                    "bins": self._describe_bins(j, found),
                }
                for j, found in enumerate(self.evidence())
            ],
        }

    def _describe_bins(self, j: int, found: BinEvidence) -> list[dict[str, Any]]:
        column, names, own = self._columns[j], self.categories_[j], self._slices[j]
        kinds: list[dict[str, Any]] = []
        if column.groups is None:
            ends: Sequence[float | None] = [None, *column.edges.tolist(), None]
            kinds += [{"low": low, "high": high} for low, high in pairwise(ends)]
        else:
            groups: list[list[str]] = [[] for _ in range(column.n_regular)]
            for name, group in zip(names or (), column.groups.tolist(), strict=True):
                groups[group].append(name)
            kinds += [{"categories": group} for group in groups]
        kinds += [{"special": value} for value in column.special.tolist()]
        kinds.append({"missing": True})
        return [
            {
                **kind,
                "positives": int(self._rows[0, own.start + k]),
                "negatives": int(self._rows[1, own.start + k]),
                "woe": float(found.woe[k]),
                "value": float(self._values[j][k]),
            }
            for k, kind in enumerate(kinds)
        ]

    def _contributions(self, X: Floats) -> Floats:
        return np.column_stack(
            [
                values[column.assign(X[:, j])] - self._means[j]
                for j, (column, values) in enumerate(zip(self._columns, self._values, strict=True))
            ]
        )

    @cached_property
    def _columns(self) -> list[ColumnBins]:
        ends = np.cumsum(self._n_edges), np.cumsum(self._n_special)
        first = 0
        columns = []
        for j, names in enumerate(self.categories_):
            groups = None
            if names is not None:
                groups = self._groups[first : first + len(names)]
                first += len(names)
            columns.append(
                ColumnBins(
                    self._edges[ends[0][j] - self._n_edges[j] : ends[0][j]],
                    self._special[ends[1][j] - self._n_special[j] : ends[1][j]],
                    groups,
                )
            )
        return columns

    @cached_property
    def _slices(self) -> list[slice]:
        ends = np.cumsum([0, *(column.n_bins for column in self._columns)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    @cached_property
    def _values(self) -> list[Floats]:
        return [
            0.0 + coefficient * woe_of(self._mass[:, own])
            for coefficient, own in zip(self.coef_, self._slices, strict=True)
        ]

    @cached_property
    def _means(self) -> Floats:
        means = []
        for values, own in zip(self._values, self._slices, strict=True):
            mass = self._mass[:, own].sum(axis=0)
            means.append(float((mass * values).sum() / mass.sum()))
        return np.array(means)

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        weight = effective_counts(data.weight)
        coded = self._fit_bins(data, weight)
        none = np.zeros(coded.shape[1], dtype=np.int64)
        steps = iter(range(1, MAX_STEPS))
        with one_blas_thread():
            rows = fit_design(coded, data.weight, none, standardize=False)
            minimum = minimise(
                rows,
                data.positive,
                data.weight,
                logistic_loss,
                C=float(self.C),
                report=lambda _, objective, gradient: callback(
                    next(steps, MAX_STEPS - 1), MAX_STEPS, {"loss": objective, "gradient": gradient}
                ),
                signs=np.ones(rows.size, dtype=np.int8),
            )
        self.objective_, self.n_iter_ = minimum.objective, minimum.n_iter
        slopes = np.maximum(minimum.score.w[: coded.shape[1]] * rows.coordinates.unit, 0.0)
        self.coef_ = slopes
        self.intercept_ = float(minimum.score.b - (slopes * rows.coordinates.center).sum())
        self._restore()
        if minimum.stopped:
            warn_stopped(0, 1, f"minima, at step {self.n_iter_} of the next")
            return
        with suppress(StopFit):
            callback(MAX_STEPS, MAX_STEPS, {"loss": self.objective_})

    def _fit_bins(self, data: TrainingData, weight: Floats) -> Floats:
        """Set the bins and their sums of weights; return the WOE of each value, shape (n_rows, n_features)."""
        directions = self.find_directions()
        names = getattr(self, "feature_names_in_", None)
        given = find_given(
            self.bins,
            self.special_values,
            None if names is None else [str(name) for name in names],
            self.categories_,
            directions,
        )
        rules = BinRules(self.max_bins, self.min_bin_fraction)
        coded = np.empty(data.X.shape)
        columns, rows, mass, squares = [], [], [], []
        for j, categories in enumerate(self.categories_):
            x = np.ascontiguousarray(data.X[:, j])
            direction = 0 if directions is None else int(directions[j])
            column = fit_column_bins(
                j, x, data.positive, weight, categories, given, direction, rules
            )
            bins = column.assign(x)
            sums: list[Floats] = []
            for power in (0, 1, 2):
                sums.append(
                    np.array(
                        [
                            np.bincount(
                                bins[chosen], weight[chosen] ** power, minlength=column.n_bins
                            )
                            for chosen in (data.positive, ~data.positive)
                        ]
                    )
                )
            coded[:, j] = woe_of(sums[1])[bins]
            columns.append(column)
            rows.append(sums[0].astype(np.int64))
            mass.append(sums[1])
            squares.append(sums[2])
        self._n_edges = np.array([len(column.edges) for column in columns], dtype=np.int64)
        self._edges = np.concatenate([column.edges for column in columns])
        self._n_special = np.array([len(column.special) for column in columns], dtype=np.int64)
        self._special = np.concatenate([column.special for column in columns])
        groups = [column.groups for column in columns if column.groups is not None]
        self._groups = np.concatenate(groups) if groups else np.empty(0, dtype=np.int64)
        self._rows = np.concatenate(rows, axis=1)
        self._mass = np.concatenate(mass, axis=1)
        self._squares = np.concatenate(squares, axis=1)
        return coded

    def _restore(self) -> None:
        sizes = self._n_categories()
        if len(self._groups) != sizes.sum():
            raise ArtifactError(f"groups must have {sizes.sum()} values, got {len(self._groups)}")
        if (self._n_edges[sizes > 0] + self._n_special[sizes > 0]).any():
            raise ArtifactError("a categorical feature must have no edges or special values")
        for column in self._columns:
            if (np.diff(column.edges) <= 0.0).any():
                raise ArtifactError("edges must ascend within a feature")
            if len(np.unique(column.special)) < len(column.special):
                raise ArtifactError("special must be distinct within a feature")
            if column.groups is not None and column.n_regular > max(len(column.groups), 1):
                raise ArtifactError("groups must be below the number of categories")
        n_bins = sum(column.n_bins for column in self._columns)
        if self._mass.shape[1] != n_bins:
            raise ArtifactError(f"mass must have {n_bins} bins, got {self._mass.shape[1]}")
        totals = np.array([self._mass[:, own].sum(axis=1) for own in self._slices])
        if not (totals > 0.0).all() or not np.isfinite(totals).all():
            raise ArtifactError("mass must have a sum above 0 for each class of each feature")
        if ((self._mass > 0.0) != (self._squares > 0.0)).any():
            raise ArtifactError("squares must be above 0 where mass is")
        self.offset_ = self.intercept_ + float(self._means.sum())
