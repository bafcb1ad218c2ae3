"""How often labels lie: what the data can tell of it."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.metrics import wilson_interval
from core.ranker import Floats

GUESSES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)

# Of the held-out rows, how many at each end of the ranking are looked at, and the least of them.
END_SHARE = 0.1
LEAST_ROWS = 20


class NoiseBound(NamedTuple):
    """The share of the rarer label where labels are purest, and its 95 % upper limit."""

    share: float
    upper: float


def least_noisy_share(
    scores: Floats, positive: npt.NDArray[np.bool_], weight: Floats
) -> NoiseBound:
    """Bound the noise rate by the end of a ranking whose labels agree most.

    If labels are flipped at rate η, every set of rows holds at least a share η of the rarer label,
    and just η only if one class has it to itself. So the purest set bounds η from above, and where
    the classes overlap everywhere nothing more can be known.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,), float64
        Of rows that the ranking was not fitted on.
    positive : ndarray of shape (n_rows,), bool
        Their labels as they are, noise and all.
    weight : ndarray of shape (n_rows,), float64

    Returns
    -------
    NoiseBound
        Wilson's upper limit, at most ½.
    """
    order = np.argsort(scores, kind="stable")
    n = min(max(int(END_SHARE * len(order)), LEAST_ROWS), len(order))
    ends = []
    for rows, odd in ((order[:n], positive), (order[-n:], ~positive)):
        share = float(np.average(odd[rows], weights=weight[rows]))
        ends.append(NoiseBound(min(share, 0.5), min(wilson_interval(share, n).high, 0.5)))
    return min(ends, key=lambda end: end.upper)
