"""Bounds on the fraction of discordant pairs of future rows, from the margins of the training pairs: §3 of paper 2.

All are of one form: with probability at least 1 - δ over the draw of m independent rows,

    P{misrank} <= P_S{margin <= θ} + ε

for every f of a space F that was fixed before the rows were seen. The first term is counted, the
second comes from the size of F (its covering number), from m, and from E, the share of ordered pairs of
rows that are crucial: m₊m₋/(m(m - 1)) for two classes, the empirical form that §3 allows.
`bound_misranking` puts them together for a ranker, and says where they do not apply or say nothing.

The formulas take |H| as `n_weak_rankers` (1 or more), θ and ε above 0, δ in (0, 1), m as `rows` (2 or more) and E as
`crucial_share` in (0, 1/2]; they refuse other values with InvalidParameter.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from core.base.parameters import check_items, check_value
from core.errors import InvalidParameter

if TYPE_CHECKING:
    from core.metrics.margins import MarginDistribution

MIN_THETA = 1e-6
"""Smallest margin θ: smaller ones are close to the rounding error of scores, and would need far too many rows."""

MAX_COUNTED = 2**62
"""Largest number of weak rankers that is counted, which fits an int64: the sets of 61 categories."""

MAX_EPSILON = 1e6  # far above 1, where a bound says nothing
_WEIGHTED = "the theorem counts rows, but these have unequal weights"
_LISTED = (
    "the theorem requires every crucial pair among independent rows, but these pairs were listed"
)


@dataclass(frozen=True)
class WeakRankers:
    """The set H of {0, 1}-valued weak rankers that a ranker combines: size and origin.

    Examples
    --------
    >>> from core.bounds import stump_rankers
    >>> stump_rankers(n_thresholds=10, n_features=3, boolean=False).size
    126
    """

    size: int
    """|H|, or an upper bound of it; the bounds only grow with it."""
    depends_on_data: str | None = None
    """How H depends on the training rows; None if it was fixed before them."""


@dataclass(frozen=True)
class Sample:
    """The rows from which a bound is computed: their number, and the share E of crucial pairs.

    Examples
    --------
    >>> from core.bounds import two_classes
    >>> two_classes(positives=50, negatives=150).rows
    200
    """

    rows: int
    """m, at least 2."""
    crucial_share: float
    """E, the fraction of ordered pairs of rows that are crucial. In (0, 1/2]."""
    reasons: tuple[str, ...] = ()
    """Why the rows were not sampled as the theorem assumes; empty if no reason is known."""


@dataclass(frozen=True)
class Bound:
    """A generalisation bound, its parts, and whether it applies.

    Examples
    --------
    >>> from core.bounds import bound_held_out, two_classes
    >>> found = bound_held_out(0.1, two_classes(5000, 5000), delta=0.05)
    >>> found.name, round(found.value, 3), found.applies
    ('held_out', 0.317, True)
    """

    name: str
    """Name of the bound."""
    source: str
    """The theorem and its paper."""
    margin_fraction: float
    """P_S{margin <= θ}. In [0, 1]."""
    epsilon: float
    """ε, the part that depends on the number of rows."""
    terms: Mapping[str, float]
    """The quantities from which ε was computed."""
    reasons: tuple[str, ...]
    """Why the bound does not apply; empty if it does."""

    @property
    def value(self) -> float:
        """The bound P_S{margin <= θ} + ε. The misranking probability exceeds it with probability at most δ."""
        return self.margin_fraction + self.epsilon

    @property
    def applies(self) -> bool:
        """Whether the conditions of the theorem hold, as far as they can be checked."""
        return not self.reasons

    @property
    def vacuous(self) -> bool:
        """Whether the bound is 1 or more, which every probability satisfies."""
        return not self.value < 1.0  # NaN says nothing either


def two_classes(positives: int, negatives: int, *, weighted: bool = False) -> Sample:
    """Return the sample of rows of two classes: all pairs of a positive and a negative are crucial.

    E = m₊m₋/(m(m - 1)), the empirical form that §3 allows.

    Parameters
    ----------
    positives, negatives : int
        Number of rows of each class, at least one.
    weighted : bool
        Whether rows of one class have unequal weights.

    Returns
    -------
    Sample

    Examples
    --------
    >>> from core.bounds import two_classes
    >>> round(two_classes(30, 70).crucial_share, 3)
    0.212
    """
    check_value("positives", Annotated[int, Ge(1)], positives)
    check_value("negatives", Annotated[int, Ge(1)], negatives)
    check_value("weighted", bool, weighted)
    rows = positives + negatives
    share = positives * negatives / (rows * (rows - 1))
    return Sample(rows, share, (_WEIGHTED,) if weighted else ())


def listed_pairs(items: int, pairs: int) -> Sample:
    """Return the sample of items whose crucial pairs were listed; no theorem applies to it.

    The theorems need all crucial pairs among rows that were drawn at random.

    Parameters
    ----------
    items : int
        Number of items, at least 2.
    pairs : int
        Number of pairs, at least 1.

    Returns
    -------
    Sample

    Examples
    --------
    >>> from core.bounds import listed_pairs
    >>> len(listed_pairs(items=10, pairs=20).reasons)
    1
    """
    check_value("items", Annotated[int, Ge(2)], items)
    check_value("pairs", Annotated[int, Ge(1)], pairs)
    share = min(0.5, pairs / (items * (items - 1)))
    return Sample(items, share, (_LISTED,))


def stump_rankers(
    n_thresholds: int,
    n_features: int,
    *,
    boolean: bool = False,
    n_categories: Sequence[int] = (),
) -> WeakRankers:
    """Return the set of all stumps: both directions of every threshold, and every set of categories.

    Missing values may be on either side.

    Parameters
    ----------
    n_thresholds : int
        Maximum number of thresholds per numeric feature.
    n_features : int
        Number of numeric features.
    boolean : bool
        Whether each of them only has the values 0, 1 and missing. All possible stumps are then known in advance;
        otherwise thresholds are bin edges, chosen from the rows.
    n_categories : sequence of int
        Number of categories of each categorical feature.

    Returns
    -------
    WeakRankers
        The set. Its size is an upper bound, at most 2^62.

    Notes
    -----
    The set of categories of a stump may be chosen from the rows if all sets are counted: 2^(K + 1) for K categories and
    the missing one, minus the two that leave nothing on one side. But the categories are those of the training rows, so
    bounds that need H in advance do not apply.

    Examples
    --------
    >>> from core.bounds import stump_rankers
    >>> stump_rankers(n_thresholds=1, n_features=3, boolean=True).size
    18
    """
    check_value("n_thresholds", Annotated[int, Ge(0)], n_thresholds)
    check_value("n_features", Annotated[int, Ge(0)], n_features)
    check_value("boolean", bool, boolean)
    size = sum(
        2 ** min(k + 1, 62) - 2
        for k in check_items("n_categories", n_categories, Annotated[int, Ge(0)])
    )
    reasons = ["the categories are those of the training rows"] if len(n_categories) else []
    if boolean:
        size += 6 * n_features  # of 8 functions of three values 2 are constant
    elif n_features:
        # The threshold -inf separates missing values from all others, in both directions.
        size += (4 * n_thresholds + 2) * n_features
        reasons.insert(0, "the thresholds are bin edges, chosen from the training rows")
    return WeakRankers(min(size, MAX_COUNTED), "; ".join(reasons) or None)


def column_rankers(n_features: int) -> WeakRankers:
    """Return the set of weak rankers that are columns of 0 and 1, or their reverses (§4).

    Parameters
    ----------
    n_features : int
        Number of columns.

    Returns
    -------
    WeakRankers

    Examples
    --------
    >>> from core.bounds import column_rankers
    >>> column_rankers(5).size
    10
    """
    check_value("n_features", Annotated[int, Ge(1)], n_features)
    return WeakRankers(2 * n_features)


def bound_misranking(
    margins: MarginDistribution,
    sample: Sample,
    weak_rankers: WeakRankers,
    *,
    theta: float,
    delta: float,
) -> tuple[Bound, ...]:
    """Compute all bounds of §3 for a convex combination of {0, 1} weak rankers.

    They bound the fraction of discordant pairs of future rows. It is assumed that rows were drawn independently, which
    cannot be checked. A bound that does not apply still has a value, which only shows what the theorem would say.

    Parameters
    ----------
    margins : MarginDistribution
        Margins of the training pairs.
    sample : Sample
        The training rows.
    weak_rankers : WeakRankers
        The set of weak rankers.
    theta : float in [1e-6, 1]
        θ, chosen before the margins are known. To try k values, use δ/k for each.
    delta : float in (0, 1)
        Probability that a bound does not hold.

    Returns
    -------
    tuple of Bound
        theorem_2 (with the smaller of the two covers), corollary_4, equation_2 and corollary_5.

    Examples
    --------
    >>> from core.bounds import WeakRankers, bound_misranking, two_classes
    >>> from core.metrics import margin_distribution, roc_curve
    >>> margins = margin_distribution(roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.5, 0.1]), l1_norm=1.0)
    >>> bounds = bound_misranking(margins, two_classes(2, 2), WeakRankers(10), theta=0.1, delta=0.05)
    >>> [bound.vacuous for bound in bounds]  # four rows prove nothing
    [True, True, True, True]
    """
    from core.metrics.margins import MarginDistribution

    check_value("margins", MarginDistribution, margins)
    check_value("sample", Sample, sample)
    check_value("weak_rankers", WeakRankers, weak_rankers)
    check_value("theta", Real, theta)
    if not MIN_THETA <= theta <= 1:
        raise InvalidParameter(f"theta must be from {MIN_THETA:g} to 1, got {theta}")
    _check_delta(delta)
    size, m, E = weak_rankers.size, sample.rows, sample.crucial_share
    reasons = sample.reasons
    if weak_rankers.depends_on_data is not None:
        reasons = (*reasons, f"H must be fixed beforehand: {weak_rankers.depends_on_data}")
    log_uniform = log_uniform_cover(size, theta / 4)
    sloppy = corollary_4_epsilon(size, theta, delta, m, E)
    uniform = corollary_5_epsilon(log_uniform, delta, m, E)
    log_sloppy = (
        log_sloppy_cover(size, theta / 4, sloppy / 8) if math.isfinite(sloppy) else math.inf
    )
    least_rows = equation_2_least_rows(size, theta, E)
    too_few = f"m must be at least 64 ln|H|/(Eθ)² = {least_rows:.4g}, got {m}"
    common = {"m": float(m), "E": E, "theta": theta, "delta": delta}
    known = common | {"weak_rankers": float(size)}
    bounds = (
        (
            "theorem_2",
            "Theorem 2",
            min(sloppy, uniform),
            common | {"log_cover": log_sloppy if sloppy < uniform else log_uniform},
            reasons,
        ),
        ("corollary_4", "Corollary 4", sloppy, known | {"log_cover": log_sloppy}, reasons),
        (
            "equation_2",
            "eq. 2",
            equation_2_epsilon(size, theta, delta, m, E),
            known | {"least_m": least_rows},
            (*reasons, too_few) if m < least_rows else reasons,
        ),
        ("corollary_5", "Corollary 5", uniform, known | {"log_cover": log_uniform}, reasons),
    )
    fraction = margins.fraction_within(theta)
    return tuple(
        Bound(name, f"Rudin & Schapire 2009, {place}", fraction, epsilon, terms, why)
        for name, place, epsilon, terms, why in bounds
    )


def bound_held_out(misrank_fraction: float, sample: Sample, *, delta: float) -> Bound:
    """Bound the discordant fraction of future rows from that of held-out rows.

    The ranker is fixed before these rows: F has one function, which covers itself at every θ > 0, and θ tends to 0.

    Parameters
    ----------
    misrank_fraction : float in [0, 1]
        Fraction of discordant held-out pairs, ties included.
    sample : Sample
        The held-out rows.
    delta : float in (0, 1)
        Probability that the bound does not hold.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from core.bounds import bound_held_out, two_classes
    >>> round(bound_held_out(0.1, two_classes(3000, 7000), delta=0.05).value, 3)
    0.359
    """
    check_value("sample", Sample, sample)
    check_value("misrank_fraction", Real, misrank_fraction)
    if not 0 <= misrank_fraction <= 1:
        raise InvalidParameter(f"misrank_fraction must be in [0, 1], got {misrank_fraction}")
    m, E = sample.rows, sample.crucial_share
    return Bound(
        "held_out",
        "Rudin & Schapire 2009, Corollary 5 with |F| = 1",
        misrank_fraction,
        corollary_5_epsilon(0.0, delta, m, E),
        {"m": float(m), "E": E, "delta": delta, "log_cover": 0.0},
        sample.reasons,
    )


def log_sloppy_cover(n_weak_rankers: int, theta: float, epsilon: float) -> float:
    """Return Lemma 3's bound of ln N(F, θ, ε), F the convex combinations of H: ln|H| ln(2/ε)/(2θ²), or 0 if ε >= 2."""
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    _check_positive("epsilon", epsilon)
    log_h = math.log(n_weak_rankers) * max(0.0, math.log(2 / epsilon))
    return _ratio(log_h, 2 * theta**2)


