"""The API in the same process, called with the scopes of the session: a transport of the typed client, and streams.

A page can therefore do exactly what the caller may do over HTTP: the same scopes, limits, checks, audit entries and
errors apply.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NewType, TypeVar
from urllib.parse import quote, urlencode

import orjson
from rankwright.errors import ProblemError, problem_error
from rankwright.transport import Request as Asked
from rankwright.transport import Response as ClientResponse
from rankwright.transport import Step
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.access.authentication import CREDENTIAL
from app.http import problems
from app.platform.callers import Credential
from app.platform.errors import Invalid, check_name, shown

T = TypeVar("T")
Problem = dict[str, Any]
ApiPath = NewType("ApiPath", str)
"""A path of the API, made by `at`."""


def refusal(status: int, title: str, detail: str, pointer: str | None = None) -> ProblemError:
    """The pointer names the member of the body."""
    problem: dict[str, Any] = {"title": title, "status": status, "detail": detail}
    if pointer is not None:
        problem["errors"] = [{"pointer": pointer, "detail": detail}]
    return problem_error(status, problem, None)


async def attempt(asked: Awaitable[T], *statuses: int) -> tuple[T | None, Problem | None]:
    """Return the answer and None; or None and a problem of one of these statuses. Raises other problems."""
    try:
        return await asked, None
    except ProblemError as error:
        if error.status not in statuses:
            raise
        return None, error.problem


def path_segment(segment: str) -> str:
    """Quote an id or a name as one segment of an API path, so that it cannot lead to another route.

    Raises ProblemError: 404 for text that cannot be one, as a slash ends a segment, quoted or not; 400 for NUL.
    """
    if "/" in segment or segment in ("", ".", ".."):
        raise refusal(404, "Not found", f"there is nothing with the id {shown(segment)}")
    if "\0" in segment:
        raise _holds_nul()
    return segment


def alias_segment(alias: str) -> str:
    """Raises ProblemError 422 for an invalid name."""
    try:
        check_name("the alias", alias)
    except Invalid as error:
        raise refusal(422, "Invalid request", error.detail) from error
    return alias


def _holds_nul() -> ProblemError:
    return refusal(400, "Malformed request", "the address must not hold NUL (%00)")


def at(collection: str, *segments: str) -> ApiPath:
    """Raises ProblemError as `path_segment` does."""
    return ApiPath("/".join([collection, *map(path_segment, segments)]))


class ApiAnswer(ClientResponse):
    def json(self) -> Any:
        """This parser is faster than the standard library's."""
        return orjson.loads(self.content)


_PASSED_ON = ("retry-after", "connection")
_NOT_SENT = ("Idempotency-Key", "Prefer")
"""Headers of the client that a call within the process does not need: it arrives once, and no page waits."""


class Api:
    """The API, called as the caller of a session, whose session must still be valid.

    As a transport of `rankwright.AsyncClient` it raises the API's errors at once: no request is repeated.
    """

    url = ""

    def __init__(self, request: Request, credential: Credential) -> None:
        self._scope = request.scope
        self._credential = credential
        self.passed_on: dict[str, str] = {}
        """Headers of the last refusal that a page passes on."""

    async def do(self, step: Step) -> ApiAnswer:
        """Raises ProblemError."""
        if not isinstance(step, Asked) or step.stream:
            raise TypeError(f"a page neither waits nor reads an answer in parts, got {step}")
        body = step.body
        return await self.send(
            step.method,
            ApiPath(step.path),
            _in_one_piece(b"".join(body()) if callable(body) else body or b""),
            {name: value for name, value in step.headers.items() if name not in _NOT_SENT},
            step.target().partition("?")[2],
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def send(
        self,
        method: str,
        path: ApiPath,
        pieces: AsyncIterator[bytes],
        headers: Mapping[str, str],
        query: str = "",
    ) -> ApiAnswer:
        """Send a body in pieces. Raises ProblemError for a status of 400 or more."""
        complete = False

        async def receive() -> Message:
            nonlocal complete
            if complete:
                return {"type": "http.disconnect"}
            piece = await anext(pieces, None)
            complete = piece is None
            return {"type": "http.request", "body": piece or b"", "more_body": not complete}

        start: Message = {}
        parts: list[bytes] = []

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        await self._run(self._scope_of(method, path, query, headers), receive, send)
        answer = ApiAnswer(
            start["status"],
            {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]},
            b"".join(parts),
        )
        if answer.status >= 400:
            self.passed_on = {
                name: answer.headers[name] for name in _PASSED_ON if name in answer.headers
            }
            raise problem_error(answer.status, _problem(answer.content), None)
        return answer

    async def check(self, path: ApiPath, body: Mapping[str, object]) -> None:
        """Check a creation without creating. Raises ProblemError."""
        headers = {"content-type": "application/json"}
        await self.send("POST", path, _in_one_piece(orjson.dumps(body)), headers)

    def stream(
        self,
        method: str,
        path: ApiPath,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Stream the browser's body to the API and the answer back."""
        return _PassedOn(self, self._scope_of(method, path, _written(query or {}), headers or {}))

    def download(
        self, path: ApiPath, refused: Callable[[ProblemError], Response], **query: object
    ) -> Response:
        """Stream a file, or return what `refused` makes of the API's error."""
        return _PassedOn(self, self._scope_of("GET", path, _written(query), {}), refused)

    def _scope_of(
        self, method: str, path: ApiPath, query: str, headers: Mapping[str, str]
    ) -> Scope:
        """The scope has the caller and the address of the browser's request."""
        if "%00" in query:
            raise _holds_nul()
        outer = self._scope
        return {
            "type": "http",
            "asgi": outer["asgi"],
            "http_version": outer["http_version"],
            "method": method,
            "scheme": outer["scheme"],
            "path": path,
            "raw_path": quote(path).encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [
                (name.lower().encode(), value.encode("latin-1", "replace"))
                for name, value in headers.items()
            ],
            "client": outer["client"],
            "server": outer["server"],
            "app": outer["app"],
            "request_id": outer["request_id"],
            "trace": outer["trace"],
            "state": {},
            **{
                name: value
                for name, value in outer.items()
                if name.startswith(("starlette.", "fastapi_"))
            },
            CREDENTIAL: self._credential,
        }

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await scope["app"].router(scope, receive, send)
        except HTTPException as error:  # there is no such route
            response = problems.of_http_exception(Request(scope), error)
            await response(scope, receive, send)
        finally:
            if (release := scope.get("release")) is not None:  # releases the permit of the route
                release()


async def _in_one_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _written(query: Mapping[str, object]) -> str:
    return urlencode({name: value for name, value in query.items() if value is not None}, True)


def _problem(content: bytes | bytearray) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content) if content else {}
    return found


class _PassedOn(Response):
    """Calls the API and passes its messages on; for its errors, responds with the page that `refused` returns."""

    def __init__(
        self, api: Api, scope: Scope, refused: Callable[[ProblemError], Response] | None = None
    ) -> None:
        super().__init__()
        self._api = api
        accepted = [pair for pair in api._scope["headers"] if pair[0] == b"accept-encoding"]
        self._inner = {**scope, "headers": scope["headers"] + accepted}
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The API's route uses the browser's connection."""
        status, error = 200, bytearray()

        async def pass_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            if self._refused is None or status < 400:
                await send(message)
            else:
                error.extend(message.get("body", b""))

        await self._api._run(self._inner, receive, pass_on)
        if error and self._refused is not None:
            response = self._refused(problem_error(status, _problem(error), None))
            await response(scope, receive, send)
