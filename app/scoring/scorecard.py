"""A model as a scorecard: the points of each value, their odds ratios, and the usual scale of credit scoring.

A row's points are `base_points` plus the points of its values. They decrease as the log odds of the positives
increase. A row has `base_score` points where the odds of the negatives are `base_odds` to 1, and `pdo` more points
double these odds (Siddiqi, *Credit Risk Scorecards*, 2006, chapter 6). This only rescales the model: the order of rows
is that of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

import numpy as np
from fastapi import Depends, Query

from app.http.schemas import BaseScore, FeatureName, ModelId, PointsToDouble, Resource, one_of
from app.models.calibrations import ServedCalibration
from app.models.service import SCORECARD
from app.platform.errors import NotFound
from app.scoring.features import LoadedModel
from core.linear.points import PointsScale

Json = Mapping[str, Any]
LOG_ODDS = ("logistic", SCORECARD, "additive")
"""Algorithms whose scores are log odds that are sums over features."""
MAX_ODDS_EXPONENT = 700.0  # above it an odds ratio overflows a float


@dataclass(frozen=True)
class ScaleQuery:
    """The scale that a request asks for. Parameters default to the model's."""

    pdo: Annotated[
        float | None,
        Query(
            gt=0,
            le=1e6,
            description="Number of points that double the odds of a negative. Default: the model's, if it is of the "
            "algorithm `scorecard`, else 20.",
        ),
    ] = None
    base_score: Annotated[
        float | None,
        Query(
            ge=-1e9,
            le=1e9,
            description="Points of a row at the odds `base_odds`. Default: the model's, else 600.",
        ),
    ] = None
    base_odds: Annotated[
        float | None,
        Query(
            gt=0,
            le=1e9,
            description="Odds at `base_score`: number of negatives to one positive. Default: the model's, else 50.",
        ),
    ] = None

    def of(self, served: LoadedModel) -> PointsScale:
        """Return the scale for a model."""
        asked = {name: value for name, value in vars(self).items() if value is not None}
        return replace(served.scale or PointsScale(), **asked)


ScaleDep = Annotated[ScaleQuery, Depends()]
AttributeKind = Literal["unit", "values", "category", "special", "missing"]


class ScorecardAttribute(Resource):
    """The points for a value of a feature."""

    of: Annotated[str, one_of(get_args(AttributeKind))]
    """`unit`: each unit of a number. `values`: a number above `low` and up to `high`. `category`: a category.
    `special`: a special value of a number, which is `low` and `high`. `missing`: no value."""
    low: float | str | None
    """Lower end of the range. Null: no limit. Dates are strings."""
    high: float | str | None
    """Upper end of the range. Null: no limit."""
    category: str | None
    """The category. Null for any other kind of attribute."""
    weight: float
    """Amount added to the log odds of the positives."""
    odds_ratio: float | None
    """Factor for the odds of the positives. Null if it is too large for a float64."""
    points: float
    """Points for this value."""


class ScorecardCharacteristic(Resource):
    """A feature and its attributes. A pair of features has no attributes here; its table is in the model structure."""

    name: FeatureName
    span: float | None
    """Highest minus lowest points. Null for a number with points per unit."""
    attributes: list[ScorecardAttribute]
    """The values and their points."""


class Scorecard(Resource):
    """The model as a scorecard."""

    model_id: ModelId
    pdo: PointsToDouble
    base_score: BaseScore
    base_odds: float
    """Odds at `base_score`: number of negatives to one positive."""
    calibrated_odds: float | None
    """Odds at `base_score` by the calibration that the model uses: number of negatives to one positive. Null without
    one, and if its probability is 0 or 1."""
    base_points: float
    """Points of a row whose values all add nothing."""
    lowest: float | None
    """No row has fewer points. Null if a number has points per unit, and if the scorecard is not complete."""
    highest: float | None
    """No row has more points. Null like `lowest`."""
    complete: bool
    """False if the score has parts that the attributes do not show: pairs of features, or too many terms."""
    characteristics: list[ScorecardCharacteristic]
    """The features, by descending `span`."""


def check_log_odds(algorithm: str) -> None:
    """Raise NotFound unless its scores are log odds that are sums over features."""
    if algorithm not in LOG_ODDS:
        raise NotFound(
            f"a scorecard requires scores that are sums of log odds: train {' or '.join(LOG_ODDS)}; this "
            f"model uses the algorithm {algorithm}",
            code="no_scorecard",
        )


