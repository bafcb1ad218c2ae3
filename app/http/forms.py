"""Bounded reading of multipart and urlencoded forms: one with a table is streamed, a small one is read into memory."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import python_multipart
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request

from app.ingest.formats import Dialect, check_length
from app.platform.errors import Malformed, TooLarge, UnsupportedMedia

FORM, URLENCODED = "multipart/form-data", "application/x-www-form-urlencoded"
MAX_FIELDS = 1000

Fields = ImmutableMultiDict[str, str]


def media_type_of(request: Request) -> str:
    """Without parameters, in lower case; empty if none is given."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_fields(request: Request, max_bytes: int) -> Fields:
    """Return the fields of a small form. A body without a media type is not read.

    Raises UnsupportedMedia, TooLarge, or Malformed for more than `MAX_FIELDS` fields.
    """
    media_type = media_type_of(request)
    if not media_type:
        return ImmutableMultiDict()
    if media_type != URLENCODED:
        raise UnsupportedMedia(f"a form must be sent as {URLENCODED}, got {media_type[:100]!r}")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise TooLarge(
                f"a form can have at most {max_bytes} bytes here", headers={"Connection": "close"}
            )
    text = body.decode("utf-8", "replace")
    try:
        found = parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Malformed(f"a form can have at most {MAX_FIELDS} fields") from None
    return ImmutableMultiDict(found)


MAX_FIELD_BYTES = 4096
MAX_PARTS = 32


@dataclass
class UploadForm:
    """The fields of a form other than its file. Complete after all chunks of the file are read."""

    fields: dict[str, str] = field(default_factory=dict)
    file_content_type: str | None = None
    file_name: str | None = None


class FormReader:
    """Reads a form with one part named `file`, and yields the file's bytes as they arrive. The other parts are held in
    memory: together they may have `MAX_PARTS * MAX_FIELD_BYTES`, or `max_field_bytes` if that is more.
    """

    def __init__(self, content_type: str, max_field_bytes: int = MAX_FIELD_BYTES) -> None:
        self._max_field_bytes = max_field_bytes
        self._left = max(max_field_bytes, MAX_PARTS * MAX_FIELD_BYTES)
        check_length(content_type)
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if not boundary:
            raise Malformed("multipart/form-data needs a boundary in its Content-Type")
        self.form = UploadForm()
        self._parts = 0
        self._headers: dict[str, bytes] = {}
        self._header_name = b""
        self._header_value = b""
        self._name: str | None = None
        self._value = bytearray()
        self._has_file = False
        self._ended = False
        self._chunks: list[bytes] = []
        # The parser itself bounds the boundary's length, and the number and the lengths of a part's headers.
        try:
            self._parser = python_multipart.MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_part_data": self._data,
                    "on_part_end": self._end,
                    "on_header_field": self._on_header_name,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers,
                    "on_end": self._on_end,
                },
            )
        except FormParserError as error:
            raise Malformed(f"the form could not be read: {error}") from error

    async def file(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks of the file; other parts go to `form.fields`."""
        try:
            async for chunk in body:
                self._parser.write(chunk)
                for piece in self._chunks:
                    yield piece
                self._chunks.clear()
            self._parser.finalize()
        except FormParserError as error:
            raise Malformed(f"the form could not be read: {error}") from error
        if not self._ended:
            raise Malformed("the form ends before its last boundary")
        if not self._has_file:
            raise Malformed("the form must have a part named 'file', with a filename")

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise TooLarge(f"a form can have at most {MAX_PARTS} parts")
        self._headers.clear()
        self._value.clear()

    def _on_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        self._headers[self._header_name.decode("latin-1").lower()] = self._header_value
        self._header_name, self._header_value = b"", b""

    def _on_headers(self) -> None:
        """Raises Malformed or TooLarge."""
        disposition, options = parse_options_header(
            self._headers.get("content-disposition", b"").decode("latin-1")
        )
        name = options.get(b"name")
        if disposition != b"form-data" or name is None:
            raise Malformed("each part of the form needs Content-Disposition: form-data; name=…")
        self._name = name.decode("utf-8", "replace")
        if self._name != "file":
            if self._name in self.form.fields:
                raise Malformed(f"the form has two parts named {self._name!r}")
            return
        if self._has_file:
            raise Malformed("the form has two parts named 'file'")
        self._has_file = True
        content_type = self._headers.get("content-type")
        self.form.file_content_type = content_type.decode("latin-1") if content_type else None
        self.form.file_name = options.get(b"filename", b"").decode("utf-8", "replace") or None

    def _data(self, data: bytes, start: int, end: int) -> None:
        """Raises TooLarge for a long field."""
        if self._name == "file":
            self._chunks.append(data[start:end])
            return
        self._value += data[start:end]
        self._left -= end - start
        if len(self._value) > self._max_field_bytes or self._left < 0:
            raise TooLarge(
                f"the form field {self._name!r} can have at most {self._max_field_bytes} bytes"
            )

    def _end(self) -> None:
        """Raises Malformed if the field is not UTF-8."""
        if self._name is not None and self._name != "file":
            try:
                self.form.fields[self._name] = self._value.decode("utf-8")
            except UnicodeDecodeError as error:
                raise Malformed(f"the form field {self._name!r} is not UTF-8") from error

    def _on_end(self) -> None:
        self._ended = True


def number_or_text(text: str, dialect: Mapping[str, str] | None = None) -> float | str | None:
    """Read a number by the rules of `dialect`; other text stays, so that the API reports the error. Empty is None."""
    text = text.strip()
    if dialect:
        found = Dialect(**dialect).notation.or_point.read_number(text)
        return found if found is not None and math.isfinite(found) else text or None
    try:
        number = float(text)
    except ValueError:
        return text or None
    return number if math.isfinite(number) else text


def cost_or_text(text: str, dialect: Mapping[str, str] | None) -> float | str | None:
    """Return a cost or a rate as a number, written as on the pages, with a decimal point, or by the rules of `dialect`;
    None if it is empty. Other text stays text, so that the API reports the error; so does 1.234 if it means 1234 by the
    rules of `dialect`.

    Examples
    --------
    >>> german = {"decimal": "comma", "thousands": "point"}
    >>> [cost_or_text(text, german) for text in (".0666", "0,0666", "1.234,5", "1.234")]
    [0.0666, 0.0666, 1234.5, '1.234']
    """
    readings = {number_or_text(text), number_or_text(text, dialect)}
    found = [each for each in readings if isinstance(each, float)]
    return found[0] if len(found) == 1 else text.strip() or None
