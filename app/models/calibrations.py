"""Calibrations of models: fitted on rows that the ranker was not trained on; the latest serves probabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.models import alias_request_repository as request_rows
from app.models import repository
from app.models import service as models
from app.models.protection import BREAK_GLASS, Approval, permit, protected_aliases
from app.models.revisions import check_revision
from app.platform import documents
from app.platform.audit import allow_over_quota, describe
from app.platform.callers import acting_principal, check_model
from app.platform.documents import (
    CalibrationPeriods,
    DatasetLineage,
    Reliability,
    ReliabilityPoint,
    document_of,
)
from app.platform.errors import Conflict, NotFound, invalid
from app.platform.sql import Base, Session, db_now
from app.platform.tables import DatasetKind, Model, ModelCalibration
from core import probability as core_probability

if TYPE_CHECKING:
    from core import probability
    from core.metrics import Interval
    from core.metrics.groups import ScoreGroups

Floats = npt.NDArray[np.float64]

CALIBRATION_FILE = "calibration.npz"
RELIABILITY_FILE = "reliability.json"
MAX_CELLS = 1 << 20
"""Number of scores that a calibration of rows in files is fitted on."""

LEARNT_ON_VALIDATION, LEARNT_OUT_OF_FOLD, LEARNT_ON_DATASET = "validation", "out_of_fold", "dataset"
LEARNT_ON = (LEARNT_ON_VALIDATION, LEARNT_OUT_OF_FOLD, LEARNT_ON_DATASET)


class CalibrationRecord(TypedDict):
    """A calibration that a job has fitted: small JSON, and files in the work folder (arrays, reliability)."""

    file: str
    reliability_file: str | None
    method: str
    prevalence: float
    trained_on: str
    rows: int
    positives: int
    log_losses: dict[str, float]


class CalibrationMarks(TypedDict):
    """Why a calibration was changed, by whom, and with whose approval."""

    reason: str | None
    author: str | None
    principal_id: str | None
    alias_request_id: str | None
    approved_by: str | None
    approved_by_id: str | None
    break_glass: bool


def marks_of(
    reason: str | None, author: str | None, approval: Approval | None, *, break_glass: bool
) -> CalibrationMarks:
    return {
        "reason": reason,
        "author": author if approval is None else approval.author,
        "principal_id": acting_principal() if approval is None else approval.principal_id,
        "alias_request_id": None if approval is None else approval.alias_request_id,
        "approved_by": None if approval is None else approval.approved_by,
        "approved_by_id": None if approval is None else approval.approved_by_id,
        "break_glass": break_glass,
    }


def learn(
    workdir: Path,
    trained_on: str,
    y: npt.NDArray[np.int8],
    scores: Floats,
    weight: Floats | None,
    group: npt.NDArray[np.generic] | None,
    seed: int,
    n_rows: int | None = None,
    groups: ScoreGroups | None = None,
    period: npt.NDArray[np.int64] | None = None,
) -> CalibrationRecord:
    """Fit a calibration, evaluate it on held-out folds, and write its arrays; O(n log n).

    Parameters
    ----------
    y : ndarray of shape (n,), int8
        1 for a positive; both classes occur.
    scores, weight : ndarray of shape (n,), float64
    group : ndarray of shape (n,)
        Rows with equal values count as one.
    n_rows : int, optional
        The number of rows, where one was scored several times.
    groups : ScoreGroups, optional
        The rows by score, where they are in files: then neighbours of about equal mass together are one score, of more
        than `MAX_CELLS`.
    period : ndarray of shape (n,), int64, optional
        The time window of each row: the calibration follows its level.
    """
    from core.probability.isotonic import cells_of, venn_abers_of

    seed = seed % 2**32
    masses = None if groups is None else cells_of(groups, MAX_CELLS)
    chosen = core_probability.choose_calibration(
        y,
        scores,
        sample_weight=weight,
        group=group,
        period=period,
        random_state=seed,
        masses=masses,
    )
    file = None
    if (held_out := chosen.held_out) is not None:
        file = RELIABILITY_FILE
        evaluated = core_probability.reliability(
            held_out.y,
            held_out.probability,
            sample_weight=held_out.weight,
            group=held_out.group,
            random_state=seed,
        )
        record = reliability_record(evaluated)
        record["later"] = held_out.later
        record["periods"] = _periods(chosen.periods)
        (workdir / file).write_text(json.dumps(record))
    pair = venn_abers_of(chosen.masses)
    np.savez(
        workdir / CALIBRATION_FILE,
        parameters=chosen.calibration.parameters,
        low=np.stack((pair.low_scores, pair.low_values)),
        high=np.stack((pair.high_scores, pair.high_values)),
    )
    share = 1.0 if n_rows is None else n_rows / len(y)
    return {
        "file": CALIBRATION_FILE,
        "reliability_file": file,
        "method": chosen.calibration.method,
        "prevalence": chosen.calibration.prevalence,
        "trained_on": trained_on,
        "rows": round(share * len(y)),
        "positives": round(share * int(np.count_nonzero(y))),
        "log_losses": chosen.log_loss,
    }


def reliability_record(found: probability.Reliability) -> Reliability:
    """Interval ends are next to the other members, infinite ones None."""
    points: list[ReliabilityPoint] = [
        {
            "probability": point.probability,
            "observed": point.observed.value,
            "low": point.observed.low,
            "high": point.observed.high,
            "consistent_low": point.consistent[0],
            "consistent_high": point.consistent[1],
        }
        for point in found.points
    ]
    record: Any = {
        **vars(found),
        "brier": _score_parts(found.brier),
        "log": _score_parts(found.log),
        "in_the_large": _interval(found.in_the_large),
        "slope": _interval(found.slope),
        "shape": _shape(found.shape),
        "points": points,
    }
    return cast(Reliability, record)


def _score_parts(found: probability.Decomposition) -> dict[str, Any]:
    parts: dict[str, Any] = document_of(found)
    ends = parts.pop("interval") or {"low": None, "high": None}
    return {**parts, "low": ends["low"], "high": ends["high"]}


def _shape(found: probability.Shape | None) -> dict[str, Any] | None:
    shape: dict[str, Any] | None = document_of(found)
    return None if shape is None else {**shape.pop("size"), **shape}


def _interval(found: Interval) -> documents.Interval | None:
    record = document_of(found)
    return None if None in record.values() else record


def _periods(found: probability.Periods | None) -> CalibrationPeriods | None:
    if found is None:
        return None
    return {"levels": document_of(found.levels), "step": found.step, "p_value": found.p_value}


def row_of(
    model_id: str,
    record: CalibrationRecord,
    workdir: Path,
    *,
    version: int,
    job_id: str,
    dataset: DatasetLineage | None,
    marks: CalibrationMarks | None = None,
) -> ModelCalibration:
    """Return the row of a fitted calibration; its time is set when it is written. `marks`: None for a training's."""
    with np.load(workdir / record["file"], allow_pickle=False) as arrays:
        columns = {name: arrays[name].astype("<f8").tobytes() for name in arrays.files}
    evaluated = record["reliability_file"]
    return ModelCalibration(
        model_id=model_id,
        version=version,
        job_id=job_id,
        dataset=dataset,
        **cast(dict[str, Any], marks or {}),
        method=record["method"],
        prevalence=record["prevalence"],
        trained_on=record["trained_on"],
        rows=record["rows"],
        positives=record["positives"],
        log_losses=record["log_losses"],
        reliability=None if evaluated is None else json.loads((workdir / evaluated).read_text()),
        **columns,
    )


