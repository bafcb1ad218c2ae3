"""LambdaMART (Burges 2010): trees by Newton steps on lambdas, pair gradients that weigh what a swap does to NDCG."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numba
import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.base.ranker import Callback, Floats, ignore
from core.base.target import MAX_GRADE
from core.base.training import TrainingData
from core.coding.categories import sort_stably
from core.coding.rows import positives_first
from core.coding.threads import shared_pool, take
from core.kernels import kernel
from core.metrics.groups import inner, prefix_sums
from core.metrics.lists import ListNdcg
from core.metrics.margins import log_sum
from core.trees.grower import Splits, TreeGrower
from core.trees.order import Relation, pool_ratios
from core.trees.splitting import Objective, SplitCriterion

from .booster import TreeBooster
from .data import Evaluation, evaluate
from .loop import WeakLearner
from .pairs import BoostingData
from .plan import BoostingPlan
from .tree_learner import TreeLearner
from .tree_losses import SORTED_NOISE_GAIN, Leaves, TreeAlgorithm, TreeLoss

# Added to a difference of scores that lambdas are divided by.
MIN_DIFFERENCE = 0.01

# Rows of queries that one thread takes at a time.
BLOCK_ROWS = 4096


@dataclass(kw_only=True, eq=False, repr=False)
class LambdaMART(TreeBooster):
    """Boosted trees that maximise NDCG: the order within each list, with most weight on its top.

    Use it for lists (searches, days, customers) of which only the first rows are used, and for graded labels. Pass the
    lists as `fit(..., query=...)`. If you need the order of the entire list, use `RankBoost`.

    Each pair of rows of one list, i with a higher grade than k, pulls i up and k down by
    λ = Δ / (1 + e^{f(x_i) - f(x_k)}). Δ is the change of the list's NDCG if the two rows swapped places. Leaves take
    Newton steps on the sums of these. Labels are two classes or, with `graded`, grades from 0 to 31; grade g has the
    gain 2^g - 1. Without `query`, all rows are one list.

    Attributes
    ----------
    loss_ : ndarray of shape (n_taken,), float64
        1 - NDCG of the training rows after each round, the mean over queries. Of tied rows, the lower grade comes
        first.
    intercept_ : float
        With two classes, the value at which Σ e^{-f} over the positives equals Σ e^{f} over the negatives. 0 with
        grades.
    validation_ndcg_ : ndarray of shape (n_tried,), float64
        NDCG of the validation part after each round, including rounds that early stopping dropped. NaN where it was not
        computed; empty without early stopping.

    Notes
    -----
    NDCG is truncated after `truncation` rows: swaps below have no effect. With `normalize`, lambdas are divided by
    0.01 + |f(x_i) - f(x_k)|, and those of a query with the sum s are multiplied by log2(1 + s) / s, as in LightGBM.

    Tied scores are ordered with lower grades first. Rows of one grade share the mean of their places, so the order of
    the input has no effect. A query has the mean weight of its rows; a row of weight k is not equivalent to k rows.

    Time: O(n_features · n_samples · depth + n_samples · truncation) per round. One thread computes each query, so the
    result does not depend on the number of threads.

    References
    ----------
    C. Burges, "From RankNet to LambdaRank to LambdaMART: an overview", Microsoft Research MSR-TR-2010-82, 2010.

    Examples
    --------
    >>> from core import LambdaMART
    >>> X, y = [[1.0], [2.0], [3.0], [1.0], [2.0], [3.0]], [0, 2, 1, 0, 2, 1]
    >>> ranker = LambdaMART(n_rounds=5, min_samples_leaf=0)
    >>> scores = ranker.fit(X, y, query=[1, 1, 1, 2, 2, 2], graded=True).decision_function(X[:3])
    >>> scores.argsort().tolist()
    [0, 2, 1]
    """

    takes_query = True
    takes_grades = True

    truncation: Annotated[
        int,
        Ge(1),
        Le(1000),
        Doc("Number of first rows of a list whose order matters: k of the NDCG that is maximised."),
    ] = 30
    normalize: Annotated[
        bool,
        Doc(
            "Whether to divide each pair's gradient by the difference of its scores and to bound the gradient of "
            "each query."
        ),
    ] = True
    smoothing: Annotated[
        float,
        Ge(0),
        Le(1000),
        Doc(
            "Amount added to the curvature of each leaf, in rows of mean curvature. 0 is the plain Newton step."
        ),
    ] = 1.0

    @property
    def validation_ndcg_(self) -> Floats:
        """NDCG of the validation part after each round."""
        return self._validation_auc

    def _algorithm(self) -> "LambdaAlgorithm":
        return LambdaAlgorithm(
            learning_rate=self._rate(),
            smoothing=self.smoothing,
            truncation=self.truncation,
            normalize=self.normalize,
        )

    def reads_columns(self) -> str | None:
        """Return why it cannot be fitted on column codes alone: it needs the row order within each query."""
        return "it orders the rows of each query"

    def _learner_on(self, data: BoostingData) -> type[WeakLearner]:
        return LambdaLearner

    def _prepare(self, data: TrainingData) -> TrainingData:
        return data.within_queries()

    def _evaluation(self, data: BoostingData) -> Evaluation:
        assert isinstance(data, TrainingData)
        return evaluate(data, ListNdcg(self.truncation), "validation_ndcg")


class LambdaLoss(TreeLoss):
    """LambdaMART's loss for growing trees: the gradient (lambda) and Hessian of each row; positives come first."""

    n_weights = 2
    changing: ClassVar[tuple[str, ...]] = (
        "_weights",
        "_scores",
        "_curvature",
        "_unit",
        "log_f_plus",
        "log_f_minus",
    )

    def __init__(
        self, grower: TreeGrower, data: TrainingData, algorithm: "LambdaAlgorithm"
    ) -> None:
        super().__init__(grower, data.weight, algorithm.smoothing)
        own, _ = positives_first(data.positive)
        place = np.empty(len(own), dtype=np.int64)
        place[own] = np.arange(len(own))
        assert data.query is not None
        order = np.lexsort((data.target, data.query))  # lower grades first, as in ties
        self._places = place[order]  # the grower's row of each row by query
        self._grade = data.target[order]
        sizes = np.bincount(data.query)
        self._starts = prefix_sums(sizes.astype(np.float64)).astype(np.int64)
        self._query_weight = np.bincount(data.query, data.weight) / sizes
        count = min(algorithm.truncation, int(sizes.max()))
        self._discounts = prefix_sums(1.0 / np.log2(np.arange(count) + 2.0))
        self._normalize = algorithm.normalize
        self._blocks = _split_blocks(self._starts)
        self._positive = data.positive[own] if data.grade is None else None
        self._class_weight = data.weight[own]
        self._scores = grower.scores
        self._scores[:] = 0.0
        self._losses = np.empty(len(sizes))
        self._curvature = 0.0
        self.update(np.zeros(1))

    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        penalty = category_penalty * SORTED_NOISE_GAIN * self._unit
        return self._split_criterion(
            Objective.GRADIENT, 1.0, min_samples_leaf, self._curvature, penalty
        )

    def best_step(self, splits: Splits, relation: Relation | None = None) -> Leaves:
        upward, downward, curvature, sample_weight = splits.sums
        gradient = upward + downward
        denominator = np.maximum(curvature + self._smoothing * self._unit, np.finfo(float).tiny)
        return Leaves(pool_ratios(gradient, denominator, relation), sample_weight)

    def update(self, values: Floats) -> None:
        scores, weights = self._scores, self._weights
        scores += self._grower.values_of_rows(values)
        shared_pool(len(scores) * len(self._discounts)).deal(
            _write_lambdas,
            len(self._blocks) - 1,
            self._blocks,
            self._places,
            self._grade,
            self._starts,
            self._query_weight,
            self._discounts,
            self._normalize,
            scores,
            weights,
            self._losses,
        )
        curvature = weights[:, 1]
        self._curvature = float(curvature.sum())
        squares = float((curvature**2).sum())
        self._unit = squares / self._curvature if self._curvature > 0.0 else 0.0
        total = inner(self._query_weight, self._losses) / float(self._query_weight.sum())
        half = 0.5 * math.log(max(total, np.finfo(float).tiny))
        tilt = 0.5 * self._tilt()
        self.log_f_plus, self.log_f_minus = half + tilt, half - tilt

    def _tilt(self) -> float:
        """Return the logarithm of Σ w e^{-f} over positives divided by Σ w e^{f} over negatives; 0 with grades."""
        if self._positive is None:
            return 0.0
        logs = np.log(self._class_weight) + np.where(self._positive, -self._scores, self._scores)
        return log_sum(logs[self._positive]) - log_sum(logs[~self._positive])


