"""A validation part of listed pairs: which are held out, and how scores are judged on them."""

import math
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData
from core.metrics import pair_order
from core.ranker import Floats
from core.splits import draw_share
from core.target import Pairs

from . import validation
from .pairs import ItemPairs, number_items

# Pairs that each part needs if items are held out: fewer say little.
LEAST_PAIRS = 30


class PairPart(NamedTuple):
    """Pairs, and the rows of the table that they name.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    pairs : ndarray of shape (n_pairs, 2), int64
        (better, worse), rows of X.
    weight : ndarray of shape (n_pairs,), float64
    """

    X: Floats
    pairs: npt.NDArray[np.int64]
    weight: Floats

    @property
    def figure(self) -> str:
        """What the callback hears the AUC called."""
        return "validation_auc"

    @classmethod
    def of(cls, X: Floats, listed: ItemPairs) -> "PairPart":
        """Take pairs with the whole table."""
        return cls(X, listed.rows[_ends(listed)], listed.weight)

    def alone(self) -> "PairPart":
        """Leave the rows behind that no pair names."""
        items, ends = np.unique(self.pairs, return_inverse=True)
        return PairPart(self.X[items], ends.reshape(-1, 2), self.weight)

    @property
    def size(self) -> int:
        """The number of pairs."""
        return len(self.weight)

    def sample(self) -> "PairPart":
        """Take evenly spaced pairs, and the items that occur in them."""
        step = math.ceil(self.size / validation.SAMPLE_ROWS)
        return PairPart(self.X, self.pairs[::step], self.weight[::step]).alone()

    def zeros(self) -> Floats:
        """Give a score of 0 per row."""
        return np.zeros(len(self.X))

    def auc(self, scores: Floats) -> float:
        """Give the weighted share of pairs in order: the AUC, if they are those of two classes."""
        return pair_order(scores, self.pairs, self.weight)


def split_off_pairs(listed: ItemPairs, fraction: float, seed: int) -> tuple[ItemPairs, ItemPairs]:
    """Draw a validation part of which training has seen no item, where there are enough pairs.

    A pair tells of both its items, and all pairs of an item tell of it. So items are held out:
    pairs within them validate, pairs within the others teach, and those between the two do
    neither. This is what holding out rows does to the pairs of two classes. It leaves about
    (1 - s)² of the pairs to learn from and s² to judge by. If that is fewer than `LEAST_PAIRS` in
    either part, pairs are held out instead, those of the same two items together, in whichever
    direction; the validation part then speaks of new pairs of known items, and a UserWarning says so.

    Parameters
    ----------
    listed : ItemPairs
    fraction : float
        Share s of the items, or pairs, to hold out; at least one, and not all.
    seed : int

    Returns
    -------
    training, held : ItemPairs

    Raises
    ------
    InvalidData
        All pairs are of the same two items.

    Notes
    -----
    O(n_pairs log n_pairs). The draw depends on the seed, the items and which of them are paired,
    not on the order of the list.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    ends = _ends(listed)
    better_held, worse_held = _draw(len(listed.rows), fraction, rng)[ends].T
    teaches, judges = ~(better_held | worse_held), better_held & worse_held
    if min(teaches.sum(), judges.sum()) < LEAST_PAIRS:
        low, high = ends.min(axis=1), ends.max(axis=1)
        units, number = np.unique(low * len(listed.rows) + high, return_inverse=True)
        if len(units) < 2:
            raise InvalidData("early stopping needs pairs of at least 3 items, got pairs of 2")
        warnings.warn(
            "early stopping has held out pairs, for the items are too few to hold some out: it "
            "speaks of new pairs of items that training has seen",
            UserWarning,
            stacklevel=3,
        )
        judges = _draw(len(units), fraction, rng)[number]
        teaches = ~judges
    return _take(listed, teaches), _take(listed, judges)


def _ends(listed: ItemPairs) -> npt.NDArray[np.int64]:
    return np.stack([listed.better, listed.worse], axis=1).astype(np.int64)


def _draw(n: int, fraction: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    held = np.zeros(n, dtype=np.bool_)
    held[draw_share(np.arange(n), fraction, rng)] = True
    return held


def _take(listed: ItemPairs, which: npt.NDArray[np.bool_]) -> ItemPairs:
    better, worse = (listed.rows[items[which]] for items in (listed.better, listed.worse))
    return number_items(Pairs(better, worse, listed.weight[which]), int(listed.rows[-1]) + 1)
