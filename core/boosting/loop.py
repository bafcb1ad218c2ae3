"""The loop of boosting, weights -> weak ranker -> step -> update, what it asks of weak learners, and its progress."""

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
from core.base.ranker import Callback, Floats, StopFit, ignore, warn_stopped
from core.base.state import Arrays, Known, State, put_under, take_from
from core.base.table import Categories
from core.errors import ArtifactError

from .data import Evaluation

StopReason = Literal["n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"]

# The least share of the weight that counts as wrong when nothing is: the spacing of doubles.
NEVER_WRONG = 2.0**-52

# An edge d+ - d- below this is rounding, not knowledge.
MIN_EDGE = 1e-12


class WeakRanker(Protocol):
    """A weak ranker h.

    Attributes
    ----------
    d_plus, d_minus : float
        Mass that h gets right and wrong under the weights it was found by. NaN where they mean nothing.
    """

    @property
    def d_plus(self) -> float: ...

    @property
    def d_minus(self) -> float: ...

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row; the score grows by alpha times that."""


class Path(NamedTuple):
    """The rounds of a run of the loop.

    Attributes
    ----------
    found : list of WeakRanker
        The weak ranker of each round.
    alpha : list of float
        The step of each round.
    log_f : ndarray of shape (n_taken + 1, 2), float64
        ln F₊ and ln F₋ at the start and after each round; see `WeakLearner.log_f`.
    stop_reason : str
        "n_rounds"; "no_edge": no weak ranker gets more weight right than wrong; "perfect_ranker":
        the last one gets everything right, so that no weights could ask for another; "validation":
        the scores of the validation part have not become better for long; "stopped": a callback
        raised `StopFit`.
    """

    found: list[Any]
    alpha: list[float]
    log_f: Floats
    stop_reason: StopReason

    @classmethod
    def start(cls, n_rounds: int, log_f: tuple[float, float]) -> "Path":
        """Make room for rounds."""
        path = cls([], [], np.empty((n_rounds + 1, 2)), "n_rounds")
        path.log_f[0] = log_f
        return path

    def cut(self, n_rounds: int) -> "Path":
        """Keep the first rounds only."""
        return Path(
            self.found[:n_rounds],
            self.alpha[:n_rounds],
            self.log_f[: n_rounds + 1],
            self.stop_reason,
        )

    def ended(self, stop_reason: StopReason) -> "Path":
        """Leave out the room for rounds that were not taken, and say why."""
        return self.cut(len(self.found))._replace(stop_reason=stop_reason)


class Ensemble(State, ABC):
    """Σ α_t h_t: a weighted sum of weak rankers of one kind.

    Attributes
    ----------
    type : str
        How `structure` calls it.
    rounds : structured ndarray of shape (n_rounds,)
        What each round has added, for the reader; it has the fields alpha, d_plus and d_minus.
    constant : float, or ndarray of shape (n_labels,)
        What the sum gives to every row alike.
    mean : float, or ndarray of shape (n_labels,)
        The sum's weighted mean over the rows that it was fitted on.
    """

    type: ClassVar[str]
    rounds: npt.NDArray[np.void]
    constant: Any
    mean: Any

    @abstractmethod
    def score(self, X: Floats, intercept: float) -> Floats:
        """Give intercept + Σ α_t h_t(x) of each row, unchecked; X is C-contiguous."""

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... weak rankers on each row; each array is new."""
        scores: Any = 0.0
        for found, alpha in zip(self.weak_rankers(), self.rounds["alpha"].tolist(), strict=True):
            scores = scores + alpha * found.values(X)
            yield scores

    @abstractmethod
    def contributions(self, X: Floats) -> Floats:
        """Give a part per row and feature; `mean` and a row's parts add up to its sum."""

    @abstractmethod
    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe the sum in words, ready for JSON; `name` names a feature."""

    @abstractmethod
    def weak_rankers(self) -> list[Any]:
        """Give h_t of each round; of trees, whose leaves hold their step, alpha_t h_t."""

    def binary_weights(self) -> Floats | None:
        """Give what each weak ranker adds where it says 1 over where it says 0; None where they take more values."""
        return None


class LoopState(NamedTuple):
    """What a step may depend on besides its weak ranker.

    Attributes
    ----------
    log_f_plus, log_f_minus : float
        See `WeakLearner.log_f`.
    norm : float
        ‖λ‖₁, the sum of the steps.
    """

    log_f_plus: float
    log_f_minus: float
    norm: float


@dataclass(kw_only=True)
class BoostingAlgorithm(ABC):
    """What tells one booster from another, whatever its weak rankers: its step and its loss.

    Parameters
    ----------
    learning_rate : float
        Share of the step that is taken.
    smoothing : float
        ε in ½ ln((d+ + ε)/(d- + ε)).
    """

    learning_rate: float = 1.0
    smoothing: float = 0.0

    def step(self, found: WeakRanker, state: LoopState) -> float:
        """Give alpha, the step along a weak ranker: eq. 4 of Rudin & Schapire 2009, smoothed."""
        return self.learning_rate * log_ratio(found.d_plus, found.d_minus, self.smoothing)

    @abstractmethod
    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give the loss from (ln F₊, ln F₋), now and at the start."""

    def intercept(self, log_f: Floats) -> float:
        """Give what is added to f, so that 0 parts the classes."""
        return 0.0


