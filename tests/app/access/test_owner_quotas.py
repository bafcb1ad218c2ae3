"""The table of quotas: limits of single owners, which replace those of the settings."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import httpx
import pytest
from sqlalchemy import delete

from app.access import quotas, repository
from app.access import service as keys
from app.access.quotas import Limits
from app.access.usage import UsageCache
from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.kinds import Claim
from app.models import aliases
from app.platform.callers import Caller
from app.platform.database import Database
from app.platform.errors import Invalid, TooMany
from app.platform.settings import Settings
from app.platform.tables import Dataset, DatasetStatus, Job, JobState, Model, ModelAlias
from tests.app.live_service import OWNER as OURS
from tests.app.live_service import STRANGER, Service, table
from tests.app.queue_steps import (
    OWNER,
    add_dataset,
    add_model,
    at_once,
    change,
    claimed,
    finish,
    submit,
)
from tests.app.refusals import refused
from tests.sentences import Sentences


def limit(db: Database, owner: str = OWNER, **limits: int) -> None:
    """Set the limits of an owner."""
    db.writing(quotas.replace, owner, Limits(**limits))


def exceeded(error: TooMany) -> tuple[str, int, int]:
    """The quota, limit and value that a refusal names."""
    assert (error.status, error.code) == (429, "quota_exceeded")
    assert int(error.headers["Retry-After"]) > 0
    (found,) = error.errors
    return found["quota"], found["limit"], found["value"]


def test_a_limit_of_an_owner_replaces_that_of_the_settings(db: Database) -> None:
    settings = Settings(quota_queued_jobs=1, quota_bytes=10)
    limit(db, queued_jobs=2, bytes=50)
    submit(db, settings), submit(db, settings, adds_bytes=50)
    with pytest.raises(TooMany) as caught:
        submit(db, settings)
    assert exceeded(caught.value) == ("queued_jobs", 2, 2)
    submit(db, settings, owner="bob")
    with pytest.raises(TooMany) as caught:
        submit(db, settings, owner="bob")
    assert exceeded(caught.value) == ("queued_jobs", 1, 1)
    limit(db)  # no limits of its own: those of the settings again
    assert db.reading(repository.find_quota, OWNER) is None
    with pytest.raises(TooMany) as caught:
        submit(db, settings)
    assert exceeded(caught.value) == ("queued_jobs", 1, 2)


def test_of_trainings_at_once_no_more_are_accepted_than_models_are_left(
    db: Database, sentences: Sentences
) -> None:
    add_model(db)
    limit(db, models=4)
    answers = at_once(*[functools.partial(submit, db)] * 16)
    assert Counter(map(type, answers)) == {Job: 3, TooMany: 13}
    error = next(each for each in answers if isinstance(each, TooMany))
    assert exceeded(error) == ("models", 4, 4)
    sentences(error)
    submit(db, kind="evaluate")  # makes no model
    submit(db, owner="bob")


def test_models_are_counted_with_trainings_and_trash_and_freed_by_deletion(db: Database) -> None:
    trashed = add_model(db, deleted_at=1.0)
    limit(db, models=2)
    job = submit(db)
    claim = claimed(db)
    with pytest.raises(TooMany):
        submit(db)
    finish(db, claim)  # its model exists from the same transaction on
    add_model(db)
    with pytest.raises(TooMany):
        submit(db)
    with db.write() as session:
        session.execute(delete(Model).where(Model.id == trashed.id))
    again = submit(db)
    db.writing(jobs.cancel, OWNER, again.id)
    submit(db)  # a cancelled job makes none
    with pytest.raises(TooMany):
        db.writing(jobs.retry, Settings(), OWNER, again.id)
    assert job.id != again.id


def test_a_lower_limit_only_blocks_what_is_new(db: Database) -> None:
    first, second = submit(db), submit(db)
    limit(db, models=0, queued_jobs=0)
    with pytest.raises(TooMany):
        submit(db)
    for job in (first, second):
        claim = claimed(db)
        assert claim.job_id == job.id
        finish(db, claim)


def test_of_aliases_made_at_once_no_more_than_allowed(db: Database, sentences: Sentences) -> None:
    model = add_model(db)
    limit(db, aliases=3)

    def set_alias(number: int) -> bool:
        with db.write() as session:
            return aliases.set_alias(
                session, OWNER, "churn", f"a{number}", model.id, if_revision=None
            )[1]

    answers = at_once(*(functools.partial(set_alias, number) for number in range(12)))
    refusals = [each for each in answers if isinstance(each, TooMany)]
    assert (answers.count(True), len(refusals)) == (3, 9)
    assert exceeded(refusals[0]) == ("aliases", 3, 3)
    sentences(refusals[0])
    with db.read() as session:
        name = session.query(ModelAlias.alias).order_by(ModelAlias.alias).first()
    assert name is not None
    with db.write() as session:  # one that exists may be moved, and one that is deleted is free
        aliases.set_alias(session, OWNER, "churn", name[0], model.id, if_revision=1)
    with db.write() as session:
        aliases.remove_alias(session, OWNER, "churn", name[0], if_revision=2)
    assert set_alias(100)
    with pytest.raises(TooMany), db.write() as session:  # restoring creates it again
        aliases.restore(
            session, OWNER, "churn", name[0], 1, reason=None, author=None, if_revision=3
        )


def test_of_keys_made_at_once_no_more_than_allowed(db: Database, sentences: Sentences) -> None:
    admin = Caller(OWNER, frozenset({"admin"}))
    first, _ = db.writing(keys.create, OWNER, "first", ["admin"])
    limit(db, keys=4)

    def make() -> None:
        db.writing(keys.create, OWNER, "more", ["read"], by=admin)

    answers = at_once(*[make] * 12)
    refusals = [each for each in answers if isinstance(each, TooMany)]
    assert len(refusals) == 9
    assert exceeded(refusals[0]) == ("keys", 4, 4)
    sentences(refusals[0])
    db.writing(keys.rotate, OWNER, first.id, 60.0)  # a leaked key is replaced in any case
    db.writing(keys.create, OWNER, "by the operator of the server", ["admin"])
    assert db.reading(repository.usable_keys, OWNER) == 6
    limit(db, keys=6)
    assert isinstance(at_once(make)[0], TooMany)
    db.writing(keys.revoke, OWNER, first.id)
    make()


def read_table(db: Database, rows: int, owner: str = OWNER) -> str:
    """Claim the job of a new dataset, and complete it with so many rows; returns the dataset's id."""
    dataset = add_dataset(db, owner=owner)
    job = submit(db, owner=owner, kind="ingest", spec={"dataset_id": dataset.id})
    with db.write() as session:
        found = session.get(Dataset, dataset.id)
        assert found is not None
        found.job_id = job.id
    return dataset.id


