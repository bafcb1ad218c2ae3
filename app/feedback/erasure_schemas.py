"""Request and response bodies of /v1/erasures."""

from __future__ import annotations

from pydantic import Field

from app.http.schemas import Body, Name, PageOf, Resource, Timestamp


class ErasureRequest(Body):
    """A request to erase an entity."""

    id: Name = Field(
        description="Id of the entity, as in the decisions and outcomes.", examples=["c1"]
    )


class ErasedRows(Resource):
    """Numbers of rows that were erased."""

    decisions: int = Field(description="Number of decisions.")
    outcomes: int = Field(description="Number of outcomes.")


class Erasure(Resource):
    """A request to erase an entity."""

    id: str = Field(description="Id of the request.")
    requested_at: Timestamp = Field(description="Time of the request.")
    due_at: Timestamp = Field(description="Time until which the request is done.")
    done_at: Timestamp | None = Field(
        description="When the last check found no row of the entity. Null if that is still to come."
    )
    erased: ErasedRows | None = Field(
        description="What was erased so far. Null before the first pass."
    )


class ErasurePage(PageOf[Erasure]):
    """One page of requests to erase an entity."""
