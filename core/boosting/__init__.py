"""Boosting: one shared loop, combined with an algorithm (step size, loss) and a weak learner (search for weak rankers).

`loop.Boosting` repeats weights -> weak ranker -> step -> update. A `loop.WeakLearner` holds the training rows or
pairs (`data`) with their weights and finds one kind of weak ranker on them: `scan()` returns the best one under the
present weights, `update(weak_ranker, alpha)` lets f grow by alpha h, `collect(history)` sums up the weak rankers of a
run as an `Ensemble` (scores, contributions, words, arrays). A `loop.BoostingAlgorithm` says how far to step, and what
the loss is; an `algorithms.StumpAlgorithm` also says which cut is best (`criterion`) and which weak ranker is made of
it (`hypothesis`).

- `booster.Booster`, the estimators' base, turns them into fit, scores, staged scores, contributions
  and artifacts, and stops early on held-out data (`loop.Monitor`); `PairBooster` learns from listed pairs, too.
- Each algorithm is its parameters (`options` holds the shared ones) and `_algorithm()`.
- Weak learners are named in `booster.WEAK_LEARNERS`: `stumps`, `columns` (steps by line search where values are real)
  and `trees`; on listed pairs in `booster.PAIR_LEARNERS`: `pairs` and `columns`. Classifiers serve `aucboost` only,
  stumps with a vote per label `multilabel` only.

`komori_eguchi` stands apart: it climbs the smoothed partial AUC (`smooth_pauc`) by splines of one feature, with a
slope per row in place of a weight.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .adaboost import AdaBoost
    from .additive import Additive
    from .aucboost import AUCBoost
    from .komori_eguchi import KomoriEguchiBoost
    from .lambdamart import LambdaMART
    from .logitboost import LogitBoost
    from .multilabel import AdaBoostMH, AdaBoostMR
    from .rankboost import CoordinateRankBoost, RankBoost
    from .smooth_margin_rank import SmoothMarginRank

__getattr__, __dir__, __all__ = lazy_names(globals())
