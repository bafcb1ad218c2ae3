"""Endpoints declare how large their bodies may be; no other path is larger than the default."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.http.bodies import BodyLimit, BodyLimits, takes_body
from app.platform.settings import Settings


@takes_body("max_upload_bytes", "max_body_bytes")
async def upload(_: Request) -> Response:
    return Response()


async def other(_: Request) -> Response:
    return Response()


ROUTES = [
    Route("/tables/{name}", upload, methods=["PUT"]),
    Route("/tables/{name}/validate", upload),
    Route("/others", other),
]


def test_the_largest_of_the_declared_settings_limits_a_body() -> None:
    body = BodyLimit(10, "RANKWRIGHT_MAX_BODY_BYTES", held=10)
    for n, most in ((50, BodyLimit(50, "RANKWRIGHT_MAX_UPLOAD_BYTES", held=10)), (5, body)):
        limits = BodyLimits(Settings(max_body_bytes=10, max_upload_bytes=n), ROUTES)
        assert limits.of("/tables/a") == most
        for path in ("/tables/a/validate", "/tables/a/b", "/tables", "/others", "/"):
            assert limits.of(path) == body
