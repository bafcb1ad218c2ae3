"""Doors for clients that nobody here wrote: the Open Inference Protocol under /oip, and the paths of containers of
MLflow, SageMaker and KServe v1.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app import __version__
from app.access.authentication import GuardedRoute, needs
from app.datasets.description import Format
from app.http.dependencies import Caller, CallerDep, Context, ContextDep
from app.ingest.formats import CSV
from app.platform.errors import Invalid, NotFound, UnsupportedMedia, shown
from app.scoring import inference_protocol as protocol
from app.scoring import service as scoring
from app.scoring.answers import JSON
from app.scoring.endpoints import ModelsDep, bounds_of, check_count
from app.scoring.service import ModelCache, Scores, Served
from app.scoring.table_rows import ALL, Bounds, TableOptions

Found = TypeVar("Found")

SERVER = "rankwright"
_LARGE_BYTES = 1 << 20
"""Bodies above this take memory, on the way to scores: only a few are read at once."""

router = APIRouter(
    prefix="/oip/v2",
    tags=["inference"],
    route_class=GuardedRoute,
    default_response_class=Response,
    include_in_schema=False,
)


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


@router.get("")
async def read_server() -> Response:
    """What answers here."""
    extensions = list(protocol.EXTENSIONS)
    return _json({"name": SERVER, "version": __version__, "extensions": extensions})


@router.get("/models/{ref}")
@router.get("/models/{ref}/versions/{version}")
@needs("score")
def read_model(
    ref: str, models: ModelsDep, caller: CallerDep, version: str | None = None
) -> Response:
    """A model's features as inputs, and what it answers as outputs."""
    served = models.find(caller.owner, _full(ref, version))
    return _json(protocol.describe_model(served, ref, [] if version is None else [version]))


@router.get("/models/{ref}/ready")
@router.get("/models/{ref}/versions/{version}/ready")
@needs("score")
def read_model_ready(
    ref: str, models: ModelsDep, caller: CallerDep, version: str | None = None
) -> Response:
    """Whether the model can be loaded; it is after this."""
    models.find(caller.owner, _full(ref, version))
    return _json({"name": ref, "ready": True})


@router.post("/models/{ref}/infer")
@router.post("/models/{ref}/versions/{version}/infer")
@needs("score")
async def infer(
    *,
    ref: str,
    request: Request,
    context: ContextDep,
    models: ModelsDep,
    caller: CallerDep,
    version: str | None = None,
) -> Response:
    """Score the rows that the inputs have."""
    settings, full = context.settings, _full(ref, version)
    bounds = bounds_of(settings)
    body = await request.body()
    encoding = request.headers.get("content-encoding")
    header_length = request.headers.get(protocol.HEADER_LENGTH)
    small = len(body) <= _LARGE_BYTES and encoding is None

    def score(served: Served) -> protocol.InferResponse:
        plain = protocol.decompress(body, encoding, settings.max_score_bytes)
        asked = protocol.read_request(plain, header_length)
        explained = partial(scoring.check_explained, context.db.reading, caller.owner)
        # Reasons may take seconds: a body that is not small has its turn.
        with context.computation() if small and asked.asks_for_reasons else nullcontext():
            return protocol.infer(served, asked, ref, version, bounds, explained)

    served, answer = await _in_turn(context, models, caller, full, small, score)
    headers = {"X-Model-ID": served.model_id}
    if answer.ignored:
        headers["X-Ignored-Inputs"] = _names_header(answer.ignored)
    media_type = "application/json"
    if answer.header_length is not None:
        headers["Inference-Header-Content-Length"] = str(answer.header_length)
        media_type = "application/octet-stream"
    content = _compressed(request, answer.body, headers)
    return Response(content, media_type=media_type, headers=headers)


def _names_header(names: Iterable[str]) -> str:
    """Return the names, quoted and comma-separated: as many as fit into 4,096 characters."""
    listed = ",".join(quote(name, safe="") for name in names)
    return listed if len(listed) <= 4096 else listed[:4097].rpartition(",")[0]


