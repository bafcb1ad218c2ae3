"""AdaBoost.MH and AdaBoost.MR (Schapire & Singer 1999): several labels per row, one score per label, by stumps."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.base.checkpoint import Resumable
from core.base.ranker import Floats
from core.base.state import FINITE, SIGN, Array, Index, Records, Signs
from core.base.table import Categories
from core.base.training import TrainingData
from core.coding import effective_counts, find_best_label_split, fit_bins
from core.coding.best_split import MIN_EDGE, categories_above
from core.coding.categories import Words
from core.errors import ArtifactError, InvalidData
from core.trees.category_sets import Integers, is_above, members_of

from . import stumps
from .algorithms import PairLossAlgorithm, RowLossAlgorithm
from .booster import ExponentialBooster
from .columns import dot
from .data import Bools
from .loop import BoostingAlgorithm, BoostingHistory, Ensemble, WeakLearner, fields_of
from .options import (
    LearningRate,
    NRounds,
    Smoothing,
    StumpOnly,
)

MAX_LABELS = 10_000  # labels of a table

ROUND = np.dtype(
    [
        ("feature", np.int64),
        ("threshold", np.float64),
        ("missing_above", np.bool_),
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
        ("high", np.float64),
        ("low", np.float64),
        ("above", np.float64),
        ("set", np.int64),
    ]
)
"""One round: for label l, h(x) is `high` on the side of its vote, `low` on the other side.

The vote 1 means above the threshold, -1 below it; a missing x counts as above if missing_above. A categorical feature
has a set instead of a threshold, as in `stumps.ROUND`. Feature -1 stands for votes that are the same for all rows: all
rows are above. The field `above` is the fraction of the training weight above the threshold.
"""


@dataclass(frozen=True, slots=True)
class LabelStump:
    """A stump with a vote (orientation) for each label, and the fields of `ROUND`."""

    feature: int
    threshold: float
    missing_above: bool
    d_plus: float
    d_minus: float
    high: float
    low: float
    above: float
    votes: npt.NDArray[np.int8]
    members: Bools | None  # for a categorical feature the categories above

    def values(self, X: Floats) -> Floats:
        above = is_above(X, self.feature, self.threshold, self.missing_above, self.members)
        return np.where(above[:, None] == (self.votes > 0), self.high, self.low)


class Sorts(NamedTuple):
    """The outcome of each (row, label) pair under a weak ranker h: whether the row has the label, whether h is high.

    0: the row has the label, h is high; 1: has it, h is low; 2: has it not, h is high; 3: has it not, h is low.
    """

    numbers: npt.NDArray[np.uint8]
    """Shape (n_rows, n_labels)."""
    sums: Floats
    """Weight of the pairs of each sort. Shape (4,)."""


class LabelWeights(Resumable):
    """The boosting weights of (row, label) pairs: v ∝ w e^{-f} if the row has the label, v ∝ w e^{f} if not.

    Each of the two kinds sums to 1, so that nothing underflows; F₊ and F₋ are stored as logarithms.
    """

    changing = ("v", "_log_f_plus", "_log_f_minus")

    def __init__(self, has: Bools, weight: Floats) -> None:
        self.has = np.ascontiguousarray(has)
        self._sorts = np.where(self.has, 0, 2).astype(np.uint8)
        weights = np.repeat(weight[:, None], has.shape[1], axis=1)
        totals = weights[has].sum(), weights[~has].sum()
        self.v: Floats = np.ascontiguousarray(weights / np.where(has, *totals))
        self._log_f_plus, self._log_f_minus = map(math.log, totals)

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ and F₋, the sums of weights of pairs with and without the label."""
        return self._log_f_plus, self._log_f_minus

    @property
    def share_p(self) -> float:
        """F₊ as a fraction of F₊ + F₋."""
        return 1.0 / (1.0 + math.exp(min(self._log_f_minus - self._log_f_plus, 700.0)))

    def sort(self, is_above: Bools, votes: npt.NDArray[np.int8]) -> Sorts:
        """Return the outcome of each (row, label) pair: h is high above the split for vote 1, else below it."""
        sorts = self._sorts + (is_above[:, None] != (votes > 0))
        sums = np.bincount(sorts.ravel(), self.v.ravel(), 4)
        return Sorts(sorts, sums.astype(np.float64, copy=False))

    def grow(self, sorts: Sorts, rise_high: float, rise_low: float) -> None:
        """Add `rise_high` to f where the weak ranker is high and `rise_low` where it is low, and renew the weights."""
        rises = np.array([-rise_high, -rise_low, rise_high, rise_low])
        factors = np.exp(rises)
        products = factors * sorts.sums
        totals = float(products[:2].sum()), float(products[2:].sum())
        factors[:2] /= totals[0]
        factors[2:] /= totals[1]
        self.v *= factors[sorts.numbers]
        self._log_f_plus += math.log(totals[0])
        self._log_f_minus += math.log(totals[1])


