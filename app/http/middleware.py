"""What every request passes: request ids, body limits, security headers, the access log, and the last safety net."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time

from prometheus_client import Histogram
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http import problems
from app.http.server import Drain
from app.platform import logging as logs
from app.platform.errors import Malformed, ServiceError, Unavailable
from app.platform.ids import new_id
from app.platform.settings import Settings

log = logging.getLogger(__name__)
access = logging.getLogger("rankwright.access")

UPLOADS = re.compile(r"/v1/(datasets(/[^/]+/(pairs|versions))?|batch-scores)")
LONGEST_ADDRESS = 60_000
MOST_HEADERS, LONGEST_HEADERS = 100, 1 << 16
SLOWEST_BODY = 1024  # bytes a second that a small body must keep
SMALL_BODY = 1 << 16
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_NO_STORE = (b"cache-control", b"no-store")
_CLOSE = (b"connection", b"close")


class AddressTooLong(ServiceError):
    """A path and query beyond what any model's features need."""

    code, status, title = "uri_too_long", 414, "Address too long"


class HeadersTooLarge(ServiceError):
    """More headers than any client has reason to send."""

    code, status, title = "headers_too_large", 431, "Headers too large"


class RequestMiddleware:
    """Plain ASGI, outermost but for Starlette's own error page, which nothing reaches past it."""

    def __init__(
        self, app: ASGIApp, *, settings: Settings, requests: Histogram, drain: Drain
    ) -> None:
        self._app = app
        self._max_body = settings.max_body_bytes
        self._max_upload = settings.max_upload_bytes
        self._body_seconds = settings.body_seconds
        self._requests = requests
        self._drain = drain
        self._most_open = settings.max_requests
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id, length, size = _read_headers(scope)
        scope["request_id"] = request_id
        token = logs.request_id.set(request_id)
        status = 0
        self._open += 1

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"]
                headers.append((b"x-request-id", request_id.encode()))
                headers.extend(_HEADERS)
                if self._drain.begun:
                    headers.append(_CLOSE)
                said = {name for name, _ in headers}
                headers += [own for own in (_NO_STORE, _POLICY) if own[0] not in said]
            await send(message)

        try:
            refusal = _refusal(scope, size) or self._overload(scope)
            if refusal is not None:
                response = problems.of_service_error(Request(scope), refusal)
                await response(scope, receive, send_with_headers)
            elif scope["method"] in ("GET", "HEAD"):
                await self._app(scope, receive, send_with_headers)
            else:
                limit = self._max_upload if UPLOADS.fullmatch(scope["path"]) else self._max_body
                limited = _limited(receive, limit, length, self._body_seconds)
                await self._app(scope, limited, send_with_headers)
        except asyncio.CancelledError:
            if status or not self._drain.begun:
                raise
            response = problems.of_service_error(Request(scope), _ending())
            await response(scope, receive, send_with_headers)
        except Exception:
            log.exception("unexpected error on %s %s", scope["method"], scope["path"])
            if status:
                raise  # the answer is under way: only the connection's end can tell the caller
            await problems.of_crash(Request(scope))(scope, receive, send_with_headers)
        finally:
            self._open -= 1
            if (release := scope.get("release")) is not None:  # the permit that the route took
                release()
            self._note(scope, status, time.perf_counter() - started)
            logs.request_id.reset(token)

    def _overload(self, scope: Scope) -> ServiceError | None:
        """What one request more than may be open is told; whoever watches over the service still gets an answer."""
        if self._open <= self._most_open or scope["path"].startswith("/health/"):
            return None
        return Unavailable(
            f"{self._most_open} requests are open here, which is the most at once: try again soon",
            code="overloaded",
        )

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        template = getattr(route, "path", "") or "unrouted"
        self._requests.labels(scope["method"], template, status).observe(seconds)
        if access.isEnabledFor(logging.INFO):
            access.info(
                "%s %s %d %.1f ms",
                scope["method"],
                scope["path"],  # never the query string: it may hold people's data
                status,
                seconds * 1e3,
                extra={
                    "fields": {
                        "method": scope["method"],
                        "path": scope["path"],
                        "status": status,
                        "seconds": round(seconds, 6),
                    }
                },
            )


def _refusal(scope: Scope, size: int) -> ServiceError | None:
    """What no route could take."""
    count = len(scope["headers"])
    if count > MOST_HEADERS or size > LONGEST_HEADERS:
        return HeadersTooLarge(
            f"a request may have at most {MOST_HEADERS} headers of {LONGEST_HEADERS} bytes in all, "
            f"got {count} of {size} bytes"
        )
    if b"%00" in scope["raw_path"] or b"%00" in scope["query_string"]:
        return Malformed("the address must not hold NUL (%00)")
    length = len(scope["raw_path"]) + len(scope["query_string"])
    if length > LONGEST_ADDRESS:
        return AddressTooLong(f"the address may have at most {LONGEST_ADDRESS} bytes, got {length}")
    return None


def _ending() -> ServiceError:
    return Unavailable("this process ends, and did not come to an answer in time", code="draining")


def _read_headers(scope: Scope) -> tuple[str, int | None, int]:
    """The request's id, what it says of its body's length, and the size of its headers."""
    request_id, length, size = None, None, 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            request_id = value.decode()
        elif name == b"content-length" and value.isdigit():
            length = int(value)
    return request_id or new_id("req"), length, size


def _limited(receive: Receive, limit: int, length: int | None, seconds: float) -> Receive:
    """Refuse a body as soon as it is known to be over the limit, whether it says its length or not; and one that
    keeps us waiting. Only waits count: how long we take over what has come is not the caller's fault.
    """
    seen, seconds_left, complete = 0, seconds, False

    async def receive_within_limit() -> Message:
        nonlocal seen, seconds_left, complete
        if length is not None and length > limit:
            raise _too_large(limit)
        if complete:  # nothing is to come but the connection's end
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
                raise _too_large(limit)
            # Not more than at first: a quick start buys no long silence.
            seconds_left = min(seconds, seconds_left + size / least_rate(seen))
        return message

    return receive_within_limit


def least_rate(seen: int) -> float:
    """Bytes a second that a body must keep when so many have come: the root of their number, so that one of 4 GiB
    holds its place for nine hours at most, and not for 48 days.
    """
    return SLOWEST_BODY * max(1.0, math.sqrt(seen / SMALL_BODY))


def _too_slow(seconds: float, seen: int) -> HTTPException:
    return HTTPException(
        408,
        detail=f"after {seen} bytes a body must bring {least_rate(seen):.0f} more a second, and may be {seconds:g} "
        "seconds late",
        headers={"Connection": "close"},
    )


def _too_large(limit: int) -> HTTPException:
    # An HTTPException because FastAPI lets only these through while it reads a body.
    return HTTPException(
        413,
        detail=f"the body may have at most {limit} bytes here",
        headers={"Connection": "close"},  # do not read on what will be thrown away
    )
