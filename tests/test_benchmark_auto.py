"""The benchmark of `auto` on a small table with words and gaps: it runs, continues after a stop, and reports."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import auto
from core.metrics import auc, partial_auc
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences

N_ROWS = 240


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A table of words, numbers and gaps with a label of words, and what is to be known of it."""
    rng = np.random.default_rng(3)
    town = rng.choice(["Aix", "Bonn", "Cork"], N_ROWS)
    size = rng.normal(size=N_ROWS)
    ill = (town == "Bonn") + size + rng.normal(size=N_ROWS) > 0.8
    table = pa.table(
        {
            "town": [None if i % 11 == 0 else word for i, word in enumerate(town)],
            "size": [None if i % 7 == 0 else value for i, value in enumerate(size)],
            "outcome": np.where(ill, "ill", "well"),
            "cause": np.where(ill, "known", "none"),
        }
    )
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(table, folder / "ward.parquet")
    (folder / "ward.json").write_text(
        json.dumps({"label": "outcome", "positive": "ill", "drop": ["cause"]})
    )
    return folder


def command(data: Path, out: Path, *more: str) -> list[str]:
    """Logistic regression as the peer, in this environment, which has all that it needs."""
    cores = str(len(os.sched_getaffinity(0)))
    return [
        *("--data", str(data), "--out", str(out), "--systems", "logistic", "--budgets", "5"),
        *("--threads", cores, "--peers-python", sys.executable, *more),
    ]


