"""The boosting loop (weights -> weak ranker -> step -> update), the weak learners' interface, and progress reports."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from core.base.checkpoint import Resumable
from core.base.columns import ColumnTable
from core.base.mixed import MixedRows
from core.base.monotone import Directions, Verification
from core.base.ranker import Callback, Floats, StopFit, ignore, warn_stopped
from core.base.state import Arrays, Known, State, put_under, take_from
from core.base.table import Categories
from core.coding.best_split import MIN_EDGE
from core.coding.stored import StandIns, StoredCodes
from core.errors import ArtifactError
from core.metrics.window import MIN_RISE

from .data import Evaluation

StopReason = Literal["n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"]

# Fraction of the weight that counts as wrong when nothing is wrong: the spacing of doubles at 1.
EPS_MASS = 2.0**-52


class WeakRanker(Protocol):
    """Interface of a weak ranker h: its values on rows, and its weights d+ and d- of correct and wrong pairs.

    d_plus, d_minus: float; mass that h gets right and wrong, under the weights that it was chosen by; NaN for a tree.
    """

    @property
    def d_plus(self) -> float: ...

    @property
    def d_minus(self) -> float: ...

    def values(self, X: Floats) -> Floats:
        """Return h(x) of each row, shape (n_rows,); the score grows by alpha h(x)."""


class BoostingHistory(NamedTuple):
    """History of one boosting run: one entry per round."""

    weak_rankers: list[Any]
    """The weak ranker of each round."""
    alpha: list[float]
    """The step of each round."""
    log_f: Floats
    """ln F₊ and ln F₋ at the start and after each round; see `WeakLearner.log_f`. Shape (n_taken + 1, 2)."""
    stop_reason: StopReason
    """"n_rounds"; "no_edge": no weak ranker gets more weight right than wrong; "perfect_ranker": the last one gets
    everything right, so that no weights could ask for another; "validation": the validation scores have not improved
    for `patience` rounds; "stopped": a callback raised `StopFit`."""

    @classmethod
    def start(cls, n_rounds: int, log_f: tuple[float, float]) -> "BoostingHistory":
        history = cls([], [], np.empty((n_rounds + 1, 2)), "n_rounds")
        history.log_f[0] = log_f
        return history

    def cut(self, n_rounds: int) -> "BoostingHistory":
        return BoostingHistory(
            self.weak_rankers[:n_rounds],
            self.alpha[:n_rounds],
            self.log_f[: n_rounds + 1],
            self.stop_reason,
        )

    def ended(self, stop_reason: StopReason) -> "BoostingHistory":
        """Return the history without the unused room, and with the reason why the run ended."""
        return self.cut(len(self.weak_rankers))._replace(stop_reason=stop_reason)


class Ensemble(State, ABC):
    """The weighted sum Σ α_t h_t of the weak rankers of a run.

    constant: float, or shape (n_labels,); the part of the sum that is equal for all rows.
    mean: float, or shape (n_labels,); weighted mean of the sum over the training rows.
    """

    type: ClassVar[str]
    """Name of the sum in `structure`."""
    rounds: npt.NDArray[np.void]
    """One record per round, with at least the fields alpha, d_plus and d_minus. Shape (n_rounds,)."""
    constant: Any
    mean: Any

    @abstractmethod
    def score(self, X: Floats, intercept: float) -> Floats:
        """Return intercept + Σ α_t h_t(x) of each row, without checks; X is C-contiguous."""

    def score_mixed(self, mixed: MixedRows, intercept: float) -> Floats:
        """Return the scores of mixed rows; equal to `score` of the expanded table up to rounding."""
        return self.score(mixed.table, intercept)

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... weak rankers for each row; each array is new."""
        scores: Any = 0.0
        for weak_ranker, alpha in zip(
            self.weak_rankers(), self.rounds["alpha"].tolist(), strict=True
        ):
            scores = scores + alpha * weak_ranker.values(X)
            yield scores

    @abstractmethod
    def contributions(self, X: Floats) -> Floats:
        """Return a contribution per row and feature, shape of X; a row's score is `mean` plus its contributions."""

    def shapley_values(self, X: Floats) -> Floats:
        """Return the Shapley values of each row's features; by default its contributions."""
        return self.contributions(X)

    def count_shapley_steps(self) -> int:
        """Return the most elementary steps of one row's Shapley values; 0 if they cost no more than contributions."""
        return 0

    @abstractmethod
    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Return a JSON description of the sum; `name` maps a feature index to its name."""

    @abstractmethod
    def weak_rankers(self) -> list[Any]:
        """Return h_t of each round; for trees alpha_t h_t, since their leaves hold the step."""

    def walk_monotone(self, directions: Directions) -> Verification | None:
        """Return where the sum violates monotone constraints; None if it cannot be verified from its parts."""
        return None

    def binary_weights(self) -> Floats | None:
        """Return each weak ranker's rise from its lower to its higher value; None if one has more than two values."""
        return None


