"""Work of a dispatcher in a process of its own, which is killed at a failpoint. It is forked from one that has imported
all of it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

from app.operations import seal_repository
from app.operations.audit_seals import Sealer
from app.operations.deliveries import Courier
from app.platform import audit_keys, failpoints
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from app.webhooks.sending import Sender
from tests.waiting import patience

_FORKS = multiprocessing.get_context("forkserver")


def work(seam: str, what: Callable[..., None], *given: object) -> int:
    """Do it in another process, which may be armed with faults; returns its exit code."""
    process = _FORKS.Process(target=_run, args=(seam, what, *given))
    process.start()
    process.join(patience())
    assert process.exitcode is not None, f"still at work: {seam}"
    return process.exitcode


def _run(seam: str, what: Callable[..., None], *given: object) -> None:
    failpoints.armed = failpoints.parse(seam)  # the variable was read at the import
    what(*given)


def deliver(url: str, keys: Path) -> None:
    """Deliver events to webhooks until nothing is due; `keys` is the file with the keys of stored secrets."""
    settings = Settings(secrets_keys_file=keys, webhook_networks="127.0.0.0/8")
    sender = Sender(settings.networks_of_webhooks, seconds=patience())
    courier = Courier(Database(url), settings, sender)
    while courier.start_due():
        courier.wait(patience())


def seal(url: str, folder: Path, seconds: float) -> None:
    """Seal the audit log, record its head, and remove entries that are older than so many seconds.

    `folder` has the key and the blobs.
    """
    db, keys = Database(url), audit_keys.read_keys(folder / audit_keys.FILE)
    sealer = Sealer(db, FolderStore(folder / "blobs"), keys)
    sealer.seal()
    sealer.record_head()
    while db.writing(seal_repository.prune, keys, seconds):
        pass
