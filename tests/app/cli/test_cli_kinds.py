"""Upload, train, show and score from a shell, for every kind of dataset."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from tests.app.cli.conftest import told
from tests.app.ingest.test_workbooks import Cells, sheets
from tests.long_form import long_form
from tests.sentences import Sentences

Run = Callable[..., Result]
ONE_FIT = ("--no-baselines", "--holdout", "0.25")


def write(path: Path, head: str, rows: Any) -> Path:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows), ""]))
    return path


def id_of(output: str) -> str:
    return next(word for word in output.split() if word.startswith("ds_"))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).normal(size=(160, 2)).round(3)
    left = np.where(X[:, 0] > 0, "yes", "no")
    return write(tmp_path / "people.csv", "age,income,left", zip(*X.T.tolist(), left, strict=True))


@pytest.fixture
def films(tmp_path: Path) -> tuple[Path, Path]:
    """Items, and pairs in which the longer film is better."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)).round(3).tolist()
    items = write(
        tmp_path / "films.csv", "film,length,year", ((f"m{i}", *x) for i, x in enumerate(X))
    )
    ends = (rng.choice(60, 2, replace=False).tolist() for _ in range(600))
    pairs = ((i, k) if X[i][0] > X[k][0] else (k, i) for i, k in ends)
    return items, write(
        tmp_path / "pairs.csv", "better,worse", ((f"m{i}", f"m{k}") for i, k in pairs)
    )


@pytest.fixture
def days(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(160, 2)).round(3)
    has = np.column_stack([X[:, 0] > 0, X[:, 1] > X[:, 0], np.arange(160) == 3]).astype(int)
    rows = ([*x, *h] for x, h in zip(X.tolist(), has.tolist(), strict=True))
    return write(tmp_path / "days.csv", 'a,b,"[hot, dry]",big,rare', rows)


def test_a_table_with_a_label(run: Run, people: Path, tmp_path: Path) -> None:
    uploaded = run("upload", people, "--label", "left", "--positive", "yes").stdout
    assert "  people: 160 rows, " in uploaded
    assert " 2 features, " in uploaded
    svg = tmp_path / "roc.svg"
    one_fit = ["--set", "n_rounds=5", "--holdout", "0.25"]
    trained = run("train", id_of(uploaded), "--name", "churn", *one_fit, "--svg", svg)
    assert trained.stdout.startswith("ROC of churn:1 ")
    assert svg.read_text().startswith("<svg")
    shown = run("show", "churn").stdout
    assert shown == trained.stdout
    found = json.loads(run("show", "churn:1", "--json").stdout)
    assert found["model"]["name"] == "churn"
    assert f"{found['metrics']['auc']['value']:.4f}" in shown
    scored = list(csv.DictReader(io.StringIO(run("score", "churn", "--file", people).stdout)))
    assert len(scored) == 160
    assert scored[0].keys() == {"score", "fpr", "tpr", "probability"}
    assert all(0 <= float(row["fpr"]) <= 1 for row in scored)


def test_the_first_line_says_which_class_is_positive(
    run: Run, tmp_path: Path, sentences: Sentences
) -> None:
    rows = ((i, "good" if i % 4 else "bad") for i in range(80))
    table = write(tmp_path / "grades.csv", "x,grade", rows)
    for positive, taken in (None, "good (60"), ("good", "good (60"), ("bad", "bad (20"):
        options = [] if positive is None else ["--positive", positive]
        first = run("upload", table, "--label", "grade", *options).stdout.splitlines()[0]
        assert f"grade = {taken} rows" in first
    sentences(first.partition("  ")[2])


