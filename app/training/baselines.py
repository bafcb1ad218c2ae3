"""Baselines (`baselines` over HTTP): simple models trained on the same splits, and whether the ranker is better.

Baselines are fitted after the requested fits, so that nobody waits for them. If all rows would take more than some
seconds, a baseline is trained on a sample, whose size is stored with the model. It follows from the rows, the columns
and the request alone (with `auto`, from its budget, too), never from a clock: a job that is run again compares the same
rows. If the sample is less than half of the rows, the differences are stored without a verdict on the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from app.models.objectives import metric_of, window_of
from app.models.simple import BASELINES, LOGISTIC
from app.platform.documents import (
    Baseline,
    Objective,
    Parameters,
    Validation,
    document_of,
)
from app.training.bipartite import LEVEL, HeldOutRows, windows_of
from app.training.records import (
    BaselineComparison,
    BaselineSpec,
    FinishedBaseline,
    TrainSpec,
)
from app.training.search import budget_of
from core import metrics
from core.base.parameters import leave_out_newer, list_parameters
from core.metrics.window import WHOLE
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from core.base.ranker import Floats, Ranker
    from core.metrics import Comparison, Difference, MetricComparison, WindowComparison
    from core.metrics.estimates import Adjustment
    from core.metrics.functionals.base import Metric


MAX_CELLS = 2_000_000
"""Rows times columns of all fits of a baseline: about five seconds."""

CELLS_PER_SECOND = 400_000
"""Cells that are fitted in a second: of `auto`, what its budget allows."""

MIN_ROWS = 2_000
"""Rows of a baseline's fit, at least, however many columns there are."""

MAX_SECONDS = 300.0
"""A baseline on a sample is given up after so many seconds, far beyond what its cells take."""

VERDICT_PART = 0.5
"""Fraction of the training rows that every baseline needs for a verdict on the model."""

TIME_FRACTION = 0.1
"""Of the budget of `auto`, what its baselines may take."""

RESERVED_FRACTION = 0.03
"""Of the budget of `auto`, what is reserved for its baselines."""

MIN_TRY_SECONDS = 0.1
"""Seconds that a baseline must have before it is begun, with `auto`."""

CHOSEN = "chosen"


def resolve(
    asked: bool | None, *, kind: str, validation: Validation, query: str | None = None
) -> BaselineSpec:
    """Return the baselines of a job, and why there are none although they were not declined.

    `asked` is the field of the request: True (on all rows, whatever it takes), False (none), or None.
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
    """Return the seconds of the budget of `auto` for baselines, after fits and a search of `spent` seconds, which leave
    `finishing` seconds for later work; infinite without a budget.
    """
    budget = budget_of(spec, 1)
    return math.inf if budget is None else min(TIME_FRACTION * budget, budget - spent - finishing)


def sample_rows(spec: TrainSpec, of: int, columns: int, n_scopes: int) -> int | None:
    """Return on how many of `of` rows a baseline is fitted in each of `n_scopes` scopes; None: on all."""
    baselines = spec["baselines"]
    if baselines["share"] is None:
        return None
    cells = float(MAX_CELLS)
    if (budget := budget_of(spec, 1)) is not None:
        cells = min(cells, CELLS_PER_SECOND * TIME_FRACTION * budget / len(baselines["algorithms"]))
    rows = max(int(cells / (max(columns, 1) * n_scopes)), MIN_ROWS)
    return rows if rows < of else None


def reserved_for(spec: TrainSpec) -> float:
    """Return the seconds of its budget that `auto` reserves for baselines."""
    budget = budget_of(spec, 1)
    if not spec["baselines"]["algorithms"] or budget is None:
        return 0.0
    return RESERVED_FRACTION * budget


def find_compared(parts: Sequence[FinishedBaseline], n_scopes: int) -> list[FinishedBaseline]:
    """Return the fits that are compared with the ranker: none unless every scope was fitted."""
    fitted = [part for part in parts if part["result"]["failed"] is None]
    return fitted if len(fitted) == n_scopes else []


def is_enough(described: Sequence[Baseline]) -> bool:
    """Say whether the baselines were trained on enough of the rows for a verdict on the model."""
    return all(
        each["rows"] >= VERDICT_PART * each["of_rows"]
        for each in described
        if not each["failed"] and each["rows"] is not None and each["of_rows"] is not None
    )


def parameters_of(name: str, spec: TrainSpec) -> Parameters:
    """Return a baseline's parameters: its defaults, and the job's seed."""
    own = {parameter.name: parameter.default for parameter in list_parameters(ALGORITHMS[name])}
    if "random_state" in own:
        own["random_state"] = spec["seed"]
    return leave_out_newer(ALGORITHMS[name], own)


def baseline_ranker(name: str, parameters: Parameters) -> Ranker:
    """Return the ranker of a baseline, not fitted: the logistic regression is one on normal scores with a chosen C."""
    if name != LOGISTIC:
        return ALGORITHMS[name](**parameters)
    from core.linear.normal_scores import NormalScoresLogistic

    return NormalScoresLogistic(**parameters)


def compare_with(
    objective: Objective,
    held_out: HeldOutRows | None,
    chosen: Floats,
    scores: dict[str, Floats],
    folder: Path | None = None,
) -> tuple[BaselineComparison, list[str]]:
    """Compare the ranker with each baseline on the held-out rows: areas and paired differences by window.

    Returns the comparison, and the reasons for missing p-values. A folder is given for rows of one split whose scores
    are mapped to files: areas are then computed in files there.

    The size of a list in the objective is a fraction. p-values are adjusted with Holm's method over all baselines and
    windows, and the metric of the objective. The ranker beats a baseline if its area in the objective's window, or the
    metric that is the objective, is greater, with an adjusted p-value below 1 - level.
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
    pairs_of_each = zip(against, adjusted, strict=True)
    windows_compared: list[Any] = [
        {
            "fpr_min": window.fpr_min,
            "fpr_max": window.fpr_max,
            **_compared_by(window, *next(pairs_of_each)),
        }
        for window in compared.windows
    ]
    metrics_compared: list[Any] = [
        {"metric": each.metric.name, **_compared_by(each, *next(pairs_of_each))} for each in metrics
    ]
    comparison["windows"] = windows_compared + metrics_compared
    comparison["beats"] = all(
        each.value > 0.0 and p is not None and p < 1.0 - LEVEL
        for each, p in zip(against[decided_on], adjusted[decided_on], strict=True)
    )
    missing = [each.warning for each in metrics if each.warning is not None]
    return comparison, [*compared.warnings, *missing]


