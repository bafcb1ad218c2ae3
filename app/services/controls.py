"""Controls: plain algorithms on the same divisions, and whether the chosen ranker beats them beyond chance.

A ranker that is no better than logistic regression is not worth its trouble, and a curve alone does not say so. Unless
the job says otherwise they are fitted where they cost little: up to `MOST_CELLS` rows times features times fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.parameters import list_parameters
from core.registry import ALGORITHMS

CONTROLS = ("logistic", "auc_svm")

MOST_CELLS = 10_000_000
"""Some five seconds for both; larger tables have controls where the job asks for them."""

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
