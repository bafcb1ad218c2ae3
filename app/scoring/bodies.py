"""Rows to be scored, as they are sent: JSON in two forms, or a table; and the way from there to the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import orjson
from fastapi import Depends, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.access.service import Caller
from app.datasets.service import Format, check_encoding, check_format
from app.http.dependencies import Context, preferences
from app.http.responses import choose
from app.platform.errors import Invalid, Malformed
from app.platform.settings import Settings
from app.scoring import options as score_terms
from app.scoring import service
from app.scoring.answers import JSON, OFFERS, Answer
from app.scoring.service import Scores, Served
from app.scoring.table_rows import Bounds, Floats

_INLINE_BYTES = 1 << 15  # what is parsed and scored in less time than a thread takes to start
_LARGE_BYTES = 1 << 20  # what takes memory, on the way to scores: only a few are there at once

Said = Mapping[str, str]
Text = Annotated[str | None, Query(min_length=1, max_length=4096)]


def _said(
    ignore: Annotated[
        Text,
        Query(
            description="Of a table: columns that are no feature and are passed over, with commas between; `*`: all.",
            examples=["customer_id,left"],
        ),
    ] = None,
    missing: Annotated[
        Text,
        Query(
            description="Of a table: what stands for a missing value beside the empty one; as in the dataset that the "
            "model learnt from unless it is given.",
            examples=["NA,unknown,-999"],
        ),
    ] = None,
    encoding: Annotated[Text, Query(description="Of a CSV, as for an upload.")] = None,
    delimiter: Annotated[Text, Query(description="Of a CSV, as for an upload.")] = None,
    decimal: Annotated[
        Text,
        Query(
            description="Of a CSV: `point` or `comma`; as in the dataset that the model learnt from unless it is given."
        ),
    ] = None,
) -> Said:
    given = {
        "ignore": ignore,
        "missing": missing,
        "encoding": encoding,
        "delimiter": delimiter,
        "decimal": decimal,
    }
    return {name: value for name, value in given.items() if value is not None}


SaidDep = Annotated[Said, Depends(_said)]


def is_lenient(request: Request) -> bool:
    """Whether the caller says `Prefer: handling=lenient`."""
    return preferences(request).get("handling") == "lenient"


def bounds_of(settings: Settings) -> Bounds:
    """How large a table may be that is read where it arrives."""
    return Bounds(settings.max_columns, settings.max_score_bytes)


async def answer_rows(
    request: Request,
    context: Context,
    caller: Caller,
    ref: str,
    said: Said,
    make: Callable[[Served, Scores], Answer],
) -> Response:
    """Parse, score and write: in the loop when it is little, else in a thread."""
    media_type = choose(request, OFFERS)
    score = _reader(request, context.settings, said)
    body = await request.body()
    served = context.models.cached(caller.owner, ref)

    def work() -> tuple[str, bytes]:
        model = served or context.models.find(caller.owner, ref)
        return model.model_id, make(model, score(model, body)).write(media_type)

    def work_in_turn() -> tuple[str, bytes]:
        with context.turn():
            return work()

    plain = is_json(request) and "content-encoding" not in request.headers
    if served is not None and plain and len(body) <= _INLINE_BYTES:
        model_id, content = work()
    else:
        small = len(body) <= _LARGE_BYTES and "content-encoding" not in request.headers
        model_id, content = await run_in_threadpool(work if small else work_in_turn)
    headers = {"X-Model-ID": model_id, "Vary": "Accept"}
    if is_lenient(request):
        headers["Preference-Applied"] = "handling=lenient"
    return Response(content, media_type=media_type, headers=headers)


def is_json(request: Request) -> bool:
    """Whether the body says that it is JSON."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON


def _reader(request: Request, settings: Settings, said: Said) -> Callable[[Served, bytes], Scores]:
    """What scores the body, by its headers and the address; says what is wrong with them before it is read."""
    from app.ingest.stream import Stream

    lenient = is_lenient(request)
    encoding = request.headers.get("content-encoding")
    if is_json(request):
        if said:
            detail = f"{', '.join(said)} can be said of a table only, the body is {JSON}"
            errors = [{"parameter": name, "detail": detail} for name in said]
            raise Invalid(detail, errors=errors)
        compression = check_encoding(encoding)
        most, bounds = settings.max_body_bytes, bounds_of(settings)

        def score_json(served: Served, body: bytes) -> Scores:
            if compression is not None:
                with Stream(body, compression, most) as stream:
                    body = stream.read()
            return service.score_matrix(served, rows_of(served, body, lenient, bounds))

        return score_json
    table: Format = check_format(request.headers.get("content-type", ""), encoding, also=JSON)
    terms = score_terms.check_said(score_terms.describe(said, lenient=lenient), table)
    bounds = bounds_of(settings)
    return lambda served, body: service.score_body(served, body, table, terms, bounds)


def rows_of(served: Served, body: bytes, lenient: bool, bounds: Bounds) -> Floats:
    """The rows of a JSON body, in either form; no more than a table may have, for absent features cost no bytes."""
    most = bounds.most_rows(len(served.features.names))
    plain = served.features.matrix_of_plain(body)
    if plain is not None and len(plain) <= most:
        return plain
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not JSON: {error}", code="malformed_json") from error
    match given:
        case {"rows": list(rows), **rest} if not rest:
            _check_count(rows, most)
            return served.features.matrix_of_rows(rows, lenient=lenient)
        case {"columns": list(columns), "data": list(data), **rest} if not rest:
            _check_count(data, most)
            return served.features.matrix_of_table(columns, data, lenient=lenient)
    raise Invalid(
        'the body must be {"rows": [{…}, …]} or {"columns": […], "data": [[…], …]} and nothing beside'
    )


def _check_count(rows: Sequence[object], most: int) -> None:
    if len(rows) > most:
        raise Invalid(
            f"a body may have at most {most} rows here, got {len(rows)}", code="too_many_rows"
        )
