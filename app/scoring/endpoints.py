"""Routes for scoring: one row by GET, and many by POST."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
from fastapi import APIRouter, Depends, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.access.authentication import (
    Authenticator,
    GuardedRoute,
    credential_of,
    needs,
    require_json,
)
from app.datasets.description import Format, check_encoding, check_format
from app.datasets.uploads import field_docs
from app.http.bodies import MAX_BODY, body_too_large, limit_of, takes_body
from app.http.dependencies import CallerDep, Context, ContextDep, query_of
from app.http.responses import FilesResponse, choose_media_type, etag_matches
from app.platform.callers import Caller
from app.platform.errors import Invalid
from app.platform.settings import Settings
from app.scoring import (
    json_rows,
    large_tables,
    probabilities,
    reasons,
    table_rows,
    turns,
)
from app.scoring import service as scoring
from app.scoring.answers import JSON, OFFERS, ColumnValues, ScoresResponse, warning_headers
from app.scoring.decisions import Decisions, Recording
from app.scoring.dependencies import (
    LabelQuery,
    ModelsDep,
    is_json,
    is_lenient,
    media_type_of,
)
from app.scoring.json_rows import IdAndIgnored, JsonRows
from app.scoring.probabilities import DEFAULT, ProbabilityFields, ProbabilityOptions
from app.scoring.reasons import Estimates, ReasonFields, ReasonOptions, Reasons
from app.scoring.row_query import OPTIONS, RowQuery
from app.scoring.schemas import (
    ROWS,
    ROWS_BODY,
    TABLE_ANSWER,
    TABLE_BODY,
    Explanations,
    LabelScore,
    LabelScores,
    Ranking,
    Score,
    Scores,
)
from app.scoring.service import ModelCache, Served
from app.scoring.service import RowScores as Rows
from app.scoring.table_rows import (
    ID,
    JsonRowFields,
    RowFields,
    TableOptions,
    bounds_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

BesideDep = Annotated[JsonRowFields, Depends(query_of(JsonRowFields))]
FieldsDep = Annotated[RowFields, Depends(query_of(RowFields))]


async def _probability_options(
    fields: Annotated[ProbabilityFields, Depends(query_of(ProbabilityFields))],
) -> ProbabilityOptions:
    return fields.options()


ProbabilityDep = Annotated[ProbabilityOptions, Depends(_probability_options)]


async def _reason_options(
    fields: Annotated[ReasonFields, Depends(query_of(ReasonFields))],
) -> ReasonOptions | None:
    return fields.options()


ReasonDep = Annotated[ReasonOptions | None, Depends(_reason_options)]


async def answer_rows(
    request: Request,
    context: Context,
    models: ModelCache,
    caller: Caller,
    ref: str,
    fields: RowFields,
    make: Callable[[Served, Rows], ScoresResponse],
    asked: ReasonOptions | None = None,
    *,
    by_block: bool = False,
) -> Response:
    """Parse and score the rows of the body; `make` constructs the response, `asked` are the options of reasons.

    `by_block`: a table that exceeds the limit of a body is scored from a file.
    """
    media_type = choose_media_type(request, OFFERS)
    score = _reader(request, context.settings, fields)
    headers = {"Vary": "Accept"}
    if is_lenient(request):
        headers["Preference-Applied"] = "handling=lenient"
    received, rest = await large_tables.read_up_to(request, context.settings.max_body_bytes)
    if rest is not None:
        if not by_block or is_json(request):
            raise body_too_large(limit_of(context.settings, MAX_BODY))
        table, options = _table_of(request, fields)
        large = large_tables.LargeTable(ref, table, options, media_type, make)
        parts, own, done = await large_tables.score(request, models, large, received, rest)
        return FilesResponse(parts, media_type, headers | own, done)
    served = await turns.find_model(models, caller.owner, ref)
    served = served.recorded(request.scope, caller)
    headers["X-Model-ID"] = served.model_id
    sent_as = media_type_of(request)
    body = _as_read(received, sent_as)
    seconds = turns.seconds_of(served, body, sent_as, compressed=_is_compressed(request, body))

    def work() -> bytes | memoryview:
        model = served.noting()
        if asked is not None:
            reasoner = reasons.prepare(context.db.reading, caller.owner, model, asked)
            model = replace(model, reasoner=reasoner)
        made = make(model, score(model, body))
        if warnings := model.columns.warnings():
            headers.update(warning_headers(warnings))
            made = replace(made, json={**made.json, "warnings": warnings})
        content = made.write(media_type)
        if model.recording is not None:  # the request has no error
            model.recording.commit()
        return content

    if asked is not None:  # the contributions of trees take long
        seconds = math.inf
    content = await turns.run(context, caller.owner, seconds, work, inline=sent_as == JSON)
    return Response(content, media_type=media_type, headers=headers)


def _as_read(body: bytes | memoryview, media_type: str) -> bytes | memoryview | pa.Buffer:
    """Return a body as its reader takes it, without a copy."""
    if media_type == JSON:
        return body
    import pyarrow as pa

    return pa.py_buffer(body)


def _is_compressed(request: Request, body: bytes | memoryview | pa.Buffer) -> bool:
    """A table may be compressed without a header."""
    from app.ingest.stream import find_compression

    if "content-encoding" in request.headers:
        return True
    return not is_json(request) and find_compression(body, None) is not None


def _reader(
    request: Request, settings: Settings, fields: RowFields
) -> Callable[[Served, Any], Rows]:
    """Choose the function that scores the body. Raises for invalid headers and query before the body is read."""
    from app.ingest.stream import Stream

    lenient = is_lenient(request)
    encoding = request.headers.get("content-encoding")
    if is_json(request):
        if foreign := [name for name in fields.texts() if name not in JsonRowFields.model_fields]:
            detail = f"{', '.join(foreign)} can be set only for a table, but the body is {JSON}"
            errors = [{"parameter": name, "detail": detail} for name in foreign]
            raise Invalid(detail, errors=errors)
        beside = IdAndIgnored.of(fields)
        compression = check_encoding(encoding)
        most = settings.max_body_bytes

        def score_json(served: Served, body: bytes) -> Rows:
            bounds = bounds_of(settings, len(body))
            if compression is not None:
                with Stream(body, compression, most) as stream:
                    body = stream.read()
            rows = json_rows.read(served.columns, body, beside, bounds, lenient=lenient)
            return served.score_identified(rows.X, rows.ids)

        return score_json
    table, options = _table_of(request, fields)
    return lambda served, body: scoring.score_body(
        served, body, table, options, bounds_of(settings, len(body))
    )


def _table_of(request: Request, fields: RowFields) -> tuple[Format, TableOptions]:
    """Return the format and the options of a table. Raises for invalid headers and fields."""
    headers = request.headers
    encoding = headers.get("content-encoding")
    content_type = headers.get("content-type", "")
    table: Format = check_format(content_type, encoding, also=JSON, needs_header=False)
    described = table_rows.describe(fields, lenient=is_lenient(request))
    return table, table_rows.check_options(described, table)


router = APIRouter(prefix="/v1/models", tags=["scoring"], route_class=GuardedRoute)

SCORE_PATH = "/v1/models/{ref}/score"
ROW_PATHS = re.compile(r"/v1/models/[^/]+/(score|rank|explain|points|letters)")
"""The paths that take rows."""
_ANYTHING = (b"*/*", b"application/json")  # nearly all clients accept these


class _RowAnswer(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class ScoreRow:
    """The route GET /v1/models/{ref}/score?age=41&income=52000 as plain ASGI.

    FastAPI's dependencies and responses would cost more than the score. If key and model were read within the last
    second, everything is in memory.
    """

    needs = "score"
    path_format = (
        SCORE_PATH  # sets the route for the metrics, as the framework does for other routes
    )

    def __init__(self, authenticator: Authenticator, models: ModelCache, context: Context) -> None:
        self._authenticator = authenticator
        self._models = models
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one row."""
        scope["route"] = self
        head = _row_headers(scope)
        caller = await self._authenticator.authenticate(
            credential_of(head.authorization), "score", scope
        )
        self._context.occupy(scope, caller.owner)
        if head.picky:
            choose_media_type(Request(scope), ("application/json",))
        ref = scope["path_params"]["ref"]
        served = await turns.find_model(self._models, caller.owner, ref)
        recording = served.recording_of(scope, caller)
        query = RowQuery.of(scope["query_string"], served.columns.names)
        work = partial(self._answer, caller.owner, scope, head, served, recording, query)
        seconds = served.cost.of(1) if query.reasons is None else math.inf
        status, headers, body = await turns.run(
            self._context, caller.owner, seconds, work, inline=True
        )
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _answer(
        self,
        owner: str,
        scope: Scope,
        head: _RowHeaders,
        served: Served,
        recording: Recording | None,
        query: RowQuery,
    ) -> _RowAnswer:
        """The response is a 304 if its ETag matches."""
        asked = query.tag
        if query.reasons is not None:
            reasoner = reasons.prepare(self._context.db.reading, owner, served, query.reasons)
            served = replace(served, reasoner=reasoner)
            asked += repr((query.reasons, reasoner.described)).encode()
        lenient = head.prefer is not None and is_lenient(Request(scope))
        features = served.columns.noting()
        row = features.row_of_query(query.values, lenient=lenient)
        if warnings := features.warnings():
            asked += repr(warnings).encode()
        status, body = 200, b""
        if scope["path_params"]["ref"] == served.model_id:
            tag = served.entity_tag(row, asked)
            out = [(b"cache-control", b"private"), (b"etag", tag.encode())]
            held = head.if_none_match
            if held is not None and etag_matches(held.decode("latin-1"), tag):
                status = 304
        elif recording is not None:  # each response has another decision
            out = [(b"cache-control", b"no-store")]
        else:  # the name may point to another model at any time
            out = [(b"cache-control", b"no-cache")]
        if lenient:
            out.append((b"preference-applied", b"handling=lenient"))
        if status == 200:
            if served.labels is not None:
                body = _label_scores(served, row, query.probability)
            else:
                placed = served.score_one(row)
                body = _one_score(served, placed, query.probability)
                if served.reasoner is not None:
                    body = _with_reasons(served, row, body)
                if recording is not None:
                    ids = None if query.id is None else [query.id]
                    made = recording.add(served, row, np.array(placed[:1]), ids)
                    recording.commit()
                    body = _with_decision(made, body)
            if warnings:
                body = body[:-1] + b',"warnings":' + orjson.dumps(warnings) + b"}"
            if query.id is not None:
                body = b'{"id":' + orjson.dumps(query.id) + b"," + body[1:]
            out.append((b"content-type", b"application/json"))
            out.append((b"content-length", b"%d" % len(body)))
        return _RowAnswer(status, out, body)


