"""Columns that state the label: patterns that one class has and the other has not, and orders that follow the label.

A column that is filled in after the outcome (a collection fee, the reason of a cancellation) predicts the label with
hardly an exception wherever it has a certain *pattern*: a category, no value, or a number below, at or above the
commonest one. The tail of a graded predictor, such as the worst percentile of a bureau score, may be as pure, so tails
of numbers are no patterns, and a column whose other levels still rank the rows is none of these columns.

Levels are selected on one half of the rows and counted on the other, and then the other way round: selected and counted
on the same rows, chance levels look pure. With a and b the pattern's shares of the class and of all other rows, the
*balanced purity* is a / (a + b), the purity if both classes had equally many rows. It is taken at its lower limit, from
Clopper and Pearson's limits of a and b.

A pattern of the rarer class is reported if its purity and its share of the class are great, or if it has half of the
class with next to no others. For the commoner class, most of its rows must have the pattern: rules about who may take
part at all (no rows of minors among the positives) are as pure, and legitimate.

References
----------
Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26
(1934).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.metrics.estimates import Interval
from core.metrics.groups import FloatArray, check_rows
from core.metrics.intervals import interval_of_rows
from core.metrics.window import WHOLE

Bools = NDArray[np.bool_]
Codes = NDArray[np.intp]
Place = Literal["below", "at", "above", "known", "missing"]

RISK = 0.05
"""Probability with which any column of a table, none of which states the label, is reported."""

MIN_LEVEL_ROWS, MIN_RATIO = 5, 20.0
"""Rows of the class, and how many times as frequent as among the others, for a level to be selected on a half."""

MIN_PURITY, MIN_PURITY_LOW, MIN_BALANCED = 0.98, 0.9, 0.95
"""Purity, its lower limit and that of the balanced purity of a pattern that has at least `MIN_SHARE` of the rarer
class."""

MIN_SHARE = 0.2

NEARLY_PURE = 0.98
"""Lower limit of the balanced purity that is enough alone, with the shares of the class below."""

MIN_SHARE_OF_RARER, MIN_SHARE_OF_COMMONER = 0.5, 0.8

GRADED = 0.75
"""AUC of the levels that were not selected from which on the column is a graded predictor."""

MIN_SPIKE = 0.05
"""Share of a number's known values that the commonest one needs, to be a value of its own."""

ORDER_BINS, MIN_ORDER_AUC = 50, 0.75
"""Bins of a number's ranks, and the lower limit of their AUC from which on its order states the label."""

MIN_DISTINCT, MAX_RANGE = 0.99, 20
"""Distinct values per row, and range per row, of whole numbers that may number the rows."""

_PRIOR_ROWS = 10.0  # rows of the average kind that a bin's share is mixed with


@dataclass(frozen=True)
class PurePattern:
    """Levels of a column that nearly only rows of one class have.

    Attributes
    ----------
    levels : tuple of int
        The selected codes, those with most rows of the class first.
    rows, others : int
        Rows of the class, and of the other class, that have one of the levels.
    of_rows, of_others : int
        All rows of the class, and of the other class.
    """

    positive: bool
    """Whether it is the positives that have the pattern."""
    levels: tuple[int, ...]
    rows: int
    of_rows: int
    others: int
    of_others: int


def halves(n_rows: int, seed: int) -> Bools:
    """Return which rows are in the first half, at random."""
    return np.random.Generator(np.random.Philox(seed)).random(n_rows) < 0.5


def spike_codes(values: FloatArray) -> tuple[Codes, tuple[tuple[Place, float], ...]]:
    """Return what a number can flag a row by, as the code of each row, and the meaning of each code.

    values: (n_rows,), float64; NaN is missing.
    """
    missing = np.isnan(values)
    known = np.sort(values[~missing])
    places: list[tuple[Place, float]] = []
    codes = np.zeros(values.size, dtype=np.intp)
    firsts = np.r_[True, known[1:] != known[:-1]] if known.size else np.zeros(0, dtype=bool)
    starts = np.flatnonzero(firsts)
    if 0 < starts.size <= 2:
        places += [("at", float(known[start])) for start in starts.tolist()]
        codes[values == known[-1]] = starts.size - 1
    elif starts.size:
        sizes = np.diff(np.r_[starts, known.size])
        commonest = int(sizes.argmax())
        if sizes[commonest] >= MIN_SPIKE * known.size:
            spike = float(known[starts[commonest]])
            places += [("below", spike), ("at", spike), ("above", spike)]
            codes = (values >= spike).astype(np.intp) + (values > spike)
        else:
            places.append(("known", np.nan))
    codes[missing] = len(places)
    return codes, (*places, ("missing", np.nan))


def pure_pattern(
    codes: Codes, positive: Bools, first_half: Bools, n_columns: int = 1
) -> PurePattern | None:
    """Return the levels of a column that state the label; None if there are none.

    codes: (n_rows,); the level of each row, from 0.
    positive, first_half: (n_rows,); `first_half` parts the rows at random.
    n_columns: number of columns that are looked at, of all of which a false report has the probability `RISK`.

    O(n_rows + n_levels · log n_levels).
    """
    n_levels = int(codes.max(initial=0)) + 1
    cell = codes + n_levels * (positive + 2 * first_half.astype(np.intp))
    counts = np.bincount(cell, minlength=4 * n_levels).reshape(2, 2, n_levels)
    for of_class in (1, 0):
        own, others = counts[:, of_class], counts[:, 1 - of_class]
        found = _pattern(own, others, positive=bool(of_class), risk=RISK / (2.0 * n_columns))
        if found is not None:
            return found
    return None


