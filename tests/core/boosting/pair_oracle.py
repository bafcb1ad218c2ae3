"""The papers' formulas over an explicit list of pairs: slow, and plain enough to be believed."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

MIN_GAIN = 1e-9  # below it 1 - Z of eq. 5 is mostly rounding


@dataclass(frozen=True)
class Stump:
    feature: int
    threshold: float
    sign: int
    missing_above: bool

    def __call__(self, row: Any) -> Any:
        x = row[self.feature]
        above = self.missing_above if math.isnan(x) else x > self.threshold
        return float(above == (self.sign > 0))


class PairRankBoost:
    """Boosts stumps on a list of all crucial pairs, each with a weight of its own (Fig. 1)."""

    def __init__(self, X: Any, positive: Any, weight: Any, criterion: Any, smoothing: Any) -> None:
        self.X = X
        pairs = [(i, k) for i in np.flatnonzero(positive) for k in np.flatnonzero(~positive)]
        self.better, self.worse = np.array(pairs).T
        self.pair_weight = weight[self.better] * weight[self.worse]
        self.criterion = criterion
        self.smoothing = smoothing
        self.scores = np.zeros(len(X))
        self.candidates = list(self._candidates())
        self.has_missing = np.isnan(X).any(axis=0)

    def _candidates(self) -> Iterator[Any]:
        for feature, column in enumerate(self.X.T):
            known = np.unique(column[~np.isnan(column)])
            missing = np.isnan(column).any()
            thresholds = [-math.inf, *known[:-1]] if missing else list(known[:-1])
            for threshold, missing_above, sign in itertools.product(
                thresholds, [False, True] if missing else [False], [1, -1]
            ):
                if threshold > -math.inf or not missing_above:
                    yield Stump(feature, threshold, sign, missing_above)

    def terms(self) -> Any:
        return self.pair_weight * np.exp(self.scores[self.worse] - self.scores[self.better])

    def loss(self) -> Any:
        return self.terms().sum()

    def d(self) -> Any:
        return self.terms() / self.loss()

    def masses(self, stump: Any, d: Any) -> Any:
        h = np.array([stump(row) for row in self.X])
        m = h[self.better] - h[self.worse]
        return d[m == 1].sum(), d[m == -1].sum(), d[m == 0].sum()

    def round(self) -> Any:
        """Take one round; return (stump, alpha, d_plus, d_minus), or None without an edge."""
        d = self.d()
        options = []
        for stump in self.candidates:
            plus, minus, zero = self.masses(stump, d)
            if plus >= minus:
                gain = (
                    plus - minus
                    if self.criterion == "slope"
                    else 1 - (2 * math.sqrt(plus * minus) + zero)  # eq. 5
                )
                options.append((gain, stump, plus, minus))
        best = max((option[0] for option in options), default=0.0)
        if best < MIN_GAIN:
            return None
        # the first of those that tie: feature, threshold and missing are in the agreed order
        _, stump, plus, minus = next(o for o in options if o[0] >= best * (1 - 1e-9) - 1e-14)
        alpha = 0.5 * math.log((plus + self.smoothing) / (minus + self.smoothing))
        self.scores += alpha * np.array([stump(row) for row in self.X])
        return stump, alpha, plus, minus
