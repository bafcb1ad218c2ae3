"""Batch scores over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from app.evaluation.common_schemas import STATUS
from app.http.schemas import Body, Resource, Text, Timestamp
from app.platform.tables import BatchScore as BatchScoreRow
from app.scoring import batch as batch_scores
from app.scoring import options as score_terms
from app.scoring.options import MOST_NAMES

_DATASET_ID = "ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012"


class NewBatchScore(Body):
    """A dataset whose rows are to be scored. A table that is sent for it alone is the body itself."""

    model: Text = Field(description="Id, name, name:version or name@alias.")
    dataset_id: Text = Field(
        description="A ready dataset with the model's features; no label is needed."
    )
    keep: Annotated[list[Text], Field(max_length=MOST_NAMES)] = Field(
        default_factory=list,
        description="Columns of the dataset that are carried to the result, which takes the scope `read` as well.",
    )


class ResultColumn(Resource):
    """A column of the result."""

    name: str = Field(examples=["score"])
    type: str = Field(description="As Arrow calls it.", examples=["double"])


class BatchScore(Resource):
    """A table scored by a job: once `ready`, `…/result` has its kept columns and its scores in row order."""

    id: str = Field(examples=["bat_0198f0c2a4d37c1e8a4b5c6d7e8f9012"])
    status: str = Field(description=STATUS)
    job_id: str
    model_id: str
    model_name: str = Field(examples=["churn"])
    model_version: int
    dataset_id: str | None = Field(description="Null for a table that was sent for it alone.")
    dataset_name: str | None
    keep: list[str] = Field(
        description="Columns carried to the result.", examples=[["customer_id"]]
    )
    rows: int | None
    columns: list[ResultColumn] | None = Field(description="Of the result, once `ready`.")
    bytes: int | None = Field(description="Of the result, once `ready`.")
    sha256: str | None = Field(description="Of the result, once `ready`; its ETag.")
    error: dict[str, Any] | None = Field(
        description="A problem, where the job failed: its `errors` have lines and columns."
    )
    created_at: Timestamp


class TableCheck(Resource):
    """What `?validate=true` found: the rows could be scored. Nothing was created."""

    valid: bool
    rows: int | None = Field(default=None, description="Of a table that was sent.")


def batch_score_of(row: BatchScoreRow) -> BatchScore:
    """The resource of a row."""
    columns = None if row.columns is None else [ResultColumn(**column) for column in row.columns]
    return BatchScore(
        id=row.id,
        status=batch_scores.status_of(row),
        job_id=row.job_id,
        model_id=row.model_id,
        model_name=row.model_name,
        model_version=row.model_version,
        dataset_id=row.dataset_id,
        dataset_name=row.dataset_name,
        keep=row.terms[score_terms.KEEP],
        rows=row.rows,
        columns=columns,
        bytes=row.result_bytes,
        sha256=batch_scores.sha256_of(row),
        error=row.job.error,
        created_at=row.created_at,
    )
