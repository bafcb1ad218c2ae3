"""The loop that every booster walks: weights -> scan -> step -> update."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from core.ranker import Floats

StopReason = Literal["n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"]

# An edge d+ - d- below this is rounding, not knowledge.
LEAST_EDGE = 1e-12


class Found(Protocol):
    """The weak ranker h that a scan has found.

    Attributes
    ----------
    d_plus, d_minus : float
        Mass that h gets right and wrong under the present weights. NaN where they mean nothing.
    """

    @property
    def d_plus(self) -> float: ...

    @property
    def d_minus(self) -> float: ...

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row; the score grows by alpha times that."""


F = TypeVar("F", bound=Found)
F_contra = TypeVar("F_contra", bound=Found, contravariant=True)


class SoFar(NamedTuple):
    """What a step may depend on besides its weak ranker.

    Attributes
    ----------
    log_f_plus, log_f_minus : float
        Logarithms of F₊ = Σ w_i e^{-f(x_i)} over positives and F₋ = Σ w_k e^{f(x_k)} over negatives.
    norm : float
        ‖λ‖₁, the sum of the steps.
    """

    log_f_plus: float
    log_f_minus: float
    norm: float


class Learner(Protocol[F]):
    """The training rows with their weights, and how to find one kind of weak ranker on them."""

    @property
    def log_f_plus(self) -> float: ...

    @property
    def log_f_minus(self) -> float: ...

    def scan(self) -> F | None:
        """Find the best weak ranker under the present weights; None without an edge."""

    def update(self, found: F, alpha: float) -> None:
        """Let f grow by alpha h, and reweigh the rows."""


class Steps(Protocol[F_contra]):
    """The part of an algorithm's rule that the loop asks: how far to go."""

    def step(self, found: F_contra, so_far: SoFar) -> float:
        """Give alpha, the step along the weak ranker found."""


class Path(NamedTuple):
    """What a run of the loop leaves.

    Attributes
    ----------
    found : list of Found
        The weak ranker of each round.
    alpha : list of float
        The step of each round.
    log_f : ndarray of shape (n_taken + 1, 2), float64
        ln F₊ and ln F₋ at the start and after each round.
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


Watch = Callable[[int, Any, float, SoFar], StopReason | None]


def begin(learner: Learner[F], n_rounds: int) -> Path:
    """Give the path of a learner at f = 0, with room for so many rounds."""
    path = Path([], [], np.empty((n_rounds + 1, 2)), "n_rounds")
    path.log_f[0] = learner.log_f_plus, learner.log_f_minus
    return path


def boost(learner: Learner[F], rule: Steps[F], path: Path, watch: Watch) -> Path:
    """Add weak rankers one by one.

    Parameters
    ----------
    learner : Learner
        Changed in place.
    rule : Steps
    path : Path
        From `begin`, or with the rounds that brought the learner to where it is; new ones are added to it.
    watch : callable (taken, found, alpha, so_far) -> str or None
        Called after each round, when learner and path are up to it; says why the loop should end, if it should. What
        it raises ends it too.

    Returns
    -------
    Path
    """
    taken = len(path.found)
    log_f_plus, log_f_minus = path.log_f[taken].tolist()
    so_far = SoFar(log_f_plus, log_f_minus, norm_of(path.alpha))
    reason = _end_of(path)
    while reason is None:
        found = learner.scan()
        if found is None:
            return path.ended("no_edge")
        alpha = rule.step(found, so_far)
        learner.update(found, alpha)
        so_far = SoFar(learner.log_f_plus, learner.log_f_minus, so_far.norm + alpha)
        taken += 1
        path.found.append(found)
        path.alpha.append(alpha)
        path.log_f[taken] = so_far[:2]
        reason = watch(taken, found, alpha, so_far) or _end_of(path)
    return path.ended(reason)


def norm_of(alpha: Iterable[float]) -> float:
    """Sum up steps one after the other, as the loop does: `sum` rounds otherwise from Python 3.12 on."""
    norm = 0.0
    for step in alpha:
        norm += step
    return norm


def _end_of(path: Path) -> StopReason | None:
    """Say why there is no further round, if there is none."""
    last = path.found[-1] if path.found else None
    if last is not None and last.d_minus == 0.0 and last.d_plus >= 1.0 - LEAST_EDGE:
        return "perfect_ranker"
    return "n_rounds" if len(path.found) == len(path.log_f) - 1 else None
