"""MartiRank (Long & Servedio 2007, Section 4): boosting the AUC despite wrong labels; the base of both variants."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, cast

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le
from sklearn.base import BaseEstimator

from core.base.columns import ColumnTable
from core.base.parameters import Seed
from core.base.ranker import Callback, Floats, Ranker
from core.base.shards import OwnShards
from core.base.state import Array, Nested, Value
from core.base.training import TrainingData
from core.classifiers import STACKS, ClassifierName
from core.coding import youden_threshold
from core.coding.bins import MaxNarrowBins
from core.coding.stored import StandIns, StoredCodes, store_codes
from core.errors import InvalidParameter

from .any_ranker import AnyPrograms, EstimatorRankers, NamedRankers, NodeRankers
from .any_ranker import grow as grow_any
from .growth import Draw, LayerShard, Report, code_rows, divide_layers, grow
from .program import NO_NOISE, Noise, Output, Program, Programs, mean_error, n_nodes

# Training rows that are scored together: only so many are copied at a time.
BLOCK_ROWS = 1 << 16

NLayers = Annotated[
    int,
    Ge(1),
    Le(200),
    Doc(
        "T, the number of layers of the program. Layer t has t nodes, and each node is a weak ranker with a "
        "threshold."
    ),
]
WeakRankerOption = Annotated[
    Literal["stump"] | ClassifierName | BaseEstimator,
    Doc(
        "The weak ranker of a node: a stump (a threshold on one feature, or a set of its categories), or a "
        "classifier that is fitted to the rows at the node. In Python it can also be any scikit-learn estimator "
        "that takes sample weights."
    ),
]
BalanceClasses = Annotated[
    bool,
    Doc(
        "Whether both classes have the same total weight when a classifier is fitted at a node. If false, each "
        "row has the weight with which it reaches the node. The theory needs no balance, and stumps do not depend "
        "on it."
    ),
]
OutputOption = Annotated[
    Output,
    Doc(
        'The score of a row. "position": its expected position after the last layer, divided by T. "vote": the '
        "probability that the position is at least T/2, which is the majority vote of the paper."
    ),
]
RandomState = Annotated[Seed, Doc("Seed of the random draws: of rows, and in random forests.")]

ProgramGrower = Callable[[Noise, Draw | None, Report], Any]
"""Grows a program on all rows, or on those that are drawn for each layer."""


@dataclass(kw_only=True, eq=False, repr=False)
class ProgramParameters:
    """The parameters of `MartiRank` and `SampledMartiRank`."""

    n_rounds: NLayers = 20
    weak_ranker: WeakRankerOption = "stump"
    balance_classes: BalanceClasses = False
    output: OutputOption = "position"
    max_bins: MaxNarrowBins = 255
    random_state: RandomState = 0


class ProgramRanker(ProgramParameters, Ranker):
    """Base class of the MartiRank estimators: a row's score is its mean position at the end of branching programs.

    Attributes
    ----------
    nodes_ : structured ndarray of shape (n_programs · T(T+1)/2,)
        Program by program, layer by layer, by position; see `program.NODE`.
    intercept_ : float
        Minus the score that separates the training classes best (greatest TPR - FPR), where `predict` cuts; it is part
        of every score.
    programs_ : sequence
        Of `Program`, or of a class with the same methods.
    """

    nodes_: npt.NDArray[np.void]
    intercept_: Annotated[float, Value(), Ge(-1.0), Le(0.0)]
    loss_: Annotated[Floats, Array("n_losses"), Ge(0.0), Le(1.0)]
    programs_: Sequence[Any]

    def score_rows(self, X: Floats) -> Floats:
        return self._mean_output(X) + self.intercept_

    def expected_position(self, X: Any) -> Floats:
        """Return the expected final position of each row, E[j]/T; with output="vote" P(j >= T/2).

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            In [0, 1]; equal to decision_function(X) - intercept_.
        """
        return self._mean_output(self.checked_rows(X))

    def structure(self) -> dict[str, Any]:
        """Describe the programs as JSON: layers of nodes, each with a rule, class fractions and error."""
        return {
            "type": "branching_programs",
            "layers": self.n_rounds,
            "output": self.output,
            "intercept": self.intercept_,
            "programs": [
                program.describe(self._feature_name, self.categories_) for program in self.programs_
            ],
        }

    def takes_categories(self) -> bool:
        return isinstance(self.weak_ranker, str)

    def check_parameters(self) -> None:
        weak = self.weak_ranker
        if not isinstance(weak, str) and not any(
            hasattr(weak, method) for method in ("decision_function", "predict_proba")
        ):
            raise InvalidParameter(
                f"weak_ranker must have decision_function or predict_proba; {type(weak).__name__} has neither"
            )

    def _weak_rankers(self) -> NodeRankers:
        if isinstance(self.weak_ranker, str):
            name = cast(ClassifierName, self.weak_ranker)
            return NamedRankers(name, self._n_categories(), self.random_state)
        return EstimatorRankers(self.weak_ranker)

    def _grower(self, data: TrainingData) -> ProgramGrower:
        X, positive, weight = data.X, data.positive, data.weight
        if self.weak_ranker == "stump":
            table = code_rows(X, positive, weight, self.max_bins, data.n_categories)

            def grow_program(noise: Noise, draw: Draw | None, report: Report) -> Program:
                shards = OwnShards([LayerShard(table, self.n_rounds)])
                return grow(shards, table.bins, self.n_rounds, report, noise, draw)

            return grow_program
        rankers = self._weak_rankers()
        return partial(grow_any, rankers, X, positive, weight, self.n_rounds, self.balance_classes)

    def _mean_output(self, X: Floats) -> Floats:
        total = np.zeros(len(X))
        for program in self.programs_:
            total += program.score(X, self.output)
        return total / len(self.programs_)

    @abstractmethod
    def _sizes(self) -> tuple[int, int]:
        """Return the number of programs and of loss values of a fit."""

    def _take(self, programs: Sequence[Any], intercept: float, loss: Floats) -> None:
        self.programs_ = programs
        self.loss_ = loss
        self.nodes_ = np.concatenate([program.nodes for program in programs])
        self.intercept_ = intercept

    def _find_cut(
        self, X: Floats | StandIns, positive: npt.NDArray[np.bool_], weight: Floats
    ) -> float:
        """Return the score with the greatest TPR - FPR on the training rows."""
        if isinstance(X, StandIns):
            scores = X.apply(self._mean_output)
        else:
            scores = np.concatenate(
                [
                    self._mean_output(np.ascontiguousarray(X[start : start + BLOCK_ROWS]))
                    for start in range(0, len(X), BLOCK_ROWS)
                ]
            )
        cut = youden_threshold(scores, positive, weight)
        return 0.0 if cut is None else cut.value

    @property
    def _kept(self) -> Annotated[Programs | AnyPrograms, Nested()]:
        if self.weak_ranker == "stump":
            return Programs.join(self.programs_, self._n_categories())
        return AnyPrograms.join(self.programs_)

    @_kept.setter
    def _kept(self, kept: Programs | AnyPrograms) -> None:
        if isinstance(kept, Programs):
            self.programs_ = kept.split()
        else:
            self.programs_ = kept.split(self.n_rounds, cast(ClassifierName, self.weak_ranker))

    def _known_sizes(self) -> dict[str, Any]:
        is_stump = self.weak_ranker == "stump"
        n_programs, n_losses = self._sizes()
        return super()._known_sizes() | {
            "n_programs": n_programs,
            "n_losses": n_losses,
            "n_rounds": self.n_rounds,
            "n_nodes": n_programs * n_nodes(self.n_rounds),
            "_kept": Programs if is_stump else AnyPrograms,
            "stack": None if is_stump else STACKS[cast(ClassifierName, self.weak_ranker)],
        }

    def _restore(self) -> None:
        self._take(self.programs_, self.intercept_, self.loss_)


class MartiRank(ProgramRanker):
    """Branching program of weak rankers that resists label noise (MartiRank).

    Use it if you suspect many wrong labels. If you know or want to estimate the noise rate, use `SampledMartiRank`.
    With clean labels, `RankBoost` with trees is more accurate.

    A row starts at position 0. In each of T layers, the node at its position moves it up one position or leaves it in
    place. A node is a weak ranker with a threshold (Lemma 4). Positives drift up, negatives stay. All rows that reach a
    position share its node, whatever their path, so there are T(T+1)/2 nodes. Labels choose the nodes but never a row's
    path. So flipped labels have the same rate at every node. A booster, in contrast, gives most weight to the rows with
    wrong labels.

    Attributes
    ----------
    nodes_ : structured ndarray of shape (T(T+1)/2,)
        The nodes by layer, and by position within each; see `program.NODE`.
    loss_ : ndarray of shape (T,), float64
        Mean error of each layer; see `program.mean_error`.
    intercept_ : float
        Part of every score: minus the threshold with the greatest TPR - FPR on the training rows.

    Notes
    -----
    Differences from the paper: coins are not tossed. A row carries the probability of each position, in training and in
    scoring, so scores are deterministic and finer. By default rows are ranked by E[j]/T and not by the vote j >= T/2.
    The vote ties all rows on one side, and its ranking was equal or worse almost everywhere. With a known noise rate
    use `SampledMartiRank`, which corrects the coin of Lemma 4.

    Time: O(T² (n_features + 1) n_samples / 4) additions after one sort of each column. Memory: 8 (T + 1) bytes per row.

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Section 4,
    Fig. 2, Lemmas 4, 5 and 7, Theorem 8.
    P. M. Long and R. A. Servedio, "Martingale boosting", COLT 2005.

    Examples
    --------
    >>> from core import MartiRank
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = MartiRank(n_rounds=3).fit(X, y)
    >>> ranker.expected_position(X).round(2).tolist()
    [0.0, 0.0, 0.66, 0.47, 0.85, 0.85]
    """

    def reads_columns(self) -> str | None:
        """Return None for stumps, which can be fitted on binned column codes alone; else why not."""
        if isinstance(self.weak_ranker, str) and self.weak_ranker == "stump":
            return None
        return f"weak_ranker {self.weak_ranker!r} reads the rows"

    def reads_shards(self) -> str | None:
        """Return None for stumps, which need only sums over row shards; else why not."""
        return self.reads_columns()

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        X, positive, weight = data.X, data.positive, data.weight
        losses: list[float] = []

        def report(t: int, nodes: npt.NDArray[np.void]) -> None:
            losses.append(mean_error(nodes))
            callback(t, self.n_rounds, {"loss": losses[-1]})

        rows: Floats | StandIns = X
        program: Any
        if self.weak_ranker == "stump":
            coding = self.max_bins, data.n_categories
            read: Floats | StoredCodes = X
            if isinstance(X, ColumnTable):
                read = store_codes(X, weight, *coding)
                rows = read.stand_ins(X)
            bins, shards = divide_layers(read, positive, weight, *coding, self.n_rounds)
            program = grow(shards, bins, self.n_rounds, report)
        else:
            program = self._grower(data)(NO_NOISE, None, report)
        self._take([program], 0.0, np.array(losses))
        self.intercept_ = -self._find_cut(rows, positive, weight)

    def _sizes(self) -> tuple[int, int]:
        return 1, self.n_rounds
