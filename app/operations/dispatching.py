"""The dispatcher with all that it does: lost jobs, cleaning, audit seals, deliveries, and schedules."""

from __future__ import annotations

from functools import partial

from app.jobs.dispatcher import Dispatcher
from app.operations.audit_seals import Sealer
from app.operations.deliveries import Courier
from app.operations.housekeeping import run_housekeeping
from app.operations.scheduling import Scheduler
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.settings import Settings


def dispatcher_of(db: Database, blobs: BlobStore, settings: Settings) -> Dispatcher:
    """It runs in a process of its own, or in the worker's of `rankwright serve`."""
    housekeeping = partial(run_housekeeping, db, blobs, settings)
    sealer = Sealer(db, blobs, settings.read_audit_keys())
    courier = Courier(db, settings)
    scheduler = Scheduler(db, blobs, settings)
    return Dispatcher(db, settings, housekeeping, sealer.run, courier.run, scheduler.run)
