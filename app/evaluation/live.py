"""The aliases in use: what each is planned to flag, its last check on new rows, and what to do next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from app.evaluation import repository
from app.evaluation.service import seen_of
from app.models import repository as model_rows
from app.models.service import VALIDATION
from app.platform.sql import Session
from app.platform.tables import Evaluation, Model, ModelAlias, ModelMetrics

NextStep = Literal["evaluate", "recalibrate", "retrain", "compare"]


@dataclass(frozen=True)
class LiveAlias:
    """An alias, its model, and its last evaluation on rows that were new to the model.

    `flagged` is the fraction of the rows that its cut flags on the validation rows; None without a cut.
    """

    alias: ModelAlias
    model: Model
    flagged: float | None
    checked: Evaluation | None
    next_step: NextStep | None


def list_live(
    session: Session, owner: str, limit: int, outdated: Collection[tuple[str, str]]
) -> list[LiveAlias]:
    """Return the owner's aliases, at most `limit`, the last moved first. `outdated` are the names and aliases whose
    name has a newer version that is worth a comparison. The number of statements does not depend on the aliases.
    """
    found = model_rows.list_moved(session, owner, limit)
    ids = [model.id for _, model in found]
    metrics = {each.model_id: each for each in model_rows.areas_of(session, ids, VALIDATION)}
    checked = {
        each.model_id: each
        for each in repository.newest_of_models(session, owner, ids)
        if each.drift is not None and seen_of(each) == "new"
    }
    calibrated = model_rows.last_calibrated(session, ids)
    return [
        LiveAlias(
            alias,
            model,
            _flagged(alias, metrics.get(model.id)),
            checked.get(model.id),
            _next_step(
                checked.get(model.id),
                calibrated.get(model.id),
                outdated=(alias.name, alias.alias) in outdated,
            ),
        )
        for alias, model in found
    ]


def _flagged(alias: ModelAlias, of: ModelMetrics | None) -> float | None:
    if alias.cutoff is None or of is None:
        return None
    positives, negatives = of.positive_weight, of.negative_weight
    flagged = alias.cutoff["tpr"] * positives + alias.cutoff["fpr"] * negatives
    return flagged / (positives + negatives)


def _next_step(
    checked: Evaluation | None, calibrated: float | None, *, outdated: bool
) -> NextStep | None:
    """Return what to do next. An evaluation before the last recalibration says nothing of the probabilities."""
    if outdated:
        return "compare"
    if checked is None or checked.drift is None:
        return "evaluate"
    if not checked.drift["changed"]:
        return None
    wrong = any(test["changed"] for test in checked.drift.get("probabilities", ()))
    worse = any(
        area["changed"] and area["change"]["value"] < 0.0 for area in checked.drift["areas"]
    )
    if wrong and not worse:
        recalibrated = calibrated is not None and calibrated > checked.created_at
        return "evaluate" if recalibrated else "recalibrate"
    return "retrain" if worse else None
