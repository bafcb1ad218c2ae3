"""The database's clock. All times in SQL are seconds since 1970-01-01 UTC as double precision, save `machine_now`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

MACHINE_CLOCK = "rankwright_machine_clock"
"""The function that `app.platform.database` teaches SQLite."""


class db_now(FunctionElement[float]):  # noqa: N801 - reads as the SQL function it is
    """The present by the database's clock, not by this process's.

    PostgreSQL: `clock_timestamp()`, which moves within a transaction. SQLite: the process clock in
    milliseconds; `unixepoch('subsec')` would be plainer but is NULL before SQLite 3.42.
    """

    type = Float(53)
    inherit_cache = True


@compiles(db_now, "postgresql")
def _postgresql(element: db_now, compiler: Any, **kw: Any) -> str:
    return "CAST(extract(epoch from clock_timestamp()) AS double precision)"


@compiles(db_now, "sqlite")
def _sqlite(element: db_now, compiler: Any, **kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


class machine_now(FunctionElement[float]):  # noqa: N801 - as above
    """Seconds by the machine's monotonic clock, which nobody can set, and which begins anew when the machine starts.

    All processes that share a SQLite file read the same one. On PostgreSQL NULL: the server's clock is enough.
    """

    type = Float(53)
    inherit_cache = True


@compiles(machine_now, "postgresql")
def _no_machine(element: machine_now, compiler: Any, **kw: Any) -> str:
    return "CAST(NULL AS double precision)"


@compiles(machine_now, "sqlite")
def _machine(element: machine_now, compiler: Any, **kw: Any) -> str:
    return f"{MACHINE_CLOCK}()"
