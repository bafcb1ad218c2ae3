"""Comparisons over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from app.evaluation.common_schemas import LEVEL, STATUS, NewWindow, Windows, pairs_of, same_fields
from app.evaluation.comparisons import LEAST_MODELS, MOST_MODELS, ComparisonRequest
from app.evaluation.service import status_of
from app.http.schemas import Body, Interval, Resource, Text, Timestamp
from app.platform.tables import Comparison as ComparisonRow


class NewComparison(Body):
    """Models to be compared on a dataset."""

    models: Annotated[list[Text], Field(min_length=LEAST_MODELS, max_length=MOST_MODELS)] = Field(
        description="Each an id, name, name:version or name@alias."
    )
    dataset_id: Text
    windows: Windows = Field(
        default=[NewWindow(fpr_max=1.0)], description="[0, 1] compares the whole AUC."
    )
    level: float = LEVEL

    def to_request(self) -> ComparisonRequest:
        """What the service takes."""
        return ComparisonRequest(
            self.models, self.dataset_id, pairs_of(self.windows), float(self.level)
        )


class ComparedModel(Resource):
    """One of the models, as it was called when the comparison was asked for."""

    model_id: str
    name: str
    version: int


class ComparedValue(Interval):
    """The area of one model over a window, divided by the window's width."""

    model_id: str


class ComparedPair(Resource):
    """How much greater the area of `first` is than that of `second`, on the same rows."""

    first: str = Field(description="A model's id.")
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float = Field(description="Holm's, over all pairs and all windows.")


class ComparedWindow(Resource):
    """The models over one window."""

    fpr_min: float
    fpr_max: float
    values: list[ComparedValue]
    differences: list[ComparedPair]
    p_value: float = Field(description="Joint: of all areas over this window being equal.")


class ComparisonResult(Resource):
    """What the rows say of the models."""

    positives: int
    negatives: int
    groups: int | None = Field(
        description="Where the dataset has a group column: the tests allow for rows of a group being alike."
    )
    n_tests: int = Field(description="Pairs times windows.")
    p_value: float = Field(description="Joint: of all areas being equal in every window.")
    windows: list[ComparedWindow]


class Comparison(Resource):
    """Models on one dataset. It stays when a model or the dataset is deleted."""

    id: str
    status: str = Field(description=STATUS)
    job_id: str
    models: list[ComparedModel]
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None = Field(description="Of the content of that version.")
    windows: list[NewWindow]
    level: float
    warnings: list[str] = Field(
        description="Among them which models were trained on rows of the dataset."
    )
    result: ComparisonResult | None = Field(description="Null until it is ready.")
    error: dict[str, Any] | None = Field(description="A problem, once its job has failed.")
    created_at: Timestamp


def comparison_of(row: ComparisonRow) -> Comparison:
    """Show a row with the state of its job."""
    shown = {name: getattr(row, name) for name in same_fields(Comparison)}
    return Comparison.model_validate(shown | {"status": status_of(row), "error": row.job.error})