@dataclass(kw_only=True)
class LambdaAlgorithm(TreeAlgorithm):
    """LambdaMART's boosting algorithm: its loss and intercept. For the parameters see `LambdaMART`."""

    loss_class: type[TreeLoss] = LambdaLoss

    truncation: int
    normalize: bool

    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Raise an error: the loss needs queries, so that `LambdaLearner` makes it."""
        raise NotImplementedError

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return 1 - NDCG of the training rows."""
        return math.exp(log_f[0] + log_f[1])

    def intercept(self, log_f: Floats) -> float:
        """Return the intercept (log_f[0] - log_f[1]) / 2, at which 0 separates the classes."""
        return float(0.5 * (log_f[0] - log_f[1]))


class LambdaLearner(TreeLearner):
    """Weak learner that grows the next tree on the lambdas of rows grouped by query."""

    def __init__(
        self,
        parameters: Any,
        algorithm: LambdaAlgorithm,
        data: TrainingData,
        plan: BoostingPlan,
        callback: Callback = ignore,
    ) -> None:
        self._data = data
        self.encodes_targets = data.grade is None
        super().__init__(parameters, algorithm, data, plan, callback)
        self._data = replace(data, X=np.empty((0, 0)))

    def _make_loss(self, algorithm: LambdaAlgorithm, weight: Floats) -> LambdaLoss:
        return LambdaLoss(self._grower, self._data, algorithm)


