"""Candidates, and the choice among them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# A candidate is better than one before it only if it is so by more than rounding.
LEAST_RISE = 1e-9


class Candidate(NamedTuple):
    """Parameters that were tried, and what they were worth.

    Attributes
    ----------
    parameters : mapping of str to Any
        The searched ones only.
    value : float
        Of the criterion, on rows that were not learnt from; higher is better.
    """

    parameters: Mapping[str, Any]
    value: float


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """Choose the candidate of the greatest value, the first among equals.

    Parameters
    ----------
    candidates : sequence of Candidate
        The simpler before the less simple; at least one.

    Returns
    -------
    Candidate

    Notes
    -----
    The greatest of several values is too good to be true: report the figures of other rows.
    """
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate.value > best.value + LEAST_RISE:
            best = candidate
    return best
