"""The given columns as weak rankers, h_j(x) = x_j: the setting of Rudin & Schapire 2009."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.checkpoint import Resumable
from core.coding import Criterion
from core.errors import ArtifactError, InvalidData
from core.ranker import Arrays, Floats
from core.table import Categories

from .ensemble import Ensemble, join_fields, split_fields
from .line import Column, Line, dot, known, log_sum
from .loop import LEAST_EDGE, Path
from .rules import RankingRule

if TYPE_CHECKING:
    from .booster import Booster

Bools = npt.NDArray[np.bool_]

ROUND = np.dtype(
    [
        ("feature", np.int64),
        ("sign", np.int8),
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
    ]
)
"""One round: the score grows by alpha sign x_j. A missing x counts as 0.

d_plus and d_minus are the masses of the pairs that sign x_j orders rightly and wrongly.
"""

# Columns that gain alike but for rounding are tied: the first of them is taken.
TIE = 1e-9

GREATEST_VALUE = 1e100  # so that scores and their sums stay finite


class ColumnScan(Resumable, ABC):
    """The choice among the columns under the present weights of the pairs, whatever pairs there are.

    Parameters
    ----------
    rule : RankingRule
    columns : ndarray of shape (n_rows, n_features), float64
        h of the rows that are learnt from.
    weight : ndarray of shape (n_rows,), float64
        By which their mean is taken.
    """

    def __init__(self, rule: RankingRule, columns: Floats, weight: Floats) -> None:
        self._rule = rule
        self._is_binary: Bools = np.asarray(np.isin(columns, (0.0, 1.0)).all(axis=0))
        self._is_constant: Bools = columns.max(axis=0) == columns.min(axis=0)
        self._mean = np.einsum("i,ij->j", weight / weight.sum(), columns)

    def scan(self) -> Column | None:
        """Choose the column by eq. 3, or by eq. 5."""
        slopes = np.where(self._is_constant, 0.0, self._slopes())
        gains = np.abs(slopes)
        if self._rule.criterion is Criterion.LOSS:
            gains = np.array([self._fall(j, slopes[j]) for j in range(len(slopes))])
        best = float(gains.max())
        if best <= 0.0:
            return None
        j = int(np.argmax(gains >= best * (1.0 - TIE)))
        if abs(slopes[j]) < LEAST_EDGE:
            return None
        return self._column(j, 1 if slopes[j] >= 0 else -1)

    def collect(self, path: Path) -> "ColumnSum":
        """Sum up the columns of a run of the loop."""
        rounds = np.array(
            [
                (h.feature, h.sign, alpha, h.d_plus, h.d_minus)
                for h, alpha in zip(path.found, path.alpha, strict=True)
            ],
            dtype=ROUND,
        )
        return ColumnSum(rounds, self._mean, self._is_binary)

    def _fall(self, j: int, slope: float) -> float:
        """Give by how much the best step along a column lowers the loss, as a share of it."""
        if slope == 0.0:
            return 0.0
        if self._is_binary[j]:
            d_plus, d_minus = self._binary_pairs(j, 1)
            return (math.sqrt(d_plus) - math.sqrt(d_minus)) ** 2
        line = self._line(j, 1 if slope > 0 else -1)
        return 1.0 - math.exp(line.log_z(line.descend(0.0)))

    def _column(self, j: int, sign: int) -> Column:
        if self._is_binary[j]:
            return Column(j, sign, *self._binary_pairs(j, sign), None)
        return Column(j, sign, *self._pairs(j, sign), self._line(j, sign))

    @abstractmethod
    def _slopes(self) -> Floats:
        """Give Σ d_ik (h(x_i) - h(x_k)) of each column."""

    @abstractmethod
    def _line(self, j: int, sign: int) -> Line:
        """Give the loss along a column, or its reverse."""

    @abstractmethod
    def _binary_pairs(self, j: int, sign: int) -> tuple[float, float]:
        """Give d+ and d- of a column of 0 and 1, each mass summed on its own."""

    @abstractmethod
    def _pairs(self, j: int, sign: int) -> tuple[float, float]:
        """Give the masses of the pairs that a column orders rightly and wrongly."""


class ColumnLearner(ColumnScan):
    """The training rows, their weights, and the choice among the columns.

    Parameters
    ----------
    rule : RankingRule
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64

    Notes
    -----
    A round is O(n_features · n_rows); under eq. 5 each column whose values are not 0 and 1 alone
    takes a line search of some tens of such passes over it.
    """

    changing = ("_f", "_weights")

    def __init__(self, rule: RankingRule, X: Floats, positive: Bools, weight: Floats) -> None:
        super().__init__(rule, known(X), weight)
        self._classes = [known(X[rows]) for rows in (positive, ~positive)]
        self._shares = [weight[rows] / weight[rows].sum() for rows in (positive, ~positive)]
        self._f = [np.zeros(len(rows)) for rows in self._classes]
        self._totals = [math.log(weight[rows].sum()) for rows in (positive, ~positive)]
        self._weights = [shares.copy() for shares in self._shares]

    @property
    def log_f_plus(self) -> float:
        """Logarithm of F₊."""
        return self._totals[0] + self._log_mean(0)

    @property
    def log_f_minus(self) -> float:
        """Logarithm of F₋."""
        return self._totals[1] + self._log_mean(1)

    def update(self, found: Column, alpha: float) -> None:
        """Let f grow by alpha h."""
        if found.line is not None:
            found.line.forget()
        for k, direction in enumerate((-1.0, 1.0)):
            self._f[k] += alpha * found.sign * self._classes[k][:, found.feature]
            exponents = direction * self._f[k]
            weights = self._shares[k] * np.exp(exponents - exponents.max())
            self._weights[k] = weights / weights.sum()

    def _log_mean(self, k: int) -> float:
        return log_sum(self._shares[k], (1.0 if k else -1.0) * self._f[k])

    def _slopes(self) -> Floats:
        (p, n), (v, u) = self._classes, self._weights
        slopes: Floats = np.einsum("i,ij->j", v, p) - np.einsum("i,ij->j", u, n)
        return slopes

    def _line(self, j: int, sign: int) -> Line:
        (p, n), (v, u) = self._classes, self._weights
        return Line.of_classes(sign * p[:, j], v, sign * n[:, j], u)

    def _binary_pairs(self, j: int, sign: int) -> tuple[float, float]:
        """Give d+ = P (1 - N) and d- = N (1 - P)."""
        (p, n), (v, u) = self._classes, self._weights
        right = dot(v, p[:, j]) * dot(u, 1.0 - n[:, j])
        wrong = dot(u, n[:, j]) * dot(v, 1.0 - p[:, j])
        return (right, wrong) if sign > 0 else (wrong, right)

    def _pairs(self, j: int, sign: int) -> tuple[float, float]:
        h_p, h_n = (sign * rows[:, j] for rows in self._classes)
        v, u = self._weights
        order = np.argsort(h_n, kind="stable")
        ordered = h_n[order]
        below = np.concatenate([[0.0], np.cumsum(u[order])])
        above = np.concatenate([np.cumsum(u[order][::-1])[::-1], [0.0]])
        d_plus = dot(v, below[np.searchsorted(ordered, h_p, side="left")])
        d_minus = dot(v, above[np.searchsorted(ordered, h_p, side="right")])
        return min(d_plus, 1.0), min(d_minus, 1.0)


class ColumnSum(Ensemble):
    """A sum of columns: a linear score.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,), `ROUND`
    column_mean : ndarray of shape (n_features,), float64
        Weighted mean of each column over the rows that were fitted.
    column_binary : ndarray of shape (n_features,), bool
        Whether the column held 0 and 1 alone there.
    """

    type = "columns"
    constant = 0.0

    def __init__(
        self, rounds: npt.NDArray[np.void], column_mean: Floats, column_binary: Bools
    ) -> None:
        self.rounds = rounds
        self._column_mean = column_mean
        self._column_binary = column_binary
        steps = rounds["alpha"] * rounds["sign"]
        self._slopes = np.bincount(rounds["feature"], weights=steps, minlength=len(column_mean))
        self._used = np.unique(rounds["feature"])
        self.mean = float((self._slopes * column_mean).sum())

    def score(self, X: Floats, intercept: float) -> Floats:
        """Score rows, feature by feature."""
        scores = np.full(len(X), intercept)
        for j in self._used:
            scores += self._slopes[j] * known(X[:, j])
        return scores

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... columns on each row."""
        scores = np.zeros(len(X))
        for row in self.rounds:
            scores = scores + row["alpha"] * row["sign"] * known(X[:, row["feature"]])
            yield scores

    def contributions(self, X: Floats) -> Floats:
        """Give slope times what each value is above its column's mean."""
        return self._slopes * (known(X) - self._column_mean)

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Say what a unit of each column adds, greatest first."""
        order = self._used[np.argsort(-np.abs(self._slopes[self._used]), kind="stable")]
        return {
            "rules": [
                {
                    "feature": name(int(j)),
                    "rule": f"each unit of {name(int(j))} adds {self._slopes[j]:.3g}",
                    "adds": float(self._slopes[j]),
                }
                for j in order
            ]
        }

    def weak_rankers(self) -> list[Column]:
        """Give the columns, without the losses along them."""
        names = ("feature", "sign", "d_plus", "d_minus")
        return [
            Column(**{name: row[name].item() for name in names}, line=None) for row in self.rounds
        ]

    def binary_weights(self) -> Floats | None:
        """Give the steps, if all columns taken are {0, 1}; the reverse of one is 1 - x_j - 1."""
        return self.rounds["alpha"].copy() if self._column_binary[self._used].all() else None

    def arrays(self) -> Arrays:
        """Give the fields of the rounds, the columns' means, and which held 0 and 1 alone."""
        return split_fields(self.rounds) | {
            "column_mean": self._column_mean,
            "column_binary": self._column_binary,
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        n_rounds: int,
        n_categories: npt.NDArray[np.int64],
    ) -> "ColumnSum":
        """Take what `arrays` gave; refuse any other with ArtifactError."""
        mean, n_features = arrays["column_mean"], len(n_categories)
        check_array("column_mean", mean, np.float64, (n_features,))
        check_array("column_binary", arrays["column_binary"], np.bool_, (n_features,))
        rounds = join_fields(arrays, ROUND, n_rounds)
        if not ((rounds["feature"] >= 0) & (rounds["feature"] < n_features)).all():
            raise ArtifactError(f"feature must be from 0 to {n_features - 1}")
        if not (np.isfinite(rounds["alpha"]).all() and (abs(rounds["sign"]) == 1).all()):
            raise ArtifactError("alpha must be finite and sign 1 or -1")
        if not np.isfinite(mean).all():
            raise ArtifactError("column_mean must be finite")
        for name in ("d_plus", "d_minus"):
            if not ((rounds[name] >= 0) & (rounds[name] <= 1)).all():
                raise ArtifactError(f"{name} must be from 0 to 1")
        return cls(rounds, mean, arrays["column_binary"])


def start_columns(
    booster: "Booster", rule: RankingRule, X: Floats, positive: Bools, weight: Floats
) -> ColumnLearner:
    """Lay out the rows for `kinds.KINDS`."""
    check_range(X)
    return ColumnLearner(rule, X, positive, weight)


def check_range(X: Floats) -> None:
    """Refuse values that sums of columns cannot hold, with InvalidData."""
    greatest = float(np.abs(known(X)).max())
    if greatest > GREATEST_VALUE:
        raise InvalidData(
            f"weak_ranker 'column' takes values up to {GREATEST_VALUE:g}, got {greatest:g}"
        )
