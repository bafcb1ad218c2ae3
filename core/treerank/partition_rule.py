"""The partition-based splitting rule: of given cells, the union that ranks best above the rest."""

from typing import NamedTuple

import numpy as np

from core.ranker import Floats

from .preorder import Integers


class Union(NamedTuple):
    """The best union of cells.

    Attributes
    ----------
    order : ndarray of shape (n_cells,), int64
        The cells by β/α, the greatest first: those without negatives lead, empty ones come last,
        and cells alike keep their order.
    n_top : int
        k*: how many of them, from the first, make the union; 0 where no union gains anything.
    gain : float
        Λ = β(L) - α(L) within the cell, from 0 to 1.
    """

    order: Integers
    n_top: int
    gain: float


def best_union(positive: Floats, negative: Floats) -> Union:
    """Find the union L of cells with the greatest Λ = β(L) - α(L).

    Parameters
    ----------
    positive, negative : ndarray of shape (n_cells,), float64
        Mass of each class in each cell; both sums above 0.

    Returns
    -------
    Union

    Notes
    -----
    O(n_cells log n_cells). Along the order each cell adds β - α, which only falls: so the peak is
    behind the last cell that adds something, and the union is all cells with β > α. Asked by
    products of masses, exact for whole numbers, a cell with β = α is left out whatever its place:
    the least of several best k.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, Fig. 4 and Proposition 4.
    """
    mass = positive + negative
    share = np.divide(positive, mass, out=np.full(len(mass), -1.0), where=mass > 0)
    order = np.argsort(-share, kind="stable")
    all_positive, all_negative = positive.sum(), negative.sum()
    n_top = int(np.count_nonzero(positive * all_negative > negative * all_positive))
    top = order[:n_top]
    gain = positive[top].sum() / all_positive - negative[top].sum() / all_negative
    return Union(order, n_top, float(gain))
