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
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from types import FrameType
from typing import Any, NamedTuple, cast

import httptools
import uvicorn
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

from app.http import problems
from app.http.bodies import BodyLimit, BodyLimits, body_too_large
from app.http.cookies import MAX_COOKIE_BYTES, keep_own
from app.http.limits import FairSemaphore, MemoryBudget, Permit, release_at_end
from app.http.proxies import ProxiedConfig, put_prefix_before, root_path_of, take_off_prefix
from app.platform import logging as logs
from app.platform.errors import Malformed, NotFound, ServiceError, Unavailable
from app.platform.ids import new_id
from app.platform.metrics import UNROUTED, ApiMetrics
from app.platform.outage import OutageMemory
from app.platform.processes import descriptor_limit
from app.platform.settings import Settings
from core.errors import shorten

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 1 << 17  # bytes of one head; uvicorn itself has no limit
MAX_PIPELINED = 16  # requests that may queue up behind the one that is being answered
ABORT = "rankwright.abort"
"""Key in the ASGI scope of a function that ends the connection without sending what still waits to be sent."""
FLOW = "rankwright.flow"
"""Key in the ASGI scope of uvicorn's flow control of the connection: a send waits only while it is paused."""
ABORTED = "rankwright.aborted"
"""Key in the ASGI scope that says that the caller was cut off: what senders raise from there on is no fault."""
HELD = "rankwright.held"
"""Key in the ASGI scope of the bytes that a request holds: a number for each budget and name there."""
TOO_SLOW = "too_slow"
"""Why an answer was cut off whose caller read it too slowly."""
BUDGET_BODIES = 4  # the memory budget of requests with a key, in bodies of the largest size
ANONYMOUS_BUDGET_BODIES = (
    1  # that of requests without a key: they take no memory from those with one
)
# bytes of a body; a longer body is sent in pieces, as the caller reads them
MAX_PIECE_BYTES = 1 << 18
# Bytes of a body that are copied behind its head. The connection buffers as many before it pauses: the request is over
# when the body is sent, but for a longer body only when the caller has read it, down to so many bytes.
MAX_JOINED_BYTES = 1 << 16


