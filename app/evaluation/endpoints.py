"""Routes for an evaluation's curve, and checks and calibrations of models. Kinds of job declare the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.evaluation import acknowledgements, evaluations, recalibration
from app.evaluation.checks import check_model
from app.evaluation.groups import BY_GROUP
from app.evaluation.schemas import (
    AcknowledgementRequest,
    Fit,
    Fits,
    ModelChecks,
)
from app.evaluation.service import Use, find_fits
from app.findings.finding import Acknowledgement, all_of
from app.http.dependencies import CallerDep, ContextDep
from app.http.idempotency import validated
from app.http.openapi import names_resources
from app.jobs.acceptance import JobCreationDep
from app.jobs.endpoints import JOB, show
from app.jobs.schemas import Job
from app.models import metrics as model_metrics
from app.models import threshold_groups
from app.models.calibration_schemas import CalibrationRequest
from app.models.curve_endpoints import (
    CurveFormDep,
    ListCurveFormDep,
    curve_response,
    list_curve_response,
)
from app.models.curve_schemas import CurveKind, EvaluationCurve, EvaluationRoc
from app.models.metric_endpoints import (
    DefinitionQuery,
    FixedPrevalenceQuery,
    GainsQueryDep,
    MetricsQuery,
)
from app.models.metric_schemas import (
    EvaluationGains,
    EvaluationMetricEstimates,
    metric_estimates_of,
)
from app.models.operating_point_endpoints import CutoffQueryDep
from app.models.operating_point_schemas import (
    CUTOFFS_BY_GROUP,
    TOGETHER,
    EvaluationOperatingPoint,
    GroupGuarantee,
    GuaranteesByGroup,
    guarantee_of,
    point_of,
)
from app.models.operating_points import note_on
from app.models.threshold_group_endpoints import Favourable
from app.models.threshold_group_schemas import EvaluationThresholdGroups
from app.platform.sql import Session
from app.platform.tables import Evaluation as EvaluationRow

if TYPE_CHECKING:
    from core.metrics import GroupGuarantees

RECALIBRATION = replace(JOB, ended_status=200)
"""The job of a recalibration, as the response to the PUT."""

models_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@validated(models_router, "/{ref}/calibration", "calibration", method="PUT")
@models_router.put(
    "/{ref}/calibration",
    status_code=202,
    response_model=Job,
    summary="Recalibrate a model",
    responses={200: {"model": Job, "description": "The job ended within the wait."}},
)
@needs("train")
async def put_calibration(
    *,
    ref: str,
    body: CalibrationRequest,
    caller: CallerDep,
    new: JobCreationDep,
) -> Response:
    """Fit the calibration on another dataset. A job of kind `calibrate` does the work. The new version is then served,
    and earlier ones remain in `history`. Scores and their order do not change.

    Returns 409 `rows_seen` if the model was trained on rows of the dataset, and 409 `approval_required` if a protected
    alias points to the model: then use `POST /v1/alias-requests`. To undo it, use `…/calibration/restore`.
    """
    asked = (ref, body.dataset_id, body.reason)

    def check(session: Session) -> None:
        recalibration.check_direct(session, new.owner, *asked)

    def submit(session: Session) -> dict[str, object]:
        return show(
            recalibration.submit(session, new.settings, new.owner, *asked, author=caller.name)
        )

    if new.only_check:
        return await new.check(check)
    return await new.create_and_respond(RECALIBRATION, submit)


@models_router.get("/{ref}/checks", summary="Check whether a model is ready for use")
@needs("read")
def read_checks(
    *, ref: str, context: ContextDep, caller: CallerDep, favourable: Favourable = "not_flagged"
) -> ModelChecks:
    """Return findings about the stored results: the model ranks better than random; it is better than its baselines;
    its probabilities match the outcomes; it ranks as well on newer rows; their scores and columns have not shifted;
    groups have equal metrics, and pass the four-fifths rule at the threshold in use. No rows are read: for the last
    three, evaluate the model on newer rows. The evaluation on the newest rows answers; if these rows are inconclusive,
    an earlier `no` still applies.
    """
    model, found = context.db.reading(check_model, caller.owner, ref, favourable)
    answers = (each.answer for each in found if each.answer != "not_applicable")
    return ModelChecks(model_id=model.id, answer=all_of(answers), findings=found)


fits_router = APIRouter(prefix="/v1/fits", tags=["evaluations"], route_class=GuardedRoute)


@fits_router.get("", summary="Check which datasets fit a model")
@names_resources
@needs("read")
def read_fits(
    *,
    context: ContextDep,
    caller: CallerDep,
    model: Annotated[
        list[str],
        Query(
            min_length=1,
            description="A model: id, name, name:version or name@alias. Repeat it for several.",
        ),
    ],
    dataset_id: Annotated[
        list[str], Query(min_length=1, description="A dataset. Repeat it for several.")
    ],
    use: Annotated[
        Use,
        Query(
            description="Intended use: an `evaluation`, a `comparison`, `scoring`, which needs no label, or a "
            "`calibration`, which needs rows that the model was not trained on."
        ),
    ] = "evaluation",
) -> Fits:
    """Return for each pair of the given models and datasets (up to 200 pairs) whether they can be used together, and if
    not, why. Use it before you submit a job. No rows are read.
    """
    found = context.db.reading(find_fits, caller.owner, model, dataset_id, use)
    return Fits(data=[Fit.model_validate(each) for each in found])


router = APIRouter(prefix=evaluations.PATH, tags=["evaluations"], route_class=GuardedRoute)


@router.get(
    "/{evaluation_id}/roc",
    response_model=EvaluationRoc,
    summary="Read the ROC curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
async def read_evaluation_roc(
    *,
    evaluation_id: str,
    context: ContextDep,
    caller: CallerDep,
    form: CurveFormDep,
) -> Response:
    """Return points of the curve from (0, 0) to (1, 1), as for a model. Returns 404 until the evaluation is ready, and
    for datasets of pairs or of several labels.
    """

    def work() -> Response:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        return curve_response({"evaluation_id": row.id}, curve, totals, row.level, form)

    return await context.compute(caller.owner, work)


@router.get("/{evaluation_id}/operating-point", summary="Read an operating point")
@needs("read")
async def read_evaluation_operating_point(
    *,
    evaluation_id: str,
    context: ContextDep,
    caller: CallerDep,
    asked: CutoffQueryDep,
    by_group: Annotated[
        Literal["together", "each"] | None,
        Query(
            description="Also return a cutoff for each group of the evaluation with the same guarantee. `together`: "
            "all guarantees hold at once with the confidence. `each`: each guarantee holds separately "
            "with the confidence."
        ),
    ] = None,
) -> EvaluationOperatingPoint:
    """Return a threshold and its rates on the rows of the evaluation, as for a model. With `confidence` the rate is
    guaranteed for future rows from the same population; with `by_group` in each of its groups.
    """

    def work() -> EvaluationOperatingPoint:
        asked.terms.refuse_columns()
        compute = context.db.reading(
            evaluations.prepare_operating_point,
            caller.owner,
            evaluation_id,
            asked.confidence,
            asked.keywords(),
            together=None if by_group is None else by_group == TOGETHER,
        )
        found = compute()
        row, groups = found.evaluation, found.groups
        return EvaluationOperatingPoint(
            evaluation_id=row.id,
            model_id=row.model_id,
            guarantee=guarantee_of(found.guarantee),
            note=note_on(asked.confidence, **asked.keywords()),
            groups=None if groups is None else _guarantees(row, by_group, *groups),
            **dict(point_of(found.point)),
        )

    return await context.compute(caller.owner, work)


@router.put(
    "/{evaluation_id}/acknowledgement",
    response_model=Acknowledgement,
    summary="Acknowledge an evaluation",
)
@needs("train")
def put_acknowledgement(
    *, evaluation_id: str, body: AcknowledgementRequest, context: ContextDep, caller: CallerDep
) -> Acknowledgement:
    """State that you have seen the change that the evaluation found, and give the reason for taking no further
    action. Lists of alarms then show who, when and why, and no next step, until a new evaluation of the model. It
    replaces an earlier acknowledgement. Returns 409 `not_ready` until the evaluation is ready.
    """
    row = context.db.writing(
        acknowledgements.acknowledge, caller.owner, evaluation_id, body.reason, caller.name
    )
    return Acknowledgement.model_validate(row)


@router.delete(
    "/{evaluation_id}/acknowledgement",
    status_code=204,
    summary="Delete the acknowledgement of an evaluation",
)
@needs("train")
def delete_acknowledgement(*, evaluation_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Withdraw the acknowledgement: the change needs attention again. Returns 404 if there is none."""
    context.db.writing(acknowledgements.withdraw, caller.owner, evaluation_id)


