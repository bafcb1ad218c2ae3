"""Boosting: one loop, a rule per algorithm, a kind per weak ranker.

`loop.boost` repeats weights -> scan -> step -> update. It asks two things. A `loop.Learner` holds the
training rows with their weights and finds one kind of weak ranker on them: `scan()` gives the best
one under the present weights, `update(found, alpha)` lets f grow by alpha h. A `rules.Rule` is the
algorithm: `criterion` (what the scan looks for), `judge` (what weak ranker is made of a cut, {0, 1}
or ±1, and what it gets right), `step` (alpha), `loss` and `intercept`.

- `booster.Booster`, the estimators' base, turns them into fit, scores, staged scores, contributions
  and artifacts, and stops early on a validation part (`validation.Watch`).
- Each algorithm is a file: its parameters (`options` holds the shared ones) and `_rule()`.
- Each kind of weak ranker is a line in `kinds.KINDS`: `start` lays out the rows as a Learner, whose
  `collect(path)` sums up what was found as an `ensemble.Ensemble` (scores, contributions, words,
  arrays); `read` takes those arrays back from an artifact. `stump_sum` is the kind "stump",
  `tree` the kind "tree", `columns` the kind "column" (steps by `line` search where values are real);
  `label_sum`, stumps with a vote per label, serves `multilabel` only, `estimators` and `classifiers`
  `aucboost` only. `cuts` says where a row stands to a cut, by a threshold or a set of categories.

`komori_eguchi` stands apart: it climbs the smoothed partial AUC of `smooth` by splines of one feature,
with a slope per row in place of a weight.

Listed pairs come by `pair_fit.PairBooster.fit_pairs`: `pairs` has stumps on them (`pair_categories`
their sets), `pair_columns` and `pair_trees` the other kinds, `pair_validation` early stopping.

`weights` holds the weights of all crucial pairs as one weight per row and class. `stumps` folds a
sum of stumps into one step function per feature for scoring.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .adaboost import AdaBoost
    from .aucboost import AUCBoost
    from .coordinate_rankboost import CoordinateRankBoost
    from .komori_eguchi import KomoriEguchiBoost
    from .logitboost import LogitBoost
    from .multilabel import AdaBoostMH, AdaBoostMR
    from .rankboost import RankBoost
    from .smooth_margin_rank import SmoothMarginRank

__all__ = [
    "AUCBoost",
    "AdaBoost",
    "AdaBoostMH",
    "AdaBoostMR",
    "CoordinateRankBoost",
    "KomoriEguchiBoost",
    "LogitBoost",
    "RankBoost",
    "SmoothMarginRank",
]

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "adaboost": "AdaBoost",
        "aucboost": "AUCBoost",
        "coordinate_rankboost": "CoordinateRankBoost",
        "komori_eguchi": "KomoriEguchiBoost",
        "logitboost": "LogitBoost",
        "multilabel": "AdaBoostMH AdaBoostMR",
        "rankboost": "RankBoost",
        "smooth_margin_rank": "SmoothMarginRank",
    },
)
