"""LogitBoost (Friedman, Hastie & Tibshirani 2000) on trees."""

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from annotated_types import Ge, Le

from core.base.parameters import Since
from core.base.ranker import Floats

from .booster import TreeBooster
from .tree_losses import DEFAULT_SMOOTHING, LogisticLoss, RowLossTrees


@dataclass(kw_only=True, eq=False, repr=False)
class LogitBoost(TreeBooster):
    """Boosted trees on the logistic loss (LogitBoost); the score estimates the log-odds.

    Use it for accuracy if labels are noisy: it is steadier than `RankBoost`, whose exponential loss gives ever more
    weight to rows with wrong labels.

    The loss is Σ w_i ln(1 + e^{-y_i f(x_i)}) over all rows. Each round takes a Newton step.

    Attributes
    ----------
    loss_ : ndarray of shape (n_taken,), float64
        The logistic loss after each round, a sum over rows.
    intercept_ : float
        The log-odds of the classes, with which boosting starts.

    Notes
    -----
    A leaf's step is its gradient divided by its curvature, smoothed by `smoothing` rows. Algorithm 3 of the paper fits
    trees to working responses by least squares, and bounds the responses. Here splits are chosen by the gain in the
    quadratic model, G²/(H + λ), which is the same fit without bounds. The step is bounded instead: by 4, and so that no
    round raises the loss (`tree_losses.bounded_steps`). With target encoding this is the loss of the scores in
    training.

    Time: O(n_rounds · n_features · n_samples · depth) after one sort of each column.

    References
    ----------
    J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of
    boosting", Annals of Statistics 28(2), 2000: Algorithm 3.

    Examples
    --------
    >>> from core import LogitBoost
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = LogitBoost(n_rounds=5, min_samples_leaf=1).fit(X, y)
    >>> ranker.decision_function(X).round(2).tolist()
    [-0.6, -0.6, 0.46, -0.46, 0.6, 0.6]
    """

    smoothing: Annotated[
        float | None,
        Ge(0),
        Le(1000),
        Doc(
            "Amount added to the curvature of each leaf, in rows of mean curvature. Both classes contribute "
            "equally to that mean, however rare one is. 0 is the plain Newton step, within its bounds. None: 1, "
            "or 10 if min_samples_leaf is also None and twice the harmonic mean of the class sizes is at least "
            "2,000."
        ),
        Since("0.3.0"),  # the default
    ] = None

    @property
    def validation_auc_(self) -> Floats:
        """AUC of the validation part after each round."""
        return self._validation_auc

    def _algorithm(self) -> RowLossTrees:
        return RowLossTrees(
            loss_class=LogisticLoss,
            learning_rate=self._rate(),
            smoothing=DEFAULT_SMOOTHING if self.smoothing is None else self.smoothing,
            sizes_leaves=self.smoothing is None and self.min_samples_leaf is None,
        )