class JoiningTransport:
    """A transport that sends the head of an answer together with the first bytes of its body: one system call.

    Only a head that announces the length of its body waits for the body: a stream may be slow to begin.
    """

    __slots__ = ("_begun", "_held", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_closing = transport.is_closing
        self._held = b""
        self._begun = False  # until the head of the answer was written

    def write(self, data: bytes) -> None:
        """Send bytes. A head is held back until the first bytes of its body come."""
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
        """Send a head without a body. The next bytes belong to another answer."""
        if self._held:
            self._transport.write(self._held)
            self._held = b""
        self._begun = False

    def close(self) -> None:
        """Send the head that was held back, and close."""
        self.end_answer()
        self._transport.close()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with limits on the size and the duration of heads. uvicorn itself has none.

    The request line, headers, chunk sizes, chunk extensions and trailers all count as head. A byte of a body, or a
    complete head, resets the count.

    The head of an answer is sent together with a small body; uvicorn itself sends two packets.
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
        """Prepare for answers, and start the timer of a head. Refuse the connection if its address has too many."""
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
        """Stop the timer."""
        self._stop_clock()
        if self._place is not None:
            self._places.release(*self._place)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse more bytes. Close the connection if the head is too long."""
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

    def _parse(self, data: bytes) -> None:
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
        """Return True for a request with an Upgrade header: Java's client and `curl --http2` offer HTTP/2 so."""
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
        """Called when the head is complete."""
        if self._declines_upgrade():
            return  # the request is parsed once more, without the Upgrade header
        self._head_bytes, self._in_head, self._in_body = 0, False, True
        self._stop_clock()
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            raise ValueError("too many requests at once")  # the parser would end the connection

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Begin a request."""
        scope = cast(Scope, cycle.scope)
        scope[ABORT] = partial(self._abort, cycle)
        scope[FLOW] = self.flow
        cycle.transport = cast(asyncio.Transport, self._joining)
        super()._start_asgi_task(cycle, app)

    def _abort(self, cycle: RequestResponseCycle) -> None:
        """End the connection, and tell all its requests; uvicorn itself tells only the last one."""
        cycle.disconnected = True
        self.transport.abort()

    def on_body(self, body: bytes) -> None:
        """Called for each piece of the body."""
        self._head_bytes = 0
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
            more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = (
                f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {problems.MEDIA_TYPE}\r\n{more}"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()


def server_config(
    app: ASGIApp | Callable[..., Any] | str, settings: Settings, **options: Any
) -> uvicorn.Config:
    """Return uvicorn's configuration, for the service and for tests. WebSockets are off."""
    # A connection takes a file descriptor. Half of the descriptors are reserved for files, models and the database.
    most = descriptor_limit() // 2
    connections = FairSemaphore(most, "connections", Unavailable, whose="an address")
    protocol: Any = partial(
        BoundedProtocol, head_seconds=settings.head_seconds, connections=connections
    )
    return ProxiedConfig(
        app,
        http=protocol,
        ws="none",
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.idle_seconds,
        **options,
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


MAX_ADDRESS_BYTES = 60_000
MAX_HEADERS = 100
MAX_HEADER_BYTES = 1 << 16  # bytes of all names and values together
MIN_BODY_BYTES_PER_SECOND = 1024  # bytes per second of a small body: see `min_body_rate`
SMALL_BODY_BYTES = 1 << 16  # the required rate rises after so many bytes
# W3C Trace Context: version, trace, span, flags. An id of zeros is invalid, and a later version may append fields.
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
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
    """The path and the query together are too long."""

    code, status, title = "uri_too_long", 414, "Address too long"


class HeadersTooLarge(ServiceError):
    """A request has too many headers, or too long ones."""

    code, status, title = "headers_too_large", 431, "Headers too large"


class RequestMiddleware:
    """The outermost layer of the service, as plain ASGI: it serves `app`, the layers of FastAPI's application
    `service`.
    """

    def __init__(
        self,
        service: FastAPI,
        app: ASGIApp,
        bodies: BodyLimits,
        *,
        settings: Settings,
        metrics: ApiMetrics,
        drain: Drain,
        memory: OutageMemory,
    ) -> None:
        self._service = service
        self._app = app
        self._root = settings.root_path
        self._bodies = bodies
        self.body_seconds = settings.body_seconds
        self._metrics = metrics
        self._drain = drain
        self._memory = memory
        self._head_seconds = settings.head_seconds
        self._strangers = FairSemaphore(
            settings.max_requests, "requests", Unavailable, whose="an address without a key"
        )
        largest = max(settings.max_body_bytes, settings.max_score_bytes)
        show = metrics.body_bytes.inc
        self._budget = MemoryBudget(BUDGET_BODIES * largest, show)
        self._anonymous_budget = MemoryBudget(ANONYMOUS_BUDGET_BODIES * largest, show)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, method = time.perf_counter(), scope["method"]
        if method == "HEAD":  # answered as a GET, of which only the head is sent
            scope = {**scope, "method": "GET"}
            send = _head_alone(send, scope)
        scope["app"] = self._service
        head = _read_headers(scope)
        scope["request_id"] = request_id = head.request_id
        token = logs.request_id.set(request_id)
        trace_token = logs.trace_id.set(head.trace_id)
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if root := root_path_of(scope):
                    put_prefix_before(message, root)
                headers = message["headers"]
                headers.append((b"x-request-id", request_id.encode()))
                headers.extend(_HEADERS)
                if self._drain.begun:
                    headers.append(_CLOSE)
                headers.extend(self._outage(scope, status))
                given = {name for name, _ in headers}
                headers += [own for own in _UNLESS_GIVEN if own[0] not in given]
            await send(message)

        def wait_for_reader(size: int) -> None:
            self._occupy(scope)
            self._hold(scope, size)

        paced = paced_send(
            send_with_headers, scope, self.body_seconds, wait_for_reader, self._metrics.note_cut_off
        )
        try:
            if (refusal := _refusal(scope, head, self._root)) is not None:
                response = await problems.of_address(Request(scope), refusal)
                await response(scope, receive, paced)
            else:
                if head.cookie_size:
                    keep_own(scope)
                if method not in ("GET", "HEAD"):
                    limit = self._bodies.of(scope["path"])
                    receive = _limited(receive, limit, head.length, self.body_seconds)
                    receive = self._in_place(receive, scope, limit.held)
                await self._app(scope, receive, paced)
        except asyncio.CancelledError:
            if status or not self._drain.begun:
                raise
            response = problems.of_service_error(Request(scope), _ending())
            await response(scope, receive, send_with_headers)
        except Exception:
            if ABORTED in scope:
                return
            log.exception("unexpected error on %s %s", method, scope["path"])
            if status:
                raise  # the answer has begun: only closing the connection can tell the caller
            await problems.of_crash(Request(scope))(scope, receive, send_with_headers)
        finally:
            if (release := scope.get("release")) is not None:  # releases the request's permit
                release()
            self._note(scope, method, status, time.perf_counter() - started)
            logs.request_id.reset(token)
            logs.trace_id.reset(trace_token)

    def _outage(self, scope: Scope, status: int) -> list[tuple[bytes, bytes]]:
        """If the key was checked from the cache because the database is away, count the request and return the header
        that says so; else none.
        """
        away = self._memory.away_seconds
        if away is None or status >= 400 or "caller" not in scope:
            return []
        self._metrics.without_database.inc()
        return [(b"x-database-away", b"%.0f" % away)]

    def _occupy(self, scope: Scope) -> None:
        """Take a permit for a request that waits for its caller, until the request ends. It is a permit of the caller's
        address, unless the request already holds one of an owner. Raises the error of `FairSemaphore.refusal`.

        So callers without a key, however many, take no permits from callers with a key.
        """
        if "release" not in scope:
            name = _holder_of(scope)
            permit = self._strangers.acquire(name)
            release_at_end(scope, partial(self._strangers.release, name, permit))

    def _hold(self, scope: Scope, size: int) -> None:
        """Count bytes that a request holds in memory until it ends. Raises the error of `MemoryBudget.add`."""
        budget = self._budget if "caller" in scope else self._anonymous_budget
        name = _holder_of(scope)
        budget.add(name, size)
        if HELD not in scope:
            scope[HELD] = held = defaultdict[tuple[MemoryBudget, str], int](int)

            def release() -> None:
                for (of, holder), bytes_held in held.items():
                    of.remove(holder, bytes_held)

            release_at_end(scope, release)
        scope[HELD][budget, name] += size

    def _in_place(self, receive: Receive, scope: Scope, most_held: int) -> Receive:
        """Return a `receive` for a request's body that takes a permit, and counts up to `most_held` bytes as held in
        memory.

        A caller without a key must send the whole body within the time limit of a head.
        """
        until = time.monotonic() + self._head_seconds
        left = most_held

        async def receive_in_place() -> Message:
            nonlocal left
            self._occupy(scope)
            message = await receive_in_time()
            if size := min(left, len(message.get("body", b""))):
                left -= size
                self._hold(scope, size)
            return message

        async def receive_in_time() -> Message:
            if "caller" in scope:
                return await receive()
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    return await receive()
            except TimeoutError:
                raise HTTPException(
                    408,
                    detail=f"a body without a key must arrive within {self._head_seconds:g} seconds",
                    headers={"Connection": "close"},
                ) from None

        return receive_in_place

    def _note(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        route = scope.get("route")
        template = getattr(route, "path", "") or UNROUTED
        self._metrics.observe_request(method, template, status, seconds)
        if not logs.access.isEnabledFor(logging.INFO):
            return
        caller = scope.get("caller")  # set as soon as the key is known, whatever its scopes
        key_id, owner = (None, None) if caller is None else (caller.key_id, caller.owner)
        # Never the query string: it may hold people's data.
        path = shorten(scope["path"])
        client = client_address(scope)
        code = scope.get("error_code") if status >= HTTPStatus.BAD_REQUEST else None
        logs.log_request(
            f"{method} {path} {status}{f' {code}' if code else ''} {seconds * 1e3:.1f} ms, from {client or '-'}, "
            f"key {key_id or '-'} of {owner or '-'}, {scope['request_id']}",
            {
                "method": method,
                "path": path,
                "status": status,
                "code": code,
                "seconds": round(seconds, 6),
                "client": client,
                "key_id": key_id,
                "owner": owner,
            },
        )


def _holder_of(scope: Scope) -> str:
    """Return whose permits and bytes a request takes: the owner's, else those of the caller's address."""
    caller = scope.get("caller")
    return network_of(scope.get("client")) if caller is None else f"owner {caller.permit_holder}"


def client_address(scope: Scope) -> str | None:
    """Return the caller's address, which a trusted proxy forwards; else the address of the connection. None if it is no
    network address.
    """
    client = scope.get("client")
    return None if client is None else _address(client[0])


def network_of(client: tuple[str, int] | None) -> str:
    """Return the caller's address; for IPv6 the /64 network, which belongs to one host."""
    try:
        address = ip_address(client[0] if client else "")
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.packed[:8].hex()
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(maxsize=1024)
def _address(host: str) -> str | None:
    try:
        return str(ip_address(host))
    except ValueError:
        return None


def _refusal(scope: Scope, head: _Head, root: str) -> ServiceError | None:
    """Return the error if no route can take this request; else None."""
    count = len(scope["headers"])
    if count > MAX_HEADERS or head.size > MAX_HEADER_BYTES:
        return HeadersTooLarge(
            f"a request can have at most {MAX_HEADERS} headers of {MAX_HEADER_BYTES} bytes in total, got "
            f"{count} headers of {head.size} bytes"
        )
    if head.cookie_size > MAX_COOKIE_BYTES:
        return HeadersTooLarge(
            f"the Cookie header can have at most {MAX_COOKIE_BYTES} bytes, got {head.cookie_size}; delete "
            "the cookies of this host"
        )
    try:
        take_off_prefix(scope, root)
    except Malformed as error:
        return error
    if head.hosts != 1 and (head.hosts or scope["http_version"] != "1.0"):
        return Malformed(f"a request must have one Host header, got {head.hosts}")
    raw_path = scope["raw_path"]
    if b"%2F" in raw_path or b"%2f" in raw_path:  # would be part of a name, and no name has a slash
        return NotFound("no URL has an encoded slash (%2F) in its path")
    if b"%00" in scope["raw_path"] or b"%00" in scope["query_string"]:
        return Malformed("the URL must not contain NUL (%00)")
    if scope["path"].endswith("\n"):  # `$` in a route's pattern also matches before it
        return Malformed("the path must not end in a line feed (%0A)")
    length = len(scope["raw_path"]) + len(scope["query_string"])
    if length > MAX_ADDRESS_BYTES:
        return AddressTooLong(f"the URL can have at most {MAX_ADDRESS_BYTES} bytes, got {length}")
    return None


def _ending() -> ServiceError:
    return Unavailable("this process is stopping and could not respond in time", code="draining")


class _Head(NamedTuple):
    """Values from the headers: request id, trace id, announced length of the body, size of all headers, size of
    the Cookie headers, and number of Host headers.
    """

    request_id: str
    trace_id: str | None
    length: int | None
    size: int
    cookie_size: int
    hosts: int


def _read_headers(scope: Scope) -> _Head:
    request_id, trace_id, length = None, None, None
    size = cookie_size = hosts = 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            request_id = value.decode()
        elif name == b"content-length" and value.isdigit():
            length = int(value)
        elif name == b"host":
            hosts += 1
        elif name == b"cookie":
            cookie_size += len(value)
        elif name == b"traceparent" and (match := _TRACEPARENT.fullmatch(value)):
            trace_id = match[1].decode()
    return _Head(request_id or new_id("req"), trace_id, length, size, cookie_size, hosts)


def _head_alone(send: Send, scope: Scope) -> Send:
    """Return a `send` for a HEAD request: it sends only the head, and ends a streamed answer."""

    async def send_head(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({"type": "http.response.body"})
        if message.get("more_body", False):
            scope[ABORTED] = True
            raise ClientDisconnect

    return send_head


def _limited(receive: Receive, limit: BodyLimit, length: int | None, seconds: float) -> Receive:
    """Return a `receive` that raises if the body is too slow or over the limit, even if no length was announced."""
    seen, seconds_left, complete = 0, seconds, False

    async def receive_within_limit() -> Message:
        nonlocal seen, seconds_left, complete
        if length is not None and length > limit.bytes:
            raise body_too_large(limit)
        if complete:  # the body is complete: the only message left is the disconnect
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
            if seen > limit.bytes:
                raise body_too_large(limit)
            # Never more than at first: a fast start must not allow a long silence later.
            seconds_left = min(seconds, seconds_left + size / min_body_rate(seen))
        return message

    return receive_within_limit


def paced_send(
    send: Send,
    scope: Scope,
    seconds: float,
    occupy: Callable[[int], None] = lambda size: None,
    note_cut_off: Callable[[str], object] = lambda reason: None,
) -> Send:
    """Return a `send` that ends the connection and raises ClientDisconnect if the caller reads an answer too slowly.
    The minimum rate is that of request bodies. Before it waits it calls `occupy` with the bytes of the body that were
    not counted before; if `occupy` raises a ServiceError, the connection ends as well. `note_cut_off` is called with
    the reason: `TOO_SLOW`, or the code of that error.

    Long bodies are sent in pieces, so that the connection never buffers more than one piece. A body that the connection
    cannot take at once is complete only when most of it was read: until then its bytes stay counted.
    """
    seen, seconds_left = 0, seconds
    waiting = counted = 0  # bytes of the body that is sent now, and those that `occupy` has counted
    flow: FlowControl | None = scope.get(FLOW)

    async def send_within_time(message: Message) -> None:
        nonlocal waiting
        body = message.get("body", b"")
        waiting = len(body)
        if waiting <= MAX_JOINED_BYTES:
            await send_piece(message)
            return
        view = memoryview(body)
        for start in range(0, len(view), MAX_PIECE_BYTES):
            piece = view[start : start + MAX_PIECE_BYTES]
            await send_piece({"type": message["type"], "body": piece, "more_body": True})
        if not message.get("more_body", False):
            await send_piece({"type": message["type"], "body": b""})  # waits until it was read

    async def send_piece(message: Message) -> None:
        nonlocal seen, seconds_left, counted
        if ABORTED in scope:
            raise ClientDisconnect
        more = message.get("more_body", False)
        late = seconds_left
        if flow is not None and not flow.write_paused:
            await send(message)  # returns at once
        else:
            started = time.monotonic()
            try:
                occupy(max(0, waiting - counted))
                counted = max(counted, waiting)
                async with asyncio.timeout(seconds_left):
                    await send(message)
            except (TimeoutError, ServiceError) as error:
                client = client_address(scope)
                if isinstance(error, ServiceError):
                    reason = error.code
                    log.info("the response to %s ended after %d bytes: %s", client, seen, error)
                else:
                    reason = TOO_SLOW
                    log.info("%s read its response too slowly, after %d bytes", client, seen)
                note_cut_off(reason)
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
    """Return the minimum rate of a body, in bytes per second, after `seen` bytes. It grows with the square root of
    `seen`.

    So a body of 4 GiB occupies its slot for nine hours at most, not for 48 days.
    """
    return MIN_BODY_BYTES_PER_SECOND * max(1.0, math.sqrt(seen / SMALL_BODY_BYTES))


def _too_slow(seconds: float, seen: int) -> HTTPException:
    return HTTPException(
        408,
        detail=f"after {seen} bytes a body must arrive at {min_body_rate(seen):.0f} or more bytes per second, "
        f"and may be {seconds:g} seconds late",
        headers={"Connection": "close"},
    )
