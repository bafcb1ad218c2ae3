"""Metrics of rankings: ROC curve, AUC and partial AUC, thresholds and costs, with confidence intervals.

Functions take labels and scores. Functions whose names end in `_on_curve`, and the methods of `RocCurve`, need only a
stored curve. `summarise` returns the curve, the areas and the counts at once. All functions raise `InvalidData` for
arrays of different lengths, values that are not finite or a class without weight, and `InvalidParameter` for a
parameter that is out of range.

Examples
--------
>>> from core.metrics import auc, auc_interval, operating_point
>>> y, scores = [0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6]
>>> round(auc(y, scores), 3)
0.889
>>> operating_point(y, scores, fpr=0.4).threshold
3.0
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .adverse_impact import (
        GroupSteps,
        ImpactRatio,
        SideImpact,
        ThresholdGroups,
        compare_at_threshold,
        group_steps,
    )
    from .amounts import (
        AmountCosts,
        CostComparison,
        CostReport,
        DecisionCost,
        LeastCost,
        Price,
        ThresholdCost,
        ThresholdCosts,
        ValueCaught,
        ValueCurve,
        ValueRecall,
        compare_costs,
        cost_report,
        costs_at_thresholds,
        value_caught,
    )
    from .bands import (
        RocBand,
        fpr_at_tpr_interval,
        roc_band,
        tpr_at_fpr_interval,
    )
    from .comparison import (
        Comparison,
        WindowComparison,
        compare,
        cross_validated_areas,
    )
    from .curve import (
        ClassTotals,
        RocCurve,
        auc,
        empirical_area_of,
        misrank_fraction,
        partial_auc,
        roc_curve,
        tpr_at_fpr,
    )
    from .equivalence import rows_factor
    from .estimates import Difference, Interval, wilson_interval
    from .fairness import GroupComparison, compare_groups
    from .functionals.area import (
        EmpiricalArea,
        Gini,
        TwoWayArea,
        WindowArea,
    )
    from .functionals.top import AveragePrecision, Lift, Ndcg, PrecisionAt, PrecisionAtRecall
    from .gains import (
        Gain,
        ListCurve,
        ScoreHistogram,
        gains_table,
        list_curve,
        score_histogram,
    )
    from .grades import GradedSummary, measure_graded
    from .guarantees import (
        GroupGuarantee,
        GroupGuarantees,
        Guarantee,
        GuaranteedPoint,
        NoGuarantee,
        TooFewRows,
        guaranteed_point,
        guaranteed_point_on_curve,
        guarantees_on_scores,
        rows_to_guarantee,
    )
    from .intervals import PartialArea, Summary, auc_interval, partial_auc_interval, summarise
    from .ks import ks_interval
    from .lists import (
        ListAuc,
        ListAveragePrecision,
        ListComparison,
        ListMeasured,
        ListNdcg,
        ListPrecision,
        ListReciprocalRank,
        compare_lists,
        list_metric_named,
        list_values,
        measure_lists,
    )
    from .margins import MarginDistribution, margin_distribution
    from .measuring import (
        MetricComparison,
        MetricEstimate,
        compare_metrics,
        measure,
        measure_on_curve,
        metric_named,
        value_of_metric,
    )
    from .net_benefit import NetBenefit, decision_curve
    from .operating import (
        Costs,
        ExpectedCost,
        OperatingPoint,
        cutoffs_along,
        least_costly,
        operating_point,
        operating_point_on_curve,
        operating_points_on_curve,
    )
    from .pairs import (
        PairSummary,
        pair_order,
        summarise_pairs,
    )
    from .window import window_counts
    from .woe import BinEvidence, evidence_of

__getattr__, __dir__, __all__ = lazy_names(globals())
