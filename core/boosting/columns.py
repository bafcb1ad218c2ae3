"""Weak rankers that are the given columns themselves, h_j(x) = x_j, on rows or pairs (Rudin & Schapire 2009)."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.monotone import Directions, Verification, walk_slopes
from core.base.ranker import Floats
from core.base.state import FINITE, SIGN, Array, Index, Records
from core.base.table import Categories
from core.base.training import TrainingData
from core.coding import Criterion
from core.coding.best_split import GAIN_RTOL, MIN_EDGE
from core.errors import InvalidData

from .data import Bools
from .loop import BoostingHistory, Ensemble, WeakLearner, fields_of, rounds_of
from .pairs import ListedPairs

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

MAX_VALUE = 1e100  # greatest absolute value of a column: scores and their sums stay finite

MAX_PART = 1e290  # what a column adds to a score is clipped to ± this: no sum is infinite

# Greatest step, times the greatest |h(x_i) - h(x_k)|: the bound of the closed form for weak rankers in {0, 1},
# ½ ln(2^52).
MAX_STEP = 26.0 * math.log(2.0)


class LineSearch:
    """Line search for the step along one real-valued weak ranker, for which there is no closed form.

    Z(α) = F̃(λ + α e_j)/F̃(λ) = Σ d_ik e^{-α (h(x_i) - h(x_k))}, as a product of sums Σ w e^{-α h}.

    For listed pairs it is one sum over the pairs, for two classes a sum per class. With a push r it is
    (Σ_i w_i e^{-α h(x_i)})^r Σ_k w_k e^{r α h(x_k)}.

    factors: w sums to 1 in each.
    spread: a bound of |h(x_i) - h(x_k)|, above 0.
    push: r: the first factor is to this power, and the others have h times r.
    """

    def __init__(
        self, factors: Sequence[tuple[Floats, Floats]], spread: float, push: float = 1.0
    ) -> None:
        self._factors = factors
        self._spread = spread
        self._push = push

    @classmethod
    def of_classes(
        cls,
        positives: Floats,
        weights_p: Floats,
        negatives: Floats,
        weights_n: Floats,
        push: float = 1.0,
    ) -> "LineSearch":
        """Return the line search for two classes, from h and the weights of each class's rows (each sums to 1)."""
        most = max(positives.max(), negatives.max())
        least = min(positives.min(), negatives.min())
        factors = (positives, weights_p), (-push * negatives, weights_n)
        return cls(factors, float(most - least), push)

    def forget(self) -> None:
        self._factors = ()

    def log_z(self, alpha: float) -> float:
        """Return ln Z(α), the log ratio of the losses after and before the step α."""
        parts = [log_sum(w, -alpha * h) for h, w in self._factors]
        return sum((self._push * parts[0], *parts[1:]))

    def slope(self, alpha: float) -> float:
        """Return -(ln Z)'(α), which falls as α grows; at 0 it is eq. 3's Σ d_ik (h(x_i) - h(x_k))."""
        total = 0.0
        for k, (h, w) in enumerate(self._factors):
            tilted = w * np.exp(-alpha * h - (-alpha * h).max())
            mean = dot(tilted, h) / float(tilted.sum())
            total += self._push * mean if k == 0 else mean
        return total

    def descend(self, smoothing: float) -> float:
        """Return the step that lowers F̃ most.

        `smoothing` is a fraction of the weight of pairs, added at both ends of the spread, so that for h in {0, 1} the
        step is ½ ln((d+ + ε)/(d- + ε)), or ln((d+ + ε)/(d- + ε))/(1 + r) with a push.
        """

        def falls(alpha: float) -> float:
            # the derivative of Z over that of the first factor's power, A^(r-1), which has the same sign
            log_mass = sum(log_sum(w, -alpha * h) for h, w in self._factors)
            fall = math.exp(log_mass) * self.slope(alpha) / self._push
            rise = alpha * self._spread
            if self._push == 1.0:
                return fall - smoothing * self._spread * 2.0 * math.sinh(rise)
            added = math.exp(self._push * rise) - math.exp(-rise)
            return fall - smoothing * self._spread * added

        return self._root(falls)

    def climb(self, log_f_tilde: float, norm: float) -> float:
        """Return the step that increases the smooth margin most (eq. 10), given ln F̃ < 0 and ‖λ‖₁ before it."""

        def rises(alpha: float) -> float:  # falls as α grows: its derivative is slope'(α)(‖λ‖₁ + α)
            return self.slope(alpha) * (norm + alpha) + log_f_tilde + self.log_z(alpha)

        return self._root(rises)

    def _root(self, condition: Callable[[float], float]) -> float:
        """Return the root of a decreasing function of alpha; the greatest allowed step if it has none."""
        from scipy.optimize import brentq

        longest = 2.0 / (1.0 + self._push) * MAX_STEP / self._spread
        if condition(0.0) <= 0.0:
            return 0.0
        if condition(longest) >= 0.0:
            return longest
        return float(brentq(condition, 0.0, longest, xtol=1e-15, rtol=1e-14))