class ExampleWeights(LabelWeights):
    """The weights of pairs of one label that a row has and one that it does not have (Schapire & Singer 1999).

    Their loss is L = Σ_i w_i/(|Y_i| |Ȳ_i|) Σ_{l in Y_i} Σ_{l' not in Y_i} e^{-(f(x_i, l) - f(x_i, l'))},
    over Σ_i w_i; rows without such a pair do not count. With V_i the sums of the v of a row, of either kind, a row
    weighs c_i V_i₊ V_i₋ times F₊F₋, and no pair is listed.
    """

    def __init__(self, has: Bools, weight: Floats) -> None:
        super().__init__(has, weight)
        n_had = has.sum(axis=1)
        n_pairs = n_had * (has.shape[1] - n_had)
        if not n_pairs.any():
            raise InvalidData("pairs 'example' requires a row that has some labels, but not all")
        paired = n_pairs > 0
        self._c = np.zeros(len(weight))
        self._c[paired] = 1.0 / (weight[paired] * n_pairs[paired] * weight[paired].sum())

    @property
    def log_f(self) -> tuple[float, float]:
        """Two logarithms, ½ ln L ± ½ ln(F₊/F₋): their sum is ln L, and their difference gives the intercept."""
        total = dot(self._c, self._sum(self.has) * self._sum(~self.has))
        log_loss = self._log_f_plus + self._log_f_minus + math.log(max(total, 1e-300))
        return (
            0.5 * (log_loss + self._log_f_plus - self._log_f_minus),
            0.5 * (log_loss - self._log_f_plus + self._log_f_minus),
        )

    def signed(self) -> Floats:
        """Return half the weight of the pairs of each (row, label), positive if the row has it; all pairs weigh 1."""
        had, not_had = self._sum(self.has), self._sum(~self.has)
        scale = self._scale(had * not_had)[:, None]
        partners = np.where(self.has, not_had[:, None], -had[:, None])
        return 0.5 * self.v * partners * scale

    def weigh(self, sorts: Sorts) -> tuple[float, float]:
        """Return the weights of the pairs that a weak ranker in {0, 1} orders rightly and wrongly."""
        scale = self._scale(self._sum(self.has) * self._sum(~self.has))
        had_high, had_low, other_high, other_low = (
            self._sum(sorts.numbers == sort) for sort in range(4)
        )
        return dot(had_high * other_low, scale), dot(had_low * other_high, scale)

    def _sum(self, cells: Bools) -> Floats:
        return np.asarray(np.where(cells, self.v, 0.0).sum(axis=1))

    def _scale(self, products: Floats) -> Floats:
        return self._c / max(dot(self._c, products), 1e-300)


class LabelAlgorithm(BoostingAlgorithm):
    """A multilabel boosting algorithm."""

    high: float
    low: float
    """The two values of a weak ranker."""

    def start(self, has: Bools, weight: Floats) -> LabelWeights:
        """Return the weights before the first round."""
        return LabelWeights(has, weight)

    @abstractmethod
    def signed(self, weights: LabelWeights) -> Floats:
        """Return the signed weight of each (row, label) pair by which splits are chosen; absolute values sum to 1."""

    @abstractmethod
    def weigh(self, weights: LabelWeights, sorts: Sorts) -> tuple[float, float]:
        """Return d+ and d-, the weights that a weak ranker gets right and wrong, given the pairs' outcomes."""