def complete(db: Database, claim: Claim, rows: int) -> bool:
    """Complete the job of a dataset as a worker does, or end it as a failure."""
    from app.jobs.execution import complete_output, problem_of
    from app.jobs.kinds import PublishedOutput

    made = PublishedOutput({"rows": rows, "table_key": "tables/1", "table_bytes": 1})
    try:
        db.writing(complete_output, claim, {}, made)
    except TooMany as error:
        problem, is_final = problem_of(error)
        assert is_final
        db.writing(queue.fail, claim, problem)
        return False
    return True


def test_of_tables_read_at_once_no_more_rows_than_allowed(db: Database) -> None:
    limit(db, dataset_rows=25)
    ids = {read_table(db, 10) for _ in range(5)}
    claims = [claimed(db) for _ in range(5)]
    answers = at_once(*(functools.partial(complete, db, claim, 10) for claim in claims))
    assert Counter(answers) == {True: 2, False: 3}
    with db.read() as session:
        found = [session.get(Dataset, each) for each in ids]
        states = Counter(each.status for each in found if each is not None)
        assert states == {DatasetStatus.READY: 2, DatasetStatus.INVALID: 3}
        invalid = next(each for each in found if each and each.status == DatasetStatus.INVALID)
        assert invalid.errors[0]["quota"] == "dataset_rows"
        assert repository.dataset_rows(session, OWNER) == 20
    read_table(db, 6)
    assert not complete(db, claimed(db), 6)
    read_table(db, 5)
    assert complete(db, claimed(db), 5)
    with pytest.raises(TooMany) as caught:  # a table has at least one row
        read_table(db, 1)
    assert exceeded(caught.value) == ("dataset_rows", 25, 25)
    with db.write() as session:
        session.execute(delete(Dataset).where(Dataset.status == DatasetStatus.READY))
    read_table(db, 1)


def test_running_jobs_of_one_owner_wait_for_its_own_limit(db: Database) -> None:
    limit(db, running_jobs=1)
    for number in range(6):
        job = submit(db, owner=(OWNER, "bob")[number % 2])
        change(db, job.id, created_at=float(number))
    claims = at_once(
        *(functools.partial(db.writing, queue.claim, Settings(), f"wrk_{n}") for n in range(8))
    )
    owners = Counter(claim.owner for claim in claims if isinstance(claim, Claim))
    assert owners == {OWNER: 1, "bob": 3}
    assert not db.reading(queue.has_work, Settings())
    assert db.reading(repository.owners_at_limit, "running_jobs", None) == 1
    assert db.reading(repository.owners_at_limit, "running_jobs", 3) == 2
    assert db.reading(repository.owners_at_limit, "queued_jobs", None) is None
    limit(db, running_jobs=2)
    assert claimed(db).owner == OWNER


