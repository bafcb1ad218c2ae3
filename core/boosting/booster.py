"""`Booster`, the base class of the boosting estimators: fit, early stopping, scores and artifacts."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le
from sklearn.utils.validation import check_is_fitted

from core.base import state
from core.base.checkpoint import identify_fit, offered
from core.base.columns import ColumnTable
from core.base.mixed import MixedRows
from core.base.monotone import Directions, Verification
from core.base.parameters import check_values, plain_value
from core.base.ranker import (
    Callback,
    Combination,
    ContributionRanker,
    Floats,
    check_groups,
    ignore,
)
from core.base.state import Array, Arrays, Nested, Value, write_state
from core.base.table import keep_present
from core.base.target import check_pairs
from core.base.training import TrainingData
from core.base.warning import warn
from core.coding.stored import StandIns
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.trees.grower import MAX_LEAVES
from core.trees.options import DEFAULT_DEPTH, DEFAULT_LEAVES, MAX_DEPTH, check_shape

from .algorithms import Losses, RankingAlgorithm, exponential_losses
from .columns import ColumnLearner, PairColumnLearner
from .data import Evaluation, draw_sample, evaluate
from .loop import (
    Boosting,
    BoostingAlgorithm,
    BoostingHistory,
    Ensemble,
    Monitor,
    StopReason,
    WeakLearner,
)
from .options import BoosterParameters, TreeParameters
from .pair_stumps import PairStumpLearner
from .pair_trees import PairTreeLearner
from .pairs import BoostingData, ListedPairs
from .plan import BoostingPlan, StoredPlan
from .stumps import StumpLearner
from .tree_learner import TreeLearner
from .tree_sum import CrossedTreeSum

WEAK_LEARNERS: Mapping[str, type[WeakLearner]] = MappingProxyType(
    {"stump": StumpLearner, "column": ColumnLearner, "tree": TreeLearner}
)
"""The weak learners on rows, by the value of the parameter `weak_ranker`."""

PAIR_LEARNERS: Mapping[str, type[WeakLearner]] = MappingProxyType(
    {"stump": PairStumpLearner, "column": PairColumnLearner, "tree": PairTreeLearner}
)
"""The same on listed pairs; what they sum up is as on rows."""

QUERY_LEARNERS: Mapping[str, type[WeakLearner]] = MappingProxyType(
    {"stump": PairStumpLearner, "tree": PairTreeLearner}
)
"""The same on rows of queries, or with grades."""

# How trees choose their number of rounds, if n_rounds is None; each number was chosen on public tables
# (docs/benchmarks.md).
MIN_CLASS_ROWS = 250  # rows of each class from which they choose
FIRST_ROUNDS = 500  # rounds, at most, of the first fit
MAX_ROUNDS = 2000  # rounds, at most, of the second fit, if the first was still improving
# The second fit has so many times as many leaves, and trees twice as deep, unless they are given.
MORE_LEAVES = 4
PATIENCE = 50  # rounds without a higher validation AUC before a fit ends
CHOSEN_RATE = 0.05  # learning rate, if it is not given
CHOSEN_FEATURES = 0.5  # fraction of the features, if it is not given
MIN_FEATURES = 8  # features from which their fraction is chosen
MORE_ROUNDS = 1.15  # times as many rounds for the fit on all rows
DEFAULT_ROUNDS = 100  # rounds if they are not chosen
TREE_RATE = 0.1  # learning rate of trees, if it is not given and the fit does not choose it

LOSSES_AS_SCORED = "the training rows, scored as new rows are"
LOSSES_ENCODED = (
    "the training rows, with shares of positives that were found without them: "
    "not those of the ranker's own scores"
)

SHARE_OR_NAN = state.Constraint("from 0 to 1, or NaN", lambda v: ~((v < 0.0) | (v > 1.0)))


@dataclass(frozen=True)
class BoostingRun:
    """The result of running the rounds of one plan on some data."""

    plan: BoostingPlan
    """As run: trees have at most its `max_leaves`."""
    ensemble: Ensemble
    """Of the rounds that are kept, as `log_f`."""
    log_f: Floats
    """ln F₊ and ln F₋ before the first round and after each, shape (n_rounds + 1, 2)."""
    stop_reason: StopReason
    validation_auc: Floats
    """The validation metric after each round that was tried, shape (n_tried,)."""


class Booster(BoosterParameters, ContributionRanker):
    """Base class of boosters: a sum of weak rankers, learned in rounds on reweighted rows or pairs.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        One record per round. For stumps: feature, threshold, sign, missing_above, alpha, d_plus, d_minus. For trees:
        alpha, n_leaves.
    loss_ : ndarray of shape (n_taken,), float64
        The training loss after each round. With target encoding (`target_encoding`, `crosses`) the scores in training
        are not those of `decision_function`: a training row's fraction of positives is computed without the row itself.
        "losses_of" in `structure()` says which scores the losses belong to.
    intercept_ : float
        The part of the score that is the same for all rows.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"}
        Why boosting ended.
    ensemble_ : Ensemble
        The weak rankers of the rounds with their steps: stumps, columns, trees or estimators.
    n_rounds_ : int
        Number of rounds of the fitted ranker.
    learning_rate_ : float
        As given, or as the fit chose it. Like the three below, None for a model that version 0.3.0 fitted with
        `n_rounds=None`, which did not store them.
    max_depth_, max_leaves_ : int or None
        Greatest allowed depth and number of leaves of a tree, as given or chosen. None without trees. max_leaves_ is
        also None for trees that are split level by level.
    max_features_ : float or None
        Fraction of the features that each tree may use, as given or chosen; None without trees.

    Notes
    -----
    A subclass is an algorithm. It declares its parameters, and its `_algorithm()` says which threshold is best, which
    weak ranker is made of it, and how far to step. The parameter `weak_ranker` names the weak learner.
    """

    keeps_when_stopped = True

    path_parameter: ClassVar[str | None] = "n_rounds"
    """The parameter for whose lower values one fit holds the models, too; see `core.selection`."""

    max_leaves: int | Literal["auto"] | None
    max_depth: int | None
    max_features: float | None
    # Of an algorithm without the parameter:
    learning_rate: float | None = 1.0
    target_encoding: int | None = None
    crosses: int = 0

    rounds_: npt.NDArray[np.void]
    loss_: Floats
    intercept_: Any  # a float, or one per label
    stop_reason_: Annotated[StopReason, Value()]
    learning_rate_: float | None
    max_depth_: int | None
    max_leaves_: int | None
    max_features_: float | None
    _validation_auc: Annotated[Floats, Array("n_tried"), SHARE_OR_NAN]
    _log_f_plus: Annotated[Floats, Array("n_rounds + 1"), Ge(-1e300), Le(1e300)]
    _log_f_minus: Annotated[Floats, Array("n_rounds + 1"), Ge(-1e300), Le(1e300)]
    ensemble_: Annotated[Ensemble, Nested(n_rounds="n_rounds")]
    _log_f: Floats
    _algorithm_intercept: float

    def keep_length(self) -> bool:
        if self.n_rounds is None or self.early_stopping_rounds is not None:
            return False
        self.n_rounds, self.stop_reason_ = self.n_rounds_, "n_rounds"
        return True

    @property
    def n_rounds_(self) -> int:
        """Number of rounds of the ranker."""
        check_is_fitted(self)
        return len(self.rounds_)

    @property
    def offset_(self) -> Any:
        """Weighted mean score of the training rows; contributions are differences from it."""
        return self.intercept_ - self.ensemble_.constant + self.ensemble_.mean

    def fit_watched(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        query: Any = None,
        graded: bool = False,
        X_valid: Any,
        metric: Callable[[Floats], float],
        patience: int | None = None,
        every: int | None = None,
        callback: Callback | None = None,
    ) -> Floats:
        """Fit while evaluating other rows, and keep the number of rounds with the best value.

        Use it for early stopping on your own validation rows and your own metric.

        Parameters
        ----------
        X, y, sample_weight, groups, query, graded
            As for `fit`. No part of X is held out: `early_stopping_rounds` and `validation_fraction` have no effect.
        X_valid : array or table of shape (n_valid, n_features)
            Held-out rows.
        metric : callable (scores) -> float
            Takes the scores of these rows, up to a common constant. Higher is better.
        patience : int, optional
            Stop after this many rounds without a better value, at least 1. Default: take all rounds.
        every : int, optional
            Rounds from one evaluation to the next, at least 1. The last round is always evaluated. Default: 1, or more
            if there are more than 50,000 rows.
        callback : callable (step, of, info) -> None, optional
            As for `fit`. `info["metric"]` is the value of the metric.

        Returns
        -------
        ndarray of shape (n_tried,), float64
            The metric after each round that was tried; NaN where it was not computed. The ranker keeps the rounds up to
            the first maximum.
        """
        patience, every = plain_value((patience, every))
        for name, given in (("patience", patience), ("every", every)):
            if given is not None and (type(given) is not int or given < 1):
                raise InvalidParameter(
                    f"{name} must be an integer of at least 1, or None, got {given!r}"
                )
        with self._refitting() as fresh:
            return fresh._learn_watched(
                (X, y, sample_weight, groups, query, graded),
                X_valid,
                metric,
                patience,
                every,
                callback or ignore,
            )

    def _learn_watched(
        self,
        given: tuple[Any, ...],
        X_valid: Any,
        metric: Callable[[Floats], float],
        patience: int | None,
        every: int | None,
        callback: Callback,
    ) -> Floats:
        """Evaluate `metric` on X_valid while fitting; return its value after each evaluation."""
        rows = self._prepare(self._training_data(*given))
        plan = replace(self._plan(), patience=patience)
        if self._chooses(rows):
            plan = replace(self._first_plan(rows), n_rounds=MAX_ROUNDS)
            plan = replace(plan, patience=patience or PATIENCE)
        X_held_out = np.ascontiguousarray(self._matrix(X_valid, reset=False))
        shape = (len(X_held_out), *rows.positive.shape[1:])

        def evaluate(scores: Floats) -> float:
            return float(metric(scores.copy()))  # the metric must not change the scores

        evaluation = Evaluation(X_held_out, shape, len(X_held_out), evaluate, "metric")
        run = self._run_rounds(plan, rows, evaluation, callback, every)
        self._take_run(run, rows)
        self._validation_auc = np.empty(0)  # the metric need not be an AUC
        return run.validation_auc

    def score_rows(self, X: Floats) -> Floats:
        return self.ensemble_.score(X, self._algorithm_intercept)

    def score_mixed(self, mixed: MixedRows) -> Floats:
        return self.ensemble_.score_mixed(mixed, self._algorithm_intercept)

    def _contributions(self, X: Floats) -> Floats:
        return self.ensemble_.contributions(X)

    def shapley_values(self, X: Any) -> Floats:
        return self.ensemble_.shapley_values(self.checked_rows(X))

    def count_shapley_steps(self) -> int:
        return self.ensemble_.count_shapley_steps()

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Yield the scores of the rows after each round.

        Use it to plot a metric by the number of rounds.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Yields
        ------
        ndarray of shape (n_samples,), float64
            The scores of a ranker with that many rounds. The last equals decision_function(X), except for rounding.
        """
        rows = self.checked_rows(X)
        algorithm = self._algorithm()
        for log_f, scores in zip(self._log_f[1:], self.ensemble_.staged(rows), strict=True):
            yield scores + algorithm.intercept(log_f)

    def check_path_parameters(self) -> None:
        """Raise InvalidParameter unless one fit can return the rankers of all smaller numbers of rounds."""
        if self.early_stopping_rounds is not None:
            raise InvalidParameter(
                "early_stopping_rounds must be None if n_rounds is searched, because both choose the number "
                f"of rounds; got {self.early_stopping_rounds}"
            )

    def takes_categories(self) -> bool:
        return self._weak_learner().takes_categories

    def reads_columns(self) -> str | None:
        if not self._weak_learner().reads_columns:
            return f"weak_ranker {self.weak_ranker!r} reads the rows"
        if self.crosses:
            return "crosses read the rows"
        limit = self.target_encoding
        n_categories = self._n_categories() if hasattr(self, "categories_") else np.zeros(1, int)
        if self.weak_ranker == "tree" and limit is not None and (n_categories > limit).any():
            return f"target_encoding of more than {limit} categories reads the rows"
        return None

    def reads_shards(self) -> str | None:
        if self._weak_learner().reads_columns:
            return self.reads_columns()
        return f"weak_ranker {self.weak_ranker!r} is found in one process"

    def walk_monotone(self, directions: Directions) -> Verification:
        walk = self.ensemble_.walk_monotone(directions)
        return super().walk_monotone(directions) if walk is None else walk

    def combination(self) -> Combination | None:
        weights = self.ensemble_.binary_weights()
        if weights is None or (weights < 0).any():
            return None
        algorithm = self._algorithm()
        if not isinstance(algorithm, RankingAlgorithm) or algorithm.push != 1.0:
            return Combination(weights, None, None)
        return Combination(weights, self.rounds_["d_plus"].copy(), self.rounds_["d_minus"].copy())

    def structure(self) -> dict[str, Any]:
        """Describe the sum of weak rankers: its rules in words, its intercept and its final losses."""
        losses = exponential_losses(self._log_f[-1:], np.array([self._algorithm_intercept]))
        return {
            "type": self.ensemble_.type,
            "intercept": np.asarray(self.intercept_).tolist(),
            "offset": np.asarray(self.offset_).tolist(),
            "rounds": len(self.rounds_),
            **self._describe_trees(),
            "stop_reason": self.stop_reason_,
            "losses": {
                name: float(value[0]) if np.isfinite(value[0]) else None
                for name, value in losses._asdict().items()
            },
            "losses_of": LOSSES_ENCODED if self._encodes() else LOSSES_AS_SCORED,
            **self.ensemble_.describe(self._feature_name, self.categories_),
        }

    def _describe_trees(self) -> dict[str, Any]:
        if self.weak_ranker != "tree" or self.learning_rate_ is None:
            return {}
        return {
            "learning_rate": self.learning_rate_,
            "max_depth": self.max_depth_,
            "max_leaves": self.max_leaves_,
            "max_features": self.max_features_,
        }

    def _encodes(self) -> bool:
        """If so, training rows are scored by out-of-fold encodings."""
        if self.weak_ranker != "tree" or not hasattr(self, "classes_"):  # not of pairs
            return False
        limit = self.target_encoding
        is_crossed = isinstance(self.ensemble_, CrossedTreeSum) and self.ensemble_.crosses.n_columns
        return bool(is_crossed) or (
            limit is not None and bool((self._n_categories() > limit).any())
        )

    @abstractmethod
    def _algorithm(self) -> BoostingAlgorithm:
        """Return the boosting algorithm (step rule and loss) with the estimator's parameters."""

    def _weak_learner(self) -> type[WeakLearner]:
        return WEAK_LEARNERS[self.weak_ranker]

    def _learner_on(self, data: BoostingData) -> type[WeakLearner]:
        if isinstance(data, ListedPairs):
            return PAIR_LEARNERS[self.weak_ranker]
        return self._weak_learner() if data.query is None else QUERY_LEARNERS[self.weak_ranker]

    def _evaluation(self, data: BoostingData) -> Evaluation:
        return data.evaluation() if isinstance(data, ListedPairs) else evaluate(data)

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        rows = self._prepare(data)
        chooses = self._chooses(rows)
        if data.query is not None and rows.query is None:  # none can be held out
            if self.early_stopping_rounds is not None:
                raise InvalidData(
                    "early stopping requires rows of at least 2 queries, got 1: the rows of a query stay together"
                )
            if chooses:
                warn(
                    f"n_rounds was set to {DEFAULT_ROUNDS}: with only one query, none can be held out to choose it. "
                    "Set n_rounds, or add queries"
                )
            chooses = False
        if chooses:
            self._fit_chosen(rows, callback)
        else:
            self._fit_data(rows, callback)

    def _prepare(self, data: TrainingData) -> TrainingData:
        """Return the data grouped by query; a single query of two classes becomes ordinary rows."""
        if data.grade is None and (data.query is None or (data.query == data.query[0]).all()):
            return replace(data, query=None)
        return data.within_queries()

    def _fit_data(self, data: BoostingData, callback: Callback) -> None:
        """Use the number of rounds in the parameters; early stopping holds out some data."""
        plan = self._plan()
        held_out: BoostingData | None = None
        if plan.patience is not None:
            data, held_out = data.split_off(self.validation_fraction, self.random_state)
        self._take_run(self._run_on(plan, data, held_out, callback), data)

    def _fit_chosen(self, rows: TrainingData, callback: Callback) -> None:
        plan = self._first_plan(rows)
        try:
            parts = rows.split_off(self.validation_fraction, self.random_state)
        except InvalidData as error:
            if self.early_stopping_rounds is not None:
                raise
            warn(
                f"n_rounds was set to {DEFAULT_ROUNDS}, because it could not be chosen on held-out rows: {error}. Set "
                "n_rounds, or add rows of the rarer class"
            )
            self._fit_data(rows, callback)
            return
        first = self._run_on(plan, *parts, _part_of_progress(callback, 0, FIRST_ROUNDS))
        if first.stop_reason == "n_rounds" and plan.n_rounds < MAX_ROUNDS:
            # It was still improving: many small trees are not enough for this table.
            plan = self._larger_plan(plan)
            first = self._run_on(
                plan, *parts, _part_of_progress(callback, FIRST_ROUNDS, MAX_ROUNDS)
            )
        n_rounds = min(round(MORE_ROUNDS * len(first.ensemble.rounds)), MAX_ROUNDS)
        kept, reason = first, first.stop_reason
        if reason != "stopped" and n_rounds:
            del parts
            plan = replace(plan, n_rounds=n_rounds, patience=None)
            whole = self._run_on(
                plan, rows, None, _part_of_progress(callback, MAX_ROUNDS, 2 * MAX_ROUNDS)
            )
            # A stopped fit has fewer rounds than the best number: the validated fit is better.
            kept = first if whole.stop_reason == "stopped" else whole
            reason = "stopped" if kept is first else reason
        self._take_run(kept, rows)
        self._validation_auc, self.stop_reason_ = first.validation_auc, reason

    def _chooses(self, rows: TrainingData) -> bool:
        """Return whether the fit chooses the number of rounds: trees, with enough rows per class to hold some out."""
        if self.n_rounds is not None or self.weak_ranker != "tree":
            return False
        n_positives = int(rows.positive.sum())
        return min(n_positives, len(rows.positive) - n_positives) >= MIN_CLASS_ROWS

    def _plan(self) -> BoostingPlan:
        n_rounds = DEFAULT_ROUNDS if self.n_rounds is None else self.n_rounds
        rate = self._default_rate() if self.learning_rate is None else self.learning_rate
        if self.weak_ranker != "tree":
            return BoostingPlan(n_rounds, self.early_stopping_rounds, float(rate))
        return BoostingPlan(
            n_rounds,
            self.early_stopping_rounds,
            float(rate),
            max_depth=DEFAULT_DEPTH if self.max_depth is None else self.max_depth,
            max_leaves=DEFAULT_LEAVES if self.max_leaves == "auto" else self.max_leaves,
            max_features=1.0 if self.max_features is None else float(self.max_features),
        )

    def _first_plan(self, rows: TrainingData) -> BoostingPlan:
        plan = self._plan()
        rate, features = plan.learning_rate, plan.max_features
        if self.learning_rate is None:
            rate = CHOSEN_RATE
        if self.max_features is None and rows.X.shape[1] >= MIN_FEATURES:
            features = CHOSEN_FEATURES
        return replace(
            plan,
            n_rounds=FIRST_ROUNDS,
            patience=self.early_stopping_rounds or PATIENCE,
            learning_rate=rate,
            max_features=features,
            bounds_leaves=True,
        )

    def _larger_plan(self, plan: BoostingPlan) -> BoostingPlan:
        """Return more rounds and larger trees; values that the user set remain upper bounds."""
        depth, leaves = plan.max_depth, plan.max_leaves
        if self.max_leaves == "auto" and leaves is not None:
            leaves = min(MORE_LEAVES * leaves, MAX_LEAVES)
        if self.max_depth is None and depth is not None:
            depth = min(2 * depth, MAX_DEPTH)
        return replace(plan, n_rounds=MAX_ROUNDS, max_depth=depth, max_leaves=leaves)

    def _default_rate(self) -> float:
        raise NotImplementedError

    def _rate(self) -> float:
        rate = getattr(self, "learning_rate_", None)
        return self._plan().learning_rate if rate is None else rate

    def _run_on(
        self,
        plan: BoostingPlan,
        training: BoostingData,
        held_out: BoostingData | None,
        callback: Callback,
    ) -> BoostingRun:
        validation = None if held_out is None else self._evaluation(held_out)
        return self._run_rounds(plan, training, validation, callback)

    def _run_rounds(
        self,
        plan: BoostingPlan,
        data: BoostingData,
        validation: Evaluation | None,
        callback: Callback,
        every: int | None = None,
    ) -> BoostingRun:
        self.learning_rate_ = plan.learning_rate
        algorithm = self._algorithm()
        of_trees = (plan, callback) if self.weak_ranker == "tree" else ()
        learner = self._learner_on(data)(self, algorithm, data, *of_trees)
        if validation is not None:
            validation = validation._replace(X=learner.extend(validation.X))
        history = BoostingHistory.start(plan.n_rounds, learner.log_f)
        monitor = Monitor(
            history,
            callback,
            partial(algorithm.loss, start=np.array(learner.log_f)),
            partial(_sample, data, learner),
            learner.collect,
            validation,
            plan.patience or plan.n_rounds,
            every,
        )
        run = Boosting(learner, algorithm, history, monitor, self._known_sizes())

        def identify() -> bytes:
            """Return a hash of all inputs that determine the fit (a user's metric is excluded, since it is code)."""
            steps = np.array([every or 0])
            watched: tuple[Any, ...] = () if validation is None else (validation.X, steps)
            if validation is not None and isinstance(validation.X, StandIns):
                watched = (validation.X.is_taken, steps)
            planned = np.frombuffer(repr(plan).encode(), np.uint8)
            # A clock may have ended the search for crosses early.
            return identify_fit(self, *data.arrays(), *watched, planned, *learner.found)

        with offered(run, identify):
            history = run.run()
        if validation is not None:
            history = history.cut(monitor.best_round or len(history.weak_rankers))
        validation_auc = np.array(monitor.validation_auc, dtype=np.float64)
        used = replace(plan, max_leaves=learner.max_leaves)
        ensemble = learner.collect(history)
        return BoostingRun(used, ensemble, history.log_f, history.stop_reason, validation_auc)

    def _take_run(self, run: BoostingRun, data: BoostingData) -> None:
        plan = run.plan
        self.max_depth_, self.max_leaves_ = plan.max_depth, plan.max_leaves
        self.max_features_ = plan.max_features
        self.ensemble_, self.stop_reason_ = run.ensemble, run.stop_reason
        self._validation_auc = run.validation_auc
        self._log_f_plus, self._log_f_minus = run.log_f.T.copy()
        self._derive()

    def _known_sizes(self) -> dict[str, Any]:
        return super()._known_sizes() | {"ensemble_": self._weak_learner().ensemble_of(self)}

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        n_values, most = arrays["log_f_plus"].size, self._most_rounds
        if not 1 <= n_values <= most + 1:
            raise ArtifactError(
                f"log_f_plus must contain 1 to {most + 1} values (n_rounds and the start), got {n_values}"
            )
        super()._set_state(arrays, meta)
        values: list[Any] = [None] * 4
        if "chosen" in meta:
            values = list(StoredPlan.read(meta["chosen"]))
        elif not self._stores_values():
            plan = self._plan()
            values = [plan.learning_rate, plan.max_depth, plan.max_leaves, plan.max_features]
        self.learning_rate_, self.max_depth_, self.max_leaves_, self.max_features_ = values

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._get_state()
        if self._stores_values() and self.learning_rate_ is not None:
            values: list[Any] = [self.learning_rate_, self.max_depth_]
            values += [self.max_leaves_, self.max_features_]
            meta["chosen"] = write_state(StoredPlan(*values))[1]
        return arrays, meta

    def _stores_values(self) -> bool:
        """Return whether the artifact stores settings chosen by the fit, since the parameters do not determine them."""
        return bool(self.weak_ranker == "tree") and self.n_rounds is None

    @property
    def _most_rounds(self) -> int:
        return MAX_ROUNDS if self.n_rounds is None else int(self.n_rounds)

    def _restore(self) -> None:
        n_rounds, n_tried = len(self._log_f_plus) - 1, len(self._validation_auc)
        most = self._most_rounds
        least = 0 if self.n_rounds is None else n_rounds  # a fit on all rows may have more
        if n_tried and not least <= n_tried <= most:
            raise ArtifactError(
                f"validation_auc must contain {least} to {most} values, got {n_tried}"
            )
        self._derive()

    def _derive(self) -> None:
        algorithm = self._algorithm()
        self._log_f = log_f = np.column_stack([self._log_f_plus, self._log_f_minus])
        self._algorithm_intercept = algorithm.intercept(log_f[-1])
        self.rounds_ = self.ensemble_.rounds
        self.intercept_ = self._algorithm_intercept + self.ensemble_.constant
        self.loss_ = np.array(
            [algorithm.loss(row, log_f[0]) for row in log_f[1:]], dtype=np.float64
        )


