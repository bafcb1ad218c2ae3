"""MartiRank (Long & Servedio 2007, Section 4): boosting the AUC although labels lie."""

from collections.abc import Callable
from typing import Annotated

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.coding import count_rows, fit_bins
from core.coding.options import MaxNarrowBins
from core.ranker import Callback, Floats

from .any_ranker import AnyProgram
from .any_ranker import grow as grow_any
from .growth import Growth
from .node import Mass, mean_error
from .program import Program
from .ranker import BalanceClasses, NLayers, OutputOption, ProgramRanker, WeakRankerOption

Told = Callable[[int, npt.NDArray[np.void]], None]


class MartiRank(ProgramRanker):
    """Rank rows by how far they get in a layered branching program of weak rankers.

    A row starts at position 0. In each of T layers the node where it is, a weak ranker cut in two by
    Lemma 4, sends it one position up or leaves it; positives drift up, negatives stay. Nodes are
    shared by all rows that get to a position, whatever their path, so that there are T(T+1)/2 of
    them. Labels choose the nodes but never a row's way, so that flipped labels stay flips, of the
    same rate, at every node: that is why noise in the labels does less harm than to a booster, which
    gives most weight to the rows that are wrong.

    Attributes
    ----------
    nodes_ : structured ndarray of shape (T(T+1)/2,)
        Layer by layer, by position within each; see `node.NODE`.
    loss_ : ndarray of shape (T,), float64
        Each layer's mean error; see `node.mean_error`.
    intercept_ : float
        What every score holds alike: less the score that best parts the training classes (greatest
        TPR - FPR), where `predict` cuts.

    Notes
    -----
    Departures from the paper. Coins are not tossed: a row carries the probability of each position,
    at fit and at scoring, so that scores are deterministic and finer. By default rows are ranked by
    E[j]/T rather than by the vote j >= T/2, which ties all rows on a side and ranked worse or alike
    nearly everywhere. With a known noise rate use `SampledMartiRank`, which corrects Lemma 4's coin.

    O(T² (n_features + 1) n_samples / 4) additions after one sort of each column; 8 (T + 1) bytes
    a row.

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Section 4,
    Fig. 2, Lemmas 4, 5 and 7, Theorem 8.
    P. M. Long and R. A. Servedio, "Martingale boosting", COLT 2005.
    """

    def __init__(
        self,
        *,
        n_rounds: NLayers = 20,
        weak_ranker: WeakRankerOption = "stump",
        balance_classes: BalanceClasses = False,
        output: OutputOption = "position",
        max_bins: MaxNarrowBins = 255,
        random_state: Annotated[
            int, Ge(0), Le(2**32 - 1), Doc("Seed of weak rankers that draw: random forests.")
        ] = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.weak_ranker = weak_ranker
        self.balance_classes = balance_classes
        self.output = output
        self.max_bins = max_bins
        self.random_state = random_state

    def _fit(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        grow = self._grow_stumps if self.weak_ranker == "stump" else self._grow_any
        losses: list[float] = []

        def told(t: int, nodes: npt.NDArray[np.void]) -> None:
            losses.append(mean_error(nodes))
            callback(t, self.n_rounds, {"loss": losses[-1]})

        program = grow(X, positive, weight, told)
        self._take([program], 0.0, np.array(losses))
        self.intercept_ = -self._find_cut(X, positive, weight)

    def _grow_stumps(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, told: Told
    ) -> Program:
        rows = np.concatenate([np.flatnonzero(positive), np.flatnonzero(~positive)])
        n_positives = int(positive.sum())
        bins, codes = fit_bins(X, rows, weight[rows], self.max_bins, self._n_categories())
        shares = weight[rows] / weight.sum()
        mass = Mass(float(shares[:n_positives].sum()), float(shares[n_positives:].sum()))
        stands_for = count_rows(weight[rows])
        growth = Growth(bins, self.n_rounds)
        masses = growth.start(shares)
        for t in range(self.n_rounds):
            if t > 0:
                growth.take_step(codes, masses)
            growth.add(codes, masses, n_positives, stands_for)
            growth.count(mass)
            told(t + 1, growth.close_layer())
        return growth.program()

    def _grow_any(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, told: Told
    ) -> AnyProgram:
        rankers = self._weak_rankers()
        return grow_any(rankers, X, positive, weight, self.n_rounds, self.balance_classes, told)

    @property
    def _n_losses(self) -> int:
        return self.n_rounds

    @property
    def _n_programs(self) -> int:
        return 1
