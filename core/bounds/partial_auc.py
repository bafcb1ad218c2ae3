"""An upper bound of 1 - pAUC on future rows from training rows: Theorem 9 of paper 4 with explicit constants.

The paper leaves its constant C open. The following proof is shorter, allows any window and ties, and has the same form.
Let P(t) and N(t) be the fractions of positives and negatives that score above t, in the population and (with hats) in
the sample, and let |P - P̂| <= ε₊ and |N - N̂| <= ε₋ for every t and every f of the class. A threshold with N̂ <= u - ε₋
has N <= u, and its P is at least P̂ - ε₊. So ROC(u) >= ROĈ(u - ε₋) - ε₊, the curves taken as steps. The mean over u in
[α, β] moves the window to the left by ε₋, which adds at most ε₋ / (β - α) to the risk:

    1 - pAUC <= 1 - pAÛC + ε₊ + ε₋ / (β - α)

For all f at once, ε follows from the VC dimension d of the sets {f > t}: k rows exceed it with probability at most
4 (2ek/d)^d exp(-kε²/8) (Anthony & Bartlett, Theorems 4.3 and 3.7). For one f that was fixed before the rows were seen,
from the Dvoretzky-Kiefer-Wolfowitz inequality, 2 exp(-2kε²). Each class has half of δ.

References
----------
H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
arXiv:1605.04337: Theorem 9 and Appendix A.4.
M. Anthony and P. L. Bartlett, "Neural Network Learning: Theoretical Foundations", 1999.
P. Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 18, 1990.
"""

import math
from numbers import Real
from typing import NamedTuple

from core.base.parameters import check_value
from core.errors import InvalidParameter
from core.metrics.curve import RocCurve, strict_area
from core.metrics.window import check_window


class PartialAucBound(NamedTuple):
    """An upper bound of 1 - pAUC on future rows.

    Examples
    --------
    >>> from core.bounds import bound_partial_auc
    >>> found = bound_partial_auc(0.2, 5000, 50000, 0.0, 0.5)
    >>> round(found.value, 3), found.vacuous
    (0.234, False)
    """

    value: float
    """The risk on the sample plus `epsilon`."""
    epsilon: float
    """The part that depends on the number of rows."""
    vacuous: bool
    """Whether the value is 1 or more, which every risk satisfies."""


def bound_partial_auc(
    risk: float,
    n_positive: int,
    n_negative: int,
    fpr_min: float,
    fpr_max: float,
    *,
    delta: float = 0.05,
    vc_dimension: int | None = None,
) -> PartialAucBound:
    """Bound 1 - pAUC on future rows from that of a sample.

    Parameters
    ----------
    risk : float in [0, 1]
        1 - pAUC of the sample's step curve (`step_risk`). It is 1 - `partial_auc(..., definition="empirical")` if the
        window ends at whole negatives.
    n_positive, n_negative : int
        Rows of the sample, drawn independently; at least 1.
    fpr_min, fpr_max : float
        The window.
    delta : float in (0, 1)
        Probability that the bound does not hold.
    vc_dimension : int, optional
        VC dimension of the sets {f > t} over the class from which these rows chose the ranker: k + 1 for linear scores
        of k coordinates. Default: the ranker was fixed before these rows were seen, as for held-out rows.

    Returns
    -------
    PartialAucBound

    References
    ----------
    Narasimhan & Agarwal, Theorem 9; the constants are derived in the docstring of this module.

    Examples
    --------
    >>> from core.bounds import bound_partial_auc
    >>> round(bound_partial_auc(0.05, 5000, 5000, 0.0, 0.2).value, 3)
    0.176
    """
    check_value("risk", Real, risk)
    check_value("delta", Real, delta)
    check_value("n_positive", int, n_positive)
    check_value("n_negative", int, n_negative)
    check_value("vc_dimension", int | None, vc_dimension)
    low, high = check_window(fpr_min, fpr_max)
    if not 0.0 <= risk <= 1.0:
        raise InvalidParameter(f"risk must be in [0, 1], got {risk}")
    if not 0.0 < delta < 1.0:
        raise InvalidParameter(f"delta must be strictly between 0 and 1, got {delta}")
    half = delta / 2 or delta  # the least double cannot be halved
    deviations = []
    for name, n_rows in (("n_positive", n_positive), ("n_negative", n_negative)):
        if n_rows < 1:
            raise InvalidParameter(f"{name} must be at least 1, got {n_rows}")
        if vc_dimension is None:
            deviations.append(dkw_deviation(n_rows, half))
        else:
            deviations.append(vc_deviation(n_rows, vc_dimension, half))
    epsilon = deviations[0] + deviations[1] / (high - low)
    return PartialAucBound(risk + epsilon, epsilon, risk + epsilon >= 1.0)


def vc_deviation(n_rows: int, vc_dimension: int, delta: float) -> float:
    """Return the uniform deviation ε of a class of sets with the VC dimension d.

    With probability 1 - δ, the fraction that n rows show of every set is within ε of its probability. ε is √(8 (ln Π +
    ln(4/δ)) / n), where Π is the growth function at 2n: (2en/d)^d, or 2^2n if 2n is at most d.
    """
    if vc_dimension < 1:
        raise InvalidParameter(f"vc_dimension must be at least 1, got {vc_dimension}")
    log_growth = 2 * n_rows * math.log(2.0)
    if 2 * n_rows > vc_dimension:
        log_growth = vc_dimension * math.log(2.0 * math.e * n_rows / vc_dimension)
    return math.sqrt(8.0 * (log_growth + math.log(4.0) - math.log(delta)) / n_rows)


def dkw_deviation(n_rows: int, delta: float) -> float:
    """Return the deviation ε of the sets {f > t} of one ranker fixed before n rows (DKW): √(ln(2/δ) / (2n))."""
    return math.sqrt((math.log(2.0) - math.log(delta)) / (2.0 * n_rows))


def step_risk(curve: RocCurve, fpr_min: float, fpr_max: float) -> float:
    """Return 1 - pAUC of the step curve through a ROC curve's points, which the bounds use.

    Between two points the step curve has the height of the left one. A thinned curve is below the sample's own steps,
    so the risk is not too small.

    Parameters
    ----------
    curve : RocCurve
        A ROC curve with one point per distinct score.
    fpr_min, fpr_max : float in [0, 1]
        The window of false positive rates, fpr_min < fpr_max.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> from core.bounds import step_risk
    >>> from core.metrics import roc_curve
    >>> step_risk(roc_curve([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1]), 0.0, 0.5)
    0.5
    """
    check_value("curve", RocCurve, curve)
    return 1.0 - strict_area(curve.fpr, curve.tpr, *check_window(fpr_min, fpr_max))
