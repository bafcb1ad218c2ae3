"""The Open Inference Protocol under /oip, and the paths of containers of MLflow, SageMaker and KServe v1."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app import __version__
from app.access.authentication import GuardedRoute, keyless, needs
from app.datasets.description import Format, check_format
from app.http.dependencies import CallerDep, Context, ContextDep
from app.inference_protocols import open_inference as protocol
from app.ingest.formats import CSV
from app.models import repository as model_repository
from app.platform.callers import Caller
from app.platform.errors import Invalid, NotFound, UnsupportedMedia, shown
from app.scoring import cost, json_rows, turns
from app.scoring import service as scoring
from app.scoring.answers import JSON, ColumnValues, ScoresResponse, warning_headers
from app.scoring.cost import PERMIT_SECONDS
from app.scoring.dependencies import IdDep, ModelsDep, media_type_of
from app.scoring.json_rows import IdAndIgnored
from app.scoring.probabilities import ProbabilityFields
from app.scoring.service import ModelCache, RowScores, Served
from app.scoring.table_rows import ALL, ID, Bounds, TableOptions, bounds_of

SERVER = "rankwright"
PATHS = re.compile(r"(?s)/oip/.*|.*(/invocations|:predict)")
"""The paths of these protocols, also unknown ones: their problems have the form that clients expect."""
MAX_LISTED = 1000
"""Names in one answer of the repository's index: the protocol has no pages."""

router = APIRouter(
    prefix="/oip/v2",
    tags=["inference"],
    route_class=GuardedRoute,
    default_response_class=Response,
    include_in_schema=False,
)


def _json(content: dict[str, Any] | list[dict[str, Any]]) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")


@router.get("")
async def read_server() -> Response:
    """What answers here."""
    extensions = list(protocol.EXTENSIONS)
    return _json({"name": SERVER, "version": __version__, "extensions": extensions})


@router.get("/models/{ref}")
@router.get("/models/{ref}/versions/{version}")
@needs("score")
async def read_model(
    ref: str, models: ModelsDep, caller: CallerDep, version: str | None = None
) -> Response:
    """A model's features as inputs, and what it answers as outputs."""
    served = await turns.find_model(models, caller.owner, _full(ref, version))
    return _json(protocol.describe_model(served, ref, [] if version is None else [version]))


@router.post("/repository/index")
@needs("read")
def read_index(context: ContextDep, caller: CallerDep) -> Response:
    """The caller's models by name, each with its newest version, as Triton's client asks for them."""
    names = context.db.reading(model_repository.list_newest, caller.owner, MAX_LISTED)
    index = [{"name": name, "version": str(version), "state": "READY"} for name, version in names]
    return _json(index)


@router.get("/models/{ref}/config")
@router.get("/models/{ref}/versions/{version}/config")
@needs("score")
async def read_config(
    ref: str, models: ModelsDep, caller: CallerDep, version: str | None = None
) -> Response:
    """A model's inputs and outputs in the form of Triton's configurations."""
    served = await turns.find_model(models, caller.owner, _full(ref, version))
    return _json(protocol.describe_config(served, ref))


