"""Shares of one fit: where the ranker that is served is one large fit of many pieces, it is divided among workers.

A forest grows its trees one by one, and what each draws depends on its number alone (`core.checkpoint`). So the parts
`share` of a stage may grow some trees each, and the part `fit` after it joins them: bit for bit the forest of one fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from core.registry import ALGORITHMS

SHARE_FILE = "share.bin"
MOST_SHARES = 16
LEAST_PIECES = 8
"""Each share prepares the table once more, which takes about as long as one of its pieces."""

STAGE_SHARE = 0.9
"""How much of the work that is left the shares of a fit are taken for; the rest is to join and judge them."""


def divide_fit(members: Sequence[Mapping[str, Any]], least_pieces: float) -> list[tuple[int, int]]:
    """The first piece of each share, and the one after its last; none where the fit is not worth dividing.

    `members` are what is to be fitted: several make a rank average, which is not divided. A share has at least
    `least_pieces`, such that it is worth a job of its own.
    """
    from core.checkpoint import SharedRanker

    (member, *others) = members
    algorithm = ALGORITHMS.get(member["algorithm"])
    if others or algorithm is None or math.isinf(least_pieces):
        return []
    ranker = algorithm(**member["parameters"])
    if not isinstance(ranker, SharedRanker):
        return []
    n = ranker.n_pieces
    n_shares = min(MOST_SHARES, int(n // max(least_pieces, LEAST_PIECES)))
    if n_shares < 2:
        return []
    return [(k * n // n_shares, (k + 1) * n // n_shares) for k in range(n_shares)]
