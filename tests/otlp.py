"""A receiver of spans, as a collector is one: OTLP over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Received:
    """A span as it arrived."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    seconds: float
    error: str
    attributes: dict[str, Any]
    links: list[tuple[str, str]]


@dataclass
class Receiver:
    """What has arrived at `url`."""

    url: str
    spans: list[Received] = field(default_factory=list)

    def of(self, trace_id: str) -> dict[str, Received]:
        """The spans of a trace by their names; of several with one name, the last."""
        return {span.name: span for span in self.spans if span.trace_id == trace_id}


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Receive spans on a free port during the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.spans += _spans(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _spans(request: ExportTraceServiceRequest) -> Iterator[Received]:
    for resource in request.resource_spans:
        about = {each.key: each.value.string_value for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    about["service.name"],
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.kind,
                    (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    span.status.message,
                    {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes},
                    [(each.trace_id.hex(), each.span_id.hex()) for each in span.links],
                )
