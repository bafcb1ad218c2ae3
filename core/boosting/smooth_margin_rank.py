"""Smooth margin ranking (Rudin & Schapire 2009, Section 4.2): boosting that maximises the ranking margin."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.monotone import Monotone
from core.base.ranker import Floats
from core.base.state import Array, Value
from core.coding import Criterion
from core.metrics.margins import max_tied_mass

from .algorithms import RankingAlgorithm
from .booster import BoostingRun, PairBooster
from .columns import Column
from .loop import LoopState, WeakRanker, log_ratio
from .options import NRounds, StumpOrColumn
from .pairs import BoostingData, ListedPairs
from .plan import BoostingPlan
from .queries import Levels


@dataclass(kw_only=True, eq=False, repr=False)
class SmoothMarginRank(PairBooster):
    """Boosted stumps that maximise the ranking margin, by coordinate ascent on the smooth margin.

    Use it if a sum of stumps can rank your data without error, and you want the largest margin. On other data it
    behaves like `CoordinateRankBoost` without smoothing, and `RankBoost` is the better choice.

    The margin μ is the minimum of (f(x_i) - f(x_k))/‖λ‖₁ over all pairs of a positive i and a negative k. The smooth
    margin G̃ = -ln F̃/‖λ‖₁ never exceeds it and has the same limit. Each round picks the stump that maximises d+ - d-.
    While some pair is out of order (F̃ >= 1) the step is that of `CoordinateRankBoost`; after that it is eq. 12. With
    `weak_ranker="column"` the columns themselves are the weak rankers, as in `RankBoost`; eq. 10 is solved for those
    with values other than 0 and 1.

    Attributes
    ----------
    margin_ : ndarray of shape (n_taken,), float64
        μ after each round, on the training rows; below 0 while a pair is out of order.
    smooth_margin_ : ndarray of shape (n_taken,), float64
        G̃ after each round. Once it is above 0 it never falls.
    progress_assured_ : ndarray of shape (n_taken,), bool
        Whether the round met the condition of Theorem 7: 0 <= g < r and d0 < ⅔ (1 - r)(1 - r²), where g is the smooth
        margin before the round. The limit of Theorem 8 needs it in every round; most rounds do not meet it.
    loss_ : ndarray of shape (n_taken,), float64
        F̃ after each round, the sum over pairs, with weights scaled so that the smallest is 1.
    intercept_ : float
        ½ ln(F₊/F₋) by Corollary 13.

    Notes
    -----
    For listed pairs (`fit_pairs`) the margin is the minimum over those pairs. A pair that occurs twice has the sum of
    its weights. Pair weights are scaled so that the smallest is 1, because G̃ <= μ requires it.

    Differences from the paper: eq. 12 is 0/0 if d- = 0, so the equivalent form
    α = ln[2 d+ (1 - g) / (g d0 + √(g² d0² + 4 (1 - g²) d+ d-))] is used. If d- = d0 = 0, one stump orders every pair:
    the step is limited to ½ ln(2^52), and the fit ends.

    Time: O(n_rounds · n_features · n_samples) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 4.2, eqs. 10 to 12, Theorems 7 and 8.

    Examples
    --------
    >>> from core import SmoothMarginRank
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = SmoothMarginRank(n_rounds=200).fit(X, y)
    >>> bool(ranker.smooth_margin_[-1] <= ranker.margin_[-1])
    True
    """

    margin_: Annotated[Floats, Array("n_rounds")] = field(init=False)
    smooth_margin_: Floats = field(init=False)
    progress_assured_: npt.NDArray[np.bool_] = field(init=False)
    _log_least: Annotated[float, Value("log_least_weight"), Ge(-1e4), Le(1e4)] = field(init=False)

    n_rounds: NRounds = 100
    weak_ranker: StumpOrColumn = "stump"
    monotone: Monotone = None

    def _algorithm(self) -> "SmoothMarginAlgorithm":
        return SmoothMarginAlgorithm(criterion=Criterion.YOUDEN, log_least=self._log_least)

    def reads_columns(self) -> str | None:
        """Return why it cannot be fitted on column codes alone: margins need the scores of the rows."""
        return super().reads_columns() or "margins are of the scores after each round"

    def _run_rounds(self, plan: BoostingPlan, data: BoostingData, *rest: Any) -> BoostingRun:
        self._log_least = _log_least_weight(data)
        return super()._run_rounds(plan, data, *rest)

    def _take_run(self, run: BoostingRun, data: BoostingData) -> None:
        super()._take_run(run, data)
        stages = self.ensemble_.staged(np.ascontiguousarray(data.X))
        norms = np.cumsum(self.rounds_["alpha"])
        margins = [_least_difference(data, f) / norm for f, norm in zip(stages, norms, strict=True)]
        self.margin_ = np.array(margins, dtype=np.float64)

    def _derive(self) -> None:
        """Compute the smooth margin and Theorem 7's condition of each round, besides the inherited attributes."""
        super()._derive()
        log_f_tilde = self._log_f.sum(axis=1) - self._log_least
        norm = np.cumsum(self.rounds_["alpha"])
        with np.errstate(divide="ignore", invalid="ignore"):
            self.smooth_margin_ = -log_f_tilde[1:] / norm
        before = np.concatenate([[0.0], self.smooth_margin_])[:-1]
        self.progress_assured_ = theorem_7(
            before, self.rounds_["d_plus"], self.rounds_["d_minus"]
        ) & (log_f_tilde[:-1] < 0)


