"""The science of Rankwright: rankers, their metrics and their artifacts. Knows no HTTP, SQL or Celery."""

import sys
from typing import TYPE_CHECKING

from core.lazy import MovedModules, lazy_names

if TYPE_CHECKING:
    from .artifact import load, save
    from .boosting.adaboost import AdaBoost
    from .boosting.aucboost import AUCBoost
    from .boosting.komori_eguchi import KomoriEguchiBoost
    from .boosting.logitboost import LogitBoost
    from .boosting.multilabel import AdaBoostMH, AdaBoostMR
    from .boosting.rankboost import CoordinateRankBoost, RankBoost
    from .boosting.smooth_margin_rank import SmoothMarginRank
    from .ensemble import RankAverage
    from .linear.greedy_pairs import GreedyPairs
    from .martirank.martirank import MartiRank
    from .martirank.sampled import SampledMartiRank
    from .svm.baselines import AsymmetricSVM, Logistic
    from .svm.estimators import AUCSVM, PAUCSVM, PAUCSVMDC
    from .treerank.forest import TreeRankForest
    from .treerank.treerank import TreeRank

__getattr__, __dir__, __all__ = lazy_names(globals())

# Modules that moved in 0.3; their old names go in 0.4.
_BASE = ("checkpoint", "parameters", "ranker", "splits", "state", "table", "target")
_MOVED = {f"core.{name}": f"core.base.{name}" for name in _BASE} | {
    "core.kernel": "core.kernels.compiled",
    "core.kernel_folders": "core.kernels.folders",
    "core.svg": "core.explain.svg",
}
sys.meta_path.append(MovedModules(_MOVED))
