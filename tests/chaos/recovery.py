"""How soon orphaned work continued: from the death of a job's process to the next claim of the job."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import quantiles
from typing import NamedTuple

from sqlalchemy import select

from app.platform.database import Database
from app.platform.tables import JobEvent

_SILENT = re.compile(r"worker (wrk_\w+) sent no heartbeat")
_KILLED = re.compile(r"fit process (\d+) was killed")


class Recovery(NamedTuple):
    """A job that lost its process, and after how many seconds it ran again; `first` if it was its first loss."""

    job_id: str
    seconds: float
    first: bool


def recoveries(
    db: Database, deaths: Iterable[tuple[int, float]], workers: Mapping[int, str]
) -> list[Recovery]:
    """Return every loss in the events whose death was seen; `deaths` are pids and times."""
    died: defaultdict[str, list[float]] = defaultdict(list)
    for pid, at in deaths:
        died[str(pid)].append(at)
        if pid in workers:
            died[workers[pid]].append(at)
    with db.read() as session:
        events = session.scalars(select(JobEvent).order_by(JobEvent.job_id, JobEvent.seq)).all()
    found: list[Recovery] = []
    lost: JobEvent | None = None
    losses: set[str] = set()
    for event in events:
        state = event.data.get("state")
        if state == "queued":
            lost = event if "reason" in event.data else None
        elif lost is not None and state == "running" and lost.job_id == event.job_id:
            match = _SILENT.search(lost.data["reason"]) or _KILLED.search(lost.data["reason"])
            before = [at for at in died[match[1]] if at <= lost.at] if match else []
            if before:
                found.append(
                    Recovery(event.job_id, event.at - max(before), event.job_id not in losses)
                )
                losses.add(event.job_id)
            lost = None
    return found


def late(found: Iterable[Recovery], within: float) -> list[str]:
    """Return what broke the promise that an orphan runs again within the limit."""
    return [
        f"late: {job_id} ran again {seconds:.1f} s after its worker died"
        for job_id, seconds, _ in found
        if seconds > within
    ]


def summary(seconds: Sequence[float]) -> str:
    """Return the median, the 95th percentile and the maximum, in seconds."""
    if len(seconds) < 2:
        return ", ".join(f"{each:.1f}" for each in seconds) or "none"
    cuts = quantiles(seconds, n=20, method="inclusive")
    return f"p50 {cuts[9]:.1f}, p95 {cuts[18]:.1f}, max {max(seconds):.1f} of {len(seconds)}"
