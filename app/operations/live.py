"""The aliases in use: planned fraction of flagged rows, last evaluation on new rows, and recommended next step."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal, get_args

from app.evaluation import repository
from app.evaluation.checks import Acknowledgement
from app.evaluation.drift import after_recalibration, is_recalibrated
from app.evaluation.service import seen_of
from app.feedback.monitor_repository import states_of
from app.http.schemas import ModelId, Resource, Timestamp, one_of
from app.models import repository as model_rows
from app.models.service import VALIDATION
from app.platform.documents import RocMetrics, StoredFeedback, StoredMemo
from app.platform.sql import Json, Session
from app.platform.tables import Acknowledgement as AcknowledgementRow
from app.platform.tables import Evaluation, ModelAlias

NextStep = Literal["evaluate", "recalibrate", "retrain", "compare"]


class LiveAlias(Resource):
    """An alias, the fraction of rows it is expected to flag, and its last evaluation."""

    name: str
    """Name of the models."""
    alias: str
    """The alias, such as `live`."""
    model_id: ModelId
    version: int
    """Version of the model."""
    updated_at: Timestamp
    """Time of the last change of the alias."""
    flagged: float | None
    """Fraction of the validation rows that its cutoff flags. Null without a cutoff."""
    memo: StoredMemo | None
    """Why the alias was last moved. Null if no memo was given."""
    evaluation_id: str | None
    """Id of the newest evaluation that was requested for this alias, or for its version without an alias, if its rows
    were new to the model. Null if there is none."""
    evaluated_at: Timestamp | None
    """Time of that evaluation. Null if there is none."""
    changed: bool | None
    """True if that evaluation found a change that a later recalibration has not handled. Null without an evaluation."""
    recalibrated_at: Timestamp | None
    """Time of the last recalibration, if it was after that evaluation; otherwise null."""
    acknowledgement: Acknowledgement | None
    """Who has seen that change, when, and the reason for taking no further action. Null if nobody has, or if there is
    no change."""
    next_step: Annotated[str, one_of(get_args(NextStep))] | None
    """`evaluate`: there is no evaluation on new rows, or none since the recalibration. `recalibrate`: only the
    probabilities are wrong. `retrain`: the model ranks worse than at validation. `compare`: there is a newer version.
    Null: nothing to do, or the change was acknowledged."""
    feedback: StoredFeedback | None
    """The feedback settings. Null: its decisions are not recorded."""
    open_alarms: int
    """Number of alarms that nobody has acknowledged."""
    alarms_since: Timestamp | None
    """Start of the first period that raised one of these alarms. Null without one."""
    tested_until: Timestamp | None
    """End of the last period in which the monitor has tested the model that the alias points to. Null without such a
    period."""


def list_live(
    session: Session, owner: str, limit: int, outdated: Collection[tuple[str, str]]
) -> list[LiveAlias]:
    """The last moved first. `outdated` are (name, alias) pairs whose newer version has not been compared.

    The number of SQL statements is constant.
    """
    found = model_rows.list_moved(session, owner, limit)
    ids = [model.id for _, model in found]
    metrics = model_rows.areas_of(session, ids, VALIDATION)
    checked = {
        of: each
        for of, each in repository.newest_of_models(session, owner, ids).items()
        if each.drift is not None and seen_of(each) == "new"
    }
    calibrated = model_rows.last_calibrated(session, ids)
    fits = model_rows.calibration_fits(session, ids)
    states = states_of(session, owner, [(alias.name, alias.alias) for alias, _ in found])
    live = []
    for alias, model in found:
        state = states[alias.name, alias.alias]
        evaluation = checked.get((model.id, alias.alias)) or checked.get((model.id, None))
        drift = recalibrated_at = None
        if evaluation is not None:
            drift = evaluation.drift or {}
            of_model = fits.get(model.id, {})
            if is_recalibrated(evaluation.metrics, model.calibration_version, of_model):
                drift, recalibrated_at = after_recalibration(drift), calibrated.get(model.id)
        outdated_here = (alias.name, alias.alias) in outdated
        live.append(
            LiveAlias.from_row(
                alias,
                model_id=model.id,
                version=model.version,
                flagged=_flagged(alias, metrics.get(model.id)),
                evaluation_id=None if evaluation is None else evaluation.id,
                evaluated_at=None if evaluation is None else evaluation.created_at,
                changed=None if drift is None else drift["changed"],
                recalibrated_at=recalibrated_at,
                acknowledgement=_acknowledgement(evaluation, drift),
                next_step=_next_step(
                    evaluation,
                    drift,
                    recalibrated=recalibrated_at is not None,
                    outdated=outdated_here,
                ),
                feedback=state.settings,
                open_alarms=state.open_alarms,
                alarms_since=state.alarms_since,
                tested_until=state.tested_until,
            )
        )
    return live


def _acknowledgement(checked: Evaluation | None, drift: Json | None) -> AcknowledgementRow | None:
    """Return the acknowledgement of the change that was found."""
    if checked is None or drift is None or not drift["changed"]:
        return None
    return checked.acknowledgement


def _flagged(alias: ModelAlias, of: RocMetrics | None) -> float | None:
    """Return None without a cutoff."""
    if alias.cutoff is None or of is None:
        return None
    positives, negatives = of["positive_weight"], of["negative_weight"]
    flagged = alias.cutoff["tpr"] * positives + alias.cutoff["fpr"] * negatives
    return flagged / (positives + negatives)


def _next_step(
    checked: Evaluation | None, drift: Json | None, *, recalibrated: bool, outdated: bool
) -> NextStep | None:
    """Return the recommended step. `drift` is without the errors that a recalibration has corrected; an acknowledged
    change needs no step.
    """
    if outdated:
        return "compare"
    if checked is None or drift is None:
        return "evaluate"
    if _acknowledgement(checked, drift) is not None:
        return None
    worse = any(area["changed"] and area["change"]["value"] < 0.0 for area in drift["areas"])
    if worse:
        return "retrain"
    tests = (checked.drift or {}).get("probabilities", ())
    if any(test["changed"] for test in tests):
        return "evaluate" if recalibrated else "recalibrate"
    return None
