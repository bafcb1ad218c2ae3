"""A path: one fit that holds the ranker of every lesser value of a parameter."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

from core.ranker import Floats

from .choice import Candidate


class PathRanker(Protocol):
    """A ranker whose steps add up: after k of them it is the ranker that k alone would make.

    Attributes
    ----------
    path_parameter : str or None
        The parameter that says how many steps are taken, such as n_rounds; None where a fit of
        fewer steps is another ranker after all.
    """

    path_parameter: ClassVar[str | None]

    def check_path_parameters(self) -> None:
        """Raise InvalidParameter for parameters under which a fit holds no path."""

    def decision_function(self, X: Any) -> Floats:
        """Score rows after the last step."""

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Score rows after each step."""


def path_parameter(algorithm: type) -> str | None:
    """Name the parameter along which one fit of this class holds all rankers; None without one."""
    name: str | None = getattr(algorithm, "path_parameter", None)
    return name


def walk_path(
    ranker: PathRanker, X: Any, values: Sequence[int], judge: Callable[[Floats], float]
) -> list[Candidate]:
    """Judge the rankers that lie on the path of a fitted one.

    Parameters
    ----------
    ranker : PathRanker
        Fitted with the greatest of the values.
    X : array or table of shape (n_samples, n_features)
        Rows that it has not learnt from.
    values : sequence of int
        Numbers of steps, distinct and at least 1.
    judge : callable (scores) -> float
        Called with the scores of those rows, once for each ranker; higher is better.

    Returns
    -------
    list of Candidate
        Ascending by number of steps. Where the fit has ended before one of them, a fit of so many
        steps would have ended there too: it is worth what the last step is.

    Notes
    -----
    One pass over the steps: O(n_steps · n_samples) for stumps.
    """
    assert ranker.path_parameter is not None
    wanted = sorted(values)
    worth: list[float] = []
    for step, scores in enumerate(ranker.staged_decision_function(X), start=1):
        if step == wanted[len(worth)]:
            worth.append(judge(scores))
            if len(worth) == len(wanted):
                break
    if len(worth) < len(wanted):
        at_the_end = judge(ranker.decision_function(X))
        worth += [at_the_end] * (len(wanted) - len(worth))
    name = ranker.path_parameter
    return [Candidate({name: k}, value) for k, value in zip(wanted, worth, strict=True)]
