"""Dependencies of endpoints in every domain: the caller, the process's context, paging, filters, preferences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

from fastapi import Depends, Header, Query
from pydantic import AwareDatetime, BeforeValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request

from app.http.limits import FairSemaphore, release_at_end
from app.http.schemas import earliest_shown
from app.http.server import Drain
from app.ingest.fields import TextFields
from app.platform import catalogue
from app.platform.background import BackgroundTasks
from app.platform.blobs import BlobStore
from app.platform.broker import Producer
from app.platform.callers import Caller
from app.platform.connections import ConnectionsFile
from app.platform.database import Database
from app.platform.errors import TooMany, nearest, refuse_all, shown
from app.platform.metrics import ApiMetrics
from app.platform.outage import OutageMemory
from app.platform.schema import SchemaCheck
from app.platform.settings import Settings
from app.platform.sql import RowFilter

Found = TypeVar("Found")
FieldsModel = TypeVar("FieldsModel", bound=TextFields)

MAX_COMPUTATIONS = 3
"""Long computations that run at once in a process, two of an owner: scores need the other threads."""
COMPUTATION_WAIT_SECONDS = 10.0
"""How long another computation waits for its turn, in seconds."""

MAX_TABLES = 2
"""Large tables that are scored at once in a process, one of an owner; each takes a thread for as long as it is long."""


@dataclass(frozen=True)
class Context:
    """What every endpoint may use: settings, database, blobs, broker, limits. `app.state`: objects of one domain."""

    settings: Settings
    db: Database
    schema: SchemaCheck
    blobs: BlobStore
    producer: Producer
    drain: Drain
    preload: Callable[[], object]
    preloaded: Event
    metrics: ApiMetrics
    uploads: FairSemaphore
    waiters: FairSemaphore
    requests: FairSemaphore
    publishing: BackgroundTasks
    background: BackgroundTasks
    memory: OutageMemory
    connections: ConnectionsFile
    computations: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(MAX_COMPUTATIONS, "computations", TooMany)
    )
    tables: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(MAX_TABLES, "tables", TooMany)
    )
    uploading: set[tuple[str, str | None]] = field(default_factory=set)

    def fetch(self, key: str) -> Path:
        """Raises BlobMissing and BlobDamaged."""
        return self.blobs.fetch(self.db.reading(catalogue.find, key))

    def occupy(self, scope: MutableMapping[str, Any], owner: str) -> None:
        """Acquire a permit of the owner until the request ends. Raises the error of `FairSemaphore.refusal`."""
        permit = self.requests.acquire(owner)
        release_at_end(scope, partial(self.requests.release, owner, permit))

    async def compute(self, owner: str, work: Callable[[], Found]) -> Found:
        """Run a long computation in a thread, after waiting outside it for a permit. TooMany: others take too long."""
        async with self.computations.turn(owner, COMPUTATION_WAIT_SECONDS):
            return await run_in_threadpool(work)


def context_of(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


async def _context(request: Request) -> Context:
    return context_of(request)  # not in a thread: health must not wait for one


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


def from_query(shape: type) -> Any:
    """Return a dependency that constructs a dataclass: each field is a query parameter, or a dependency.

    It is a coroutine function, because FastAPI would call the class itself in a thread.
    """

    async def make(**parameters: Any) -> Any:
        return shape(**parameters)

    hints = get_type_hints(shape, include_extras=True)
    fields = Signature.from_callable(shape).parameters.values()
    parameters = [field.replace(annotation=hints[field.name]) for field in fields]
    vars(make)["__signature__"] = Signature(parameters)
    return Depends(make)


@dataclass(frozen=True)
class Paging:
    """The page of a list: its size, and the cursor after which it begins."""

    limit: Annotated[
        int, Query(ge=1, le=200, description="Maximum number of items on the page.")
    ] = 50
    after: Annotated[
        str | None, Query(description="Cursor of the page: the `next` of the previous page.")
    ] = None


@dataclass(frozen=True)
class ListFilter:
    model_id: Annotated[str | None, Query(description="Only items of the model with this id.")] = (
        None
    )
    dataset_id: Annotated[
        str | None, Query(description="Only items on the dataset with this id.")
    ] = None


def preferences(request: Request) -> dict[str, str]:
    """Parse the Prefer header (RFC 7240). Of two with the same name, the first counts."""
    found: dict[str, str] = {}
    for header in request.headers.getlist("prefer"):
        for part in header.split(","):
            name, _, value = part.partition(";")[0].partition("=")
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


MAX_UNKNOWN = 20
"""Unknown query parameters that a refusal names."""


def refuse_unknown(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise Invalid for unknown (else ignored) parameters; the first `MAX_UNKNOWN` with the most similar one."""
    unknown = [name for name in given if name not in known]
    errors = []
    for name in unknown[:MAX_UNKNOWN]:
        takes = f"available are {', '.join(known)}" if known else "this route has none"
        detail = f"{shown(name)} is not a parameter of this route: {nearest(name, known) or takes}"
        errors.append({"parameter": name, "detail": detail})
    refuse_all(errors, "unknown_parameter")


