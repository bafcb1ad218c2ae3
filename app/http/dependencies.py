"""Dependencies of endpoints in every domain: the caller, the process's context, paging, filters, preferences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import BoundedSemaphore
from typing import Annotated, Literal, NamedTuple

from fastapi import Depends, Query
from pydantic import AwareDatetime, StringConstraints
from starlette.requests import Request

from app.http.limits import FairSemaphore
from app.http.schemas import earliest_shown
from app.http.server import Drain
from app.platform.background import BackgroundTasks
from app.platform.blobs import BlobStore
from app.platform.broker import Producer
from app.platform.database import Database
from app.platform.errors import TooMany, nearest, refuse_all, shown
from app.platform.metrics import ApiMetrics
from app.platform.schema import SchemaCheck
from app.platform.settings import Settings
from app.platform.sql import RowFilter

MAX_COMPUTATIONS = 2
"""Long computations that run at once in a process: scores need the other threads."""
COMPUTATION_WAIT_SECONDS = 2.0
"""How long another computation waits for one of them to end, in seconds."""

MAX_TABLES = 2
"""Large tables that are scored at once in a process, one of an owner; each takes a thread for as long as it is long."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: the owner whose resources are visible, and the scopes of the key."""

    key_id: str
    owner: str
    scopes: frozenset[str]


@dataclass(frozen=True)
class Context:
    """What every endpoint may use: settings, database, blobs, broker, and limits.

    Objects of a single domain are in `app.state`; a dependency of that domain passes them to an endpoint.
    """

    settings: Settings
    db: Database
    schema: SchemaCheck
    blobs: BlobStore
    producer: Producer
    drain: Drain
    metrics: ApiMetrics
    uploads: FairSemaphore
    waiters: FairSemaphore
    requests: FairSemaphore
    publishing: BackgroundTasks
    background: BackgroundTasks
    computations: BoundedSemaphore = field(
        default_factory=lambda: BoundedSemaphore(MAX_COMPUTATIONS)
    )
    tables: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(MAX_TABLES, "tables", TooMany)
    )
    uploading: set[tuple[str, str | None]] = field(default_factory=set)

    @contextmanager
    def computation(self) -> Iterator[None]:
        """Hold a permit for a long computation. Raises TooMany if none is free soon."""
        if not self.computations.acquire(timeout=COMPUTATION_WAIT_SECONDS):
            raise TooMany(
                f"{MAX_COMPUTATIONS} such answers are being computed, which is the maximum: try again in a moment"
            )
        try:
            yield
        finally:
            self.computations.release()


def context_of(request: Request) -> Context:
    """Return the context of this process."""
    context: Context = request.app.state.context
    return context


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


@dataclass(frozen=True)
class Paging:
    """Which page of a list."""

    limit: int
    after: str | None


def _paging(
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum entries on the page.")] = 50,
    after: Annotated[
        str | None, Query(description="Cursor of the page: `next` of the page before.")
    ] = None,
) -> Paging:
    return Paging(limit, after)


@dataclass(frozen=True)
class ListFilter:
    """Filters of a list: only entries of this model, only entries on this dataset."""

    model_id: str | None
    dataset_id: str | None


def _list_filter(
    model_id: Annotated[str | None, Query(description="Only those of this model (id).")] = None,
    dataset_id: Annotated[str | None, Query(description="Only those on this dataset (id).")] = None,
) -> ListFilter:
    return ListFilter(model_id, dataset_id)


def preferences(request: Request) -> dict[str, str]:
    """Return the preferences of the Prefer header by name (RFC 7240). The first of two with the same name counts."""
    found: dict[str, str] = {}
    for header in request.headers.getlist("prefer"):
        for part in header.split(","):
            name, _, value = part.partition(";")[0].partition("=")
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


MAX_UNKNOWN = 20
"""Unknown query parameters that a refusal names."""


def refuse_unknown(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise Invalid for unknown query parameters: a misspelt one would count as absent.

    The first `MAX_UNKNOWN` are named, each with the most similar known one.
    """
    unknown = [name for name in given if name not in known]
    errors = []
    for name in unknown[:MAX_UNKNOWN]:
        takes = f"known are {', '.join(known)}" if known else "this address has none"
        detail = (
            f"{shown(name)} is not a parameter of this address: {nearest(name, known) or takes}"
        )
        errors.append({"parameter": name[:100], "detail": detail})
    refuse_all(errors, "unknown_parameter")


MAX_TAGS = 10
"""Tags of a filter."""


class Times(NamedTuple):
    """From when until before when something was made, in seconds since 1970; None: without such an end."""

    created_after: float | None
    created_before: float | None


def _times(
    created_after: Annotated[
        AwareDatetime | None,
        Query(
            description="Only those whose `created_at` is this time or later, as RFC 3339 with a time zone.",
            examples=["2026-01-31T12:00:00Z"],
        ),
    ] = None,
    created_before: Annotated[
        AwareDatetime | None,
        Query(
            description="Only those whose `created_at` is before this time, as RFC 3339 with a time zone."
        ),
    ] = None,
) -> Times:
    return Times(
        None if created_after is None else earliest_shown(created_after),
        None if created_before is None else earliest_shown(created_before),
    )


TimesDep = Annotated[Times, Depends(_times)]


def _row_filter(
    times: TimesDep,
    search: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Only those whose name contains this text; for evaluations, comparisons and batch scores: the "
            "name of a model or of the dataset. Upper and lower case of A to Z are equal.",
            examples=["churn"],
        ),
    ] = None,
) -> RowFilter:
    return RowFilter(search, *times)


RowFilterDep = Annotated[RowFilter, Depends(_row_filter)]


def _tagged_filter(
    only: RowFilterDep,
    tag: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=511)]] | None,
        Query(
            max_length=MAX_TAGS,
            description="Only those with this tag, as `name:value`, or as `name` for any value. Several: those with "
            "all of them. Names and values may have colons: every way to read the text counts.",
            examples=["team:risk"],
        ),
    ] = None,
) -> RowFilter:
    return replace(only, tags=tuple(tag or ()))


SORT_DOCS = (
    "What the entries are ordered by; after `-`, the greatest or newest is first. `name` is the model's in lists of "
    "evaluations and batch scores, the dataset's in that of comparisons."
)
Sort = Annotated[
    Literal["created_at", "-created_at", "name", "-name"], Query(description=SORT_DOCS)
]
TaggedFilterDep = Annotated[RowFilter, Depends(_tagged_filter)]

ContextDep = Annotated[Context, Depends(context_of)]
CallerDep = Annotated[Caller, Depends(_caller)]
PagingDep = Annotated[Paging, Depends(_paging)]
ListFilterDep = Annotated[ListFilter, Depends(_list_filter)]
