"""Bounds on the misranking of rows to come, from the margins of the training pairs.

All are of one form: with probability at least 1 - δ over the draw of m independent rows,

    P{misrank} <= P_S{margin <= θ} + ε

for every f of a space F that was fixed before the rows were seen. The first term is counted, the
second comes from the size of F (its covering number), from m, and from E, the share of ordered pairs of
rows that are crucial: m₊m₋/(m(m - 1)) for two classes, the empirical form that §3 allows.
"""

import math
import sys

from core.errors import InvalidParameter

_GREATEST_EPSILON = 1e6  # far beyond 1, where a bound says nothing any more


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
    log_h = math.log(n_weak_rankers) * max(0.0, math.log(2 / epsilon))
    return _ratio(log_h, 2 * theta**2)


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
    from scipy.special import betaln

    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    parts = _ratio(float(n_weak_rankers), 4 * theta)
    if math.isinf(parts):
        return 0.0 if n_weak_rankers == 1 else math.inf
    parts = math.floor(parts) + 1.0
    # ln C(n, k) = -ln(n + 1) - ln B(n - k + 1, k + 1), which keeps its digits for any n.
    return float(-math.log(parts + n_weak_rankers) - betaln(parts + 1, n_weak_rankers))


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
    from scipy.optimize import brentq

    check_delta(delta)

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
        `equation_2_least_rows` is it more than a number; far below, the logarithm is negative and
        it is NaN.
    """
    _check_size(n_weak_rankers)
    _check_positive("theta", theta)
    check_delta(delta)
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
    return _ratio(64 * math.log(n_weak_rankers), (crucial_share * theta) ** 2)


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
    check_delta(delta)
    _check_sample(rows, crucial_share)
    return math.sqrt(8 / (rows * crucial_share**2) * (log_cover + math.log(2) - math.log(delta)))


def _log_failure(log_cover: float, epsilon: float, rows: int, crucial_share: float) -> float:
    _check_positive("epsilon", epsilon)
    _check_sample(rows, crucial_share)
    return math.log(2) + log_cover - rows * (epsilon * crucial_share) ** 2 / 8


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


def _ratio(numerator: float, denominator: float) -> float:
    """Divide, to infinity where the denominator is too small for a number."""
    if numerator == 0:
        return 0.0
    return numerator / denominator if denominator > numerator / sys.float_info.max else math.inf


def _check_size(n_weak_rankers: int) -> None:
    if n_weak_rankers < 1:
        raise InvalidParameter(f"n_weak_rankers must be at least 1, got {n_weak_rankers}")


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise InvalidParameter(f"{name} must be above 0, got {value}")


def check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InvalidParameter(f"delta must lie between 0 and 1, got {delta}")


def _check_sample(rows: int, crucial_share: float) -> None:
    if rows < 2:
        raise InvalidParameter(f"rows must be at least 2, got {rows}")
    if not 0 < crucial_share <= 0.5:
        raise InvalidParameter(
            f"crucial_share must be above 0 and at most 1/2, got {crucial_share}"
        )
