"""Every algorithm for two classes, the whole way: job, model, score, explanation, artifact."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from workbench import OWNER, Workbench, breast_cancer

from app.platform.database import Database
from app.platform.errors import Invalid
from app.platform.tables import Dataset, JobState
from app.scoring import service as scoring
from app.training import importance as importances
from core import artifact
from core.metrics import auc
from core.parameters import list_parameters
from core.registry import ALGORITHMS

BINARY = {name: ranker for name, ranker in ALGORITHMS.items() if ranker.target == "binary"}
VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in BINARY},
    "rankboost on columns": {"name": "rankboost", "weak_ranker": "column"},
    "smooth_margin_rank on columns": {"name": "smooth_margin_rank", "weak_ranker": "column"},
    "adaboost without the constant": {"name": "adaboost", "include_constant": False},
    "rankboost stopped early": {"name": "rankboost", "early_stopping_rounds": 3, "n_rounds": 200},
    "rankboost on trees": {"name": "rankboost", "weak_ranker": "tree"},
    "rankboost on sampled trees": {
        "name": "rankboost",
        "weak_ranker": "tree",
        "leaf": "newton",
        "push": 2.0,
        "max_depth": 3,
        "max_leaves": None,
        "subsample": 0.5,
        "max_features": 0.7,
    },
    "a pruned tree": {"name": "treerank", "pruning": "cv", "n_folds": 3, "order": "validation"},
}


@pytest.fixture(scope="module")
def trained_on(
    tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path
) -> Iterator[tuple[Workbench, Dataset]]:
    """A worker without processes for all tests, and a table that they only read."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copy(_sqlite_template, folder / "rankwright.db")
    db = Database(f"sqlite:///{folder / 'rankwright.db'}")
    bench = Workbench(db, folder)
    yield bench, bench.ready(breast_cancer(), positive="malignant")
    db.close()


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """The lines of the table, without its head."""
    return breast_cancer().splitlines()[1:]


@pytest.mark.parametrize("variant", VARIANTS)
def test_from_job_to_score(
    trained_on: tuple[Workbench, Dataset], lines: list[str], variant: str
) -> None:
    algorithm = VARIANTS[variant]
    if "n_rounds" in ALGORITHMS[algorithm["name"]]().get_params():
        algorithm = {"n_rounds": 15} | algorithm
    bench, dataset = trained_on
    job = bench.work_on(dataset, name="m", algorithm=algorithm, seed=5)
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    assert model.algorithm == algorithm["name"]

    served = bench.serve(model)
    names = served.features.names
    rows = np.array([[float(v) for v in line.split(",")[:-1]] for line in lines])
    labels = np.array([line.endswith("malignant") for line in lines])
    scores, fprs, tprs = served.score(rows)
    assert auc(labels, scores) > 0.9
    assert fprs is not None
    assert tprs is not None

    estimator = ALGORITHMS[algorithm["name"]]
    if "random_state" in {parameter.name for parameter in list_parameters(estimator)}:
        assert model.parameters["random_state"] == 5
    structure = json.loads(json.dumps(scoring.structure(served), allow_nan=False))
    assert structure["type"]
    if path := structure.get("pruning_path"):
        leaves = [step["leaves"] for step in path]
        assert leaves == sorted(set(leaves), reverse=True)
        (kept,) = (step for step in path if step["leaves"] == structure["leaves"])
        assert kept["training_auc"] == pytest.approx(structure["training_auc"])
        if "pruning" in algorithm:
            assert kept["validation_auc"] == max(step["validation_auc"] for step in path)
    assert bench.db.reading(importances.read, OWNER, model.id, None)["features"]
    if hasattr(served.ranker, "contributions"):
        explained = scoring.explain(served, rows[:3])
        for parts, score in zip(explained, scores, strict=False):
            assert list(parts["contributions"]) == names
            total = parts["offset"] + sum(parts["contributions"].values())
            assert total == pytest.approx(score, abs=1e-6 * max(1.0, abs(score)))
    else:
        with pytest.raises(Invalid, match="are not sums of parts per feature"):
            scoring.explain(served, rows[:3])
    again = artifact.load(artifact.save(served.ranker))
    assert (again.score_rows(rows) == scores).all()
