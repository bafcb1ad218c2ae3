"""Weight of evidence (WOE) and information value (IV) of the bins of a feature, with confidence intervals.

A bin holds the fraction p of the positives and q of the negatives. Its WOE is ln(p / q): above 0, rows of the bin are
positive more often than all rows. The IV of the feature is the sum of (p - q) ln(p / q) over its bins.

Credit scoring often writes the WOE as ln(q / p). Here it has the sign of a score: a higher value is a higher risk.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt
from scipy import special

from core.base.parameters import check_value
from core.errors import InvalidData, InvalidParameter, shorten

Floats = npt.NDArray[np.float64]

ZERO_COUNT = 0.5
"""Rows that are added to both classes of a bin in which one class has no rows (Haldane's correction)."""
MIN_CLASS_ROWS = 5.0
"""With fewer rows of a class in a bin, the interval of the IV is too optimistic; see `BinEvidence.is_sparse`."""
N_HALVINGS = 60  # of an interval's end: to 15 digits
MAX_LOG_RATIO = 40.0  # largest distance of an interval's end from the WOE


@dataclass(frozen=True)
class BinEvidence:
    """The evidence of the bins of one feature.

    Attributes
    ----------
    positives, negatives : ndarray of shape (n_bins,), float64
        Weight of the rows of each class.
    woe_low, woe_high : ndarray of shape (n_bins,), float64
        Confidence limits. -inf where no row is positive, inf where no row is negative, NaN where there are no rows.
    iv_low, iv_high : float
        Confidence limits of the information value, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import evidence_of
    >>> counts = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> evidence_of(counts, counts).woe.round(2).tolist()
    [0.69, -0.69]
    """

    positives: Floats
    negatives: Floats
    woe: Floats
    """Weight of evidence; 0 for a bin without rows. Where one class has no rows, `ZERO_COUNT` is added to both. Shape
    (n_bins,)."""
    woe_low: Floats
    woe_high: Floats
    iv: float
    """Information value: the plug-in estimate, which is too high on average by `iv_bias`."""
    iv_bias: float
    """(n - 1) (1/n₁ + 1/n₀), for n bins with rows, n₁ positives and n₀ negatives."""
    iv_low: float
    iv_high: float
    is_sparse: bool
    """Whether a bin with rows has fewer than `MIN_CLASS_ROWS` rows of a class. The interval of the IV can then be too
    low, the more so the higher the IV."""

    @property
    def iv_adjusted(self) -> float:
        """The information value minus its bias, at least 0."""
        return max(0.0, self.iv - self.iv_bias)


def _by_class(name: str, sums: npt.ArrayLike) -> Floats:
    """Return sums of each class and bin, float64 of shape (2, n_bins). Raises InvalidData for other values."""
    try:
        found = np.asarray(sums, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 2 or len(found) != 2 or not (np.isfinite(found) & (found >= 0.0)).all():
        raise InvalidData(
            f"{name} must have two rows of finite numbers of at least 0, got {shorten(repr(sums))}"
        )
    return found


def evidence_of(mass: Floats, squares: Floats, *, level: float = 0.95) -> BinEvidence:
    """Compute the weight of evidence of each bin and the information value of all, with intervals.

    A WOE is the logarithm of a ratio of two proportions. Its interval is Koopman's score interval, which is finite on
    one side when a class has no rows in the bin. Weights enter by the effective number of rows.

    The plug-in IV has a bias and, near 0, the distribution of a multiple of a noncentral chi-square. The interval
    inverts that distribution, scaled so that its variance is at least the one of the delta method. In simulations of
    5 and 10 bins it covers 90 to 99 % at a level of 95 %, unless bins are sparse (`BinEvidence.is_sparse`).

    The intervals assume that the bins were chosen on other rows.

    Parameters
    ----------
    mass : ndarray of shape (2, n_bins), float64
        Sum of the weights of the positives (first row) and of the negatives of each bin.
    squares : ndarray of shape (2, n_bins), float64
        The same of the squared weights.
    level : float in (0, 1)
        Confidence level of the intervals.

    Returns
    -------
    BinEvidence

    Raises
    ------
    InvalidData
        A class has no weight, or the sums are no finite numbers of at least 0 of the same shape.

    References
    ----------
    P. A. R. Koopman, "Confidence intervals for the ratio of two binomial proportions", Biometrics 40, 1984.
    N. Siddiqi, "Credit Risk Scorecards", 2006: WOE and IV.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import evidence_of
    >>> counts = np.array([[2.0, 8.0], [8.0, 2.0]])
    >>> round(evidence_of(counts, counts).iv, 2)
    1.66
    """
    check_value("level", Real, level)
    if not 0.0 < level < 1.0:
        raise InvalidParameter(f"level must be between 0 and 1, got {level!r}")
    mass, squares = _by_class("mass", mass), _by_class("squares", squares)
    if squares.shape != mass.shape:
        raise InvalidData(f"squares must have the shape of mass, {mass.shape}, got {squares.shape}")
    totals = mass.sum(axis=1)
    if not (totals > 0.0).all():
        raise InvalidData("weight of evidence requires rows of both classes with weight above 0")
    woe = woe_of(mass)
    shares = mass / totals[:, None]
    size, count = _effective(mass, squares)
    low, high = _ratio_interval(count, size, woe, level)
    has_rows = mass.sum(axis=0) > 0.0
    low = np.where(has_rows, np.where(mass[0] > 0.0, low, -np.inf), np.nan)
    high = np.where(has_rows, np.where(mass[1] > 0.0, high, np.inf), np.nan)
    iv = float(((shares[0] - shares[1]) * woe).sum())
    n_effective = totals**2 / squares.sum(axis=1)
    scale = float((1.0 / n_effective).sum())
    n_used = int(has_rows.sum())
    iv_low, iv_high = _iv_interval(
        iv, _iv_variance(mass, n_effective, woe), scale, n_used, level=level
    )
    return BinEvidence(
        positives=mass[0],
        negatives=mass[1],
        woe=woe,
        woe_low=low,
        woe_high=high,
        iv=iv,
        iv_bias=(n_used - 1) * scale,
        iv_low=iv_low,
        iv_high=iv_high,
        is_sparse=bool((count[:, has_rows] < MIN_CLASS_ROWS).any()),
    )


def woe_of(mass: Floats) -> Floats:
    """Return the weight of evidence of each bin; see `BinEvidence.woe`.

    mass: (2, n_bins); sum of the weights of the positives (first row) and of the negatives of each bin; both have a sum
        above 0.

    Result: (n_bins,), float64.
    """
    totals = mass.sum(axis=1)
    has_rows = mass.sum(axis=0) > 0.0
    filled = np.where(has_rows & (mass == 0.0).any(axis=0), mass + ZERO_COUNT, mass)
    filled = np.where(has_rows, filled, 1.0)
    woe = np.log(filled[0]) - np.log(totals[0]) - (np.log(filled[1]) - np.log(totals[1]))
    return np.where(has_rows, woe, 0.0)


def _effective(mass: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Return effective rows, (2, n_bins): of each class, by the binomial variance of its weighted share; and of the
    bin's.
    """
    total, total_squares = mass.sum(axis=1)[:, None], squares.sum(axis=1)[:, None]
    share = mass / total
    variance = (squares * (1.0 - 2.0 * share) + share**2 * total_squares) / total**2
    size = np.broadcast_to(total**2 / total_squares, mass.shape).copy()
    inner = (share > 0.0) & (share < 1.0) & (variance > 0.0)
    size[inner] = share[inner] * (1.0 - share[inner]) / variance[inner]
    return size, size * share


def _ratio_interval(
    count: Floats, size: Floats, woe: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the limits of the log ratio of two proportions, count / size of each class, by bisection."""
    critical = special.chdtri(1, 1.0 - level)
    x1, x0 = count
    n1, n0 = size

    def is_inside(log_ratio: Floats) -> npt.NDArray[np.bool_]:
        ratio = np.exp(log_ratio)
        half = ratio * (n1 + x0) + x1 + n0
        root = np.sqrt(np.maximum(half**2 - 4.0 * ratio * (n1 + n0) * (x1 + x0), 0.0))
        # the smaller root of the quadratic, in the form that does not cancel
        p1 = np.clip(2.0 * ratio * (x1 + x0) / (half + root), 0.0, 1.0)
        p0 = np.clip(p1 / ratio, 0.0, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            chi = np.nan_to_num((x1 - n1 * p1) ** 2 / (n1 * p1 * (1.0 - p1)), posinf=np.inf)
            chi += np.nan_to_num((x0 - n0 * p0) ** 2 / (n0 * p0 * (1.0 - p0)), posinf=np.inf)
        return np.asarray(chi <= critical)

    both = (x1 > 0.0) & (x0 > 0.0)
    start = woe.copy()
    start[both] = np.log(x1[both] / n1[both]) - np.log(x0[both] / n0[both])
    limits = []
    for sign in (-1.0, 1.0):
        inside, outside = start.copy(), start + sign * MAX_LOG_RATIO
        for _ in range(N_HALVINGS):
            middle = 0.5 * (inside + outside)
            holds = is_inside(middle)
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        limits.append(inside)
    return limits[0], limits[1]


def _iv_variance(mass: Floats, n_effective: Floats, woe: Floats) -> float:
    """Return the variance of the information value by the delta method, of multinomial shares."""
    p, q = mass / mass.sum(axis=1)[:, None]
    ratio = np.exp(woe)
    by_p, by_q = woe + 1.0 - 1.0 / ratio, -woe + 1.0 - ratio
    variance = 0.0
    for share, slope, n in ((p, by_p, n_effective[0]), (q, by_q, n_effective[1])):
        variance += float((share * slope**2).sum() - (share * slope).sum() ** 2) / float(n)
    return max(variance, 0.0)


def _iv_interval(
    iv: float, variance: float, scale: float, n_bins: int, *, level: float
) -> tuple[float, float]:
    if n_bins < 2:
        return 0.0, 0.0
    unit = max(scale, variance / (4.0 * iv) if iv > 0.0 else 0.0)
    statistic = max((iv - (n_bins - 1) * (scale - unit)) / unit, 0.0)
    tail = 0.5 * (1.0 - level)
    limits = []
    for probability in (1.0 - tail, tail):
        low, high = 0.0, statistic + 60.0 + 10.0 * np.sqrt(statistic + 10.0)
        for _ in range(N_HALVINGS):
            middle = 0.5 * (low + high)
            # falls as the noncentrality grows
            if special.chndtr(statistic, n_bins - 1, middle) > probability:
                low = middle
            else:
                high = middle
        limits.append(float(unit * low))
    return limits[0], limits[1]
