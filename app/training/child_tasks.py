"""A child job of a training job: some of its fits, whose files and small JSON go to the parent."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.jobs import child_jobs as parts
from app.jobs.kinds import Claim, JobKind
from app.jobs.progress import Callback
from app.platform.blobs import BlobStore
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.training import tasks as training
from app.training.plan import name_file
from app.training.progress import BASELINE, TRIAL, Leaderboard, Reporter

TRAIN_PART = "train_part"
PARTS = "parts"


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: Claim, workdir: Path
) -> Json:
    """Gather what the fits need to know: the parent's payload, and which of its fits these are."""
    parent = replace(claim, spec=claim.spec["parent"])
    payload = training.prepare(session, blobs, settings, parent, workdir)
    return payload | {"fits": claim.spec["part"]["fits"]}


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Fit; pure computing on the files that the payload names."""
    results = _run_fits(payload, callback)
    files = {
        name_file(number, name): {"path": path, "sha256": _sha256(path)}
        for number, result in enumerate(results)
        for name, path in result.pop("files").items()
    }
    return {"results": results, "files": files}


def _run_fits(payload: Mapping[str, Any], callback: Callback) -> list[Json]:
    """Do the fits that the payload names, on tables that are read once; their results, in order."""
    from app.training.fitting import FitContext

    reporter, fits = Reporter(payload["spec"], callback), payload["fits"]
    context, results = FitContext(payload, reporter), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model hears of those of its own fit
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


def publish(blobs: BlobStore, claim: Claim, result: Mapping[str, Any]) -> dict[str, str]:
    """Publish the files; returns the key of each by its name."""
    return {
        name: blobs.publish(Path(file["path"]), PARTS, file["sha256"])
        for name, file in result["files"].items()
    }


def complete(
    session: Session, claim: Claim, result: Mapping[str, Any], published: dict[str, str]
) -> None:
    """End the child job; its parent goes on if it was the last."""

    def learnt(progress: Json) -> Json:
        board = Leaderboard(claim.spec["parent"], progress)
        for fit, found in zip(claim.spec["part"]["fits"], result["results"], strict=True):
            board.add(fit, found)
        return progress | board.state()

    parts.finish(session, claim, {"results": result["results"]}, published, learnt)


def may_skip(part: Mapping[str, Any]) -> bool:
    """Whether a job that is to end early can do without these fits: all of them try or compare."""
    return all(fit["what"] in (TRIAL, BASELINE) for fit in part["fits"])


KIND = JobKind(
    name=TRAIN_PART,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    may_skip=may_skip,
)
