"""Is a model ready for use? Six questions, answered from stored results; no row of a dataset is read.

`ranks` and `beats_baselines` are about the validation; the others are answered by the evaluation on the newest rows, if
there is one (`findings.finding.current`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.evaluation import repository
from app.evaluation.drift import validation_areas
from app.evaluation.equal_groups import (
    NO_GROUPS,
    ComparedGroups,
    compared_groups,
    equal_groups,
    tested,
)
from app.evaluation.groups import groups_of
from app.evaluation.metrics import rows_of
from app.evaluation.service import seen_of
from app.feedback.monitor_repository import open_alarms
from app.feedback.scheduled_tests import (
    CALIBRATION,
    GROUP_CALIBRATION,
    RANKING,
    SELECTION,
    UNLABELLED,
)
from app.feedback.wording import say_test
from app.findings.finding import (
    OF_CALIBRATION,
    Acknowledgement,
    Finding,
    FindingRows,
    Question,
    RowsOf,
    current,
    located,
    restored,
)
from app.findings.probabilities import find_errors, probabilities
from app.findings.ranking import ranks
from app.measures import TIME_ALPHA, time_effect
from app.models import calibrations, threshold_groups
from app.models import repository as model_rows
from app.models import service as models
from app.models.simple import say_beats_baselines
from app.platform.sql import Session
from app.platform.tables import (
    Alarm,
    Evaluation,
    Model,
    ModelAlias,
    ModelBaselines,
    ModelCalibration,
)
from core.metrics.four_fifths import Side

LAST = 10
"""The newest evaluations of a model among which the answer to a question is sought."""
_OF_FAMILY: Mapping[str, Question] = {
    RANKING: "ranking_kept",
    UNLABELLED: "stable",
    CALIBRATION: "probabilities",
    SELECTION: "groups",
    GROUP_CALIBRATION: "groups",
}
"""The question that an alarm of the monitor answers with `no`, by its family."""


def tested_version(evaluation: Evaluation) -> int | None:
    """Return the version of the calibration that an evaluation has tested; None if it has tested none."""
    version: int | None = ((evaluation.metrics or {}).get("calibration") or {}).get("version")
    return version


def findings_of(evaluation: Evaluation) -> list[Finding]:
    """Return the stored findings of an evaluation, with its time and its acknowledgement."""
    return [_about(restored(each.document), evaluation) for each in evaluation.findings]


def standing_findings(
    evaluation: Evaluation, model: Model, fits: Mapping[int, int]
) -> list[Finding]:
    """Leave out what a later recalibration has made obsolete. `fits` has the version in which each version of the
    calibration was fitted.
    """
    found = findings_of(evaluation)
    if not repository.is_recalibrated(tested_version(evaluation), model.calibration_version, fits):
        return found
    return [each for each in found if each.question not in OF_CALIBRATION]


def _about(finding: Finding, evaluation: Evaluation) -> Finding:
    """Add what may change after the finding was made."""
    seen = evaluation.acknowledgement if finding.answer == "no" else None
    return replace(
        finding,
        measured_at=evaluation.created_at,
        acknowledgement=None if seen is None else Acknowledgement.model_validate(seen),
    )


def check_model(
    session: Session,
    owner: str,
    ref: str,
    favourable: Side = "not_flagged",
    proposed: ModelAlias | None = None,
) -> tuple[Model, list[Finding]]:
    """Return the model and the findings on whether it is ready for use. `favourable` is the side of the threshold to
    which the four-fifths rule is applied, and `proposed` an alias whose cutoff is to be used, in place of the present
    ones.
    """
    model = models.find(session, owner, ref)
    evaluated = repository.list_of_model(session, owner, model.id, LAST)
    fits = model_rows.calibration_fits(session, [model.id]).get(model.id, {})
    on_new_rows = [
        finding
        for each in evaluated
        if seen_of(each) == "new" and not each.job.spec.get("older")
        for finding in standing_findings(each, model, fits)
    ]
    found = [
        ranks(validation_areas(session, model)[1], _effect_of_time(session, model)),
        say_beats_baselines(model, session.get(ModelBaselines, model.id)),
        _probabilities(model, calibrations.find_served(session, model), on_new_rows),
        current("ranking_kept", on_new_rows) or _not_evaluated("ranking_kept", "auc"),
        current("stable", on_new_rows) or _not_evaluated("stable", "scores", "features"),
        _groups(session, model, evaluated, favourable, proposed),
    ]
    open_ = [
        alarm
        for alarm in open_alarms(session, owner, model.name)
        if alarm.found["model_id"] == model.id
    ]
    return model, [_with_alarms(each, open_) for each in found]


def _not_evaluated(question: Question, *missing: str) -> Finding:
    words = "The model was not evaluated on newer rows."
    return Finding(question, "unknown", words, reason="not_measured", missing=missing)


def _with_alarms(finding: Finding, alarms: Sequence[Alarm]) -> Finding:
    """Answer `no` if an open alarm of the monitor does. The AUC comes before drift of scores and columns."""
    found = [alarm for alarm in alarms if _OF_FAMILY.get(alarm.family) == finding.question]
    if not found:
        return finding
    found.sort(key=lambda alarm: list(_OF_FAMILY).index(alarm.family))
    words, *more = (f"An alarm is open. {say_test(alarm.family, alarm.found)}" for alarm in found)
    return Finding(
        finding.question,
        "no",
        words,
        details=[*more, located(finding), *finding.details],
        rows=FindingRows("monitor", f"decisions of {found[0].name}@{found[0].alias}", found[0].id),
        used=list(dict.fromkeys(alarm.family for alarm in found)),
        measured_at=found[0].raised_at,
    )


def _effect_of_time(session: Session, model: Model) -> str:
    """Return a sentence if a baseline ranks significantly differently on the newest rows; empty otherwise."""
    compared = session.get(ModelBaselines, model.id)
    for each in () if compared is None else compared.baselines:
        found = each.get("random_split")
        if found is not None and found.get("p_value", 1.0) <= TIME_ALPHA:
            return time_effect(each["algorithm"], dict(found))
    return ""


def _probabilities(
    model: Model, served: ModelCalibration | None, on_new_rows: Sequence[Finding]
) -> Finding:
    """Check the served probabilities, on new rows if an evaluation tested them, else at their own fit."""
    if served is None:
        words = f"The model has no probabilities: {calibrations.why_none(model)}."
        return Finding("probabilities", "unknown", words, reason="no_probabilities")
    if (found := current("probabilities", on_new_rows)) is not None:
        return found
    if served.reliability is None:
        words = "One class has too few rows to test the probabilities."
        return Finding("probabilities", "unknown", words, reason="too_few_rows")
    of: RowsOf = "cross_fitted"
    name = "the calibration rows, by cross-fitting (later rows were not tested)"
    if served.reliability.get("later"):
        of = "later_rows"
        name = "the last time window, with a calibration fitted on the earlier windows"
    finding = probabilities(served.reliability, find_errors(served.reliability))
    return replace(finding, rows=FindingRows(of, name))


def _groups(
    session: Session,
    model: Model,
    evaluated: Sequence[Evaluation],
    favourable: Side,
    proposed: ModelAlias | None,
) -> Finding:
    """Compare groups at the cutoff in use, by the newest evaluation with groups on held-out rows, else the
    validation.
    """
    used = threshold_groups.threshold_in_use(session, model, proposed)
    for evaluation in evaluated:
        if not tested(groups_of(evaluation)) or seen_of(evaluation) in (None, "trained"):
            continue
        compared = compared_groups(evaluation, used)
        found = equal_groups(compared, rows_of(evaluation.metrics or {}), favourable)
        rows = FindingRows("evaluation", _named(evaluation), evaluation.id, evaluation.rows_until)
        return _about(replace(found, rows=rows), evaluation)
    stored = model_rows.find_groups(session, model.id)
    if stored is None:
        return NO_GROUPS
    n_rows = sum(group["rows"] for group in stored.columns[0]["groups"])
    compared = ComparedGroups(stored.columns, stored.level, used, stored.steps)
    rows = FindingRows("validation", "the validation rows")
    return replace(equal_groups(compared, n_rows, favourable), rows=rows)


def _named(evaluation: Evaluation) -> str:
    version = evaluation.dataset_version
    return evaluation.dataset_name + ("" if version is None else f":{version}")
