"""The child job of a training job: runs some of its fits, whose files and results are passed to the parent."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from app.jobs import child_jobs
from app.jobs.kinds import Claim, JobKind
from app.jobs.progress import Callback
from app.platform.blobs import Publisher
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.training import tasks
from app.training.plan import name_file
from app.training.progress import Leaderboard, Reporter
from app.training.records import (
    BASELINE,
    TRIAL,
    ChildPayload,
    ChildResult,
    ChildSpec,
    Outcome,
    PublishedFile,
)
from core import kernels

TRAIN_PART = "train_part"
PARTS = "parts"


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> ChildPayload:
    parent = replace(claim, spec=claim.spec["parent"])
    payload = tasks.prepare(session, settings, parent, workdir)
    return {**payload, "fits": _spec_of(claim)["part"]["fits"]}


def _spec_of(claim: Claim) -> ChildSpec:
    return cast(ChildSpec, claim.spec)


def run(payload: ChildPayload, callback: Callback) -> ChildResult:
    """Only computes, on the files that the payload names."""
    results = _run_fits(payload, callback)
    files: dict[str, PublishedFile] = {
        name_file(number, name): {"path": path, "sha256": _sha256(path)}
        for number, result in enumerate(results)
        for name, path in result["files"].items()
    }
    stored = [{key: value for key, value in each.items() if key != "files"} for each in results]
    return {"results": cast(list[Outcome], stored), "files": files}


def _run_fits(payload: ChildPayload, callback: Callback) -> list[Outcome]:
    """The tables are read once."""
    from app.training.fitting import FitContext

    reporter, fits = Reporter(payload["spec"], callback), payload["fits"]
    context = FitContext(payload, reporter)
    results: list[Outcome] = []
    with kernels.when_compiling(context.clock.listen), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model gets the warnings of its own fit
        for number, fit in enumerate(fits):
            folder = Path(payload["workdir"]) / str(number)
            folder.mkdir()
            progress = reporter.begin(fit, 1.0 / len(fits))
            results.append(context.run(fit, folder, progress))
            progress.finish(results[-1])
    return results


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def publish(blobs: Publisher, claim: Claim, result: ChildResult) -> dict[str, str]:
    return {
        name: blobs.publish(Path(file["path"]), PARTS, file["sha256"]).key
        for name, file in result["files"].items()
    }


def complete(
    session: Session, claim: Claim, result: ChildResult, published: dict[str, str]
) -> None:
    """End the child job; if it was the last one, its parent is queued."""

    spec = _spec_of(claim)

    def report(progress: Json) -> Json:
        board = Leaderboard(spec["parent"], progress)
        for fit, outcome in zip(spec["part"]["fits"], result["results"], strict=True):
            board.add(fit, outcome)
        return {**progress, **board.state()}

    child_jobs.finish(session, claim, {"results": result["results"]}, published, report)


def may_skip(part: Mapping[str, Any]) -> bool:
    """Return True if a job that ends early does not need these fits: all are trials or baselines."""
    return all(fit["what"] in (TRIAL, BASELINE) for fit in part["fits"])


KIND = JobKind(
    name=TRAIN_PART,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    may_skip=may_skip,
)
