"""Models over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from app.http.schemas import Body, DatasetVersion, Interval, Resource, Text, Timestamp
from app.models import margins
from app.models.service import AliasState, CutsAlong, Listed, is_approximate
from app.platform.tables import Model as ModelRow

if TYPE_CHECKING:
    from core import metrics

Part = Literal["validation", "train"]
APPROXIMATE = (
    "The model was cross-validated: the curve is put together from the folds' scores, brought onto the scale of the "
    "ranker that is served, whose own thresholds were never tried."
)
BandKind = Literal["pointwise", "simultaneous"]


class Point(Resource):
    """Flagging every score at or above `threshold` gives these rates; null flags nothing."""

    fpr: float
    tpr: float
    threshold: float | None
    low: float | None = Field(
        default=None,
        description="Lower limit of the curve's height at this FPR, if `band` was asked for.",
    )
    high: float | None = Field(default=None, description="Upper limit.")


class Band(Resource):
    """What the limits of the points are."""

    kind: BandKind = Field(
        description="`pointwise`: of each height by itself. `simultaneous`: of the whole curve."
    )
    level: float


class Points(Resource):
    """A ROC curve from (0, 0) to (1, 1)."""

    exact: bool = Field(description="False where points were left out to keep to `max_points`.")
    total_points: int
    band: Band | None = None
    points: list[Point]


class Roc(Points):
    """The curve of a model on one part of its data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationRoc(Points):
    """The curve of an evaluation."""

    evaluation_id: str


class Cost(Interval):
    """What a row costs on average with this cut."""

    flag_none: float = Field(description="What it costs to flag nothing.")
    flag_all: float = Field(description="What it costs to flag everything.")
    false_positive: float
    false_negative: float


class Cut(Resource):
    """A cut of the ranking: what it means to flag every score at or above `threshold`; null flags nothing."""

    threshold: float | None
    fpr: Interval = Field(description="Share of the negatives that this threshold flags.")
    tpr: Interval = Field(description="Share of the positives that it flags.")
    precision: Interval
    lift: Interval
    flagged: Interval = Field(
        description="Share of all rows that it flags, at the same share of positives as the precision."
    )
    threshold_low: float | None = Field(
        description="Above here and up to `threshold_high` the population's threshold may lie, of the rate or of the "
        "least cost asked for. Null where the data set no end."
    )
    threshold_high: float | None
    prevalence: float = Field(
        description="Share of positives that precision, lift and cost stand on: the data's, unless given."
    )
    tpr_at_fpr: Interval | None = Field(
        description="Asked by `fpr`: the TPR at exactly this FPR. Its threshold is not known, and the interval allows "
        "for that."
    )
    fpr_at_tpr: Interval | None = Field(description="Asked by `tpr`: the FPR at exactly this TPR.")
    cost: Cost | None = Field(description="Of a row, if costs were given.")


class OperatingPoint(Cut):
    """One cut of the ranking on one part of the data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


class OperatingPoints(Resource):
    """Cuts along the curve of one part of the data, from the one that flags nothing to the one that flags all."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)
    level: float = Field(description="Of each interval by itself.")
    exact: bool = Field(description="False where points of the curve were left out.")
    total_points: int = Field(description="Of the curve.")
    least_cost: int | None = Field(
        description="Which of `points`, from 0, costs least, if costs were given."
    )
    of_objective: int | None = Field(
        description="Which of `points` is the best cut at the FPR of the objective `tpr`."
    )
    points: list[Cut]


def cuts_of(found: CutsAlong, on: Part) -> OperatingPoints:
    """Show cuts along a curve."""
    of = found.of
    return OperatingPoints(
        model_id=of.model.id,
        on=on,
        approximate=is_approximate(of.model, on),
        level=of.level,
        exact=len(found.points) == len(of.curve),
        total_points=len(of.curve),
        least_cost=found.least_cost,
        of_objective=found.of_objective,
        points=[point_of(point) for point in found.points],
    )


