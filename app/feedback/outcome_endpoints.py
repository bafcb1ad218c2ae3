"""/v1/outcomes: what happened to the entities that were scored."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.datasets.description import check_encoding, check_format, refuse_clash, refuse_foreign
from app.feedback import outcome_service as service
from app.feedback.known import KnownRows, Reader
from app.feedback.outcome_bodies import Body
from app.feedback.outcome_schemas import OUTCOMES_BODY, SHAPES, OutcomesReceived
from app.feedback.outcomes import INLINE_ROWS, Outcomes
from app.http.dependencies import Context, ContextDep, query_of
from app.http.idempotency import CreationDep, validated
from app.ingest.formats import TextDialect
from app.platform.blobs import Blob
from app.platform.errors import Invalid
from app.platform.sql import Json, Session, read_clock
from app.scoring.answers import JSON
from app.scoring.dependencies import is_json
from app.scoring.table_rows import Bounds, bounds_of

PATH = "/v1/outcomes"
ROW_PATHS = re.compile(rf"{PATH}(/validate)?")
"""The paths that take rows."""
COMPACT_EVERY = 500
"""Requests of an owner after which a process looks whether there are many small ones."""
SMALL_BODY = 1 << 16
"""Bytes of a body that is read without a permit for long computations."""
router = APIRouter(prefix=PATH, tags=["feedback"], route_class=GuardedRoute)

DESCRIBED = SHAPES
"""Shapes that FastAPI does not find by itself."""
DialectDep = Annotated[TextDialect, Depends(query_of(TextDialect))]


async def _known(request: Request) -> KnownRows:
    known: KnownRows = request.app.state.known_rows
    return known


KnownDep = Annotated[KnownRows, Depends(_known)]


@validated(router, "", "outcomes", openapi_extra=OUTCOMES_BODY)
@router.post(
    "",
    response_model=OutcomesReceived,
    summary="Send outcomes",
    openapi_extra=OUTCOMES_BODY,
)
@needs("outcomes")
async def create_outcomes(
    *,
    request: Request,
    context: ContextDep,
    known: KnownDep,
    fields: DialectDep,
    new: CreationDep,
) -> Response:
    """Store what happened to the entities that were scored. The body is JSON in one of two forms, or a table: CSV,
    NDJSON or Arrow; uncompressed, gzip or zstd. If a row is invalid, nothing is stored.

    A row names a decision (`decision_id`) or an entity (`id`, with `event_at`: when it happened). Its `label` is true
    or false, 1 or 0, or a value of the model's label column. Null withdraws an earlier outcome. `known_at` is when you
    got to know it; default: now. `source` is a short text, such as `review` or `system`.

    A later outcome of the same decision or event corrects the earlier one. A row without `known_at` that equals an
    earlier outcome is a request that was sent again, and is ignored (`duplicates`, `replayed`): to change an outcome
    back, send `known_at`. Outcomes of unknown ids are kept, and wait for later decisions. Times may be up to
    5 minutes ahead of the service's clock.
    """
    body = _description(request, fields)
    content = await request.body()
    now = await run_in_threadpool(context.db.reading, read_clock)
    bounds = bounds_of(context.settings, len(content))
    check_labels = partial(service.check_labels, context.db.reading, new.owner)
    reader = _reader(context, new.owner)

    def work() -> tuple[Json, Outcomes, Blob | None]:
        outcomes = body(now, bounds).read(content, check_labels)
        counts, kept = known.compare(new.owner, outcomes, reader)
        answer = {"rows": len(outcomes), **counts._asdict()}
        if len(kept) < len(outcomes):
            outcomes = outcomes.take(kept)
        blob = None
        if len(outcomes) > INLINE_ROWS and not new.only_check:
            blob = service.write(context.blobs, new.owner, outcomes, now)
        return answer, outcomes, blob

    if len(content) <= SMALL_BODY:
        answer, outcomes, blob = await run_in_threadpool(work)
    else:
        answer, outcomes, blob = await context.compute(new.owner, work)

    def store(session: Session) -> Json:
        service.store(session, context.settings, new.owner, outcomes, blob)
        return answer

    if new.only_check:
        return await new.rehearse(store)
    created = await new.run_once(store)
    if not created.replayed:
        known.add(new.owner, outcomes)
        if known.stores(new.owner) % COMPACT_EVERY == 0:
            context.background.add(partial(_compact, context, new.owner))
    return JSONResponse(created.body, headers=created.headers)


def _description(request: Request, fields: TextDialect) -> Callable[[float, Bounds], Body]:
    """Return how to read the body. Raises for invalid headers and query before it is parsed."""
    headers = request.headers
    dialect = fields.dialect or {}
    if is_json(request):
        if dialect:
            detail = f"{', '.join(dialect)} can be set only for a table, but the body is {JSON}"
            errors = [{"parameter": name, "detail": detail} for name in dialect]
            raise Invalid(detail, errors=errors)
        return partial(Body, None, {}, check_encoding(headers.get("content-encoding")))
    table = check_format(
        headers.get("content-type", ""), headers.get("content-encoding"), also=JSON
    )
    refuse_foreign(dialect, table)
    refuse_clash(dialect)
    if table.charset is not None:
        dialect = {"encoding": table.charset} | dialect
    return partial(Body, table, dialect, table.content_encoding)


def _compact(context: Context, owner: str) -> None:
    """Merge small requests into one file, as housekeeping does, which may come too seldom."""
    from app.feedback import upkeep

    files = upkeep.Files(
        context.db.reading,
        context.db.writing,
        context.blobs,
        discard=lambda keys: 0,  # the sweeper does it
    )
    upkeep.compact(files, owner)


def _reader(context: Context, owner: str) -> Reader:
    return Reader(
        context.db.reading,
        partial(service.decision_keys, context.blobs),
        partial(service.lists, context.blobs, owner),
    )
