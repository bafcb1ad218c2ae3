"""The service behind a path prefix, and the headers of a trusted proxy.

Code inside the service sees no prefix: it is removed from a request's path, and added to each address in a response.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.platform.errors import Malformed
from app.platform.settings import checked_root_path

_ROOT, _SAID = "rankwright.root_path", "rankwright.said_prefix"
_PREFIX, _HOST = b"x-forwarded-prefix", b"x-forwarded-host"
_ADDRESSES = (b"location", b"content-location", b"hx-redirect")
_IS_HOST = re.compile(rb"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


def root_path_of(scope: Scope) -> str:
    """Without a final slash; empty without a prefix."""
    root: str = scope.get(_ROOT, "")
    return root


def take_off_prefix(scope: Scope, set_root: str) -> None:
    """Store the path prefix in the scope, and remove it from the path unless the proxy has. Raises Malformed.

    The setting takes precedence over the header `X-Forwarded-Prefix` of a trusted proxy.
    """
    try:
        root = set_root or checked_root_path(scope.get(_SAID, ""))
    except ValueError as error:
        raise Malformed(f"X-Forwarded-Prefix {error}") from None
    scope[_ROOT] = root
    path = scope["path"]
    if root and (path == root or path.startswith(root + "/")):
        scope["path"] = path[len(root) :] or "/"
        raw: bytes = scope["raw_path"]
        cut = raw[len(root) :] or b"/"
        scope["raw_path"] = cut if raw.startswith(root.encode()) else quote(scope["path"]).encode()


def put_prefix_before(message: Message, root: str) -> None:
    """Prefix the addresses in a response's headers, in place."""
    prefix = root.encode()

    def moved(name: bytes, value: bytes) -> bytes:
        if name in _ADDRESSES and value.startswith(b"/"):
            return prefix + value
        return value.replace(b"</", b"<" + prefix + b"/") if name == b"link" else value

    message["headers"] = [(name, moved(name, value)) for name, value in message["headers"]]


class ProxiedConfig(uvicorn.Config):
    """Also accepts `X-Forwarded-Prefix` and `X-Forwarded-Host` from the proxies in `FORWARDED_ALLOW_IPS`."""

    def load(self) -> None:
        """Load the application inside `_Proxied`, which needs the proxy's address; the app sees the caller's."""
        super().load()
        if self.proxy_headers:
            self.loaded_app = _Proxied(self.loaded_app, self.forwarded_allow_ips or [])


class _Proxied:
    """Reads the proxy's headers if the connection comes from a trusted proxy."""

    def __init__(self, app: Any, trusted: list[str] | str) -> None:
        self._app: ASGIApp = app
        self._trusted = ProxyHeadersMiddleware(app, trusted).trusted_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The connection must come from a trusted proxy."""
        if scope["type"] == "http":
            client = scope.get("client")
            if (client[0] if client else None) in self._trusted:
                _believe(scope)
        await self._app(scope, receive, send)


def _believe(scope: Scope) -> None:
    """Store the forwarded prefix and host in the scope."""
    said = dict(scope["headers"])
    if _PREFIX in said:
        scope[_SAID] = said[_PREFIX].decode("latin-1").strip()
    # the value of the outermost proxy comes first
    host = said.get(_HOST, b"").partition(b",")[0].strip()
    if _IS_HOST.fullmatch(host):
        others = [header for header in scope["headers"] if header[0] != b"host"]
        scope["headers"] = [(b"host", host), *others]