def log_ratio(d_plus: float, d_minus: float, smoothing: float = 0.0) -> float:
    """Give ½ ln((d+ + ε)/(d- + ε)).

    Plain, it is infinite where d- = 0: there the step is cut off at ½ ln(2^52) ≈ 18.
    """
    if smoothing == 0.0 and d_minus == 0.0:
        smoothing = NEVER_WRONG
    return 0.5 * math.log((d_plus + smoothing) / (d_minus + smoothing))


class WeakLearner(Resumable, ABC):
    """The training rows or pairs with their weights, and the search for the best weak ranker under them.

    Parameters
    ----------
    parameters : object
        A booster, of which it reads the parameters that it knows.
    algorithm : loop.BoostingAlgorithm
        The algorithm's, of the type that the weak learner needs.
    data : data.Rows or data.ListedPairs
        Laid out at f = 0.
    """

    ensemble: ClassVar[type[Ensemble]]
    """What its weak rankers are summed up as."""

    takes_categories: ClassVar[bool] = True
    """Whether it can do with categorical features."""

    @abstractmethod
    def __init__(self, parameters: Any, algorithm: Any, data: Any) -> None: ...

    @property
    @abstractmethod
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ = Σ w_i e^{-f(x_i)} over positives and F₋ = Σ w_k e^{f(x_k)} over negatives.

        Of listed pairs half the logarithm of F̃ each: two classes would share it out so, and ½ ln(F₊/F₋) is 0.
        """

    @abstractmethod
    def scan(self) -> Any:
        """Find the best weak ranker under the present weights; None without an edge."""

    @abstractmethod
    def update(self, found: Any, alpha: float) -> None:
        """Let f grow by alpha h, h being what `scan` gave last, and reweigh."""

    @abstractmethod
    def collect(self, path: Path) -> Ensemble:
        """Sum up the weak rankers of a run of the loop."""


def rounds_of(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[np.void]:
    """Write rounds as a structured array: alpha, and by their names what the weak rankers have."""
    rounds = np.zeros(len(path.found), dtype=dtype)
    for name in dtype.names or ():
        if name == "alpha":
            rounds[name] = path.alpha
        elif path.found and hasattr(path.found[0], name):
            rounds[name] = [getattr(found, name) for found in path.found]
    return rounds


def fields_of(row: np.void, names: tuple[str, ...]) -> dict[str, Any]:
    """Read fields of a round as Python's numbers."""
    return {name: row[name].item() for name in names}


# The validation AUC costs a sort: after each round, on more rows or pairs than this less often.
ROWS_A_ROUND = 50_000

# An AUC counts as higher only if it is so by more than rounding.
MIN_RISE = 1e-9

Figures = dict[str, float | Callable[[], float]]


