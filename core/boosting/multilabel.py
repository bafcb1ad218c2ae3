"""AdaBoost.MH and AdaBoost.MR (Schapire & Singer 1999): several labels a row, a score for each."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc

from core.coding.bins import MaxBins
from core.errors import InvalidData
from core.ranker import Floats

from .booster import Booster
from .data import Bools
from .label_stumps import (
    MAX_LABELS,
    ExampleWeights,
    LabelLearner,
    LabelRule,
    LabelSum,
    LabelWeights,
    VoteSides,
)
from .options import (
    EarlyStoppingRounds,
    LearningRate,
    NRounds,
    RandomState,
    Smoothing,
    StumpOnly,
    ValidationFraction,
)
from .rules import PairLossRule, RowLossRule
from .weak_learner import WeakLearner


class MultilabelBooster(Booster):
    """The base of both: y is a table of 0 and 1, and scores have a column per label."""

    target = "multilabel"

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        return int(self.votes_.shape[1])

    @property
    def votes_(self) -> npt.NDArray[np.int8]:
        """The votes of each round."""
        return self._label_sum.votes

    @property
    def _label_sum(self) -> LabelSum:
        assert isinstance(self._ensemble, LabelSum)
        return self._ensemble

    def _weak_learner(self) -> type[WeakLearner]:
        return LabelLearner

    def _check_target(self, y: Any, n_samples: int) -> tuple[npt.NDArray[Any], Bools]:
        """Give the classes, 0 and 1, and which row has which label."""
        try:
            table = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidData(f"y must hold 0 and 1: {error}") from error
        if table.ndim != 2 or table.shape[1] < 1:
            raise InvalidData(
                f"y must be a table of 0 and 1, a column per label, got shape {table.shape}"
            )
        if table.shape[1] > MAX_LABELS:
            raise InvalidData(f"y must have at most {MAX_LABELS} labels, got {table.shape[1]}")
        if len(table) != n_samples:
            raise InvalidData(f"y must hold a row per row of X ({n_samples}), got {len(table)}")
        wrong = ~np.isin(table, (0.0, 1.0))
        if wrong.any():
            row, label = (int(k) for k in np.argwhere(wrong)[0])
            raise InvalidData(
                f"y must hold 0 and 1, got {table[row, label]} at row {row}, label {label}"
            )
        has = table == 1.0
        if has.all() or not has.any():
            raise InvalidData(f"y must hold both 0 and 1, got {table[0, 0]:g} only")
        return np.array([0, 1]), has

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoostMH(MultilabelBooster):
    """Boost stumps with a vote per label on the weights of (row, label) pairs: AdaBoost.MH.

    Every row becomes one example per label, y = 1 where it has the label and -1 where not; AdaBoost
    runs on those. The loss is F = Σ w_i e^{-y_il f(x_i, l)}. A weak classifier h(x, l) = ±1 is a cut
    of one feature with a vote of each label on its sides; votes that are the same everywhere, the
    constant classifier among them, compete too.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        See `label_stumps.ROUND`.
    votes_ : ndarray of shape (n_taken, n_labels_), int8
        1 where the label says 1 above the cut, -1 where it says 1 below.
    loss_ : ndarray of shape (n_taken,), float64
        F after each round.
    f_, f_skew_, f_tilde_ : ndarray of shape (n_taken,), float64
        F, F₊ - F₋, and the product F₊F₋ that `AdaBoostMR` minimises.
    intercept_ : ndarray of shape (n_labels_,)
        What every row's score of a label holds alike; `predict` cuts at 0.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"}
        Why there are no more rounds.

    Notes
    -----
    Since the constant classifier is among the weak ones, the F-skew goes to 0 and the ranking of all
    (row, label) pairs to that of `AdaBoostMR`.

    O(n_rounds · n_features · n_samples · n_labels) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 5.1.

    R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated predictions",
    Machine Learning 37, 1999.
    """

    n_rounds: NRounds = 100
    weak_ranker: StumpOnly = "stump"
    learning_rate: LearningRate = 1.0
    max_bins: MaxBins = 255
    early_stopping_rounds: EarlyStoppingRounds = None
    validation_fraction: ValidationFraction = 0.2
    random_state: RandomState = 0

    def _rule(self) -> "HammingRule":
        return HammingRule(learning_rate=self.learning_rate)


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoostMR(MultilabelBooster):
    """Boost stumps with a vote per label so that labels had rank above labels not had: AdaBoost.MR.

    The loss is F̃ = F₊F₋, a sum of e^{-(f(x_i, l) - f(x_k, l'))} over all pairs of a (row, label) that
    is had and one that is not: RankBoost's, on (row, label) pairs. A weak ranker h(x, l) in {0, 1} is
    a cut of one feature with a vote of each label on its sides, the one with the greatest d+ - d-
    (eq. 3). With pairs="example" it is Schapire & Singer's own loss, in which only labels of the same
    row are compared.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        See `label_stumps.ROUND`.
    votes_ : ndarray of shape (n_taken, n_labels_), int8
        1 where the label's h is 1 above the cut, -1 where it is 1 below.
    loss_ : ndarray of shape (n_taken,), float64
        F̃ after each round; with pairs="example" the mean over rows of their mean over pairs.
    f_, f_skew_, f_tilde_ : ndarray of shape (n_taken,), float64
        F̃ = F₊F₋, F = F₊ + F₋ = 2√F̃ and F₊ - F₋ = 0 of the scores with their intercept; of
        pairs="example" F̃ is that loss.
    intercept_ : ndarray of shape (n_labels_,)
        ½ ln(F₊/F₋), by Corollary 13, and what the votes add everywhere; `predict` cuts at 0.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"}
        Why there are no more rounds.

    Notes
    -----
    The paper prints F_MR with a minus between the two sums; it is their product. The equivalence with
    `AdaBoostMH` holds for this global product; pairs="example" has another minimiser. The
    step is smoothed as in `RankBoost`.

    O(n_rounds · n_features · n_samples · n_labels) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 5.1.

    R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated predictions",
    Machine Learning 37, 1999.
    """

    n_rounds: NRounds = 100
    weak_ranker: StumpOnly = "stump"
    learning_rate: LearningRate = 1.0
    max_bins: MaxBins = 255
    pairs: Annotated[
        Literal["all", "example"],
        Doc(
            "Which labels had are to rank above which not had: those of all rows, or of the "
            "same row."
        ),
    ] = "all"
    smoothing: Smoothing = 1e-2
    early_stopping_rounds: EarlyStoppingRounds = None
    validation_fraction: ValidationFraction = 0.2
    random_state: RandomState = 0

    def _rule(self) -> "GlobalRankingRule":
        rule = ExampleRankingRule if self.pairs == "example" else GlobalRankingRule
        return rule(learning_rate=self.learning_rate, smoothing=self.smoothing)


class HammingRule(RowLossRule, LabelRule):
    """Weak classifiers in {-1, 1}, judged by the (row, label) pairs that they get right.

    Votes that are the same everywhere are intercepts already.
    """

    high, low = 1.0, -1.0

    def signed(self, weights: LabelWeights) -> Floats:
        """Give d y, both kinds of pairs at the share of the weight that they have."""
        share = weights.share_p
        return weights.v * np.where(weights.has, share, share - 1.0)

    def weigh(self, weights: LabelWeights, sides: VoteSides) -> tuple[float, float]:
        """Give the weight classified rightly and wrongly."""
        had_high, had_low, other_high, other_low = weights.sums(sides)
        share_p, share_n = weights.share_p, 1.0 - weights.share_p
        return share_p * had_high + share_n * other_low, share_p * had_low + share_n * other_high


class GlobalRankingRule(PairLossRule, LabelRule):
    """Weak rankers in {0, 1}, judged by all pairs of a (row, label) that is had and one that is not."""

    high, low = 1.0, 0.0

    def signed(self, weights: LabelWeights) -> Floats:
        """Give ±½ v: the edge of votes on them is d+ - d- = P - N."""
        return weights.v * np.where(weights.has, 0.5, -0.5)

    def weigh(self, weights: LabelWeights, sides: VoteSides) -> tuple[float, float]:
        """Give d+ = P (1 - N) and d- = N (1 - P), each mass summed on its own."""
        had_high, had_low, other_high, other_low = weights.sums(sides)
        return had_high * other_low, other_high * had_low


class ExampleRankingRule(GlobalRankingRule):
    """The same, judged by the pairs of labels of one row."""

    def start(self, has: Bools, weight: Floats) -> ExampleWeights:
        """Give the weights at f = 0."""
        return ExampleWeights(has, weight)

    def signed(self, weights: LabelWeights) -> Floats:
        """Give ±½ of the weight of the pairs that each (row, label) is in."""
        assert isinstance(weights, ExampleWeights)
        return weights.signed()

    def weigh(self, weights: LabelWeights, sides: VoteSides) -> tuple[float, float]:
        """Give d+ and d-."""
        assert isinstance(weights, ExampleWeights)
        return weights.weigh(sides)
