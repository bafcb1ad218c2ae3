"""Models over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from app.http.schemas import Body, DatasetVersion, Resource, Text, Timestamp
from app.models.curves_schemas import Cut, Part, cut_of
from app.models.search_schemas import Search
from app.models.service import AliasState
from app.platform.tables import Model as ModelRow

if TYPE_CHECKING:
    from core.metrics import OperatingPoint


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
    """A model in a list."""

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


def summary_of(row: ModelRow) -> ModelSummary:
    """Show a row in a list."""
    return ModelSummary(**_common(row))


def model_of(row: ModelRow, aliases: list[str], point: OperatingPoint | None) -> Model:
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
        operating_point=None if point is None else cut_of(point),
        warnings=row.warnings,
        fit_seconds=row.fit_seconds,
        artifact=Artifact(sha256=row.artifact_sha256, bytes=row.artifact_bytes),
    )


def _common(row: ModelRow) -> dict[str, Any]:
    same = (
        "id",
        "name",
        "version",
        "objective",
        "validation",
        "optimised_for",
        "selected_by",
        "beats_controls",
        "dataset_id",
        "dataset",
        "validation_dataset",
        "kind",
        "job_id",
        "seed",
        "tags",
        "created_at",
    )
    shown = {field: getattr(row, field) for field in same}
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


class Alias(Resource):
    """A name that moves. `revision` is also its ETag."""

    name: str
    alias: str
    revision: int
    model_id: str
    updated_at: Timestamp
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