@long_form
def test_a_run_goes_on_where_it_ended_and_is_reported(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results.jsonl"
    auto.main(command(data, out, "--splits", "1"))
    first = out.read_bytes()
    out.write_bytes(
        first + b'{"table": "ward", "spl'
    )  # as a process leaves it that was ended while it wrote
    auto.main(command(data, out, "--splits", "2"))
    assert out.read_bytes().startswith(first)
    records = auto.read_records(out)
    assert [record["split"] for record in records] == [0, 1]
    assert {record["n_train"] for record in records} == {160}

    features, y = auto.read_table(data, "ward")
    assert features.column_names == ["town", "size"]
    for record in records:
        run = auto.Run("ward", record["split"], None, "logistic", None)
        with np.load(auto.scores_folder(out) / run.file) as kept:
            np.testing.assert_array_equal(kept["y"], y[kept["row"]])
            assert record["auc"] == auc(kept["y"], kept["rank"])
            assert record["pauc"] == partial_auc(kept["y"], kept["rank"], 0.0, 0.05)
            assert record["auc"] > 0.7
            # A second system, whose scores are noise, and a third that fails.
            split = auto.Split(data, data, "label", kept["y"], kept["row"], 160, 2)
        noise = np.random.default_rng(record["split"]).normal(size=80)
        ours = auto.Run("ward", record["split"], 5.0, "rankwright", None)
        auto.keep(out, ours, split, noise, {"seconds": 11.0, **auto.measure(ours, split, noise)})
        failed = auto.Run("ward", record["split"], 5.0, "flaml", None)
        auto.keep(out, failed, split, None, {"error": "RuntimeError: ended after 140 s"})

    capsys.readouterr()
    auto.main(["--report", str(out)])
    lines = capsys.readouterr().out.splitlines()
    areas = [line for line in lines if line.startswith("| ward |")]
    assert len(areas) == 2
    assert "0.5000 ▼" in areas[0]  # what failed
    assert areas[0].split("|")[2].endswith("▼ ")  # noise
    mean = np.mean([record["auc"] for record in records])
    assert f"**{mean:.4f}**" in areas[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    times = [row for row in cells if row[:4] == ["rankwright", "5", "2", "0"]]
    assert times == [["rankwright", "5", "2", "0", "11.0", "11.0", "220%", "220%", "2"]]
    assert any(row[:4] == ["flaml", "5", "2", "2"] for row in cells)
    auto.main(command(data, out, "--splits", "2"))
    assert "0 runs left" in capsys.readouterr().out


def test_the_splits_hold_the_classes_and_no_row_judges_twice() -> None:
    y = np.array([1] * 10 + [0] * 91, dtype=np.int8)
    for repeat in (0, 1):
        evaluated = []
        for fold in range(3):
            learnt, judges = auto.split_rows(y, 3 * repeat + fold, 3)
            assert sorted([*learnt, *judges]) == list(range(101))
            assert y[judges].sum() in (3, 4)
            evaluated += judges.tolist()
        assert sorted(evaluated) == list(range(101))
    assert not np.array_equal(auto.split_rows(y, 0, 3)[1], auto.split_rows(y, 3, 3)[1])


def test_training_rows_are_repeated_and_test_rows_are_not(data: Path, tmp_path: Path) -> None:
    features, y = auto.read_table(data, "ward")
    split = auto.write_split(tmp_path, features, y, 0, 3, 1_000)
    train, test = pq.read_table(split.train), pq.read_table(split.test)
    assert (train.num_rows, test.num_rows) == (1_000, 80)
    assert train.slice(160, 160).equals(train.slice(0, 160))
    assert train.column_names == ["town", "size", "label"]
    assert test.column_names == ["town", "size"]


def test_few_positives_in_many_rows_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "RARE_AT_ONCE", 4_000)
    monkeypatch.setattr(auto, "RARE_TEST", (30, 60))
    monkeypatch.setitem(auto.RARE, "rare_9_700", (9, 700))
    splits = [auto.write_rare(tmp_path, "rare_9_700", k) for k in (0, 1)]
    for split in splits:
        assert (split.n_train, split.n_features, len(split.y_test)) == (700, 20, 90)
        assert split.y_test.sum() == 30
    train = pq.read_table(splits[1].train)
    assert (train.num_rows, sum(train["label"].to_pylist())) == (700, 9)
    x, y = pq.read_table(splits[1].test)["x0"].to_numpy(), splits[1].y_test
    assert auc(y, x) > 0.6
    assert not np.array_equal(splits[0].y_test, y)
    assert not set(splits[0].row) & set(splits[1].row)
    assert {(p, n) for p, n in auto.RARE.values() if n > 700} == {
        (p, n) for p in (50, 200, 500) for n in (20_000, 100_000, 500_000)
    }


def test_positives_of_a_table_are_thinned_to_a_number(data: Path, tmp_path: Path) -> None:
    auto.main(command(data, tmp_path / "few.jsonl", "--splits", "1", "--tables", "ward~12"))
    (record,) = auto.read_records(tmp_path / "few.jsonl")
    _, y = auto.read_table(data, "ward")
    learnt, judges = auto.split_rows(y, 0, 3)
    assert record["n_train"] == (y[learnt] == 0).sum() + 12
    assert record["n_test"] == len(judges)
    for wrong in ("ward~0", "ward~x", "rare_50_20000~3", "wart"):
        with raises(SystemExit, "--tables"):
            auto.main(command(data, tmp_path / "x.jsonl", "--tables", wrong))


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"label": "diagnosis"}, "the label must be a column of the table, got 'diagnosis'"),
        ({"label": "outcome", "positive": "dead"}, "got 2 values and positive = 'dead'"),
        ({"label": "town"}, "got 3 values and positive = 'Cork'"),
        ({"label": "outcome", "drop": ["age"]}, "`drop` must name columns of the table, got"),
    ],
)
def test_a_table_that_cannot_be_used_is_left_out_with_a_reason(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    about: dict[str, object],
    reason: str,
) -> None:
    (data / "ward.json").write_text(json.dumps(about))
    auto.main(command(data, tmp_path / "results.jsonl"))
    told = capsys.readouterr().err
    assert told.startswith("left out: ward: ")
    assert reason in told


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--budgets", "0"], "must be a number from 0.1 on, got '0'"),
        (["--budgets", "nan"], "must be a number from 0.1 on, got 'nan'"),
        (["--splits", "none"], "must be a number from 1 on, got 'none'"),
        (["--folds", "1"], "must be a number from 2 on, got '1'"),
        (["--threads", "100000"], "the cores of this process, got 100000"),
        (["--systems", "h2o"], "invalid choice: 'h2o'"),
        (["--only", "peers"], "give --systems or --only, not both"),
        (["--data", "nowhere"], "--data must be a folder, got 'nowhere'"),
        (["--tables", "none"], "--tables must name files NAME.parquet of"),
        (["--peers-python", "nowhere/python"], "`make peers` must come first"),
    ],
)
def test_a_bad_option_is_told(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        auto.main(command(data, tmp_path / "results.jsonl", *more))
    assert reason in f"{ended.value} {capsys.readouterr().err}"


def test_a_report_of_nothing_is_refused(tmp_path: Path, sentences: Sentences) -> None:
    with sentences.raises(SystemExit):
        auto.main(["--report", str(tmp_path / "none.jsonl")])
