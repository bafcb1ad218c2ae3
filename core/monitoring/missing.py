"""Outcomes that are missing: what a metric would be for each share of positives among them.

A test uses the known outcomes. Whether the missing ones could change its answer cannot be seen in the data, but it can
be computed for each share q of positives among them, on one side of the threshold or on both (a sensitivity analysis;
Rosenbaum 2002). `unchanged_shares` then gives the shares at which the answer is "nothing has changed".

* **AUC**: the scores of the rows without an outcome are known. The log odds of a positive at a score are assumed to be
  those among the known outcomes of the side plus a constant, which gives the share q. (Scores like those of the known
  positives would contradict the scores that the rows have: if outcomes of high scores are missing, the AUC of the known
  ones falls, and no share could have explained it.)
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
from core.metrics.logistic import sigmoid
from core.probability.score_test import odds_cells

SHARES: FloatArray = np.linspace(0.0, 1.0, 21)
"""The shares of positives among missing outcomes at which a metric is computed."""

_BINS = 16  # of the scores of a side
_ROWS_IN_BIN = 10  # known ones, at least
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

    The missing outcomes of other rows are as often positive as the known ones of their side with such scores. None if a
    class of a side with missing outcomes is not known at all.

    score: (n,).
    positive, known, flag, changed: (n,), bool; `positive` has any value where `known` is False. `changed` is a whole
        side, or all rows.
    """
    n = score.size
    chance = np.broadcast_to(known & positive, (SHARES.size, n)).astype(np.float64)
    for side in (flag, ~flag):
        seen, unseen = side & known, side & ~known
        if not unseen.any():
            continue
        share = float(positive[seen].mean()) if seen.any() else 0.0
        if not 0.0 < share < 1.0:
            return None
        bins = min(_BINS, 1 + int(np.count_nonzero(seen)) // _ROWS_IN_BIN)
        edges = np.quantile(score[seen], np.arange(1, bins) / bins)
        cell = np.searchsorted(edges, score, side="right")
        of_known = [
            np.bincount(cell[seen & (positive == label)], minlength=bins) + prior
            for label, prior in ((True, share), (False, 1.0 - share))
        ]
        odds = np.log(of_known[0] / of_known[1])
        mass = np.bincount(cell[unseen], minlength=bins).astype(np.float64)
        shift = np.zeros(SHARES.size)
        if changed[unseen].any():
            shift = _shift_to(SHARES * mass.sum(), odds, mass)
        chance[:, unseen] = sigmoid(odds + shift[:, np.newaxis])[:, cell[unseen]]
    order = np.argsort(score, kind="stable")
    place = np.unique(score[order], return_inverse=True)[1]
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    above = np.add.reduceat(chance[:, order], starts, axis=1)
    below = np.add.reduceat(1.0 - chance[:, order], starts, axis=1)
    pairs = (above * (np.cumsum(below, axis=1) - 0.5 * below)).sum(axis=1)
    itself = (chance * (1.0 - chance)).sum(axis=1)  # a row is no pair with itself
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = (pairs - 0.5 * itself) / (
            above.sum(axis=1) * below.sum(axis=1) - itself
        )
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
    mass = np.bincount(cell, weight[used]).astype(np.float64, copy=False)
    # At the maximum of the likelihood as many positives are expected as there are.
    seen = known[used]
    positives = weight[used][positive[used] & seen].sum() + SHARES * weight[used][~seen].sum()
    positives = np.clip(positives, _LEAST, mass.sum() - _LEAST)
    return _shift_to(positives, odds, mass)


def _shift_to(positives: FloatArray, odds: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the constants that make rows with log-odds plus a constant have these expected numbers of positives.

    positives: (n,). odds, mass: (n_cells,); log-odds and numbers of rows.
    """
    low, high = np.full(positives.size, -_MOST_ODDS), np.full(positives.size, _MOST_ODDS)
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
