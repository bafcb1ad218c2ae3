"""Models judged from a shell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select
from typer.testing import Result

from app.platform.tables import BatchScore
from tests.app.cli.conftest import told
from tests.app.live_service import Service
from tests.sentences import Sentences

Run = Callable[..., Result]


def write(path: Path, n: int, seed: int, noise: float = 0.5) -> Path:
    """A table of two features and a category."""
    rng = np.random.default_rng(seed)
    lines = ["age,town,spare,left"]
    for age, spare in rng.normal(size=(n, 2)).round(3).tolist():
        town = int(rng.integers(0, 3))
        left = "yes" if age + (town == 1) + noise * rng.normal() > 0.5 else "no"
        lines.append(f"{age},{town},{spare},{left}")
    path.write_text("\n".join([*lines, ""]))
    return path


def upload(run: Run, *words: object) -> str:
    return next(w for w in run("upload", *words).stdout.split() if w.startswith("ds_"))


ONE_FIT = ("--no-baselines", "--holdout", "0.25")


def train(run: Run, people: Path) -> Run:
    """Train two models, `sum` and `line`, on one table; return what runs commands."""
    labelled = ("--label", "left", "--positive", "yes", "--categorical", "town")
    dataset = upload(run, people, *labelled)
    run("train", dataset, "--name", "sum", "--set", "n_rounds=20", *ONE_FIT)
    run("train", dataset, "--name", "line", "--algorithm", "logistic", *ONE_FIT)
    return run


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table that the models have learnt from."""
    return write(tmp_path_factory.mktemp("people") / "people.csv", 400, 0)


@pytest.fixture(scope="module")
def trained(run_shared: Run, people: Path) -> Run:
    """Two models, `sum` and `line`, of one table, for all tests that list nothing."""
    return train(run_shared, people)


@pytest.fixture
def alone(run: Run, people: Path) -> Run:
    """The same two, with nothing beside them."""
    return train(run, people)


def test_recalibrate(trained: Run, people: Path, tmp_path: Path, sentences: Sentences) -> None:
    before = trained("calibration", "sum").stdout.splitlines()
    assert before[0].startswith("Calibration 1 of sum:1: ")
    assert "validation rows" in before[0]
    assert any(line.startswith("  Brier score 0.") for line in before)
    worse = write(tmp_path / "march.csv", 300, 3, noise=3.0)
    after = trained("recalibrate", "sum", worse).stdout.splitlines()
    assert after[0].startswith("Calibration 2 of sum:1: ")
    assert "fitted on march (" in after[0]
    assert any(line.startswith("  mean probability 0.") for line in after)
    history = [line.split(":")[0] for line in after if line.startswith("  version ")]
    assert history == ["  version 2", "  version 1"]
    answer = json.loads(trained("calibration", "sum", "--json").stdout)
    assert (answer["version"], answer["rows"]) == (2, 300)
    again = json.loads(trained("recalibrate", "sum:1", answer["dataset"]["id"], "--json").stdout)
    assert again["version"] == 3
    own = told(trained("recalibrate", "sum", people, "--json", code=1))
    assert own["code"] == "rows_seen"
    refusal = trained("recalibrate", "sum", "ds_none", code=3).stderr
    assert refusal.startswith("Not found: ")
    assert "'ds_none'" in refusal
    labelled = ("recalibrate", "sum", "ds_none", "--label", "left", "--json")
    sentences(told(trained(*labelled, code=2))["detail"])


def test_evaluate(trained: Run, tmp_path: Path, sentences: Sentences) -> None:
    worse = write(tmp_path / "march.csv", 300, 1, noise=3.0)
    shown = trained("evaluate", "sum", worse, "--window", "0,0.2").stdout
    lines = shown.splitlines()
    assert lines[0].startswith("ROC of sum:1 on ")
    assert " march (" in lines[0]
    assert lines[1].startswith("  AUC  0.")
    assert lines[2].endswith("on FPR [0, 0.2]")
    assert "⠀" in shown
    summary = lines.index(next(line for line in lines if line.startswith("ranking_kept: no.")))
    area = next(line for line in lines[summary + 1 :] if line.startswith("  ! AUC 0."))
    assert "lower by" in area

    answer = json.loads(trained("evaluate", "sum", worse, "--json", "--level", 0.9).stdout)
    assert (answer["status"], answer["level"]) == ("ready", 0.9)
    shown = trained(
        "evaluate", "sum", worse, "--group-by", "town", "--fpr", 0.2, "--cutoffs", "equal_fpr"
    ).stdout
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("By town at the threshold"))
    towns = [line for line in lines[start:] if " negative)" in line]
    assert [line.split()[0] for line in towns] == ["0", "1", "2"]
    assert all("AUC 0." in line and "FPR 0." in line for line in towns)
    assert sum("(equal_fpr)" in line for line in lines) == 3
    assert any(line.startswith("  worst AUC: ") for line in lines)
    assert any(line.startswith(("    FPR differs ", "    FPR does not differ ")) for line in lines)
    at = lines.index("Probabilities:")
    assert all("mean probability 0." in line for line in lines[at + 1 : at + 4])
    assert any(line.startswith("    Mean calibration error ") for line in lines)
    (too_optimistic,) = (line for line in lines if line.startswith("These cutoffs "))
    sentences(too_optimistic)
    lone = trained("evaluate", "sum", worse, "--confidence", 0.9, "--json", code=2)
    sentences(told(lone)["detail"])
    refusal = told(trained("evaluate", "sum", worse, "--group-by", "planet", "--json", code=2))
    assert (refusal["code"], refusal["errors"][0]["pointer"]) == ("unknown_column", "/group_by")

    for window in ("0-1", "nan,0.1"):
        said = told(trained("evaluate", "sum", worse, "--window", window, "--json", code=2))
        sentences(said)
    refused = told(trained("evaluate", "sum", "ds_none", "--json", code=3))
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("not_found", "/dataset_id")
    trained("evaluate", "sum", "ds_none", "--label", "left", code=2)
    trained("evaluate", "nobody", worse, code=3)
    unlike = told(trained("evaluate", "sum", worse, "--positive", "no", "--json", code=2))
    assert unlike["code"] == "label_mismatch"


