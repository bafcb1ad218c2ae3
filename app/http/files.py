"""Stored files as answers: whole, or in a range (RFC 9110, §14)."""

from __future__ import annotations

import os
import re

from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from app.platform.errors import ServiceError

_ONE_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


class RangeNotSatisfiable(ServiceError):
    """The range that is asked for lies beyond the file."""

    code, status, title = "range_not_satisfiable", 416, "Range not satisfiable"


class StoredFile(FileResponse):
    """A file that may be read in one range; of any other Range header the answer is the whole, as the RFC allows."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        headers = Headers(scope=scope)
        asked = headers.get("range")
        if asked is not None and not await self._can_serve(asked, "if-range" in headers):
            kept = [(name, value) for name, value in scope["headers"] if name != b"range"]
            scope = {**scope, "headers": kept}
        await super().__call__(scope, receive, send)

    async def _can_serve(self, asked: str, conditional: bool) -> bool:
        found = _ONE_RANGE.fullmatch(asked.strip().lower())
        if found is None:
            return False
        first, last, suffix = found.groups()
        if first and last and int(last) < int(first):
            return False
        size = (await run_in_threadpool(os.stat, self.path)).st_size
        beyond = int(suffix) == 0 if suffix else int(first) >= size
        if beyond and not conditional:
            raise RangeNotSatisfiable(
                f"the range must begin within the {size} bytes of the file, got {asked[:100]!r}",
                headers={"Content-Range": f"bytes */{size}"},
            )
        return not beyond
