"""/v1/models: what was learnt, how good it is, what it is made of, and the names that move."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep, TaggedFilterDep
from app.http.responses import StoredFile, etag_matches, json_response
from app.models import calibrations, margins, reason_codes
from app.models import service as models
from app.models.artifacts import artifact_of
from app.models.schemas import (
    AbsentPart,
    Alias,
    AliasPage,
    AliasSummary,
    AliasTarget,
    AnyMetrics,
    BandKind,
    Calibration,
    CurveKind,
    Model,
    ModelCurve,
    ModelGains,
    ModelMetricEstimates,
    ModelPage,
    ModelParts,
    OperatingPoint,
    OperatingPoints,
    Part,
    ReasonCodes,
    ReasonCodesRequest,
    Roc,
    WindowBounds,
    alias_of,
    bounds_of,
    calibration_of,
    cutoffs_of,
    finite,
    gains_of,
    guarantee_of,
    listed_of,
    metric_estimates_of,
    metrics_of,
    model_of,
    point_of,
    reason_codes_of,
)
from app.models.service import PartName
from app.platform.errors import Invalid, refuse_all, shown
from app.platform.sql import NEWEST_FIRST, Session
from app.platform.tables import Model as ModelRow
from app.platform.tables import ModelCalibration
from core import metrics
from core.metrics.window import MIN_WIDTH

if TYPE_CHECKING:
    from core.metrics import ClassTotals, Costs, Guarantee, RocCurve
    from core.metrics import OperatingPoint as CurvePoint

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


async def _forget(request: Request) -> Callable[[str, str], object]:
    forget: Callable[[str, str], object] = request.app.state.models.forget
    return forget


ForgetDep = Annotated[Callable[[str, str], object], Depends(_forget)]
"""Makes the process drop a loaded model, by owner and id. The cache of models is in a higher package."""

CurvePart = Annotated[
    Part,
    Query(
        description="Part of the data. `validation`: the held-out rows. `train`: the training rows."
    ),
]


ModelSort = Annotated[
    Literal["created_at", "-created_at", "name", "-name", "auc", "-auc"],
    Query(
        description="Sort key; a leading `-` sorts in descending order. `name`: by name, then version. `auc`: by "
        "AUC on the validation rows; models without one come last."
    ),
]


@router.get("", summary="List models")
@needs("read")
def list_models(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    only: TaggedFilterDep,
    sort: ModelSort = NEWEST_FIRST,
    name: Annotated[str | None, Query(description="Only models with exactly this name.")] = None,
    dataset_id: Annotated[
        str | None, Query(description="Only models trained on this dataset.")
    ] = None,
    aliased: Annotated[
        bool, Query(description="`true`: only models that an alias points to.")
    ] = False,
    outdated: Annotated[
        bool,
        Query(
            description="`true`: only models that an alias points to although there is a newer version of their name."
        ),
    ] = False,
) -> ModelPage:
    """Return the owner's models, in the order of `sort`, each with its aliases and its AUC on the validation rows."""
    page: Any = context.db.reading(
        models.list_page,
        caller.owner,
        name=name,
        dataset_id=dataset_id,
        aliased=aliased,
        outdated=outdated,
        only=replace(only, sort=sort),
        **vars(paging),
    )
    return ModelPage(
        data=[listed_of(row) for row in page.data], has_more=page.has_more, next=page.next
    )


@router.delete("/{ref}", status_code=204, summary="Delete a model")
@needs("train")
def delete_model(
    ref: Annotated[str, Path(description="Id of the model.")],
    context: ContextDep,
    caller: CallerDep,
    forget: ForgetDep,
) -> None:
    """Move a model to the trash. It can be restored for 30 days. Returns 409 while an alias points to the model, or
    while an unfinished job evaluates it, scores with it or recalibrates it.
    """
    context.db.writing(models.delete, caller.owner, ref)
    forget(caller.owner, ref)


@router.get("/{ref}/metrics", summary="Read the metrics")
@needs("read")
async def read_metrics(
    *, ref: str, context: ContextDep, caller: CallerDep, on: CurvePart = "validation"
) -> AnyMetrics:
    """Return the AUC, partial AUCs and the TPR at several FPRs, with confidence intervals."""

    def read(session: Session) -> Callable[[], dict[str, Any]]:
        return models.prepare_metrics(session, models.find(session, caller.owner, ref), on)

    return await context.compute(caller.owner, lambda: metrics_of(context.db.reading(read)()))


