"""Requests for datasets whose rows come from a source: a JSON object in the place of a table."""

from __future__ import annotations

from dataclasses import replace

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Message

from app.access.authentication import check_count
from app.datasets.description import describe
from app.datasets.fields import TableFields
from app.datasets.schemas import DatasetRequest
from app.datasets.uploads import TableRequest
from app.ingest.formats import JSON_ARRAY
from app.platform.errors import Invalid, Malformed, TooLarge, invalid, shown

_SPACES = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


async def json_object_of(sending: TableRequest) -> tuple[TableRequest, bytes | None]:
    """Return the body if it is a JSON object; for any other body None, and a request from which it can be read.

    The body of a table may also be JSON: an array. Only as much is read as shows which of the two it is.
    """
    request = sending.request
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON_ARRAY or "content-encoding" in request.headers:
        return sending, None
    messages: list[Message] = []
    start = b""
    while not start:
        message = await request.receive()
        messages.append(message)
        start = message.get("body", b"").lstrip(_SPACES)
        if not message.get("more_body", False):
            break
    pending = iter(messages)

    async def receive() -> Message:
        earlier = next(pending, None)
        return await request.receive() if earlier is None else earlier

    again = Request(request.scope, receive)
    if not start.removeprefix(_BYTE_ORDER_MARK).lstrip(_SPACES).startswith(b"{"):
        return replace(sending, request=again), None
    most = sending.context.settings.max_body_bytes
    body = bytearray()
    async for chunk in again.stream():
        body += chunk
        if len(body) > most:
            raise TooLarge(f"a JSON body can have at most {most} bytes")
    return replace(sending, request=again), bytes(body)


def parse_request(body: bytes) -> DatasetRequest:
    """Raises Malformed or RequestValidationError."""
    check_count(body)
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not valid JSON: {error}", code="malformed_json") from error
    try:
        return DatasetRequest.model_validate(given)
    except ValidationError as error:
        errors = [each | {"loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(errors, body=given) from error


def fields_of(asked: DatasetRequest) -> TableFields:
    """Raises Invalid, also for any field with decisions, whose columns have fixed roles."""
    given = asked.fields()
    try:
        fields = describe(given)
    except Invalid as error:
        for each in error.errors:
            each["pointer"] = f"/{each.pop('parameter')}"
        raise
    if asked.source.decisions is not None and (more := given.keys() - {"name"}):
        name = min(more)
        raise invalid(
            f"/{name}", f"{name} cannot be given with decisions, got {shown(given[name])}"
        )
    return fields
