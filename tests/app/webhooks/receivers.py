"""Receivers of webhooks on loopback: real servers that answer as a test says, and an HTTP proxy."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Received:
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


Answer = Callable[[Received, socket.socket], None]
"""Answers a request: it writes bytes to the connection."""


def status(code: int, body: bytes = b"", **headers: str) -> Answer:
    """An answer with this status and body."""

    def answer(_: Received, connection: socket.socket) -> None:
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        length = f"Content-Length: {len(body)}\r\n"
        connection.sendall(f"HTTP/1.1 {code} x\r\n{head}{length}\r\n".encode() + body)

    return answer


@dataclass
class Receiver:
    """A server on loopback. `answer` can be changed at any time."""

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    answer: Answer = field(default_factory=lambda: status(204))
    received: list[Received] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the test ends: answers that never end wait for it."""
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: socketserver.ThreadingTCPServer | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        scheme = "http" if self.tls is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}/hook?a=1"

    def ids(self) -> list[str]:
        """The ids of the deliveries that arrived."""
        with self._lock:
            return [each.id for each in self.received]

    def take(self, found: Received, connection: socket.socket) -> None:
        with self._lock:
            self.received.append(found)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            self.answer(found, connection)
        finally:
            with self._lock:
                self._now -= 1

    @contextmanager
    def serve(self) -> Iterator[Receiver]:
        """Serve in threads until the block ends."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                if receiver.tls is not None:
                    self.request = receiver.tls.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.take(Received(self.path, headers, body), self.connection)
                self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        with _serving(self.host, Handler) as server:
            self._server = server
            try:
                yield self
            finally:
                self.ended.set()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        pass  # senders leave


class _Server6(_Server):
    address_family = socket.AF_INET6


@contextmanager
def _serving(
    host: str, handler: type[socketserver.BaseRequestHandler]
) -> Iterator[socketserver.ThreadingTCPServer]:
    with (_Server6 if ":" in host else _Server)((host, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Proxy:
    """An HTTP proxy that connects to `to`, whatever host is asked for."""

    to: int
    asked: list[str] = field(default_factory=list)
    code: int = 200
    port: int = 0

    @contextmanager
    def serve(self) -> Iterator[Proxy]:
        """Serve in threads until the block ends."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_CONNECT(self) -> None:
                proxy.asked.append(self.path)
                self.send_response_only(proxy.code)
                self.end_headers()
                self.close_connection = True
                if proxy.code != 200:
                    return
                with socket.create_connection(("127.0.0.1", proxy.to)) as there:
                    back = threading.Thread(
                        target=_copy, args=(there, self.connection), daemon=True
                    )
                    back.start()
                    _copy(self.connection, there)
                    back.join()

            def log_message(self, *_: Any) -> None:
                pass

        with _serving("127.0.0.1", Handler) as server:
            self.port = server.server_address[1]
            yield self


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@dataclass(frozen=True)
class Certificates:
    """A certificate authority for tests, and the certificates that it has made."""

    folder: Path

    @property
    def trusted(self) -> Path:
        """The file of the authority's certificate."""
        return self.folder / "ca.pem"

    def client(self) -> ssl.SSLContext:
        """A context that trusts only this authority."""
        return ssl.create_default_context(cafile=str(self.trusted))

    def server(self, *names: str) -> ssl.SSLContext:
        """The context of a server with a certificate for names and addresses."""
        file = self.folder / f"{names[0]}.pem"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    @classmethod
    def make(cls, folder: Path, *hosts: str) -> Certificates:
        """Make an authority, and a certificate for each host."""
        folder.mkdir(parents=True)
        ca_key, ca_name = ec.generate_private_key(ec.SECP256R1()), _name("Test CA")
        now = datetime.datetime.now(datetime.UTC)
        common = {"before": now - datetime.timedelta(days=1), "after": now + datetime.timedelta(1)}

        def build(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
            return (
                x509.CertificateBuilder()
                .subject_name(name)
                .issuer_name(ca_name)
                .public_key(key.public_key())
                .serial_number(x509.random_serial_number())
                .not_valid_before(common["before"])
                .not_valid_after(common["after"])
                .add_extension(
                    x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), False
                )
            )

        ca = (
            build(ca_name, ca_key)
            .add_extension(x509.BasicConstraints(True, None), True)
            .add_extension(
                x509.KeyUsage(True, False, False, False, False, True, True, False, False), True
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False)
            .sign(ca_key, hashes.SHA256())
        )
        made = cls(folder)
        made.trusted.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        for host in hosts:
            key = ec.generate_private_key(ec.SECP256R1())
            try:
                alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
            except ValueError:
                alternative = x509.DNSName(host)
            found = (
                build(_name(host), key)
                .add_extension(x509.SubjectAlternativeName([alternative]), False)
                .sign(ca_key, hashes.SHA256())
            )
            pem = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            (folder / f"{host}.pem").write_bytes(
                pem + found.public_bytes(serialization.Encoding.PEM)
            )
        return made


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
