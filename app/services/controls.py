"""Controls: plain algorithms on the same divisions, and whether the chosen ranker beats them beyond chance.

A ranker that is no better than logistic regression is not worth its trouble, and a curve alone does not say so. Unless
the job says otherwise they are fitted where they cost little: up to `MOST_CELLS` rows times features times fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.db.validation_tables import ModelControls
from app.services.entries import LEVEL, Entries
from app.services.objectives import WHOLE, window_of
from app.services.trials.bipartite import windows_of
from core.parameters import list_parameters
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.metrics import Comparison, Difference
    from core.ranker import Floats


CONTROLS = ("logistic", "auc_svm")

MOST_CELLS = 10_000_000
"""Some five seconds for both; larger tables have controls where the job asks for them."""

CHOSEN = "chosen"

Json = dict[str, Any]


def resolve(asked: bool | None, *, kind: str, validation: Mapping[str, Any], cells: int) -> Json:
    """Say which controls a job fits, and why none where it was not told so.

    `cells` are the rows of the table times its features, `asked` is what the job says: true, false, or nothing.
    """
    skipped = None
    if kind != "bipartite":
        skipped = f"controls rank rows with one label, the dataset is of kind {kind}"
    elif validation["method"] == "none":
        skipped = "controls are compared on rows held out, and validation.method is none"
    elif asked is None:
        fits = validation.get("folds", 1) * validation.get("repeats", 1)
        if cells * fits > MOST_CELLS:
            skipped = (
                f"rows × features × fits are {cells * fits:,}, more than {MOST_CELLS:,}: "
                'ask for controls by "controls": true'
            )
    fitted = CONTROLS if asked is not False and skipped is None else ()
    return {"algorithms": list(fitted), "skipped": None if asked is False else skipped}


def parameters_of(name: str, spec: Mapping[str, Any]) -> Json:
    """A control's parameters: its defaults, and the job's seed."""
    own = {parameter.name: parameter.default for parameter in list_parameters(ALGORITHMS[name])}
    if "random_state" in own:
        own["random_state"] = spec["seed"]
    return own


def judge(
    objective: Mapping[str, Any],
    judged: Entries | None,
    chosen: Floats,
    scores: Mapping[str, Floats],
) -> Json:
    """Compare the chosen ranker with each control, on the rows that judge: areas and paired differences by window.

    p-values are adjusted by Holm over all controls and windows. The ranker beats a control if its area in the
    objective's window is greater, with an adjusted p-value below 1 - level. Without any control there is nothing to
    compare.
    """
    from core.metrics.differences import holm

    windows = list(dict.fromkeys([WHOLE, *windows_of(objective)]))
    window = dict(zip(("fpr_min", "fpr_max"), window_of(objective), strict=True))
    nothing: Json = {"level": LEVEL, "windows": [], "decided_on": window, "beats": None}
    if judged is None:
        return nothing
    names = [CHOSEN, *scores]
    found = _compare(judged, [chosen, *scores.values()], windows, names)
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
    judged: Entries, scores: Sequence[Floats], windows: list[tuple[float, float]], names: list[str]
) -> Comparison:
    from core.metrics import compare, cross_validated_compare

    same: Json = {
        "level": LEVEL,
        "sample_weight": judged.weight,
        "group": judged.group,
        "names": names,
        "adjust": "none",
    }
    folds = judged.folds
    if folds is None:
        return compare(judged.y, scores, windows, **same)
    return cross_validated_compare(
        judged.y, scores, folds.fold, windows, repeat=folds.repeat, row=folds.row, **same
    )


def row_of(model_id: str, found: Mapping[str, Any]) -> ModelControls:
    """What is kept of it."""
    return ModelControls(model_id=model_id, **{key: found[key] for key in _KEPT})


_KEPT = ("level", "controls", "windows", "decided_on", "skipped")
