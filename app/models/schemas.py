"""Models over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from app.datasets.schemas import ColumnType
from app.http.schemas import (
    ColumnName,
    CreatedAt,
    DatasetId,
    DatasetVersion,
    Interval,
    JobId,
    Kind,
    PageOf,
    Resource,
    Timestamp,
)
from app.ingest.formats import passed_on
from app.models.curve_schemas import Roc, is_none
from app.models.included import IncludeName
from app.models.metric_schemas import AnyMetrics
from app.models.operating_point_schemas import Cutoff, OperatingPoint, OperatingPoints
from app.models.reading import codes_of, reading_of
from app.models.rows import ModelRows
from app.models.service import Listed
from app.models.simple import beats_baselines, exported_as
from app.platform.documents import (
    Imported,
    LabelValues,
    ModelFeature,
    MonotoneProof,
    ProxyTest,
    Search,
)
from app.platform.tables import Model as ModelRow
from core.exporting.formats import FORMATS, why_not

if TYPE_CHECKING:
    from core import metrics


class ModelProtectedColumn(Resource):
    """A column that the training dataset declares as protected."""

    name: ColumnName
    type: ColumnType
    """Type of the values: `numeric`, `boolean`, `datetime` or `categorical`."""
    feature: bool
    """True if the column is a feature of the model, because the training job named it in `protected_features`."""
    decided_by: str | None
    """Name of the key that created the training job. Null if the column is not a feature."""
    decided_at: Timestamp | None
    """When the training job was created. Null if the column is not a feature."""


class Artifact(Resource):
    """The file of the trained model."""

    sha256: str
    """SHA-256 of the file."""
    bytes: int
    """Size of the file in bytes."""
    not_exportable: dict[str, str]
    """For each format of `…/artifact` that cannot hold the model: why not. A model can also be too large for a
    format."""


class ModelSummary(Resource):
    """The members that a model and a list of models share."""

    id: str
    """Id of the model."""
    name: str
    """Name of the model. Its versions share the name."""
    version: int
    """Version number under this name, from 1."""
    algorithm: dict[str, Any]
    """Name of the algorithm and all its parameters."""
    objective: dict[str, Any] | None
    """Objective of the training: `metric` and its parameters. Null if the model was imported."""
    validation: dict[str, Any]
    """Validation method and its parameters."""
    optimised_for: dict[str, Any] | None
    """Objective that the algorithm itself optimises. It may differ from `objective`. Null if the model was imported."""
    selected_by: dict[str, Any] | None
    """Objective by which a search chose the parameters. Null without a search."""
    beats_baselines: bool | None
    """True if the model is significantly better than every baseline: see `…/baselines`. Null without baselines, and for
    a logistic regression or a linear SVM for the AUC, which are baselines themselves."""
    dataset_id: DatasetId
    dataset: DatasetVersion | None
    """The training dataset, under its name at that time. It remains when the dataset is deleted. Null if it was not
    recorded."""
    validation_dataset: DatasetVersion | None
    """The dataset that the model was validated on. Null unless the validation method is `dataset`."""
    kind: Kind
    """Kind of the training dataset."""
    job_id: JobId
    seed: int
    """Seed of all random numbers of the training."""
    tags: dict[str, str]
    """Tags of the training job."""
    created_at: CreatedAt


class ListedModel(ModelSummary):
    """A model in a list."""

    aliases: list[str]
    """Aliases that point to this version."""
    auc: Interval | None
    """AUC on the validation rows. Null without validation, and for models of pairs or several labels: see
    `…/metrics`."""


class ModelPage(PageOf[ListedModel]):
    """One page of models."""


class Model(ModelSummary):
    """A trained ranker."""

    aliases: list[str]
    """Aliases that point to this version."""
    features: list[ModelFeature]
    """The features, in the order of the artifact."""
    dialect: dict[str, str] | None = None
    """How the text of the training table is written: `decimal`, `thousands` and `dates`. CSV rows and query parameters
    to score are read in the same way. `encoding`, `delimiter` and `sheet`, if the upload set them, apply to tables to
    score that they fit. Null: the defaults."""
    missing: list[str]
    """Strings and numbers that count as missing in every value to score, besides null and the empty string; case does
    not matter. They come from the training table, and the field `missing` of a table to score overrides them."""
    rows: ModelRows
    """Numbers of rows of the dataset, of training and of validation."""
    label: str | None
    """Name of the label column. Null if the model was trained on pairs or several labels."""
    query: str | None = None
    """Column of the queries within which the model was trained. It is not a feature, so rows to score do not need it.
    Null without queries."""
    positive: str | None
    """Label value that counts as positive. Null without a single binary label."""
    negative: str | None
    """Label value that counts as negative. Null without a single binary label."""
    labels: list[LabelValues] | None
    """The labels of a model with several labels; otherwise null."""
    search: Search | None
    """The parameter search. Null without one."""
    operating_point: Cutoff | None
    """Best threshold on the validation rows at the FPR of the objective `tpr`. Null for other objectives and without
    validation."""
    warnings: list[str]
    """Warnings from the training."""
    monotone: MonotoneProof | None
    """Verification of the monotone constraints. Null if the model was trained without them."""
    protected: list[ModelProtectedColumn] | None = None
    """The protected columns of the training dataset, and which of them are features by whose decision. Null for a model
    of a release that did not store them."""
    proxies: list[ProxyTest] | None = None
    """How well the features predict each protected column of the training dataset that is not a feature. Null without
    such columns, and if it was not measured."""
    importance_job_id: str | None
    """Job that measures the feature importances after the training. Null if the training measured them."""
    imported: Imported | None = None
    """Where an imported model comes from. Its training rows are unknown, and all rows of `validation_dataset` count as
    held out. Null for a model that was trained by a job."""
    fit_seconds: float
    """Time of the final fit in seconds."""
    artifact: Artifact
    """Checksum and size of the model file."""
    included: ModelParts | None = Field(default=None, exclude_if=is_none)
    """The parts requested by `include`. Absent without `include`."""


def listed_of(found: Listed) -> ListedModel:
    model = found.model
    return ListedModel.from_row(
        model,
        algorithm=_algorithm_of(model),
        objective=model.objective or None,
        optimised_for=model.optimised_for or None,
        aliases=found.aliases,
        auc=None if found.metrics is None else found.metrics["auc"],
        beats_baselines=beats_baselines(model),
    )


def model_of(
    row: ModelRow, aliases: list[str], rows: ModelRows, point: metrics.OperatingPoint | None
) -> Model:
    """The operating point is that of the objective."""
    reading = reading_of(row)
    return Model.from_row(
        row,
        missing=list(codes_of(row.table_dialect).tokens),
        rows=rows,
        beats_baselines=beats_baselines(row),
        algorithm=_algorithm_of(row),
        aliases=aliases,
        dialect=passed_on(row.table_dialect) or None,
        operating_point=point,
        objective=row.objective or None,
        optimised_for=row.optimised_for or None,
        artifact={
            "sha256": row.artifact_sha256,
            "bytes": row.artifact_bytes,
            "not_exportable": {
                format: reason
                for format in FORMATS
                if (reason := why_not(*exported_as(row), format, reading)) is not None
            },
        },
        included=None,
    )


def _algorithm_of(row: ModelRow) -> dict[str, Any]:
    return {"name": row.algorithm, **row.parameters}


class AbsentPart(Resource):
    """A requested part that the model does not have."""

    part: IncludeName
    """Name of the part."""
    code: str
    """Error code that the part's own route returns."""
    detail: str
    """Why the part is absent."""


class ModelParts(Resource):
    """Parts of a model, each as its own route returns it. Parts that the model does not have are listed in `absent`."""

    metrics: AnyMetrics | None = Field(default=None, exclude_if=is_none)
    """As returned by `…/metrics`."""
    roc: Roc | None = Field(default=None, exclude_if=is_none)
    """As returned by `…/roc`."""
    operating_points: OperatingPoints | None = Field(default=None, exclude_if=is_none)
    """As returned by `…/operating-points`."""
    operating_point: OperatingPoint | None = Field(default=None, exclude_if=is_none)
    """As returned by `…/operating-point`."""
    absent: list[AbsentPart]
    """Requested parts that the model does not have."""


Model.model_rebuild()
