"""Spans of OpenTelemetry: requests with their transactions, attempts at jobs, and the steps of a fit.

Tracing is on if the environment names an OTLP endpoint (`OTEL_EXPORTER_OTLP_ENDPOINT` or
`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`). Otherwise nothing of OpenTelemetry is imported, and `span` returns the same empty
context each time.

The current span is in `trace.current`, from which log lines and the rows of jobs take it, and not in the context of
OpenTelemetry's API: so one variable has the trace, whether tracing is on or not. A process calls `start` after it was
forked, and `stop` at its end. A fit process has no network: it writes its spans to a file (`recording_to`), which its
worker exports (`export_file`).

Names and attributes of spans contain no values of rows and no query strings.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

from app.platform import trace
from app.platform.errors import ServiceError
from app.platform.trace import Attribute, Kind, TraceContext

EXTRA = "rankwright-server[tracing]"
_ENDPOINT, _TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_PROTOCOL, _TRACES_PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
_ALLOWED = {
    _PROTOCOL: ("http/protobuf",),
    _TRACES_PROTOCOL: ("http/protobuf",),
    "OTEL_TRACES_EXPORTER": ("otlp", "none"),
    "OTEL_TRACES_SAMPLER": (
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
    ),
}

log = logging.getLogger(__name__)


class Span(Protocol):
    """A span that has started. `context` is what its children have as their parent."""

    context: TraceContext

    def set(self, name: str, value: Attribute) -> None:
        """Set an attribute."""

    def rename(self, name: str) -> None:
        """Set the name, for a span whose name is known at its end."""

    def link(self, context: TraceContext) -> None:
        """Add a link to a span of this or of another trace."""

    def end(self, error: str | None = None) -> None:
        """End the span; `error` is the code or the type of the error that ended it."""


class Recorder(Protocol):
    """Where the spans of this process go."""

    records_transactions: bool

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
    ) -> Span:
        """Start a span. Without a parent it begins a trace."""

    def export_file(self, path: Path, context: TraceContext) -> None:
        """Export the spans that a fit process has written. They belong to the trace of `context`."""

    def stop(self) -> None:
        """Export what is left, for at most a second."""


_recorder: Recorder | None = None
_request: ContextVar[Span | None] = ContextVar("request_span", default=None)
"""The span of the request that this task or thread serves, from when its caller is known."""
_OFF: AbstractContextManager[None] = nullcontext()


def read_endpoint(environment: Mapping[str, str]) -> str | None:
    """Return the URL to which the environment sends spans; None if tracing is off. Raises ValueError for a value that
    cannot be followed, with the variable's name.

    An empty variable counts as unset, as OpenTelemetry's specification says.
    """
    given = {name: value.strip() for name, value in environment.items() if value.strip()}
    name = _TRACES_ENDPOINT if _TRACES_ENDPOINT in given else _ENDPOINT
    if name not in given or given.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if given.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    for each, allowed in _ALLOWED.items():
        if each in given and given[each] not in allowed:
            words = " or ".join(allowed) if len(allowed) < 3 else f"one of {', '.join(allowed)}"
            raise ValueError(f"{each} must be {words}, got {given[each][:100]!r}")
    url = given[name]
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if "@" in url:  # not shown: it may be a password
        raise ValueError(
            f"{name} must not have a user or a password: set OTEL_EXPORTER_OTLP_HEADERS"
        )
    if not is_url:
        raise ValueError(f"{name} must be an http or https URL, got {url[:100]!r}")
    return url if name == _TRACES_ENDPOINT else f"{url.rstrip('/')}/v1/traces"


def find_fault(endpoint: str) -> str | None:
    """Return why spans cannot be sent to the endpoint; None if they can. It sends a request without a span."""
    try:
        from app.platform.tracing_export import find_fault as probe
    except ImportError:
        return f"the packages of OpenTelemetry are not installed: pip install '{EXTRA}'"
    return probe(endpoint)


def start(process: Literal["api", "worker"]) -> None:
    """Record the spans of this process if the environment asks for it; logs a warning if OpenTelemetry's SDK is not
    installed. Raises ValueError as `read_endpoint`.
    """
    global _recorder  # noqa: PLW0603 - one for the process, as for log records
    endpoint = read_endpoint(os.environ)
    if endpoint is None or _recorder is not None:
        return
    try:
        from app.platform.tracing_export import Exporter
    except ImportError:
        log.warning("no spans are sent to %s: pip install '%s'", endpoint, EXTRA)
        return
    _recorder = Exporter(endpoint, process)


def stop() -> None:
    """Export the spans that are left, for at most a second, and record no others."""
    global _recorder
    recorder, _recorder = _recorder, None
    if recorder is not None:
        recorder.stop()


@contextmanager
def recording_to(path: str | None) -> Iterator[None]:
    """Write the block's spans to a file; None: record none. For a process without network, with one job at a time."""
    global _recorder  # noqa: PLW0603
    if path is None:
        yield
        return
    from app.platform.tracing_files import FileRecorder

    recorder = _recorder = FileRecorder(Path(path))
    try:
        yield
    finally:
        _recorder = None
        recorder.stop()


