"""What is told after each round, and when to stop: AUC on training and on validation data."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.checkpoint import Resumable
from core.errors import InvalidData
from core.metrics import auc
from core.ranker import Callback, Floats, StopFit, ignore, warn_stopped
from core.splits import draw_part

from .ensemble import Ensemble
from .loop import Found, Path, SoFar, StopReason
from .told import Figures, Judged, Remembered, Sampled, Told

# The training AUC is told on so many rows or pairs at most.
SAMPLE_ROWS = 5_000

# The validation AUC costs a sort: after each round, on more rows or pairs than this less often.
ROWS_A_ROUND = 50_000

# An AUC counts as higher only if it is so by more than rounding.
LEAST_RISE = 1e-9


class Part(NamedTuple):
    """Rows with their labels and weights."""

    X: Floats
    positive: npt.NDArray[np.bool_]
    weight: Floats

    @property
    def figure(self) -> str:
        """What the callback hears the AUC called."""
        return "validation_auc"

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.positive)

    def sample(self) -> "Part":
        """Take evenly spaced rows of each class."""
        step = math.ceil(len(self.positive) / SAMPLE_ROWS)
        if step == 1:
            return self
        taken = np.zeros(len(self.positive), dtype=np.bool_)
        for rows in _strata(self):
            taken[rows[::step]] = True
        return _take(self, taken)

    def zeros(self) -> Floats:
        """Give a score of 0 per row, or per row and label."""
        return np.zeros(self.positive.shape)

    def auc(self, scores: Floats) -> float:
        """Give the AUC of scores; of several labels, over all (row, label) pairs."""
        weight = np.repeat(self.weight, self.positive.size // len(self.positive))
        return auc(self.positive.ravel(), scores.ravel(), weight)


class Watched(NamedTuple):
    """Rows that are given to a fit to be watched, and what judges their scores."""

    X: Floats
    judge: Callable[[Floats], float]
    n_labels: int | None

    @property
    def figure(self) -> str:
        """What the callback hears the judge's figure called."""
        return "judged"

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.X)

    def zeros(self) -> Floats:
        """Give a score of 0 per row, or per row and label."""
        return np.zeros(len(self.X) if self.n_labels is None else (len(self.X), self.n_labels))

    def auc(self, scores: Floats) -> float:
        """Give what the judge says; nobody is to change the scores that are followed."""
        return float(self.judge(scores.copy()))


def _strata(part: Part) -> list[npt.NDArray[np.int64]]:
    """Give the rows of each class; all rows together where they have several labels."""
    if part.positive.ndim > 1:
        return [np.arange(len(part.positive))]
    return [np.flatnonzero(part.positive), np.flatnonzero(~part.positive)]


def split_off(part: Part, fraction: float, seed: int) -> tuple[Part, Part]:
    """Draw a validation part, stratified by class.

    Parameters
    ----------
    part : Part
    fraction : float
        Share of each class's rows to hold out; at least one row, and not all.
    seed : int

    Returns
    -------
    training, validation : Part
        Rows in their given order.

    Raises
    ------
    InvalidData
        A class has one row only, or a part would have no row of one.
    """
    held = draw_part(part.positive, fraction, seed)
    if held is None:
        raise InvalidData(
            "early stopping needs at least 2 rows of positive weight in each class, got 1"
        )
    parts = _take(part, ~held), _take(part, held)
    if any(p.positive.all() or not p.positive.any() for p in parts):
        raise InvalidData(
            "early stopping needs labels of 0 and 1 in the training and in the validation part: "
            "more rows, or another validation_fraction or random_state"
        )
    return parts


def _take(part: Part, rows: npt.NDArray[np.bool_] | slice) -> Part:
    return Part(part.X[rows], part.positive[rows], part.weight[rows])


class Followed(Resumable):
    """The scores of some rows, as f grows."""

    changing = ("_scores",)

    def __init__(self, part: Judged) -> None:
        self.figure = part.figure
        self._part = part
        self._X = np.ascontiguousarray(part.X)
        self._scores = part.zeros()

    def add(self, found: Found, alpha: float) -> None:
        """Let f grow by alpha h."""
        self._scores += alpha * found.values(self._X)

    def auc(self) -> float:
        """Give the AUC of the scores so far."""
        return self._part.auc(self._scores)


class Watch(Resumable):
    """Follows a run of the loop: tells how it goes, and ends it when validation or the callback says so.

    Parameters
    ----------
    n_rounds : int
    callback : callable (step, of, info) -> None
        Told after each round: the loss and, on a sample of the data, the training AUC, both found if it reads them; the
        validation AUC when it was computed.
    loss : callable so_far -> float
    training : Sampled
    collect : callable Path -> Ensemble
        Sums rounds up, to score the sample by.
    validation : Judged or None
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

    changing = ("_validation", "_best", "validation_auc", "best_round", "ended")

    def __init__(
        self,
        n_rounds: int,
        callback: Callback,
        loss: Callable[[SoFar], float],
        training: Sampled,
        collect: Callable[[Path], Ensemble],
        validation: Judged | None,
        patience: int,
        every: int | None = None,
    ) -> None:
        self._n_rounds = n_rounds
        self._callback = callback
        self._loss = loss
        self._rounds = None if callback is ignore else Remembered(training.sample(), collect)
        self._validation = None if validation is None else Followed(validation)
        self._patience = patience
        n_held = 0 if validation is None else validation.size
        self._validated_every = every or math.ceil(n_held / ROWS_A_ROUND)
        self._best = -math.inf
        self.validation_auc: list[float] = []
        self.best_round = 0
        self.ended = False

    def __call__(self, taken: int, found: Found, alpha: float, so_far: SoFar) -> StopReason | None:
        """Take note of a round; say why the run should end, if it should."""
        figures: Figures = {"loss": partial(self._loss, so_far)}
        self.ended = self._judge(taken, found, alpha, figures)
        if self._rounds is not None:
            self._rounds.note([(found, alpha)])
            figures["training_auc"] = partial(self._rounds.auc, taken)
            try:
                self._callback(taken, self._n_rounds, Told(figures))
            except StopFit:
                if taken < self._n_rounds and not self.ended:
                    warn_stopped(taken, self._n_rounds, "rounds")
                    return "stopped"
        return "validation" if self.ended else None

    def go_on_from(self, path: Path) -> None:
        """Take note of the rounds that were taken before a checkpoint."""
        if self._rounds is not None:
            self._rounds.note(zip(path.found, path.alpha, strict=True))

    def _judge(self, taken: int, found: Found, alpha: float, figures: Figures) -> bool:
        if self._validation is None:
            return False
        self._validation.add(found, alpha)
        if taken % self._validated_every and taken < self._n_rounds:
            self.validation_auc.append(math.nan)
            return False
        now = figures[self._validation.figure] = self._validation.auc()
        self.validation_auc.append(now)
        if now > self._best + LEAST_RISE:
            self._best, self.best_round = now, taken
        return taken - self.best_round >= self._patience
