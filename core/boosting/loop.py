"""The loop of boosting, weights -> weak ranker -> step -> update, and the progress that a callback hears of."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from core.checkpoint import Resumable
from core.errors import ArtifactError
from core.ranker import Callback, Floats, StopFit, ignore, warn_stopped
from core.state import Arrays, put_under, take_from

from .data import Evaluation
from .rules import LoopState, Rule
from .weak_learner import LEAST_EDGE, Ensemble, Path, StopReason, WeakLearner, WeakRanker

# The validation AUC costs a sort: after each round, on more rows or pairs than this less often.
ROWS_A_ROUND = 50_000

# An AUC counts as higher only if it is so by more than rounding.
LEAST_RISE = 1e-9

Figures = dict[str, float | Callable[[], float]]
Read = Callable[[Mapping[str, npt.NDArray[Any]], int], Ensemble]


class Boosting(Resumable):
    """A run of the loop. It can be stopped after any round, and go on later.

    In a checkpoint the rounds are the arrays of an artifact: the sum of their weak rankers, each with a step of 1.

    Parameters
    ----------
    learner : WeakLearner
        At f = 0; changed in place.
    rule : Rule
    n_rounds : int
    monitor : Monitor
    read : callable (arrays, n_rounds) -> Ensemble
        The reader of the learner's ensemble.
    """

    changing = ("learner", "_monitor")

    def __init__(
        self, learner: WeakLearner, rule: Rule, n_rounds: int, monitor: "Monitor", read: Read
    ) -> None:
        self.learner = learner
        self._rule = rule
        self._monitor = monitor
        self._read = read
        self._path = Path([], [], np.empty((n_rounds + 1, 2)), "n_rounds")
        self._path.log_f[0] = learner.log_f

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
            alpha = self._rule.step(found, LoopState(log_f_plus, log_f_minus, norm))
            learner.update(found, alpha)
            norm += alpha
            path.found.append(found)
            path.alpha.append(alpha)
            path.log_f[taken + 1] = learner.log_f
            reason = self._monitor(taken + 1, found, alpha, path.log_f[taken + 1]) or self._end()
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
            found = self._read(take_from("rounds.", state), len(alpha)).weak_rankers()
        except KeyError as error:
            raise ArtifactError(f"a checkpoint must hold {error}") from error
        room = len(self._path.log_f)
        if log_f.shape != (len(alpha) + 1, 2) or len(log_f) > room:
            raise ArtifactError(
                f"log_f must hold 2 numbers for the start and each of {len(alpha)} rounds, "
                f"{room - 1} at most, got shape {log_f.shape}"
            )
        super().set_state(rest)
        self._path.found[:], self._path.alpha[:] = found, alpha.tolist()
        self._path.log_f[: len(log_f)] = log_f
        self._monitor.go_on_from(self._path)

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse what is no state of learner and monitor."""
        for name in self.changing:
            getattr(self, name).check_state(take_from(f"{name}.", state))

    def _end(self) -> StopReason | None:
        """Say why there is no further round, if there is none."""
        path = self._path
        last = path.found[-1] if path.found else None
        if last is not None and last.d_minus == 0.0 and last.d_plus >= 1.0 - LEAST_EDGE:
            return "perfect_ranker"
        return "n_rounds" if len(path.found) == len(path.log_f) - 1 else None


class Monitor(Resumable):
    """Follows a run of the loop: reports its progress, and ends it when validation or the callback says so.

    Parameters
    ----------
    n_rounds : int
    callback : callable (step, of, info) -> None
        Called after each round with the loss and, on a sample of the data, the training AUC, both found if it reads
        them, and the validation AUC when it was computed.
    loss : callable (log_f) -> float
    sample : callable () -> Evaluation
        Gives the sample, if it is asked for.
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
        n_rounds: int,
        callback: Callback,
        loss: Callable[[Floats], float],
        sample: Callable[[], Evaluation],
        collect: Callable[[Path], Ensemble],
        validation: Evaluation | None,
        patience: int,
        every: int | None = None,
    ) -> None:
        self._n_rounds = n_rounds
        self._callback = callback
        self._loss = loss
        self._sample = None if callback is ignore else SampleScores(sample(), collect)
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

    def __call__(
        self, taken: int, found: WeakRanker, alpha: float, log_f: Floats
    ) -> StopReason | None:
        """Take note of a round, when learner and path are up to it; say why the run should end, if it should."""
        figures: Figures = {"loss": partial(self._loss, log_f)}
        self.ended = self._validate(taken, found, alpha, figures)
        if self._sample is not None:
            self._sample.note([(found, alpha)])
            figures["training_auc"] = partial(self._sample.auc, taken)
            try:
                self._callback(taken, self._n_rounds, RoundFigures(figures))
            except StopFit:
                if taken < self._n_rounds and not self.ended:
                    warn_stopped(taken, self._n_rounds, "rounds")
                    return "stopped"
        return "validation" if self.ended else None

    def go_on_from(self, path: Path) -> None:
        """Take note of the rounds that were taken before a checkpoint."""
        if self._sample is not None:
            self._sample.note(zip(path.found, path.alpha, strict=True))

    def _validate(self, taken: int, found: WeakRanker, alpha: float, figures: Figures) -> bool:
        """Follow the validation scores; say whether they have not become better for long."""
        if self._validation is None or self._scores is None:
            return False
        self._scores += alpha * found.values(self._validation.X)
        if taken % self._every and taken < self._n_rounds:
            self.validation_auc.append(math.nan)
            return False
        now = figures[self._validation.figure] = self._validation.auc(self._scores)
        self.validation_auc.append(now)
        if now > self._best + LEAST_RISE:
            self._best, self.best_round = now, taken
        return taken - self.best_round >= self._patience


class SampleScores:
    """The rounds so far, and the AUC of a sample after any number of them.

    The rounds since the last answer are summed up and scored at once, when somebody asks. Any number of threads may
    ask, while the fit goes on.

    Parameters
    ----------
    sample : Evaluation
    collect : callable Path -> Ensemble
        Sums rounds up.
    """

    def __init__(self, sample: Evaluation, collect: Callable[[Path], Ensemble]) -> None:
        self._sample = sample
        self._collect = collect
        self._rounds: list[tuple[Any, float]] = []
        self._taken = 0
        self._scores = np.zeros(sample.shape)
        self._lock = threading.Lock()  # an answer changes what the next one starts from

    def note(self, rounds: Iterable[tuple[Any, float]]) -> None:
        """Remember weak rankers and their steps."""
        with self._lock:
            self._rounds.extend(rounds)

    def auc(self, taken: int) -> float:
        """Give the AUC after so many rounds."""
        with self._lock:
            if taken < self._taken:
                self._taken, self._scores = 0, np.zeros(self._sample.shape)
            if new := self._rounds[self._taken : taken]:
                found, alpha = zip(*new, strict=True)
                path = Path([*found], [*alpha], np.empty((0, 2)), "n_rounds")
                self._scores += self._collect(path).score(self._sample.X, 0.0)
                self._taken = taken
            return self._sample.auc(self._scores)


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
