"""A ranker's scores as ranks: where each score stands among those of the training rows."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.errors import ArtifactError
from core.ranker import Arrays, Floats

MOST_KNOTS = 2048
"""Scores whose rank is kept; between them ranks are interpolated."""


class Ranks(NamedTuple):
    """A rising function from scores to (0, 1).

    Attributes
    ----------
    scores : ndarray of shape (n_knots,), float64
        Strictly ascending.
    ranks : ndarray of shape (n_knots,), float64
        Of those scores, ascending, in (0, 1).
    """

    scores: Floats
    ranks: Floats

    def of(self, scores: Floats) -> Floats:
        """Give the rank of each score: between knots on a line, beyond them towards 0 and 1 without end.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,), float64

        Returns
        -------
        ndarray of shape (n_rows,), float64
            In [0, 1]. A greater score never has a lesser rank.
        """
        low, high = self.scores[0], self.scores[-1]
        unit = high - low if high > low else 1.0
        beyond = 1.0 / (1.0 + np.maximum(np.maximum(low - scores, scores - high), 0.0) / unit)
        ranks = np.interp(scores, self.scores, self.ranks)
        below, above = scores < low, scores > high
        return np.where(below, ranks * beyond, np.where(above, 1.0 - (1.0 - ranks) * beyond, ranks))

    def arrays(self) -> Arrays:
        """Give the state as arrays."""
        return {"scores": self.scores, "ranks": self.ranks}


def fit_ranks(scores: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> Ranks:
    """Learn where scores stand.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,), float64
        Of the training rows.
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.

    Returns
    -------
    Ranks
        A score's rank is its mid-rank: the share of the weight below it and half of that at it. With more
        distinct scores than 2048, so many are knots, evenly spaced in weight with both classes given half.

    Notes
    -----
    O(n_rows log n_rows).
    """
    values, place = np.unique(scores, return_inverse=True)
    mass = np.bincount(place, weights=weight)
    ranks = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    if len(values) > MOST_KNOTS:
        balanced = np.zeros(len(values))
        for rows in (positive, ~positive):
            own = np.bincount(place[rows], weights=weight[rows], minlength=len(values))
            balanced += own / own.sum()
        wanted = np.linspace(0.0, 2.0, MOST_KNOTS)
        knots = np.minimum(np.searchsorted(np.cumsum(balanced), wanted), len(values) - 1)
        knots = np.unique([0, *knots, len(values) - 1])
        values, ranks = values[knots], ranks[knots]
    return Ranks(values, ranks)


def read_ranks(arrays: Mapping[str, npt.NDArray[Any]]) -> Ranks:
    """Read what `Ranks.arrays` gave; refuse anything else with ArtifactError."""
    scores, ranks = arrays["scores"], arrays["ranks"]
    n_knots = scores.size
    for name in ("scores", "ranks"):
        check_array(name, arrays[name], np.float64, (n_knots,))
    if not 1 <= n_knots <= MOST_KNOTS + 2:
        raise ArtifactError(f"scores must hold 1 to {MOST_KNOTS + 2} knots, got {n_knots}")
    if not (abs(scores) <= 1e300).all() or not (np.diff(scores) > 0).all():
        raise ArtifactError("scores must be finite and ascending, each once")
    if not ((ranks > 0) & (ranks < 1)).all() or not (np.diff(ranks) >= 0).all():
        raise ArtifactError("ranks must be ascending, between 0 and 1")
    return Ranks(scores, ranks)
