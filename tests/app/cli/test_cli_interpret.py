"""Commands that show what a model has learnt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from typer.testing import Result

from tests.app.cli.conftest import told
from tests.raising import mentions

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def trained(run_shared: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three models of one table, `oak`, `sum` and `card`; returns what runs commands."""
    rng = np.random.default_rng(0)
    lines = ["age,member,noise,left"]
    for age, noise in rng.normal(size=(300, 2)).round(3).tolist():
        member = bool(rng.random() < 0.5)
        left = "yes" if age + member + 0.5 * rng.normal() > 0.5 else "no"
        lines.append(f"{age},{str(member).lower()},{noise},{left}")
    run, table = run_shared, tmp_path_factory.mktemp("people") / "people.csv"
    table.write_text("\n".join([*lines, ""]))
    uploaded = run("upload", table, "--label", "left", "--positive", "yes").stdout
    dataset = next(word for word in uploaded.split() if word.startswith("ds_"))
    train = ("train", dataset, "--no-baselines", "--holdout", "0.25", "--algorithm")
    run(*train, "treerank", "--name", "oak")
    run(*train, "rankboost", "--name", "sum", "--set", "n_rounds=20")
    run(*train, "scorecard", "--name", "card")
    return run


def test_importance(trained: Run) -> None:
    lines = trained("importance", "oak").stdout.splitlines()
    assert lines[0].startswith("squared_auc_gain (train rows). ")
    names = [line.split()[0] for line in lines[1:]]
    assert names == ["age", "member", "noise"]
    bars = [line.count("█") for line in lines[1:]]
    assert bars[0] == 40
    assert bars == sorted(bars, reverse=True)
    answer = json.loads(trained("importance", "sum", "--json").stdout)
    assert answer["method"] == "mean_absolute_contribution"


def test_dependence(trained: Run) -> None:
    lines = trained("dependence", "sum", "age", "--points", 5).stdout.splitlines()
    assert lines[0].startswith("mean score over 22")
    assert lines[1].split() == ["age", "score"]
    assert len(lines) == 7
    assert lines[2].count("█") == 0
    assert lines[-1].count("█") == 40
    two = trained("dependence", "sum", "member", "age", "--points", 3).stdout.splitlines()
    assert two[1].startswith("member \\ age")
    assert [line.split()[0] for line in two[2:]] == ["false", "true"]
    answer = json.loads(trained("dependence", "oak", "member", "--json").stdout)
    assert answer["features"][0]["values"] == [False, True]


def test_tree(trained: Run, tmp_path: Path) -> None:
    text = trained("tree", "oak").stdout
    assert text.startswith("ranking tree of ")
    assert "├─ " in text
    picture = tmp_path / "oak.svg"
    trained("tree", "oak", "--svg", picture)
    assert ET.fromstring(picture.read_text(encoding="utf-8")).tag.endswith("svg")


def test_report_and_pictures(trained: Run, tmp_path: Path) -> None:
    written = trained("report", "sum").stdout
    assert written.startswith("# Model report: sum:1\n")
    page = tmp_path / "sum.html"
    trained("report", "sum", "--output", page)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    trained("report", "sum", "--output", page, "--format", "json")
    assert json.loads(page.read_text())["model"]["name"] == "sum"
    picture = tmp_path / "sum.png"
    trained("plot", "sum", "--kind", "pauc", "--width", 300, "--output", picture)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    learnt = trained("plot", "sum", "--format", "svg", "--on", "train").stdout
    assert "training rows" in learnt
    assert "┤" in trained("plot", "sum").stdout
    for kind, words in (
        ("precision_recall", ("Precision and recall of sum:1", "Recall; dotted: random (prev")),
        ("gains", ("Gains of sum:1", "Fraction of the list; dotted: random")),
        ("cost", ("Costs of sum:1", "Expected cost", "Weight of a false negative")),
        ("histogram", ("Scores by class of sum:1", "line: positives; dashed: negatives")),
        ("reliability", ("Reliability of sum:1", "Probability; dotted: perfect calibration")),
    ):
        drawn = trained("plot", "sum", "--kind", kind).stdout
        assert "┤" in drawn
        assert [each for each in words if each not in drawn] == [], kind
        trained("plot", "sum", "--kind", kind, "--output", tmp_path / f"{kind}.svg")
        assert words[0] in (tmp_path / f"{kind}.svg").read_text(encoding="utf-8")
    alone = trained("plot", "sum", "--kind", "pauc", code=2).stderr
    assert "roc, precision_recall" in " ".join(alone.replace("│", " ").split())
    refused = trained("report", "sum", "--output", tmp_path / "sum.pdf", code=2).stderr
    assert "md, html, json" in " ".join(refused.split())
    assert "band must be" in trained("plot", "sum", "--band", "x", "--format", "svg", code=2).stderr


