"""/v1/holds: legal holds, which forbid deletions."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from app.access import holds, repository
from app.access.authentication import GuardedRoute, needs
from app.access.holds import HoldKind
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.schemas import Body, PageOf, ReasonText, Resource, Timestamp

router = APIRouter(prefix="/v1/holds", tags=["holds"], route_class=GuardedRoute)


class HoldRequest(Body):
    """A legal hold to place."""

    kind: HoldKind
    """What the hold covers: one `dataset`, one `model`, or everything of the `owner`."""
    resource_id: str | None = Field(default=None, examples=["ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012"])
    """Id of the dataset or the model, which may be in the trash. Null for kind `owner`."""
    reason: ReasonText = Field(examples=["Case 2026-17"])
    """Why the hold is placed."""

    @model_validator(mode="after")
    def _names_what_it_covers(self) -> Self:
        if (self.kind == "owner") != (self.resource_id is None):
            raise ValueError(
                f"resource_id must be given for a dataset or a model, and only then; kind is {self.kind!r}"
            )
        return self


class HoldRelease(Body):
    """The release of a legal hold."""

    reason: ReasonText = Field(examples=["Case closed"])
    """Why the hold is released."""


class Hold(Resource):
    """A legal hold."""

    id: str
    """Id of the hold."""
    kind: HoldKind
    """What the hold covers."""
    resource_id: str | None
    """Id of the dataset or the model. Null for kind `owner`."""
    reason: str
    """Why the hold was placed."""
    author: str | None
    """Name of who placed it."""
    placed_at: Timestamp
    """When it was placed."""
    released_at: Timestamp | None
    """When it was released. Null: it is active."""
    release_reason: str | None
    """Why it was released."""
    released_by: str | None
    """Name of who released it."""


class HoldPage(PageOf[Hold]):
    """One page of legal holds."""


@router.post("", status_code=201, summary="Place a legal hold")
@needs("admin")
def place_hold(body: HoldRequest, context: ContextDep, caller: CallerDep) -> Hold:
    """Forbid the deletion of a dataset, a model, or everything of the owner of the key, until the hold is released.

    Requests that would delete something that it covers return 409 with the code `on_hold`. Retention, the emptying of
    the trash and erasures keep it, too. A hold on a dataset or a model does not cover what belongs to it: evaluations,
    batch scores, decisions.
    """
    found = context.db.writing(holds.place, caller, body.kind, body.resource_id, body.reason)
    return Hold.model_validate(found)


@router.get("", summary="List legal holds")
@needs("read")
def list_holds(
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    active: Annotated[bool, Query(description="Only holds that are not released.")] = False,
) -> HoldPage:
    """Return the legal holds of the owner, newest first."""
    page = context.db.reading(repository.list_holds, caller.owner, active=active, **vars(paging))
    return HoldPage.of(page, Hold.model_validate)


@router.get("/{hold_id}", summary="Read a legal hold")
@needs("read")
def read_hold(hold_id: str, context: ContextDep, caller: CallerDep) -> Hold:
    """Return a legal hold."""
    return Hold.model_validate(context.db.reading(holds.find, caller.owner, hold_id))


@router.post("/{hold_id}/release", summary="Release a legal hold")
@needs("admin")
def release_hold(hold_id: str, body: HoldRelease, context: ContextDep, caller: CallerDep) -> Hold:
    """Release a legal hold. It stays in the list, with both reasons. Retention then applies again: what is over its age
    may be deleted at once.
    """
    return Hold.model_validate(context.db.writing(holds.release, caller, hold_id, body.reason))
