"""Trying two ways of boosting on a part of the rows, while another fit is under way."""

import math
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from core.metrics import partial_auc
from core.ranker import Floats

from .kinds import CollectingLearner
from .loop import LEAST_EDGE, Found, Learner, Path, SoFar, Steps
from .validation import Part

# Beside a weight of 1, less than this is none; the metrics take no less either.
LEAST_WEIGHT = 1e-100

_Words = npt.NDArray[np.uint64]
L = TypeVar("L", bound=CollectingLearner)


def draw_apart(part: Part, fraction: float, seed: int) -> tuple[Part, Part] | None:
    """Hold out a share of each class's weight, equal rows together.

    A row's place in the draw follows from its values, with rows and columns in any order, and the
    seed.

    Parameters
    ----------
    part : Part
    fraction : float
        Of each class's weight as much is held out, or a little less; at least one distinct row.
    seed : int

    Returns
    -------
    training, held : Part, or None
        Rows in their given order; None where a class has less than two distinct rows.

    Notes
    -----
    O(n_rows · n_features + n_rows log n_rows).
    """
    drawn = _draw(part, seed)
    held = np.zeros(len(drawn), dtype=np.bool_)
    for rows in (np.flatnonzero(part.positive), np.flatnonzero(~part.positive)):
        values, place = np.unique(drawn[rows], return_inverse=True)
        if len(values) < 2:
            return None
        mass = np.cumsum(np.bincount(place, weights=part.weight[rows]))
        n_held = np.searchsorted(mass, fraction * mass[-1] * (1.0 + 1e-9), side="right")
        held[rows] = place < min(max(int(n_held), 1), len(values) - 1)
    training, held_out = (
        Part(part.X[rows], part.positive[rows], part.weight[rows]) for rows in (~held, held)
    )
    return training, held_out


def _draw(part: Part, seed: int) -> _Words:
    """Draw a number for each row by the sum of its scrambled values.

    A column is told from others by what it holds, not by where it stands.
    """
    mass = np.floor(part.weight * 2.0**16)  # whole, so that a row of weight k adds as k rows
    if not 2.0**16 <= mass.max() < 2.0**63:
        mass = np.floor(part.weight / part.weight.max() * 2.0**52)
    mass = mass.astype(np.uint64)
    mass *= np.where(part.positive, np.uint64(3), np.uint64(1))
    sums = np.zeros(len(mass), dtype=np.uint64)
    for column in part.X.T:
        plain = np.where(np.isnan(column), np.nan, column + 0.0)  # one NaN, and no -0
        words = _scramble(plain.view(np.uint64))
        sums += _scramble(words + (mass * words).sum(dtype=np.uint64))
    return _scramble(sums + _scramble(np.full(1, seed, dtype=np.uint64)))


def _scramble(words: _Words) -> _Words:
    """Scramble by splitmix64 (Steele, Lea & Flood 2014)."""
    z = words + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Rehearsal(Generic[L]):
    """A base of rounds, and two ways to go on from it, judged on rows held out.

    It runs beside the fit that it is for, a few rounds at a time, so that the fit can tell its progress, and be
    stopped, after every round.

    Parameters
    ----------
    training, held : Part
    n_base, n_finish : int
        At least 1; both ways take n_finish rounds.
    rule : Steps
    start : callable Part -> learner
        Lays out rows at f = 0.
    windowed : callable (learner, part, scores) -> Learner
        Lets a learner go on from scores in the other way.
    window : (float, float)
        Of false positive rates, by whose partial AUC, interpolated, both are judged.
    """

    def __init__(
        self,
        training: Part,
        held: Part,
        *,
        n_base: int,
        n_finish: int,
        rule: Steps[Any],
        start: Callable[[Part], L],
        windowed: Callable[[L, Part, Floats], Learner[Any]],
        window: tuple[float, float],
    ) -> None:
        self._training = training
        self._held = held._replace(X=np.ascontiguousarray(held.X))
        self._n_base = n_base
        self._n_finish = n_finish
        self._rule = rule
        self._start = start
        self._windowed = windowed
        self._window = window
        self._rounds = self._run()
        self._taken = 0
        self._result: tuple[float, float] | None = None

    def advance(self, taken: int) -> None:
        """Take as large a share of the rounds as the fit has taken of its base, `taken` rounds."""
        goal = math.ceil((self._n_base + 2 * self._n_finish) * taken / self._n_base)
        while self._taken < goal and self._result is None:
            try:
                next(self._rounds)
                self._taken += 1
            except StopIteration as end:
                self._result = end.value

    def result(self) -> tuple[float, float]:
        """Take what rounds are left; give the partial AUC of the base going on, and of the other way."""
        while self._result is None:
            self.advance(self._n_base * (self._taken + 1))
        return self._result

    def _run(self) -> Generator[None, None, tuple[float, float]]:
        learner, X = self._start(self._training), self._held.X
        found: list[Found] = []
        alphas: list[float] = []
        base = np.zeros(len(X))
        for h, alpha in _rounds(learner, self._rule, self._n_base):
            found.append(h)
            alphas.append(alpha)
            base += alpha * h.values(X)
            yield
        path = Path(found, alphas, np.empty((0, 2)), "n_rounds")
        scores = learner.collect(path).score(np.ascontiguousarray(self._training.X), 0.0)
        areas = []
        ways: list[Learner[Any]] = [learner, self._windowed(learner, self._training, scores)]
        for way in ways:
            reached = base.copy()
            for h, alpha in _rounds(way, self._rule, self._n_finish):
                reached += alpha * h.values(X)
                yield
            areas.append(self._judge(reached))
        return areas[0], areas[1]

    def _judge(self, scores: Floats) -> float:
        held = self._held
        weight = held.weight.copy()
        for rows in (held.positive, ~held.positive):  # neither class's scale matters to the curve
            weight[rows] /= weight[rows].max()
        weight[weight < LEAST_WEIGHT] = 0.0
        return partial_auc(held.positive, scores, *self._window, sample_weight=weight)


def _rounds(
    learner: Learner[Any], rule: Steps[Any], n_rounds: int
) -> Iterator[tuple[Found, float]]:
    """Walk the loop as `loop.boost` does, giving each round away as it is taken."""
    for _ in range(n_rounds):
        found = learner.scan()
        if found is None:
            return
        alpha = rule.step(found, SoFar(learner.log_f_plus, learner.log_f_minus, 0.0))
        learner.update(found, alpha)
        yield found, alpha
        if found.d_minus == 0.0 and found.d_plus >= 1.0 - LEAST_EDGE:
            return