def _guarantees(
    row: EvaluationRow,
    by_group: str | None,
    found: GroupGuarantees,
    groups: Sequence[evaluations.GuaranteedGroup],
) -> GuaranteesByGroup:
    assert row.metrics is not None
    return GuaranteesByGroup(
        column=row.metrics[BY_GROUP]["column"],
        by_group=by_group or TOGETHER,
        threshold=found.threshold,
        note=CUTOFFS_BY_GROUP,
        groups=[
            GroupGuarantee.from_row(
                one.found,
                value=one.value,
                errors=getattr(one.found.guarantee, "errors", None),
                broken=getattr(one.found.guarantee, "broken", None),
                fpr=one.fpr,
                tpr=one.tpr,
            )
            for one in groups
        ],
    )


@router.get("/{evaluation_id}/groups", summary="Compare groups at a threshold")
@needs("read")
async def read_evaluation_groups(
    *,
    evaluation_id: str,
    context: ContextDep,
    caller: CallerDep,
    threshold: Annotated[
        float | None,
        Query(
            allow_inf_nan=False,
            description="Flag every row with a score of at least this. Default: the threshold of the evaluation, else "
            "the one with the largest KS distance.",
        ),
    ] = None,
    favourable: Favourable = "not_flagged",
) -> EvaluationThresholdGroups:
    """Return the selection rate, adverse impact ratio, TPR, FPR and calibration of each group, with intervals, on the
    rows of the evaluation: by the column of `group_by`, and by each protected column. Returns 404 `no_groups` for an
    evaluation without groups.
    """

    def work() -> EvaluationThresholdGroups:
        row, found = context.db.reading(
            evaluations.find_groups, caller.owner, evaluation_id, threshold
        )
        of = {"evaluation_id": row.id, "model_id": row.model_id}
        return EvaluationThresholdGroups.model_validate(
            {**of, **threshold_groups.members_of(found.compute(favourable))}
        )

    return await context.compute(caller.owner, work)


