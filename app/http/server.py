"""The HTTP server: uvicorn, bounded in what a caller may send before the application hears of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.http.problems import MEDIA_TYPE
from app.platform.settings import Settings

LONGEST_HEAD = 1 << 17  # bytes that may come before one that somebody can use
MOST_PIPELINED = 16  # requests that may queue up behind the one that is being answered


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's own protocol, which takes heads of any length, at any pace.

    Whatever is not body counts as head: the request line, headers, the sizes and extensions of chunks, and the headers
    behind them. Each byte of a body, and each head that is complete, starts the count anew.
    """

    def __init__(self, *args: Any, head_seconds: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_seconds = head_seconds
        self._head_bytes = 0
        self._in_head = False
        self._in_body = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Someone is here, and has yet to say something."""
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, as long as it leads somewhere."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > LONGEST_HEAD:
            self._refuse(431, "headers_too_large", f"a head may have at most {LONGEST_HEAD} bytes")
        elif self._clock is None and (self._in_head or (self._head_bytes and not self._in_body)):
            self._start_clock()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._head_bytes, self._in_head, self._in_body = 0, False, True
        self._stop_clock()
        super().on_headers_complete()
        if len(self.pipeline) > MOST_PIPELINED:
            raise ValueError("too many requests at once")  # the parser ends the connection

    def on_body(self, body: bytes) -> None:
        """Some of the body is here."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here."""
        self._head_bytes, self._in_body = 0, False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """This is not HTTP."""
        self._refuse(400, "malformed", msg)

    def _start_clock(self) -> None:
        self._clock = self.loop.call_later(self._head_seconds, self._too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        seconds = self._head_seconds
        self._refuse(408, "timeout", f"a head must be here within {seconds:g} seconds")

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Say why, unless an answer is under way, and hang up."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            phrase = HTTPStatus(status).phrase
            problem = {
                "type": f"urn:rankwright:problem:{code}",
                "title": phrase,
                "status": status,
                "detail": detail,
                "instance": None,  # there is no request yet
                "code": code,
                "request_id": None,
            }
            body = json.dumps(problem).encode()
            head = (
                f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()


def server_config(
    app: ASGIApp | Callable[..., Any] | str, settings: Settings, **options: Any
) -> uvicorn.Config:
    """How the application is served, here and in tests. Web sockets are not offered, so none are opened."""
    protocol: Any = partial(BoundedProtocol, head_seconds=settings.head_seconds)
    return uvicorn.Config(
        app, http=protocol, ws="none", access_log=False, server_header=False, **options
    )


class Drain:
    """Whether this process is about to end. Who holds requests open asks to be told."""

    def __init__(self) -> None:
        self.begun = False
        self._told: list[Callable[[], object]] = []

    def tell(self, listener: Callable[[], object]) -> None:
        """Call `listener` when it begins."""
        self._told.append(listener)

    def begin(self) -> None:
        """Begin, in the event loop."""
        self.begun = True
        for listener in self._told:
            listener()


class DrainingServer(uvicorn.Server):
    """uvicorn, which goes on answering for `seconds` after it was told to end, so that a proxy can look elsewhere."""

    def __init__(self, config: uvicorn.Config, drain: Drain, seconds: float) -> None:
        super().__init__(config)
        self._drain = drain
        self._seconds = seconds
        self._asked = 0
        self._until = 0.0

    def end(self, *_: object) -> None:
        """Handle a signal: the first begins the end, the second hurries it."""
        self._asked += 1

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take the place of uvicorn's handler, which closes at once."""
        self.end()

    async def on_tick(self, counter: int) -> bool:
        """Look whether it was told to end: uvicorn asks ten times a second."""
        if self._asked and not self._drain.begun:
            self._until = time.monotonic() + self._seconds
            self._drain.begin()
        if self._asked > 1 or (self._asked and time.monotonic() >= self._until):
            self.should_exit = True
        return await super().on_tick(counter)
