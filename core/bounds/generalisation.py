"""Bounds on the misranking of rows to come, from the margins of the training pairs.

All are of one form: with probability at least 1 - δ over the draw of m independent rows,

    P{misrank} <= P_S{margin <= θ} + ε

for every f of a space F that was fixed before the rows were seen. The first term is counted, the
second comes from the size of F (its covering number), from m, and from E, the share of ordered pairs of
rows that are crucial: m₊m₋/(m(m - 1)) for two classes, the empirical form that §3 allows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import gammaln

from core.errors import InvalidParameter
from core.metrics.margins import MarginDistribution

_GREATEST_EPSILON = 1e6  # far beyond 1, where a bound says nothing any more


@dataclass(frozen=True)
class WeakRankers:
    """The set H of weak rankers with values in {0, 1} that a ranker combines.

    Attributes
    ----------
    size : int
        |H|, or a number that it cannot exceed: the bounds only grow with it.
    depends_on_data : str or None
        In what way H came from the training rows; None when it was fixed before them.
    """

    size: int
    depends_on_data: str | None = None


@dataclass(frozen=True)
class Sample:
    """The rows that a bound speaks of.

    Attributes
    ----------
    positives, negatives : int
        Rows of each class, at least one.
    weighted : bool
        Whether rows weigh unequally.
    """

    positives: int
    negatives: int
    weighted: bool = False

    @property
    def rows(self) -> int:
        """m."""
        return self.positives + self.negatives

    @property
    def crucial_share(self) -> float:
        """E = m₊m₋/(m(m - 1)), the share of ordered pairs that are crucial; at most ½."""
        return self.positives * self.negatives / (self.rows * (self.rows - 1))


@dataclass(frozen=True)
class Bound:
    """A bound as a number, with what it is made of and whether it may be believed.

    Attributes
    ----------
    name : str
    source : str
        Where it comes from.
    margin_fraction : float in [0, 1]
        P_S{margin <= θ}.
    epsilon : float
    terms : mapping of str to float
        What ε was computed from.
    reasons : tuple of str
        Why it does not apply; empty when it does.
    """

    name: str
    source: str
    margin_fraction: float
    epsilon: float
    terms: Mapping[str, float]
    reasons: tuple[str, ...]

    @property
    def value(self) -> float:
        """P_S{margin <= θ} + ε, which P{misrank} exceeds with probability at most δ."""
        return self.margin_fraction + self.epsilon

    @property
    def applies(self) -> bool:
        """Whether the conditions of the theorem are met, as far as they can be checked."""
        return not self.reasons

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: a probability is at most 1 anyway."""
        return not self.value < 1.0  # NaN says nothing either


def stump_rankers(n_thresholds: int, n_features: int, *, boolean: bool = False) -> WeakRankers:
    """Count stumps, at most: both directions of every threshold, the missing on either side.

    Parameters
    ----------
    n_thresholds : int
        Most thresholds per feature.
    n_features : int
    boolean : bool
        Whether every feature takes 0, 1 and missing only. Then all stumps there can be are known
        beforehand; else thresholds are bin edges, chosen from the rows.

    Returns
    -------
    WeakRankers
    """
    if boolean:
        return WeakRankers(6 * n_features)  # of 8 functions of three values 2 are constant
    # The threshold -inf tells the missing from all values, in both directions.
    size = (4 * n_thresholds + 2) * n_features
    return WeakRankers(size, "the thresholds are bin edges, chosen from the training rows")


def column_rankers(n_features: int) -> WeakRankers:
    """Count the weak rankers where the columns themselves are taken, as in §4: they were there first."""
    return WeakRankers(n_features)


def log_sloppy_cover(n_weak_rankers: int, theta: float, epsilon: float) -> float:
    """Bound ln N(F, θ, ε), the sloppy covering number of convex combinations of H (Lemma 3).

    Parameters
    ----------
    n_weak_rankers : int
        |H|, at least 1.
    theta, epsilon : float
        Above 0.

    Returns
    -------
    float
        ln|H| ln(2/ε)/(2θ²); 0 where ε >= 2, since a cover has at least one member.
    """
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    _check_positive("epsilon", epsilon)
    return math.log(n_weak_rankers) * max(0.0, math.log(2 / epsilon)) / (2 * theta**2)


def log_uniform_cover(n_weak_rankers: int, theta: float) -> float:
    """Bound ln N∞(F, θ), the covering number in L∞ of convex combinations of H.

    Parameters
    ----------
    n_weak_rankers : int
        |H|, at least 1.
    theta : float
        Radius of the open balls, above 0.

    Returns
    -------
    float
        ln C(N + |H| - 1, N) with N = ⌊|H|/(4θ)⌋ + 1.

    Notes
    -----
    The paper leaves N∞ open; this count is ours. Round λ to multiples of 1/N by largest remainders:
    ‖λ - λ'‖₁ <= |H|/(2N). As both sum to 1 and the h_j lie in [0, 1], f moves by at most half of
    that, |H|/(4N), which is below θ. There are C(N + |H| - 1, N) such λ'. It grows with |H|, not
    with its logarithm, but not with 1/θ²: for few weak rankers and small margins it is by far the
    smaller of the two covers.
    """
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    parts = math.floor(n_weak_rankers / (4 * theta)) + 1
    return _log_choose(parts + n_weak_rankers - 1, parts)


