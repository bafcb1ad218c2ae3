"""What is read off the curve of an evaluation. The other routes are declared with the kinds of job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.evaluation import evaluations, recalibration
from app.evaluation.checks import check_model
from app.evaluation.groups import BY_GROUP
from app.evaluation.schemas import Fit, Fits, ModelCheck, ModelChecks
from app.evaluation.service import Use, find_fits
from app.http.dependencies import CallerDep, ContextDep
from app.http.idempotency import validated
from app.http.openapi import names_resources
from app.http.schemas import Interval
from app.jobs.acceptance import JobCreationDep
from app.jobs.endpoints import PATH, read_job_again, show
from app.jobs.schemas import Job
from app.models import service as models
from app.models.endpoints import (
    CurveFormDep,
    CutoffQueryDep,
    DefinitionQuery,
    FixedPrevalenceQuery,
    GainsQueryDep,
    ListCurveFormDep,
    MetricsQuery,
    answer_curve,
    answer_list_curve,
)
from app.models.schemas import (
    CUTOFFS_BY_GROUP,
    TOGETHER,
    CalibrationRequest,
    CurveKind,
    EvaluationCurve,
    EvaluationGains,
    EvaluationMetricEstimates,
    EvaluationOperatingPoint,
    EvaluationRoc,
    GroupGuarantee,
    GuaranteesByGroup,
    guarantee_of,
    metric_estimates_of,
    point_of,
)
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import Evaluation as EvaluationRow

if TYPE_CHECKING:
    from core.metrics import GroupGuarantees

models_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@validated(models_router, "/{ref}/calibration", "calibration", method="PUT")
@models_router.put(
    "/{ref}/calibration",
    status_code=202,
    response_model=Job,
    summary="Recalibrate on a newer dataset",
    responses={200: {"model": Job, "description": "The job ended within the wait."}},
)
@needs("train")
async def put_calibration(
    *,
    ref: str,
    body: CalibrationRequest,
    new: JobCreationDep,
) -> Response:
    """Learn how scores become probabilities from another dataset. A job of kind `calibrate` does the work; then the new
    version is served, and earlier ones stay in `history`. Scores and their order stay as they are.

    409 `rows_seen` if the model was trained on rows of the dataset.
    """
    if new.only_check:
        return await new.check(recalibration.check, new.owner, ref, body.dataset_id)
    accepted = await new.once(_calibrate, new.settings, new.owner, ref, body.dataset_id)
    return await new.answer(accepted, PATH, read_job_again, done=200)


def _calibrate(
    session: Session, settings: Settings, owner: str, ref: str, dataset_id: str
) -> dict[str, object]:
    return show(recalibration.submit(session, settings, owner, ref, dataset_id))


@models_router.get("/{ref}/checks", summary="Check whether the model may be used")
@needs("read")
def read_checks(*, ref: str, context: ContextDep, caller: CallerDep) -> ModelChecks:
    """Five checks of what is stored about the model: it ranks better than chance; better than its controls; its
    probabilities are right; nothing has changed on newer rows; groups are treated alike. No row is read: evaluate the
    model on newer rows, and by groups, for the last three.
    """
    model, found = context.db.reading(check_model, caller.owner, ref)
    told = {each.passed for each in found}
    return ModelChecks(
        model_id=model.id,
        passed=False if False in told else None if None in told else True,
        checks=[ModelCheck(**vars(each)) for each in found],
    )


fits_router = APIRouter(prefix="/v1/fits", tags=["evaluations"], route_class=GuardedRoute)


@fits_router.get("", summary="See which models and datasets fit each other")
@names_resources
@needs("read")
def read_fits(
    *,
    context: ContextDep,
    caller: CallerDep,
    model: Annotated[
        list[str],
        Query(
            min_length=1, description="A model: id, name, name:version or name@alias. Repeat it."
        ),
    ],
    dataset_id: Annotated[
        list[str], Query(min_length=1, description="A dataset. Repeat it for several.")
    ],
    use: Annotated[
        Use,
        Query(
            description="What for: an `evaluation`, a `comparison`, `scoring`, which needs no label, or a "
            "`calibration`, which needs rows that the model was not trained on."
        ),
    ] = "evaluation",
) -> Fits:
    """Before a job is submitted: for each of the models and each of the datasets, at most 200 pairs, whether they can
    be used together, and if not, why. No rows are read.
    """
    found = context.db.reading(find_fits, caller.owner, model, dataset_id, use)
    return Fits(
        data=[
            Fit(
                model=each.model,
                dataset_id=each.dataset_id,
                fits=each.reason is None,
                reason=each.reason,
            )
            for each in found
        ]
    )


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
    """Points of the curve from (0, 0) to (1, 1), as for a model. 404 until the evaluation is ready, and for datasets of
    pairs or of several labels.
    """

    def work() -> Response:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        return answer_curve({"evaluation_id": row.id}, curve, totals, row.level, form)

    return await context.compute(caller.owner, work)


@router.get("/{evaluation_id}/operating-point", summary="Read one operating point")
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
            description="Also a cut for each group of the evaluation that keeps the promise there. `together`: all "
            "promises hold at once with the confidence. `each`: each by itself."
        ),
    ] = None,
) -> EvaluationOperatingPoint:
    """A threshold and its consequences on the rows of the evaluation, as for a model. With `confidence` the rate is
    promised of future rows drawn like these; with `by_group` in each of its groups.
    """

    def work() -> EvaluationOperatingPoint:
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
            groups=None if groups is None else _guarantees(row, by_group, *groups),
            **dict(point_of(found.point)),
        )

    return await context.compute(caller.owner, work)


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
            GroupGuarantee(
                value=one.value,
                threshold=one.found.threshold,
                rows=one.found.rows,
                needed=one.found.needed,
                errors=None if one.found.guarantee is None else one.found.guarantee.errors,
                broken=None if one.found.guarantee is None else one.found.guarantee.broken,
                fpr=None if one.fpr is None else Interval(**one.fpr._asdict()),
                tpr=None if one.tpr is None else Interval(**one.tpr._asdict()),
            )
            for one in groups
        ],
    )


@router.get("/{evaluation_id}/metric-estimates", summary="Compute figures of the ranking")
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
    """Average precision, precision at k, NDCG and areas on the rows of the evaluation, as for a model."""

    def work() -> EvaluationMetricEstimates:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        found = models.measured_on(
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
    """Precision, recall and lift of the first rows of the list on the rows of the evaluation, as for a model."""

    def work() -> EvaluationGains:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        table = asked.table(curve, totals, row.level)
        return EvaluationGains(evaluation_id=row.id, model_id=row.model_id, **table)

    return await context.compute(caller.owner, work)


@router.get(
    "/{evaluation_id}/curves/{kind}",
    response_model=EvaluationCurve,
    summary="Read a curve of the list",
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
    """The curve of precision and recall, of gains, or of costs on the rows of the evaluation, as for a model."""

    def work() -> Response:
        row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
        of = {"evaluation_id": row.id, "model_id": row.model_id}
        return answer_list_curve(of, kind, curve, totals, form)

    return await context.compute(caller.owner, work)
