"""/docs: the API's documentation as one page that loads nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import HTMLResponse, RedirectResponse, Response

router = APIRouter()

_PAGE = Path(__file__).with_name("docs.html")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
)


@cache
def _page() -> str:
    return _PAGE.read_text(encoding="utf-8")


@router.get("/docs", include_in_schema=False)
async def read_docs() -> Response:
    """The page reads /openapi.json and draws itself."""
    return HTMLResponse(_page(), headers={"Content-Security-Policy": _POLICY})


@router.get("/", include_in_schema=False)
async def read_root() -> Response:
    """Whoever comes with a browser finds the documentation."""
    return RedirectResponse("/docs")
