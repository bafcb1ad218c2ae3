"""Baselines (`baselines` over HTTP): simple benchmark models on the same splits, and whether the ranker beats them.

A ranker that is no better than logistic regression is not worth its trouble, and a curve alone does not say so. But
nobody waits for a baseline. Baselines come after the fits that were asked for. They may take a tenth of the time of
those fits, or half a second if that is more; with `auto`, what is left of its budget, at most a tenth of it. Where all
rows would take longer they learn from a sample, and the model says of how many rows. How long a baseline takes is
measured on few rows, then on more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.models.objectives import metric_of, window_of
from app.platform.documents import (
    BaselineArea,
    Interval,
    Objective,
    Parameters,
    Validation,
)
from app.training.bipartite import LEVEL, HeldOutRows, as_record, windows_of
from app.training.records import (
    BaselineComparison,
    BaselineSpec,
    FinishedBaseline,
    TrainSpec,
)
from app.training.search import AUTO
from core import metrics
from core.base.parameters import leave_out_newer, list_parameters
from core.metrics.window import WHOLE
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics import Comparison, Difference, MetricComparison
    from core.metrics.functionals.base import Metric


BASELINES = ("logistic", "auc_svm")

TIME_FRACTION = 0.1
"""Of the seconds that a job's fits took (of `auto`: of its budget), what its baselines may take."""

MIN_SECONDS = 0.5
"""Seconds that baselines may take however short the fits were."""

RESERVED_FRACTION = 0.03
"""Of the budget of `auto`, what is reserved for its baselines."""

MIN_TRY_SECONDS = 0.1
"""Seconds that a baseline must have before it is begun, with `auto`: with less even few rows are given up."""

FIRST_ROWS, MAX_GROWTH = 2_000, 8
"""Rows of the first try, and the greatest factor to the next: so each try predicts the time of the next."""

TIMEOUT_FACTOR = 1.5
"""A baseline is given up after this many times the seconds that are left for it."""

CHOSEN = "chosen"


def resolve(
    asked: bool | None, *, kind: str, validation: Validation, query: str | None = None
) -> BaselineSpec:
    """Return which baselines a job fits, and why none where it did not ask for none.

    `asked` is what the job says: True (on all rows, whatever it takes), False (none), or None.
    """
    skipped = None
    if kind != "bipartite":
        skipped = f"baselines require rows with one label; the dataset is of kind {kind}"
    elif query is not None:
        skipped = "baselines rank all rows as one list, but the dataset has queries"
    elif validation["method"] == "none":
        skipped = "baselines need held-out rows, but validation.method is none"
    fitted = BASELINES if asked is not False and skipped is None else ()
    return {
        "algorithms": list(fitted),
        "skipped": None if asked is False else skipped,
        "share": None if asked else TIME_FRACTION,
    }


def seconds_for(spec: TrainSpec, spent: float, finishing: float = 0.0) -> float:
    """Return the seconds that a job's baselines may take, after fits and a search of `spent` seconds; 0 or less: none.

    `auto` counts them within its budget, of which `reserved_for` is theirs. It leaves `finishing` seconds of it to what
    comes after them.
    """
    fraction = spec["baselines"]["share"]
    seconds = math.inf if fraction is None else max(fraction * spent, MIN_SECONDS)
    if spec["algorithm"]["name"] == AUTO:
        budget = spec["algorithm"]["parameters"]["budget_seconds"]
        seconds = min(seconds, TIME_FRACTION * budget, budget - spent - finishing)
    return seconds


def reserved_for(spec: TrainSpec) -> float:
    """Return the seconds that `auto` leaves of its budget to its baselines; 0 without any."""
    baselines = spec.get("baselines")
    if baselines is None or not baselines["algorithms"] or spec["algorithm"]["name"] != AUTO:
        return 0.0
    budget: float = spec["algorithm"]["parameters"]["budget_seconds"]
    return RESERVED_FRACTION * budget


@dataclass(frozen=True)
class BaselineTry:
    """A fit of a baseline on `rows` of `of` rows: its seconds, and whether it was given up."""

    rows: int
    of: int
    seconds: float
    late: bool


def next_rows(tries: Sequence[BaselineTry], of: int, n_scopes: int, left: float) -> int | None:
    """Return the rows that a baseline tries next in the first scope; None if its last try is its best.

    `left` are the seconds left for it in all `n_scopes` scopes, each of about `of` rows. The time of a fit is taken to
    grow in proportion to its rows at most.
    """
    if not tries:
        return of if math.isinf(left) else min(of, FIRST_ROWS)
    last = tries[-1]
    if last.late or last.rows >= of:
        return None
    affordable = last.rows * left / (max(last.seconds, 1e-6) * n_scopes)
    if affordable < min(of, 2 * last.rows):
        return None
    return int(min(of, affordable, MAX_GROWTH * last.rows))


def find_compared(parts: Sequence[FinishedBaseline], n_scopes: int) -> list[FinishedBaseline]:
    """Return those parts of a baseline that are compared: on the most rows on which every scope was fitted.

    An empty list where there are none; then some part says why.
    """
    by_rows: dict[int | None, list[FinishedBaseline]] = {}
    for part in parts:
        if part["result"]["failed"] is None:
            by_rows.setdefault(part["spec"].get("rows"), []).append(part)
    whole = [rows for rows, fitted in by_rows.items() if len(fitted) == n_scopes]
    return by_rows[max(whole, key=lambda rows: math.inf if rows is None else rows)] if whole else []


