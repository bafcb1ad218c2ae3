"""Logging: a line of text or a JSON object for each record, on standard error, with times in UTC."""

from __future__ import annotations

import contextvars
import logging
import sys
import time
from datetime import UTC, datetime

import orjson

from app.platform.settings import Settings

# Control characters, and those that end a line in Unicode.
_ESCAPES = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}

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


def configure_logging(settings: Settings) -> None:
    """Set up the root logger of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
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
