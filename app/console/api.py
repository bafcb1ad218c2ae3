"""How a page calls the API: in the same process, with the key of the session.

So a page can do exactly what that key may do over HTTP: the same scopes, limits, checks, audit entries and errors
apply.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NewType
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.access.authentication import SESSION_KEY, SESSION_TOKEN
from app.http import problems
from app.platform.errors import shown

Query = Mapping[str, object]
ApiPath = NewType("ApiPath", str)
"""A path of the API, made by `at`."""


@dataclass
class ApiError(Exception):
    """The API refused; `body` is its problem document (RFC 9457)."""

    status: int
    body: dict[str, Any]

    @property
    def detail(self) -> str:
        """What is wrong, in the words of the API."""
        return str(self.body.get("detail", ""))

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What is wrong with each field that the API names."""
        found: list[dict[str, Any]] = self.body.get("errors", [])
        return found


def refusal(status: int, title: str, detail: str) -> ApiError:
    """Return the error that the API would have answered."""
    return ApiError(status, {"title": title, "status": status, "detail": detail})


def at(collection: str, *segments: str) -> ApiPath:
    """Return a path below a collection. Each segment is an id or a name, and cannot lead to another route.

    Raises ApiError 404 for a segment that cannot be one: a slash ends a segment, quoted or not.
    """
    for segment in segments:
        if "/" in segment or segment in ("", ".", ".."):
            raise refusal(404, "Not found", f"there is nothing with the id {shown(segment)}")
    return ApiPath("/".join([collection, *segments]))


@dataclass(frozen=True)
class Answer:
    """An answer of the API."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.content) if self.content else None


_PASSED_ON = ("retry-after", "connection")


class Api:
    """The API for a caller: the SHA-256 of the key, and the session's token, which must stay valid."""

    def __init__(self, request: Request, key: bytes, token: str) -> None:
        self._scope = request.scope
        self._key = key
        self._token = token
        self.passed_on: dict[str, str] = {}
        """Headers of the last refusal that a page passes on."""

    async def get(self, path: ApiPath, **query: object) -> Any:
        """GET JSON at a path; query parameters that are None are left out. Raises ApiError."""
        return (await self.call("GET", path, query=query)).json()

    async def post(
        self,
        path: ApiPath,
        body: object = None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """POST a body as JSON, and return the answer. Raises ApiError."""
        return (await self.call("POST", path, body=body, query=query, headers=headers)).json()

    async def put(
        self, path: ApiPath, body: object, headers: Mapping[str, str] | None = None
    ) -> Any:
        """PUT a body as JSON, and return the answer. Raises ApiError."""
        return (await self.call("PUT", path, body=body, headers=headers)).json()

    async def delete(self, path: ApiPath, headers: Mapping[str, str] | None = None) -> None:
        """DELETE the resource at a path. Raises ApiError."""
        await self.call("DELETE", path, headers=headers)

    async def call(
        self,
        method: str,
        path: ApiPath,
        *,
        query: Query | None = None,
        body: object = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Call the API, and return the whole answer. `content` is a body that is not JSON. Raises ApiError for a
        status of 400 or more.
        """
        if content is None:
            content = b"" if body is None else json.dumps(body).encode()
        given = {
            **({} if body is None else {"content-type": "application/json"}),
            **(headers or {}),
        }
        pieces = _of_bytes(content) if isinstance(content, bytes) else content
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

        await self._run(self._scope_of(method, path, query, given), receive, send)
        answer = Answer(
            start["status"],
            {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]},
            b"".join(parts),
        )
        if answer.status >= 400:
            self.passed_on = {
                name: answer.headers[name] for name in _PASSED_ON if name in answer.headers
            }
            raise ApiError(answer.status, answer.json())
        return answer

    def stream(
        self,
        method: str,
        path: ApiPath,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Return a response that streams the browser's body to the API and the API's answer to the browser."""
        return _PassedOn(self, self._scope_of(method, path, query, dict(headers or {})))

    def download(
        self, path: ApiPath, refused: Callable[[ApiError], Response], **query: object
    ) -> Response:
        """Return a response that streams the file at a path, or what `refused` returns for the API's error."""
        return _PassedOn(self, self._scope_of("GET", path, query, {}), refused)

    def _scope_of(
        self, method: str, path: ApiPath, query: Query | None, headers: Mapping[str, str]
    ) -> Scope:
        if "\0" in path or any("\0" in str(value) for value in (query or {}).values()):
            raise refusal(400, "Malformed request", "the address must not hold NUL (%00)")
        asked = {name: value for name, value in (query or {}).items() if value is not None}
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
            "query_string": urlencode(asked, doseq=True).encode(),
            "headers": [
                (name.lower().encode(), value.encode("latin-1", "replace"))
                for name, value in headers.items()
            ],
            "client": outer["client"],
            "server": outer["server"],
            "app": outer["app"],
            "request_id": outer["request_id"],
            "state": {},
            **{
                name: value
                for name, value in outer.items()
                if name.startswith(("starlette.", "fastapi_"))
            },
            SESSION_KEY: self._key,
            SESSION_TOKEN: self._token,
        }

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await scope["app"].router(scope, receive, send)
        except HTTPException as error:  # there is no such route
            response = problems.of_http_exception(Request(scope), error)
            await response(scope, receive, send)
        finally:
            if (release := scope.get("release")) is not None:  # the permit that the route took
                release()


async def _of_bytes(content: bytes) -> AsyncIterator[bytes]:
    yield content


class _PassedOn(Response):
    def __init__(
        self, api: Api, scope: Scope, refused: Callable[[ApiError], Response] | None = None
    ) -> None:
        super().__init__()
        self._api = api
        accepted = [pair for pair in api._scope["headers"] if pair[0] == b"accept-encoding"]
        self._inner = {**scope, "headers": scope["headers"] + accepted}
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the API's route on the connection of the browser."""
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
            response = self._refused(ApiError(status, json.loads(error)))
            await response(scope, receive, send)