class LoopState(NamedTuple):
    """The state of the loop that a step size may depend on, apart from the weak ranker."""

    log_f_plus: float
    log_f_minus: float
    """See `WeakLearner.log_f`."""
    norm: float
    """‖λ‖₁, the sum of the steps."""


@dataclass(kw_only=True)
class BoostingAlgorithm(ABC):
    """A boosting algorithm: how to choose the step along a weak ranker, and how to compute the loss."""

    learning_rate: float = 1.0
    """Fraction of the step that is taken."""
    smoothing: float = 0.0
    """ε in ½ ln((d+ + ε)/(d- + ε))."""

    def step(self, weak_ranker: WeakRanker, state: LoopState) -> float:
        """Return the step alpha along a weak ranker: by default eq. 4 of Rudin & Schapire 2009, smoothed."""
        return self.learning_rate * log_ratio(
            weak_ranker.d_plus, weak_ranker.d_minus, self.smoothing
        )

    @abstractmethod
    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return the loss, given (ln F₊, ln F₋) now and at the start."""

    def intercept(self, log_f: Floats) -> float:
        """Return the constant that is added to f, so that 0 separates the classes."""
        return 0.0


def log_ratio(d_plus: float, d_minus: float, smoothing: float = 0.0) -> float:
    """Return ½ ln((d+ + ε)/(d- + ε)), ε = `smoothing`; without it, at most ½ ln(2^52) ≈ 18, as for d- = 0."""
    if smoothing == 0.0 and d_minus == 0.0:
        smoothing = EPS_MASS
    return 0.5 * math.log((d_plus + smoothing) / (d_minus + smoothing))


class WeakLearner(Resumable, ABC):
    """Base class of weak learners: the weighted training rows or pairs, and the search for the best weak ranker.

    parameters: a booster; a weak learner reads the parameters that it knows.
    algorithm: of the class that the weak learner needs.
    data: training data; the weights are those at f = 0.
    of_trees: the plan and the callback of the fit; of trees alone.
    """

    ensemble: type[Ensemble]
    """Class of the sum of its weak rankers."""

    takes_categories: ClassVar[bool] = True
    """Whether it can learn from categorical features."""

    reads_columns: ClassVar[bool] = False
    """Whether it can learn from a table that is read column by column, from sums over shards of its codes."""

    _stored: StoredCodes | None = None
    """The codes of such a table."""

    max_leaves: int | None = None
    """Of its trees."""

    @abstractmethod
    def __init__(self, parameters: Any, algorithm: Any, data: Any, *of_trees: Any) -> None: ...

    @classmethod
    def ensemble_of(cls, parameters: Any) -> type[Ensemble]:
        """Return the class of the sum of this learner's weak rankers, given a booster's parameters."""
        return cls.ensemble

    @property
    def found(self) -> tuple[npt.NDArray[Any], ...]:
        """Arrays that the learner derived from the data before the first round, if they may depend on run time."""
        return ()

    def extend(self, X: Any) -> Any:
        """Add the columns of crosses, if any. Rows of a table read by columns become stand-ins with equal scores."""
        if not isinstance(X, ColumnTable):
            return X
        assert self._stored is not None
        return self._stored.stand_ins(X)

    @property
    @abstractmethod
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ = Σ w_i e^{-f(x_i)} over positives and F₋ = Σ w_k e^{f(x_k)} over negatives.

        For listed pairs both are half the logarithm of F̃, as if two classes shared it; ½ ln(F₊/F₋) is then 0.
        """

    @abstractmethod
    def scan(self) -> Any:
        """Return the best weak ranker under the present weights; None if none has an edge."""

    @abstractmethod
    def update(self, weak_ranker: Any, alpha: float) -> None:
        """Add alpha h to the scores f, where h is the last result of `scan`, and reweight the rows or pairs."""

    @abstractmethod
    def collect(self, history: BoostingHistory) -> Ensemble:
        """Return the weighted sum of the weak rankers of all rounds."""