@dataclass(frozen=True, eq=False)
class ServedCalibration:
    """A calibration with its arrays; immutable."""

    version: int
    calibration: probability.Calibration
    pair: probability.VennAbers

    @property
    def n_bytes(self) -> int:
        """The arrays to look up one row count, too."""
        pair = (self.pair.low_scores, self.pair.high_scores)
        return 3 * self.calibration.parameters.nbytes + 3 * sum(each.nbytes for each in pair)


class CalibrationFile(TypedDict):
    """A stored calibration in the payload of a job: `file` has its arrays."""

    version: int
    method: str
    prevalence: float
    file: str


def served_of(row: ModelCalibration) -> ServedCalibration:
    """Decode the arrays of a stored calibration."""
    return _served(row.version, row.method, row.prevalence, _columns_of(row))


def write_file(
    row: ModelCalibration, workdir: Path, file: str = CALIBRATION_FILE
) -> CalibrationFile:
    """Write the arrays for `read_file`."""
    columns = _columns_of(row)
    np.savez(
        workdir / file,
        parameters=columns["parameters"],
        low=columns["low"],
        high=columns["high"],
    )
    return {
        "version": row.version,
        "method": row.method,
        "prevalence": row.prevalence,
        "file": file,
    }


def read_file(written: CalibrationFile, workdir: Path) -> ServedCalibration:
    """Inverse of `write_file`."""
    with np.load(workdir / written["file"], allow_pickle=False) as arrays:
        columns = {name: arrays[name] for name in arrays.files}
    return _served(written["version"], written["method"], written["prevalence"], columns)


