"""Thresholds on a stored curve: at a rate, with a guarantee, along the curve, and for the objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from app.measures import note_of_kept, optimism
from app.models import repository
from app.models.curves import PartCurve, find_curve_on, invalid_query
from app.models.objectives import target_fpr
from app.models.row_costs import RowCosts
from app.models.service import VALIDATION, is_approximate
from app.platform.documents import AliasCutoff
from app.platform.errors import Invalid
from app.platform.sql import Session
from app.platform.tables import Model, ModelAlias
from core import metrics as core_metrics
from core.errors import InvalidParameter


def flag_threshold(cutoff: AliasCutoff | None) -> float | None:
    """Return the lowest score that is flagged, inf if none is; None without a cutoff."""
    if cutoff is None:
        return None
    return math.inf if cutoff["threshold"] is None else cutoff["threshold"]


def cutoff_on(
    measured: PartCurve, *, confidence: float | None, by_row: RowCosts | None = None, **terms: Any
) -> tuple[core_metrics.OperatingPoint, core_metrics.Guarantee | None]:
    """Return the point at a rate or a threshold, or of lowest cost, and with a confidence its guarantee.

    `terms` are the keywords of `core.metrics.operating_point`. With `by_row` the costs are those of the rows.
    """
    part = measured.part
    if by_row is not None:
        terms["costs"] = None
        if terms["flagged"] is not None or all(
            terms[name] is None for name in ("fpr", "tpr", "threshold")
        ):
            terms |= {"threshold": by_row.least(terms["flagged"]), "flagged": None}
        point, guarantee = cutoff_on(measured, confidence=confidence, **terms)
        return _with_costs([point], by_row)[0], guarantee
    if confidence is None:
        return point_on(measured, **terms), None
    if part != VALIDATION:
        detail = f"on must be {VALIDATION} with confidence: a guarantee requires held-out rows"
        raise no_guarantee("on", f"{detail}, got {part}")
    if is_approximate(measured.model, part):
        raise no_guarantee(
            "confidence",
            f"a cutoff of model {measured.model.id} cannot be guaranteed, because it was cross-validated: "
            "its scores belong to rows that it was trained on. Evaluate it on other rows, and request the "
            "operating point of that evaluation; or train with validation.method holdout",
        )
    found = guaranteed_on(
        measured.curve, measured.totals, measured.rows, measured.level, confidence, **terms
    )
    return found.point, found.guarantee


def guaranteed_on(
    curve: core_metrics.RocCurve,
    totals: core_metrics.ClassTotals,
    rows: tuple[int, int],
    level: float,
    confidence: float,
    *,
    fpr: float | None,
    tpr: float | None,
    threshold: float | None,
    flagged: float | None = None,
    **terms: Any,
) -> core_metrics.GuaranteedPoint:
    """Guarantee a cutoff on a curve of rows that are not training rows.

    Raises Invalid, with the number of rows that are needed, if no cutoff can be guaranteed.
    """
    for name, given in (("threshold", threshold), ("flagged", flagged)):
        if given is not None:
            raise no_guarantee(name, f"{name} cannot be combined with confidence, got {given:g}")
    if fpr is None and tpr is None and terms.get("costs") is not None:
        raise invalid_query(
            "confidence",
            "confidence guarantees fpr or tpr: pass one of them, not only costs",
        )
    try:
        return core_metrics.guaranteed_point_on_curve(
            curve, totals, rows, fpr=fpr, tpr=tpr, confidence=confidence, level=level, **terms
        )
    except core_metrics.TooFewRows as error:
        raise no_guarantee(
            "tpr" if fpr is None else "fpr", str(error), code=error.code, needed=error.needed
        ) from error
    except core_metrics.NoGuarantee as error:
        raise no_guarantee("confidence", str(error)) from error
    except InvalidParameter as error:
        raise invalid_query("tpr" if fpr is None else "fpr", str(error)) from error


def note_on(confidence: float | None, **terms: Any) -> str | None:
    """Return a caution on the rates of `cutoff_on` with the same terms, on the same rows."""
    chosen_by = [name for name in ("fpr", "tpr") if terms.get(name) is not None]
    if not chosen_by and terms.get("costs") is not None and terms.get("threshold") is None:
        chosen_by = ["cost"]
    return optimism(chosen_by, confidence)


def note_on_alias(measured: PartCurve, alias: ModelAlias) -> str | None:
    """Return a caution on the rates of an alias's cutoff on the rows of a curve. A threshold that flags the same rows
    as the best one counts as chosen on them.
    """
    kept = alias.guarantee
    if kept is None or alias.cutoff is None or alias.cutoff["threshold"] is None:
        return None
    if kept.get("threshold") is None:
        return note_of_kept(kept)
    curve, memo = measured.curve, alias.memo
    best = {"ks": curve.ks_point}
    if (target := target_fpr(measured.model.objective)) is not None:
        best["objective"] = place_on(curve, point_on(measured, fpr=target).threshold)
    if memo is not None and memo["amount"] is None and memo["cost_false_positive"] is not None:
        costs = core_metrics.Costs(memo["cost_false_positive"], memo["cost_false_negative"] or 0.0)
        fraction = memo["prevalence"] or measured.totals.prevalence
        best["cost"] = core_metrics.least_costly(curve, costs, fraction)
    at = place_on(curve, alias.cutoff["threshold"])
    return optimism(name for name, index in best.items() if index == at)


def place_on(curve: core_metrics.RocCurve, threshold: float) -> int:
    """Return the point that flags the same rows as a threshold."""
    return int(np.searchsorted(-curve.thresholds, -threshold, side="right")) - 1


def no_guarantee(parameter: str, detail: str, code: str = "no_guarantee", **more: int) -> Invalid:
    """`more` are further members of the error."""
    return Invalid(detail, code=code, errors=[{"parameter": parameter, "detail": detail, **more}])


MAX_ALIAS_CUTOFFS = 20
"""Maximum number of aliases whose cutoffs are among the operating points along a curve."""
_ALWAYS_KEPT = 6
"""Operating points along a curve that are kept besides those of aliases: both ends, and at most four others."""


def _with_costs(
    points: Sequence[core_metrics.OperatingPoint], by_row: RowCosts
) -> list[core_metrics.OperatingPoint]:
    documents: Sequence[Any] = by_row.documents([point.threshold for point in points])
    return [replace(point, cost=cost) for point, cost in zip(points, documents, strict=True)]


@dataclass(frozen=True)
class CutoffsAlong:
    """Operating points by the number of flagged rows. `of_ks`, `least_cost`, `of_objective`, `of_flagged` and
    `of_aliases` (by alias) are indices of `points`.
    """

    of: PartCurve
    points: list[core_metrics.OperatingPoint]
    of_ks: int
    least_cost: int | None
    of_objective: int | None
    of_flagged: int | None
    of_aliases: dict[str, int]


class CutoffsInput(NamedTuple):
    """The stored data of operating points along a curve; `aliases` are the model's aliases with a cutoff."""

    of: PartCurve
    objective: ObjectiveCurves | None
    aliases: Sequence[tuple[str, AliasCutoff]]


