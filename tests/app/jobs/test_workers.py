"""The worker processes that were heard from."""

from __future__ import annotations

from app.jobs import repository as workers
from app.platform.database import Database
from app.platform.tables import Worker


def test_a_worker_is_alive_while_it_is_heard_from(db: Database) -> None:
    with db.write() as session:
        for id_ in ("wrk_a", "wrk_b"):
            workers.register(session, id_, host="h", version="1.0", slots=2)
        session.get_one(Worker, "wrk_a").seen_at = 1.0
    with db.read() as session:
        (alive,) = workers.alive(session, 60.0)
    assert (alive.id, alive.by_message, alive.by_poll) == ("wrk_b", 0, 0)
    with db.write() as session:
        assert workers.seen(session, "wrk_a", by_message=3, by_poll=1, note="slow broker")
    with db.read() as session:
        both = workers.alive(session, 60.0)
    assert [worker.id for worker in both] == ["wrk_a", "wrk_b"]
    assert (both[0].by_message, both[0].by_poll, both[0].note) == (3, 1, "slow broker")


def test_a_forgotten_worker_is_told_to_say_hello_again(db: Database) -> None:
    with db.write() as session:
        workers.register(session, "wrk_a", host="h", version="1.0", slots=1)
        workers.deregister(session, "wrk_a")
        assert not workers.seen(session, "wrk_a", by_message=0, by_poll=0)
        assert workers.alive(session, 60.0) == []
