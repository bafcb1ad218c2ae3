"""One attempt to send a delivery over HTTP, to an address that is checked at each attempt.

We connect and speak HTTP/1.1 by ourselves (`h11`), because HTTP clients lack two limits: the whole attempt ends after
`ATTEMPT_SECONDS`, however slowly names, handshakes and answers arrive; and the connection goes to the address that was
checked, without a second look-up. No redirect is followed, nothing is decompressed, and no proxy of the environment is
used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cache
from ipaddress import ip_address

import h11

from app import __version__
from app.platform import failpoints
from app.platform.addresses import Address, HttpUrl, Networks, check_url, is_allowed, is_in
from app.webhooks.delivery_repository import MAX_RESPONSE
from app.webhooks.secrets import PREFIX

ATTEMPT_SECONDS = 10.0
"""The longest that an attempt takes."""
MAX_ANSWER_BYTES = 64 * 1024
"""Bytes of an answer's body that are read. The rest is not."""
MAX_HEAD_BYTES = 32 * 1024
MAX_ADDRESSES = 4
"""Addresses of a host that are tried, one after the other."""


class SendError(StrEnum):
    """Why an attempt has no answer."""

    URL = "url_not_allowed"
    """The URL is no longer allowed by the settings."""
    ADDRESS = "no_allowed_address"
    """The host has no address, or one that is not allowed. They have one code, or callers could read our resolver."""
    CONNECT = "connection_failed"
    """No connection, or it ended before an answer."""
    TLS = "tls_failed"
    """The handshake failed, or the certificate is not valid for the host."""
    PROXY = "proxy_failed"
    """The proxy does not answer, or refuses the host."""
    TIMEOUT = "timed_out"
    """There was no answer within the time of an attempt."""
    ANSWER = "invalid_answer"
    """The answer is not HTTP/1.1, or its head is too long."""
    SECRET = "secret_unreadable"  # noqa: S105 - a code
    """The secret of the webhook cannot be decrypted with the keys of this process."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The status of the answer, or an error."""

    status: int | None = None
    error: SendError | None = None
    response: str | None = None
    """The start of the response body; None without one, and from an internal network."""
    retry_after: float | None = None
    """Seconds that the receiver asks to wait."""

    @property
    def is_success(self) -> bool:
        """A redirect is a failure."""
        return self.status is not None and 200 <= self.status < 300


class _Failed(Exception):
    def __init__(self, error: SendError) -> None:
        super().__init__(error)
        self.error = error


Resolve = Callable[[str, int], Sequence[str]]
"""Returns all addresses of a name. Raises OSError."""


def resolve(host: str, port: int) -> list[str]:
    """Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@cache
def _default_tls() -> ssl.SSLContext:
    """Trust the system's authorities, or those of SSL_CERT_FILE."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass
class Sender:
    networks: Networks = ()
    proxy: HttpUrl | None = None
    resolve: Resolve = resolve
    tls: Callable[[], ssl.SSLContext] = _default_tls
    seconds: float = ATTEMPT_SECONDS

    def send(self, url: str, event_id: str, body: bytes, secrets: Sequence[str]) -> Attempt:
        """POST the body, signed with each secret. Errors are in the outcome."""
        attempt = Attempt(self, time.monotonic() + self.seconds)
        attempt.outcome = attempt.run(url, event_id, body, secrets)
        return attempt


