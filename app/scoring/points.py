"""Points of rows, cutoffs in points, and the effect of rounding points to whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.http.schemas import BaseOdds, BaseScore, FeatureName, ModelId, PointsToDouble, Resource
from app.platform.documents import HeldOutBins
from app.platform.errors import Invalid, shown
from app.scoring.json_rows import JsonRows
from app.scoring.schemas import RowIdValue
from app.scoring.scorecard import Scorecard, make_scorecard
from app.scoring.service import Served

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.linear.points import PointsScale

MAX_ROWS = 1_000
"""Rows of a request whose points are computed at once."""


class FeaturePoints(Resource):
    """The points of a row for one feature."""

    name: FeatureName
    points: float
    """Points for the row's value."""
    rounded: int
    """The points rounded to a whole number."""


class RowPoints(Resource):
    """The points of a row: `base_points` and those of its features add up to `points`."""

    id: RowIdValue
    score: float
    """Score of the model: the log odds of a positive."""
    points: float
    """Points of the row."""
    rounded: int
    """Sum of the rounded base points and the rounded points of the features."""
    features: list[FeaturePoints]
    """Points by feature, in the model's order."""


class PointsAnswer(Resource):
    """The points of rows."""

    model_id: ModelId
    pdo: PointsToDouble
    base_score: BaseScore
    base_odds: BaseOdds
    base_points: float
    """Points before the features of a row add theirs."""
    rows: list[RowPoints]
    """The rows, in the order of the request."""


class PointsCutoff(Resource):
    """A cutoff in points, as a threshold of the score, and as a probability."""

    model_id: ModelId
    pdo: PointsToDouble
    base_score: BaseScore
    base_odds: BaseOdds
    points: float
    """Rows with at most these points are flagged."""
    threshold: float
    """The same rows have at least this score: the least score whose points are at most `points`."""
    odds: float | None
    """Number of negatives to one positive at the cutoff. Null if it is too large for a float64."""
    probability: float
    """Probability of a positive at the cutoff, by the odds of the scorecard. The calibrated probability of a score may
    differ."""
    fpr: float | None
    """Fraction of the negative validation rows that are flagged. Null without validation."""
    tpr: float | None
    """Fraction of the positive validation rows that are flagged. Null without validation."""


class RoundingEffect(Resource):
    """What changes if the points of each value are rounded to whole numbers."""

    model_id: ModelId
    pdo: PointsToDouble
    base_score: BaseScore
    base_odds: BaseOdds
    rows: int
    """Number of compared rows: those kept from training."""
    max_difference: float
    """Largest difference between the exact and the rounded points of a row."""
    inverted: float
    """Fraction of the pairs of rows with different scores that rounding puts in the opposite order."""
    tied: float
    """Fraction of the pairs of rows with different scores that have equal rounded points."""
    auc: float | None
    """AUC of the scores on held-out rows. Null for other algorithms than `scorecard`, and without such rows."""
    rounded_auc: float | None
    """AUC of the rounded points on held-out rows, for `rounded_pdo`. Null like `auc`."""
    rounded_pdo: float | None
    """The points to double the odds for which the AUC was measured at training: the closest one that is at most `pdo`,
    else the smallest one. Fewer points are coarser."""


def card_of(served: Served, scale: PointsScale) -> Scorecard:
    """Use numbers for dates. Raises Invalid if the scorecard does not show the whole score."""
    ranker: Any = served.ranker
    card = make_scorecard(served.model_id, ranker.structure(), scale)
    if not card.complete:
        raise Invalid(
            "points of rows require a scorecard that shows the whole score: this model has pairs of features, or too "
            "many terms. Train additive with n_pairs 0, or logistic with crosses 0",
            code="incomplete_scorecard",
        )
    return card


def feature_points(card: Scorecard, served: Served, X: Floats) -> Floats:
    """Return the points by row and feature, by the table of the scorecard alone. X is as in `Served.score`."""
    by_name = {each.name: each for each in card.characteristics}
    total = np.zeros(X.shape)
    categories: Sequence[Any] = served.ranker.categories_
    for j, name in enumerate(served.features.names):
        if name not in by_name:
            continue
        x, own = X[:, j], total[:, j]
        positions = {word: k for k, word in enumerate(categories[j] or ())}
        is_special = np.zeros(len(x), dtype=np.bool_)
        for each in by_name[name].attributes:
            if each.of == "special":
                is_special |= x == each.low
        for each in by_name[name].attributes:
            if each.of == "unit":
                own += np.where(np.isnan(x), 0.0, x) * each.points
                continue
            if each.of == "missing":
                is_known = ~np.isnan(x)
                if positions:
                    is_known &= (x >= 0) & (x < len(positions))
                chosen = ~is_known
            elif each.of == "category":
                chosen = x == positions[str(each.category)]
            elif each.of == "special":
                chosen = x == each.low
            else:
                low = -math.inf if each.low is None else float(each.low)
                high = math.inf if each.high is None else float(each.high)
                chosen = (x > low) & (x <= high) & ~is_special
            own[chosen] += each.points
    return total


