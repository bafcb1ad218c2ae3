"""The audit of `make chaos` must notice two mutants; and one embedded service is under a short attack."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from tests.app.queue_steps import hear_nothing
from tests.chaos import inside, mutants
from tests.chaos.audit import audit
from tests.chaos.deployments import SHORT_LEASES, Embedded
from tests.chaos.orders import KILL
from tests.chaos.recovery import late, recoveries
from tests.chaos.run import Plan, Run
from tests.chaos.workload import Ledger
from tests.e2e import queue_story
from tests.long_form import long_form
from tests.waiting import patience

SEAMS = ("finish",)


@long_form
def test_killed_at_seams_an_embedded_service_loses_and_doubles_nothing(tmp_path: Path) -> None:
    deployment = Embedded(tmp_path / "service", SHORT_LEASES, None)
    plan = Plan(
        kills=len(SEAMS),
        each=1,
        seconds=150,
        quiet_seconds=100,
        seams=SEAMS,
        assaults=False,
        most_due=2,
        callers=1,
    )
    try:
        report = Run(deployment, plan)()
    finally:
        deployment.close()
    assert report.findings == []
    assert report.fired.keys() == {(seam, KILL) for seam in SEAMS}
    assert report.accepted > 0
    assert report.recovered


def test_the_audit_notices_a_service_without_fencing_and_without_polling(
    tmp_path: Path, sqlite_url: str
) -> None:
    assert _findings(sqlite_url, tmp_path) == []
    subprocess.run(
        [sys.executable, queue_story.__file__, sqlite_url],
        env=os.environ | inside.environment(tmp_path, ["no-fencing", "no-polling"]),
        check=True,
        timeout=patience(),
    )
    told_of_nothing, fenceless = _findings(sqlite_url, tmp_path)
    assert re.findall(r"attempt (\d)", fenceless) == ["1", "2"]
    assert "(compare) is queued" in told_of_nothing


def test_the_audit_is_content_with_the_service_as_it_is(tmp_path: Path, sqlite_url: str) -> None:
    queue_story.tell(sqlite_url)
    assert _findings(sqlite_url, tmp_path) == []


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_every_mutant_finds_its_text(name: str) -> None:
    root = Path(mutants.__file__).parents[2]
    for module, n in Counter(change.module for change in mutants.MUTANTS[name]).items():
        source = (root / module.replace(".", "/")).with_suffix(".py").read_text()
        changes = [change for change in mutants.MUTANTS[name] if change.module == module]
        assert len(changes) == n
        assert mutants.mutate(source, changes) != source


def test_an_orphan_that_runs_again_too_late_is_a_finding(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    settings = Settings()
    with db.write() as session:
        job = jobs.enqueue(session, settings, owner="ada", kind="compare", name="two", spec={})
    assert db.writing(queue.claim, settings, "wrk_dead") is not None
    died_at = time.time() - 100.0
    hear_nothing(db)
    assert Reaper(db, settings).reap().requeued == [job.id]
    assert db.writing(queue.claim, settings, "wrk_next") is not None
    (found,) = recoveries(db, [(41, died_at - 1000.0), (42, died_at)], {42: "wrk_dead"})
    assert (found.job_id, found.first) == (job.id, True)
    assert 100.0 <= found.seconds <= time.time() - died_at
    assert late([found], 1e6) == []
    (told,) = late([found], 90.0)
    assert told.startswith(f"late: {job.id} ")
    assert f" {found.seconds:.1f} s " in told
    assert recoveries(db, [], {}) == []  # nobody knows when
    db.close()


def _findings(url: str, folder: Path) -> list[str]:
    db = Database(url)
    found = audit(db, FolderStore(folder / "blobs"), Ledger())
    db.close()
    return found
