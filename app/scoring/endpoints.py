"""Scoring: one row by GET, on a path kept as short as it can be, and many by POST."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import orjson
from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.access.authentication import GuardedRoute, authenticate, needs, require_json
from app.http.dependencies import CallerDep, Context, ContextDep
from app.http.responses import choose
from app.models.endpoints import matches
from app.scoring import service as scoring
from app.scoring.answers import Answer, Column
from app.scoring.bodies import SaidDep, answer_rows, bounds_of, is_lenient, rows_of
from app.scoring.schemas import (
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
from app.scoring.service import Scores as Rows
from app.scoring.service import Served

router = APIRouter(prefix="/v1/models", tags=["scoring"], route_class=GuardedRoute)

SCORE_PATH = "/v1/models/{ref}/score"
_ANYTHING = (b"*/*", b"application/json")  # what nearly all clients accept
LabelQuery = Annotated[
    str | None, Query(description="Which label's scores, of a model with several.")
]


class ScoreRow:
    """GET /v1/models/{ref}/score?age=41&income=52000: plain ASGI, no queue, no write, no model of the parameters.

    Everything is in memory once key and model were seen within the last second.
    """

    needs = "score"
    path = SCORE_PATH  # for the figures, as other routes have it

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one row."""
        scope["route"] = self
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
        caller = await authenticate(self._context, authorization, "score", scope.get("client"))
        if picky:
            choose(Request(scope), ("application/json",))
        ref = scope["path_params"]["ref"]
        served = self._context.models.cached(caller.owner, ref)
        if served is None:
            served = await run_in_threadpool(self._context.models.find, caller.owner, ref)
        lenient = prefer is not None and is_lenient(Request(scope))
        row = served.features.row_of_query(scope["query_string"], lenient=lenient)
        status, body = 200, b""
        if ref == served.model_id:
            tag = served.entity_tag(row)
            out = [(b"cache-control", b"private"), (b"etag", tag.encode())]
            if if_none_match is not None and matches(if_none_match.decode("latin-1"), tag):
                status = 304
        else:  # what the name means may change at any time
            out = [(b"cache-control", b"no-cache")]
        if lenient:
            out.append((b"preference-applied", b"handling=lenient"))
        if status == 200:
            body = _one_score(served, row) if served.labels is None else _label_scores(served, row)
            out.append((b"content-type", b"application/json"))
            out.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": out})
        await send({"type": "http.response.body", "body": body})


def _one_score(served: Served, row: npt.NDArray[np.float64]) -> bytes:
    score, fpr, tpr = served.score_one(row)
    # repr of a finite float is its JSON
    places = '"fpr":null,"tpr":null' if fpr is None else f'"fpr":{fpr!r},"tpr":{tpr!r}'
    said = ',"approximate":true' if served.approximate else ""
    return f'{{"model_id":"{served.model_id}","score":{score!r},{places}{said}}}'.encode()


def _label_scores(served: Served, row: npt.NDArray[np.float64]) -> bytes:
    scores = served.score(row)[0][0].tolist()
    named = dict(zip(served.labels or (), scores, strict=True))
    return orjson.dumps({"model_id": served.model_id, "scores": named})


def score_route(context: Context) -> Route:
    """The route of one row. Registered before the others: the router asks in order."""
    return Route(SCORE_PATH, ScoreRow(context), methods=["GET"], name="score_row")


SCORE_ROW_DOCS: dict[str, Any] = {
    "tags": ["scoring"],
    "summary": "Score one row",
    "description": "One query parameter a feature. An empty value is missing, and so is a text that a categorical "
    "feature did not have in training. A feature that is absent altogether is "
    "refused, unless it had missing values in training or the caller says `Prefer: handling=lenient`. By id the "
    "answer has an ETag; by name or alias it is `no-cache`. Query strings are never logged here, but proxies may: "
    "for personal data prefer POST.",
    "operationId": "score_row",
    "parameters": [
        {
            "name": "ref",
            "in": "path",
            "required": True,
            "description": "Id, name, name:version or name@alias.",
            "schema": {"type": "string"},
        },
        {
            "name": "features",
            "in": "query",
            "required": False,
            "description": "The model's features, each a parameter of its own.",
            "style": "form",
            "explode": True,
            "schema": {"type": "object", "additionalProperties": {"type": "string"}},
            "example": {"age": "41", "income": "52000", "contract": "two year"},
        },
        {
            "name": "Prefer",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "example": "handling=lenient",
        },
        {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
        },
    ],
    "responses": {
        "200": {
            "description": "The score.",
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
        "304": {"description": "The caller has the answer already."},
    },
}
SCORE_ROW_SCHEMAS = (Score, LabelScore)


@router.post(
    "/{ref}/score",
    response_model=Scores | LabelScores,
    summary="Score many rows",
    openapi_extra=TABLE_BODY,
    responses=TABLE_ANSWER,
)
@needs("score")
async def score_rows(
    *, ref: str, request: Request, context: ContextDep, caller: CallerDep, said: SaidDep
) -> Response:
    """Scores in row order, each with its place on the validation curve.

    The body is JSON in one of two forms, or a table: CSV, NDJSON or Arrow, plain, gzip or zstd, with the features as
    columns by name in any order. Other columns are refused, unless `ignore` names them or the caller says `Prefer:
    handling=lenient`. `Accept` chooses JSON, CSV, NDJSON, Arrow or Parquet for the answer.
    """

    def make(served: Served, found: Rows) -> Answer:
        if served.labels is not None:
            named = {"labels": served.labels, "scores": found.scores}
            of_labels = dict(zip(served.labels, found.scores.T, strict=True))
            return Answer({"model_id": served.model_id, **named}, of_labels)
        columns: dict[str, Column] = {
            "score": found.scores,
            "fpr": found.fprs,
            "tpr": found.tprs,
        }
        said = {"approximate": True} if served.approximate else {}
        body = {f"{name}s": column for name, column in columns.items()}
        return Answer({"model_id": served.model_id, **body, **said}, columns)

    return await answer_rows(request, context, caller, ref, said, make)


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
    caller: CallerDep,
    said: SaidDep,
    top: Annotated[int | None, Query(ge=1, le=2**31, description="Only so many.")] = None,
    label: LabelQuery = None,
) -> Response:
    """Row numbers from 0, best first; equal scores keep their order. Bodies and answers are as of `…/score`."""

    def make(served: Served, found: Rows) -> Answer:
        position = served.label(label)
        scores = found.scores if served.labels is None else found.scores[:, position]
        order = scoring.rank(scores, top)
        best = scores[order]
        body = {"model_id": served.model_id, "indices": order, "scores": best}
        return Answer(body, {"index": order, "score": best})

    return await answer_rows(request, context, caller, ref, said, make)


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
    caller: CallerDep,
    label: LabelQuery = None,
) -> Response:
    """Each score as a sum: the mean training score and, per feature, how the row differs from it."""
    require_json(request)
    body, lenient = await request.body(), is_lenient(request)
    cached, bounds = context.models.cached(caller.owner, ref), bounds_of(context.settings)

    def work() -> bytes:
        served = cached or context.models.find(caller.owner, ref)
        explained = scoring.explain(served, rows_of(served, body, lenient, bounds), label)
        return orjson.dumps({"model_id": served.model_id, "explanations": explained})

    content = await run_in_threadpool(work)
    headers = {"Preference-Applied": "handling=lenient"} if lenient else None
    return Response(content, media_type="application/json", headers=headers)