class _RowHeaders(NamedTuple):
    authorization: bytes | None
    if_none_match: bytes | None
    prefer: bytes | None
    picky: bool


def _row_headers(scope: Scope) -> _RowHeaders:
    authorization, if_none_match, prefer, picky = None, None, None, False
    for name, value in scope["headers"]:
        if name == b"authorization":
            authorization = value
        elif name == b"if-none-match":
            if_none_match = value
        elif name == b"prefer":
            prefer = value
        elif name == b"accept" and value not in _ANYTHING:
            picky = True
    return _RowHeaders(authorization, if_none_match, prefer, picky)


def _one_score(
    served: Served, placed: tuple[float, float | None, float | None], options: ProbabilityOptions
) -> bytes:
    """Return JSON of score, FPR and TPR."""
    score, fpr, tpr = placed
    # repr of a finite float is its JSON
    places = '"fpr":null,"tpr":null' if fpr is None else f'"fpr":{fpr!r},"tpr":{tpr!r}'
    approximate = ',"approximate":true' if served.approximate else ""
    if options is not DEFAULT:
        derived = _derived(served, score, options)
    else:
        found = None if served.calibration is None else served.calibration.calibration
        derived = f',"probability":{"null" if found is None else repr(found.probability_of(score))}'
        if served.scale is not None:
            derived += f',"points":{served.scale.total(score)!r}'
    flag = ""
    if served.flag_threshold is not None:
        flag = ',"flag":true' if score >= served.flag_threshold else ',"flag":false'
    start = f'{{"model_id":"{served.model_id}","score":{score!r},{places}'
    return f"{start}{derived}{flag}{approximate}}}".encode()


