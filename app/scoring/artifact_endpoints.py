"""Download of a model: its artifact, or a file for another runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs, records_reads
from app.datasets.matrices import Floats
from app.http.dependencies import CallerDep, ContextDep
from app.http.responses import StoredFile, etag_matches
from app.models import service as models
from app.models.artifacts import artifact_of
from app.models.reading import reading_of
from app.models.simple import exported_as
from app.platform.sql import Session
from app.platform.tables import Model
from app.scoring import dependence
from app.scoring.dependencies import ModelsDep
from app.scoring.service import Served
from core.base.table import CodedTable
from core.exporting.formats import ColumnReading, check_exportable
from core.version import VERSION

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

ArtifactFormat = Literal["safetensors", "onnx", "python", "sql"]

_KINDS: Mapping[str, tuple[str, str]] = {
    "onnx": ("onnx", "application/octet-stream"),
    "python": ("py", "text/x-python"),
    "sql": ("sql", "application/sql"),
}
"""Extension and media type of each exported format."""


@router.get(
    "/{ref}/artifact",
    response_class=StoredFile,
    summary="Download the model",
    responses={
        200: {
            "description": "The file of the model, in the format that was requested.",
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "text/x-python": {"schema": {"type": "string"}},
                "application/sql": {"schema": {"type": "string"}},
            },
        },
        304: {"description": "The file has not changed since the caller's copy."},
    },
)
@needs("read")
@records_reads
async def read_artifact(
    *,
    ref: str,
    request: Request,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    format: Annotated[
        ArtifactFormat,
        Query(
            description="`safetensors`: the stored file, which `core.load` reads. Its ETag is its SHA-256. The others "
            "score without this service: `onnx` is a model for onnxruntime 1.24 or later, `python` a file without "
            "dependencies, and `sql` a query for SQLite, PostgreSQL and DuckDB."
        ),
    ] = "safetensors",
) -> Response:
    """Return the model as a file. Returns 422 `not_exportable` if the format cannot hold the scores of the model, and
    429 if other computations take too long.
    """

    def read(session: Session) -> tuple[Model, dependence.DependenceInput | None]:
        model = models.find(session, caller.owner, ref)
        return model, None if format != "onnx" else dependence.find_kept(session, model)

    def find() -> Response | Callable[[], Response]:
        """Return the response, or what computes it: a copy of the caller's and a refusal cost no computation."""
        model, kept = context.db.reading(read)
        tag = model.artifact_sha256
        if format != "safetensors":
            tag += f"-{format}-{model.calibration_version}-{VERSION}"
        headers = {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache"}
        if etag_matches(request.headers.get("if-none-match"), headers["ETag"]):
            return Response(status_code=304, headers=headers)
        name = f"{model.name}-{model.version}"
        if format == "safetensors":
            return StoredFile(
                context.blobs.fetch(artifact_of(model)),
                headers=headers | {"X-Content-SHA256": model.artifact_sha256},
                media_type="application/octet-stream",
                filename=f"{name}.safetensors",
            )
        reading = reading_of(model)
        check_exportable(*exported_as(model), format, reading)
        extension, media_type = _KINDS[format]
        headers["Content-Disposition"] = f'attachment; filename="{name}.{extension}"'

        def export() -> Response:
            X = None if kept is None else dependence.read_rows(kept, context.blobs)[0]
            content = _export(cache.serve(model), format, X, reading)
            return Response(content, media_type=media_type, headers=headers)

        return export

    found = await run_in_threadpool(find)
    return found if isinstance(found, Response) else await context.compute(caller.owner, found)


def _export(
    served: Served,
    format: Literal["onnx", "python", "sql"],
    X: Floats | None,
    reading: Sequence[ColumnReading],
) -> bytes:
    """X: rows for which the exported model must give the same scores; None: none are kept."""
    from core import export_model

    calibration, rows = None, None
    if served.calibration is not None:
        calibration = served.calibration.calibration
    if X is not None:
        rows = CodedTable(X, tuple(served.features.names), served.ranker.categories_)
    return export_model(served.ranker, format, calibration=calibration, rows=rows, reading=reading)