def log_uniform_cover(n_weak_rankers: int, theta: float) -> float:
    """Return a bound of the log covering number in L∞, ln N∞(F, θ), of the convex combinations of H.

    It is ln C(N + |H| - 1, N) with N = ⌊|H|/(4θ)⌋ + 1, for open balls of radius θ.

    The paper leaves N∞ open; this count is ours. Round λ to multiples of 1/N by largest remainders:
    ‖λ - λ'‖₁ <= |H|/(2N). As both sum to 1 and the h_j lie in [0, 1], f moves by at most half of
    that, |H|/(4N), which is below θ. There are C(N + |H| - 1, N) such λ'. It grows with |H|, not
    with its logarithm, but not with 1/θ²: for few weak rankers and small margins it is by far the
    smaller of the two covers.
    """
    from scipy.special import betaln

    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    parts = _ratio(float(n_weak_rankers), 4 * theta)
    if math.isinf(parts):
        return 0.0 if n_weak_rankers == 1 else math.inf
    parts = math.floor(parts) + 1.0
    # ln C(n, k) = -ln(n + 1) - ln B(n - k + 1, k + 1), which keeps its digits for any n.
    return float(-math.log(parts + n_weak_rankers) - betaln(parts + 1, n_weak_rankers))


def corollary_4_epsilon(
    n_weak_rankers: int, theta: float, delta: float, rows: int, crucial_share: float
) -> float:
    """Return the smallest ε at which Corollary 4 holds with probability 1 - δ.

    It is the root of 2 N exp(-m(εE)²/8) = δ with N = N(F, θ/4, ε/8), Lemma 3's. Eq. 2 is a closed form that is never
    below it.
    """
    from scipy.optimize import brentq

    _check_delta(delta)

    def excess(epsilon: float) -> float:
        log_cover = log_sloppy_cover(n_weak_rankers, theta / 4, epsilon / 8)
        return _log_failure(log_cover, epsilon, rows, crucial_share) - math.log(delta)

    if excess(MAX_EPSILON) > 0:
        return math.inf
    # Below this ε the bound fails even for a cover of one.
    low = corollary_5_epsilon(0.0, delta, rows, crucial_share)
    if excess(low) <= 0:
        return low
    root = float(brentq(excess, low, MAX_EPSILON, xtol=1e-12, rtol=1e-12))
    return root * (1 + 1e-9)  # on the side where the bound holds