def make_scorecard(
    model_id: str, structure: Json, scale: PointsScale, calibration: ServedCalibration | None = None
) -> Scorecard:
    """The algorithm is one of `LOG_ODDS`. `calibration` is the model's."""
    if structure["type"] == "linear":
        terms = structure["terms"]
        found = list(_linear(terms, scale))
        # A number counts from its center; the points count from 0.
        offset = structure["intercept"] - math.fsum(
            term["weight"] * term["center"] for term in terms if "center" in term
        )
    elif structure["type"] == "scorecard":
        offset, found = structure["intercept"], list(_binned(structure["features"], scale))
    else:
        offset, found = structure["offset"], list(_additive(structure["features"], scale))
    pairs = structure.get("pairs", [])
    complete = not pairs and structure.get("n_terms", 0) <= len(structure.get("terms", ()))
    base_points = scale.total(offset)
    lowest = highest = None
    if complete and all(each.span is not None for each in found):
        points = [[0.0, *(one.points for one in each.attributes)] for each in found]
        lowest, highest = (base_points + math.fsum(map(end, points)) for end in (min, max))
    found.sort(key=lambda each: (each.span is None, -(each.span or 0.0), each.name))
    found += [
        ScorecardCharacteristic(name=" × ".join(each["features"]), span=None, attributes=[])
        for each in pairs
    ]
    return Scorecard(
        model_id=model_id,
        **vars(scale),
        calibrated_odds=_calibrated_odds(scale, calibration),
        base_points=base_points,
        lowest=lowest,
        highest=highest,
        complete=complete,
        characteristics=found,
    )


def _calibrated_odds(scale: PointsScale, found: ServedCalibration | None) -> float | None:
    if found is None:
        return None
    # the score of a row with `base_score` points
    (probability,) = found.calibration.probability(np.array([-math.log(scale.base_odds)])).tolist()
    return (1.0 - probability) / probability if 0.0 < probability < 1.0 else None


def _linear(terms: Sequence[Json], scale: PointsScale) -> Iterator[ScorecardCharacteristic]:
    by_feature: dict[str, list[Json]] = {}
    for term in terms:
        by_feature.setdefault(term["feature"], []).append(term)
    for name, own in by_feature.items():
        number = next((term for term in own if "is" not in term), None)
        missing = math.fsum(term["weight"] for term in own if term.get("is", "") is None)
        attributes = [
            _attribute("category", term["weight"], scale, category=term["is"])
            for term in own
            if term.get("is") is not None
        ]
        if number is not None:
            attributes.append(_attribute("unit", number["weight"], scale))
            missing += number["weight"] * number["center"]  # without a value a number is its center
        if number is not None or any(term.get("is", "") is None for term in own):
            attributes.append(_attribute("missing", missing, scale))
        yield _characteristic(name, attributes)


def _additive(features: Sequence[Json], scale: PointsScale) -> Iterator[ScorecardCharacteristic]:
    for each in features:
        values = each["values"]
        if "categories" in each:
            attributes = [
                _attribute("category", value, scale, category=name)
                for name, value in zip(each["categories"], values, strict=True)
            ]
        else:
            ends = [None, *each["thresholds"], None]
            attributes = [
                _attribute("values", value, scale, low=low, high=high)
                for (low, high), value in zip(pairwise(ends), values, strict=True)
            ]
        if each["missing"] != 0.0:
            attributes.append(_attribute("missing", each["missing"], scale))
        yield _characteristic(each["feature"], attributes)


def _binned(features: Sequence[Json], scale: PointsScale) -> Iterator[ScorecardCharacteristic]:
    for each in features:
        attributes: list[ScorecardAttribute] = []
        for one in each["bins"]:
            value = one["value"]
            if "categories" in one:
                attributes += [
                    _attribute("category", value, scale, category=name)
                    for name in one["categories"]
                ]
            elif "special" in one:
                special = one["special"]
                attributes.append(_attribute("special", value, scale, low=special, high=special))
            elif "missing" in one:
                attributes.append(_attribute("missing", value, scale))
            else:
                attributes.append(
                    _attribute("values", value, scale, low=one["low"], high=one["high"])
                )
        yield _characteristic(each["feature"], attributes)


def _attribute(
    of: AttributeKind,
    weight: float,
    scale: PointsScale,
    *,
    low: float | str | None = None,
    high: float | str | None = None,
    category: str | None = None,
) -> ScorecardAttribute:
    return ScorecardAttribute(
        of=of,
        low=low,
        high=high,
        category=category,
        weight=weight,
        odds_ratio=math.exp(weight) if weight < MAX_ODDS_EXPONENT else None,
        points=scale.points(weight),
    )


def _characteristic(name: str, attributes: list[ScorecardAttribute]) -> ScorecardCharacteristic:
    """Compute the span of the points."""
    if any(each.of == "unit" for each in attributes):
        return ScorecardCharacteristic(name=name, span=None, attributes=attributes)
    points = [each.points for each in attributes]
    span = max(points) - min(points)
    return ScorecardCharacteristic(name=name, span=span, attributes=attributes)
