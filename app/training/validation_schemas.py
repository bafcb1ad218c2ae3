"""How a model was judged and chosen, over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from app.http.schemas import Interval, Resource
from app.platform.tables import Model, ModelControls, ModelLeaderboard


class FoldAuc(Resource):
    """A fold's AUC."""

    repeat: int
    fold: int
    auc: float


class OutOfFold(Resource):
    """The scores that a cross-validated model's AUC and curve come from."""

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
