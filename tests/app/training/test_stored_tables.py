"""Jobs whose tables are larger than their memory: the same models, and a warning that says how they were read."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.matrices import (
    Columns,
    ParquetColumns,
    StoredTable,
    Table,
    read_table,
    store_table,
)
from app.jobs import execution
from app.jobs.progress import Report
from app.training import imports
from app.training.fitting import FitContext
from app.training.progress import FITTING, MEASURING, READING
from core.coding import stored
from tests.app.uploads import put
from tests.app.workbench import Workbench, quiet
from tests.core.importing.test_import_model import MODELS
from tests.core.importing.test_import_model import stored as library_scores
from tests.long_form import long_form, rest
from tests.sentences import Sentences


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SHARD_ROWS", 150)
    monkeypatch.setattr("app.ingest.writer.ROW_GROUP", 70)
    for module in ("core.base.columns", "app.datasets.matrices", "app.training.splits"):
        monkeypatch.setattr(f"{module}.ROWS_AT_ONCE", 30)


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


HALF = {"method": "holdout", "fraction": 0.5}
BOTH = {"group": "g", "weight": "w"}
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


@pytest.mark.parametrize("roles", [BOTH, *rest({}, {"group": "g"})])
def test_the_model_is_that_of_the_table_in_memory(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, roles: dict[str, str]
) -> None:
    monkeypatch.setattr("app.training.interpretation.MAX_ROWS", 80)
    monkeypatch.setattr("app.training.interpretation.MAX_REFERENCE_ROWS", 40)
    dataset = bench.ready(make_csv(), label="y", positive="yes", **roles)
    evaluated = {"validation": {"method": "dataset", "dataset_id": dataset.id}}
    for job in [*JOBS, {"algorithm": {"name": "treerank"}, **evaluated}]:
        bench.submit(dataset, **job)
        in_memory = run(bench, None)
        bench.submit(dataset, **job)
        read = run(bench, 1000)
        assert "codes" in read.pop("folders") - in_memory.pop("folders")
        said = [note for note in read["job"]["warnings"] if "column by column" in note]
        assert len(said) == 1
        assert "1,000" in said[0]
        read["job"]["warnings"].remove(said[0])
        if read["job"]["held_out"] is None:  # the scores of rows in files are not kept one by one
            in_memory["job"]["held_out"] = None
            in_memory["files"].pop("held_out.parquet", None)
        assert without_segments(read) == without_segments(in_memory)


def without_segments(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out the weak segments, which are not looked for in tables that are read column by column."""
    for measured in found["job"]["parts"].values():
        measured.pop("weak_segments", None)
    return found


@long_form
def test_an_imported_model_is_measured_on_rows_in_a_file(bench: Workbench) -> None:
    name = "lightgbm-4.7.0-binary.txt"
    _, rows, scores = library_scores(name)
    rows = rows.assign(y=np.where(scores > np.median(scores), "yes", "no"))
    dataset = bench.ready(rows.to_csv(index=False), label="y", positive="yes")
    found = []
    for memory_bytes in (None, 1000):
        file = put(bench.blobs, "uploads", MODELS[name].read_bytes(), bench.db)
        with bench.db.write() as session:
            asked = imports.ImportRequest("churn", dataset.id)
            imports.submit(session, bench.settings, dataset.owner, asked, file, None)
        found.append(run(bench, memory_bytes))
    in_memory, read = found
    (said,) = read["job"].pop("warnings")
    assert "column by column" in said
    assert in_memory["job"].pop("warnings") == []
    for each in found:
        del each["folders"]
        # scores of rows that are not read at once are not kept
        each["job"].pop("held_out")
        each["files"].pop("held_out.parquet", None)
    assert without_segments(read) == without_segments(in_memory)


