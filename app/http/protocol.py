"""uvicorn's HTTP protocol with limits: the only module that extends its internals, which a release may change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import httptools
from starlette.types import Message, Receive, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.http import problems
from app.http.addresses import network_of
from app.http.limits import FairSemaphore, Permit
from app.platform.errors import ServiceError

MAX_HEAD_BYTES = 1 << 17  # bytes of one head; uvicorn itself has no limit
MAX_PIPELINED = 16  # requests that may queue up behind the one that is being answered
# Bytes of a body that are copied behind its head. The connection buffers as many before it pauses: the request is over
# when the body is sent, but for a longer body only when the caller has read it, down to so many bytes.
MAX_JOINED_BYTES = 1 << 16
ABORT = "rankwright.abort"
"""Key in the ASGI scope of a function that ends the connection without sending what still waits to be sent."""
FLOW = "rankwright.flow"
"""Key in the ASGI scope of uvicorn's flow control of the connection: a send waits only while it is paused."""
SINK = "rankwright.sink"
"""Key in the ASGI scope of the request's `BodySink`."""
MESSAGE_BYTES = 1 << 18
MESSAGE_SECONDS = 0.02
"""Size of the messages in which an application gets a body from its `BodySink`, and how long it waits for a smaller
one. Each message passes through all middleware, which takes longer than copying its bytes.
"""