@dataclass(frozen=True, slots=True)
class Column:
    """A column used as a weak ranker h, with its line search (`line`; None for 0/1 columns or restored models)."""

    feature: int
    sign: int
    d_plus: float
    d_minus: float
    line: LineSearch | None

    def values(self, X: Floats) -> Floats:
        return self.sign * known(X[:, self.feature])


@dataclass(frozen=True, eq=False)
class ColumnSum(Ensemble):
    """A weighted sum of columns: a linear score."""

    type: ClassVar[str] = "columns"
    constant = 0.0

    rounds: Annotated[
        npt.NDArray[np.void],
        Records(
            ROUND,
            "n_rounds",
            feature=Index("n_features"),
            sign=SIGN,
            alpha=FINITE,
            d_plus=(Ge(0.0), Le(1.0)),
            d_minus=(Ge(0.0), Le(1.0)),
        ),
    ]
    """Shape (n_rounds,), `ROUND`."""
    column_mean: Annotated[Floats, Array("n_features"), FINITE]
    """Weighted mean of each column over the training rows."""
    column_binary: Annotated[Bools, Array("n_features")]
    """Whether the column held only 0 and 1 there."""

    @cached_property
    def slopes(self) -> Floats:
        steps = self.rounds["alpha"] * self.rounds["sign"]
        n_features = len(self.column_mean)
        return np.bincount(self.rounds["feature"], steps, n_features).astype(np.float64, copy=False)

    @cached_property
    def _used(self) -> npt.NDArray[np.int64]:
        return np.unique(self.rounds["feature"])

    @property
    def mean(self) -> float:
        return float((self.slopes * self.column_mean).sum())

    def score(self, X: Floats, intercept: float) -> Floats:
        """Return the linear score of each row; the contribution of a column is clipped to ± `MAX_PART`."""
        scores = np.full(len(X), intercept)
        for j in self._used:
            with np.errstate(over="ignore"):
                part = self.slopes[j] * known(X[:, j])
            scores += np.clip(part, -MAX_PART, MAX_PART, out=part)
        return scores

    def contributions(self, X: Floats) -> Floats:
        with np.errstate(over="ignore"):
            parts = np.clip(self.slopes * known(X), -MAX_PART, MAX_PART)
        return np.asarray(parts - self.slopes * self.column_mean)

    def walk_monotone(self, directions: Directions) -> Verification:
        return walk_slopes(
            directions, self.slopes, self.column_mean, 1.0 / np.maximum(abs(self.slopes), 1e-300)
        )

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        order = self._used[np.argsort(-np.abs(self.slopes[self._used]), kind="stable")]
        return {
            "rules": [
                {
                    "feature": name(int(j)),
                    "rule": f"each unit of {name(int(j))} adds {self.slopes[j]:.3g}",
                    "adds": float(self.slopes[j]),
                }
                for j in order
            ]
        }

    def weak_rankers(self) -> list[Column]:
        names = ("feature", "sign", "d_plus", "d_minus")
        return [Column(**fields_of(row, names), line=None) for row in self.rounds]

    def binary_weights(self) -> Floats | None:
        return self.rounds["alpha"].copy() if self.column_binary[self._used].all() else None


