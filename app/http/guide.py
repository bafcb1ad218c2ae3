"""The documentation of this version below /guide: the site of `make docs`, in the wheel and the image of a release.

A checkout has none, unless its folder `site` is copied to `app/guide`.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parents[1] / "guide"
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; worker-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy: the pages have small scripts of their own, and load nothing from elsewhere."""


def is_here() -> bool:
    return (FOLDER / "index.html").is_file()


def routes() -> list[Route]:
    if not is_here():
        return []
    files = StaticFiles(directory=FOLDER, html=True)

    async def read_file(request: Request) -> Response:
        path = request.path_params["path"]
        answer = await files.get_response(os.path.normpath(path), request.scope)
        if isinstance(
            answer, RedirectResponse
        ):  # to a folder's own page: by path alone, whatever the Host
            return RedirectResponse(f"/guide/{quote(path)}/")
        answer.headers["Content-Security-Policy"] = POLICY
        answer.headers["Cache-Control"] = "no-cache"  # revalidated, because an upgrade changes it
        return answer

    async def go_to_start(request: Request) -> Response:
        return RedirectResponse("/guide/")

    return [
        Route("/guide", go_to_start, include_in_schema=False),
        Route("/guide/{path:path}", read_file, include_in_schema=False),
    ]
