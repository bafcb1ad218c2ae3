"""`fit_pairs`: learning from listed pairs instead of two classes."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from core.errors import InvalidParameter
from core.pairs import check_pairs
from core.parameters import check_values
from core.ranker import Callback, Floats, ignore
from core.table import keep_present

from .booster import Booster
from .loop import Found, Path, SoFar, boost
from .pairs import ItemPairs, PairStumpLearner, number_items
from .rules import RankingRule


class PairBooster(Booster):
    """A booster whose rule looks at pairs alone, so that it can do with any list of them."""

    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        pair_weight: Any = None,
        *,
        callback: Callback | None = None,
    ) -> Self:
        """Learn to score the better item of each pair above the worse one.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Numeric; NaN (null in a table) is missing. Infinite values are refused. Rows that occur
            in no pair of weight above 0 count as absent.
        pairs : array-like of int, shape (n_pairs, 2)
            Rows of X, (better, worse). Cycles and contradictions are welcome; a pair that comes
            twice counts twice.
        pair_weight : array-like of float, shape (n_pairs,), optional
            Finite, not negative. A pair of weight k counts as k pairs.
        callback : callable (step, of, info) -> None, optional
            Called after each round, counted from 1, with the loss. What it raises stops the fit
            and reaches the caller.

        Returns
        -------
        self
            Scores have no natural zero: `intercept_` is 0, there are no `classes_`, and `predict`
            is refused. f_ is 2√F̃ and f_skew_ 0, as Corollary 13 would have them for two classes.

        Raises
        ------
        InvalidParameter
            A parameter breaks its rule, or has no meaning for pairs: early stopping, and weak
            rankers other than stumps.
        InvalidData
            X, pairs or pair_weight break one of the rules above.

        Notes
        -----
        With all pairs of a positive and a negative it finds the rounds that `fit` does, in
        O(n_rounds · n_features · n_pairs) instead of O(n_rounds · n_features · n_samples). Memory
        is linear in the pairs.
        """
        check_values(type(self), self.get_params(deep=False))
        self.check_pair_parameters()
        matrix = self._matrix(X, reset=True)
        listed = number_items(check_pairs(pairs, pair_weight, len(matrix)), len(matrix))
        matrix, self.categories_ = keep_present(matrix, self.categories_, listed.rows)
        if hasattr(self, "classes_"):
            del self.classes_  # of an earlier fit
        self._look_at_pairs(listed)
        rule = self._rule()
        learner = PairStumpLearner(rule, matrix, listed, self.max_bins)
        start = np.array([learner.log_f_plus, learner.log_f_minus])
        tell = callback or ignore

        def watch(taken: int, found: Found, alpha: float, so_far: SoFar) -> bool:
            tell(taken, self.n_rounds, {"loss": rule.loss(np.array(so_far[:2]), start)})
            return False

        path = boost(learner, rule, self.n_rounds, watch)
        self.validation_auc_ = np.empty(0)
        self._take(learner.collect(path), path.log_f, path.stop_reason)
        self._look_back_on_pairs(matrix, listed, path)
        return self

    def check_pair_parameters(self) -> None:
        """Raise InvalidParameter for what `fit_pairs` cannot do, or for parameters at odds."""
        self._check_parameters()
        if self.weak_ranker != "stump":
            raise InvalidParameter(
                f"weak_ranker must be 'stump' to learn from pairs, got {self.weak_ranker!r}"
            )
        if self.early_stopping_rounds is not None:
            raise InvalidParameter(
                "early_stopping_rounds must be None to learn from pairs, "
                f"got {self.early_stopping_rounds}"
            )

    def _look_at_pairs(self, pairs: ItemPairs) -> None:
        """Note what the rule needs to know of the pairs, before the first round."""

    def _look_back_on_pairs(self, X: Floats, pairs: ItemPairs, path: Path) -> None:
        """Note what only the pairs can tell, once the run is over."""

    @abstractmethod
    def _rule(self) -> RankingRule:
        """Give the rule of this algorithm, at f = 0."""
