"""Limits on the size of request bodies: each endpoint declares the settings that limit its body."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from app.http.protocol import SINK, BodySink
from app.platform.settings import Settings

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
VALIDATE = "/validate"
"""How a path ends that only checks a request; of a table it needs the first rows."""
MAX_BODY = "max_body_bytes"
"""The setting for endpoints that declare none."""


class BodyLimit(NamedTuple):
    """The maximum size of a body in bytes, the setting that limits it, and the maximum that is held in memory."""

    bytes: int
    setting: str
    held: int


def takes_body(*names: str) -> Callable[[Endpoint], Endpoint]:
    """The largest setting applies."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.body_settings = names  # type: ignore[attr-defined]  # read back by `BodyLimits`
        return endpoint

    return mark


def limit_of(settings: Settings, *names: str) -> BodyLimit:
    """Use the largest setting. Without `MAX_BODY` among them, the endpoint streams the body to disk."""
    prefix = settings.model_config["env_prefix"]
    held = settings.max_body_bytes if MAX_BODY in names else 0
    return max(
        BodyLimit(getattr(settings, name), f"{prefix}{name.upper()}", held) for name in names
    )


class BodyLimits:
    """The maximum body size for each path of an application, as declared by its endpoints."""

    def __init__(self, settings: Settings, routes: Iterable[BaseRoute]) -> None:
        self._default = limit_of(settings, MAX_BODY)
        self._declared: list[tuple[re.Pattern[str], BodyLimit]] = []
        for route in routes:
            if not isinstance(route, Route) or route.path.endswith(VALIDATE):
                continue
            if (names := getattr(route.endpoint, "body_settings", None)) is not None:
                self._declared.append((route.path_regex, limit_of(settings, *names)))

    def of(self, path: str) -> BodyLimit:
        return next(
            (limit for pattern, limit in self._declared if pattern.match(path)), self._default
        )


def announced_length(request: Request) -> int | None:
    """Return None if the request does not announce it."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None


async def receive_whole(request: Request, length: int) -> memoryview:
    """Receive a body of announced length in one buffer, which uses memory only for bytes that have arrived.

    The caller must have compared `length` with a limit.
    """
    whole = np.empty(length, np.uint8).data
    sink: BodySink | None = request.scope.get(SINK)  # absent without the service's HTTP protocol
    if sink is not None:
        sink.open(whole)
    size = 0
    try:
        async for piece in request.stream():
            begin, size = size, size + len(piece)
            if sink is None:
                whole[begin:size] = piece
    finally:
        if sink is not None:  # else an idle connection would hold the buffer
            sink.close()
    return whole[:size]


def body_too_large(limit: BodyLimit) -> HTTPException:
    # An HTTPException because FastAPI lets only these through while it reads a body.
    return HTTPException(
        413,
        detail=f"the body can have at most {limit.bytes} bytes here ({limit.setting})",
        headers={"Connection": "close"},  # do not read a body that will be thrown away
    )