def points_of_rows(served: Served, rows: JsonRows, scale: PointsScale) -> PointsAnswer:
    """Raises Invalid for too many rows."""
    X = rows.X
    if len(X) > MAX_ROWS:
        raise Invalid(
            f"at most {MAX_ROWS} rows can be given points per request, got {len(X)}",
            code="too_many_rows",
        )
    card = card_of(served, scale)
    parts = feature_points(card, served, X)
    whole = np.round(parts).astype(np.int64)
    base = round(card.base_points)
    scores = served.ranker.score_rows(X) if len(X) else np.empty(0)
    ids = [None] * len(X) if rows.ids is None else rows.ids.to_pylist()
    return PointsAnswer(
        model_id=served.model_id,
        **vars(scale),
        base_points=card.base_points,
        rows=[
            RowPoints(
                id=ids[i],
                score=float(scores[i]),
                points=math.fsum([card.base_points, *parts[i].tolist()]),
                rounded=base + int(whole[i].sum()),
                features=[
                    FeaturePoints(name=name, points=points, rounded=rounded)
                    for name, points, rounded in zip(
                        served.features.names, parts[i].tolist(), whole[i].tolist(), strict=True
                    )
                ],
            )
            for i in range(len(X))
        ],
    )


def find_cutoff(
    served: Served,
    scale: PointsScale,
    *,
    points: float | None,
    threshold: float | None,
    probability: float | None,
) -> PointsCutoff:
    """Raises Invalid unless exactly one of the three values is given."""
    given = {"points": points, "threshold": threshold, "probability": probability}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        detail = (
            "exactly one of points, threshold and probability must be given, got "
            f"{shown(', '.join(named)) if named else 'none'}"
        )
        raise Invalid(detail, errors=[{"parameter": name, "detail": detail} for name in named])
    if probability is not None:
        threshold = math.log(probability) - math.log1p(-probability)
    if threshold is not None:
        points = scale.total(threshold)
    assert points is not None
    least = scale.least_score(points) if threshold is None else threshold
    odds = -least
    found = None if served.curve is None else served.curve.locate_one(least)
    return PointsCutoff(
        model_id=served.model_id,
        **vars(scale),
        points=points,
        threshold=least,
        odds=math.exp(odds) if odds < 700.0 else None,
        probability=1.0 / (1.0 + math.exp(odds)) if odds < 700.0 else 0.0,
        fpr=None if found is None else found[0],
        tpr=None if found is None else found[1],
    )


def measure_rounding(
    served: Served, X: Floats, scale: PointsScale, held_out: HeldOutBins | None
) -> RoundingEffect:
    """Measure the effect of whole points on rows, and on the AUC as measured at training."""
    card = card_of(served, scale)
    parts = feature_points(card, served, X)
    exact = card.base_points + parts.sum(axis=1)
    whole = round(card.base_points) + np.round(parts).sum(axis=1)
    upper = np.triu_indices(len(X), 1)
    gap = exact[upper[0]] - exact[upper[1]]
    differs = abs(gap) > 1e-9 * max(1.0, float(abs(exact).max(initial=0.0)))
    signs = np.sign(gap[differs]) * np.sign((whole[upper[0]] - whole[upper[1]])[differs])
    rounded = None
    if held_out is not None:
        known = held_out["rounded"]
        coarser = [each for each in known if each["pdo"] <= scale.pdo]
        rounded = max(coarser, key=lambda each: each["pdo"]) if coarser else known[0]
    n_pairs = max(len(signs), 1)
    return RoundingEffect(
        model_id=served.model_id,
        **vars(scale),
        rows=len(X),
        max_difference=float(abs(whole - exact).max(initial=0.0)),
        inverted=float((signs < 0).sum()) / n_pairs,
        tied=float((signs == 0).sum()) / n_pairs,
        auc=None if held_out is None else held_out["auc"],
        rounded_auc=None if rounded is None else rounded["auc"],
        rounded_pdo=None if rounded is None else rounded["pdo"],
    )
