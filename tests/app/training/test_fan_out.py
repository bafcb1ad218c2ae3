"""Training in parts: the same bits as in one process, whichever process dies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.platform import catalogue
from app.platform.database import Database
from app.platform.documents import Member
from app.platform.sql import Base
from app.platform.tables import Job, Model
from app.training.plan import MAX_SHARDS, divide_fit
from tests.app.mortal_worker import work
from tests.app.queue_steps import hear_nothing
from tests.app.training_jobs import sharing, table
from tests.app.workbench import OWNER, Workbench
from tests.long_form import LONG_FORM, rest

SEARCHED: dict[str, Any] = {
    "algorithm": {"name": "rankboost"},
    "validation": {"method": "cross_validation", "folds": 3},
    "search": {
        "method": "random",
        "space": {"n_rounds": [2, 5], "max_bins": [4, 16, 64]},
        "n_candidates": 3,
    },
    "baselines": True,  # however long they take
}
SEAMS = ["fan_out=kill", "finish=kill@3", "join=kill", "adopted=kill", "finish=kill"]
ALL_SEAMS = [
    "claimed=kill",  # the job is somebody's, and nothing done
    "fan_out=kill",
    "finished=kill",  # the parts are there, and nobody was told
    "claim=kill@3",
    "finish=kill@3",
    "finished=kill@4",
    "join=kill",
    "fan_out=kill",
    "adopted=kill",  # a part's file is there, and no row names it
    "join=kill",
    "adopted=kill",  # the artifact is there, and no model
    "finish=kill",
]
"""What kills one worker after the other, on the way of one job from its first claim to its end."""


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Workbench:
    bench = Workbench(db, tmp_path)
    bench.settings = bench.settings.model_copy(update={"job_max_attempts": 99})
    return bench


def parts_of(bench: Workbench, job: Job) -> list[tuple[int, str, int]]:
    """Count the parts of each stage by state."""
    parts = select(Job.stage, Job.state, func.count()).where(Job.parent_id == job.id)
    with bench.db.read() as session:
        rows = session.execute(parts.group_by(Job.stage, Job.state).order_by(Job.stage))
        return [(stage, state, n) for stage, state, n in rows]


def learnt(bench: Workbench, job: Job) -> dict[str, Any]:
    """Return all results of a job, table by table, except times, keys of blobs, and the ids of job and model."""
    own = {"model_id": None, "job_id": None, "created_at": None}
    model = bench.model(job)
    found: dict[str, Any] = {
        "artifact": model.artifact_sha256,
        "search": _timeless(model.search),
        "warnings": model.warnings,
    }
    with bench.db.read() as session:
        for table in Base.metadata.sorted_tables:
            if "model_id" in table.c and table.name != "jobs":
                rows = session.execute(select(table).where(table.c.model_id == model.id)).mappings()
                found[table.name] = sorted(
                    repr(_timeless({**row, **own, **_hashes(session, row)})).replace(model.id, "")
                    for row in rows
                )
    return found


def _hashes(session: Session, row: Mapping[Any, Any]) -> dict[str, str]:
    """Return the SHA-256 of the blobs that a row names, in place of their random keys."""
    return {
        name: catalogue.find(session, key).sha256
        for name, key in row.items()
        if name.endswith("_key")
    }


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if not key.endswith("seconds")}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def let_leases_run_out(bench: Workbench) -> None:
    """Have the reaper notice that a worker is gone, and skip the delay of its job."""
    hear_nothing(bench.db)
    assert len(Reaper(bench.db, bench.settings).reap().requeued) <= 1
    with bench.db.write() as session:
        session.execute(update(Job).values(not_before=0.0))


def test_killed_at_every_seam_it_ends_with_one_model_the_same_as_in_one_process(
    bench: Workbench,
) -> None:
    dataset = bench.ready(table())
    inline = bench.work_on(dataset, **SEARCHED)
    job = bench.submit(dataset, **SEARCHED)
    for seam in ALL_SEAMS if LONG_FORM else SEAMS:
        assert work(sharing(bench), seam) == -9, seam
        let_leases_run_out(bench)
    assert work(sharing(bench)) == 0
    done = bench.db.reading(jobs.find, OWNER, job.id)
    assert (done.state, done.progress["fraction"]) == ("succeeded", 1.0)
    boards = [
        [(row["parameters"], row["value"]) for row in each.progress["leaderboard"]]
        for each in (done, bench.db.reading(jobs.find, OWNER, inline.id))
    ]
    assert boards[0] == boards[1]
    assert [value for _, value in boards[0]] == sorted((v for _, v in boards[0]), reverse=True)
    assert len(boards[0]) == 3
    found = learnt(bench, done)
    assert found == learnt(bench, inline)
    assert [len(found[table]) for table in ("model_out_of_fold", "model_baselines")] == [1, 1]
    with bench.db.read() as session:
        made = select(func.count()).select_from(Model).where(Model.job_id == job.id)
        assert session.scalar(made) == 1
    assert parts_of(bench, inline) == []
    assert parts_of(bench, done) == [(0, "succeeded", 12), (1, "succeeded", 4)]
    fractions = [
        event.data["fraction"]
        for event in bench.db.reading(jobs.events, OWNER, job.id, limit=200)
        if event.type == "progress"
    ]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] <= fractions[-1] <= 1


class TestWhenToShare:
    """Rows of a part's table times features times fits: 120 × 3 × 4 for three folds and what is served."""

    @pytest.fixture
    def db(self, sqlite_url: str) -> Database:
        return Database(sqlite_url)

    @pytest.mark.parametrize(("cells", "shared"), [*rest((1440, True)), (1441, False)])
    def test_a_job_is_shared_from_so_many_cells_on(
        self, bench: Workbench, cells: int, shared: bool
    ) -> None:
        validation = {"method": "cross_validation", "folds": 3}
        job = bench.submit(bench.ready(table()), validation=validation, baselines=True)
        assert work(sharing(bench, cells)) == 0
        assert bench.db.reading(jobs.find, OWNER, job.id).state == "succeeded"
        # Controls come after, and do not count.
        assert parts_of(bench, job) == ([(0, "succeeded", 4)] if shared else [])

    def test_a_part_that_is_at_fault_fails_the_job(self, bench: Workbench) -> None:
        rows = "".join(f"{i},{int(i < 4)}\n" for i in range(40))
        validation = {"method": "cross_validation", "folds": 3}
        search = {"method": "grid", "space": {"n_rounds": [1, 2]}, "folds": 3}
        algorithm = {"name": "rankboost"}
        dataset = bench.ready("a,y\n" + rows)
        given: dict[str, Any] = {"validation": validation, "search": search, "algorithm": algorithm}
        inline = bench.work_on(dataset, **given)
        job = bench.submit(dataset, **given)
        assert work(sharing(bench)) == 0
        done = bench.db.reading(jobs.find, OWNER, job.id)
        assert (done.state, done.error) == ("failed", inline.error)
        assert done.error is not None
        assert {state for _, state, _ in parts_of(bench, job)} >= {"failed", "cancelled"}


