"""Logging: a line of text or a JSON object for each record, on standard error, with times in UTC."""

from __future__ import annotations

import contextvars
import logging
import os
import sys
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from app.platform.settings import Settings

# Control characters, and those that end a line in Unicode.
_ESCAPES = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}

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
        """Format the record without its trace. A caller's text cannot begin a line, or steer a terminal."""
        return super().formatMessage(record).translate(_ESCAPES)

    def render_request(
        self, stamp: str, milliseconds: int, message: str, fields: dict[str, Any]
    ) -> str:
        """Return the line of a request. `stamp` is the time to the second."""
        line = f"{stamp}.{milliseconds:03d}Z INFO {access.name} {message}"
        return line if line.isprintable() else line.translate(_ESCAPES)


class JsonFormatter(logging.Formatter):
    """One object a line. The members of `extra={"fields": {...}}` become its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Render the record."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "pid": record.process,  # the processes of `serve` share one stream
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (current := request_id.get()) is not None:
            line["request_id"] = current
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()

    def render_request(
        self, stamp: str, milliseconds: int, message: str, fields: dict[str, Any]
    ) -> str:
        """Return the line of a request. `stamp` is the time to the second."""
        line = {
            "time": f"{stamp}.{milliseconds:03d}+00:00",
            "level": "INFO",
            "pid": os.getpid(),
            "logger": access.name,
            "message": message,
        }
        if (current := request_id.get()) is not None:
            line["request_id"] = current
        return orjson.dumps(line | fields, default=str).decode()


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes records to standard error, and requests without making records of them: that costs as much as a score."""

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
        except Exception:  # a full disk, for one: no request fails because it cannot be logged
            self.handleError(
                logging.makeLogRecord({"name": access.name, "msg": "%s", "args": (message,)})
            )


def log_request(message: str, fields: dict[str, Any]) -> None:
    """Write a line of the access log. `fields` are members of the line if it is JSON."""
    root = logging.getLogger()
    if len(root.handlers) == 1 and isinstance(root.handlers[0], LineHandler):
        root.handlers[0].write_request(message, fields)
    else:  # others listen, too
        access.info("%s", message, extra={"fields": fields})


def configure_logging(settings: Settings) -> None:
    """Set up the root logger of this process."""
    handler = LineHandler(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # uvicorn's own access log prints query strings, which hold people's data; ours does not.
    access = logging.getLogger("uvicorn.access")
    access.handlers.clear()
    access.propagate = False
    # A client library logs each request line at INFO.
    logging.getLogger("httpx").setLevel(logging.WARNING)