def _split_blocks(starts: Any) -> Any:
    """Return the first query of each block of about `BLOCK_ROWS` rows, then the number of queries, (n + 1,) int64."""
    block = starts[:-1] // BLOCK_ROWS
    first = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    return np.append(first, len(starts) - 1).astype(np.int64)


_INTEGERS = numba.int64[::1]
_FLOATS = numba.float64[::1]


@kernel(
    numba.void(
        numba.int64[::1],
        numba.int64,
        _INTEGERS,
        _INTEGERS,
        _INTEGERS,
        _INTEGERS,
        _FLOATS,
        _FLOATS,
        numba.boolean,
        _FLOATS,
        numba.float64[:, ::1],
        _FLOATS,
    )
)
def _write_lambdas(  # type: ignore[no-untyped-def]
    queue,
    n,
    blocks,
    places,
    grade,
    starts,
    query_weight,
    discounts,
    normalize,
    scores,
    weights,
    losses,
):
    """Write gradient and Hessian of each row to weights, (n_rows, 2), and 1 - NDCG of each query to losses.

    Blocks of queries come from the queue. blocks: first queries; places: the place in scores and weights of each row by
    query; grade: by query; starts: (n_queries + 1,); discounts: (count + 1,), sums of the first ranks' discounts.
    """
    count = len(discounts) - 1
    rows = np.empty(MAX_GRADE + 1, dtype=np.int64)
    block = take(queue)
    while block < n:
        longest = 0
        for q in range(blocks[block], blocks[block + 1]):
            longest = max(longest, starts[q + 1] - starts[q])
        own, own_grade = np.empty(longest), np.empty(longest, dtype=np.int64)
        order, first = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
        size = np.empty(longest)
        score, gain, discount = np.empty(longest), np.empty(longest), np.empty(longest)
        pull, curvature = np.empty(longest), np.empty(longest)
        for q in range(blocks[block], blocks[block + 1]):
            start, length = starts[q], starts[q + 1] - starts[q]
            rows[:] = 0
            for i in range(length):
                own[i] = -scores[places[start + i]]
                own_grade[i] = grade[start + i]
                rows[own_grade[i]] += 1
            sort_stably(own[:length], order[:length])
            # rows of one score and one grade share their places
            n_ties = 0
            found = 0.0
            i = 0
            while i < length:
                j, row = i, order[i]
                while (
                    j < length
                    and own[order[j]] == own[row]
                    and own_grade[order[j]] == own_grade[row]
                ):
                    j += 1
                first[n_ties], size[n_ties] = i, j - i
                score[n_ties], gain[n_ties] = -own[row], 2.0 ** own_grade[row] - 1.0
                sums = discounts[min(j, count)] - discounts[min(i, count)]
                discount[n_ties] = sums / (j - i)
                found += gain[n_ties] * sums
                pull[n_ties] = curvature[n_ties] = 0.0
                n_ties += 1
                i = j
            best, rank = 0.0, 0
            for g in range(MAX_GRADE, 0, -1):
                best += (2.0**g - 1.0) * (
                    discounts[min(rank + rows[g], count)] - discounts[min(rank, count)]
                )
                rank += rows[g]
            losses[q] = max(0.0, 1.0 - found / best)
            is_scaled = normalize and score[0] != score[n_ties - 1]
            total = 0.0
            for a in range(n_ties):
                if first[a] >= count:
                    break
                for b in range(a + 1, n_ties):
                    if gain[a] == gain[b]:
                        continue
                    high, low = (a, b) if gain[a] > gain[b] else (b, a)
                    swap = (gain[high] - gain[low]) * abs(discount[a] - discount[b]) / best
                    difference = score[high] - score[low]
                    if is_scaled:
                        swap /= MIN_DIFFERENCE + abs(difference)
                    p = 1.0 / (1.0 + math.exp(min(difference, 700.0)))
                    force, hessian = swap * p, swap * p * (1.0 - p)
                    pull[high] += force * size[low]
                    pull[low] -= force * size[high]
                    curvature[high] += hessian * size[low]
                    curvature[low] += hessian * size[high]
                    total += 2.0 * force * size[high] * size[low]
            factor = query_weight[q]
            if normalize and total > 0.0:
                factor *= math.log2(1.0 + total) / total
            for t in range(n_ties):
                end = length if t + 1 == n_ties else first[t + 1]
                for i in range(first[t], end):
                    place = places[start + order[i]]
                    weights[place, 0] = factor * pull[t]
                    weights[place, 1] = factor * curvature[t]
        block = take(queue)
