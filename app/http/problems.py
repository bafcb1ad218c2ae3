"""Conversion of every error to problem+json (RFC 9457). Only this module maps errors to HTTP."""

from __future__ import annotations

import http
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match, Route

from app.http.proxies import root_path_of
from app.http.responses import choose_media_type
from app.platform import resources
from app.platform.errors import (
    MAX_ERRORS,
    MAX_ERRORS_LENGTH,
    MAX_REFUSAL_LENGTH,
    PATTERN_RULES,
    Malformed,
    NotAcceptable,
    ServiceError,
    advise_on_number,
    bounded,
    shown,
    terse_detail,
)
from core.errors import MAX_MESSAGE, CoreError, shorten

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_CODES = {
    400: ("malformed", "Malformed request"),
    404: ("not_found", "Not found"),
    405: ("method_not_allowed", "Method not allowed"),
    406: ("not_acceptable", "Not acceptable"),
    408: ("timeout", "Too slow"),
    413: ("too_large", "Too large"),
    415: ("unsupported_media_type", "Unsupported media type"),
}
# pydantic's error types, each as a rule for the field.
_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    **dict.fromkeys(("dict_type", "model_attributes_type", "model_type"), "must be an object"),
    "string_unicode": "must be a valid Unicode string",
    **dict.fromkeys(
        ("rfc_3339", "timezone_aware", "datetime_from_date_parsing"),
        "must be a time in RFC 3339 with a time zone, such as 2026-01-31T12:00:00Z",
    ),
}
_FIRST_MEMBERS = {
    "algorithm": "name",
    "objective": "metric",
    "search": "method",
    "validation": "method",
}
"""Objects that are often sent as the text of one member, and this member."""
_LENGTHS = {
    "too_short": ("at least", "min_length", "item"),
    "too_long": ("at most", "max_length", "item"),
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
}
"""By pydantic's name of the error: the rule, the member of `ctx` with its bound, and what is counted."""
_OF_EMPTY = ("float_parsing", "int_parsing", "string_too_short")
"""Errors that an empty text brings about."""


_ABOUT_ROWS = (400, 413, 415, 422)


def is_terse(request: Request, status: int) -> bool:
    """Return True if rows to score were rejected, and a setting hides row values in messages."""
    state = request.app.state
    if status not in _ABOUT_ROWS or not _is_one_of(request, state.paths_of_rows):
        return False
    terse: bool = state.context.settings.terse_errors
    return terse


def _is_one_of(request: Request, paths: Iterable[re.Pattern[str]]) -> bool:
    path = request.scope["path"]
    return any(pattern.fullmatch(path) for pattern in paths)