@dataclass(kw_only=True, eq=False, repr=False)
class TreeBooster(TreeParameters, Booster):
    """Base class of boosters whose weak rankers are always trees."""

    weak_ranker: Annotated[
        Literal["tree"], Doc("The weak ranker of each round: a tree. With depth 1 it is a stump.")
    ] = "tree"
    learning_rate: Annotated[
        float | None,
        Gt(0),
        Le(1),
        Doc(
            "Fraction of the optimal step that a round takes. None: 0.1, or 0.05 if the fit chooses the number of "
            "rounds."
        ),
    ] = None

    def check_parameters(self) -> None:
        check_shape(self.max_depth, self.max_leaves)

    def _default_rate(self) -> float:
        return TREE_RATE


class ExponentialBooster(Booster):
    """Base class of boosters of an exponential loss over rows or pairs; it reports both losses."""

    @property
    def validation_auc_(self) -> Floats:
        """AUC of the validation part after each round."""
        return self._validation_auc

    @property
    def f_(self) -> Floats:
        """F = F₊ + F₋, the loss of AdaBoost, after each round; shape (n_taken,), float64."""
        return self._losses().f

    @property
    def f_skew_(self) -> Floats:
        """F₊ - F₋ after each round; shape (n_taken,), float64."""
        return self._losses().f_skew

    @property
    def f_tilde_(self) -> Floats:
        """F̃ = F₊ F₋, the loss of RankBoost, after each round; shape (n_taken,), float64."""
        return self._losses().f_tilde

    @property
    def log_f_tilde_(self) -> Floats:
        """ln F̃ after each round; finite even if F̃ is too small for a double."""
        return np.asarray(self._log_f[1:].sum(axis=1))

    def _losses(self) -> Losses:
        check_is_fitted(self)
        intercept, log_f = self._algorithm().intercept, self._log_f[1:]
        return exponential_losses(
            log_f, np.array([intercept(row) for row in log_f], dtype=np.float64)
        )


