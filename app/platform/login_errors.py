"""Which errors of a connection to PostgreSQL are permanent."""

from __future__ import annotations

import re

# Before a connection exists, PostgreSQL's client has no error code, only a message. A message in another language
# counts as an outage.
_USELESS_LOGIN = re.compile(
    r"authentication failed|password supplied|authentication method|does not exist|no pg_hba\.conf entry"
    r"|permission denied for database|not permitted to log in|not currently accepting connections"
    r"|does not support SSL|certificate"
)
# Quoted names of hosts, users and databases, which may look like any of these words. An apostrophe within a word is no
# quote.
_QUOTED = re.compile(r""" "[^"]*" | (?<!\w)'[^']*' """, re.VERBOSE)


def describe_refusal(said: str) -> str | None:
    """Return the client's message (a line with user and host) for an error that waiting cannot solve."""
    lines = (line.strip().removeprefix("connection failed: ") for line in said.splitlines())
    return next((line for line in lines if _USELESS_LOGIN.search(_QUOTED.sub("…", line))), None)