@router.get(
    "/{ref}/artifact",
    response_class=StoredFile,
    summary="Download the model",
    responses={
        200: {
            "description": "A safetensors file; `core.load` reads it.",
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        },
        304: {"description": "The file has not changed since the caller's copy."},
    },
)
@needs("read")
def read_artifact(ref: str, request: Request, context: ContextDep, caller: CallerDep) -> Response:
    """Return the file of the model. The ETag is its SHA-256."""
    model = context.db.reading(models.find, caller.owner, ref)
    tag = f'"{model.artifact_sha256}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if etag_matches(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return StoredFile(
        context.blobs.fetch(artifact_of(model)),
        headers=headers | {"X-Content-SHA256": model.artifact_sha256},
        media_type="application/octet-stream",
        filename=f"{model.name}-{model.version}.safetensors",
    )


@router.get("/{name}/aliases", summary="List aliases")
@needs("read")
def list_aliases(name: str, context: ContextDep, caller: CallerDep, paging: PagingDep) -> AliasPage:
    """Return the aliases of this name and the model that each points to, the most recently changed first."""
    page = context.db.reading(
        models.list_aliases, caller.owner, name, limit=paging.limit, after=paging.after
    )
    return AliasPage(
        data=[AliasSummary.model_validate(row) for row in page.data],
        has_more=page.has_more,
        next=page.next,
    )


@router.get("/{name}/aliases/{alias}", summary="Read an alias")
@needs("read")
def read_alias(
    *, name: str, alias: str, context: ContextDep, caller: CallerDep, response: Response
) -> Alias:
    """Return the model that the alias points to, its guarantee and cutoff, and the models that it pointed to before."""
    shown = alias_of(context.db.reading(models.get_alias, caller.owner, name, alias))
    response.headers["ETag"] = f'"{shown.revision}"'
    return shown


IfMatch = Annotated[
    str | None,
    Header(
        description="ETag of the alias. Required to change or delete an existing alias.",
        examples=['"3"'],
    ),
]


@router.put(
    "/{name}/aliases/{alias}",
    summary="Move an alias",
    responses={201: {"model": Alias, "description": "The alias was created."}},
)
@needs("train")
def put_alias(
    *,
    name: str,
    alias: str,
    body: AliasTarget,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: Annotated[
        str | None,
        Header(
            description="`*`: create the alias, or return an error if it exists.", examples=["*"]
        ),
    ] = None,
) -> Alias:
    """Point the alias to a version of this name. To roll back, send an earlier `model_id` from the alias's history.



    With a `guarantee`, scores under `name@alias` have a `flag`: whether the score reaches the threshold with which the
    current version meets the guarantee. The alias keeps its guarantee when it moves, until it gets another one or null.
    Returns 422 if the version cannot meet it: it has no validation curve, or too few validation rows for the
    confidence.



    A `memo` documents the decision. It is stored with this revision and shown in the report of the model.
    """
    state, created = context.db.writing(
        models.set_alias,
        caller.owner,
        name,
        alias,
        body.model_id,
        guarantee=body.new_guarantee(),
        memo=None if body.memo is None else body.memo.as_stored(),
        author=caller.key_name,
        if_revision=_revision(if_match),
        must_be_new=_must_be_new(if_none_match),
    )
    shown = alias_of(state)
    response.status_code = 201 if created else 200
    response.headers["ETag"] = f'"{shown.revision}"'
    return shown


@router.delete("/{name}/aliases/{alias}", status_code=204, summary="Delete an alias")
@needs("train")
def delete_alias(
    *,
    name: str,
    alias: str,
    context: ContextDep,
    caller: CallerDep,
    if_match: IfMatch = None,
) -> None:
    """Remove the alias. The model is kept. Other processes apply the change within a second.



    The newest 100 revisions of the history are kept as long as the audit log (`RANKWRIGHT_KEEP_AUDIT_DAYS`). If the
    alias is created again, it continues this history.
    """
    context.db.writing(
        models.remove_alias, caller.owner, name, alias, if_revision=_revision(if_match)
    )


