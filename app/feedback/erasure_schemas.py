"""Request and response bodies of /v1/erasures."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from app.http.schemas import Body, DatasetId, Name, PageOf, Resource, Timestamp


class ErasureRequest(Body):
    """A request to erase an entity."""

    # Decisions and outcomes have ids without surrounding spaces.
    id: Annotated[Name, StringConstraints(strip_whitespace=True)] = Field(
        description="Id of the entity, as in the decisions and outcomes.", examples=["c1"]
    )


class ErasedRows(Resource):
    """Numbers of rows that were erased, and what still has rows of the entity."""

    decisions: int = Field(description="Number of decisions.")
    outcomes: int = Field(description="Number of outcomes.")
    datasets: list[DatasetId] = Field(
        description="Datasets made from decisions, also in the trash, that had rows of the entity at the last check. "
        "They are not changed: delete them permanently, and make them again without the entity."
    )


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
