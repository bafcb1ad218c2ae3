"""Logistic regression on normal scores: the baseline for columns of any distribution.

Each number is replaced by the normal quantile of its mid-rank among the training rows, so that heavy tails and skew do
not decide the fit, and C is chosen on held-out rows. A ranker that is no better has learnt nothing that a simple model
does not know. It is fitted for comparisons only, and is no algorithm of its own.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from core.base.ranker import Callback, Floats
from core.base.training import TrainingData

from .design import BLOCK_ROWS, Ints, LinearRows, LinearSample, fit_design
from .newton import logistic_loss, minimise
from .smooth import Logistic, count_steps

COSTS = (0.01, 0.1, 1.0)
"""Values of C to choose from."""
SEARCH_TOLERANCE = 1e-3
"""Of the gradient, while C is chosen: values of C differ by more."""
HELD_OUT = 0.25
"""Fraction of the training rows that choose it."""
MAX_KNOTS = 200
"""Values of a column whose normal scores are kept; those between are interpolated."""


class NormalScores(NamedTuple):
    """The normal scores of the numbers of a table, by column; None for a column that stays as it is."""

    columns: tuple[tuple[Floats, Floats] | None, ...]

    @classmethod
    def fit(cls, X: Floats, n_categories: Ints) -> Self:
        """Learn the normal scores of the numeric columns of X, (n_rows, n_features)."""
        return cls(tuple(None if n_categories[j] else _knots(X[:, j]) for j in range(X.shape[1])))

    def transform(self, X: Floats) -> Floats:
        """Return a copy of X with normal scores for numbers; missing values stay missing."""
        scores = np.array(X, dtype=np.float64, order="C")
        for j, knots in enumerate(self.columns):
            if knots is not None:
                scores[:, j] = np.interp(scores[:, j], *knots)
        return scores


def _knots(column: Floats) -> tuple[Floats, Floats] | None:
    """Return distinct values of a column, rising, with their normal scores; None for a column without values."""
    from scipy.special import ndtri

    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if not values.size:
        return None
    scores = ndtri((np.cumsum(counts) - 0.5 * counts) / counts.sum())
    if values.size > MAX_KNOTS:
        kept = np.linspace(0, values.size - 1, MAX_KNOTS).round().astype(np.intp)
        values, scores = values[kept], scores[kept]
    return values, scores


class NormalScoresLogistic(Logistic):
    """Logistic regression on normal scores, with the value of `COSTS` for C that has the least loss on held-out rows.

    A sparse matrix has no normal scores: its columns are standardised.
    """

    C_: float
    """The chosen C; that of the parameters if no rows can be held out."""
    _scores: NormalScores | None

    def _fit_design(self, data: TrainingData, callback: Callback) -> LinearRows:
        self._scores, X = None, data.X
        if not sparse.issparse(X):
            self._scores = NormalScores.fit(X, data.n_categories)
            X = self._scores.transform(X)
        rows = fit_design(X, data.weight, data.n_categories, standardize=self.standardize)
        self.map_ = rows.coordinates
        return rows

    def _fit_sample(self, data: TrainingData, sample: LinearSample, callback: Callback) -> None:
        report = count_steps(callback, len(COSTS) + 1)
        rows, positive, weight = sample.rows, data.positive, sample.weight
        self.C_ = self.C
        held_out, start = data.hold_out(HELD_OUT, self.random_state), None
        if held_out is not None:
            least, tried = np.inf, None
            for C in COSTS:
                tried = minimise(
                    rows,
                    positive,
                    np.where(held_out, 0.0, weight),
                    logistic_loss,
                    C=C,
                    start=tried,
                    tol=SEARCH_TOLERANCE,
                    report=report,
                ).score
                margin = (rows.scores(tried.w) + tried.b) * np.where(positive, 1.0, -1.0)
                loss = float((weight * np.logaddexp(0.0, -margin))[held_out].sum())
                if loss < least:
                    least, self.C_, start = loss, C, tried
        minimum = minimise(
            rows, positive, weight, logistic_loss, C=self.C_, start=start, report=report
        )
        self.objective_, self.n_iter_ = minimum.objective, minimum.n_iter
        self._take_fit(sample, *minimum.score)

    def score_rows(self, X: Any) -> Floats:
        if self._scores is None:
            return super().score_rows(X)
        scores = np.empty(len(X))
        for start in range(0, len(X), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            scores[rows] = super().score_rows(self._scores.transform(X[rows]))
        return scores
