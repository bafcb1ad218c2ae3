"""`fit_pairs`: learning from listed pairs instead of two classes."""

from abc import abstractmethod
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from core.checkpoint import identify_fit, offered
from core.errors import InvalidParameter
from core.parameters import check_values
from core.ranker import Callback, Floats, ignore
from core.table import keep_present
from core.target import check_pairs

from .booster import USUAL_ROUNDS, Booster
from .kinds import CollectingLearner
from .loop import Path, SoFar
from .pair_columns import start_columns
from .pair_trees import start_trees
from .pair_validation import PairPart, split_off_pairs
from .pairs import ItemPairs, PairStumpLearner, number_items
from .rules import RankingRule
from .run import Run
from .validation import Watch


def _start_stumps(
    booster: Booster, rule: RankingRule, X: Floats, pairs: ItemPairs
) -> CollectingLearner:
    return PairStumpLearner(rule, X, pairs, booster.max_bins, booster._n_categories())


PAIR_KINDS: MappingProxyType[str, Callable[[Any, Any, Floats, ItemPairs], CollectingLearner]] = (
    MappingProxyType({"stump": _start_stumps, "column": start_columns, "tree": start_trees})
)
"""The kinds of weak ranker as they start on listed pairs; see `kinds.KINDS`."""


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
            Numeric, and in a table columns of text as categories; NaN (null in a table) is missing.
            Infinite values are refused. Rows that occur in no pair of weight above 0 count as
            absent.
        pairs : array-like of int, shape (n_pairs, 2)
            Rows of X, (better, worse). Cycles and contradictions are welcome; a pair that comes
            twice counts twice.
        pair_weight : array-like of float, shape (n_pairs,), optional
            Finite, not negative. A pair of weight k counts as k pairs.
        callback : callable (step, of, info) -> None, optional
            Called after each round, counted from 1, with the loss and the shares of pairs in order: "training_auc",
            on a sample, both found when they are read, and "validation_auc" where it was computed. What it raises stops
            the fit and reaches the caller; `StopFit` stops it and keeps the rounds so far.

        Returns
        -------
        self
            Scores have no natural zero: `intercept_` is 0, there are no `classes_`, and `predict`
            is refused. f_ is 2√F̃ and f_skew_ 0, as Corollary 13 would have them for two classes.

        Raises
        ------
        InvalidParameter
            A parameter breaks its rule, or has no meaning for pairs: a push.
        InvalidData
            X, pairs or pair_weight break one of the rules above.

        Notes
        -----
        With all pairs of a positive and a negative it finds the rounds that `fit` does, in
        O(n_rounds · n_features · n_pairs) instead of O(n_rounds · n_features · n_samples); trees,
        which look at items, in the time that `fit` takes and O(n_rounds · n_pairs) beside. Memory
        is linear in the pairs.

        Early stopping holds out items, and with them all their pairs: see
        `pair_validation.split_off_pairs`. `validation_auc_` is the weighted share of the held-out
        pairs in order.
        """
        check_values(type(self), self.get_params(deep=False))
        self.check_pair_parameters()
        matrix = self._matrix(X, reset=True)
        given = number_items(check_pairs(pairs, pair_weight, len(matrix)), len(matrix))
        matrix, self.categories_ = keep_present(matrix, self.categories_, given.rows)
        if hasattr(self, "classes_"):
            del self.classes_  # of an earlier fit
        listed, validation = given, None
        if self.early_stopping_rounds is not None:
            listed, held = split_off_pairs(given, self.validation_fraction, self.random_state)
            validation = PairPart.of(matrix, held).alone()
        self._look_at_pairs(listed)
        rule = self._rule()
        learner = PAIR_KINDS[self.weak_ranker](self, rule, matrix, listed)
        start = np.array([learner.log_f_plus, learner.log_f_minus])

        def loss(so_far: SoFar) -> float:
            return rule.loss(np.array(so_far[:2]), start)

        n_rounds = USUAL_ROUNDS if self.n_rounds is None else self.n_rounds
        patience = self.early_stopping_rounds or n_rounds
        training = PairPart.of(matrix, listed)
        callback = callback or ignore
        watch = Watch(n_rounds, callback, loss, training, learner.collect, validation, patience)
        run = Run(learner, rule, n_rounds, watch, self._reader())
        with offered(run, lambda: identify_fit(self, matrix, *given, self._n_categories())):
            path = run.finish()
        if validation is not None:
            path = path.cut(watch.best_round or len(path.found))
        self.validation_auc_ = np.array(watch.validation_auc, dtype=np.float64)
        self._take(learner.collect(path), path.log_f, path.stop_reason)
        self._look_back_on_pairs(matrix, listed, path)
        return self

    def check_pair_parameters(self) -> None:
        """Raise InvalidParameter for what `fit_pairs` cannot do, or for parameters at odds."""
        self._check_parameters()
        push = getattr(self, "push", 1.0)
        if push != 1.0:
            raise InvalidParameter(f"push must be 1 to learn from pairs, got {push}")

    def _look_at_pairs(self, pairs: ItemPairs) -> None:
        """Note what the rule needs to know of the pairs, before the first round."""

    def _look_back_on_pairs(self, X: Floats, pairs: ItemPairs, path: Path) -> None:
        """Note what only the pairs can tell, once the run is over."""

    @abstractmethod
    def _rule(self) -> RankingRule:
        """Give the rule of this algorithm, at f = 0."""
