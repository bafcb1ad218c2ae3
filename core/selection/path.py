"""A path: one fit that makes the rankers of all values of a parameter.

Of a number of steps, the fit of the greatest holds all lesser ones. Of a weight, as C, one solver after the other makes
them, each knowing what the one before has found out about the rows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

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


@runtime_checkable
class FollowingRanker(Protocol):
    """A ranker whose fit follows the values that it is told beforehand.

    Attributes
    ----------
    path_parameter : str or None
        The parameter whose values it follows, such as C.
    """

    path_parameter: ClassVar[str | None]

    def check_path_parameters(self) -> None:
        """Raise InvalidParameter for parameters under which a fit follows no path."""

    def follow(self, values: Sequence[float]) -> None:
        """Have the next fit make the ranker of every value, rising."""

    def path_rankers(self) -> Sequence[Any]:
        """Give the rankers that the last fit has made, in the order of the values."""


def path_parameter(algorithm: type) -> str | None:
    """Name the parameter along which one fit of this class holds all rankers; None without one."""
    name: str | None = getattr(algorithm, "path_parameter", None)
    return name


def walk_path(
    ranker: PathRanker | FollowingRanker,
    X: Any,
    values: Sequence[Any],
    judge: Callable[[Floats], float],
) -> list[Candidate]:
    """Judge the rankers that lie on the path of a fitted one.

    Parameters
    ----------
    ranker : PathRanker or FollowingRanker
        Fitted with the greatest of the values, having been told to follow them.
    X : array or table of shape (n_samples, n_features)
        Rows that it has not learnt from.
    values : sequence of int or float
        Distinct; numbers of steps are at least 1.
    judge : callable (scores) -> float
        Called with the scores of those rows, once for each ranker; higher is better.

    Returns
    -------
    list of Candidate
        Ascending by value. Where the fit has ended before one of them, a fit of so many
        steps would have ended there too: it is worth what the last step is.

    Notes
    -----
    One pass over the steps: O(n_steps · n_samples) for stumps.
    """
    name = ranker.path_parameter
    assert name is not None
    if isinstance(ranker, FollowingRanker):
        # a fit that was stopped has followed the first of the values alone
        return [
            Candidate({name: value}, judge(one.decision_function(X)))
            for value, one in zip(sorted(values), ranker.path_rankers(), strict=False)
        ]
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
    return [Candidate({name: k}, value) for k, value in zip(wanted, worth, strict=True)]
