"""/v1/alias-requests: changes of protected aliases, which another person approves."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs, records_reads
from app.http import idempotency
from app.http.dependencies import CallerDep, Context, ContextDep, PagingDep
from app.http.idempotency import Created, CreationDep
from app.jobs.acceptance import wake_a_worker
from app.models import repository as model_rows
from app.models.alias_endpoints import EVIDENCE_RESPONSES, EvidenceName, respond_with_evidence
from app.platform import catalogue
from app.platform.blobs import Blob
from app.platform.callers import Caller
from app.platform.errors import Conflict
from app.platform.sql import Json, Session
from app.platform.tables import AliasRequest as AliasRequestRow
from app.platform.tables import AliasRequestKind, AliasRequestState
from app.reports import alias_requests
from app.reports.alias_request_schemas import (
    AliasApproval,
    AliasRejection,
    AliasRequest,
    AliasRequestBody,
    AliasRequestPage,
    State,
    request_of,
)
from app.reports.decision import DecisionApproval
from app.reports.evidence import Target, approved_files, evidence_of, write_archive

router = APIRouter(prefix="/v1/alias-requests", tags=["aliases"], route_class=GuardedRoute)


@router.post(
    "",
    status_code=201,
    response_model=AliasRequest,
    summary="Request a change of a protected alias",
)
@needs("train")
async def create_alias_request(
    *, body: AliasRequestBody, context: ContextDep, caller: CallerDep, new: CreationDep
) -> Response:
    """Request a change of a protected alias, or of the calibration of its model. Another person approves or rejects it;
    it expires after 7 days.

    The change is checked as if it were made now, with the same errors. The report of the model, its evaluations and its
    comparison with the model before are stored as evidence. The request is bound to the revision of the alias, and to
    the artifact and calibration of the model: if any of these changes, the request is void.

    Returns 409 `not_protected` if the alias is not protected, and 409 `too_many_alias_requests` if the alias has 10, or
    the owner 100, open requests.
    """
    asked = body.as_proposal()

    def expect_response(session: Session) -> Json:
        raise Conflict("the request could not be repeated: try again")  # it was removed just now

    def work() -> Created:
        if new.key is not None and context.db.reading(
            idempotency.is_known, caller.owner, new.route, new.key
        ):
            return new.run_once_blocking(expect_response)
        revision, target = context.db.reading(_read_evidence, caller, asked)
        with write_archive(context.blobs, target.compute()) as archive:
            evidence = alias_requests.Evidence(revision, target.model_id, archive)

            def create(session: Session) -> Json:
                row = alias_requests.create(session, caller, asked, evidence)
                return request_of(row, row.created_at).model_dump(mode="json")

            return new.run_once_blocking(create)

    made = await context.compute(caller.owner, work)
    return JSONResponse(made.body, 201, headers=made.headers)


@router.get("", summary="List requests to change protected aliases")
@needs("read")
def list_alias_requests(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    state: Annotated[State | None, Query(description="Only requests in this state.")] = None,
    name: Annotated[
        str | None, Query(description="Only requests for models of this name.", examples=["churn"])
    ] = None,
    alias: Annotated[
        str | None, Query(description="Only requests for this alias.", examples=["live"])
    ] = None,
) -> AliasRequestPage:
    """Return the requests, the newest first."""
    page, now = context.db.reading(
        alias_requests.list_page,
        caller.owner,
        state=state,
        name=name,
        alias=alias,
        **vars(paging),
    )
    return AliasRequestPage.of(page, lambda row: request_of(row, now))


@router.get("/{alias_request_id}", summary="Read a request to change a protected alias")
@needs("read")
def read_alias_request(
    alias_request_id: str, context: ContextDep, caller: CallerDep
) -> AliasRequest:
    """Return what is requested, by whom, why, and how it was decided."""
    return request_of(*context.db.reading(alias_requests.get, caller.owner, alias_request_id))


@router.get(
    "/{alias_request_id}/evidence",
    response_class=Response,
    summary="Download the evidence of a request",
    responses=EVIDENCE_RESPONSES,
)
@needs("read")
@records_reads
def read_alias_request_evidence(
    *, alias_request_id: str, context: ContextDep, caller: CallerDep, file: EvidenceName = None
) -> Response:
    """Return the files that were stored with the request: the decision with the groups before and after it, the report
    of the model at that time and at the requested cutoff, its evaluations, and its comparison with the model before.
    The request lists their SHA-256. An approval is added to the decision; the other files never change. Returns 404
    `no_evidence` if they were deleted with the model.
    """
    key, files = context.db.reading(alias_requests.find_evidence, caller.owner, alias_request_id)
    return respond_with_evidence(context, key, files, file, f"{alias_request_id}-evidence")


@router.post("/{alias_request_id}/approve", summary="Approve a request")
@needs("approve")
async def approve_alias_request(
    *,
    alias_request_id: str,
    body: AliasApproval,
    context: ContextDep,
    caller: CallerDep,
) -> AliasRequest:
    """Approve a request. The change is made at once, in the same transaction; a recalibration starts its job. The
    evidence then names both people and their reasons.

    Returns 403 `self_approval` for the person who made the request: a key counts as the one whom it is for, and
    as the one who created it. Returns 409 `alias_request_void` if the alias, the model or its calibration is not as it
    was when the change was requested, 409 `alias_request_expired` after 7 days, and 409 `alias_request_closed` if it
    was already decided.
    """

    reason = body.reason

    def work() -> AliasRequestRow:
        row, now = context.db.reading(alias_requests.get_approvable, caller, alias_request_id)
        _verify_artifact(context, caller.owner, alias_request_id)
        approval = DecisionApproval(
            alias_request_id=row.id, approved_by=caller.name, approved_at=now, reason=reason
        )
        with ExitStack() as stack:
            evidence = None
            if row.evidence_key is not None:
                stored = context.fetch(row.evidence_key)
                files = approved_files(stored, row.evidence, approval)
                evidence = stack.enter_context(write_archive(context.blobs, files))
            return context.db.writing(
                alias_requests.approve,
                context.settings,
                caller,
                alias_request_id,
                reason,
                evidence,
            )

    row = await context.compute(caller.owner, work)
    if row.state == AliasRequestState.VOID:  # stored, so that nobody tries again
        raise alias_requests.void(row)
    if row.job_id is not None:
        wake_a_worker(context, row.job_id)
    return await run_in_threadpool(read_alias_request, alias_request_id, context, caller)


@router.post("/{alias_request_id}/reject", summary="Reject a request")
@needs("approve")
def reject_alias_request(
    *, alias_request_id: str, body: AliasRejection, context: ContextDep, caller: CallerDep
) -> AliasRequest:
    """Reject a request, with a reason. Returns 409 `alias_request_closed` if it was already decided."""
    context.db.writing(alias_requests.reject, caller, alias_request_id, body.reason)
    return read_alias_request(alias_request_id, context, caller)


@router.post("/{alias_request_id}/withdraw", summary="Withdraw a request")
@needs("train")
def withdraw_alias_request(
    *, alias_request_id: str, context: ContextDep, caller: CallerDep
) -> AliasRequest:
    """Withdraw a request. Returns 403 `not_requester` unless the caller is the person who made it, or an admin, and 409
    `alias_request_closed` if it was already decided.
    """
    context.db.writing(alias_requests.withdraw, caller, alias_request_id)
    return read_alias_request(alias_request_id, context, caller)


def _read_evidence(
    session: Session, caller: Caller, asked: alias_requests.Proposal
) -> tuple[int, Target]:
    """Check a proposal; return the revision of its alias, and what is known about the model that it concerns."""
    bound = alias_requests.bind(session, caller.owner, asked, caller.name)
    change = bound.as_change(asked, caller.name)
    target = evidence_of(session, caller.owner, asked.name, asked.alias, change)
    return bound.alias_revision, target


def _verify_artifact(context: Context, owner: str, alias_request_id: str) -> None:
    """Raise BlobMissing or BlobDamaged for another artifact. It must not prevent deleting or moving the alias."""

    def read(session: Session) -> Blob | None:
        row, _ = alias_requests.get(session, owner, alias_request_id)
        if row.kind not in (AliasRequestKind.SET, AliasRequestKind.RESTORE):
            return None
        model = model_rows.find(session, owner, row.model_id)
        return None if model is None else catalogue.find(session, model.artifact_key)

    if (blob := context.db.reading(read)) is not None:
        context.blobs.verify(blob)