async def _in_turn(
    context: Context,
    models: ModelCache,
    caller: Caller,
    ref: str,
    small: bool,
    score: Callable[[Served], Found],
) -> tuple[Served, Found]:
    """Find the model and score, in a thread; of large bodies only a few at once."""
    cached = models.cached(caller.owner, ref)

    def work() -> tuple[Served, Found]:
        served = cached or models.find(caller.owner, ref)
        return served, score(served)

    def work_in_turn() -> tuple[Served, Found]:
        with context.computation():
            return work()

    return await run_in_threadpool(work if small else work_in_turn)


def _full(ref: str, version: str | None) -> str:
    return ref if version is None else f"{ref}:{version}"


def _compressed(request: Request, content: bytes, headers: dict[str, str]) -> bytes:
    """Compress the answer for a client that asks for one coding by name, as Triton's does where it is told to; those
    that list all that they can read are answered plainly, which is faster on any network that scores travel.
    """
    asked = request.headers.get("accept-encoding", "").strip().lower()
    if asked not in ("gzip", "deflate"):
        return content
    headers["Content-Encoding"] = asked
    return gzip.compress(content, 1) if asked == "gzip" else zlib.compress(content, 1)


# --- as containers of MLflow and SageMaker, and KServe v1 -----------------------------------------

FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs")
"""The forms of a JSON body: exactly one of them is there."""

invocations_router = APIRouter(
    tags=["inference"],
    route_class=GuardedRoute,
    default_response_class=Response,
    include_in_schema=False,
)


def _served_model(context: Context) -> str:
    """Return the model that the root's doors serve. NotFound: if no setting names one."""
    ref = context.settings.served_model
    if ref is None:
        raise NotFound(
            "no model is served at the root: set RANKWRIGHT_SERVED_MODEL, or ask"
            " /v1/models/{ref}/invocations"
        )
    return ref


@invocations_router.get("/ping")
@invocations_router.get("/health")
@needs("score")
def ping(context: ContextDep, models: ModelsDep, caller: CallerDep) -> Response:
    """Whether the model that a setting names can be loaded."""
    models.find(caller.owner, _served_model(context))
    return Response(b"\n", media_type="text/plain")


@invocations_router.get("/version")
async def read_version() -> Response:
    """The service's version, as text."""
    return Response(__version__, media_type="text/plain")


@invocations_router.get("/v1/models/{ref}/ping")
@needs("score")
def ping_model(ref: str, models: ModelsDep, caller: CallerDep) -> Response:
    """Whether the model can be loaded."""
    models.find(caller.owner, ref)
    return Response(b"\n", media_type="text/plain")


@invocations_router.post("/invocations")
@needs("score")
async def invoke(
    request: Request, context: ContextDep, models: ModelsDep, caller: CallerDep
) -> Response:
    """Score rows by the model that a setting names."""
    return await _invoke(request, context, models, caller, _served_model(context))


@invocations_router.post("/v1/models/{ref}/invocations")
@invocations_router.post("/v1/models/{ref}:predict")
@needs("score")
async def invoke_model(
    ref: str, request: Request, context: ContextDep, models: ModelsDep, caller: CallerDep
) -> Response:
    """Score rows by one model."""
    return await _invoke(request, context, models, caller, ref)