def _compared_by(
    found: WindowComparison | MetricComparison,
    pairs: Sequence[Difference],
    adjusted: Sequence[float | None],
) -> Any:
    """Return the ranker's value, and the baselines' with their differences, as JSON."""
    ends = ("value", "low", "high", "p_value")
    return {
        "chosen": document_of(found.values[0]),
        "baselines": [
            {
                "algorithm": pair.second,
                "area": document_of(area),
                "difference": {
                    **{name: getattr(pair, name) for name in ends},
                    "adjusted_p_value": p_value,
                },
            }
            for area, pair, p_value in zip(found.values[1:], pairs, adjusted, strict=True)
        ],
    }


class _Options(TypedDict):
    """The options that comparisons by areas and by other metrics share."""

    fold: ArrayLike | None
    repeat: ArrayLike | None
    row: ArrayLike | None
    level: float
    sample_weight: ArrayLike | None
    group: ArrayLike | None
    names: list[str]
    adjust: Adjustment


def _options(held_out: HeldOutRows, names: list[str]) -> _Options:
    folds = held_out.folds
    return {
        "fold": None if folds is None else folds.fold,
        "repeat": None if folds is None else folds.repeat,
        "row": None if folds is None else folds.row,
        "level": LEVEL,
        "sample_weight": held_out.weight,
        "group": held_out.group,
        "names": names,
        "adjust": "none",
    }


def _compare(
    held_out: HeldOutRows,
    scores: Sequence[Floats],
    windows: list[tuple[float, float]],
    names: list[str],
    folder: Path | None,
) -> Comparison:
    if folder is None:
        return metrics.compare(held_out.y, scores, windows, **_options(held_out, names))
    from core.metrics.runs import compare_stored

    return compare_stored(
        held_out.y == 1,
        scores,
        windows,
        folder=folder,
        level=LEVEL,
        sample_weight=held_out.weight,
        names=names,
        adjust="none",
    )


def _compare_metrics(
    held_out: HeldOutRows, scores: Sequence[Floats], metric: Metric | None, names: list[str]
) -> tuple[MetricComparison, ...]:
    """Return an empty tuple without a metric."""
    if metric is None:
        return ()
    return metrics.compare_metrics(held_out.y, scores, [metric], **_options(held_out, names))
