"""/v1/views."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.schemas import Body, PageOf, Resource, Timestamp
from app.platform.errors import PLAIN_PATTERN
from app.platform.tables import SavedView
from app.views import repository
from app.views import service as views

router = APIRouter(prefix="/v1/views", tags=["overview"], route_class=GuardedRoute)

List = Literal["models", "datasets", "jobs", "evaluations", "comparisons", "batch-scores"]
"""The lists that have views, as the addresses of the console name them."""


class ViewQuery(Body):
    """What a view shows."""

    query: Annotated[str, StringConstraints(max_length=2000, pattern=r"^[!-~]*$")] = Field(
        examples=["search=credit&sort=-auc&columns=auc&columns=tags"]
    )
    """Query of the list's address in the console, percent-encoded: filters, `sort`, and for models `columns`. Empty:
    the whole list."""


class View(Resource):
    """A saved view of a list."""

    id: str
    """Id of the view."""
    list: List
    """The list that it shows."""
    name: str
    """Name of the view."""
    query: str
    """Query of the list's address in the console."""
    author: str | None
    """Name of the key that saved the view."""
    saved_at: Timestamp
    """When the view was saved."""


class ViewPage(PageOf[View]):
    """A page of saved views."""


ListPath = Annotated[List, Path(description="The list that the view shows.")]
ViewName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=100,
        pattern=PLAIN_PATTERN,
        description="Name of the view.",
        examples=["my credit models"],
    ),
]


def _view_of(row: SavedView) -> View:
    return View.from_row(row, list=row.of_list)


@router.get("", summary="List saved views")
@needs("read")
def list_views(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    of: Annotated[
        List | None, Query(alias="list", description="Only the views of this list.")
    ] = None,
) -> ViewPage:
    """Return the saved views of the console's lists, the last saved first. All keys of an owner share them."""
    page = context.db.reading(repository.list_page, caller.owner, of, **vars(paging))
    return ViewPage.of(page, _view_of)


@router.put(
    "/{list}/{name}",
    summary="Save a view",
    responses={201: {"model": View, "description": "The view is new."}},
)
@needs("train", model=False)
def put_view(
    *,
    list: ListPath,
    name: ViewName,
    body: ViewQuery,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
) -> View:
    """Save the filters, the order and the columns of a list under a name. A view of the same name is replaced."""
    saved, is_new = context.db.writing(
        views.save, caller.owner, list, name, body.query, caller.name
    )
    response.status_code = 201 if is_new else 200
    return _view_of(saved)


@router.delete("/{list}/{name}", status_code=204, summary="Delete a saved view")
@needs("train", model=False)
def delete_view(list: ListPath, name: ViewName, context: ContextDep, caller: CallerDep) -> None:
    """Delete a saved view. The list and its items do not change."""
    context.db.writing(views.delete, caller.owner, list, name)
