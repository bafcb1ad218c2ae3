"""The trace context of a request, as its caller sends it (W3C Trace Context, https://www.w3.org/TR/trace-context/).

A job stores the context of the span that submitted it (`Job.traceparent`), or of the caller's span if this service
records none (`app.platform.tracing`). Its child jobs have that of their parent's attempt.

The flags are the caller's. Only jobs of authenticated callers store them, and the span of a request begins when its
caller is known: nobody else can have spans recorded.
"""

from __future__ import annotations

import contextvars
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

Kind = Literal["internal", "server", "consumer"]
"""What a span is about: work within a process, a request that it serves, or a job that it takes from a queue."""
Attribute = str | int | float | bool
"""The value of a span's attribute."""

# Version, trace, span, flags. An id of zeros is invalid, and a later version may append fields.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
_KNOWN_FLAGS = (
    0b11  # sampled, and random trace id (level 2); the others must be zero when they are passed on
)


class TraceContext(NamedTuple):
    """A trace, the caller's span in it, and its flags (1: sampled, 2: the id of the trace is random)."""

    trace_id: str
    span_id: str
    flags: int

    def __str__(self) -> str:
        """Return the context as `traceparent` of version 00."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"


def parse(text: str) -> TraceContext | None:
    """Return the context in a `traceparent` header; None for a malformed one."""
    match = _TRACEPARENT.fullmatch(text)
    if match is None or (match[1] == "00" and match.end(4) < len(text)):
        return None
    return TraceContext(match[2], match[3], int(match[4], 16) & _KNOWN_FLAGS)


current: contextvars.ContextVar[TraceContext | None] = contextvars.ContextVar("trace", default=None)
"""The span for which this thread or task works: ours, or the caller's if we record none."""


def current_traceparent() -> str | None:
    """Return the current context as `traceparent`; None without one."""
    context = current.get()
    return None if context is None else str(context)


@contextmanager
def resumed(traceparent: str | None) -> Iterator[None]:
    """Use the context of a stored `traceparent` during the block."""
    token = current.set(None if traceparent is None else parse(traceparent))
    try:
        yield
    finally:
        current.reset(token)
