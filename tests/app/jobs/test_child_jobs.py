"""A job in parts: fan-out, join, progress, files, and processes that die on the way; on SQLite and on PostgreSQL."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from app.jobs import child_jobs as parts
from app.jobs import execution, queue, queue_repository
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.jobs.kinds import Claim
from app.jobs.schemas import Job as Shown
from app.operations.sweeping import sweep
from app.platform.blobs import BlobKey, FolderStore
from app.platform.database import Database
from app.platform.errors import CancelRequested, Invalid, LeaseLost, NotFound
from app.platform.settings import Settings
from tests.app.child_job_steps import SETTINGS, divided, end_part, fan_out, of, states
from tests.app.queue_steps import (
    OWNER,
    at_once,
    change,
    claimed,
    finish,
    hear_nothing,
    seen,
    submit,
)
from tests.app.uploads import put
from tests.long_form import LONG_FORM, long_form
from tests.sentences import Sentences


class TestFanOut:
    def test_parts_are_jobs_of_their_own_that_nobody_sees(
        self, db: Database, sentences: Sentences
    ) -> None:
        job = divided(db, 2, priority=3, spec={"seed": 7}, dataset_id="ds_x")
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.lease_expires_at, kept.attempt) == ("waiting", None, 1)
        assert Shown.of_row(kept).state == "running"
        first, second = of(db, job)
        for number, part in enumerate((first, second)):
            assert (part.kind, part.stage, part.part) == ("train_part", 0, number)
            assert (part.owner, part.priority, part.dataset_id) == (OWNER, 3, "ds_x")
            assert part.spec.keys() == {"part", "share"}  # the parent's is not copied
            assert part.spec["part"] == {"fold": number}
            assert part.deadline_at == kept.deadline_at
            with pytest.raises(NotFound):
                db.reading(jobs.find, OWNER, part.id)
            with pytest.raises(NotFound):
                db.writing(jobs.cancel, OWNER, part.id)
        for state in (None, "running"):
            assert [row.id for row in db.reading(jobs.list_page, OWNER, state=state).data] == [
                job.id
            ]
        with sentences.raises(Invalid):
            db.reading(jobs.list_page, OWNER, kind="train_part")
        claims = [claimed(db), claimed(db)]
        assert [claim.job_id for claim in claims] == [first.id, second.id]
        assert {claim.parent_id for claim in claims} == {job.id}
        assert [claim.spec["parent"] for claim in claims] == [{"seed": 7}] * 2
        assert [claim.spec["part"] for claim in claims] == [{"fold": 0}, {"fold": 1}]
        assert db.writing(queue.claim, SETTINGS, "wrk_b") is None
        assert seen(db, job.id) == [
            (1, "state", "queued"),
            (2, "state", "running"),
            (3, "state", "running"),
        ]
        assert db.reading(jobs.events, OWNER, job.id)[-1].data["parts"] == 2

    def test_replayed_it_leaves_one_set_of_parts(self, db: Database) -> None:
        submit(db)
        claim = claimed(db)
        outcomes = at_once(*[functools.partial(fan_out, db, claim)] * 4)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [
            *["LeaseLost"] * 3,
            "NoneType",
        ]
        with db.read() as session:
            assert len(queue_repository.of_parent(session, claim.job_id)) == 3

    def test_a_worker_that_dies_before_the_commit_leaves_nothing(
        self, db: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = submit(db)
        claim = claimed(db)
        for seam in ("wait", "insert_queued"):
            with monkeypatch.context() as patch:
                patch.setattr(queue_repository, seam, _then_die(getattr(queue_repository, seam)))
                with pytest.raises(_Died):
                    fan_out(db, claim)
            assert states(db, job) == ("running", [])
        db.writing(queue.retry_later, claim, "died")
        change(db, job.id, not_before=0.0)
        fan_out(db, claimed(db))
        assert states(db, job) == ("waiting", ["queued"] * 3)

    def test_a_job_asked_to_stop_does_not_fan_out(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        db.writing(jobs.cancel, OWNER, job.id)
        with pytest.raises(CancelRequested):
            fan_out(db, claim)
        assert states(db, job) == ("running", [])

    def test_nonsense_is_refused(self, db: Database, sentences: Sentences) -> None:
        divided(db, 1)
        part = claimed(db)
        with sentences.raises(ValueError):
            fan_out(db, part)
        end_part(db, part)
        with sentences.raises(ValueError):
            fan_out(db, claim := claimed(db))
        with sentences.raises(ValueError):
            fan_out(db, claim, 0, stage=1)
        with sentences.raises(ValueError):
            fan_out(db, claim, 1, stage=1, share=1.5)

    def test_a_result_that_asks_for_parts_has_them(self, db: Database, tmp_path: Path) -> None:
        job = submit(db)
        asked = {"fan_out": {"stage": 0, "parts": [{"fold": 0}, {"fold": 1}]}}
        claim = claimed(db)
        published = execution.publish(FolderStore(tmp_path), claim, asked)
        db.writing(execution.complete, claim, asked, published)
        assert states(db, job) == ("waiting", ["queued"] * 2)


class TestJoin:
    def test_the_last_part_queues_the_parent_which_is_claimed_like_any_job(
        self, db: Database, sentences: Sentences
    ) -> None:
        job = divided(db)
        younger = submit(db)
        started_at = db.reading(jobs.find, OWNER, job.id).started_at
        claims = [claimed(db) for _ in range(3)]
        for claim in reversed(claims):
            assert db.reading(jobs.find, OWNER, job.id).state == "waiting"
            end_part(db, claim, scores="parts/ab/abcd")
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.attempt, kept.not_before) == ("queued", 0, 0.0)
        sentences(db.reading(jobs.events, OWNER, job.id)[-1].data["reason"])
        best = [{"seconds": 1.0, "value": 0.7}]
        change(db, job.id, progress=kept.progress | {"improvements": best})
        joined = claimed(db)
        assert (joined.job_id, joined.attempt, joined.token) == (job.id, 1, 2)
        assert joined.improvements == best
        assert db.reading(jobs.find, OWNER, job.id).started_at == started_at
        found = db.reading(parts.finished, job.id)
        assert [(each["stage"], each["part"], each["spec"]) for each in found] == [
            (0, i, {"fold": i}) for i in range(3)
        ]
        assert found[2]["result"] == {"auc": 0.2, "files": {"scores": BlobKey("parts/ab/abcd")}}
        fan_out(db, joined, 1, stage=1)
        end_part(db, claimed(db))
        finish(db, claimed(db), model_id="mdl_x")
        assert db.reading(jobs.find, OWNER, job.id).model_id == "mdl_x"
        assert len(db.reading(parts.finished, job.id)) == 4
        assert claimed(db).job_id == younger.id

    def test_siblings_that_end_at_once_join_once(self, db: Database) -> None:
        for _ in range(3 if LONG_FORM else 1):
            job = divided(db, 4)
            ends = [functools.partial(end_part, db, claimed(db)) for _ in range(4)]
            assert at_once(*ends) == [None] * 4
            assert states(db, job) == ("queued", ["succeeded"] * 4)
            assert [state for _, _, state in seen(db, job.id)].count("queued") == 2
            db.writing(jobs.cancel, OWNER, job.id)

    def test_a_part_that_dies_before_the_commit_is_still_to_be_done(
        self, db: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = divided(db, 1)
        claim = claimed(db)
        for module, seam in ((queue, "succeed"), (queue, "requeue_locked")):
            with monkeypatch.context() as patch:
                patch.setattr(module, seam, _then_die(getattr(module, seam)))
                with pytest.raises(_Died):
                    end_part(db, claim)
            assert states(db, job) == ("waiting", ["running"])
        end_part(db, claim)
        assert states(db, job) == ("queued", ["succeeded"])

    def test_a_stale_part_can_do_nothing(self, db: Database, sentences: Sentences) -> None:
        job = divided(db, 2)
        stale = claimed(db)
        db.writing(queue.give_back, stale)
        for act in (
            lambda: end_part(db, stale),
            lambda: db.writing(queue.heartbeat, SETTINGS, stale),
            lambda: db.writing(queue.fail, stale, {"code": "x"}),
            lambda: db.writing(queue.retry_later, stale, "x"),
        ):
            with pytest.raises(LeaseLost):
                act()
        assert states(db, job) == ("waiting", ["queued"] * 2)
        with sentences.raises(ValueError):
            end_part(db, _of_nobody(stale))

    def test_silent_workers_parts_run_again_and_the_join_counts_each_once(
        self, db: Database
    ) -> None:
        job = divided(db, 2)
        dead, alive = claimed(db, worker="wrk_dead"), claimed(db)
        end_part(db, alive)
        hear_nothing(db, dead.job_id)
        assert Reaper(db, SETTINGS).reap().requeued == [dead.job_id]
        with pytest.raises(LeaseLost):
            end_part(db, dead)
        again = claimed(db)
        assert (again.job_id, again.attempt) == (dead.job_id, 2)
        end_part(db, again)
        assert states(db, job) == ("queued", ["succeeded"] * 2)

    def test_another_owners_job_is_not_behind_all_parts(self, db: Database) -> None:
        divided(db, 3)
        other = submit(db, owner="bob")
        assert claimed(db).owner == OWNER
        assert claimed(db).job_id == other.id


class TestProgress:
    @long_form
    def test_it_adds_up_over_parts_and_stages(self, db: Database, sentences: Sentences) -> None:
        job = submit(db)
        fan_out(db, claimed(db), 2, share=0.8)
        first, second = claimed(db), claimed(db)
        db.writing(queue.heartbeat, SETTINGS, first, {"fraction": 0.5})
        db.writing(parts.report_progress, job.id)
        kept = db.reading(jobs.find, OWNER, job.id)
        sentences(kept.progress.pop("detail"))
        assert kept.progress == {
            "fraction": pytest.approx(0.2),
            "step": 0,
            "of": 2,
            "elapsed_seconds": pytest.approx(0.0, abs=30.0),
        }
        assert seen(db, job.id)[-1][1] == "progress"
        db.writing(queue.heartbeat, SETTINGS, second, {"fraction": 0.5})
        db.writing(parts.report_progress, job.id)  # within the second
        assert db.reading(jobs.find, OWNER, job.id).event_seq == kept.event_seq
        end_part(db, first)
        end_part(db, second)
        assert db.reading(jobs.find, OWNER, job.id).progress["fraction"] == pytest.approx(0.8)
        joined = claimed(db)
        assert joined.fraction_done == pytest.approx(0.8)
        fan_out(db, joined, 1, stage=1)
        part = claimed(db)
        assert part.fraction_done == 0.0
        end_part(db, part)
        assert db.reading(jobs.find, OWNER, job.id).progress["fraction"] == pytest.approx(0.9)
        finish(db, claimed(db))
        assert db.reading(jobs.find, OWNER, job.id).progress == {"fraction": 1.0}
        db.writing(parts.report_progress, job.id)  # too late, and no harm
        numbers = [seq for seq, _, _ in seen(db, job.id)]
        assert numbers == list(range(1, len(numbers) + 1))

    def test_a_part_that_is_tried_again_does_not_take_progress_back(self, db: Database) -> None:
        job = divided(db, 1)
        claim = claimed(db)
        db.writing(queue.heartbeat, SETTINGS, claim, {"fraction": 0.5})
        db.writing(queue.give_back, claim)
        assert claimed(db).fraction_done == 0.5
        db.writing(parts.report_progress, job.id)
        assert db.reading(jobs.find, OWNER, job.id).progress["fraction"] == pytest.approx(0.25)

    def test_many_tell_at_once_and_are_heard_once(self, db: Database) -> None:
        job = divided(db, 2)
        assert (
            at_once(*[functools.partial(db.writing, parts.report_progress, job.id)] * 6)
            == [None] * 6
        )
        assert [kind for _, kind, _ in seen(db, job.id)].count("progress") == 1


class TestSweep:
    def test_files_of_parts_stay_while_their_job_goes_on(
        self, db: Database, tmp_path: Path
    ) -> None:
        blobs, grace = FolderStore(tmp_path), Settings(blob_grace_seconds=1e-6)
        key, orphan = (
            put(blobs, "parts", content, db).key for content in (b"scores", b"of nobody")
        )
        job = divided(db, 2)
        end_part(db, claimed(db), scores=key)
        assert sweep(db, blobs, grace) == 1
        assert blobs.path(key).exists()
        assert not blobs.path(orphan).exists()
        db.writing(jobs.cancel, OWNER, job.id)
        assert sweep(db, blobs, grace) == 1
        assert not blobs.path(key).exists()
        assert len(of(db, job)) == 2


class _Died(Exception):
    """Stands for the end of the process within a transaction."""


def _then_die(step: Any) -> Any:
    def dying(*args: Any, **kw: Any) -> None:
        step(*args, **kw)
        raise _Died

    return dying


def _of_nobody(claim: Claim) -> Claim:
    values = {name: getattr(claim, name) for name in claim.__slots__} | {"parent_id": None}
    return Claim(**values)
