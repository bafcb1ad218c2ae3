"""Cookies: only the service's own reach a parser, and a Cookie header has a limit of its own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.http.cookies import MAX_COOKIE_BYTES
from app.http.server import MAX_HEADER_BYTES
from tests.app.live_service import Service
from tests.app.refusals import refused

ESCAPES = '"' + '\\"' * 1000 + '"'  # takes quadratic time in http.cookies of older Pythons


@pytest.fixture
def echo(service: Service) -> Iterator[str]:
    """The path of a route that returns the cookies which its request has."""

    async def answer(request: Request) -> Response:
        return JSONResponse(request.cookies)

    routes = service.app.router.routes
    routes.insert(0, route := Route("/echo", answer))
    yield "/echo"
    routes.remove(route)


@pytest.mark.parametrize(
    ("sent", "parsed"),
    [
        ("", {}),
        (";;=;", {}),
        ("rankwright_session", {"rankwright_session": ""}),
        ("rankwright_session=a", {"rankwright_session": "a"}),
        ("rankwright_session = a ;other=b", {"rankwright_session": "a"}),
        ('rankwright_note="a.b=="; rankwright_columns=x.y', None),
        ("rankwright_session=a; rankwright_session=b", {"rankwright_session": "b"}),
        (f"other={ESCAPES}; rankwright_session=a", {"rankwright_session": "a"}),
        (f"rankwright_session={ESCAPES}", {}),
        ('rankwright_session="', {}),
        ('rankwright_session=a"b', {}),
        ("rankwright_session=a\\", {}),
        ("Rankwright_session=a", {}),
        ("x" * MAX_COOKIE_BYTES, {}),
    ],
)
def test_only_own_cookies_are_parsed(
    client: httpx.Client, echo: str, sent: str, parsed: dict[str, str] | None
) -> None:
    if parsed is None:
        parsed = {"rankwright_note": "a.b==", "rankwright_columns": "x.y"}
    answer = client.get(echo, headers={"Cookie": sent})
    assert (answer.status_code, answer.json()) == (200, parsed)


@pytest.mark.parametrize(
    "sent",
    [
        ["x" * (MAX_COOKIE_BYTES + 1)],
        ["x" * (MAX_COOKIE_BYTES // 2 + 1)] * 2,
        ['a="' + '\\"' * (MAX_HEADER_BYTES // 2 - 1000) + '"'],
    ],
    ids=["one header", "two headers", "escapes"],
)
def test_cookies_of_too_many_bytes(service: Service, client: httpx.Client, sent: list[str]) -> None:
    for path in ("/health/live", "/v1/models", "/console/models", "/nothing"):
        headers = [("Accept", "application/json"), *(("Cookie", each) for each in sent)]
        answer = client.get(path, headers=headers)
        assert answer.status_code == 431, path
        if not path.startswith("/console"):
            refused(answer, 431, "headers_too_large")
        assert len(answer.content) < 10_000
