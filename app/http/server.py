"""The HTTP server and the middleware of every request: limits, ids, headers, access log, crashes, and the shutdown."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import uvicorn
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl

from app.http import problems
from app.http.addresses import client_address, network_of
from app.http.bodies import BodyLimit, BodyLimits, body_too_large
from app.http.cookies import MAX_COOKIE_BYTES, keep_own
from app.http.limits import FairSemaphore, MemoryBudget, release_at_end
from app.http.protocol import ABORT, FLOW, MAX_JOINED_BYTES, BoundedProtocol
from app.http.proxies import ProxiedConfig, put_prefix_before, root_path_of, take_off_prefix
from app.platform import logging as logs
from app.platform import trace, tracing
from app.platform.errors import Malformed, NotFound, ServiceError, Unavailable
from app.platform.ids import new_id
from app.platform.metrics import UNROUTED, ApiMetrics
from app.platform.outage import OutageMemory
from app.platform.processes import descriptor_limit, note_step
from app.platform.settings import Settings
from core.errors import shorten

log = logging.getLogger(__name__)

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


def server_config(
    app: ASGIApp | Callable[..., Any] | str, settings: Settings, **options: Any
) -> uvicorn.Config:
    """WebSockets are off."""
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
    """The state of the shutdown of this process. Code that keeps requests open registers a listener."""

    def __init__(self) -> None:
        self.begun = False
        self._listeners: list[Callable[[], object]] = []

    def on_end(self, listener: Callable[[], object]) -> None:
        """The listener is called when the shutdown begins."""
        self._listeners.append(listener)

    def begin(self) -> None:
        """Called in the event loop."""
        self.begun = True
        for listener in self._listeners:
            listener()


class DrainingServer(uvicorn.Server):
    """Keeps responding for `seconds` after a signal to end, so that a proxy can switch to another process."""

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
        """The first signal begins the shutdown, the second ends the process."""
        self._asked += 1

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """uvicorn's own handler would close at once."""
        self.end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Call `on_start` once connections are accepted."""
        await super().startup(sockets=sockets)
        if self.started and self._on_start is not None:
            self._on_start()

    async def on_tick(self, counter: int) -> bool:
        """uvicorn calls this ten times a second."""
        note_step("api")
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
_DENIALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)


class AddressTooLong(ServiceError):
    """The path and the query together are too long."""

    code, status, title = "uri_too_long", 414, "Address too long"


class HeadersTooLarge(ServiceError):
    """A request has too many headers, or too long ones."""

    code, status, title = "headers_too_large", 431, "Headers too large"


class RequestMiddleware:
    """The outermost layer, as plain ASGI: it wraps `app`, the layers of the FastAPI application `service`."""

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
        note_denial: Callable[[Scope, str, int], object],
    ) -> None:
        """`note_denial` is called after each request refused with 401, 403 or 429."""
        self._service = service
        self._app = app
        self._root = settings.root_path
        self._bodies = bodies
        self.body_seconds = settings.body_seconds
        self._metrics = metrics
        self._drain = drain
        self._memory = memory
        self._note_denial = note_denial
        self._head_seconds = settings.head_seconds
        self._strangers = FairSemaphore(
            settings.max_requests, "requests", Unavailable, whose="an address without a key"
        )
        metrics.watch_permits("anonymous_requests", self._strangers.usage)
        largest = max(settings.max_body_bytes, settings.max_score_bytes)
        show = metrics.body_bytes.inc
        self._budget = MemoryBudget(BUDGET_BODIES * largest, show)
        self._anonymous_budget = MemoryBudget(ANONYMOUS_BUDGET_BODIES * largest, show)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        trace_token = trace.current.set(head.trace)
        scope["trace"] = traced = tracing.request_trace()
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
                raise  # the response has begun: only closing the connection can signal the error
            await problems.of_crash(Request(scope))(scope, receive, send_with_headers)
        finally:
            if (release := scope.get("release")) is not None:  # releases the request's permit
                release()
            self._note(scope, method, status, time.perf_counter() - started)
            if traced is not None:
                traced.end(method, getattr(scope.get("route"), "path_format", None), status)
            logs.request_id.reset(token)
            trace.current.reset(trace_token)

    def _outage(self, scope: Scope, status: int) -> list[tuple[bytes, bytes]]:
        """Return the header for an answer with a cached key during an outage, and count the request; else nothing."""
        away = self._memory.away_seconds
        if away is None or status >= 400 or "caller" not in scope:
            return []
        self._metrics.without_database.inc()
        return [(b"x-database-away", b"%.0f" % away)]

    def _occupy(self, scope: Scope) -> None:
        """Hold a permit while the request waits for its caller: the address's, unless it has one of an owner.

        Callers without a key therefore use no permits of callers with a key. Raises the error of
        `FairSemaphore.refusal`.
        """
        if "release" not in scope:
            name = _holder_of(scope)
            permit = self._strangers.acquire(name)
            release_at_end(scope, partial(self._strangers.release, name, permit))

    def _hold(self, scope: Scope, size: int) -> None:
        """Count bytes until the request ends. Raises the error of `MemoryBudget.add`."""
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
        """Return a `receive` that acquires a permit, and counts up to `most_held` bytes as occupied memory.

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
        """Record metrics and access log."""
        route = scope.get("route")
        template = getattr(route, "path_format", "") or UNROUTED
        self._metrics.observe_request(method, template, status, seconds)
        if status in _DENIALS:
            self._note_denial(scope, method, status)
        if not logs.access.isEnabledFor(logging.INFO):
            return
        caller = scope.get("caller")  # set as soon as the key is known, whatever its scopes
        key_id, owner = (None, None) if caller is None else (caller.key_id, caller.owner)
        # Never the query string: it may contain personal data.
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
    """Return the owner, else the caller's address."""
    caller = scope.get("caller")
    return network_of(scope.get("client")) if caller is None else f"owner {caller.permit_holder}"


