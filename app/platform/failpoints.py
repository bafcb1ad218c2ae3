"""Failpoints for tests: named places at which a process can be made to exit, fail, hang or slow down.

`RANKWRIGHT_FAULTS="join=kill,claim=raise@3"` arms them: the first time that the process reaches `join` it is killed,
and the third time at `claim` it raises. Each acts once, and is logged before it acts. A failpoint that is not armed
costs a lookup in an empty dict.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from itertools import count

log = logging.getLogger(__name__)

VARIABLE = "RANKWRIGHT_FAULTS"
SLOW_SECONDS = 1.0

POINTS = {
    "accept": "a job is written, and not committed",
    "accepted": "a job is committed, and the caller has no response yet",
    "claim": "a job is claimed, and not committed",
    "claimed": "a claim is committed, and nothing done",
    "beat": "a heartbeat is committed",
    "fit": "a fit reports a step",
    "adopt": "a blob is written, and not renamed",
    "adopted": "a blob is in its place, and no row names it",
    "finish": "a success is written, and not committed",
    "fan_out": "parts are written, and not committed",
    "join": "a job is queued after its last part, and not committed",
    "finished": "an attempt's end is committed, and its folder not removed",
    "request_yield": "a job is asked to give way to another owner's, and not committed",
    "yield": "a job that gives way is queued again, and not committed",
    "reap": "a lost lease is read, and nothing done",
    "take": "a lost lease is taken, and not committed",
    "reaped": "a lost lease is taken, and nobody knows yet",
    "sweep": "blobs that no row names are marked as deleted, and not removed",
    "rewrite": "a file of decisions or outcomes is written anew, and no row names it",
    "rewritten": "a row names the new file of decisions or outcomes, and the old file is not deleted",
    "erase_version": "a version of a dataset is replaced by one without erased rows, and not committed",
    "erase": "a round of an erasure is written, and not committed",
    "connect": "a Dask cluster has answered, and no worker is asked",
    "host": "a Dask worker is to hold shards, and has no host of them",
    "ask": "a question goes to the hosts of shards",
    "answer": "a host of shards is asked",
    "release": "the hosts of shards are to go",
    "seal": "a log of decisions is read, and nothing stored",
    "segment": "a segment's row is written, and not committed",
    "sealed": "a segment's row is committed, and its log not deleted",
    "audit_seal": "a seal of audit entries is written, and not committed",
    "audit_sealed": "a seal of audit entries is committed, and its number and MAC not recorded elsewhere",
    "audit_head": "the number and MAC of the last seal are recorded elsewhere",
    "delivery_claim": "deliveries of webhooks are claimed, and not committed",
    "delivery_claimed": "a delivery of a webhook is claimed, and nothing done",
    "delivery_send": "a receiver of a webhook is connected, and nothing sent",
    "delivery_sent": "a receiver of a webhook has answered, and nothing written",
    "delivery_end": "the end of an attempt at a delivery is written, and not committed",
    "schedule": "a scheduled refresh is queued and its next time set, and not committed",
    "audit_prune": "old audit entries and their seals are removed, and not committed",
}


class FailpointError(Exception):
    """The exception of a failpoint that is armed with `raise`."""


def reach(point: str) -> None:
    """Act if this failpoint of `POINTS` is armed and due."""
    if armed and point in armed:
        armed[point]()


def parse(text: str) -> dict[str, Callable[[], None]]:
    """Parse actions by failpoint: `point=action` or `point=action@n`, separated by commas."""
    armed = {}
    for item in filter(None, text.split(",")):
        match = re.fullmatch(r"(\w+)=(\w+)(?:@([1-9]\d{0,8}))?", item.strip())
        if match is None or match[1] not in POINTS or match[2] not in _ACTIONS:
            raise ValueError(
                f"{VARIABLE} must contain point=action or point=action@n with a point of {', '.join(POINTS)} "
                f"and an action of {', '.join(_ACTIONS)}, got {item[:100]!r}"
            )
        armed[match[1]] = _at(match[1], match[2], int(match[3] or 1))
    return armed


def _at(point: str, action: str, n: int) -> Callable[[], None]:
    """Return a function that acts at its n-th call."""
    passings = count(1)  # one step of the iterator is atomic for all threads

    def pass_by() -> None:
        if next(passings) == n:
            log.warning("failpoint %s: %s", point, action)
            _ACTIONS[action](point)

    return pass_by


def _kill(point: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(point: str) -> None:
    raise FailpointError(f"failpoint {point}")


def _hang(point: str) -> None:
    threading.Event().wait()


def _stop(point: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)  # until the test sends SIGCONT


def _slow(point: str) -> None:
    time.sleep(SLOW_SECONDS)


def _full(point: str) -> None:
    raise OSError(errno.ENOSPC, f"failpoint {point}: {os.strerror(errno.ENOSPC)}")


_ACTIONS = {
    "kill": _kill,
    "raise": _raise,
    "hang": _hang,
    "stop": _stop,
    "slow": _slow,
    "full": _full,
}
armed = parse(os.environ.get(VARIABLE, ""))
