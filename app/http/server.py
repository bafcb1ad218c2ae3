"""The HTTP server and the middleware of every request: limits, request ids, security headers, access log, the last
error handler, and the shutdown.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import socket
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from ipaddress import ip_address
from types import FrameType
from typing import Any, NamedTuple, cast

import uvicorn
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from app.http import problems
from app.http.proxies import ProxiedConfig, put_prefix_before, root_path_of, take_off_prefix
from app.platform import logging as logs
from app.platform.errors import Malformed, ServiceError, Unavailable
from app.platform.ids import new_id
from app.platform.metrics import UNROUTED, ApiMetrics
from app.platform.settings import Settings

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 1 << 17  # of one head; uvicorn itself has no limit
MAX_PIPELINED = 16  # requests that may queue up behind the one that is being answered
ABORT = "rankwright.abort"
"""Key in the ASGI scope of a function that ends the connection without sending what still waits to be sent."""
FLOW = "rankwright.flow"
"""Key in the ASGI scope of uvicorn's flow control of the connection: a send waits only while it is paused."""
ABORTED = "rankwright.aborted"
"""Key in the ASGI scope that says that the caller was cut off: what senders raise from there on is no fault."""
MAX_PIECE_BYTES = 1 << 18  # of a body; a longer one is sent in pieces, as the caller reads them
MAX_JOINED_BYTES = 1 << 16  # of the piece of a body that is copied behind its head


class PlainAnswer(NamedTuple):
    """An answer as it is sent; its headers tell the length of the body."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes


AnswerFromMemory = Callable[[Scope], PlainAnswer | None]
"""Returns the answer of a request if all it needs is in memory; never waits, never raises."""


class JoiningTransport:
    """A transport that sends the head of an answer together with the first bytes of its body: one system call.

    Only heads that announce the length of their body wait for it: what is streamed may take its time.
    """

    __slots__ = ("_begun", "_held", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_closing = transport.is_closing
        self._held = b""
        self._begun = False  # until the head of the answer was written

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them if they are a head whose body follows."""
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
        """Send a head that has no body behind it. The next bytes are another answer."""
        if self._held:
            self._transport.write(self._held)
            self._held = b""
        self._begun = False

    def close(self) -> None:
        """Send what is kept, and close."""
        self.end_answer()
        self._transport.close()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with limits on the size and the duration of heads. uvicorn itself has none.

    Everything that is not body counts as head: the request line, headers, sizes and extensions of chunks, and
    trailers. A byte of a body, or a complete head, resets the count.

    Heads and small bodies of answers are sent together; uvicorn itself sends them apart. What can be answered from
    memory is answered where its head is complete, without a task and without the layers of the application.
    """

    _joining: JoiningTransport

    def __init__(self, *args: Any, head_seconds: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_seconds = head_seconds
        self._answer_from_memory: AnswerFromMemory | None = getattr(
            self.config, "answer_from_memory", None
        )
        self._head_bytes = 0
        self._in_head = False
        self._in_body = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Prepare for answers, and start the timer of a head."""
        super().connection_made(transport)
        self._joining = JoiningTransport(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read more. Close the connection if the head is too long."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(
                431,
                "headers_too_large",
                f"the head of a request may have at most {MAX_HEAD_BYTES} bytes",
            )
        elif self._clock is None and (self._in_head or (self._head_bytes and not self._in_body)):
            self._start_clock()

    def on_message_begin(self) -> None:
        """Called when a head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Called when the head is complete."""
        self._head_bytes, self._in_head, self._in_body = 0, False, True
        self._stop_clock()
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            raise ValueError("too many requests at once")  # the parser ends the connection

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Begin a request, or answer it at once."""
        scope = cast(Scope, cycle.scope)
        if self._answer_from_memory is not None and not self.flow.write_paused:
            answer = self._answer_from_memory(scope)
            if answer is not None:
                self._write_answer(cycle, answer)
                return
        scope[ABORT] = partial(self._abort, cycle)
        scope[FLOW] = self.flow
        cycle.transport = cast(asyncio.Transport, self._joining)
        super()._start_asgi_task(cycle, app)

    def _abort(self, cycle: RequestResponseCycle) -> None:
        """End the connection; of its requests uvicorn itself tells only the last one."""
        cycle.disconnected = True
        self.transport.abort()

    def _write_answer(self, cycle: RequestResponseCycle, answer: PlainAnswer) -> None:
        """Write a whole answer, as `RequestResponseCycle.send` does; its headers hold nothing of a caller unchecked."""
        parts = [STATUS_LINE[answer.status]]
        for name, value in (*cycle.default_headers, *answer.headers):
            parts += [name, b": ", value, b"\r\n"]
        if not cycle.keep_alive:
            parts.append(b"connection: close\r\n")
        parts += [b"\r\n", answer.body]
        self.transport.write(b"".join(parts))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_body(self, body: bytes) -> None:
        """Called for each piece of the body."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Called when the request is complete."""
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

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Send a problem, unless an answer has begun, and close the connection."""
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
                f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {problems.MEDIA_TYPE}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()


def server_config(
    app: ASGIApp | Callable[..., Any] | str, settings: Settings, **options: Any
) -> uvicorn.Config:
    """Return uvicorn's configuration, for the service and for tests. WebSockets are off."""
    protocol: Any = partial(BoundedProtocol, head_seconds=settings.head_seconds)
    return ProxiedConfig(
        app, http=protocol, ws="none", access_log=False, server_header=False, **options
    )


