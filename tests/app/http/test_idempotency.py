"""Idempotency-Key: the same request twice is one job."""

from __future__ import annotations

import functools
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.http import repository
from app.http.idempotency import Created, run_once
from app.jobs import service as jobs
from app.platform.callers import Actor, acting_as
from app.platform.database import Database
from app.platform.errors import Deadlock, Invalid
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.tables import Idempotency, Job
from tests.app.queue_steps import OWNER, at_once
from tests.raising import raises
from tests.sentences import Sentences


def accept(session: Session) -> dict[str, Any]:
    job = jobs.enqueue(session, Settings(), owner=OWNER, kind="train", name="x", spec={})
    return {"id": job.id, "tags": {}}


def post(
    db: Database,
    key: str | None = "key-1",
    *,
    owner: str = OWNER,
    route: str = "POST /v1/jobs",
    body: str = "abc",
) -> Created:
    return db.writing(run_once, owner, route, key, body, accept)


def count(db: Database, table: type[Any]) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def test_the_first_answer_is_replayed(db: Database) -> None:
    first, again = post(db), post(db)
    assert (first.replayed, again.replayed) == (False, True)
    assert again.body == first.body
    assert count(db, Job) == 1


def test_twenty_at_once_are_one_job(db: Database) -> None:
    answers = at_once(*[functools.partial(post, db)] * 20)
    assert count(db, Job) == 1
    assert len({answer.body["id"] for answer in answers}) == 1
    assert [answer.replayed for answer in answers].count(False) == 1


def test_the_same_key_with_another_body_is_refused(db: Database, sentences: Sentences) -> None:
    post(db)
    with sentences.raises(Invalid) as caught:
        post(db, body="xyz")
    assert caught.value.code == "idempotency_key_reused"
    assert count(db, Job) == 1


def test_owners_and_routes_have_keys_of_their_own(db: Database) -> None:
    answers = [post(db), post(db, owner="bob"), post(db, route="POST /v1/datasets")]
    assert not any(answer.replayed for answer in answers)
    assert count(db, Job) == 3


def test_principals_have_keys_of_their_own(db: Database) -> None:
    """One of them may have fewer rights, and must not read the response to the other."""

    def post_as(principal_id: str) -> Created:
        with acting_as(Actor(OWNER, principal_id, None, "POST /v1/jobs", lambda: new_id("aud"))):
            return post(db)

    first, other, again = post_as("prn_1"), post_as("prn_2"), post_as("prn_1")
    assert (first.replayed, other.replayed, again.replayed) == (False, False, True)
    assert again.body == first.body != other.body


def test_without_a_key_each_request_runs(db: Database) -> None:
    assert not post(db, None).replayed
    assert not post(db, None).replayed
    assert (count(db, Job), count(db, Idempotency)) == (2, 0)


def test_a_refusal_is_not_kept_and_the_next_runs(db: Database) -> None:
    def refuse(session: Session) -> dict[str, Any]:
        accept(session)
        raise Invalid("refusal-1")

    with raises(Invalid, "refusal-1"):
        db.writing(run_once, OWNER, "POST /v1/jobs", "key-1", "abc", refuse)
    assert count(db, Job) == count(db, Idempotency) == 0
    assert not post(db).replayed


def test_work_that_fell_victim_to_a_deadlock_runs_again_from_nothing(db: Database) -> None:
    tries: list[int] = []

    def give_the_first_up(session: Session) -> dict[str, Any]:
        answer = accept(session)
        tries.append(1)
        if len(tries) == 1:
            raise Deadlock("another transaction changed the same rows")
        return answer

    for key in ("key-1", None):
        tries.clear()
        answer = db.writing(run_once, OWNER, "POST /v1/jobs", key, "abc", give_the_first_up)
        assert (answer.replayed, len(tries)) == (False, 2)
    assert (count(db, Job), count(db, Idempotency)) == (2, 1)


def test_who_waited_for_a_refusal_runs(db: Database) -> None:
    tries: list[int] = []

    def refuse_the_first(session: Session) -> dict[str, Any]:
        tries.append(1)
        if len(tries) == 1:
            raise Invalid("no")
        return accept(session)

    results = at_once(
        *[
            functools.partial(
                db.writing, run_once, OWNER, "POST /v1/jobs", "key-1", "abc", refuse_the_first
            )
        ]
        * 5
    )
    refused = [result for result in results if isinstance(result, Invalid)]
    answers = [result for result in results if isinstance(result, Created)]
    assert (len(refused), len(answers)) == (1, 4)
    assert [answer.replayed for answer in answers].count(False) == 1
    assert count(db, Job) == 1


def test_answers_are_kept_for_a_day(db: Database) -> None:
    post(db, "old"), post(db, "new")
    with db.write() as session:
        session.execute(
            update(Idempotency)
            .where(Idempotency.key.endswith("old"))
            .values(created_at=Idempotency.created_at - repository.KEPT_SECONDS)
        )
        repository.prune(session, repository.KEPT_SECONDS, 10)
        assert session.scalar(select(func.count()).select_from(Idempotency)) == 1
    assert (post(db, "new").replayed, post(db, "old").replayed) == (True, False)