@dataclass(frozen=True, eq=False)
class LabelSum(Ensemble):
    """A weighted sum of stumps with a vote per label: one set of step functions for each label."""

    type: ClassVar[str] = "label_stumps"

    n_categories: Integers
    votes: Annotated[Signs, Array("n_rounds", "n_labels"), SIGN]
    """1 or -1. Shape (n_rounds, n_labels), int8."""
    rounds: Annotated[
        npt.NDArray[np.void],
        Records(
            ROUND,
            "n_rounds",
            feature=Index("n_features", least=-1),
            alpha=FINITE,
            d_plus=(Ge(0.0), Le(1.0 + 1e-9)),
            d_minus=(Ge(0.0), Le(1.0 + 1e-9)),
            high=Le(1.0),
            low=Ge(-1.0),
            above=(Ge(0.0), Le(1.0 + 1e-9)),
        ),
    ]
    """Shape (n_rounds,), `ROUND`."""
    has_missing: Annotated[Bools, Array("n_features")]
    sets: Annotated[Words, Array("n_words")]

    def check(self) -> None:
        if not 1 <= self.votes.shape[1] <= MAX_LABELS:
            raise ArtifactError(
                f"votes must contain a column per label, at most {MAX_LABELS}, got {self.votes.shape[1]}"
            )
        if not (self.rounds["low"] < self.rounds["high"]).all():
            raise ArtifactError("low must be less than high")
        plain = _stump_rounds(self.rounds, np.ones(len(self.rounds), dtype=np.int8))
        stumps.check_cuts(plain, self.sets, self.n_categories)

    @cached_property
    def _labels(self) -> list[tuple[stumps.StepFunctions, float, float]]:
        """By label: step functions, their constant, and the mean score."""
        sums = map(self._of_label, range(self.votes.shape[1]))
        return [(label.steps, label.constant, label.mean) for label in sums]

    @property
    def constant(self) -> Floats:
        return np.array([constant for _, constant, _ in self._labels])

    @property
    def mean(self) -> Floats:
        return np.array([mean for *_, mean in self._labels])

    def score(self, X: Floats, intercept: float) -> Floats:
        """Return a score per row and label, (n_rows, n_labels)."""
        return np.column_stack(
            [steps.score(X, intercept + constant) for steps, constant, _ in self._labels]
        )

    def contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution to each score, (n_rows, n_features, n_labels)."""
        labels = range(self.votes.shape[1])
        return np.stack([self._of_label(k).contributions(X) for k in labels], axis=2)

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        sums = map(self._of_label, range(self.votes.shape[1]))
        return {
            "labels": [
                {"constant": label.constant, **label.describe(name, categories)} for label in sums
            ]
        }

    def weak_rankers(self) -> list[LabelStump]:
        names = tuple(name for name in ROUND.names or () if name not in ("alpha", "set"))
        return [
            LabelStump(
                **fields_of(row, names),
                votes=votes,
                members=members_of(self.sets, row, self.n_categories),
            )
            for row, votes in zip(self.rounds, self.votes, strict=True)
        ]

    def _of_label(self, k: int) -> stumps.StumpSum:
        rounds = _stump_rounds(self.rounds, self.votes[:, k])
        return stumps.StumpSum(self.n_categories, rounds, self.has_missing, self.sets)


def _stump_rounds(
    rounds: npt.NDArray[np.void], votes: npt.NDArray[np.int8]
) -> npt.NDArray[np.void]:
    plain = np.empty(len(rounds), dtype=stumps.ROUND)
    for name in plain.dtype.names or ():
        if name in (rounds.dtype.names or ()):
            plain[name] = rounds[name]
    plain["sign"] = votes
    plain["coverage"] = np.where(votes > 0, rounds["above"], 1.0 - rounds["above"])
    everywhere = rounds["feature"] < 0
    value = np.where(votes > 0, rounds["high"], rounds["low"])
    plain["high"][everywhere] = plain["low"][everywhere] = value[everywhere]
    plain["sign"][everywhere] = 1
    return plain


class LabelLearner(WeakLearner):
    """Weak learner of a `LabelAlgorithm`: finds the best stump in O(n_features · n_rows · n_labels) a round."""

    ensemble = LabelSum
    changing = ("_weights",)

    def __init__(self, parameters: Any, algorithm: LabelAlgorithm, data: TrainingData) -> None:
        X, has, weight = data.X, data.positive, data.weight
        n_categories = data.n_categories
        rows = np.arange(len(X))
        self._bins, self._codes = fit_bins(X, rows, weight, parameters.max_bins, n_categories)
        self._n_categories = n_categories
        is_categorical = self._bins.is_categorical
        self._counts = effective_counts(weight) if is_categorical.any() else None
        self._algorithm = algorithm
        self._share = weight / weight.sum()
        self._weights = algorithm.start(has, weight)
        self._n_labels = has.shape[1]
        self._sorts = Sorts(np.empty((0, 0), dtype=np.uint8), np.empty(0))  # of the last stump

    @property
    def log_f(self) -> tuple[float, float]:
        return self._weights.log_f

    def scan(self) -> LabelStump | None:
        bins, algorithm = self._bins, self._algorithm
        signed = algorithm.signed(self._weights)
        split = find_best_label_split(
            self._codes,
            signed,
            bins.n_bins,
            bins.has_missing,
            bins.is_categorical,
            self._counts,
        )
        if split.gain < MIN_EDGE:
            return None
        if split.feature < 0:
            rows_above = np.ones(len(self._share), dtype=np.bool_)
        else:
            rows_above = stumps.sides_of(self._codes[split.feature], split).is_above
        edges = np.einsum("i,ij->j", np.where(rows_above, 1.0, -1.0), signed)
        votes = np.where(edges >= 0, 1, -1).astype(np.int8)
        self._sorts = self._weights.sort(rows_above, votes)
        d_plus, d_minus = algorithm.weigh(self._weights, self._sorts)
        if d_plus - d_minus < MIN_EDGE:
            return None
        return LabelStump(
            split.feature,
            stumps.threshold_of(bins, split),
            split.missing_above,
            d_plus,
            d_minus,
            algorithm.high,
            algorithm.low,
            above=float(self._share[rows_above].sum()),
            votes=votes,
            members=categories_above(bins, split) if split.feature >= 0 else None,
        )

    def update(self, weak_ranker: LabelStump, alpha: float) -> None:
        self._weights.grow(self._sorts, alpha * weak_ranker.high, alpha * weak_ranker.low)

    def collect(self, history: BoostingHistory) -> LabelSum:
        rounds, sets = stumps.rounds_of_cuts(history, ROUND)
        votes = np.empty((len(history.weak_rankers), self._n_labels), dtype=np.int8)
        for t, stump in enumerate(history.weak_rankers):
            votes[t] = stump.votes
        return LabelSum(self._n_categories, votes, rounds, self._bins.has_missing, sets)


class MultilabelBooster(ExponentialBooster):
    """The base of the multilabel boosters: y is a table of 0 and 1, and scores have a column per label."""

    target = "multilabel"

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        return int(self.votes_.shape[1])

    @property
    def votes_(self) -> npt.NDArray[np.int8]:
        """The votes of each round's stump, one per label."""
        return self._label_sum.votes

    @property
    def _label_sum(self) -> LabelSum:
        assert isinstance(self.ensemble_, LabelSum)
        return self.ensemble_

    def _weak_learner(self) -> type[WeakLearner]:
        return LabelLearner

    def _check_target(self, y: Any, n_samples: int) -> tuple[npt.NDArray[Any], Bools]:
        try:
            table = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidData(f"y must contain 0 and 1: {error}") from error
        if table.ndim != 2 or table.shape[1] < 1:
            raise InvalidData(
                f"y must be a table of 0 and 1 with one column per label, got shape {table.shape}"
            )
        if table.shape[1] > MAX_LABELS:
            raise InvalidData(f"y must have at most {MAX_LABELS} labels, got {table.shape[1]}")
        if len(table) != n_samples:
            raise InvalidData(f"y must have one row per row of X ({n_samples}), got {len(table)}")
        wrong = ~np.isin(table, (0.0, 1.0))
        if wrong.any():
            row, label = (int(k) for k in np.argwhere(wrong)[0])
            raise InvalidData(
                f"y must contain 0 and 1, got {table[row, label]} at row {row}, label {label}"
            )
        has = table == 1.0
        if has.all() or not has.any():
            raise InvalidData(f"y must contain both 0 and 1, got only {table[0, 0]:g}")
        return np.array([0, 1]), has

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoostMH(MultilabelBooster):
    """One score per label, by boosted stumps with a vote for each label (AdaBoost.MH).

    Use it for tables in which a row can have several labels. With two classes, use `RankBoost`.

    Every row becomes one example per label: y = 1 if the row has the label, -1 if not. AdaBoost runs on these examples.
    The loss is F = Σ w_i e^{-y_il f(x_i, l)}. A weak classifier h(x, l) = ±1 is a threshold on one feature, with a vote
    of each label on either side. Votes that are the same on both sides, including the constant classifier, are
    candidates, too.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        One record per round; see `multilabel.ROUND`.
    votes_ : ndarray of shape (n_taken, n_labels_), int8
        1 if the label votes 1 above the threshold, -1 if it votes 1 below.
    loss_ : ndarray of shape (n_taken,), float64
        F after each round.
    f_, f_skew_, f_tilde_ : ndarray of shape (n_taken,), float64
        F, F₊ - F₋, and the product F₊F₋ that `AdaBoostMR` minimises.
    intercept_ : ndarray of shape (n_labels_,), float64
        The part of a label's score that is the same for all rows; `predict` has its threshold at 0.

    Notes
    -----
    The constant classifier is one of the weak classifiers. So the F-skew tends to 0, and the ranking of all (row,
    label) pairs tends to that of `AdaBoostMR`.

    Time: O(n_rounds · n_features · n_samples · n_labels) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 5.1.

    R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated predictions",
    Machine Learning 37, 1999.

    Examples
    --------
    >>> from core import AdaBoostMH
    >>> X = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
    >>> y = [[1, 0], [1, 0], [0, 0], [1, 1], [0, 1], [0, 1]]  # two labels
    >>> ranker = AdaBoostMH(n_rounds=5).fit(X, y)
    >>> ranker.predict(X).tolist()
    [[1, 0], [1, 0], [0, 0], [1, 1], [0, 1], [0, 1]]
    """

    n_rounds: NRounds = 100
    weak_ranker: StumpOnly = "stump"
    learning_rate: LearningRate = 1.0

    def _algorithm(self) -> "HammingAlgorithm":
        return HammingAlgorithm(learning_rate=self.learning_rate)


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoostMR(MultilabelBooster):
    """One score per label, by boosted stumps that minimise the ranking loss over labels (AdaBoost.MR).

    Use it for tables in which a row can have several labels, if the labels of a row should rank above the labels that
    it does not have. With two classes, use `RankBoost`.

    The loss is F̃ = F₊F₋. It is RankBoost's loss on (row, label) pairs: a sum of e^{-(f(x_i, l) - f(x_k, l'))} over all
    combinations of a label that a row has and one that a row does not have. A weak ranker h(x, l) in {0, 1} is a
    threshold on one feature, with a vote of each label on either side. Each round takes the one with the greatest d+ -
    d- (eq. 3). With `pairs="example"` the loss is that of Schapire & Singer, which compares only labels of the same
    row.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        One record per round; see `multilabel.ROUND`.
    votes_ : ndarray of shape (n_taken, n_labels_), int8
        1 if the label's h is 1 above the threshold, -1 if it is 1 below.
    loss_ : ndarray of shape (n_taken,), float64
        F̃ after each round. With `pairs="example"`, the mean over rows of the mean over their pairs.
    f_, f_skew_, f_tilde_ : ndarray of shape (n_taken,), float64
        F = F₊ + F₋ = 2√F̃, F₊ - F₋ = 0, and F̃ = F₊F₋ of the scores with their intercept. With `pairs="example"`, F̃ is
        that loss.
    intercept_ : ndarray of shape (n_labels_,), float64
        ½ ln(F₊/F₋) by Corollary 13, plus what the votes add to every row; `predict` has its threshold at 0.

    Notes
    -----
    The paper prints F_MR with a minus between the two sums; the correct form is their product. The equivalence with
    `AdaBoostMH` holds for this global product. `pairs="example"` has another minimiser. The step is smoothed as in
    `RankBoost`.

    Time: O(n_rounds · n_features · n_samples · n_labels) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 5.1.

    R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated predictions",
    Machine Learning 37, 1999.

    Examples
    --------
    >>> from core import AdaBoostMR
    >>> X = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
    >>> y = [[1, 0], [1, 0], [0, 0], [1, 1], [0, 1], [0, 1]]  # two labels
    >>> ranker = AdaBoostMR(n_rounds=5).fit(X, y)
    >>> ranker.decision_function(X[:3]).round(1).tolist()
    [[2.2, -3.8], [2.2, -3.8], [-0.6, -1.0]]
    """

    n_rounds: NRounds = 100
    weak_ranker: StumpOnly = "stump"
    learning_rate: LearningRate = 1.0
    pairs: Annotated[
        Literal["all", "example"],
        Doc(
            'Pairs of a positive and a negative label that must be in order. "all": over all rows. "example": '
            "only within the same row."
        ),
    ] = "all"
    smoothing: Smoothing = 1e-2

    def _algorithm(self) -> "GlobalRankingAlgorithm":
        algorithm = ExampleRankingAlgorithm if self.pairs == "example" else GlobalRankingAlgorithm
        return algorithm(learning_rate=self.learning_rate, smoothing=self.smoothing)