def test_costs(trained: Run, tmp_path: Path, sentences: Sentences) -> None:
    march = write(tmp_path / "march.csv", 300, 1)
    head, *lines = march.read_text().splitlines()
    rows = [f"{line},{i % 9}" for i, line in enumerate(lines)]
    march.write_text("\n".join([f"{head},balance", *rows, ""]))
    labelled = ("--label", "left", "--positive", "yes", "--categorical", "town")
    dataset = upload(trained, march, *labelled)
    asked = ("--amount", "balance", "--cost", "false_negative=1e0*amount", "--cost", "review=1.5")
    lines = trained("evaluate", "sum", dataset, *asked, "--fpr", 0.1).stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("By balance, "))
    assert lines[start + 1].startswith("  area over rows 0.")
    assert lines[start + 2].startswith("    1 % of the rows ")
    assert "Costs per row:" in lines
    for begin in ("  flag every row 1.5 [1.5, 1.5]", "  lowest at the cutoff ", "    saves "):
        assert any(line.startswith(begin) for line in lines), begin
    price = "false_negative=2+0.5*amount"
    answer = json.loads(
        trained(
            "evaluate", "sum", dataset, *asked[:2], *asked[4:], "--cost", price, "--json"
        ).stdout
    )
    assert answer["costs"]["false_negative"] == {"fixed": 2.0, "rate": 0.5}
    lines = trained("compare", "sum", "line", "--dataset", dataset, *asked).stdout.splitlines()
    costs = lines[lines.index("Costs per row:") :]
    assert sum(line.lstrip().startswith("held out ") for line in costs) == 2
    assert any(line.startswith("  sum:1 minus line:1  ") for line in costs)
    for wrong in ("review", "review=five", "review=-1", "review=1*money"):
        said = told(trained("evaluate", "sum", dataset, "--cost", wrong, "--json", code=2))
        sentences(said)
    twice = ("--cost", "review=1", "--cost", "review=2")
    assert "given twice" in trained("evaluate", "sum", dataset, *twice, code=2).stderr
    assert "tax" in trained("evaluate", "sum", dataset, "--cost", "tax=1", code=2).stderr


def test_compare(trained: Run, tmp_path: Path) -> None:
    labelled = ("--label", "left", "--positive", "yes", "--categorical", "town")
    dataset = upload(trained, write(tmp_path / "april.csv", 300, 2), *labelled)
    asked = ("compare", "sum", "line:1", "--dataset", dataset, "--window", "1", "--window", "0,0.1")
    lines = trained(*asked).stdout.splitlines()
    assert lines[0].startswith("sum:1, line:1 ")
    assert "april" in lines[0]
    assert lines[2].startswith("AUC, all equal: p ")
    assert [line.split()[0] for line in lines[3:5]] == ["sum:1", "line:1"]
    assert lines[5].startswith("  sum:1 minus line:1  ")
    assert lines[7].startswith("pAUC on FPR ")
    answer = json.loads(trained(*asked, "--json").stdout)
    assert answer["result"]["n_tests"] == 2
    assert "at least 2" in trained("compare", "sum", "--dataset", dataset, code=2).stderr


