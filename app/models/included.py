"""A model together with its metrics, curve and operating points, read in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.models import repository
from app.models.curves import PartCurve, curve_on
from app.models.metrics import prepare_metrics
from app.models.operating_points import (
    CutoffsAlong,
    cutoff_on,
    prepare_cutoffs,
    prepare_point_of_objective,
)
from app.models.service import find
from app.platform.errors import NotFound
from app.platform.sql import Session
from app.platform.tables import Model
from core import metrics as core_metrics

PartName = Literal["metrics", "roc", "operating_points", "operating_point"]
"""What can be read together with a model."""


def get(
    session: Session, owner: str, ref: str
) -> tuple[Model, list[str], core_metrics.OperatingPoint | None]:
    """Return the model, its aliases, and the operating point of its objective if it has one."""
    model = find(session, owner, ref)
    aliases = list(repository.pointing_at(session, owner, model.id))
    return model, aliases, prepare_point_of_objective(session, model)()


@dataclass(frozen=True)
class PartsQuery:
    """The members that a caller asked to be included with a model, and how. `part`: the rows that they are of.

    `point` are the keywords of `cutoff_on`, and `cutoffs` those of `prepare_cutoffs`.
    """

    names: frozenset[PartName]
    part: str
    point: Mapping[str, Any]
    cutoffs: Mapping[str, Any]


@dataclass(frozen=True)
class MeasuredParts:
    """The requested members that the model has, and for each that it lacks the error that says why."""

    metrics: dict[str, Any] | None
    curve: PartCurve | None
    cutoffs: CutoffsAlong | None
    point: tuple[core_metrics.OperatingPoint, core_metrics.Guarantee | None] | None
    absent: Mapping[PartName, NotFound]


if TYPE_CHECKING:
    ModelWithParts = tuple[Model, list[str], core_metrics.OperatingPoint | None, MeasuredParts]


def prepare_parts(
    session: Session, model: Model, asked: PartsQuery
) -> Callable[[], ModelWithParts]:
    """Read what the requested members of a model are computed from; return what computes the same as `get` and these
    members, and reads nothing.
    """
    # A session has a row at hand while something holds it: otherwise each member would read the curve again.
    rows = repository.find_curve(session, model.id, asked.part)
    absent: dict[PartName, NotFound] = {}
    compute_metrics, compute_cutoffs, measured = None, None, None
    if "metrics" in asked.names:
        try:
            compute_metrics = prepare_metrics(session, model, asked.part)
        except NotFound as error:
            absent["metrics"] = error
    if of_curve := asked.names - {"metrics"}:
        try:
            measured = curve_on(session, model, asked.part)
        except NotFound as error:
            absent |= dict.fromkeys(sorted(of_curve), error)
    if measured is not None and "operating_points" in asked.names:
        compute_cutoffs = prepare_cutoffs(session, measured, **asked.cutoffs)
    aliases = list(repository.pointing_at(session, model.owner, model.id))
    compute_chosen = prepare_point_of_objective(session, model)
    del rows

    def compute() -> ModelWithParts:
        found = MeasuredParts(
            None if compute_metrics is None else compute_metrics(),
            measured,
            None if compute_cutoffs is None else compute_cutoffs(),
            cutoff_on(measured, **asked.point)
            if measured is not None and "operating_point" in asked.names
            else None,
            absent,
        )
        return model, aliases, compute_chosen(), found

    return compute