class HammingAlgorithm(RowLossAlgorithm, LabelAlgorithm):
    """AdaBoost.MH's rules: classifiers in {-1, 1}, chosen by the weight of (row, label) pairs classified correctly.

    Votes that are the same everywhere are intercepts already.
    """

    high, low = 1.0, -1.0

    def signed(self, weights: LabelWeights) -> Floats:
        """Return d y, the weight of each (row, label) pair, negative if the row does not have the label."""
        share = weights.share_p
        return weights.v * np.where(weights.has, share, share - 1.0)

    def weigh(self, weights: LabelWeights, sorts: Sorts) -> tuple[float, float]:
        """Return d+ and d-, the weights of (row, label) pairs classified correctly and wrongly."""
        had_high, had_low, other_high, other_low = sorts.sums.tolist()
        share_p, share_n = weights.share_p, 1.0 - weights.share_p
        return share_p * had_high + share_n * other_low, share_p * had_low + share_n * other_high


class GlobalRankingAlgorithm(PairLossAlgorithm, LabelAlgorithm):
    """AdaBoost.MR's rules over all pairs of a (row, label) that is present and one that is absent."""

    high, low = 1.0, 0.0

    def signed(self, weights: LabelWeights) -> Floats:
        """Return half the weight v of each (row, label), negative if absent; the edge is then d+ - d- = P - N."""
        return weights.v * np.where(weights.has, 0.5, -0.5)

    def weigh(self, weights: LabelWeights, sorts: Sorts) -> tuple[float, float]:
        """Return d+ = P (1 - N) and d- = N (1 - P), the weights of pairs ordered correctly and wrongly."""
        had_high, had_low, other_high, other_low = sorts.sums.tolist()
        return had_high * other_low, other_high * had_low


class ExampleRankingAlgorithm(GlobalRankingAlgorithm):
    """AdaBoost.MR's rules over pairs of labels of the same row only."""

    def start(self, has: Bools, weight: Floats) -> ExampleWeights:
        return ExampleWeights(has, weight)

    def signed(self, weights: LabelWeights) -> Floats:
        """Return half the weight of the pairs that contain each (row, label), negative if the label is absent."""
        assert isinstance(weights, ExampleWeights)
        return weights.signed()

    def weigh(self, weights: LabelWeights, sorts: Sorts) -> tuple[float, float]:
        """Return d+ and d-, the weights of pairs of labels that are ordered correctly and wrongly."""
        assert isinstance(weights, ExampleWeights)
        return weights.weigh(sorts)
