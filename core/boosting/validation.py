"""What is told after each round, and when to stop: AUC on training and validation rows."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData
from core.metrics import auc
from core.ranker import Callback, Floats, ignore

from .loop import Found, SoFar

# The training AUC is told on so many rows at most, and so many times in a run.
SAMPLE_ROWS = 5_000
TIMES_TOLD = 100

# The validation AUC costs a sort: after each round, on more rows than this less often.
ROWS_A_ROUND = 50_000

# An AUC counts as higher only if it is so by more than rounding.
LEAST_RISE = 1e-9


class Part(NamedTuple):
    """Rows with their labels and weights."""

    X: Floats
    positive: npt.NDArray[np.bool_]
    weight: Floats


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
    rng = np.random.Generator(np.random.Philox(seed))
    held = np.zeros(len(part.positive), dtype=np.bool_)
    for rows in _strata(part):
        if len(rows) < 2:
            raise InvalidData(
                "early stopping needs at least 2 rows of positive weight in each class, got 1"
            )
        n_held = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
        held[rng.permutation(rows)[:n_held]] = True
    parts = _take(part, ~held), _take(part, held)
    if any(p.positive.all() or not p.positive.any() for p in parts):
        raise InvalidData(
            "early stopping needs labels of 0 and 1 in the training and in the validation part: "
            "more rows, or another validation_fraction or random_state"
        )
    return parts


def _take(part: Part, rows: npt.NDArray[np.bool_] | slice) -> Part:
    return Part(part.X[rows], part.positive[rows], part.weight[rows])


def sample(part: Part) -> Part:
    """Take evenly spaced rows of each class, few enough for an AUC after a round to be cheap."""
    step = math.ceil(len(part.positive) / SAMPLE_ROWS)
    if step == 1:
        return part
    taken = np.zeros(len(part.positive), dtype=np.bool_)
    for rows in _strata(part):
        taken[rows[::step]] = True
    return _take(part, taken)


class Followed:
    """The scores of some rows, as f grows."""

    def __init__(self, part: Part) -> None:
        self._part = part._replace(X=np.ascontiguousarray(part.X))
        self._scores = np.zeros(part.positive.shape)
        self._weight = np.repeat(part.weight, part.positive.size // len(part.positive))

    def add(self, found: Found, alpha: float) -> None:
        """Let f grow by alpha h."""
        self._scores += alpha * found.values(self._part.X)

    def auc(self) -> float:
        """Give the AUC of the scores so far; of several labels, over all (row, label) pairs."""
        return auc(self._part.positive.ravel(), self._scores.ravel(), self._weight)


class Watch:
    """Follows a run of the loop: tells how it goes, and ends it when validation says so.

    Parameters
    ----------
    n_rounds : int
    callback : callable (step, of, info) -> None
        Told the loss after each round; the training AUC, on a sample of the rows, and the
        validation AUC when they were computed.
    loss : callable so_far -> float
    training : Part
    validation : Part or None
    patience : int
        Rounds without a higher validation AUC before the run ends.

    Attributes
    ----------
    validation_auc : list of float
        After each round, NaN where it was not computed; empty without a validation part.
    best_round : int
        Number of rounds with the highest validation AUC, the first among equals; 0 where the run
        ended before it was computed.
    """

    def __init__(
        self,
        n_rounds: int,
        callback: Callback,
        loss: Callable[[SoFar], float],
        training: Part,
        validation: Part | None,
        patience: int,
    ) -> None:
        self._n_rounds = n_rounds
        self._callback = callback
        self._loss = loss
        self._training = None if callback is ignore else Followed(sample(training))
        self._validation = None if validation is None else Followed(validation)
        self._patience = patience
        self._every = math.ceil(n_rounds / TIMES_TOLD)
        n_held = 0 if validation is None else len(validation.positive)
        self._validated_every = math.ceil(n_held / ROWS_A_ROUND)
        self._best = -math.inf
        self.validation_auc: list[float] = []
        self.best_round = 0

    def __call__(self, taken: int, found: Found, alpha: float, so_far: SoFar) -> bool:
        """Take note of a round; true when the run should end."""
        info = {"loss": self._loss(so_far)}
        if self._training is not None:
            self._training.add(found, alpha)
            if taken % self._every == 0 or taken == 1:
                info["training_auc"] = self._training.auc()
        ends = self._judge(taken, found, alpha, info)
        self._callback(taken, self._n_rounds, info)
        return ends

    def _judge(self, taken: int, found: Found, alpha: float, info: dict[str, float]) -> bool:
        if self._validation is None:
            return False
        self._validation.add(found, alpha)
        if taken % self._validated_every and taken < self._n_rounds:
            self.validation_auc.append(math.nan)
            return False
        now = info["validation_auc"] = self._validation.auc()
        self.validation_auc.append(now)
        if now > self._best + LEAST_RISE:
            self._best, self.best_round = now, taken
        return taken - self.best_round >= self._patience
