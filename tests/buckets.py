"""Buckets for tests: moto's S3 server in this process, behind a switch that breaks requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from app.platform.buckets import Bucket
from app.platform.object_store import ObjectStore, open_bucket
from app.platform.settings import MIB
from tests.waiting import eventually, patience

CREDENTIALS = """[default]
aws_access_key_id = tests
aws_secret_access_key = only
"""
Fault = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes] | None]
"""Answers a request, or returns None: then the server answers."""


class Dropped(Exception):
    """The connection is closed without an answer."""


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def run_wsgi(self) -> None:
        """Answer a request, or close its connection."""
        try:
            super().run_wsgi()
        except Dropped:
            self.close_connection = True

    def log(self, *_: Any, **__: Any) -> None:
        """Be silent."""


class BucketServer:
    """An S3 server at a port of its own, with the bucket `blobs`. `requests` has method and path of each request."""

    def __init__(self, folder: Path) -> None:
        self.credentials = folder / "credentials"
        self.credentials.write_text(CREDENTIALS)
        self.requests: list[tuple[str, str]] = []
        self.fault: Fault | None = None
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server: BaseWSGIServer | None = None
        self.port = 0
        self.open()
        with self.client() as client:
            client.put("/blobs").raise_for_status()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the service for this server, with a prefix."""
        return {
            "blob_url": "s3://blobs/some/prefix",
            "blob_endpoint": self.url,
            "blob_credentials_file": self.credentials,
        }

    def client(self) -> Any:
        """A plain HTTP client; moto asks for no signature."""
        import httpx

        return httpx.Client(base_url=self.url, verify=False, timeout=patience())

    def bucket(self, name: str = "blobs", prefix: str = "/some/prefix") -> Bucket:
        """The bucket, or one of another name."""
        return Bucket(f"s3://{name}{prefix}", self.url, self.credentials)

    def store(self, folder: Path, **given: Any) -> ObjectStore:
        """A store with a cache in a folder."""
        options = {"cache_bytes": 64 * MIB, "upload_bytes": 160 * MIB, "patience": 10.0} | given
        return ObjectStore(self.bucket(), folder, **options)

    def objects(self) -> dict[str, int]:
        """The objects of the bucket, with their sizes."""
        import obstore

        store = open_bucket(self.bucket(prefix=""))
        return {each["path"]: each["size"] for page in obstore.list(store) for each in page}

    def add(self, path: str) -> None:
        """Add an object, faster than by a request."""
        from moto.s3.models import s3_backends

        s3_backends["123456789012"]["aws"].put_object("blobs", path, b"x")

    def clear(self) -> None:
        """Delete all objects."""
        import obstore

        if found := list(self.objects()):
            obstore.delete(open_bucket(self.bucket(prefix="")), found)
        self.requests.clear()

    def open(self) -> None:
        """Listen, again at the same port."""
        server = make_server(
            "127.0.0.1", self.port, self._serve, threaded=True, request_handler=_Handler
        )
        self._server, self.port = server, server.server_port
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections from now on."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Refuse connections during a block."""
        self.close()
        try:
            yield
        finally:
            eventually(self._reopened)

    def _reopened(self) -> bool:
        try:
            self.open()
        except OSError:
            return False
        return True

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Let a fault answer requests during a block."""
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None

    def _serve(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        self.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        broken = None if self.fault is None else self.fault(environ, start)
        if broken is not None:
            return broken
        answer: Iterable[bytes] = self._app(environ, start)
        return answer


def status(code: int, times: int) -> Fault:
    """Answer the first requests with an error."""
    left = iter(range(times))

    def fault(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes] | None:
        if next(left, None) is None:
            return None
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start(f"{code} Injected", [("Content-Length", "0")])
        return []

    return fault


def dropped(times: int) -> Fault:
    """Close the connection of the first requests without an answer."""
    left = iter(range(times))

    def fault(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes] | None:
        if next(left, None) is None:
            return None
        raise Dropped

    return fault


def slow(seconds: float) -> Fault:
    """Wait before each answer."""

    def fault(environ: WSGIEnvironment, start: StartResponse) -> None:
        time.sleep(seconds)

    return fault