def read_record(record: CalibrationRecord, workdir: Path) -> ServedCalibration:
    written: CalibrationFile = {
        "version": 0,
        "method": record["method"],
        "prevalence": record["prevalence"],
        "file": record["file"],
    }
    return read_file(written, workdir)


def _columns_of(row: ModelCalibration) -> dict[str, Floats]:
    stored = {"parameters": row.parameters, "low": row.low, "high": row.high}
    return {name: np.frombuffer(column, dtype="<f8") for name, column in stored.items()}


def _served(
    version: int, method: str, prevalence: float, columns: dict[str, Floats]
) -> ServedCalibration:
    return ServedCalibration(
        version,
        core_probability.Calibration(method, columns["parameters"], prevalence),  # type: ignore[arg-type]
        core_probability.VennAbers(*columns["low"].reshape(2, -1), *columns["high"].reshape(2, -1)),
    )


def find_served(session: Session, model: Model) -> ModelCalibration | None:
    """Return the calibration that the model currently uses."""
    if model.calibration_version is None:
        return None
    return repository.find_calibration(session, model.id, model.calibration_version)


def probabilities_at(
    row: ModelCalibration | None, thresholds: Sequence[float]
) -> list[float | None] | None:
    """Return the probability of each score, None where it is not finite; None without a calibration."""
    if row is None:
        return None
    scores = np.asarray(thresholds, dtype=np.float64)
    known = np.isfinite(scores)
    found = served_of(row).calibration.probability(scores[known]).tolist()
    given = iter(found)
    return [next(given) if each else None for each in known]


def why_none(model: Model) -> str:
    if model.kind == DatasetKind.PREFERENCES:
        return "the model was trained on pairs, whose rows are neither positive nor negative"
    if model.kind == DatasetKind.GRADED:
        return "the model was trained on grades, so its rows are neither positive nor negative"
    if model.kind == DatasetKind.MULTILABEL:
        return "the model has several labels, and probabilities require one"
    if model.validation.get("method") == "none":
        return "the model was trained without validation, so there are no held-out rows"
    return "one class has almost no weight among the validation rows of the model"


def read(
    session: Session, owner: str, ref: str
) -> tuple[Model, ModelCalibration, Sequence[ModelCalibration]]:
    """Return a model, its calibration, and all, newest first. Raises NotFound with the reason if it has none."""
    model = models.find(session, owner, ref)
    row = find_served(session, model)
    if row is None:
        raise NotFound(
            f"model {model.id} has no calibration: {why_none(model)}", code="no_calibration"
        )
    return model, row, repository.list_calibrations(session, model.id, models.HISTORY_SHOWN)


def stamp(row: Base) -> None:
    """Set the creation time, once per attempt to write it: the SQL expression of a failed attempt cannot be reused."""
    if isinstance(row, ModelCalibration):
        row.created_at = cast(Any, db_now())


