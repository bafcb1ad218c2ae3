"""Shares of a fit: what some rankers can learn in parts, on several machines, and put together again.

Where a fit is many independent pieces (the trees of a forest), a ranker may offer it in *shares* of
consecutive pieces. Whoever has the same rows fits any share alone; whoever has them all joins them:

    ranker = TreeRankForest(n_trees=100)
    shares = [ranker.fit_share(X, y, first=first, last=first + 25) for first in (0, 25, 50, 75)]
    ranker.join_shares(shares, X, y)

That is `ranker.fit(X, y)`, bit for bit, whatever the division, as far as the machines are of one kind (processor,
libraries): sums of others may round otherwise, and so may a cut be another. A share is bytes, sealed for its fit
(`core.sealed`).
"""

from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from core.arrays import check_array
from core.errors import ArtifactError
from core.ranker import Arrays, Callback
from core.sealed import seal, unseal


@runtime_checkable
class SharedRanker(Protocol):
    """A ranker whose fit can be divided into shares."""

    @property
    def n_pieces(self) -> int:
        """How many pieces shares divide among them, with these parameters."""

    def fit_share(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        first: int,
        last: int,
        callback: Callback | None = None,
    ) -> bytes:
        """Fit the pieces from number `first` up to, without, `last`; the ranker itself stays as it was.

        Raises
        ------
        InvalidParameter
            0 ≤ first < last ≤ n_pieces does not hold.
        InvalidData
            As by `fit`.
        """

    def join_shares(
        self, shares: Sequence[bytes], X: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """Become what `fit` would have made on the same rows.

        Parameters
        ----------
        shares : sequence of bytes
            From `fit_share`, in any order; each piece in one of them.

        Raises
        ------
        ArtifactError
            A share is damaged or of another fit, or a piece is missing or there twice.
        """


def write_share(fit: bytes, first: int, last: int, arrays: Arrays) -> bytes:
    """Seal the arrays that were fitted of the pieces from `first` up to, without, `last`."""
    return seal(fit, arrays | {"pieces": np.array([first, last])})


def read_shares(shares: Sequence[bytes], fit: bytes, n_pieces: int) -> list[tuple[int, Arrays]]:
    """Open shares that together are all pieces of one fit.

    Parameters
    ----------
    shares : sequence of bytes
        In any order.
    fit : bytes
        From `sealed.identify_fit`.
    n_pieces : int

    Returns
    -------
    list of (int, dict of str to ndarray)
        Of each share, in the order of the pieces, how many it holds, and its arrays.

    Raises
    ------
    ArtifactError
        A share is damaged or of another fit, or a piece is missing or there twice.
    """
    opened = sorted((_open(share, fit) for share in shares), key=lambda share: share[:2])
    expected = 0
    for first, last, _ in opened:
        if first != expected:
            there = "missing" if first > expected else "there twice"
            piece = min(first, expected)
            raise ArtifactError(f"shares must hold each piece once, {piece} is {there}")
        expected = last
    if expected != n_pieces:
        raise ArtifactError(f"shares must hold {n_pieces} pieces, got {expected}")
    return [(last - first, arrays) for first, last, arrays in opened]


def _open(share: bytes, fit: bytes) -> tuple[int, int, Arrays]:
    """Give a share's first piece, the one after its last, and its arrays."""
    arrays = unseal("a share", share, fit)
    if "pieces" not in arrays:
        raise ArtifactError("a share must name its pieces")
    pieces = arrays.pop("pieces")
    check_array("pieces", pieces, np.int64, (2,))
    first, last = pieces.tolist()
    if not 0 <= first < last:
        raise ArtifactError(f"pieces must be a range of one at least, got {first} to {last}")
    return first, last, arrays