def point_of(point: metrics.OperatingPoint) -> Cut:
    """Show a cut; what is not finite becomes null."""
    cost = None
    if point.cost is not None:
        cost = Cost(
            **dict(_shown(point.cost.a_row)),
            flag_none=point.cost.flag_none,
            flag_all=point.cost.flag_all,
            false_positive=point.cost.costs.false_positive,
            false_negative=point.cost.costs.false_negative,
        )
    return Cut(
        threshold=finite(point.threshold),
        threshold_low=finite(point.threshold_low),
        threshold_high=finite(point.threshold_high),
        fpr=_shown(point.fpr),
        tpr=_shown(point.tpr),
        precision=_shown(point.precision),
        lift=_shown(point.lift),
        flagged=_shown(point.flagged),
        prevalence=point.prevalence,
        tpr_at_fpr=None if point.tpr_at_fpr is None else _shown(point.tpr_at_fpr),
        fpr_at_tpr=None if point.fpr_at_tpr is None else _shown(point.fpr_at_tpr),
        cost=cost,
    )


def _shown(interval: metrics.Interval) -> Interval:
    return Interval(**{bound: finite(value) for bound, value in interval._asdict().items()})


def finite(value: float) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if math.isfinite(value) else None


class SearchTrial(Resource):
    """Values that a search has tried."""

    parameters: dict[str, Any]
    value: float | None = Field(
        description="Of `selected_by`, on the rows that chose, the mean over the folds; higher is better. "
        "Null where it could not be fitted."
    )
    auc: float | None = None
    rows: float = Field(
        default=1.0, description="Share of the rows to learn from that it was last given."
    )
    seconds: float | None = None
    state: str | None = Field(default=None, description="`chosen`, `left` or `failed`.")
    reason: str | None = None


class FoldChosen(Resource):
    """What a fold's search has chosen."""

    repeat: int
    fold: int
    chosen: dict[str, Any]


class Search(Resource):
    """What was tried, on splits of the training part, and chosen. These rows are not those of any metrics.

    Under cross-validation every fold has chosen for itself, by its own rows to learn from: `folds_chosen`. The rest
    is how the served ranker was chosen.
    """

    method: str
    space: dict[str, Any]
    n_candidates: int | None = None
    folds: int | None = Field(
        default=None, description="Inner folds; null where one part was held out."
    )
    fraction: float = Field(
        description="Share of the training part that judged the candidates, without folds."
    )
    candidates: list[SearchTrial]
    chosen: dict[str, Any] = Field(
        description="The best, the fewest rounds among equals; with it the whole training part was fitted anew."
    )
    folds_chosen: list[FoldChosen] = Field(default_factory=list)
    seconds: float = Field(
        description="Time of the search, beside `fit_seconds` of the model's own fit."
    )


class Feature(Resource):
    """A feature that the model takes."""

    name: str
    type: str = Field(description="`numeric`, `boolean` or `categorical`.")
    missing: bool = Field(description="Had missing values in training, so it may be absent.")
    categories: list[str] | None = Field(
        default=None,
        description="Of a categorical feature: its first hundred categories in text order; the artifact has all. "
        "Any other text counts as missing.",
    )
    n_categories: int | None = Field(default=None, description="How many there are.")


class LabelValues(Resource):
    """One of several labels, and its values."""

    name: str
    positive: str
    negative: str


class Artifact(Resource):
    """The model's bytes."""

    sha256: str
    bytes: int


class ModelSummary(Resource):
    """What a list and a model itself tell alike."""

    id: str
    name: str
    version: int
    algorithm: dict[str, Any] = Field(description="With every parameter.")
    objective: dict[str, Any]
    validation: dict[str, Any]
    optimised_for: dict[str, Any]
    selected_by: dict[str, Any] | None = Field(
        description="The objective by which a search chose parameters; null without a search."
    )
    beats_controls: bool | None = Field(
        description="Whether its area is greater than that of every control, beyond chance: see …/controls. Null "
        "without controls."
    )
    dataset_id: str
    dataset: DatasetVersion | None = Field(
        description="What it was trained on, as it was called then; it stays when the dataset goes. Null where nobody "
        "wrote it down."
    )
    validation_dataset: DatasetVersion | None = Field(
        description="What it was judged by, with validation.method `dataset`."
    )
    kind: str = Field(description="Of the dataset: `bipartite`, `preferences` or `multilabel`.")
    job_id: str
    seed: int
    tags: dict[str, str]
    created_at: Timestamp


class ListedModel(ModelSummary):
    """A model in a list, with what one looks for there."""

    aliases: list[str]
    auc: Interval | None = Field(
        description="On validation rows. Null without validation, and for pairs and several labels: see …/metrics."
    )


