"""Models over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from app.http.schemas import (
    CreatedAt,
    DatasetId,
    DatasetVersion,
    Interval,
    JobId,
    Kind,
    PageOf,
    Resource,
    one_of,
)
from app.ingest.formats import notation_fields
from app.models.curve_schemas import Roc, is_none
from app.models.included import PartName
from app.models.metric_schemas import AnyMetrics
from app.models.operating_point_schemas import Cutoff, OperatingPoint, OperatingPoints, point_of
from app.models.service import Listed
from app.platform.documents import FoldChosen, MonotoneProof
from app.platform.tables import Model as ModelRow

if TYPE_CHECKING:
    from core import metrics

CANDIDATE_STATES = ("chosen", "left", "failed", "untried")


class SearchTrial(Resource):
    """A candidate of a parameter search."""

    parameters: dict[str, Any] = Field(description="The searched parameters of the candidate.")
    value: float | None = Field(
        description="Mean value of the objective `selected_by` on the inner validation rows. Higher is better. "
        "Null if the fit failed."
    )
    auc: float | None = Field(
        default=None,
        description="Mean AUC on the inner validation rows. Null if it was not measured.",
    )
    rows: float = Field(
        default=1.0, description="Fraction of the training rows in the candidate's last fit."
    )
    seconds: float | None = Field(
        default=None, description="Fit time in seconds. Null if it was not measured."
    )
    state: Annotated[str, one_of(CANDIDATE_STATES)] | None = Field(
        default=None,
        description="`chosen`, `left` (not chosen), `failed` or `untried`. Null if it was not recorded.",
    )
    reason: str | None = Field(
        default=None, description="Why the candidate failed or was not tried. Null otherwise."
    )


class Search(Resource):
    """The candidates and the choice of a parameter search on splits of the training rows. The inner validation rows are
    not used for any metrics.

    With cross-validation each fold has its own search on its own training rows: see `folds_chosen`. All other members
    describe the search for the served ranker.
    """

    method: Annotated[str, one_of(("grid", "random", "halving"))] = Field(
        description="`grid`, `random` or `halving`."
    )
    space: dict[str, Any] = Field(
        description="The searched parameters, each with its values or its range."
    )
    n_candidates: int | None = Field(
        default=None, description="Number of candidates drawn. Null for a grid search."
    )
    folds: int | None = Field(
        default=None, description="Number of inner folds. Null: one part was held out."
    )
    fraction: float = Field(
        description="Fraction of the training rows held out to compare candidates. Not used with `folds`."
    )
    candidates: list[SearchTrial] = Field(description="The candidates and their results.")
    chosen: dict[str, Any] = Field(
        description="The best parameters; among ties, those with the fewest rounds. The served ranker is fitted "
        "with them on all training rows."
    )
    folds_chosen: list[FoldChosen] = Field(
        description="The parameters chosen in each fold. Empty without cross-validation."
    )
    seconds: float = Field(description="Duration of the search in seconds, without `fit_seconds`.")


class Feature(Resource):
    """A feature that the model uses."""

    name: str = Field(description="Name of the column.")
    type: Annotated[str, one_of(("numeric", "boolean", "datetime", "categorical"))] = Field(
        description="`numeric`, `boolean`, `datetime` or `categorical`."
    )
    missing: bool = Field(
        description="True if the feature had missing values in training. Rows to score may then omit it."
    )
    categories: list[str] | None = Field(
        default=None,
        description="The first 100 categories in text order; the artifact has all. An unknown category counts as "
        "missing. Null unless the feature is categorical.",
    )
    n_categories: int | None = Field(
        default=None, description="Number of categories. Null unless the feature is categorical."
    )


class LabelValues(Resource):
    """One label of a model with several labels, and its two values."""

    name: str = Field(description="Name of the label column.")
    positive: str = Field(description="Value that counts as positive.")
    negative: str = Field(description="Value that counts as negative.")


class Artifact(Resource):
    """The file of the trained model."""

    sha256: str = Field(description="SHA-256 of the file.")
    bytes: int = Field(description="Size of the file in bytes.")


class ModelSummary(Resource):
    """The members that a model and a list of models share."""

    id: str = Field(description="Id of the model.")
    name: str = Field(description="Name of the model. Its versions share the name.")
    version: int = Field(description="Version number under this name, from 1.")
    algorithm: dict[str, Any] = Field(description="Name of the algorithm and all its parameters.")
    objective: dict[str, Any] = Field(
        description="Objective of the training: `metric` and its parameters."
    )
    validation: dict[str, Any] = Field(description="Validation method and its parameters.")
    optimised_for: dict[str, Any] = Field(
        description="Objective that the algorithm itself optimises. It may differ from `objective`."
    )
    selected_by: dict[str, Any] | None = Field(
        description="Objective by which a search chose the parameters. Null without a search."
    )
    beats_baselines: bool | None = Field(
        description="True if the model is significantly better than every baseline: see `…/baselines`. Null "
        "without baselines."
    )
    dataset_id: DatasetId
    dataset: DatasetVersion | None = Field(
        description="The training dataset, under its name at that time. It remains when the dataset is deleted. "
        "Null if it was not recorded."
    )
    validation_dataset: DatasetVersion | None = Field(
        description="The dataset that the model was validated on. Null unless the validation method is `dataset`."
    )
    kind: Kind = Field(description="Kind of the training dataset.")
    job_id: JobId
    seed: int = Field(description="Seed of all random numbers of the training.")
    tags: dict[str, str] = Field(description="Tags of the training job.")
    created_at: CreatedAt


class ListedModel(ModelSummary):
    """A model in a list."""

    aliases: list[str] = Field(description="Aliases that point to this version.")
    auc: Interval | None = Field(
        description="AUC on the validation rows. Null without validation, and for models of pairs or several "
        "labels: see `…/metrics`."
    )


class ModelPage(PageOf[ListedModel]):
    """One page of models."""


class Model(ModelSummary):
    """A trained ranker."""

    aliases: list[str] = Field(description="Aliases that point to this version.")
    features: list[Feature] = Field(description="The features, in the order of the artifact.")
    dialect: dict[str, str] | None = Field(
        default=None,
        description="How the training table writes numbers and dates: `decimal`, `thousands` and `dates`. CSV "
        "rows and query parameters to score are read in the same way. Null: the default notation.",
    )
    label: str | None = Field(
        description="Name of the label column. Null if the model was trained on pairs or several labels."
    )
    query: str | None = Field(
        default=None,
        description="Column of the queries within which the model was trained. It is not a feature, so rows to "
        "score do not need it. Null without queries.",
    )
    positive: str | None = Field(
        description="Label value that counts as positive. Null without a single binary label."
    )
    negative: str | None = Field(
        description="Label value that counts as negative. Null without a single binary label."
    )
    labels: list[LabelValues] | None = Field(
        description="The labels of a model with several labels; otherwise null."
    )
    search: Search | None = Field(description="The parameter search. Null without one.")
    operating_point: Cutoff | None = Field(
        description="Best threshold on the validation rows at the FPR of the objective `tpr`. Null for other "
        "objectives and without validation."
    )
    warnings: list[str] = Field(description="Warnings from the training.")
    monotone: MonotoneProof | None = Field(
        description="Verification of the monotone constraints. Null if the model was trained without them."
    )
    importance_job_id: str | None = Field(
        description="Job that measures the feature importances after the training. Null if the training measured "
        "them."
    )
    fit_seconds: float = Field(description="Time of the final fit in seconds.")
    artifact: Artifact = Field(description="Checksum and size of the model file.")
    included: ModelParts | None = Field(
        default=None,
        exclude_if=is_none,
        description="The parts requested by `include`. Absent without `include`.",
    )


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
        query=row.query,
        positive=row.positive,
        negative=row.negative,
        dialect=notation_fields(row.table_dialect) or None,
        labels=None
        if row.labels is None
        else [LabelValues.model_validate(label) for label in row.labels],
        search=None if row.search is None else Search.model_validate(row.search),
        operating_point=None if point is None else point_of(point),
        warnings=row.warnings,
        monotone=None if row.monotone is None else row.monotone,
        importance_job_id=row.importance_job_id,
        fit_seconds=row.fit_seconds,
        artifact=Artifact(sha256=row.artifact_sha256, bytes=row.artifact_bytes),
    )


def _common(row: ModelRow) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ModelSummary.model_fields.keys() - {"algorithm"}}
    return shown | {"algorithm": {"name": row.algorithm, **row.parameters}}


class AbsentPart(Resource):
    """A requested part that the model does not have."""

    part: PartName = Field(description="Name of the part.")
    code: str = Field(description="Error code that the part's own route returns.")
    detail: str = Field(description="Why the part is absent.")


class ModelParts(Resource):
    """Parts of a model, each as its own route returns it. Parts that the model does not have are listed in `absent`."""

    metrics: AnyMetrics | None = Field(
        default=None, exclude_if=is_none, description="As returned by `…/metrics`."
    )
    roc: Roc | None = Field(default=None, exclude_if=is_none, description="As returned by `…/roc`.")
    operating_points: OperatingPoints | None = Field(
        default=None, exclude_if=is_none, description="As returned by `…/operating-points`."
    )
    operating_point: OperatingPoint | None = Field(
        default=None, exclude_if=is_none, description="As returned by `…/operating-point`."
    )
    absent: list[AbsentPart] = Field(description="Requested parts that the model does not have.")


Model.model_rebuild()
