"""/v1/retention: after how many days the resources of an owner are deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from app.access.authentication import GuardedRoute, needs
from app.access.quota_endpoints import OwnerPath
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.schemas import Body, PageOf, Resource, Timestamp
from app.operations import repository, retention
from app.platform.errors import Forbidden
from app.platform.tables import RetentionRule

router = APIRouter(prefix="/v1/retention", tags=["retention"], route_class=GuardedRoute)

MAX_DAYS = 36_500
DaysLimit = Annotated[float, Field(gt=0, le=MAX_DAYS, allow_inf_nan=False)]


class RetentionDays(Body):
    """Days for which an owner's resources are kept."""

    datasets: DaysLimit | None = Field(default=None, examples=[730])
    """Days after its creation until a ready dataset is deleted, whether or not models were trained on it. Null:
    RANKWRIGHT_KEEP_UNUSED_DATASETS_DAYS applies to unused datasets."""
    models: DaysLimit | None = None
    """Days after its creation until a model that no alias serves or compares in shadow is deleted. Null: no limit."""
    batch_scores: DaysLimit | None = None
    """Days until a batch score is deleted. Null: RANKWRIGHT_KEEP_SCORES_DAYS applies."""
    evaluations: DaysLimit | None = None
    """Days until an evaluation or a comparison is deleted. Null: no limit."""
    decisions: DaysLimit | None = None
    """Days until decisions and outcomes are deleted, if the settings of their alias do not delete them earlier. Null:
    the settings of the alias apply alone."""
    jobs: DaysLimit | None = None
    """Days until a job that ended is deleted, once nothing refers to it. Null: RANKWRIGHT_KEEP_JOBS_DAYS applies."""


class Retention(Resource):
    """Days for which an owner's resources are kept. Null: see the request."""

    owner: str
    """The owner."""
    datasets: float | None
    """Days for datasets."""
    models: float | None
    """Days for models that no alias serves or compares in shadow."""
    batch_scores: float | None
    """Days for batch scores."""
    evaluations: float | None
    """Days for evaluations and comparisons."""
    decisions: float | None
    """Days for decisions and outcomes."""
    jobs: float | None
    """Days for jobs that ended."""
    updated_at: Timestamp | None
    """Time of the last change. Null: the settings apply to the owner."""


class RetentionPage(PageOf[Retention]):
    """One page of days of retention."""


class RetentionPreview(Resource):
    """What would be deleted now, by kind. Null: no days are given."""

    datasets: int | None
    """Number of datasets."""
    models: int | None
    """Number of models."""
    batch_scores: int | None
    """Number of batch scores."""
    evaluations: int | None
    """Number of evaluations and comparisons."""
    decisions: int | None
    """Number of files of decisions and outcomes."""
    jobs: int | None
    """Number of jobs."""


def _shown(owner: str, row: RetentionRule | None) -> Retention:
    updated = None if row is None else row.updated_at
    return Retention(owner=owner, updated_at=updated, **retention.days_of(row))


@router.get("", summary="List the retention of owners")
@needs("operator")
def list_retention(context: ContextDep, paging: PagingDep) -> RetentionPage:
    """Return the owners with their own days, the last changed first. The settings apply to all others."""
    page = context.db.reading(repository.list_retention, **vars(paging))
    return RetentionPage.of(page, lambda row: _shown(row.owner, row))


@router.get("/{owner}", summary="Read the retention of an owner")
@needs("operator")
def read_retention(owner: OwnerPath, context: ContextDep) -> Retention:
    """Return the days of an owner. All are null if the owner has none."""
    return _shown(owner, context.db.reading(retention.find, owner))


@router.put("/{owner}", summary="Replace the retention of an owner")
@needs("operator")
def put_retention(
    owner: OwnerPath, body: RetentionDays, context: ContextDep, caller: CallerDep
) -> Retention:
    """Replace all days of an owner. Without any, the settings of the service apply again.

    Housekeeping deletes permanently what is older, at its next round. A legal hold, an alias and an unfinished job keep
    what they cover. The key must also have the scope `admin`.
    """
    if "admin" not in caller.scopes:
        raise Forbidden(f"retention can be set only with the scope 'admin', too; {caller.has()}")
    return _shown(owner, context.db.writing(retention.replace, owner, body.model_dump()))


@router.post("/{owner}/preview", summary="Preview the retention of an owner")
@needs("operator")
def preview_retention(
    owner: OwnerPath, body: RetentionDays, context: ContextDep
) -> RetentionPreview:
    """Return how much a round of housekeeping would delete now with these days. It changes nothing."""
    found = context.db.reading(retention.preview, owner, body.model_dump())
    return RetentionPreview(**(dict.fromkeys(retention.KINDS) | found))
