"""Callers who read their answer slowly or not at all: what waits for them is small, and they are cut off."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from app.http import server
from app.http.protocol import MAX_JOINED_BYTES
from app.http.responses import FilesResponse, StoredFile
from app.http.server import MAX_PIECE_BYTES
from tests.app.live_service import Service
from tests.long_form import one_in
from tests.waiting import patience

CONTENT = bytes(range(256)) * (1 << 17)  # 32 MiB: more than the system keeps for a connection
KINDS = ["whole", "files", "stored", "stream"]


@pytest.fixture(scope="module")
def shared(start: Callable[..., Service]) -> Service:
    return start()


@pytest.fixture
def ended() -> threading.Event:
    return threading.Event()


@pytest.fixture(autouse=True)
def _routes(shared: Service, tmp_path: Path, ended: threading.Event) -> Iterator[None]:
    path = tmp_path / "content"
    path.write_bytes(CONTENT)

    class Noting(FilesResponse):
        async def __call__(self, *args: Any) -> None:
            await super().__call__(*args)
            ended.set()

    async def stream() -> AsyncIterator[bytes]:
        for start in range(0, len(CONTENT), 1 << 16):
            yield CONTENT[start : start + (1 << 16)]
        ended.set()

    async def answer(request: Request) -> Response:
        match request.path_params["kind"]:
            case "files":
                return Noting([path.open("rb")], "text/plain", {})
            case "stored":
                return StoredFile(path)
            case "stream":
                return StreamingResponse(stream())
            case _:
                return Response(CONTENT)

    routes = shared.app.router.routes
    routes.insert(0, route := Route("/large/{kind}", answer))
    yield
    routes.remove(route)


def ask(shared: Service, kind: str, method: str = "GET") -> socket.socket:
    at = urlsplit(shared.url)
    connection = socket.create_connection((at.hostname, at.port), timeout=patience())
    connection.sendall(f"{method} /large/{kind} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return connection


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until it holds; the test's own limit of time ends a wait that is for nothing."""
    while not condition():
        threading.Event().wait(0.01)


@pytest.mark.parametrize("kind", one_in(3, KINDS))
def test_who_reads_gets_all(shared: Service, kind: str) -> None:
    with httpx.Client(base_url=shared.url, timeout=patience()) as client:
        for _ in range(2):
            answer = client.get(f"/large/{kind}")
            assert (answer.status_code, answer.content == CONTENT) == (200, True)


def test_a_head_has_no_body(shared: Service) -> None:
    with httpx.Client(base_url=shared.url, timeout=patience()) as client:
        for _ in range(2):
            answer = client.head("/large/whole")
            assert answer.headers["Content-Length"] == str(len(CONTENT))
            assert answer.content == b""


@pytest.mark.parametrize("kind", one_in(3, KINDS))
def test_who_does_not_read_is_cut_off(
    shared: Service,
    kind: str,
    ended: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(shared.app.entry, "body_seconds", 0.3)
    noted: list[int] = []
    observe = shared.context.metrics.observe_request

    def note(method: str, route: str, status: int, seconds: float) -> None:
        noted.append(status)
        observe(method, route, status, seconds)

    monkeypatch.setattr(shared.context.metrics, "observe_request", note)
    with ask(shared, kind) as connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
        slow = "read its response too slowly"
        eventually(lambda: any(slow in one.getMessage() for one in caplog.records))
        received = 0
        with suppress(ConnectionError):
            received = sum(map(len, iter(partial(connection.recv, 1 << 20), b"")))
        assert received < len(CONTENT)
    assert not ended.is_set()  # what was left is not read
    eventually(lambda: noted != [])
    assert noted == [200]
    ended_for = {"reason": server.TOO_SLOW}
    sample = shared.context.metrics.registry.get_sample_value
    assert sample("rankwright_answers_cut_off_total", ended_for)
    shared.client(None).get("/health/live")
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_files_are_not_read_for_a_caller_who_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(CONTENT)
    sent: list[int] = []
    done: list[bool] = []

    async def run() -> int:
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(len(message.get("body", b"")))
            if len(sent) == 3:
                gone.set()

        with path.open("rb") as file:
            response = FilesResponse([file], "text/plain", {}, lambda: done.append(True))
            await response({"type": "http"}, receive, send)
            assert file.closed
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1  # nobody waits for the caller's leave any more
    assert 0 < sum(sent) < len(CONTENT) / 4
    assert done


def test_a_long_body_is_sent_in_pieces_that_are_not_copied() -> None:
    found: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        found.append(message)

    def pieces(body: bytes, more: bool) -> list[dict[str, Any]]:
        found.clear()
        paced = server.paced_send(send, {"client": None}, 60.0)

        async def send_paced() -> None:  # before Python 3.12 `run` takes coroutines only
            await paced({"type": "http.response.body", "body": body, "more_body": more})

        asyncio.run(send_paced())
        return found

    small = b"x" * MAX_JOINED_BYTES
    assert [(one["body"], one["more_body"]) for one in pieces(small, False)] == [(small, False)]
    assert [len(one["body"]) for one in pieces(small + b"y", False)] == [MAX_JOINED_BYTES + 1, 0]
    long = b"x" * MAX_PIECE_BYTES * 2 + b"y"
    for more in (True, False):
        *first, last = pieces(long, more)
        parts = first if not more else [*first, last]
        assert [len(one["body"]) for one in parts] == [MAX_PIECE_BYTES, MAX_PIECE_BYTES, 1]
        assert all(one["body"].obj is long and one["more_body"] for one in parts)
        if not more:
            assert (last["body"], last.get("more_body", False)) == (b"", False)