@router.get("/{evaluation_id}/metric-estimates", summary="Estimate metrics")
@needs("read")
async def read_evaluation_metric_estimates(
    *,
    evaluation_id: str,
    context: ContextDep,
    caller: CallerDep,
    names: MetricsQuery,
    definition: DefinitionQuery = "interpolated",
    fixed_prevalence: FixedPrevalenceQuery = False,
) -> EvaluationMetricEstimates:
    """Return average precision, precision at k, NDCG and areas on the rows of the evaluation, as for a model."""

    def work() -> EvaluationMetricEstimates:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        found = model_metrics.measured_on(
            curve, totals, names, row.level, definition, fixed_prevalence=fixed_prevalence
        )
        return EvaluationMetricEstimates(
            evaluation_id=row.id, model_id=row.model_id, **metric_estimates_of(found, row.level)
        )

    return await context.compute(caller.owner, work)


@router.get("/{evaluation_id}/gains", summary="Read the gains table")
@needs("read")
async def read_evaluation_gains(
    *, evaluation_id: str, context: ContextDep, caller: CallerDep, asked: GainsQueryDep
) -> EvaluationGains:
    """Return precision, recall and lift at the top of the list, on the rows of the evaluation, as for a model."""

    def work() -> EvaluationGains:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        table = asked.table(curve, totals, row.level)
        return EvaluationGains(evaluation_id=row.id, model_id=row.model_id, **table)

    return await context.compute(caller.owner, work)


@router.get(
    "/{evaluation_id}/curves/{kind}",
    response_model=EvaluationCurve,
    summary="Read a precision-recall, gains or cost curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
async def read_evaluation_list_curve(
    *,
    evaluation_id: str,
    kind: CurveKind,
    context: ContextDep,
    caller: CallerDep,
    form: ListCurveFormDep,
) -> Response:
    """Return a precision-recall, gains or cost curve on the rows of the evaluation, as for a model."""

    def work() -> Response:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        of = {"evaluation_id": row.id, "model_id": row.model_id}
        return list_curve_response(of, kind, curve, totals, form)

    return await context.compute(caller.owner, work)