def check_query(given: QueryParams, is_list: Mapping[str, bool]) -> None:
    """Raise Invalid for unknown parameters, and for repeated ones that are no lists (else the last would count).

    is_list: the parameters of the route.
    """
    refuse_unknown(given, list(is_list))
    counts = Counter(name for name, _ in given.multi_items())
    repeated = [name for name, count in counts.items() if count > 1 and not is_list[name]]
    refuse_all([{"parameter": name, "detail": f"{name} must be given once"} for name in repeated])


MAX_TAGS = 10
"""Tags of a filter."""


def query_of(fields: type[FieldsModel]) -> Callable[..., Awaitable[FieldsModel]]:
    """Return a dependency that reads a model's fields. In OpenAPI each field is a parameter."""

    async def read(**given: str | None) -> FieldsModel:
        return fields.parse({name: text for name, text in given.items() if text is not None})

    parameters = []
    for name, schema in fields.schemas().items():
        notes = {key: schema.pop(key, None) for key in ("description", "examples")}
        text = Annotated[Annotated[str, WithJsonSchema(schema)] | None, Query(**notes)]
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=text))
    read.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what FastAPI reads
    return read


class Times(NamedTuple):
    """A range of creation times, in seconds since 1970: the start is included, the end is not. None means no limit."""

    created_after: float | None
    created_before: float | None


_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)


def _refuse_numbers(value: object) -> object:
    """Raise an error for a number: pydantic would accept it as a time."""
    if isinstance(value, str) and not _RFC_3339.fullmatch(value):
        raise PydanticCustomError("rfc_3339", "must be a time in RFC 3339")
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_refuse_numbers)]
IfMatch = Annotated[
    str | None,
    Header(
        description="ETag of what is changed or deleted. Required if it exists.", examples=['"3"']
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(description="`*`: return an error if it exists already.", examples=["*"]),
]
AsOf = Annotated[
    Time | None,
    Query(
        description="Show what was known at this time. Default: now.",
        examples=["2026-06-30T00:00:00Z"],
    ),
]


async def _times(
    created_after: Annotated[
        Time | None,
        Query(
            description="Only items whose `created_at` is at or after this time, in RFC 3339 with a time zone.",
            examples=["2026-01-31T12:00:00Z"],
        ),
    ] = None,
    created_before: Annotated[
        Time | None,
        Query(
            description="Only items whose `created_at` is before this time, in RFC 3339 with a time zone."
        ),
    ] = None,
) -> Times:
    return Times(
        None if created_after is None else earliest_shown(created_after),
        None if created_before is None else earliest_shown(created_before),
    )


TimesDep = Annotated[Times, Depends(_times)]


async def _row_filter(
    times: TimesDep,
    search: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Only items whose name contains this text. For models: the name or an alias. For evaluations, "
            "comparisons and batch scores: the name of a model or of the dataset. Letters A to Z match in "
            "upper and lower case.",
            examples=["churn"],
        ),
    ] = None,
) -> RowFilter:
    return RowFilter(search, *times)


RowFilterDep = Annotated[RowFilter, Depends(_row_filter)]


async def _tagged_filter(
    only: RowFilterDep,
    tag: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=511)]] | None,
        Query(
            max_length=MAX_TAGS,
            description="Only items with this tag, as `name:value`, or as `name` for any value. If it is repeated: "
            "items with all of the tags. Names and values may contain colons: any split of the text "
            "matches.",
            examples=[["team:risk"]],
        ),
    ] = None,
) -> RowFilter:
    return replace(only, tags=tuple(tag or ()))


SORT_DOCS = (
    "Sort key; a leading `-` sorts in descending order. `name` is the name of the model in lists "
    "of evaluations and batch scores, and that of the dataset in lists of comparisons."
)
Sort = Annotated[
    Literal["created_at", "-created_at", "name", "-name"], Query(description=SORT_DOCS)
]
TaggedFilterDep = Annotated[RowFilter, Depends(_tagged_filter)]

ContextDep = Annotated[Context, Depends(_context)]
CallerDep = Annotated[Caller, Depends(_caller)]
PagingDep = Annotated[Paging, from_query(Paging)]
ListFilterDep = Annotated[ListFilter, from_query(ListFilter)]
