"""A worker that reads a source: cancelled, stopped and killed while the store hangs, and a store that is away."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from sqlalchemy import select, update

from app.datasets import object_download
from app.datasets import service as datasets
from app.datasets.description import Format
from app.datasets.fields import TableFields
from app.datasets.object_source import SOURCE
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.jobs.fetching import PHASE
from app.platform import catalogue
from app.platform.connections import read_connections
from app.platform.tables import BlobEntry, Dataset, Job
from tests.harness import OWNER, Shop, csv_table, worker
from tests.long_form import long_form
from tests.waiting import eventually, patience
from workers.slots import Slots

if TYPE_CHECKING:
    from tests.buckets import BucketServer

URL = "s3://blobs/exports/people.csv"


class Hanging:
    """A fault of the server: it answers nothing but the first look at the object, until it is released."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()

    def __call__(self, environ: WSGIEnvironment, _: StartResponse) -> Iterable[bytes] | None:
        if environ["REQUEST_METHOD"] == "GET":
            self.asked.set()
            self.released.wait(patience())
        return None


@pytest.fixture
def hanging(bucket_server: BucketServer) -> Iterator[Hanging]:
    hanging = Hanging()
    yield hanging
    hanging.released.set()
    bucket_server.fault = None


@pytest.fixture
def shop(bucket_server: BucketServer, make_shop: Callable[..., Shop], tmp_path: Path) -> Shop:
    import obstore

    from app.platform.object_store import open_bucket

    bucket_server.clear()
    store = open_bucket(bucket_server.bucket(prefix=""))
    obstore.put(store, "exports/people.csv", csv_table(1000))
    connection = {
        "driver": "s3",
        "owners": [OWNER],
        "prefix": "s3://blobs/exports",
        "endpoint": bucket_server.url,
        "credentials_file": str(bucket_server.credentials),
    }
    file = tmp_path / "connections.json"
    file.write_text(json.dumps({"exports": connection}))
    return make_shop(connections_file=file)


def fetch(shop: Shop) -> tuple[str, str]:
    """Create a dataset from the object; returns its id, and that of its job."""
    assert shop.settings.connections_file is not None
    source = SOURCE.describe(read_connections(shop.settings.connections_file), {"url": URL})
    with shop.blobs.writer("uploads") as writer, shop.db.write() as session:
        request = datasets.StoredUpload.of(writer.blob, Format("text/csv", None))
        fields = TableFields(name="people", label="y", positive="1")
        made = datasets.accept_source(session, shop.settings, OWNER, fields, source, request)
        catalogue.commit(session, writer)
        return made.id, made.job_id


def find(shop: Shop, dataset_id: str) -> Dataset:
    return shop.db.reading(datasets.find, OWNER, dataset_id)


def test_a_worker_fetches_and_its_child_reads(
    shop: Shop, make_slots: Callable[[Shop], Slots], bucket_server: BucketServer, hanging: Hanging
) -> None:
    dataset_id, job_id = fetch(shop)
    hanging.released.set()
    bucket_server.fault = hanging
    make_slots(shop)
    assert shop.reaches(job_id, "succeeded").attempt == 1
    dataset = find(shop, dataset_id)
    assert (dataset.status, dataset.rows) == ("ready", 1000)


def test_a_cancel_ends_the_read_of_a_store_that_hangs(
    shop: Shop, make_slots: Callable[[Shop], Slots], bucket_server: BucketServer, hanging: Hanging
) -> None:
    bucket_server.fault = hanging
    slots = make_slots(shop)
    dataset_id, job_id = fetch(shop)
    assert hanging.asked.wait(patience())
    shop.db.writing(jobs.cancel, OWNER, job_id)
    assert shop.ends(job_id).state == "cancelled"
    assert not hanging.released.is_set()
    assert find(shop, dataset_id).status == "invalid"
    hanging.released.set()
    bucket_server.fault = None
    _, after = fetch(shop)
    assert shop.reaches(after, "succeeded").attempt == 1
    assert slots.slots[0].process is not None


def test_a_worker_that_stops_gives_the_job_back(
    shop: Shop, make_slots: Callable[[Shop], Slots], bucket_server: BucketServer, hanging: Hanging
) -> None:
    bucket_server.fault = hanging
    slots = make_slots(shop)
    dataset_id, job_id = fetch(shop)
    assert hanging.asked.wait(patience())
    slots.stop()
    assert (shop.job(job_id).state, shop.job(job_id).attempt) == ("queued", 0)
    hanging.released.set()
    make_slots(shop)
    assert shop.reaches(job_id, "succeeded").attempt == 1
    assert find(shop, dataset_id).status == "ready"


@long_form
def test_a_worker_that_is_killed_leaves_nothing_in_the_catalogue(
    shop: Shop,
    make_slots: Callable[[Shop], Slots],
    bucket_server: BucketServer,
    hanging: Hanging,
    tmp_path: Path,
) -> None:
    bucket_server.fault = hanging
    dataset_id, job_id = fetch(shop)
    with worker(shop.settings, tmp_path) as process:
        assert hanging.asked.wait(patience())
        process.send_signal(signal.SIGKILL)
        process.wait()
    with shop.db.write() as session:
        assert len(session.scalars(select(BlobEntry.key)).all()) == 1  # the request
        session.execute(update(Job).where(Job.id == job_id).values(beaten_at=-1e9))
    assert Reaper(shop.db, shop.settings).reap().requeued == [job_id]
    hanging.released.set()
    make_slots(shop)
    with shop.db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))
    assert shop.reaches(job_id, "succeeded").attempt == 2
    dataset = find(shop, dataset_id)
    assert dataset.status == "ready"
    with shop.db.read() as session:
        kinds = {key.partition("/")[0] for key in session.scalars(select(BlobEntry.key))}
    assert kinds == {"uploads", "tables"}


def test_the_read_reports_its_progress(
    shop: Shop,
    make_slots: Callable[[Shop], Slots],
    bucket_server: BucketServer,
    hanging: Hanging,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With ranges of 1,000 bytes, of which the server answers one at a time and then none."""
    monkeypatch.setattr(object_download, "RANGE_BYTES", 1000)
    monkeypatch.setattr(object_download, "RANGES_AT_ONCE", 1)

    def hang_later(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes] | None:
        if environ.get("HTTP_RANGE", "bytes=0-").startswith("bytes=0-"):
            return None
        return hanging(environ, start)

    bucket_server.fault = hang_later
    make_slots(shop)
    _, job_id = fetch(shop)
    eventually(lambda: shop.job(job_id).progress.get("phase") == PHASE)
    assert 0.0 < shop.job(job_id).progress["fraction"] < 0.5
    hanging.released.set()
    shop.reaches(job_id, "succeeded")
