"""Baselines (`controls` over HTTP): plain algorithms on the same splits, and whether the chosen ranker beats them.

A ranker that is no better than logistic regression is not worth its trouble, and a curve alone does not say so. But
nobody waits for a baseline. Baselines come after the fits that were asked for. They take a tenth of the time of those,
or half a second; of the budget of `auto` what is left, a tenth of it at most. Where all rows would take longer they
learn from a sample, which is named. How long they take is measured on few rows, then on more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from app.models.objectives import WHOLE, window_of
from app.platform.sql import Json
from app.training.bipartite import LEVEL, HeldOutRows, windows_of
from app.training.search import AUTO
from core.base.parameters import list_parameters
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics import Comparison, Difference


BASELINES = ("logistic", "auc_svm")

SHARE = 0.1
"""Of the time that a job's fits took, what its baselines may take beside."""

MIN_SECONDS = 0.5
"""What they may take however short the fits were."""

FIRST_ROWS, GROWTH = 2_000, 8
"""Rows of the first try, and how many times more are tried at a time, so that each try foretells the next."""

LATE = 1.5
"""Times the seconds that are left for it, after which a fit is given up."""

CHOSEN = "chosen"


def resolve(asked: bool | None, *, kind: str, validation: Mapping[str, Any]) -> Json:
    """Say which baselines a job fits, why none where it was not told so, and which share of its time they may take.

    `asked` is what the job says: true, for all rows whatever it takes, false, or nothing.
    """
    skipped = None
    if kind != "bipartite":
        skipped = f"controls rank rows with one label, the dataset is of kind {kind}"
    elif validation["method"] == "none":
        skipped = "controls are compared on rows held out, and validation.method is none"
    fitted = BASELINES if asked is not False and skipped is None else ()
    return {
        "algorithms": list(fitted),
        "skipped": None if asked is False else skipped,
        "share": None if asked else SHARE,
    }


def seconds_for(spec: Mapping[str, Any], spent: float) -> float:
    """How long a job's baselines may take after fits and a search that took so long; nothing is left where not above 0.

    `auto` counts them within its budget.
    """
    share = spec["controls"].get("share", SHARE)  # jobs of earlier versions have no such entry
    seconds = math.inf if share is None else max(share * spent, MIN_SECONDS)
    if spec["algorithm"]["name"] == AUTO:
        budget = spec["algorithm"]["parameters"]["budget_seconds"]
        seconds = min(seconds, SHARE * budget, budget - spent)
    return seconds


@dataclass(frozen=True)
class BaselineTry:
    """A fit of a baseline: the rows that it learnt from, of so many, its seconds, and whether it was given up."""

    rows: int
    of: int
    seconds: float
    late: bool


def next_rows(tries: Sequence[BaselineTry], of: int, n_scopes: int, left: float) -> int | None:
    """The rows that a baseline is to try next, given its tries in the first scope; None where the last will do.

    `left` are the seconds left for it, in all `n_scopes` scopes, each of about `of` rows. A fit takes no longer than in
    proportion to its rows, or little.
    """
    if not tries:
        return of if math.isinf(left) else min(of, FIRST_ROWS)
    last = tries[-1]
    if last.late or last.rows >= of:
        return None
    most = last.rows * left / (max(last.seconds, 1e-6) * n_scopes)
    if most < min(of, 2 * last.rows):
        return None
    return int(min(of, most, GROWTH * last.rows))


def find_compared(parts: Sequence[Mapping[str, Any]], n_scopes: int) -> list[Mapping[str, Any]]:
    """Of a baseline's finished parts those that are compared: on the most rows on which it was fitted in every scope.

    None where there are no such; then some part says why.
    """
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for part in parts:
        if part["result"]["failed"] is None:
            found.setdefault(part["spec"].get("rows"), []).append(part)
    whole = [rows for rows, each in found.items() if len(each) == n_scopes]
    return found[max(whole, key=lambda rows: math.inf if rows is None else rows)] if whole else []


def parameters_of(name: str, spec: Mapping[str, Any]) -> Json:
    """A baseline's parameters: its defaults, and the job's seed."""
    own = {parameter.name: parameter.default for parameter in list_parameters(ALGORITHMS[name])}
    if "random_state" in own:
        own["random_state"] = spec["seed"]
    return own


def compare_with(
    objective: Mapping[str, Any],
    held_out: HeldOutRows | None,
    chosen: Floats,
    scores: Mapping[str, Floats],
) -> Json:
    """Compare the chosen ranker with each baseline, on the rows that judge: areas and paired differences by window.

    p-values are adjusted by Holm over all baselines and windows. The ranker beats a baseline if its area in the
    objective's window is greater, with an adjusted p-value below 1 - level. Without any baseline there is nothing to
    compare.
    """
    from core.metrics.comparison import holm

    windows = list(dict.fromkeys([WHOLE, *windows_of(objective)]))
    window = dict(zip(("fpr_min", "fpr_max"), window_of(objective), strict=True))
    nothing: Json = {"level": LEVEL, "windows": [], "decided_on": window, "beats": None}
    if held_out is None:
        return nothing
    names = [CHOSEN, *scores]
    found = _compare(held_out, [chosen, *scores.values()], windows, names)
    against = [
        [difference for difference in window.differences if difference.first == CHOSEN]
        for window in found.windows
    ]
    adjusted = holm(np.array([[each.p_value for each in window] for window in against]))
    decided_on = windows.index(window_of(objective))
    beats = all(
        each.value > 0.0 and p < 1.0 - LEVEL
        for each, p in zip(against[decided_on], adjusted[decided_on], strict=True)
    )
    return nothing | {
        "windows": [
            {
                "fpr_min": window.fpr_min,
                "fpr_max": window.fpr_max,
                "chosen": window.values[0]._asdict(),
                "controls": [
                    _shown(area._asdict(), difference, float(p))
                    for area, difference, p in zip(window.values[1:], differences, ps, strict=True)
                ],
            }
            for window, differences, ps in zip(found.windows, against, adjusted, strict=True)
        ],
        "beats": beats,
    }


def _shown(area: Json, difference: Difference, adjusted: float) -> Json:
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
) -> Comparison:
    from core.metrics import compare, cross_validated_compare

    same: Json = {
        "level": LEVEL,
        "sample_weight": held_out.weight,
        "group": held_out.group,
        "names": names,
        "adjust": "none",
    }
    folds = held_out.folds
    if folds is None:
        return compare(held_out.y, scores, windows, **same)
    return cross_validated_compare(
        held_out.y, scores, folds.fold, windows, repeat=folds.repeat, row=folds.row, **same
    )
