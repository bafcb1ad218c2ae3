"""LogitBoost (Friedman, Hastie & Tibshirani 2000) on trees."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.base.monotone import Monotone
from core.base.parameters import Since
from core.base.ranker import Floats
from core.coding.bins import MaxBins
from core.trees.options import (
    CATEGORY_PENALTY,
    MAX_CATEGORIES,
    TARGET_ENCODING,
    CategoryPenalty,
    MaxCategories,
    MaxCrosses,
    MaxDepth,
    MaxFeaturesOrChosen,
    MaxLeaves,
    MinSamplesLeaf,
    Subsample,
    TargetEncoding,
    check_shape,
)

from .booster import Booster
from .options import EarlyStoppingRounds, NRoundsOrChosen, RandomState, ValidationFraction
from .tree_losses import DEFAULT_SMOOTHING, LogisticLoss, RowLossTrees

LEARNING_RATE = 0.1


@dataclass(kw_only=True, eq=False, repr=False)
class LogitBoost(Booster):
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

    n_rounds: NRoundsOrChosen = None
    weak_ranker: Annotated[
        Literal["tree"], Doc("The weak ranker of each round: a tree. With depth 1 it is a stump.")
    ] = "tree"
    max_depth: MaxDepth = None
    max_leaves: MaxLeaves = "auto"
    learning_rate: Annotated[
        float | None,
        Gt(0),
        Le(1),
        Doc(
            "Fraction of the optimal step that a round takes. None: 0.1, or 0.05 if the fit chooses the number of "
            "rounds."
        ),
    ] = None
    min_samples_leaf: MinSamplesLeaf = None
    subsample: Subsample = 1.0
    max_features: MaxFeaturesOrChosen = None
    category_penalty: CategoryPenalty = CATEGORY_PENALTY
    max_categories: MaxCategories = MAX_CATEGORIES
    target_encoding: TargetEncoding = TARGET_ENCODING
    crosses: MaxCrosses = 0
    max_bins: MaxBins = 255
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
    monotone: Monotone = None
    early_stopping_rounds: EarlyStoppingRounds = None
    validation_fraction: ValidationFraction = 0.2
    random_state: RandomState = 0

    @property
    def validation_auc_(self) -> Floats:
        """AUC of the validation part after each round."""
        return self._validation_auc

    def check_parameters(self) -> None:
        check_shape(self.max_depth, self.max_leaves)

    def _default_rate(self) -> float:
        return LEARNING_RATE

    def _algorithm(self) -> RowLossTrees:
        return RowLossTrees(
            loss_class=LogisticLoss,
            learning_rate=self._rate(),
            smoothing=DEFAULT_SMOOTHING if self.smoothing is None else self.smoothing,
            sizes_leaves=self.smoothing is None and self.min_samples_leaf is None,
        )