def test_a_search_says_what_it_tried(run: Run, people: Path, sentences: Sentences) -> None:
    dataset = id_of(run("upload", people, "--label", "left").stdout)
    train = ["train", dataset, *ONE_FIT]
    searched = [*train, "--name", "m", "--search", "n_rounds=3,30,10"]
    lines = run(*searched, "--fpr-max", "0.2").stdout.splitlines()
    start = lines.index("tried on 25 % of the training part, by pauc on FPR [0, 0.2]")
    tried = [line.split() for line in lines[start + 1 : start + 4]]
    assert [name for name, *_ in tried] == ["n_rounds=3", "n_rounds=10", "n_rounds=30"]
    assert sum(words[2:] == ["chosen"] for words in tried) == 1
    monotone = ["--set", 'monotone={"age": "increasing"}']
    aimed = run(*train, "--set", "n_rounds=3", "--fpr", "0.2", *monotone).stdout
    assert "age increasing" in aimed
    assert re.search(r"TPR  [\d.]+ \[.*threshold -?[\d.]+", aimed)
    assert " tpr at FPR 0.2" in run(*searched, "--fpr", "0.2").stdout
    found = run(*searched, "--objective", "precision@20%").stdout
    assert "by precision@20%" in found
    assert re.search(r"^  precision@20%  [\d.]+ \[", found, re.MULTILINE)
    for wrong in ("n_rounds=3,x", "n_rounds=3..9:exp", "n_rounds"):
        said = told(run("train", dataset, "--search", wrong, "--json", code=2))
        for each in said.get("errors", [said]):
            sentences(each.get("pointer", each["detail"]))


def test_the_newest_rows_judge_unless_a_random_split_is_asked_for(run: Run, tmp_path: Path) -> None:
    rows = ((f"2026-01-{n % 28 + 1:02}", n % 7, "yes" if n % 3 else "no") for n in range(160))
    table = write(tmp_path / "dated.csv", "day,x,left", rows)
    dataset = id_of(run("upload", table, "--label", "left").stdout)
    few = ["train", dataset, "--set", "n_rounds=2", "--no-baselines", "--name", "m"]
    assert "'day'" in run(*few).stdout
    by_time = json.loads(run("show", "m", "--json").stdout)["model"]
    assert by_time["validation"]["time_column"] == "day"
    for folds, method in (([], "holdout"), (["--folds", "2"], "cross_validation")):
        run(*few, *folds, "--random-split")
        model = json.loads(run("show", "m", "--json").stdout)["model"]
        assert (model["validation"]["method"], model["validation"]["time_column"]) == (method, None)
        assert any("'day'" in warning for warning in model["warnings"])
    run(*few, "--random-split", "--time-column", "day", code=2)
    assert "--folds" in run(*few, "--holdout", "0.4", "--folds", "3", code=2).stderr
    refused = told(run(*few, "--holdout", "1.5", "--json", code=2))
    assert [each["pointer"] for each in refused["errors"]] == ["/validation/fraction"]


def test_folds_ranges_and_auto(run: Run, people: Path) -> None:
    dataset = id_of(run("upload", people, "--label", "left").stdout)
    ranges = ["--search", "max_depth=1..4", "--search", "learning_rate=0.01..0.3:log"]
    random = ["--search-method", "random", "--candidates", "3", "--search-folds", "2"]
    trees = ["--set", "weak_ranker=tree", "--set", "n_rounds=5"]
    shown = run(
        *["train", dataset, "--name", "m", *trees, *ranges, *random],
        *["--folds", "2", "--repeats", "2", "--json"],
    ).stdout
    model = json.loads(shown)["model"]
    assert model["validation"] == {"method": "cross_validation", "folds": 2, "repeats": 2}
    assert len(model["search"]["candidates"]) == 3
    assert model["search"]["folds"] == 2
    assert {1, 2, 3, 4} >= {c["parameters"]["max_depth"] for c in model["search"]["candidates"]}
    assert len(model["search"]["folds_chosen"]) == 4
    assert model["beats_baselines"] is not None
    auto = run("train", dataset, "--auto", "--budget", "1", "--no-baselines", "--name", "a").stdout
    assert "auto, within 1 s" in auto
    assert json.loads(run("show", "a", "--json").stdout)["model"]["beats_baselines"] is None
    wrong = told(run("train", dataset, "--time-column", "nowhere", "--json", code=2))
    assert [each["pointer"] for each in wrong["errors"]] == ["/validation/time_column"]


