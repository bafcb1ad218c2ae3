"""Reasons for a score: its difference from a reference score, divided exactly among the features.

The contributions to a score are its Shapley values (`Ranker.shapley_values`), which sum to the score less the mean
training score. Minus the contributions of a reference, they sum to the score less the reference's score.
"""

from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from core.base.parameters import check_value
from core.base.target import as_numbers
from core.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    from core.base.ranker import Ranker

Floats = npt.NDArray[np.float64]
Toward = Literal["raises", "lowers", "both"]
"""Which parts are reasons: those above 0, those below, or all."""

MAX_WIDTHS = 20
"""How far a cut may be, in distances between the average negative and positive: beyond, noise would be magnified."""
_NOISE = 1e-12  # of the sum of a row's parts: what rounding may leave of a part that is 0


class Reference(NamedTuple):
    """A reference score and its contribution per feature, with which rows' scores are compared.

    Attributes
    ----------
    parts : ndarray of shape (n_features,), float64
        Parts that sum to `score` minus the mean training score.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import Reference
    >>> Reference(0.5, np.array([0.2, -0.1]))
    Reference(score=0.5, parts=array([ 0.2, -0.1]))
    """

    score: float
    """The score."""
    parts: Floats
    """Shape (n_features,), float64."""


def mean_reference(ranker: "Ranker", X: Any, sample_weight: Any = None) -> Reference:
    """Return the mean contributions of the given rows as a reference.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker with exact contributions.
    X : array or table of shape (n_samples, n_features)
        At least one row.
    sample_weight : array-like of shape (n_samples,), optional
        At least 0, with a sum above 0.

    Returns
    -------
    Reference

    Raises
    ------
    InvalidParameter
        The ranker has no exact contributions.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import mean_reference
    >>> from core import Logistic
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> ranker = Logistic().fit(X, [0, 0, 1, 1])
    >>> negative = mean_reference(ranker, X[:2])
    >>> differences = ranker.shapley_values(X) - negative.parts
    >>> bool(np.allclose(differences.sum(axis=1), ranker.decision_function(X) - negative.score))
    True
    """
    from core.base.ranker import Ranker
    from core.metrics.groups import check_weights

    check_value("ranker", Ranker, ranker)
    parts, weight = ranker.shapley_values(X), None
    if sample_weight is not None:
        weight = check_weights(sample_weight, len(parts))
        weight = weight / weight.max()
        parts, weight = parts[weight != 0.0], weight[weight != 0.0]
    mean: Floats = np.average(parts, axis=0, weights=weight)
    return Reference(_offset(ranker) + float(mean.sum()), mean)


def average_reference(ranker: "Ranker") -> Reference:
    """Return the mean training row's score as a reference (all contributions 0).

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker with exact contributions.

    Returns
    -------
    Reference

    Examples
    --------
    >>> import numpy as np
    >>> from core import Logistic
    >>> from core.explain import average_reference
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> ranker = Logistic().fit(X, [0, 0, 1])
    >>> reference = average_reference(ranker)
    >>> bool(np.isclose(reference.score, ranker.decision_function(X).mean())), reference.parts
    (True, array([0.]))
    """
    from core.base.ranker import Ranker

    check_value("ranker", Ranker, ranker)
    return Reference(_offset(ranker), np.zeros(ranker.n_features_in_))


def _offset(ranker: Any) -> float:
    return float(ranker.offset_)


def reference_at(score: float, negative: Reference, positive: Reference) -> Reference:
    """Return the reference with a given score, between the average negative and the average positive.

    It lies on the straight line through both, so each feature has moved by the same fraction of the way.

    Parameters
    ----------
    score : float
        Score of the reference.
    negative, positive : Reference
        Averages of the negatives and of the positives.

    Returns
    -------
    Reference

    Raises
    ------
    InvalidParameter
        The average positive does not score above the average negative, or the score is more than `MAX_WIDTHS` times as
        far away as they are from each other.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import Reference, reference_at
    >>> negative, positive = Reference(0.0, np.zeros(2)), Reference(2.0, np.array([0.5, 1.5]))
    >>> reference_at(1.0, negative, positive)
    Reference(score=1.0, parts=array([0.25, 0.75]))
    """
    check_value("negative", Reference, negative)
    check_value("positive", Reference, positive)
    check_value("score", Real, score)
    width = positive.score - negative.score
    if not 0.0 < width < np.inf:
        raise InvalidParameter(
            "the average positive must score above the average negative to explain the distance to a "
            f"cutoff; they score {positive.score:g} and {negative.score:g}"
        )
    share = (score - negative.score) / width
    if not abs(share) <= MAX_WIDTHS:
        raise InvalidParameter(
            f"a cutoff must be within {MAX_WIDTHS} times the distance between the average negative and "
            f"positive; they score {negative.score:g} and {positive.score:g}, and the cutoff is {score:g}"
        )
    return Reference(score, negative.parts + share * (positive.parts - negative.parts))


def largest(parts: Floats, n: int, toward: Toward) -> npt.NDArray[np.intp]:
    """Return, for each row, the columns with the largest contributions in a direction, largest first.

    Parameters
    ----------
    parts : ndarray of shape (n_rows, n_columns), float64
        Contributions of each row.
    n : int
        Number of columns per row.
    toward : {"raises", "lowers", "both"}
        Parts that raise the score, lower it, or both.

    Returns
    -------
    ndarray of shape (n_rows, min(n, n_columns)), intp
        Column indices; of equal parts the first. -1 if a row has fewer parts in that direction. A part of 0, or within
        rounding of it, has no direction.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import largest
    >>> largest(np.array([[0.3, -0.2, 0.9, 0.3]]), 2, "raises")
    array([[2, 0]])
    """
    check_value("n", Annotated[int, Ge(1)], n)
    check_value("toward", Toward, toward)
    parts = as_numbers("parts", parts)
    if parts.ndim != 2:
        raise InvalidData(f"parts must be a table, got shape {parts.shape}")
    size = {"raises": parts, "lowers": -parts, "both": np.abs(parts)}[toward]
    order = np.argsort(-size, axis=1, kind="stable")[:, :n]
    noise = _NOISE * np.abs(parts).sum(axis=1, keepdims=True)
    return np.where(np.take_along_axis(size, order, axis=1) > noise, order, -1)