def _with_reasons(served: Served, row: npt.NDArray[np.float64], body: bytes) -> bytes:
    """Return the JSON with reasons."""
    found = served.score(row).reasons
    assert found is not None
    members = {"reasons": found.as_json()[0], "reasons_rest": found.rest.item()}
    members["exact"] = found.exact.item()
    written = orjson.dumps({**members, "reference": found.described})
    return body[:-1] + b"," + written[1:]


def _with_decision(made: Decisions, body: bytes) -> bytes:
    """Return the JSON with the decision."""
    review = b"true" if made.review[0] else b"false"
    return b'{"decision_id":"%s","review":%s,' % (made.ids[0].encode(), review) + body[1:]


def _derived(served: Served, score: float, options: ProbabilityOptions) -> str:
    """Return JSON members, each preceded by a comma."""
    columns = options.columns(served, np.array([score]))
    members: dict[str, Any] = {
        name: None if column is None else column.item() for name, column in columns.items()
    }
    members |= options.reason(served)
    return "".join(
        f",{orjson.dumps({name: value})[1:-1].decode()}" for name, value in members.items()
    )


def _label_scores(
    served: Served, row: npt.NDArray[np.float64], options: ProbabilityOptions
) -> bytes:
    scores = served.score(row)[0][0].tolist()
    named = dict(zip(served.labels or (), scores, strict=True))
    return orjson.dumps({"model_id": served.model_id, "scores": named, **options.reason(served)})


