"""Saved views over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.http.schemas import Body, PageOf, Resource, Timestamp

List = Literal["models", "datasets", "jobs", "evaluations", "comparisons", "batch-scores"]
"""The lists that have views, as the addresses of the console name them."""


class ViewQuery(Body):
    """What a view shows."""

    query: Annotated[str, StringConstraints(max_length=2000, pattern=r"^[!-~]*$")] = Field(
        description="Query of the list's address in the console, percent-encoded: filters, `sort`, and for models "
        "`columns`. Empty: the whole list.",
        examples=["search=credit&sort=-auc&columns=auc&columns=tags"],
    )


class View(Resource):
    """A saved view of a list."""

    id: str = Field(description="Id of the view.")
    list: List = Field(description="The list that it shows.")
    name: str = Field(description="Name of the view.")
    query: str = Field(description="Query of the list's address in the console.")
    author: str | None = Field(description="Name of the key that saved the view.")
    saved_at: Timestamp = Field(description="When the view was saved.")


class ViewPage(PageOf[View]):
    """A page of saved views."""