class Model(ModelSummary):
    """A trained ranker."""

    aliases: list[str]
    features: list[Feature] = Field(description="In the order of the artifact.")
    label: str | None = Field(description="Null where it was trained on pairs or several labels.")
    positive: str | None
    negative: str | None
    labels: list[LabelValues] | None = Field(description="Of a model with several labels.")
    search: Search | None
    operating_point: Cut | None = Field(
        description="Of the objective `tpr`: the best cut of the validation rows at its FPR. Null for others, and "
        "without validation."
    )
    warnings: list[str]
    fit_seconds: float
    artifact: Artifact


def listed_of(found: Listed) -> ListedModel:
    """Show a model in a list."""
    row = found.metrics
    auc = None if row is None else Interval(value=row.auc, low=row.auc_low, high=row.auc_high)
    return ListedModel(**_common(found.model), aliases=found.aliases, auc=auc)


def model_of(row: ModelRow, aliases: list[str], point: metrics.OperatingPoint | None) -> Model:
    """Show a row in full."""
    return Model(
        **_common(row),
        aliases=aliases,
        features=[Feature.model_validate(feature) for feature in row.features],
        label=row.label,
        positive=row.positive,
        negative=row.negative,
        labels=None
        if row.labels is None
        else [LabelValues.model_validate(label) for label in row.labels],
        search=None if row.search is None else Search.model_validate(row.search),
        operating_point=None if point is None else point_of(point),
        warnings=row.warnings,
        fit_seconds=row.fit_seconds,
        artifact=Artifact(sha256=row.artifact_sha256, bytes=row.artifact_bytes),
    )


def _common(row: ModelRow) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ModelSummary.model_fields.keys() - {"algorithm"}}
    return shown | {"algorithm": {"name": row.algorithm, **row.parameters}}


class MarginShare(Resource):
    """Share of the training pairs with a margin of at most `theta`."""

    theta: float
    fraction: float


class MisrankBound(Resource):
    """A bound on the probability that the model misranks a pair of rows to come: a share of pairs plus epsilon."""

    name: str
    source: str
    value: float | None = Field(description="`margin_fraction + epsilon`; null where it has none.")
    margin_fraction: float = Field(
        description="Share of the training pairs with a margin of at most theta, or of the held-out pairs misranked."
    )
    epsilon: float | None
    terms: dict[str, float | None] = Field(description="What epsilon was computed from.")
    applies: bool = Field(description="False where a condition of the theorem is not met.")
    reasons: list[str] = Field(description="Why it does not apply.")
    vacuous: bool = Field(description="True from 1 on: a probability is no more anyway.")


class BestPossibleMargin(Resource):
    """The best margin of any combination of the weak rankers, by linear programming."""

    rho: float
    margin: float = Field(description="Margin of the combination found: rho is no less.")
    edge: float = Field(
        description="Greatest edge under the pair weights found, the certificate: rho is no more."
    )
    short_by: float = Field(description="rho less the model's own margin.")


class MarginRound(Resource):
    """One round of boosting, under the pair weights of its time."""

    round: int
    edge: float = Field(description="r = d+ - d-.")
    tied: float = Field(description="d0, the mass of the pairs that the weak ranker ties.")
    most_tied: float = Field(description="Theorem 7 asks for d0 below 2/3 (1 - r)(1 - r²).")
    holds: bool


class MarginRounds(Resource):
    """Theorem 7's condition, round by round, the first rounds first."""

    total: int
    holds: int = Field(description="In how many of all rounds the condition holds.")
    data: list[MarginRound]


class RoundLoss(Resource):
    """The losses after one round, on the rows that were learnt from; null beyond the doubles."""

    round: int
    f: float | None = Field(description="F, AdaBoost's loss, of the scores with their intercept.")
    f_skew: float | None = Field(description="The positives' part of F less the negatives'.")
    f_tilde: float | None = Field(description="F̃, RankBoost's loss.")
    smooth_margin: float | None = Field(
        description="-ln F̃ divided by the sum of the steps so far, the least pair weight as 1; null where the fit held "
        "out part of its rows."
    )


class RoundLosses(Resource):
    """Losses round by round, the first rounds first."""

    total: int
    data: list[RoundLoss]


class Margins(Resource):
    """How far apart the training pairs are, with scores divided by the sum of the steps, and what follows from it."""

    model_id: str
    on: Part
    l1_norm: float = Field(description="Sum of the steps, by which scores are divided.")
    margin: float = Field(description="Least margin of a pair: above 0 when all are in order.")
    smooth_margin: float = Field(
        description="-ln of the ranking loss, divided by `l1_norm`: below `margin`, nearer as boosting goes on."
    )
    weak_rankers: int = Field(description="How many there are, at most.")
    distribution: list[MarginShare] = Field(description="From the least margin to the greatest.")
    theta: float
    delta: float
    bounds: list[MisrankBound]
    best: BestPossibleMargin | None = Field(description="Null where the programme is too large.")
    rounds: MarginRounds
    losses: RoundLosses


