"""Rankers as scikit-learn estimators, and functions to save and load them. No HTTP, SQL or Celery.

`core.metrics` evaluates rankings, `core.selection` searches parameters, `core.explain` explains scores,
`core.probability` calibrates them, and `core.bounds` computes generalisation bounds.

Examples
--------
Fit a ranker, evaluate it on other rows, and store it:

>>> import numpy as np
>>> from core import RankBoost, load, save
>>> from core.metrics import auc
>>> generator = np.random.default_rng(0)
>>> X = generator.normal(size=(300, 2))
>>> y = X[:, 0] + X[:, 1] > generator.normal(size=300)
>>> ranker = RankBoost(n_rounds=20).fit(X[:200], y[:200])
>>> scores = ranker.decision_function(X[200:])
>>> round(auc(y[200:], scores), 2)
0.9
>>> loaded = load(save(ranker))
>>> bool((loaded.decision_function(X[200:]) == scores).all())
True
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .artifact import load, save
    from .boosting.adaboost import AdaBoost
    from .boosting.additive import Additive
    from .boosting.aucboost import AUCBoost
    from .boosting.komori_eguchi import KomoriEguchiBoost
    from .boosting.lambdamart import LambdaMART
    from .boosting.logitboost import LogitBoost
    from .boosting.multilabel import AdaBoostMH, AdaBoostMR
    from .boosting.rankboost import CoordinateRankBoost, RankBoost
    from .boosting.smooth_margin_rank import SmoothMarginRank
    from .ensemble import RankAverage
    from .exporting.export import export_model
    from .forest.random_forest import RandomForest
    from .importing.ranker import ImportedTrees
    from .importing.reading import import_model
    from .linear.greedy_pairs import GreedyPairs
    from .linear.scorecard import Scorecard
    from .linear.smooth import AsymmetricSVM, Logistic, PNormPush
    from .linear.svm import AUCSVM, PAUCSVM, PAUCSVMDC, TopPush
    from .martirank.martirank import MartiRank
    from .martirank.sampled import SampledMartiRank
    from .treerank.forest import TreeRankForest
    from .treerank.treerank import TreeRank

__getattr__, __dir__, __all__ = lazy_names(globals())
