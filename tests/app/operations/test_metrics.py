"""Metrics from the database, on SQLite and PostgreSQL; permits and look-ups of models."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from app.access import repository as quotas
from app.jobs import service as jobs
from app.operations import metrics, repository
from app.operations.backup import BackupError, back_up
from app.operations.housekeeping import Housekeeper
from app.operations.metrics import MAX_OWNERS, DatabaseCollector
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.sql import read_clock
from app.platform.tables import Dataset
from tests.app.child_job_steps import divided
from tests.app.live_service import OWNER as OURS
from tests.app.live_service import STRANGER, Service, running
from tests.app.queue_steps import OWNER, add_dataset, change, claimed, hear_nothing, submit
from tests.long_form import long_form
from tests.waiting import eventually, patience

Samples = dict[tuple[str, ...], float]


def collected(db: Database, settings: Settings | None = None) -> dict[str, Samples]:
    """The samples of a new collector: by the name of the metric, then by the labels' values."""
    registry = CollectorRegistry()
    registry.register(DatabaseCollector(db, settings or Settings()))
    found: dict[str, Samples] = {}
    for family in registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def exported(client: httpx.Client, name: str) -> Samples:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        tuple(sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def test_the_oldest_job_counts_by_kind_and_priority(db: Database) -> None:
    assert "rankwright_queue_oldest_seconds" not in collected(db)
    for kind, priority, age in (
        ("train", 0, 500),
        ("train", 0, 50),
        ("train", 7, 60),
        ("train", -100, 900),
        ("ingest", 0, 5),
    ):
        job = submit(db, kind=kind, priority=priority)
        change(db, job.id, created_at=job.created_at - age)
    later = submit(db, kind="score")
    change(db, later.id, not_before=time.time() + 3600)
    found = collected(db)["rankwright_queue_oldest_seconds"]
    lanes: Samples = {("train", "normal"): 500, ("train", "high"): 60, ("train", "low"): 900}
    lanes[("ingest", "normal")] = 5
    assert found.keys() == lanes.keys()
    assert all(lanes[lane] <= age < lanes[lane] + 100 for lane, age in found.items())


def test_parts_are_no_jobs_of_their_own(db: Database) -> None:
    job = divided(db, n=3)  # its parts are queued
    found = collected(db)
    assert "rankwright_queue_oldest_seconds" not in found
    assert found["rankwright_jobs"] == {("train", "waiting"): 1, ("train_part", "queued"): 3}
    db.writing(jobs.cancel, OWNER, job.id)
    found = collected(db)
    assert found["rankwright_jobs"][("train_part", "cancelled")] == 3
    ended = found["rankwright_jobs_ended_total"]
    assert ended["ingest", "failed"] == 0  # else nobody would see the first failure
    assert {labels: count for labels, count in ended.items() if count} == {
        ("train", "cancelled"): 1
    }


def test_jobs_without_a_lease_are_counted(db: Database) -> None:
    submit(db)
    claimed(db)
    assert collected(db)["rankwright_leases_expired"] == {(): 0}
    hear_nothing(db)
    assert collected(db)["rankwright_leases_expired"] == {(): 1}


def test_a_claim_says_how_long_the_job_has_waited(db: Database) -> None:
    job = submit(db)
    change(db, job.id, created_at=job.created_at - 300)
    waited = claimed(db).waited_seconds
    assert waited is not None
    assert 300 <= waited < 400
    change(db, job.id, state="queued")
    assert claimed(db).waited_seconds is None  # the second attempt
    change(db, job.id, state="cancelled")
    due = submit(db)
    now = db.reading(read_clock)
    change(db, due.id, created_at=now - 300, not_before=now - 30)
    waited = claimed(db).waited_seconds
    assert waited is not None
    assert 30 <= waited < 130


def test_the_bytes_of_the_owners_with_the_most_are_named(db: Database) -> None:
    assert collected(db)["rankwright_other_owners_stored_bytes"] == {(): 0}
    for number in range(MAX_OWNERS + 2):
        add_dataset(db, owner=f"owner{number:02}", bytes=10 * (number + 1), table_bytes=1)
    add_dataset(db, owner="owner00", bytes=500)
    found = collected(db)
    named = found["rankwright_owner_stored_bytes"]
    assert len(named) == MAX_OWNERS
    assert named["owner00",] == 511
    assert {("owner01",), ("owner02",)}.isdisjoint(named)
    assert found["rankwright_other_owners_stored_bytes"] == {(): 21 + 31}
    with db.read() as session:
        for (owner,), size in named.items():
            assert quotas.stored_bytes(session, owner) == size


def test_the_size_and_the_connections_of_the_database(db: Database) -> None:
    found = collected(db)
    assert found["rankwright_database_size_bytes"][()] > 100_000
    connections = "rankwright_database_connections", "rankwright_database_connections_max"
    if db.dialect == "sqlite":
        assert found.keys().isdisjoint(connections)
    else:
        in_use, most = (found[name][()] for name in connections)
        assert 1 <= in_use < most


def test_without_a_database_only_disks_are_shown(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'none' / 'rankwright.db'}")
    assert set(collected(db)) <= {"rankwright_disk_free_bytes"}


def test_while_the_database_hangs_a_scrape_has_the_last_values(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectorRegistry()
    registry.register(DatabaseCollector(db, Settings()))

    def shown() -> tuple[float | None, float | None]:
        names = ("rankwright_workers", "rankwright_metrics_timestamp_seconds")
        workers, at = (registry.get_sample_value(name) for name in names)
        return workers, at

    before = shown()
    assert before[0] == 0.0
    goes_on = threading.Event()
    monkeypatch.setattr(metrics, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(db, "reading", lambda *_: goes_on.wait(patience()))
    assert shown() == shown() == before
    goes_on.set()


def test_what_is_slow_is_measured_once_for_all_scrapes(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    real: Callable[..., object] = quotas.stored_bytes_by_owner

    def measure(*arguments: object) -> object:
        measured.append(1)
        return real(*arguments)

    monkeypatch.setattr(quotas, "stored_bytes_by_owner", measure)
    registry = CollectorRegistry()
    registry.register(DatabaseCollector(db, Settings()))
    threads = [threading.Thread(target=lambda: list(registry.collect())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert measured == [1]


# --- upkeep -----------------------------------------------------------------------------------------


def successes(db: Database) -> dict[str, float]:
    found = collected(db)
    return {
        what: found[f"rankwright_{what}_success_timestamp_seconds"][()]
        for what in ("housekeeping", "backup")
    }


@long_form
def test_a_round_of_housekeeping_that_ends_is_recorded(db: Database, tmp_path: Path) -> None:
    assert successes(db) == {"housekeeping": 0, "backup": 0}
    stop = threading.Event()
    keeper = Housekeeper(db, FolderStore(tmp_path / "blobs"), Settings(), stop)
    stop.set()
    keeper.round()  # it may have left things out
    assert successes(db)["housekeeping"] == 0
    stop.clear()
    keeper.round()
    first = successes(db)
    assert abs(first["housekeeping"] - db.reading(read_clock)) < 100
    assert first["backup"] == 0
    keeper.round()
    assert successes(db)["housekeeping"] > first["housekeeping"]


@long_form
def test_a_complete_backup_is_recorded_and_no_other(
    service: Service, client: httpx.Client, tmp_path: Path
) -> None:
    name = "rankwright_backup_success_timestamp_seconds"
    dataset_id = service.upload(client)
    settings, db = service.settings, service.context.db
    with pytest.raises(BackupError):
        back_up(settings, tmp_path / "none" / "backup")
    with db.read() as session:
        upload = service.blobs.path(session.get_one(Dataset, dataset_id).upload_key)
    content = upload.read_bytes()
    upload.unlink()
    assert back_up(settings, tmp_path / "lacking").missing
    assert exported(client, name) == {(): 0}
    upload.write_bytes(content)
    assert not back_up(settings, tmp_path / "today").missing
    assert abs(exported(client, name)[()] - db.reading(read_clock)) < 100


# --- permits, models --------------------------------------------------------------------------------


def test_permits_in_use_and_refused_are_counted_by_limit(settings: Settings) -> None:
    with running(settings) as service:
        client = service.client(service.key())
        in_use = exported(client, "rankwright_permits_in_use")
        limits = {"requests", "anonymous_requests", "uploads", "waiters", "computations", "tables"}
        assert {limit for (limit,) in in_use} == limits
        assert in_use["requests",] == 1  # this one
        assert sum(in_use.values()) == 1
        assert set(exported(client, "rankwright_permits_refused_total").values()) == {0}
        with service.computing():
            taken = exported(client, "rankwright_permits_in_use")["computations",]
            assert taken == service.context.computations.taken > 0
            turns = service.context.computations
            refusal = turns.refusal(STRANGER)
            assert refusal is not None
            with pytest.raises(type(refusal)):
                turns.acquire(STRANGER)
        assert exported(client, "rankwright_permits_refused_total")["computations",] == 1
        assert exported(client, "rankwright_permits_in_use")["computations",] == 0


@long_form
def test_look_ups_of_models_that_hit_and_miss_are_counted(settings: Settings) -> None:
    with running(settings) as service:
        client = service.client(service.key())

        def lookups() -> tuple[float, float]:
            found = exported(client, "rankwright_model_cache_lookups_total")
            return found["hit",], found["miss",]

        assert lookups() == (0, 0)
        service.train(client, service.upload(client))
        model_id = client.get("/v1/models/churn").json()["id"]
        row = "score?age=1&income=1"
        for ref, expected in (("churn", (0, 1)), ("churn", (1, 1)), (model_id, (2, 1))):
            assert client.get(f"/v1/models/{ref}/{row}").status_code == 200
            assert lookups() == expected
        for n in range(5):  # of these, some are by the quick way
            assert client.get(f"/v1/models/{model_id}/{row}").status_code == 200
            assert lookups() == (3 + n, 1)
        service.app.state.models.refresh(OURS, model_id)  # in the background: no request's
        assert client.get(f"/v1/models/nothing/{row}").status_code == 404
        assert lookups() == (7, 1)


def test_connections_in_use_are_counted(settings: Settings) -> None:
    with running(settings) as service:
        client = service.client(service.key())

        def in_use() -> float:
            return exported(client, "rankwright_database_pool_in_use")[()]

        eventually(lambda: in_use() == 0)  # others may use some for a moment
        with service.context.db.read() as session:
            repository.ping(session)
            eventually(lambda: in_use() == 1)
        eventually(lambda: in_use() == 0)