def test_a_table_that_fits_or_needs_its_rows_is_read_into_memory(bench: Workbench) -> None:
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    for algorithm, limit, reason in (
        ({"name": "rankboost", "n_rounds": 2}, 10**9, ""),
        ({"name": "treerank_forest", "n_trees": 2}, 1000, "it reads the rows"),
        ({"name": "logitboost", "n_rounds": 2, "crosses": 2}, 1000, "crosses read the rows"),
        ({"name": "logitboost", "n_rounds": 2, "target_encoding": 3}, 1000, "target_encoding"),
    ):
        bench.submit(dataset, algorithm=algorithm)
        done = run(bench, limit)
        assert "codes" not in done["folders"]
        said = [
            note for note in done["job"]["warnings"] if "the table was read into memory" in note
        ]
        assert len(said) == (limit == 1000)
        assert not said or reason in said[0]


def test_a_dataset_that_judges_counts_in_the_memory(bench: Workbench) -> None:
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    cells, limit = 400 * 6, 400 * 6 * 20 + 400 * 90
    for validation, is_read in (
        ({"method": "holdout", "fraction": 0.2}, False),
        ({"method": "dataset", "dataset_id": dataset.id}, True),
    ):
        algorithm = {"name": "rankboost", "n_rounds": 2}
        bench.submit(dataset, algorithm=algorithm, validation=validation)
        notes = run(bench, limit)["job"]["warnings"]
        told = [note for note in notes if "column by column" in note]
        assert len(told) == is_read
        assert not told or f"{cells * (18 + 16) + 400 * 90:,} bytes" in told[0]


