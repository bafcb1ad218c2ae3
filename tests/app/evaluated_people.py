"""People to be judged on, and what a test does with evaluations and comparisons of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from app.datasets import service as datasets
from app.evaluation import comparisons, evaluations
from app.evaluation.evaluations import EVALUATIONS
from app.evaluation.requests import ComparisonRequest, EvaluationRequest
from app.platform.tables import Comparison, Evaluation, JobState, Model
from core import artifact
from tests.app.workbench import OWNER, Workbench


class People:
    """Rows with three features, weights (some of them 0), groups of two, and a label; drawn so often as asked."""

    def __init__(self, n: int, seed: int, shift: float = 0.0, signal: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 3)).round(3)
        self.weight = rng.integers(0, 4, n).astype(float)
        self.group = np.arange(n) // 2
        noise = rng.normal(size=n)
        self.y = signal * (self.X[:, 0] - self.X[:, 1]) + noise > 0.8
        self.X[:, 0] += shift

    def csv(self) -> str:
        """The table as it is uploaded."""
        rows = zip(self.X.tolist(), self.weight, self.group, self.y, strict=True)
        lines = [f"{a},{b},{c},{w:g},g{g},{'yes' if y else 'no'}" for (a, b, c), w, g, y in rows]
        return "\n".join(["a,b,c,w,g,left", *lines, ""])

    def scores(self, bench: Workbench, model: Model) -> np.ndarray:
        """Return the artifact's scores of these rows."""
        ranker = artifact.load(bench.blobs.path(model.artifact_key).read_bytes())
        return ranker.decision_function(
            pa.table({name: self.X[:, i] for i, name in enumerate("abc")})
        )

    def upload(self, bench: Workbench, **given: str) -> str:
        """Upload and read; returns the dataset's id."""
        fields = {"label": "left", "positive": "yes"} | given
        if "weight" not in fields:
            fields["drop"] = "w,g" if "group" not in fields else "w"
        elif "group" not in fields:
            fields["drop"] = "g"
        return bench.ready(self.csv(), **fields).id


def train(bench: Workbench, dataset_id: str, name: str, **request: Any) -> Model:
    """Train a ranker on a dataset."""
    return bench.model(
        bench.work_on(bench.db.reading(datasets.find, OWNER, dataset_id), name=name, **request)
    )


def ask(bench: Workbench, model: str, dataset_id: str, **more: Any) -> Evaluation:
    """Ask for an evaluation."""
    with bench.db.write() as session:
        request = EvaluationRequest(model=model, dataset_id=dataset_id, **_with_windows(more))
        return evaluations.submit(session, bench.settings, OWNER, request)


def evaluate(bench: Workbench, model: str, dataset_id: str, **more: Any) -> Evaluation:
    """Ask for an evaluation and have it done."""
    asked = ask(bench, model, dataset_id, **more)
    job = bench.work()
    assert job.state == JobState.SUCCEEDED, job.error
    assert bench.left_over() == []
    return bench.db.reading(EVALUATIONS.find, OWNER, asked.id)


def ask_comparison(bench: Workbench, refs: list[str], dataset_id: str, **more: Any) -> Comparison:
    """Ask for a comparison."""
    with bench.db.write() as session:
        request = ComparisonRequest(models=refs, dataset_id=dataset_id, **_with_windows(more))
        return comparisons.submit(session, bench.settings, OWNER, request)


def _with_windows(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request; windows may be pairs."""
    windows = fields.get("windows")
    if windows is None:
        return fields
    return fields | {"windows": [{"fpr_min": low, "fpr_max": high} for low, high in windows]}


def interval(found: Any) -> tuple[float, ...]:
    """A figure with the ends of its interval."""
    return tuple(found[end] for end in ("value", "low", "high"))