def test_the_limit_of_bytes_is_read_again(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.access.usage.LIMIT_KNOWN_SECONDS", 0.0)
    add_dataset(db, bytes=100)
    cache = UsageCache(db.reading, Settings())
    cache.quota_check_for(OWNER)()
    limit(db, bytes=99)
    with pytest.raises(TooMany) as caught:
        cache.quota_check_for(OWNER)()
    assert exceeded(caught.value) == ("bytes", 99, 100)
    limit(db, bytes=100)
    cache.quota_check_for(OWNER)()


def test_an_owner_s_name_is_checked(db: Database) -> None:
    with pytest.raises(Invalid):
        limit(db, "Ada!", models=1)


def limits_of(answer: httpx.Response) -> dict[str, int]:
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return {
        name: value
        for name, value in body.items()
        if name not in ("owner", "updated_at") and value is not None
    }


def test_an_operator_reads_and_sets_quotas(service: Service) -> None:
    operator = service.client(service.key("ops", ["operator", "admin"]))
    ours = service.client(service.key(scopes=["read", "admin"]))
    assert limits_of(operator.get(f"/v1/quotas/{OURS}")) == {}
    assert operator.get(f"/v1/quotas/{OURS}").json()["updated_at"] is None
    put = operator.put(f"/v1/quotas/{OURS}", json={"models": 3, "keys": 2, "bytes": 2**53})
    assert limits_of(put) == {"models": 3, "keys": 2, "bytes": 2**53}
    assert put.json() == operator.get(f"/v1/quotas/{OURS}").json()
    assert [each["owner"] for each in operator.get("/v1/quotas").json()["data"]] == [OURS]
    usage = ours.get("/v1/usage").json()
    assert usage["owner"] == OURS
    assert usage["keys"] == {"used": 1, "limit": 2}
    assert usage["aliases"] == {"used": 0, "limit": None}
    assert operator.get(f"/v1/quotas/{OURS}/usage").json()["keys"] == usage["keys"]
    key = {"name": "more", "scopes": ["read"]}
    once = {"Idempotency-Key": "1"}
    assert ours.post("/v1/keys", json=key, headers=once).status_code == 201
    problem = refused(ours.post("/v1/keys", json=key), 429, "quota_exceeded")
    assert problem["errors"][0]["quota"] == "keys"
    refused(ours.post("/v1/keys/validate", json=key), 429, "quota_exceeded")
    assert ours.post("/v1/keys", json=key, headers=once).status_code == 201  # replayed
    assert limits_of(operator.put(f"/v1/quotas/{OURS}", json={"models": None})) == {}
    assert operator.get("/v1/quotas").json()["data"] == []
    assert ours.post("/v1/keys", json=key).status_code == 201


def test_quotas_are_the_operator_s(service: Service) -> None:
    ours = service.client(service.key(scopes=["read", "train", "score", "admin"]))
    service.key(STRANGER)
    for answer in (
        ours.get("/v1/quotas"),
        ours.get(f"/v1/quotas/{OURS}"),
        ours.get(f"/v1/quotas/{OURS}/usage"),
        ours.put(f"/v1/quotas/{OURS}", json={"models": 1}),
    ):
        refused(answer, 403, "forbidden")
    refused(service.client(service.key(scopes=["score"])).get("/v1/usage"), 403, "forbidden")
    prometheus = service.client(service.key("ops", ["operator"]))
    assert prometheus.get(f"/v1/quotas/{OURS}").status_code == 200
    refused(prometheus.put(f"/v1/quotas/{OURS}", json={"models": 1}), 403, "forbidden")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"models": -1}, "/models"),
        ({"models": 1.5}, "/models"),
        ({"models": "1"}, "/models"),
        ({"models": True}, "/models"),
        ({"bytes": 2**53 + 1}, "/bytes"),
        ({"running_jobs": 0}, "/running_jobs"),
        ({"rows": 1}, "/rows"),
        ({"owner": "acme"}, "/owner"),
    ],
)
def test_bad_limits_are_refused(service: Service, body: Any, pointer: str) -> None:
    operator = service.client(service.key("ops", ["operator", "admin"]))
    problem = refused(operator.put(f"/v1/quotas/{OURS}", json=body), 422, "invalid")
    assert problem["errors"][0]["pointer"] == pointer
    assert operator.get("/v1/quotas").json()["data"] == []


@pytest.mark.parametrize("owner", ["Acme", "a b", "-a", "a" * 64, "%00", "a%0A"])
def test_bad_owners_are_refused(service: Service, owner: str) -> None:
    operator = service.client(service.key("ops", ["operator", "admin"]))
    for answer in (
        operator.get(f"/v1/quotas/{owner}"),
        operator.get(f"/v1/quotas/{owner}/usage"),
        operator.put(f"/v1/quotas/{owner}", json={"models": 1}),
    ):
        assert answer.status_code in {400, 422}


def test_a_table_with_too_many_rows_is_invalid(service: Service) -> None:
    ours, operator = service.client(service.key()), service.client(service.key("ops"))
    operator.put(f"/v1/quotas/{OURS}", json={"dataset_rows": 100})
    sent = ours.post(
        "/v1/datasets?label=left", content=table(), headers={"Content-Type": "text/csv"}
    )
    assert sent.status_code == 202
    service.work()
    found = ours.get(f"/v1/datasets/{sent.json()['id']}").json()
    assert found["status"] == "invalid"
    job = ours.get(f"/v1/jobs/{found['job_id']}").json()
    assert (job["state"], job["error"]["code"]) == (JobState.FAILED, "quota_exceeded")
    assert job["error"]["errors"][0]["detail"] == found["errors"][0]["detail"]
    assert ours.get("/v1/usage").json()["dataset_rows"] == {"used": 0, "limit": 100}