def member(algorithm: str, **parameters: Any) -> Member:
    return {"algorithm": algorithm, "parameters": parameters, "weight": 1.0}


FOREST: dict[str, Any] = {"algorithm": {"name": "treerank_forest", "n_trees": 25}}
SEARCHED_FOREST = FOREST | {"search": {"method": "grid", "space": {"max_depth": [1, 3]}}}


class TestOneLargeFit:
    """A forest that is fitted alone is divided into shares of trees."""

    @pytest.fixture
    def db(self, sqlite_url: str) -> Database:
        return Database(sqlite_url)

    @pytest.mark.parametrize(
        ("asked", "seams", "stages"),
        [
            # three shares, the second of which leaves a file that no row names
            (FOREST, ["adopted=kill@2", "join=kill"], [3]),
            *rest((SEARCHED_FOREST, [], [2, 3])),
        ],
    )
    def test_it_is_the_fit_of_one_process(
        self, bench: Workbench, asked: dict[str, Any], seams: list[str], stages: list[int]
    ) -> None:
        dataset = bench.ready(table())
        inline = bench.work_on(dataset, **asked)
        assert parts_of(bench, inline) == []
        job = bench.submit(dataset, **asked)
        for seam in seams:
            assert work(sharing(bench), seam) == -9, seam
            let_leases_run_out(bench)
        assert work(sharing(bench)) == 0
        done = bench.db.reading(jobs.find, OWNER, job.id)
        assert done.state == "succeeded", done.error
        assert learnt(bench, done) == learnt(bench, inline)
        assert parts_of(bench, done) == [
            (stage, "succeeded", n_parts) for stage, n_parts in enumerate(stages)
        ]

    def test_a_share_is_worth_a_job(self) -> None:
        def sizes(n_trees: int, least: float) -> list[int]:
            ranges = divide_fit([member("treerank_forest", n_trees=n_trees)], least)
            assert [first for first, _ in ranges][1:] == [last for _, last in ranges][:-1]
            assert not ranges or (ranges[0][0], ranges[-1][1]) == (0, n_trees)
            return [last - first for first, last in ranges]

        assert sizes(50, 20) == [25, 25]
        assert sizes(50, 25.5) == []
        assert sizes(25, 2) == [8, 8, 9]
        assert sizes(15, 2) == []
        assert sizes(5000, 2) == [312, 313, 312, 313] * (MAX_SHARDS // 4)
        assert sizes(50, float("inf")) == []
        boosted = member("rankboost", n_rounds=500)
        assert divide_fit([boosted], 2) == []
        assert divide_fit([member("treerank_forest"), boosted], 2) == []
