"""/v1/models/{ref}/plot: the curve as a picture."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from app.api.dependencies import CallerDep, ContextDep
from app.api.routes.interpretation import PICTURE_HEADERS
from app.api.routes.models import On
from app.api.schemas.curves import BandKind
from app.api.security import GuardedRoute, needs
from app.services import plots

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

_PICTURES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture, or a Vega-Lite specification with its data inside.",
        "content": {
            "image/svg+xml": {"schema": {"type": "string"}},
            "image/png": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.get(
    "/{ref}/plot",
    response_model=dict[str, Any],
    summary="A picture of the curve",
    responses=_PICTURES,
)
@needs("read")
def read_plot(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    on: On = "validation",
    kind: Annotated[
        plots.Kind, Query(description="The whole curve, or the window of the partial AUC enlarged.")
    ] = "roc",
    band: Annotated[
        BandKind | Literal["none"],
        Query(
            description="Confidence band: of each height by itself, of the whole curve, or none."
        ),
    ] = "pointwise",
    format: Annotated[
        Literal["svg", "png", "vega"], Query(description="`vega` is a Vega-Lite specification.")
    ] = "svg",
    width: Annotated[int, Query(ge=200, le=4000, description="Of a PNG, in pixels.")] = 1280,
) -> Response:
    """The ROC curve with its confidence band, the area of the window, the best cuts at a few rates (or the cut of the
    objective) and chance. It refers to nothing outside itself.
    """
    with context.turn():
        plot = plots.plot_model(
            context.db, caller.owner, ref, on, kind, None if band == "none" else band
        )
        if format == "vega":
            return JSONResponse(plots.to_vega(plot))
        drawn = plots.to_svg(plot)
        if format == "svg":
            return Response(drawn, media_type="image/svg+xml", headers=PICTURE_HEADERS)
        return Response(plots.to_png(drawn, width), media_type="image/png")
