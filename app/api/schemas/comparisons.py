"""Comparisons over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from app.api.schemas.common import Body, Interval, Resource, Text, Timestamp
from app.api.schemas.judgements import (
    LEVEL,
    STATUS,
    NewWindow,
    Windows,
    pairs_of,
    same_fields,
)
from app.db.evaluation_tables import Comparison as ComparisonRow
from app.services.judging.comparisons import LEAST_MODELS, MOST_MODELS, ComparisonRequest
from app.services.judging.judgements import status_of


class NewComparison(Body):
    """Models to be compared on a dataset."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "models": ["churn@champion", "churn:4"],
                    "dataset_id": "ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012",
                    "windows": [
                        {"fpr_min": 0.0, "fpr_max": 1.0},
                        {"fpr_min": 0.0, "fpr_max": 0.05},
                    ],
                    "level": 0.95,
                }
            ]
        }
    )

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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "cmp_0198f0c2e2c38b7d9f0a1b2c3d4e5f60",
                    "status": "ready",
                    "job_id": "job_0198f0c2e2c48c8e9a0b1c2d3e4f5061",
                    "models": [
                        {
                            "model_id": "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c",
                            "name": "churn",
                            "version": 3,
                        },
                        {
                            "model_id": "mdl_0198f0c2c0a27f6c9e7d8c9b0a1f2e3d",
                            "name": "churn",
                            "version": 4,
                        },
                    ],
                    "dataset_id": "ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012",
                    "dataset_name": "churn-february",
                    "dataset_version": 1,
                    "dataset_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "windows": [{"fpr_min": 0.0, "fpr_max": 1.0}],
                    "level": 0.95,
                    "warnings": [],
                    "result": {
                        "positives": 412,
                        "negatives": 2988,
                        "groups": None,
                        "n_tests": 1,
                        "p_value": 0.0079,
                        "windows": [
                            {
                                "fpr_min": 0.0,
                                "fpr_max": 1.0,
                                "values": [
                                    {
                                        "model_id": "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c",
                                        "value": 0.861,
                                        "low": 0.842,
                                        "high": 0.878,
                                    },
                                    {
                                        "model_id": "mdl_0198f0c2c0a27f6c9e7d8c9b0a1f2e3d",
                                        "value": 0.877,
                                        "low": 0.859,
                                        "high": 0.893,
                                    },
                                ],
                                "differences": [
                                    {
                                        "first": "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c",
                                        "second": "mdl_0198f0c2c0a27f6c9e7d8c9b0a1f2e3d",
                                        "value": -0.016,
                                        "low": -0.028,
                                        "high": -0.004,
                                        "p_value": 0.0079,
                                        "adjusted_p_value": 0.0079,
                                    }
                                ],
                                "p_value": 0.0079,
                            }
                        ],
                    },
                    "error": None,
                    "created_at": "2026-02-28T12:00:01.000Z",
                }
            ]
        }
    )

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
