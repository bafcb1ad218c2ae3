"""Scores of one ranker in the units of another that was made in the same way from nearly the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from core.ranker import Floats


YARDSTICK_FILE = "yardstick.npy"

_MARKS = 1001
_STEEPEST = 1e9  # so that nothing overflows where a ranker's training scores all but coincide


def mark(scores: Floats) -> Floats:
    """Evenly spaced quantiles of the scores that a ranker gives the rows it has learnt from."""
    quantiles: Floats = np.quantile(scores, np.linspace(0.0, 1.0, _MARKS))
    return quantiles


def convert(scores: Floats, own: Floats, other: Floats) -> Floats:
    """Say in units of the other ranker what scores in a ranker's own units are, by the yardsticks of both.

    A score goes where as large a share of the other's training scores lies below. Both rankers know their training
    rows equally well, so what overfitting does to the distance between rows known and rows to come is alike in both
    yardsticks. Beyond the ends the map goes on straight, with the slope of the whole; so it never decreases.
    """
    ends, starts = np.searchsorted(own, own, "right"), np.searchsorted(own, own, "left")
    units, first = np.unique(own, return_index=True)
    sums = np.r_[0.0, np.cumsum(other)]
    heights = (sums[ends] - sums[starts])[first] / (ends - starts)[first]  # of equal marks the mean
    slope = 1.0
    if 0.0 < (width := units[-1] - units[0]) < np.inf:
        slope = min((other[-1] - other[0]) / width, _STEEPEST)
    converted: Floats = np.interp(scores, units, heights)
    converted += slope * (np.maximum(scores - units[-1], 0.0) - np.maximum(units[0] - scores, 0.0))
    return converted