def test_items_and_pairs(run: Run, films: tuple[Path, Path], sentences: Sentences) -> None:
    items, pairs = films
    given = ["upload", items, "--kind", "preferences", "--item", "film"]
    sentences(run(*given).stdout)
    uploaded = run(*given, "--pairs", pairs).stdout
    assert " 600 pairs of 60 " in uploaded
    dataset = id_of(uploaded)
    train = ["train", dataset, "--no-baselines", "--name", "films"]
    trained = run(*train, "--search", "n_rounds=2,20").stdout
    assert trained.startswith("films:1 ")
    assert "by pair_order" in trained
    found = json.loads(run("show", "films", "--json").stdout)["metrics"]
    assert f"  in order      {found['pair_order']['value']:.4f} [" in run("show", "films").stdout
    scored = list(csv.DictReader(io.StringIO(run("score", "films", "--file", items).stdout)))
    assert len(scored) == 60
    assert (scored[0]["fpr"], scored[0]["tpr"]) == ("", "")
    tree = ["--set", "weak_ranker=tree", "--set", "early_stopping_rounds=5"]
    assert "films:2" in run(*train, *tree).stdout


def test_several_labels(run: Run, days: Path, tmp_path: Path) -> None:
    given = ["upload", days, "--kind", "multilabel"]
    with_comma = run(*given, "--labels", "[hot, dry],big,rare", code=2)
    assert "labels" in with_comma.stderr  # a comma parts two names
    days.write_text(days.read_text().replace('"[hot, dry]"', "[hot]"))
    uploaded = run(*given, "--labels", "[hot],big,rare").stdout
    assert "([hot], big, rare)" in uploaded
    few = ("--algorithm", "adaboost_mr", "--set", "n_rounds=5")
    trained = run("train", id_of(uploaded), "--name", "days", *few).stdout
    lines = [line.split() for line in trained.splitlines()]
    assert [line[0] for line in lines[1:5]] == ["[hot]", "big", "rare", "mean"]
    assert any("rare" in line for line in trained.splitlines() if line.startswith("note: "))
    means = json.loads(run("show", "days", "--json").stdout)["metrics"]
    assert lines[4][1] == f"{means['mean_auc']:.4f}"
    scored = list(csv.DictReader(io.StringIO(run("score", "days", "--file", days).stdout)))
    assert len(scored) == 160
    assert list(scored[0]) == ["[hot]", "big", "rare"]
    svg = tmp_path / "roc.svg"
    refused = run("show", "days", "--svg", svg, code=2)
    assert "roc.svg" in refused.stderr
    assert not svg.exists()


def test_what_cannot_be_uploaded(
    run: Run, people: Path, films: tuple[Path, Path], tmp_path: Path
) -> None:
    items, pairs = films
    assert "--pairs requires --kind" in run("upload", people, "--pairs", pairs, code=2).stderr
    assert "kind must be" in run("upload", people, "--kind", "ranking", code=2).stderr
    assert "labels" in run("upload", people, "--kind", "multilabel", code=2).stderr
    wrong = write(tmp_path / "wrong.csv", "better,worse", [("m1", "m2"), ("m1", "nobody")])
    given = ["upload", items, "--kind", "preferences", "--item", "film"]
    refused = run(*given, "--pairs", wrong, code=2).stderr
    assert "wrong.csv" in refused
    assert "line 3, column worse: " in refused
    assert told(run("show", "nobody", "--json", code=3))["code"] == "not_found"


@long_form
def test_a_refusal_is_short_and_says_what_to_type(run: Run, tmp_path: Path) -> None:
    """Faults that are all alike are not repeated; the next command is there."""
    rows = [(f"{k},5", k % 2) for k in range(30)]
    path = write(tmp_path / "comma.tsv", "a\ty", [])
    path.write_text("a\ty\n" + "".join(f"{a}\t{y}\n" for a, y in rows))
    refused = run("upload", path, code=2).stderr.splitlines()
    assert "comma.tsv" in refused[0]
    assert " 17 " in refused[4]
    assert len(refused) == 7
    assert refused[-1].split() == ["rankwright", "upload", str(path), "--decimal", "comma"]
    assert id_of(run("upload", path, "--decimal", "comma").stdout)
    assert ".csv, .tsv, .txt," in run("upload", path.rename(tmp_path / "a.xls"), code=2).stderr


