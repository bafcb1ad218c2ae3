"""The export of spans with OpenTelemetry's SDK, to an OTLP endpoint over HTTP.

Spans wait in a bounded queue, and a thread sends them. An endpoint that is down therefore slows nothing: spans beyond
the queue are dropped, and the outage is logged once.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as ApiSpan

from app import __version__
from app.platform.trace import Attribute, Kind, TraceContext
from app.platform.tracing_files import read_spans

FLUSH_SECONDS = 1.0
PROBE_SECONDS = 3.0
_SCOPE = InstrumentationScope("rankwright", __version__)
_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "consumer": SpanKind.CONSUMER}
_next_id: ContextVar[str | None] = ContextVar("span_id", default=None)

log = logging.getLogger(__name__)


class Exporter:
    """Records spans and exports them. It belongs to the process that makes it: create it after a fork."""

    def __init__(self, endpoint: str, process: str) -> None:
        self.records_transactions = process == "api"
        resource = Resource.create({SERVICE_VERSION: __version__, "process.pid": os.getpid()})
        if not os.environ.get("OTEL_SERVICE_NAME"):
            resource = resource.merge(Resource({SERVICE_NAME: f"rankwright-{process}"}))
        # Its own messages would repeat with each batch during an outage, and `_Reported` logs one.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._processor = BatchSpanProcessor(_Reported(endpoint))
        self._provider = TracerProvider(
            resource=resource, id_generator=_Ids(), shutdown_on_exit=False
        )
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer(_SCOPE.name, _SCOPE.version)

    def start(
        self,
        name: str,
        kind: Kind,
        parent: TraceContext | None,
        attributes: Mapping[str, Attribute],
        links: Sequence[TraceContext] = (),
        *,
        started_ns: int | None = None,
        span_id: str | None = None,
    ) -> ExportedSpan:
        """Start a span; the sampler of the environment decides whether it is recorded."""
        context = Context()
        if parent is not None:
            context = set_span_in_context(NonRecordingSpan(_api_context(parent)), context)
        token = _next_id.set(span_id)
        try:
            span = self._tracer.start_span(
                name,
                context,
                _KINDS[kind],
                attributes,
                [Link(_api_context(each)) for each in links],
                started_ns,
            )
        finally:
            _next_id.reset(token)
        return ExportedSpan(span)

    def export_file(self, path: Path, context: TraceContext) -> None:
        """Export the spans that a fit process has written."""
        for written in read_spans(path):
            self._processor.on_end(
                ReadableSpan(
                    written.name,
                    _api_context(context._replace(span_id=written.span_id)),
                    _api_context(context._replace(span_id=written.parent_id)),
                    self._provider.resource,
                    written.attributes,
                    status=_status(written.error),
                    start_time=written.started_ns,
                    end_time=written.ended_ns,
                    instrumentation_scope=_SCOPE,
                )
            )

    def stop(self) -> None:
        """Export what is left, for at most a second: an endpoint that is down must not delay the end of the process."""
        ending = threading.Thread(target=self._provider.shutdown, name="flush", daemon=True)
        ending.start()
        ending.join(FLUSH_SECONDS)


class ExportedSpan:
    """A span of OpenTelemetry's SDK."""

    def __init__(self, span: ApiSpan) -> None:
        self._span = span
        found = span.get_span_context()
        self.context = TraceContext(
            f"{found.trace_id:032x}", f"{found.span_id:016x}", int(found.trace_flags)
        )

    def set(self, name: str, value: Attribute) -> None:
        """Set an attribute."""
        self._span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        """Set the name."""
        self._span.update_name(name)

    def link(self, context: TraceContext) -> None:
        """Add a link."""
        self._span.add_link(_api_context(context))

    def end(self, error: str | None = None) -> None:
        """End the span. The message of an error is not recorded: it may contain values of the caller."""
        if error is not None:
            self._span.set_status(_status(error))
            self._span.set_attribute("error.type", error)
        self._span.end()


class _Ids(RandomIdGenerator):
    """Random ids, except where `start` sets that of the span."""

    def generate_span_id(self) -> int:
        given = _next_id.get()
        return super().generate_span_id() if given is None else int(given, 16)


class _Reported(SpanExporter):
    """Exports over HTTP, and logs the beginning and the end of an outage once."""

    def __init__(self, endpoint: str) -> None:
        self._exporter = OTLPSpanExporter(endpoint=endpoint)
        self._endpoint = endpoint
        self._is_away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans. Spans that could not be sent are dropped."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS and self._is_away:
            log.info("spans are sent to %s again", self._endpoint)
        elif result is SpanExportResult.FAILURE and not self._is_away:
            log.warning("spans cannot be sent to %s: they are dropped", self._endpoint)
        self._is_away = result is SpanExportResult.FAILURE
        return result

    def shutdown(self) -> None:
        """Stop waiting for the endpoint."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def find_fault(endpoint: str) -> str | None:
    """Send a request without a span, and return why the endpoint does not take it; None if it does."""
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=PROBE_SECONDS)
    reasons: list[str] = []
    handler = _Noting(reasons)
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(handler)
    try:
        if exporter.export([]) is SpanExportResult.SUCCESS:
            return None
    finally:
        logger.removeHandler(handler)
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return reasons[0] if reasons else "no response"


class _Noting(logging.Handler):
    """Keeps the messages of records."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message."""
        self._messages.append(record.getMessage()[:200])


def _api_context(context: TraceContext) -> SpanContext:
    return SpanContext(
        int(context.trace_id, 16), int(context.span_id, 16), True, TraceFlags(context.flags)
    )


def _status(error: str | None) -> Status:
    return Status() if error is None else Status(StatusCode.ERROR, error)
