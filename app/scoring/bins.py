"""The bins of a scorecard on training and held-out rows, with WOE, IV and points; and the parameters that refit it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from app.http.schemas import (
    BaseOdds,
    BaseScore,
    FeatureName,
    ModelId,
    PointsToDouble,
    Resource,
    one_of,
)
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC, spell_date
from app.models import service as models
from app.models.service import SCORECARD
from app.platform.documents import HeldOutBins
from app.platform.errors import NotFound
from app.platform.sql import Session
from app.scoring.service import Served

if TYPE_CHECKING:
    from core.linear.points import PointsScale
    from core.linear.scorecard import Scorecard
    from core.metrics.woe import BinEvidence

BinKind = Literal["values", "categories", "special", "missing"]
_ON = "on rows that the model was not trained on. Null without such rows."


class BinCounts(Resource):
    """The rows of a bin."""

    rows: int
    """Number of rows."""
    share: float
    """Fraction of the rows, by weight."""
    events: int
    """Number of positive rows."""
    event_rate: float | None
    """Fraction of positive rows, by weight. Null without rows."""
    woe: float
    """Weight of evidence: the logarithm of the fraction of the positives that are in the bin, divided by that of the
    negatives. Above 0: more events than on average. 0 without rows. If a class has no rows, half a row is added to
    both."""
    woe_low: float | None
    """Lower confidence limit. Null: no limit, because the bin has no positive row."""
    woe_high: float | None
    """Upper confidence limit. Null: no limit, because the bin has no negative row."""


class InformationValue(Resource):
    """The information value of a feature."""

    value: float
    """Information value: the sum of (fraction of the positives - fraction of the negatives) · WOE."""
    adjusted: float
    """The value minus its bias, at least 0. The bias is (bins - 1) · (1/positives + 1/negatives)."""
    low: float
    """Lower confidence limit."""
    high: float
    """Upper confidence limit."""
    sparse: bool
    """Whether a bin has fewer than five rows of a class: the interval is then too optimistic."""


class ScorecardBin(Resource):
    """A bin of a feature."""

    of: Annotated[str, one_of(get_args(BinKind))]
    """`values`: numbers above `low` and up to `high`. `categories`: some categories. `special`: a special value, which
    is `low` and `high`. `missing`: no value, or an unknown category."""
    low: float | str | None
    """Lower end of the range. Null: no limit. Dates are strings."""
    high: float | str | None
    """Upper end of the range. Null: no limit."""
    categories: list[str] | None
    """The categories. Null for other bins."""
    train: BinCounts
    """The training rows of the bin."""
    held_out: BinCounts | None = Field(description=f"The same {_ON}")
    weight: float
    """Coefficient · WOE: the amount added to the log odds."""
    points: float
    """Points for values of the bin."""


class BinnedFeature(Resource):
    """A feature of a scorecard."""

    name: FeatureName
    type: Annotated[str, one_of((NUMERIC, BOOLEAN, DATETIME, CATEGORICAL))]
    """Type of the feature."""
    monotone: Annotated[str, one_of(("increasing", "decreasing"))] | None
    """`increasing` or `decreasing` if the model was trained with a constraint, otherwise null."""
    coefficient: float
    """Coefficient of the WOE, at least 0."""
    iv: InformationValue
    """Information value on the training rows. If the bins were chosen on these rows, it is too high."""
    held_out_iv: InformationValue | None = Field(description=f"Information value {_ON}")
    bins: list[ScorecardBin]
    """The bins."""


class RefitParameters(Resource):
    """The parameters that train a scorecard with the same bins. Edit them, and send them as `algorithm`."""

    name: Literal["scorecard"]
    """The algorithm."""
    bins: dict[str, list[Any]]
    """Edges of the numeric features, and groups (lists) of categories of the others. Dates are seconds since 1970."""
    special_values: dict[str, list[float]]
    """Special values of numeric features."""
    monotone: dict[str, Literal["increasing", "decreasing"]]
    """Monotone constraints by feature."""
    C: float
    """Regularization parameter of the model."""
    pdo: PointsToDouble
    base_score: BaseScore
    base_odds: BaseOdds


class ModelBins(Resource):
    """The bins of a scorecard."""

    model_id: ModelId
    level: float
    """Confidence level of the intervals."""
    pdo: PointsToDouble
    base_score: BaseScore
    base_odds: BaseOdds
    base_points: float
    """Points before the bins of a row add theirs."""
    train_rows: int
    """Number of training rows."""
    held_out_rows: int | None
    """Number of held-out rows that were counted, at most 100,000. Null without such rows."""
    features: list[BinnedFeature]
    """The features, by descending IV on held-out rows, or else on training rows."""
    refit: RefitParameters
    """The algorithm that trains with the same bins."""


def no_bins(algorithm: str) -> NotFound:
    """Return the error for a model without bins."""
    return NotFound(
        f"bins require a model of the algorithm {SCORECARD}; this model uses the algorithm {algorithm}",
        code="no_scorecard",
    )


def find_input(session: Session, owner: str, ref: str) -> tuple[Any, HeldOutBins | None]:
    """Return a scorecard model and its held-out counts. Raises NotFound."""
    model = models.find(session, owner, ref)
    if model.algorithm != SCORECARD:
        raise no_bins(model.algorithm)
    return model, model.held_out_bins


def make_bins(
    served: Served, held_out: HeldOutBins | None, scale: PointsScale, level: float
) -> ModelBins:
    from core.metrics.woe import evidence_of

    ranker: Any = served.ranker
    described = ranker.structure()
    types = dict(zip(served.features.names, served.features.types, strict=True))
    monotone = dict(ranker.monotone or {})
    features = []
    for j, (each, found) in enumerate(
        zip(described["features"], ranker.evidence(level), strict=True)
    ):
        other, other_rows = None, None
        if held_out is not None:
            of = held_out["features"][j]
            other = evidence_of(np.array(of["mass"]), np.array(of["squares"]), level=level)
            other_rows = of["rows"]
        rows = [
            [one["positives"] for one in each["bins"]],
            [one["negatives"] for one in each["bins"]],
        ]
        train, held = _counts(found, rows), _counts(other, other_rows)
        name = each["feature"]
        features.append(
            BinnedFeature(
                name=name,
                type=types[name],
                monotone=monotone.get(name),
                coefficient=each["coefficient"],
                iv=_information(found),
                held_out_iv=None if other is None else _information(other),
                bins=[
                    _bin(one, types[name], scale, train[k], held[k] if held else None)
                    for k, one in enumerate(each["bins"])
                ],
            )
        )
    n_train = sum(one["positives"] + one["negatives"] for one in described["features"][0]["bins"])
    features.sort(key=lambda each: (-(each.held_out_iv or each.iv).adjusted, each.name))
    return ModelBins(
        model_id=served.model_id,
        level=level,
        **vars(scale),
        base_points=scale.total(described["intercept"]),
        train_rows=n_train,
        held_out_rows=None if held_out is None else held_out["rows"],
        features=features,
        refit=refit_of(ranker, described, scale),
    )


def refit_of(
    ranker: Scorecard, described: Mapping[str, Any], scale: PointsScale
) -> RefitParameters:
    """Return the parameters that give a scorecard the bins that it has, and the scale."""
    bins: dict[str, Any] = {}
    special: dict[str, list[float]] = {}
    for each in described["features"]:
        name = each["feature"]
        if any("categories" in one for one in each["bins"]):
            bins[name] = [one["categories"] for one in each["bins"] if "categories" in one]
            continue
        ends = [one["high"] for one in each["bins"] if "high" in one]
        bins[name] = ends[:-1]
        if own := [one["special"] for one in each["bins"] if "special" in one]:
            special[name] = own
    constraints: Any = {str(key): value for key, value in (ranker.monotone or {}).items()}
    return RefitParameters(
        name="scorecard",
        bins=bins,
        special_values=special,
        monotone=constraints,
        C=float(ranker.C),
        **vars(scale),
    )


def _information(found: BinEvidence) -> InformationValue:
    return InformationValue(
        value=found.iv,
        adjusted=found.iv_adjusted,
        low=found.iv_low,
        high=found.iv_high,
        sparse=found.is_sparse,
    )


def _counts(found: BinEvidence | None, rows: Sequence[Sequence[int]] | None) -> list[BinCounts]:
    if found is None or rows is None:
        return []
    mass = found.positives + found.negatives
    total = float(mass.sum())
    return [
        BinCounts(
            rows=rows[0][k] + rows[1][k],
            share=float(mass[k]) / total,
            events=rows[0][k],
            event_rate=float(found.positives[k] / mass[k]) if mass[k] > 0.0 else None,
            woe=float(found.woe[k]),
            woe_low=_finite(found.woe_low[k]),
            woe_high=_finite(found.woe_high[k]),
        )
        for k in range(len(mass))
    ]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _bin(
    one: Mapping[str, Any],
    type_: str,
    scale: PointsScale,
    train: BinCounts,
    held_out: BinCounts | None,
) -> ScorecardBin:
    kind: BinKind = "values"
    for other in ("categories", "special", "missing"):
        if other in one:
            kind = other
    low, high = one.get("low", one.get("special")), one.get("high", one.get("special"))
    if type_ == DATETIME:
        low, high = (None if end is None else spell_date(end) for end in (low, high))
    return ScorecardBin(
        of=kind,
        low=low,
        high=high,
        categories=one.get("categories"),
        train=train,
        held_out=held_out,
        weight=one["value"],
        points=scale.points(one["value"]),
    )