@long_form
def test_the_sheet_of_a_workbook_is_an_option(run: Run, tmp_path: Path) -> None:
    rows: Cells = [["amount", "left"], *([f"{k},5", k % 2] for k in range(30))]
    path = sheets(tmp_path / "loans.xlsx", {"notes": [["x", "y"], [1, 2]], "loans": rows})
    given = ["upload", path, "--label", "left"]
    refused = run(*given, "--sheet", "Q3", code=2).stderr
    assert "the workbook has 'notes', 'loans'" in refused
    refused = run(*given, "--sheet", "loans", code=2).stderr
    assert all(value in refused for value in ("loans", "A2", "amount", "'0,5'"))
    assert "--sheet loans" in refused.splitlines()[-1]
    assert id_of(run(*given, "--sheet", "loans", "--decimal", "comma").stdout)
    run("train", "loans", "--name", "risk", "--set", "n_rounds=5", *ONE_FIT)
    # The sheet and the decimal separator are those of the training table.
    scored = run("score", "risk", path).stdout
    assert len(scored.splitlines()) == 31


def test_a_table_is_read_again(run: Run, people: Path) -> None:
    uploaded = ("upload", people, "--label", "left")
    first = id_of(
        run(*uploaded, "--positive", "yes", "--drop", "age", "--categorical", "income").stdout
    )
    said = run("read-again", "people", "--positive", "no", "--reset", "drop", "--json").stdout
    made = json.loads(said)
    assert (made["status"], made["positive"], made["drop"]) == ("ready", "no", None)
    assert made["categorical"] == ["income"]
    assert made["id"] != first
    refused = told(run("read-again", made["id"], "--positive", "perhaps", "--json", code=2))
    assert made["id"] in refused["detail"]
    assert "'perhaps'" in refused["errors"][0]["detail"]


def test_versions_of_a_table(run: Run, people: Path, tmp_path: Path) -> None:
    first = id_of(run("upload", people, "--label", "left", "--positive", "yes").stdout)
    said = run("upload", people, "--append-to", first).stdout
    second = id_of(said)
    assert " version 2: 320 rows" in said
    third = id_of(run("upload", people, "--in-place-of", first).stdout)
    listed = json.loads(run("versions", first, "--json").stdout)
    assert [each["id"] for each in listed] == [third, second, first]
    shown = run("versions", third).stdout
    assert [line.split()[:2] for line in shown.splitlines()] == [
        ["3", third],
        ["2", second],
        ["1", first],
    ]
    assert f" append of {first}, " in shown
    said = run("train", "people", "--name", "m", "--set", "n_rounds=5", *ONE_FIT).stdout
    assert f" version 3: {third}" in said  # a name is its newest version
    run("profile", second, "--output", tmp_path / "profile.html")
    title = re.search("<title>(.*)</title>", (tmp_path / "profile.html").read_text())
    assert title is not None
    assert title[1].endswith("people, version 2")
    assert run("profile", second).stdout.splitlines()[0] == f"# {title[1]}"
    for words, code, problem in (
        (("upload", people, "--append-to", first), 1, "not_the_newest_version"),
        (("upload", people, "--append-to", third, "--label", "age"), 2, None),
        (("versions", "ds_x"), 3, "not_found"),
        (("versions", "person"), 3, None),  # the command itself refuses these two
    ):
        assert told(run(*words, "--json", code=code)).get("code") == problem
    run("upload", people, "--append-to", first, "--in-place-of", first, code=2)


def test_a_folder_of_files(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    for number in (1, 2):
        rows = [(i, i % 7, "yes" if i % 3 else "no") for i in range(60 * number)]
        write(folder / f"{number}.csv", "age,income,left", rows)
    shown = run("upload", folder, "--label", "left").stdout
    assert "  days: 180 rows, " in shown
    assert " version 2: 360 rows" in run("upload", folder, "--append-to", "days").stdout
    assert " version 3: 180 rows" in run("upload", folder, "--in-place-of", "days").stdout
    (folder / "3.csv").write_text("age,left\n1,no\n")
    assert "part 3, column income: " in run("upload", folder, "--label", "left", code=2).stderr