@router.get("/models/{ref}/ready")
@router.get("/models/{ref}/versions/{version}/ready")
@needs("score")
async def read_model_ready(
    ref: str, models: ModelsDep, caller: CallerDep, version: str | None = None
) -> Response:
    """Whether the model can be loaded; it is after this."""
    await turns.find_model(models, caller.owner, _full(ref, version))
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
    fields: IdDep,
) -> Response:
    """Score the rows that the inputs have."""
    settings, full = context.settings, _full(ref, version)
    body = await request.body()
    encoding = request.headers.get("content-encoding")
    header_length = request.headers.get(protocol.HEADER_LENGTH)
    served = await turns.find_model(models, caller.owner, full)
    served = served.recorded(request.scope, caller)

    def score(*, in_turn: bool) -> Response | None:
        plain = protocol.decompress(body, encoding, settings.max_score_bytes)
        bounds = bounds_of(settings, len(body))
        asked = protocol.read_request(
            plain, header_length, settings.max_body_bytes, bounds.rows, fields.id
        )
        seconds = math.inf if asked.asks_for_reasons else served.cost.of(asked.rows)
        if seconds > PERMIT_SECONDS and not in_turn:
            return None
        explained = partial(scoring.check_explained, context.db.reading, caller.owner)
        model = served.noting()
        answer = protocol.infer(model, asked, ref, version, bounds, explained)
        headers = {"X-Model-ID": model.model_id, **warning_headers(model.columns.warnings())}
        if answer.ignored:
            headers["X-Ignored-Inputs"] = _names_header(answer.ignored)
        media_type = JSON
        if answer.header_length is not None:
            headers["Inference-Header-Content-Length"] = str(answer.header_length)
            media_type = "application/octet-stream"
        content = _compressed(request, answer.body, headers)
        return Response(content, media_type=media_type, headers=headers)

    response = None
    seconds = math.inf if encoding is not None else cost.of_reading(len(body))
    if seconds <= PERMIT_SECONDS:
        response = await run_in_threadpool(partial(score, in_turn=False))
    if response is None:
        response = await context.compute(caller.owner, partial(score, in_turn=True))
    assert response is not None
    return response


def _names_header(names: Iterable[str]) -> str:
    """Quote names, separated by commas, as many as fit into 4,096 characters."""
    listed = ",".join(quote(name, safe="") for name in names)
    return listed if len(listed) <= 4096 else listed[:4097].rpartition(",")[0]


def _full(ref: str, version: str | None) -> str:
    return ref if version is None else f"{ref}:{version}"


def _compressed(request: Request, content: bytes, headers: dict[str, str]) -> bytes:
    """Compress if the client names exactly one coding, as Triton's does on request.

    Clients that list all codings get it uncompressed, which is faster on usual networks.
    """
    asked = request.headers.get("accept-encoding", "").strip().lower()
    if asked not in ("gzip", "deflate"):
        return content
    headers["Content-Encoding"] = asked
    return gzip.compress(content, 1) if asked == "gzip" else zlib.compress(content, 1)


# --- as containers of MLflow and SageMaker, and KServe v1 -----------------------------------------

FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs")
"""The forms of a JSON body: exactly one of them is there."""
PARAMETERS = ("params", "parameters")
"""The members of a JSON body that say which probabilities are wanted: by MLflow, and by Vertex AI and KServe."""
NAMES = tuple(ProbabilityFields.model_fields)
ATTRIBUTES = "x-amzn-sagemaker-custom-attributes"
"""The header in which SageMaker passes on a caller's attributes, as `probability=true,prevalence=0.1`."""

invocations_router = APIRouter(
    tags=["inference"],
    route_class=GuardedRoute,
    default_response_class=Response,
    include_in_schema=False,
)


def _served_model(context: Context) -> str:
    """Raises NotFound if no setting names the model of the root."""
    ref = context.settings.served_model
    if ref is None:
        raise NotFound(
            "no model is served at the root: set RANKWRIGHT_SERVED_MODEL, or use "
            "/v1/models/{ref}/invocations"
        )
    return ref


@invocations_router.get("/ping")
@invocations_router.get("/health")
@keyless
@needs("score")
async def ping(context: ContextDep, models: ModelsDep, caller: CallerDep) -> Response:
    """Whether the model of the setting `RANKWRIGHT_SERVED_MODEL` can be loaded."""
    await turns.find_model(models, caller.owner, _served_model(context))
    return Response(b"\n", media_type="text/plain")


@invocations_router.get("/version")
async def read_version() -> Response:
    """The service's version, as text."""
    return Response(__version__, media_type="text/plain")


@invocations_router.get("/v1/models/{ref}/ping")
@needs("score")
async def ping_model(ref: str, models: ModelsDep, caller: CallerDep) -> Response:
    """Whether the model can be loaded."""
    await turns.find_model(models, caller.owner, ref)
    return Response(b"\n", media_type="text/plain")


