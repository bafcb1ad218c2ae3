"""Trying two ways of boosting on a part of the rows, while another fit is under way."""

import math
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from core.holdout import hold_out, row_keys
from core.metrics.paired import Rise, partial_auc_rise
from core.ranker import Floats

from .kinds import CollectingLearner
from .loop import LEAST_EDGE, Found, Learner, Path, SoFar, Steps
from .validation import Part

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
    """
    held = hold_out(part.X, part.positive, part.weight, fraction, seed)
    if held is None:
        return None
    training, held_out = (
        Part(part.X[rows], part.positive[rows], part.weight[rows]) for rows in (~held, held)
    )
    return training, held_out


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
        self._result: Rise | None = None

    def advance(self, taken: int) -> None:
        """Take as large a share of the rounds as the fit has taken of its base, `taken` rounds."""
        goal = math.ceil((self._n_base + 2 * self._n_finish) * taken / self._n_base)
        while self._taken < goal and self._result is None:
            try:
                next(self._rounds)
                self._taken += 1
            except StopIteration as end:
                self._result = end.value

    def result(self) -> Rise:
        """Take what rounds are left; give the partial AUC of the base going on, and of the other way.

        Equal rows count as one observation, so that a row of weight k is k rows.
        """
        while self._result is None:
            self.advance(self._n_base * (self._taken + 1))
        return self._result

    def _run(self) -> Generator[None, None, Rise]:
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
        ends = []
        ways: list[Learner[Any]] = [learner, self._windowed(learner, self._training, scores)]
        for way in ways:
            reached = base.copy()
            for h, alpha in _rounds(way, self._rule, self._n_finish):
                reached += alpha * h.values(X)
                yield
            ends.append(reached)
        return self._judge(*ends)

    def _judge(self, before: Floats, after: Floats) -> Rise:
        held = self._held
        return partial_auc_rise(
            held.positive,
            before,
            after,
            *self._window,
            sample_weight=held.weight,
            unit=row_keys(held.X, held.positive, held.weight),
        )


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
