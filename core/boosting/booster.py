"""The base of this family's estimators for two classes: fit, score, state."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any, ClassVar, Self, get_args

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.checkpoint import identify_fit, offered
from core.errors import ArtifactError, InvalidParameter
from core.ranker import Arrays, Callback, Combination, Floats, Ranker, ignore
from core.trees.options import MAX_DEPTH
from core.trees.workspace import MAX_LEAVES

from .ensemble import Ensemble
from .kinds import KINDS, Kind
from .loop import Path, SoFar, StopReason
from .rules import RankingRule, Rule, losses_of
from .run import Read, Run
from .validation import Part, Watch, Watched, split_off

# Trees without n_rounds: where each class has so many rows, these are their rounds, their patience and their
# parameters, each chosen on public tables (docs/benchmarks.md). A fit on all rows bears some more rounds.
LEAST_ROWS = 250
FIRST_ROUNDS = 500
MOST_ROUNDS = 2000
MORE_LEAVES = 4  # times as many, twice as deep, where the first rounds are not enough
PATIENCE = 50
CHOSEN = {"learning_rate": 0.05, "max_features": 0.5}
LEAST_FEATURES = 8  # of which to draw
MORE_ROUNDS = 1.15
USUAL_ROUNDS = 100


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

    keeps_when_stopped = True

    path_parameter: ClassVar[str | None] = "n_rounds"
    """The parameter whose lesser values one fit holds; see `core.selection`."""

    n_rounds: Any  # an int; None where the fit may choose
    weak_ranker: Any
    max_leaves: int | None
    max_depth: int
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

    @property
    def log_f_tilde_(self) -> Floats:
        """ln F̃ after each round, finite where F̃ itself is below the least double."""
        return np.asarray(self._log_f[1:].sum(axis=1))

    def fit_watched(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_valid: Any,
        judge: Callable[[Floats], float],
        patience: int | None = None,
        every: int | None = None,
        callback: Callback | None = None,
    ) -> Floats:
        """Fit, and judge the scores of other rows along the way; keep the best number of rounds.

        Parameters
        ----------
        X, y, sample_weight, callback
            As for `fit`. The callback hears of the figure as "judged". No part of X is held out:
            `early_stopping_rounds` and `validation_fraction` say nothing here.
        X_valid : array or table of shape (n_valid, n_features)
            Rows that it does not learn from.
        judge : callable (scores) -> float
            Given the scores of these rows, up to a constant that all have in common; higher is better.
        patience : int, optional
            Rounds without a higher figure before the fit ends, at least 1; None: all rounds are taken.
        every : int, optional
            Rounds from one figure to the next, at least 1; the last round has one too. None: 1, more
            where there are more than 50,000 rows.

        Returns
        -------
        ndarray of shape (n_tried,), float64
            The figure after each round that was tried, NaN where it was not asked for. The ranker keeps
            the rounds up to the highest, the first among equals.

        Raises
        ------
        InvalidParameter
            A parameter breaks its rule.
        InvalidData
            X, y, sample_weight or X_valid break theirs.
        """
        for name, given in (("patience", patience), ("every", every)):
            if given is not None and (type(given) is not int or given < 1):
                raise InvalidParameter(
                    f"{name} must be an integer of at least 1, or None, got {given!r}"
                )
        rows = Part(*self._take_rows(X, y, sample_weight))
        if self.n_rounds is None:
            chooses = self._chooses(rows)
            bounded = self._bounded(rows) if chooses else self
            bounded = bounded._with(n_rounds=MOST_ROUNDS if chooses else USUAL_ROUNDS)
            figures = bounded.fit_watched(
                X,
                y,
                sample_weight,
                X_valid=X_valid,
                judge=judge,
                patience=patience or (PATIENCE if chooses else None),
                every=every,
                callback=callback,
            )
            self._adopt(bounded)
            return figures
        self._look_at(rows)
        n_labels = rows.positive.shape[1] if rows.positive.ndim > 1 else None
        watched = Watched(self._matrix(X_valid, reset=False), judge, n_labels)
        figures = self._run(rows, watched, patience, every, callback or ignore)
        self.validation_auc_ = np.empty(0)  # a figure of the judge's need not be an AUC
        return figures

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

    def _look_at(self, rows: Part) -> None:
        """Note what the rule needs to know of the rows, before any are held out."""

    def _look_back(self, training: Part, path: Path) -> None:
        """Note what only the rows trained on can tell, once the run is over."""

    def _take_rounds(self) -> None:
        """Derive what the rounds and losses imply, after a fit or from an artifact."""

    def _fit(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        training, validation = Part(X, positive, weight), None
        if self.n_rounds is None:
            self._fit_chosen(training, callback)
            return
        self._look_at(training)
        if self.early_stopping_rounds is not None:
            training, validation = split_off(training, self.validation_fraction, self.random_state)
        patience = self.early_stopping_rounds
        self.validation_auc_ = self._run(training, validation, patience, None, callback)

    def _fit_chosen(self, rows: Part, callback: Callback) -> None:
        """Fit with as many rounds as a validation part asks for, on all rows."""
        if not self._chooses(rows):
            usual = self._with(n_rounds=USUAL_ROUNDS)
            usual._fit(*rows, callback)
            self._adopt(usual)
            return
        first = self._bounded(rows)
        told = callback is not ignore

        def tell_first(step: int, of: int, info: Mapping[str, float]) -> None:
            callback(step, 2 * MOST_ROUNDS, info)

        def tell_larger(step: int, of: int, info: Mapping[str, float]) -> None:
            rest = (MOST_ROUNDS - FIRST_ROUNDS) * step // of
            callback(FIRST_ROUNDS + rest, 2 * MOST_ROUNDS, info)

        first._fit(*rows, tell_first if told else ignore)
        if first.stop_reason_ == "n_rounds" and first.n_rounds < MOST_ROUNDS:
            # The table asks for more than many small trees.
            first = first._with(n_rounds=MOST_ROUNDS)
            if first.max_leaves is not None:
                first.max_leaves = min(MORE_LEAVES * first.max_leaves, MAX_LEAVES)
                first.max_depth = min(2 * first.max_depth, MAX_DEPTH)
            first._fit(*rows, tell_larger if told else ignore)
        n_rounds = min(round(MORE_ROUNDS * len(first.rounds_)), MOST_ROUNDS)
        kept, reason = first, first.stop_reason_
        if reason != "stopped" and n_rounds:

            def tell_rest(step: int, of: int, info: Mapping[str, float]) -> None:
                callback(MOST_ROUNDS + MOST_ROUNDS * step // of, 2 * MOST_ROUNDS, info)

            whole = first._with(n_rounds=n_rounds, early_stopping_rounds=None)
            whole._fit(*rows, tell_rest if told else ignore)
            # Fewer rounds than were found best are worse than those that were validated.
            kept = first if whole.stop_reason_ == "stopped" else whole
            reason = "stopped" if kept is first else reason
        self._adopt(kept)
        self.validation_auc_, self.stop_reason_ = first.validation_auc_, reason

    def _chooses(self, rows: Part) -> bool:
        """Whether it chooses the number of rounds: trees, on enough rows of each class to hold some out."""
        n_positives = int(rows.positive.sum())
        least = min(n_positives, rows.size - n_positives)
        return bool(self.weak_ranker == "tree" and least >= LEAST_ROWS)

    def _bounded(self, rows: Part) -> Self:
        """Give a copy with a bound on its rounds, and what is not asked for chosen by the table."""
        chosen = {name: value for name, value in CHOSEN.items() if getattr(self, name) is None}
        if rows.X.shape[1] < LEAST_FEATURES:
            chosen.pop("max_features", None)
        patience = self.early_stopping_rounds or PATIENCE
        return self._with(n_rounds=FIRST_ROUNDS, early_stopping_rounds=patience, **chosen)

    def _with(self, **parameters: Any) -> Self:
        """Give a copy, which knows of the same columns, with other parameters."""
        other = copy(self)
        other.__dict__.update(parameters)
        return other

    def _adopt(self, other: Self) -> None:
        """Take what another has learnt, and keep the parameters."""
        own = self.get_params(deep=False)
        self.__dict__.update({k: v for k, v in other.__dict__.items() if k not in own})

    def _run(
        self,
        training: Part,
        validation: Part | Watched | None,
        patience: int | None,
        every: int | None,
        callback: Callback,
    ) -> Floats:
        """Take the rounds, and keep the best; give the validation figure of each that was tried."""
        rule = self._rule()
        learner = self._kind().start(self, rule, *training)
        start = np.array([learner.log_f_plus, learner.log_f_minus])

        def loss(so_far: SoFar) -> float:
            return rule.loss(np.array(so_far[:2]), start)

        n, collect = self.n_rounds, learner.collect
        watch = Watch(n, callback, loss, training, collect, validation, patience or n, every)
        run = Run(learner, rule, n, watch, self._reader())
        with offered(run, lambda: self._identify(training, validation, patience, every)):
            path = run.finish()
        if validation is not None:
            path = path.cut(watch.best_round or len(path.found))
        self._take(learner.collect(path), path.log_f, path.stop_reason)
        self._look_back(training, path)
        return np.array(watch.validation_auc, dtype=np.float64)

    def _identify(
        self, training: Part, validation: Part | Watched | None, *steps: int | None
    ) -> bytes:
        """Hash what determines the fit but for a judge, which is code."""
        held = () if validation is None else (validation.X, np.array([k or 0 for k in steps]))
        return identify_fit(self, *training, self._n_categories(), *held)

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
        most = MOST_ROUNDS if self.n_rounds is None else self.n_rounds
        if not 0 <= n_rounds <= most:
            raise ArtifactError(
                f"log_f_plus must hold 1 to {most + 1} values (n_rounds and the start), "
                f"got {n_rounds + 1}"
            )
        for name in ("log_f_plus", "log_f_minus"):
            check_array(name, arrays[name], np.float64, (n_rounds + 1,))
            if not (abs(arrays[name]) <= 1e300).all():
                raise ArtifactError(f"{name} must be finite")
        validation_auc = arrays["validation_auc"]
        n_tried = validation_auc.size
        check_array("validation_auc", validation_auc, np.float64, (n_tried,))
        least = 0 if self.n_rounds is None else n_rounds  # a fit on all rows may have more
        if n_tried and not least <= n_tried <= most:
            raise ArtifactError(f"validation_auc must hold {least} to {most} values, got {n_tried}")
        if (validation_auc < 0).any() or (validation_auc > 1).any():
            raise ArtifactError("validation_auc must be from 0 to 1")
        if meta["stop_reason"] not in get_args(StopReason):
            raise ArtifactError(f"stop_reason is unknown: {meta['stop_reason']!r}")
        ensemble = self._kind().read(arrays, n_rounds, self._n_categories())
        self.validation_auc_ = validation_auc
        log_f = np.column_stack([arrays["log_f_plus"], arrays["log_f_minus"]])
        self._take(ensemble, log_f, meta["stop_reason"])