def find_cutoffs_input(session: Session, measured: PartCurve, max_points: int) -> CutoffsInput:
    model = measured.model
    most = min(MAX_ALIAS_CUTOFFS, max_points - _ALWAYS_KEPT)
    return CutoffsInput(
        measured,
        find_objective_curves(session, model, measured.part),
        repository.flagging(session, model.owner, model.id, most),
    )


def cutoffs_along(
    found: CutoffsInput,
    *,
    max_points: int,
    costs: core_metrics.Costs | None,
    prevalence: float | None,
    flagged: float | None = None,
    by_row: RowCosts | None = None,
) -> CutoffsAlong:
    """Return operating points along a curve, with special ones found among all its points.

    These are that of the objective, those with the greatest TPR − FPR and with the lowest cost, the best one that flags
    at most `flagged` of the rows, and the cutoffs of the model's aliases. With `by_row` the costs are those of the
    rows.
    """
    measured = found.of
    curve, totals = measured.curve, measured.totals
    required: dict[str, int] = {"of_ks": curve.ks_point}
    place = partial(place_on, curve)
    if by_row is not None:
        costs, max_points = None, by_row.max_points(max_points)
        required["least_cost"] = place(by_row.least())
    if costs is not None:
        fraction = totals.prevalence if prevalence is None else prevalence
        required["least_cost"] = core_metrics.least_costly(curve, costs, fraction)
    chosen = objective_point(found.objective)
    if chosen is not None:
        required["of_objective"] = place(chosen.threshold)
    elif (window := measured.model.objective).get("metric") == "pauc":
        best = point_on(measured, fpr=window["fpr_max"])
        required["of_objective"] = place(best.threshold)
    if flagged is not None and by_row is not None:
        required["of_flagged"] = place(by_row.least(flagged))
    elif flagged is not None:
        best = point_on(measured, flagged=flagged, costs=costs, prevalence=prevalence)
        required["of_flagged"] = place(best.threshold)
    of_aliases = {
        alias: 0 if cutoff["threshold"] is None else place(cutoff["threshold"])
        for alias, cutoff in found.aliases
    }
    kept = [*required.values(), *of_aliases.values()]
    indices = core_metrics.cutoffs_along(curve, max_points, kept)
    points = core_metrics.operating_points_on_curve(
        curve, totals, indices, costs=costs, prevalence=prevalence, level=measured.level
    )
    if by_row is not None:
        points = _with_costs(points, by_row)
    at = {name: int(np.searchsorted(indices, index)) for name, index in required.items()}
    by_alias = {name: int(np.searchsorted(indices, index)) for name, index in of_aliases.items()}
    return CutoffsAlong(
        measured,
        points,
        at["of_ks"],
        at.get("least_cost"),
        at.get("of_objective"),
        at.get("of_flagged"),
        by_alias,
    )


class ObjectiveCurves(NamedTuple):
    """The curves of the objective `tpr`: on which its threshold is chosen, and from which its rates are read."""

    fpr: float
    chosen_on: PartCurve
    shown_on: PartCurve


def find_objective_curves(
    session: Session, model: Model, part: str = VALIDATION
) -> ObjectiveCurves | None:
    """None for objectives other than `tpr`, or without a curve. The threshold is chosen on the validation rows."""
    fpr = target_fpr(model.objective)
    if fpr is None or (chosen_on := find_curve_on(session, model, VALIDATION)) is None:
        return None
    shown_on = chosen_on if part == VALIDATION else find_curve_on(session, model, part)
    return None if shown_on is None else ObjectiveCurves(fpr, chosen_on, shown_on)


def objective_point(curves: ObjectiveCurves | None) -> core_metrics.OperatingPoint | None:
    """Return None without curves."""
    if curves is None:
        return None
    chosen = point_on(curves.chosen_on, fpr=curves.fpr)
    if curves.shown_on is curves.chosen_on:
        return chosen
    return point_on(curves.shown_on, threshold=chosen.threshold)


def point_on(measured: PartCurve, **terms: Any) -> core_metrics.OperatingPoint:
    """`terms` are the keywords of `core.metrics.operating_point`."""
    return core_metrics.operating_point_on_curve(
        measured.curve, measured.totals, level=measured.level, **terms
    )
