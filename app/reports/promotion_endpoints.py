"""PUT /v1/models/{name}/aliases/{alias}: an alias is moved on evidence, which is stored with the revision."""

from __future__ import annotations

from contextlib import ExitStack

from fastapi import APIRouter
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, IfMatch, IfNoneMatch
from app.models import aliases
from app.models.alias_endpoints import show
from app.models.alias_schemas import Alias, AliasTarget
from app.models.revisions import must_be_new_of, revision_of
from app.reports.evidence import read_evidence, write_archive

router = APIRouter(prefix="/v1/models", tags=["aliases"], route_class=GuardedRoute)


@router.put(
    "/{name}/aliases/{alias}",
    summary="Create or move an alias",
    responses={201: {"model": Alias, "description": "The alias was created."}},
)
@needs("train")
async def put_alias(
    *,
    name: str,
    alias: str,
    body: AliasTarget,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Alias:
    """Point the alias to a version of this name. To roll back, use `…/restore`.

    With a `guarantee`, scores under `name@alias` have a `flag`: whether the score reaches the threshold with which the
    current version meets it: a guarantee for future rows with a `confidence`, otherwise a target on the validation
    rows. The alias keeps it when it moves, until it gets another one or null.
    Returns 422 if the version cannot meet it: it has no validation curve, or too few validation rows for the
    confidence.

    A `memo` documents the decision. It is stored with this revision and shown in the report of the model. Returns 409
    `approval_required` if the alias is protected: then use `POST /v1/alias-requests`.

    The decision, with the groups before and after, the report of the model at the new cutoff, its evaluations and its
    comparison with the model before are stored with the revision, as they are at this moment:
    `…/revisions/{revision}/evidence` returns them.
    """
    if_revision, must_be_new = revision_of(if_match), must_be_new_of(if_none_match)

    def work() -> tuple[aliases.AliasState, bool]:
        context.db.reading(
            aliases.check_change,
            caller.owner,
            name,
            alias,
            body.model_id,
            memo=body.new_memo(),
            if_revision=if_revision,
            must_be_new=must_be_new,
        )
        found = context.db.reading(
            read_evidence,
            caller.owner,
            name,
            alias,
            body.model_id,
            guarantee=body.new_guarantee(),
            memo=body.new_memo(),
            author=caller.name,
        )
        with ExitStack() as stack:
            evidence = None
            if found is not None:
                archive = write_archive(context.blobs, found.compute())
                evidence = stack.enter_context(archive)
            return context.db.writing(
                aliases.set_alias,
                caller.owner,
                name,
                alias,
                body.model_id if found is None else found.model_id,
                guarantee=body.new_guarantee(),
                memo=body.new_memo(),
                author=caller.name,
                evidence=evidence,
                if_revision=if_revision,
                must_be_new=must_be_new,
            )

    state, created = await context.compute(caller.owner, work)
    response.status_code = 201 if created else 200
    return show(state, response)
