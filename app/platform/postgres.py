"""Connections to PostgreSQL that do not wait indefinitely."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready

RV = TypeVar("RV")

STATEMENT_SECONDS = 20.0
"""The server ends a statement after this time."""
SILENCE_SECONDS = 25.0
"""A server that has sent nothing for this time is away. It is longer, so that a server that runs ends its statement."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server sends nothing for `SILENCE_SECONDS`.

    The kernel of a frozen server still acknowledges data, so neither keepalives nor `tcp_user_timeout` detect it, and
    only the client can stop waiting.
    """

    def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """Raises OperationalError after too long a silence."""
        try:
            return super().wait(_within(gen, SILENCE_SECONDS), *args, **kwargs)
        except _Silent:
            self.close()
            raise


class _Silent(psycopg.OperationalError):
    """Raised when the server has sent nothing for too long."""


def _within(gen: PQGen[RV], seconds: float) -> PQGen[RV]:
    """Yield psycopg's wait requests, one each tenth of a second, until the time is over."""
    deadline = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready != Ready.NONE:
                deadline = now + seconds
            elif now > deadline:
                raise _Silent(f"the server has sent nothing for {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result