class PairBooster(ExponentialBooster):
    """Base class of boosters whose loss is over pairs, so that they can learn from a list of pairs."""

    takes_query = True
    takes_grades = True

    push: float = 1.0

    def check_lists(self, *, query: bool, graded: bool) -> None:
        super().check_lists(query=query, graded=graded)
        if not (query or graded):
            return
        what = "a query" if query else "grades"
        if self.weak_ranker not in QUERY_LEARNERS:
            raise InvalidParameter(
                f"weak_ranker must be {' or '.join(QUERY_LEARNERS)} with {what}, got {self.weak_ranker!r}"
            )
        if self.push != 1.0:
            raise InvalidParameter(f"push must be 1 with {what}, got {self.push}")

    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        pair_weight: Any = None,
        *,
        groups: Any = None,
        callback: Callback | None = None,
    ) -> Self:
        """Fit on a list of preferences: learn to score the better item of each pair above the worse one.

        Use it if you have comparisons instead of labels. With all pairs of a positive and a negative, it finds the same
        rounds as `fit`, but takes time in the number of pairs.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            The items, as for `fit`. Items that occur in no pair of positive weight count as absent.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers of X, (better, worse). Cycles and contradictions are allowed. A pair that occurs twice counts
            twice.
        pair_weight : array-like of float, shape (n_pairs,), optional
            Finite, not negative. A pair of weight k counts as k pairs.
        groups : array-like of shape (n_samples,), optional
            Numbers, booleans or text, one per item. Items of one group are held out together; without groups, equal
            items are.
        callback : callable (step, of, info) -> None, optional
            Called after each round, counted from 1. `info` has the loss, "training_auc" (the fraction of pairs in
            order, on a sample) and, where computed, "validation_auc". An exception raised here ends the fit and reaches
            the caller; `StopFit` ends it and keeps the rounds so far.

        Returns
        -------
        self
            Scores have no natural zero: `intercept_` is 0, there are no `classes_`, and `predict` raises an error. f_
            is 2√F̃ and f_skew_ is 0, as Corollary 13 gives for two classes.

        Raises
        ------
        InvalidParameter
            A parameter breaks its rule, or has no meaning for pairs, such as `push`.
        InvalidData
            X, pairs, pair_weight or groups break one of the rules above.

        Notes
        -----
        Stumps take O(n_rounds · n_features · n_pairs), compared with O(n_rounds · n_features · n_samples) for `fit`.
        Trees work on items and take the time of `fit` plus O(n_rounds · n_pairs). Memory is linear in the number of
        pairs.

        Early stopping holds out items with all of their pairs (`pairs.ListedPairs.split_off`). `validation_auc_` is the
        weighted fraction of the held-out pairs in order.
        """
        with self._refitting() as fresh:
            fresh._learn_pairs(X, pairs, pair_weight, groups, callback or ignore)
        return self

    def _learn_pairs(
        self, X: Any, pairs: Any, pair_weight: Any, groups: Any, callback: Callback
    ) -> None:
        check_values(type(self), self.get_params(deep=False))
        self.check_pair_parameters()
        matrix = self._matrix(X, reset=True)
        checked = check_pairs(pairs, pair_weight, len(matrix))
        occurs = np.union1d(checked.better, checked.worse)
        matrix, self.categories_ = keep_present(matrix, self.categories_, occurs)
        group = check_groups(groups, len(matrix))
        listed = ListedPairs.of(matrix, checked, self._n_categories(), group)
        self._fit_data(listed, callback)

    def check_pair_parameters(self) -> None:
        """Raise InvalidParameter unless the parameters allow `fit_pairs`."""
        self.check_parameters()
        if self.push != 1.0:
            raise InvalidParameter(f"push must be 1 for pairs, got {self.push}")


def _sample(data: BoostingData, learner: WeakLearner) -> Evaluation:
    """Return an evaluation on a sample of the training data, with the sampled rows in memory."""
    sample = data.sample() if isinstance(data, ListedPairs) else evaluate(draw_sample(data))
    if isinstance(sample.X, ColumnTable):
        return sample._replace(X=learner.extend(sample.X).all())
    return sample


def _part_of_progress(callback: Callback, first: int, last: int) -> Callback:
    if callback is ignore:
        return ignore

    def report(step: int, of: int, info: Mapping[str, float]) -> None:
        callback(first + (last - first) * step // of, 2 * MAX_ROUNDS, info)

    return report
