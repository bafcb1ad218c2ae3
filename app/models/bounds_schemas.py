"""Bounds on the partial AUC over HTTP."""

from __future__ import annotations

from pydantic import Field

from app.http.schemas import Resource
from app.models.bounds import WindowBound as Found
from app.models.bounds import WindowBounds as FoundBounds
from app.models.curves_schemas import Part


class WindowBound(Resource):
    """A bound on 1 - pAUC of rows to come: what was measured on a part, plus epsilon."""

    name: str = Field(description="`theorem_9` or `held_out`.")
    source: str
    on: Part = Field(description="The rows that were measured.")
    risk: float = Field(description="1 - pAUC of these rows, the curve taken as steps.")
    positives: int
    negatives: int
    vc_dimension: int | None = Field(
        description="Of the cuts of all scores that the algorithm might have learnt from these rows; null where it is "
        "not known, and where the model was fixed before the rows were seen."
    )
    epsilon: float | None
    value: float | None = Field(description="`risk + epsilon`; null where it has none.")
    vacuous: bool = Field(
        description="True from 1 on, a risk is no more anyway; and without a value."
    )
    applies: bool = Field(description="False where a condition is not met.")
    reasons: list[str] = Field(description="Why it does not apply.")


class WindowBounds(Resource):
    """What can be said of a model's partial AUC on rows to come, in one window of false positive rates."""

    model_id: str
    fpr_min: float
    fpr_max: float
    delta: float
    bounds: list[WindowBound]


def bounds_of(found: FoundBounds, delta: float) -> WindowBounds:
    """Show the bounds of one window."""
    low, high = found.window
    return WindowBounds(
        model_id=found.model.id,
        fpr_min=low,
        fpr_max=high,
        delta=delta,
        bounds=[_bound_of(bound) for bound in found.bounds],
    )


def _bound_of(bound: Found) -> WindowBound:
    known = bound.found
    return WindowBound(
        name=bound.name,
        source=bound.source,
        on=bound.part,
        risk=bound.risk,
        positives=bound.positives,
        negatives=bound.negatives,
        vc_dimension=bound.vc_dimension,
        epsilon=None if known is None else known.epsilon,
        value=None if known is None else known.value,
        vacuous=known is None or known.vacuous,
        applies=not bound.reasons,
        reasons=list(bound.reasons),
    )