def equation_2_epsilon(
    n_weak_rankers: int, theta: float, delta: float, rows: int, crucial_share: float
) -> float:
    """Return ε in closed form (eq. 2), an upper bound of `corollary_4_epsilon`.

    It is √(4/(mE²) [8 ln|H|/θ² · ln(4mE²θ²/ln|H|) + 2 ln(2/δ)]). It is valid only if m is at least
    `equation_2_least_rows`. Far below, the logarithm is negative and ε is NaN.
    """
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    _check_delta(delta)
    _check_sample(rows, crucial_share)
    scale = rows * crucial_share**2
    log_h = math.log(n_weak_rankers)
    complexity = 0.0
    if log_h > 0:
        rows_each = 4 * scale * theta**2 / log_h
        if rows_each < 1:
            return math.nan
        complexity = 8 * log_h / theta**2 * math.log(rows_each)
    return math.sqrt(4 / scale * (complexity + 2 * (math.log(2) - math.log(delta))))


def equation_2_least_rows(n_weak_rankers: int, theta: float, crucial_share: float) -> float:
    """Return the smallest m for which eq. 2 holds: 64 ln|H|/(E²θ²)."""
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    return _ratio(64 * math.log(n_weak_rankers), (crucial_share * theta) ** 2)


def corollary_5_epsilon(log_cover: float, delta: float, rows: int, crucial_share: float) -> float:
    """Return the ε of Corollary 5, which holds with probability 1 - δ: √(8/(mE²) (ln 2N + ln 1/δ)).

    `log_cover` is ln N: ln N∞(F, θ/4), or ln|F| for a finite F, which is 0 for one ranker that was fixed before the
    rows.
    """
    _check_delta(delta)
    _check_sample(rows, crucial_share)
    return math.sqrt(8 / (rows * crucial_share**2) * (log_cover + math.log(2) - math.log(delta)))


