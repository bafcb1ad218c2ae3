"""Spans in a file: written by a fit process, which has no network, and read by its worker.

Each line is a JSON object. What a fit process writes is not trusted, because it parses the files of users: lines that
are not spans are skipped, and sizes and numbers are limited.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from app.platform.trace import Attribute, Kind, TraceContext

MAX_SPANS = 1_000
"""Most spans of one attempt that are recorded. The later ones are dropped."""
MAX_FILE_BYTES = 1024**2
_MAX_TEXT = 100
_MAX_ATTRIBUTES = 16
_ID = re.compile(r"(?!0{16})[0-9a-f]{16}")
_MAX_NS = 2**63 - 1


class WrittenSpan(NamedTuple):
    """A span of a file. Times are nanoseconds since 1970; `error` is the code or the type of an error."""

    name: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    attributes: dict[str, Attribute]
    error: str | None


class FileRecorder:
    """Appends each span to a file when it ends."""

    records_transactions = False

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        self._left = MAX_SPANS

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
    ) -> FileSpan:
        """Start a span, a child of `parent`, without which a file has none."""
        assert parent is not None
        own = span_id or os.urandom(8).hex()
        return FileSpan(self, parent._replace(span_id=own), name, parent.span_id, dict(attributes))

    def export_file(self, path: Path, context: TraceContext) -> None:
        """Do nothing: a process that writes spans to a file reads none."""

    def stop(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
        self._descriptor = -1

    def write(self, span: WrittenSpan) -> None:
        """Append a span. An error here must not harm the fit: the span is lost."""
        if self._left == 0 or self._descriptor < 0:
            return
        self._left -= 1
        try:
            os.write(self._descriptor, orjson.dumps(span._asdict()) + b"\n")
        except OSError:
            self._left = 0


class FileSpan:
    """A span that is written to a file when it ends."""

    def __init__(
        self,
        recorder: FileRecorder,
        context: TraceContext,
        name: str,
        parent_id: str,
        attributes: dict[str, Attribute],
    ) -> None:
        self.context = context
        self._recorder = recorder
        self._name = name
        self._parent_id = parent_id
        self._attributes = attributes
        self._started_ns = time.time_ns()

    def set(self, name: str, value: Attribute) -> None:
        """Set an attribute."""
        self._attributes[name] = value

    def rename(self, name: str) -> None:
        """Set the name."""
        self._name = name

    def link(self, context: TraceContext) -> None:
        """Do nothing: spans in a file have no links."""

    def end(self, error: str | None = None) -> None:
        """Write the span."""
        own = self.context.span_id
        times = self._started_ns, time.time_ns()
        self._recorder.write(
            WrittenSpan(self._name, own, self._parent_id, *times, self._attributes, error)
        )


def read_spans(path: Path) -> Iterator[WrittenSpan]:
    """Yield the spans of a file. Yields nothing for a file that cannot be read, or that is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return
    with os.fdopen(descriptor, "rb") as file:
        lines = file.read(MAX_FILE_BYTES).splitlines()[:MAX_SPANS]
    for line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if (span := _checked(value)) is not None:
            yield span


def _checked(value: object) -> WrittenSpan | None:
    """Return the span in a parsed line; None for anything else."""
    if not isinstance(value, dict) or value.keys() != set(WrittenSpan._fields):
        return None
    span = WrittenSpan(**value)
    texts = (span.name, span.span_id, span.parent_id)
    if not all(isinstance(each, str) for each in texts):
        return None
    times = (span.started_ns, span.ended_ns)
    if not all(type(each) is int and 0 < each <= _MAX_NS for each in times):
        return None
    if span.started_ns > span.ended_ns or not (
        _ID.fullmatch(span.span_id) and _ID.fullmatch(span.parent_id)
    ):
        return None
    if not (span.error is None or isinstance(span.error, str)) or not isinstance(
        span.attributes, dict
    ):
        return None
    attributes = {
        name[:_MAX_TEXT]: each[:_MAX_TEXT] if isinstance(each, str) else each
        for name, each in list(span.attributes.items())[:_MAX_ATTRIBUTES]
        if isinstance(each, str | bool | float) or (isinstance(each, int) and abs(each) <= _MAX_NS)
    }
    error = None if span.error is None else span.error[:_MAX_TEXT]
    return span._replace(name=span.name[:_MAX_TEXT], attributes=attributes, error=error)