@router.get("/{name}/reason-codes", summary="Read the reason codes")
@needs("read")
def read_reason_codes(
    *,
    name: str,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    revision: Annotated[
        int | None, Query(ge=1, lt=2**31, description="Revision to read. Default: the latest.")
    ] = None,
) -> ReasonCodes:
    """Return the reason codes used for all versions of this name. Returns 404 if it has none; reasons then have generic
    texts.
    """
    shown = reason_codes_of(context.db.reading(reason_codes.read, caller.owner, name, revision))
    response.headers["ETag"] = f'"{shown.revision}"'
    return shown


@router.put(
    "/{name}/reason-codes",
    summary="Replace the reason codes",
    responses={201: {"model": ReasonCodes, "description": "The name has its first reason codes."}},
)
@needs("train")
def put_reason_codes(
    *,
    name: str,
    body: ReasonCodesRequest,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: Annotated[
        str | None,
        Header(
            description="ETag of the reason codes. Required if the name already has some.",
            examples=['"3"'],
        ),
    ] = None,
    if_none_match: Annotated[
        str | None,
        Header(
            description="`*`: return an error if the name already has reason codes.", examples=["*"]
        ),
    ] = None,
) -> ReasonCodes:
    """Set the codes and texts of reasons for all versions of this name, so that a retrained model states its reasons
    like the one before. Identical entries change nothing. Other entries create a new revision, whose number is returned
    with reasons; the newest 100 revisions are kept. Returns 422 for features that the latest version does not have, and
    for more than 256 KiB.
    """
    found, created = context.db.writing(
        reason_codes.replace,
        caller.owner,
        name,
        [entry.as_stored() for entry in body.entries],
        if_revision=_revision(if_match),
        must_be_new=_must_be_new(if_none_match),
    )
    shown = reason_codes_of(found)
    response.status_code = 201 if created else 200
    response.headers["ETag"] = f'"{shown.revision}"'
    return shown


def _revision(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    text = if_match.strip().strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"If-Match must be the ETag that was read, got {if_match[:100]!r}")
    return int(text)


def _must_be_new(if_none_match: str | None) -> bool:
    if if_none_match not in (None, "*"):
        raise Invalid(f"If-None-Match can only be * here, got {if_none_match[:100]!r}")
    return if_none_match == "*"


_ROWS_PER_CHUNK = 10_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CurveForm:
    """How to show a curve."""

    max_points: int
    format: Literal["json", "csv"]
    band: BandKind | None


MaxPoints = Annotated[
    int, Query(ge=2, le=100_000, description="Maximum number of points of the curve.")
]
CurveFormat = Annotated[
    Literal["json", "csv"],
    Query(
        description="Format of the response. `json`: at most `max_points` points. `csv`: all points."
    ),
]
BandParameter = Annotated[
    BandKind | None,
    Query(
        description="Add confidence limits for the TPR. `pointwise`: for each point separately. `simultaneous`: "
        "for the whole curve at once."
    ),
]


async def _form(
    max_points: MaxPoints = 1000,
    format: CurveFormat = "json",
    band: BandParameter = None,
) -> CurveForm:
    return CurveForm(max_points, format, band)


CurveFormDep = Annotated[CurveForm, Depends(_form)]


def answer_curve(
    of: Mapping[str, Any], curve: RocCurve, totals: ClassTotals, level: float, form: CurveForm
) -> Response:
    """Return the curve in that form; `of` are further members of the JSON."""
    if form.format == "csv":
        columns = _columns(curve, curve, totals, level, form.band)
        return StreamingResponse(_csv(columns), media_type="text/csv; charset=utf-8")
    return json_response(_answer(of, curve, totals, level, form))


def _columns(
    shown: RocCurve, curve: RocCurve, totals: ClassTotals, level: float, band: BandKind | None
) -> dict[str, Floats]:
    columns = {"fpr": shown.fpr, "tpr": shown.tpr, "threshold": shown.thresholds}
    if band is not None:
        limits = metrics.roc_band_on_curve(curve, totals, shown.fpr, kind=band, level=level)
        columns |= {"low": limits.low, "high": limits.high}
    return columns


