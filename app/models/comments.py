"""Comments of people on a model. They belong to one version, and are deleted with it."""

from __future__ import annotations

from app.access import holds
from app.models import repository
from app.models.service import find
from app.platform.callers import Caller, check_model
from app.platform.errors import Forbidden, NotFound
from app.platform.ids import is_id, new_id
from app.platform.sql import Page, Session, db_now
from app.platform.tables import ModelComment


def list_page(
    session: Session, owner: str, ref: str, *, limit: int, after: str | None
) -> Page[ModelComment]:
    """The newest first. Raises NotFound."""
    model = find(session, owner, ref)
    return repository.list_comments(session, owner, model.id, limit=limit, after=after)


def add(session: Session, caller: Caller, ref: str, text: str) -> ModelComment:
    """Raises NotFound if there is no such model."""
    model = find(session, caller.owner, ref)
    if not repository.lock_shared(session, caller.owner, model.id):
        raise NotFound(f"there is no model {ref[:200]!r}")
    check_model(model.name)
    comment = ModelComment(
        id=new_id("cmt"),
        owner=caller.owner,
        model_id=model.id,
        author=caller.name,
        principal_id=caller.principal_id,
        text=text,
        created_at=db_now(),
    )
    session.add(comment)
    session.flush()
    return comment


def remove(session: Session, caller: Caller, ref: str, comment_id: str) -> None:
    """Raises NotFound, Forbidden for the comment of somebody else, and Conflict under a legal hold on the owner."""
    holds.lock(session, caller.owner)
    holds.check(session, caller.owner)
    model = find(session, caller.owner, ref)
    check_model(model.name)
    comment = None
    if is_id(comment_id, "cmt"):
        comment = repository.find_comment(session, caller.owner, model.id, comment_id)
    if comment is None:
        raise NotFound(f"{model.name}:{model.version} has no comment {comment_id[:100]!r}")
    if not is_own(comment, caller):
        author = comment.author or "another key"
        raise Forbidden(f"only its author can delete a comment; {comment_id} is by {author!r}")
    session.delete(comment)


def is_own(comment: ModelComment, caller: Caller) -> bool:
    """Return True if the caller's key, or one that it replaced, wrote the comment."""
    return comment.principal_id is not None and comment.principal_id == caller.principal_id
