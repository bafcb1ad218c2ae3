"""A story of two jobs, in one process: `python queue_story.py DATABASE_URL`.

Two workers have the first job, one after the other, and the one that lost it is the first to end. The second job is
accepted by a process that dies before it can tell anyone: its worker finds it by looking.
"""

from __future__ import annotations

import contextlib
import sys
import time

from pydantic import SecretStr

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.jobs.kinds import Claim
from app.platform.database import Database
from app.platform.errors import LeaseLost
from app.platform.settings import Settings

LEASE_SECONDS = 0.01


def tell(database_url: str) -> None:
    """Run the story."""
    db = Database(database_url)
    settings = Settings(
        database_url=SecretStr(database_url),
        lease_seconds=LEASE_SECONDS,
        heartbeat_seconds=LEASE_SECONDS / 4,
    )
    _accept(db, settings)
    slow = db.writing(queue.claim, settings, "wrk_slow")
    time.sleep(2 * LEASE_SECONDS)
    assert Reaper(db, settings).reap().requeued
    quick = db.writing(queue.claim, settings, "wrk_quick")
    for claim in (slow, quick):
        assert claim is not None
        _finish(db, claim)

    _accept(db, settings)
    if db.reading(queue.has_work, settings):
        claim = db.writing(queue.claim, settings, "wrk_looking")
        assert claim is not None
        _finish(db, claim)
    db.close()


def _accept(db: Database, settings: Settings) -> None:
    with db.write() as session:
        jobs.enqueue(session, settings, owner="ada", kind="compare", name="two", spec={})


def _finish(db: Database, claim: Claim) -> None:
    with contextlib.suppress(LeaseLost), db.write() as session:
        queue.finish(session, claim)


if __name__ == "__main__":
    tell(sys.argv[1])