def score_route(authenticator: Authenticator, models: ModelCache, context: Context) -> Route:
    """Register it before the others: the router tries routes in order."""
    row = ScoreRow(authenticator, models, context)
    return Route(SCORE_PATH, row, methods=["GET"], name="score_row")


SCORE_ROW_DOCS: dict[str, Any] = {
    "tags": ["scoring"],
    "summary": "Score one row",
    "description": (
        "Pass each feature as a query parameter. An empty value counts as missing, and so does a "
        "category that did not occur in training. A feature without a parameter is an error, unless "
        "it had missing values in training or the request has `Prefer: handling=lenient`. If `ref` is "
        "an id, the response has an ETag; otherwise it is `no-cache`. If `ref` is an alias with a "
        "guarantee, the response has a `flag`. If the decisions of the alias are recorded, it has a `decision_id` and "
        "`review`, and is `no-store`. The service never logs query strings, but proxies may. "
        "Use POST for personal data."
    ),
    "operationId": "score_row",
    "parameters": [
        {
            "name": "ref",
            "in": "path",
            "required": True,
            "schema": {"type": "string"},
        },
        {
            "name": "features",
            "in": "query",
            "required": False,
            "description": "The model's features, one query parameter each.",
            "style": "form",
            "explode": True,
            "schema": {"type": "object", "additionalProperties": {"type": "string"}},
            "example": {"age": "41", "income": "52000", "contract": "two year"},
        },
        *field_docs(
            {
                name: {
                    **schema,
                    "description": f"{schema['description']} A feature with this name takes precedence.",
                }
                for fields in OPTIONS
                for name, schema in fields.schemas().items()
            }
        ),
        {
            "name": "Prefer",
            "in": "header",
            "required": False,
            "description": "`handling=lenient`: a feature without a parameter counts as missing.",
            "schema": {"type": "string"},
            "example": "handling=lenient",
        },
        {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "ETag of an earlier response. Returns 304 if the response has not changed.",
            "schema": {"type": "string"},
        },
    ],
    "responses": {
        "200": {
            "description": "The score of the row.",
            "content": {
                "application/json": {
                    "schema": {
                        "anyOf": [
                            {"$ref": "#/components/schemas/Score"},
                            {"$ref": "#/components/schemas/LabelScore"},
                        ]
                    }
                }
            },
        },
        "304": {"description": "The response has not changed since the caller's copy."},
    },
}
DESCRIBED = (Score, LabelScore, *ROWS)
"""Shapes that FastAPI does not find by itself."""