def rounds_of(history: BoostingHistory, dtype: np.dtype[Any]) -> npt.NDArray[np.void]:
    """Return a run's rounds as a structured array: the step alpha and the weak rankers' attributes named in dtype."""
    rounds = np.zeros(len(history.weak_rankers), dtype=dtype)
    for name in dtype.names or ():
        if name == "alpha":
            rounds[name] = history.alpha
        elif history.weak_rankers and hasattr(history.weak_rankers[0], name):
            rounds[name] = [getattr(weak_ranker, name) for weak_ranker in history.weak_rankers]
    return rounds


def fields_of(row: np.void, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name].item() for name in names}


# Rows (or pairs) up to which the validation AUC, which costs a sort, is computed after every round; with k times as
# many it is computed after every k-th round.
VALIDATED_EVERY_ROUND = 50_000

MetricEstimates = dict[str, float | Callable[[], float]]


class Boosting(Resumable):
    """A run of the boosting loop, which can be checkpointed after any round and resumed.

    A checkpoint holds the rounds as an artifact does: the arrays of the sum of their weak rankers, each with step 1.

    learner: before the first round; changed in place.
    history: empty; filled in place.
    monitor: of the same `history`.
    known: what is needed to read the learner's ensemble, but for the number of rounds; see `State.from_arrays`.
    """

    changing = ("learner", "_monitor")

    def __init__(
        self,
        learner: WeakLearner,
        algorithm: BoostingAlgorithm,
        history: BoostingHistory,
        monitor: "Monitor",
        known: Known,
    ) -> None:
        self.learner = learner
        self._algorithm = algorithm
        self._monitor = monitor
        self._known_sizes = known
        self._history = history

    def run(self) -> BoostingHistory:
        if self._monitor.ended:
            return self._history.ended("validation")
        learner, history = self.learner, self._history
        norm = 0.0
        for alpha in history.alpha:  # as below: `sum` rounds otherwise from Python 3.12 on
            norm += alpha
        reason = self._end()
        while reason is None:
            taken = len(history.weak_rankers)
            log_f_plus, log_f_minus = history.log_f[taken].tolist()
            weak_ranker = learner.scan()
            if weak_ranker is None:
                return history.ended("no_edge")
            alpha = self._algorithm.step(weak_ranker, LoopState(log_f_plus, log_f_minus, norm))
            learner.update(weak_ranker, alpha)
            norm += alpha
            history.weak_rankers.append(weak_ranker)
            history.alpha.append(alpha)
            history.log_f[taken + 1] = learner.log_f
            reason = self._monitor(taken + 1) or self._end()
        return history.ended(reason)

    def get_state(self) -> Arrays:
        history = self._history
        unit = history._replace(alpha=[1.0] * len(history.weak_rankers))
        state = super().get_state() | put_under("rounds.", self.learner.collect(unit).arrays())
        state["alpha"] = np.array(history.alpha, dtype=np.float64)
        state["log_f"] = history.log_f[: len(history.weak_rankers) + 1]
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        rest = {name: array for name, array in state.items() if not name.startswith("rounds.")}
        try:
            alpha, log_f = rest.pop("alpha"), rest.pop("log_f")
            known = {**self._known_sizes, "n_rounds": len(alpha)}
            rounds = self.learner.ensemble.from_arrays(take_from("rounds.", state), known)
        except KeyError as error:
            raise ArtifactError(f"a checkpoint must contain {error}") from error
        room = len(self._history.log_f)
        if log_f.shape != (len(alpha) + 1, 2) or len(log_f) > room:
            raise ArtifactError(
                f"log_f must contain 2 numbers for the start and each of {len(alpha)} rounds, "
                f"{room - 1} at most, got shape {log_f.shape}"
            )
        super().set_state(rest)
        self._history.weak_rankers[:], self._history.alpha[:] = (
            rounds.weak_rankers(),
            alpha.tolist(),
        )
        self._history.log_f[: len(log_f)] = log_f

    def check_state(self, state: Mapping[str, Any]) -> None:
        for name in self.changing:
            getattr(self, name).check_state(take_from(f"{name}.", state))

    def _end(self) -> StopReason | None:
        history = self._history
        last = history.weak_rankers[-1] if history.weak_rankers else None
        if last is not None and last.d_minus == 0.0 and last.d_plus >= 1.0 - MIN_EDGE:
            return "perfect_ranker"
        return "n_rounds" if len(history.weak_rankers) == len(history.log_f) - 1 else None