SLASHED = b"/v1/decisions/"
"""The only address whose last part may have slashes: the id of another system. No other name has one."""


def _refusal(scope: Scope, head: _Head, root: str) -> ServiceError | None:
    """Return the error for headers or an address that are rejected before routing."""
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
    raw_path: bytes = scope["raw_path"]
    if b"%2f" in raw_path.lower() and not raw_path.startswith(SLASHED):
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
    """From headers: request id, trace, announced length, sizes of all headers and of Cookie, number of Host headers."""

    request_id: str
    trace: trace.TraceContext | None
    length: int | None
    size: int
    cookie_size: int
    hosts: int


def _read_headers(scope: Scope) -> _Head:
    """Return the values of the request's headers that the middleware needs."""
    request_id, length = None, None
    size = cookie_size = hosts = 0
    traces: list[bytes] = []
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
        elif name == b"traceparent":
            traces.append(value)
    # Of several contexts, none is the caller's.
    context = trace.parse(traces[0].decode("latin-1")) if len(traces) == 1 else None
    return _Head(request_id or new_id("req"), context, length, size, cookie_size, hosts)


def _head_alone(send: Send, scope: Scope) -> Send:
    """Send only the head, and stop a streamed response."""

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
    """Raise if the body is too slow or exceeds the limit, even if no length was announced."""
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
    """Return a `send` that ends the connection and raises ClientDisconnect if the caller reads too slowly.

    The minimum rate is that of request bodies. Before a wait, `occupy` is called with the bytes of the body that were
    not counted before; if it raises a ServiceError, the connection ends as well. `note_cut_off` is called with the
    reason: `TOO_SLOW`, or the code of that error.

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
                cut_off(scope)
            late -= time.monotonic() - started
        if more:
            size = len(message["body"])
            seen += size
            seconds_left = min(seconds, max(0.0, late) + size / min_body_rate(seen))

    return send_within_time


def cut_off(scope: Scope) -> NoReturn:
    """End the connection within a response, so that the caller sees that it is incomplete."""
    scope[ABORTED] = True
    if (abort := scope.get(ABORT)) is not None:
        abort()
    raise ClientDisconnect


def min_body_rate(seen: int) -> float:
    """Return the least bytes per second after `seen` bytes, which grow with its square root.

    So a body of 4 GiB occupies its slot for nine hours at most, not for 48 days.
    """
    return MIN_BODY_BYTES_PER_SECOND * max(1.0, math.sqrt(seen / SMALL_BODY_BYTES))


def _too_slow(seconds: float, seen: int) -> HTTPException:
    """The body is sent too slowly."""
    return HTTPException(
        408,
        detail=f"after {seen} bytes a body must arrive at {min_body_rate(seen):.0f} or more bytes per second, "
        f"and may be {seconds:g} seconds late",
        headers={"Connection": "close"},
    )