def add(session: Session, owner: str, row: ModelCalibration) -> None:
    """Insert the next version, which is then current. Raises Conflict if the model was deleted."""
    model = repository.find(session, owner, row.model_id, lock=True)
    if model is None:
        raise Conflict(
            f"model {row.model_id} was deleted before the job ended", code="model_deleted"
        )
    latest = repository.list_calibrations(session, model.id, 1)
    row.version = latest[0].version + 1 if latest else 1
    stamp(row)
    model.calibration_version = row.version
    session.add(row)
    if row.alias_request_id is not None:
        request_rows.note_calibration(session, owner, row.alias_request_id, row.version)
    request_rows.void(
        session,
        owner,
        f"the calibration of {model.name}:{model.version} was changed: it is at version {row.version}",
        model_id=model.id,
        except_id=row.alias_request_id,
    )


_COPIED = (
    "method",
    "parameters",
    "low",
    "high",
    "prevalence",
    "trained_on",
    "dataset",
    "rows",
    "positives",
    "log_losses",
    "reliability",
    "job_id",
)
"""The columns of a calibration that a restored one shares."""


def restore(
    session: Session,
    owner: str,
    ref: str,
    version: int,
    *,
    reason: str | None,
    author: str | None,
    if_version: int | None,
    approval: Approval | None = None,
) -> tuple[Model, ModelCalibration, Sequence[ModelCalibration]]:
    """Add a copy of an earlier calibration as the next version; returns what `read` returns.

    `if_version` is the current version as the caller has seen it. Raises NotFound, Invalid, Conflict if a protected
    alias points to the model and there is no `approval`, and the errors of `check_revision`.
    """
    found = models.find(session, owner, ref)
    model = repository.find(session, owner, found.id, lock=True)
    if model is None:  # deleted between the two statements
        raise NotFound(f"there is no model {ref[:200]!r}")
    check_model(model.name)
    session.refresh(model)  # its calibration may have changed between the two statements
    name = f"{model.name}:{model.version}"
    row = find_served(session, model)
    if row is None:
        raise NotFound(
            f"model {model.id} has no calibration: {why_none(model)}", code="no_calibration"
        )
    check_revision(f"the calibration of {name}", row, if_version, must_be_new=False)
    earlier = find_restorable(session, model, version)
    break_glass = permit_change(session, owner, model, reason, approval)
    allow_over_quota(session)  # a wrong calibration must be undone at once
    copied = {column: getattr(earlier, column) for column in _COPIED}
    add(
        session,
        owner,
        ModelCalibration(
            model_id=model.id,
            restores=version,
            **marks_of(
                reason or f"Restores version {version}.",
                author,
                approval,
                break_glass=break_glass,
            ),
            **copied,
        ),
    )
    session.flush()
    describe(
        session,
        f"{model.name} v{model.version}: calibration {row.version} ({row.method}) → {row.version + 1} "
        f"({earlier.method}), as in version {version}{BREAK_GLASS if break_glass else ''}",
    )
    return read(session, owner, model.id)


def find_restorable(session: Session, model: Model, version: int) -> ModelCalibration:
    earlier = repository.find_calibration(session, model.id, version)
    if earlier is None:
        raise NotFound(
            f"{model.name}:{model.version} has no calibration of version {version}",
            code="no_calibration",
        )
    if version == model.calibration_version:
        raise invalid(
            "/version", f"version must be an earlier one, got {version}, which is current"
        )
    return earlier


def permit_change(
    session: Session, owner: str, model: Model, reason: str | None, approval: Approval | None
) -> bool:
    """Check that a model's probabilities may change; returns True if only because protections are suspended.

    No protected alias may point to it without an approval. Raises as `permit` does.
    """
    if approval is not None:
        return False
    protected = protected_aliases(session, owner, model.id)
    for alias in protected:
        permit(session, owner, alias, reason, {"pointer": "/reason"})
    return bool(protected)