@router.post(
    "/{ref}/score",
    response_model=Scores | LabelScores,
    summary="Score rows",
    openapi_extra=TABLE_BODY,
    responses=TABLE_ANSWER,
)
@needs("score")
@takes_body(MAX_BODY, "max_streamed_bytes")
async def score_rows(
    *,
    ref: str,
    request: Request,
    context: ContextDep,
    models: ModelsDep,
    caller: CallerDep,
    fields: FieldsDep,
    options: ProbabilityDep,
    asked: ReasonDep,
) -> Response:
    """Return the scores in the order of the rows, each with its FPR and TPR on the validation curve, and the
    probability that the row is positive. Under an alias with a guarantee, the response also has `flags`. If the
    decisions of the alias are recorded, it has `decision_ids` and `reviews`: which rows to review. With
    `reasons=3`, it has the three largest contributions to each score compared with a reference; then up to 1,000 rows
    are allowed.

    The body is JSON in one of two forms, or a table: CSV, NDJSON or Arrow; uncompressed, gzip or zstd. A table must
    have the features as columns, in any order. Other columns are an error, unless `ignore` names them or the request
    has `Prefer: handling=lenient`. `Accept` selects the format of the response: JSON, CSV, NDJSON, Arrow or Parquet.

    A table may be larger than other bodies (`RANKWRIGHT_MAX_STREAMED_BYTES`): it is then scored in blocks. The response
    is sent when all rows are scored.
    """

    def make(served: Served, found: Rows) -> ScoresResponse:
        head: dict[str, Any] = {"model_id": served.model_id}
        ids: dict[str, ColumnValues] = {}
        if found.ids is not None:
            head, ids = head | {"ids": found.ids}, {ID: found.ids}
        if served.labels is not None:
            _check_labels(served.labels, ids)
            named = {"labels": served.labels, "scores": found.scores, **options.reason(served)}
            of_labels = dict(zip(served.labels, found.scores.T, strict=True))
            return ScoresResponse(head | named, ids | of_labels)
        columns: dict[str, ColumnValues] = {
            "score": found.scores,
            "fpr": found.fprs,
            "tpr": found.tprs,
        }
        approximate = {"approximate": True} if served.approximate else {}
        body = {f"{name}s": column for name, column in columns.items()}
        added: dict[str, ColumnValues] = {**options.columns(served, found.scores)}
        body |= {probabilities.PLURALS[name]: column for name, column in added.items()}
        flags = served.flags(found.scores)
        if found.decisions is not None:
            flags |= found.decisions.columns()
        body |= {f"{name}s": column for name, column in flags.items()}
        rest = approximate | options.reason(served)
        table = ids | columns | added | flags
        if found.reasons is not None:
            rest |= _reasons_of(found.reasons)
            table |= found.reasons.as_columns()
        return ScoresResponse(head | body | rest, table)

    terms = (request, context, models, caller, ref, fields)
    return await answer_rows(*terms, make, asked, by_block=asked is None)


def _check_labels(labels: list[str], ids: dict[str, ColumnValues]) -> None:
    """Raise Invalid if a label has the name of the column of ids."""
    if ids and ID in labels:
        raise Invalid(f"ids are not available for a model with the label {ID!r}")


