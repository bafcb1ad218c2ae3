"""RankBoost (Freund, Iyer, Schapire & Singer 2003) and its coordinate descent form, after Rudin & Schapire 2009."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.base.monotone import Monotone
from core.base.parameters import Since
from core.coding import Criterion
from core.errors import InvalidParameter
from core.trees.options import (
    LeafForm,
    Push,
    check_shape,
)

from .algorithms import RankingAlgorithm
from .booster import TREE_RATE, PairBooster
from .loop import BoostingAlgorithm
from .options import (
    LearningRate,
    NRounds,
    Smoothing,
    StumpOrColumn,
    TreeParameters,
)
from .tree_losses import DEFAULT_SMOOTHING, RankingTreeAlgorithm

# Defaults of learning_rate and smoothing, by the kind of weak ranker.
LEARNING_RATE = {"stump": 1.0, "column": 1.0, "tree": TREE_RATE}
SMOOTHING = {"stump": 1e-2, "column": 1e-2, "tree": DEFAULT_SMOOTHING}


@dataclass(kw_only=True, eq=False, repr=False)
class RankBoost(TreeParameters, PairBooster):
    """Boosted stumps or trees that minimise the pairwise ranking loss (RankBoost).

    Use it first: trees (`weak_ranker="tree"`) are among the most accurate rankers on most tables, also with rare
    positives, and stumps give an additive score that people can read. Do not use it if many labels are wrong; see
    `LogitBoost` and `SampledMartiRank`.

    The loss is F̃ = Σ w_i w_k e^{-(f(x_i) - f(x_k))} over all pairs of a positive i and a negative k. Each round picks
    the weak ranker that lowers it most (eq. 5). For a stump, this minimises 2√(d+ d-) + d0, and the step is ½
    ln(d+/d-). A tree is grown by the same loss. With leaves l of class masses P_l and N_l, the best step is ½
    ln(P_l/N_l) in each leaf, and multiplies F̃ by (Σ_l √(P_l N_l))². `learning_rate` is the fraction of the step that
    is taken.

    With `weak_ranker="column"` the columns themselves are the weak rankers, as in the paper. A missing value counts as
    0. For columns with values other than 0 and 1, a line search finds the step.

    Attributes
    ----------
    loss_ : ndarray of shape (n_taken,), float64
        F̃, the sum over pairs, after each round. With `push` and very large or small weights it may be inf or 0.
    intercept_ : float
        ½ ln(F₊/F₋) by Corollary 13, part of every score. With it the scores also minimise AdaBoost's loss, and
        `predict` has its threshold at 0.

    Notes
    -----
    For stumps `smoothing` is a fraction of the total pair weight, so its effect depends neither on the number of rows
    nor on the scale of the weights. It also limits a step to ½ ln(1 + 1/smoothing). The default was chosen on ten
    public tables by cross-validated AUC at 100 and 400 rounds. 0.01 was best, or within 0.002 of the best value from 0
    to 0.03, on seven tables. Three hard tables (few positives or few rows) prefer 0.03. The formula without smoothing
    lost up to 0.1. For trees `smoothing` is a number of rows whose mean mass is added to both classes of a leaf: see
    `tree_losses.PairLoss`.

    With `push` p > 1 the loss is Σ_k w_k (Σ_i w_i e^{-(f(x_i) - f(x_k))})^p. It factorises in the same way, so a round
    costs the same. The best step of a stump is ln(d+/d-)/(1 + p), and the stump is chosen for it. `loss_` is this loss,
    and `intercept_` is the difference of the logarithms of the classes' sums, divided by 1 + p.

    Differences from the paper: eq. 5 ignores the sign, so of a stump and its reverse the one with d+ >= d- is taken,
    and steps are never negative. The step is smoothed to ½ ln((d+ + ε)/(d- + ε)), with ε from `smoothing`, because d- =
    0 would give an infinite step.

    Time: O(n_rounds · n_features · n_samples) after one sort of each column; times the depth for trees.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 4.1.2, eqs. 4 and 5; Corollary 13.
    C. Rudin, "The P-Norm Push: A simple convex ranking algorithm that concentrates at the top of
    the list", JMLR 10, 2009 (`push`).

    Examples
    --------
    >>> from core import RankBoost
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = RankBoost(n_rounds=2).fit(X, y)
    >>> [rule["rule"] for rule in ranker.structure()["rules"]]
    ['x0 > 2 adds 2.11', 'x0 > 4 adds 2.11']
    """

    weak_ranker: Annotated[
        Literal["stump", "column", "tree"],
        Doc(
            'The weak ranker of each round. "stump": a threshold on one feature, or a set of its categories. '
            '"tree": a tree of such splits. "column": one feature times a step; only if all features are numeric.'
        ),
    ] = "stump"
    learning_rate: Annotated[
        float | None,
        Gt(0),
        Le(1),
        Doc(
            "Fraction of the optimal step that a round takes. None: 1 for stumps and columns, 0.1 for trees, or "
            "0.05 for trees if the fit chooses the number of rounds."
        ),
    ] = None
    smoothing: Annotated[
        float | None,
        Ge(0),
        Le(1000),
        Doc(
            "Stumps and columns: fraction of the total pair weight, at most 1, that is added both to the pairs in "
            "order and to the pairs out of order when the step is computed. Trees: number of rows of mean weight "
            "added to each class in each leaf. 0: no smoothing. None: 0.01 for stumps and columns; for trees 1, "
            "or 5 if min_samples_leaf is also None and twice the harmonic mean of the class sizes is at least "
            "2,000."
        ),
    ] = None
    leaf: LeafForm = "closed"
    push: Push = 1.0

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.weak_ranker == "tree":
            check_shape(self.max_depth, self.max_leaves)
            return
        if self.smoothing is not None and self.smoothing > 1.0:
            raise InvalidParameter(
                f"smoothing must be at most 1 unless weak_ranker is 'tree', got {self.smoothing}"
            )

    def _default_rate(self) -> float:
        return LEARNING_RATE[self.weak_ranker]

    def _algorithm(self) -> BoostingAlgorithm:
        learning_rate, smoothing = self._rate(), self.smoothing
        if smoothing is None:
            smoothing = SMOOTHING[self.weak_ranker]
        if self.weak_ranker == "tree":
            return RankingTreeAlgorithm(
                learning_rate=learning_rate,
                smoothing=smoothing,
                leaf=self.leaf,
                push=self.push,
                sizes_leaves=self.smoothing is None and self.min_samples_leaf is None,
            )
        return RankingAlgorithm(
            criterion=Criterion.LOSS if self.push == 1.0 else Criterion.PUSH,
            learning_rate=learning_rate,
            smoothing=smoothing,
            push=self.push,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class CoordinateRankBoost(PairBooster):
    """Boosted stumps, each along the steepest descent of the pairwise ranking loss (RankBoost, eq. 3).

    It differs from `RankBoost` in the choice only: a round picks the stump that maximises
    d+ - d- = P - N, the weak ranker most accurate on the weighted pairs, and steps by
    ½ ln(d+/d-) along it. With weak_ranker="column" the given columns are the weak rankers, as in
    `RankBoost`. There are no trees: under eq. 3 a cut within a leaf gains nothing unless its sides
    point in opposite directions, so that growth stalls; see docs/papers/rankboost.md.

    Attributes
    ----------
    loss_ : ndarray of shape (n_taken,), float64
        F̃, the sum over pairs, after each round.
    intercept_ : float
        ½ ln(F₊/F₋) by Corollary 13, part of every score, so that `predict` has its threshold at 0.

    Notes
    -----
    Differences from the paper: the initial weight 1/m in Fig. 1 should read 1/|C_p|, one over the number of crucial
    pairs. The step is smoothed to ½ ln((d+ + ε)/(d- + ε)), with ε from `smoothing`, because d- = 0 would give an
    infinite step. The output is not divided by ‖λ‖₁, which changes no ranking.

    Time: O(n_rounds · n_features · n_samples) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Figure 1, eqs. 3 and 4; Corollary 13.

    Examples
    --------
    >>> from core import CoordinateRankBoost
    >>> X = [[1.0], [2.0], [3.0]]
    >>> pairs = [[2, 1], [1, 0]]  # row 2 is better than row 1, row 1 better than row 0
    >>> CoordinateRankBoost(n_rounds=20).fit_pairs(X, pairs).decision_function(X).argsort().tolist()
    [0, 1, 2]
    """

    n_rounds: NRounds = 100
    weak_ranker: StumpOrColumn = "stump"
    learning_rate: LearningRate = 1.0
    smoothing: Smoothing = 1e-2
    push: Annotated[Push, Since("0.3.0")] = 1.0
    monotone: Monotone = None

    def _algorithm(self) -> RankingAlgorithm:
        """Return RankBoost's loss and step rule, with splits chosen by steepest descent (eq. 3)."""
        return RankingAlgorithm(
            criterion=Criterion.YOUDEN,
            learning_rate=self.learning_rate,
            smoothing=self.smoothing,
            push=self.push,
        )
