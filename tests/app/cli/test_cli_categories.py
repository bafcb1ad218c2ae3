"""A raw table from a shell: upload, train, and score by words or from a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
from sqlalchemy import select
from typer.testing import Result

from app.platform.tables import BatchScore
from core.registry import ALGORITHMS
from tests.app.live_service import Service
from tests.raw_table import raw_table
from tests.sentences import Sentences

Run = Callable[..., Result]
ALGORITHM = next(
    name
    for name, ranker in ALGORITHMS.items()
    if ranker.target == "binary" and ranker().takes_categories()
)


def scores_of(result: Result) -> list[str]:
    """The first column of what `score --file` prints."""
    return [row["score"] for row in csv.DictReader(io.StringIO(result.stdout))]


def test_a_raw_table(run: Run, tmp_path: Path, service: Service, sentences: Sentences) -> None:
    table = tmp_path / "raw.csv"
    table.write_text(raw_table(200))
    said = run("upload", table, "--label", "income", "--positive", ">50K")
    assert "5 features" in said.output
    assert "column name: ignored" in said.output
    assert "(--categorical)" in said.output
    dataset_id = next(word for word in said.output.split() if word.startswith("ds_"))
    one_fit = ("--no-baselines", "--holdout", "0.25")
    run("train", dataset_id, "--name", "rich", "--algorithm", ALGORITHM, *one_fit)

    scores = scores_of(run("score", "rich", "--file", table))
    assert len(scores) == 200
    age, work, education, hours, country, *_ = raw_table(200).splitlines()[2].split(", ")
    row = [f"age={age}", f"workclass={work}", f"education={education}"]
    one = run("score", "rich", *row, f"hours-per-week={hours}", f"native-country={country}")
    assert json.loads(one.output)["score"] == float(scores[1])

    parquet = tmp_path / "raw.parquet"
    null = pyarrow.csv.ConvertOptions(null_values=["?"], strings_can_be_null=True)
    tidy = io.BytesIO(raw_table(200).replace(", ", ",").encode())
    tidied = pyarrow.csv.read_csv(tidy, convert_options=null)
    pq.write_table(tidied, parquet)
    assert scores_of(run("score", "rich", "--file", parquet)) == scores

    kept = tmp_path / "kept.parquet"
    run("score", "rich", table, "--top", 3, "--output", kept)
    best = sorted(map(float, scores), reverse=True)[:3]
    assert pq.read_table(kept).column("score").to_pylist() == best
    run("score", "rich", table, "--keep", "name", "--output", kept)
    found = pq.read_table(kept)
    assert found.column_names == ["name", "row_number", "score", "fpr", "tpr", "probability"]
    assert found.column("score").to_pylist() == list(map(float, scores))
    # A kept column is as it was sent, with the space after the comma.
    assert found.column("name").to_pylist() == [f" {n}" for n in tidied["name"].to_pylist()]
    table.write_text(raw_table(200).replace("39, ", "old, "))
    for more in ((), ("--keep", "name")):
        said = run("score", "rich", table, *more, code=2)
        sentences(said.output.splitlines()[0])
    run("score", "rich", table, "--output", "scores.xlsx", code=2)
    with (
        service.context.db.read() as session
    ):  # nothing is left behind, whether it could be scored or not
        assert session.scalars(select(BatchScore)).all() == []


def test_a_refused_label_comes_with_the_command_that_mends_it(
    run: Run, tmp_path: Path, sentences: Sentences
) -> None:
    table = tmp_path / "my table.csv"
    table.write_text("a,grade,y\n" + "".join(f"{i},{'ABC'[i % 3]},{i % 2}\n" for i in range(30)))
    said = run("upload", table, "--label", "grad", "--missing", "none", code=2)
    command = f"rankwright upload '{table}' --label grade --missing none"
    assert command in said.output
    assert "line None" not in said.output
    said = run("upload", table, "--label", "grade", "--strict", code=2)
    command = f"rankwright upload '{table}' --label grade"
    assert said.output.rstrip().endswith(f"{command} --positive A")
    said = run("upload", table, "--label", "grade", "--positive", "A")
    assert "grade = A (10 rows" in said.output
    sentences(next(line for line in said.output.splitlines() if "(--positive)" in line))