async def _invoke(
    request: Request, context: Context, models: ModelCache, caller: Caller, ref: str
) -> Response:
    """Answer `{"predictions": [score, …]}`, or the scores one a line where CSV is asked for alone."""
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type not in (JSON, CSV):
        raise UnsupportedMedia(f"Content-Type must be {JSON} or {CSV}, got {shown(media_type)}")
    encoding = request.headers.get("content-encoding")
    bounds = bounds_of(context.settings)
    body = await request.body()
    max_bytes = context.settings.max_score_bytes

    def score(served: Served) -> Scores:
        plain = protocol.decompress(body, encoding, max_bytes)
        read = _rows_of_csv if media_type == CSV else _rows_of_json
        return read(served, plain, bounds)

    served, found = await _in_turn(
        context, models, caller, ref, len(body) <= _LARGE_BYTES and encoding is None, score
    )
    headers = {"X-Model-ID": served.model_id}
    if request.headers.get("accept", "").partition(";")[0].strip().lower() == CSV:
        rows = found.scores.reshape(len(found.scores), -1).tolist()
        lines = "".join(",".join(map(repr, row)) + "\n" for row in rows)
        return Response(lines.encode(), media_type=CSV, headers=headers)
    content = orjson.dumps({"predictions": found.scores}, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(content, media_type=JSON, headers=headers)


def _rows_of_csv(served: Served, body: bytes, bounds: Bounds) -> Scores:
    """Score a CSV. Its first line has the columns' names if one of them is a feature; else it has the features' values
    in the model's order, as SageMaker sends them.
    """
    names = served.features.names
    first = next(csv.reader([body.partition(b"\n")[0].decode("utf-8", "replace")]), [])
    if not {name.strip() for name in first} & set(names):
        if len(first) != len(names):
            raise Invalid(
                f"a CSV without a line of names must have {len(names)} columns, got {len(first)}"
            )
        line = io.StringIO()
        csv.writer(line).writerow(names)
        body = line.getvalue().encode() + body
    options = TableOptions(ignore=(ALL,))
    return scoring.score_body(served, body, Format(CSV, None, None), options, bounds)


def _rows_of_json(served: Served, body: bytes, bounds: Bounds) -> Scores:
    """Score the rows of one of the `FORMS`; columns that are no feature are passed over."""
    given = protocol.parse_json(body)
    there = [form for form in FORMS if isinstance(given, dict) and form in given]
    if len(there) != 1:
        raise Invalid(f"the body must be a JSON object with exactly one of {', '.join(FORMS)}")
    form = there[0]
    rows = given[form]
    if form == "dataframe_split":
        if not isinstance(rows, dict) or not isinstance(rows.get("data"), list):
            raise Invalid("dataframe_split must be an object with columns and data")
        columns = rows.get("columns", served.features.names)
        return _score_lists(served, columns, rows["data"], bounds)
    if form == "inputs" and isinstance(rows, dict):
        rows = _rows_of_columns(rows)
    if not isinstance(rows, list):
        raise Invalid(f"{form} must be a list of rows")
    if rows and isinstance(rows[0], list):
        return _score_lists(served, served.features.names, rows, bounds)
    check_count(rows, bounds.max_rows(len(served.features.names)))
    known = set(served.features.names)
    if any(isinstance(row, dict) and not row.keys() <= known for row in rows):
        rows = [
            {name: row[name] for name in row if name in known} if isinstance(row, dict) else row
            for row in rows
        ]
    return served.score(served.features.matrix_of_rows(rows))


def _rows_of_columns(columns: dict[str, Any]) -> list[dict[str, Any]]:
    lengths = {len(values) if isinstance(values, list) else -1 for values in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        raise Invalid("inputs must be lists of equal length, one for each feature")
    flat = {
        name: [value[0] if isinstance(value, list) and len(value) == 1 else value for value in each]
        for name, each in columns.items()
    }
    return [dict(zip(flat, values, strict=True)) for values in zip(*flat.values(), strict=True)]


def _score_lists(served: Served, columns: Any, data: list[Any], bounds: Bounds) -> Scores:
    if not isinstance(columns, list):
        raise Invalid("columns must be a list of names")
    check_count(data, bounds.max_rows(len(served.features.names)))
    known = set(served.features.names)
    kept = [i for i, name in enumerate(columns) if isinstance(name, str) and name in known]
    if len(kept) < len(columns):
        for number, row in enumerate(data):
            if not isinstance(row, list) or len(row) != len(columns):
                raise Invalid(f"row {number} of data must be a list of {len(columns)} values")
        columns, data = [columns[i] for i in kept], [[row[i] for i in kept] for row in data]
    return served.score(served.features.matrix_of_table(columns, data))
