"""Scheduled refreshes of an object of a real S3 server (moto), with their jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import update

from app.operations.scheduling import Scheduler
from app.platform.sql import db_now
from app.platform.tables import Schedule
from tests.app.live_service import OWNER, Service, table

if TYPE_CHECKING:
    from tests.buckets import BucketServer

URL = "s3://blobs/exports/people.csv"


@pytest.fixture(scope="module")
def sourced(
    start: Callable[..., Service],
    bucket_server: BucketServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Service:
    store = {
        "driver": "s3",
        "owners": [OWNER],
        "prefix": "s3://blobs/exports/",
        "endpoint": bucket_server.url,
        "credentials_file": str(bucket_server.credentials),
    }
    file = tmp_path_factory.mktemp("connections") / "connections.json"
    file.write_text(json.dumps({"exports": store}))
    return start(connections_file=file)


def test_each_run_makes_the_next_version_and_a_failed_one_leaves_the_last(
    sourced: Service, bucket_server: BucketServer
) -> None:
    import obstore

    from app.platform.object_store import open_bucket

    bucket_server.clear()
    store = open_bucket(bucket_server.bucket(prefix=""))
    client = sourced.client(sourced.key())
    obstore.put(store, "exports/people.csv", table().encode())
    fields = {"name": "people", "label": "left", "positive": "yes"}
    first = client.post("/v1/datasets", json={"source": {"url": URL}, **fields}).json()["id"]
    sourced.work()
    asked = {"dataset_id": first, "cron": "0 5 * * *"}
    id_ = client.post("/v1/schedules", json=asked).json()["id"]

    obstore.put(store, "exports/people.csv", table(200, seed=1).encode())
    ran = run(sourced, client, id_)
    second = client.get(f"/v1/datasets/{ran['last_dataset_id']}").json()
    assert (second["rows"], second["version"], second["refresh_of"]) == (200, 2, first)
    assert (ran["last_job_state"], ran["dataset_id"]) == ("succeeded", second["id"])

    unchanged = run(sourced, client, id_)
    none = client.get(f"/v1/datasets/{unchanged['last_dataset_id']}").json()
    assert (none["status"], none["rows"], none["refresh_of"]) == ("unchanged", None, second["id"])
    assert (unchanged["last_job_state"], unchanged["dataset_id"]) == ("succeeded", second["id"])
    job = client.post(
        "/v1/jobs", json={"dataset_id": none["id"], "name": "m", "algorithm": {"name": "rankboost"}}
    )
    assert (job.status_code, job.json()["code"]) == (409, "dataset_not_ready")

    obstore.put(store, "exports/people.csv", b"other,columns\n1,2\n")
    failed = run(sourced, client, id_)
    assert (failed["last_job_state"], failed["last_error"]) == ("failed", None)
    assert failed["dataset_id"] == second["id"]

    obstore.put(store, "exports/people.csv", table(150, seed=2).encode())
    last = client.get(f"/v1/datasets/{run(sourced, client, id_)['dataset_id']}").json()
    assert (last["rows"], last["refresh_of"]) == (150, second["id"])

    assert client.delete(f"/v1/datasets/{last['id']}").is_success
    paused = run(sourced, client, id_, queued=0)
    assert (paused["paused_reason"], paused["dataset_id"]) == ("dataset_deleted", last["id"])


def run(
    sourced: Service, client: httpx.Client, schedule_id: str, *, queued: int = 1
) -> dict[str, Any]:
    """Let a due time come, and do the job; returns the schedule."""
    db = sourced.context.db
    with db.write() as session:
        session.execute(update(Schedule).values(due_at=db_now() - 1))
    assert Scheduler(db, sourced.context.blobs, sourced.settings).run_due() == queued
    sourced.work()
    found: dict[str, Any] = client.get(f"/v1/schedules/{schedule_id}").json()
    return found
