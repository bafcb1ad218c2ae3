"""`rankwright models export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from tests.app.live_service import table

Run = Callable[..., Result]


def test_a_model_is_written_as_a_file(run_shared: Run, tmp_path: Path) -> None:
    people, written = tmp_path / "people.csv", tmp_path / "churn.sql"
    people.write_text(table(200))
    uploaded = run_shared("upload", people, "--label", "left", "--positive", "yes").stdout
    dataset = next(word for word in uploaded.split() if word.startswith("ds_"))
    train = ("train", dataset, "--no-baselines", "--holdout", "0.25", "--algorithm")
    run_shared(*train, "logistic", "--name", "churn")
    run_shared("models", "export", "churn", "--output", written)
    assert written.read_text().endswith('FROM "rows" AS "rows"\n')
    shown = run_shared("models", "export", "churn:1", "--format", "python").stdout
    assert "def score(row):" in shown
    for wrong in (["--format", "pmml"], []):
        refused = run_shared("models", "export", "churn", *wrong, code=2).stderr
        assert "onnx, python, py, sql, got" in " ".join(refused.replace("│", " ").split())
    run_shared(*train, "martirank", "--name", "program")
    refused = run_shared("models", "export", "program", "--format", "sql", code=2).stderr
    assert "martirank cannot be exported as sql" in " ".join(refused.split())
