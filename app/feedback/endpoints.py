"""/v1/models/{name}/aliases/{alias}/feedback, /v1/decisions and /v1/decision-files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs, records_reads
from app.feedback import service
from app.feedback.monitor_repository import MonitoredAlias
from app.feedback.monitor_results import find_detectable
from app.feedback.monitor_schemas import DetectableDrop
from app.feedback.schemas import (
    Decision,
    DecisionFilePage,
    Feedback,
    FeedbackRequest,
    decision_of,
    file_of,
)
from app.http.dependencies import CallerDep, Context, ContextDep, IfMatch, IfNoneMatch, PagingDep
from app.http.responses import StoredFile
from app.http.schemas import bytes_of
from app.ingest.formats import PARQUET
from app.models.revisions import must_be_new_of, revision_of
from app.platform.documents import StoredFeedback
from app.platform.errors import TooMany
from app.platform.sql import Session
from app.platform.tables import AliasFeedback

router = APIRouter(prefix="/v1/models", tags=["feedback"], route_class=GuardedRoute)
decisions_router = APIRouter(prefix="/v1", tags=["feedback"], route_class=GuardedRoute)


@router.get("/{name}/aliases/{alias}/feedback", summary="Read the feedback settings")
@needs("read")
def read_feedback(
    *, name: str, alias: str, context: ContextDep, caller: CallerDep, response: Response
) -> Feedback:
    """Return which parts of this alias's decisions are recorded. Returns 404 `no_feedback` if there are no settings."""
    found, compute = context.db.reading(_read, caller.owner, name, alias)
    return _show(found, response, context, compute)


@router.put(
    "/{name}/aliases/{alias}/feedback",
    summary="Replace the feedback settings",
    responses={201: {"model": Feedback, "description": "Decisions are recorded from now on."}},
)
@needs("train")
def put_feedback(
    *,
    name: str,
    alias: str,
    body: FeedbackRequest,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Feedback:
    """Record each decision of this alias, and set how decisions are used. An empty body records all features for 400
    days. Other hosts apply the change within a second. Each change is a new revision. Decisions contain its number.

    Responses of `…/score` and `…/rank` then have a `decision_id` and `review`. Returns 422 for settings that do not
    fit the alias or its model.
    """
    found, created, compute = context.db.writing(
        _replace,
        caller.owner,
        name,
        alias,
        body.as_stored(),
        author=caller.name,
        if_revision=revision_of(if_match),
        must_be_new=must_be_new_of(if_none_match),
    )
    response.status_code = 201 if created else 200
    return _show(found, response, context, compute)


@router.delete(
    "/{name}/aliases/{alias}/feedback", status_code=204, summary="Delete the feedback settings"
)
@needs("train")
def delete_feedback(
    *,
    name: str,
    alias: str,
    context: ContextDep,
    caller: CallerDep,
    if_match: IfMatch = None,
) -> None:
    """Stop recording decisions of this alias. Recorded decisions are kept for the `days` of the settings."""
    context.db.writing(
        service.remove,
        caller.owner,
        name,
        alias,
        author=caller.name,
        if_revision=revision_of(if_match),
    )


Compute = Callable[[], DetectableDrop | None] | None


def _read(session: Session, owner: str, name: str, alias: str) -> tuple[AliasFeedback, Compute]:
    """The function computes the smallest detectable fall."""
    found = service.read(session, owner, name, alias)
    return found, find_detectable(session, MonitoredAlias(owner, name, alias), found.settings)


def _replace(
    session: Session, /, owner: str, name: str, alias: str, settings: StoredFeedback, **given: Any
) -> tuple[AliasFeedback, bool, Compute]:
    """Return also whether this request started recording."""
    found, created = service.replace(session, owner, name, alias, settings, **given)
    of = MonitoredAlias(owner, name, alias)
    return found, created, find_detectable(session, of, found.settings)


def _show(found: AliasFeedback, response: Response, context: Context, compute: Compute) -> Feedback:
    """Return the response for settings, and set their ETag."""
    assert found.settings is not None
    response.headers["ETag"] = f'"{found.revision}"'
    detectable = None
    if compute is not None:
        # The settings are stored already: a service that is busy must not reject them.
        with suppress(TooMany), context.computations.hold(found.owner):
            detectable = compute()
    return Feedback.from_row(found, **found.settings, detectable=detectable)


@decisions_router.get("/decisions/{decision_id:path}", summary="Read a decision")
@needs("read")
@records_reads
async def read_decision(decision_id: str, context: ContextDep, caller: CallerDep) -> Decision:
    """Return a recorded decision with its features, about a minute after its response at the latest.

    The id is ours, or that of another system (`POST /v1/decisions`), escaped as part of an address: `/` is `%2F`. The
    more decisions of other systems there are, the longer it takes to find one of their ids.
    """
    find = partial(
        service.find_decision, context.db.reading, context.blobs, caller.owner, decision_id
    )
    return decision_of(await context.compute(caller.owner, find))


@decisions_router.get("/decision-files", summary="List the files of decisions")
@needs("read")
def list_decision_files(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    name: Annotated[
        str | None, Query(description="Only decisions of models with this name.")
    ] = None,
    alias: Annotated[
        str | None, Query(description="Only decisions of aliases of this name.")
    ] = None,
) -> DecisionFilePage:
    """Return the final files of decisions, oldest first, to copy them into a warehouse: keep `next`, and continue from
    it later, so that each decision is copied once. The decisions of a day are in final files within two hours of its
    end (UTC), or earlier when there are many.
    """
    page, blobs = context.db.reading(
        service.list_files,
        caller.owner,
        name,
        alias,
        **vars(paging),
    )
    data = [file_of(row, blobs[row.segment_key]) for row in page.data if row.segment_key in blobs]
    return DecisionFilePage(data=data, has_more=page.has_more, next=page.next)


@decisions_router.get(
    "/decision-files/{file_id}/content",
    response_class=StoredFile,
    summary="Download a file of decisions",
    responses={200: {"description": "The file (Parquet).", "content": bytes_of(PARQUET)}},
)
@needs("read")
@records_reads
def read_decision_file(file_id: str, context: ContextDep, caller: CallerDep) -> StoredFile:
    """Return a file of decisions, one row each. The recorded features are the columns `feature.…`."""
    row, blob = context.db.reading(service.find_file, caller.owner, file_id)
    return StoredFile(
        context.blobs.fetch(blob),
        media_type=PARQUET,
        filename=f"{row.name}-{row.alias}-{row.id}.parquet",
        headers={"ETag": f'"{blob.sha256}"'},
    )
