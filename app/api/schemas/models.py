"""Models over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from app.api.schemas.common import DATASET_EXAMPLE, Body, DatasetVersion, Resource, Text, Timestamp
from app.api.schemas.curves import Cut, Part, cut_of
from app.api.schemas.searched import Search
from app.db.model_tables import Model as ModelRow
from app.services.models import AliasState

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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c",
                    "name": "churn",
                    "version": 3,
                    "aliases": ["champion"],
                    "algorithm": {"name": "rankboost", "n_rounds": 200, "max_bins": 255},
                    "objective": {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05},
                    "validation": {"method": "holdout", "fraction": 0.25},
                    "optimised_for": {"metric": "auc"},
                    "selected_by": {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05},
                    "beats_controls": True,
                    "dataset_id": "ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012",
                    "dataset": DATASET_EXAMPLE,
                    "validation_dataset": None,
                    "kind": "bipartite",
                    "job_id": "job_0198f0c2b1e27d3f8a9b0c1d2e3f4a5b",
                    "seed": 0,
                    "tags": {"team": "risk"},
                    "features": [
                        {"name": "age", "type": "numeric", "missing": False},
                        {"name": "income", "type": "numeric", "missing": True},
                        {
                            "name": "contract",
                            "type": "categorical",
                            "missing": False,
                            "categories": ["month-to-month", "one year", "two year"],
                            "n_categories": 3,
                        },
                    ],
                    "label": "left",
                    "positive": "yes",
                    "negative": "no",
                    "labels": None,
                    "search": {
                        "method": "grid",
                        "space": {"n_rounds": [50, 100, 200]},
                        "fraction": 0.25,
                        "candidates": [
                            {"parameters": {"n_rounds": 50}, "value": 0.61},
                            {"parameters": {"n_rounds": 100}, "value": 0.63},
                            {"parameters": {"n_rounds": 200}, "value": 0.64},
                        ],
                        "chosen": {"n_rounds": 200},
                        "seconds": 0.11,
                    },
                    "operating_point": None,
                    "warnings": [],
                    "fit_seconds": 0.12,
                    "artifact": {
                        "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
                        "bytes": 14600,
                    },
                    "created_at": "2026-01-31T12:00:01.000Z",
                }
            ]
        }
    )

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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_id": "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c",
                    "on": "train",
                    "l1_norm": 21.4,
                    "margin": -0.071,
                    "smooth_margin": -0.43,
                    "weak_rankers": 30540,
                    "distribution": [
                        {"theta": -0.071, "fraction": 0.00002},
                        {"theta": 0.0, "fraction": 0.0009},
                        {"theta": 0.82, "fraction": 1.0},
                    ],
                    "theta": 0.1,
                    "delta": 0.05,
                    "bounds": [
                        {
                            "name": "corollary_4",
                            "source": "Rudin & Schapire 2009, Corollary 4",
                            "value": 52.1,
                            "margin_fraction": 0.012,
                            "epsilon": 52.1,
                            "terms": {"m": 427.0, "E": 0.234, "theta": 0.1, "delta": 0.05},
                            "applies": False,
                            "reasons": [
                                "H must be fixed beforehand: the thresholds are bin edges, "
                                "chosen from the training rows"
                            ],
                            "vacuous": True,
                        }
                    ],
                    "best": None,
                    "rounds": {
                        "total": 100,
                        "holds": 3,
                        "data": [
                            {
                                "round": 1,
                                "edge": 0.84,
                                "tied": 0.15,
                                "most_tied": 0.031,
                                "holds": False,
                            }
                        ],
                    },
                    "losses": {
                        "total": 100,
                        "data": [
                            {
                                "round": 1,
                                "f": 311.2,
                                "f_skew": 0.0,
                                "f_tilde": 24211.4,
                                "smooth_margin": -8.1,
                            }
                        ],
                    },
                }
            ]
        }
    )

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

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model_id": "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c"}]}
    )

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