def _pattern(
    own: NDArray[np.intp], others: NDArray[np.intp], *, positive: bool, risk: float
) -> PurePattern | None:
    """Return the pattern of the class of `own`; own, others: (2, n_levels), rows by half and level."""
    of_own, of_others = own.sum(axis=1), others.sum(axis=1)
    share = own / np.maximum(of_own, 1)[:, np.newaxis]
    share_of_others = (others + 0.5) / (of_others + 1.0)[:, np.newaxis]
    selected = (own >= MIN_LEVEL_ROWS) & (share >= MIN_RATIO * share_of_others)
    # Those that one half selects are counted on the other.
    rows, wrong = int(own[::-1][selected].sum()), int(others[::-1][selected].sum())
    n_own, n_others = int(of_own.sum()), int(of_others.sum())
    if not rows or not n_others or _still_ranks(own, others, selected) >= GRADED:
        return None
    coverage, purity = rows / n_own, rows / (rows + wrong)
    least, most = clopper_pearson(rows, n_own, risk)[0], clopper_pearson(wrong, n_others, risk)[1]
    balanced = least / (least + most)
    rarer = n_own < n_others
    enough = MIN_SHARE_OF_RARER if rarer else MIN_SHARE_OF_COMMONER
    wide = balanced >= NEARLY_PURE and coverage >= enough
    pure = (
        rarer
        and coverage >= MIN_SHARE
        and purity >= MIN_PURITY
        and balanced >= MIN_BALANCED
        and clopper_pearson(rows, rows + wrong, risk)[0] >= MIN_PURITY_LOW
    )
    if not wide and not pure:
        return None
    levels = np.flatnonzero(selected.any(axis=0))
    totals, totals_of_others = own.sum(axis=0), others.sum(axis=0)
    order = np.argsort(-totals[levels], kind="stable")
    return PurePattern(
        positive,
        tuple(levels[order].tolist()),
        int(totals[levels].sum()),
        n_own,
        int(totals_of_others[levels].sum()),
        n_others,
    )


def _still_ranks(own: NDArray[np.intp], others: NDArray[np.intp], selected: Bools) -> float:
    """Return the AUC of the levels that a half did not select, ordered by that half and measured on the other."""
    better = pairs = 0.0
    for half in (0, 1):
        left = np.flatnonzero(~selected[half])
        rate = (own[half, left] + 1) / (own[half, left] + others[half, left] + 2)
        order = left[np.argsort(rate, kind="stable")]
        high, low = own[1 - half, order].astype(float), others[1 - half, order].astype(float)
        better += float((high * (np.cumsum(low) - low / 2.0)).sum())
        pairs += float(high.sum() * low.sum())
    return better / pairs if pairs else 0.5


def clopper_pearson(hits: int, n: int, risk: float) -> tuple[float, float]:
    """Return the lower and the upper limit of a proportion, each missed with a probability of at most `risk`."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, risk))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1.0 - risk))
    return low, high


def may_number_rows(values: FloatArray) -> bool:
    """Return True for whole numbers that hardly repeat and leave few gaps: they may be in the order of the rows."""
    if not values.size or np.isnan(values).any() or not (np.floor(values) == values).all():
        return False
    n = values.size
    return bool(np.ptp(values) < MAX_RANGE * n and np.unique(values).size >= MIN_DISTINCT * n)


def order_area(
    values: FloatArray, positive: Bools, first_half: Bools, n_columns: int = 1
) -> Interval | None:
    """Return the AUC of rows that are scored by their neighbours in the other half; None if it is below the rule's.

    An id that was given by outcome (first all paid, then all unpaid) has neighbours with the same label. The values are
    cut into `ORDER_BINS` bins of equally many rows, whose share of positives in the other half is the score. The lower
    limit, which must be at least `MIN_ORDER_AUC`, has the risk `RISK` over `n_columns` columns.
    """
    n = values.size
    if min(np.count_nonzero(positive), np.count_nonzero(~positive)) < 2:
        return None
    ranks = np.empty(n, dtype=np.intp)
    ranks[np.argsort(values, kind="stable")] = np.arange(n)
    cell = ranks * ORDER_BINS // n + ORDER_BINS * first_half
    rows = np.bincount(cell, minlength=2 * ORDER_BINS).reshape(2, ORDER_BINS)
    hits = np.bincount(cell[positive], minlength=2 * ORDER_BINS).reshape(2, ORDER_BINS)
    share = (hits + _PRIOR_ROWS * positive.mean()) / (rows + _PRIOR_ROWS)
    scores = share[1 - first_half.astype(np.intp), cell % ORDER_BINS]
    checked = check_rows(positive, {"scores": scores})
    area = interval_of_rows(checked, WHOLE, 1.0 - 2.0 * RISK / n_columns)
    return area if area.low >= MIN_ORDER_AUC else None
