"""Sequential monitoring of a ranker in production: tests that keep their error rate over interim tests.

Pure statistics: arrays in, frozen dataclasses of numbers out. docs/monitoring.md explains which assumptions each test
has, and how often it errs in simulations. All functions raise `InvalidData` for arrays of different lengths or with
values out of range, and `InvalidParameter` for a parameter that is out of range.

Examples
--------
>>> from core.monitoring import Measurement, monitor_windows
>>> validation = Measurement(0.80, 0.00006, positives=1000, negatives=9000)
>>> weeks = [Measurement(0.72, 0.0003, 200, 1800, first=1, last=1)]
>>> monitor_windows(validation, weeks, planned=52).alarm.period
1
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .betting import (
        BettingMonitor,
        BettingTest,
        monitor_rate,
    )
    from .budget import allot
    from .by_group import (
        log_odds_gap,
        measure_calibration_difference,
        measure_selection_ratio,
        monitor_differences,
    )
    from .calibration import (
        CalibrationMeasurement,
        CalibrationMonitor,
        calibration_reference,
        measure_calibration,
        measure_level_on_stored_curve,
        monitor_calibration,
    )
    from .incidence import ArrivalPoint, outcome_incidence
    from .measuring import (
        Measurement,
        measure_auc,
        measure_on_stored_curve,
        measure_periods,
        measure_rate,
        measure_validation,
    )
    from .paired import (
        PairedMeasurement,
        PairedTest,
        SwapCell,
        SwapSet,
        compare_by_period,
        compare_measurements,
        measure_pair,
        swap_set,
    )
    from .recurrence import recurrence_of
    from .weighted import WeightedEstimate, WeightedMetrics, weighted_metrics
    from .window import (
        DetectableDrop,
        WindowMonitor,
        WindowTest,
        monitor_windows,
        smallest_detectable_drop,
        smallest_detectable_shift,
    )

__getattr__, __dir__, __all__ = lazy_names(globals())
