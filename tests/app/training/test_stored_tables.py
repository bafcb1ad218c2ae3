"""Jobs whose tables are larger than their memory: the same models, and a warning that says how they were read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.datasets import matrices
from app.datasets.matrices import Columns, StoredTable, Table, read_table, store_table
from app.jobs import execution
from core.coding import stored
from tests.app.workbench import Workbench, quiet


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SHARD_ROWS", 150)
    monkeypatch.setattr("app.ingest.writer.ROW_GROUP", 70)


def make_csv(n: int = 400) -> str:
    rng = np.random.default_rng(0)
    lines = ["a,b,word,late,g,w,y"]
    for i in range(n):
        a, b = rng.normal(size=2).round(2)
        word = "" if rng.random() < 0.1 else f"w{rng.integers(0, 8)}"
        late = "x" if i < n - 3 else f"new{i}"  # words that are in the last rows alone
        y = "yes" if a + (word in ("w1", "w5")) + rng.normal() > 0.7 else "no"
        lines.append(f"{a},{'' if b > 1.2 else b},{word},{late},g{i // 3},{rng.integers(0, 3)},{y}")
    return "\n".join(lines)


def run(bench: Workbench, memory_bytes: int | None) -> dict[str, Any]:
    """Run the next job with a limit, and return its result, without what says where and how long."""
    claim = bench.claim()
    payload = bench.prepare(claim)
    try:
        result = execution.run(payload | {"memory_bytes": memory_bytes}, quiet)
        folder = Path(payload["workdir"])
        told: dict[str, Any] = {
            "job": dict(result),
            "folders": {file.name for file in folder.iterdir()},
        }
        for name in ("workdir", "fit_seconds", "out_of_fold"):
            told["job"].pop(name, None)
        told["files"] = {
            file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()
        }
        bench.complete(claim, result)
    finally:
        shutil.rmtree(payload["workdir"])
    return told


ROLES: list[dict[str, str]] = [{}, {"group": "g"}, {"weight": "w"}]
JOBS: list[dict[str, Any]] = [
    {"algorithm": {"name": "rankboost", "n_rounds": 5}},
    {"algorithm": {"name": "logitboost", "n_rounds": 3, "early_stopping_rounds": 2}},
    {"algorithm": {"name": "rankboost", "n_rounds": 3, "weak_ranker": "tree"}},
    {
        "algorithm": {"name": "adaboost", "n_rounds": 3},
        "validation": {"method": "cross_validation", "folds": 2},
    },
    {"algorithm": {"name": "rankboost", "n_rounds": 3}, "validation": {"method": "none"}},
]


@pytest.mark.parametrize("roles", ROLES)
def test_the_model_is_that_of_the_table_in_memory(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, roles: dict[str, str]
) -> None:
    # rows of samples are copied, those of parts stay in the file
    monkeypatch.setattr(matrices, "MAX_ROWS_TAKEN", 90)
    monkeypatch.setattr("app.training.interpretation.MAX_ROWS", 80)
    monkeypatch.setattr("app.training.interpretation.MAX_REFERENCE_ROWS", 40)
    dataset = bench.ready(make_csv(), label="y", positive="yes", **roles)
    judged = {"validation": {"method": "dataset", "dataset_id": dataset.id}}
    for job in [*JOBS, {"algorithm": {"name": "treerank"}, **judged}]:
        bench.submit(dataset, **job)
        in_memory = run(bench, None)
        bench.submit(dataset, **job)
        read = run(bench, 1000)
        assert "codes" in read.pop("folders") - in_memory.pop("folders")
        said = [note for note in read["job"]["warnings"] if "column by column" in note]
        assert len(said) == 1
        assert "the job may take 1,000" in said[0]
        read["job"]["warnings"].remove(said[0])
        assert read == in_memory


def test_a_table_that_fits_or_needs_its_rows_is_read_into_memory(bench: Workbench) -> None:
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    for algorithm, limit in (
        ({"name": "rankboost", "n_rounds": 2}, 10**9),
        ({"name": "treerank_forest", "n_trees": 2}, 1000),
        ({"name": "logitboost", "n_rounds": 2, "crosses": 2}, 1000),
        ({"name": "logitboost", "n_rounds": 2, "target_encoding": 3}, 1000),
    ):
        bench.submit(dataset, algorithm=algorithm)
        done = run(bench, limit)
        assert "codes" not in done["folders"]
        assert not any("column by column" in note for note in done["job"]["warnings"])


def test_baselines_are_fitted_on_rows_that_fit(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices, "MAX_ROWS_TAKEN", 160)
    monkeypatch.setattr("app.training.fitting.MAX_ROWS_TAKEN", 160)
    monkeypatch.setattr("app.training.interpretation.MAX_ROWS", 80)
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    bench.submit(dataset, controls=True)
    done = run(bench, 1000)
    baselines = done["job"]["controls"]["controls"]
    assert baselines
    for baseline in baselines:
        assert baseline["failed"] is None
        assert 130 <= baseline["rows"] <= 142 < baseline["of_rows"]


def test_the_next_attempt_finds_the_codes(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    bench.submit(dataset, algorithm={"name": "rankboost", "n_rounds": 2})
    claim = bench.claim()
    payload = bench.prepare(claim) | {"memory_bytes": 1000, "codes_folder": str(tmp_path / "codes")}
    first = execution.run(payload, quiet)

    def write_again(*arguments: object) -> None:
        raise AssertionError("the codes were there")

    monkeypatch.setattr(stored, "_write", write_again)
    again = bench.blobs.staging_dir()
    assert execution.run(payload | {"workdir": str(again)}, quiet)["artifact"] == first["artifact"]
    assert not (again / "codes").exists()
    for folder in (again, Path(payload["workdir"])):
        shutil.rmtree(folder)


def test_the_figures_of_the_training_part_are_of_rows_whose_scores_fit(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.training.fitting.MIN_MEASURED_ROWS", 10)
    monkeypatch.setattr(matrices, "MAX_ROWS_TAKEN", 90)
    monkeypatch.setattr("app.training.interpretation.MAX_ROWS", 80)
    monkeypatch.setattr("app.training.interpretation.MAX_REFERENCE_ROWS", 40)
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    bench.submit(dataset, algorithm={"name": "rankboost", "n_rounds": 2})
    whole = run(bench, None)["job"]
    bench.submit(dataset, algorithm={"name": "rankboost", "n_rounds": 2})
    done = run(bench, 30_000)["job"]
    assert done["artifact"] == whole["artifact"]
    parts, n = done["parts"], whole["parts"]["train"]["positives"]
    assert parts["validation"] == whole["parts"]["validation"]
    assert parts["train"]["positives"] < n
    counted = parts["train"]["positives"] + parts["train"]["negatives"]
    assert 100 <= counted <= 102
    said = [note for note in done["warnings"] if "memory had no room for all" in note]
    assert len(said) == 1
    assert f"are of {counted} of its " in said[0]


@pytest.fixture
def both(bench: Workbench, tmp_path: Path) -> tuple[Table, StoredTable]:
    dataset = bench.ready(make_csv(), label="y", positive="yes", weight="w", group="g")
    assert dataset.table_key is not None
    columns = Columns(["a", "b", "word", "late"], "y", "w", "g")
    path = bench.blobs.path(dataset.table_key)
    return read_table(path, columns), store_table(path, columns, tmp_path / "codes")


def check(read: Table, expected: Table) -> None:
    assert (read.names, read.categories) == (expected.names, expected.categories)
    for feature in range(4):
        assert np.array_equal(read.column(feature), expected.column(feature), equal_nan=True)
    blocks = np.concatenate([block.X for block in read.blocks(50)])
    assert np.array_equal(blocks, expected.X, equal_nan=True)
    for name in ("y", "weight", "group"):
        assert (getattr(read, name) == getattr(expected, name)).all()


def test_rows_are_taken_from_the_file(
    both: tuple[Table, StoredTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, kept = both
    check(kept, table)
    rows = np.flatnonzero(np.arange(400) % 3 > 0)
    some = np.array([5, 100, 3, 260, 3, 0])
    check(kept.take(some), table.take(some))
    assert not isinstance(kept.take(some), StoredTable)
    monkeypatch.setattr(matrices, "MAX_ROWS_TAKEN", 100)
    part, other = kept.take(rows), kept.take(np.setdiff1d(np.arange(400), rows))
    assert isinstance(part, StoredTable)
    learnt, expected = part.known_to(), table.take(rows).known_to()
    check(learnt, expected)
    held_out = table.take(np.setdiff1d(np.arange(400), rows))
    check(other.coded_as(learnt), held_out.coded_as(expected))
    check(learnt.take(some), expected.take(some))
    twice = rows[np.arange(1, len(rows), 2)]
    check(learnt.take(np.arange(1, len(rows), 2)), table.take(twice).coded_as(expected))
    with pytest.raises(ValueError, match="ascending"):
        kept.take(rows[::-1])
    with pytest.raises(ValueError, match="weight above 0"):
        kept.known_to(some)
