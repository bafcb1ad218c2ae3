"""Probabilities from scores: calibration, Venn–Abers pairs, and evaluation of probabilities.

A score orders rows. A calibration maps scores to probabilities without changing their order. It is fitted on rows that
the ranker was not fitted on. All functions raise `InvalidData` for arrays of different lengths or with values out of
range, and `InvalidParameter` for a parameter that is out of range.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .calibration import (
        Calibration,
        ChosenCalibration,
        at_prevalence,
        choose_calibration,
        fit_calibration,
    )
    from .isotonic import VennAbers, fit_venn_abers
    from .periods import Periods
    from .proper_scores import (
        Decomposition,
        Reliability,
        ReliabilityPoint,
        brier_score,
        log_score,
        reliability,
    )
    from .shape import Shape

__getattr__, __dir__, __all__ = lazy_names(globals())
