"""Logging: a line of text or a JSON object for each record, on standard error, with times in UTC."""

from __future__ import annotations

import contextvars
import logging
import os
import sys
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

import orjson
from rankwright import printable

from app.platform import trace
from app.platform.settings import Settings
from core.errors import shorten

MAX_LINE = 8_192
"""Most characters of a record's message."""
MAX_TRACE = 65_536
"""Most characters of an error's trace."""

log = logging.getLogger(__name__)
access = logging.getLogger("rankwright.access")
request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("request_id", default=None)


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO rankwright.access message`."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        self.converter = time.gmtime
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Text from a caller cannot begin a new line or control a terminal."""
        return printable.one_line(shorten(super().formatMessage(record), MAX_LINE))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        """The message may be a caller's text."""
        return printable.lines(shorten(super().formatException(ei), MAX_TRACE))

    def render_request(
        self, stamp: str, milliseconds: int, message: str, fields: dict[str, Any]
    ) -> str:
        """`stamp` is the time to the second."""
        line = f"{stamp}.{milliseconds:03d}Z INFO {access.name} {message}"
        return printable.one_line(line)


class JsonFormatter(logging.Formatter):
    """One JSON object per line. It includes the members of `extra={"fields": {...}}`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "pid": record.process,  # the processes of `serve` share one stream
            "logger": record.name,
            "message": shorten(record.getMessage(), MAX_LINE),
        }
        line |= _current_ids() | getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = shorten(self.formatException(record.exc_info), MAX_TRACE)
        return printable.one_line(orjson.dumps(line, default=str).decode())

    def render_request(
        self, stamp: str, milliseconds: int, message: str, fields: dict[str, Any]
    ) -> str:
        """`stamp` is the time to the second."""
        line = {
            "time": f"{stamp}.{milliseconds:03d}+00:00",
            "level": "INFO",
            "pid": os.getpid(),
            "logger": access.name,
            "message": message,
        }
        return printable.one_line(
            orjson.dumps(line | _current_ids() | fields, default=str).decode()
        )


def _current_ids() -> dict[str, str]:
    """Return the current request and trace of this thread or task."""
    found, context = {"request_id": request_id.get()}, trace.current.get()
    if context is not None:
        found |= {"trace_id": context.trace_id, "span_id": context.span_id}
    return {name: value for name, value in found.items() if value is not None}


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error; requests without a log record, which costs as much as a score."""

    def __init__(self, formatter: TextFormatter | JsonFormatter) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(formatter)
        self._render = formatter.render_request
        self._second, self._stamp = -1, ""

    def write_request(self, message: str, fields: dict[str, Any]) -> None:
        """Write the line that a record of the logger `rankwright.access` would have."""
        now = time.time()
        second = int(now)
        if second != self._second:
            stamp = time.strftime(TextFormatter.default_time_format, time.gmtime(second))
            self._second, self._stamp = second, stamp
        try:
            line = self._render(self._stamp, int(now % 1 * 1000), message, fields)
            with self.lock or nullcontext():
                self.stream.write(line + self.terminator)
                self.stream.flush()
        # such as a full disk: a request must not fail because it cannot be logged
        except Exception:
            self.handleError(
                logging.makeLogRecord({"name": access.name, "msg": "%s", "args": (message,)})
            )


def log_request(message: str, fields: dict[str, Any]) -> None:
    """`fields` are members of the line if it is JSON."""
    root = logging.getLogger()
    if len(root.handlers) == 1 and isinstance(root.handlers[0], LineHandler):
        root.handlers[0].write_request(message, fields)
    else:  # there are other handlers, too
        access.info("%s", message, extra={"fields": fields})


def line_of(message: str, level: int = logging.INFO) -> str:
    """Return a command's message, or JSON if the environment says so: without a log, or before its configuration."""
    if os.environ.get("RANKWRIGHT_LOG_FORMAT") != "json":
        return printable.lines(message)
    return JsonFormatter().format(
        logging.LogRecord("rankwright", level, "", 0, "%s", (message,), None)
    )


def _log_crash(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    log.critical("unexpected error", exc_info=(kind, error or kind(), trace))


def _log_thread_crash(crash: threading.ExceptHookArgs) -> None:
    if crash.exc_type is not SystemExit:
        _log_crash(crash.exc_type, crash.exc_value, crash.exc_traceback)


def configure_logging(settings: Settings) -> None:
    """Exceptions that end the process or a thread are logged, too."""
    sys.excepthook, threading.excepthook = _log_crash, _log_thread_crash
    handler = LineHandler(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # uvicorn's access log contains query strings, which contain personal data; our access log does not.
    access = logging.getLogger("uvicorn.access")
    access.handlers.clear()
    access.propagate = False
    # A client library logs each request line at INFO.
    logging.getLogger("httpx").setLevel(logging.WARNING)