@invocations_router.post("/invocations")
@keyless
@needs("score")
async def invoke(
    request: Request,
    context: ContextDep,
    models: ModelsDep,
    caller: CallerDep,
    fields: IdDep,
) -> Response:
    """Score rows by the model that a setting names."""
    return await _invoke(request, context, models, caller, _served_model(context), fields.id)


@invocations_router.post("/v1/models/{ref}/invocations")
@invocations_router.post("/v1/models/{ref}:predict")
@needs("score")
async def invoke_model(
    ref: str,
    request: Request,
    context: ContextDep,
    models: ModelsDep,
    caller: CallerDep,
    fields: IdDep,
) -> Response:
    """Score rows by one model."""
    return await _invoke(request, context, models, caller, ref, fields.id)


async def _invoke(
    request: Request,
    context: Context,
    models: ModelCache,
    caller: Caller,
    ref: str,
    id: str | None,
) -> Response:
    """Return `{"predictions": [score, …]}`, or CSV lines; with probabilities, objects or lines of several values."""
    media_type = media_type_of(request) or JSON
    if media_type not in (JSON, CSV):
        raise UnsupportedMedia(f"Content-Type must be {JSON} or {CSV}, got {shown(media_type)}")
    if media_type == CSV:
        table = check_format(request.headers["content-type"], None, needs_header=False)
    encoding = request.headers.get("content-encoding")
    settings = context.settings
    body = await request.body()
    asks_csv = request.headers.get("accept", "").partition(";")[0].strip().lower() == CSV
    stated = _read_attributes(request.headers.get(ATTRIBUTES, ""))
    served = await turns.find_model(models, caller.owner, ref)
    served = served.recorded(request.scope, caller)

    def work() -> Response:
        model = served.noting()
        is_csv = media_type == CSV
        most = settings.max_score_bytes if is_csv else settings.max_body_bytes
        plain = protocol.decompress(body, encoding, most)
        beside, bounds = IdAndIgnored(id, (ALL,)), bounds_of(settings, len(body))
        if is_csv:
            found = _rows_of_csv(model, plain, table, beside, bounds)
            options = ProbabilityFields.parse(stated).options()
        else:
            given = protocol.parse_json(plain, bounds.rows)
            asked = stated | _read_parameters(given)
            options = ProbabilityFields.parse(asked).options()
            found = _rows_of_json(model, given, beside, bounds)
        columns: Mapping[str, ColumnValues] = {}
        if options.asked:
            protocol.check_probability(served)
            columns = options.probabilities(served, found.scores)
        warnings = model.columns.warnings()
        content = _write_csv(found, columns) if asks_csv else _write_json(found, columns, warnings)
        if served.recording is not None:  # the request has no error
            served.recording.commit()
        headers = {"X-Model-ID": served.model_id, **warning_headers(warnings)}
        return Response(content, media_type=CSV if asks_csv else JSON, headers=headers)

    compressed = encoding is not None
    seconds = turns.seconds_of(served, body, media_type, compressed=compressed, by_column=True)
    return await turns.run(context, caller.permit_holder, seconds, work)


def _read_attributes(text: str) -> dict[str, str]:
    """Ignore attributes that are no parameters for probabilities."""
    pairs = (each.partition("=") for each in text.split(","))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip() in NAMES}


def _read_parameters(given: Any) -> dict[str, str]:
    """Read parameters for probabilities."""
    if not isinstance(given, dict):
        return {}
    stated: dict[str, str] = {}
    for member in PARAMETERS:
        parameters = given.get(member)
        if parameters is None:
            continue
        if not isinstance(parameters, dict):
            raise Invalid(f"{member} must be an object, got {shown(parameters)}")
        for name, value in parameters.items():
            if name not in NAMES:
                raise Invalid(f"{member} can have {', '.join(NAMES)}, got {shown(name)}")
            stated[name] = value if isinstance(value, str) else orjson.dumps(value).decode()
    return stated