class Boosting(Resumable):
    """A run of the loop. It can be stopped after any round, and go on later.

    In a checkpoint the rounds are the arrays of an artifact: the sum of their weak rankers, each with a step of 1.

    Parameters
    ----------
    learner : WeakLearner
        At f = 0; changed in place.
    algorithm : BoostingAlgorithm
    path : Path
        Without rounds; filled in place.
    monitor : Monitor
        Of the same path.
    known : mapping
        What the reader of the learner's ensemble knows but the number of rounds; see `State.from_arrays`.
    """

    changing = ("learner", "_monitor")

    def __init__(
        self,
        learner: WeakLearner,
        algorithm: BoostingAlgorithm,
        path: Path,
        monitor: "Monitor",
        known: Known,
    ) -> None:
        self.learner = learner
        self._algorithm = algorithm
        self._monitor = monitor
        self._known = known
        self._path = path

    def run(self) -> Path:
        """Take the rounds that are left."""
        if self._monitor.ended:
            return self._path.ended("validation")
        learner, path = self.learner, self._path
        norm = 0.0
        for alpha in path.alpha:  # as below: `sum` rounds otherwise from Python 3.12 on
            norm += alpha
        reason = self._end()
        while reason is None:
            taken = len(path.found)
            log_f_plus, log_f_minus = path.log_f[taken].tolist()
            found = learner.scan()
            if found is None:
                return path.ended("no_edge")
            alpha = self._algorithm.step(found, LoopState(log_f_plus, log_f_minus, norm))
            learner.update(found, alpha)
            norm += alpha
            path.found.append(found)
            path.alpha.append(alpha)
            path.log_f[taken + 1] = learner.log_f
            reason = self._monitor(taken + 1) or self._end()
        return path.ended(reason)

    def get_state(self) -> Arrays:
        """Give what the rounds have changed; see `Resumable`."""
        path = self._path
        unit = path._replace(alpha=[1.0] * len(path.found))
        state = super().get_state() | put_under("rounds.", self.learner.collect(unit).arrays())
        state["alpha"] = np.array(path.alpha, dtype=np.float64)
        state["log_f"] = path.log_f[: len(path.found) + 1]
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to where another run was."""
        rest = {name: array for name, array in state.items() if not name.startswith("rounds.")}
        try:
            alpha, log_f = rest.pop("alpha"), rest.pop("log_f")
            known = {**self._known, "n_rounds": len(alpha)}
            rounds = self.learner.ensemble.from_arrays(take_from("rounds.", state), known)
        except KeyError as error:
            raise ArtifactError(f"a checkpoint must hold {error}") from error
        room = len(self._path.log_f)
        if log_f.shape != (len(alpha) + 1, 2) or len(log_f) > room:
            raise ArtifactError(
                f"log_f must hold 2 numbers for the start and each of {len(alpha)} rounds, "
                f"{room - 1} at most, got shape {log_f.shape}"
            )
        super().set_state(rest)
        self._path.found[:], self._path.alpha[:] = rounds.weak_rankers(), alpha.tolist()
        self._path.log_f[: len(log_f)] = log_f

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse what is no state of learner and monitor."""
        for name in self.changing:
            getattr(self, name).check_state(take_from(f"{name}.", state))

    def _end(self) -> StopReason | None:
        """Say why there is no further round, if there is none."""
        path = self._path
        last = path.found[-1] if path.found else None
        if last is not None and last.d_minus == 0.0 and last.d_plus >= 1.0 - MIN_EDGE:
            return "perfect_ranker"
        return "n_rounds" if len(path.found) == len(path.log_f) - 1 else None


