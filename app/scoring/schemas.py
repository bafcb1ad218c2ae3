"""Scoring over HTTP. The model's own feature index checks what comes in; these shapes document it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from app.http.schemas import Resource, bytes_of
from app.ingest.formats import ARROW, ARROW_FILE, NDJSON, PARQUET

_ROW = {"age": 41, "income": 52000, "contract": "two year"}
_MODEL_ID = "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c"
_VALUE = {
    "type": ["number", "boolean", "string", "null"],
    "description": "Text for a categorical feature, a number for a numeric one; null is missing.",
}

ROWS_SCHEMA: dict[str, Any] = {
    "oneOf": [
        {
            "title": "Rows as objects",
            "type": "object",
            "required": ["rows"],
            "additionalProperties": False,
            "properties": {
                "rows": {
                    "type": "array",
                    "items": {"type": "object", "additionalProperties": _VALUE},
                }
            },
        },
        {
            "title": "Rows as lists under one list of names",
            "type": "object",
            "required": ["columns", "data"],
            "additionalProperties": False,
            "properties": {
                "columns": {"type": "array", "items": {"type": "string"}},
                "data": {"type": "array", "items": {"type": "array", "items": _VALUE}},
            },
        },
    ]
}

ROWS_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": ROWS_SCHEMA,
                "examples": {
                    "rows": {
                        "value": {"rows": [_ROW, {"age": 23, "income": None, "contract": None}]}
                    },
                    "columns": {
                        "value": {
                            "columns": ["age", "income", "contract"],
                            "data": [[41, 52000, "two year"], [23, None, None]],
                        }
                    },
                },
            }
        },
    }
}

_CSV_BODY = "contract,age,income\ntwo year,41,52000\n,23,?\n"

TABLE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            **ROWS_BODY["requestBody"]["content"],
            "text/csv": {"schema": {"type": "string"}, "example": _CSV_BODY},
            **bytes_of(NDJSON, ARROW, ARROW_FILE),
        },
    }
}

TABLE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "score,fpr,tpr\n1.3721,0.0123,0.41\n-0.2,0.45,0.93\n",
            },
            **bytes_of(ARROW),
            "application/x-ndjson": {
                "schema": {"type": "string", "description": "One object a line."},
                "example": '{"score":1.3721,"fpr":0.0123,"tpr":0.41}\n{"score":-0.2,"fpr":0.45,"tpr":0.93}\n',
            },
            **bytes_of(PARQUET),
        }
    },
}


class Score(Resource):
    """One row's score, and where it lies on the model's validation curve."""

    model_id: str = Field(examples=[_MODEL_ID])
    score: float = Field(examples=[1.3721])
    fpr: float | None = Field(
        description="Share of the negatives that a cut here would flag; null without a validation curve.",
        examples=[0.0123],
    )
    tpr: float | None = Field(
        description="Share of the positives that a cut here would catch.", examples=[0.41]
    )
    approximate: bool = Field(
        default=False, description="True, and there, where the model was cross-validated."
    )


class Scores(Resource):
    """Scores in row order. `fprs` and `tprs` are null without a validation curve."""

    model_id: str = Field(examples=[_MODEL_ID])
    scores: list[float] = Field(examples=[[1.3721, -0.2]])
    fprs: list[float] | None = Field(examples=[[0.0123, 0.45]])
    tprs: list[float] | None = Field(examples=[[0.41, 0.93]])
    approximate: bool = Field(
        default=False, description="True, and there, where the model was cross-validated."
    )


class LabelScore(Resource):
    """One row's score for each label of a model with several."""

    model_id: str = Field(examples=[_MODEL_ID])
    scores: dict[str, float] = Field(examples=[{"sports": 1.3, "politics": -0.2}])


class LabelScores(Resource):
    """A list of scores a row, one score a label, of a model with several."""

    model_id: str = Field(examples=[_MODEL_ID])
    labels: list[str] = Field(examples=[["sports", "politics"]])
    scores: list[list[float]] = Field(examples=[[[1.3, -0.2], [0.4, 0.9]]])


class Ranking(Resource):
    """Row numbers from 0, best first, with their scores."""

    model_id: str = Field(examples=[_MODEL_ID])
    indices: list[int] = Field(examples=[[1, 0]])
    scores: list[float] = Field(examples=[[1.3721, -0.2]])


class Explanation(Resource):
    """`offset`, the mean training score, plus the contributions is the score."""

    score: float
    fpr: float | None
    tpr: float | None
    offset: float
    contributions: dict[str, float]


class Explanations(Resource):
    """One explanation a row."""

    model_id: str
    explanations: list[Explanation]