def problem(
    request: Request,
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """`instance` is the path without its query, which may contain personal data; null for a very long path."""
    request.scope["error_code"] = code  # for the access log
    request.scope["error_detail"] = detail  # for the audit log
    if is_terse(request, status):
        detail, errors = terse_detail(title), ()
    if status == 422:
        detail = _advise(detail)
        errors = [{**each, "detail": _advise(each.get("detail", ""))} for each in errors]
    detail, path = shorten(detail), request.scope["path"].encode("utf-8", "replace").decode()
    instance = root_path_of(request.scope) + path if len(path) <= MAX_MESSAGE else None
    body = members_of(status, code, title, detail, instance, request.scope.get("request_id"))
    media_type = MEDIA_TYPE
    if _is_one_of(request, request.app.state.paths_of_protocols):
        body |= {"error": detail, "error_code": code.upper(), "message": detail}
        media_type = "application/json"
    left = MAX_REFUSAL_LENGTH - len(json.dumps(body)) - len(', "errors": []')
    if listed := bounded(errors, min(left, MAX_ERRORS_LENGTH)):
        body["errors"] = listed
    return Response(
        json.dumps(
            body, default=str
        ),  # escapes lone surrogates from the caller, which UTF-8 cannot encode
        status_code=status,
        headers=dict(headers or {}),
        media_type=media_type,
    )


def members_of(
    status: int,
    code: str,
    title: str,
    detail: str,
    instance: str | None = None,
    request_id: str | None = None,
) -> dict[str, Any]:
    """Without a request, `instance` and `request_id` are null."""
    return {
        "type": f"urn:rankwright:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": instance,
        "code": code,
        "request_id": request_id,
    }


_ASKS_FOR_NUMBER = re.compile(r"\b(number|above|between|greater than|less than)\b")


def _advise(detail: str) -> str:
    """Add advice to a message that rejects a number in another notation, be it of `core`, pydantic or a service."""
    rule, _, value = detail.rpartition(", got '")
    if value[-1:] == "'" and _ASKS_FOR_NUMBER.search(rule):
        return advise_on_number(detail, value[:-1])
    return detail


def of_service_error(request: Request, error: ServiceError) -> Response:
    return problem(
        request,
        status=error.status,
        code=error.code,
        title=error.title,
        detail=error.detail,
        errors=error.errors,
        headers=error.headers,
    )


def of_core_error(request: Request, error: CoreError) -> Response:
    """The input came from the caller."""
    return problem(request, status=422, code=error.code, title="Invalid request", detail=str(error))


def of_http_exception(request: Request, error: HTTPException) -> Response:
    """Errors of the router or the body reader."""
    code, title = _CODES.get(
        error.status_code, ("error", http.HTTPStatus(error.status_code).phrase)
    )
    detail, headers = error.detail, dict(error.headers or {})
    if error.status_code == 404:
        detail = f"there is nothing at {shown(request.scope['path'])}"
    elif error.status_code == 405:
        allowed = ", ".join(_methods(request))
        headers["Allow"] = allowed
        detail = f"{request.method} is not allowed here; allowed are {allowed}"
    return problem(
        request,
        status=error.status_code,
        code=code,
        title=title,
        detail=detail,
        headers=headers,
    )


def _methods(request: Request) -> list[str]:
    """The router knows only the methods of the first route that matches."""
    offered: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            offered |= route.methods or set()
    return sorted(offered)


def of_validation_error(request: Request, error: RequestValidationError) -> Response:
    """Respond 400 if the body is not JSON, else 422."""
    found = error.errors()
    if found and found[0]["type"] == "json_invalid":
        at, reason = found[0]["loc"][-1], found[0]["ctx"]["error"]
        malformed = Malformed(
            f"the body is not valid JSON: {reason} at character {at}", code="malformed_json"
        )
        return of_service_error(request, malformed)
    errors = [_error(each, error.body) for each in found[:MAX_ERRORS]]
    detail = errors[0]["detail"] if errors else "the request does not match its schema"
    if len(found) > 1:
        detail = f"{len(found)} errors, the first: {detail}"
    return problem(
        request, status=422, code="invalid", title="Invalid request", detail=detail, errors=errors
    )


def _error(found: Mapping[str, Any], body: Any) -> dict[str, str]:
    """Convert pydantic's error to `{"pointer" | "parameter" | "header": …, "detail": …}`."""
    where, *path = found["loc"] or ("body",)
    if where in ("query", "path"):
        key, place = "parameter", str(path[0]) if path else ""
    elif where == "header":
        key, place = "header", str(path[0]) if path else ""
    else:
        key, place = "pointer", _pointer(path, body)
    name = _name(path)
    kind, message = found["type"], str(found["msg"])
    got = "" if kind in ("missing", "extra_forbidden") else f", got {shown(found.get('input'))}"
    if found.get("input") == "" and kind in _OF_EMPTY:
        rule, got = "must not be empty", ""
    elif kind in _RULES:
        rule = _RULES[kind]
        if (member := _FIRST_MEMBERS.get(name)) and isinstance(found.get("input"), str):
            rule += f", for example {json.dumps({member: found['input'][:100]})}"
    elif kind in _LENGTHS:
        bound, limit, unit = _LENGTHS[kind]
        count = found["ctx"][limit]
        rule = f"must have {bound} {count} {unit}{'' if count == 1 else 's'}"
        if unit == "item" and isinstance(found.get("input"), Sized):
            got = f", got {len(found['input'])}"
    elif kind == "string_pattern_mismatch":
        rule = PATTERN_RULES.get(found["ctx"]["pattern"], "does not have the required form")
    elif message.startswith("Input should be "):
        rule = "must be " + message.removeprefix("Input should be ")
    elif message.startswith("Value error, "):
        return {key: place, "detail": message.removeprefix("Value error, ")}
    else:
        rule = "is not valid: " + message[:1].lower() + message[1:]
    return {key: place, "detail": f"{name} {rule}{got}"}


def _name(path: Sequence[Any]) -> str:
    """Return the last field of pydantic's path, with the index of an item: `windows[0]`."""
    last = next((depth for depth, part in enumerate(path[::-1]) if isinstance(part, str)), None)
    if last is None:
        return "".join(f"[{part}]" for part in path) or "the body"
    field, *indices = path[len(path) - 1 - last :]
    return str(field)[:100] + "".join(f"[{index}]" for index in indices)


def _pointer(path: Sequence[Any], body: Any) -> str:
    """Convert pydantic's path, without the names of union members, which the body does not have."""
    pointer, here = "", body
    for depth, part in enumerate(path):
        found = isinstance(here, dict) and part in here
        if isinstance(here, list) and isinstance(part, int):
            found = part < len(here)
        if found:
            here = here[part]
        elif depth < len(path) - 1:
            continue
        pointer += "/" + str(part).replace("~", "~0").replace("/", "~1")
    return pointer


def of_os_error(request: Request, error: OSError) -> Response:
    """Respond to a full disk; raise any other OSError again."""
    if not resources.is_full(error):
        raise error
    log.error("a disk is full: %s", error)
    return of_service_error(request, resources.refusal())


def of_recursion(request: Request, error: RecursionError) -> Response:
    """The body has too many levels."""
    detail = "the body is nested too deeply"
    return of_service_error(request, Malformed(detail, code="malformed_json"))


def of_disconnect(request: Request, error: ClientDisconnect) -> Response:
    """The caller disconnected while sending; only the access log shows it."""
    return problem(
        request,
        status=400,
        code="disconnected",
        title="Malformed request",
        detail="the connection was closed before the whole body was received",
    )


def of_crash(request: Request) -> Response:
    """The log has the traceback with the request id; the response has only the id."""
    return problem(
        request,
        status=500,
        code="internal_error",
        title="Internal error",
        detail="an unexpected error occurred in the service; its log has the details under this request_id",
    )


Page = Callable[..., Awaitable[Response]]
"""Makes a page for a browser of the request and a problem's body; if it is `plain`, without asking the database."""


def _is_of_console(request: Request) -> bool:
    return f"{request.scope['path']}/".startswith("/console/")


def _wants_page(request: Request) -> bool:
    """True for an address of the console, or if the caller prefers HTML to JSON."""
    if _is_of_console(request):
        return True
    try:
        offers = ("application/json", MEDIA_TYPE, "text/html")
        return choose_media_type(request, offers) == "text/html"
    except NotAcceptable:
        return False


async def _as_page(request: Request, response: Response, *, plain: bool = False) -> Response:
    """Keep status and headers."""
    shown: Response = await request.app.state.page_of_problem(
        request, json.loads(bytes(response.body)), plain=plain
    )
    if "allow" in response.headers:
        shown.headers["allow"] = response.headers["allow"]
    return shown


async def of_address(request: Request, error: ServiceError) -> Response:
    """Respond to an address rejected before routing, without the database: no rate limit counts these."""
    response = of_service_error(request, error)
    return await _as_page(request, response, plain=True) if _is_of_console(request) else response


def install(
    app: FastAPI,
    page: Page,
    protocols: Sequence[re.Pattern[str]],
    rows: Sequence[re.Pattern[str]],
) -> None:
    """Register the error handlers, as coroutines so that they run in the event loop and not in a thread.

    `page` makes the page for a browser: for an unknown address, for one without GET, and for one that no route can
    take. `protocols` are the paths of standard protocols. There a problem is plain JSON, and its detail is also called
    `error` (Triton, KServe) and `message` (MLflow), as clients of these read it. `rows` are the paths that take rows to
    score.
    """
    app.state.page_of_problem = page
    app.state.paths_of_protocols = protocols
    app.state.paths_of_rows = rows

    async def of_routing(request: Request, error: HTTPException) -> Response:
        response = of_http_exception(request, error)
        if error.status_code not in (404, 405) or not _wants_page(request):
            return response
        return await _as_page(request, response)

    def register(kind: type[Exception], make: Any) -> None:
        async def handle(request: Request, error: Exception) -> Response:
            response: Response = make(request, error)
            return response

        app.add_exception_handler(kind, handle)

    register(ServiceError, of_service_error)
    register(CoreError, of_core_error)
    app.add_exception_handler(HTTPException, cast(Any, of_routing))
    register(RequestValidationError, of_validation_error)
    register(ClientDisconnect, of_disconnect)
    register(RecursionError, of_recursion)
    register(OSError, of_os_error)
