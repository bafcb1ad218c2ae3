"""What a model has learnt, from a shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def trained(run: Run, tmp_path: Path) -> Run:
    """Two models of one table, `oak` and `sum`; returns what runs commands."""
    rng = np.random.default_rng(0)
    lines = ["age,member,noise,left"]
    for age, noise in rng.normal(size=(300, 2)).round(3).tolist():
        member = bool(rng.random() < 0.5)
        left = "yes" if age + member + 0.5 * rng.normal() > 0.5 else "no"
        lines.append(f"{age},{str(member).lower()},{noise},{left}")
    table = tmp_path / "people.csv"
    table.write_text("\n".join([*lines, ""]))
    uploaded = run("upload", table, "--label", "left", "--positive", "yes").stdout
    dataset = next(word for word in uploaded.split() if word.startswith("ds_"))
    run("train", dataset, "--algorithm", "treerank", "--name", "oak")
    run("train", dataset, "--algorithm", "rankboost", "--name", "sum", "--set", "n_rounds=20")
    return run


def test_importance(trained: Run) -> None:
    lines = trained("importance", "oak").stdout.splitlines()
    assert lines[0].startswith("squared_auc_gain (train rows). Sum of the squared gains")
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


def test_what_is_wrong_is_one_sentence(trained: Run) -> None:
    assert "single ranking trees" in trained("tree", "sum", code=1).stderr
    assert "feature 'wage' is unknown" in trained("dependence", "sum", "wage", code=1).stderr
    assert "there is no model 'elm'" in trained("importance", "elm", code=1).stderr
