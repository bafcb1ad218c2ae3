"""The stratified bootstrap of partial areas, as simple as it can be: what the analytic intervals are compared with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from scipy.stats import t as student

from core.metrics.curve import area_of
from core.metrics.groups import check_rows, effective_units, group_rows

Floats = npt.NDArray[np.float64]


def bootstrap_areas(
    y: Any,
    scores: Sequence[Any],
    windows: Sequence[tuple[float, float]],
    n_samples: int,
    seed: int,
    *,
    sample_weight: Any = None,
    group: Any = None,
) -> Floats:
    """Return the areas of samples, shape (n_samples, n_scorers, n_windows); all scorers have the same samples.

    Units are drawn with replacement among those that hold the same classes: positives, negatives or both.
    """
    rows = check_rows(y, {str(k): each for k, each in enumerate(scores)}, sample_weight, group)
    weight = np.ones(rows.positive.size) if rows.weight is None else rows.weight
    unit = np.arange(rows.positive.size) if rows.unit is None else rows.unit
    n_units = int(unit.max()) + 1
    holds = np.zeros(n_units, dtype=np.int64)
    holds[unit[rows.positive]] |= 1
    holds[unit[~rows.positive]] |= 2
    strata = [np.flatnonzero(holds == kind) for kind in (1, 2, 3)]
    rng = np.random.default_rng(seed)
    areas = np.empty((n_samples, len(scores), len(windows)))
    for sample in areas:
        drawn = [rng.choice(units, units.size) for units in strata if units.size]
        counts = np.bincount(np.concatenate(drawn), minlength=n_units)[unit]
        kept = np.flatnonzero(counts)
        chosen = rows.take(kept)._replace(weight=(counts * weight)[kept])
        for k in range(len(scores)):
            groups = group_rows(chosen, k)[0]
            sample[k] = [area_of(groups, *window) for window in windows]
    return areas


def bootstrap_interval(
    y: Any,
    scores: Any,
    window: tuple[float, float],
    level: float,
    n_samples: int,
    seed: int,
    **options: Any,
) -> tuple[float, float]:
    """Return Hesterberg's expanded percentiles of the areas of samples.

    Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69 (2015).
    """
    units = min(effective_units(check_rows(y, {"scores": scores}, **options)))
    spread = student.ppf((1.0 + level) / 2.0, units - 1.0) * np.sqrt(units / (units - 1.0))
    areas = bootstrap_areas(y, [scores], [window], n_samples, seed, **options)[:, 0, 0]
    low, high = np.quantile(areas, norm.cdf([-spread, spread]))
    return float(low), float(high)