def is_recording() -> bool:
    """Return True if spans of the current trace are recorded."""
    return _recorder is not None and _is_sampled(trace.current.get())


def span(name: str, **attributes: Attribute) -> AbstractContextManager[Span | None]:
    """Record the block as a span of the current trace; without one, or if it is not sampled, do nothing."""
    recorder, parent = _recorder, trace.current.get()
    if recorder is None or not _is_sampled(parent):
        return _OFF
    return _within(recorder.start(name, "internal", parent, attributes))


def transaction(work: object) -> AbstractContextManager[Span | None]:
    """Record a transaction of a request as a span, named after the function that runs in it.

    Transactions of a worker are not recorded: it polls, so there would be several each second. There is no span before
    the caller is known.
    """
    if _recorder is None or not _recorder.records_transactions or _request.get() is None:
        return _OFF
    return span(f"transaction {getattr(work, '__qualname__', type(work).__name__)}")


def attempt(
    job_id: str, token: int, **attributes: Attribute
) -> AbstractContextManager[Span | None]:
    """Record the block as a span for one claim of a job, a child of the current span.

    `token` is that of the lease, which counts the claims; later claims have a link to the one before.

    Its id follows from the job and the token. So a link needs no record of an attempt that died.
    """
    if _recorder is None:
        return _OFF
    parent = trace.current.get()
    links = []
    if token > 1 and parent is not None:
        links = [parent._replace(span_id=_attempt_id(job_id, token - 1))]
    name = f"job {attributes.get('rankwright.job.kind', '')}".rstrip()
    started = _recorder.start(
        name, "consumer", parent, attributes, links, span_id=_attempt_id(job_id, token)
    )
    return _within(started)


def export_file(path: Path) -> None:
    """Export the spans that a fit process has written to the file for the current trace. A file that is missing, or
    that is not what a fit process writes, is not an error.
    """
    context = trace.current.get()
    if _recorder is not None and context is not None and _is_sampled(context):
        _recorder.export_file(path, context)


def link(traceparent: str | None) -> None:
    """Link the span of the current request to that of a stored `traceparent`."""
    request, context = _request.get(), trace.parse(traceparent or "")
    if request is not None and context is not None:
        request.link(context)


class Phases:
    """The phases of a job as spans, one after the other."""

    def __init__(self) -> None:
        self._parent = trace.current.get()
        self._span: Span | None = None

    def begin(self, phase: str | None, about: Mapping[str, object]) -> None:
        """End the span of the phase before, and start that of a phase; None: there is none."""
        self.end()
        if _recorder is None or phase is None or not _is_sampled(self._parent):
            return
        attributes = {
            f"rankwright.{name}": value
            for name, value in about.items()
            if isinstance(value, Attribute)
        }
        self._span = _recorder.start(phase, "internal", self._parent, attributes)

    def end(self) -> None:
        """End the span of the last phase."""
        if self._span is not None:
            self._span.end()
        self._span = None


class RequestTrace:
    """The span of a request, which begins when its caller is known.

    Until then nobody has shown that they may have spans recorded: of requests without a valid credential there is none,
    whatever their `traceparent` says.
    """

    def __init__(self) -> None:
        self._started_ns = time.time_ns()
        self._span: Span | None = None

    def begin(self, owner: str, request_id: str) -> None:
        """Start the span, from the beginning of the request, and make it current. Only the first call counts."""
        if self._span is not None or _recorder is None:
            return
        attributes = {"rankwright.owner": owner, "rankwright.request_id": request_id}
        self._span = _recorder.start(
            "request", "server", trace.current.get(), attributes, started_ns=self._started_ns
        )
        trace.current.set(self._span.context)
        _request.set(self._span)

    def end(self, method: str, route: str | None, status: int) -> None:
        """End the span. `status` is 0 for a request that was broken off."""
        if self._span is None:
            return
        self._span.rename(method if route is None else f"{method} {route}")
        self._span.set("http.request.method", method)
        if route is not None:
            self._span.set("http.route", route)
        if status:
            self._span.set("http.response.status_code", status)
        self._span.end(str(status) if status >= 500 else None if status else "aborted")
        _request.set(None)


def request_trace() -> RequestTrace | None:
    """Return the trace of a request that begins; None if tracing is off."""
    return None if _recorder is None else RequestTrace()


@contextmanager
def _within(started: Span) -> Iterator[Span]:
    """Make the span the current one during the block, and end it."""
    token = trace.current.set(started.context)
    error = None
    try:
        yield started
    except BaseException as raised:
        error = raised.code if isinstance(raised, ServiceError) else type(raised).__name__
        raise
    finally:
        trace.current.reset(token)
        started.end(error)


def _is_sampled(context: TraceContext | None) -> bool:
    return context is not None and bool(context.flags & 1)


def _attempt_id(job_id: str, token: int) -> str:
    """Return the id of the span for a claim of a job."""
    return blake2b(f"{job_id} {token}".encode(), digest_size=8).hexdigest()