def _reasons_of(found: Reasons) -> dict[str, Any]:
    """Return the response members with reasons for many rows."""
    return {
        "reasons": found.as_json(),
        "reasons_rest": found.rest,
        "exact": found.exact,
        "reference": found.described,
    }


@router.post(
    "/{ref}/rank",
    response_model=Ranking,
    summary="Rank rows",
    openapi_extra=TABLE_BODY,
    responses=TABLE_ANSWER,
)
@needs("score")
async def rank_rows(
    *,
    ref: str,
    request: Request,
    context: ContextDep,
    models: ModelsDep,
    caller: CallerDep,
    fields: FieldsDep,
    top: Annotated[
        int | None,
        Query(ge=1, le=2**31, description="Maximum number of rows in the response. Default: all."),
    ] = None,
    label: LabelQuery = None,
    options: ProbabilityDep,
) -> Response:
    """Return the row numbers, from 0, best row first, with scores and probabilities. Rows with equal scores keep their
    order. The formats are the same as for `…/score`.
    """

    def make(served: Served, found: Rows) -> ScoresResponse:
        position = served.label(label)
        scores = found.scores if served.labels is None else found.scores[:, position]
        order = scoring.rank(scores, top)
        best = scores[order]
        ids = None if found.ids is None else found.ids.take(order)
        added: dict[str, ColumnValues] = {**options.columns(served, best)}
        body = {
            "model_id": served.model_id,
            **({} if ids is None else {"ids": ids}),
            "indices": order,
            "scores": best,
            **{probabilities.PLURALS[name]: column for name, column in added.items()},
            **options.reason(served),
        }
        named: dict[str, ColumnValues] = {} if ids is None else {ID: ids}
        made: dict[str, ColumnValues] = {}
        if found.decisions is not None:  # about all rows, also those that are not returned
            made = found.decisions.take(order).columns()
        body |= {f"{name}s": column for name, column in made.items()}
        return ScoresResponse(body, {**named, "index": order, "score": best, **added, **made})

    return await answer_rows(request, context, models, caller, ref, fields, make)


@router.post(
    "/{ref}/explain",
    response_model=Explanations,
    summary="Explain scores",
    openapi_extra=ROWS_BODY,
)
@needs("score")
async def explain_rows(
    *,
    ref: str,
    request: Request,
    context: ContextDep,
    models: ModelsDep,
    caller: CallerDep,
    fields: BesideDep,
    label: LabelQuery = None,
    options: ProbabilityDep,
) -> Response:
    """Return each score as a sum: the mean training score plus one contribution per feature. The probability is that of
    the score; contributions add up to scores, not to probabilities. If the scores are not sums over features, the
    contributions are estimates, each with its standard error.
    """
    require_json(request)
    body, lenient = await request.body(), is_lenient(request)
    beside = IdAndIgnored.of(fields)
    served = await turns.find_model(models, caller.owner, ref)

    def begin() -> tuple[JsonRows, Estimates | None]:
        bounds = bounds_of(context.settings, len(body))
        rows = served.read_features(body, beside, bounds, lenient=lenient)
        estimates = scoring.check_explained(context.db.reading, caller.owner, served, len(rows.X))
        return rows, estimates

    rows, estimates = await run_in_threadpool(begin)

    def explain() -> bytes:
        explained = scoring.explain(served, rows.X, label, options, estimates)
        if rows.ids is not None:
            explained = [
                {ID: id, **each} for id, each in zip(rows.ids.to_pylist(), explained, strict=True)
            ]
        answer = {"model_id": served.model_id, "explanations": explained, **options.reason(served)}
        return orjson.dumps(answer)

    # The exact contributions of a row take about as long as one score per feature.
    seconds = math.inf if estimates else served.cost.of(rows.X.size)
    content = await turns.run(context, caller.owner, seconds, explain)
    headers = {"Preference-Applied": "handling=lenient"} if lenient else None
    return Response(content, media_type="application/json", headers=headers)
