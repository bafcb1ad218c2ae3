"""/v1/models/{name}/aliases, except the PUT, whose evidence needs reports (`app.reports.promotion_endpoints`)."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs, records_reads
from app.http.dependencies import CallerDep, Context, ContextDep, IfMatch, PagingDep
from app.http.responses import StoredFile
from app.http.schemas import ReasonText
from app.models import alias_changes, aliases, protection
from app.models.alias_schemas import (
    Alias,
    AliasPage,
    AliasPreview,
    AliasProposal,
    AliasProtection,
    AliasRestoration,
    AliasRevisionPage,
    BreakGlass,
    BreakGlassRequest,
    DeletedAliasPage,
    alias_of,
    deleted_of,
    step_of,
)
from app.models.revisions import revision_of
from app.platform.documents import EvidenceFile
from app.platform.errors import NAME_PATTERN, NotFound

router = APIRouter(prefix="/v1/models", tags=["aliases"], route_class=GuardedRoute)


@router.get("/{name}/aliases", summary="List aliases")
@needs("read")
def list_aliases(name: str, context: ContextDep, caller: CallerDep, paging: PagingDep) -> AliasPage:
    """Return the aliases of this name and the model that each points to, the most recently changed first."""
    page = context.db.reading(aliases.list_aliases, caller.owner, name, **vars(paging))
    return AliasPage.model_validate(page)


@router.get("/{name}/aliases/{alias}", summary="Read an alias")
@needs("read")
def read_alias(
    *, name: str, alias: str, context: ContextDep, caller: CallerDep, response: Response
) -> Alias:
    """Return the model that the alias points to, its guarantee and cutoff, and the models that it pointed to before."""
    return show(context.db.reading(aliases.get_alias, caller.owner, name, alias), response)


_STORED_PAGE = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"
)
"""Content security policy of a stored report: an earlier version of this software may have written its style sheet."""
Revision = Annotated[int, Path(ge=1, le=2**31 - 1, description="Revision of the alias.")]
AliasedName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of the models.")]
AliasName = Annotated[str, Path(pattern=NAME_PATTERN, description="The alias.")]


@router.delete("/{name}/aliases/{alias}", status_code=204, summary="Delete an alias")
@needs("train")
def delete_alias(
    *,
    name: str,
    alias: str,
    context: ContextDep,
    caller: CallerDep,
    if_match: IfMatch = None,
    reason: Annotated[
        ReasonText | None,
        Query(description="Reason for the deletion."),
    ] = None,
) -> None:
    """Remove the alias. The model is kept. Other hosts apply the change within a second. The deletion is a revision
    of the history: to undo it, restore the revision before it.

    The newest 100 revisions of the history are kept as long as the audit log (`RANKWRIGHT_KEEP_AUDIT_DAYS`). If the
    alias is created again, it continues this history, and stays protected if it was. Returns 409 `approval_required`
    if the alias is protected.
    """
    context.db.writing(
        aliases.remove_alias,
        caller.owner,
        name,
        alias,
        reason=reason,
        author=caller.name,
        if_revision=revision_of(if_match),
    )


@router.get("/{name}/deleted-aliases", summary="List deleted aliases")
@needs("read")
def list_deleted_aliases(
    name: str, context: ContextDep, caller: CallerDep, paging: PagingDep
) -> DeletedAliasPage:
    """Return the deleted aliases of this name, the most recently deleted first, each as it was. To undo a deletion,
    restore an earlier revision.
    """
    page = context.db.reading(aliases.list_deleted, caller.owner, name, **vars(paging))
    return DeletedAliasPage.of(page, deleted_of)


@router.get("/{name}/aliases/{alias}/revisions", summary="List the revisions of an alias")
@needs("read")
def list_alias_revisions(
    *, name: str, alias: str, context: ContextDep, caller: CallerDep, paging: PagingDep
) -> AliasRevisionPage:
    """Return who changed the alias, when, why, and on which evidence, newest first; also for a deleted alias."""
    page = context.db.reading(aliases.list_revisions, caller.owner, name, alias, **vars(paging))
    return AliasRevisionPage.of(page, step_of)


EVIDENCE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The archive, or one of its files.",
        "content": {
            "application/zip": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {
                "schema": {"type": "object"},
                "example": {"model": {"id": "mdl_0198f0c2a6d37c1e8a4b5c6d7e8f9012"}},
            },
            "text/html": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
"""The description of a download of evidence in OpenAPI."""
EvidenceName = Annotated[
    str | None,
    Query(
        max_length=255,
        description="Name of one file. Default: the whole archive (ZIP).",
        examples=["report.html"],
    ),
]


@router.get(
    "/{name}/aliases/{alias}/revisions/{revision}/evidence",
    response_class=Response,
    summary="Download the evidence of a revision",
    responses=EVIDENCE_RESPONSES,
)
@needs("read")
@records_reads
def read_alias_evidence(
    *,
    name: str,
    alias: str,
    revision: Revision,
    context: ContextDep,
    caller: CallerDep,
    file: EvidenceName = None,
) -> Response:
    """Return the files that were stored with this revision, unchanged: the report of the model at that time, its
    evaluations, and its comparison with the model before. The revision lists their SHA-256. A restored revision has the
    evidence of the earlier one. Returns 404 `no_evidence` if none was recorded, or if it was deleted with the model.
    """
    key, files = context.db.reading(aliases.find_evidence, caller.owner, name, alias, revision)
    return respond_with_evidence(context, key, files, file, f"{name}-{alias}-{revision}-evidence")


def respond_with_evidence(
    context: Context, key: str, files: Sequence[EvidenceFile], file: str | None, title: str
) -> Response:
    """Respond with an archive, or one of its files. Raises NotFound for an unknown file."""
    if file is None:
        path = context.fetch(key)
        return StoredFile(path, media_type="application/zip", filename=f"{title}.zip")
    if file not in {each["name"] for each in files}:
        known = ", ".join(each["name"] for each in files)
        detail = f"file must be one of {known}, got {file[:100]!r}"
        raise NotFound(detail, errors=[{"parameter": "file", "detail": detail}])
    with zipfile.ZipFile(context.fetch(key)) as archive:
        content = archive.read(file)
    if file.endswith(".html"):
        return Response(
            content,
            media_type="text/html; charset=utf-8",
            headers={"Content-Security-Policy": _STORED_PAGE},
        )
    return Response(content, media_type="application/json")


@router.post("/{name}/aliases/{alias}/preview", summary="Preview a change of an alias")
@needs("read")
async def preview_alias(
    *, name: str, alias: str, body: AliasProposal, context: ContextDep, caller: CallerDep
) -> AliasPreview:
    """Return what the alias serves now and what it would serve after `PUT …/aliases/{alias}` or `…/restore`: model,
    guarantee, threshold with its rates and the share of flagged rows, and calibration. Rates are those on the
    validation rows of each model, which may be different rows. Nothing is changed.
    """

    def work() -> AliasPreview:
        compute = context.db.reading(
            alias_changes.preview,
            caller.owner,
            name,
            alias,
            ref=body.model_id,
            guarantee=body.new_guarantee(),
            revision=body.revision,
        )
        return compute()

    return await context.compute(caller.owner, work)


@router.post("/{name}/aliases/{alias}/restore", summary="Restore a revision of an alias")
@needs("train")
def restore_alias(
    *,
    name: str,
    alias: str,
    body: AliasRestoration,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: Annotated[
        str | None,
        Header(
            description="Newest revision of the alias; of a deleted alias, that of its deletion. Required.",
            examples=['"4"'],
        ),
    ] = None,
) -> Alias:
    """Give the alias the model, guarantee, cutoff and memo of an earlier revision again. This is a new revision with
    the evidence of the earlier one. To undo the last change, restore the revision before the newest one; a deleted
    alias exists again.

    Returns 409 `model_deleted` if the model was deleted, and 409 `approval_required` if the alias is protected.
    """
    return show(
        context.db.writing(
            aliases.restore,
            caller.owner,
            name,
            alias,
            body.revision,
            reason=body.reason,
            author=caller.name,
            if_revision=revision_of(if_match),
        ),
        response,
    )


@router.put("/{name}/aliases/{alias}/protection", summary="Protect an alias")
@needs("admin")
def put_alias_protection(
    *,
    name: str,
    alias: str,
    body: AliasProtection,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: IfMatch = None,
) -> Alias:
    """Protect an alias: another person must then approve every change of it, and of the calibration of its model.
    Direct changes return 409 `approval_required`, also lifting the protection: use `POST /v1/alias-requests`. The
    protection is a revision of the history, and outlives the deletion of the alias.
    """
    return show(
        context.db.writing(
            aliases.protect,
            caller.owner,
            name,
            alias,
            protected=body.protected,
            reason=body.reason,
            author=caller.name,
            if_revision=revision_of(if_match),
        ),
        response,
    )


@router.post("/{name}/aliases/{alias}/break-glass", status_code=201, summary="Suspend a protection")
@needs("admin")
def start_break_glass(
    *,
    name: AliasedName,
    alias: AliasName,
    body: BreakGlassRequest,
    context: ContextDep,
    caller: CallerDep,
) -> BreakGlass:
    """Suspend the protection of an alias in an emergency (break-glass). Until it expires, admins can change the alias,
    and the calibration of its model, directly with a reason. Without one they get 422 `reason_required`.

    It is logged as a warning, raises an alert, and is shown on every page about the alias; each change made under it is
    marked with `break_glass`. Another POST replaces it. Returns 409 `not_protected` if the alias is not protected.
    """
    return BreakGlass.from_row(
        context.db.writing(
            protection.suspend,
            caller.owner,
            name,
            alias,
            reason=body.reason,
            seconds=body.seconds,
            author=caller.name,
        )
    )


@router.delete(
    "/{name}/aliases/{alias}/break-glass", status_code=204, summary="Resume a protection"
)
@needs("admin")
def end_break_glass(
    *, name: AliasedName, alias: AliasName, context: ContextDep, caller: CallerDep
) -> None:
    """End the suspension of a protection early. Returns 404 `no_break_glass` if the protection is not suspended."""
    context.db.writing(protection.resume, caller.owner, name, alias)


def show(state: aliases.AliasState, response: Response) -> Alias:
    """Set the ETag, too."""
    shown = alias_of(state)
    response.headers["ETag"] = f'"{shown.revision}"'
    return shown