@dataclass(kw_only=True)
class SmoothMarginAlgorithm(RankingAlgorithm):
    """The algorithm of smooth margin ranking: weak ranker by eq. 3, step by eq. 12 of Rudin & Schapire 2009."""

    log_least: float
    """Logarithm of the least weight of a pair."""

    def step(self, weak_ranker: WeakRanker, state: LoopState) -> float:
        """Return the step by eq. 12, or by eq. 4 while F̃ >= 1; along a real-valued column by eq. 10."""
        log_f_tilde = state.log_f_plus + state.log_f_minus - self.log_least
        if log_f_tilde >= 0.0 or state.norm == 0.0:
            return super().step(weak_ranker, state)
        if isinstance(weak_ranker, Column) and weak_ranker.line is not None:
            return weak_ranker.line.climb(log_f_tilde, state.norm)
        return smooth_step(-log_f_tilde / state.norm, weak_ranker.d_plus, weak_ranker.d_minus)

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return F̃ with pair weights scaled so that the minimum is 1."""
        with np.errstate(over="ignore"):  # the least weight may be next to nothing
            return float(np.exp(log_f[0] + log_f[1] - self.log_least))


def smooth_step(g: float, d_plus: float, d_minus: float) -> float:
    """Return eq. 12's step, finite at d- = 0; above 0 if d+ - d- > g, the smooth margin in [0, 1), else 0."""
    d_zero = max(1.0 - d_plus - d_minus, 0.0)
    root = math.sqrt((g * d_zero) ** 2 + 4.0 * (1.0 - g * g) * d_plus * d_minus)
    numerator, denominator = 2.0 * d_plus * (1.0 - g), g * d_zero + root
    if denominator == 0.0:
        return log_ratio(d_plus, 0.0)
    return max(math.log(numerator / denominator), 0.0) if numerator > 0.0 else 0.0


def theorem_7(g: Floats, d_plus: Floats, d_minus: Floats) -> npt.NDArray[np.bool_]:
    """Return for each round whether Theorem 7 guarantees progress: 0 <= g < r and d0 < ⅔ (1 - r)(1 - r²)."""
    r, d_zero = d_plus - d_minus, 1.0 - d_plus - d_minus
    return (g >= 0) & (g < r) & (d_zero < max_tied_mass(r))


def _log_least_weight(data: BoostingData) -> float:
    if isinstance(data, ListedPairs):
        return math.log(data.weight.min())
    if data.query is None:
        classes = data.weight[data.positive], data.weight[~data.positive]
        return sum(math.log(weight.min()) for weight in classes)
    levels = Levels.of(data)
    least = np.log(np.minimum.reduceat(data.weight[levels.order], levels.starts[:-1]))
    return float((least[levels.better] + least[levels.worse]).min())


def _least_difference(data: BoostingData, scores: Floats) -> float:
    """Return the minimum over pairs of the better row's score minus the worse row's."""
    if isinstance(data, ListedPairs):
        better, worse = data.rows[data.better], data.rows[data.worse]
        return float((scores[better] - scores[worse]).min())
    if data.query is None:
        return float(scores[data.positive].min() - scores[~data.positive].max())
    levels = Levels.of(data)
    ordered = scores[levels.order]
    low = np.minimum.reduceat(ordered, levels.starts[:-1])
    high = np.maximum.reduceat(ordered, levels.starts[:-1])
    return float((low[levels.better] - high[levels.worse]).min())