@dataclass
class Attempt:
    """`lookup` may still run after a timeout: the resolver cannot be interrupted."""

    sender: Sender
    deadline: float
    outcome: Outcome = field(default_factory=Outcome)
    lookup: threading.Thread | None = None
    _sock: socket.socket | None = None
    _is_internal: bool = False

    def run(self, url: str, event_id: str, body: bytes, secrets: Sequence[str]) -> Outcome:
        try:
            parts = check_url(url, self.sender.networks, proxied=self.sender.proxy is not None)
        except ValueError:
            return Outcome(error=SendError.URL)
        try:
            self._connect(parts)
            headers = [
                ("Host", parts.authority),
                ("User-Agent", f"Rankwright/{__version__}"),
                ("Accept", "*/*"),
                ("Accept-Encoding", "identity"),
                ("Connection", "close"),
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
                *signature_headers(event_id, int(time.time()), body, secrets),
            ]
            failpoints.reach("delivery_send")
            return self._exchange(parts.target, headers, body)
        except _Failed as failed:
            return Outcome(error=failed.error)
        except TimeoutError:
            return Outcome(error=SendError.TIMEOUT)
        except OSError:  # also of TLS, after the handshake
            return Outcome(error=SendError.CONNECT)
        finally:
            if self._sock is not None:
                self._sock.close()

    def _left(self) -> float:
        """Raises TimeoutError."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _connect(self, url: HttpUrl) -> None:
        """Connect, perhaps through the proxy, and shake hands."""
        networks, proxy = self.sender.networks, self.sender.proxy
        if proxy is None:
            addresses = self._addresses(url.host, url.port)
            if not addresses or not all(
                is_allowed(each, networks, url.scheme) for each in addresses
            ):
                raise _Failed(SendError.ADDRESS)
            self._sock = sock = self._open(addresses, url.port)
            peer = ip_address(sock.getpeername()[0])
            self._is_internal = is_in(peer, networks)
            # This machine may have a public address of its own, where a firewall does not protect it from itself.
            if sock.getsockname()[0] == sock.getpeername()[0] and not self._is_internal:
                raise _Failed(SendError.ADDRESS)
        else:
            address = url.address
            self._is_internal = address is not None and is_in(address, networks)
            try:
                addresses = self._addresses(proxy.host, proxy.port)
                if not addresses:
                    raise _Failed(SendError.PROXY)
                self._sock = sock = self._open(addresses, proxy.port)
                self._ask_proxy(sock, url)
            except TimeoutError:
                raise
            except OSError:
                raise _Failed(SendError.PROXY) from None
        if url.scheme == "https":
            context = self.sender.tls()
            sock.settimeout(self._left())  # of the whole handshake
            try:
                self._sock = context.wrap_socket(sock, server_hostname=url.host)
            except TimeoutError:
                raise
            except (ssl.SSLError, ssl.CertificateError):
                raise _Failed(SendError.TLS) from None

    def _addresses(self, host: str, port: int) -> list[Address]:
        """Raises TimeoutError."""
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        found: list[str] = []

        def look_up() -> None:
            with suppress(OSError, UnicodeError):  # no address
                found.extend(self.sender.resolve(host, port))

        # a daemon: a resolver may wait for a minute, and must not keep the process
        self.lookup = threading.Thread(target=look_up, name="webhook-lookup", daemon=True)
        self.lookup.start()
        self.lookup.join(self._left())
        if self.lookup.is_alive():
            raise TimeoutError
        return [ip_address(each) for each in found]

    def _open(self, addresses: Sequence[Address], port: int) -> socket.socket:
        """Use the first address that takes a connection. Raises OSError."""
        tried = addresses[:MAX_ADDRESSES]
        for number, address in enumerate(tried):
            try:
                # an address that does not answer leaves time for the others
                return socket.create_connection(
                    (str(address), port), self._left() / (len(tried) - number)
                )
            except OSError:
                if number == len(tried) - 1:
                    raise
        raise _Failed(SendError.ADDRESS)

    def _ask_proxy(self, sock: socket.socket, url: HttpUrl) -> None:
        """Have the proxy connect to the receiver."""
        host = f"[{url.host}]" if ":" in url.host else url.host
        target = f"{host}:{url.port}"
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        request = h11.Request(method="CONNECT", target=target, headers=[("Host", target)])
        self._write(sock, connection.send(request))
        try:
            answer = self._next_head(sock, connection)
        except _Failed:
            raise _Failed(SendError.PROXY) from None
        if not 200 <= answer.status_code < 300:
            raise _Failed(SendError.PROXY)

    def _exchange(self, target: str, headers: list[tuple[str, str]], body: bytes) -> Outcome:
        """Once the head is read, the status alone decides."""
        sock = self._sock
        assert sock is not None
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        request = h11.Request(method="POST", target=target, headers=headers)
        content = connection.send(request) + connection.send(h11.Data(body))
        self._write(sock, content + connection.send(h11.EndOfMessage()))
        head = self._next_head(sock, connection)
        found = dict(head.headers)
        kept = self._read_body(sock, connection)
        is_text = found.get(b"content-encoding", b"identity") == b"identity"
        return Outcome(
            head.status_code,
            response=kept.decode(errors="replace") if is_text and not self._is_internal else None,
            retry_after=_seconds_of(found.get(b"retry-after")),
        )

    def _next_head(self, sock: socket.socket, connection: h11.Connection) -> h11.Response:
        """Raises _Failed, TimeoutError and OSError."""
        total = 0
        try:
            while not isinstance(event := connection.next_event(), h11.Response):
                if event is h11.NEED_DATA:
                    total += len(data := self._read(sock))
                    if not data:
                        raise _Failed(SendError.CONNECT)
                    if total > MAX_ANSWER_BYTES:  # informational answers without an end
                        raise _Failed(SendError.ANSWER)
                    connection.receive_data(data)
                elif not isinstance(event, h11.InformationalResponse):
                    raise _Failed(SendError.ANSWER)
        except h11.RemoteProtocolError:
            raise _Failed(SendError.ANSWER) from None
        return event

    def _read_body(self, sock: socket.socket, connection: h11.Connection) -> bytes:
        """Read up to `MAX_ANSWER_BYTES`, so that most receivers can end theirs."""
        kept, total = bytearray(), 0
        try:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    total += len(data := self._read(sock))
                    if total > MAX_ANSWER_BYTES:
                        break
                    connection.receive_data(data)
                elif isinstance(event, h11.Data):
                    kept += event.data[: MAX_RESPONSE - len(kept)]
                else:
                    break
        except (h11.RemoteProtocolError, OSError):  # a body that is late, too
            pass
        return bytes(kept)

    def _read(self, sock: socket.socket) -> bytes:
        sock.settimeout(self._left())
        return sock.recv(16 * 1024)

    def _write(self, sock: socket.socket, data: bytes) -> None:
        while data:
            sock.settimeout(self._left())
            data = data[sock.send(data) :]


def signature_headers(
    event_id: str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> list[tuple[str, str]]:
    """Standard Webhooks: id, time and one signature for each secret."""
    content = f"{event_id}.{timestamp}.".encode() + body
    signatures = (
        hmac.digest(base64.b64decode(secret.removeprefix(PREFIX)), content, hashlib.sha256)
        for secret in secrets
    )
    return [
        ("webhook-id", event_id),
        ("webhook-timestamp", str(timestamp)),
        (
            "webhook-signature",
            " ".join(f"v1,{base64.b64encode(each).decode()}" for each in signatures),
        ),
    ]


def _seconds_of(retry_after: bytes | None) -> float | None:
    """Return None if it is neither seconds nor a date."""
    if retry_after is None or len(retry_after) > 40:
        return None
    text = retry_after.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