def parameters_of(name: str, spec: TrainSpec) -> Parameters:
    """Return a baseline's parameters: its defaults, and the job's seed."""
    own = {parameter.name: parameter.default for parameter in list_parameters(ALGORITHMS[name])}
    if "random_state" in own:
        own["random_state"] = spec["seed"]
    return leave_out_newer(ALGORITHMS[name], own)


def compare_with(
    objective: Objective,
    held_out: HeldOutRows | None,
    chosen: Floats,
    scores: dict[str, Floats],
    folder: Path | None = None,
) -> tuple[BaselineComparison, list[str]]:
    """Compare the chosen ranker with each baseline, on the held-out rows: areas and paired differences by window.

    The second value says why there are no p-values, where there are none.

    A folder is for rows of one split whose scores are mapped to files: areas are compared in files there.

    The size of a list in the objective is a share. p-values are adjusted by Holm over all baselines and windows, and
    the metric of the objective. The ranker beats a baseline if its area in the
    objective's window is greater, or the metric that the objective names, with an adjusted p-value below 1 - level.
    Without any baseline there is nothing to compare.
    """
    from core.metrics.estimates import adjust_present

    windows = list(dict.fromkeys([WHOLE, *windows_of(objective)]))
    fpr_min, fpr_max = window_of(objective)
    comparison: BaselineComparison = {
        "level": LEVEL,
        "windows": [],
        "decided_on": {"fpr_min": fpr_min, "fpr_max": fpr_max},
        "beats": None,
    }
    if held_out is None:
        return comparison, []
    names, columns = [CHOSEN, *scores], [chosen, *scores.values()]
    compared = _compare(held_out, columns, windows, names, folder)
    metrics = _compare_metrics(held_out, columns, metric_of(objective), names)
    differences = [each.differences for each in compared.windows]
    differences += [each.differences for each in metrics]
    against = [[pair for pair in pairs if pair.first == CHOSEN] for pairs in differences]
    whole = adjust_present([each.p_value for window in against for each in window])
    adjusted = [whole[at : at + len(scores)] for at in range(0, len(whole), len(scores))]
    decided_on = len(windows) if metrics else windows.index(window_of(objective))
    comparison["windows"] = [
        {
            "fpr_min": window.fpr_min,
            "fpr_max": window.fpr_max,
            "chosen": as_record(window.values[0]),
            "baselines": [
                _area_of(as_record(area), difference, p)
                for area, difference, p in zip(window.values[1:], pairs, ps, strict=True)
            ],
        }
        for window, pairs, ps in zip(compared.windows, against, adjusted, strict=False)
    ]
    comparison["windows"] += [
        {
            "metric": each.metric.name,
            "chosen": as_record(each.values[0]),
            "baselines": [
                _area_of(as_record(value), difference, p)
                for value, difference, p in zip(
                    each.values[1:], against[-1], adjusted[-1], strict=True
                )
            ],
        }
        for each in metrics
    ]
    comparison["beats"] = all(
        each.value > 0.0 and p is not None and p < 1.0 - LEVEL
        for each, p in zip(against[decided_on], adjusted[decided_on], strict=True)
    )
    missing = [each.warning for each in metrics if each.warning is not None]
    return comparison, [*compared.warnings, *missing]


def _area_of(area: Interval, difference: Difference, adjusted: float | None) -> BaselineArea:
    return {
        "algorithm": difference.second,
        "area": area,
        "difference": {
            "value": difference.value,
            "low": difference.low,
            "high": difference.high,
            "p_value": difference.p_value,
            "adjusted_p_value": adjusted,
        },
    }


def _compare(
    held_out: HeldOutRows,
    scores: Sequence[Floats],
    windows: list[tuple[float, float]],
    names: list[str],
    folder: Path | None,
) -> Comparison:
    y, weight, group, folds = held_out.y, held_out.weight, held_out.group, held_out.folds
    if folder is not None:
        from core.metrics.runs import compare_stored

        return compare_stored(
            y == 1,
            scores,
            windows,
            folder=folder,
            level=LEVEL,
            sample_weight=weight,
            names=names,
            adjust="none",
        )
    if folds is None:
        return metrics.compare(
            y,
            scores,
            windows,
            level=LEVEL,
            sample_weight=weight,
            group=group,
            names=names,
            adjust="none",
        )
    return metrics.cross_validated_compare(
        y,
        scores,
        folds.fold,
        windows,
        repeat=folds.repeat,
        row=folds.row,
        level=LEVEL,
        sample_weight=weight,
        group=group,
        names=names,
        adjust="none",
    )


def _compare_metrics(
    held_out: HeldOutRows, scores: Sequence[Floats], metric: Metric | None, names: list[str]
) -> tuple[MetricComparison, ...]:
    """Return the comparison by one metric; nothing without one."""
    if metric is None:
        return ()
    y, weight, group, folds = held_out.y, held_out.weight, held_out.group, held_out.folds
    if folds is None:
        return metrics.compare_metrics(
            y,
            scores,
            [metric],
            level=LEVEL,
            sample_weight=weight,
            group=group,
            names=names,
            adjust="none",
        )
    return metrics.cross_validated_compare_metrics(
        y,
        scores,
        folds.fold,
        [metric],
        repeat=folds.repeat,
        row=folds.row,
        level=LEVEL,
        sample_weight=weight,
        group=group,
        names=names,
        adjust="none",
    )