class Drain:
    """Whether this process is shutting down. Code that keeps requests open registers a listener."""

    def __init__(self) -> None:
        self.begun = False
        self._listeners: list[Callable[[], object]] = []

    def on_end(self, listener: Callable[[], object]) -> None:
        """Register a listener that is called when the shutdown begins."""
        self._listeners.append(listener)

    def begin(self) -> None:
        """Begin the shutdown. Called in the event loop."""
        self.begun = True
        for listener in self._listeners:
            listener()


class DrainingServer(uvicorn.Server):
    """uvicorn that keeps answering for `seconds` after a signal to end, so that a proxy can choose another process."""

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Drain,
        seconds: float,
        on_start: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(config)
        self._drain = drain
        self._on_start = on_start
        self._seconds = seconds
        self._asked = 0
        self._until = 0.0

    def end(self, *_: object) -> None:
        """Handle a signal: the first begins the shutdown, the second ends the process."""
        self._asked += 1

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Replace uvicorn's signal handler, which closes at once."""
        self.end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, then call `on_start`."""
        await super().startup(sockets=sockets)
        if self.started and self._on_start is not None:
            self._on_start()

    async def on_tick(self, counter: int) -> bool:
        """Begin or end the shutdown after a signal. uvicorn calls this ten times a second."""
        if self._asked and not self._drain.begun:
            self._until = time.monotonic() + self._seconds
            self._drain.begin()
        if self._asked > 1 or (self._asked and time.monotonic() >= self._until):
            self.should_exit = True
        return await super().on_tick(counter)


UPLOADS = re.compile(
    r"/v1/(datasets(/[^/]+/(pairs|versions))?|uploads/[^/]+/parts/[^/]+|batch-scores)"
    r"|/console/uploads/(datasets(/[^/]+/(pairs|versions))?|batch-scores)"
)
LARGE_TABLES = re.compile(r"/v1/models/[^/]+/score")
"""Where tables may be larger than other bodies; the route itself refuses what is no table."""
MAX_ADDRESS_BYTES = 60_000
MAX_HEADERS = 100
MAX_HEADER_BYTES = 1 << 16  # all names and values together
MIN_BODY_BYTES_PER_SECOND = 1024  # while a body is small; `min_body_rate` says more
SMALL_BODY_BYTES = 1 << 16  # after these the required rate rises
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_UNLESS_GIVEN = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_CLOSE = (b"connection", b"close")


class AddressTooLong(ServiceError):
    """The path and the query are longer than any model's features need."""

    code, status, title = "uri_too_long", 414, "Address too long"