class Monitor(Resumable):
    """Follows a run of the loop: reports its progress, and ends it when validation or the callback says so.

    Parameters
    ----------
    path : Path
        That the run fills.
    callback : callable (step, of, info) -> None
        Called after each round with the loss and, on a sample of the data, the training AUC, both found if it reads
        them, and the validation AUC when it was computed.
    loss : callable (log_f) -> float
    sample : callable () -> Evaluation
        Gives the sample, if there is a callback.
    collect : callable Path -> Ensemble
        Sums rounds up, to score the sample by.
    validation : Evaluation or None
    patience : int
        Rounds without a higher validation AUC before the run ends.
    every : int, optional
        Rounds from one validation AUC to the next; None: so many that its sort costs little.

    Attributes
    ----------
    validation_auc : list of float
        After each round, NaN where it was not computed; empty without a validation part.
    best_round : int
        Number of rounds with the highest validation AUC, the first among equals; 0 where the run
        ended before it was computed.
    ended : bool
        Whether validation says that the run should end.
    """

    changing = ("_scores", "_best", "validation_auc", "best_round", "ended")

    def __init__(
        self,
        path: Path,
        callback: Callback,
        loss: Callable[[Floats], float],
        sample: Callable[[], Evaluation],
        collect: Callable[[Path], Ensemble],
        validation: Evaluation | None,
        patience: int,
        every: int | None = None,
    ) -> None:
        self._path = path
        self._n_rounds = len(path.log_f) - 1
        self._callback = callback
        self._loss = loss
        self._sample = None if callback is ignore else SampleScores(path, sample(), collect)
        self._validation = validation
        self._scores: Floats | None = None  # of the validation part
        self._patience = patience
        self._every = every or 1
        if validation is not None:
            self._scores = np.zeros(validation.shape)
            self._every = every or math.ceil(validation.size / ROWS_A_ROUND)
        self._best = -math.inf
        self.validation_auc: list[float] = []
        self.best_round = 0
        self.ended = False

    def __call__(self, taken: int) -> StopReason | None:
        """Take note of a round, when learner and path are up to it; say why the run should end, if it should."""
        figures: Figures = {"loss": partial(self._loss, self._path.log_f[taken])}
        self.ended = self._validate(taken, figures)
        if self._sample is not None:
            figures["training_auc"] = partial(self._sample.auc, taken)
            try:
                self._callback(taken, self._n_rounds, RoundFigures(figures))
            except StopFit:
                if taken < self._n_rounds and not self.ended:
                    warn_stopped(taken, self._n_rounds, "rounds")
                    return "stopped"
        return "validation" if self.ended else None

    def _validate(self, taken: int, figures: Figures) -> bool:
        """Follow the validation scores; say whether they have not become better for long."""
        if self._validation is None or self._scores is None:
            return False
        found, alpha = self._path.found[taken - 1], self._path.alpha[taken - 1]
        self._scores += alpha * found.values(self._validation.X)
        if taken % self._every and taken < self._n_rounds:
            self.validation_auc.append(math.nan)
            return False
        now = figures[self._validation.name] = self._validation.metric(self._scores)
        self.validation_auc.append(now)
        if now > self._best + MIN_RISE:
            self._best, self.best_round = now, taken
        return taken - self.best_round >= self._patience


class SampleScores:
    """The AUC of a sample after any number of rounds, scored when somebody asks: any number of threads, during the fit.

    Parameters
    ----------
    path : Path
        That the run fills.
    sample : Evaluation
    collect : callable Path -> Ensemble
        Sums rounds up.
    """

    def __init__(self, path: Path, sample: Evaluation, collect: Callable[[Path], Ensemble]) -> None:
        self._path = path
        self._sample = sample
        self._collect = collect
        self._taken = 0
        self._scores = np.zeros(sample.shape)
        self._lock = threading.Lock()  # an answer changes what the next one starts from

    def auc(self, taken: int) -> float:
        """Give the AUC after so many rounds."""
        with self._lock:
            if taken < self._taken:
                self._taken, self._scores = 0, np.zeros(self._sample.shape)
            if taken > self._taken:
                new = slice(self._taken, taken)
                path = self._path._replace(found=self._path.found[new], alpha=self._path.alpha[new])
                self._scores += self._collect(path).score(self._sample.X, 0.0)
                self._taken = taken
            return self._sample.metric(self._scores)


class RoundFigures(Mapping[str, float]):
    """The figures of a round. Those that are given as functions are found when they are first read, then or later.

    Until a figure is read, what it asks is kept with it; `dict` makes plain figures of all, and so does pickle.
    """

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def __getitem__(self, name: str) -> float:
        figure = self._figures[name]
        if callable(figure):
            figure = self._figures[name] = figure()
        return figure

    def __contains__(self, name: object) -> bool:
        return name in self._figures

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, float]], tuple[dict[str, float]]]:
        return dict, (dict(self),)