def corollary_4_failure(
    n_weak_rankers: int, theta: float, epsilon: float, rows: int, crucial_share: float
) -> float:
    """Probability with which the bound may fail, by Theorem 2 with Lemma 3's cover; may exceed 1.

    Parameters
    ----------
    n_weak_rankers : int
    theta, epsilon : float
        Above 0.
    rows : int
        m.
    crucial_share : float in (0, 1/2]
        E.

    Returns
    -------
    float
        2 exp(8 ln|H| ln(16/ε)/θ² - m(εE)²/8).
    """
    log_cover = log_sloppy_cover(n_weak_rankers, theta / 4, epsilon / 8)
    return _exp(_log_failure(log_cover, epsilon, rows, crucial_share))


def corollary_4_epsilon(
    n_weak_rankers: int, theta: float, delta: float, rows: int, crucial_share: float
) -> float:
    """Least ε at which Corollary 4 holds with probability 1 - δ.

    Parameters
    ----------
    n_weak_rankers : int
    theta : float
        Above 0.
    delta : float in (0, 1)
    rows : int
    crucial_share : float in (0, 1/2]

    Returns
    -------
    float
        The root of `corollary_4_failure` = δ. Eq. 2 is a closed form that lies above it.
    """
    _check_delta(delta)

    def excess(epsilon: float) -> float:
        log_cover = log_sloppy_cover(n_weak_rankers, theta / 4, epsilon / 8)
        return _log_failure(log_cover, epsilon, rows, crucial_share) - math.log(delta)

    if excess(_GREATEST_EPSILON) > 0:
        return math.inf
    # Below this ε the bound fails even for a cover of one.
    low = corollary_5_epsilon(0.0, delta, rows, crucial_share)
    if excess(low) <= 0:
        return low
    root = float(brentq(excess, low, _GREATEST_EPSILON, xtol=1e-12, rtol=1e-12))
    return root * (1 + 1e-9)  # on the side where the bound holds


def equation_2_epsilon(
    n_weak_rankers: int, theta: float, delta: float, rows: int, crucial_share: float
) -> float:
    """ε in closed form (eq. 2): an upper estimate of `corollary_4_epsilon`.

    Parameters
    ----------
    n_weak_rankers : int
    theta : float
        Above 0.
    delta : float in (0, 1)
    rows : int
    crucial_share : float in (0, 1/2]

    Returns
    -------
    float
        √(4/(mE²) [8 ln|H|/θ² · ln(4mE²θ²/ln|H|) + 2 ln(2/δ)]). Only where m is at least
        `equation_2_least_rows` is it more than a number; far below, the logarithm turns negative
        and it is NaN.
    """
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    _check_delta(delta)
    _check_sample(rows, crucial_share)
    scale = rows * crucial_share**2
    log_h = math.log(n_weak_rankers)
    complexity = 0.0
    if log_h > 0:
        complexity = 8 * log_h / theta**2 * math.log(4 * scale * theta**2 / log_h)
    inside = 4 / scale * (complexity + 2 * math.log(2 / delta))
    return math.sqrt(inside) if inside >= 0 else math.nan


def equation_2_least_rows(n_weak_rankers: int, theta: float, crucial_share: float) -> float:
    """Least m for which eq. 2 holds: 64 ln|H|/(E²θ²).

    Parameters
    ----------
    n_weak_rankers : int
    theta : float
        Above 0.
    crucial_share : float in (0, 1/2]

    Returns
    -------
    float
    """
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    return 64 * math.log(n_weak_rankers) / (crucial_share * theta) ** 2


def corollary_5_failure(log_cover: float, epsilon: float, rows: int, crucial_share: float) -> float:
    """Probability with which the bound may fail for a covering number; may exceed 1.

    Parameters
    ----------
    log_cover : float
        ln N∞(F, θ/4), or ln|F| for a finite F.
    epsilon : float
        Above 0.
    rows : int
    crucial_share : float in (0, 1/2]

    Returns
    -------
    float
        2 N exp(-m(εE)²/8).
    """
    return _exp(_log_failure(log_cover, epsilon, rows, crucial_share))


