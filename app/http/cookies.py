"""The service's own cookies. Every other cookie is removed from a request before a library can parse it."""

from __future__ import annotations

from starlette.types import Scope

PREFIX = "rankwright_"
"""How the names of the service's cookies begin."""
MAX_COOKIE_BYTES = 1 << 14
"""Most bytes of all Cookie headers of a request. A browser drops a cookie of more than 4,096 bytes."""
_HEADER = b"cookie"


def keep_own(scope: Scope) -> None:
    """Reduce the Cookie headers of a request (given by its ASGI scope) to the service's own cookies, unquoted.

    FastAPI parses all cookies of each request by `http.cookies`. Before Python 3.13.0, 3.12.6 and 3.11.10 that takes
    quadratic time for a quoted value of backslashes (CVE-2024-7592). The service writes no value that needs escaping:
    so a value with a backslash or a quote inside is not its own. This takes linear time.
    """
    headers = scope["headers"]
    own = [
        pair
        for name, value in headers
        if name == _HEADER
        for chunk in value.split(b";")
        if (pair := _own_pair(chunk))
    ]
    kept = [header for header in headers if header[0] != _HEADER]
    if own:
        kept.append((_HEADER, b"; ".join(own)))
    scope["headers"] = kept


def _own_pair(chunk: bytes) -> bytes:
    """Return empty bytes for any other text."""
    name, _, value = chunk.partition(b"=")
    name, value = name.strip(), value.strip()
    if not name.startswith(PREFIX.encode()):
        return b""
    if len(value) > 1 and value.startswith(b'"') and value.endswith(b'"'):
        value = value[1:-1]
    return b"" if b'"' in value or b"\\" in value else name + b"=" + value
