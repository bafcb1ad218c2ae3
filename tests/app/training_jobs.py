"""Training jobs that several tests run: as their payload alone, or by workers that share them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.datasets.matrices import Columns, Table, read_table
from app.jobs.kinds import FanOutResult
from app.jobs.progress import Callback, Report
from app.platform.documents import Validation
from app.platform.settings import Settings
from app.platform.tables import Dataset
from app.training import result, tasks
from app.training.records import TrainPayload, TrainResult
from tests.app.documents import misfits
from tests.app.workbench import Workbench, breast_cancer, quiet

HOLDOUT: Validation = {"method": "holdout", "fraction": 0.25}
FOLDS: Validation = {"method": "cross_validation", "folds": 3, "repeats": 2}
AUTO = {"name": "auto", "parameters": {"budget_seconds": 600.0}}
"""More time than any test takes: the number of trials ends a search, not the load of the machine."""
BASELINES = {"algorithms": ["logistic", "auc_svm"], "skipped": None, "share": None}


class Enough:
    """Ends the search of a job after so many trials, however long they take."""

    def __init__(self, trials: int) -> None:
        self._trials = trials
        self.fractions: list[float] = []

    def __call__(self, step: int, of: int, info: Mapping[str, float]) -> None:
        assert isinstance(info, Report)
        self.fractions.append(info.fraction)
        if info.job.get("trials_done", 0) >= self._trials and info.end is not None:
            raise info.end


def of_the_fit(warnings: list[str]) -> list[str]:
    """The warnings but for those of areas that the few rows of a test cannot bear."""
    return [each for each in warnings if "may be too narrow" not in each]


def payload(folder: Path, columns: dict[str, Any], **spec: Any) -> TrainPayload:
    """Write a typed table with the label `y`, and describe a job on it as `training.prepare` does."""
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path)
    names = [name for name in columns if name not in {"y", "w"}]
    work = folder / f"work{len(list(folder.iterdir()))}"
    work.mkdir()
    asked = {
        "algorithm": {"name": "rankboost", "parameters": {"n_rounds": 10}},
        "objective": {"metric": "auc"},
        "validation": FOLDS,
        "search": None,
        "validation_dataset": None,
        "baselines": {"algorithms": [], "skipped": None, "share": None},
        "protected_columns": [],
        "seed": 3,
    }
    weight = "w" if "w" in columns else None
    described = {"path": str(path), "label": "y", "weight": weight, "group": None}
    job = {
        "spec": asked | spec,
        "table": described | {"features": [{"name": n, "type": "numeric"} for n in names]},
        "order": {"time": None, "time_type": None, "label": "y", "grouped": False},
        "dataset_kind": "bipartite",
        "pair": ["0", "1"],
        "labels": None,
        "workdir": str(work),
    }
    return cast(TrainPayload, job)


def run(job: TrainPayload, callback: Callback = quiet) -> Any:
    """Run a job as its process does, and check its payload and result against their types."""
    result = tasks.run(job, callback)
    kind = FanOutResult if "fan_out" in result else TrainResult
    assert misfits(result, kind) == []
    return result


def payload_of(bench: Workbench, dataset: Dataset, **spec: Any) -> TrainPayload:
    """Return the fit process's part of a dataset, for a job that never runs."""
    asked = {"seed": 0, "validation": {"method": "holdout", "fraction": 0.25}} | spec
    features = [{"name": c["name"]} for c in dataset.columns if c["role"] == "feature"]
    pairs = dataset.pairs.table_key if dataset.pairs else None
    table = {
        "path": str(bench.blobs.path(dataset.table_key or "")),
        "pairs": None if pairs is None else str(bench.blobs.path(pairs)),
        "features": features,
        "weight": None,
        "group": None,
    }
    return cast(TrainPayload, {"spec": asked, "table": table, "labels": dataset.labels})


def noisy(rows: int = 240, seed: int = 0) -> dict[str, Any]:
    """Numbers, some missing, a category of rare values and weights; one of the numbers says something."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    b[::7] = np.nan
    places = pa.array([f"p{k}" for k in rng.integers(0, rows // 3, rows)]).dictionary_encode()
    y = (a + rng.normal(size=rows) > 0.4).astype(np.int8)
    return {"a": a, "b": b, "place": places, "y": y, "w": rng.integers(1, 4, rows).astype(float)}


def few_columns(rows: int = 569) -> str:
    """The breast cancer data with five features, for jobs whose figures do not matter: each feature takes its time."""
    lines = (line.split(",") for line in breast_cancer().splitlines()[: rows + 1])
    return "\n".join(",".join([*line[:5], line[-1]]) for line in lines) + "\n"


def table_of(job: TrainPayload) -> Table:
    table = job["table"]
    names = [feature["name"] for feature in table["features"]]
    return read_table(Path(table["path"]), Columns(names, "y", table["weight"], None))


def kept(job: TrainPayload) -> dict[str, np.ndarray]:
    read = pq.read_table(Path(job["workdir"]) / result.OUT_OF_FOLD_FILE)
    return {name: read.column(name).to_numpy() for name in read.column_names}


def table(rows: int = 120) -> str:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, 3)).round(3)
    y = X[:, 0] + rng.normal(size=rows) > 0
    lines = (",".join([*map(str, x), str(int(label))]) for x, label in zip(X, y, strict=True))
    return "\n".join(["a,b,c,y", *lines, ""])


def sharing(bench: Workbench, cells: int = 0) -> Settings:
    """The settings of workers that share every job of so many cells."""
    url = bench.db.url.render_as_string(hide_password=False)
    given = bench.settings.model_dump() | {"database_url": url, "fan_out_cells": cells}
    return Settings.model_validate(given)