def test_a_model_is_written_as_a_file(trained: Run, tmp_path: Path) -> None:
    written = tmp_path / "sum.sql"
    trained("models", "export", "sum", "--output", written)
    assert written.read_text().endswith('FROM "rows" AS "rows"\n')
    shown = trained("models", "export", "sum:1", "--format", "python").stdout
    assert "def score(row):" in shown
    for wrong in (["--format", "pmml"], []):
        refused = trained("models", "export", "sum", *wrong, code=2).stderr
        shown = " ".join(refused.replace("│", " ").split())
        assert all(mentions(shown, name) for name in ("onnx", "python", "sql"))


def test_what_is_wrong_is_one_sentence(trained: Run) -> None:
    assert "single ranking trees" in trained("tree", "sum", code=2).stderr
    assert "feature 'wage' is unknown" in trained("dependence", "sum", "wage", code=2).stderr
    assert told(trained("importance", "elm", "--json", code=3))["code"] == "not_found"


def test_a_cut(trained: Run) -> None:
    lines = trained("cutoff", "sum", "--fpr", 0.1, "--confidence", 0.9).stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == ["threshold", "fpr", "tpr", "precision", "lift", "flagged", "guaranteed"]
    assert "fpr at most 0.1 " in lines[-1]
    assert "confidence 0.9" in lines[-1]
    assert lines[-1].endswith("(22 are needed)")
    answer = json.loads(trained("cutoff", "sum", "--threshold", 1e9, "--json").stdout)
    assert answer["guarantee"] is None
    assert answer["flagged"]["value"] == 0.0
    refusal = trained("cutoff", "sum", "--fpr", 0.001, "--confidence", 0.9, code=2).output
    assert "2,302 negatives" in refusal


def test_the_checks_of_a_model(trained: Run) -> None:
    found = json.loads(trained("checks", "sum", "--json").stdout)["findings"]
    shown = " ".join(trained("checks", "sum").stdout.split())
    for each in found:
        assert each["question"] in shown
    assert found[0]["answer"] in shown


def test_the_bins_of_a_scorecard(trained: Run) -> None:
    found = json.loads(trained("bins", "card", "--pdo", 40, "--json").stdout)
    lines = trained("bins", "card", "--pdo", 40).stdout.splitlines()
    assert lines[0].split() == ["feature", "IV", "bin", "rows", "events", "WOE", "points"]
    shown = iter(lines[1:])
    for feature in found["features"]:
        for number, each in enumerate(feature["bins"]):
            words = next(shown).split()
            assert (words[0] == feature["name"]) == (number == 0)
            assert words[-1] == f"{each['points']:+.1f}"
    assert next(shown, None) is None
    assert told(trained("bins", "sum", "--json", code=3))["code"] == "no_scorecard"
    assert told(trained("bins", "elm", "--json", code=3))["code"] == "not_found"
    assert trained("bins", "card", "--pdo", 0, code=2).output


def test_the_top_of_a_list(trained: Run) -> None:
    lines = trained("gains", "sum", "--share", 0.1, "--count", 20).stdout.splitlines()
    assert lines[0].split() == ["share", "rows", "positives", "precision", "recall", "lift"]
    assert lines[1].startswith("0.1 ")
    assert lines[2].split()[1] == "20"
    table = json.loads(trained("gains", "sum", "--json").stdout)
    assert len(table["rows"]) == 13
    asked = trained("metrics", "sum", "average_precision", "two_way:0.3,0.4").stdout.splitlines()
    assert [line.split()[0] for line in asked[1:]] == ["average_precision", "two_way:0.3,0.4"]
    assert "got 'area'" in trained("metrics", "sum", "area", code=2).output
