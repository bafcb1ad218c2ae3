"""Every algorithm for two classes, the whole way: job, model, score, explanation, artifact; on a raw table where it
takes categories, else on numbers.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from app.platform.database import Database
from app.platform.tables import Dataset, JobState
from app.scoring import service as scoring
from app.training import interpretation
from core import artifact
from core.base.parameters import list_parameters
from core.metrics import auc
from core.registry import ALGORITHMS
from tests.app.training_jobs import few_columns
from tests.app.workbench import OWNER, Workbench
from tests.long_form import rest
from tests.raw_table import raw_table

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
    "an SVM by Fourier features": {"name": "auc_svm", "feature_map": "fourier", "n_components": 60},
    "a sigmoid over landmarks": {
        "name": "pauc_svm",
        "feature_map": "nystroem",
        "surrogate": "sigmoid",
        "bandwidth": 1.5,
    },
    "a difference over landmarks": {
        "name": "pauc_svm_dc",
        "feature_map": "nystroem",
        "n_components": 50,
    },
    "an SVM on bins": {"name": "auc_svm", "feature_map": "bins", "C": 10.0},
    "a window's SVM on bins": {"name": "pauc_svm", "feature_map": "bins", "max_bins": 10},
    "a pruned tree": {"name": "treerank", "pruning": "cv", "n_folds": 3, "order": "validation"},
}
SHORT = BINARY.keys() | {
    "rankboost stopped early",
    "rankboost on trees",
    "a sigmoid over landmarks",
    "an SVM on bins",
    "a pruned tree",
}
"""Each algorithm, and one variant of each kind."""


@pytest.fixture(scope="module")
def trained_on(
    tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path
) -> Iterator[tuple[Workbench, dict[str, Dataset]]]:
    """A worker without processes for all tests, and tables that they only read, by their text."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copy(_sqlite_template, folder / "rankwright.db")
    db = Database(f"sqlite:///{folder / 'rankwright.db'}")
    bench = Workbench(db, folder)
    raw, numbers = raw_table(), few_columns(300)
    yield bench, {raw: bench.ready(raw), numbers: bench.ready(numbers, positive="malignant")}
    db.close()


def rows_of(text: str, names: list[str]) -> list[dict[str, Any]]:
    """The rows as JSON: text as such, numbers as numbers, null for what is not known."""
    body = text.replace(", ", ",").encode()
    null = pyarrow.csv.ConvertOptions(null_values=["?"], strings_can_be_null=True)
    table = pyarrow.csv.read_csv(io.BytesIO(body), convert_options=null)
    rows: list[dict[str, Any]] = table.select(names).to_pylist()
    return rows


@pytest.mark.parametrize(
    "variant", [*filter(SHORT.__contains__, VARIANTS), *rest(*sorted(VARIANTS.keys() - SHORT))]
)
def test_from_job_to_score(trained_on: tuple[Workbench, dict[str, Dataset]], variant: str) -> None:
    algorithm = VARIANTS[variant]
    parameters = {name: value for name, value in algorithm.items() if name != "name"}
    ranker = ALGORITHMS[algorithm["name"]](**parameters)
    if "n_rounds" in ranker.get_params():
        algorithm = {"n_rounds": 15} | algorithm
    takes_categories = ranker.takes_categories()
    text = raw_table() if takes_categories else few_columns(300)
    bench, datasets = trained_on
    job = bench.work_on(datasets[text], name="m", algorithm=algorithm, seed=5)
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    assert model.algorithm == algorithm["name"]
    if takes_categories:
        features = {feature["name"]: feature for feature in model.features}
        names = ["age", "workclass", "education", "hours-per-week", "native-country"]
        assert list(features) == names  # the name of a person is none
        assert [features[name]["type"] for name in names[:3]] == ["numeric", *["categorical"] * 2]
        assert [features[name]["missing"] for name in names[1:3]] == [True, False]
        assert features["education"]["n_categories"] == len(features["education"]["categories"])

    served = bench.serve(model)
    names = served.features.names
    rows = rows_of(text, names)
    matrix = served.features.matrix_of_rows(rows)
    labels = [line.endswith(("malignant", ">50K")) for line in text.splitlines()[1:]]
    scores, fprs, tprs = served.score(matrix)[:3]
    assert auc(labels, scores) > (0.75 if takes_categories else 0.9)
    assert fprs is not None
    assert tprs is not None

    if "random_state" in {parameter.name for parameter in list_parameters(type(ranker))}:
        assert model.parameters["random_state"] == 5
    structure = json.loads(json.dumps(scoring.structure(served), allow_nan=False))
    assert structure["type"]
    if "feature_map" in algorithm:
        assert structure["map"] == algorithm["feature_map"]
        assert (structure["gap"] is None) == (algorithm.get("surrogate") == "sigmoid")
    if path := structure.get("pruning_path"):
        leaves = [step["leaves"] for step in path]
        assert leaves == sorted(set(leaves), reverse=True)
        (kept,) = (step for step in path if step["leaves"] == structure["leaves"])
        assert kept["training_auc"] == pytest.approx(structure["training_auc"])
        if "pruning" in algorithm:
            assert kept["validation_auc"] == max(step["validation_auc"] for step in path)
    assert bench.db.reading(interpretation.read_importance, OWNER, model.id, None).features
    estimates = scoring.check_explained(bench.db.reading, OWNER, served, 3)
    explained = scoring.explain(served, matrix[:3], estimates=estimates)
    for parts, score in zip(explained, scores, strict=False):
        assert list(parts["contributions"]) == names
        total = parts["offset"] + sum(parts["contributions"].values())
        assert total == pytest.approx(score, abs=1e-6 * max(1.0, abs(score)))
        assert parts["exact"] == (parts["errors"] is None)
        assert (estimates is None) <= parts["exact"]
    again = artifact.load(artifact.save(served.ranker))
    assert np.array_equal(again.decision_function(pa.Table.from_pylist(rows)), scores)