class BodySink:
    """Lets an application receive a body of known length in a buffer of its own.

    Without a buffer, uvicorn copies each piece twice, and the application once more to join them.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._receive: Receive = cycle.receive  # type: ignore[assignment]  # uvicorn has its own types
        self._buffer: memoryview | None = None
        self._filled = self._returned = 0
        self._timer: asyncio.TimerHandle | None = None

    def open(self, buffer: memoryview) -> None:
        """Receive the body in `buffer`, which must have exactly its length; no piece may have been received before.

        From now on the `body` of a message is the part of `buffer` that was filled since the last one.
        """
        self._buffer = buffer
        arrived, self._cycle.body = self._cycle.body, bytearray()
        self.write(arrived)

    def close(self) -> None:
        """What arrives later is received as if there had been no buffer."""
        self._buffer = None
        self._stop_timer()

    @property
    def is_open(self) -> bool:
        """True between `open` and `close`: pieces of the body go to the buffer."""
        return self._buffer is not None

    def write(self, piece: bytes | bytearray) -> None:
        """Write the next piece of the body to the buffer."""
        assert self._buffer is not None
        end = self._filled + len(piece)
        self._buffer[self._filled : end] = piece
        self._filled = end
        if end - self._returned >= MESSAGE_BYTES:
            self._announce()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MESSAGE_SECONDS, self._announce)

    def _announce(self) -> None:
        """Let `receive` return what has arrived."""
        self._stop_timer()
        self._cycle.message_event.set()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def receive(self) -> Message:
        message = await self._receive()
        if self._buffer is not None and message["type"] == "http.request":
            message["body"] = self._buffer[self._returned : self._filled]
            self._returned = self._filled
            self._stop_timer()
        return message


class JoiningTransport:
    """Sends the head of a response together with the first bytes of its body, in one system call.

    Only a head that announces the length of its body waits for the body: a stream may be slow to begin.
    """

    __slots__ = ("_begun", "_held", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_closing = transport.is_closing
        self._held = b""
        self._begun = False  # until the head of the answer was written

    def write(self, data: bytes) -> None:
        """Hold the head of a response back until the first bytes of its body."""
        if not self._begun and not data.startswith(b"HTTP/1.1 100"):
            self._begun = True
            if b"\r\ncontent-length: " in data:
                self._held = data
                return
        if self._held:
            if len(data) <= MAX_JOINED_BYTES:
                data = self._held + data
            else:
                self._transport.write(self._held)
            self._held = b""
        self._transport.write(data)

    def end_answer(self) -> None:
        """Send a head without a body; the next bytes belong to another response."""
        if self._held:
            self._transport.write(self._held)
            self._held = b""
        self._begun = False

    def close(self) -> None:
        """Send the head that was held back."""
        self.end_answer()
        self._transport.close()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with limits on the size and the duration of request heads.

    The request line, headers, chunk sizes, chunk extensions and trailers all count as head. A byte of a body, or a
    complete head, resets the count. The head of an answer is sent together with a small body; uvicorn itself sends two
    packets.
    """

    _joining: JoiningTransport

    def __init__(
        self, *args: Any, head_seconds: float, connections: FairSemaphore, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._head_seconds = head_seconds
        self._places = connections
        self._place: tuple[str, Permit] | None = None
        self._head_bytes = 0
        self._in_head = False
        self._in_body = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the timer of a head, or refuse the connection if its address has too many."""
        super().connection_made(transport)
        self._joining = JoiningTransport(transport)
        network = network_of(self.client)
        try:
            self._place = (network, self._places.acquire(network))
        except ServiceError as error:
            self._refuse(error.status, error.code, error.detail, error.headers)
            return
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer and release the address's place."""
        self._stop_clock()
        if self._place is not None:
            self._places.release(*self._place)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Close the connection if the head is too long."""
        self._head_bytes += len(data)
        self._unset_keepalive_if_required()
        self._parse(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(
                431,
                "headers_too_large",
                f"the head of a request can have at most {MAX_HEAD_BYTES} bytes",
            )
        elif self._clock is None and (self._in_head or (self._head_bytes and not self._in_body)):
            self._start_clock()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn itself closes the connection
        """Answer complete requests before closing: the caller may still read. True keeps the connection open."""
        cycle = self.cycle
        is_whole = cycle is not None and not self._in_body
        if not is_whole or cycle.response_complete or self.transport.is_closing():
            return False
        cycle.keep_alive = False
        return True

    def _parse(self, data: bytes) -> None:
        """Refuse invalid bytes; ignore an Upgrade header."""
        while True:  # one round for each Upgrade header, however many requests come at once
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
            except httptools.HttpParserUpgrade as upgrade:
                # The parser takes what follows the head for another protocol. The service has only this one, and
                # RFC 9110 lets it ignore the offer: the request is read once more, without the offer.
                if self._declines_upgrade() and not self.transport.is_closing():
                    data = self._head_without_upgrade() + data[upgrade.args[0] :]
                    self.parser = httptools.HttpRequestParser(self)
                    continue
            return

    def _declines_upgrade(self) -> bool:
        """Return True for an Upgrade header: Java's client and `curl --http2` offer HTTP/2."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        """Called when a head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._declines_upgrade():
            return  # the request is parsed once more, without the Upgrade header
        self._head_bytes, self._in_head, self._in_body = 0, False, True
        self._stop_clock()
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            raise ValueError("too many requests at once")  # the parser would end the connection

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        scope = cast(Scope, cycle.scope)
        scope[ABORT] = partial(self._abort, cycle)
        scope[FLOW] = self.flow
        if scope["method"] != "GET":
            scope[SINK] = sink = BodySink(cycle)
            cycle.receive = sink.receive  # type: ignore[method-assign, assignment]  # uvicorn has its own types
        cycle.transport = cast(asyncio.Transport, self._joining)
        super()._start_asgi_task(cycle, app)

    def _abort(self, cycle: RequestResponseCycle) -> None:
        """Signal the disconnect to all requests; uvicorn signals it only to the last one."""
        cycle.disconnected = True
        self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """Called for each piece of the body."""
        self._head_bytes = 0
        sink: BodySink | None = cast(Scope, self.cycle.scope).get(SINK)
        if sink is not None and sink.is_open:
            sink.write(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Called when the request is complete."""
        if self._declines_upgrade():
            return
        self._head_bytes, self._in_body = 0, False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Called when an answer is complete."""
        self._joining.end_answer()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP."""
        self._refuse(400, "malformed", msg)

    def _start_clock(self) -> None:
        self._clock = self.loop.call_later(self._head_seconds, self._too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        seconds = self._head_seconds
        self._refuse(
            408, "timeout", f"the head of a request must arrive within {seconds:g} seconds"
        )

    def _refuse(self, status: int, code: str, detail: str, headers: Mapping[str, str] = {}) -> None:
        """Send a problem, unless a response has begun, and close."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            phrase = HTTPStatus(status).phrase
            body = json.dumps(problems.members_of(status, code, phrase, detail)).encode()
            more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = (
                f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {problems.MEDIA_TYPE}\r\n{more}"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
