"""Bodies in memory: all together have a budget, which one owner cannot take from the others."""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.http.limits import MemoryBudget
from app.http.server import ANONYMOUS_BUDGET_BODIES, BUDGET_BODIES, TOO_SLOW
from app.platform.errors import Unavailable
from app.platform.metrics import UNROUTED
from tests.app.live_service import STRANGER, Service
from tests.app.refusals import CSV, JSON, refused
from tests.long_form import long_form
from tests.waiting import eventually, patience

MIB = 1 << 20
BODY = 1 * MIB
BUDGET, SHARE = BUDGET_BODIES * BODY, BUDGET_BODIES * BODY // 2  # of a process, of one owner alone
UNFINISHED = 150
CONTENT = bytes(8 * MIB)  # of a response: more than the system keeps for a connection
READERS = 4


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start(max_body_bytes=BODY, max_score_bytes=BODY)


@pytest.fixture(scope="module")
def hurried(start: Callable[..., Service]) -> Service:
    return start(max_body_bytes=BODY, max_score_bytes=BODY, body_seconds=2.0)


@pytest.fixture(scope="module")
def serving(start: Callable[..., Service]) -> Service:
    """A service with a route without a key, whose response is large."""
    service = start(max_body_bytes=5 * len(CONTENT) // 2, max_score_bytes=BODY)

    async def answer(request: Request) -> Response:
        return Response(CONTENT)

    service.app.router.routes.insert(0, Route("/large", answer))
    return service


def held(service: Service) -> float:
    """The bytes that the service says it holds."""
    found = service.context.metrics.registry.get_sample_value("rankwright_body_bytes")
    assert found is not None
    return found


def cut_off(service: Service, reason: str) -> float:
    """The answers that the service says it ended for this reason."""
    labels = {"reason": reason}
    sample = service.context.metrics.registry.get_sample_value
    return sample("rankwright_answers_cut_off_total", labels) or 0


def connect(service: Service) -> socket.socket:
    url = httpx.URL(service.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    connection.settimeout(patience())
    connection.connect((url.host, url.port or 80))
    return connection


def send_unfinished(connection: socket.socket, secret: str, size: int) -> None:
    """Send all but the last byte of a body of so many bytes."""
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    with suppress(ConnectionError):  # a refusal ends the connection
        connection.sendall(head.encode() + b" " * (size - 1))


@contextmanager
def unfinished(
    service: Service, secret: str, size: int, count: int
) -> Iterator[list[socket.socket]]:
    """So many requests whose bodies lack a byte."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(service)) for _ in range(count)]
        for connection in connections:
            send_unfinished(connection, secret, size)
        yield connections


def answered(connections: list[socket.socket]) -> list[socket.socket]:
    """Return those that have an answer, or were ended."""
    return select.select(connections, [], [], 0)[0]


def received(connection: socket.socket) -> bytes:
    """Return all that comes until the connection ends."""
    pieces: list[bytes] = []
    with suppress(ConnectionError):
        pieces += iter(partial(connection.recv, MIB), b"")
    return b"".join(pieces)


def send_whole(service: Service, owner: str) -> httpx.Response:
    """Send a body of the largest size."""
    client = service.client(service.key(owner))
    return client.post("/v1/jobs", content=b" " * BODY, headers=JSON)


def test_unfinished_bodies_hold_no_more_than_an_owners_share(service: Service) -> None:
    size = BODY // 8
    with unfinished(service, service.key(), size, UNFINISHED) as connections:

        def decided() -> bool:
            assert held(service) <= SHARE
            waiting = UNFINISHED - len(answered(connections))
            return held(service) == waiting * (size - 1) <= SHARE

        eventually(decided)
        refusals = [received(connection) for connection in answered(connections)]
        assert len(refusals) >= UNFINISHED - SHARE // (size - 1)
        assert {refusal[:12] for refusal in refusals} <= {b"HTTP/1.1 503", b""}
        heard = [refusal for refusal in refusals if refusal]
        assert heard
        assert all(b"too_many_bytes" in each and b"retry-after: " in each.lower() for each in heard)
        refused(send_whole(service, STRANGER), 400, "malformed_json")  # there is room for others
    eventually(lambda: held(service) == 0)
    refused(send_whole(service, "ours"), 400, "malformed_json")
    eventually(lambda: held(service) == 0)


def test_a_body_that_does_not_fit(service: Service) -> None:
    secret = service.key()
    with unfinished(service, secret, BODY, BUDGET_BODIES // 2):
        eventually(lambda: held(service) == SHARE - BUDGET_BODIES // 2)
        answer = send_whole(service, "ours")
        refused(answer, 503, "too_many_bytes")
        assert int(answer.headers["Retry-After"]) > 0
        # An upload is written to disk as it comes.
        client = service.client(secret)
        upload = client.post(
            "/v1/datasets?label=y", content=b"x,y\n" + b"1,2\n" * BODY, headers=CSV
        )
        assert upload.status_code == 202, upload.text
    eventually(lambda: held(service) == 0)


@long_form
def test_what_a_refused_body_held_is_free_again(hurried: Service) -> None:
    secret = hurried.key()
    client = hurried.client(secret)
    for content, status in ((iter([b" " * 2 * BODY]), 413), (b'{"a": ' * 1000, 400), (b"{}", 422)):
        answer = client.post("/v1/jobs", content=content, headers=JSON)
        assert answer.status_code == status, answer.text
        eventually(lambda: held(hurried) == 0)
    with unfinished(hurried, secret, BODY, 1) as (connection,):
        assert received(connection).startswith(b"HTTP/1.1 408 ")
        eventually(lambda: held(hurried) == 0)


def test_responses_that_nobody_reads_are_counted_and_ended(
    serving: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """The budget of requests without a key has room for one of them beside as much that stays free."""
    caplog.set_level("INFO")
    assert ANONYMOUS_BUDGET_BODIES == 1
    with ExitStack() as stack:
        readers = [stack.enter_context(connect(serving)) for _ in range(READERS)]
        for reader in readers:
            reader.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        observed = serving.context.metrics.registry.get_sample_value

        def ended() -> float:
            labels = {"method": "GET", "route": UNROUTED, "status": "200"}
            return observed("rankwright_http_request_seconds_count", labels) or 0

        eventually(lambda: held(serving) == len(CONTENT) and ended() == READERS - 1)
        assert (cut_off(serving, "too_many_bytes"), cut_off(serving, TOO_SLOW)) == (READERS - 1, 0)
        assert not any("too slowly" in one.getMessage() for one in caplog.records)
        refused(send_whole(serving, STRANGER), 400, "malformed_json")  # they take nothing from keys
        sizes = sorted(len(received(reader)) for reader in readers)
        assert sizes[-1] > len(CONTENT) > sizes[-2]  # the one that was not ended reads all of it
        eventually(lambda: held(serving) == 0)


def test_a_budget_is_shared_fairly() -> None:
    changes: list[int] = []
    budget = MemoryBudget(100, changes.append)
    budget.add("a", 50)
    with pytest.raises(Unavailable) as caught:
        budget.add("a", 7)
    numbers = set(re.findall(r"\d+", caught.value.detail))
    assert numbers == {"50", "7", "100"}  # held by the owner, needed, in all; as many are free
    budget.add("b", 25)
    with pytest.raises(Unavailable):
        budget.add("b", 1)
    budget.add("c", 12)
    assert budget.held == 87
    for owner, size in (("a", 50), ("b", 25), ("c", 12)):
        budget.remove(owner, size)
    assert changes == [50, 25, 12, -50, -25, -12]
    assert budget.held == 0
    budget.add("b", 50)
