"""One attempt at a job: cancel, timeout, a killed process, a user's error. On SQLite, with one slot for all."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from sqlalchemy import func, select, update

from app.datasets import service as datasets
from app.jobs import child_jobs as parts
from app.jobs import service as jobs
from app.platform import failpoints
from app.platform.blobs import FolderStore
from app.platform.errors import OutOfSpace, Overtaken
from app.platform.settings import Settings
from app.platform.tables import Job, Model
from tests.harness import ENDLESS, OWNER, Crew, csv_table, is_running
from tests.long_form import long_form, rest
from tests.sentences import Sentences
from tests.waiting import eventually, patience
from workers import slots
from workers.fit_process import FitProcess


@long_form
def test_a_lost_message_is_found_by_the_look(crew: Crew) -> None:
    crew.fit_process()  # idle: it is not about to claim the next job anyway
    before = crew.slots.by_poll
    assert crew.shop.reaches(crew.shop.train(crew.table, 5), "succeeded").attempt == 1
    assert crew.slots.by_message == 0
    assert crew.slots.by_poll == crew.slots.polls_in_a_row > before


def test_a_wake_up_waits_for_an_idle_slot(crew: Crew) -> None:
    job_id = crew.shop.train(crew.table, ENDLESS)
    crew.shop.fitting(job_id)
    wake_up = Thread(target=crew.slots.wake)
    wake_up.start()
    wake_up.join(0.3)
    assert wake_up.is_alive()
    crew.shop.db.writing(jobs.cancel, OWNER, job_id)
    wake_up.join(patience())
    assert not wake_up.is_alive()


def test_a_disk_that_fills_up_under_a_job_costs_it_an_attempt_and_no_more(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    # Without checkpoints, so that the artifact is what meets the full disk, however long the fit takes.
    settings = crew.slots.settings.model_copy(update={"checkpoint_seconds": 0.0})
    monkeypatch.setattr(crew.slots, "settings", settings)
    monkeypatch.setattr(failpoints, "armed", failpoints.parse("adopt=full"))
    job_id = crew.shop.train(crew.table, 5)
    waiting = eventually(
        lambda: (job := crew.shop.job(job_id)).attempt == 1 and job.state == "queued" and job
    )
    reasons = [
        event.data.get("reason") for event in crew.shop.db.reading(jobs.events, OWNER, job_id)
    ]
    sentences(reasons[-1])
    with crew.shop.db.write() as session:
        session.execute(update(Job).where(Job.id == waiting.id).values(not_before=0.0))
    assert crew.shop.reaches(job_id, "succeeded").attempt == 2
    assert crew.shop.models_of(job_id) == 1


def test_an_attempt_that_was_overtaken_does_not_count(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtake() -> None:
        monkeypatch.setattr(failpoints, "armed", {})
        raise Overtaken("another job was first")

    monkeypatch.setattr(failpoints, "armed", {"finish": overtake})
    job_id = crew.shop.train(crew.table, 5)
    assert crew.shop.reaches(job_id, "succeeded").attempt == 1
    events = crew.shop.db.reading(jobs.events, OWNER, job_id)
    assert "another job was first" in [event.data.get("reason") for event in events]
    assert crew.shop.models_of(job_id) == 1


@pytest.mark.parametrize("of_checkpoint", [True, *rest(False)])
def test_the_lease_is_kept_while_a_file_is_put_on_disk(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, of_checkpoint: bool
) -> None:
    waited_for: list[int] = []

    def beats() -> int:
        with crew.shop.db.read() as session:
            count = select(func.sum(Job.heartbeat_count)).where(Job.state == "running")
            return session.scalar(count) or 0

    def wait_for_a_beat() -> None:
        before = beats()
        eventually(lambda: beats() > before)
        waited_for.append(before)

    monkeypatch.setattr(failpoints, "armed", {"adopt": wait_for_a_beat})
    job_id = crew.shop.train(crew.table, ENDLESS if of_checkpoint else 5)
    if of_checkpoint:
        eventually(lambda: crew.shop.job(job_id).checkpoint_key)
        crew.shop.db.writing(jobs.cancel, OWNER, job_id)
        crew.shop.ends(job_id)
    else:
        assert crew.shop.reaches(job_id, "succeeded").attempt == 1
    assert waited_for


def test_no_job_is_begun_while_the_disk_is_nearly_full(
    crew: Crew, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slots, "resources", SimpleNamespace(check=_nearly_full))
    crew.fit_process()  # idle: the slot is not between its check and its claim
    job_id = crew.shop.train(crew.table, 5)
    eventually(lambda: "no room" in caplog.text)
    assert crew.shop.job(job_id).attempt == 0
    monkeypatch.undo()
    assert crew.shop.reaches(job_id, "succeeded").attempt == 1


def _nearly_full(_: Settings) -> None:
    raise OutOfSpace("no room")


def test_cancel_stops_the_fit_and_keeps_the_process(crew: Crew) -> None:
    pid = crew.fit_process()
    job_id = crew.shop.train(crew.table, ENDLESS)
    crew.shop.fitting(job_id)
    crew.shop.db.writing(jobs.cancel, OWNER, job_id)
    job = crew.shop.ends(job_id)
    assert (job.state, job.error, crew.shop.models_of(job_id)) == ("cancelled", None, 0)
    assert crew.fit_process() == pid
    assert list((crew.shop.settings.blob_dir / "staging").iterdir()) == []


def test_a_fit_that_is_ended_early_is_served_with_what_it_has(
    crew: Crew, sentences: Sentences
) -> None:
    pid = crew.fit_process()
    job_id = crew.shop.train(crew.table, ENDLESS)
    crew.shop.fitting(job_id)
    crew.shop.db.writing(parts.end_early, OWNER, job_id)
    job = crew.shop.ends(job_id)
    assert (job.state, job.error) == ("succeeded", None)
    assert crew.fit_process() == pid
    with crew.shop.db.read() as session:
        warnings = session.get_one(Model, job.model_id).warnings
    sentences(warnings[0])
    assert f" of {ENDLESS} rounds" in warnings[1]


def test_cancel_of_a_job_in_parts_stops_the_part_that_runs(crew: Crew) -> None:
    pid = crew.fit_process()
    job_id = crew.shop.train(crew.table, ENDLESS, folds=3)
    waiting = crew.shop.fitting(job_id)
    assert waiting.state == "waiting"
    assert 0 < waiting.progress["fraction"] < 1 / 4
    job, _ = crew.shop.db.writing(jobs.cancel, OWNER, job_id)
    assert job.state == "cancelled"
    assert crew.fit_process() == pid
    parts = crew.shop.parts_of(job_id)
    assert [part.state for part in parts] == ["cancelled"] * 4
    assert [part.attempt for part in parts] == [1, 0, 0, 0]
    assert list((crew.shop.settings.blob_dir / "staging").iterdir()) == []


def test_a_fit_that_does_not_hear_is_killed(crew: Crew) -> None:
    pid = crew.fit_process()
    job_id = crew.shop.train(crew.table, ENDLESS)
    crew.shop.fitting(job_id)
    os.kill(pid, signal.SIGSTOP)
    crew.shop.db.writing(jobs.cancel, OWNER, job_id)
    assert crew.shop.ends(job_id).state == "cancelled"
    assert not is_running(pid)
    assert crew.fit_process() != pid


def test_a_job_past_its_timeout_is_stopped(crew: Crew) -> None:
    job_id = crew.shop.train(crew.table, ENDLESS, timeout_seconds=0.25)
    job = crew.shop.ends(job_id)
    assert job.state == "timed_out"
    assert job.error["code"] == "timed_out"
    assert "timeout_seconds (0.25)" in job.error["detail"]
    assert crew.shop.models_of(job_id) == 0


def test_a_killed_process_is_replaced_and_its_job_runs_again(crew: Crew) -> None:
    pid = crew.fit_process()
    job_id = crew.shop.train(crew.table, ENDLESS)
    crew.shop.fitting(job_id)  # its first step is told seldomer than a checkpoint is made
    codes = crew.shop.blobs.job_dir("codes", job_id)
    codes.mkdir()  # as if its table were read by columns
    # The checkpoint is of a later step than the first that is reported.
    eventually(lambda: crew.shop.first_steps_of(job_id))
    early = crew.shop.job(job_id).checkpoint_key
    eventually(lambda: crew.shop.job(job_id).checkpoint_key not in (None, early))
    os.kill(pid, signal.SIGKILL)
    crew.shop.reaches(job_id, "queued")
    assert codes.is_dir()
    with crew.shop.db.write() as session:  # no test waits out the back-off
        session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))
    first, second = eventually(lambda: len(told := crew.shop.first_steps_of(job_id)) == 2 and told)
    assert first < second
    crew.shop.db.writing(parts.end_early, OWNER, job_id)
    job = crew.shop.reaches(job_id, "succeeded")
    assert job.attempt == 2
    assert crew.shop.models_of(job_id) == 1
    assert crew.shop.states_of(job_id) == ["queued", "running", "queued", "running", "succeeded"]
    events = crew.shop.db.reading(jobs.events, OWNER, job_id, after=0, limit=200)
    reasons = [event.data.get("reason") for event in events]
    assert any(f"process {pid} " in why and "SIGKILL" in why for why in reasons if why)
    assert crew.fit_process() != pid
    assert not codes.exists()


@long_form
def test_a_stopped_fit_process_is_replaced_and_its_job_goes_on(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.fit_process.MAX_STOPPED_LOOKS", 2)
    pid = crew.fit_process()
    job_id = crew.shop.train(crew.table, ENDLESS)
    crew.shop.fitting(job_id)
    eventually(lambda: crew.shop.job(job_id).checkpoint_key)
    os.kill(pid, signal.SIGSTOP)
    crew.shop.reaches(job_id, "queued")
    assert not is_running(pid)
    with crew.shop.db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))
    crew.shop.fitting(job_id)
    crew.shop.db.writing(parts.end_early, OWNER, job_id)
    assert crew.shop.reaches(job_id, "succeeded").attempt == 2
    assert crew.fit_process() != pid


@long_form
@pytest.mark.parametrize("harm", [lambda path: path.write_bytes(b""), *rest(Path.unlink)])
def test_a_job_whose_checkpoint_is_missing_or_damaged_starts_again(
    crew: Crew, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], object]
) -> None:
    pid = crew.fit_process()
    job_id = crew.shop.train(crew.table, ENDLESS)
    eventually(lambda: crew.shop.job(job_id).checkpoint_key)
    os.kill(pid, signal.SIGKILL)
    key = crew.shop.reaches(job_id, "queued").checkpoint_key
    assert key is not None
    harm(FolderStore(crew.shop.settings.blob_dir).path(key))
    with crew.shop.db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(not_before=0.0))
    crew.shop.reaches(job_id, "running")
    eventually(lambda: crew.shop.job(job_id).checkpoint_key != key)
    assert repr(key) in caplog.text
    crew.shop.db.writing(jobs.cancel, OWNER, job_id)
    assert crew.shop.ends(job_id).state == "cancelled"


@long_form
def test_a_process_that_died_idle_costs_no_attempt(crew: Crew) -> None:
    pid = crew.fit_process()
    process = crew.slots.slots[0].process
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not process.alive)
    assert crew.shop.reaches(crew.shop.train(crew.table, 5), "succeeded").attempt == 1
    assert crew.fit_process() != pid


@long_form
def test_an_upload_whose_parser_hangs_or_crashes_is_invalid(crew: Crew) -> None:
    """A stopped process does nothing, like one in an endless loop; the next upload gets another process."""
    hung = crew.fit_process()
    os.kill(hung, signal.SIGSTOP)
    dataset_id = crew.shop.upload(csv_table(200), job_timeout_seconds=0.2)
    assert "timeout_seconds (0.2)" in crew.shop.why_invalid(dataset_id)
    assert not is_running(hung)

    crashed = crew.fit_process()
    os.kill(crashed, signal.SIGSTOP)
    dataset_id = crew.shop.upload(csv_table(200), job_max_attempts=1)
    job_id = crew.shop.db.reading(datasets.find, OWNER, dataset_id).job_id
    assert job_id is not None
    crew.shop.reaches(job_id, "running")
    os.kill(crashed, signal.SIGSEGV)
    os.kill(crashed, signal.SIGCONT)
    why = crew.shop.why_invalid(dataset_id)
    assert f"process {crashed} " in why
    assert "SIGSEGV" in why
    assert crew.shop.ready_table() != dataset_id
    eventually(lambda: not any((crew.shop.settings.blob_dir / "staging").iterdir()))


def test_the_users_fault_fails_at_once(crew: Crew) -> None:
    shop = crew.shop
    for table in (b"x,z\n1,0\n2,1\n", b"x,y\n1,1\n2,1\n", b""):
        dataset_id = shop.upload(table)
        job_id = shop.db.reading(datasets.find, OWNER, dataset_id).job_id
        assert job_id is not None
        ingest = shop.ends(job_id)
        assert (ingest.state, ingest.attempt) == ("failed", 1)
        assert ingest.error["detail"]
        assert shop.db.reading(datasets.find, OWNER, dataset_id).status == "invalid"


def test_an_attempt_that_breaks_off_leaves_no_answer_to_the_next_job(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failpoints, "armed", failpoints.parse("beat=raise"))
    broken = crew.shop.train(crew.table, ENDLESS)
    eventually(lambda: crew.shop.job(broken).not_before > 0)  # it will be tried again
    next_id = crew.shop.train(crew.table, 3)
    model_id = crew.shop.reaches(next_id, "succeeded").model_id
    with crew.shop.db.read() as session:
        model = session.get_one(Model, model_id)
        assert (model.job_id, model.parameters["n_rounds"]) == (next_id, 3)
    crew.shop.db.writing(jobs.cancel, OWNER, broken)
    assert crew.shop.ends(broken).state == "cancelled"


def test_a_fit_process_knows_no_secret_of_database_and_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = "pa55word"
    names = {
        "RANKWRIGHT_" + name.upper()
        for name in Settings.model_fields
        if name.startswith(("database_", "broker_"))
    }
    assert len(names) >= 6
    for name in (*names, "PGPASSWORD", "PGPASSFILE", "RANKWRIGHT_API_KEY"):
        monkeypatch.setenv(name, secret)
    monkeypatch.setenv("RANKWRIGHT_LOG_LEVEL", "ERROR")
    process = FitProcess(threads=1)
    try:
        assert eventually(lambda: process.receive(0.1)) == {"type": "ready"}
        environment = Path(f"/proc/{process.pid}/environ").read_text()
    finally:
        process.kill()
    assert secret not in environment
    assert "RANKWRIGHT_LOG_LEVEL=ERROR" in environment