class AliasTarget(Body):
    """Where an alias is to point."""

    model_id: Text


class AliasStep(Resource):
    """Where an alias pointed from then on."""

    revision: int
    model_id: str
    at: Timestamp


class AliasSummary(Resource):
    """A name that moves. `revision` is also its ETag."""

    name: str
    alias: str
    revision: int
    model_id: str
    updated_at: Timestamp


class Alias(AliasSummary):
    """An alias with where it pointed before."""

    history: list[AliasStep]


def alias_of(state: AliasState) -> Alias:
    """Show an alias with its history."""
    row = state.alias
    return Alias(
        name=row.name,
        alias=row.alias,
        revision=row.revision,
        model_id=row.model_id,
        updated_at=row.updated_at,
        history=[AliasStep.model_validate(step) for step in state.history],
    )


class WindowArea(Interval):
    """Partial AUC on a window of false positive rates: the mean height of the curve there."""

    fpr_min: float
    fpr_max: float
    empirical: float | None = Field(
        None,
        description="The share of pairs strictly in order, of every positive with the negatives ranked ⌊n·fpr_min⌋ + 1 "
        "to ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). Ties, and the ends of the window, are counted otherwise "
        "than in `value`. Null without a curve.",
    )


class Height(Resource):
    """The curve's height at a false positive rate, and its interval, which allows for the threshold's own variance."""

    fpr: float
    tpr: float
    low: float
    high: float


class Metrics(Resource):
    """How well the model ranks one part of the data."""

    model_id: str
    on: Part
    approximate: bool = Field(
        description="Of the curve and what is read off it, not of the areas. " + APPROXIMATE
    )
    level: float = Field(description="Of the intervals.")
    auc: Interval
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: Cut | None = Field(
        description="Of the objective `tpr`: what the model's threshold, set on validation rows, does to this part."
    )
    positives: int
    negatives: int
    positive_weight: float
    negative_weight: float
    ties: float = Field(
        description="Share of pairs of a positive and a negative with equal scores."
    )


class PairMetrics(Resource):
    """How well a model trained on pairs puts the pairs of one part in order."""

    model_id: str
    on: Part
    level: float = Field(description="Of the interval.")
    pair_order: Interval = Field(
        description="Weighted share of pairs in order, ties counted half. "
        "The interval allows for pairs that share an item."
    )
    misrank_fraction: float = Field(
        description="Weighted share of pairs out of order, ties counted whole."
    )
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float = Field(
        description="So many pairs without a common item would tell as much, at the worst."
    )


class LabelMetrics(Resource):
    """How well one label's scores rank one part."""

    label: str
    auc: Interval | None = Field(description="Null where the part has too few rows of a class.")
    pauc: list[WindowArea]
    positives: int
    negatives: int
    ties: float | None


class MeanArea(Resource):
    """A partial AUC's mean over the labels."""

    fpr_min: float
    fpr_max: float
    value: float | None


class MultilabelMetrics(Resource):
    """How well a model with several labels ranks one part: label by label, and on average."""

    model_id: str
    on: Part
    level: float = Field(description="Of the intervals.")
    labels: list[LabelMetrics]
    judged: int = Field(description="Labels that have an AUC: the means are over these.")
    mean_auc: float | None
    mean_pauc: list[MeanArea]


AnyMetrics = Metrics | PairMetrics | MultilabelMetrics


def metrics_of(found: Mapping[str, Any]) -> AnyMetrics:
    """Show what is known of a part, in the shape of the model's kind."""
    if "pair_order" in found:
        return PairMetrics.model_validate(found)
    if "labels" in found:
        return MultilabelMetrics.model_validate(found)
    point = found["operating_point"]
    shown = {**found, "operating_point": None if point is None else point_of(point)}
    return Metrics.model_validate(shown)


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


def bounds_of(found: margins.WindowBounds, delta: float) -> WindowBounds:
    """Show the bounds of one window."""
    low, high = found.window
    return WindowBounds(
        model_id=found.model.id,
        fpr_min=low,
        fpr_max=high,
        delta=delta,
        bounds=[WindowBound.model_validate(bound) for bound in found.bounds],
    )
