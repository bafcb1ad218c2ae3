"""/v1/models/{name}/aliases."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.models import aliases
from app.models.alias_schemas import Alias, AliasPage, AliasTarget, alias_of
from app.models.revisions import must_be_new_of, revision_of

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{name}/aliases", summary="List aliases")
@needs("read")
def list_aliases(name: str, context: ContextDep, caller: CallerDep, paging: PagingDep) -> AliasPage:
    """Return the aliases of this name and the model that each points to, the most recently changed first."""
    page = context.db.reading(
        aliases.list_aliases, caller.owner, name, limit=paging.limit, after=paging.after
    )
    return AliasPage.model_validate(page)


@router.get("/{name}/aliases/{alias}", summary="Read an alias")
@needs("read")
def read_alias(
    *, name: str, alias: str, context: ContextDep, caller: CallerDep, response: Response
) -> Alias:
    """Return the model that the alias points to, its guarantee and cutoff, and the models that it pointed to before."""
    shown = alias_of(context.db.reading(aliases.get_alias, caller.owner, name, alias))
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
        aliases.set_alias,
        caller.owner,
        name,
        alias,
        body.model_id,
        guarantee=body.new_guarantee(),
        memo=None if body.memo is None else body.memo.as_stored(),
        author=caller.name,
        if_revision=revision_of(if_match),
        must_be_new=must_be_new_of(if_none_match),
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
        aliases.remove_alias, caller.owner, name, alias, if_revision=revision_of(if_match)
    )
