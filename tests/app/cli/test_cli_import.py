"""`rankwright models import`, and the client's `import_model`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from rankwright import Client, JobFailed

from tests.app.cli.conftest import Run, told
from tests.app.live_service import Service
from tests.core.importing.test_import_model import MODELS, stored
from tests.raising import raises

LIGHTGBM, OLD = "lightgbm-4.7.0-binary.txt", "xgboost-2.1.4-logistic.json"


def write_table(path: Path, name: str) -> np.ndarray:
    """Write the rows of a fixture with a label, and return its scores."""
    _, rows, scores = stored(name)
    rows.assign(left=np.where(np.arange(len(rows)) % 3 > 0, "yes", "no")).to_csv(path, index=False)
    return scores


def test_import_of_a_model(run: Run, tmp_path: Path) -> None:
    scores = write_table(tmp_path / "people.csv", OLD)
    run("upload", tmp_path / "people.csv", "--label", "left", "--positive", "yes")
    np.savetxt(tmp_path / "scores.txt", scores)
    (tmp_path / "categories.json").write_text(json.dumps(stored(OLD)[0]["categories"]))
    words = ["models", "import", "churn", MODELS[OLD], "--dataset", "people", "--missing", "nan"]
    words += ["--categories", f"@{tmp_path / 'categories.json'}"]
    made = run(*words, "--expected", tmp_path / "scores.txt", "--json").stdout
    assert json.loads(made)["model"]["imported"]["source"].startswith("XGBoost")
    assert "churn:2" in run(*words).stdout
    np.savetxt(tmp_path / "scores.txt", scores + 1.0)
    failed = told(run(*words, "--expected", tmp_path / "scores.txt", "--json", code=6))
    assert "row 1" in failed["detail"]
    run(*words[:-1], "{town", code=2)
    (tmp_path / "scores.txt").write_text("score\n0.5\n")
    run(*words, "--expected", tmp_path / "scores.txt", code=2)


def test_import_by_the_client(service: Service, tmp_path: Path) -> None:
    scores = write_table(tmp_path / "people.csv", LIGHTGBM)
    with service.at_work(), Client(service.url, service.key()) as client:
        dataset = client.upload(tmp_path / "people.csv", label="left", positive="yes")
        job = client.import_model("churn", MODELS[LIGHTGBM], dataset, expected=scores)
        assert job.wait().data.imported.source == "LightGBM v4"
        with raises(JobFailed, "expected", 2):
            client.import_model("churn", MODELS[LIGHTGBM], dataset, expected=scores[:2]).wait()