def _write_json(
    found: RowScores, columns: Mapping[str, ColumnValues], warnings: Sequence[Mapping[str, str]]
) -> bytes | memoryview:
    """Write predictions with ids; more columns make objects. Warnings are in the body: not all clients read headers."""
    predictions: Any = found.scores
    if columns:
        rows = ScoresResponse({}, {"score": found.scores, **columns}).lines().splitlines()
        predictions = orjson.Fragment(b"[" + b",".join(rows) + b"]")
    ids = {} if found.ids is None else {"ids": found.ids}
    made = {} if found.decisions is None else found.decisions.columns()
    added: dict[str, Any] = {f"{name}s": column for name, column in made.items()}
    if warnings:
        added["warnings"] = warnings
    return ScoresResponse({"predictions": predictions, **ids, **added}, {}).write(JSON)


def _write_csv(found: RowScores, columns: Mapping[str, ColumnValues]) -> bytes:
    """Write id, scores and columns, but no decisions, which readers do not expect: an outcome names the id instead."""
    ids = {} if found.ids is None else {"ids": found.ids}
    scores = enumerate(np.atleast_2d(found.scores.T))
    return ScoresResponse({}, {**ids, **{str(k): each for k, each in scores}, **columns}).csv_rows()


def _rows_of_csv(
    served: Served, body: bytes, table: Format, beside: IdAndIgnored, bounds: Bounds
) -> RowScores:
    """Without names in the first line, values are in the order of the features, as SageMaker sends them."""
    options = TableOptions(
        ignore=(ALL,),
        keep=() if beside.id is None else (beside.id,),
        dialect={} if table.charset is None else {"encoding": table.charset},
    )
    return scoring.score_body(served, body, table, options, bounds, may_lack_header=True)


def _rows_of_json(served: Served, given: Any, beside: IdAndIgnored, bounds: Bounds) -> RowScores:
    """Read one of the `FORMS`; ignore columns that are not features."""
    there = [form for form in FORMS if isinstance(given, dict) and form in given]
    if len(there) != 1:
        raise Invalid(f"the body must be a JSON object with exactly one of {', '.join(FORMS)}")
    form, names = there[0], served.features.names
    rows, max_rows = given[form], bounds.max_rows(len(names))
    beside = beside.of_body({ID: given[ID]} if ID in given else {})
    columns: Any = None
    if form == "dataframe_split":
        if not isinstance(rows, dict) or not isinstance(rows.get("data"), list):
            raise Invalid("dataframe_split must be an object with columns and data")
        columns, rows = rows.get("columns", names), rows["data"]
        if not isinstance(columns, list):
            raise Invalid("columns must be a list of names")
    elif form == "inputs" and isinstance(rows, dict):
        columns, rows = _rows_of_columns(rows, [*served.columns.names, beside.id], max_rows)
    elif not isinstance(rows, list):
        raise Invalid(f"{form} must be a list of rows")
    elif rows and isinstance(rows[0], list):
        columns = names
    if columns is None:
        found = json_rows.of_objects(served.columns, rows, beside, max_rows)
    else:
        found = json_rows.of_lists(served.columns, columns, rows, beside, max_rows)
    return served.score_identified(found.X, found.ids)


def _rows_of_columns(
    columns: dict[str, Any], wanted: Sequence[str | None], max_rows: int
) -> tuple[list[str], list[list[Any]]]:
    """Return the `wanted` columns, and rows of their values."""
    lengths = {len(values) if isinstance(values, list) else -1 for values in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        raise Invalid("inputs must be lists of equal length, one for each feature")
    (n_rows,) = lengths
    json_rows.check_count(n_rows, max_rows)
    names = [name for name in dict.fromkeys(wanted) if name is not None and name in columns]
    if not names:
        return names, [[] for _ in range(n_rows)]
    flat = [
        [value[0] if isinstance(value, list) and len(value) == 1 else value for value in each]
        for each in map(columns.__getitem__, names)
    ]
    return names, [list(values) for values in zip(*flat, strict=True)]
