"""Denied requests and failed authentications in the audit log.

They change nothing, so no transaction carries their entries: a thread of each API process writes them, once a second.
What an attacker can cause is bounded, in memory and on disk. Per minute, a principal has at most
`MAX_OF_PRINCIPAL` entries, and one more with the number of the others. Failed authentications have one entry per
address, for at most `MAX_ADDRESSES` addresses, and one for the others. Entries that were lost are counted, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from starlette.types import Scope

from app.http.addresses import client_address, network_of
from app.platform import audit
from app.platform.audit import Outcome
from app.platform.callers import Actor, Caller
from app.platform.errors import Unavailable, counted
from app.platform.ids import new_id
from app.platform.sql import Session
from core.errors import shorten

log = logging.getLogger(__name__)

MAX_OF_PRINCIPAL = 20
MAX_ADDRESSES = 100
MAX_WAITING = 1_000
"""Entries that wait to be written, such as during an outage of the database."""
MAX_PRINCIPALS = 1_000
"""Principals whose further denials are counted."""
WRITE_EVERY = 1.0
COUNT_EVERY = 60.0
"""Seconds after which what was counted becomes entries."""
BATCH = 200
FAILED = "failed authentication"
LOST = "lost entries"
_OTHERS = "other addresses"


Writing = Callable[..., Any]
"""Runs work in a transaction."""


class DenialLog:
    """The denied requests of one process that are not written yet."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._lock = threading.Lock()
        self._one_writer = threading.Lock()
        self._waiting: deque[Callable[[Session], None]] = deque()
        self._of_principal: Counter[tuple[str, str | None]] = Counter()
        self._callers: dict[tuple[str, str | None], Caller] = {}
        self._failed: Counter[str] = Counter()
        self._lost = 0
        self._count_at = time.monotonic() + COUNT_EVERY
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="denials", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout: float = 3.0) -> None:
        """Write what waits, and what was counted, within `timeout` seconds."""
        self._stop.set()
        self._thread.join(timeout)

    def note(self, scope: Scope, method: str, status: int) -> None:
        """Never waits for the database."""
        caller: Caller | None = scope.get("caller")
        if status == 403 and caller is not None:
            self._deny(scope, method, caller)
        elif status in (401, 403) or scope.get("error_code") == "too_many_unknown_keys":
            network = network_of(scope.get("client")) or "unknown"
            with self._lock:
                known = network in self._failed or len(self._failed) < MAX_ADDRESSES
                self._failed[network if known else _OTHERS] += 1

    def _deny(self, scope: Scope, method: str, caller: Caller) -> None:
        whose = (caller.owner, caller.principal_id)
        with self._lock:
            if whose not in self._of_principal and len(self._of_principal) >= MAX_PRINCIPALS:
                self._lost += 1
                return
            self._of_principal[whose] += 1
            if self._of_principal[whose] > MAX_OF_PRINCIPAL:
                self._callers[whose] = caller
                return
            path = getattr(scope.get("route"), "path_format", None)
            actor = Actor(
                caller=caller,
                owner=caller.owner,
                principal_id=caller.principal_id,
                key_id=caller.key_id,
                action=f"{method} {path or 'unknown route'}",
                path=shorten(scope["path"].encode("utf-8", "replace").decode()),
                request_id=scope.get("request_id"),
                client=client_address(scope),
                make_id=partial(new_id, "aud"),
            )
            self._add(actor, scope.get("error_detail"))

    def _add(self, actor: Actor, summary: str | None) -> None:
        """Count the entry as lost if too many wait. Called with the lock."""
        if len(self._waiting) >= MAX_WAITING:
            self._lost += 1
            return
        words = None if summary is None else shorten(summary)
        self._waiting.append(
            partial(audit.record, actor=actor, outcome=Outcome.DENIED, summary=words)
        )

    def count(self) -> None:
        """Make entries of the last minute's counts."""
        with self._lock:
            for whose, caller in self._callers.items():
                more = self._of_principal[whose] - MAX_OF_PRINCIPAL
                actor = Actor(
                    caller=caller,
                    owner=caller.owner,
                    principal_id=caller.principal_id,
                    key_id=caller.key_id,
                    action="denied requests",
                    make_id=partial(new_id, "aud"),
                )
                self._add(
                    actor, f"{counted(more, 'more request', 'more requests')} within a minute"
                )
            for network, times in self._failed.items():
                words = f"{counted(times, 'request', 'requests')} from {network} within a minute"
                if len(self._waiting) < MAX_WAITING:
                    self._waiting.append(
                        partial(
                            audit.record_of_service,
                            action=FAILED,
                            outcome=Outcome.DENIED,
                            summary=words,
                            client=None if network == _OTHERS else network,
                        )
                    )
                else:
                    self._lost += times
            self._of_principal.clear()
            self._callers.clear()
            self._failed.clear()
            self._count_at = time.monotonic() + COUNT_EVERY

    def write(self) -> None:
        """Write in batches. Raises Unavailable: then it waits on."""
        with self._one_writer:
            while self._waiting or self._lost:
                with self._lock:
                    batch = list(islice(self._waiting, BATCH))
                    lost = self._lost
                self._writing(_write, batch, lost)
                with self._lock:
                    for _ in batch:
                        self._waiting.popleft()
                    self._lost -= lost

    def _run(self) -> None:
        stopped = False
        while not stopped:
            stopped = self._stop.wait(WRITE_EVERY)
            if stopped or time.monotonic() >= self._count_at:
                self.count()
            try:
                self.write()
            except Unavailable:
                pass  # `Database` logs it
            except Exception:
                log.exception("denied requests could not be written to the audit log")


def _write(session: Session, batch: list[Callable[[Session], None]], lost: int) -> None:
    for entry in batch:
        entry(session)
    if lost:
        words = f"{counted(lost, 'denied request was', 'denied requests were')} not recorded: too many waited"
        audit.record_of_service(session, LOST, Outcome.DENIED, words)