def _answer(
    of: Mapping[str, Any], curve: RocCurve, totals: ClassTotals, level: float, form: CurveForm
) -> dict[str, Any]:
    shown = curve.thin(form.max_points)
    columns = _columns(shown, curve, totals, level, form.band)
    points = [
        dict(zip(columns, point, strict=True)) | {"threshold": finite(point[2])}
        for point in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    answer = {**of, "exact": len(shown) == len(curve), "total_points": len(curve)}
    if form.band is not None:
        answer["band"] = {"kind": form.band, "level": level}
    return answer | {"points": points}


def _csv(columns: Mapping[str, Floats]) -> Iterator[str]:
    yield ",".join(columns) + "\n"
    for start in range(0, len(next(iter(columns.values()))), _ROWS_PER_CHUNK):
        part = (column[start : start + _ROWS_PER_CHUNK].tolist() for column in columns.values())
        yield "".join(
            ",".join(repr(value) if math.isfinite(value) else "" for value in row) + "\n"
            for row in zip(*part, strict=True)
        )


@router.get(
    "/{ref}/roc",
    response_model=Roc,
    summary="Read the ROC curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
async def read_roc(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    form: CurveFormDep,
    on: CurvePart = "validation",
) -> Response:
    """Return points of the curve from (0, 0) to (1, 1). If the curve has more than `max_points`, the response has those
    on the upper hull, and others evenly spaced along the curve. For models with more than 1,000,000 distinct scores,
    the service stores 1,000,000 points: the first 100,000, the upper hull, and others evenly spaced. Values read
    between them are too low by less than 0.00001 in FPR + TPR; areas and their intervals use all rows.
    """

    def work() -> Response:
        of = context.db.reading(models.roc, caller.owner, ref, on)
        return answer_curve(_of(of), of.curve, of.totals, of.level, form)

    return await context.compute(caller.owner, work)


def _of(measured: models.PartCurve) -> dict[str, Any]:
    model, part = measured.model, measured.part
    return {
        "model_id": model.id,
        "on": part,
        "approximate": models.is_approximate(model, part),
    }


@dataclass(frozen=True)
class CostTerms:
    """The costs of both errors, and the fraction of positives among future rows."""

    false_positive: float | None
    false_negative: float | None
    prevalence: float | None

    def costs(self) -> Costs | None:
        """Return both costs, or None; raises Invalid if only one of them is given."""
        return _costs(self.false_positive, self.false_negative)


async def _terms(
    cost_false_positive: Annotated[
        float | None,
        Query(
            ge=0,
            allow_inf_nan=False,
            description="Cost of a false positive: a negative row that is flagged.",
        ),
    ] = None,
    cost_false_negative: Annotated[
        float | None,
        Query(
            ge=0,
            allow_inf_nan=False,
            description="Cost of a false negative: a positive row that is not flagged.",
        ),
    ] = None,
    prevalence: Annotated[
        float | None,
        Query(
            gt=0,
            lt=1,
            description="Fraction of positives among future rows. Default: that of the data.",
        ),
    ] = None,
) -> CostTerms:
    return CostTerms(cost_false_positive, cost_false_negative, prevalence)


CostTermsDep = Annotated[CostTerms, Depends(_terms)]


@dataclass(frozen=True)
class CutoffQuery:
    """The cut that is asked for: at a rate, a threshold or a share of the rows, or of least cost; and how sure its rate
    must be.
    """

    fpr: float | None
    tpr: float | None
    threshold: float | None
    flagged: float | None
    confidence: float | None
    terms: CostTerms

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `core.metrics.operating_point`."""
        return {
            "fpr": self.fpr,
            "tpr": self.tpr,
            "threshold": self.threshold,
            "flagged": self.flagged,
            "costs": self.terms.costs(),
            "prevalence": self.terms.prevalence,
        }


Flagged = Annotated[
    float | None,
    Query(
        ge=0,
        le=1,
        description="Maximum fraction of the rows to flag: returns the lowest threshold that flags no more. With "
        "costs, it returns the cheapest such threshold. All thresholds of the curve are considered.",
    ),
]


async def _cutoff_query(
    terms: CostTermsDep,
    fpr: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Maximum FPR: returns the threshold with the highest TPR at no more than this FPR.",
        ),
    ] = None,
    tpr: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Minimum TPR: returns the threshold with the lowest FPR at no less than this TPR.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        Query(allow_inf_nan=False, description="Flag every row with a score of at least this."),
    ] = None,
    flagged: Flagged = None,
    confidence: Annotated[
        float | None,
        Query(
            gt=0,
            lt=1,
            description="Guarantee `fpr` or `tpr` for future rows with this confidence, instead of reading it off "
            "these rows. The threshold is then more conservative. Returns an error that says how many "
            "rows are needed if there are too few.",
        ),
    ] = None,
) -> CutoffQuery:
    return CutoffQuery(fpr, tpr, threshold, flagged, confidence, terms)


CutoffQueryDep = Annotated[CutoffQuery, Depends(_cutoff_query)]


@router.get("/{ref}/operating-point", summary="Read an operating point")
@needs("read")
async def read_operating_point(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    asked: CutoffQueryDep,
    on: CurvePart = "validation",
) -> OperatingPoint:
    """Return a threshold with its rates, precision, lift and cost, with confidence intervals. Pass one of `fpr`, `tpr`,
    `threshold` and `flagged`, or only both costs for the threshold with the lowest cost. With costs, the response has
    the mean cost per row. With `confidence` the rate is guaranteed: see `guarantee`.
    """

    def work() -> OperatingPoint:
        of = context.db.reading(models.roc, caller.owner, ref, on)
        found = models.cutoff_on(of, confidence=asked.confidence, **asked.keywords())
        return _point_of(of.model, on, *found)

    return await context.compute(caller.owner, work)


def _point_of(
    model: ModelRow, on: Part, point: CurvePoint, guarantee: Guarantee | None
) -> OperatingPoint:
    return OperatingPoint(
        model_id=model.id,
        on=on,
        approximate=models.is_approximate(model, on),
        guarantee=guarantee_of(guarantee),
        **dict(point_of(point)),
    )


MaxCutoffs = Annotated[int, Query(ge=10, le=1000, description="Maximum number of thresholds.")]


@router.get(
    "/{ref}/operating-points",
    response_model=OperatingPoints,
    summary="List operating points",
)
@needs("read")
async def read_operating_points(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    terms: CostTermsDep,
    on: CurvePart = "validation",
    points: MaxCutoffs = 200,
    flagged: Flagged = None,
) -> Response:
    """Return many thresholds at once, each with the same metrics as `…/operating-point`, for example for a slider. Half
    of them are evenly spaced along the curve. The other half are evenly spaced in log FPR, for the top of the list.
    """

    def read(session: Session) -> tuple[Callable[[], models.CutoffsAlong], ModelCalibration | None]:
        measured = models.roc(session, caller.owner, ref, on)
        compute = models.prepare_cutoffs(
            session,
            measured,
            max_points=points,
            costs=terms.costs(),
            prevalence=terms.prevalence,
            flagged=flagged,
        )
        return compute, calibrations.find_served(session, measured.model)

    def work() -> Response:
        compute, calibration = context.db.reading(read)
        return json_response(_cutoffs_of(compute(), calibration, on))

    return await context.compute(caller.owner, work)


def _cutoffs_of(
    found: models.CutoffsAlong, calibration: ModelCalibration | None, on: Part
) -> OperatingPoints:
    thresholds = [point.threshold for point in found.points]
    return cutoffs_of(found, on, calibrations.probabilities_at(calibration, thresholds))


_COSTS = ("cost_false_positive", "cost_false_negative", "prevalence")
_PARAMETERS: Mapping[PartName, tuple[str, ...]] = {
    "metrics": ("on",),
    "roc": ("on", "max_points", "band"),
    "operating_points": ("on", "points", "flagged", *_COSTS),
    "operating_point": ("on", "fpr", "tpr", "threshold", "flagged", "confidence", *_COSTS),
}
"""The query parameters of each part that can be read with a model."""


def _split_parts(given: Sequence[str]) -> list[str]:
    names = [name for text in given for name in text.split(",")]
    for name in names:
        if name not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise ValueError(f"include must be one or more of {known}; got {shown(name)}")
    return names


async def _included(
    request: Request,
    include: Annotated[
        list[PartName],
        BeforeValidator(_split_parts),
        Query(
            description="Parts to include in `included`, each as its own route returns it. Repeat the parameter or "
            "give several, separated by commas. The other parameters apply to these parts.",
            examples=[["metrics", "roc"]],
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> frozenset[PartName]:
    """Return the requested parts. Raises Invalid for a parameter that belongs to none of them."""
    used = {"include", *(name for part in include for name in _PARAMETERS[part])}
    errors = []
    for name in request.query_params:
        if name not in used:
            parts = [part for part, names in _PARAMETERS.items() if name in names]
            detail = f"{name} must come with include={' or '.join(parts)}"
            errors.append({"parameter": name, "detail": detail})
    refuse_all(errors)
    return frozenset(include)


@router.get("/{ref}", response_model=Model, summary="Read a model")
@needs("read")
async def read_model(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    include: Annotated[frozenset[PartName], Depends(_included)],
    on: CurvePart = "validation",
    max_points: MaxPoints = 1000,
    band: BandParameter = None,
    points: MaxCutoffs = 200,
    cutoff: CutoffQueryDep,
) -> Response:
    """Return the model and how it was trained. With `include`, the response also has its metrics, its curve and its
    operating points, on the rows of `on`. `included.absent` lists the parts that the model does not have, and why.
    """
    if not include:
        return await run_in_threadpool(
            lambda: json_response(model_of(*context.db.reading(models.get, caller.owner, ref)))
        )
    costs = {"costs": cutoff.terms.costs(), "prevalence": cutoff.terms.prevalence}
    requested = models.PartsQuery(
        include,
        on,
        point={"confidence": cutoff.confidence, **cutoff.keywords()},
        cutoffs={"max_points": points, "flagged": cutoff.flagged, **costs},
    )

    form = CurveForm(max_points, "json", band)

    def read(
        session: Session,
    ) -> tuple[Callable[[], models.ModelWithParts], ModelCalibration | None]:
        model = models.find(session, caller.owner, ref)
        compute = models.prepare_parts(session, model, requested)
        return compute, calibrations.find_served(session, model)

    def work() -> Response:
        compute, calibration = context.db.reading(read)
        model, aliases, chosen, found = compute()
        curve = found.curve
        answer = model_of(model, aliases, chosen)
        answer.included = ModelParts(
            metrics=None if found.metrics is None else metrics_of(found.metrics),
            roc=None,
            operating_points=None
            if found.cutoffs is None
            else _cutoffs_of(found.cutoffs, calibration, on),
            operating_point=None if found.point is None else _point_of(model, on, *found.point),
            absent=[
                AbsentPart(part=part, code=error.code, detail=error.detail)
                for part, error in found.absent.items()
            ],
        )
        document = answer.model_dump(mode="json", by_alias=True)
        if curve is not None and "roc" in include:
            # Not as a model: to make one of each point would hold up all other threads.
            shown = _answer(_of(curve), curve.curve, curve.totals, curve.level, form)
            document["included"]["roc"] = shown
        return json_response(document)

    return await context.compute(caller.owner, work)


MetricsQuery = Annotated[
    list[str],
    Query(
        alias="metric",
        min_length=1,
        max_length=models.MAX_METRICS,
        description="Metric to compute; repeat it for several. `average_precision`; `precision@100` and "
        "`precision@1%`, at the top of the list, and `lift@15%`; `precision_at_recall:0.8`; `ndcg` "
        "and `ndcg@10`; `auc`; `gini`; `pauc:0,0.05`, over a window of FPR, and `empirical:0,0.05`, "
        "the fraction of pairs strictly in order in the window; `two_way:0.1,0.8`, the area with an "
        "FPR of at most 0.1 and a TPR of at least 0.8.",
    ),
]


DefinitionQuery = Annotated[
    Literal["interpolated", "empirical"],
    Query(
        description="Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction "
        "of pairs strictly in order, over the positives and the negatives of certain ranks "
        "(Narasimhan & Agarwal 2016, eq. 2)."
    ),
]


FixedPrevalenceQuery = Annotated[
    bool,
    Query(
        description="`true`: assume that the population has exactly the fraction of positives of these rows. By "
        "default, the intervals allow for its sampling variation."
    ),
]


@router.get("/{ref}/metric-estimates", summary="Estimate metrics")
@needs("read")
async def read_metric_estimates(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    names: MetricsQuery,
    on: CurvePart = "validation",
    definition: DefinitionQuery = "interpolated",
    fixed_prevalence: FixedPrevalenceQuery = False,
) -> ModelMetricEstimates:
    """Return average precision, precision at k, NDCG and areas, each with its confidence interval and a test against
    random scores, from the model's curve on one part of the data.
    """

    def work() -> ModelMetricEstimates:
        of = context.db.reading(models.roc, caller.owner, ref, on)
        found = models.measured_on(
            of.curve, of.totals, names, of.level, definition, fixed_prevalence=fixed_prevalence
        )
        return ModelMetricEstimates(
            model_id=of.model.id,
            on=on,
            approximate=models.is_approximate(of.model, on),
            **metric_estimates_of(found, of.level),
        )

    return await context.compute(caller.owner, work)


@dataclass(frozen=True)
class GainsQuery:
    """The sizes of a gains table, and the fraction of positives that it assumes."""

    shares: Sequence[float]
    counts: Sequence[int]
    prevalence: float | None

    def table(self, curve: RocCurve, totals: ClassTotals, level: float) -> dict[str, Any]:
        """Return the table of a curve: the fields of `Gains`."""
        rows = models.gains_on(
            curve,
            totals,
            level,
            shares=self.shares,
            counts=self.counts,
            prevalence=self.prevalence,
        )
        share = totals.prevalence if self.prevalence is None else self.prevalence
        return gains_of(rows, share, level)


async def _gains_query(
    share: Annotated[
        list[Annotated[float, Field(ge=MIN_WIDTH, le=1)]] | None,
        Query(
            max_length=models.MAX_SIZES,
            description="Size of the list as a fraction of all rows; repeat it for several. Default, without `count`: "
            "0.01, 0.02, 0.05, 0.1, 0.2, …, 1.",
        ),
    ] = None,
    count: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]] | None,
        Query(
            max_length=models.MAX_SIZES,
            description="Size of the list as a number of rows, at most all; repeat it for several.",
        ),
    ] = None,
    prevalence: Annotated[
        float | None,
        Query(
            ge=MIN_WIDTH,
            le=1.0 - MIN_WIDTH,
            description="Fraction of positives among future rows, assumed to be exact. Default: that of the data, "
            "with intervals that allow for its sampling variation. Not with `count`.",
        ),
    ] = None,
) -> GainsQuery:
    return GainsQuery(share or (), count or (), prevalence)


GainsQueryDep = Annotated[GainsQuery, Depends(_gains_query)]


@router.get("/{ref}/gains", summary="Read the gains table")
@needs("read")
async def read_gains(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    asked: GainsQueryDep,
    on: CurvePart = "validation",
) -> ModelGains:
    """Return precision, recall and lift at the top of the list for several list sizes, with confidence intervals."""

    def work() -> ModelGains:
        of = context.db.reading(models.roc, caller.owner, ref, on)
        table = asked.table(of.curve, of.totals, of.level)
        return ModelGains(
            model_id=of.model.id, on=on, approximate=models.is_approximate(of.model, on), **table
        )

    return await context.compute(caller.owner, work)


@dataclass(frozen=True)
class ListCurveForm:
    """How to show a curve of the list, and the fraction of positives that it assumes."""

    max_points: int
    format: Literal["json", "csv"]
    prevalence: float | None


async def _list_form(
    max_points: MaxPoints = 1000,
    format: CurveFormat = "json",
    prevalence: Annotated[
        float | None,
        Query(
            ge=MIN_WIDTH,
            le=1.0 - MIN_WIDTH,
            description="Fraction of positives among future rows. Default: that of the data. Not for `cost` and "
            "`histogram`.",
        ),
    ] = None,
) -> ListCurveForm:
    return ListCurveForm(max_points, format, prevalence)


ListCurveFormDep = Annotated[ListCurveForm, Depends(_list_form)]


def answer_list_curve(
    of: Mapping[str, Any],
    kind: CurveKind,
    curve: RocCurve,
    totals: ClassTotals,
    form: ListCurveForm,
) -> Response:
    """Return a curve of the list in that form; `of` are further members of the JSON."""
    if kind == "histogram":
        return _answer_histogram(of, curve, form)
    whole, prevalence = models.list_curve_on(kind, curve, totals, form.prevalence)
    axes = models.AXES[kind]
    if form.format == "csv":
        columns = dict(zip((*axes, "threshold"), whole[:3], strict=True))
        return StreamingResponse(_csv(columns), media_type="text/csv; charset=utf-8")
    shown = whole.thin(form.max_points)
    rows = zip(shown.x.tolist(), shown.y.tolist(), shown.thresholds.tolist(), strict=True)
    return json_response(
        {
            **of,
            "kind": kind,
            "axes": axes,
            "prevalence": prevalence,
            "exact": len(shown.x) == len(whole.x),
            "total_points": len(whole.x),
            "points": [{"x": x, "y": y, "threshold": finite(cutoff)} for x, y, cutoff in rows],
        }
    )


def _answer_histogram(of: Mapping[str, Any], curve: RocCurve, form: ListCurveForm) -> Response:
    edges, positives, negatives = models.histogram_on(curve, form.max_points, form.prevalence)
    low, high = edges[:-1], edges[1:]
    if form.format == "csv":
        columns = {"score": low, "high": high, "positives": positives, "negatives": negatives}
        return StreamingResponse(_csv(columns), media_type="text/csv; charset=utf-8")
    rows = zip(low.tolist(), high.tolist(), positives.tolist(), negatives.tolist(), strict=True)
    return json_response(
        {
            **of,
            "kind": "histogram",
            "axes": models.AXES["histogram"],
            "prevalence": None,
            "exact": True,
            "total_points": len(low),
            "points": [
                {"x": start, "y": found, "threshold": start, "high": end, "negatives": other}
                for start, end, found, other in rows
            ],
        }
    )


@router.get(
    "/{ref}/curves/{kind}",
    response_model=ModelCurve,
    summary="Read a precision-recall, gains or cost curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
async def read_list_curve(
    *,
    ref: str,
    kind: CurveKind,
    context: ContextDep,
    caller: CallerDep,
    form: ListCurveFormDep,
    on: CurvePart = "validation",
) -> Response:
    """Return one curve. `precision_recall`: the precision at every recall; do not interpolate it linearly. `gains`: the
    recall by the fraction of the list that is processed (the Lorenz curve from the top). `cost`: the lowest expected
    cost of any cutoff, by the weight of a missed positive (Drummond & Holte 2006). `histogram`: the fraction of each
    class in up to 40 bins of the score; the outermost bins also contain the scores beyond them.
    """

    def work() -> Response:
        of = context.db.reading(models.roc, caller.owner, ref, on)
        return answer_list_curve(_of(of), kind, of.curve, of.totals, form)

    return await context.compute(caller.owner, work)


def _costs(false_positive: float | None, false_negative: float | None) -> metrics.Costs | None:
    if false_positive is None and false_negative is None:
        return None
    if false_positive is None or false_negative is None:
        absent = "cost_false_positive" if false_positive is None else "cost_false_negative"
        detail = f"{absent} is missing: the two costs must be given together"
        raise Invalid(detail, errors=[{"parameter": absent, "detail": detail}])
    return metrics.Costs(false_positive, false_negative)


@router.get("/{ref}/calibration", summary="Read the calibration")
@needs("read")
def read_calibration(ref: str, context: ContextDep, caller: CallerDep) -> Calibration:
    """Return how scores are converted to probabilities: the method, the rows it was fitted on, how well the
    probabilities match the outcomes, and earlier versions. Returns 404 `no_calibration`, with the reason, if the model
    has none.
    """
    return calibration_of(*context.db.reading(calibrations.read, caller.owner, ref))


@router.get("/{ref}/bounds", summary="Read bounds on the partial AUC")
@needs("read")
async def read_bounds(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    fpr_min: Annotated[
        float | None,
        Query(
            ge=0,
            lt=1,
            description="Lower end of the window. Default: that of the model's objective, otherwise 0.",
        ),
    ] = None,
    fpr_max: Annotated[
        float | None,
        Query(
            gt=0,
            le=1,
            description="Upper end of the window. Default: that of the model's objective, otherwise 1.",
        ),
    ] = None,
    delta: Annotated[
        float, Query(gt=0, lt=1, description="Probability that a bound fails.")
    ] = 0.05,
) -> WindowBounds:
    """Return upper bounds on 1 − pAUC of future rows, next to the measured value. One bound uses the training rows and
    holds for linear scores (Narasimhan & Agarwal, Theorem 9, with our own constants). The other uses the held-out rows
    and holds for any model. Most bounds are vacuous (1 or more), which `vacuous` shows.
    """

    def work() -> WindowBounds:
        compute = context.db.reading(
            margins.prepare_bounds, caller.owner, ref, fpr_min=fpr_min, fpr_max=fpr_max, delta=delta
        )
        return bounds_of(compute(), delta)

    return await context.compute(caller.owner, work)