class ColumnSearch(WeakLearner):
    """Base of the weak learners that choose the best column under the current weights of rows or listed pairs."""

    ensemble = ColumnSum
    takes_categories = False

    def _lay_out(self, parameters: Any, algorithm: Any, columns: Floats, weight: Floats) -> None:
        greatest = float(np.abs(columns).max())
        if greatest > MAX_VALUE:
            raise InvalidData(
                f"weak_ranker 'column' accepts values up to {MAX_VALUE:g}, got {greatest:g}"
            )
        self._criterion, self._push = algorithm.criterion, algorithm.push
        self._directions: Directions | None = parameters.find_directions()
        self._is_binary: Bools = np.asarray(np.isin(columns, (0.0, 1.0)).all(axis=0))
        self._is_constant: Bools = columns.max(axis=0) == columns.min(axis=0)
        self._mean = np.einsum("i,ij->j", weight / weight.sum(), columns)

    def scan(self) -> Column | None:
        """Return the best column under the current weights, by eq. 3 or eq. 5 of Rudin & Schapire 2009."""
        slopes = np.where(self._is_constant, 0.0, self._slopes())
        if self._directions is not None:
            slopes = np.where(slopes * self._directions < 0.0, 0.0, slopes)
        gains = np.abs(slopes)
        if self._criterion in (Criterion.LOSS, Criterion.PUSH):
            gains = np.array([self._fall(j, slopes[j]) for j in range(len(slopes))])
        best = float(gains.max())
        if best <= 0.0:
            return None
        j = int(np.argmax(gains >= best * (1.0 - GAIN_RTOL)))
        if abs(slopes[j]) < MIN_EDGE:
            return None
        return self._column(j, 1 if slopes[j] >= 0 else -1)

    def collect(self, history: BoostingHistory) -> ColumnSum:
        return ColumnSum(rounds_of(history, ROUND), self._mean, self._is_binary)

    def _fall(self, j: int, slope: float) -> float:
        """Return the relative decrease of the loss by the best step along a column."""
        if slope == 0.0:
            return 0.0
        if self._is_binary[j] and self._push == 1.0:
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
        """Return the derivative of the descent along each column, Σ d_ik (h(x_i) - h(x_k)), shape (n_features,)."""

    @abstractmethod
    def _line(self, j: int, sign: int) -> LineSearch:
        """Return the line search along a column (sign 1) or its negative (sign -1)."""

    @abstractmethod
    def _binary_pairs(self, j: int, sign: int) -> tuple[float, float]:
        """Return d+ and d-, the weights of the pairs that a 0/1 column orders correctly and wrongly."""

    @abstractmethod
    def _pairs(self, j: int, sign: int) -> tuple[float, float]:
        """Return d+ and d-, the weights of the pairs that a column orders correctly and wrongly."""


