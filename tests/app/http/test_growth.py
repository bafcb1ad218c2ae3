"""No header or parameter costs much more than its bytes: the short form of `python -m tests.fuzz.growth`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.app.live_service import Service
from tests.fuzz.growth import (
    HEADERS,
    SHORT_FILLINGS,
    Meter,
    Place,
    application,
    body_places,
    header_places,
    query_places,
    too_fast,
)
from tests.long_form import long_form, one_in, rest

ROUTES = (("GET", b"/console/static/console.css"), ("POST", b"/v1/datasets/validate?label=left"))


@pytest.fixture(scope="module")
def meter(shared: Service) -> Iterator[Meter]:
    meter = Meter(application(shared.app, shared.settings), shared.key())
    yield meter
    meter.close()


def check(meter: Meter, places: list[Place]) -> None:
    found = [
        (place.name, filling, costs)
        for place in places
        for filling in SHORT_FILLINGS
        if too_fast(*(costs := meter.measure(place, filling)))
    ]
    assert found == []
    assert meter.faults == []


@pytest.mark.parametrize("name", one_in(14, HEADERS))
def test_cost_of_a_header(meter: Meter, name: str) -> None:
    check(meter, [place for place in header_places(ROUTES) if place.part == name])


@long_form
def test_cost_of_an_address(meter: Meter, shared: Service) -> None:
    document = shared.app.openapi()
    paths = ("GET /v1/jobs ", "GET /v1/models/{ref} ", "GET /v1/audit ", "GET path")
    places = [place for place in query_places(document) if place.name.startswith(paths)]
    assert {place.part for place in places} == {"path", "query"}
    check(meter, places)


@long_form
def test_cost_of_a_body(meter: Meter) -> None:
    paths = (b"/v1/jobs", b"/v1/datasets/validate", b"/console/sign-in")
    check(meter, [place for place in body_places({"paths": {}}) if place.path in paths])


@pytest.mark.parametrize("part", ["accept", *rest("body")])
def test_quadratic_time_is_found(part: str) -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        values = [
            dict(scope["headers"]).get(b"accept", b""),
            scope["query_string"],
            scope["raw_path"],
        ]
        text = max([*values, await Request(scope, receive).body()], key=len)
        for start in range(0, len(text), 2):
            text.count(b"a", start)
        await Response()(scope, receive, send)

    async def quick(scope: Scope, receive: Receive, send: Send) -> None:
        await Response()(scope, receive, send)

    place = Place(part, "GET", b"/", part)
    for app, expected in ((slow, True), (quick, False)):
        meter = Meter(app, "secret")
        assert too_fast(*meter.measure(place, b"a,")) is expected
        meter.close()
