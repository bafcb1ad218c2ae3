"""When smooth margin ranking is sure to make progress: the condition of Theorems 7 and 8."""

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData
from core.metrics.margins import most_tied_mass


def makes_progress(d_plus: npt.ArrayLike, d_minus: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Say for each round whether Theorem 7's condition on d0 holds.

    Where it holds, and 0 <= g < r < 1, a step of smooth margin ranking lifts the smooth margin by at
    least ½ α(r - g)/s, with g the smooth margin before and s = ‖λ‖₁ after it. Where it fails the
    theorem is silent: the smooth margin still never falls (Lemma 22). Stumps tie most pairs, so it
    fails in most rounds.

    Parameters
    ----------
    d_plus, d_minus : array_like of float, shape (n_rounds,), in [0, 1]
        Masses of the pairs that the round's weak ranker orders rightly and wrongly.

    Returns
    -------
    ndarray of shape (n_rounds,), bool

    Raises
    ------
    InvalidData
        If the shapes differ.

    References
    ----------
    Rudin & Schapire (2009), Theorem 7.
    """
    right, wrong = np.asarray(d_plus, dtype=np.float64), np.asarray(d_minus, dtype=np.float64)
    if right.shape != wrong.shape:
        raise InvalidData(
            f"d_plus and d_minus must have one shape, got {right.shape} and {wrong.shape}"
        )
    tied = 1 - right - wrong
    return np.asarray(tied < most_tied_mass(right - wrong))
