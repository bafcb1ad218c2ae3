"""Warming up a fit process: a tiny job of each kind and algorithm, before the first real one.

`python -m workers.warm` does it once, compiles what no such job has called, too, and ends: the image is built with it,
to hold numba's cache.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from app.infra.settings import Settings
from app.services import execution
from app.services.ingest.job import limits
from app.services.jobs import INGEST
from app.services.submission import TRAIN
from core.kernel import load_all
from core.registry import ALGORITHMS

# Half of the rows are held out and scored: enough of them for the kernels that only many rows go through.
_TABLE = "x,y\n" + "".join(f"{i % 7 or ''},{i % 2}\n" for i in range(600))


def warm_up(settings: Settings) -> list[Exception]:
    """Run the jobs, so that libraries are imported, kernels loaded and their threads started.

    Returns what failed: a cold start is slower, but no reason to refuse work.
    """
    faults: list[Exception] = []
    with tempfile.TemporaryDirectory(prefix="rankwright-warm-") as folder:
        upload = Path(folder, "table.csv")
        upload.write_text(_TABLE)
        try:
            table = execution.run(_ingest(upload, folder, settings), _ignore)
        except Exception as error:
            return [error]
        for name, algorithm in ALGORITHMS.items():
            if algorithm.target != "binary":
                continue  # there is no upload of that kind here
            parameters = algorithm().get_params(deep=False)
            try:
                execution.run(_training(name, parameters, table, folder), _ignore)
            except Exception as error:
                faults.append(error)
    return faults


def _ingest(upload: Path, folder: str, settings: Settings) -> dict[str, Any]:
    return {
        "kind": INGEST,
        "path": str(upload),
        "content_type": "text/csv",
        "content_encoding": None,
        "dataset_kind": "bipartite",
        "label": "y",
        "labels": None,
        "positive": "1",
        "item": None,
        "weight": None,
        "group": None,
        "categorical": None,
        "drop": None,
        "missing": None,
        "dialect": None,
        "parent": None,
        "limits": limits(settings),
        "workdir": folder,
    }


def _training(
    name: str, parameters: dict[str, Any], table: dict[str, Any], folder: str
) -> dict[str, Any]:
    return {
        "kind": TRAIN,
        "spec": {
            "algorithm": {"name": name, "parameters": parameters},
            "objective": {"metric": "auc"},
            "validation": {"method": "holdout", "fraction": 0.5},
            "seed": 0,
        },
        "table": {
            "path": str(Path(folder, table["file"])),
            "label": table["label"],
            "weight": None,
            "group": None,
            "features": [{"name": "x", "type": "numeric"}],
        },
        "validation_table": None,
        "dataset_kind": "bipartite",
        "pair": [table["negative"], table["positive"]],
        "labels": None,
        "workdir": tempfile.mkdtemp(dir=folder),  # of its own: its parts write into folders inside
    }


def _ignore(step: int, of: int, info: object) -> None:
    pass


if __name__ == "__main__":
    import app.services.plain_query  # the API's own kernels
    import app.services.plain_rows  # noqa: F401

    load_all()
    if faults := warm_up(Settings()):
        raise ExceptionGroup("the warm-up failed", faults)
