"""Request and response bodies of /v1/erasures."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from app.erasure.service import STATES, ShownErasure
from app.http.schemas import Body, Name, PageOf, Resource, Timestamp, one_of
from app.platform.documents import ErasureReport

MAX_KEY_COLUMNS = 20


class ErasureRequest(Body):
    """A request to erase an entity."""

    # Decisions and outcomes have ids without surrounding spaces.
    id: Annotated[Name, StringConstraints(strip_whitespace=True)] = Field(examples=["c1"])
    """Id of the entity, as in the decisions, outcomes and tables. It is compared as text, without surrounding spaces; a
    whole number has no decimal point."""
    key_columns: list[Name] = Field(
        default=[], max_length=MAX_KEY_COLUMNS, examples=[["customer_id"]]
    )
    """Columns of uploaded tables that have ids of entities. All datasets with one of these columns are searched.
    Datasets made from decisions are always searched."""
    retire_models: bool = False
    """Whether models are deleted permanently whose artifact has rows of the entity or its id. If false, the erasure
    fails when it meets such a model, and changes nothing."""


class ErasedRows(Resource):
    """Numbers of recorded rows that were erased."""

    decisions: int
    """Number of decisions."""
    outcomes: int
    """Number of outcomes."""


class ErasureItem(Resource):
    """A request to erase an entity, without its report."""

    id: str
    """Id of the request."""
    state: Annotated[str, one_of(STATES)]
    """`running`: a job searches and removes rows. `settling`: no table has rows of the entity any more; decisions may
    still arrive from the log of a process. `done`. `on_hold`: a legal hold covers some of the rows; retry the job after
    its release. `failed`: see `problem`."""
    key_columns: list[str]
    """Columns that have ids of entities."""
    job_id: str | None
    """The job that searches tables. Null for an old request."""
    problem: str | None
    """The error of the job. Null without one."""
    requested_at: Timestamp
    """Time of the request."""
    due_at: Timestamp
    """Time until which the request is done. If its job has failed, the service forgets the id then. If the service was
    off, it finishes the request later."""
    done_at: Timestamp | None
    """When the last check found no row of the entity, and all old files were deleted. Null if that is still to come."""
    erased: ErasedRows | None
    """Decisions and outcomes erased so far. Null before the first pass."""


class Erasure(ErasureItem):
    """A request to erase an entity, with its report."""

    report: ErasureReport | None
    """What was searched and removed in tables, and what remains. Null before the first search."""


class ErasurePage(PageOf[ErasureItem]):
    """One page of requests to erase an entity."""


def show(found: ShownErasure) -> Erasure:
    return Erasure(**_fields(found), report=found.erasure.report)


def show_in_list(found: ShownErasure) -> ErasureItem:
    return ErasureItem(**_fields(found))


def _fields(found: ShownErasure) -> dict[str, Any]:
    erasure = found.erasure
    return {
        "id": erasure.id,
        "state": found.state,
        "key_columns": erasure.key_columns,
        "job_id": erasure.job_id,
        "problem": found.detail,
        "requested_at": erasure.requested_at,
        "due_at": erasure.due_at,
        "done_at": erasure.done_at,
        "erased": None if erasure.erased is None else ErasedRows.model_validate(erasure.erased),
    }