class ColumnLearner(ColumnSearch):
    """Weak learner on training rows: their weights, and the choice of the best column.

    A round is O(n_features · n_rows); a line search (eq. 5, values other than 0 and 1) takes some tens of such passes.
    """

    changing = ("_f", "_weights")

    def __init__(self, parameters: Any, algorithm: Any, data: TrainingData) -> None:
        columns, classes = _laid_out(data.X), (data.positive, ~data.positive)
        self._lay_out(parameters, algorithm, columns, data.weight)
        totals = [data.weight[rows].sum() for rows in classes]
        self._classes = [columns[rows] for rows in classes]
        self._shares = [
            data.weight[rows] / total for rows, total in zip(classes, totals, strict=True)
        ]
        self._f = [np.zeros(len(rows)) for rows in self._classes]
        self._log_totals = [math.log(total) for total in totals]
        self._weights = [shares.copy() for shares in self._shares]

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ and Σ_k w_k e^{r f(x_k)}, which is F₋ without a push."""
        log_f_plus, log_f_minus = (
            self._log_totals[k] + log_sum(self._shares[k], direction * self._f[k])
            for k, direction in enumerate((-1.0, self._push))
        )
        return log_f_plus, log_f_minus

    def update(self, weak_ranker: Column, alpha: float) -> None:
        if weak_ranker.line is not None:
            weak_ranker.line.forget()
        for k, direction in enumerate((-1.0, self._push)):
            self._f[k] += alpha * weak_ranker.sign * self._classes[k][:, weak_ranker.feature]
            exponents = direction * self._f[k]
            weights = self._shares[k] * np.exp(exponents - exponents.max())
            self._weights[k] = weights / weights.sum()

    def _slopes(self) -> Floats:
        (p, n), (v, u) = self._classes, self._weights
        slopes: Floats = np.einsum("i,ij->j", v, p) - np.einsum("i,ij->j", u, n)
        return slopes

    def _line(self, j: int, sign: int) -> LineSearch:
        (p, n), (v, u) = self._classes, self._weights
        return LineSearch.of_classes(sign * p[:, j], v, sign * n[:, j], u, self._push)

    def _binary_pairs(self, j: int, sign: int) -> tuple[float, float]:
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


class PairColumnLearner(ColumnSearch):
    """Weak learner on listed pairs: their weights, and the choice of the best column of the items.

    Under eq. 3 a round is O(n_pairs + n_features · n_items): the slope of a column needs only the items' potentials
    Σ_k d_ik - Σ_k d_ki. Under eq. 5 it is O(n_features · n_pairs), and a line search takes some tens of passes.
    """

    changing = ("_f", "_weights", "_log_loss")

    def __init__(self, parameters: Any, algorithm: Any, data: ListedPairs) -> None:
        self._listed = data
        self._items = _laid_out(data.X[data.rows])
        wins, losses = data.by_item(data.weight)
        self._lay_out(parameters, algorithm, self._items, wins + losses)
        total = float(data.weight.sum())
        self._shares = data.weight / total
        self._weights = self._shares.copy()
        self._log_loss = self._log_total = math.log(total)
        self._f = np.zeros(len(data.rows))

    @property
    def log_f(self) -> tuple[float, float]:
        """Half of ln F̃ twice, F̃ being the loss over the pairs; see `WeakLearner.log_f`."""
        return 0.5 * self._log_loss, 0.5 * self._log_loss

    def update(self, weak_ranker: Column, alpha: float) -> None:
        if weak_ranker.line is not None:
            weak_ranker.line.forget()
        self._f += alpha * weak_ranker.sign * self._items[:, weak_ranker.feature]
        exponents = self._f[self._listed.worse] - self._f[self._listed.better]
        self._log_loss = self._log_total + log_sum(self._shares, exponents)
        weights = self._shares * np.exp(exponents - exponents.max())
        self._weights = weights / weights.sum()

    def _slopes(self) -> Floats:
        wins, losses = self._listed.by_item(self._weights)
        slopes: Floats = np.einsum("i,ij->j", wins - losses, self._items)
        return slopes

    def _line(self, j: int, sign: int) -> LineSearch:
        column = self._items[:, j]
        factor = sign * self._differences(j), self._weights
        return LineSearch((factor,), float(column.max() - column.min()))

    def _binary_pairs(self, j: int, sign: int) -> tuple[float, float]:
        return self._pairs(j, sign)

    def _pairs(self, j: int, sign: int) -> tuple[float, float]:
        differences = sign * self._differences(j)
        right, wrong = self._weights[differences > 0].sum(), self._weights[differences < 0].sum()
        return min(float(right), 1.0), min(float(wrong), 1.0)

    def _differences(self, j: int) -> Floats:
        column = self._items[:, j]
        return column[self._listed.better] - column[self._listed.worse]


def log_sum(weights: Floats, exponents: Floats) -> float:
    """Return ln Σ weights · e^exponents, without overflow."""
    most = float(exponents.max())
    return most + math.log(dot(weights, np.exp(exponents - most)))


def dot(a: Floats, b: Floats) -> float:
    """Return the dot product Σ a b, without BLAS, whose result would depend on its number of threads."""
    return float((a * b).sum())


def _laid_out(columns: Floats) -> Floats:
    """Return columns without missing values, row by row in memory: the bits of sums depend on their layout."""
    return np.ascontiguousarray(known(columns))


def known(values: Floats) -> Floats:
    """Return the values with missing ones (NaN) replaced by 0, which contributes nothing."""
    return np.where(np.isnan(values), 0.0, values)
