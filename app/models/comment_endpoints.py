"""/v1/models/{ref}/comments."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.idempotency import CreationDep, validated
from app.http.schemas import Body, CreatedAt, ModelId, PageOf, ReasonText, Resource
from app.models import comments
from app.platform.callers import Caller
from app.platform.sql import Session
from app.platform.tables import ModelComment

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


class CommentRequest(Body):
    """A comment to add."""

    text: ReasonText = Field(examples=["The drop in March is the new tariff, not the model."])
    """Plain text of up to 2,000 characters. Spaces around it are removed."""


class Comment(Resource):
    """A comment on a model."""

    id: str
    """Id of the comment."""
    model_id: ModelId
    author: str | None
    """Name of the key that wrote it."""
    own: bool
    """True if the caller wrote it, and may delete it."""
    text: str
    """The text. It is not HTML: escape it where it is shown."""
    created_at: CreatedAt


class CommentPage(PageOf[Comment]):
    """One page of comments."""


@router.get("/{ref}/comments", summary="List the comments on a model")
@needs("read")
def list_comments(
    ref: str, context: ContextDep, caller: CallerDep, paging: PagingDep
) -> CommentPage:
    """Return the comments on this version, the newest first."""
    page = context.db.reading(comments.list_page, caller.owner, ref, **vars(paging))
    return CommentPage.of(page, lambda row: _shown(row, caller))


@validated(router, "/{ref}/comments", "comment")
@router.post(
    "/{ref}/comments", status_code=201, response_model=Comment, summary="Add a comment on a model"
)
@needs("train")
async def create_comment(
    *, ref: str, body: CommentRequest, caller: CallerDep, new: CreationDep
) -> Response:
    """Add a comment to this version. It is deleted with the model."""

    def create(session: Session) -> dict[str, Any]:
        made = comments.add(session, caller, ref, body.text)
        session.refresh(made)
        return _shown(made, caller).model_dump(mode="json")

    if new.only_check:
        return await new.rehearse(create)
    made = await new.run_once(create)
    return JSONResponse(made.body, 201, headers=made.headers)


@router.delete(
    "/{ref}/comments/{comment_id}", status_code=204, summary="Delete a comment on a model"
)
@needs("train")
def delete_comment(*, ref: str, comment_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Delete a comment. Only its author can: the key that wrote it, or the key that replaced this one. Returns 403 for
    anyone else.
    """
    context.db.writing(comments.remove, caller, ref, comment_id)


def _shown(row: ModelComment, caller: Caller) -> Comment:
    return Comment.from_row(row, own=comments.is_own(row, caller))
