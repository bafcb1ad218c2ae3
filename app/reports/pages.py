"""Documents for people: the format that is asked for, by `format` or by Accept, and the answer in it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from app.http.responses import choose
from app.reports import report
from app.reports.document import Document

Format = Literal["json", "markdown", "html"]
WRITTEN: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/markdown": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
        }
    }
}
"""OpenAPI's words for what comes beside JSON."""

_OFFERS: dict[str, Format] = {
    "application/json": "json",
    "text/html": "html",
    "text/markdown": "markdown",
}


def _format(
    request: Request,
    format: Annotated[
        Format | None, Query(description="Before what `Accept` says; `json` by default.")
    ] = None,
) -> Format:
    return format or _OFFERS[choose(request, list(_OFFERS))]


FormatDep = Annotated[Format, Depends(_format)]


def answer_page(document: Document, format: Format) -> Response:
    """Write a document as Markdown, or as HTML that refers to nothing outside itself."""
    if format == "markdown":
        return Response(report.to_markdown(document), media_type="text/markdown; charset=utf-8")
    return Response(
        report.to_html(document),
        media_type="text/html; charset=utf-8",
        headers={"Content-Security-Policy": f"{report.POLICY}; sandbox"},
    )
