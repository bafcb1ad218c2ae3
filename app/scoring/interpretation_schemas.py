"""What a model has learnt, over HTTP."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from app.http.schemas import Resource
from app.models.curves_schemas import Part
from app.scoring.dependence import Dependence, FoundVariables

Value = float | bool | str | None


class FeatureImportance(Resource):
    """How much one feature matters."""

    name: str
    importance: float
    root: float | None = Field(
        default=None, description="Of `squared_auc_gain`: the square root of `importance`."
    )
    auc_gain: float | None = Field(
        default=None,
        description="Of `squared_auc_gain`: the sum of the gains themselves, in training AUC.",
    )


class Importance(Resource):
    """The features, the one that matters most first. Figures of two methods cannot be compared."""

    model_id: str
    method: str = Field(
        description="`squared_auc_gain` of ranking trees, `mean_absolute_contribution` of sums of parts per feature, "
        "`permutation_auc` of all others."
    )
    description: str = Field(description="What the method measures, in a sentence.")
    on: Part = Field(description="The rows that it was measured on.")
    label: str | None = Field(description="Of several labels, the one whose scores are meant.")
    features: list[FeatureImportance]


class DependenceAxis(Resource):
    """A feature, and the values that it was set to."""

    name: str
    type: str = Field(description="`numeric`, `boolean` or `categorical`.")
    values: list[Value] = Field(description="Null, always last, is missing.")


class PartialDependence(Resource):
    """Mean scores of rows that are alike but for one or two features."""

    model_id: str
    on: Part = Field(description="The rows that scores are averaged over.")
    label: str | None = Field(description="Of several labels, the one whose scores are meant.")
    rows: int = Field(description="How many rows each score is the mean of.")
    features: list[DependenceAxis]
    scores: list[float] | list[list[float]] = Field(
        description="By value of the feature; of two, by value of the first and then of the second."
    )


def dependence_of(found: Dependence, part: Part, label: str | None) -> PartialDependence:
    """Show the values in the caller's words."""
    axes = []
    for feature, axis, texts in zip(found.features, found.axes, found.categories, strict=True):
        values = [_shown(value, feature["type"], texts) for value in axis.values.tolist()]
        axes.append(DependenceAxis(name=feature["name"], type=feature["type"], values=values))
    return PartialDependence(
        model_id=found.model.id,
        on=part,
        label=label,
        rows=found.averaged,
        features=axes,
        scores=found.scores.tolist(),
    )


class VariableDependence(Resource):
    """How much scores depend on each of some features, and on two of them together."""

    model_id: str
    on: Part
    rows: int = Field(description="How many were looked at.")
    features: list[str]
    main: list[float] = Field(
        description="Variance of the feature's partial dependence, as a share of the variance of the scores."
    )
    joint: list[list[float]] = Field(
        description="H² of Friedman & Popescu: the share of the variance of two features' partial dependence that "
        "is in neither's own; 0 where their effects only add up."
    )


def variables_of(found: FoundVariables, part: Part) -> VariableDependence:
    """Show the measure by the features' names."""
    return VariableDependence(
        model_id=found.model.id,
        on=part,
        rows=found.rows,
        features=[feature["name"] for feature in found.features],
        main=found.dependence.main.tolist(),
        joint=found.dependence.joint.tolist(),
    )


def _shown(value: float, type_: str, texts: Sequence[str] | None) -> Value:
    if math.isnan(value):
        return None
    if texts is not None:
        return texts[int(value)]
    return bool(value) if type_ == "boolean" else value
