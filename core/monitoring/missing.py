"""Outcomes that are missing: what a metric would be for each share of positives among them.

A test uses the known outcomes. Whether the missing ones could change its answer cannot be seen in the data, but it can
be computed for each share q of positives among them, on one side of the threshold or on both (a sensitivity analysis;
Rosenbaum 2002). `unchanged_shares` then gives the shares at which the answer is "nothing has changed".

* **AUC**: missing positives (negatives) of a side are assumed to have the scores of the known positives (negatives) of
  this side. The AUC then changes only as the sides count differently.
* **Level of the calibration**: the missing outcomes have their own predicted probabilities, so nothing is assumed.

References
----------
Rosenbaum, *Observational Studies* (2002), chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.metrics.groups import FloatArray
from core.probability.score_test import odds_cells, sigmoid

SHARES: FloatArray = np.linspace(0.0, 1.0, 21)
"""The shares of positives among missing outcomes at which a metric is computed."""

_CELLS = 512  # of log-odds
_LEAST = 1e-6  # positives: the level would be infinite without any
_MOST_ODDS = 72.0  # of a level: twice the greatest log-odds
_HALVINGS = 40


def auc_by_share(
    score: FloatArray,
    positive: NDArray[np.bool_],
    known: NDArray[np.bool_],
    flag: NDArray[np.bool_],
    changed: NDArray[np.bool_],
) -> FloatArray | None:
    """Return the AUC of all rows for each of `SHARES` among the missing outcomes of `changed` rows.

    The missing outcomes of other rows are as often positive as the known ones of their side. None if a class of a side
    with missing outcomes is not known at all.

    score: (n,).
    positive, known, flag, changed: (n,), bool; `positive` has any value where `known` is False. `changed` is a whole
        side, or all rows.
    """
    from scipy.stats import rankdata

    mass = np.zeros((2, 2, SHARES.size))  # class, side
    means = np.zeros((2, 2))  # area of the positives of a side over the negatives of a side
    cells = [[known & (positive == c) & (flag == s) for s in (0, 1)] for c in (0, 1)]
    for s in (0, 1):
        side = flag == s
        missing = int(np.count_nonzero(side & ~known))
        counts = [int(np.count_nonzero(cells[c][s])) for c in (0, 1)]
        if missing and not all(counts):
            return None
        share = (
            SHARES if changed[side].any() else np.full(SHARES.size, counts[1] / max(1, sum(counts)))
        )
        mass[1, s], mass[0, s] = counts[1] + missing * share, counts[0] + missing * (1.0 - share)
    for s in (0, 1):
        for r in (0, 1):
            above, below = score[cells[1][s]], score[cells[0][r]]
            if above.size and below.size:
                ranks = rankdata(np.concatenate([above, below]))[: above.size]
                pairs = ranks.sum() - above.size * (above.size + 1) / 2.0
                means[s, r] = pairs / (above.size * below.size)
    pairs = np.einsum("sq,rq,sr->q", mass[1], mass[0], means)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = pairs / (mass[1].sum(axis=0) * mass[0].sum(axis=0))
    return found if np.isfinite(found).all() else None


def level_by_share(
    log_odds: FloatArray,
    positive: NDArray[np.bool_],
    known: NDArray[np.bool_],
    changed: NDArray[np.bool_],
    weight: FloatArray,
) -> FloatArray:
    """Return the level of the calibration for each of `SHARES` among the missing outcomes of `changed` rows.

    Missing outcomes of other rows are left out, as the tests do.

    log_odds: (n,); of the predicted probabilities.
    positive, known, changed: (n,), bool; `positive` has any value where `known` is False.
    weight: (n,).
    """
    used = known | changed
    cell, odds = odds_cells(log_odds[used], weight[used], _CELLS)
    mass = np.bincount(cell, weight[used])
    # At the maximum of the likelihood as many positives are expected as there are.
    seen = known[used]
    positives = weight[used][positive[used] & seen].sum() + SHARES * weight[used][~seen].sum()
    positives = np.clip(positives, _LEAST, mass.sum() - _LEAST)
    low, high = np.full(SHARES.size, -_MOST_ODDS), np.full(SHARES.size, _MOST_ODDS)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        below = sigmoid(odds + middle[:, np.newaxis]) @ mass < positives
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def unchanged_shares(
    values: Sequence[float] | FloatArray, low: float, high: float
) -> tuple[float, float] | None:
    """Return the least and the greatest share at which a metric is within limits; None if it is at none.

    values: the metric for each of `SHARES`; linear in between.
    low, high: the limits.
    """
    fine = np.linspace(0.0, 1.0, 1001)
    inside = np.interp(fine, SHARES, np.asarray(values, dtype=np.float64))
    at = fine[(inside >= low) & (inside <= high)]
    return (float(at[0]), float(at[-1])) if at.size else None
