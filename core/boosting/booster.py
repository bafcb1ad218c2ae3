"""The base of this family's estimators for two classes: fit, score, state."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.checkpoint import offered
from core.errors import ArtifactError, InvalidParameter
from core.ranker import Arrays, Callback, Combination, Floats, Ranker
from core.sealed import identify_fit

from .ensemble import Ensemble
from .kinds import KINDS, Kind
from .loop import Path, SoFar, StopReason
from .rules import RankingRule, Rule, losses_of
from .run import Read, Run
from .validation import Part, Watch, split_off


class Booster(Ranker):
    """A sum of weak rankers, learnt round by round on the present weights of rows or pairs.

    A subclass is an algorithm: its parameters, and `_rule`, which says which cut is best, what weak
    ranker is made of it and how far to step. The parameter `weak_ranker` names a kind in `kinds`.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        What each round added; for stumps see `stump_sum.ROUND`.
    loss_ : ndarray of shape (n_taken,), float64
        The loss after each round.
    f_, f_skew_, f_tilde_ : ndarray of shape (n_taken,), float64
        F = F₊ + F₋ and the F-skew F₊ - F₋ of the scores after each round, and F̃ = F₊ F₋: losses of
        AdaBoost and RankBoost, of the same ranker.
    intercept_ : float
        What every score holds alike.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"}
        Why there are no more rounds.
    validation_auc_ : ndarray of float64
        After each round that was tried, those dropped by early stopping too; NaN where it was not
        computed. Empty without early stopping.
    """

    path_parameter: ClassVar[str | None] = "n_rounds"
    """The parameter whose lesser values one fit holds; see `core.selection`."""

    n_rounds: int
    weak_ranker: Any
    max_bins: int
    early_stopping_rounds: int | None
    validation_fraction: float
    random_state: int

    rounds_: npt.NDArray[np.void]
    loss_: Floats
    f_: Floats
    f_skew_: Floats
    f_tilde_: Floats
    intercept_: Any  # a float, or one per label
    stop_reason_: str
    validation_auc_: Floats
    _log_f: Floats
    _rule_intercept: float
    _ensemble: Ensemble

    @property
    def offset_(self) -> Any:
        """The mean score of the training rows, weighted: what contributions are counted from."""
        return self.intercept_ - self._ensemble.constant + self._ensemble.mean

    def score_rows(self, X: Floats) -> Floats:
        """Score rows without any check; see `Ranker.score_rows`."""
        return self._ensemble.score(X, self._rule_intercept)

    def contributions(self, X: Any) -> Floats:
        """Say how each row differs from the average training row, feature by feature.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            decision_function(X) is offset_, the mean training score, plus the sum of each row.
        """
        return self._ensemble.contributions(self._checked_rows(X))

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Score rows after each round.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,), float64
            What a ranker of so many rounds would score; the last is decision_function(X), but for
            rounding.
        """
        rows = self._checked_rows(X)
        rule = self._rule()
        for log_f, scores in zip(self._log_f[1:], self._ensemble.staged(rows), strict=True):
            yield scores + rule.intercept(log_f)

    def check_path_parameters(self) -> None:
        """Raise InvalidParameter for parameters under which a fit holds no path of rounds."""
        if self.early_stopping_rounds is not None:
            raise InvalidParameter(
                "early_stopping_rounds must be None where n_rounds is searched, for both choose "
                f"the number of rounds; got {self.early_stopping_rounds}"
            )

    def takes_categories(self) -> bool:
        """Whether its weak rankers can do with categorical columns; see `Ranker`."""
        return self._kind().takes_categories

    def combination(self) -> Combination | None:
        """Give the weak rankers' weights; see `Ranker.combination`."""
        weights = self._ensemble.binary_weights()
        if weights is None or (weights < 0).any():
            return None
        if not isinstance(self._rule(), RankingRule):
            return Combination(weights, None, None)
        return Combination(weights, self.rounds_["d_plus"].copy(), self.rounds_["d_minus"].copy())

    def structure(self) -> dict[str, Any]:
        """Describe the sum: its rules in words, its intercept, and the losses it ends with."""
        losses = losses_of(self._log_f[-1:], np.array([self._rule_intercept]))
        return {
            "type": self._ensemble.type,
            "intercept": np.asarray(self.intercept_).tolist(),
            "offset": np.asarray(self.offset_).tolist(),
            "rounds": len(self.rounds_),
            "stop_reason": self.stop_reason_,
            "losses": {
                name: float(value[0]) if np.isfinite(value[0]) else None
                for name, value in losses._asdict().items()
            },
            **self._ensemble.describe(self._feature_name, self.categories_),
        }

    @abstractmethod
    def _rule(self) -> Rule:
        """Give the rule of this algorithm, at f = 0."""

    def _kind(self) -> Kind:
        return KINDS[self.weak_ranker]

    def _reader(self) -> Read:
        """Give what reads the sum of its weak rankers."""
        read, n_categories = self._kind().read, self._n_categories()
        return lambda arrays, n_rounds: read(arrays, n_rounds, n_categories)

    def _look_back(self, training: Part, path: Path) -> None:
        """Note what only the rows trained on can tell, once the run is over."""

    def _take_rounds(self) -> None:
        """Derive what the rounds and losses imply, after a fit or from an artifact."""

    def _fit(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        training, validation = Part(X, positive, weight), None
        if self.early_stopping_rounds is not None:
            training, validation = split_off(training, self.validation_fraction, self.random_state)
        rule = self._rule()
        learner = self._kind().start(self, rule, *training)
        start = np.array([learner.log_f_plus, learner.log_f_minus])

        def loss(so_far: SoFar) -> float:
            return rule.loss(np.array(so_far[:2]), start)

        patience = self.early_stopping_rounds or self.n_rounds
        watch = Watch(
            self.n_rounds, callback, loss, training, learner.collect, validation, patience
        )
        run = Run(learner, rule, self.n_rounds, watch, self._reader())
        with offered(run, lambda: identify_fit(self, X, positive, weight, self._n_categories())):
            path = run.finish()
        if validation is not None:
            path = path.cut(watch.best_round or len(path.found))
        self.validation_auc_ = np.array(watch.validation_auc, dtype=np.float64)
        self._take(learner.collect(path), path.log_f, path.stop_reason)
        self._look_back(training, path)

    def _take(self, ensemble: Ensemble, log_f: Floats, stop_reason: str) -> None:
        rule = self._rule()
        self._ensemble = ensemble
        self._log_f = log_f
        self._rule_intercept = rule.intercept(log_f[-1])
        self.rounds_ = ensemble.rounds
        self.stop_reason_ = stop_reason
        self.intercept_ = self._rule_intercept + ensemble.constant
        self.loss_ = np.array([rule.loss(row, log_f[0]) for row in log_f[1:]], dtype=np.float64)
        intercepts = np.array([rule.intercept(row) for row in log_f[1:]], dtype=np.float64)
        self.f_, self.f_skew_, self.f_tilde_ = losses_of(log_f[1:], intercepts)
        self._take_rounds()

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = self._ensemble.arrays() | {
            "log_f_plus": self._log_f[:, 0].copy(),
            "log_f_minus": self._log_f[:, 1].copy(),
            "validation_auc": self.validation_auc_,
        }
        return arrays, {"stop_reason": self.stop_reason_}

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        n_rounds = arrays["log_f_plus"].size - 1
        if not 0 <= n_rounds <= self.n_rounds:
            raise ArtifactError(
                f"log_f_plus must hold 1 to {self.n_rounds + 1} values (n_rounds and the start), "
                f"got {n_rounds + 1}"
            )
        for name in ("log_f_plus", "log_f_minus"):
            check_array(name, arrays[name], np.float64, (n_rounds + 1,))
            if not (abs(arrays[name]) <= 1e300).all():
                raise ArtifactError(f"{name} must be finite")
        validation_auc = arrays["validation_auc"]
        n_tried = validation_auc.size
        check_array("validation_auc", validation_auc, np.float64, (n_tried,))
        if n_tried and not n_rounds <= n_tried <= self.n_rounds:
            raise ArtifactError(
                f"validation_auc must hold {n_rounds} values or more, got {n_tried}"
            )
        if (validation_auc < 0).any() or (validation_auc > 1).any():
            raise ArtifactError("validation_auc must be from 0 to 1")
        if meta["stop_reason"] not in get_args(StopReason):
            raise ArtifactError(f"stop_reason is unknown: {meta['stop_reason']!r}")
        ensemble = self._kind().read(arrays, n_rounds, self._n_categories())
        self.validation_auc_ = validation_auc
        log_f = np.column_stack([arrays["log_f_plus"], arrays["log_f_minus"]])
        self._take(ensemble, log_f, meta["stop_reason"])
