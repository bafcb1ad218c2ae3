"""Training for a window: the objective of the job becomes PAUCBoost's window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workbench import Workbench, breast_cancer

from app.db.session import Database
from app.db.tables import JobState
from app.errors import Invalid
from core import PAUCBoost, artifact

WINDOW = {"metric": "pauc", "fpr_min": 0.02, "fpr_max": 0.3}


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Workbench:
    """Return a worker without processes."""
    return Workbench(db, tmp_path)


def test_the_objective_fills_the_window(bench: Workbench) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    algorithm = {"name": "paucboost", "n_rounds": 20, "weak_ranker": "stump"}
    job = bench.work_on(dataset, name="m", algorithm=algorithm, objective=WINDOW)
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    assert (model.parameters["fpr_min"], model.parameters["fpr_max"]) == (0.02, 0.3)
    assert model.optimised_for == model.objective == WINDOW
    sha256 = model.artifact_sha256
    data = bench.blobs.path(f"artifacts/{sha256[:2]}/{sha256}").read_bytes()
    ranker = artifact.load(data)
    assert isinstance(ranker, PAUCBoost)
    assert (ranker.fpr_min, ranker.fpr_max) == (0.02, 0.3)
    assert ranker.inner_pauc_before_ is not None


def test_without_a_window_it_is_for_the_whole_auc(bench: Workbench) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    job = bench.work_on(dataset, name="m", algorithm={"name": "paucboost", "n_rounds": 5})
    model = bench.model(job)
    assert (model.parameters["fpr_min"], model.parameters["fpr_max"]) == (0.0, 1.0)
    assert model.optimised_for == {"metric": "auc"}


@pytest.mark.parametrize(
    ("given", "objective", "pointer"),
    [
        ({"fpr_max": 0.1}, WINDOW, "/algorithm/fpr_max"),
        ({"fpr_min": 0.1}, {"metric": "auc"}, "/algorithm/fpr_min"),
        ({"window": 0.5}, WINDOW, "/algorithm/window"),
        ({"push": 2.0, "weak_ranker": "stump"}, WINDOW, "/algorithm"),
        ({}, WINDOW | {"fpr_max": 0.02}, "/objective/fpr_max"),
        ({}, WINDOW | {"fpr_max": 0.02 + 1e-12}, "/algorithm"),
    ],
)
def test_a_bad_window_is_refused(
    bench: Workbench, given: dict[str, Any], objective: dict[str, Any], pointer: str
) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    with pytest.raises(Invalid) as refusal:
        bench.submit(dataset, algorithm={"name": "paucboost"} | given, objective=objective)
    assert [error["pointer"] for error in refusal.value.errors] == [pointer]