class Monitor(Resumable):
    """Monitors a run: reports progress, and stops it on the validation metric or at the callback's request.

    history: of the run; filled by it.
    callback: callable (step, of, info) -> None; called after each round with the loss, the training AUC on a sample
        (both computed when they are read), and the validation AUC if it was computed.
    loss: callable (log_f) -> float.
    sample: callable () -> Evaluation; returns the sample; called if there is a callback.
    collect: callable BoostingHistory -> Ensemble; returns the sum of rounds, to score the sample.
    patience: rounds without a higher validation AUC before the run ends.
    every: rounds from one validation AUC to the next; None: by `VALIDATED_EVERY_ROUND`.
    validation_auc: list of float; one value per round, NaN if it was not computed; empty without a validation part.
    best_round: int; number of rounds with the highest validation AUC, the first among equals; 0 if it was never
        computed.
    ended: bool; whether validation says that the run should end.
    """

    changing = ("_scores", "_best", "validation_auc", "best_round", "ended")

    def __init__(
        self,
        history: BoostingHistory,
        callback: Callback,
        loss: Callable[[Floats], float],
        sample: Callable[[], Evaluation],
        collect: Callable[[BoostingHistory], Ensemble],
        validation: Evaluation | None,
        patience: int,
        every: int | None = None,
    ) -> None:
        self._history = history
        self._n_rounds = len(history.log_f) - 1
        self._callback = callback
        self._loss = loss
        self._sample = None if callback is ignore else SampleScores(history, sample(), collect)
        self._validation = validation
        self._scores: Floats | None = None  # of the validation part
        self._patience = patience
        self._every = every or 1
        if validation is not None:
            self._scores = np.zeros(validation.shape)
            self._every = every or math.ceil(validation.size / VALIDATED_EVERY_ROUND)
        self._best = -math.inf
        self.validation_auc: list[float] = []
        self.best_round = 0
        self.ended = False

    def __call__(self, taken: int) -> StopReason | None:
        """Note the round that learner and history have just completed; return why the run should end, or None."""
        metrics: MetricEstimates = {"loss": partial(self._loss, self._history.log_f[taken])}
        self.ended = self._validate(taken, metrics)
        if self._sample is not None:
            metrics["training_auc"] = partial(self._sample.auc, taken)
            try:
                self._callback(taken, self._n_rounds, RoundMetrics(metrics))
            except StopFit:
                if taken < self._n_rounds and not self.ended:
                    warn_stopped(taken, self._n_rounds, "rounds")
                    return "stopped"
        return "validation" if self.ended else None

    def _validate(self, taken: int, metrics: MetricEstimates) -> bool:
        if self._validation is None or self._scores is None:
            return False
        weak_ranker, alpha = self._history.weak_rankers[taken - 1], self._history.alpha[taken - 1]
        X = self._validation.X
        values = weak_ranker.values
        self._scores += alpha * (X.apply(values) if isinstance(X, StandIns) else values(X))
        if taken % self._every and taken < self._n_rounds:
            self.validation_auc.append(math.nan)
            return False
        now = metrics[self._validation.name] = self._validation.metric(self._scores)
        self.validation_auc.append(now)
        if now > self._best + MIN_RISE:
            self._best, self.best_round = now, taken
        return taken - self.best_round >= self._patience


class SampleScores:
    """The AUC of a sample after any number of rounds, computed on request; any thread may ask during the fit.

    history: of the run; filled by it.
    collect: callable BoostingHistory -> Ensemble; returns the sum of rounds.
    """

    def __init__(
        self,
        history: BoostingHistory,
        sample: Evaluation,
        collect: Callable[[BoostingHistory], Ensemble],
    ) -> None:
        self._history = history
        self._sample = sample
        self._collect = collect
        self._taken = 0
        self._scores = np.zeros(sample.shape)
        self._lock = threading.Lock()  # each answer changes the state that the next one starts from

    def auc(self, taken: int) -> float:
        with self._lock:
            if taken < self._taken:
                self._taken, self._scores = 0, np.zeros(self._sample.shape)
            if taken > self._taken:
                new = slice(self._taken, taken)
                history = self._history._replace(
                    weak_rankers=self._history.weak_rankers[new], alpha=self._history.alpha[new]
                )
                self._scores += self._collect(history).score(self._sample.X, 0.0)
                self._taken = taken
            return self._sample.metric(self._scores)


class RoundMetrics(Mapping[str, float]):
    """The metrics of a round by name. A function is called when its value is first read, and keeps its inputs until
    then; `dict` and pickle compute all.
    """

    def __init__(self, metrics: MetricEstimates) -> None:
        self._metrics = metrics

    def __getitem__(self, name: str) -> float:
        metric = self._metrics[name]
        if callable(metric):
            metric = self._metrics[name] = metric()
        return metric

    def __contains__(self, name: object) -> bool:
        return name in self._metrics

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, float]], tuple[dict[str, float]]]:
        return dict, (dict(self),)
