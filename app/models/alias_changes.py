"""Previews of changes of an alias: what it serves now, and what it would serve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.models import alias_request_repository as request_rows
from app.models import aliases, calibrations, repository
from app.models.curves import PartCurve, find_curve_on
from app.models.operating_points import point_on
from app.models.service import VALIDATION
from app.platform.documents import AliasCutoff, StoredGuarantee
from app.platform.errors import Conflict, check_name
from app.platform.sql import Session
from app.platform.tables import Model, ModelCalibration
from core import metrics as core_metrics


@dataclass(frozen=True)
class AliasSide:
    """A model behind an alias, with its cutoff and the cutoff's rates on the validation rows of that model."""

    model: Model
    guarantee: StoredGuarantee | None
    cutoff: AliasCutoff | None
    curve: PartCurve | None
    point: core_metrics.OperatingPoint | None
    """The rates of the cutoff; None without a cutoff, or if it flags no row."""
    calibration: ModelCalibration | None
    probability: float | None
    """The calibrated probability of the threshold."""
    words: str


@dataclass(frozen=True)
class AliasPreview:
    """What an alias serves before and after a change. `revision` and `before` are None if the alias does not exist."""

    name: str
    alias: str
    revision: int | None
    protected: bool
    approval_required: bool
    before: AliasSide | None
    after: AliasSide


def preview(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    *,
    ref: str | None,
    guarantee: StoredGuarantee | Literal["keep"] | None,
    revision: int | None,
) -> Callable[[], AliasPreview]:
    """Read what a change of an alias would do; the returned function computes the rates without the database.

    The change is to the model `ref`, or to an earlier revision. Raises the errors of that change, except those of
    `If-Match` and of the protection.
    """
    check_name("alias", alias)
    current = repository.find_alias(session, owner, name, alias)
    newest = repository.last_alias_revision(session, owner, name, alias)
    protected = newest is not None and (newest if current is None else current).protected
    if revision is not None:
        target = aliases.find_restorable(session, owner, name, alias, revision)
        model = repository.find(session, owner, target.model_id)
        if model is None:
            raise aliases.model_deleted(target)
        kept, cutoff = target.guarantee, target.cutoff
    else:
        model = aliases.find_target(session, owner, name, ref or "")
        kept, cutoff = aliases.guarantee_to_keep(session, model, current, guarantee)
    before = None
    if current is not None:
        pointed_at = repository.find(session, owner, current.model_id)
        if pointed_at is None:  # moved, and the model deleted, between the two statements
            raise Conflict(f"{name}@{alias} was moved: read it again", code="conflict")
        before = read_side(session, pointed_at, current.guarantee, current.cutoff)
    after = read_side(session, model, kept, cutoff)
    number = None if newest is None else newest.revision
    suspended = request_rows.find_break_glass(session, owner, name, alias)
    return lambda: AliasPreview(
        name=name,
        alias=alias,
        revision=number,
        protected=protected,
        approval_required=protected and suspended is None,
        before=None if before is None else before(),
        after=after(),
    )


def read_side(
    session: Session, model: Model, guarantee: StoredGuarantee | None, cutoff: AliasCutoff | None
) -> Callable[[], AliasSide]:
    """Read what one side of a change consists of; return a function that computes its rates."""
    curve = find_curve_on(session, model, VALIDATION)
    calibration = calibrations.find_served(session, model)
    words = aliases.words_of(model.name, model.version, cutoff)

    def compute() -> AliasSide:
        threshold = None if cutoff is None else cutoff["threshold"]
        point = probability = None
        if threshold is not None:
            if curve is not None:
                point = point_on(curve, threshold=threshold)
            found = calibrations.probabilities_at(calibration, [threshold])
            probability = None if found is None else found[0]
        return AliasSide(model, guarantee, cutoff, curve, point, calibration, probability, words)

    return compute