def test_reasons_and_their_codes(trained: Run, tmp_path: Path) -> None:
    assert "no reason codes" in trained("codes", "sum", code=3).stderr
    file = tmp_path / "codes.json"
    entry = {"code": "A1", "text": "Too high", "columns": ["age"], "direction": "raises"}
    file.write_text(json.dumps({"entries": [entry]}))
    assert "revision 1" in trained("codes", "sum", file).stderr
    printed = trained("codes", "sum").stdout
    assert json.loads(printed)["entries"][0]["code"] == "A1"
    file.write_text(printed)
    assert "revision 1" in trained("codes", "sum", file).stderr  # nothing has changed
    for wrong in ("[]", '{"entries": [1]}', "{"):
        file.write_text(wrong)
        assert "entries" in trained("codes", "sum", file, code=2).stderr
    asked = ("--reasons", 1, "--reference", "average", "--direction", "both")
    rows = write(tmp_path / "rows.csv", 20, 1)
    lines = trained("score", "sum", rows, *asked).stdout.splitlines()
    assert len(lines) == 21
    assert lines[0].split(",")[5:7] == ["reason_1_code", "reason_1_text"]
    one = ("score", "sum", "age=2", "town=1", "spare=0", *asked)
    assert len(json.loads(trained(*one).stdout)["reasons"]) == 1


def test_scores_by_a_job_leave_nothing_behind(
    trained: Run, shared: Service, tmp_path: Path
) -> None:
    def left() -> Sequence[BatchScore]:
        with shared.context.db.read() as session:
            return session.scalars(select(BatchScore)).all()

    rows = write(tmp_path / "rows.csv", 20, 1)
    asked = ("score", "sum", rows, "--top", 5)
    trained("alias", "sum", "champion", "sum", "--fpr", "0.1")
    said = trained("score", "sum@champion", rows, "--top", 5).stderr
    assert re.search(r"\d+ flagged \(\d+\.\d %\) .*champion", said)
    # Where the file cannot be written.
    trained(*asked, "--output", tmp_path / "nowhere" / "scores.csv", code=2)
    assert left() == []


def test_what_is_there_is_listed_and_an_alias_moves(
    alone: Run, tmp_path: Path, sentences: Sentences
) -> None:
    alone("evaluate", "sum", write(tmp_path / "march.csv", 60, 1))
    dataset = json.loads(alone("list", "datasets", "--json", "--limit", 1).stdout)[0]["id"]
    alone("compare", "sum", "line", "--dataset", dataset)
    assert alone("alias", "sum", "champion", "sum").stdout == "sum@champion is sum:1\n"
    assert alone("alias", "sum", "champion", "sum:1").stdout == "sum@champion is sum:1\n"
    guaranteed = alone("alias", "sum", "champion", "sum", "--fpr", "0.1").stdout
    assert guaranteed.startswith("sum@champion is sum:1, ")
    assert guaranteed.endswith("(FPR ≤ 0.1)\n")
    assert alone("alias", "sum", "champion", "sum").stdout == guaranteed
    at = alone("alias", "sum", "champion", "sum", "--threshold", "-0.25").stdout
    assert at.startswith("sum@champion is sum:1, ")
    assert at.endswith(" -0.25\n")
    none = ("alias", "sum", "champion", "sum", "--no-guarantee")
    assert alone(*none).stdout == "sum@champion is sum:1\n"
    sentences(alone(*none, "--tpr", "0.5", code=2).stderr)
    undone = alone("alias", "sum", "champion", "--undo", "--reason", "Too few flags").stdout
    assert undone == at.replace("sum:1,", "sum:1 again,")
    for wrong in ((), ("sum", "--undo"), ("--undo", "--tpr", "0.5"), ("--undo", "--rows", "5")):
        alone("alias", "sum", "champion", *wrong, code=2)
    alone("alias", "sum", "none", "--undo", code=3)
    for collection, seen in (
        ("datasets", ["march, version 1", "people, version 1"]),
        ("jobs", ["line", "sum"]),
        ("models", ["line:1", "sum:1 @champion"]),
        ("evaluations", ["sum:1"]),
        ("comparisons", ["sum:1, line:1"]),
    ):
        lines = alone("list", collection).stdout.splitlines()
        assert [line.split("  ")[1] for line in lines] == seen, collection
    first = alone("list", "models", "--limit", 1)
    assert len(first.stdout.splitlines()) == 1
    sentences(first.stderr)
    assert len(alone("list", "models", "--search", "UM").stdout.splitlines()) == 1
    sentences(alone("list", "batch-scores").stderr)
    nothing = alone("list", "models", "--search", "[nobody")
    sentences(nothing.stderr)
    job = alone("list", "jobs", "--limit", 1).stdout.split()[0]
    assert "succeeded" in alone("cancel", job, code=1).stderr
    alone("list", "peers", code=2)
    alone("list", "models", "--limit", 0, code=2)
    assert "'nobody'" in alone("alias", "sum", "best", "nobody", code=3).stderr
    alone("alias", "sum", "champion", "sum", "--fpr", "0.1")
    assert " champion " in alone("evaluate", "sum@champion", dataset).stdout
    assert "'job_nothing'" in alone("cancel", "job_nothing", code=3).stderr
