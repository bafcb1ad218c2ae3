"""How much is accepted: quotas of one owner, bounds of the whole service, and owners whose jobs must wait."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from sqlalchemy import delete, func, select

from app.access import quotas, repository
from app.access.usage import UsageCache
from app.jobs import child_jobs as parts
from app.jobs import queue
from app.jobs import service as jobs
from app.platform.database import Database
from app.platform.errors import OutOfSpace, ServiceError, TooMany, Unavailable
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.tables import BatchScore, Dataset, DatasetPairs, DatasetStatus, Job
from tests.app.queue_steps import OWNER, add_dataset, at_once, change, claimed, finish, submit
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences
from tests.waiting import patience

AT_ONCE = 100 if LONG_FORM else 24
MOST = 10


def refusal(db: Database, settings: Settings, **values: Any) -> ServiceError:
    """Submit a job that must be refused, and leave no trace."""
    before = count(db)
    with pytest.raises(ServiceError) as caught:
        submit(db, settings, **values)
    assert count(db) == before
    return caught.value


def count(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(Job)) or 0


def test_of_submits_at_once_no_more_are_accepted_than_the_quota_allows(
    db: Database, sentences: Sentences
) -> None:
    settings = Settings(quota_queued_jobs=MOST)
    other = submit(db, owner="bob")
    answers = at_once(*[functools.partial(submit, db, settings)] * AT_ONCE)
    kinds = Counter(type(answer) for answer in answers)
    assert kinds == {Job: MOST, TooMany: AT_ONCE - MOST}
    refused = next(answer for answer in answers if isinstance(answer, TooMany))
    assert refused.code == "quota_exceeded"
    sentences(refused)
    assert refused.errors[0] | {"detail": ""} == {
        "quota": "queued_jobs",
        "limit": MOST,
        "value": MOST,
        "detail": "",
    }
    assert int(refused.headers["Retry-After"]) > 0
    submit(db, settings, owner="bob")  # whose quota is their own
    db.writing(jobs.cancel, "bob", other.id)


def test_only_what_is_queued_counts_and_no_parts(db: Database) -> None:
    settings = Settings(quota_queued_jobs=1)
    submit(db, settings)
    assert refusal(db, settings).code == "quota_exceeded"
    claim = claimed(db)
    db.writing(parts.fan_out, claim, {"stage": 1, "parts": [{"n": n} for n in range(5)]})
    waiting = submit(db, settings)
    assert refusal(db, settings).code == "quota_exceeded"
    db.writing(jobs.cancel, OWNER, waiting.id)
    submit(db, settings)
    # What is begun already is never refused: a join, a lost lease, parts.
    part = claimed(db)
    assert part.parent_id == claim.job_id
    db.writing(queue.give_back, part)
    assert refusal(db, settings).code == "quota_exceeded"


def test_a_retry_is_a_job_like_any_other(db: Database, sentences: Sentences) -> None:
    settings = Settings(quota_queued_jobs=1)
    old = submit(db, settings)
    db.writing(jobs.cancel, OWNER, old.id)
    submit(db, settings)
    with db.write() as session, sentences.raises(TooMany):
        jobs.retry(session, settings, OWNER, old.id)


def test_bytes_are_counted_by_rows(db: Database, sentences: Sentences) -> None:
    add_dataset(db, bytes=100, table_bytes=50)
    add_dataset(db, bytes=7, deleted_at=1.0)  # in the trash
    add_dataset(db, bytes=1000, owner="bob")
    with db.read() as session:
        assert repository.stored_bytes(session, OWNER) == 157
        assert repository.stored_bytes(session, "nobody") == 0
    settings = Settings(quota_bytes=200)
    submit(db, settings, adds_bytes=43)
    refused = refusal(db, settings, adds_bytes=44)
    assert refused.status == 429
    sentences(refused)
    sentences(refusal(db, Settings(quota_bytes=100)).detail)
    with db.read() as session:
        with raises(TooMany, 200, 157, 44):
            quotas.check(session, settings, OWNER, 44)
        quotas.check(session, settings, OWNER, 43)
        quotas.check(session, Settings(quota_bytes=157), OWNER)  # it adds nothing


def test_pairs_count_as_they_came_and_as_they_are_read(db: Database) -> None:
    for table_bytes in (None, 20):
        dataset = add_dataset(db, bytes=100)
        pairs = DatasetPairs(
            id=dataset.id,
            status=DatasetStatus.PROCESSING,
            job_id=new_id("job"),
            content_type="text/csv",
            upload_key="uploads/ab/abce",
            bytes=5,
            table_bytes=table_bytes,
            sha256="abcd",
            errors=[],
            created_at=1.5,
        )
        with db.write() as session:
            session.add(pairs)
    with db.read() as session:
        assert repository.stored_bytes(session, OWNER) == 2 * 105 + 20


def test_scores_count_without_an_upload_and_without_a_result(db: Database) -> None:
    of_owner = {"a": (None, None), "b": (30, None), "c": (None, 7), "d": (30, 7)}
    with db.write() as session:
        for owner, (upload_bytes, result_bytes) in of_owner.items():
            scores = BatchScore(
                id=new_id("bat"),
                owner=owner,
                job_id=new_id("job"),
                created_at=1.5,
                model_id=new_id("mdl"),
                model_name="churn",
                model_version=1,
                read_options={},
                upload_bytes=upload_bytes,
                result_bytes=result_bytes,
            )
            session.add(scores)
    with db.read() as session:
        stored = [repository.stored_bytes(session, owner) for owner in of_owner]
    assert stored == [0, 30, 7, 37]


def test_the_queue_of_all_owners_is_bounded(db: Database) -> None:
    settings = Settings(max_queued_jobs=2)
    submit(db, settings), submit(db, settings, owner="bob")
    refused = refusal(db, settings, owner="cleo")
    assert isinstance(refused, Unavailable)
    assert (refused.status, refused.code) == (503, "queue_full")
    assert int(refused.headers["Retry-After"]) > 0
    claimed(db)
    submit(db, settings, owner="cleo")


def test_one_owner_cannot_fill_the_queue_of_all(db: Database) -> None:
    settings = Settings(max_queued_jobs=20)
    while isinstance(refused := at_once(functools.partial(submit, db, settings))[0], Job):
        pass
    assert isinstance(refused, TooMany)
    assert (refused.code, refused.errors[0]["limit"]) == ("quota_exceeded", 10)
    for _ in range(5):
        submit(db, settings, owner="bob")
    assert refusal(db, settings, owner="bob").errors[0]["limit"] == 5
    submit(db, settings, owner="cleo")


def test_nothing_is_accepted_where_the_disk_is_nearly_full(db: Database) -> None:
    refused = refusal(db, Settings(min_free_bytes=2**62))
    assert isinstance(refused, OutOfSpace)
    assert (refused.status, refused.code) == (507, "out_of_space")
    assert f" {2**62} bytes" in refused.detail
    assert int(refused.headers["Retry-After"]) > 0


class TestUsageCache:
    def test_simultaneous_requests_of_an_owner_share_one_measurement(self) -> None:
        callers = 30
        entered = threading.Semaphore(0)
        measured: list[str] = []

        def reading(_: object, owner: str) -> Any:
            measured.append(owner)
            if len(measured) == 1:
                for _each in range(callers):
                    assert entered.acquire(timeout=patience())
            return quotas.Usage(1, 2)

        cache = UsageCache(cast(Any, reading), Settings())

        def ask() -> quotas.Usage:
            entered.release()
            return cache.get(OWNER)

        with ThreadPoolExecutor(callers) as pool:
            asked = [pool.submit(ask) for _ in range(callers)]
            assert {each.result(60.0) for each in asked} == {quotas.Usage(1, 2)}
        assert measured == [OWNER]

    def test_after_a_failure_it_is_measured_again(self) -> None:
        answers: list[Any] = [Unavailable("the database is unavailable"), quotas.Usage(1, 2)]

        def reading(*_: object) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        cache = UsageCache(cast(Any, reading), Settings())
        with pytest.raises(Unavailable):
            cache.get(OWNER)
        assert cache.get(OWNER) == cache.get(OWNER) == quotas.Usage(1, 2)

    def test_a_deleted_file_does_not_count_any_more(self, db: Database) -> None:
        dataset = add_dataset(db, bytes=100)
        cache = UsageCache(db.reading, Settings(quota_bytes=99))
        with pytest.raises(TooMany):
            cache.quota_check_for(OWNER)()
        with db.write() as session:
            session.execute(delete(Dataset).where(Dataset.id == dataset.id))
        cache.quota_check_for(OWNER)()

    def test_files_and_rows_are_named(self, sentences: Sentences) -> None:
        usage = quotas.Usage(157, quotas.FREE_ROW_BYTES + 50)
        settings = Settings()
        with sentences.raises(TooMany) as caught:
            quotas.check_usage(settings, 200, usage)
        assert caught.value.errors[0]["value"] == 207
        quotas.check_usage(settings, 200, quotas.Usage(157, quotas.FREE_ROW_BYTES + 43))


class TestRunning:
    def test_an_owner_at_the_quota_is_passed_over(self, db: Database) -> None:
        settings = Settings(quota_running_jobs=1)
        first, second = submit(db, settings, priority=5), submit(db, settings, priority=5)
        others = submit(db, settings, owner="bob")
        running = claimed(db, settings)
        assert running.job_id == first.id
        assert claimed(db, settings).job_id == others.id  # though it matters less and came later
        assert not db.reading(queue.has_work, settings)
        assert db.reading(queue.has_work, Settings(quota_running_jobs=2))
        assert db.writing(queue.claim, settings, "wrk_a") is None
        finish(db, running)
        assert db.reading(queue.has_work, settings)
        assert claimed(db, settings).job_id == second.id

    def test_parts_count_and_the_join_still_comes(self, db: Database) -> None:
        settings = Settings(quota_running_jobs=2)
        job = submit(db, settings)
        db.writing(
            parts.fan_out,
            claimed(db, settings),
            {"stage": 1, "parts": [{"n": n} for n in range(3)]},
        )
        held = [claimed(db, settings), claimed(db, settings)]
        assert db.writing(queue.claim, settings, "wrk_a") is None
        while held:
            with db.write() as session:
                parts.finish(session, held.pop(), {}, {})
            if (claim := db.writing(queue.claim, settings, "wrk_a")) is not None:
                held.append(claim)
                if claim.job_id == job.id:
                    finish(db, held.pop())
        assert db.reading(jobs.find, OWNER, job.id).state == "succeeded"

    def test_many_claims_at_once_do_not_overshoot(self, db: Database) -> None:
        settings = Settings(quota_running_jobs=3)
        for n in range(20):
            change(db, submit(db, settings, owner=f"owner{n % 2}").id, created_at=float(n))
        claims = at_once(
            *(functools.partial(db.writing, queue.claim, settings, f"wrk_{n}") for n in range(16))
        )
        owners = Counter(claim.owner for claim in claims if claim is not None)
        assert owners == {"owner0": 3, "owner1": 3}