def test_baselines_are_fitted_on_rows_that_fit(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.training.interpretation.MAX_ROWS", 80)
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    n_fits: list[str] = []
    fit_baseline = FitContext.fit_baseline

    def count(context: FitContext, part: Any, *rest: Any) -> Any:
        n_fits.append(part["algorithm"])
        return fit_baseline(context, part, *rest)

    monkeypatch.setattr(FitContext, "fit_baseline", count)
    takes: list[int] = []
    take = StoredTable.take

    def count_takes(table: StoredTable, rows: Any) -> Table:
        if n_fits:
            takes.append(len(rows))
        return take(table, rows)

    monkeypatch.setattr(StoredTable, "take", count_takes)
    # of 6 features an eighth holds 90 rows
    for memory_bytes, n_rows in ((90 * 6 * 8 * 8, range(80, 91)), (1000, range(1))):
        n_fits.clear()
        takes.clear()
        bench.submit(dataset, baselines=True)
        done = run(bench, memory_bytes)
        baselines = done["job"]["baselines"]["baselines"]
        assert n_fits == ["logistic", "auc_svm"]
        for baseline in baselines:
            assert baseline["rows"] in n_rows
            assert baseline["of_rows"] >= 300
            failed = baseline["failed"]
            assert (failed is None) == (memory_bytes > 1000)
            assert failed is None or "holds only 0 of" in failed
        assert len(takes) == (memory_bytes > 1000)  # the rows are read once for both


@long_form
def test_figures_of_groups_are_of_training_rows_whose_figures_fit(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.training.fitting.MIN_MEASURED_ROWS", 10)
    monkeypatch.setattr("app.training.interpretation.MAX_ROWS", 80)
    monkeypatch.setattr("app.training.interpretation.MAX_REFERENCE_ROWS", 40)
    dataset = bench.ready(make_csv(), label="y", positive="yes", group="g")
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
    said = [note for note in done["warnings"] if "not enough memory for all rows" in note]
    assert len(said) == 1
    assert f"({counted} of " in said[0]


@long_form
def test_figures_and_baselines_of_rows_in_a_file_are_those_of_memory(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Summed up and merged a few rows at once, and with a curve of more points than are stored."""
    monkeypatch.setattr("app.training.interpretation.MAX_ROWS", 80)
    monkeypatch.setattr("app.training.interpretation.MAX_REFERENCE_ROWS", 40)
    monkeypatch.setattr("core.metrics.groups.AT_ONCE", 16)
    small = {"rows_at_once": 50, "merged_at_once": 20}
    monkeypatch.setattr("core.metrics.runs.ScoreRuns.__init__.__kwdefaults__", small)
    monkeypatch.setattr("app.models.curves.MAX_CURVE_POINTS", 40)
    monkeypatch.setattr("app.models.curves.FIRST_CURVE_POINTS", 10)
    monkeypatch.setattr("app.training.bipartite.MAX_CURVE_POINTS", 40)
    monkeypatch.setattr("app.training.bipartite.FIRST_CURVE_POINTS", 10)
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    done = {}
    for memory_bytes in (None, 100 * 6 * 8 * 8):
        bench.submit(
            dataset,
            algorithm={"name": "rankboost", "n_rounds": 30},
            validation=HALF,
            baselines=True,
        )
        done[memory_bytes] = run(bench, memory_bytes)
    in_memory, read = done.values()
    assert "codes" in read["folders"]
    # The scores of rows in a file are not read at once, so they are not kept for costs by row.
    assert in_memory["files"].pop("held_out.parquet")
    assert read["files"] == in_memory["files"]
    assert 20 < len(read["files"]["train.curve"]) // 24 <= 40
    assert read["job"]["parts"] == in_memory["job"]["parts"]
    evaluated = [each["job"]["baselines"]["windows"] for each in (in_memory, read)]
    for window, expected in zip(*evaluated, strict=True):
        assert window["chosen"] == expected["chosen"]
        # the baselines themselves have learnt from fewer rows
        assert [each["algorithm"] for each in window["baselines"]] == ["logistic", "auc_svm"]
        for baseline in window["baselines"]:
            area, difference = baseline["area"]["value"], baseline["difference"]["value"]
            assert difference == pytest.approx(window["chosen"]["value"] - area, abs=1e-12)


@pytest.fixture
def both(bench: Workbench, tmp_path: Path) -> tuple[Table, StoredTable]:
    dataset = bench.ready(make_csv(), label="y", positive="yes", weight="w", group="g")
    assert dataset.table_key is not None
    columns = Columns(["a", "b", "word", "late"], "y", "w", "g")
    path = bench.blobs.path(dataset.table_key)
    memory_bytes = 100 * 4 * 8 * 8  # an eighth holds 100 rows
    return read_table(path, columns), store_table(path, columns, tmp_path / "codes", memory_bytes)


def check(read: Table, expected: Table) -> None:
    assert (read.names, read.categories) == (expected.names, expected.categories)
    for feature in range(4):
        assert np.array_equal(read.column(feature), expected.column(feature), equal_nan=True)
    blocks = np.concatenate([block.X for block in read.blocks(50)])
    assert np.array_equal(blocks, expected.X, equal_nan=True)
    for name in ("y", "weight", "group"):
        assert (getattr(read, name) == getattr(expected, name)).all()


def test_rows_are_taken_from_the_file(
    both: tuple[Table, StoredTable], monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    table, kept = both
    check(kept, table)
    rows = np.flatnonzero(np.arange(400) % 3 > 0)
    some = np.array([5, 100, 3, 260, 3, 0])
    check(kept.take(some), table.take(some))
    assert not isinstance(kept.take(some), StoredTable)
    assert not isinstance(kept.part(rows[:100]), StoredTable)
    check(kept.part(rows[:100]), table.take(rows[:100]))
    part, other = kept.part(rows), kept.part(np.setdiff1d(np.arange(400), rows))
    assert isinstance(part, StoredTable)
    assert part.max_bytes == kept.max_bytes
    learnt, expected = part.known_to(), table.take(rows).known_to()
    check(learnt, expected)
    held_out = table.take(np.setdiff1d(np.arange(400), rows))
    check(other.coded_as(learnt), held_out.coded_as(expected))
    check(learnt.take(some), expected.take(some))
    kept.source.keep(np.unique(some))
    check(kept.take(some), table.take(some))
    check(kept.take(rows), table.take(rows))
    with monkeypatch.context() as patch:
        patch.setattr(ParquetColumns, "read_groups", lambda *_: pytest.fail("they are kept"))
        check(kept.take(some), table.take(some))
    twice = rows[np.arange(1, len(rows), 2)]
    check(learnt.take(np.arange(1, len(rows), 2)), table.take(twice).coded_as(expected))
    with sentences.raises(ValueError):
        kept.part(rows[::-1])
    with sentences.raises(ValueError):
        kept.known_to(some)


@pytest.mark.parametrize(
    ("is_shuffled", "is_kept"), [(False, False), (True, True), *rest((False, True), (True, False))]
)
def test_rows_that_are_taken_are_in_memory_once(
    tmp_path: Path, is_shuffled: bool, is_kept: bool
) -> None:
    n_rows, names = 20_000, [f"c{j}" for j in range(20)]
    X = np.random.default_rng(0).normal(size=(n_rows, 20))
    columns = {name: X[:, j] for j, name in enumerate(names)} | {"y": X[:, 0] > 0}
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=500)
    table = store_table(path, Columns(names, "y", None, None), tmp_path, 10**9)
    rows = np.flatnonzero(np.arange(n_rows) % 4 > 0)
    if is_shuffled:
        rows = np.random.default_rng(1).permutation(rows)
    if is_kept:
        table.source.keep(np.sort(rows))
    table.take(rows[:10])  # loads what it needs
    tracemalloc.start()
    taken = table.take(rows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken.X.flags.f_contiguous
    assert (X[rows] == taken.X).all()
    assert most < 1.6 * taken.X.nbytes


def test_columns_of_a_wide_table_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_rows, n_features = 50, 40
    X = np.arange(n_rows * n_features, dtype=float).reshape(n_rows, n_features)
    names = [f"c{j}" for j in range(n_features)]
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), path, row_group_size=10)
    opened, parquet_file = [], pq.ParquetFile

    def open_file(path: Path) -> Any:
        opened.append(path)
        return parquet_file(path)

    monkeypatch.setattr(pq, "ParquetFile", open_file)
    said: list[str] = []
    source = ParquetColumns(path, names, None, said.append)
    source.read_ahead = 12 * 8 * n_rows
    values = np.empty(n_rows)
    for column in range(n_features):
        source.read(column, values)
        assert (values == X[:, column]).all()
    assert opened == [path]
    assert said == [f"column {n} of 40" for n in (12, 24, 36, 40)]
    for column in (3, 39, 17, 17, 18, 0):  # in any order
        source.read(column, values)
        assert (values == X[:, column]).all()


@long_form
def test_a_job_hears_of_a_stop_while_columns_are_read(bench: Workbench) -> None:
    dataset = bench.ready(make_csv(), label="y", positive="yes")
    bench.submit(dataset, algorithm={"name": "rankboost", "n_rounds": 2})
    payload = bench.prepare(bench.claim())
    heard: list[tuple[str, str]] = []

    def listen(step: int, of: int, info: Any) -> None:
        if isinstance(info, Report) and "detail" in info.job:
            heard.append((str(info.job["phase"]), str(info.job["detail"])))
            if len(heard) == stops_at:
                raise KeyboardInterrupt

    try:
        stops_at = -1
        execution.run(payload | {"memory_bytes": 1000}, listen)
        phases = [phase for phase, _ in heard]
        assert {READING, FITTING, MEASURING} <= set(phases)
        assert "column 6 of 6" in [detail for _, detail in heard]
        stops_at = phases.index(FITTING) + 1
        heard.clear()
        with pytest.raises(KeyboardInterrupt):
            execution.run(payload | {"memory_bytes": 1000, "checkpoint": None}, listen)
        assert heard[-1][0] == FITTING
    finally:
        shutil.rmtree(payload["workdir"])
