"""Reading, saving and deleting saved views."""

from __future__ import annotations

from urllib.parse import parse_qsl

from app.platform.errors import Conflict, Invalid, NotFound, invalid, shown
from app.platform.sql import Session
from app.platform.tables import SavedView
from app.platform.text import is_blank
from app.views import repository

MAX_VIEWS = 100
"""Most views of an owner."""
MAX_FIELDS = 50
"""Most parameters in the query of a view."""


def save(
    session: Session, owner: str, of_list: str, name: str, query: str, author: str | None
) -> tuple[SavedView, bool]:
    """Return the view, and whether it is new.

    Raises Invalid for a text that is no query and for a name that nobody could see or address, and Conflict if the
    owner has `MAX_VIEWS` views.
    """
    if is_blank(name.replace(".", "")):
        raise Invalid(
            f"name must have a visible character other than a dot, got {shown(name)}",
            code="invalid",
            errors=[{"parameter": "name", "detail": "name must have a visible character"}],
        )
    try:
        parse_qsl(
            query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise invalid(
            "/query",
            f"query must be the query of an address with at most {MAX_FIELDS} parameters, such as "
            f"'search=credit&sort=-auc', got {shown(query)}",
        ) from None
    is_new = repository.find(session, owner, of_list, name) is None
    if is_new and repository.count(session, owner) >= MAX_VIEWS:
        raise Conflict(
            f"an owner may have at most {MAX_VIEWS} saved views: delete one first",
            code="too_many_views",
        )
    repository.save(session, owner, of_list, name, query, author)
    saved = repository.find(session, owner, of_list, name)
    assert saved is not None
    return saved, is_new


def delete(session: Session, owner: str, of_list: str, name: str) -> None:
    """Raises NotFound."""
    if not repository.remove(session, owner, of_list, name):
        raise NotFound(f"there is no saved view {shown(name)} of {of_list}")
