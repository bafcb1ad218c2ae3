"""How good a ranking is: the ROC curve, its areas, their intervals, and cuts of it.

The functions take (y, scores); `RocCurve` answers from a stored curve alone; `summarise` gives all at once.
"""

from core.metrics.area import auc, misrank_fraction, partial_auc, tpr_at_fpr
from core.metrics.bands import (
    RocBand,
    fpr_at_tpr_interval,
    roc_band,
    roc_band_on_curve,
    tpr_at_fpr_interval,
)
from core.metrics.compare import (
    Comparison,
    Difference,
    WindowComparison,
    compare,
    compare_auc,
    compare_partial_auc,
)
from core.metrics.cost import Costs, ExpectedCost
from core.metrics.cross_validated import cross_validated_areas, cross_validated_compare
from core.metrics.curve import RocCurve, roc_curve, roc_hull
from core.metrics.intervals import (
    Interval,
    auc_interval,
    partial_auc_interval,
    wilson_interval,
)
from core.metrics.operating import (
    OperatingPoint,
    operating_point,
    operating_point_on_curve,
)
from core.metrics.pairs import (
    PairSummary,
    pair_misrank_fraction,
    pair_order,
    pair_order_interval,
    summarise_pairs,
)
from core.metrics.summary import PartialArea, Summary, summarise
from core.metrics.totals import ClassTotals
from core.metrics.window import froc_window, window_counts

__all__ = [
    "ClassTotals",
    "Comparison",
    "Costs",
    "Difference",
    "ExpectedCost",
    "Interval",
    "OperatingPoint",
    "PairSummary",
    "PartialArea",
    "RocBand",
    "RocCurve",
    "Summary",
    "WindowComparison",
    "auc",
    "auc_interval",
    "compare",
    "compare_auc",
    "compare_partial_auc",
    "cross_validated_areas",
    "cross_validated_compare",
    "fpr_at_tpr_interval",
    "froc_window",
    "misrank_fraction",
    "operating_point",
    "operating_point_on_curve",
    "pair_misrank_fraction",
    "pair_order",
    "pair_order_interval",
    "partial_auc",
    "partial_auc_interval",
    "roc_band",
    "roc_band_on_curve",
    "roc_curve",
    "roc_hull",
    "summarise",
    "summarise_pairs",
    "tpr_at_fpr",
    "tpr_at_fpr_interval",
    "wilson_interval",
    "window_counts",
]
