"""How a model was judged and chosen, over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from app.api.schemas.common import Interval, Resource
from app.db.model_tables import Model
from app.db.validation_tables import ModelControls, ModelLeaderboard

_MODEL_ID = "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c"


class FoldAuc(Resource):
    """A fold's AUC."""

    repeat: int
    fold: int
    auc: float


class OutOfFold(Resource):
    """The scores that a cross-validated model's AUC and curve come from."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_id": _MODEL_ID,
                    "repeats": 1,
                    "folds": 5,
                    "fold_aucs": [{"repeat": 1, "fold": 1, "auc": 0.81}],
                    "columns": ["row", "repeat", "fold", "y", "weight", "score", "aligned_score"],
                    "data": [[0, 1, 3, 1, 1.0, 0.73, 0.7], [1, 1, 5, 0, 1.0, -1.2, -1.3]],
                }
            ]
        }
    )

    model_id: str
    repeats: int
    folds: int
    fold_aucs: list[FoldAuc]
    columns: list[str]
    data: list[list[float]] = Field(
        description="An entry per row and repeat. `row` counts from 0 in the order of the dataset; `repeat` and `fold` "
        "from 1; `y` is 1 for positive. `score` is on the scale of the fold's own ranker, `aligned_score` on that of "
        "the ranker that is served."
    )


class Difference(Interval):
    """By how much the model's area is greater than the control's, and the p-value of there being no difference."""

    p_value: float
    adjusted_p_value: float = Field(description="By Holm, over all controls and windows.")


class ControlArea(Resource):
    """A control over one window."""

    algorithm: str
    area: Interval
    difference: Difference


class ControlWindow(Resource):
    """The model and the controls over one window of false positive rates; [0, 1] is the AUC."""

    fpr_min: float
    fpr_max: float
    chosen: Interval
    controls: list[ControlArea]


class Control(Resource):
    """A plain algorithm that was fitted on the same divisions."""

    algorithm: str
    parameters: dict[str, Any]
    fit_seconds: float = Field(description="Of all folds.")
    failed: str | None = Field(description="Why it could not be fitted.")
    rows: int | None = Field(
        default=None,
        description="Rows that it learnt from, in the first fold; null for models of earlier versions.",
    )
    of_rows: int | None = Field(
        default=None,
        description="Rows that it could have learnt from: more than `rows` of a sample.",
    )


class Window(Resource):
    """A window of false positive rates."""

    fpr_min: float
    fpr_max: float


class Controls(Resource):
    """Whether a model is better than plain algorithms, beyond chance."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_id": _MODEL_ID,
                    "level": 0.95,
                    "beats": True,
                    "decided_on": {"fpr_min": 0.0, "fpr_max": 1.0},
                    "controls": [
                        {
                            "algorithm": "logistic",
                            "parameters": {"C": 1.0, "standardize": True},
                            "fit_seconds": 0.01,
                            "failed": None,
                            "rows": 20_000,
                            "of_rows": 120_000,
                        }
                    ],
                    "windows": [
                        {
                            "fpr_min": 0.0,
                            "fpr_max": 1.0,
                            "chosen": {"value": 0.91, "low": 0.88, "high": 0.93},
                            "controls": [
                                {
                                    "algorithm": "logistic",
                                    "area": {"value": 0.85, "low": 0.82, "high": 0.88},
                                    "difference": {
                                        "value": 0.06,
                                        "low": 0.03,
                                        "high": 0.09,
                                        "p_value": 0.0001,
                                        "adjusted_p_value": 0.0002,
                                    },
                                }
                            ],
                        }
                    ],
                    "skipped": None,
                }
            ]
        }
    )

    model_id: str
    level: float
    beats: bool | None = Field(
        description="Greater than every control in the window `decided_on`, each with an adjusted p-value below "
        "1 - level. Null where there is none to compare with."
    )
    decided_on: Window = Field(
        description="That of the job's objective; of `tpr` the one it is trained by."
    )
    controls: list[Control]
    windows: list[ControlWindow]
    skipped: str | None = Field(description="Why no controls were fitted.")


class Candidate(Resource):
    """A candidate of `auto`. Its figures are of the rows that chose, on which the best are too good to be true."""

    algorithm: str
    parameters: dict[str, Any]
    value: float | None = Field(description="By the objective; null where it failed or never came.")
    auc: float | None
    low: float | None
    high: float | None
    p_value: float | None = Field(
        description="Of no difference from the best single candidate, on the same rows."
    )
    rows: float = Field(description="Share of the rows to learn from that it was last given.")
    seconds: float
    state: str = Field(description="`chosen`, `left`, `failed` or `untried`.")
    reason: str


class Member(Resource):
    """A ranker that the model is made of."""

    algorithm: str
    parameters: dict[str, Any]
    weight: float


class Leaderboard(Resource):
    """What `auto` has tried, the best first, and what it made of it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_id": _MODEL_ID,
                    "budget_seconds": 60.0,
                    "seconds": 41.2,
                    "members": [
                        {"algorithm": "rankboost", "parameters": {"n_rounds": 120}, "weight": 1.0}
                    ],
                    "candidates": [
                        {
                            "algorithm": "rankboost",
                            "parameters": {"n_rounds": 110},
                            "value": 0.93,
                            "auc": 0.93,
                            "low": 0.91,
                            "high": 0.95,
                            "p_value": None,
                            "rows": 1.0,
                            "seconds": 3.1,
                            "state": "chosen",
                            "reason": "none is better",
                        }
                    ],
                    "notes": [],
                }
            ]
        }
    )

    model_id: str
    budget_seconds: float
    seconds: float = Field(
        description="What the search has taken of it; the last fit comes on top."
    )
    members: list[Member]
    candidates: list[Candidate]
    notes: list[str]


def controls_of(model: Model, found: ModelControls) -> Controls:
    """Show how a model compares with plain algorithms."""
    same = ("level", "decided_on", "controls", "windows", "skipped")
    shown = {field: getattr(found, field) for field in same}
    return Controls.model_validate(shown | {"model_id": model.id, "beats": model.beats_controls})


def leaderboard_of(model: Model, found: ModelLeaderboard) -> Leaderboard:
    """Show what `auto` has tried."""
    same = ("budget_seconds", "seconds", "members", "candidates", "notes")
    shown = {field: getattr(found, field) for field in same}
    return Leaderboard.model_validate(shown | {"model_id": model.id})
