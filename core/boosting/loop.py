"""The loop that every booster walks: weights -> scan -> step -> update."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from core.ranker import Floats

StopReason = Literal["n_rounds", "no_edge", "perfect_ranker", "validation"]

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
        the scores of the validation part have not become better for long.
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


Watch = Callable[[int, Any, float, SoFar], bool]


def boost(learner: Learner[F], rule: Steps[F], n_rounds: int, watch: Watch) -> Path:
    """Add weak rankers one by one.

    Parameters
    ----------
    learner : Learner
        At f = 0; changed in place.
    rule : Steps
    n_rounds : int
    watch : callable (taken, found, alpha, so_far) -> bool
        Called after each round; true ends the loop. What it raises ends it too.

    Returns
    -------
    Path
    """
    path = Path([], [], np.empty((n_rounds + 1, 2)), "n_rounds")
    so_far = SoFar(learner.log_f_plus, learner.log_f_minus, 0.0)
    path.log_f[0] = so_far[:2]
    stop_reason: StopReason = "n_rounds"
    for taken in range(1, n_rounds + 1):
        found = learner.scan()
        if found is None:
            stop_reason = "no_edge"
            break
        alpha = rule.step(found, so_far)
        learner.update(found, alpha)
        so_far = SoFar(learner.log_f_plus, learner.log_f_minus, so_far.norm + alpha)
        path.found.append(found)
        path.alpha.append(alpha)
        path.log_f[taken] = so_far[:2]
        if watch(taken, found, alpha, so_far):
            stop_reason = "validation"
            break
        if found.d_minus == 0.0 and found.d_plus >= 1.0 - LEAST_EDGE:
            stop_reason = "perfect_ranker"
            break
    return path._replace(stop_reason=stop_reason).cut(len(path.found))
