"""PAUCBoost: RankBoost, and a finish that works on a window of false positive rates."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from core.checkpoint import offered
from core.coding.options import MaxBins
from core.errors import ArtifactError, InvalidParameter
from core.metrics.window import FprMax, FprMin, check_window
from core.ranker import Arrays, Callback, Combination, Floats
from core.sealed import identify_fit
from core.trees.options import LeafForm, MaxDepth, MaxFeatures, MaxLeaves, MinSamplesLeaf, Subsample

from .booster import Booster
from .loop import Found, Learner, Path, SoFar, StopReason, begin, boost
from .options import NRounds
from .rankboost import RankBoost
from .rehearsal import Rehearsal, draw_apart
from .rules import RankingRule
from .run import Run
from .tree_learner import Shape
from .validation import Part, Watch
from .window import Reweighable, WindowLearner, WindowStumpLearner, WindowTreeLearner, widen

Window = Annotated[
    float,
    Ge(1),
    Le(1000),
    Doc(
        "How much wider than asked for the finish takes the window: the upper end is multiplied by "
        "it, at most to 1, and the lower end divided."
    ),
]
Finish = Annotated[float, Gt(0), Lt(1), Doc("Share of the rounds that the finish takes.")]
FinishPush = Annotated[
    float,
    Ge(1),
    Le(64),
    Doc(
        "Trees: p of the p-norm push in the finish; above 1, the negatives that stand highest "
        "weigh more."
    ),
]
StumpOrTree = Annotated[
    Literal["stump", "tree"],
    Doc(
        "What a round adds: a stump, which is a threshold on one feature or a set of its categories; "
        "or a tree of them."
    ),
]
LearningRateOrNone = Annotated[
    float | None,
    Gt(0),
    Le(1),
    Doc("Share of the optimal step that a round takes; None: 1, 0.1 for trees."),
]
SmoothingOrNone = Annotated[
    float | None,
    Ge(0),
    Le(1000),
    Doc(
        "Stumps: share of all pair weight, at most 1, added to both the rightly and the wrongly "
        "ordered pairs in the step. Trees: rows of mean mass added to both classes in each leaf. "
        "0 is the plain formula; None: 0.01, 1 for trees."
    ),
]
HeldFraction = Annotated[
    float, Gt(0), Lt(1), Doc("Share of each class's weight held out while the finish is tried.")
]
LeastRise = Annotated[
    float,
    Ge(0),
    Le(100),
    Doc(
        "The finish is kept if the partial AUC on what is held out rises by more than so many "
        "standard errors of the difference; 0: by anything."
    ),
]
Seed = Annotated[
    int,
    Ge(0),
    Le(2**32 - 1),
    Doc("Seed of what is held out while the finish is tried, and of the trees' draws."),
]

# An area counts as higher only if it is so by more than rounding.
LEAST_RISE = 1e-9


class PAUCBoost(Booster):
    """Boost as RankBoost does, then for the partial AUC alone, where that proves to be better.

    The base is RankBoost. In the last rounds, the finish, only those negatives carry weight that
    stand in a slightly widened window of false positive rates; which ones those are is looked up
    anew every five rounds. Whether the finish helps differs from table to table. So a part of each class is
    held out, both ways are tried on the rest, and their interpolated partial AUC on the part held
    out decides by which one all rows are learnt from: the finish, if it has more by `least_rise`
    standard errors, or as many more rounds of RankBoost.

    Attributes
    ----------
    finish_kept_ : bool
        Whether the last rounds were made for the window; else this is RankBoost.
    inner_pauc_before_, inner_pauc_after_ : float or None
        Partial AUC from fpr_min to fpr_max on the part held out, of RankBoost and with the finish.
        None where nothing was tried: the window is all rates, there are too few rounds, or too few
        rows to hold some out.
    inner_pauc_error_ : float or None
        Standard error of their difference; equal rows are one observation.
    rounds_ : structured ndarray of shape (n_taken,)
        See `RankBoost`; d_plus and d_minus of the finish are those of its own weights.
    loss_ : ndarray of shape (n_taken,), float64
        F̃ over all pairs after each round; the finish does not lower it.
    intercept_ : float
        ½ ln(F₊/F₋), over all rows.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "stopped"}
        Why there are no more rounds.

    Notes
    -----
    Rows are held out by their values: equal rows stay together, so that a row of weight k is k
    rows, and neither the order of rows nor that of columns matters for it. Where a window holds
    few negatives, equal cuts become likely in the finish; of those the lowest column is taken.

    Trial and fit take turns, round by round. In all it costs about twice a fit of RankBoost.

    The finish is our own, not a published algorithm, and does not pay on average. On 15 public tables
    it was kept in 13 of 45 fits for any rise, in 2 for more than a standard error, and changed no
    figure by more than the spread: see docs/papers.md and `benchmarks/paucboost.py`.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: the base.
    C. Rudin, "The P-Norm Push: A simple convex ranking algorithm that concentrates at the top of
    the list", JMLR 10, 2009 (`push`).
    """

    path_parameter = None  # the finish takes the last rounds, wherever they are

    def __init__(
        self,
        *,
        n_rounds: NRounds = 100,
        fpr_min: FprMin = 0.0,
        fpr_max: FprMax = 0.1,
        window: Window = 2.0,
        finish: Finish = 0.1,
        push: FinishPush = 1.0,
        weak_ranker: StumpOrTree = "tree",
        learning_rate: LearningRateOrNone = None,
        max_bins: MaxBins = 255,
        smoothing: SmoothingOrNone = None,
        max_depth: MaxDepth = 12,
        max_leaves: MaxLeaves = 31,
        min_samples_leaf: MinSamplesLeaf = None,
        leaf: LeafForm = "closed",
        subsample: Subsample = 1.0,
        max_features: MaxFeatures = 1.0,
        validation_fraction: HeldFraction = 0.25,
        least_rise: LeastRise = 1.0,
        random_state: Seed = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.fpr_min = fpr_min
        self.fpr_max = fpr_max
        self.window = window
        self.finish = finish
        self.push = push
        self.weak_ranker = weak_ranker
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.smoothing = smoothing
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.leaf = leaf
        self.subsample = subsample
        self.max_features = max_features
        self.validation_fraction = validation_fraction
        self.least_rise = least_rise
        self.random_state = random_state

    finish_kept_: bool
    inner_pauc_before_: float | None
    inner_pauc_after_: float | None
    inner_pauc_error_: float | None

    def combination(self) -> Combination | None:
        """Give the weak rankers' weights; see `Ranker.combination`.

        Pairs outside the window have no weight in the finish: with one, d+ and d- are left out.
        """
        combination = super().combination()
        if combination is None or not self.finish_kept_:
            return combination
        return combination._replace(d_plus=None, d_minus=None)

    def structure(self) -> dict[str, Any]:
        """Describe the sum, and what was found about the finish."""
        return super().structure() | {"finish": self._verdict()}

    def _verdict(self) -> dict[str, Any]:
        return {
            "finish_kept": self.finish_kept_,
            "inner_pauc_before": self.inner_pauc_before_,
            "inner_pauc_after": self.inner_pauc_after_,
            "inner_pauc_error": self.inner_pauc_error_,
        }

    def _base(self, push: float = 1.0) -> RankBoost:
        """Give the RankBoost that has our parameters."""
        shared = RankBoost().get_params().keys() & self.get_params().keys()
        return RankBoost(**{name: getattr(self, name) for name in shared} | {"push": push})

    def _check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)
        self._base(self.push)._check_parameters()

    def _rule(self) -> RankingRule:
        return self._base()._rule()

    def _start(self, part: Part) -> Reweighable:
        """Lay out rows at f = 0."""
        rule: Any = self._rule()
        if self.weak_ranker == "stump":
            return WindowStumpLearner(rule, part, self.max_bins, self._n_categories())
        shape = Shape.of(self)
        push_rule: Any = self._base(self.push)._rule()
        return WindowTreeLearner(rule, push_rule, part, shape, self._n_categories())

    def _windowed(self, learner: Reweighable, part: Part, scores: Floats) -> WindowLearner:
        """Let a learner go on from scores for the window only."""
        window = widen(self.fpr_min, self.fpr_max, self.window)
        return WindowLearner(learner, part, scores, window, self.push)

    def _rehearse(self, part: Part, n_finish: int) -> Rehearsal[Reweighable] | None:
        """Prepare the trial of the finish on a part of the rows; None where there is none to be."""
        if n_finish == 0 or (self.fpr_min, self.fpr_max) == (0.0, 1.0):
            return None
        parts = draw_apart(part, self.validation_fraction, self.random_state)
        if parts is None:
            return None
        return Rehearsal(
            *parts,
            n_base=self.n_rounds - n_finish,
            n_finish=n_finish,
            rule=self._rule(),
            start=self._start,
            windowed=self._windowed,
            window=(self.fpr_min, self.fpr_max),
        )

    def fit_watched(self, X: Any, y: Any, sample_weight: Any = None, **_: Any) -> Floats:
        """Refuse: its last rounds are another fit's, so that no fewer of them are a ranker."""
        raise InvalidParameter(
            f"fit_watched needs rounds that add up to the fit of so many, {type(self).__name__} has none"
        )

    def _fit(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        part = Part(np.ascontiguousarray(X), positive, weight)
        rule, learner = self._rule(), self._start(part)
        start = np.array([learner.log_f_plus, learner.log_f_minus])
        n_finish = round(self.finish * self.n_rounds)
        rehearsal = self._rehearse(part, n_finish)

        def loss(so_far: SoFar) -> float:
            return rule.loss(np.array(so_far[:2]), start)

        n, collect = self.n_rounds, learner.collect
        watch = _WatchBeside(rehearsal, n, callback, loss, part, collect, None, n)
        run = Run(learner, rule, self.n_rounds - n_finish, watch, self._reader())
        categories = self._n_categories()
        with offered(run, lambda: identify_fit(self, X, positive, weight, categories)) as is_asked:
            path = run.finish()
            if is_asked:
                run.freeze()  # the finish is made anew: it takes few rounds
            hurried = path.stop_reason == "stopped"
            verdict = None if rehearsal is None or hurried else rehearsal.result()
            self._take_verdict(*(None, None, None) if verdict is None else verdict)
            self.finish_kept_ = path.stop_reason == "n_rounds" and self._has_risen()
            if n_finish and path.stop_reason == "n_rounds":
                last: Learner[Any] = learner
                if self.finish_kept_:
                    scores = learner.collect(path).score(part.X, 0.0)
                    last = self._windowed(learner, part, scores)
                more = boost(last, rule, begin(last, n_finish), watch.after(len(path.found)))
                path = _join(path, more)
        self.validation_auc_ = np.empty(0)
        self._take(learner.collect(path), path.log_f, path.stop_reason)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._get_state()
        return arrays, meta | self._verdict()

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        kept = meta["finish_kept"]
        figures = {name: meta[f"inner_pauc_{name}"] for name in ("before", "after", "error")}
        for name, figure in figures.items():
            if figure is not None and not (type(figure) is float and 0.0 <= figure <= 1.0):
                raise ArtifactError(
                    f"inner_pauc_{name} must be from 0 to 1, or null, got {figure!r}"
                )
        if type(kept) is not bool or len({figure is None for figure in figures.values()}) > 1:
            raise ArtifactError(
                "finish_kept must be true or false, and all inner_pauc figures known or none"
            )
        self._take_verdict(**figures)
        if kept and not self._has_risen():
            raise ArtifactError("finish_kept must be false unless the inner area has grown enough")
        super()._set_state(arrays, meta)
        self.finish_kept_ = kept

    def _take_verdict(self, before: float | None, after: float | None, error: float | None) -> None:
        self.inner_pauc_before_, self.inner_pauc_after_ = before, after
        self.inner_pauc_error_ = error

    def _has_risen(self) -> bool:
        """Whether the finish has more partial AUC than luck and rounding would explain."""
        before, after, error = (
            self.inner_pauc_before_,
            self.inner_pauc_after_,
            self.inner_pauc_error_,
        )
        if before is None or after is None or error is None:
            return False
        return after - before > max(LEAST_RISE, self.least_rise * error)


class _WatchBeside(Watch):
    """A watch that has the rehearsal keep pace with the base.

    A fit that goes on from a checkpoint rehearses from the start again, and catches up at its first round.
    """

    def __init__(self, rehearsal: Rehearsal[Reweighable] | None, *watch: Any) -> None:
        super().__init__(*watch)
        self._rehearsal = rehearsal

    def __call__(self, taken: int, found: Found, alpha: float, so_far: SoFar) -> StopReason | None:
        """Take note of a round of the base."""
        if self._rehearsal is not None:
            self._rehearsal.advance(taken)
        return super().__call__(taken, found, alpha, so_far)

    def after(self, n_base: int) -> Callable[[int, Found, float, SoFar], StopReason | None]:
        """Take note of the rounds of the finish, which come after those of the base."""
        note = super().__call__
        return lambda taken, *round_: note(n_base + taken, *round_)


def _join(path: Path, more: Path) -> Path:
    """Put two runs of the loop one after the other."""
    return Path(
        path.found + more.found,
        path.alpha + more.alpha,
        np.concatenate([path.log_f, more.log_f[1:]]),
        more.stop_reason,
    )
