"""A story of two jobs, in one process: `python queue_story.py DATABASE_URL BROKER_URL`.

Two workers have the first job, one after the other, and the one that lost it is the first to end. The second job is
accepted by a process that dies before it can tell anyone; its worker waits for messages and does not look.
"""

from __future__ import annotations

import contextlib
import sys
import time

import redis
from pydantic import SecretStr

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper, publish_pending
from app.jobs.kinds import Claim
from app.platform.broker import QUEUE, Producer
from app.platform.database import Database
from app.platform.errors import LeaseLost
from app.platform.settings import Settings

LEASE_SECONDS = 0.01


def tell(database_url: str, broker_url: str) -> None:
    """Run the story."""
    db, producer = Database(database_url), Producer(broker_url)
    broker = redis.Redis(unix_socket_path=broker_url.removeprefix("redis+socket://"))
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
    publish_pending(db, producer)
    broker.flushall()

    _accept(db, settings)
    publish_pending(db, producer)
    if broker.llen(QUEUE):
        claim = db.writing(queue.claim, settings, "wrk_listening")
        assert claim is not None
        _finish(db, claim)
    producer.close()
    db.close()


def _accept(db: Database, settings: Settings) -> None:
    with db.write() as session:
        jobs.enqueue(session, settings, owner="ada", kind="compare", name="two", spec={})


def _finish(db: Database, claim: Claim) -> None:
    with contextlib.suppress(LeaseLost), db.write() as session:
        queue.finish(session, claim)


if __name__ == "__main__":
    tell(sys.argv[1], sys.argv[2])
