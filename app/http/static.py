"""Stylesheets and scripts of the service's pages: read once, compressed, and cached by browsers until they change."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.http.responses import StoredText
from app.platform.errors import NotFound

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of a page that loads only our own files and has no inline script or style."""
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_YEAR = 31_536_000


class _File(StoredText):
    """A static file with its compressed form, and a version derived from its content."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.read_bytes(), _TYPES[path.suffix])
        self.version = hashlib.sha256(self.content).hexdigest()[:12]


class StaticFiles:
    """The stylesheets, scripts and pictures in a folder, under a path of the service."""

    def __init__(self, folder: Path, path: str) -> None:
        self._path = path
        self._folder = folder
        self._files: dict[str, _File] = {}
        self.router = APIRouter(include_in_schema=False)
        self.router.add_api_route(path + "/{version}/{name}", self._read)

    def url(self, name: str) -> str:
        """The address changes with the content."""
        return f"{self._path}/{self._found()[name].version}/{name}"

    def _found(self) -> dict[str, _File]:
        if not self._files:
            self._files = {
                path.name: _File(path) for path in self._folder.iterdir() if path.suffix in _TYPES
            }
        return self._files

    async def _read(self, version: str, name: str, request: Request) -> Response:
        """Browsers cache the file permanently if the version is its own."""
        file = self._found().get(name)
        if file is None:
            raise NotFound(f"there is no file {name[:100]!r}")
        kept = f"public, max-age={_YEAR}, immutable" if version == file.version else "no-cache"
        return file.answer(request, **{"Cache-Control": kept})
