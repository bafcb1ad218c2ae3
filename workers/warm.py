"""Warming up an idle fit process: a tiny upload and a tiny training job, so that the first real ones need not wait."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.infra.deferred import defer_scipy_stats
from app.infra.settings import Settings
from workers.compile import is_complete

ALGORITHM = "rankboost"  # the default one
_TABLE = "x,y\n" + "".join(f"{i % 7 or ''},{i % 2}\n" for i in range(600))


class _GiveWay(BaseException):
    """A real job has come. Not an Exception, so that no algorithm swallows it."""


def warm_up(settings: Settings, job_waits: Callable[[], bool]) -> None:
    """Import the libraries, load the kernels and start the threads of the usual jobs, until a real job comes.

    Where kernels have still to be compiled it only imports: a compilation cannot be broken off.

    Parameters
    ----------
    settings : Settings
        Those of the service.
    job_waits : callable
        Says whether a real job has come.
    """

    def give_way(*_: object) -> None:
        if job_waits():
            raise _GiveWay

    try:
        defer_scipy_stats()
        from app.services import execution, training  # noqa: F401
        from app.services.ingest import job  # noqa: F401
        from core import AUCSVM, Logistic, RankBoost  # noqa: F401

        give_way()
        if is_complete():
            with tempfile.TemporaryDirectory(prefix="rankwright-warm-") as folder:
                upload = Path(folder, "table.csv")
                upload.write_text(_TABLE)
                table = execution.run(_ingest(upload, folder, settings), give_way)
                execution.run(_training(table, folder), give_way)
    except _GiveWay:
        pass


def _ingest(upload: Path, folder: str, settings: Settings) -> dict[str, Any]:
    from app.services.ingest.job import limits
    from app.services.jobs import INGEST

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


def _training(table: dict[str, Any], folder: str) -> dict[str, Any]:
    from app.services.controls import CONTROLS
    from app.services.submission import TRAIN
    from core.registry import ALGORITHMS

    return {
        "kind": TRAIN,
        "spec": {
            "algorithm": {
                "name": ALGORITHM,
                "parameters": ALGORITHMS[ALGORITHM]().get_params(deep=False) | {"n_rounds": 5},
            },
            "objective": {"metric": "auc"},
            "validation": {"method": "holdout", "fraction": 0.5},
            "seed": 0,
            "controls": {"algorithms": list(CONTROLS), "skipped": None},
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
