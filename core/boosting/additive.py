"""Bagged additive models (Lou et al. 2012, 2013): boosting rounds over single columns, then over a few column pairs."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.base.checkpoint import identify_fit, offered
from core.base.monotone import Directions, Monotone, Verification
from core.base.ranker import Callback, ContributionRanker, FitCost, Floats
from core.base.state import FINITE, Array, Integers, Nested, Value
from core.base.training import TrainingData
from core.coding.bins import MaxNarrowBins
from core.errors import ArtifactError

from .additive_rounds import Bags, StopReason
from .additive_shapes import Shapes
from .options import LearningRate, RandomState


@dataclass(kw_only=True, eq=False, repr=False)
class Additive(ContributionRanker):
    """Bagged additive models: a step function per feature and tables for a few pairs of features.

    Use it with few rows or few positives, or if people must read the model. With some hundreds of rows it is often more
    accurate than trees, and you can plot all of it. With many rows, use `RankBoost` or `LogitBoost` with trees.

    The score Σ_j g_j(x_j) + Σ g_jk(x_j, x_k) estimates the log-odds. Each bag leaves out 15 % of the rows, keeping
    groups and equal rows together. Each round takes a short Newton step along each column in turn: a stump at the best
    of a few random thresholds, or a step for each category. The bag keeps the rounds up to the lowest logistic loss on
    the rows left out. Then the pairs that explain most of the rest are fitted in the same way, by the quadrants of two
    thresholds. The score is the mean over the bags.

    Attributes
    ----------
    offset_ : float
        Mean score of the training rows. Contributions are differences from it.
    n_rounds_ : int
        Number of rounds.
    validation_loss_ : ndarray of shape (n_rounds_,), float64
        Mean logistic loss of the rows left out after each round; NaN if no bag could leave out any.
    bag_rounds_ : ndarray of shape (n_bags,), int64
        Number of rounds that each bag kept.
    stop_reason_ : {"n_rounds", "no_edge", "validation", "stopped"}
        Why boosting ended.

    Notes
    -----
    Differences from the papers: thresholds are the best of three random ones. A pair is chosen by what it explains
    beyond the sum of two stumps. Missing values have their own step. The row and column means of a pair's table are
    moved to the functions of its columns, so a pair contains only the interaction.

    Time: O(n_bags · max_rounds · n_features · n_samples). Threads share the bags.

    References
    ----------
    Y. Lou, R. Caruana and J. Gehrke, "Intelligible models for classification and regression", KDD 2012.
    Y. Lou, R. Caruana, J. Gehrke and G. Hooker, "Accurate intelligible models with pairwise interactions", KDD 2013.
    H. Nori, S. Jenkins, P. Koch and R. Caruana, "InterpretML: a unified framework for machine learning
    interpretability", arXiv 1909.09223, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Additive
    >>> X = np.arange(60.0)[:, None]
    >>> y = (X[:, 0] > 30) ^ (X[:, 0] % 7 == 0)
    >>> ranker = Additive(n_bags=4).fit(X, y)
    >>> ranker.decision_function([[5.0], [55.0]]).round(1).tolist()
    [-0.4, 0.4]
    """

    keeps_when_stopped = True
    fit_cost = FitCost(2.5e-6, times="n_bags")

    n_bags: Annotated[
        int,
        Ge(1),
        Le(100),
        Doc(
            "Number of bags. Each bag is a model of 85 % of the rows, and the score is their mean."
        ),
    ] = 8
    max_rounds: Annotated[
        int,
        Ge(1),
        Le(100_000),
        Doc(
            "Maximum number of rounds. Each round adds a step along every column, and later along every pair of "
            "columns. A bag ends earlier if the loss on the rows that it leaves out stops decreasing."
        ),
    ] = 5000
    learning_rate: LearningRate = 0.02
    n_pairs: Annotated[
        int,
        Ge(0),
        Le(1000),
        Doc(
            "Maximum number of pairs of columns with a table. There are fewer if chance explains the remaining "
            "ones. 0: none."
        ),
    ] = 10
    max_bins: MaxNarrowBins = 64
    min_samples_leaf: Annotated[
        float,
        Ge(0),
        Doc(
            "Minimum weight on either side of a threshold, in rows of mean weight. A sample weight of k counts as "
            "k rows. If the mean weight is below 1, all weights are first divided by it."
        ),
    ] = 4.0
    smoothing: Annotated[
        float,
        Ge(0),
        Le(1000),
        Doc(
            "Amount added to the curvature of each side of a threshold, in rows of mean curvature; thirty times "
            "as much for a category. 0 is the plain Newton step."
        ),
    ] = 1.0
    monotone: Monotone = None
    random_state: RandomState = 0

    offset_: Annotated[float, Value(), FINITE] = field(init=False)
    n_rounds_: Annotated[int, Value(), Ge(0), Le(100_000)] = field(init=False)
    validation_loss_: Annotated[Floats, Array("n_run")] = field(init=False)
    bag_rounds_: Annotated[Integers, Array("n_bags"), Ge(0), Le(100_000)] = field(init=False)
    stop_reason_: Annotated[StopReason, Value()] = field(init=False)
    _shapes: Annotated[Shapes, Nested()] = field(init=False)

    def keep_length(self) -> bool:
        self.max_rounds, self.stop_reason_ = self.n_rounds_, "n_rounds"
        return True

    def takes_categories(self) -> bool:
        return True

    def score_rows(self, X: Floats) -> Floats:
        return self._shapes.score(X, self.offset_)

    def _contributions(self, X: Floats) -> Floats:
        """A pair's value is split between its columns: as row and column means of its table are 0, the Shapley values
        are exact.
        """
        return self._shapes.contributions(X)

    def walk_monotone(self, directions: Directions) -> Verification:
        return self._shapes.walk_monotone(directions)

    def structure(self) -> dict[str, Any]:
        """Describe the sum: each step function and pair table, with its standard deviation over the bags."""
        return {
            "type": "additive",
            "offset": self.offset_,
            "bag_rounds": self.bag_rounds_.tolist(),
            "rounds": self.n_rounds_,
            "stop_reason": self.stop_reason_,
            **self._shapes.describe(self._feature_name, self.categories_),
        }

    def _restore(self) -> None:
        sizes = {
            "validation_loss": (len(self.validation_loss_), self.n_rounds_),
            "bag_rounds": (len(self.bag_rounds_), self.n_bags),
        }
        for name, (found, wanted) in sizes.items():
            if found != wanted:
                raise ArtifactError(f"{name} must contain {wanted} values, got {found}")

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        bags = Bags(self, data)
        with offered(bags, lambda: identify_fit(self, *data.arrays())):
            self.stop_reason_ = bags.finish(self.max_rounds, callback)
        self.n_rounds_, self.validation_loss_ = len(bags.losses), np.array(bags.losses)
        self.bag_rounds_ = bags.columns.best_round.copy()
        if bags.pairs is not None:
            self.bag_rounds_ = np.maximum(self.bag_rounds_, bags.pairs.best_round)
        self.offset_, self._shapes = bags.collect()