def _log_failure(log_cover: float, epsilon: float, rows: int, crucial_share: float) -> float:
    """Return ln(2 N exp(-m(εE)²/8)), the log of the probability that a bound fails."""
    _check_positive("epsilon", epsilon)
    _check_sample(rows, crucial_share)
    return math.log(2) + log_cover - rows * (epsilon * crucial_share) ** 2 / 8


def _ratio(numerator: float, denominator: float) -> float:
    if numerator == 0:
        return 0.0
    return numerator / denominator if denominator > numerator / sys.float_info.max else math.inf


def _check_size(n_weak_rankers: int) -> None:
    if n_weak_rankers < 1:
        raise InvalidParameter(f"n_weak_rankers must be at least 1, got {n_weak_rankers}")


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise InvalidParameter(f"{name} must be above 0, got {value}")


def _check_delta(delta: float) -> None:
    check_value("delta", Real, delta)
    if not 0 < delta < 1:
        raise InvalidParameter(f"delta must be between 0 and 1, got {delta}")


def _check_sample(rows: int, crucial_share: float) -> None:
    if rows < 2:
        raise InvalidParameter(f"rows must be at least 2, got {rows}")
    if not 0 < crucial_share <= 0.5:
        raise InvalidParameter(
            f"crucial_share must be above 0 and at most 1/2, got {crucial_share}"
        )