class HeadersTooLarge(ServiceError):
    """There are more headers than a client has reason to send."""

    code, status, title = "headers_too_large", 431, "Headers too large"


class RequestMiddleware:
    """The outermost layer of the service, as plain ASGI.

    `app` is what FastAPI makes of `service`. GETs of the route `busiest` do not pass through it: they cost it more than
    their answers. Errors become answers by the same handlers.
    """

    def __init__(
        self,
        service: FastAPI,
        app: ASGIApp,
        busiest: Route,
        *,
        settings: Settings,
        metrics: ApiMetrics,
        drain: Drain,
    ) -> None:
        self._service = service
        self._app = app
        self._busiest = busiest
        self._root = settings.root_path
        self._max_body = settings.max_body_bytes
        self._max_upload = settings.max_upload_bytes
        self._max_table = max(settings.max_body_bytes, settings.max_streamed_bytes)
        self._body_seconds = settings.body_seconds
        self._metrics = metrics
        self._drain = drain
        self._most_open = settings.max_requests
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        scope["app"] = self._service
        request_id, length, size = _read_headers(scope)
        scope["request_id"] = request_id
        token = logs.request_id.set(request_id)
        status = 0
        self._open += 1

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if root := root_path_of(scope):
                    put_prefix_before(message, root)
                headers = message["headers"]
                headers.append((b"x-request-id", request_id.encode()))
                headers.extend(_HEADERS)
                headers.extend(scope.get("deprecation", ()))  # of what was asked for
                if self._drain.begun:
                    headers.append(_CLOSE)
                given = {name for name, _ in headers}
                headers += [own for own in _UNLESS_GIVEN if own[0] not in given]
            await send(message)

        paced = _abort_when_slow(send_with_headers, scope, self._body_seconds)
        try:
            if (refusal := _refusal(scope, size, self._root)) is not None:
                response = await problems.of_address(Request(scope), refusal)
                await response(scope, receive, paced)
            elif (refusal := self._overload(scope)) is not None:
                response = problems.of_service_error(Request(scope), refusal)
                await response(scope, receive, paced)
            elif scope["method"] == "GET" and (
                match := self._busiest.path_regex.match(scope["path"])
            ):
                scope["path_params"] = match.groupdict()
                await self._answer_busiest(scope, receive, paced)
            else:
                if scope["method"] not in ("GET", "HEAD"):
                    limit = self._limit(scope["path"])
                    receive = _limited(receive, limit, length, self._body_seconds)
                await self._app(scope, receive, paced)
        except asyncio.CancelledError:
            if status or not self._drain.begun:
                raise
            response = problems.of_service_error(Request(scope), _ending())
            await response(scope, receive, send_with_headers)
        except Exception:
            if ABORTED in scope:
                return
            log.exception("unexpected error on %s %s", scope["method"], scope["path"])
            if status:
                raise  # the answer has begun: only closing the connection can tell the caller
            await problems.of_crash(Request(scope))(scope, receive, send_with_headers)
        finally:
            self._open -= 1
            if (release := scope.get("release")) is not None:  # the permit that the route took
                release()
            self._note(scope, status, time.perf_counter() - started)
            logs.request_id.reset(token)

    def answer_from_memory(self, scope: Scope) -> PlainAnswer | None:
        """Return the answer of a GET of the route `busiest` if all it needs is in memory; None for all others, which go
        through the layers. Nothing else is done for those.
        """
        if scope["method"] != "GET" or self._drain.begun or self._open >= self._most_open:
            return None
        match = self._busiest.path_regex.match(scope["path"])
        if match is None or self._root:
            return None
        started = time.perf_counter()
        try:
            request_id, _, size = _read_headers(scope)
            if _refusal(scope, size, "") is not None:
                return None
            scope["path_params"] = match.groupdict()
            answer: PlainAnswer | None = cast(Any, self._busiest.app).answer_from_memory(scope)
        except Exception:  # it is raised again, and answered, behind the layers
            return None
        if answer is None:
            return None
        headers = [*answer.headers, (b"x-request-id", request_id.encode()), *_HEADERS]
        headers += _UNLESS_GIVEN[1:]  # the route says what may be cached
        scope["request_id"] = request_id
        token = logs.request_id.set(request_id)
        try:
            self._note(scope, answer.status, time.perf_counter() - started)
        finally:
            logs.request_id.reset(token)
        return answer._replace(headers=headers)

    def _limit(self, path: str) -> int:
        """Return the most bytes of a body."""
        if UPLOADS.fullmatch(path):
            return self._max_upload
        return self._max_table if LARGE_TABLES.fullmatch(path) else self._max_body

    async def _answer_busiest(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._busiest.app(scope, receive, send)
        except Exception as error:
            handlers = self._service.exception_handlers
            handle = next(
                (handlers[kind] for kind in type(error).__mro__ if kind in handlers), None
            )
            if handle is None:
                raise
            response: Response = await cast(Any, handle)(Request(scope), error)
            await response(scope, receive, send)

    def _overload(self, scope: Scope) -> ServiceError | None:
        """Return the refusal if too many requests are open; None for health checks."""
        if self._open <= self._most_open or scope["path"].startswith("/health/"):
            return None
        return Unavailable(
            f"{self._most_open} requests are open in this process, which is the maximum: try again soon",
            code="overloaded",
        )

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        template = getattr(route, "path", "") or UNROUTED
        self._metrics.observe_request(scope["method"], template, status, seconds)
        if not logs.access.isEnabledFor(logging.INFO):
            return
        caller = scope.get("caller")  # once its key is known, whatever the key may do
        key_id, owner = (None, None) if caller is None else (caller.key_id, caller.owner)
        # Never the query string: it may hold people's data.
        method, path = scope["method"], scope["path"]
        client = client_address(scope)
        logs.log_request(
            f"{method} {path} {status} {seconds * 1e3:.1f} ms, from {client or '-'}, key {key_id or '-'}"
            f" of {owner or '-'}, {scope['request_id']}",
            {
                "method": method,
                "path": path,
                "status": status,
                "seconds": round(seconds, 6),
                "client": client,
                "key_id": key_id,
                "owner": owner,
            },
        )


def client_address(scope: Scope) -> str | None:
    """Return the caller's address: the one that a trusted proxy forwards, else that of the connection. None if it is
    no network address.
    """
    client = scope.get("client")
    return None if client is None else _address(client[0])


@lru_cache(maxsize=1024)
def _address(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None


def _refusal(scope: Scope, size: int, root: str) -> ServiceError | None:
    """Return the error if no route can take this request; else None."""
    count = len(scope["headers"])
    if count > MAX_HEADERS or size > MAX_HEADER_BYTES:
        return HeadersTooLarge(
            f"a request may have at most {MAX_HEADERS} headers of {MAX_HEADER_BYTES} bytes in all, "
            f"got {count} of {size} bytes"
        )
    try:
        take_off_prefix(scope, root)
    except Malformed as error:
        return error
    if b"%00" in scope["raw_path"] or b"%00" in scope["query_string"]:
        return Malformed("the address must not hold NUL (%00)")
    if scope["path"].endswith("\n"):  # where a pattern of a route ends, too
        return Malformed("the path must not end in a line feed (%0A)")
    length = len(scope["raw_path"]) + len(scope["query_string"])
    if length > MAX_ADDRESS_BYTES:
        return AddressTooLong(
            f"the address may have at most {MAX_ADDRESS_BYTES} bytes, got {length}"
        )
    return None


def _ending() -> ServiceError:
    return Unavailable("this process is stopping and could not answer in time", code="draining")


def _read_headers(scope: Scope) -> tuple[str, int | None, int]:
    """Return the request id, the announced length of the body, and the size of the headers."""
    request_id, length, size = None, None, 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            request_id = value.decode()
        elif name == b"content-length" and value.isdigit():
            length = int(value)
    return request_id or new_id("req"), length, size


def _limited(receive: Receive, limit: int, length: int | None, seconds: float) -> Receive:
    """Return a `receive` that stops a body that is over the limit, announced or not, or that is too slow."""
    seen, seconds_left, complete = 0, seconds, False

    async def receive_within_limit() -> Message:
        nonlocal seen, seconds_left, complete
        if length is not None and length > limit:
            raise body_too_large(limit)
        if complete:  # only the end of the connection is still to come
            return await receive()
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds_left):
                message = await receive()
        except TimeoutError:
            raise _too_slow(seconds, seen) from None
        seconds_left -= time.monotonic() - started
        if message["type"] == "http.request":
            complete = not message.get("more_body", False)
            size = len(message.get("body", b""))
            seen += size
            if seen > limit:
                raise body_too_large(limit)
            # Never more than at first: a fast start must not allow a long silence later.
            seconds_left = min(seconds, seconds_left + size / min_body_rate(seen))
        return message

    return receive_within_limit


def _abort_when_slow(send: Send, scope: Scope, seconds: float) -> Send:
    """Return a `send` that ends the connection if the caller reads an answer more slowly than a body must come, and
    then raises ClientDisconnect.

    Long bodies go out in pieces, so that no more of them than a piece waits in the connection.
    """
    seen, seconds_left = 0, seconds
    flow: FlowControl | None = scope.get(FLOW)

    async def send_within_time(message: Message) -> None:
        body = message.get("body", b"")
        if len(body) <= MAX_PIECE_BYTES:
            await send_piece(message)
            return
        view = memoryview(body)
        for start in range(0, len(view), MAX_PIECE_BYTES):
            piece = view[start : start + MAX_PIECE_BYTES]
            await send_piece({"type": message["type"], "body": piece, "more_body": True})
        if not message.get("more_body", False):
            await send_piece({"type": message["type"], "body": b""})

    async def send_piece(message: Message) -> None:
        nonlocal seen, seconds_left
        if ABORTED in scope:
            raise ClientDisconnect
        more = message.get("more_body", False)
        late = seconds_left
        if flow is not None and not flow.write_paused:
            await send(message)  # does not wait
        else:
            started = time.monotonic()
            try:
                async with asyncio.timeout(seconds_left):
                    await send(message)
            except TimeoutError:
                client = client_address(scope)
                log.info("%s read its answer too slowly, after %d bytes", client, seen)
                scope[ABORTED] = True
                if (abort := scope.get(ABORT)) is not None:
                    abort()
                raise ClientDisconnect from None
            late -= time.monotonic() - started
        if more:
            size = len(message["body"])
            seen += size
            seconds_left = min(seconds, max(0.0, late) + size / min_body_rate(seen))

    return send_within_time


def min_body_rate(seen: int) -> float:
    """Return the minimum rate of a body, in bytes per second, after `seen` bytes. It grows with the root of `seen`.

    So a body of 4 GiB occupies its slot for nine hours at most, not for 48 days.
    """
    return MIN_BODY_BYTES_PER_SECOND * max(1.0, math.sqrt(seen / SMALL_BODY_BYTES))


def _too_slow(seconds: float, seen: int) -> HTTPException:
    return HTTPException(
        408,
        detail=f"after {seen} bytes a body must bring {min_body_rate(seen):.0f} more a second, and may be {seconds:g} "
        "seconds late",
        headers={"Connection": "close"},
    )


def body_too_large(limit: int) -> HTTPException:
    """Return the error for a body that is over the limit."""
    # An HTTPException because FastAPI lets only these through while it reads a body.
    return HTTPException(
        413,
        detail=f"the body may have at most {limit} bytes here",
        headers={"Connection": "close"},  # do not read a body that will be thrown away
    )
