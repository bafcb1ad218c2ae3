"""The aliases in use: planned fraction of flagged rows, last evaluation on new rows, and recommended next step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Literal, get_args

from app.evaluation import repository
from app.evaluation.checks import tested_version
from app.evaluation.repository import StandingAnswer, is_recalibrated
from app.evaluation.service import seen_of
from app.feedback.monitor_repository import states_of
from app.findings.finding import Acknowledgement
from app.http.schemas import ModelId, ModelsName, ModelVersion, Resource, Timestamp, one_of
from app.models import repository as model_rows
from app.models.service import VALIDATION
from app.platform.documents import RocMetrics, StoredFeedback, StoredMemo
from app.platform.sql import Session
from app.platform.tables import Evaluation, ModelAlias

NextStep = Literal["evaluate", "recalibrate", "retrain", "compare"]


class LiveAlias(Resource):
    """An alias, the fraction of rows it is expected to flag, and its last evaluation."""

    name: ModelsName
    alias: str
    """The alias, such as `live`."""
    model_id: ModelId
    version: ModelVersion
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
    """True if an evaluation found a change that still applies: none on newer rows has answered otherwise, and no later
    recalibration has handled it. Null without an evaluation."""
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
    answers: dict[tuple[str, str | None], dict[str, StandingAnswer]] = {}
    for each in repository.standing_answers(session, owner, Evaluation.model_id.in_(ids)):
        answers.setdefault((each.model_id, each.alias), {})[each.question] = each
    states = states_of(session, owner, [(alias.name, alias.alias) for alias, _ in found])
    live = []
    for alias, model in found:
        state = states[alias.name, alias.alias]
        evaluation = checked.get((model.id, alias.alias)) or checked.get((model.id, None))
        recalibrated_at = None
        if evaluation is not None and is_recalibrated(
            tested_version(evaluation), model.calibration_version, fits.get(model.id, {})
        ):
            recalibrated_at = calibrated.get(model.id)
        # What was requested for the alias comes before what was requested for its version.
        standing = answers.get((model.id, None), {}) | answers.get((model.id, alias.alias), {})
        changes = [each for each in standing.values() if each.answer == "no"]
        outdated_here = (alias.name, alias.alias) in outdated
        live.append(
            LiveAlias.from_row(
                alias,
                model_id=model.id,
                version=model.version,
                flagged=_flagged(alias, metrics.get(model.id)),
                evaluation_id=None if evaluation is None else evaluation.id,
                evaluated_at=None if evaluation is None else evaluation.created_at,
                changed=None if evaluation is None else bool(changes),
                recalibrated_at=recalibrated_at,
                acknowledgement=_acknowledgement(changes),
                next_step="compare"
                if outdated_here
                else _next_step(evaluation, changes, recalibrated=recalibrated_at is not None),
                feedback=state.settings,
                open_alarms=state.open_alarms,
                alarms_since=state.alarms_since,
                tested_until=state.tested_until,
            )
        )
    return live


def _acknowledgement(changes: Sequence[StandingAnswer]) -> Acknowledgement | None:
    """Return the acknowledgement of the changes, if a person has seen all of them."""
    if not changes or any(each.at is None for each in changes):
        return None
    return Acknowledgement.model_validate(changes[0], from_attributes=True)


def _flagged(alias: ModelAlias, of: RocMetrics | None) -> float | None:
    """Return None without a cutoff."""
    if alias.cutoff is None or of is None:
        return None
    positives, negatives = of["positive_weight"], of["negative_weight"]
    flagged = alias.cutoff["tpr"] * positives + alias.cutoff["fpr"] * negatives
    return flagged / (positives + negatives)


def _next_step(
    checked: Evaluation | None, changes: Sequence[StandingAnswer], *, recalibrated: bool
) -> NextStep | None:
    """Return the recommended step; acknowledged changes need none."""
    if checked is None:
        return "evaluate"
    questions = {each.question for each in changes}
    if _acknowledgement(changes) is not None:
        return None
    if "ranking_kept" in questions:
        return "retrain"
    if "probabilities" in questions:
        return "recalibrate"
    return "evaluate" if recalibrated else None
