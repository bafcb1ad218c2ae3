"""A model together with its metrics, curve and operating points, read in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.models import metrics as model_metrics
from app.models import repository
from app.models.curves import PartCurve, curve_on
from app.models.metrics import MetricsInput
from app.models.operating_points import (
    CutoffsInput,
    ObjectiveCurves,
    find_cutoffs_input,
    find_objective_curves,
    objective_point,
)
from app.models.rows import ModelRows, find_rows
from app.models.service import find
from app.platform.errors import NotFound
from app.platform.sql import Session
from app.platform.tables import Model
from core import metrics as core_metrics

IncludeName = Literal["metrics", "roc", "operating_points", "operating_point"]
"""What can be read together with a model."""


def get(
    session: Session, owner: str, ref: str
) -> tuple[Model, list[str], ModelRows, core_metrics.OperatingPoint | None]:
    """The operating point is that of the objective, if it has one."""
    model = find(session, owner, ref)
    aliases = list(repository.pointing_at(session, owner, model.id))
    point = objective_point(find_objective_curves(session, model))
    return model, aliases, find_rows(session, model), point


@dataclass(frozen=True)
class IncludeQuery:
    """The parts that a caller requested with a model, computed on the rows of `part`. `point` are the keywords of
    `cutoff_on`, and `cutoffs` those of `cutoffs_along`.
    """

    names: frozenset[IncludeName]
    part: str
    point: Mapping[str, Any]
    cutoffs: Mapping[str, Any]


@dataclass(frozen=True)
class IncludedInput:
    """The stored data of a model and its requested parts. `absent` has an error for each part that it does not have."""

    model: Model
    aliases: list[str]
    rows: ModelRows
    objective: ObjectiveCurves | None
    metrics: MetricsInput | None
    curve: PartCurve | None
    cutoffs: CutoffsInput | None
    absent: Mapping[IncludeName, NotFound]


def find_input(session: Session, model: Model, query: IncludeQuery) -> IncludedInput:
    """Read what the requested parts are computed from."""
    # The session's identity map has only weak references: without this one, each member would read the curve again.
    row = repository.find_curve(session, model.id, query.part)
    absent: dict[IncludeName, NotFound] = {}
    metrics, measured, cutoffs = None, None, None
    if "metrics" in query.names:
        try:
            metrics = model_metrics.find_input(session, model, query.part)
        except NotFound as error:
            absent["metrics"] = error
    if of_curve := query.names - {"metrics"}:
        try:
            measured = curve_on(session, model, query.part)
        except NotFound as error:
            absent |= dict.fromkeys(sorted(of_curve), error)
    if measured is not None and "operating_points" in query.names:
        cutoffs = find_cutoffs_input(session, measured, query.cutoffs["max_points"])
    aliases = list(repository.pointing_at(session, model.owner, model.id))
    objective = find_objective_curves(session, model)
    del row
    rows = find_rows(session, model)
    return IncludedInput(model, aliases, rows, objective, metrics, measured, cutoffs, absent)
