"""Boosting for a window of false positive rates: only the negatives within it carry weight."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from core.coding.rows import positives_first
from core.ranker import Floats

from .kinds import CollectingLearner
from .loop import Found
from .rules import CutRule
from .stump_sum import StumpLearner
from .tree_learner import Shape, TreeLearner
from .tree_rules import TreeRule
from .validation import Part

# The window is laid anew over the negatives, as they then stand, after so many rounds.
REFRESH_EVERY = 5


def widen(fpr_min: float, fpr_max: float, window: float) -> tuple[float, float]:
    """Divide the lower end of a window by a factor of at least 1, and multiply the upper end by it."""
    return fpr_min / window, min(fpr_max * window, 1.0)


def share_inside(scores: Floats, weight: Floats, low: float, high: float) -> Floats:
    """Give the share of each negative's weight that lies in a window of false positive rates.

    Parameters
    ----------
    scores, weight : ndarray of shape (n_negatives,), float64
        Weights above 0.
    low, high : float
        The window holds the mass from low to high of all, counted from the highest score.

    Returns
    -------
    ndarray of shape (n_negatives,), float64
        From 0 to 1; of the negatives across an end of the window a part. Equal scores share alike,
        whatever the order of the rows.

    Notes
    -----
    O(n log n).
    """
    _, group = np.unique(-scores, return_inverse=True)
    mass = np.bincount(group, weights=weight)
    ends = np.concatenate([[0.0], np.cumsum(mass)])
    inside = np.diff(np.clip(ends, low * ends[-1], high * ends[-1]))
    return np.asarray(np.minimum(inside / mass, 1.0)[group])


def window_weights(
    scores: Floats, part: Part, window: tuple[float, float], push: float = 1.0
) -> Floats:
    """Weigh rows as boosting does, but for negatives outside a window, which get none.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,), float64
        f, of the rows of `part`.
    part : Part
    window : (float, float)
        From 0 to 1, of false positive rates.
    push : float
        p: a negative weighs w e^{p f}.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        w e^{-f} of positives and w s e^{p f} of negatives, s the share inside the window, each
        class times a factor of its own that keeps it finite.
    """
    positive = part.positive
    share = np.ones(len(scores))
    share[~positive] = share_inside(scores[~positive], part.weight[~positive], *window)
    weight = part.weight * share
    exponent = np.where(positive, -scores, push * scores)
    for rows in (positive, ~positive & (share > 0.0)):
        weight[rows] *= np.exp(exponent[rows] - exponent[rows].max())
    return weight


class Reweighable(CollectingLearner, Protocol):
    """A learner whose rows can be given other weights than those that its own steps led to."""

    def reweigh(self, weight: Floats) -> None:
        """Go on from these weights; zeros are allowed, but not for a whole class."""


class WindowStumpLearner(StumpLearner):
    """A stump learner that takes new weights on the codes that it has."""

    def __init__(
        self, rule: CutRule, part: Part, max_bins: int, n_categories: npt.NDArray[np.int64]
    ) -> None:
        super().__init__(rule, *part, max_bins, n_categories)
        self._rows, _ = positives_first(part.positive)

    def reweigh(self, weight: Floats) -> None:
        """Go on from these weights."""
        self._weights = self._weights.anew(weight[self._rows])


class WindowTreeLearner(TreeLearner):
    """A tree learner that takes new weights on the codes that it has.

    Parameters
    ----------
    rule : TreeRule
    finish_rule : TreeRule
        Whose loss is descended from the first new weights on.
    part : Part
    shape : Shape
    n_categories : ndarray of shape (n_features,), int64
    """

    def __init__(
        self,
        rule: TreeRule,
        finish_rule: TreeRule,
        part: Part,
        shape: Shape,
        n_categories: npt.NDArray[np.int64],
    ) -> None:
        super().__init__(*part, shape, rule.make_loss, n_categories)
        self._rows, _ = positives_first(part.positive)
        self._finish_rule = finish_rule

    def reweigh(self, weight: Floats) -> None:
        """Go on from these weights."""
        self._passes.leaves.fill(0)  # a loss begins with all rows in one leaf
        self._loss = self._finish_rule.make_loss(self._passes, weight[self._rows])


class WindowLearner:
    """A learner for `loop.boost` whose negatives carry weight within a window only.

    Parameters
    ----------
    learner : Reweighable
        Of the rows of `part`; changed in place.
    part : Part
    scores : ndarray of shape (n_rows,), float64
        f, from which it goes on.
    window : (float, float)
    push : float
    """

    def __init__(
        self,
        learner: Reweighable,
        part: Part,
        scores: Floats,
        window: tuple[float, float],
        push: float,
    ) -> None:
        self._learner = learner
        self._part = part
        self._scores = scores.copy()
        self._window = window
        self._push = push
        self._taken = 0

    @property
    def log_f_plus(self) -> float:
        """Logarithm of F₊ = Σ w_i e^{-f(x_i)}."""
        return self._log_f(self._part.positive, -1.0)

    @property
    def log_f_minus(self) -> float:
        """Logarithm of F₋ = Σ w_k e^{f(x_k)} over all negatives, not those in the window alone."""
        return self._log_f(~self._part.positive, 1.0)

    def scan(self) -> Found | None:
        """Find the best weak ranker for the window, which is laid anew every few rounds."""
        if self._taken % REFRESH_EVERY == 0:
            self._learner.reweigh(
                window_weights(self._scores, self._part, self._window, self._push)
            )
        return self._learner.scan()

    def update(self, found: Found, alpha: float) -> None:
        """Let f grow by alpha h."""
        self._learner.update(found, alpha)
        self._scores += alpha * found.values(self._part.X)
        self._taken += 1

    def _log_f(self, rows: npt.NDArray[np.bool_], sign: float) -> float:
        exponent = sign * self._scores[rows]
        most = exponent.max()
        return float(most + np.log(self._part.weight[rows] @ np.exp(exponent - most)))
