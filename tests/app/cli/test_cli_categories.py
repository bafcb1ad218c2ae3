"""A raw table from a shell: upload, train, and score by words or from a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from raw_table import raw_table

from app.cli.rows import read_rows
from core.registry import ALGORITHMS

Run = Callable[..., Result]
ALGORITHM = next(
    name
    for name, ranker in ALGORITHMS.items()
    if ranker.target == "binary" and ranker().takes_categories()
)


def scores_of(result: Result) -> list[str]:
    """The first column of what `score --file` prints."""
    return [row["score"] for row in csv.DictReader(io.StringIO(result.stdout))]


def test_a_raw_table(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "raw.csv"
    table.write_text(raw_table(200))
    said = run("upload", table, "--label", "income", "--positive", ">50K")
    assert "5 features" in said.output
    assert "left out, since nearly every row has its own value: name" in said.output
    dataset_id = next(word for word in said.output.split() if word.startswith("ds_"))
    run("train", dataset_id, "--name", "rich", "--algorithm", ALGORITHM)

    scores = scores_of(run("score", "rich", "--file", table))
    assert len(scores) == 200
    age, work, education, hours, country, *_ = raw_table(200).splitlines()[2].split(", ")
    row = [f"age={age}", f"workclass={work}", f"education={education}"]
    one = run("score", "rich", *row, f"hours-per-week={hours}", f"native-country={country}")
    assert json.loads(one.output)["score"] == float(scores[1])

    parquet = tmp_path / "raw.parquet"
    null = pyarrow.csv.ConvertOptions(null_values=["?"], strings_can_be_null=True)
    tidy = io.BytesIO(raw_table(200).replace(", ", ",").encode())
    pq.write_table(pyarrow.csv.read_csv(tidy, convert_options=null), parquet)
    assert scores_of(run("score", "rich", "--file", parquet)) == scores


def test_columns_are_declared(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "raw.csv"
    table.write_text(raw_table(60))
    flags = ("--categorical", "age", "--drop", "name", "--missing", "?,Private")
    dataset = json.loads(run("upload", table, *flags, "--json").output)
    assert (dataset["categorical"], dataset["drop"]) == (["age"], ["name"])
    columns = {column["name"]: column for column in dataset["columns"]}
    assert columns["workclass"]["missing"] > 10
    refused = run("upload", table, "--drop", "town", code=1)
    assert "'town' is not in the table" in refused.output


@pytest.mark.parametrize("rest", ["\n7, 2,x\n?,?,y\n", "\n7, two,x\n?,?,y\n"])
def test_rows_are_read_as_the_model_wants_them(tmp_path: Path, rest: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("code, n,other\n007, 1.5,x" + rest)
    features = [{"name": "n", "type": "numeric"}, {"name": "code", "type": "categorical"}]
    table = read_rows(file, features)
    assert table.column_names == ["n", "code"]
    assert table.column("code").to_pylist() == ["007", "7", None]
    is_number = "two" not in rest
    assert (table.schema.field("n").type == pa.float64()) == is_number
