"""What rankers are judged by: rows that they have not learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.ranker import Floats


LEVEL = 0.95
"""Of intervals and tests."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Folds:
    """Which row each entry is of, counted from 0, and in which repeat and fold it was scored, counted from 1."""

    row: Ints
    repeat: Ints
    fold: Ints


@dataclass(frozen=True)
class Entries:
    """An entry each time that a row was scored: its label, weight and group; without folds every row comes once."""

    y: npt.NDArray[np.int8]
    weight: Floats | None
    group: npt.NDArray[np.uint64] | None
    folds: Folds | None = None
