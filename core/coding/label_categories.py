"""Categories under several labels: which set of bins, and which votes on its sides.

Categories have no one order for all labels. For given votes v the best set holds the bins k with
Σ_l v_l S_l(k) > 0, which is a cut along that sum per mass; for a given set the best votes are signs.
So cuts and votes are chosen in turn, from the votes of the bin that differs most from the mean, until
no turn gains: for one label the best set there is, for several one that no change of votes alone or
of the set alone can better. How far a bin's sums are believed is measured as in `categories`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .categories import ROUNDING

Floats = npt.NDArray[np.float64]

# Every turn gains; few are needed.
MOST_TURNS = 20

# Bins that differ from the mean alike but for rounding are tied: the first gives its votes.
TIE = 1e-9


class Scatter(NamedTuple):
    """What tells how far bins' sums are believed.

    Attributes
    ----------
    mass : ndarray of shape (n_rows,), float64
        Each row's share of Σ|signed|.
    chance : float
        The scatter of bins' sums that chance alone explains: Σ |x - wT|² over rows, with x a row's
        signed mass per label, w its mass and T the sum of all x.
    """

    mass: Floats
    chance: float


def measure_scatter(signed: Floats, rows: Floats | None) -> Scatter:
    """Measure how finely the signed mass is divided.

    Parameters
    ----------
    signed : ndarray of shape (n_rows, n_labels), float64
    rows : ndarray of shape (n_rows,), float64, or None
        For how many rows each stands; None: for infinitely many, so that chance explains nothing.
    """
    mass = np.abs(signed).sum(axis=1)
    mass /= mass.sum()
    if rows is None:
        return Scatter(mass, 0.0)
    total = signed.sum(axis=0)
    squares = np.einsum("il,il->i", signed, signed)
    squares -= 2.0 * mass * np.einsum("il,l->i", signed, total)
    squares += mass * mass * float((total * total).sum())
    return Scatter(mass, float((squares / rows).sum()))


def believe(sums: Floats, masses: Floats, chance: float) -> Floats:
    """Mix the sums of each bin with the mean of all, as far as they can be told from chance.

    Parameters
    ----------
    sums : ndarray of shape (n_bins, n_labels), float64
    masses : ndarray of shape (n_bins,), float64
        Above 0.
    chance : float
        Scatter that chance gives to bins of one unit of mass in all.

    Returns
    -------
    ndarray of shape (n_bins, n_labels), float64
    """
    means = masses[:, None] * (sums.sum(axis=0) / masses.sum())
    scatter = float(((sums - means) ** 2).sum())
    excess = scatter - chance * float(masses.sum())
    if excess <= ROUNDING * scatter:
        return np.asarray(means)
    signal = masses * excess
    belief = (signal / (signal + chance * float((masses * masses).sum())))[:, None]
    return np.asarray(belief * sums + (1.0 - belief) * means)


def first_votes(sums: Floats, masses: Floats) -> Floats:
    """Give the votes, 1 or -1, of the bin that differs most from the mean."""
    differences = sums - masses[:, None] * (sums.sum(axis=0) / masses.sum())
    sizes = np.abs(differences).sum(axis=1)
    first = int(np.argmax(sizes >= sizes.max() * (1.0 - TIE)))
    return np.asarray(np.where(differences[first] >= 0.0, 1.0, -1.0))


def order_by_votes(sums: Floats, masses: Floats, votes: Floats) -> npt.NDArray[np.int64]:
    """Sort bins by the mean that they give the votes."""
    towards = np.einsum("kl,l->k", sums, votes) / masses
    return np.asarray(np.argsort(towards, kind="stable"))


def best_votes(ordered: Floats, missing: Floats, cut: int, missing_above: bool) -> Floats:
    """Give the best votes of a cut, 1 or -1."""
    edges = ordered[cut + 1 :].sum(axis=0) - ordered[: cut + 1].sum(axis=0)
    edges += missing if missing_above else -missing
    return np.asarray(np.where(edges >= 0.0, 1.0, -1.0))