def corollary_5_epsilon(log_cover: float, delta: float, rows: int, crucial_share: float) -> float:
    """ε at which Corollary 5 holds with probability 1 - δ: √(8/(mE²) (ln 2N + ln 1/δ)).

    Parameters
    ----------
    log_cover : float
        ln N∞(F, θ/4), or ln|F| for a finite F: 0 for one ranker that was fixed before the rows.
    delta : float in (0, 1)
    rows : int
    crucial_share : float in (0, 1/2]

    Returns
    -------
    float
    """
    _check_delta(delta)
    _check_sample(rows, crucial_share)
    return math.sqrt(8 / (rows * crucial_share**2) * (log_cover + math.log(2 / delta)))


def bound_misranking(
    margins: MarginDistribution,
    sample: Sample,
    weak_rankers: WeakRankers,
    *,
    theta: float,
    delta: float,
) -> tuple[Bound, ...]:
    """Compute all bounds of §3 for a convex combination of {0, 1} weak rankers.

    Parameters
    ----------
    margins : MarginDistribution
        Of the training pairs.
    sample : Sample
        The training rows.
    weak_rankers : WeakRankers
    theta : float in (0, 1]
    delta : float in (0, 1)

    Returns
    -------
    tuple of Bound
        theorem_2 (with the smaller of the two covers), corollary_4, equation_2, corollary_5.

    Raises
    ------
    InvalidParameter
        If theta or delta is out of range.

    Notes
    -----
    That rows were drawn independently cannot be checked, and is assumed. Where a bound does not
    apply its number is given all the same: it shows what the theorem would say, no more.
    """
    if not 0 < theta <= 1:
        raise InvalidParameter(f"theta must be above 0 and at most 1, got {theta}")
    _check_delta(delta)
    size, m, E = weak_rankers.size, sample.rows, sample.crucial_share
    reasons = _reasons(sample)
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
    fraction = margins.fraction_within(theta)
    return (
        Bound(
            "theorem_2",
            "Rudin & Schapire 2009, Theorem 2",
            fraction,
            min(sloppy, uniform),
            common | {"log_cover": log_sloppy if sloppy < uniform else log_uniform},
            reasons,
        ),
        Bound(
            "corollary_4",
            "Rudin & Schapire 2009, Corollary 4",
            fraction,
            sloppy,
            known | {"log_cover": log_sloppy},
            reasons,
        ),
        Bound(
            "equation_2",
            "Rudin & Schapire 2009, eq. 2",
            fraction,
            equation_2_epsilon(size, theta, delta, m, E),
            known | {"least_m": least_rows},
            (*reasons, too_few) if m < least_rows else reasons,
        ),
        Bound(
            "corollary_5",
            "Rudin & Schapire 2009, Corollary 5",
            fraction,
            uniform,
            known | {"log_cover": log_uniform},
            reasons,
        ),
    )


def bound_held_out(misrank_fraction: float, sample: Sample, *, delta: float) -> Bound:
    """Bound the misranking by what rows say that had no part in the fit.

    Parameters
    ----------
    misrank_fraction : float in [0, 1]
        Share of the held-out pairs out of order, ties counted whole.
    sample : Sample
        The held-out rows.
    delta : float in (0, 1)

    Returns
    -------
    Bound

    Raises
    ------
    InvalidParameter
        If misrank_fraction or delta is out of range.

    Notes
    -----
    To these rows the ranker is fixed beforehand, whatever it is: F holds one function, which covers
    itself at every θ > 0, and θ goes to 0.
    """
    if not 0 <= misrank_fraction <= 1:
        raise InvalidParameter(f"misrank_fraction must lie in [0, 1], got {misrank_fraction}")
    m, E = sample.rows, sample.crucial_share
    return Bound(
        "held_out",
        "Rudin & Schapire 2009, Corollary 5 with |F| = 1",
        misrank_fraction,
        corollary_5_epsilon(0.0, delta, m, E),
        {"m": float(m), "E": E, "delta": delta, "log_cover": 0.0},
        _reasons(sample),
    )


def _reasons(sample: Sample) -> tuple[str, ...]:
    return ("the theorem counts rows, and these have unequal weights",) if sample.weighted else ()


def _log_failure(log_cover: float, epsilon: float, rows: int, crucial_share: float) -> float:
    _check_positive("epsilon", epsilon)
    _check_sample(rows, crucial_share)
    return math.log(2) + log_cover - rows * (epsilon * crucial_share) ** 2 / 8


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _check_size(n_weak_rankers: int) -> None:
    if n_weak_rankers < 1:
        raise InvalidParameter(f"n_weak_rankers must be at least 1, got {n_weak_rankers}")


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise InvalidParameter(f"{name} must be above 0, got {value}")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InvalidParameter(f"delta must lie between 0 and 1, got {delta}")


def _check_sample(rows: int, crucial_share: float) -> None:
    if rows < 2:
        raise InvalidParameter(f"rows must be at least 2, got {rows}")
    if not 0 < crucial_share <= 0.5:
        raise InvalidParameter(
            f"crucial_share must be above 0 and at most 1/2, got {crucial_share}"
        )
