"""Splits of features: numeric ones by a threshold, categorical ones by a set of categories; and a model's stored sets.

A split holds the index of the first word of its set; see `core.coding.categories`.
"""

import numpy as np

from core.base import state
from core.base.ranker import Floats
from core.coding.categories import WORD_BITS, Bools, Words, count_words, pack, unpack
from core.errors import ArtifactError

Integers = state.Integers

NO_SET = -1  # stands for the index of a first word: the cut has a threshold


def is_above(
    X: Floats, feature: int, threshold: float, missing_above: bool, members: Bools | None
) -> Bools:
    """Return which rows are above a split of a feature, shape (n_rows,), bool; all rows if the feature is -1.

    threshold: a numeric x is above if x > threshold.
    members: (n_categories,), bool, or None; for a categorical feature the categories above the cut.
    """
    if feature < 0:
        return np.ones(len(X), dtype=np.bool_)
    x = X[:, feature]
    if members is None:
        return np.asarray((x > threshold) | (np.isnan(x) & missing_above))
    above = np.full(len(x), missing_above)
    known = (x >= 0.0) & (x < len(members))  # a value that is no category counts as missing
    above[known] = members[x[known].astype(np.intp)]
    return above


class Sets:
    """The category sets of a model as bit words, concatenated; equal sets of a feature are stored once."""

    def __init__(self) -> None:
        self._parts: list[Words] = []
        self._first: dict[tuple[int, bytes], int] = {}
        self._n_words = 0

    @property
    def words(self) -> Words:
        return np.concatenate([np.empty(0, dtype=np.uint64), *self._parts])

    def add(self, feature: int, members: Bools | None) -> int:
        """Store a set of a feature's categories; return its first word's index, `NO_SET` if `members` is None."""
        if members is None:
            return NO_SET
        words = pack(members)
        key = feature, words.tobytes()
        if key not in self._first:
            self._first[key] = self._n_words
            self._parts.append(words)
            self._n_words += len(words)
        return self._first[key]


def members_of(words: Words, cut: np.void, n_categories: Integers) -> Bools | None:
    """Return the mask of categories above a split (a record with fields `feature` and `set`); None for a threshold."""
    if cut["set"] == NO_SET:
        return None
    return unpack(words, cut["set"], n_categories[cut["feature"]])


def check_sets(features: Integers, firsts: Integers, words: Words, n_categories: Integers) -> None:
    """Raise ArtifactError for sets whose words are missing or that do not fit their features' categories.

    features, firsts: (n_cuts,), int64; feature of each cut, from -1 to n_features - 1, and the index of the first word
        of its set.
    words: (n_words,), uint64.
    """
    if words.dtype != np.uint64 or words.ndim != 1:
        raise ArtifactError(f"sets must be a row of uint64, got {words.dtype} of {words.shape}")
    counts = np.where(features >= 0, n_categories[features], 0)
    if (firsts[counts == 0] != NO_SET).any():
        raise ArtifactError(f"set must be {NO_SET} where a feature is numeric")
    starts, counts = firsts[counts > 0], counts[counts > 0]
    lengths = count_words(counts)
    if not ((starts >= 0) & (starts <= len(words) - lengths)).all():
        raise ArtifactError(f"set must name words from 0 to {len(words) - 1}")
    ranges = np.unique(np.stack([starts, starts + lengths]), axis=1)
    if (ranges[0, 1:] < ranges[1, :-1]).any():
        raise ArtifactError("sets must not overlap")
    used = (counts - 1) % WORD_BITS  # the highest bit of the last word that stands for a category
    if (words[starts + lengths - 1] >> used.astype(np.uint64) >> np.uint64(1)).any():
        raise ArtifactError("sets must have no bit beyond the last category")
