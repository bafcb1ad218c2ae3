"""A worker within one process, forked from one that has imported everything: it is killed at a seam in no time."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Mapping
from typing import Any, cast

from app.jobs import queue
from app.platform import failpoints
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from tests.waiting import patience
from workers.attempt import Attempt
from workers.child import Orders, run_job
from workers.fit_process import FitProcess, Message

# Not this module: what is imported beforehand is looked for in the repository's root. All that a first job would import
# is, else each of these processes would take two seconds for it.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["app.science", "workers.attempt", "workers.child"])


def work(settings: Settings, seam: str = "") -> int:
    """Work until there is nothing to do, or until the process dies at the seam; returns its exit code."""
    url = settings.sqlalchemy_url
    process = _FORKS.Process(target=_serve, args=(url, settings.model_dump(), seam))
    process.start()
    process.join(patience())
    assert process.exitcode is not None, f"still at work: {seam}"
    return process.exitcode


def _serve(url: str, given: dict[str, Any], seam: str) -> None:
    failpoints.armed = failpoints.parse(seam)  # the variable was read at the import
    settings = Settings.model_validate(given | {"database_url": url})
    db, blobs = Database(url), FolderStore(settings.blob_dir)
    process = cast(FitProcess, _FitHere())
    while (claim := db.writing(queue.claim, settings, "wrk_mortal")) is not None:
        attempt = Attempt(
            claim,
            process,
            db=db,
            blobs=blobs,
            settings=settings,
            memory_bytes=None,
            on_long_wait=lambda: None,
            stopping=threading.Event(),
        )
        attempt.run()
    db.close()


class _FitHere:
    """Runs each job when it is handed over, and has the answer ready."""

    def start_job(self, payload: Mapping[str, Any], memory_bytes: int | None) -> None:
        message = json.loads(json.dumps({"payload": payload, "memory_bytes": memory_bytes}))
        self._answer = json.loads(json.dumps(run_job(message, lambda message: None, Orders())))

    def receive(self, timeout: float) -> Message:
        answer: Message = self._answer
        return answer
