"""Previews of changes of an alias: what it serves now, and what it would serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from app.models import aliases, calibrations, repository
from app.models.alias_schemas import AliasPreview, AliasSide
from app.models.curves import find_curve_on
from app.models.operating_point_endpoints import TOTAL_ROWS, operating_point_of
from app.models.operating_points import point_on
from app.models.protection import needs_approval
from app.models.service import VALIDATION
from app.platform.documents import AliasCutoff, StoredGuarantee
from app.platform.errors import Conflict, check_name
from app.platform.sql import Session
from app.platform.tables import Model


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
    is_to_approve = protected and needs_approval(session, owner, name, alias)
    return lambda: AliasPreview(
        name=name,
        alias=alias,
        revision=number,
        protected=protected,
        approval_required=is_to_approve,
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
                found = point_on(curve, threshold=threshold)
                point = operating_point_of(curve, found, None, TOTAL_ROWS)
            served = calibrations.probabilities_at(calibration, [threshold])
            probability = None if served is None else served[0]
        return AliasSide(
            model_id=model.id,
            version=model.version,
            guarantee=guarantee,
            cutoff=cutoff,
            point=point,
            calibration_version=None if calibration is None else calibration.version,
            calibration_method=None if calibration is None else calibration.method,
            probability=probability,
            words=words,
        )

    return compute
